/* The log of choices: which values of knobs were measured to be best, a line
 * a kernel. A text file:
 *
 *     # anything
 *     kernel=conv_relu_1x64x56x56 type=f32 in=1x64x56x56 layout=NHWC
 *     target=native cpu=64x32,48K,2048K,0123abcd compiler=2.llvm19
 *     def=0123456789abcdef | rows=1 pixels=9 vectors=3 | ms=0.1 usual_ms=0.12
 *     ratio=1.2 low=1.19 high=1.21 threads=2
 *
 * on one line: what the choice is for, the values ("usual" for those of the
 * cost model, "algorithm=NAME" for a node that has several), and how it was
 * measured. `def` is a hash of the definition and
 * the layouts around it, `cpu` the target's facts. Of two lines for the same
 * the later one holds. */
#ifndef ASSAY_SCHEDULES_CHOICES_H
#define ASSAY_SCHEDULES_CHOICES_H

#include "base/diag.h"
#include "schedules/knobs.h"
#include "targets/target.h"

/* Changes whenever schedules of the same knobs do: lines of another version
 * say nothing. */
enum { SCHEDULE_VERSION = 2 };

/* What lines are for. */
typedef struct ChoiceScope {
    const char *target;   /* its name */
    const char *cpu;      /* its facts: what schedules depend on */
    const char *compiler; /* "2.llvm19" */
} ChoiceScope;

/* `backend` is what compiles kernels, with its version: "llvm19". */
ChoiceScope choice_scope(Arena *arena, const Target *target,
                         const char *backend);

typedef struct ChoiceRow ChoiceRow;
struct ChoiceRow {
    const char *kernel, *type, *in, *layout; /* to be read by people */
    ChoiceScope scope;
    uint64_t def;
    Choice choice; /* none: the usual */
    /* Instead of knobs, on a line for a node before fusion: the algorithm by
     * which it is computed. NULL: none. */
    const char *algorithm;
    /* Milliseconds of one run of the model; how many times faster than the
     * usual, with its interval; and with how many threads. */
    double ms, usual_ms, ratio, low, high;
    int threads;
    int line; /* of the file */
};

typedef struct ChoiceLog {
    const char *file;
    Vec(ChoiceRow) rows; /* in order */
} ChoiceLog;

/* NULL with a diagnostic that names file and line for everything that is no
 * line of a log, or when the file cannot be read. */
ChoiceLog *choices_read(Arena *arena, Diag *diag, const char *path);
/* The same from text. */
ChoiceLog *choices_parse(Arena *arena, Diag *diag, const char *file,
                         const char *text);
/* The newest for that definition, or NULL. */
const ChoiceRow *choices_find(const ChoiceLog *choices,
                              const ChoiceScope *scope, uint64_t def);
/* How many lines are for other targets, features or compilers. */
int choices_count_others(const ChoiceLog *choices, const ChoiceScope *scope);
bool choice_row_same_key(const ChoiceRow *a, const ChoiceRow *b);
/* With the newline. */
void choice_row_print(Str *out, const ChoiceRow *row);
/* Adds to `out` the lines of a log's `text` but for those that `rows` have
 * anew, then `rows`. False with a diagnostic when `text` is no log. */
bool choices_merge(Str *out, Diag *diag, const char *file, const char *text,
                   const ChoiceRow *rows, int count);

#endif
