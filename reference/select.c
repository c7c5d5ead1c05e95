/* Results whose number depends on the data: NonZero, Unique,
 * NonMaxSuppression; and TfIdfVectorizer. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reference/internal.h"

bool ref_non_zero(RefCall *call)
{
    if (!ref_need(call, 1))
        return false;
    const Array *x = call->in[0];
    int64_t count = array_count(x), dims[2] = {x->rank, 0}, at = 0;
    RefWalk w = {.rank = x->rank};

    memcpy(w.dims, x->dims, sizeof w.dims);
    for (int64_t i = 0; i < count; i++)
        dims[1] += array_get(x, i) != 0;
    Array *y = ref_out(call, 0, DT_I64, 2, dims);
    for (int64_t i = 0; i < count; i++, ref_walk_next(&w)) {
        if (array_get(x, i) == 0)
            continue;
        for (int d = 0; d < x->rank; d++)
            array_set_int(y, d * dims[1] + at, w.index[d]);
        at++;
    }
    return true;
}

/* ---- Unique ------------------------------------------------------------ */

typedef struct Row {
    const double *values;
    int64_t size, place;
} Row;

static int by_values(const void *x, const void *y)
{
    const Row *a = x, *b = y;

    for (int64_t i = 0; i < a->size; i++)
        if (a->values[i] != b->values[i])
            return a->values[i] < b->values[i] ? -1 : 1;
    return (a->place > b->place) - (a->place < b->place);
}

static int by_place(const void *x, const void *y)
{
    const Row *a = x, *b = y;
    return (a->place > b->place) - (a->place < b->place);
}

static bool same_values(const Row *a, const Row *b)
{
    return !memcmp(a->values, b->values, (size_t)a->size * sizeof(double));
}

/* Elements along `axis` as rows of the others; of all where axis is -1. */
bool ref_unique(RefCall *call)
{
    const Attr *attr = attrs_find(call->attrs, "axis");
    int axis = -1;

    if (!ref_need(call, 1))
        return false;
    const Array *x = call->in[0];
    if (attr && !ref_axis(call, attr->i, x->rank, &axis))
        return false;
    int64_t all = array_count(x), count = axis < 0 ? all : x->dims[axis];
    int64_t size = axis < 0 ? 1 : count ? all / count : 0, inner = 1;
    for (int i = axis + 1; axis >= 0 && i < x->rank; i++)
        inner *= x->dims[i];
    double *values = ARENA_ARRAY(call->scratch, double, all + 1);
    int64_t *source = ARENA_ARRAY(call->scratch, int64_t, all + 1);
    Row *rows = ARENA_ARRAY(call->scratch, Row, count + 1);
    for (int64_t r = 0; r < count; r++) {
        rows[r] = (Row){values + r * size, size, r};
        for (int64_t e = 0; e < size; e++) {
            int64_t from = (e / inner * count + r) * inner + e % inner;
            /* Adding 0 makes one zero of two. */
            values[r * size + e] = array_get(x, from) + 0;
            source[r * size + e] = from;
        }
    }
    /* Equal rows side by side, the first of them in front. */
    qsort(rows, (size_t)count, sizeof *rows, by_values);
    Row *first = ARENA_ARRAY(call->scratch, Row, count + 1);
    int64_t found = 0;
    for (int64_t r = 0; r < count; r++)
        if (!r || !same_values(&rows[r - 1], &rows[r]))
            first[found++] = rows[r];
    if (!attrs_int(call->attrs, "sorted", 1))
        qsort(first, (size_t)found, sizeof *first, by_place);
    int64_t dims[MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        dims[i] = i == axis ? found : x->dims[i];
    Array *y = ref_out(call, 0, x->dtype, axis < 0 ? 1 : x->rank,
                       axis < 0 ? &found : dims);
    Array *indices = ref_out(call, 1, DT_I64, 1, &found);
    Array *inverse = ref_out(call, 2, DT_I64, 1, &count);
    Array *counts = ref_out(call, 3, DT_I64, 1, &found);
    for (int64_t u = 0; u < found; u++) {
        int64_t times = 0;
        for (int64_t r = 0; r < count; r++) {
            if (!same_values(&first[u], &rows[r]))
                continue;
            array_set_int(inverse, rows[r].place, u);
            times++;
        }
        array_set_int(counts, u, times);
        array_set_int(indices, u, first[u].place);
        for (int64_t e = 0; e < size; e++)
            ref_copy_element(y, (e / inner * found + u) * inner + e % inner, x,
                             source[first[u].place * size + e]);
    }
    return true;
}

/* ---- NonMaxSuppression -------------------------------------------------- */

static double overlap(const double *p, const double *q, bool centred)
{
    double lo[2][2], hi[2][2];
    const double *box[2] = {p, q};

    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) {
            double a = box[i][k], b = box[i][k + 2];
            lo[i][k] = centred ? a - b / 2 : fmin(a, b);
            hi[i][k] = centred ? a + b / 2 : fmax(a, b);
        }
    double both = 1, all = 0;
    for (int k = 0; k < 2; k++)
        both *= fmax(0, fmin(hi[0][k], hi[1][k]) - fmax(lo[0][k], lo[1][k]));
    for (int i = 0; i < 2; i++)
        all += (hi[i][0] - lo[i][0]) * (hi[i][1] - lo[i][1]);
    return both > 0 ? both / (all - both) : 0;
}

bool ref_nms(RefCall *call)
{
    if (!ref_need(call, 2))
        return false;
    const Array *boxes = call->in[0], *scores = call->in[1];
    const Array *most = ref_in(call, 2), *iou = ref_in(call, 3);
    const Array *least = ref_in(call, 4);
    int64_t images = boxes->dims[0], n = boxes->dims[1];
    int64_t classes = scores->dims[1];
    int64_t limit = most ? array_get_int(most, 0) : 0;
    double threshold = iou ? array_get(iou, 0) : 0;
    bool centred = attrs_int(call->attrs, "center_point_box", 0) != 0;
    const double *b = ref_doubles(call, boxes), *s = ref_doubles(call, scores);
    int64_t *taken =
        ARENA_ARRAY(call->scratch, int64_t, images * classes * n * 3 + 1);
    bool *gone = ARENA_ARRAY(call->scratch, bool, n + 1);
    int64_t count = 0;

    for (int64_t c = 0; c < images * classes; c++) {
        const double *box = b + c / classes * n * 4, *score = s + c * n;
        for (int64_t i = 0; i < n; i++)
            gone[i] = least && !(score[i] > array_get(least, 0));
        for (int64_t k = 0; k < limit; k++) {
            int64_t best = -1;
            for (int64_t i = 0; i < n; i++)
                if (!gone[i] && (best < 0 || score[i] > score[best]))
                    best = i;
            if (best < 0)
                break;
            for (int64_t i = 0; i < n; i++)
                gone[i] |= i == best || overlap(box + 4 * best, box + 4 * i,
                                                centred) > threshold;
            taken[count++] = c / classes;
            taken[count++] = c % classes;
            taken[count++] = best;
        }
    }
    int64_t dims[2] = {count / 3, 3};
    ref_store_ints(ref_out(call, 0, DT_I64, 2, dims), taken);
    return true;
}

/* ---- TfIdfVectorizer -----------------------------------------------------
 */

/* Occurrences of an n-gram in a row. */
static int64_t occurrences(const int64_t *row, int64_t length,
                           const int64_t *gram, int64_t n, int64_t skips)
{
    int64_t found = 0;

    for (int64_t step = 1; step <= (n == 1 ? 1 : skips + 1); step++)
        for (int64_t at = 0; at + (n - 1) * step < length; at++) {
            int64_t i = 0;
            while (i < n && row[at + i * step] == gram[i])
                i++;
            found += i == n;
        }
    return found;
}

bool ref_tfidf(RefCall *call)
{
    int lengths, items, columns;
    const int64_t *counts = attrs_ints(call->attrs, "ngram_counts", &lengths);
    const int64_t *pool = attrs_ints(call->attrs, "pool_int64s", &items);
    const int64_t *column = attrs_ints(call->attrs, "ngram_indexes", &columns);
    const Attr *weights = attrs_find(call->attrs, "weights");
    const char *mode = attrs_string(call->attrs, "mode", "TF");
    int64_t shortest = attrs_int(call->attrs, "min_gram_length", 1);
    int64_t longest = attrs_int(call->attrs, "max_gram_length", 1);
    int64_t skips = attrs_int(call->attrs, "max_skip_count", 0), width = 0;

    if (!ref_need(call, 1))
        return false;
    if (!pool || !column || !counts)
        return ref_fail(call, "only pools of integers are supported");
    const Array *x = call->in[0];
    const int64_t *row = ref_ints(call, x);
    int64_t length = x->dims[x->rank - 1];
    int64_t rows = x->rank == 1 ? 1 : x->dims[0];
    for (int i = 0; i < columns; i++)
        width = column[i] >= width ? column[i] + 1 : width;
    int64_t dims[2] = {rows, width};
    Array *y = x->rank == 1 ? ref_out(call, 0, DT_F32, 1, &width)
                            : ref_out(call, 0, DT_F32, 2, dims);
    for (int64_t r = 0; r < rows; r++, row += length) {
        int id = 0;
        for (int64_t n = 1; n <= lengths; n++) {
            int64_t end = n < lengths ? counts[n] : items;
            for (int64_t p = counts[n - 1]; p + n <= end; p += n, id++) {
                if (n < shortest || n > longest)
                    continue;
                double f =
                    (double)occurrences(row, length, pool + p, n, skips);
                double weight = weights ? weights->floats[id] : 1;
                if (!strcmp(mode, "IDF"))
                    f = f > 0 ? weight : 0;
                else if (!strcmp(mode, "TFIDF"))
                    f *= weight;
                array_set(y, r * width + column[id], f);
            }
        }
    }
    return true;
}
