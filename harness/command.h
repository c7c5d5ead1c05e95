/* The subcommands. Each has its own file, parses its own options and
 * returns an exit code. */
#ifndef ASSAY_HARNESS_COMMAND_H
#define ASSAY_HARNESS_COMMAND_H

typedef struct Command {
    const char *name;
    const char *about;
    /* argv[0] is the subcommand's name. */
    int (*run)(int argc, char **argv);
} Command;

int cmd_run(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_inspect(int argc, char **argv);
int cmd_compile(int argc, char **argv);
int cmd_infer(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_tune(int argc, char **argv);
int cmd_profile(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_peers(int argc, char **argv);
int cmd_validate(int argc, char **argv);

#endif
