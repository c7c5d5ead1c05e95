/* Peers: what becomes of an engine that is right, wrong, broken or slow to
 * end, and what is made of the rows. Engines are scripts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "assay.h"
#include "harness/common.h"
#include "harness/npy.h"
#include "harness/options.h"
#include "harness/peer_rows.h"
#include "harness/values.h"

typedef struct Fixture {
    Arena *arena;
    char *folder;
    PeerPlan plan;
    PeerModel model;
} Fixture;

static int set_up(void **state)
{
    static const char *const none[] = {NULL};
    Arena *arena = arena_new();
    Fixture *f = ARENA_NEW(arena, Fixture);
    *f = (Fixture){.arena = arena, .folder = make_temp_folder(arena)};
    *state = f;
    f->plan = (PeerPlan){.compile_args = none};
    f->plan.build.limits.seconds = 60;
    build_plan_init(&f->plan.build, true);
    f->plan.build.min_time = 0.001;
    f->model =
        (PeerModel){.label = "resnet18",
                    .work = f->folder,
                    .onnx = arena_printf(arena, "%s/model.onnx", f->folder),
                    .artifact = arena_printf(arena, "%s/artifact", f->folder)};
    AssayCompiler *compiler = assay_new();
    CompileOptions o;
    compile_options_init(&o);
    assert_true(open_model(compiler, "resnet18@32,width=0.0625", &o) &&
                assay_compile(compiler, &o.assay) &&
                assay_write_artifact(compiler, f->model.artifact));
    assay_free(compiler);
    int64_t dims[] = {1, 3, 32, 32};
    Array *input = array_new(arena, DT_F32, 4, dims);
    for (int64_t i = 0; i < array_count(input); i++)
        array_set(input, i, (double)(i % 7) - 3);
    const char *file = arena_printf(arena, "%s/input.npy", f->folder);
    Str error = {0};
    assert_true(npy_write(file, input, &error));
    vec_push(arena, &f->model.inputs,
             (const char *)arena_printf(arena, "input=%s", file));
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    remove_temp_folder(f->folder);
    arena_free(f->arena);
    return 0;
}

/* What Assay's run before it gave is near: `$ours`. */
#define SCRIPT                                                                \
    "set -e; for a; do case $prev in --output) out=$a;; --seconds) "          \
    "seconds=$a;; --variant) variant=$a;; esac; prev=$a; done; "              \
    "ours=$(echo \"$out\"/../outputs/*.npy); "

static PeerRow measure(Fixture *f, const char *script)
{
    Engine engine = {.name = "fake", .start = {"/bin/sh", "-c", script, NULL}};
    PeerRow row;
    peer_measure(f->arena, &f->plan, &f->model, &engine, 1, &row);
    return row;
}

static void check_row(Fixture *f, const char *script, const char *status,
                      const char *word)
{
    PeerRow row = measure(f, script);
    assert_string_equal(peer_status_name(&row), status);
    assert_non_null(row.error);
    if (!strstr(row.error, word))
        fail_msg("\"%s\" does not say \"%s\"", row.error, word);
    assert_true(isnan(row.pair.ratio.value));
    assert_true(isnan(row.assay) && isnan(row.peer));
    assert_false(row.is_ours);
    peer_row_free(&row);
}

static void right(void **state)
{
    Fixture *f = *state;
    PeerRow row = measure(
        f, SCRIPT "cp \"$ours\" \"$out/0.npy\"; echo '{\"version\": \"1.2\","
                  " \"variant\": \"a b\", \"samples\": [4e3, 2e3, 3e3]}'");
    if (row.error)
        fail_msg("%s", row.error);
    assert_string_equal(peer_status_name(&row), "ok");
    assert_string_equal(row.version, "1.2");
    assert_string_equal(row.variant, "a b");
    /* The median of what the engine says, over what Assay took. */
    assert_float_equal(row.peer, 3e3, 1e-6);
    assert_true(row.assay > 0 && row.assay < 60);
    assert_float_equal(row.pair.ratio.value * row.assay / row.peer, 1, 1e-9);
    assert_true(isnan(row.pair.ratio.low)); /* of one block */
    assert_float_equal(row.max_error, 0, 0);
    assert_int_equal(row.pair.blocks, 1);
    peer_row_free(&row);
}

/* A version is a word of a table, whatever the engine says. */
static void odd_version(void **state)
{
    Fixture *f = *state;
    PeerRow row =
        measure(f, SCRIPT "cp \"$ours\" \"$out/0.npy\"; printf '%s' "
                          "'{\"version\": \"1\\u001b[31m\\n2\", "
                          "\"samples\": [1]}'");
    assert_string_equal(row.version, "1?[31m");
    peer_row_free(&row);
}

/* Later calls name the variant that the first one chose. */
static void variants(void **state)
{
    Fixture *f = *state;
    PeerRow row = measure(
        f, SCRIPT "cp \"$ours\" \"$out/0.npy\"; if [ \"$seconds\" = 0 ]; then "
                  "echo '{\"variant\": \"best\"}'; else [ \"$variant\" = best "
                  "]; echo '{\"samples\": [1]}'; fi");
    if (row.error)
        fail_msg("%s", row.error);
    assert_string_equal(peer_status_name(&row), "ok");
    peer_row_free(&row);
}

static void broken(void **state)
{
    Fixture *f = *state;
    /* Its own input is no output of the model. */
    check_row(f, SCRIPT "cp \"$out/../input.npy\" \"$out/0.npy\"; echo '{}'",
              "wrong", "type differs");
    check_row(f, SCRIPT "echo '{}'", "wrong", "missing");
    check_row(f, SCRIPT "head -c -4 \"$ours\" >\"$out/0.npy\"; echo '{}'",
              "wrong", "0.npy");
    check_row(f,
              SCRIPT "head -c -4 \"$ours\" >\"$out/0.npy\"; printf "
                     "'\\0\\0\\310\\102' >>\"$out/0.npy\"; echo '{}'",
              "wrong", "is 100, Assay's");
    check_row(f, "echo '{\"unsupported\": \"no such operator\"}'",
              "unsupported", "no such operator");
    check_row(f, "kill -SEGV $$", "crashed", "SIGSEGV");
    check_row(f, "echo no JSON", "crashed", "no report");
    check_row(f, "echo '[1]'", "crashed", "no JSON object");
    check_row(f, "echo out of memory >&2; exit 3", "out-of-memory", "memory");
    const char *const copy =
        SCRIPT "cp \"$ours\" \"$out/0.npy\"; echo '{\"samples\": %s}'";
    const char *const bad[] = {"[0]", "[\"1\"]", "[1, -2]", "[]", "7"};
    for (int i = 0; i < 5; i++) {
        char *script = arena_strdup(f->arena, copy);
        char *at = strstr(script, "%s");
        *at = 0;
        check_row(f, arena_printf(f->arena, "%s%s%s", script, bad[i], at + 2),
                  "crashed", "sample");
    }
}

/* It gave the right outputs when it was checked, and others when timed. */
static void wrong_when_timed(void **state)
{
    Fixture *f = *state;
    check_row(f,
              SCRIPT "[ \"$seconds\" != 0 ] || cp \"$ours\" \"$out/0.npy\"; "
                     "echo '{\"samples\": [1]}'",
              "wrong", "missing");
}

static void hangs(void **state)
{
    Fixture *f = *state;
    double before = f->plan.build.limits.seconds;
    f->plan.build.limits.seconds = 1;
    check_row(f, "exec sleep 100", "timed-out", "killed after");
    f->plan.build.limits.seconds = before;
}

static void not_ready(void **state)
{
    Fixture *f = *state;
    PeerModel ready = f->model;
    f->model.status = CASE_REFUSED;
    f->model.reason = "no such model";
    PeerRow row = measure(f, "exit 7");
    f->model = ready;
    assert_true(row.is_ours);
    assert_string_equal(peer_status_name(&row), "refused");
    assert_string_equal(row.error, "Assay: no such model");
}

/* ---- rows ------------------------------------------------------------- */

static PeerRow row_of(const char *model, int threads, double ratio)
{
    return (PeerRow){.model = model,
                     .engine = "fake",
                     .version = "1",
                     .variant = "",
                     .threads = threads,
                     .assay = 0.002,
                     .peer = 0.002 * ratio,
                     .max_error = 1e-6,
                     .pair.blocks = 0,
                     .pair.ratio = {ratio, ratio / 1.1, ratio * 1.1}};
}

static void means(void **state)
{
    Fixture *f = *state;
    PeerRow rows[] = {row_of("a", 1, 2), row_of("a", 2, 3), row_of("b", 1, 8),
                      row_of("c", 1, 5)};
    rows[3].status = PEER_WRONG; /* counts for nothing */
    PeerMean *of;
    assert_int_equal(peer_means(f->arena, rows, 4, &of), 2);
    assert_int_equal(of[0].threads, 1);
    assert_int_equal(of[0].models, 2);
    assert_float_equal(of[0].ratio.value, 4, 1e-9);
    /* Two intervals of 10 %: their mean has one over the root of 2. */
    assert_float_equal(of[0].ratio.high, 4 * pow(1.1, 1 / sqrt(2)), 1e-9);
    assert_float_equal(of[0].ratio.low, 4 / pow(1.1, 1 / sqrt(2)), 1e-9);
    assert_string_equal(of[0].worst, "a");
    assert_float_equal(of[0].least, 2, 1e-9);
    assert_float_equal(of[1].ratio.value, 3, 1e-9);
    /* One without an interval leaves none. */
    rows[0].pair.ratio.low = rows[0].pair.ratio.high = NAN;
    peer_means(f->arena, rows, 4, &of);
    assert_float_equal(of[0].ratio.value, 4, 1e-9);
    assert_true(isnan(of[0].ratio.low) && isnan(of[0].ratio.high));
    rows[1].status = PEER_UNSUPPORTED;
    assert_int_equal(peer_means(f->arena, rows, 4, &of), 1);
}

static void stored(void **state)
{
    Fixture *f = *state;
    ResultsContext context = {.suite = "peers", .threads = 2};
    json_t *doc = results_new(f->arena, &context);
    PeerRow rows[] = {row_of("a", 1, 2), row_of("b", 1, NAN),
                      row_of("c", 1, NAN), row_of("d", 1, NAN)};
    for (int i = 1; i < 4; i++) {
        rows[i].assay = rows[i].peer = NAN;
        rows[i].status = (PeerStatus)i;
        rows[i].error = "why";
    }
    rows[3].failure = CASE_TIMED_OUT;
    for (int i = 0; i < 4; i++)
        results_add_peer(doc, &rows[i]);
    PeerMean *of;
    int count = peer_means(f->arena, rows, 4, &of);
    results_set_peer_means(doc, of, count);
    const json_t *row = json_array_get(json_object_get(doc, "rows"), 0);
    assert_string_equal(text_of(row, "model"), "a");
    assert_string_equal(text_of(row, "engine"), "fake");
    assert_string_equal(text_of(row, "version"), "1");
    assert_true(json_is_null(json_object_get(row, "variant")));
    assert_float_equal(number_of(row, "assay_ms"), 2, 1e-9);
    assert_float_equal(number_of(row, "peer_ms"), 4, 1e-9);
    assert_float_equal(number_of(row, "ratio"), 2, 1e-9);
    assert_float_equal(number_of(row, "high"), 2.2, 1e-9);
    assert_true(json_is_null(json_object_get(row, "error")));
    static const char *const status[] = {"ok", "wrong", "unsupported",
                                         "timed-out"};
    static const char *const of_case[] = {"ok", "failed-check", "skipped",
                                          "timed-out"};
    for (size_t i = 0; i < 4; i++) {
        row = json_array_get(json_object_get(doc, "rows"), i);
        assert_string_equal(text_of(row, "status"), status[i]);
        assert_true(!i || json_is_null(json_object_get(row, "ratio")));
        const json_t *c = json_array_get(json_object_get(doc, "cases"), i);
        assert_string_equal(text_of(c, "status"), of_case[i]);
        assert_string_equal(text_of(c, "mode"), "fake-t1");
    }
    const json_t *mean = json_array_get(json_object_get(doc, "summary"), 0);
    assert_int_equal(json_array_size(json_object_get(doc, "summary")), 1);
    assert_float_equal(number_of(mean, "ratio"), 2, 1e-9);
    assert_int_equal(number_of(mean, "models"), 1);
    const json_t *of_run = json_object_get(doc, "context");
    assert_string_equal(text_of(of_run, "config"), "peers-native");
    json_decref(doc);
}

static void printed(void **state)
{
    Fixture *f = *state;
    PeerRow rows[] = {row_of("a", 1, 2), row_of("b", 2, NAN)};
    rows[1].assay = rows[1].peer = NAN;
    rows[1].status = PEER_UNSUPPORTED;
    rows[1].error = "no such operator";
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    peer_rows_print(f->arena, file, rows, 2);
    fclose(file);
    static const char *const wanted[] = {
        "2.00 [1.82, 2.20]",
        "ok",
        "unsupported",
        "geometric means",
        "fake   t1  2.00 [1.82, 2.20]  of 1; least 2.00, a",
        "b with fake, 2 threads: unsupported: no such operator"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!strstr(text, wanted[i]))
            fail_msg("no \"%s\" in\n%s", wanted[i], text);
    free(text);
}

/* ---- engines ---------------------------------------------------------- */

static void engines(void **state)
{
    Fixture *f = *state;
    Str error = {0};
    Engine e;
    const char *venvs = arena_printf(f->arena, "%s/venvs", f->folder);
    assert_true(engine_find(f->arena, "onnxruntime", venvs, &e, &error));
    assert_non_null(e.row);
    assert_non_null(strstr(e.start[1], "/harness/peer.py"));
    assert_int_equal(access(e.start[1], R_OK), 0);
    assert_true(engine_find(f->arena, "/bin/sh", venvs, &e, &error));
    assert_string_equal(e.name, "sh");
    assert_true(engine_is_installed(f->arena, &e, venvs));
    assert_false(engine_find(f->arena, "no_such", venvs, &e, &error));
    assert_non_null(strstr(str_text(&error), "onnxruntime, openvino"));
    str_free(&error);
    assert_false(engine_find(f->arena, "./no_such", venvs, &e, &error));
    assert_non_null(strstr(str_text(&error), "No such file"));
    str_free(&error);
}

/* Only an environment of the very versions is taken. */
static void installed(void **state)
{
    Fixture *f = *state;
    Str error = {0};
    Engine e;
    const char *venvs = arena_printf(f->arena, "%s/venvs", f->folder);
    const char *bin = arena_printf(f->arena, "%s/openvino/bin", venvs);
    const char *mark =
        arena_printf(f->arena, "%s/../assay-requirements.txt", bin);
    assert_true(engine_find(f->arena, "openvino", venvs, &e, &error));
    assert_false(engine_is_installed(f->arena, &e, venvs));
    assert_true(make_folders(bin));
    assert_int_equal(
        symlink("/bin/sh", arena_printf(f->arena, "%s/python", bin)), 0);
    assert_false(engine_is_installed(f->arena, &e, venvs));
    const char *text = e.row->requirements;
    assert_true(write_file(mark, text, strlen(text), &error));
    assert_true(engine_is_installed(f->arena, &e, venvs));
    assert_true(write_file(mark, text, strlen(text) - 2, &error));
    assert_false(engine_is_installed(f->arena, &e, venvs));
    /* Every package has its version. */
    for (const EngineRow *row = engine_rows(); row->name; row++) {
        int lines = 0, pins = 0;
        for (const char *c = row->requirements; *c; c++) {
            lines += *c == '\n';
            pins += c[0] == '=' && c[1] == '=';
        }
        assert_int_equal(lines, pins);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right),
        cmocka_unit_test(odd_version),
        cmocka_unit_test(variants),
        cmocka_unit_test(broken),
        cmocka_unit_test(wrong_when_timed),
        cmocka_unit_test(hangs),
        cmocka_unit_test(not_ready),
        cmocka_unit_test(means),
        cmocka_unit_test(stored),
        cmocka_unit_test(printed),
        cmocka_unit_test(engines),
        cmocka_unit_test(installed),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
