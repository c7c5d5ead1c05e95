/* Extents. Constants are folded and a few forms are brought to one (constants
 * gather at the right end of sums and products), which is enough for equal
 * shapes to compare equal: no general algebra. Bounds saturate instead of
 * wrapping. */
#include "graph/extent.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"

Extent extent_const(int64_t value)
{
    return (Extent){.value = value};
}

bool extent_is_const(Extent extent)
{
    return !extent.expr;
}

Extent extent_named(Arena *arena, const char *name, int64_t upper)
{
    return extent_ranged(arena, name, 0, upper);
}

Extent extent_ranged(Arena *arena, const char *name, int64_t lower,
                     int64_t upper)
{
    DimExpr *expr = ARENA_NEW(arena, DimExpr);
    expr->kind = DIM_NAME;
    expr->name = arena_strdup(arena, name);
    expr->value = lower;
    return (Extent){upper, expr};
}

/* Of constants; saturating, as bounds do. */
static Extent sum(int64_t a, int64_t b)
{
    int64_t value;
    if (__builtin_add_overflow(a, b, &value))
        value = a < 0 ? INT64_MIN : INT64_MAX;
    return extent_const(value);
}

static Extent minus(int64_t a, int64_t b)
{
    int64_t value;
    if (__builtin_sub_overflow(a, b, &value))
        value = a < 0 ? INT64_MIN : INT64_MAX;
    return extent_const(value);
}

/* The constant result, or the upper bound of one. Extents are not
 * negative, so a bound of the left side bounds a difference or quotient.
 * Saturates: an absurd size is refused where it is used. */
static int64_t bound(DimKind kind, Extent a, Extent b)
{
    int64_t value;
    bool exact = !a.expr && !b.expr;
    switch (kind) {
    case DIM_ADD:
        if (!exact && (a.value < 0 || b.value < 0))
            return -1;
        return sum(a.value, b.value).value;
    case DIM_SUB:
        if (!exact && a.value < 0)
            return -1;
        return b.expr ? a.value : minus(a.value, b.value).value;
    case DIM_MUL:
        if (!exact && (a.value < 0 || b.value < 0))
            return -1;
        if (!__builtin_mul_overflow(a.value, b.value, &value))
            return value;
        return (a.value < 0) == (b.value < 0) ? INT64_MAX : INT64_MIN;
    case DIM_DIV:
        if (!exact && a.value < 0)
            return -1;
        if (b.expr)
            return a.value;
        /* C truncates; floor for a negative left side. */
        return a.value / b.value - (a.value % b.value < 0);
    case DIM_MIN:
        if (!exact && (a.value < 0 || b.value < 0))
            return a.value < 0 ? b.value : a.value;
        return a.value < b.value ? a.value : b.value;
    case DIM_MAX:
        if (!exact && ((a.expr && a.value < 0) || (b.expr && b.value < 0)))
            return -1;
        return a.value > b.value ? a.value : b.value;
    case DIM_CONST:
    case DIM_NAME:
        break;
    }
    die("not an operation on extents: %d", (int)kind);
}

/* The one place where an expression node is made: everything above it is
 * simplification. */
static Extent make(Arena *arena, DimKind kind, Extent a, Extent b)
{
    if (kind == DIM_DIV && !b.expr && b.value <= 0)
        die("an extent divided by %lld", (long long)b.value);
    Extent result = {bound(kind, a, b), NULL};
    if (!a.expr && !b.expr)
        return result;
    DimExpr *expr = ARENA_NEW(arena, DimExpr);
    expr->kind = kind;
    expr->a = a;
    expr->b = b;
    result.expr = expr;
    return result;
}

static bool is_const(Extent extent, int64_t value)
{
    return !extent.expr && extent.value == value;
}

Extent extent_add(Arena *arena, Extent a, Extent b)
{
    if (is_const(a, 0))
        return b;
    if (is_const(b, 0))
        return a;
    /* Constants gather at the right end: (N + 1) + 2 is N + 3. */
    if (b.expr && !a.expr)
        return extent_add(arena, b, a);
    if (!b.expr && a.expr && a.expr->kind == DIM_ADD && !a.expr->b.expr)
        return extent_add(arena, a.expr->a, sum(a.expr->b.value, b.value));
    if (!b.expr && a.expr && b.value < 0)
        return extent_sub(arena, a, minus(0, b.value));
    return make(arena, DIM_ADD, a, b);
}

Extent extent_sub(Arena *arena, Extent a, Extent b)
{
    if (is_const(b, 0))
        return a;
    if (extent_equal(a, b))
        return extent_const(0);
    if (!b.expr && a.expr && a.expr->kind == DIM_SUB && !a.expr->b.expr)
        return extent_sub(arena, a.expr->a, sum(a.expr->b.value, b.value));
    if (!b.expr && a.expr && a.expr->kind == DIM_ADD && !a.expr->b.expr)
        return extent_add(arena, a.expr->a, minus(a.expr->b.value, b.value));
    return make(arena, DIM_SUB, a, b);
}

Extent extent_mul(Arena *arena, Extent a, Extent b)
{
    if (is_const(a, 0) || is_const(b, 1))
        return a;
    if (is_const(b, 0) || is_const(a, 1))
        return b;
    if (b.expr && !a.expr)
        return extent_mul(arena, b, a);
    if (!b.expr && a.expr && a.expr->kind == DIM_MUL && !a.expr->b.expr)
        return extent_mul(arena, a.expr->a, extent_mul(arena, a.expr->b, b));
    return make(arena, DIM_MUL, a, b);
}

Extent extent_div(Arena *arena, Extent a, Extent b)
{
    if (is_const(b, 1))
        return a;
    if (a.expr && extent_equal(a, b))
        return extent_const(1);
    /* (N * 6) / 3 is N * 2. */
    if (!b.expr && a.expr && a.expr->kind == DIM_MUL && !a.expr->b.expr &&
        b.value > 0 && a.expr->b.value % b.value == 0)
        return extent_mul(arena, a.expr->a,
                          extent_const(a.expr->b.value / b.value));
    return make(arena, DIM_DIV, a, b);
}

/* a - b when that is a number: both are the same but for what is added. */
static bool difference(Extent a, Extent b, int64_t *result)
{
    Extent part[2] = {a, b};
    int64_t added[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        const DimExpr *e = part[i].expr;
        if (!e) {
            added[i] = part[i].value;
            part[i] = extent_const(0);
        } else if ((e->kind == DIM_ADD || e->kind == DIM_SUB) && !e->b.expr) {
            added[i] =
                e->kind == DIM_ADD ? e->b.value : minus(0, e->b.value).value;
            part[i] = e->a;
        }
    }
    *result = minus(added[0], added[1]).value;
    return extent_equal(part[0], part[1]);
}

int64_t extent_lower(Extent extent)
{
    const DimExpr *e = extent.expr;
    if (!e)
        return extent.value;
    if (e->kind == DIM_NAME)
        return e->value;
    int64_t a = extent_lower(e->a), b = extent_lower(e->b), value;
    switch (e->kind) {
    case DIM_ADD:
        return __builtin_add_overflow(a, b, &value) ? INT64_MIN : value;
    case DIM_SUB:
        if (e->b.expr && e->b.value < 0)
            return INT64_MIN;
        return __builtin_sub_overflow(a, e->b.value, &value) ? INT64_MIN
                                                             : value;
    case DIM_MUL:
        /* The other signs do not come up. */
        if (a < 0 || b < 0)
            return INT64_MIN;
        return __builtin_mul_overflow(a, b, &value) ? INT64_MAX : value;
    case DIM_DIV:
        if (e->b.value <= 0)
            return a < 0 ? INT64_MIN : 0;
        return a / e->b.value - (a % e->b.value < 0);
    case DIM_MIN:
        return a < b ? a : b;
    case DIM_MAX:
        return a > b ? a : b;
    default:
        return INT64_MIN;
    }
}

/* a <= b for all values of the names. */
static bool never_above(Extent a, Extent b)
{
    int64_t d;
    if (difference(a, b, &d))
        return d <= 0;
    return (!a.expr || a.value >= 0) && a.value <= extent_lower(b);
}

Extent extent_min(Arena *arena, Extent a, Extent b)
{
    if (never_above(a, b))
        return a;
    return never_above(b, a) ? b : make(arena, DIM_MIN, a, b);
}

Extent extent_max(Arena *arena, Extent a, Extent b)
{
    if (never_above(a, b))
        return b;
    return never_above(b, a) ? a : make(arena, DIM_MAX, a, b);
}

static int64_t combine(DimKind kind, int64_t a, int64_t b)
{
    return bound(kind, extent_const(a), extent_const(b));
}

int64_t extent_evaluate(Extent extent, const ExtentValue *values, int count)
{
    const DimExpr *e = extent.expr;
    if (!e)
        return extent.value;
    if (e->kind == DIM_NAME) {
        for (int i = 0; i < count; i++)
            if (strcmp(values[i].name, e->name) == 0)
                return values[i].value;
        return extent.value;
    }
    int64_t a = extent_evaluate(e->a, values, count);
    int64_t b = extent_evaluate(e->b, values, count);
    /* Where a name is 0; what was divided is 0 as well. */
    if (e->kind == DIM_DIV && b <= 0)
        return 0;
    return combine(e->kind, a, b);
}

Extent extent_rebind(Arena *arena, Extent extent, const Extent *names,
                     int count)
{
    const DimExpr *e = extent.expr;
    if (!e)
        return extent;
    if (e->kind == DIM_NAME) {
        for (int i = 0; i < count; i++)
            if (strcmp(names[i].expr->name, e->name) == 0)
                return names[i];
        return extent;
    }
    return make(arena, e->kind, extent_rebind(arena, e->a, names, count),
                extent_rebind(arena, e->b, names, count));
}

/* Bounds do not count: N<=8 and N are the same extent, known to different
 * degrees. */
bool extent_equal(Extent a, Extent b)
{
    if (!a.expr || !b.expr)
        return !a.expr && !b.expr && a.value == b.value;
    if (a.expr == b.expr)
        return true;
    if (a.expr->kind != b.expr->kind)
        return false;
    if (a.expr->kind == DIM_NAME)
        return strcmp(a.expr->name, b.expr->name) == 0;
    return extent_equal(a.expr->a, b.expr->a) &&
           extent_equal(a.expr->b, b.expr->b);
}

/* ONNX allows any text as the name of a dimension; those that are not plain
 * words print in quotes. */
static bool is_name_start(char c)
{
    return isalpha((unsigned char)c) || c == '_';
}

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

static bool is_plain_name(const char *name)
{
    if (!is_name_start(*name))
        return false;
    while (is_name_char(*name))
        name++;
    return !*name;
}

/* Always in parentheses: the text parses back without precedence. */
static void print(Str *out, Extent extent, bool bounds)
{
    const DimExpr *expr = extent.expr;
    if (!expr) {
        str_addf(out, "%lld", (long long)extent.value);
        return;
    }
    if (expr->kind == DIM_NAME) {
        bounds = bounds && extent.value >= 0;
        if (bounds && expr->value > 0)
            str_addf(out, "%lld<=", (long long)expr->value);
        if (is_plain_name(expr->name))
            str_add(out, expr->name);
        else
            str_add_quoted(out, expr->name);
        if (bounds)
            str_addf(out, "<=%lld", (long long)extent.value);
        return;
    }
    static const char *const words[] = {
        [DIM_ADD] = "+", [DIM_SUB] = "-", [DIM_MUL] = "*",
        [DIM_DIV] = "/", [DIM_MIN] = ",", [DIM_MAX] = ",",
    };
    str_add(out, expr->kind == DIM_MIN   ? "min("
                 : expr->kind == DIM_MAX ? "max("
                                         : "(");
    print(out, expr->a, bounds);
    str_add(out, words[expr->kind]);
    print(out, expr->b, bounds);
    str_add(out, ")");
}

void extent_print(Str *out, Extent extent)
{
    print(out, extent, true);
}

void extent_print_plain(Str *out, Extent extent)
{
    print(out, extent, false);
}

static bool parse_number(const char **text, int64_t *value)
{
    char *end;
    const char *digits = **text == '-' ? *text + 1 : *text;
    if (!isdigit((unsigned char)*digits))
        return false;
    errno = 0;
    *value = strtoll(*text, &end, 10);
    *text = end;
    return errno == 0;
}

/* A name may carry its upper bound, "N<=8". */
static bool parse_name(Arena *arena, const char **text, int64_t lower,
                       Extent *extent)
{
    const char *at = *text;
    Str name = {0};
    int64_t upper = -1;
    bool ok = true;
    if (*at == '"') {
        ok = str_scan_quoted(&name, &at);
    } else {
        while (is_name_char(*at))
            at++;
        str_add_bytes(&name, *text, (size_t)(at - *text));
    }
    if (ok && at[0] == '<' && at[1] == '=') {
        at += 2;
        ok = parse_number(&at, &upper) && upper >= 0;
    }
    if (ok) {
        *extent = extent_ranged(arena, str_text(&name), lower, upper);
        *text = at;
    }
    str_free(&name);
    return ok;
}

/* Parentheses nest as deep as the printer made them; the limit keeps
 * malformed text from exhausting the stack. */
static bool parse(Arena *arena, const char **text, Extent *extent, int depth)
{
    const char *at = *text;
    bool is_min = strncmp(at, "min(", 4) == 0;
    bool is_max = strncmp(at, "max(", 4) == 0;
    if (is_min || is_max)
        at += 3;
    else if (*at == '"' || is_name_start(*at))
        return parse_name(arena, text, 0, extent);
    if (*at != '(') {
        int64_t value;
        if (!parse_number(&at, &value))
            return false;
        if (at[0] == '<' && at[1] == '=') {
            at += 2;
            bool ok = (*at == '"' || is_name_start(*at)) &&
                      parse_name(arena, &at, value, extent);
            *text = at;
            return ok && extent->value >= value;
        }
        *extent = extent_const(value);
        *text = at;
        return true;
    }
    Extent a, b;
    at++;
    if (depth > 1000 || !parse(arena, &at, &a, depth + 1))
        return false;
    char op = *at ? *at++ : 0;
    if (!parse(arena, &at, &b, depth + 1) || *at++ != ')')
        return false;
    if (is_min || is_max) {
        if (op != ',')
            return false;
        *extent = make(arena, is_min ? DIM_MIN : DIM_MAX, a, b);
    } else if (op == '+')
        *extent = make(arena, DIM_ADD, a, b);
    else if (op == '-')
        *extent = make(arena, DIM_SUB, a, b);
    else if (op == '*')
        *extent = make(arena, DIM_MUL, a, b);
    else if (op == '/' && (b.expr || b.value > 0))
        *extent = make(arena, DIM_DIV, a, b);
    else
        return false;
    *text = at;
    return true;
}

bool extent_parse(Arena *arena, const char **text, Extent *extent)
{
    return parse(arena, text, extent, 0);
}
