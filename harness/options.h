/* Options that several subcommands take: which model, compiled how. */
#ifndef ASSAY_HARNESS_OPTIONS_H
#define ASSAY_HARNESS_OPTIONS_H

#include <getopt.h>

#include "assay.h"
#include "base/vec.h"
#include "harness/custom.h"

enum { MAX_LIST = 64 };

typedef struct CompileOptions {
    AssayOptions assay;
    const char *mode; /* "fused", "unfused", "O0", ... */
    bool has_mode;    /* given by an option */
    /* What `assay` points to. */
    const char *disabled[MAX_LIST], *no_fuse[MAX_LIST];
    AssayDim dims[MAX_LIST];
    const char *binds[MAX_LIST];         /* NAME=FILE */
    const AssayCustomOps *ops[MAX_LIST]; /* --ops */
    int ops_count;
    int disabled_count, no_fuse_count, dim_count, bind_count;
    /* All but --choices as they were given, for a process that compiles the
     * same: "--target", "c". */
    const char *args[4 * MAX_LIST];
    int arg_count;
} CompileOptions;

/* Codes of the long options; single letters stand for themselves. */
enum {
    OPT_TARGET = 1000,
    OPT_MODE,
    OPT_DIM,
    OPT_BIND,
    OPT_OPS,
    OPT_SCHEDULE,
    OPT_DISABLE,
    OPT_NO_FUSE,
    OPT_ALGORITHM,
    OPT_DUMP_AFTER,
    OPT_STOP_AFTER,
    OPT_TIME_PASSES,
    OPT_TAPS,
    OPT_SANITIZE,
    OPT_CHOICES,
    OPT_COMMAND /* first code for a command's own options */
};

#define COMPILE_SHORT "O:j:"
#define COMPILE_LONG                                                          \
    {"target", required_argument, NULL, OPT_TARGET},                          \
        {"mode", required_argument, NULL, OPT_MODE},                          \
        {"dim", required_argument, NULL, OPT_DIM},                            \
        {"bind", required_argument, NULL, OPT_BIND},                          \
        {"ops", required_argument, NULL, OPT_OPS},                            \
        {"schedule", required_argument, NULL, OPT_SCHEDULE},                  \
        {"disable", required_argument, NULL, OPT_DISABLE},                    \
        {"no-fuse", required_argument, NULL, OPT_NO_FUSE},                    \
        {"algorithm", required_argument, NULL, OPT_ALGORITHM},                \
        {"dump-after", required_argument, NULL, OPT_DUMP_AFTER},              \
        {"stop-after", required_argument, NULL, OPT_STOP_AFTER},              \
        {"time-passes", no_argument, NULL, OPT_TIME_PASSES},                  \
        {"taps", no_argument, NULL, OPT_TAPS},                                \
        {"sanitize", required_argument, NULL, OPT_SANITIZE},                  \
        {"choices", required_argument, NULL, OPT_CHOICES},                    \
        {"jobs", required_argument, NULL, 'j'},                               \
    {                                                                         \
        "help", no_argument, NULL, 'h'                                        \
    }

#define COMPILE_OPTIONS_HELP                                                  \
    "  --target T          native (default), or one of `assay list "          \
    "targets`\n"                                                              \
    "  --mode M            fused (default), unfused, O0, O1, naive\n"         \
    "  -O N                0, 1 or 2 (default)\n"                             \
    "  --schedule naive    plain loops instead of the templates\n"            \
    "  --dim NAME=VALUE    a named dimension of an ONNX file, as N=1; with\n" \
    "                      NAME=LOW..HIGH, as T=1..256, what runs may have\n" \
    "                      any of these numbers; or bounds of what a "        \
    "tensor\n"                                                                \
    "                      holds that shapes depend on, NAME or 'NAME[I]'\n"  \
    "  --bind NAME=FILE    the value (.npy or .pb) of an input of an ONNX\n"  \
    "                      file that decides shapes: a constant from then\n"  \
    "                      on; may be repeated\n"                             \
    "  --ops FILE          your own operators, a shared object as\n"          \
    "                      harness/custom.h says; may be repeated\n"          \
    "  --disable PASS      leave a pass out; may be repeated\n"               \
    "  --no-fuse NODE      keep a node out of fusion; may be repeated\n"      \
    "  --algorithm NAME    of convolutions, where it applies: direct,\n"      \
    "                      winograd2, winograd4 or (default) auto\n"          \
    "  --dump-after PASS   print the graph after a pass, or \"all\"\n"        \
    "  --stop-after PASS   no pass after this one\n"                          \
    "  --time-passes       print the time of each pass\n"                     \
    "  --taps              keep every tensor until the run ends\n"            \
    "  --sanitize KIND     LLVM's sanitizer over the kernels: address or\n"   \
    "                      thread\n"                                          \
    "  -j, --jobs N        kernels compiled at once (all cores)\n"

#define COMPILE_HELP                                                          \
    COMPILE_OPTIONS_HELP                                                      \
    "      --choices FILE  schedules that `assay tune` found fastest here\n"

#define EXIT_CODES_HELP                                                       \
    "\nExit codes: 0 fine, 1 a check failed, 2 bad input.\n"

void compile_options_init(CompileOptions *o);
/* Takes one option that getopt_long returned. 1: taken, 0: not one of
 * these, -1: a bad value, which was reported. */
int compile_options_take(CompileOptions *o, int code, const char *value);
/* Loads a file of --ops; false when it is none, reported. */
bool compile_options_add_ops(CompileOptions *o, const char *path);
/* Applies a mode by name; false when there is no such mode, reported. */
bool compile_options_set_mode(CompileOptions *o, const char *mode);
/* --format table or json; false with a message on anything else. */
bool take_format(const char *text, bool *json);
/* False when an --input NAME=FILE repeats the name of one before, reported. */
bool inputs_are_distinct(const char *const *inputs, int count);
/* Whole number within bounds, or a report and false. */
bool parse_count(const char *option, const char *text, long low, long high,
                 long *value);
/* The same for any number, above `low` and up to `high`. */
bool parse_number(const char *option, const char *text, double low,
                  double high, double *value);

/* False when the log of --choices is none, reported. What of it is for other
 * targets, features or compilers is said in one line. */
bool check_choices(const CompileOptions *o);
/* Loads a suite model (NAME or NAME@PARAMS) or an ONNX file, after a look at
 * the log of --choices. False when it cannot, reported. */
bool open_model(AssayCompiler *compiler, const char *model,
                const CompileOptions *o);

#endif
