/* Reading stored JSON that may be damaged: what has another type than it
 * should is left out and noted with its file and field. */
#ifndef ASSAY_REPORTS_READ_H
#define ASSAY_REPORTS_READ_H

#include <jansson.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/str.h"

typedef struct Reader {
    Arena *arena;     /* of the texts handed out */
    const char *path; /* of the file, for notes */
    Str *notes;       /* a line a fault */
    int faults;
} Reader;

/* The values that a history does not keep, which are most of a file. */
typedef enum ReadExtent { READ_SUMMARY, READ_ALL } ReadExtent;

/* A file as JSON, owned by the caller. NULL with a note when it cannot be
 * read, is no JSON or not of the known format. In a summary, lists of
 * kernels, steps and the like are null. */
json_t *read_file(Reader *r, ReadExtent extent);
/* Ends the notes on a file: long lists of faults are cut. */
void read_end(Reader *r);

/* A fault of a field: "PATH: PLACE.KEY: TEXT". `place` may be empty. */
void read_fault(Reader *r, const char *place, const char *key,
                const char *text);

/* Fields of `object`, which `place` names. Absent and null are no faults:
 * NAN, "", false and NULL stand for them. Texts are copied. */
double read_number(Reader *r, const json_t *object, const char *place,
                   const char *key);
const char *read_text(Reader *r, const json_t *object, const char *place,
                      const char *key);
bool read_bool(Reader *r, const json_t *object, const char *place,
               const char *key);
const json_t *read_array(Reader *r, const json_t *object, const char *place,
                         const char *key);
const json_t *read_object(Reader *r, const json_t *object, const char *place,
                          const char *key);
/* An item of a list as an object, or NULL, noted; "PLACE[INDEX]". */
const json_t *read_item(Reader *r, const json_t *list, size_t index,
                        const char *place);
/* ISO 8601 in seconds since 1970, UTC unless it says otherwise. 0 for
 * an absent or unknown one. */
int64_t read_time(Reader *r, const json_t *object, const char *place,
                  const char *key);

#endif
