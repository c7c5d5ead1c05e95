#include "reports/detail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- cases ------------------------------------------------------------ */

static void read_kernels(Reader *r, const json_t *row, const char *place,
                         CaseDetail *c)
{
    const json_t *rows = read_array(r, row, place, "kernels");
    const char *list = arena_printf(r->arena, "%s.kernels", place);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *k = read_item(r, rows, i, list);
        if (!k)
            continue;
        const char *at = arena_printf(r->arena, "%s[%zu]", list, i);
        Kernel kernel = {.name = read_text(r, k, at, "name"),
                         .loops_hash = read_text(r, k, at, "loops_hash"),
                         .code_hash = read_text(r, k, at, "code_hash"),
                         .code_bytes = read_number(r, k, at, "code_bytes"),
                         .flops = read_number(r, k, at, "flops")};
        vec_push(r->arena, &c->kernels, kernel);
    }
}

static void read_nodes(Reader *r, const json_t *row, const char *place,
                       StepDetail *step)
{
    const json_t *nodes = read_array(r, row, place, "nodes");
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const char *name = json_string_value(json_array_get(nodes, i));
        if (!name) {
            read_fault(r, place, "nodes", "not all of them are texts");
            continue;
        }
        vec_push(r->arena, &step->nodes, arena_strdup(r->arena, name));
    }
}

/* Times and amounts of work are never negative. */
static double amount(Reader *r, const json_t *row, const char *place,
                     const char *key)
{
    double value = read_number(r, row, place, key);
    if (value < 0) {
        read_fault(r, place, key, "below 0; left out");
        return NAN;
    }
    return value;
}

static void read_steps(Reader *r, const json_t *row, const char *place,
                       CaseDetail *c)
{
    const json_t *rows = read_array(r, row, place, "steps");
    const char *list = arena_printf(r->arena, "%s.steps", place);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *s = read_item(r, rows, i, list);
        if (!s)
            continue;
        const char *at = arena_printf(r->arena, "%s[%zu]", list, i);
        StepDetail step = {.kernel = read_text(r, s, at, "kernel"),
                           .seconds = amount(r, s, at, "seconds"),
                           .share = amount(r, s, at, "share"),
                           .flops = amount(r, s, at, "flops"),
                           .bytes = amount(r, s, at, "bytes"),
                           .bound = read_text(r, s, at, "bound"),
                           .level = read_text(r, s, at, "level"),
                           .bound_share = amount(r, s, at, "bound_share")};
        read_nodes(r, s, at, &step);
        vec_push(r->arena, &c->steps, step);
    }
}

static void read_passes(Reader *r, const json_t *row, const char *place,
                        CaseDetail *c)
{
    const json_t *rows = read_array(r, row, place, "passes");
    const char *list = arena_printf(r->arena, "%s.passes", place);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *p = read_item(r, rows, i, list);
        if (!p)
            continue;
        const char *at = arena_printf(r->arena, "%s[%zu]", list, i);
        NamedNumber pass = {read_text(r, p, at, "pass"), "",
                            amount(r, p, at, "seconds")};
        vec_push(r->arena, &c->passes, pass);
    }
}

static void read_high_water(Reader *r, const json_t *row, const char *place,
                            CaseDetail *c)
{
    const json_t *water = read_object(r, row, place, "high_water");
    const char *at = arena_printf(r->arena, "%s.high_water", place);
    c->high_water = amount(r, water, at, "bytes");
    c->high_water_node = read_text(r, water, at, "node");
    const json_t *rows = read_array(r, water, at, "buffers");
    const char *list = arena_printf(r->arena, "%s.buffers", at);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *b = read_item(r, rows, i, list);
        if (!b)
            continue;
        const char *item = arena_printf(r->arena, "%s[%zu]", list, i);
        NamedNumber buffer = {read_text(r, b, item, "tensor"),
                              read_text(r, b, item, "node"),
                              amount(r, b, item, "bytes")};
        vec_push(r->arena, &c->buffers, buffer);
    }
}

static void read_cases(Reader *r, const json_t *root, RunDetail *d)
{
    const json_t *rows = read_array(r, root, "", "cases");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *at = arena_printf(r->arena, "cases[%zu]", i);
        /* What the history reads as well was noted then. */
        const char *name = json_string_value(json_object_get(row, "name"));
        if (!name || detail_case(d, name))
            continue;
        CaseDetail c = {.name = arena_strdup(r->arena, name)};
        Str again = {0};
        Reader quiet = {r->arena, r->path, &again, 0};
        c.samples = samples_read(&quiet, row, at);
        str_free(&again);
        read_kernels(r, row, at, &c);
        read_steps(r, row, at, &c);
        read_passes(r, row, at, &c);
        read_high_water(r, row, at, &c);
        vec_push(r->arena, &d->cases, c);
    }
}

/* ---- comparisons ------------------------------------------------------ */

static Ratio read_ratio(Reader *r, const json_t *row, const char *place)
{
    Ratio ratio = {amount(r, row, place, "ratio"),
                   amount(r, row, place, "low"),
                   amount(r, row, place, "high")};
    if (ratio.value == 0)
        ratio.value = NAN;
    return ratio;
}

static void read_groups(Reader *r, const json_t *row, const char *place,
                        Comparison *c)
{
    const json_t *rows = read_array(r, row, place, "groups");
    const char *list = arena_printf(r->arena, "%s.groups", place);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *g = read_item(r, rows, i, list);
        if (!g)
            continue;
        const char *at = arena_printf(r->arena, "%s[%zu]", list, i);
        Group group = {.name = read_text(r, g, at, "name"),
                       .a_seconds = amount(r, g, at, "a_seconds"),
                       .b_seconds = amount(r, g, at, "b_seconds"),
                       .a_kernels = (int)json_array_size(
                           read_array(r, g, at, "a_kernels")),
                       .b_kernels = (int)json_array_size(
                           read_array(r, g, at, "b_kernels")),
                       .ratio = read_ratio(r, g, at),
                       .verdict = read_text(r, g, at, "verdict"),
                       .identical = read_bool(r, g, at, "identical")};
        vec_push(r->arena, &c->groups, group);
    }
}

static void read_comparisons(Reader *r, const json_t *root, RunDetail *d)
{
    const json_t *rows = read_array(r, root, "", "comparisons");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = read_item(r, rows, i, "comparisons");
        if (!row)
            continue;
        const char *at = arena_printf(r->arena, "comparisons[%zu]", i);
        Comparison c = {.model = read_text(r, row, at, "model"),
                        .a = read_text(r, row, at, "a"),
                        .b = read_text(r, row, at, "b"),
                        .ratio = read_ratio(r, row, at),
                        .verdict = read_text(r, row, at, "verdict"),
                        .noise = amount(r, row, at, "noise"),
                        .blocks = amount(r, row, at, "blocks"),
                        .repeated = amount(r, row, at, "repeated"),
                        .disturbed = amount(r, row, at, "disturbed")};
        read_groups(r, row, at, &c);
        vec_push(r->arena, &d->comparisons, c);
    }
}

/* ---- context ---------------------------------------------------------- */

static void read_peers(Reader *r, const json_t *root, RunDetail *d)
{
    const json_t *rows = read_array(r, root, "", "rows");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = read_item(r, rows, i, "rows");
        if (!row)
            continue;
        const char *at = arena_printf(r->arena, "rows[%zu]", i);
        PeerDetail peer = {.model = read_text(r, row, at, "model"),
                           .engine = read_text(r, row, at, "engine"),
                           .version = read_text(r, row, at, "version"),
                           .variant = read_text(r, row, at, "variant"),
                           .status = read_text(r, row, at, "status"),
                           .threads = amount(r, row, at, "threads"),
                           .assay_ms = amount(r, row, at, "assay_ms"),
                           .peer_ms = amount(r, row, at, "peer_ms"),
                           .ratio = read_ratio(r, row, at)};
        vec_push(r->arena, &d->peers, peer);
    }
    rows = read_array(r, root, "", "summary");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = read_item(r, rows, i, "summary");
        if (!row)
            continue;
        const char *at = arena_printf(r->arena, "summary[%zu]", i);
        PeerMeanDetail mean = {.engine = read_text(r, row, at, "engine"),
                               .worst = read_text(r, row, at, "worst"),
                               .threads = amount(r, row, at, "threads"),
                               .models = amount(r, row, at, "models"),
                               .least = amount(r, row, at, "least"),
                               .ratio = read_ratio(r, row, at)};
        vec_push(r->arena, &d->peer_means, mean);
    }
}

static void read_peak(Reader *r, const json_t *context, RunDetail *d)
{
    const json_t *peak = read_object(r, context, "context", "peak");
    d->fma_gflops = amount(r, peak, "context.peak", "fma_gflops");
    d->vector_kind = read_text(r, peak, "context.peak", "kind");
    d->dot_gops = amount(r, peak, "context.peak", "dot_gops");
    d->dot_kind = read_text(r, peak, "context.peak", "dot_kind");
    const json_t *rows = read_array(r, peak, "context.peak", "bandwidth");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = read_item(r, rows, i, "context.peak.bandwidth");
        if (!row)
            continue;
        const char *at =
            arena_printf(r->arena, "context.peak.bandwidth[%zu]", i);
        Level level = {read_text(r, row, at, "level"),
                       amount(r, row, at, "bytes"),
                       amount(r, row, at, "gbps")};
        vec_push(r->arena, &d->levels, level);
    }
}

/* Any field that the fingerprint may have, as text. */
static void read_fingerprint(Reader *r, const json_t *context, RunDetail *d)
{
    json_t *machine = json_object_get(context, "machine");
    const char *key;
    json_t *value;
    json_object_foreach(machine, key, value)
    {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        NamedNumber field = {arena_strdup(r->arena, key), "", 0};
        field.detail = arena_strdup(r->arena, json_is_string(value)
                                                  ? json_string_value(value)
                                              : text ? text
                                                     : "");
        free(text);
        vec_push(r->arena, &d->machine, field);
    }
}

/* ---- access ----------------------------------------------------------- */

RunDetail *detail_read(Arena *arena, const Run *run, Str *notes)
{
    RunDetail *d = ARENA_NEW(arena, RunDetail);
    *d = (RunDetail){
        .fma_gflops = NAN, .dot_gops = NAN, .vector_kind = "", .dot_kind = ""};
    Reader r = {.arena = arena, .path = run->path, .notes = notes};
    json_t *root = read_file(&r, READ_ALL);
    if (!root)
        return d;
    const json_t *context = json_object_get(root, "context");
    read_peak(&r, context, d);
    read_fingerprint(&r, context, d);
    read_cases(&r, root, d);
    read_comparisons(&r, root, d);
    read_peers(&r, root, d);
    read_end(&r);
    json_decref(root);
    return d;
}

void detail_free(RunDetail *d)
{
    for (int i = 0; i < d->cases.count; i++)
        samples_free(&d->cases.data[i].samples);
}

const CaseDetail *detail_case(const RunDetail *d, const char *name)
{
    for (int i = 0; d && i < d->cases.count; i++)
        if (!strcmp(d->cases.data[i].name, name))
            return &d->cases.data[i];
    return NULL;
}

const Kernel *detail_kernel(const CaseDetail *c, const char *name)
{
    for (int i = 0; i < c->kernels.count; i++)
        if (!strcmp(c->kernels.data[i].name, name))
            return &c->kernels.data[i];
    return NULL;
}
