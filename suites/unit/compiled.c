/* See compiled.h. */
#include "suites/unit/compiled.h"

#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/codegen.h"
#include "evaluate.h"
#include "harness/check.h"
#include "ops/op.h"
#include "runtime/abi.h"

static void fail_with(const Diag *diag, const char *what)
{
    for (int i = 0; i < diag->errors.count; i++)
        print_message("%s\n", diag->errors.data[i]);
    fail_msg("%s", what);
}

Graph *graph_from_text(Arena *arena, const char *text)
{
    Diag *diag = diag_new(arena, "test");
    Graph *g = graph_parse(arena, diag, ops_builtin(), text);

    if (!g)
        fail_with(diag, "the graph does not parse");
    return g;
}

Compiled compile_text(Arena *arena, const char *text, const char *target,
                      const PassOptions *options, bool naive)
{
    return compile_graph(arena, graph_from_text(arena, text), target, options,
                         naive);
}

Compiled compile_graph(Arena *arena, Graph *source, const char *target,
                       const PassOptions *options, bool naive)
{
    PassOptions plain = {.opt_level = 2, .verify = true};
    Compiled c = {.arena = arena, .source = source};

    c.graph = graph_copy(arena, c.source);
    c.diag = c.graph->diag;
    c.target = target_find(arena, c.diag, target);
    if (!c.target)
        fail_with(c.diag, "no such target");
    PassContext context = {
        .graph = c.graph, .target = c.target, .evaluate = evaluate_node};
    if (!passes_run(&context, options ? options : &plain, NULL, NULL))
        fail_with(c.diag, "a pass fails");
    c.program = program_build(arena, c.diag, c.graph, c.target,
                              naive ? SCHEDULE_NAIVE : SCHEDULE_FAST, NULL);
    if (!c.program)
        fail_with(c.diag, "the program cannot be built");
    program_plan_memory(c.program);
    program_verify(c.program);
    return c;
}

/* Deterministic values for graph input `index`. */
static Array *input_values(Arena *arena, const Graph *g, int index,
                           const ExtentValue *names, int count)
{
    const TensorType *type = &g->inputs.data[index]->type;
    int64_t dims[MAX_RANK];
    uint32_t seed = 12345u + (uint32_t)index * 7919u;

    for (int i = 0; i < type->rank; i++)
        dims[i] = extent_evaluate(type->dims[i], names, count);
    Array *a = array_new(arena, type->dtype, type->rank, dims);
    for (int64_t i = 0; i < array_count(a); i++) {
        seed = seed * 1664525u + 1013904223u;
        double unit = (double)(seed >> 8) / 16777216.0;
        if (dtype_is_float(type->dtype))
            array_set(a, i, unit * 4 - 2);
        else
            array_set_int(a, i,
                          type->dtype == DT_BOOL ? unit < 0.5
                                                 : (int64_t)(unit * 20) - 10);
    }
    return a;
}

Array **input_arrays(Arena *arena, const Graph *g, const ExtentValue *names,
                     int count)
{
    Array **list = ARENA_ARRAY(arena, Array *, g->inputs.count + 1);

    for (int i = 0; i < g->inputs.count; i++)
        list[i] = input_values(arena, g, i, names, count);
    return list;
}

/* Copies between an array and storage of the upper bounds in `whole`, element
 * by element; what is not copied stays. */
static void copy_part(const Array *array, Array *whole, bool to_array)
{
    size_t size = dtype_size(array->dtype);

    for (int64_t i = 0; i < array_count(array); i++) {
        int64_t rest = i, at = 0, stride = 1;
        for (int d = array->rank - 1; d >= 0; d--) {
            at += rest % array->dims[d] * stride;
            rest /= array->dims[d];
            stride *= whole->dims[d];
        }
        char *a = (char *)array->data + (size_t)i * size;
        char *b = (char *)whole->data + (size_t)at * size;
        memcpy(to_array ? a : b, to_array ? b : a, size);
    }
}

/* The memory of one run: what the runtime would provide. */
typedef struct Memory {
    void **inputs, **outputs;
    Array **results;
    char *arena, *weights;
    int64_t *extents;
    ExtentValue *names;
} Memory;

static void actual_dims(const Program *p, const Memory *m,
                        const ProgramBuffer *b, int64_t *dims)
{
    for (int i = 0; i < b->rank; i++)
        dims[i] = extent_evaluate(b->tensor->type.dims[i], m->names,
                                  p->symbols.count);
}

/* Outputs without what lies behind their extents. */
static Array **results(Compiled *c, const Memory *m)
{
    const Program *p = c->program;

    c->refused = m->extents[p->symbols.count];
    for (int i = 0; i < p->symbols.count; i++)
        m->names[i].value = m->extents[i];
    for (int i = 0; i < p->buffers.count; i++) {
        const ProgramBuffer *b = &p->buffers.data[i];
        int64_t dims[MAX_RANK];
        if (b->kind != PB_OUTPUT || b->alias_of >= 0)
            continue;
        actual_dims(p, m, b, dims);
        Array *part = array_new(c->arena, b->dtype, b->rank, dims);
        copy_part(part, m->results[b->offset], true);
        m->results[b->offset] = part;
    }
    return m->results;
}

static Memory allocate(Compiled *c)
{
    const Program *p = c->program;
    Memory m;

    m.inputs = ARENA_ARRAY(c->arena, void *, p->input_count + 1);
    m.outputs = ARENA_ARRAY(c->arena, void *, p->output_count + 1);
    m.results = ARENA_ARRAY(c->arena, Array *, p->output_count + 1);
    m.extents = ARENA_ARRAY(c->arena, int64_t, p->symbols.count + 1);
    m.names = ARENA_ARRAY(c->arena, ExtentValue, p->symbols.count + 1);
    for (int i = 0; i < p->symbols.count; i++) {
        Extent symbol = p->symbols.data[i];
        m.extents[i] =
            c->dims && i < p->input_symbols ? c->dims[i] : symbol.value;
        m.names[i] = (ExtentValue){symbol.expr->name, m.extents[i]};
    }
    Array *const *inputs = c->inputs ? c->inputs
                                     : input_arrays(c->arena, c->graph,
                                                    m.names, p->symbols.count);
    for (int i = 0; i < p->buffers.count; i++) {
        const ProgramBuffer *b = &p->buffers.data[i];
        if (b->kind != PB_INPUT || b->alias_of >= 0)
            continue;
        /* Garbage behind the extents: nothing may rely on it. */
        Array *whole = array_new(c->arena, b->dtype, b->rank, b->dims);
        memset(whole->data, b->dtype == DT_BOOL ? 1 : 0xff,
               array_bytes(whole));
        copy_part(inputs[b->offset], whole, false);
        m.inputs[b->offset] = whole->data;
    }
    for (int i = 0; i < p->buffers.count; i++) {
        const ProgramBuffer *b = &p->buffers.data[i];
        if (b->kind != PB_OUTPUT || b->alias_of >= 0)
            continue;
        Array *a = array_new(c->arena, b->dtype, b->rank, b->dims);
        m.results[b->offset] = a;
        m.outputs[b->offset] = a->data;
    }
    m.arena = arena_alloc(c->arena, (size_t)p->arena_bytes + 64);
    m.weights = arena_alloc(c->arena, (size_t)p->weight_bytes + 64);
    /* Garbage, so that nothing relies on memory being zero. */
    memset(m.arena, 0xa5, (size_t)p->arena_bytes);
    memset(m.weights, 0xa5, (size_t)p->weight_bytes);
    for (int i = 0; i < p->buffers.count; i++) {
        const ProgramBuffer *b = &p->buffers.data[i];
        if (b->kind == PB_CONSTANT)
            layout_pack(&b->layout, b->value, m.weights + b->offset);
    }
    return m;
}

static void *address(const Memory *m, const ProgramBuffer *b)
{
    switch (b->kind) {
    case PB_INPUT:
        return m->inputs[b->offset];
    case PB_OUTPUT:
        return m->outputs[b->offset];
    case PB_CONSTANT:
        return m->weights + b->offset;
    case PB_ARENA:
        return m->arena + b->offset;
    case PB_EXTENTS:
        return m->extents;
    }
    return NULL;
}

static void interpret_step(Compiled *c, const Memory *m, int index)
{
    const Program *p = c->program;
    const ProgramStep *step = &p->steps.data[index];
    const Kernel *kernel = p->kernels.data[step->kernel].kernel;
    void **data = ARENA_ARRAY(c->arena, void *, step->arg_count + 1);

    for (int a = 0; a < step->arg_count; a++)
        data[a] = address(m, &p->buffers.data[step->args[a]]);
    kernel_verify(kernel);
    if (kernel_interpret(kernel, data, c->diag))
        return;
    Str text = {0};
    kernel_print(&text, kernel);
    print_message("%s", str_text(&text));
    str_free(&text);
    fail_with(c->diag, "the interpreter finds a fault");
}

static void interpret_block(Compiled *c, const Memory *m, int parent,
                            bool in_otherwise, int first, int end);

static void interpret_region(Compiled *c, const Memory *m, int index)
{
    const ProgramBuffer *buffers = c->program->buffers.data;
    const ProgramRegion *r = &c->program->regions.data[index];
    const uint8_t *cond = r->cond >= 0 ? address(m, &buffers[r->cond]) : NULL;

    if (r->kind == REGION_BRANCH) {
        if (*cond)
            interpret_block(c, m, index, false, r->first, r->otherwise);
        else
            interpret_block(c, m, index, true, r->otherwise, r->end);
        return;
    }
    int64_t most = r->most;
    if (r->trips >= 0)
        memcpy(&most, address(m, &buffers[r->trips]), sizeof most);
    for (int64_t i = 0; i < most && (!cond || *cond); i++) {
        if (r->counter >= 0)
            memcpy(address(m, &buffers[r->counter]), &i, sizeof i);
        interpret_block(c, m, index, false, r->first, r->end);
    }
}

static void interpret_block(Compiled *c, const Memory *m, int parent,
                            bool in_otherwise, int first, int end)
{
    int region = -1;

    do {
        region = program_next_region(c->program, parent, in_otherwise, first,
                                     end, region);
        const ProgramRegion *r =
            region >= 0 ? &c->program->regions.data[region] : NULL;
        for (; first < (r ? r->first : end); first++)
            interpret_step(c, m, first);
        if (r) {
            interpret_region(c, m, region);
            first = r->end;
        }
    } while (region >= 0);
}

Array **run_interpreted(Compiled *c)
{
    Memory m = allocate(c);

    interpret_block(c, &m, -1, false, 0, c->program->steps.count);
    return results(c, &m);
}

static void run_serially(void *pool, AssayTask task, void *context,
                         int64_t count)
{
    (void)pool;
    /* In pieces, last first: iterations must not depend on order. */
    for (int64_t i = count - 1; i >= 0; i--)
        task(context, i, i + 1);
}

void *load_compiled(Compiled *c, const char *dir, bool in_c)
{
    CodegenOptions options = {.jobs = 2};
    const char **objects;
    int count;
    Str command = {0};
    bool ok =
        in_c ? codegen_c(c->program, c->diag, &options, dir, &objects, &count)
             : codegen_llvm(c->program, c->diag, &options, dir, &objects,
                            &count);

    if (!ok)
        fail_with(c->diag, "the backend fails");
    /* No library at all: an undefined symbol is a fault. LLVM may call what
     * every C compiler's output may. */
    str_addf(&command, "cc -shared -nostdlib %s",
             in_c ? "-Wl,-z,defs" : "-lc");
    for (int i = 0; i < count; i++)
        str_addf(&command, " '%s'", objects[i]);
    str_addf(&command, " -o '%s/model%d.so'", dir, in_c);
    assert_int_equal(system(str_text(&command)), 0);
    str_free(&command);
    void *library =
        dlopen(arena_printf(c->arena, "%s/model%d.so", dir, in_c), RTLD_NOW);
    if (!library)
        fail_msg("%s", dlerror());
    int32_t *abi = dlsym(library, "assay_model_abi");
    assert_non_null(abi);
    assert_int_equal(*abi, ASSAY_ABI_VERSION);
    return library;
}

Array **run_loaded(Compiled *c, void *library)
{
    Memory m = allocate(c);
    AssayModelRun run;
    void *symbol = dlsym(library, "assay_model_run");

    assert_non_null(symbol);
    memcpy(&run, &symbol, sizeof run);
    AssayRun arguments = {.inputs = m.inputs,
                          .outputs = m.outputs,
                          .weights = m.weights,
                          .arena = m.arena,
                          .parallel_for = run_serially,
                          .extents = m.extents};
    run(&arguments);
    return results(c, &m);
}

Array **run_compiled_c(Compiled *c, const char *dir)
{
    void *library = load_compiled(c, dir, true);
    Array **outputs = run_loaded(c, library);

    dlclose(library);
    return outputs;
}

Array **run_reference(Arena *arena, const Graph *source, Array *const *inputs)
{
    Array **given = ARENA_ARRAY(arena, Array *, source->inputs.count + 1);
    Array **results = ARENA_ARRAY(arena, Array *, source->outputs.count + 1);
    ReferenceValues values;
    Str error = {0};

    for (int i = 0; i < source->inputs.count; i++)
        given[i] =
            inputs ? inputs[i] : input_values(arena, source, i, NULL, 0);
    if (!reference_run(arena, source, given, NULL, &values, &error))
        fail_msg("%s", str_text(&error));
    for (int i = 0; i < source->outputs.count; i++)
        results[i] = (Array *)values.by_id[source->outputs.data[i]->id];
    return results;
}

void check_close(const char *what, const Array *got, const Array *want,
                 double tolerance)
{
    int64_t count = array_count(want);
    double square = 0;

    assert_int_equal(got->dtype, want->dtype);
    assert_int_equal(array_count(got), count);
    assert_int_equal(got->rank, want->rank);
    for (int i = 0; i < want->rank; i++)
        assert_int_equal(got->dims[i], want->dims[i]);
    for (int64_t i = 0; i < count; i++) {
        double v = array_get(want, i);
        square += isfinite(v) ? v * v : 0;
    }
    double rms = count ? sqrt(square / (double)count) : 0;
    for (int64_t i = 0; i < count; i++) {
        double g = array_get(got, i), w = array_get(want, i);
        bool ok = dtype_is_float(want->dtype)
                      ? (isnan(w) && isnan(g)) || g == w ||
                            fabs(g - w) <= tolerance * (rms + fabs(w))
                      : array_get_int(got, i) == array_get_int(want, i);
        if (!ok)
            fail_msg("%s: element %lld is %.9g, the reference %.9g", what,
                     (long long)i, g, w);
    }
}
