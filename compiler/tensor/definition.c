/* Definitions: buffers, the stage builder, reducers, the verifier. */
#include "tensor/definition.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "tensor/half.h"
#include "tensor/ptrmap.h"
#include "tensor/simplify.h"
#include "tensor/text.h"

Definition *definition_new(Arena *arena, const char *name)
{
    Definition *def = ARENA_NEW(arena, Definition);
    def->arena = arena;
    def->name = name;
    return def;
}

/* Words of the text forms, which no buffer may be called. */
static bool is_reserved(const char *name)
{
    static const char *const words[] = {
        "in",       "const",    "out",      "temp",    "stage", "sum",
        "prod",     "max",      "min",      "inf",     "nan",   "for",
        "parallel", "vector",   "unrolled", "if",      "local", "register",
        "shared",   "prefetch", "limit",    "extents", NULL,
    };
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], name) == 0)
            return true;
    for (int k = EX_NEG; k < EX_KIND_COUNT; k++)
        if (strcmp(expr_kind_name((ExprKind)k), name) == 0)
            return true;
    return dtype_parse(name) != DT_INVALID || strncmp(name, "bits_", 5) == 0;
}

static bool is_taken(const Definition *def, const char *name)
{
    for (int i = 0; i < def->buffers.count; i++)
        if (strcmp(def->buffers.data[i]->name, name) == 0)
            return true;
    return is_reserved(name);
}

/* An identifier close to `name` that nothing else uses. */
static const char *unique_name(Definition *def, const char *name)
{
    char *id = arena_strdup(def->arena, name && *name ? name : "t");
    for (char *p = id; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '_')
            *p = '_';
    if (isdigit((unsigned char)id[0]))
        id = arena_printf(def->arena, "t%s", id);
    const char *base = id;
    for (int n = 2; is_taken(def, id); n++)
        id = arena_printf(def->arena, "%s_%d", base, n);
    return id;
}

Buffer *definition_add_buffer(Definition *def, const char *name,
                              BufferRole role, DType dtype, int rank,
                              const int64_t *dims)
{
    Buffer *b = ARENA_NEW(def->arena, Buffer);
    b->name = unique_name(def, name);
    b->role = role;
    b->dtype = dtype;
    b->rank = rank;
    for (int i = 0; i < rank; i++)
        b->dims[i] = dims[i];
    b->layout = layout_row_major(rank);
    vec_push(def->arena, &def->buffers, b);
    return b;
}

static const Var *new_var(Arena *a, const char *name)
{
    Var *var = ARENA_NEW(a, Var);
    var->name = arena_strdup(a, name);
    return var;
}

static bool has_axis(const Stage *s, const char *name)
{
    for (int i = 0; i < s->axis_count; i++)
        if (strcmp(s->axis[i].var->name, name) == 0)
            return true;
    for (int i = 0; i < s->reduce_count; i++)
        if (strcmp(s->reduce[i].var->name, name) == 0)
            return true;
    return false;
}

void stage_begin(StageBuilder *b, Definition *def, Buffer *out)
{
    /* Names for people: as of matrices, and of images for four axes. */
    static const char *const names[5][MAX_RANK] = {
        {"i"}, {"i"}, {"i", "j"}, {"i", "j", "l"}, {"n", "o", "h", "w"},
    };
    memset(b, 0, sizeof *b);
    b->def = def;
    b->arena = def->arena;
    Stage *s = ARENA_NEW(def->arena, Stage);
    b->stage = s;
    s->name = out->name;
    s->axis_count = out->rank;
    s->out[0] = out;
    s->value_count = 1;
    for (int i = 0; i < out->rank; i++) {
        s->axis[i].var =
            out->rank <= 4
                ? new_var(b->arena, names[out->rank][i])
                : new_var(b->arena, arena_printf(b->arena, "i%d", i));
        s->axis[i].extent = out->dims[i];
        s->axis[i].limit = out->limit[i];
        b->index[i] = expr_var(b->arena, s->axis[i].var);
    }
}

const Expr *stage_reduce(StageBuilder *b, int64_t extent, const char *name)
{
    Stage *s = b->stage;
    if (s->reduce_count == MAX_RANK)
        die("stage %s has too many reduction axes", s->name);
    /* Names must differ within a stage, as the printed form is read back. */
    while (has_axis(s, name))
        name = arena_printf(b->arena, "%s_r", name);
    Axis *axis = &s->reduce[s->reduce_count++];
    axis->var = new_var(b->arena, name);
    axis->extent = extent;
    return expr_var(b->arena, axis->var);
}

const Expr *stage_reduce_over(StageBuilder *b, const Buffer *buffer, int axis,
                              const char *name)
{
    const Expr *k = stage_reduce(b, buffer->dims[axis], name);
    b->stage->reduce[b->stage->reduce_count - 1].limit = buffer->limit[axis];
    return k;
}

const Expr *buffer_extent(Arena *arena, const Buffer *b, int axis)
{
    return b->limit[axis] ? b->limit[axis] : expr_int(arena, b->dims[axis]);
}

/* The limit of a dimension that `x` reads with the plain index `var`. What a
 * selection or a padded read guards says nothing of the axis as a whole. */
static const Expr *limit_of_reads(PtrMap *seen, const Expr *x, const Var *var)
{
    const Expr *limit = NULL;
    if (x->kind == EX_SELECT || ptrmap_get(seen, x))
        return NULL;
    ptrmap_set(seen, x, x);
    for (int i = 0; i < x->count && !limit; i++) {
        bool is_plain = x->kind == EX_READ && !x->outside &&
                        x->arg[i]->kind == EX_VAR && x->arg[i]->var == var;
        limit = is_plain ? x->buffer->limit[i]
                         : limit_of_reads(seen, x->arg[i], var);
    }
    return limit;
}

static const Expr *find_limit(const Stage *s, const Var *var)
{
    const Expr *limit = NULL;
    for (int k = 0; k < s->value_count && !limit; k++) {
        PtrMap seen = {0};
        limit = limit_of_reads(&seen, s->value[k], var);
        ptrmap_free(&seen);
    }
    return limit;
}

/* The stage is complete but for its limits. */
static void end(StageBuilder *b)
{
    Stage *s = b->stage;
    for (int i = 0; i < s->reduce_count; i++)
        if (!s->reduce[i].limit)
            s->reduce[i].limit = find_limit(s, s->reduce[i].var);
    for (int i = 0; i < s->axis_count; i++) {
        if (!s->out[0]->is_inner || s->axis[i].limit)
            continue;
        s->axis[i].limit = find_limit(s, s->axis[i].var);
        for (int k = 0; k < s->value_count; k++)
            if (s->out[k]->is_inner)
                s->out[k]->limit[i] = s->axis[i].limit;
    }
    vec_push(b->arena, &b->def->stages, s);
}

void stage_end(StageBuilder *b, const Expr *value)
{
    Stage *s = b->stage;
    if (value->dtype != s->out[0]->dtype)
        die("stage %s: value of type %s for a buffer of type %s", s->name,
            dtype_name(value->dtype), dtype_name(s->out[0]->dtype));
    s->value[0] = value;
    end(b);
}

/* As f32; a product of two such numbers is exact then. */
static const Expr *widened(Arena *a, const Expr *x)
{
    return x->kind == EX_MUL ? expr_mul(a, expr_cast(a, DT_F32, x->arg[0]),
                                        expr_cast(a, DT_F32, x->arg[1]))
                             : expr_cast(a, DT_F32, x);
}

/* Many numbers of few digits are summed in more: f32, rounded once at the
 * end by a stage of its own. */
static void end_reduce_wide(StageBuilder *b, const char *name,
                            const Expr *value)
{
    Stage *s = b->stage;
    Buffer *out = s->out[0];
    Buffer *sum = definition_add_buffer(
        b->def, arena_printf(b->arena, "%s.sum", out->name), BUF_TEMP, DT_F32,
        out->rank, out->dims);
    memcpy(sum->limit, out->limit, sizeof sum->limit);
    sum->is_inner = out->is_inner;
    s->name = sum->name;
    s->out[0] = sum;
    stage_end_reduce(b, name, widened(b->arena, value));
    stage_begin(b, b->def, out);
    const Expr *total = expr_read(b->arena, sum, b->index);
    stage_end(b, expr_cast(b->arena, out->dtype, total));
}

void stage_end_reduce(StageBuilder *b, const char *name, const Expr *value)
{
    bool adds = !strcmp(name, "sum") || !strcmp(name, "prod");
    if (adds && dtype_is_half(value->dtype)) {
        end_reduce_wide(b, name, value);
        return;
    }
    b->stage->reducer = reducer_simple(b->arena, name, value->dtype);
    stage_end(b, value);
}

void stage_end_tuple(StageBuilder *b, const Reducer *reducer,
                     Buffer *const *out, const Expr *const *value)
{
    Stage *s = b->stage;
    s->reducer = reducer;
    s->value_count = reducer->count;
    for (int i = 0; i < reducer->count; i++) {
        s->out[i] = out[i];
        s->value[i] = value[i];
        if (value[i]->dtype != out[i]->dtype)
            die("stage %s: value %d has another type than its buffer", s->name,
                i);
    }
    end(b);
}

/* What loses against every element: where max (or min, with want_max)
 * starts. */
static const Expr *lowest(Arena *a, DType dtype, bool want_max)
{
    if (dtype_is_float(dtype))
        return expr_const(a, dtype, want_max ? INFINITY : -INFINITY);
    return expr_const_int(a, dtype, dtype_int_bound(dtype, want_max));
}

/* Operand `i` as an expression, for `combine`. */
static const Expr *reducer_operand(Arena *a, const Reducer *r, int i,
                                   bool is_rhs)
{
    /* Operands keep their element type, unlike loop variables. */
    Expr *x = ARENA_NEW(a, Expr);
    x->kind = EX_VAR;
    x->dtype = r->dtype[i];
    x->var = is_rhs ? r->rhs[i] : r->lhs[i];
    return x;
}

static const Expr *reducer_value_pair(Arena *a, const Reducer *r, int i,
                                      ExprKind kind)
{
    return expr_binary(a, kind, reducer_operand(a, r, i, false),
                       reducer_operand(a, r, i, true));
}

const Reducer *reducer_simple(Arena *a, const char *name, DType dtype)
{
    static const struct {
        const char *name;
        ExprKind kind;
    } rows[] = {
        {"sum", EX_ADD}, {"prod", EX_MUL}, {"max", EX_MAX}, {"min", EX_MIN}};
    Reducer *r = ARENA_NEW(a, Reducer);
    r->count = 1;
    r->lhs[0] = new_var(a, "lhs");
    r->rhs[0] = new_var(a, "rhs");
    r->dtype[0] = dtype;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].name, name))
            continue;
        r->name = rows[i].name;
        r->combine[0] = reducer_value_pair(a, r, 0, rows[i].kind);
        r->start[0] = i == 0   ? expr_const(a, dtype, 0)
                      : i == 1 ? expr_const(a, dtype, 1)
                               : lowest(a, dtype, i == 3);
        return r;
    }
    die("no reducer is called %s", name);
}

const Reducer *reducer_arg(Arena *a, DType value, bool is_max,
                           bool select_last)
{
    Reducer *r = ARENA_NEW(a, Reducer);
    r->name = arena_printf(a, "arg_%s_%s", is_max ? "max" : "min",
                           select_last ? "last" : "first");
    r->count = 2;
    r->dtype[0] = value;
    r->dtype[1] = DT_I64;
    static const char *const lhs[] = {"lhs", "lhs_at"};
    static const char *const rhs[] = {"rhs", "rhs_at"};
    for (int i = 0; i < 2; i++) {
        r->lhs[i] = new_var(a, lhs[i]);
        r->rhs[i] = new_var(a, rhs[i]);
    }
    const Expr *lv = reducer_operand(a, r, 0, false);
    const Expr *rv = reducer_operand(a, r, 0, true);
    const Expr *li = reducer_operand(a, r, 1, false);
    const Expr *ri = reducer_operand(a, r, 1, true);
    /* The start has index -1, which any real element replaces. */
    const Expr *better =
        expr_binary(a, EX_LT, is_max ? lv : rv, is_max ? rv : lv);
    const Expr *first = expr_binary(a, EX_LT, li, expr_int(a, 0));
    const Expr *equal = expr_binary(a, EX_EQ, lv, rv);
    const Expr *wins_tie = select_last ? expr_binary(a, EX_LT, li, ri)
                                       : expr_binary(a, EX_LT, ri, li);
    /* Partial results that saw no element yet lose, on this side, too. */
    const Expr *real = expr_binary(a, EX_LE, expr_int(a, 0), ri);
    const Expr *take = expr_binary(
        a, EX_AND, real,
        expr_binary(a, EX_OR, first,
                    expr_binary(a, EX_OR, better,
                                expr_binary(a, EX_AND, equal, wins_tie))));
    r->combine[0] = expr_select(a, take, rv, lv);
    r->combine[1] = expr_select(a, take, ri, li);
    r->start[0] = lowest(a, value, !is_max);
    r->start[1] = expr_int(a, -1);
    return r;
}

Buffer *definition_find_buffer(const Definition *def, const char *name)
{
    for (int i = 0; i < def->buffers.count; i++)
        if (strcmp(def->buffers.data[i]->name, name) == 0)
            return def->buffers.data[i];
    return NULL;
}

static void add_last(Arena *arena, const Axis *axis, int count, VarLast *vars)
{
    for (int i = 0; i < count; i++) {
        const Expr *end =
            axis[i].limit ? axis[i].limit : expr_int(arena, axis[i].extent);
        vars[i] = (VarLast){axis[i].var, expr_add_int(arena, end, -1)};
    }
}

bool stage_read_excess(Arena *arena, const Stage *stage, const Expr *read,
                       int axis, int64_t *excess)
{
    VarLast vars[2 * MAX_RANK];
    int n = stage->axis_count;
    const Expr *end = buffer_extent(arena, read->buffer, axis);
    add_last(arena, stage->axis, n, vars);
    add_last(arena, stage->reduce, stage->reduce_count, vars + n);
    const Expr *past =
        expr_add_int(arena, expr_sub(arena, read->arg[axis], end), 1);
    return simplify_most(arena, past, vars, n + stage->reduce_count, excess);
}

bool definition_has_limits(const Definition *def)
{
    for (int i = 0; i < def->stages.count; i++) {
        const Stage *s = def->stages.data[i];
        for (int k = 0; k < s->axis_count; k++)
            if (s->axis[k].limit)
                return true;
        for (int k = 0; k < s->reduce_count; k++)
            if (s->reduce[k].limit)
                return true;
    }
    return false;
}

Stage *definition_producer(const Definition *def, const Buffer *buffer)
{
    for (int i = 0; i < def->stages.count; i++) {
        Stage *s = def->stages.data[i];
        for (int k = 0; k < s->value_count; k++)
            if (s->out[k] == buffer)
                return s;
    }
    return NULL;
}

/* Floating operations of one evaluation of `x`, index arithmetic aside. */
static double expr_flops(const Expr *x)
{
    if (x->kind == EX_READ || x->kind == EX_LOAD)
        return 0;
    double n = x->kind >= EX_NEG && dtype_is_float(x->dtype) ? 1 : 0;
    /* Moving and choosing is not counted as work, as usual for models. */
    if (x->kind == EX_CAST || x->kind == EX_BITCAST || x->kind == EX_SELECT)
        n = 0;
    for (int i = 0; i < x->count; i++)
        n += expr_flops(x->arg[i]);
    return n;
}

static double stage_points(const Stage *s)
{
    double points = 1;
    for (int k = 0; k < s->axis_count; k++)
        points *= (double)s->axis[k].extent;
    for (int k = 0; k < s->reduce_count; k++)
        points *= (double)s->reduce[k].extent;
    return points;
}

double definition_flops(const Definition *def)
{
    double total = 0;
    for (int i = 0; i < def->stages.count; i++) {
        const Stage *s = def->stages.data[i];
        double flops = 0;
        for (int k = 0; k < s->value_count; k++) {
            flops += expr_flops(s->value[k]);
            if (s->reducer && dtype_is_float(s->reducer->dtype[k]))
                flops += 1;
        }
        total += stage_points(s) * flops;
    }
    return total;
}

/* How often one evaluation of `x` reads the buffer. */
static double expr_reads(const Expr *x, const Buffer *buffer)
{
    double n = x->kind == EX_READ && x->buffer == buffer;
    for (int i = 0; i < x->count; i++)
        n += expr_reads(x->arg[i], buffer);
    return n;
}

double definition_bytes(const Definition *def)
{
    double total = 0;
    for (int i = 0; i < def->buffers.count; i++) {
        const Buffer *b = def->buffers.data[i];
        if (b->role == BUF_TEMP)
            continue;
        double elements = 1, reads = 0;
        for (int d = 0; d < b->rank; d++)
            elements *= (double)b->dims[d];
        for (int k = 0; k < def->stages.count; k++) {
            const Stage *s = def->stages.data[k];
            for (int v = 0; v < s->value_count; v++)
                reads += stage_points(s) * expr_reads(s->value[v], b);
        }
        /* A lookup reads a few rows of a large table. */
        if (b->role == BUF_INPUT && reads < elements)
            elements = reads;
        total += elements * (double)dtype_size(b->dtype);
    }
    return total;
}

static void verify_reads(const Definition *def, const Stage *s, int upto,
                         const Expr *x)
{
    if (x->kind == EX_READ) {
        const Buffer *b = x->buffer;
        if (x->count != b->rank)
            die("stage %s reads %s with %d indices", s->name, b->name,
                x->count);
        if (definition_find_buffer(def, b->name) != b)
            die("stage %s reads %s, which is not a buffer of it", s->name,
                b->name);
        bool produced = b->role == BUF_INPUT;
        for (int i = 0; i < upto && !produced; i++)
            for (int k = 0; k < def->stages.data[i]->value_count; k++)
                produced |= def->stages.data[i]->out[k] == b;
        if (!produced)
            die("stage %s reads %s before a stage wrote it", s->name, b->name);
    }
    if (x->kind == EX_LOAD)
        die("stage %s holds a load; definitions read", s->name);
    for (int i = 0; i < x->count; i++)
        verify_reads(def, s, upto, x->arg[i]);
}

/* An i64 expression of nothing but numbers that the runtime knows. */
static void verify_limit(const Definition *def, const Expr *x)
{
    if (!x)
        return;
    if (x->dtype != DT_I64 || x->kind == EX_VAR ||
        (x->kind == EX_READ &&
         (!x->buffer->is_extents || x->arg[0]->kind != EX_INT ||
          definition_find_buffer(def, x->buffer->name) != x->buffer)))
        die("definition %s: an extent that is not made of the run's extents",
            def->name);
    for (int i = 0; i < x->count && x->kind != EX_READ; i++)
        verify_limit(def, x->arg[i]);
}

void definition_verify(const Definition *def)
{
    for (int i = 0; i < def->buffers.count; i++)
        for (int d = 0; d < def->buffers.data[i]->rank; d++)
            verify_limit(def, def->buffers.data[i]->limit[d]);
    for (int i = 0; i < def->stages.count; i++) {
        const Stage *s = def->stages.data[i];
        for (int k = 0; k < s->axis_count; k++)
            verify_limit(def, s->axis[k].limit);
        for (int k = 0; k < s->reduce_count; k++)
            verify_limit(def, s->reduce[k].limit);
        if ((s->reducer != NULL) != (s->reduce_count > 0))
            die("stage %s: reduction axes and reducer disagree", s->name);
        for (int k = 0; k < s->value_count; k++) {
            if (s->out[k]->rank != s->axis_count)
                die("stage %s: rank of %s", s->name, s->out[k]->name);
            verify_reads(def, s, i, s->value[k]);
        }
    }
    for (int i = 0; i < def->buffers.count; i++) {
        const Buffer *b = def->buffers.data[i];
        if (b->role != BUF_INPUT && !definition_producer(def, b))
            die("no stage writes %s of %s", b->name, def->name);
    }
}

static void print_axes(Str *out, const Axis *axis, int count)
{
    str_add(out, "[");
    for (int i = 0; i < count; i++) {
        str_addf(out, "%s%s:%lld", i ? ", " : "", axis[i].var->name,
                 (long long)axis[i].extent);
        if (axis[i].limit) {
            str_add(out, " limit ");
            expr_print(out, axis[i].limit);
        }
    }
    str_add(out, "]");
}

void definition_print(Str *out, const Definition *def)
{
    str_addf(out, "definition %s {\n", def->name);
    for (int i = 0; i < def->buffers.count; i++)
        buffer_print_limits(out, def->buffers.data[i]);
    for (int i = 0; i < def->stages.count; i++) {
        const Stage *s = def->stages.data[i];
        str_add(out, "  stage ");
        for (int k = 0; k < s->value_count; k++)
            str_addf(out, "%s%s", k ? " " : "", s->out[k]->name);
        print_axes(out, s->axis, s->axis_count);
        if (s->reducer) {
            str_addf(out, " %s", s->reducer->name);
            print_axes(out, s->reduce, s->reduce_count);
        }
        for (int k = 0; k < s->value_count; k++) {
            str_add(out, k ? " ; " : " = ");
            expr_print(out, s->value[k]);
        }
        str_add(out, "\n");
    }
    str_add(out, "}\n");
}
