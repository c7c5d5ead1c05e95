/* assay validate: conformance cases against lists of what must pass. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "harness/command.h"
#include "harness/common.h"
#include "harness/conformance.h"
#include "harness/options.h"
#include "harness/validate.h"
#include "targets/target.h"

static const char usage[] =
    "Usage: assay validate --suite onnx [options] [WORD...]\n"
    "       assay validate --cases DIR [options] [WORD...]\n"
    "\n"
    "Compiles each case at -O0, -O1, -O2 unfused and fused, runs it, and\n"
    "compares the outputs with those that the case expects. A case is a\n"
    "folder in the layout of ONNX's backend tests: CASE/model.onnx and\n"
    "CASE/test_data_set_N/{input,output}_N.pb. Inputs that decide shapes are\n"
    "bound. With WORDs only cases that have one of them in their name.\n"
    "\n"
    "      --suite onnx    Debian's libonnx-testdata: each case must do as\n"
    "                      suites/conformance says: onnx.must-pass.txt lists\n"
    "                      those that must be there and pass,\n"
    "                      onnx.expected-fail.txt those that must fail, with\n"
    "                      a reason; one in neither list must pass, too\n"
    "      --cases DIR     any cases: all must pass\n"
    "      --list FILE     names and reasons of those that need not\n"
    "      --only FILE     the cases that FILE names; each must be there\n"
    "      --data DIR      where the suite is\n"
    "                      (/usr/share/libonnx-testdata/data)\n"
    "      --target T      native (default), or one of `assay list targets`\n"
    "      --ops FILE      your own operators; may be repeated\n"
    "      --open          inputs that decide shapes stay inputs where that\n"
    "                      is supported, with bounds of twice the case's\n"
    "                      values; --verbose says where and why not\n"
    "      --level L,L...  O0,O1,unfused,fused (all)\n"
    "      --every N       each N-th case only\n"
    "  -j, --jobs N        cases at once (all cores)\n"
    "      --timeout S     seconds for a case (120)\n"
    "      --format F      table (by operator), json or junit\n"
    "  -v, --verbose       a line a case\n"
    "\n"
    "Examples:\n"
    "  assay validate --suite onnx\n"
    "  assay validate --suite onnx --target c --level fused conv pool\n"
    "  assay validate --suite onnx --target aarch64 --level fused \\\n"
    "      --only suites/conformance/onnx.sample.txt\n"
    "  assay validate --cases my_cases/ --verbose\n"
    "\n"
    "Exit codes: 0 all as listed, 1 differences, 2 bad input.\n";

enum {
    OPT_SUITE = 256,
    OPT_CASES,
    OPT_LIST,
    OPT_ONLY,
    OPT_DATA,
    OPT_TARGET_NAME,
    OPT_OWN_OPS,
    OPT_LEVEL,
    OPT_OPEN,
    OPT_EVERY,
    OPT_TIMEOUT,
    OPT_FORMAT
};

static const struct option long_options[] = {
    {"suite", required_argument, NULL, OPT_SUITE},
    {"cases", required_argument, NULL, OPT_CASES},
    {"list", required_argument, NULL, OPT_LIST},
    {"only", required_argument, NULL, OPT_ONLY},
    {"data", required_argument, NULL, OPT_DATA},
    {"target", required_argument, NULL, OPT_TARGET_NAME},
    {"ops", required_argument, NULL, OPT_OWN_OPS},
    {"level", required_argument, NULL, OPT_LEVEL},
    {"open", no_argument, NULL, OPT_OPEN},
    {"every", required_argument, NULL, OPT_EVERY},
    {"jobs", required_argument, NULL, 'j'},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"format", required_argument, NULL, OPT_FORMAT},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

typedef enum Format { FORMAT_TABLE, FORMAT_JSON, FORMAT_JUNIT } Format;

typedef struct Validate {
    Arena *arena;
    ValidatePlan plan;
    CompileOptions own; /* --ops only */
    const char *suite, *folder, *list_file, *only_file;
    ExpectedList expected;
    NameList must, only;
    Vec(const char *) words;
    Vec(CaseRow) rows;
    long every, jobs, timeout;
    int passed_over; /* entries of the folder that are no case */
    Format format;
    bool verbose;
    double seconds;
    /* Shared by the workers. */
    pthread_mutex_t lock;
    int next, done;
} Validate;

/* ---- which cases ------------------------------------------------------ */

static bool is_chosen(const Validate *v, const char *name)
{
    if (v->only_file && !names_have(&v->only, name))
        return false;
    bool chosen = !v->words.count;
    for (int i = 0; i < v->words.count; i++)
        chosen = chosen || strstr(name, v->words.data[i]);
    return chosen;
}

static void add_case(Validate *v, const char *prefix, const char *folder,
                     const char *name, int *seen)
{
    const char *path = arena_printf(v->arena, "%s/%s", folder, name);
    if (access(arena_printf(v->arena, "%s/model.onnx", path), R_OK)) {
        v->passed_over++;
        return;
    }
    const char *full = arena_printf(v->arena, "%s%s", prefix, name);
    if (!is_chosen(v, full) || (*seen)++ % v->every)
        return;
    CaseRow row = {.name = full,
                   .folder = path,
                   .excuse = expected_reason(&v->expected, full)};
    vec_push(v->arena, &v->rows, row);
}

static bool list_folder(Validate *v, const char *prefix, const char *folder,
                        int *seen)
{
    struct dirent **names;
    int count = scandir(folder, &names, NULL, alphasort);
    if (count < 0) {
        bad_input("%s: %s", folder, strerror(errno));
        return false;
    }
    for (int i = 0; i < count; i++) {
        if (*names[i]->d_name != '.')
            add_case(v, prefix, folder, names[i]->d_name, seen);
        free(names[i]);
    }
    free(names);
    return true;
}

static bool list_cases(Validate *v)
{
    static const char *const parts[] = {"node", "pytorch-converted",
                                        "pytorch-operator", "simple"};
    int seen = 0;
    if (!v->suite)
        return list_folder(v, "", v->folder, &seen);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!list_folder(v, arena_printf(v->arena, "%s/", parts[i]),
                         arena_printf(v->arena, "%s/%s", v->folder, parts[i]),
                         &seen))
            return false;
    return true;
}

/* Data that shrank must not pass for a suite without failures. */
static void add_missing(Validate *v, const NameList *list)
{
    Map there;
    map_init(&there, v->arena);
    for (int i = 0; i < v->rows.count; i++)
        map_set(&there, v->rows.data[i].name, &v->rows.data[i]);
    for (int i = 0; i < list->names.count && v->every == 1; i++) {
        const char *name = list->names.data[i];
        if (!is_chosen(v, name) || map_get(&there, name))
            continue;
        CaseRow row = {.name = name,
                       .result = {.op = "",
                                  .status = CASE_REFUSED,
                                  .reason = arena_printf(
                                      v->arena, "it is not in %s", v->folder),
                                  .bound = "",
                                  .open = "",
                                  .why_bound = ""}};
        vec_push(v->arena, &v->rows, row);
    }
}

/* ---- running ---------------------------------------------------------- */

static void say_case(const Validate *v, const CaseRow *row)
{
    const ValidateResult *r = &row->result;
    if (v->verbose)
        fprintf(stderr, "%-13s %s%s%s%s%s%s%s%s%s\n", case_outcome(row),
                row->name, *r->open ? "; open: " : "", r->open,
                v->plan.is_open && *r->bound ? "; bound: " : "",
                v->plan.is_open ? r->bound : "", *r->why_bound ? ": " : "",
                r->why_bound, *r->reason ? ": " : "", r->reason);
    else if (v->done % 100 == 0 || v->done == v->rows.count)
        fprintf(stderr, "%d of %d cases, %.0f s\n", v->done, v->rows.count,
                clock_now() - v->seconds);
}

static void *work(void *user)
{
    Validate *v = user;
    Arena *scratch = arena_new();
    for (;;) {
        pthread_mutex_lock(&v->lock);
        int at = v->next++;
        pthread_mutex_unlock(&v->lock);
        if (at >= v->rows.count)
            break;
        CaseRow *row = &v->rows.data[at];
        ValidateResult result = row->result;
        if (row->folder)
            validate_case(scratch, row->folder, &v->plan, &result);
        pthread_mutex_lock(&v->lock);
        row->result = result;
        row->result.op = arena_strdup(v->arena, result.op);
        row->result.reason = arena_strdup(v->arena, result.reason);
        row->result.bound = arena_strdup(v->arena, result.bound);
        row->result.open = arena_strdup(v->arena, result.open);
        row->result.why_bound = arena_strdup(v->arena, result.why_bound);
        if (result.level)
            row->result.level = arena_strdup(v->arena, result.level);
        v->done++;
        say_case(v, row);
        pthread_mutex_unlock(&v->lock);
    }
    arena_free(scratch);
    return NULL;
}

static void run_cases(Validate *v)
{
    enum { MOST = 64 };
    pthread_t threads[MOST];
    int count = v->jobs < MOST ? (int)v->jobs : MOST, started = 0;
    pthread_mutex_init(&v->lock, NULL);
    v->seconds = clock_now();
    for (int i = 1; i < count; i++)
        started += !pthread_create(&threads[started], NULL, work, v);
    work(v);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    v->seconds = clock_now() - v->seconds;
}

/* ---- command ---------------------------------------------------------- */

static bool take_levels(Validate *v, const char *text)
{
    char *list = arena_strdup(v->arena, text), *rest = NULL;
    memset(v->plan.levels, 0, sizeof v->plan.levels);
    bool any = false;
    for (char *name = strtok_r(list, ",", &rest); name;
         name = strtok_r(NULL, ",", &rest)) {
        int level = 0;
        while (level < LEVEL_COUNT &&
               strcmp(validate_level_name((ValidateLevel)level), name))
            level++;
        if (level == LEVEL_COUNT) {
            bad_input("--level %s: there are O0, O1, unfused and fused", name);
            return false;
        }
        v->plan.levels[level] = any = true;
    }
    if (!any)
        bad_input("--level: name at least one");
    return any;
}

static bool take_report(Validate *v, const char *text)
{
    static const char *const names[] = {"table", "json", "junit"};
    for (int i = 0; i < 3; i++)
        if (!strcmp(names[i], text)) {
            v->format = (Format)i;
            return true;
        }
    bad_input("--format %s: there are table, json and junit", text);
    return false;
}

static bool take_option(Validate *v, int code)
{
    switch (code) {
    case OPT_SUITE:
        v->suite = optarg;
        if (strcmp(optarg, "onnx"))
            bad_input("--suite %s: there is onnx", optarg);
        return !strcmp(optarg, "onnx");
    case OPT_CASES:
    case OPT_DATA:
        v->folder = optarg;
        return true;
    case OPT_LIST:
        v->list_file = optarg;
        return true;
    case OPT_ONLY:
        v->only_file = optarg;
        return true;
    case OPT_TARGET_NAME:
        v->plan.target = optarg;
        return true;
    case OPT_OWN_OPS:
        v->plan.ops = &v->own;
        return compile_options_add_ops(&v->own, optarg);
    case OPT_LEVEL:
        return take_levels(v, optarg);
    case OPT_OPEN:
        return v->plan.is_open = true;
    case OPT_EVERY:
        return parse_count("--every", optarg, 1, 1000000, &v->every);
    case 'j':
        return parse_count("--jobs", optarg, 1, 64, &v->jobs);
    case OPT_TIMEOUT:
        return parse_count("--timeout", optarg, 1, 1000000, &v->timeout);
    case OPT_FORMAT:
        return take_report(v, optarg);
    case 'v':
        return v->verbose = true;
    default:
        bad_input("see assay validate --help");
        return false;
    }
}

static bool read_lists(Validate *v, Str *error)
{
    const char *lists = arena_printf(v->arena, "%s/suites/conformance/",
                                     project_folder(v->arena));
    if (v->suite &&
        !names_read(v->arena,
                    arena_printf(v->arena, "%sonnx.must-pass.txt", lists),
                    &v->must, error))
        return false;
    if (v->suite && !v->list_file)
        v->list_file =
            arena_printf(v->arena, "%sonnx.expected-fail.txt", lists);
    return (!v->list_file ||
            expected_read(v->arena, v->list_file, &v->expected, error)) &&
           (!v->only_file ||
            names_read(v->arena, v->only_file, &v->only, error));
}

static int validate(Validate *v)
{
    Str error = {0};
    Diag *diag = diag_new(v->arena, NULL);
    if (!target_find(v->arena, diag, v->plan.target))
        return bad_input("%s", diag->errors.data[0]);
    if (!read_lists(v, &error)) {
        int code = bad_input("%s", str_text(&error));
        str_free(&error);
        return code;
    }
    if (!list_cases(v))
        return EXIT_BAD_INPUT;
    if (v->passed_over)
        fprintf(stderr,
                "%d without a model.onnx that can be read %s passed "
                "over\n",
                v->passed_over, v->passed_over == 1 ? "is" : "are");
    add_missing(v, &v->must);
    add_missing(v, &v->only);
    if (!v->rows.count)
        return bad_input("%s: no such cases", v->folder);
    v->plan.limits.seconds = (double)v->timeout;
    run_cases(v);
    if (v->format == FORMAT_JSON)
        conformance_print_json(stdout, v->rows.data, v->rows.count,
                               v->seconds);
    else if (v->format == FORMAT_JUNIT)
        conformance_print_junit(stdout, v->rows.data, v->rows.count,
                                v->seconds);
    else
        conformance_print_table(v->arena, stdout, v->rows.data, v->rows.count,
                                v->seconds);
    for (int i = 0; i < v->rows.count; i++)
        if (case_differs(&v->rows.data[i]))
            return EXIT_FAILED_CHECK;
    return EXIT_FINE;
}

int cmd_validate(int argc, char **argv)
{
    Validate v = {.arena = arena_new(),
                  .every = 1,
                  .timeout = 120,
                  .jobs = sysconf(_SC_NPROCESSORS_ONLN)};
    compile_options_init(&v.own);
    take_levels(&v, "O0,O1,unfused,fused");
    bool has_cases = false;
    int c;
    while ((c = getopt_long(argc, argv, "j:vh", long_options, NULL)) != -1) {
        if (c == 'h')
            return fputs(usage, stdout), EXIT_FINE;
        has_cases = has_cases || c == OPT_CASES;
        if (!take_option(&v, c))
            return EXIT_BAD_INPUT;
    }
    for (int i = optind; i < argc; i++)
        vec_push(v.arena, &v.words, argv[i]);
    if (v.suite && has_cases)
        return bad_input("give --suite or --cases, not both");
    if (v.suite && !v.folder)
        v.folder = "/usr/share/libonnx-testdata/data";
    if (!v.folder)
        return fputs(usage, stderr), EXIT_BAD_INPUT;
    int code = validate(&v);
    arena_free(v.arena);
    return code;
}
