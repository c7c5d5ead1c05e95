/* The text form of a program and its parser. One line a thing:
 *
 *   program "resnet" target "x86-64-v3" inputs 1 outputs 1 taps 0
 *   memory arena 4096 bound 4096 weights 1024
 *   dim 1<=T<=256
 *   kernel 0 "conv_1x8x8x8_0a1b2c3d" hash 00000000deadbeef code 0 0
 *     param "in0" in f32[1,3,8,8] [0 2+1+1 3+1+1 1] in_place
 *   buffer 0 "x" input f32[1,3,8,8] [0 1 2 3] bytes 768 offset 0
 *     live 0..3 ready -1 alias -1
 *   step 0 kernel 0 args 0 2 1   # conv1 relu1
 *   branch 0 cond 3 steps 1 4 6 parent -1
 *   loop 1 cond -1 trips 5 most 100 counter 6 steps 4 6 parent 0 otherwise
 *
 * What follows # is a comment: the nodes a step came from. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "program/program.h"

static const char *const kind_names[] = {"input", "output", "constant",
                                         "arena", "extents"};
static const char *const role_names[] = {"in", "out", "temp"};

static void print_shape(Str *out, DType dtype, int rank, const int64_t *dims,
                        const Layout *layout)
{
    str_addf(out, " %s[", dtype_name(dtype));
    for (int i = 0; i < rank; i++)
        str_addf(out, "%s%" PRId64, i ? "," : "", dims[i]);
    str_add(out, "] ");
    layout_print(out, layout);
}

static void print_kernel(Str *out, const ProgramKernel *k, int index)
{
    str_addf(out, "kernel %d ", index);
    str_add_quoted(out, k->kernel->name);
    str_addf(out, " hash %016" PRIx64 " code %016" PRIx64 " %" PRId64 "\n",
             k->kernel->hash, k->code_hash, k->code_bytes);
    for (int i = 0; i < k->kernel->params.count; i++) {
        const Buffer *b = k->kernel->params.data[i];
        str_add(out, "  param ");
        str_add_quoted(out, b->name);
        str_addf(out, " %s", b->is_constant ? "const" : role_names[b->role]);
        print_shape(out, b->dtype, b->rank, b->dims, &b->layout);
        str_add(out, k->in_place && k->in_place[i] ? " in_place\n" : "\n");
    }
}

static void print_buffer(Str *out, const ProgramBuffer *b, int index)
{
    str_addf(out, "buffer %d ", index);
    str_add_quoted(out, b->name);
    str_addf(out, " %s", kind_names[b->kind]);
    print_shape(out, b->dtype, b->rank, b->dims, &b->layout);
    str_addf(out, " bytes %" PRId64 " offset %" PRId64, b->bytes, b->offset);
    str_addf(out, " live %d..%d ready %d alias %d\n", b->first_step,
             b->last_step, b->ready_step, b->alias_of);
}

static void print_step(Str *out, const ProgramStep *step, int index)
{
    str_addf(out, "step %d kernel %d args", index, step->kernel);
    for (int a = 0; a < step->arg_count; a++)
        str_addf(out, " %d", step->args[a]);
    if (step->group) {
        str_add(out, "   #");
        for (int i = 0; i < step->group->nodes.count; i++)
            str_addf(out, " %s", step->group->nodes.data[i]->name);
    }
    str_add(out, "\n");
}

static void print_region(Str *out, const ProgramRegion *r, int index)
{
    if (r->kind == REGION_BRANCH)
        str_addf(out, "branch %d cond %d steps %d %d %d", index, r->cond,
                 r->first, r->otherwise, r->end);
    else
        str_addf(
            out,
            "loop %d cond %d trips %d most %" PRId64 " counter %d steps %d %d",
            index, r->cond, r->trips, r->most, r->counter, r->first, r->end);
    str_addf(out, " parent %d%s\n", r->parent,
             r->in_otherwise ? " otherwise" : "");
}

void program_print(Str *out, const Program *p)
{
    str_add(out, "program ");
    str_add_quoted(out, p->name);
    str_add(out, " target ");
    str_add_quoted(out, p->target ? p->target->name : "");
    str_addf(out, " inputs %d outputs %d taps %d\n", p->input_count,
             p->output_count, p->taps);
    str_addf(out,
             "memory arena %" PRId64 " bound %" PRId64 " weights %" PRId64
             "\n",
             p->arena_bytes, p->arena_bound, p->weight_bytes);
    for (int i = 0; i < p->symbols.count; i++) {
        str_add(out, i < p->input_symbols ? "dim " : "computed ");
        extent_print(out, p->symbols.data[i]);
        str_add(out, "\n");
    }
    for (int i = 0; i < p->kernels.count; i++)
        print_kernel(out, &p->kernels.data[i], i);
    for (int i = 0; i < p->buffers.count; i++)
        print_buffer(out, &p->buffers.data[i], i);
    for (int i = 0; i < p->steps.count; i++)
        print_step(out, &p->steps.data[i], i);
    for (int i = 0; i < p->regions.count; i++)
        print_region(out, &p->regions.data[i], i);
}

typedef struct Reader {
    const char *at;
    int line;
    Arena *arena;
    Diag *diag;
    bool ok;
} Reader;

static bool fail(Reader *r, const char *what)
{
    if (r->ok)
        diag_error(r->diag,
                   "program text, line %d: %s expected before "
                   "\"%.20s\"",
                   r->line, what, r->at);
    r->ok = false;
    return false;
}

static void skip_blanks(Reader *r)
{
    for (;; r->at++) {
        if (*r->at == '#')
            while (*r->at && *r->at != '\n')
                r->at++;
        if (*r->at == '\n')
            r->line++;
        else if (*r->at != ' ')
            break;
    }
}

static bool accept_word(Reader *r, const char *word)
{
    size_t n = strlen(word);

    skip_blanks(r);
    if (strncmp(r->at, word, n) != 0 ||
        (isalnum((unsigned char)word[n - 1]) &&
         (isalnum((unsigned char)r->at[n]) || r->at[n] == '_')))
        return false;
    r->at += n;
    return true;
}

static void expect(Reader *r, const char *word)
{
    if (r->ok && !accept_word(r, word))
        fail(r, word);
}

static int64_t read_int(Reader *r)
{
    char *end;

    skip_blanks(r);
    if (!r->ok)
        return 0;
    int64_t value = strtoll(r->at, &end, 10);
    if (end == r->at)
        fail(r, "a number");
    r->at = end;
    return value;
}

static uint64_t read_hex(Reader *r)
{
    char *end;

    skip_blanks(r);
    if (!r->ok)
        return 0;
    uint64_t value = strtoull(r->at, &end, 16);
    if (end == r->at)
        fail(r, "a hash");
    r->at = end;
    return value;
}

static bool is_int_next(Reader *r)
{
    skip_blanks(r);
    return isdigit((unsigned char)*r->at);
}

static int hex_digit(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : (c | 32) - 'a' + 10;
}

static const char *read_quoted(Reader *r)
{
    Str text = {0};

    expect(r, "\"");
    while (r->ok && *r->at != '"') {
        char c = *r->at;
        if (!c || c == '\n') {
            fail(r, "a closing quote");
            break;
        }
        r->at++;
        if (c == '\\' && *r->at == 'n') {
            c = '\n';
            r->at++;
        } else if (c == '\\' && *r->at == 'x' && r->at[1] && r->at[2]) {
            c = (char)(hex_digit(r->at[1]) * 16 + hex_digit(r->at[2]));
            r->at += 3;
        } else if (c == '\\' && *r->at) {
            c = *r->at++;
        }
        str_add_bytes(&text, &c, 1);
    }
    if (r->ok)
        r->at++;
    const char *copy = arena_strdup(r->arena, str_text(&text));
    str_free(&text);
    return copy;
}

static void read_shape(Reader *r, DType *dtype, int *rank, int64_t *dims,
                       Layout *layout)
{
    char name[16];
    size_t n = 0;

    skip_blanks(r);
    while (isalnum((unsigned char)r->at[n]) && n + 1 < sizeof name) {
        name[n] = r->at[n];
        n++;
    }
    name[n] = 0;
    *dtype = dtype_parse(name);
    *rank = 0;
    if (*dtype == DT_INVALID) {
        fail(r, "an element type");
        return;
    }
    r->at += n;
    expect(r, "[");
    while (r->ok && *rank < MAX_RANK && is_int_next(r)) {
        dims[(*rank)++] = read_int(r);
        if (!accept_word(r, ","))
            break;
    }
    expect(r, "]");
    skip_blanks(r);
    if (r->ok && !layout_parse(&r->at, *rank, layout))
        fail(r, "a layout");
}

static int read_name(Reader *r, const char *const *names, int count,
                     const char *what)
{
    for (int i = 0; r->ok && i < count; i++)
        if (accept_word(r, names[i]))
            return i;
    fail(r, what);
    return 0;
}

static void read_kernel(Reader *r, Program *p)
{
    enum { MAX_PARAMS = 256 };
    Kernel *kernel = ARENA_NEW(r->arena, Kernel);
    ProgramKernel made = {.kernel = kernel, .trace = ""};
    bool *in_place = ARENA_ARRAY(r->arena, bool, MAX_PARAMS);

    read_int(r);
    kernel->arena = r->arena;
    kernel->name = read_quoted(r);
    expect(r, "hash");
    kernel->hash = read_hex(r);
    expect(r, "code");
    made.code_hash = read_hex(r);
    made.code_bytes = read_int(r);
    while (r->ok && accept_word(r, "param")) {
        Buffer *b = ARENA_NEW(r->arena, Buffer);
        b->name = read_quoted(r);
        b->is_constant = accept_word(r, "const");
        b->role = b->is_constant
                      ? BUF_INPUT
                      : (BufferRole)read_name(r, role_names, 3, "a role");
        read_shape(r, &b->dtype, &b->rank, b->dims, &b->layout);
        if (kernel->params.count == MAX_PARAMS) {
            fail(r, "at most 256 parameters");
            return;
        }
        in_place[kernel->params.count] = accept_word(r, "in_place");
        vec_push(r->arena, &kernel->params, b);
    }
    made.in_place = in_place;
    vec_push(r->arena, &p->kernels, made);
}

static void read_buffer(Reader *r, Program *p)
{
    ProgramBuffer b = {0};

    read_int(r);
    b.name = read_quoted(r);
    b.kind = (ProgramBufferKind)read_name(r, kind_names, 5, "a buffer kind");
    read_shape(r, &b.dtype, &b.rank, b.dims, &b.layout);
    expect(r, "bytes");
    b.bytes = read_int(r);
    expect(r, "offset");
    b.offset = read_int(r);
    expect(r, "live");
    b.first_step = (int)read_int(r);
    expect(r, "..");
    b.last_step = (int)read_int(r);
    expect(r, "ready");
    b.ready_step = (int)read_int(r);
    expect(r, "alias");
    b.alias_of = (int)read_int(r);
    vec_push(r->arena, &p->buffers, b);
}

static void read_dim(Reader *r, Program *p)
{
    Extent extent;

    skip_blanks(r);
    if (!extent_parse(r->arena, &r->at, &extent) || !extent.expr)
        fail(r, "a name with bounds");
    else
        vec_push(r->arena, &p->symbols, extent);
}

static void read_step(Reader *r, Program *p)
{
    Vec(int) args = {0};
    ProgramStep step = {.schedule = -1};

    read_int(r);
    expect(r, "kernel");
    step.kernel = (int)read_int(r);
    expect(r, "args");
    while (r->ok && is_int_next(r))
        vec_push(r->arena, &args, (int)read_int(r));
    step.args = args.data;
    step.arg_count = args.count;
    vec_push(r->arena, &p->steps, step);
}

static int read_index(Reader *r, const char *word)
{
    expect(r, word);
    return (int)read_int(r);
}

static void read_region(Reader *r, Program *p, RegionKind kind)
{
    ProgramRegion region = {
        .kind = kind, .trips = -1, .counter = -1, .most = INT64_MAX};

    read_int(r);
    region.cond = read_index(r, "cond");
    if (kind == REGION_LOOP) {
        region.trips = read_index(r, "trips");
        expect(r, "most");
        region.most = read_int(r);
        region.counter = read_index(r, "counter");
    }
    region.first = read_index(r, "steps");
    region.otherwise = (int)read_int(r);
    region.end = kind == REGION_LOOP ? region.otherwise : (int)read_int(r);
    region.parent = read_index(r, "parent");
    region.in_otherwise = accept_word(r, "otherwise");
    vec_push(r->arena, &p->regions, region);
}

Program *program_parse(Arena *arena, Diag *diag, const char *text)
{
    Reader r = {text, 1, arena, diag, true};
    Program *p = ARENA_NEW(arena, Program);

    p->arena = arena;
    expect(&r, "program");
    p->name = read_quoted(&r);
    expect(&r, "target");
    const char *target = read_quoted(&r);
    if (r.ok && *target && !(p->target = target_find(arena, diag, target)))
        return NULL;
    expect(&r, "inputs");
    p->input_count = (int)read_int(&r);
    expect(&r, "outputs");
    p->output_count = (int)read_int(&r);
    expect(&r, "taps");
    p->taps = read_int(&r) != 0;
    expect(&r, "memory");
    expect(&r, "arena");
    p->arena_bytes = read_int(&r);
    expect(&r, "bound");
    p->arena_bound = read_int(&r);
    expect(&r, "weights");
    p->weight_bytes = read_int(&r);
    while (r.ok) {
        if (accept_word(&r, "dim"))
            read_dim(&r, p), p->input_symbols++;
        else if (accept_word(&r, "computed"))
            read_dim(&r, p);
        else if (accept_word(&r, "kernel"))
            read_kernel(&r, p);
        else if (accept_word(&r, "buffer"))
            read_buffer(&r, p);
        else if (accept_word(&r, "step"))
            read_step(&r, p);
        else if (accept_word(&r, "branch"))
            read_region(&r, p, REGION_BRANCH);
        else if (accept_word(&r, "loop"))
            read_region(&r, p, REGION_LOOP);
        else
            break;
    }
    skip_blanks(&r);
    if (r.ok && *r.at)
        fail(&r, "kernel, buffer, step, branch or loop");
    return r.ok ? p : NULL;
}
