/* Einsum and Det. */
#include <ctype.h>
#include <string.h>

#include "ops/rules.h"

/* ---- Einsum: sums of products over labelled axes */

/* Labels are numbers: letters first, then the axes that "..." stands for,
 * aligned at the last. */
enum { LETTERS = 52, MAX_LABELS = LETTERS + MAX_RANK };

typedef struct Term {
    int count, ellipsis; /* place of "..." among the labels, -1: none */
    int label[MAX_LABELS];
} Term;

typedef struct Equation {
    Term in[MAX_OP_INPUTS], out;
    int in_count, ellipsis_rank;
    bool has_output;
} Equation;

static int letter_label(char c)
{
    return isupper((unsigned char)c) ? c - 'A' : c - 'a' + LETTERS / 2;
}

/* One term, up to a comma, an arrow or the end. */
static const char *parse_term(const char *at, Term *term)
{
    *term = (Term){.ellipsis = -1};
    for (;; at++) {
        if (*at == ' ')
            continue;
        if (!strncmp(at, "...", 3) && term->ellipsis < 0) {
            term->ellipsis = term->count;
            at += 2;
        } else if (isalpha((unsigned char)*at) && term->count < MAX_RANK) {
            term->label[term->count++] = letter_label(*at);
        } else {
            return at;
        }
    }
}

/* Only the form; labels and ranks are compared later. */
static bool parse_equation(const char *at, Equation *e)
{
    memset(e, 0, sizeof *e);
    for (;; at++) {
        if (e->in_count == MAX_OP_INPUTS)
            return false;
        at = parse_term(at, &e->in[e->in_count++]);
        if (*at != ',')
            break;
    }
    e->has_output = !strncmp(at, "->", 2);
    if (e->has_output)
        at = parse_term(at + 2, &e->out);
    return !*at;
}

/* Puts the labels of the axes that "..." stands for in their place. */
static void expand_ellipsis(Term *term, int axes, int ellipsis_rank)
{
    if (term->ellipsis < 0)
        return;
    memmove(&term->label[term->ellipsis + axes], &term->label[term->ellipsis],
            (size_t)(term->count - term->ellipsis) * sizeof *term->label);
    for (int i = 0; i < axes; i++)
        term->label[term->ellipsis + i] = LETTERS + ellipsis_rank - axes + i;
    term->count += axes;
}

/* Without "->": what "..." stands for, then the letters that are there once,
 * in order. */
static void make_output(Equation *e)
{
    int uses[LETTERS] = {0};
    e->out = (Term){.ellipsis = -1};
    for (int i = 0; i < e->in_count; i++) {
        if (e->in[i].ellipsis >= 0)
            e->out.ellipsis = 0;
        for (int k = 0; k < e->in[i].count; k++)
            uses[e->in[i].label[k]]++;
    }
    for (int l = 0; l < LETTERS; l++)
        if (uses[l] == 1)
            e->out.label[e->out.count++] = l;
}

/* The equation of a node whose inputs have these ranks; NULL or what is wrong
 * with it. */
static const char *read_equation(const Node *node, const int *rank,
                                 Equation *e)
{
    bool known[MAX_LABELS] = {false}, used[MAX_LABELS] = {false};
    if (!parse_equation(attrs_string(&node->attrs, "equation", ""), e))
        return "it is not TERM,TERM,... or TERM,...->TERM of letters and "
               "\"...\"";
    if (e->in_count != node->inputs.count)
        return "it has another number of terms than there are inputs";
    bool any = false;
    for (int i = 0; i < e->in_count; i++) {
        int rest = rank[i] - e->in[i].count;
        any |= e->in[i].ellipsis >= 0;
        if (rest < 0 || (rest > 0 && e->in[i].ellipsis < 0))
            return "a term does not have the rank of its input";
        if (rest > e->ellipsis_rank)
            e->ellipsis_rank = rest;
    }
    if (!e->has_output)
        make_output(e);
    else if (any != (e->out.ellipsis >= 0))
        return "\"...\" must be on both sides";
    for (int i = 0; i < e->in_count; i++) {
        expand_ellipsis(&e->in[i], rank[i] - e->in[i].count, e->ellipsis_rank);
        for (int k = 0; k < e->in[i].count; k++)
            known[e->in[i].label[k]] = true;
    }
    if (e->out.count + e->ellipsis_rank > MAX_RANK)
        return "the result has too many axes";
    expand_ellipsis(&e->out, e->ellipsis_rank, e->ellipsis_rank);
    for (int k = 0; k < e->out.count; k++) {
        if (!known[e->out.label[k]] || used[e->out.label[k]])
            return "a letter of the result is not in a term, or twice in it";
        used[e->out.label[k]] = true;
    }
    int summed = 0;
    for (int l = 0; l < MAX_LABELS; l++)
        summed += known[l] && !used[l];
    return summed > MAX_RANK ? "it sums over too many letters" : NULL;
}

static bool infer_einsum(InferContext *c)
{
    Extent extent[MAX_LABELS], dims[MAX_RANK];
    int rank[MAX_OP_INPUTS] = {0};
    Equation e;
    for (int i = 0; i < c->node->inputs.count; i++) {
        if (!node_has_input(c->node, i))
            return infer_error(c, "input %d is left out", i);
        if (!infer_types(c, i, TYPES_NUMBER) || !infer_same_dtype(c, 0, i))
            return false;
        rank[i] = infer_input(c, i)->rank;
    }
    const char *wrong = read_equation(c->node, rank, &e);
    if (wrong)
        return infer_error(c, "equation \"%s\": %s",
                           attrs_string(&c->node->attrs, "equation", ""),
                           wrong);
    for (int l = 0; l < MAX_LABELS; l++)
        extent[l] = extent_const(1);
    for (int i = 0; i < e.in_count; i++)
        for (int k = 0; k < rank[i]; k++)
            if (!infer_broadcast_dim(c, &extent[e.in[i].label[k]],
                                     infer_input(c, i)->dims[k]))
                return false;
    for (int k = 0; k < e.out.count; k++)
        dims[k] = extent[e.out.label[k]];
    return infer_set_checked(c, 0, infer_input(c, 0)->dtype, e.out.count,
                             dims);
}

/* One stage: labels of the result are its axes, the others are summed. */
static void define_einsum(DefineContext *c)
{
    const Expr *place[MAX_LABELS] = {NULL}, *at[MAX_RANK], *value = NULL;
    int rank[MAX_OP_INPUTS] = {0};
    const Buffer *source[MAX_LABELS] = {NULL}; /* has the label's extent */
    int source_axis[MAX_LABELS] = {0};
    Equation e;
    StageBuilder b;
    for (int i = 0; i < c->node->inputs.count; i++)
        rank[i] = c->in[i]->rank;
    read_equation(c->node, rank, &e);
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    for (int i = 0; i < e.in_count; i++)
        for (int k = 0; k < rank[i]; k++)
            if (!source[e.in[i].label[k]] || c->in[i]->dims[k] != 1) {
                source[e.in[i].label[k]] = c->in[i];
                source_axis[e.in[i].label[k]] = k;
            }
    for (int k = 0; k < e.out.count; k++)
        place[e.out.label[k]] = b.index[k];
    for (int i = 0; i < e.in_count; i++) {
        for (int k = 0; k < rank[i]; k++) {
            int label = e.in[i].label[k];
            if (!place[label])
                place[label] = stage_reduce_over(&b, source[label],
                                                 source_axis[label], "k");
            at[k] = c->in[i]->dims[k] == 1 ? expr_int(a, 0) : place[label];
        }
        const Expr *read = expr_read(a, c->in[i], at);
        value = value ? expr_mul(a, value, read) : read;
    }
    if (b.stage->reduce_count)
        stage_end_reduce(&b, "sum", value);
    else
        stage_end(&b, value);
}

/* ---- Det, by elimination with row exchanges, a few stages a column */

enum { MAX_MATRIX = 64 };

static bool infer_det(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    if (!infer_types(c, 0, TYPES_FLOAT) || !infer_rank(c, 0, 2, MAX_RANK))
        return false;
    int64_t rows = extent_known(x->dims[x->rank - 2]);
    if (rows < 0 || !extent_equal(x->dims[x->rank - 1], x->dims[x->rank - 2]))
        return infer_error(c, "its last two axes must be a square matrix");
    if (rows > MAX_MATRIX)
        return infer_error(c,
                           "matrices of %lld rows; at most %d are "
                           "supported",
                           (long long)rows, MAX_MATRIX);
    infer_set(c, 0, x->dtype, x->rank - 2, x->dims);
    return true;
}

/* Element (row, column) of the matrix that the stage is at. */
static const Expr *read_cell(const StageBuilder *b, const Buffer *m,
                             const Expr *row, const Expr *column)
{
    const Expr *at[MAX_RANK];
    for (int i = 0; i < m->rank - 2; i++)
        at[i] = b->index[i];
    at[m->rank - 2] = row;
    at[m->rank - 1] = column;
    return expr_read(b->arena, m, at);
}

/* The row of the first largest element of the first column. */
static Buffer *find_pivot(DefineContext *c, const Buffer *m)
{
    Buffer *out[2] = {define_temp_part(c, "best", DT_F64, m->rank - 2, m),
                      define_temp_part(c, "pivot", DT_I64, m->rank - 2, m)};
    StageBuilder b;
    stage_begin(&b, c->def, out[0]);
    const Expr *k = stage_reduce(&b, m->dims[m->rank - 2], "k");
    const Expr *cell = read_cell(&b, m, k, expr_int(b.arena, 0));
    const Expr *value[2] = {expr_unary(b.arena, EX_ABS, cell), k};
    stage_end_tuple(&b, reducer_arg(b.arena, DT_F64, true, false), out, value);
    return out[1];
}

/* What is left of the matrix without its first column and pivot row. */
static Buffer *eliminate(DefineContext *c, const Buffer *m,
                         const Buffer *pivot)
{
    int64_t dims[MAX_RANK];
    memcpy(dims, m->dims, sizeof dims);
    int row_axis = m->rank - 2;
    dims[row_axis]--;
    dims[row_axis + 1]--;
    Buffer *rest = define_temp(c, "rest", DT_F64, m->rank, dims);
    memcpy(rest->limit, m->limit, sizeof rest->limit);
    StageBuilder b;
    stage_begin(&b, c->def, rest);
    Arena *a = b.arena;
    const Expr *zero = expr_int(a, 0);
    const Expr *which =
        index_clamp(a, expr_read(a, pivot, b.index), m->dims[row_axis]);
    const Expr *row = expr_add_int(a, b.index[row_axis], 1);
    const Expr *column = expr_add_int(a, b.index[row_axis + 1], 1);
    /* Row 0 took the pivot's place. */
    row = expr_select(a, expr_binary(a, EX_EQ, row, which), zero, row);
    const Expr *head = read_cell(&b, m, which, zero);
    const Expr *factor = expr_div(a, read_cell(&b, m, row, zero), head);
    /* A column of zeros makes the determinant 0 by itself. */
    factor =
        expr_select(a, expr_binary(a, EX_EQ, head, const_like(a, head, 0)),
                    const_like(a, head, 0), factor);
    stage_end(&b,
              expr_sub(a, read_cell(&b, m, row, column),
                       expr_mul(a, factor, read_cell(&b, m, which, column))));
    return rest;
}

static void define_det(DefineContext *c)
{
    const Buffer *x = c->in[0];
    int64_t rows = x->dims[x->rank - 1];
    Buffer *m = define_temp_part(c, "matrix", DT_F64, x->rank, x);
    Buffer *product = NULL;
    StageBuilder b;
    stage_begin(&b, c->def, m);
    stage_end(&b, expr_cast(b.arena, DT_F64, read_same(&b, x)));
    for (int64_t k = 0; k < rows; k++) {
        Buffer *pivot = find_pivot(c, m);
        Buffer *next = define_temp_part(c, "product", DT_F64, x->rank - 2, x);
        stage_begin(&b, c->def, next);
        Arena *a = b.arena;
        const Expr *which =
            index_clamp(a, expr_read(a, pivot, b.index), m->dims[x->rank - 1]);
        const Expr *head = read_cell(&b, m, which, expr_int(a, 0));
        head = expr_select(a, expr_binary(a, EX_EQ, which, expr_int(a, 0)),
                           head, expr_unary(a, EX_NEG, head));
        stage_end(&b,
                  product ? expr_mul(a, read_same(&b, product), head) : head);
        product = next;
        if (k + 1 < rows)
            m = eliminate(c, m, pivot);
    }
    stage_begin(&b, c->def, c->out[0]);
    stage_end(&b, product
                      ? expr_cast(b.arena, x->dtype, read_same(&b, product))
                      : expr_const(b.arena, x->dtype, 1));
}

static const AttrSpec einsum_attrs[] = {{"equation", ATTR_STRING, true}, {0}};

static const Op op_einsum = {.name = "Einsum",
                             .domain = "",
                             .min_inputs = 1,
                             .max_inputs = -1,
                             .min_outputs = 1,
                             .max_outputs = 1,
                             .traits = OP_REDUCTION | OP_RUNTIME_EXTENTS,
                             .attrs = einsum_attrs,
                             .infer = infer_einsum,
                             .define = define_einsum,
                             .since = 12};
static const Op op_det = {.name = "Det",
                          .domain = "",
                          .min_inputs = 1,
                          .max_inputs = 1,
                          .min_outputs = 1,
                          .max_outputs = 1,
                          .traits = OP_REDUCTION | OP_RUNTIME_EXTENTS,
                          .infer = infer_det,
                          .define = define_det,
                          .since = 11};

const Op *const ops_linear[] = {&op_einsum, &op_det, NULL};
