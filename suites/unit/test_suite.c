/* The suite's models: parameters are understood or refused, and the graphs
 * have the published shapes, with seeded weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/check.h"
#include "harness/inputs.h"
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
        "yolov8n@100",        "yolov3_tiny@208",
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
    assert_null(suite_find("yolov8n@330", &p, &error));
    assert_non_null(strstr(str_text(&error), "a multiple of 32 (640)"));
    str_free(&error);
    assert_true(suite_is_name("resnet50@width=0.75"));
    assert_false(suite_is_name("resnet50.onnx"));
    assert_false(suite_is_name("./resnet50"));
}

/* What training changes: no statistics, shapes and other constants. */
static int64_t count_parameters(const Graph *g)
{
    static const char *const ends[] = {"weight", "bias", "gamma", "beta"};
    int64_t total = 0;
    for (int i = 0; i < g->tensors.count; i++) {
        const Tensor *t = g->tensors.data[i];
        const char *dot = strrchr(t->name, '.');
        for (size_t k = 0; dot && t->value && k < sizeof ends / sizeof *ends;
             k++)
            if (!strcmp(dot + 1, ends[k]))
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

/* Multiply-accumulates of the convolutions and fully connected layers. */
static double count_macs(const Graph *g)
{
    double total = 0;
    for (int i = 0; i < g->nodes.count; i++) {
        const Node *node = g->nodes.data[i];
        if (!(node->op->traits & OP_LINEAR_WEIGHTS) ||
            !node->inputs.data[1]->value)
            continue;
        const Tensor *w = node->inputs.data[1];
        int axis = node->op->channel_axis;
        if (axis < 0)
            axis += w->type.rank;
        total += (double)type_count(&w->type) /
                 (double)w->type.dims[axis].value *
                 (double)type_count(&node->outputs.data[0]->type);
    }
    return total;
}

/* The published numbers of parameters and shapes of outputs (torchvision's
 * documentation; the YOLOs' own pages, which count two operations for one
 * multiply-accumulate: 5.56 and 8.7 billion). */
static void published_shapes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t parameters;
        double least_gmac, most_gmac;
        const char *output;
    } rows[] = {
        {"resnet18", 11689512, 1.81, 1.82, "f32[1,1000]"},
        {"resnet50", 25557032, 4.08, 4.10, "f32[1,1000]"},
        {"mobilenet_v2", 3504872, 0.299, 0.31, "f32[1,1000]"},
        {"yolov3_tiny", 8852366, 2.77, 2.79, "f32[1,255,13,13]"},
        {"yolov8n", 3157200, 4.35, 4.40, "f32[1,84,8400]"},
        {"yolov8n@320", 3157200, 1.08, 1.10, "f32[1,84,2100]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Arena *arena = arena_new();
        Graph *g = build(arena, rows[i].name);
        Str type = {0};
        type_print(&type, &g->outputs.data[0]->type);
        assert_string_equal(str_text(&type), rows[i].output);
        assert_int_equal(count_parameters(g), rows[i].parameters);
        double gmac = count_macs(g) / 1e9;
        if (gmac < rows[i].least_gmac || gmac > rows[i].most_gmac)
            fail_msg("%s: %g GMAC", rows[i].name, gmac);
        str_free(&type);
        arena_free(arena);
    }
}

static double rms_of(const Array *a)
{
    double sum = 0;
    int64_t count = array_count(a);
    for (int64_t i = 0; i < count; i++)
        sum += array_get(a, i) * array_get(a, i);
    return sqrt(sum / (double)count);
}

/* Values of all tensors for one seeded input. */
static ReferenceValues run(Arena *arena, const Graph *g, int seed)
{
    Array **inputs = ARENA_ARRAY(arena, Array *, g->inputs.count);
    for (int i = 0; i < g->inputs.count; i++) {
        const TensorType *t = &g->inputs.data[i]->type;
        int64_t dims[MAX_RANK];
        for (int k = 0; k < t->rank; k++)
            dims[k] = t->dims[k].value;
        inputs[i] = array_new(arena, t->dtype, t->rank, dims);
        inputs_fill(inputs[i], (uint64_t)seed, i, NULL);
    }
    ReferenceValues values;
    Str error = {0};
    if (!reference_run(arena, g, inputs, NULL, &values, &error))
        fail_msg("%s", str_text(&error));
    return values;
}

static void check_sizes(const char *name)
{
    Arena *arena = arena_new();
    Graph *g = build(arena, name);
    ReferenceValues one = run(arena, g, 1), two = run(arena, g, 2);
    for (int i = 0; i < g->nodes.count; i++) {
        const Tensor *t = g->nodes.data[i]->outputs.data[0];
        /* Boxes are in cells and pixels, softmax rows sum up to one and
         * masks are huge, whatever the weights. */
        if (!dtype_is_float(t->type.dtype) ||
            !strncmp(t->name, "decode.", 7) ||
            !strcmp(g->nodes.data[i]->op->name, "Softmax") ||
            strstr(t->name, ".masked"))
            continue;
        double rms = rms_of(one.by_id[t->id]);
        if (!(rms >= 0.05 && rms <= 20) && !t->is_output)
            fail_msg("%s: %s has rms %g", name, t->name, rms);
    }
    for (int i = 0; i < g->outputs.count; i++) {
        int id = g->outputs.data[i]->id;
        Difference d =
            compare_arrays(two.by_id[id], one.by_id[id], tolerance_f32);
        if (d.max_error < 0.01)
            fail_msg("%s: output %s hardly depends on the input (%g)", name,
                     g->outputs.data[i]->name, d.max_error);
    }
    arena_free(arena);
}

/* Seeded weights must let every layer be checked: what is next to nothing,
 * or drowns the rest, would hide a fault. */
static void layers_keep_their_size(void **state)
{
    (void)state;
    for (int i = 0; suite_models()[i]; i++) {
        const SuiteModel *m = suite_models()[i];
        char name[64];
        if (!m->build)
            continue;
        snprintf(name, sizeof name, "%s@64", m->name);
        check_sizes(name);
    }
    check_sizes("yolov8n@128,width=0.5,seed=5");
    check_sizes("yolov3_tiny@96,width=0.25,seed=5,batch=2");
    check_sizes("mobilenet_v3_large@96,width=0.5,seed=3");
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
    SuiteParams p;
    const SuiteModel *m = suite_find("yolo_fashion", &p, &why);
    assert_int_equal(m->data->metric, METRIC_MAP50);
    if (!m->data->load(arena, SCENES, &images, &labels, &why)) {
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
    assert_true(m->data->load(arena, 10, &first, &first_labels, &why));
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
        cmocka_unit_test(layers_keep_their_size),
        cmocka_unit_test(parameters_change_the_graph),
        cmocka_unit_test(seeds_change_the_weights),
        cmocka_unit_test(normal_is_normal),
        cmocka_unit_test(fashion_data),
        cmocka_unit_test(scenes_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
