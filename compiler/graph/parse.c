/* Reads the text form that print.c writes. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

typedef struct Parser {
    Arena *arena;
    Diag *diag;
    const OpTable *ops;
    Graph *g;
    const char *at, *end;
    int line;
    Str word; /* scratch */
    bool failed;
} Parser;

/* Reports the first fault only: what follows it makes no sense. */
static bool fail(Parser *p, const char *what)
{
    if (!p->failed)
        diag_error(p->diag, "line %d: expected %s, found \"%.20s\"", p->line,
                   what, p->at);
    p->failed = true;
    return false;
}

static bool fail_name(Parser *p, const char *what, const char *name)
{
    if (!p->failed)
        diag_error(p->diag, "line %d: %s \"%s\"", p->line, what, name);
    p->failed = true;
    return false;
}

static void skip_blanks(Parser *p)
{
    while (*p->at == ' ')
        p->at++;
}

/* Takes `text` if it comes next. */
static bool accept(Parser *p, const char *text)
{
    skip_blanks(p);
    size_t length = strlen(text);
    if (strncmp(p->at, text, length) != 0)
        return false;
    p->at += length;
    return true;
}

static bool expect(Parser *p, const char *text)
{
    return accept(p, text) || fail(p, text);
}

/* What print.c leaves unquoted. */
static bool is_word_char(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("_./-", c));
}

/* A bare word equal to `text`, not merely starting with it. */
static bool accept_word(Parser *p, const char *text)
{
    skip_blanks(p);
    size_t length = strlen(text);
    if (strncmp(p->at, text, length) != 0 || is_word_char(p->at[length]))
        return false;
    p->at += length;
    return true;
}

/* A name, copied to the arena; NULL after reporting. */
static const char *parse_name(Parser *p)
{
    skip_blanks(p);
    p->word.length = 0;
    if (*p->at == '"') {
        str_add(&p->word, "");
        if (!str_scan_quoted(&p->word, &p->at)) {
            fail(p, "a closing quote");
            return NULL;
        }
    } else {
        const char *start = p->at;
        while (is_word_char(*p->at))
            p->at++;
        if (p->at == start) {
            fail(p, "a name");
            return NULL;
        }
        str_add_bytes(&p->word, start, (size_t)(p->at - start));
    }
    return arena_strndup(p->arena, p->word.data, p->word.length);
}

/* Range errors are faults: a wrapped number would be another one. */
static bool parse_int(Parser *p, int64_t *value)
{
    char *end;
    skip_blanks(p);
    errno = 0;
    *value = strtoll(p->at, &end, 10);
    if (end == p->at || errno)
        return fail(p, "an integer");
    p->at = end;
    return true;
}

/* Reads what str_add_double writes, inf and nan included. */
static bool parse_double(Parser *p, double *value)
{
    char *end;
    skip_blanks(p);
    *value = strtod(p->at, &end);
    if (end == p->at)
        return fail(p, "a number");
    p->at = end;
    return true;
}

/* By way of a double only where the type is no wider. */
static bool parse_element(Parser *p, Array *array, int64_t index)
{
    if (array->dtype == DT_STRING) {
        const char *text = parse_name(p);
        ((const char **)array->data)[index] = text;
        return text != NULL;
    }
    if (array->dtype == DT_U64) {
        char *end;
        skip_blanks(p);
        ((uint64_t *)array->data)[index] = strtoull(p->at, &end, 10);
        if (end == p->at)
            return fail(p, "an integer");
        p->at = end;
    } else if (dtype_is_float(array->dtype)) {
        double value;
        if (!parse_double(p, &value))
            return false;
        array_set(array, index, value);
    } else {
        int64_t value;
        if (!parse_int(p, &value))
            return false;
        array_set_int(array, index, value);
    }
    return true;
}

static Array *parse_values(Parser *p, const TensorType *type)
{
    int64_t dims[MAX_RANK], count = type_count(type);
    if (count < 0) {
        fail(p, "a constant of known shape");
        return NULL;
    }
    if (accept(p, "#")) {
        fail(p, "values (print with values to read them back)");
        return NULL;
    }
    /* Each value takes a character at least: a short text cannot make us
     * allocate a huge array. */
    if (count > p->end - p->at) {
        fail(p, "as many values as the shape holds");
        return NULL;
    }
    for (int i = 0; i < type->rank; i++)
        dims[i] = type->dims[i].value;
    Array *array = array_new(p->arena, type->dtype, type->rank, dims);
    if (!expect(p, "{"))
        return NULL;
    for (int64_t i = 0; i < count; i++)
        if ((i && !expect(p, ",")) || !parse_element(p, array, i))
            return NULL;
    return expect(p, "}") ? array : NULL;
}

/* The lists must be of one length: they belong together pairwise. */
static bool parse_quant(Parser *p, TensorType *type)
{
    Vec(double) scales = {0};
    Vec(int64_t) zeros = {0};
    int64_t axis, zero;
    double scale;
    if (!parse_int(p, &axis) || !expect(p, ",") || !expect(p, "{"))
        return false;
    do {
        if (!parse_double(p, &scale))
            return false;
        vec_push(p->arena, &scales, scale);
    } while (accept(p, ","));
    if (!expect(p, "}") || !expect(p, ",") || !expect(p, "{"))
        return false;
    do {
        if (!parse_int(p, &zero))
            return false;
        vec_push(p->arena, &zeros, zero);
    } while (accept(p, ","));
    if (zeros.count != scales.count)
        return fail(p, "as many zero points as scales");
    Quant *quant = ARENA_NEW(p->arena, Quant);
    *quant = (Quant){(int)axis, scales.count, scales.data, zeros.data};
    type->quant = quant;
    return expect(p, "}") && expect(p, ")");
}

/* Ends after the quantization, if there is one. */
static bool parse_type(Parser *p, TensorType *type)
{
    *type = (TensorType){.rank = -1};
    skip_blanks(p);
    if (accept(p, "?[?]"))
        return true;
    const char *name = parse_name(p);
    if (!name)
        return false;
    type->dtype = dtype_parse(name);
    if (type->dtype == DT_INVALID)
        return fail_name(p, "unknown element type", name);
    if (!expect(p, "["))
        return false;
    if (accept(p, "?]"))
        return true;
    type->rank = 0;
    while (!accept(p, "]")) {
        Extent extent;
        if (type->rank && !expect(p, ","))
            return false;
        if (type->rank == MAX_RANK || !extent_parse(p->arena, &p->at, &extent))
            return fail(p, "an extent");
        type->dims[type->rank++] = extent;
    }
    return !accept(p, "quant(") || parse_quant(p, type);
}

/* `from(a, b)`, or nothing: then the name is the only source. */
#define PARSE_SOURCES(p, item)                                                \
    do {                                                                      \
        (item)->sources.count = 0;                                            \
        if (!accept((p), "from(")) {                                          \
            vec_push((p)->arena, &(item)->sources, (item)->name);             \
            break;                                                            \
        }                                                                     \
        while (!accept((p), ")")) {                                           \
            if ((item)->sources.count && !expect((p), ","))                   \
                return false;                                                 \
            const char *source = parse_name(p);                               \
            if (!source)                                                      \
                return false;                                                 \
            vec_push((p)->arena, &(item)->sources, source);                   \
        }                                                                     \
    } while (0)

/* What follows a tensor's type: its layout, what it lies in, and sources. */
static bool parse_tensor_rest(Parser *p, Tensor *tensor)
{
    skip_blanks(p);
    if (*p->at == '[' &&
        !layout_parse(&p->at, tensor->type.rank, &tensor->layout))
        return fail(p, "a layout");
    if (accept_word(p, "in")) {
        /* It may come later in the text: find_within replaces this. */
        tensor->within = ARENA_NEW(p->arena, Tensor);
        tensor->within->name = parse_name(p);
        if (!tensor->within->name)
            return false;
    }
    PARSE_SOURCES(p, tensor);
    return true;
}

/* NAME: TYPE, where the name must be new. */
static const char *parse_new_tensor(Parser *p, TensorType *type)
{
    const char *name = parse_name(p);
    if (!name || !expect(p, ":") || !parse_type(p, type))
        return NULL;
    if (graph_find_tensor(p->g, name)) {
        fail_name(p, "a second tensor", name);
        return NULL;
    }
    return name;
}

static bool parse_input(Parser *p)
{
    TensorType type;
    const char *name = parse_new_tensor(p, &type);
    return name && parse_tensor_rest(p, graph_add_input(p->g, name, type));
}

/* Layout and sources come before the value, and the tensor cannot be made
 * without one: read them into a stand-in first. */
static bool parse_constant(Parser *p)
{
    Tensor rest = {0};
    rest.name = parse_new_tensor(p, &rest.type);
    if (!rest.name || !parse_tensor_rest(p, &rest) || !expect(p, "="))
        return false;
    const Array *value = parse_values(p, &rest.type);
    if (!value)
        return false;
    Tensor *tensor = graph_add_constant(p->g, rest.name, value);
    tensor->type = rest.type;
    tensor->layout = rest.layout;
    tensor->within = rest.within;
    tensor->sources.data = rest.sources.data;
    tensor->sources.count = rest.sources.count;
    tensor->sources.capacity = rest.sources.capacity;
    return true;
}

/* Kinds are told by their look: integers have neither point, exponent nor
 * letters, strings have quotes. A list without items says its kind in front.
 */
static bool parse_list(Parser *p, Attr *attr)
{
    Vec(int64_t) ints = {0};
    Vec(double) floats = {0};
    Vec(const char *) strings = {0};
    attr->kind = ATTR_INTS;
    while (!accept(p, "]")) {
        int64_t whole;
        double real;
        if (attr->count++ && !expect(p, ","))
            return false;
        skip_blanks(p);
        const char *start = p->at;
        if (*p->at == '"') {
            const char *text = parse_name(p);
            if (!text)
                return false;
            attr->kind = ATTR_STRINGS;
            vec_push(p->arena, &strings, text);
            continue;
        }
        if (!parse_double(p, &real))
            return false;
        const char *end = p->at;
        if (strcspn(start, ".en") < (size_t)(end - start)) {
            attr->kind = ATTR_FLOATS;
            vec_push(p->arena, &floats, real);
            continue;
        }
        p->at = start; /* an integer, which a double may not hold */
        if (!parse_int(p, &whole))
            return false;
        vec_push(p->arena, &ints, whole);
    }
    int items = attr->kind == ATTR_INTS     ? ints.count
                : attr->kind == ATTR_FLOATS ? floats.count
                                            : strings.count;
    if (items != attr->count)
        return fail(p, "a list of one kind");
    if (attr->kind == ATTR_INTS)
        attr->ints = ints.data;
    else if (attr->kind == ATTR_FLOATS)
        attr->floats = floats.data;
    else
        attr->strings = strings.data;
    return true;
}

/* The same for single values; a word followed by "[" is a tensor's type. */
static bool parse_attr(Parser *p, Attrs *attrs)
{
    Attr attr = {.name = parse_name(p)};
    if (!attr.name || !expect(p, "="))
        return false;
    skip_blanks(p);
    const char *start = p->at;
    if (*start == '"') {
        attr.kind = ATTR_STRING;
        attr.s = parse_name(p);
        if (!attr.s)
            return false;
    } else if (accept(p, "ints[]")) {
        attr.kind = ATTR_INTS;
    } else if (accept(p, "floats[]")) {
        attr.kind = ATTR_FLOATS;
    } else if (accept(p, "strings[]")) {
        attr.kind = ATTR_STRINGS;
    } else if (accept(p, "[")) {
        if (!parse_list(p, &attr))
            return false;
    } else if (isalpha((unsigned char)*start) && !accept_word(p, "inf") &&
               !accept_word(p, "nan")) {
        TensorType type;
        attr.kind = ATTR_TENSOR;
        if (!parse_type(p, &type))
            return false;
        attr.tensor = parse_values(p, &type);
        if (!attr.tensor)
            return false;
    } else {
        p->at = start;
        if (!parse_double(p, &attr.f))
            return false;
        attr.kind = ATTR_FLOAT;
        if (strcspn(start, ".en") >= (size_t)(p->at - start)) {
            attr.kind = ATTR_INT;
            p->at = start;
            if (!parse_int(p, &attr.i))
                return false;
        }
    }
    attrs_set(p->arena, attrs, attr);
    return true;
}

/* OUTPUTS = OP NAME(INPUTS) {ATTRIBUTES} from(...) no_fuse */
static bool parse_node(Parser *p)
{
    Vec(Tensor) outputs = {0};
    Vec(Tensor *) inputs = {0};
    do {
        Tensor output = {0};
        if (!accept_word(p, "_")) {
            output.name = parse_new_tensor(p, &output.type);
            if (!output.name || !parse_tensor_rest(p, &output))
                return false;
        }
        vec_push(p->arena, &outputs, output);
    } while (accept(p, ","));
    if (!expect(p, "="))
        return false;
    const char *op = parse_name(p);
    if (op && accept(p, "::")) {
        const char *plain = parse_name(p);
        op = plain ? arena_printf(p->arena, "%s::%s", op, plain) : NULL;
    }
    const char *name = op ? parse_name(p) : NULL;
    if (!name || !expect(p, "("))
        return false;
    if (graph_find_node(p->g, name))
        return fail_name(p, "a second node", name);
    while (!accept(p, ")")) {
        Tensor *input = NULL;
        if (inputs.count && !expect(p, ","))
            return false;
        if (!accept_word(p, "_")) {
            const char *text = parse_name(p);
            if (!text)
                return false;
            input = graph_find_tensor(p->g, text);
            if (!input)
                return fail_name(p, "no tensor above is named", text);
        }
        vec_push(p->arena, &inputs, input);
    }
    Node *node = graph_add_node(p->g, op, name, inputs.data, inputs.count,
                                outputs.count);
    if (!node) {
        p->failed = true; /* graph_add_node said why */
        return false;
    }
    /* Two passes: a made-up name may be that of a later output. */
    for (int i = 0; i < outputs.count; i++)
        graph_name_tensor(p->g, node->outputs.data[i], "");
    for (int i = 0; i < outputs.count; i++) {
        Tensor *to = node->outputs.data[i];
        const Tensor *from = &outputs.data[i];
        if (!from->name) {
            graph_drop_output(p->g, node, i);
            continue;
        }
        graph_name_tensor(p->g, to, from->name);
        if (strcmp(to->name, from->name) != 0)
            return fail_name(p, "a second tensor", from->name);
        to->type = from->type;
        to->layout = from->layout;
        to->within = from->within;
        to->sources.count = 0;
        for (int k = 0; k < from->sources.count; k++)
            vec_push(p->arena, &to->sources, from->sources.data[k]);
    }
    if (accept(p, "{")) {
        do {
            if (!parse_attr(p, &node->attrs))
                return false;
        } while (accept(p, ","));
        if (!expect(p, "}"))
            return false;
    }
    PARSE_SOURCES(p, node);
    node->no_fuse = accept_word(p, "no_fuse");
    return true;
}

static bool parse_output(Parser *p)
{
    const char *name = parse_name(p);
    if (!name)
        return false;
    Tensor *tensor = graph_find_tensor(p->g, name);
    if (!tensor)
        return fail_name(p, "no tensor is named", name);
    graph_mark_output(p->g, tensor);
    return true;
}

/* A name with its bounds. */
static bool parse_declared(Parser *p)
{
    Extent extent;
    skip_blanks(p);
    if (!extent_parse(p->arena, &p->at, &extent) || !extent.expr ||
        extent.expr->kind != DIM_NAME || extent.value < 0)
        return fail(p, "a name with its bounds");
    vec_push(p->arena, &p->g->declared, extent);
    return true;
}

static Node *parse_node_name(Parser *p)
{
    const char *name = parse_name(p);
    Node *node = name ? graph_find_node(p->g, name) : NULL;
    if (name && !node)
        fail_name(p, "no node is named", name);
    return node;
}

/* ID: NODES, then "=" and the anchor, if there is one. */
static bool parse_group(Parser *p)
{
    int64_t id;
    if (!parse_int(p, &id) || !expect(p, ":"))
        return false;
    Group *group = ARENA_NEW(p->arena, Group);
    group->id = (int)id;
    vec_push(p->arena, &p->g->groups, group);
    for (skip_blanks(p); *p->at && *p->at != '\n'; skip_blanks(p)) {
        if (accept(p, "=")) {
            group->anchor = parse_node_name(p);
            return group->anchor != NULL;
        }
        Node *node = parse_node_name(p);
        if (!node)
            return false;
        node->group = group;
        vec_push(p->arena, &group->nodes, node);
    }
    return true;
}

static Graph *parse_graph(Parser *p);

/* Of the node above: a graph up to the closing brace. */
static bool parse_body(Parser *p)
{
    Graph *outer = p->g;
    if (!outer->nodes.count)
        return fail(p, "a node before its body");
    if (!expect(p, "{"))
        return false;
    while (*p->at == '\n' || *p->at == ' ') {
        p->line += *p->at == '\n';
        p->at++;
    }
    Graph *body = parse_graph(p);
    p->g = outer;
    if (p->failed || !expect(p, "}"))
        return false;
    vec_push(p->arena, &outer->nodes.data[outer->nodes.count - 1]->bodies,
             body);
    return true;
}

static bool parse_line(Parser *p)
{
    if (accept_word(p, "body"))
        return parse_body(p);
    if (accept_word(p, "input"))
        return parse_input(p);
    if (accept_word(p, "declare"))
        return parse_declared(p);
    if (accept_word(p, "const"))
        return parse_constant(p);
    if (accept_word(p, "output"))
        return parse_output(p);
    if (accept_word(p, "group"))
        return parse_group(p);
    return parse_node(p);
}

static void find_within(Parser *p)
{
    for (int i = 0; !p->failed && i < p->g->tensors.count; i++) {
        Tensor *t = p->g->tensors.data[i];
        const char *name = t->within ? t->within->name : NULL;
        if (name && !(t->within = graph_find_tensor(p->g, name)))
            fail_name(p, "no tensor is named", name);
    }
}

/* Line by line, up to the end or a closing brace; blank lines are fine, so
 * that texts can be laid out by hand in tests. */
static Graph *parse_graph(Parser *p)
{
    const char *name = NULL;
    if (accept_word(p, "graph"))
        name = parse_name(p);
    else
        fail(p, "graph");
    if (name)
        p->g = graph_new(p->arena, p->diag, name, p->ops);
    while (!p->failed) {
        skip_blanks(p);
        if (!*p->at || *p->at == '}')
            break;
        if (*p->at != '\n') {
            fail(p, "the end of the line");
            break;
        }
        p->at++;
        p->line++;
        skip_blanks(p);
        if (*p->at && *p->at != '\n' && *p->at != '}')
            parse_line(p);
    }
    find_within(p);
    return p->g;
}

Graph *graph_parse(Arena *arena, Diag *diag, const OpTable *ops,
                   const char *text)
{
    Parser p = {.arena = arena,
                .diag = diag,
                .ops = ops,
                .at = text,
                .end = text + strlen(text),
                .line = 1};
    Graph *g = parse_graph(&p);
    if (!p.failed && *p.at)
        fail(&p, "the end of the text");
    str_free(&p.word);
    return p.failed ? NULL : g;
}
