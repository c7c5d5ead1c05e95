/* Index arithmetic as linear combinations of atoms.
 *
 * An atom is a variable or whatever is not linear (a division, a read). A
 * sum is put together again with the variables in loop order. */
#include "tensor/simplify.h"

#include <stdlib.h>
#include <string.h>

/* More than an index of any kernel has; an expression with more stays as it
 * is. */
enum { MAX_TERMS = 48 };

typedef struct Term {
    const Expr *atom;
    int64_t factor;
} Term;

typedef struct Linear {
    int count;
    int64_t constant;
    Term term[MAX_TERMS];
} Linear;

static int depth_of(const Ranges *r, const Expr *atom)
{
    if (atom->kind != EX_VAR) {
        /* As deep as its deepest variable. */
        int depth = -1;
        for (int i = 0; i < atom->count; i++) {
            int d = depth_of(r, atom->arg[i]);
            depth = d > depth ? d : depth;
        }
        return depth;
    }
    for (int i = r->vars.count - 1; i >= 0; i--)
        if (r->vars.data[i].var == atom->var)
            return i;
    return -1;
}

static bool add_term(Linear *l, const Expr *atom, int64_t factor)
{
    for (int i = 0; i < l->count; i++) {
        if (!expr_equal(l->term[i].atom, atom))
            continue;
        l->term[i].factor += factor;
        if (l->term[i].factor == 0)
            l->term[i] = l->term[--l->count];
        return true;
    }
    if (factor == 0)
        return true;
    if (l->count == MAX_TERMS)
        return false;
    l->term[l->count++] = (Term){atom, factor};
    return true;
}

static const Expr *rebuild(const Ranges *r, Linear *l);
static bool linearize(const Ranges *r, const Expr *x, int64_t factor,
                      Linear *l);

static Interval linear_interval(const Ranges *r, const Linear *l)
{
    Interval sum = {l->constant, l->constant, true};
    for (int i = 0; i < l->count; i++) {
        Interval t = interval_of(r, l->term[i].atom);
        int64_t f = l->term[i].factor;
        if (!t.known)
            return t;
        sum.min += f > 0 ? t.min * f : t.max * f;
        sum.max += f > 0 ? t.max * f : t.min * f;
    }
    return sum;
}

/* x / c or x % c: takes out the multiples of c, then asks the range of the
 * rest. */
static bool linearize_division(const Ranges *r, const Expr *x, int64_t factor,
                               Linear *l)
{
    /* x = c * whole + rest, hence x / c = whole + rest / c and x % c = rest %
     * c. On the heap, as divisions nest. */
    Linear *whole = calloc(2, sizeof *whole), *rest = whole + 1;
    int64_t c = x->arg[1]->i;
    Linear *numerator = calloc(1, sizeof *numerator);
    bool ok = whole && numerator && linearize(r, x->arg[0], 1, numerator);
    for (int i = 0; ok && i < numerator->count; i++) {
        Term t = numerator->term[i];
        if (t.factor % c == 0)
            add_term(whole, t.atom, t.factor / c);
        else
            add_term(rest, t.atom, t.factor);
    }
    if (ok) {
        whole->constant = floor_divide(numerator->constant, c);
        rest->constant = numerator->constant - whole->constant * c;
        Interval range = linear_interval(r, rest);
        /* A rest that stays within one multiple of c is decided. */
        bool decided = range.known && floor_divide(range.min, c) ==
                                          floor_divide(range.max, c);
        if (decided && x->kind == EX_DIV) {
            l->constant +=
                factor * (whole->constant + floor_divide(range.min, c));
            for (int i = 0; ok && i < whole->count; i++)
                ok = add_term(l, whole->term[i].atom,
                              whole->term[i].factor * factor);
        } else if (decided) {
            l->constant +=
                factor * (rest->constant - floor_divide(range.min, c) * c);
            for (int i = 0; ok && i < rest->count; i++)
                ok = add_term(l, rest->term[i].atom,
                              rest->term[i].factor * factor);
        } else {
            const Expr *inner = rebuild(r, rest);
            const Expr *atom =
                expr_binary(r->arena, x->kind, inner, expr_int(r->arena, c));
            ok = add_term(l, atom, factor);
            if (x->kind == EX_DIV) {
                l->constant += factor * whole->constant;
                for (int i = 0; ok && i < whole->count; i++)
                    ok = add_term(l, whole->term[i].atom,
                                  whole->term[i].factor * factor);
            }
        }
    }
    free(whole);
    free(numerator);
    return ok;
}

/* What is not linear itself may hold index expressions. */
static const Expr *simplify_args(const Ranges *r, const Expr *x)
{
    if (x->kind != EX_READ && x->kind != EX_LOAD && x->kind != EX_SELECT &&
        x->kind != EX_MIN && x->kind != EX_MAX)
        return x;
    Expr *copy = ARENA_NEW(r->arena, Expr);
    *copy = *x;
    copy->arg = ARENA_ARRAY(r->arena, const Expr *, x->count);
    for (int i = 0; i < x->count; i++)
        copy->arg[i] = x->arg[i]->dtype == DT_I64
                           ? simplify_index(r, x->arg[i])
                           : simplify_cond(r, x->arg[i]);
    if (x->kind == EX_SELECT)
        return expr_select(r->arena, copy->arg[0], copy->arg[1], copy->arg[2]);
    return copy;
}

static bool linearize(const Ranges *r, const Expr *x, int64_t factor,
                      Linear *l)
{
    switch (x->kind) {
    case EX_INT:
        l->constant += x->i * factor;
        return true;
    case EX_ADD:
        return linearize(r, x->arg[0], factor, l) &&
               linearize(r, x->arg[1], factor, l);
    case EX_SUB:
        return linearize(r, x->arg[0], factor, l) &&
               linearize(r, x->arg[1], -factor, l);
    case EX_NEG:
        return linearize(r, x->arg[0], -factor, l);
    case EX_MUL:
        if (x->arg[1]->kind == EX_INT)
            return linearize(r, x->arg[0], factor * x->arg[1]->i, l);
        if (x->arg[0]->kind == EX_INT)
            return linearize(r, x->arg[1], factor * x->arg[0]->i, l);
        return add_term(l, x, factor);
    case EX_DIV:
    case EX_MOD:
        if (x->arg[1]->kind == EX_INT && x->arg[1]->i > 0)
            return linearize_division(r, x, factor, l);
        return add_term(l, x, factor);
    case EX_VAR:
        /* A loop of one iteration is its start. */
        for (int i = r->vars.count - 1; i >= 0; i--)
            if (r->vars.data[i].var == x->var)
                return r->vars.data[i].extent == 1 || add_term(l, x, factor);
        return add_term(l, x, factor);
    default: {
        const Expr *atom = simplify_args(r, x);
        if (atom->kind != x->kind)
            return linearize(r, atom, factor, l);
        return add_term(l, atom, factor);
    }
    }
}

/* (e / c) * c * k + (e % c) * k is e * k. */
static void join_divisions(const Ranges *r, Linear *l)
{
    for (int i = 0; i < l->count; i++) {
        const Expr *m = l->term[i].atom;
        if (m->kind != EX_MOD || m->arg[1]->kind != EX_INT)
            continue;
        for (int j = 0; j < l->count; j++) {
            const Expr *d = l->term[j].atom;
            int64_t k = l->term[i].factor;
            if (d->kind != EX_DIV || !expr_equal(d->arg[1], m->arg[1]) ||
                l->term[j].factor != k * m->arg[1]->i ||
                !expr_equal(d->arg[0], m->arg[0]))
                continue;
            add_term(l, m, -k);
            add_term(l, d, -k * m->arg[1]->i);
            linearize(r, m->arg[0], k, l);
            i = -1;
            break;
        }
    }
}

/* In loop order, so that equal sums become equal text, and what belongs to
 * outer loops stands together and can be moved out. */
static const Expr *rebuild(const Ranges *r, Linear *l)
{
    join_divisions(r, l);
    /* Insertion sort: stable and short. */
    for (int i = 1; i < l->count; i++) {
        Term t = l->term[i];
        int depth = depth_of(r, t.atom), j = i;
        for (; j > 0 && depth_of(r, l->term[j - 1].atom) > depth; j--)
            l->term[j] = l->term[j - 1];
        l->term[j] = t;
    }
    const Expr *sum = NULL;
    for (int i = 0; i < l->count; i++) {
        const Expr *t =
            expr_mul_int(r->arena, l->term[i].atom, l->term[i].factor);
        sum = sum ? expr_add(r->arena, sum, t) : t;
    }
    if (!sum)
        return expr_int(r->arena, l->constant);
    return l->constant ? expr_add_int(r->arena, sum, l->constant) : sum;
}

const Expr *simplify_index(const Ranges *r, const Expr *x)
{
    if (x->dtype != DT_I64)
        return x;
    Linear l = {0};
    return linearize(r, x, 1, &l) ? rebuild(r, &l) : x;
}

bool simplify_difference(const Ranges *r, const Expr *x, const Expr *y,
                         int64_t *difference)
{
    const Expr *d = simplify_index(r, expr_sub(r->arena, y, x));
    if (d->kind != EX_INT)
        return false;
    *difference = d->i;
    return true;
}

static const Expr *find_last(const VarLast *vars, int count, const Expr *atom)
{
    for (int i = 0; i < count; i++)
        if (atom->kind == EX_VAR && vars[i].var == atom->var)
            return vars[i].last;
    return NULL;
}

/* Puts something larger that is simpler in place of a term: of a variable its
 * last value or 0, of c * (e / c) e, of -c * (e / c) c - 1 - e. Of quotients
 * that are taken off only where nothing else is left, as they may cancel. */
static bool enlarge_term(const Ranges *r, const VarLast *vars, int count,
                         bool takes_all, Linear *l, bool *ok)
{
    for (int i = 0; i < l->count; i++) {
        Term t = l->term[i];
        const Expr *x = t.atom, *last = find_last(vars, count, x);
        bool is_quotient = x->kind == EX_DIV && x->arg[1]->kind == EX_INT &&
                           x->arg[1]->i > 0 && t.factor % x->arg[1]->i == 0 &&
                           (t.factor > 0 || takes_all);
        if (!last && !is_quotient)
            continue;
        l->term[i] = l->term[--l->count];
        if (last) {
            *ok = t.factor < 0 || linearize(r, last, t.factor, l);
        } else {
            int64_t c = x->arg[1]->i, by = t.factor / c;
            l->constant -= by < 0 ? by * (c - 1) : 0;
            *ok = linearize(r, x->arg[0], by, l);
        }
        return true;
    }
    return false;
}

bool simplify_most(Arena *arena, const Expr *x, const VarLast *vars, int count,
                   int64_t *most)
{
    Ranges none = {.arena = arena};
    Linear l = {0};
    bool ok = linearize(&none, x, 1, &l);
    while (ok && (enlarge_term(&none, vars, count, false, &l, &ok) ||
                  enlarge_term(&none, vars, count, true, &l, &ok)))
        ;
    Interval range = linear_interval(&none, &l);
    *most = range.max;
    return ok && range.known;
}

static Interval hull(Interval a, Interval b)
{
    return (Interval){a.min < b.min ? a.min : b.min,
                      a.max > b.max ? a.max : b.max, a.known && b.known};
}

Interval interval_of(const Ranges *r, const Expr *x)
{
    const Interval unknown = {INT64_MIN, INT64_MAX, false};
    if (x->dtype == DT_BOOL && x->kind != EX_INT)
        return (Interval){0, 1, true};
    switch (x->kind) {
    case EX_INT:
        return (Interval){x->i, x->i, true};
    case EX_VAR:
        for (int i = r->vars.count - 1; i >= 0; i--)
            if (r->vars.data[i].var == x->var)
                return (Interval){0, r->vars.data[i].extent - 1, true};
        return unknown;
    case EX_DIV:
    case EX_MOD: {
        if (x->arg[1]->kind != EX_INT || x->arg[1]->i <= 0)
            return unknown;
        int64_t c = x->arg[1]->i;
        Interval a = interval_of(r, x->arg[0]);
        if (x->kind == EX_MOD) {
            if (a.known && a.min >= 0 && a.max < c)
                return a;
            return (Interval){0, c - 1, true};
        }
        if (!a.known)
            return unknown;
        return (Interval){floor_divide(a.min, c), floor_divide(a.max, c),
                          true};
    }
    case EX_ADD:
    case EX_SUB:
    case EX_MUL: {
        Interval a = interval_of(r, x->arg[0]);
        Interval b = interval_of(r, x->arg[1]);
        /* Far from overflow, or not known at all. */
        const int64_t big = (int64_t)1 << 30;
        if (!a.known || !b.known || a.min < -big || a.max > big ||
            b.min < -big || b.max > big)
            return unknown;
        if (x->kind == EX_ADD)
            return (Interval){a.min + b.min, a.max + b.max, true};
        if (x->kind == EX_SUB)
            return (Interval){a.min - b.max, a.max - b.min, true};
        Interval p = {a.min * b.min, a.min * b.min, true};
        int64_t others[] = {a.min * b.max, a.max * b.min, a.max * b.max};
        for (int i = 0; i < 3; i++)
            p = hull(p, (Interval){others[i], others[i], true});
        return p;
    }
    case EX_MIN:
    case EX_MAX: {
        Interval a = interval_of(r, x->arg[0]);
        Interval b = interval_of(r, x->arg[1]);
        if (!a.known || !b.known)
            return unknown;
        if (x->kind == EX_MIN)
            return (Interval){a.min < b.min ? a.min : b.min,
                              a.max < b.max ? a.max : b.max, true};
        return (Interval){a.min > b.min ? a.min : b.min,
                          a.max > b.max ? a.max : b.max, true};
    }
    case EX_SELECT:
        return hull(interval_of(r, x->arg[1]), interval_of(r, x->arg[2]));
    default:
        return unknown;
    }
}

const Expr *simplify_cond(const Ranges *r, const Expr *x)
{
    Arena *a = r->arena;
    switch (x->kind) {
    case EX_AND:
    case EX_OR:
        if (x->dtype != DT_BOOL)
            return x;
        return expr_binary(a, x->kind, simplify_cond(r, x->arg[0]),
                           simplify_cond(r, x->arg[1]));
    case EX_NOT:
        return expr_unary(a, EX_NOT, simplify_cond(r, x->arg[0]));
    case EX_LT:
    case EX_LE:
    case EX_EQ:
    case EX_NE:
        break;
    default:
        return x;
    }
    if (x->arg[0]->dtype != DT_I64)
        return x;
    const Expr *p = simplify_index(r, x->arg[0]);
    const Expr *q = simplify_index(r, x->arg[1]);
    Interval d = interval_of(r, simplify_index(r, expr_sub(a, q, p)));
    if (d.known) {
        /* q - p lies in [min, max]. */
        bool yes = false, no = false;
        if (x->kind == EX_LT)
            yes = d.min > 0, no = d.max <= 0;
        else if (x->kind == EX_LE)
            yes = d.min >= 0, no = d.max < 0;
        else {
            yes = d.min == 0 && d.max == 0;
            no = d.min > 0 || d.max < 0;
            if (x->kind == EX_NE) {
                bool swap = yes;
                yes = no;
                no = swap;
            }
        }
        if (yes || no)
            return expr_const_int(a, DT_BOOL, yes);
    }
    return expr_binary(a, x->kind, p, q);
}
