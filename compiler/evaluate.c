/* Constant folding runs the same definitions as kernels do. */
#include "evaluate.h"

#include "codegen/codegen.h"
#include "ops/loop_program.h"
#include "passes/util.h"
#include "schedules/schedule.h"

/* Elements up to which interpreting beats compiling. */
static const double interpreted_work = 20000;

static double work_of_loops(const Stmt *s)
{
    double work = 0;
    switch (s->kind) {
    case STMT_BLOCK:
        for (int i = 0; i < s->list.count; i++)
            work += work_of_loops(s->list.data[i]);
        return work;
    case STMT_FOR:
        return (double)s->extent * work_of_loops(s->body);
    case STMT_IF:
        return 1 + work_of_loops(s->body);
    default:
        return 1;
    }
}

static double work_of(const Definition *def)
{
    double work = 0;
    for (int i = 0; i < def->stages.count; i++) {
        const Stage *s = def->stages.data[i];
        double n = 1;
        for (int k = 0; k < s->axis_count; k++)
            n *= (double)s->axis[k].extent;
        for (int k = 0; k < s->reduce_count; k++)
            n *= (double)s->reduce[k].extent;
        work += n;
    }
    return work;
}

bool evaluate_node(Arena *arena, const Graph *g, const Node *node,
                   const Array **outputs)
{
    Arena *scratch = arena_new();
    Diag *diag = diag_new(scratch, NULL);
    Kernel *kernel =
        node_is_program(node) ? op_program(scratch, node, NULL) : NULL;
    double work = kernel ? work_of_loops(kernel->body) : 0;
    if (!kernel) {
        Definition *def = define_node(scratch, node);
        if (!def) {
            arena_free(scratch);
            return false;
        }
        work = work_of(def);
        kernel = schedule_lower(schedule_new(scratch, diag, def), scratch);
    }
    void **data = ARENA_ARRAY(scratch, void *, kernel->params.count + 1);
    int in = 0, out = 0;
    for (int i = 0; i < kernel->params.count; i++) {
        const Buffer *b = kernel->params.data[i];
        if (b->role == BUF_INPUT) {
            while (!node->inputs.data[in])
                in++;
            data[i] = node->inputs.data[in++]->value->data;
        } else if (b->role == BUF_OUTPUT) {
            while (!node->outputs.data[out])
                out++;
            Array *value = array_new(arena, b->dtype, b->rank, b->dims);
            data[i] = value->data;
            outputs[out++] = value;
        } else {
            data[i] = arena_alloc(scratch, (size_t)buffer_size(b) *
                                               dtype_size(b->dtype));
        }
    }
    bool ok = work <= interpreted_work
                  ? kernel_interpret(kernel, data, diag)
                  : codegen_llvm_evaluate(kernel, data, diag);
    for (int i = 0; i < diag->errors.count; i++)
        log_debug("%s: %s", node->name, diag->errors.data[i]);
    (void)g;
    arena_free(scratch);
    return ok;
}
