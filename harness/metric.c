#include "harness/metric.h"

#include <math.h>
#include <string.h>

/* A number that the case has as it is. */
#define FIELD(field)                                                          \
    static double probe_##field(const ModelResult *r, const ModeResult *m)    \
    {                                                                         \
        (void)r;                                                              \
        return m->field;                                                      \
    }

FIELD(p50)
FIELD(p90)
FIELD(p99)
FIELD(first_run)
FIELD(load)
FIELD(compile)
FIELD(arena_bytes)
FIELD(arena_bound)
FIELD(weight_bytes)
FIELD(code_bytes)
FIELD(peak_rss_bytes)
FIELD(flops)
FIELD(kernel_calls)

/* A number of the check's row. */
static double checked(const ModeResult *m, const char *key)
{
    const json_t *value = json_object_get(m->check, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static double probe_max_abs_error(const ModelResult *r, const ModeResult *m)
{
    (void)r;
    return checked(m, "max_abs_error");
}

static double probe_max_rel_error(const ModelResult *r, const ModeResult *m)
{
    (void)r;
    return checked(m, "max_rel_error");
}

static double probe_max_excess(const ModelResult *r, const ModeResult *m)
{
    (void)r;
    return checked(m, "max_excess");
}

static double probe_sqnr(const ModelResult *r, const ModeResult *m)
{
    (void)r;
    return checked(m, "sqnr_db");
}

/* The score on labelled data, when it is of that name. */
static double scored(const ModeResult *m, const char *name)
{
    const Accuracy *a = &m->accuracy;
    return a->name && !strcmp(a->name, name) ? a->value : NAN;
}

static double probe_top1(const ModelResult *r, const ModeResult *m)
{
    (void)r;
    return scored(m, "top1");
}

static double probe_map50(const ModelResult *r, const ModeResult *m)
{
    (void)r;
    return scored(m, "map50");
}

static double probe_agreement(const ModelResult *r, const ModeResult *m)
{
    (void)r;
    return m->accuracy.name ? m->accuracy.agreement : NAN;
}

static double probe_examples(const ModelResult *r, const ModeResult *m)
{
    (void)r;
    return m->accuracy.name ? m->accuracy.examples : NAN;
}

static double probe_gflops(const ModelResult *r, const ModeResult *m)
{
    (void)r;
    return m->flops / m->p50 * 1e-9;
}

static double probe_peak_share(const ModelResult *r, const ModeResult *m)
{
    return r->fma_gflops > 0 ? probe_gflops(r, m) / r->fma_gflops : NAN;
}

static double probe_fma_gflops(const ModelResult *r, const ModeResult *m)
{
    (void)m;
    return r->fma_gflops > 0 ? r->fma_gflops : NAN;
}

static const Metric rows[] = {
    {"p50", "latency, median", "s", "lower", probe_p50},
    {"p90", "latency, 90 % of runs", "s", "lower", probe_p90},
    {"p99", "latency, 99 % of runs", "s", "lower", probe_p99},
    {"first_run", "first run after loading", "s", "lower", probe_first_run},
    {"load", "loading", "s", "lower", probe_load},
    {"compile", "compiling", "s", "lower", probe_compile},
    {"arena_bytes", "arena", "bytes", "lower", probe_arena_bytes},
    {"arena_bound", "arena, lower bound", "bytes", "none", probe_arena_bound},
    {"weight_bytes", "weights", "bytes", "lower", probe_weight_bytes},
    {"code_bytes", "code", "bytes", "lower", probe_code_bytes},
    {"peak_rss_bytes", "peak RSS", "bytes", "lower", probe_peak_rss_bytes},
    {"max_abs_error", "largest absolute error", "", "lower",
     probe_max_abs_error},
    {"max_rel_error", "largest relative error", "", "lower",
     probe_max_rel_error},
    {"max_excess", "error over what is allowed", "ratio", "lower",
     probe_max_excess},
    {"sqnr", "SQNR", "db", "higher", probe_sqnr},
    {"top1", "top-1 accuracy", "ratio", "higher", probe_top1},
    {"map50", "mAP50", "ratio", "higher", probe_map50},
    {"agreement", "agreement with the first mode", "ratio", "higher",
     probe_agreement},
    {"examples", "labelled examples", "count", "none", probe_examples},
    {"flops", "operations of a run", "count", "none", probe_flops},
    {"gflops", "GFLOP/s", "gflops", "higher", probe_gflops},
    {"peak_share", "share of the FMA peak", "ratio", "higher",
     probe_peak_share},
    {"fma_gflops", "FMA peak beside the runs", "gflops", "none",
     probe_fma_gflops},
    {"kernels", "kernel calls", "count", "lower", probe_kernel_calls},
    {0},
};

const Metric *metrics(void)
{
    return rows;
}
