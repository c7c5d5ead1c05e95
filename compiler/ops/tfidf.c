/* TfIdfVectorizer of integers: how often each n-gram of a pool occurs in a
 * row, its items apart by one to max_skip_count + 1 places. */
#include <string.h>

#include "ops/loop_program.h"
#include "ops/rules.h"

/* Loops are written out for each n-gram. */
enum { MAX_GRAMS = 4096 };

typedef struct Grams {
    int lengths; /* of counts: one for each length */
    const int64_t *counts, *columns, *pool;
    int pool_count, column_count;
    int64_t shortest, longest, skips;
    const Attr *weights;
    const char *mode;
} Grams;

static Grams read_grams(const Node *node)
{
    const Attrs *attrs = &node->attrs;
    Grams g = {.mode = attrs_string(attrs, "mode", ""),
               .shortest = attrs_int(attrs, "min_gram_length", 0),
               .longest = attrs_int(attrs, "max_gram_length", 0),
               .skips = attrs_int(attrs, "max_skip_count", 0),
               .weights = attrs_find(attrs, "weights")};

    g.counts = attrs_ints(attrs, "ngram_counts", &g.lengths);
    g.columns = attrs_ints(attrs, "ngram_indexes", &g.column_count);
    g.pool = attrs_ints(attrs, "pool_int64s", &g.pool_count);
    return g;
}

static int64_t width_of(const Grams *g)
{
    int64_t width = 0;

    for (int i = 0; i < g->column_count; i++)
        width = g->columns[i] >= width ? g->columns[i] + 1 : width;
    return width;
}

/* Where the n-grams of `length` lie in the pool, and their number. */
static int64_t grams_of(const Grams *g, int64_t length, int64_t *first)
{
    *first = length <= g->lengths ? g->counts[length - 1] : g->pool_count;
    int64_t end = length < g->lengths ? g->counts[length] : g->pool_count;
    return (end - *first) / length;
}

static bool infer_tfidf(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    Grams g = read_grams(c->node);
    int64_t grams = 0, first;

    if (!infer_types(c, 0, TYPES_INDEX) || !infer_rank(c, 0, 1, 2))
        return false;
    if (strcmp(g.mode, "TF") && strcmp(g.mode, "IDF") &&
        strcmp(g.mode, "TFIDF"))
        return infer_error(c, "mode is \"%s\"; it must be TF, IDF or TFIDF",
                           g.mode);
    if (!g.pool)
        return infer_error(c, "the attribute pool_int64s is missing; pools "
                              "of strings are not supported");
    if (g.shortest < 1 || g.longest < g.shortest || g.skips < 0)
        return infer_error(c, "min_gram_length, max_gram_length or "
                              "max_skip_count is out of range");
    for (int i = 0; i < g.lengths; i++)
        if (g.counts[i] < (i ? g.counts[i - 1] : 0) ||
            g.counts[i] > g.pool_count)
            return infer_error(c, "ngram_counts does not fit the pool");
    for (int64_t n = 1; n <= g.lengths; n++)
        grams += grams_of(&g, n, &first);
    if (grams != g.column_count || grams > MAX_GRAMS)
        return infer_error(c,
                           "the pool has %lld n-grams, ngram_indexes %d "
                           "items; at most %d are supported",
                           (long long)grams, g.column_count, MAX_GRAMS);
    for (int i = 0; i < g.column_count; i++)
        if (g.columns[i] < 0 || g.columns[i] >= INT32_MAX)
            return infer_error(c, "ngram_indexes holds %lld",
                               (long long)g.columns[i]);
    if (g.weights && g.weights->count != g.column_count)
        return infer_error(c, "weights must have %d items", g.column_count);
    infer_set(c, 0, DT_F32, x->rank,
              x->rank == 1
                  ? (Extent[]){extent_const(width_of(&g))}
                  : (Extent[]){x->dims[0], extent_const(width_of(&g))});
    return true;
}

/* Counts one n-gram in row `row` of `length` items. */
static void count_gram(LoopContext *c, const Grams *g, const int64_t *gram,
                       int64_t n, const Expr *row, int64_t length,
                       const Buffer *count)
{
    Arena *a = c->arena;
    /* How far apart its items are does not matter to a single one. */
    int64_t skips = n == 1 ? 0 : g->skips;

    loop_set(c, count, expr_const(a, DT_F32, 0));
    for (int64_t s = 1; s <= skips + 1; s++) {
        int64_t starts = length - (n - 1) * s;
        if (starts <= 0)
            continue;
        const Expr *at = loop_for(c, LOOP_SERIAL, "at", starts), *hit = NULL;
        for (int64_t i = 0; i < n; i++) {
            const Expr *item = expr_cast(
                a, DT_I64,
                loop_load(c, c->in[0],
                          expr_add_int(a, expr_add(a, row, at), i * s)));
            const Expr *same =
                expr_binary(a, EX_EQ, item, expr_int(a, gram[i]));
            hit = hit ? expr_binary(a, EX_AND, hit, same) : same;
        }
        loop_if(c, hit);
        loop_set(c, count,
                 expr_add(a, loop_get(c, count), expr_const(a, DT_F32, 1)));
        loop_end(c);
        loop_end(c);
    }
}

static void program_tfidf(LoopContext *c)
{
    Arena *a = c->arena;
    Grams g = read_grams(c->node);
    const Buffer *x = c->in[0];
    int64_t rows = x->rank == 1 ? 1 : x->dims[0], width = width_of(&g);
    int64_t length = x->dims[x->rank - 1], first;
    int id = 0;

    const Buffer *count = loop_variable(c, "count", DT_F32);
    const Expr *r =
        loop_for(c, rows > 1 ? LOOP_PARALLEL : LOOP_SERIAL, "row", rows);
    const Expr *to = expr_mul_int(a, r, width);
    const Expr *j = loop_for(c, LOOP_SERIAL, "j", width);
    loop_store(c, c->out[0], expr_add(a, to, j), expr_const(a, DT_F32, 0));
    loop_end(c);
    for (int64_t n = 1; n <= g.lengths; n++) {
        int64_t grams = grams_of(&g, n, &first);
        for (int64_t i = 0; i < grams; i++, id++) {
            if (n < g.shortest || n > g.longest)
                continue;
            count_gram(c, &g, g.pool + first + i * n, n,
                       expr_mul_int(a, r, length), length, count);
            const Expr *value = loop_get(c, count);
            const Expr *weight =
                expr_const(a, DT_F32, g.weights ? g.weights->floats[id] : 1);
            const Expr *zero = expr_const(a, DT_F32, 0);
            if (!strcmp(g.mode, "IDF"))
                value = expr_select(a, expr_binary(a, EX_LT, zero, value),
                                    weight, zero);
            else if (!strcmp(g.mode, "TFIDF"))
                value = expr_mul(a, value, weight);
            loop_store(c, c->out[0], expr_add_int(a, to, g.columns[id]),
                       value);
        }
    }
    loop_end(c);
}

static const AttrSpec tfidf_attrs[] = {
    {"max_gram_length", ATTR_INT, true}, {"max_skip_count", ATTR_INT, true},
    {"min_gram_length", ATTR_INT, true}, {"mode", ATTR_STRING, true},
    {"ngram_counts", ATTR_INTS, true},   {"ngram_indexes", ATTR_INTS, true},
    {"pool_int64s", ATTR_INTS, false},   {"pool_strings", ATTR_STRINGS, false},
    {"weights", ATTR_FLOATS, false},     {0}};

static const Op op_tfidf = {.name = "TfIdfVectorizer",
                            .domain = "",
                            .min_inputs = 1,
                            .max_inputs = 1,
                            .min_outputs = 1,
                            .max_outputs = 1,
                            .attrs = tfidf_attrs,
                            .infer = infer_tfidf,
                            .program = program_tfidf,
                            .since = 9};

const Op *const ops_tfidf[] = {&op_tfidf, NULL};
