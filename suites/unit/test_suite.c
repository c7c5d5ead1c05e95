/* The suite's models: parameters are understood or refused, and the graphs
 * have the published shapes, with seeded weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "ops/op.h"
#include "suites/models/scenes.h"
#include "suites/random.h"
#include "suites/suite.h"

static void parameters(void **state)
{
    (void)state;
    Str error = {0};
    SuiteParams p;
    const SuiteModel *m =
        suite_find("resnet50@192,width=0.75,batch=4,seed=2", &p, &error);
    assert_non_null(m);
    assert_string_equal(m->name, "resnet50");
    assert_int_equal(p.resolution, 192);
    assert_true(p.width == 0.75);
    assert_int_equal(p.batch, 4);
    assert_int_equal(p.seed, 2);
    assert_non_null(suite_find("resnet50", &p, &error));
    assert_true(p.resolution == 224 && p.width == 1 && p.batch == 1);
    assert_non_null(suite_find("resnet_fashion@batch=8", &p, &error));
    assert_int_equal(p.batch, 8);
    assert_int_equal(error.length, 0);
}

static void bad_parameters(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "resnet51",           "resnet50@",
        "resnet50@16",        "resnet50@192x",
        "resnet50@width=0",   "resnet50@batch=1.5",
        "resnet50@depth=3",   "resnet50@batch=-1",
        "resnet_fashion@192", "resnet_fashion@width=2",
        "resnet50@seed=x",    "resnet",
        "resnet50@192,",      "resnet50@8",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        Str error = {0};
        SuiteParams p;
        const SuiteModel *m = suite_find(bad[i], &p, &error);
        if (m)
            fail_msg("%s", bad[i]);
        assert_true(error.length > 0);
        str_free(&error);
    }
    Str error = {0};
    SuiteParams p;
    assert_null(suite_find("resnet50@8", &p, &error));
    assert_non_null(strstr(str_text(&error), "from 32 to 4096"));
    str_free(&error);
    assert_true(suite_is_name("resnet50@width=0.75"));
    assert_false(suite_is_name("resnet50.onnx"));
    assert_false(suite_is_name("./resnet50"));
}

/* Parameters of all constants that are no BatchNormalization statistic
 * nor a bound of a Clip. */
static int64_t count_parameters(const Graph *g)
{
    int64_t total = 0;
    for (int i = 0; i < g->tensors.count; i++) {
        const Tensor *t = g->tensors.data[i];
        size_t length = strlen(t->name);
        if (!t->value ||
            (length > 4 && (!strcmp(t->name + length - 4, ".var") ||
                            !strcmp(t->name + length - 4, ".min") ||
                            !strcmp(t->name + length - 4, ".max"))) ||
            (length > 5 && !strcmp(t->name + length - 5, ".mean")))
            continue;
        total += array_count(t->value);
    }
    return total;
}

static Graph *build(Arena *arena, const char *name)
{
    Str error = {0};
    SuiteParams p;
    const SuiteModel *m = suite_find(name, &p, &error);
    assert_non_null(m);
    Diag *diag = diag_new(arena, NULL);
    Graph *g = graph_new(arena, diag, m->name, ops_builtin());
    if (!m->build(g, &p))
        fail_msg("%s: %s", name, diag->errors.data[0]);
    graph_verify(g);
    return g;
}

/* The published numbers of parameters (torchvision's documentation). */
static void published_shapes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t parameters;
    } rows[] = {
        {"resnet18", 11689512},
        {"resnet50", 25557032},
        {"mobilenet_v2", 3504872},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Arena *arena = arena_new();
        Graph *g = build(arena, rows[i].name);
        assert_int_equal(count_parameters(g), rows[i].parameters);
        assert_int_equal(g->outputs.count, 1);
        const TensorType *t = &g->outputs.data[0]->type;
        assert_true(t->rank == 2 && t->dims[0].value == 1 &&
                    t->dims[1].value == 1000);
        arena_free(arena);
    }
}

static void parameters_change_the_graph(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    Graph *g = build(arena, "mobilenet_v2@192,width=0.75,batch=3");
    const TensorType *in = &g->inputs.data[0]->type;
    assert_true(in->dims[0].value == 3 && in->dims[2].value == 192);
    assert_int_equal(g->outputs.data[0]->type.dims[0].value, 3);
    const Tensor *w = graph_find_tensor(g, "block2.expand.weight");
    assert_int_equal(w->type.dims[1].value, 16); /* 16 * 0.75 rounds up */
    arena_free(arena);
}

static void seeds_change_the_weights(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    const char *name = "fc.weight";
    const Array *a =
        graph_find_tensor(build(arena, "resnet18@64,width=0.25"), name)->value;
    const Array *b =
        graph_find_tensor(build(arena, "resnet18@96,width=0.25"), name)->value;
    const Array *c =
        graph_find_tensor(build(arena, "resnet18@64,width=0.25,seed=2"), name)
            ->value;
    assert_memory_equal(a->data, b->data, array_bytes(a));
    assert_memory_not_equal(a->data, c->data, array_bytes(a));
    arena_free(arena);
}

static void normal_is_normal(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    double sum = 0, square = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        double x = random_normal(5, i);
        sum += x;
        square += x * x;
    }
    assert_true(fabs(sum / COUNT) < 0.01);
    assert_true(fabs(square / COUNT - 1) < 0.02);
    assert_true(random_normal(5, 7) == random_normal(5, 7));
    assert_true(random_normal(5, 7) != random_normal(6, 7));
}

static void fashion_data(void **state)
{
    (void)state;
    SuiteParams p;
    Str error = {0};
    const SuiteModel *m = suite_find("resnet_fashion", &p, &error);
    Arena *arena = arena_new();
    Array *images, *labels;
    if (!m->data->load(arena, 2000, &images, &labels, &error)) {
        print_message("%s\n", str_text(&error));
        str_free(&error);
        arena_free(arena);
        skip();
    }
    assert_int_equal(array_count(images), 2000 * 28 * 28);
    int seen[10] = {0};
    for (int i = 0; i < 2000; i++)
        seen[array_get_int(labels, i)]++;
    for (int k = 0; k < 10; k++)
        assert_in_range(seen[k], 150, 250);
    assert_int_equal(array_get_int(labels, 0), 9); /* an ankle boot */
    double largest = 0, sum = 0;
    for (int64_t i = 0; i < array_count(images); i++) {
        sum += array_get(images, i);
        largest = fmax(largest, array_get(images, i));
    }
    assert_true(largest == 1);
    assert_true(fabs(sum / (double)array_count(images) - 0.286) < 0.01);
    arena_free(arena);
}

enum { SCENES = 500, SCENE_PIXELS = SCENE_SIDE * SCENE_SIDE };

/* Whether a pixel from (x0, y0) to (x1, y1) is above the threshold of
 * boxes. */
static bool is_bright(const float *scene, int x0, int y0, int x1, int y1)
{
    bool bright = false;
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++)
            bright |= scene[y * SCENE_SIDE + x] > 0.1f;
    return bright;
}

static void scenes_data(void **state)
{
    (void)state;
    Str why = {0};
    Arena *arena = arena_new();
    Array *images, *labels, *first, *first_labels;
    if (!scenes_load(arena, SCENES, &images, &labels, &why)) {
        print_message("%s\n", str_text(&why));
        str_free(&why);
        arena_free(arena);
        skip();
    }
    float *scenes = images->data;
    assert_int_equal(array_count(images), SCENES * SCENE_PIXELS);
    assert_int_equal(labels->dims[1], SUITE_BOX);
    int in_scene[SCENES] = {0}, of_kind[SCENE_KINDS] = {0}, last = 0;
    for (int64_t i = 0; i < labels->dims[0]; i++) {
        const float *row = (const float *)labels->data + i * SUITE_BOX;
        assert_in_range((int)row[0], last, SCENES - 1);
        last = (int)row[0];
        in_scene[last]++;
        of_kind[(int)row[1]]++;
        int x0 = (int)row[2], y0 = (int)row[3];
        int x1 = (int)row[4], y1 = (int)row[5];
        assert_true(0 <= x0 && x0 < x1 && x1 <= SCENE_SIDE && x1 - x0 <= 40);
        assert_true(0 <= y0 && y0 < y1 && y1 <= SCENE_SIDE && y1 - y0 <= 40);
        /* Tight: each edge has a bright pixel. */
        const float *scene = scenes + last * SCENE_PIXELS;
        assert_true(is_bright(scene, x0, y0, x0 + 1, y1));
        assert_true(is_bright(scene, x1 - 1, y0, x1, y1));
        assert_true(is_bright(scene, x0, y0, x1, y0 + 1));
        assert_true(is_bright(scene, x0, y1 - 1, x1, y1));
    }
    for (int i = 0; i < SCENES; i++)
        assert_in_range(in_scene[i], 1, SCENE_GARMENTS);
    for (int k = 0; k < SCENE_KINDS; k++)
        assert_in_range(of_kind[k], 80, 160); /* 2.5 a scene, less misfits */
    /* A shorter list is the start of a longer one. */
    assert_true(scenes_load(arena, 10, &first, &first_labels, &why));
    assert_memory_equal(first->data, scenes, array_bytes(first));
    assert_memory_equal(first_labels->data, labels->data,
                        array_bytes(first_labels));
    /* Nothing bright lies outside the boxes. */
    for (int64_t i = 0; i < labels->dims[0]; i++) {
        const float *row = (const float *)labels->data + i * SUITE_BOX;
        for (int y = (int)row[3]; y < (int)row[5]; y++)
            for (int x = (int)row[2]; x < (int)row[4]; x++)
                scenes[(int)row[0] * SCENE_PIXELS + y * SCENE_SIDE + x] = 0;
    }
    for (int i = 0; i < SCENES; i++)
        assert_false(is_bright(scenes + i * SCENE_PIXELS, 0, 0, SCENE_SIDE,
                               SCENE_SIDE));
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters),
        cmocka_unit_test(bad_parameters),
        cmocka_unit_test(published_shapes),
        cmocka_unit_test(parameters_change_the_graph),
        cmocka_unit_test(seeds_change_the_weights),
        cmocka_unit_test(normal_is_normal),
        cmocka_unit_test(fashion_data),
        cmocka_unit_test(scenes_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
