/* Comparing two builds of a model by groups, and the roofline: real
 * artifacts, made-up times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "assay.h"
#include "harness/common.h"
#include "harness/groups.h"
#include "harness/options.h"
#include "harness/roofline.h"
#include "runtime/runtime.h"

enum { RUNS = 4 };

typedef struct Fixture {
    Arena *arena;
    char *folder;
    const char *artifact[2]; /* unfused, fused */
    ArtifactInfo info[2];
    Pair pair;
} Fixture;

static void compile(Fixture *f, int side, const char *mode)
{
    AssayCompiler *compiler = assay_new();
    CompileOptions o;
    compile_options_init(&o);
    assert_true(compile_options_set_mode(&o, mode));
    assert_true(open_model(compiler, "resnet18@32,width=0.0625", &o));
    f->artifact[side] = arena_printf(f->arena, "%s/%s", f->folder, mode);
    assert_true(assay_compile(compiler, &o.assay) &&
                assay_write_artifact(compiler, f->artifact[side]));
    assay_free(compiler);
    AssayError error;
    assert_int_equal(artifact_read_info(f->arena, f->artifact[side],
                                        &f->info[side], &error),
                     ASSAY_OK);
}

static int set_up(void **state)
{
    Arena *arena = arena_new();
    Fixture *f = ARENA_NEW(arena, Fixture);
    f->arena = arena;
    f->folder = make_temp_folder(arena);
    *state = f;
    compile(f, 0, "unfused");
    compile(f, 1, "fused");
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    pair_free(&f->pair);
    remove_temp_folder(f->folder);
    arena_free(f->arena);
    return 0;
}

/* Each step of a side takes `seconds`, but those whose kernel is in both
 * builds take `same`. */
static json_t *side_json(const Fixture *f, int side, double seconds,
                         double same)
{
    json_t *steps = json_array();
    const ArtifactInfo *info = &f->info[side], *other = &f->info[!side];
    for (int s = 0; s < info->step_count; s++) {
        const ArtifactKernel *k = &info->kernels[info->steps[s].kernel_index];
        bool shared = false;
        for (int i = 0; i < other->kernel_count; i++)
            shared = shared || other->kernels[i].code_hash == k->code_hash;
        json_t *samples = json_array();
        for (int i = 0; i < RUNS; i++)
            json_array_append_new(samples, json_real(shared ? same : seconds));
        json_array_append_new(steps, json_pack("{s:o}", "samples", samples));
    }
    return json_pack("{s:o}", "steps", steps);
}

static void add_blocks(Fixture *f, double same_a, double same_b)
{
    pair_free(&f->pair);
    f->pair.blocks = 2;
    for (int i = 0; i < 2; i++)
        for (int v = 0; v < 2; v++)
            f->pair.visits[i][v].report =
                json_pack("{s:o, s:o}", "a", side_json(f, 0, 2e-3, same_a),
                          "b", side_json(f, 1, 1e-3, same_b));
}

static void groups_hold_the_same_nodes(void **state)
{
    Fixture *f = *state;
    add_blocks(f, 1e-3, 1e-3);
    double noise;
    json_t *rows = groups_compare(f->arena, &f->pair, f->artifact[0],
                                  f->artifact[1], &noise);
    size_t i, of_a = 0, of_b = 0, several = 0, identical = 0;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        size_t a = json_array_size(json_object_get(row, "a_kernels"));
        size_t b = json_array_size(json_object_get(row, "b_kernels"));
        double ratio = json_number_value(json_object_get(row, "ratio"));
        bool same = json_is_true(json_object_get(row, "identical"));
        const char *verdict =
            json_string_value(json_object_get(row, "verdict"));
        of_a += a;
        of_b += b;
        several += a > 1;
        identical += same;
        /* One kernel of the fused build for one or more of the other. */
        assert_int_equal(b, 1);
        assert_true(a >= 1);
        assert_true(json_array_size(json_object_get(row, "nodes")) >= 1);
        if (same) {
            assert_true(fabs(ratio - 1) < 1e-9);
            assert_string_equal(verdict, "same");
        } else if (a > 1) {
            assert_true(ratio > 1.4);
            assert_string_equal(verdict, "improved");
        }
    }
    /* Every step is in one group, and fusion made some. */
    assert_int_equal(of_a, f->info[0].step_count);
    assert_int_equal(of_b, f->info[1].step_count);
    assert_true(several > 5);
    assert_true(identical > 0);
    assert_true(noise == 0);
    json_decref(rows);
}

/* What does not clear the noise of equal code is not decided. */
static void placebo_is_the_floor(void **state)
{
    Fixture *f = *state;
    add_blocks(f, 1e-3, 10e-3);
    double noise;
    json_t *rows = groups_compare(f->arena, &f->pair, f->artifact[0],
                                  f->artifact[1], &noise);
    assert_true(fabs(noise - 9) < 1e-9);
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        assert_string_equal(json_string_value(json_object_get(row, "verdict")),
                            "inconclusive");
    }
    json_decref(rows);
}

/* A schedule may compute some values twice: that is no more work done. */
static void fused_counts_no_more_work(void **state)
{
    Fixture *f = *state;
    double flops[2] = {0, 0};
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < f->info[side].step_count; i++)
            flops[side] += f->info[side]
                               .kernels[f->info[side].steps[i].kernel_index]
                               .flops;
    assert_true(flops[0] > 0);
    assert_true(flops[1] <= flops[0] * (1 + 1e-9));
    assert_true(flops[1] > 0.9 * flops[0]);
    /* Two builds of one model say so. */
    assert_true(f->info[0].source && f->info[0].source == f->info[1].source);
}

static void no_visits(void **state)
{
    Fixture *f = *state;
    pair_free(&f->pair);
    double noise;
    assert_null(groups_compare(f->arena, &f->pair, f->artifact[0],
                               f->artifact[1], &noise));
    assert_true(isnan(noise));
}

/* Peak 100 GFLOP/s; 200 GB/s from 1 KiB a thread, 10 GB/s from memory; two
 * threads. */
static void roofline(void **state)
{
    (void)state;
    json_t *peak = json_pack(
        "{s:i, s:f, s:[{s:s, s:i, s:f}, {s:s, s:i, s:f}]}", "threads", 2,
        "fma_gflops", 100.0, "bandwidth", "level", "L1", "bytes", 1024, "gbps",
        200.0, "level", "memory", "bytes", 1 << 20, "gbps", 10.0);
    json_t *steps = json_pack("[{s:f, s:f, s:f}, {s:f, s:f, s:f},"
                              " {s:f, s:f, s:f}]",
                              "seconds", 1e-3, "flops", 5e7, "bytes", 1e3,
                              "seconds", 2e-3, "flops", 1e6, "bytes", 1e7,
                              "seconds", 1e-6, "flops", 0.0, "bytes", 2e3);
    roofline_complete(steps, peak);
    static const struct {
        const char *bound, *level;
        double share;
    } wanted[] = {
        {"compute", "L1", 0.5}, /* 0.5 ms of arithmetic */
        {"memory", "memory", 0.5},
        {"memory", "L1", 0.01}, /* 1000 bytes a thread: 10 ns */
    };
    for (size_t i = 0; i < 3; i++) {
        const json_t *step = json_array_get(steps, i);
        assert_string_equal(json_string_value(json_object_get(step, "bound")),
                            wanted[i].bound);
        assert_string_equal(json_string_value(json_object_get(step, "level")),
                            wanted[i].level);
        assert_true(
            fabs(json_number_value(json_object_get(step, "bound_share")) -
                 wanted[i].share) < 1e-9);
    }
    assert_true(fabs(json_number_value(
                         json_object_get(json_array_get(steps, 0), "share")) -
                     1 / 3.001) < 1e-9);
    json_decref(steps);
    json_decref(peak);
}

/* Weights come from where those of all steps are, however few a step has;
 * what a step says nothing of is none. */
static void roofline_of_weights(void **state)
{
    (void)state;
    json_t *peak = json_pack(
        "{s:i, s:f, s:[{s:s, s:i, s:f}, {s:s, s:i, s:f}]}", "threads", 1,
        "fma_gflops", 100.0, "bandwidth", "level", "L1", "bytes", 1000, "gbps",
        200.0, "level", "memory", "bytes", 1 << 20, "gbps", 10.0);
    json_t *steps = json_pack(
        "[{s:f, s:f, s:f, s:f}, {s:f, s:f, s:f, s:f}, {s:f, s:f, s:f}]",
        /* 400 bytes of weights, which 800 more drive out of L1. */
        "seconds", 1e-6, "flops", 0.0, "bytes", 1000.0, "weight_bytes", 400.0,
        "seconds", 1e-6, "flops", 0.0, "bytes", 900.0, "weight_bytes", 800.0,
        "seconds", 1e-6, "flops", 0.0, "bytes", 900.0);
    roofline_complete(steps, peak);
    static const struct {
        const char *level;
        double share;
    } wanted[] = {
        {"memory", 0.04 + 0.003}, {"memory", 0.08 + 0.0005}, {"L1", 0.0045}};
    for (size_t i = 0; i < 3; i++) {
        const json_t *step = json_array_get(steps, i);
        assert_string_equal(json_string_value(json_object_get(step, "level")),
                            wanted[i].level);
        assert_float_equal(
            json_number_value(json_object_get(step, "bound_share")),
            wanted[i].share, 1e-9);
    }
    /* Alone, the first step's weights fit. */
    json_array_remove(steps, 1);
    roofline_complete(steps, peak);
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(steps, 0), "level")),
        "L1");
    json_decref(steps);
    json_decref(peak);
}

/* The manifest says what each step reads of the weights: all of it. */
static void weights_of_steps(void **state)
{
    Fixture *f = *state;
    double sum = 0;
    for (int i = 0; i < f->info[1].step_count; i++) {
        const ArtifactStep *step = &f->info[1].steps[i];
        assert_true(step->weight_bytes <=
                    f->info[1].kernels[step->kernel_index].bytes);
        sum += step->weight_bytes;
    }
    double all = (double)f->info[1].weight_bytes;
    assert_true(sum > 0.8 * all && sum <= all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_hold_the_same_nodes),
        cmocka_unit_test(placebo_is_the_floor),
        cmocka_unit_test(fused_counts_no_more_work),
        cmocka_unit_test(no_visits),
        cmocka_unit_test(roofline),
        cmocka_unit_test(roofline_of_weights),
        cmocka_unit_test(weights_of_steps),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
