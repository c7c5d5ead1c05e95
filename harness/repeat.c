/* What one comparison of values does not show: that a run depends on its
 * inputs alone, and touches its buffers alone. */
#include <string.h>

#include "base/hash.h"
#include "harness/runner.h"

enum { GUARD_BYTES = 64, GUARD = 0xa5 };

static uint64_t hash_arrays(Array *const *arrays, int count)
{
    uint64_t hash = 0;
    for (int i = 0; i < count; i++)
        hash = hash_bytes(arrays[i]->data, array_bytes(arrays[i]), hash);
    return hash;
}

static uint64_t hash_outputs(const Runner *r)
{
    return hash_arrays(r->outputs, r->info->output_count);
}

/* On an arena and outputs full of something. */
static uint64_t run_filled(Runner *r)
{
    for (int i = 0; i < r->info->output_count; i++)
        memset(r->outputs[i]->data, GUARD, array_bytes(r->outputs[i]));
    artifact_fill_arena(r->artifact, 0xff);
    runner_run(r);
    return hash_outputs(r);
}

/* ---- buffers of their size between guards ------------------------------- */

/* A copy of an array's data, not aligned to more than an element. */
typedef struct Guarded {
    char *block;
    size_t start, end, size; /* of the data in the block, and of the block */
} Guarded;

static Guarded guard(Arena *arena, Array *array, size_t room)
{
    size_t bytes = array_bytes(array);
    Guarded g = {.start = GUARD_BYTES + dtype_size(array->dtype)};
    g.end = g.start + (room > bytes ? room : bytes);
    g.size = g.end + GUARD_BYTES;
    g.block = arena_alloc(arena, g.size);
    memset(g.block, GUARD, g.size);
    if (bytes)
        memcpy(g.block + g.start, array->data, bytes);
    array->data = g.block + g.start;
    return g;
}

static bool is_whole(const Guarded *g)
{
    for (size_t i = 0; i < g->size; i++)
        if ((i < g->start || i >= g->end) &&
            (unsigned char)g->block[i] != GUARD)
            return false;
    return true;
}

/* The hash of the outputs; `whole`: all guards are as they were. */
static uint64_t run_guarded(Runner *r, bool *whole)
{
    const ArtifactInfo *info = r->info;
    int inputs = info->input_count, count = inputs + info->output_count;
    Arena *arena = arena_new();
    Guarded *guards = ARENA_ARRAY(arena, Guarded, count + 1);
    void **before = ARENA_ARRAY(arena, void *, count + 1);
    for (int i = 0; i < count; i++) {
        bool is_output = i >= inputs;
        Array *array = is_output ? r->outputs[i - inputs] : r->inputs[i];
        /* Extents that a run computes need room for the largest. */
        size_t room = is_output && runner_has_computed_dims(r)
                          ? (size_t)info->outputs[i - inputs].bytes
                          : 0;
        before[i] = array->data;
        guards[i] = guard(arena, array, room);
    }
    uint64_t hash = run_filled(r);
    *whole = true;
    for (int i = 0; i < count; i++) {
        (i < inputs ? r->inputs[i] : r->outputs[i - inputs])->data = before[i];
        *whole &= is_whole(&guards[i]);
    }
    arena_free(arena);
    return hash;
}

/* ---- another run in between --------------------------------------------- */

/* Elements from last to first: other data, but no values that a model may
 * not be given. */
static void reverse(Array *array)
{
    size_t size = dtype_size(array->dtype);
    char *low = array->data, *high = low + array_bytes(array), swap[16];
    for (high -= size; low < high; low += size, high -= size) {
        memcpy(swap, low, size);
        memcpy(low, high, size);
        memcpy(high, swap, size);
    }
}

static uint64_t run_between(Runner *r)
{
    for (int i = 0; i < r->info->input_count; i++)
        reverse(r->inputs[i]);
    runner_run(r);
    for (int i = 0; i < r->info->input_count; i++)
        reverse(r->inputs[i]);
    runner_run(r);
    return hash_outputs(r);
}

bool runner_check_repeat(Runner *r, json_t *report)
{
    uint64_t inputs = hash_arrays(r->inputs, r->info->input_count);
    runner_run(r);
    uint64_t first = hash_outputs(r);
    bool whole, same = first == run_between(r);
    same &= first == run_guarded(r, &whole);
    /* The outputs are those of this run. */
    same &= first == run_filled(r);
    bool untouched = inputs == hash_arrays(r->inputs, r->info->input_count);
    json_object_set_new(report, "repeat_identical", json_boolean(same));
    json_object_set_new(report, "inputs_untouched", json_boolean(untouched));
    json_object_set_new(report, "guards_untouched", json_boolean(whole));
    return same && untouched && whole;
}
