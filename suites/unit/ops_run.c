#include "ops_run.h"

#include "ops/loop_program.h"
#include "passes/util.h"
#include "schedules/schedule.h"

bool ops_run_node(Arena *arena, Diag *diag, const Node *node,
                  const Array *const *in, Array **out)
{
    return ops_run_form(arena, diag, node, node_is_program(node), in, out);
}

bool ops_run_form(Arena *arena, Diag *diag, const Node *node, bool by_program,
                  const Array *const *in, Array **out)
{
    Arena *scratch = arena_new();
    Kernel *kernel = by_program ? op_program(scratch, node, NULL) : NULL;
    if (!kernel) {
        Definition *def = define_node(scratch, node);
        if (!def) {
            arena_free(scratch);
            return diag_error(diag, "%s: no definition", node->name);
        }
        definition_verify(def);
        kernel = schedule_lower(schedule_new(scratch, diag, def), scratch);
    }
    kernel_verify(kernel);
    void **data = ARENA_ARRAY(scratch, void *, kernel->params.count + 1);
    int next_in = 0, next_out = 0;
    for (int i = 0; i < kernel->params.count; i++) {
        const Buffer *b = kernel->params.data[i];
        if (b->role == BUF_INPUT) {
            while (!in[next_in])
                next_in++;
            data[i] = in[next_in++]->data;
        } else if (b->role == BUF_OUTPUT) {
            while (!node->outputs.data[next_out])
                next_out++;
            out[next_out] = array_new(arena, b->dtype, b->rank, b->dims);
            data[i] = out[next_out++]->data;
        } else {
            data[i] = arena_alloc(scratch, (size_t)buffer_size(b) *
                                               dtype_size(b->dtype));
        }
    }
    bool ok = kernel_interpret(kernel, data, diag);
    arena_free(scratch);
    return ok;
}
