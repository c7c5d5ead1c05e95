#include "codegen/facts.h"

const ProgramBuffer *program_value(const Program *program,
                                   ProgramBufferKind kind, int number)
{
    for (int i = 0; i < program->buffers.count; i++) {
        const ProgramBuffer *b = &program->buffers.data[i];
        if (b->kind == kind && b->offset == number && b->alias_of < 0)
            return b;
    }
    return NULL;
}

const Extent *program_extents(const ProgramBuffer *b)
{
    for (int i = 0; b->tensor && i < b->rank; i++)
        if (!extent_is_const(b->tensor->type.dims[i]))
            return b->tensor->type.dims;
    return NULL;
}

/* One that no step touches is another name for a tensor that is listed:
 * there is no moment to look at it. */
bool program_lists_tensor(const ProgramBuffer *b)
{
    return b->kind == PB_ARENA && b->tensor && b->first_step <= b->last_step;
}

int program_tensor_step(const ProgramBuffer *b)
{
    return b->ready_step > 0 ? b->ready_step : 0;
}

static void add_values(Facts *facts, Fact fact, const Program *program,
                       ProgramBufferKind kind, int count)
{
    for (int i = 0; i < count; i++) {
        const ProgramBuffer *b = program_value(program, kind, i);
        if (b)
            facts_add_value(facts, fact, b->dtype, b->rank, b->dims,
                            program_extents(b));
    }
}

Facts program_facts(const Program *program)
{
    Facts facts = {0};
    facts_add_number(&facts, FACT_ARENA_BYTES, program->arena_bytes);
    facts_add_number(&facts, FACT_WEIGHT_BYTES, program->weight_bytes);
    for (int i = 0; i < program->symbols.count; i++)
        facts_add_dim(&facts, program->symbols.data[i],
                      i >= program->input_symbols);
    add_values(&facts, FACT_INPUTS, program, PB_INPUT, program->input_count);
    add_values(&facts, FACT_OUTPUTS, program, PB_OUTPUT,
               program->output_count);
    for (int i = 0; i < program->steps.count; i++)
        facts_add_number(&facts, FACT_STEPS, program->steps.data[i].kernel);
    for (int i = 0; i < program->buffers.count; i++) {
        const ProgramBuffer *b = &program->buffers.data[i];
        if (program_lists_tensor(b))
            facts_add_tensor(&facts, b->dtype, b->rank, b->dims,
                             program_extents(b), &b->layout, b->offset,
                             b->bytes, program_tensor_step(b));
    }
    return facts;
}
