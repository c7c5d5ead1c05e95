/* Sharing between threads: a scheduled kernel is one parallel loop, whose
 * ranges write every element of the result once, border included, and about as
 * many each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "schedules/schedule.h"

typedef struct Case {
    const char *name, *text, *trace;
    /* The most elements that one of 2, 3, 4 threads writes, in hundredths of
     * an equal share. */
    int most;
} Case;

#define POINTWISE(n, c, h, w)                                                 \
    "definition f {\n  in x f32[" n ", " c ", " h ", " w "]\n"                \
    "  out y f32[" n ", " c ", " h ", " w "]\n"                               \
    "  stage y[n:" n ", o:" c ", h:" h ", w:" w "] = "                        \
    "(x[n, o, h, w] + 1.0)\n}\n"

static const Case cases[] = {
    {"rows of which one is left", POINTWISE("1", "6", "56", "5"),
     "pack y [0 2 3 1]\nsplit_even y h 3\nreorder y n h.o h.i w o\n"
     "reorder y h.o n h.i w o\nparallel y h.o\nvectorize y o\n",
     108},
    {"panels by uneven tiles", POINTWISE("1", "160", "7", "7"),
     "pack y [0 2 3 1]\nsplit y o 32\nsplit_even y w 3\n"
     "reorder y o.o w.o n h w.i o.i\nparallel y o.o\nvectorize y o.i\n",
     121},
    {"seven rows of channels", POINTWISE("1", "64", "7", "7"),
     "pack y [0 2 3 1]\nsplit y o 16\nreorder y h o.o n w o.i\n"
     "parallel y h\nvectorize y o.i\n",
     115},
    {"few of many: parts of a loop", POINTWISE("1", "3", "60", "4"),
     "reorder y o h n w\nparallel y o\nvectorize y w\n", 101},
    {"a border of all sides", POINTWISE("1", "16", "7", "9"),
     "pack y [0 2+1+1 3+3+1 1]\nreorder y h n w o\nparallel y h\n"
     "vectorize y o\n",
     125},
    {"borders of several images", POINTWISE("3", "4", "5", "6"),
     "pack y [0 2+1+1 3+1+2 1]\nreorder y n h w o\nfuse y n h\n"
     "reorder y n*h w o\nparallel y n*h\nvectorize y o\n",
     125},
    {"a border in rows of channels first", POINTWISE("2", "3", "6", "8"),
     "pack y [0 1 2+2+0 3+0+1]\nfuse y n o\nreorder y n*o h w\n"
     "parallel y n*o\nvectorize y w\n",
     125},
    {"more rows of border than iterations", POINTWISE("1", "2", "37", "2"),
     "pack y [0 1 2 3+1+1]\nsplit y h 37\nreorder y o h.o n h.i w\n"
     "parallel y o\n",
     110},
};

static Kernel *lower(Arena *a, Diag *diag, const Case *c)
{
    Definition *def = definition_parse(a, diag, c->text);
    if (!def)
        fail_msg("%s: %s", c->name, diag->errors.data[0]);
    Schedule *s = schedule_new(a, diag, def);
    if (!schedule_replay(s, c->trace))
        fail_msg("%s: %s", c->name, diag->errors.data[0]);
    Kernel *k = schedule_lower(s, a);
    kernel_verify(k);
    return k;
}

/* Runs iterations `begin` to `end` - 1 alone; counts, by element of storage,
 * what is written. Returns how many elements those are. */
static int64_t run_range(Arena *a, Diag *diag, const Case *c, int64_t begin,
                         int64_t end, int *written)
{
    Kernel *k = lower(a, diag, c);
    assert_int_equal(k->body->list.count, 1);
    Stmt *loop = k->body->list.data[0];
    assert_int_equal(loop->loop, LOOP_PARALLEL);
    if (begin == end)
        return 0;
    stmt_bind(a, loop->body, loop->var,
              expr_add_int(a, expr_var(a, loop->var), begin));
    loop->loop = LOOP_SERIAL;
    loop->extent = end - begin;

    const Buffer *in = k->params.data[0], *out = k->params.data[1];
    float *x = ARENA_ARRAY(a, float, buffer_size(in) + 1);
    float *y = ARENA_ARRAY(a, float, buffer_size(out) + 1);
    void *data[] = {x, y};
    memset(y, 0xff, (size_t)buffer_size(out) * sizeof *y);
    if (!kernel_interpret(k, data, diag))
        fail_msg("%s: %s", c->name, diag->errors.data[0]);
    int64_t count = 0;
    for (int64_t i = 0; i < buffer_size(out); i++) {
        uint32_t bits;
        memcpy(&bits, &y[i], sizeof bits);
        if (bits == UINT32_MAX)
            continue;
        written[i]++;
        count++;
    }
    return count;
}

static void test_shares(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const Case *c = &cases[i];
        Arena *a = arena_new();
        Diag *diag = diag_new(a, NULL);
        const Kernel *k = lower(a, diag, c);
        int64_t size = buffer_size(k->params.data[1]);
        int64_t extent = k->body->list.data[0]->extent;
        for (int threads = 2; threads <= 4; threads++) {
            int *written = ARENA_ARRAY(a, int, size);
            int64_t begin = 0;
            for (int t = 0; t < threads; t++) {
                int64_t end =
                    begin + extent / threads + (t < extent % threads);
                int64_t count = run_range(a, diag, c, begin, end, written);
                if (count * threads * 100 > size * c->most)
                    fail_msg("%s: thread %d of %d writes %lld of %lld",
                             c->name, t, threads, (long long)count,
                             (long long)size);
                begin = end;
            }
            for (int64_t e = 0; e < size; e++)
                if (written[e] != 1)
                    fail_msg("%s: element %lld is written %d times by %d "
                             "threads",
                             c->name, (long long)e, written[e], threads);
        }
        arena_free(a);
    }
}

/* Enough even iterations stay what the schedule says, with its names. */
static void test_unchanged(void **state)
{
    (void)state;
    Arena *a = arena_new();
    Diag *diag = diag_new(a, NULL);
    const Case c = {"rows", POINTWISE("1", "8", "64", "3"),
                    "pack y [0 2 3 1]\nreorder y h n w o\nparallel y h\n"
                    "vectorize y o\n",
                    100};
    Str text = {0};
    kernel_print(&text, lower(a, diag, &c));
    assert_non_null(strstr(str_text(&text), "parallel h0 64 {\n    for w1 3"));
    str_free(&text);
    arena_free(a);
}

/* Extents that are known at run time only: the border follows the loop. */
static void test_run_time(void **state)
{
    (void)state;
    static const char text[] = "definition f {\n  extents ext i64[1]\n"
                               "  in x f32[1, 3, 9 limit ext[0], 4]\n"
                               "  out y f32[1, 3, 9 limit ext[0], 4]\n"
                               "  stage y[n:1, o:3, h:9 limit ext[0], w:4] = "
                               "(x[n, o, h, w] + 1.0)\n}\n";
    const Case c = {"limit", text,
                    "pack y [0 2+1+1 3+1+1 1]\nreorder y h n w o\n"
                    "parallel y h\n",
                    100};
    Arena *a = arena_new();
    Diag *diag = diag_new(a, NULL);
    Kernel *k = lower(a, diag, &c);
    assert_true(k->body->list.count > 1);
    for (int64_t rows = 0; rows <= 9; rows++) {
        float x[3 * 9 * 4] = {0}, y[11 * 6 * 3];
        void *data[3] = {NULL};
        for (int i = 0; i < k->params.count; i++)
            data[i] = k->params.data[i]->is_extents          ? (void *)&rows
                      : k->params.data[i]->role == BUF_INPUT ? (void *)x
                                                             : (void *)y;
        memset(y, 0xff, sizeof y);
        if (!kernel_interpret(k, data, diag))
            fail_msg("%s", diag->errors.data[0]);
        for (int h = 0; h < rows + 2; h++)
            for (int w = 0; w < 6; w++) {
                bool inside = h > 0 && h <= rows && w > 0 && w < 5;
                assert_true(y[(h * 6 + w) * 3] == (inside ? 1.0F : 0.0F));
            }
    }
    arena_free(a);
}

/* Of an axis without elements there is nothing to share, but a schedule may
 * split it and its rows may have a border. */
static void test_empty(void **state)
{
    (void)state;
    static const Case empty[] = {
        {"rows without elements", POINTWISE("1", "2", "3", "0"),
         "pack y [0 1 2 3+1+1]\nreorder y o h n w\nparallel y o\n", 0},
        {"no channel", POINTWISE("1", "0", "3", "4"),
         "pack y [0 1 2+1+1 3+1+1]\nreorder y o h n w\nparallel y o\n", 0},
        {"no row", POINTWISE("1", "3", "0", "4"),
         "pack y [0 1 2+1+1 3+1+1]\nreorder y h o n w\nparallel y h\n", 0},
        {"no row inside", POINTWISE("1", "3", "0", "4"),
         "pack y [0 1 2+1+1 3+1+1]\nreorder y o h n w\nparallel y o\n", 0},
        {"no column, even tiles", POINTWISE("1", "3", "7", "0"),
         "pack y [0 2 3+1+1 1]\nsplit_even y w 3\n"
         "reorder y h w.o n w.i o\nparallel y h\n",
         0},
        {"no column, tiles", POINTWISE("1", "3", "7", "0"),
         "pack y [0 2 3+1+1 1]\nsplit y w 3\nreorder y w.o h n w.i o\n"
         "parallel y w.o\n",
         0},
        {"no row, padded tiles", POINTWISE("1", "3", "0", "4"),
         "pack y [0 2 3+1+1 1]\nsplit_padded y h 3\n"
         "reorder y h.o n h.i w o\nparallel y h.o\n",
         0},
    };
    for (int i = 0; i < (int)(sizeof empty / sizeof empty[0]); i++) {
        Arena *a = arena_new();
        Diag *diag = diag_new(a, NULL);
        const Kernel *k = lower(a, diag, &empty[i]);
        assert_int_equal(k->params.count, 2);
        arena_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_unchanged),
        cmocka_unit_test(test_run_time),
        cmocka_unit_test(test_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
