/* Knobs: the decisions of a schedule that have names, so that another value
 * than the cost model's can be asked for. */
#ifndef ASSAY_SCHEDULES_KNOBS_H
#define ASSAY_SCHEDULES_KNOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"

enum { MAX_KNOBS = 12 };

typedef struct Knob {
    const char *name; /* "pixels" */
    int64_t value;
} Knob;

/* Values for some knobs; the cost model decides the rest. */
typedef struct Choice {
    Knob knob[MAX_KNOBS];
    int count;
} Choice;

/* The knob of that name, or NULL. */
const Knob *choice_find(const Choice *choice, const char *name);
/* Sets it, new or not; false when there is no room. `name` must live as long
 * as the choice. */
bool choice_set(Choice *choice, const char *name, int64_t value);
bool choice_equal(const Choice *a, const Choice *b);
/* "vectors=3 pixels=9"; nothing for an empty one. */
void choice_print(Str *out, const Choice *choice);

/* A knob that a template asked for, with the value that it took. */
typedef struct KnobRow {
    const char *name;
    int64_t value;
    /* Values that are legal; which of them go together may depend on other
     * knobs. */
    const int64_t *candidates;
    int count;
} KnobRow;

/* What a template decided and what else it would try. */
typedef struct KnobLog {
    Vec(KnobRow) knobs; /* in the order they were asked for */
    /* Sets of values to measure together, best by the cost model first, the
     * taken one among them. */
    Vec(Choice) proposals;
} KnobLog;

#endif
