/* Numbers come from a small generator of its own, seeded by run and case: a
 * history is the same each time, and its first runs do not depend on how
 * many follow. */
#include "suites/unit/history.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"

enum { FIRST_COMMIT = 1767225600, COMMIT_EVERY = 6 * 3600 };

/* ---- numbers ---------------------------------------------------------- */

static double uniform(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

/* Mean 0, deviation 1, near enough to normal. */
static double noise(uint64_t *state)
{
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += uniform(state);
    return sum - 6;
}

static uint64_t seed_of(const char *text, int number)
{
    return hash_bytes(&number, sizeof number, hash_text(text));
}

static double course_factor(const HistorySpec *s, Course course, int run)
{
    bool after = run >= s->step_at;
    switch (course) {
    case COURSE_STEP:
    case COURSE_ENVIRONMENT:
        return after ? 1.12 : 1;
    case COURSE_GAIN:
        return after ? 0.9 : 1;
    case COURSE_DRIFT:
        return s->runs > 1 ? 1 + 0.15 * run / (s->runs - 1) : 1;
    case COURSE_STEADY:
        break;
    }
    return 1;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- parts of a case -------------------------------------------------- */

static json_t *text_of(const char *format, uint64_t value)
{
    char text[32];
    snprintf(text, sizeof text, format, (unsigned long long)value);
    return json_string(text);
}

/* Right-skewed samples around a process's own level; `sorted` gets all. */
static json_t *samples_of(const HistorySpec *s, double seconds,
                          uint64_t *state, double *sorted)
{
    json_t *processes = json_array();
    for (int p = 0; p < s->processes; p++) {
        double level = seconds * (1 + 0.003 * noise(state));
        json_t *list = json_array();
        for (int k = 0; k < s->samples; k++) {
            double x = level * (1 + 0.004 * fabs(noise(state)) +
                                (uniform(state) > 0.97 ? 0.05 : 0));
            json_array_append_new(list, json_real(x));
            sorted[p * s->samples + k] = x;
        }
        json_array_append_new(processes, list);
    }
    qsort(sorted, (size_t)(s->processes * s->samples), sizeof *sorted,
          compare_doubles);
    return processes;
}

/* Kernel 0 is the slow one, and the one whose code changes. */
static double kernel_share(const HistorySpec *s, int kernel)
{
    double sum = 0;
    for (int k = 0; k < s->kernels; k++)
        sum += 1.0 / (k + 1);
    return 1.0 / (kernel + 1) / sum;
}

static uint64_t code_hash(const HistorySpec *s, const HistoryCase *c,
                          int kernel, int run)
{
    bool changes = c->course == COURSE_STEP || c->course == COURSE_GAIN;
    bool changed = changes && kernel == 0 && run >= s->step_at;
    return seed_of(c->model, kernel * 2 + changed) ^ hash_text(c->mode);
}

/* A kernel's name ends in its loops' hash, so it changes with the code. */
static void name_kernel(char *name, size_t size, const HistorySpec *s,
                        const HistoryCase *c, int kernel, int run)
{
    static const char *const kinds[] = {"conv_1x%dx56x56", "matmul_%dx384",
                                        "depthwise_1x%dx28x28",
                                        "softmax_%dx128"};
    char shape[48];
    snprintf(shape, sizeof shape, kinds[kernel % 4], 32 + 16 * (kernel / 4));
    snprintf(name, size, "%s_%08x", shape,
             (unsigned)code_hash(s, c, kernel, run));
}

static json_t *kernels_of(const HistorySpec *s, const HistoryCase *c, int run,
                          double flops)
{
    json_t *kernels = json_array();
    for (int k = 0; k < s->kernels; k++) {
        char name[96];
        name_kernel(name, sizeof name, s, c, k, run);
        uint64_t hash = code_hash(s, c, k, run);
        json_array_append_new(
            kernels, json_pack("{s:s, s:o, s:o, s:i, s:f}", "name", name,
                               "loops_hash", text_of("%016llx", hash ^ 1),
                               "code_hash", text_of("%016llx", hash),
                               "code_bytes", 800 + (int)(hash % 4000), "flops",
                               flops * kernel_share(s, k)));
    }
    return kernels;
}

static json_t *steps_of(const HistorySpec *s, const HistoryCase *c, int run,
                        double seconds, double flops)
{
    static const char *const levels[] = {"L1", "L2", "L3", "memory"};
    double base = c->seconds, extra = seconds - base;
    json_t *steps = json_array();
    for (int k = 0; k < s->kernels; k++) {
        char name[96], node[64], follower[64];
        name_kernel(name, sizeof name, s, c, k, run);
        snprintf(node, sizeof node, "layer%d.%d/conv", k / 4, k % 4);
        snprintf(follower, sizeof follower, "layer%d.%d/relu", k / 4, k % 4);
        bool memory = k % 4 > 1;
        double spent = base * kernel_share(s, k) + (k ? 0 : extra);
        if (c->course == COURSE_ENVIRONMENT)
            spent = seconds * kernel_share(s, k);
        double work = flops * kernel_share(s, k) * (memory ? 0.1 : 1);
        json_array_append_new(
            steps,
            json_pack("{s:s, s:[s,s], s:f, s:f, s:f, s:f, s:s, s:s, s:f}",
                      "kernel", name, "nodes", node, follower, "seconds",
                      spent, "share", spent / seconds, "flops", work, "bytes",
                      work / (memory ? 0.7 : 9.0 + k), "bound",
                      memory ? "memory" : "compute", "level",
                      levels[k / 2 % 4], "bound_share",
                      0.45 + 0.5 / (k % 5 + 1)));
    }
    return steps;
}

static json_t *high_water(double arena)
{
    return json_pack("{s:i, s:s, s:f, s:[{s:s, s:s, s:f}, {s:s, s:s, s:f}]}",
                     "step", 3, "node", "layer0.3/conv", "bytes", arena,
                     "buffers", "tensor", "layer0.2/out", "node",
                     "layer0.2/conv", "bytes", arena * 0.6, "tensor",
                     "layer0.3/out", "node", "layer0.3/conv", "bytes",
                     arena * 0.4);
}

static void set_number(json_t *o, const char *key, double value)
{
    json_object_set_new(o, key, isnan(value) ? json_null() : json_real(value));
}

static json_t *values_of(const HistorySpec *s, const HistoryCase *c, int run,
                         const double *sorted, double flops, double arena,
                         uint64_t *state)
{
    int count = s->processes * s->samples;
    double p50 = sorted[count / 2];
    json_t *v = json_object();
    set_number(v, "p50", p50);
    set_number(v, "p90", sorted[count * 9 / 10]);
    set_number(v, "p99", sorted[count * 99 / 100]);
    set_number(v, "flops", flops);
    set_number(v, "gflops", flops / p50 * 1e-9);
    set_number(v, "peak_share", flops / p50 * 1e-9 / 467);
    if (!strcmp(s->suite, "kernels"))
        return v;
    set_number(v, "first_run", p50 * (1.8 + 0.1 * noise(state)));
    set_number(v, "load", 0.02 * (1 + 0.05 * noise(state)));
    set_number(v, "compile", 1.4 * (1 + 0.05 * noise(state)));
    set_number(v, "arena_bytes", arena);
    set_number(v, "arena_bound", arena * 0.97);
    set_number(v, "weight_bytes", floor(c->seconds * 3e9));
    set_number(v, "code_bytes", 2048.0 * s->kernels + run / 10 * 64);
    set_number(v, "peak_rss_bytes",
               4096 * floor(3000 + arena / 2048 + 3 * noise(state)));
    set_number(v, "max_abs_error", 4.3e-6);
    set_number(v, "max_rel_error", 2.1e-5);
    set_number(v, "max_excess", 0.01);
    set_number(v, "sqnr", run >= s->runs / 2 ? 118.4 : 121.8);
    set_number(v, "top1", c->top1 + (run >= s->runs / 2 ? 0.0011 : 0));
    set_number(v, "agreement", isnan(c->top1) ? NAN : 0.9991);
    set_number(v, "examples", isnan(c->top1) ? NAN : 10000);
    set_number(v, "kernels", s->kernels);
    return v;
}

static json_t *case_of(const HistorySpec *s, const HistoryCase *c, int run)
{
    char name[256];
    snprintf(name, sizeof name, "%s/%s", c->model, c->mode);
    uint64_t state = seed_of(name, run);
    double seconds = c->seconds * course_factor(s, c->course, run) *
                     (1 + 0.003 * noise(&state));
    double flops = c->seconds * 467e9 * 0.5;
    double arena = 65536 * floor(1 + c->seconds * 4000);
    if (strcmp(c->mode, "fused"))
        arena *= 1.5;
    double *sorted =
        malloc(sizeof(double) * (size_t)(s->processes * s->samples));
    json_t *samples = samples_of(s, seconds, &state, sorted);
    json_t *o = json_pack(
        "{s:s, s:s, s:s, s:s, s:i, s:s, s:n, s:f, s:o, s:o, s:o}", "name",
        name, "model", c->model, "mode", c->mode, "target", "native",
        "threads", 2, "status", "ok", "reason", "seconds", 9.5, "values",
        values_of(s, c, run, sorted, flops, arena, &state), "samples", samples,
        "check", json_pack("{s:f}", "max_error", 4.3e-6));
    free(sorted);
    if (s->kernels) {
        json_object_set_new(o, "kernels", kernels_of(s, c, run, flops));
        json_object_set_new(o, "steps", steps_of(s, c, run, seconds, flops));
        json_object_set_new(o, "high_water", high_water(arena));
        json_object_set_new(o, "passes",
                            json_pack("[{s:s, s:f}, {s:s, s:f}]", "pass",
                                      "fuse", "seconds", 0.012, "pass",
                                      "codegen", "seconds", 1.31));
    }
    return o;
}

/* ---- parts of a run --------------------------------------------------- */

static void add_metric(json_t *metrics, const char *name, const char *title,
                       const char *unit, const char *better)
{
    json_array_append_new(metrics, json_pack("{s:s, s:s, s:s, s:s}", "name",
                                             name, "title", title, "unit",
                                             unit, "better", better));
}

static json_t *metrics_of(void)
{
    json_t *m = json_array();
    add_metric(m, "p50", "latency, median", "s", "lower");
    add_metric(m, "p90", "latency, 90th percentile", "s", "lower");
    add_metric(m, "p99", "latency, 99th percentile", "s", "lower");
    add_metric(m, "first_run", "first run", "s", "lower");
    add_metric(m, "load", "loading", "s", "lower");
    add_metric(m, "compile", "compiling", "s", "lower");
    add_metric(m, "arena_bytes", "arena", "bytes", "lower");
    add_metric(m, "arena_bound", "arena, lower bound", "bytes", "none");
    add_metric(m, "weight_bytes", "weights", "bytes", "lower");
    add_metric(m, "code_bytes", "machine code", "bytes", "lower");
    add_metric(m, "peak_rss_bytes", "peak RSS", "bytes", "lower");
    add_metric(m, "max_abs_error", "largest error", "", "lower");
    add_metric(m, "max_rel_error", "largest relative error", "", "lower");
    add_metric(m, "max_excess", "error over its limit", "", "lower");
    add_metric(m, "sqnr", "SQNR", "db", "higher");
    add_metric(m, "top1", "top-1 accuracy", "ratio", "higher");
    add_metric(m, "map50", "mAP50", "ratio", "higher");
    add_metric(m, "agreement", "agreement with fp32", "ratio", "higher");
    add_metric(m, "examples", "labelled examples", "count", "none");
    add_metric(m, "flops", "arithmetic", "count", "none");
    add_metric(m, "gflops", "speed", "gflops", "higher");
    add_metric(m, "peak_share", "share of the FMA peak", "ratio", "higher");
    add_metric(m, "kernels", "distinct kernels", "count", "none");
    return m;
}

static json_t *group_of(int number, double ratio, bool identical)
{
    char name[32];
    snprintf(name, sizeof name, "layer%d", number);
    return json_pack(
        "{s:s, s:[s], s:f, s:f, s:[s], s:[s,s], s:f, s:f, s:f, s:s, s:b}",
        "name", name, "nodes", name, "a_seconds", 1e-4 * ratio, "b_seconds",
        1e-4, "a_kernels", "conv_bn_relu", "b_kernels", "conv", "bn_relu",
        "ratio", ratio, "low", ratio * 0.99, "high", ratio * 1.01, "verdict",
        identical ? "same" : "improved", "identical", identical);
}

static json_t *comparisons_of(const HistorySpec *s, int run)
{
    json_t *rows = json_array();
    for (int i = 0; i + 1 < s->case_count; i += 2) {
        uint64_t state = seed_of(s->cases[i].model, run);
        double ratio = s->cases[i + 1].seconds / s->cases[i].seconds;
        json_t *groups = json_array();
        for (int g = 0; g < s->kernels; g++)
            json_array_append_new(
                groups, group_of(g, g % 3 == 2 ? 1 : ratio + 0.1 * (g % 5),
                                 g % 3 == 2));
        json_array_append_new(
            rows,
            json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:s, s:f, s:i, s:i, "
                      "s:i, s:o}",
                      "model", s->cases[i].model, "a", "unfused", "b", "fused",
                      "ratio", ratio, "low", ratio * 0.985, "high",
                      ratio * (1.01 + 0.01 * uniform(&state)), "verdict",
                      ratio > 1.03 ? "improved" : "same", "noise", 0.012,
                      "blocks", 4, "repeated", 1, "disturbed", i % 4 ? 0 : 1,
                      "groups", groups));
    }
    return rows;
}

static json_t *machine_of(void)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:s, s:s, s:s, s:s}", "cpu",
                     "Synthetic(R) CPU @ 3.10GHz", "microcode", "0x1", "flags",
                     "sse2 avx2 avx512f", "governor", "performance", "cores",
                     2, "kernel", "6.1.0", "llvm", "19.1.7", "openblas_core",
                     "SkylakeX", "compiler", "12.2.0");
}

static json_t *peak_of(void)
{
    return json_pack(
        "{s:f, s:s, s:f, s:s, s:[{s:s, s:i, s:f}, {s:s, s:i, s:f}, "
        "{s:s, s:i, s:f}, {s:s, s:i, s:f}]}",
        "fma_gflops", 467.0, "kind", "avx512f", "dot_gops", 1870.0, "dot_kind",
        "avx512_vnni", "bandwidth", "level", "L1", "bytes", 24576, "gbps",
        780.0, "level", "L2", "bytes", 1048576, "gbps", 310.0, "level", "L3",
        "bytes", 8388608, "gbps", 61.0, "level", "memory", "bytes", 268435456,
        "gbps", 11.5);
}

static json_t *time_text(time_t when)
{
    char text[32];
    struct tm utc;
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&when, &utc));
    return json_string(text);
}

static uint64_t commit_of(int run)
{
    return seed_of("commit", run) >> 16;
}

/* ---- peers ------------------------------------------------------------ */

/* Of a mode as ENGINE-tTHREADS. */
static json_t *peer_row(const HistoryCase *c, json_t *of_case,
                        bool unsupported)
{
    const char *dash = strrchr(c->mode, '-');
    json_t *values = json_object_get(of_case, "values");
    double ms = 1e3 * json_number_value(json_object_get(values, "p50"));
    double ratio = 1.1 + 0.2 * (double)(seed_of(c->model, dash[2]) % 5);
    json_t *row = json_pack(
        "{s:s, s:s%, s:s, s:s, s:i, s:f, s:f, s:f, s:f, s:f, s:s, s:n}",
        "model", c->model, "engine", c->mode, (size_t)(dash - c->mode),
        "version", "1.2.3", "variant", "all", "threads", atoi(dash + 2),
        "assay_ms", ms, "peer_ms", ms * ratio, "ratio", ratio, "low",
        ratio * 0.98, "high", ratio * 1.02, "status", "ok", "error");
    json_object_set_new(values, "peer_ratio", json_real(ratio));
    if (!unsupported)
        return row;
    static const char *const unknown[] = {"assay_ms", "peer_ms", "ratio",
                                          "low", "high"};
    for (int i = 0; i < 5; i++)
        json_object_set_new(row, unknown[i], json_null());
    json_object_set_new(row, "status", json_string("unsupported"));
    json_object_set_new(row, "error", json_string("no such operator"));
    json_object_set_new(of_case, "status", json_string("skipped"));
    json_object_set_new(of_case, "reason", json_string("no such operator"));
    return row;
}

static void add_peers(const HistorySpec *s, json_t *root)
{
    json_t *rows = json_array(), *cases = json_object_get(root, "cases");
    for (int i = 0; i < s->case_count; i++)
        json_array_append_new(rows, peer_row(&s->cases[i],
                                             json_array_get(cases, (size_t)i),
                                             i + 1 == s->case_count));
    json_object_set_new(root, "rows", rows);
    json_object_set_new(root, "summary",
                        json_pack("[{s:s, s:i, s:i, s:f, s:f, s:f, s:s, s:f}, "
                                  "{s:s, s:i, s:i, s:f, s:n, s:n, s:s, s:f}]",
                                  "engine", "onnxruntime", "threads", 1,
                                  "models", 3, "ratio", 1.4, "low", 1.38,
                                  "high", 1.42, "worst", "a_net", "least", 1.1,
                                  "engine", "openvino", "threads", 2, "models",
                                  2, "ratio", 0.97, "low", "high", "worst",
                                  "b_net", "least", 0.9));
    add_metric(json_object_get(root, "metrics"), "peer_ratio",
               "peer over Assay", "", "higher");
}

json_t *history_run(const HistorySpec *s, int run)
{
    time_t committed = FIRST_COMMIT + (time_t)run * COMMIT_EVERY;
    json_t *context = json_pack(
        "{s:i, s:s, s:s, s:i, s:o, s:o, s:b, s:s, s:s, s:i, s:b, s:o, s:o, "
        "s:o}",
        "assay_schema", 2, "suite", s->suite, "host_name", "box", "num_cpus",
        2, "commit", text_of("%012llx", commit_of(run)), "commit_time",
        time_text(committed), "dirty", 0, "config", s->config, "target",
        "native", "threads", 2, "quick", 0, "time",
        time_text(committed + 1800), "machine", machine_of(), "peak",
        peak_of());
    json_t *cases = json_array();
    for (int i = 0; i < s->case_count; i++)
        json_array_append_new(cases, case_of(s, &s->cases[i], run));
    bool models = !strcmp(s->suite, "models");
    json_t *root =
        json_pack("{s:o, s:o, s:[], s:o, s:o}", "context", context, "metrics",
                  metrics_of(), "benchmarks", "cases", cases, "comparisons",
                  models ? comparisons_of(s, run) : json_array());
    if (!strcmp(s->suite, "peers"))
        add_peers(s, root);
    return root;
}

json_t *history_case(json_t *root, const char *name)
{
    size_t i;
    json_t *c;
    json_array_foreach(json_object_get(root, "cases"), i, c)
    {
        if (!strcmp(json_string_value(json_object_get(c, "name")), name))
            return c;
    }
    return NULL;
}

/* ---- storing ---------------------------------------------------------- */

bool history_store_run(const HistorySpec *s, int run, json_t *root,
                       const char *folder)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%012llx-%s-%s.%d.json", folder,
             (unsigned long long)commit_of(run), s->config, s->suite, run);
    return root &&
           json_dump_file(root, path,
                          JSON_INDENT(1) | JSON_REAL_PRECISION(9)) == 0;
}

bool history_store(const HistorySpec *s, const char *folder)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/machine.json", folder);
    json_t *machine = machine_of();
    bool ok = json_dump_file(machine, path, JSON_INDENT(1)) == 0;
    json_decref(machine);
    for (int run = 0; ok && run < s->runs; run++) {
        json_t *root = history_run(s, run);
        ok = history_store_run(s, run, root, folder);
        json_decref(root);
    }
    return ok;
}

/* ---- ready-made ------------------------------------------------------- */

HistorySpec history_example(int runs)
{
    static const HistoryCase cases[] = {
        {"steady_net", "fused", 12e-3, COURSE_STEADY, 0.9374},
        {"steady_net", "unfused", 13.1e-3, COURSE_STEADY, 0.9374},
        {"step_net", "fused", 2.7e-3, COURSE_STEP, NAN},
        {"step_net", "unfused", 3.3e-3, COURSE_STEADY, NAN},
        {"drift_net", "fused", 420e-6, COURSE_DRIFT, 0.7112},
        {"drift_net", "unfused", 430e-6, COURSE_STEADY, 0.7112},
        {"weather_net", "fused", 55e-6, COURSE_ENVIRONMENT, 0.8821},
        {"weather_net", "unfused", 82e-6, COURSE_STEADY, 0.8821},
        {"gain_net", "fused", 29e-3, COURSE_GAIN, 0.7613},
        {"gain_net", "unfused", 31e-3, COURSE_STEADY, 0.7613},
    };
    return (HistorySpec){.suite = "models",
                         .config = "native-t2",
                         .cases = cases,
                         .case_count = sizeof cases / sizeof cases[0],
                         .runs = runs,
                         .step_at = runs - 1,
                         .processes = 6,
                         .samples = 24,
                         .kernels = 12};
}

HistorySpec history_peers(int runs)
{
    static const HistoryCase cases[] = {
        {"a_net", "onnxruntime-t1", 4e-2, COURSE_STEADY, NAN},
        {"a_net", "onnxruntime-t2", 2e-2, COURSE_STEADY, NAN},
        {"a_net", "openvino-t1", 4e-2, COURSE_STEADY, NAN},
        {"a_net", "openvino-t2", 2e-2, COURSE_STEADY, NAN},
        {"b_net", "onnxruntime-t1", 4e-3, COURSE_STEADY, NAN},
        {"b_net", "onnxruntime-t2", 2e-3, COURSE_STEADY, NAN},
        {"b_net", "openvino-t1", 4e-3, COURSE_STEADY, NAN},
        {"b_net", "openvino-t2", 2e-3, COURSE_STEADY, NAN},
        {"a_transformer_of_a_long_name", "onnxruntime-t1", 9e-3, COURSE_STEADY,
         NAN},
        {"a_transformer_of_a_long_name", "openvino-t1", 9e-3, COURSE_STEADY,
         NAN},
    };
    return (HistorySpec){.suite = "peers",
                         .config = "peers-native",
                         .cases = cases,
                         .case_count = sizeof cases / sizeof cases[0],
                         .runs = runs,
                         .step_at = runs - 1,
                         .processes = 2,
                         .samples = 20};
}

HistorySpec history_kernels(int runs)
{
    static const HistoryCase cases[] = {
        {"kernels", "conv3x3_56x56x64", 412e-6, COURSE_STEADY, NAN},
        {"kernels", "conv1x1_14x14x1024", 208e-6, COURSE_STEP, NAN},
        {"kernels", "depthwise_112x112x32", 61e-6, COURSE_GAIN, NAN},
        {"kernels", "softmax_12x128x128", 17e-6, COURSE_DRIFT, NAN},
    };
    return (HistorySpec){.suite = "kernels",
                         .config = "native-t2",
                         .cases = cases,
                         .case_count = sizeof cases / sizeof cases[0],
                         .runs = runs,
                         .step_at = runs - 1,
                         .processes = 6,
                         .samples = 24};
}

HistorySpec history_large(Arena *arena, int models, int runs)
{
    static const char *const names[] = {
        "resnet18",     "resnet50",     "mobilenet_v1",
        "mobilenet_v2", "yolov8n@640",  "mobilenet_v3_large",
        "minilm_l6",    "bert_base",    "gpt2_small",
        "vit_tiny",     "yolox_nano",   "resnet_fashion",
        "vgg16",        "squeezenet11", "mobilenet_fashion"};
    enum { NAMES = sizeof names / sizeof names[0] };
    HistoryCase *cases = ARENA_ARRAY(arena, HistoryCase, 2 * models);
    for (int i = 0; i < models; i++) {
        const char *name = names[i % NAMES];
        if (i >= NAMES)
            name = arena_printf(arena, "%s_%d", name, i / NAMES);
        double seconds = 50e-6 * pow(2.1, i % 12);
        double top1 = i % 3 == 2 ? NAN : 0.68 + 0.02 * (i % 13);
        cases[2 * i] = (HistoryCase){name, "fused", seconds,
                                     i % 5 ? COURSE_STEADY : i / 5 + 1, top1};
        cases[2 * i + 1] =
            (HistoryCase){name, "unfused", seconds * (1.05 + 0.03 * (i % 9)),
                          COURSE_STEADY, top1};
    }
    return (HistorySpec){.suite = "models",
                         .config = "native-t2",
                         .cases = cases,
                         .case_count = 2 * models,
                         .runs = runs,
                         .step_at = runs * 4 / 5,
                         .processes = 8,
                         .samples = 128,
                         .kernels = 48};
}
