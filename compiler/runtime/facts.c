#include "runtime/facts.h"

#include "base/hash.h"

const char *fact_name(Fact fact)
{
    static const char *const names[FACT_COUNT] = {
        [FACT_ARENA_BYTES] = "arena_bytes",
        [FACT_WEIGHT_BYTES] = "weight_bytes",
        [FACT_INPUTS] = "inputs",
        [FACT_OUTPUTS] = "outputs",
        [FACT_STEPS] = "steps",
        [FACT_TENSORS] = "tensors",
    };
    return names[fact];
}

void facts_add_number(Facts *facts, Fact fact, int64_t number)
{
    /* The former value is the seed, so that order and count matter. */
    uint64_t *item = &facts->item[fact];
    *item = hash_bytes(&number, sizeof number, *item);
}

static void add_text(Facts *facts, Fact fact, const Str *text)
{
    uint64_t *item = &facts->item[fact];
    *item = hash_bytes(str_text(text), text->length, *item);
}

void facts_add_dim(Facts *facts, Extent name, bool is_computed)
{
    Str text = {0};
    extent_print(&text, name);
    str_add(&text, is_computed ? " computed" : "");
    add_text(facts, FACT_INPUTS, &text);
    str_free(&text);
}

void facts_add_value(Facts *facts, Fact fact, DType dtype, int rank,
                     const int64_t *dims, const Extent *extents)
{
    facts_add_number(facts, fact, dtype);
    facts_add_number(facts, fact, rank);
    for (int i = 0; i < rank; i++)
        facts_add_number(facts, fact, dims[i]);
    for (int i = 0; extents && i < rank; i++) {
        Str text = {0};
        extent_print_plain(&text, extents[i]);
        add_text(facts, fact, &text);
        str_free(&text);
    }
}

void facts_add_tensor(Facts *facts, DType dtype, int rank, const int64_t *dims,
                      const Extent *extents, const Layout *layout,
                      int64_t offset, int64_t bytes, int step)
{
    Str text = {0};
    facts_add_value(facts, FACT_TENSORS, dtype, rank, dims, extents);
    layout_print(&text, layout);
    add_text(facts, FACT_TENSORS, &text);
    str_free(&text);
    facts_add_number(facts, FACT_TENSORS, offset);
    facts_add_number(facts, FACT_TENSORS, bytes);
    facts_add_number(facts, FACT_TENSORS, step);
}
