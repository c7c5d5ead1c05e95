/* What threads share: the iterations of a kernel's parallel loop.
 *
 * The pool gives each thread an equal part of them. Seven rows for two threads
 * are four and three, and what stands beside the loop, such as the rows that
 * are left when tiles of three do not divide them, or the zeroed border of a
 * result, is done by one thread while the others wait. So the last step of
 * lowering makes one parallel loop of the pieces of an axis, takes the next
 * loop into it where there are few iterations, and gives each its part of the
 * border. Who computes what changes, not how: results keep their bits. */
#include "schedules/region.h"

/* As many iterations are shared evenly enough: for any number of threads up to
 * a quarter of it one has at most a quarter more than another. */
enum { ENOUGH = 32 };

/* Iterations over the same body. */
typedef struct Turns {
    int64_t count;
    const Var *var; /* NULL: one iteration, and no variable */
    Stmt *body;
} Turns;
typedef Vec(Turns) TurnsList;

/* ---- few iterations -------------------------------------------------- */

/* The independent iterations that a statement consists of; false when it is no
 * loop over them, or not a plain one. */
static bool turns_of(Lower *lw, Stmt *s, LoopKind kind, TurnsList *list)
{
    const PieceCounts *pieces = ptrmap_get(&lw->independent, s);
    if (!pieces)
        return false;
    for (int i = 0; i < pieces->count; i++) {
        Stmt *piece = pieces->count > 1 ? s->list.data[i] : s;
        if (pieces->times[i] == 1) {
            vec_push(lw->arena, list, ((Turns){1, NULL, piece}));
            continue;
        }
        if (piece->kind != STMT_FOR || piece->limit || piece->loop != kind)
            return false;
        vec_push(lw->arena, list,
                 ((Turns){piece->extent, piece->var, piece->body}));
    }
    return true;
}

static int64_t total_of(const TurnsList *list)
{
    int64_t total = 0;
    for (int i = 0; i < list->count; i++)
        total += list->data[i].count;
    return total;
}

/* The iteration number `index` of all of them. */
static Stmt *turn_at(Lower *lw, const TurnsList *list, const Expr *index)
{
    Arena *a = lw->arena;
    Stmt *block = stmt_block(a);
    int64_t before = 0, total = total_of(list);
    for (int i = 0; i < list->count; i++) {
        const Turns *t = &list->data[i];
        int64_t after = before + t->count;
        const Expr *from = expr_binary(a, EX_LE, expr_int(a, before), index);
        const Expr *to = expr_binary(a, EX_LT, index, expr_int(a, after));
        Stmt *s = t->body;
        if (t->var)
            stmt_bind(a, s, t->var, expr_add_int(a, index, -before));
        if (after < total)
            s = stmt_if(a, to, s);
        if (before > 0)
            s = stmt_if(a, from, s);
        vec_push(a, &block->list, s);
        before = after;
    }
    return list->count == 1 ? block->list.data[0] : block;
}

/* The least number of equal parts of a loop that makes enough of `count` as
 * many. */
static int64_t parts_of(int64_t extent, int64_t count)
{
    int64_t parts = 1;
    while (extent % parts || count * parts < ENOUGH)
        if (++parts >= extent)
            return extent;
    return parts;
}

/* Makes more iterations of them, with the loop inside. False when there is
 * none, or nothing in it. */
static bool widen(Lower *lw, Turns *t)
{
    Arena *a = lw->arena;
    TurnsList inner = {0};
    if (!turns_of(lw, t->body, LOOP_SERIAL, &inner) || !total_of(&inner))
        return false;
    if (inner.count == 1) {
        Turns *in = &inner.data[0];
        int64_t parts = parts_of(in->count, t->count);
        if (parts < in->count) {
            const Var *part = lower_new_var(lw, in->var->name);
            const Var *rest = lower_new_var(lw, in->var->name);
            int64_t size = in->count / parts;
            const Expr *start = expr_mul_int(a, expr_var(a, part), size);
            stmt_bind(a, in->body, in->var,
                      expr_add(a, start, expr_var(a, rest)));
            Stmt *body = stmt_for(a, LOOP_SERIAL, rest, size, in->body);
            *in = (Turns){parts, part, body};
        }
    }
    int64_t times = total_of(&inner);
    const Var *var = lower_new_var(lw, t->var ? t->var->name : "part");
    const Expr *index = expr_var(a, var), *by = expr_int(a, times);
    Stmt *body = turn_at(lw, &inner,
                         t->var ? expr_binary(a, EX_MOD, index, by) : index);
    if (t->var)
        stmt_bind(a, body, t->var, expr_div(a, index, by));
    *t = (Turns){t->count * times, var, body};
    return true;
}

/* One parallel loop, over enough iterations where that can be had, of a
 * statement that is one or several in a row; NULL when it is not. */
static Stmt *evened(Lower *lw, Stmt *s)
{
    TurnsList list = {0};
    if (!turns_of(lw, s, LOOP_PARALLEL, &list))
        return NULL;
    bool found = false;
    for (int i = 0; i < list.count; i++)
        found |= list.data[i].var != NULL;
    if (!found)
        return NULL;
    bool more = true;
    while (more && total_of(&list) < ENOUGH) {
        more = false;
        for (int i = 0; i < list.count; i++)
            more |= widen(lw, &list.data[i]);
    }
    if (list.count == 1 && list.data[0].var == s->var)
        return s;
    int64_t total = total_of(&list);
    const Var *var = lower_new_var(lw, "share");
    return stmt_for(lw->arena, LOOP_PARALLEL, var, total,
                    turn_at(lw, &list, expr_var(lw->arena, var)));
}

/* ---- borders --------------------------------------------------------- */

/* The border at one place of a buffer's storage, on both sides of it. Places
 * before it stay within their borders, so that those of several places do not
 * overlap. */
typedef struct Border {
    Stmt *side[2]; /* low, high; NULL: none there */
    Stmt *whole;   /* a loop over all before it, around both; NULL: no loop */
} Border;

/* The offset of index `at` along a storage dimension. */
static const Expr *along(Lower *lw, const Buffer *b, int place, const Expr *at)
{
    Arena *a = lw->arena;
    const LayoutDim *dim = &b->layout.dim[place];
    at = expr_mul_int(a, at, layout_stride(&b->layout, place, b->dims));
    return dim->factor ? at : expr_add_int(a, at, b->layout.before[dim->axis]);
}

/* Zeroes one side, before (low) or behind all elements of the axis. The high
 * border of a dimension with a limit starts there. What belongs to others is
 * left alone. */
static Stmt *border_side(Lower *lw, const Buffer *b, int place, bool high,
                         const Expr *outer)
{
    Arena *a = lw->arena;
    const Layout *l = &b->layout;
    int axis = l->dim[place].axis;
    int64_t size = high ? l->hi[axis] : l->lo[axis];
    const Expr *start = expr_int(a, 0), *offset = outer;
    if (high)
        start =
            b->limit[axis]
                ? expr_add_int(a, lower_limit(lw, b->limit[axis]), l->lo[axis])
                : expr_int(a, layout_extent(l, place, b->dims) - size);
    const Var *vars[MAX_LAYOUT] = {NULL};
    int64_t extents[MAX_LAYOUT];
    for (int i = place; i < l->count; i++) {
        extents[i] = i == place ? size : layout_extent(l, i, b->dims);
        if (extents[i] == 0)
            return NULL;
        const Expr *at = i == place ? start : expr_int(a, 0);
        if (extents[i] > 1) {
            vars[i] = lower_new_var(lw, "b");
            at = expr_add(a, expr_var(a, vars[i]), at);
        }
        offset = expr_add(a, offset, along(lw, b, i, at));
    }
    Stmt *s = stmt_store(a, b, offset, expr_const(a, b->dtype, 0));
    for (int i = l->count - 1; i >= place; i--)
        if (vars[i])
            s = stmt_for(a, i == l->count - 1 ? LOOP_VECTOR : LOOP_SERIAL,
                         vars[i], extents[i], s);
    return s;
}

static bool is_limited(const Buffer *b)
{
    for (int i = 0; i < b->rank; i++)
        if (b->limit[i])
            return true;
    return false;
}

/* Where an extent is known at run time only, there is a loop a dimension;
 * otherwise they are one. */
static Border border_at(Lower *lw, const Buffer *b, int place)
{
    Arena *a = lw->arena;
    const Layout *l = &b->layout;
    Border border = {0};
    const bool limited = is_limited(b);
    int64_t total = 1;
    for (int i = 0; i < place; i++)
        total *= b->dims[l->dim[i].axis];
    if (total == 0)
        return border;
    const Expr *outer = expr_int(a, 0);
    const Var *vars[MAX_LAYOUT] = {NULL};
    const Var *row = lower_new_var(lw, "b");
    int64_t before = total;
    for (int i = 0; i < place; i++) {
        int axis = l->dim[i].axis;
        const Expr *at = expr_int(a, 0);
        before /= b->dims[axis];
        if (limited) {
            vars[i] = lower_new_var(lw, "b");
            at = expr_var(a, vars[i]);
        } else if (b->dims[axis] > 1) {
            at = expr_div(a, expr_var(a, row), expr_int(a, before));
            if (before * b->dims[axis] < total)
                at = expr_binary(a, EX_MOD, at, expr_int(a, b->dims[axis]));
        }
        at = expr_add_int(a, at, l->lo[axis]);
        outer = expr_add(a, outer, along(lw, b, i, at));
    }
    Stmt *s = stmt_block(a);
    for (int high = 0; high < 2; high++) {
        border.side[high] = border_side(lw, b, place, high, outer);
        if (border.side[high])
            vec_push(a, &s->list, border.side[high]);
    }
    if (!s->list.count)
        return border;
    for (int i = place - 1; i >= 0 && limited; i--) {
        int axis = l->dim[i].axis;
        const Expr *limit = b->limit[axis];
        s = border.whole =
            stmt_for_limited(a, LOOP_SERIAL, vars[i], b->dims[axis],
                             limit ? lower_limit(lw, limit) : NULL, s);
    }
    if (!limited && total > 1)
        border.whole = stmt_for(a, LOOP_SERIAL, row, total, s);
    return border;
}

/* The part of a loop that belongs to one iteration of the parallel loop. */
static Stmt *part_of(Lower *lw, Stmt *s, const Stmt *parallel)
{
    Arena *a = lw->arena;
    int64_t count = parallel->extent, extent = s->extent;
    const Expr *index = expr_var(a, parallel->var);
    if (extent % count == 0) {
        int64_t size = extent / count;
        const Expr *begin = expr_mul_int(a, index, size);
        const Var *var = size > 1 ? lower_new_var(lw, "b") : NULL;
        stmt_bind(a, s->body, s->var,
                  var ? expr_add(a, begin, expr_var(a, var)) : begin);
        return var ? stmt_for(a, LOOP_SERIAL, var, size, s->body) : s->body;
    }
    const Expr *by = expr_int(a, count);
    const Expr *next = expr_add_int(a, index, 1);
    const Expr *begin = expr_div(a, expr_mul_int(a, index, extent), by);
    const Expr *end = expr_div(a, expr_mul_int(a, next, extent), by);
    if (extent < count) {
        stmt_bind(a, s->body, s->var, begin);
        return stmt_if(a, expr_binary(a, EX_LT, begin, end), s->body);
    }
    const Var *var = lower_new_var(lw, "b");
    stmt_bind(a, s->body, s->var, expr_add(a, begin, expr_var(a, var)));
    return stmt_for_limited(a, LOOP_SERIAL, var, (extent + count - 1) / count,
                            expr_sub(a, end, begin), s->body);
}

static void share_border(Lower *lw, const Border *border, Stmt *parallel)
{
    Arena *a = lw->arena;
    Stmt *to = parallel->body;
    if (to->kind != STMT_BLOCK) {
        to = stmt_block(a);
        vec_push(a, &to->list, parallel->body);
        parallel->body = to;
    }
    if (border->whole) {
        vec_push(a, &to->list, part_of(lw, border->whole, parallel));
        return;
    }
    /* What lies before and behind all rows goes with the first and last ones,
     * whose reader is likely the same thread. */
    for (int high = 0; high < 2; high++) {
        int64_t at = high ? parallel->extent - 1 : 0;
        const Expr *is_there =
            expr_binary(a, EX_EQ, expr_var(a, parallel->var), expr_int(a, at));
        if (border->side[high])
            vec_push(a, &to->list, stmt_if(a, is_there, border->side[high]));
    }
}

void share_work(Lower *lw)
{
    Arena *a = lw->arena;
    Kernel *k = lw->kernel;
    Stmt *parallel = NULL;
    for (int i = 0; i < k->body->list.count; i++) {
        Stmt *s = evened(lw, k->body->list.data[i]);
        if (!s)
            continue;
        k->body->list.data[i] = s;
        if (!parallel || s->extent > parallel->extent)
            parallel = s;
    }
    for (int i = 0; i < k->params.count; i++) {
        const Buffer *b = k->params.data[i];
        for (int p = 0; b->role == BUF_OUTPUT && p < b->layout.count; p++) {
            Border border = border_at(lw, b, p);
            if (parallel && !is_limited(b)) {
                share_border(lw, &border, parallel);
                continue;
            }
            for (int high = 0; high < 2 && !border.whole; high++)
                if (border.side[high])
                    vec_push(a, &k->body->list, border.side[high]);
            if (border.whole)
                vec_push(a, &k->body->list, border.whole);
        }
    }
}
