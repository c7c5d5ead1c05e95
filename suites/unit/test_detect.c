/* Detection and the scoring of outputs by labels, on values worked out by
 * hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "harness/score.h"

#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-6)

static int set_up(void **state)
{
    *state = arena_new();
    return 0;
}

static int tear_down(void **state)
{
    arena_free(*state);
    return 0;
}

static void overlaps(void **state)
{
    (void)state;
    Box a = {0, 0, 2, 2};
    assert_true(detect_iou(a, a) == 1);
    NEAR(detect_iou(a, (Box){1, 0, 3, 2}), 2.0 / 6);
    NEAR(detect_iou((Box){1, 1, 3, 3}, (Box){0, 0, 4, 4}), 4.0 / 16);
    assert_true(detect_iou(a, (Box){2, 0, 4, 2}) == 0); /* touches */
    assert_true(detect_iou(a, (Box){5, 5, 6, 6}) == 0);
    assert_true(detect_iou((Box){1, 1, 1, 1}, (Box){1, 1, 1, 1}) == 0);
    assert_true(detect_iou(a, (Box){NAN, NAN, NAN, NAN}) == 0);
}

/* ---- decoding --------------------------------------------------------- */

enum { KINDS = 2, ROWS = 2, COLUMNS = 3, PLANE = ROWS * COLUMNS };

/* Cells of `count` images that find nothing. */
static Array *no_cells(Arena *arena, int count)
{
    int64_t dims[] = {count, 5 + KINDS, ROWS, COLUMNS};
    Array *cells = array_new(arena, DT_F32, 4, dims);
    for (int n = 0; n < count; n++)
        for (int i = 0; i < PLANE; i++)
            array_set(cells, (n * (5 + KINDS) + 4) * PLANE + i, -30);
    return cells;
}

static void set_cell(Array *cells, int example, int row, int column,
                     const double values[5 + KINDS])
{
    for (int k = 0; k < 5 + KINDS; k++)
        array_set(cells,
                  (example * (5 + KINDS) + k) * PLANE + row * COLUMNS + column,
                  values[k]);
}

static void decodes_cells(void **state)
{
    Array *cells = no_cells(*state, 2);
    /* sigmoid(log 3) = 3/4, sigmoid(log 4) = 4/5. */
    set_cell(cells, 1, 1, 2,
             (double[]){log(3), -log(3), log(2), -log(2), log(4), log(3), 0});
    Detections found = {0};
    detect_decode(*state, cells, 0, 30, 40, &found);
    assert_int_equal(found.count, 0);
    detect_decode(*state, cells, 1, 30, 40, &found); /* cells of 10 x 20 */
    assert_int_equal(found.count, 2);
    for (int k = 0; k < KINDS; k++) {
        Detection d = found.data[k];
        assert_true(d.example == 1 && d.kind == k);
        NEAR(d.score, 0.8 * (k ? 0.25 : 0.75));
        /* Centre 27.5, 25; size 20 x 10. */
        NEAR(d.box.x0, 17.5);
        NEAR(d.box.y0, 20);
        NEAR(d.box.x1, 37.5);
        NEAR(d.box.y1, 30);
    }
}

static void leaves_out_faint_boxes(void **state)
{
    Array *cells = no_cells(*state, 1);
    double object = log(0.0101 / (1 - 0.0101));
    set_cell(cells, 0, 0, 0, (double[]){0, 0, 0, 0, object, 50, 0});
    object = log(0.0099 / (1 - 0.0099));
    set_cell(cells, 0, 0, 1, (double[]){0, 0, 0, 0, object, 50, 0});
    Detections found = {0};
    detect_decode(*state, cells, 0, 30, 20, &found);
    assert_int_equal(found.count, 1);
    NEAR(found.data[0].box.x0, 0);
}

static void survives_non_finite_cells(void **state)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY, 3e38, -3e38};
    Arena *arena = *state;
    for (size_t b = 0; b < sizeof bad / sizeof bad[0]; b++)
        for (int all = 0; all < 2; all++)
            for (int k = 0; k < 5 + KINDS; k++) {
                Array *cells = no_cells(arena, 1);
                double values[5 + KINDS] = {0, 0, 0, 0, 3, 3, 0};
                for (int i = all ? 0 : k; i <= k; i++)
                    values[i] = bad[b];
                set_cell(cells, 0, 0, 0, values);
                /* A good one beside it is found all the same. */
                set_cell(cells, 0, 1, 2, (double[]){0, 0, 0, 0, 9, 9, 0});
                Detections found = {0}, truth = {0};
                detect_decode(arena, cells, 0, 30, 20, &found);
                detect_suppress(&found, 0);
                for (int i = 0; i < found.count; i++) {
                    Box box = found.data[i].box;
                    assert_true(found.data[i].score <= 1);
                    assert_true(isfinite(box.x0) && isfinite(box.x1) &&
                                isfinite(box.y0) && isfinite(box.y1));
                }
                Detection good = {0, 0, 1, {20, 10, 30, 20}};
                vec_push(arena, &truth, good);
                double map = detect_map50(arena, &found, &truth, KINDS);
                assert_true(map >= 0.5 && map <= 1);
            }
}

static void suppresses_greedily(void **state)
{
    Arena *arena = *state;
    static const Detection all[] = {
        {0, 0, 0.1, {0, 0, 10, 10}}, /* of another image */
        {1, 0, 0.5, {4, 0, 14, 10}}, /* IoU 6/14 with .9, 8/12 with .7 */
        {1, 0, 0.7, {2, 0, 12, 10}}, /* IoU 8/12 with .9: goes */
        {1, 0, 0.9, {0, 0, 10, 10}},
        {1, 1, 0.6, {0, 0, 10, 10}},  /* another kind */
        {1, 0, 0.3, {0, 0, 10, 20}},  /* IoU just 0.5 with .9: goes */
        {1, 1, 0.6, {50, 0, 60, 10}}, /* as good as the other .6: after */
        {1, 1, 0.6, {50, 0, 60, 11}}, /* as good, but later: goes */
    };
    Detections found = {0};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        vec_push(arena, &found, all[i]);
    detect_suppress(&found, 1);
    static const int stay[] = {0, 3, 4, 6, 1};
    assert_int_equal(found.count, 5);
    for (int i = 0; i < 5; i++)
        assert_memory_equal(&found.data[i], &all[stay[i]], sizeof *all);
}

/* ---- average precision ------------------------------------------------ */

static void average_precision(void **state)
{
    (void)state;
    static const bool mixed[] = {true, false, true};
    /* Precision 1 at the 51 recalls up to 0.5, then 2/3 at 50. */
    NEAR(detect_average_precision(mixed, 3, 2), (51 + 50 * 2.0 / 3) / 101);
    /* A third of the true boxes: 34 recalls are reached. */
    NEAR(detect_average_precision(mixed, 1, 3), 34.0 / 101);
    NEAR(detect_average_precision(mixed + 1, 2, 1), 0.5);
    NEAR(detect_average_precision(mixed + 2, 1, 1), 1);
    /* Precision 1, 1/2, 2/3, 3/4 is made 1, 3/4, 3/4, 3/4. */
    static const bool late[] = {true, false, true, true};
    NEAR(detect_average_precision(late, 4, 3), (34 + 67 * 0.75) / 101);
    assert_true(detect_average_precision(mixed + 1, 1, 5) == 0);
    assert_true(detect_average_precision(mixed, 0, 5) == 0);
}

static double map_of(Arena *arena, const Detection *found, int found_count,
                     const Detection *truth, int truth_count, int kinds)
{
    Detections f = {0}, t = {0};
    for (int i = 0; i < found_count; i++)
        vec_push(arena, &f, found[i]);
    for (int i = 0; i < truth_count; i++)
        vec_push(arena, &t, truth[i]);
    return detect_map50(arena, &f, &t, kinds);
}

static void mean_average_precision(void **state)
{
    Arena *arena = *state;
    static const Detection truth[] = {
        {0, 0, 1, {0, 0, 10, 10}},
        {0, 0, 1, {20, 0, 30, 10}},
        {1, 1, 1, {0, 0, 10, 10}},
    };
    /* As good as it gets; kind 2 has no true box and does not count. */
    NEAR(map_of(arena, truth, 3, truth, 3, 3), 1);
    assert_true(map_of(arena, truth, 0, truth, 3, 3) == 0);
    assert_true(isnan(map_of(arena, truth, 3, truth, 0, 3)));
    /* A second find of the same box is wrong. */
    static const Detection twice[] = {
        {0, 0, 0.9, {0, 0, 10, 10}},
        {0, 0, 0.8, {0, 0, 10, 10}},
        {0, 0, 0.7, {20, 0, 30, 10}},
        {1, 1, 0.1, {0, 0, 10, 10}},
    };
    double ap = (51 + 50 * 2.0 / 3) / 101;
    NEAR(map_of(arena, twice, 4, truth, 3, 2), (ap + 1) / 2);
    /* So are the right place in another image and the wrong kind. */
    static const Detection wrong[] = {
        {0, 1, 0.9, {0, 0, 10, 10}},
        {1, 0, 0.9, {20, 0, 30, 10}},
    };
    assert_true(map_of(arena, wrong, 2, truth, 3, 2) == 0);
    /* An IoU of just 0.5 is enough, less is not. */
    static const Detection edge[] = {{1, 1, 0.9, {0, 0, 10, 20}}};
    static const Detection less[] = {{1, 1, 0.9, {0, 0, 10, 20.1}}};
    NEAR(map_of(arena, edge, 1, truth + 2, 1, 2), 1);
    assert_true(map_of(arena, less, 1, truth + 2, 1, 2) == 0);
}

/* Both detections fit the first box best; the second one takes the other,
 * which it fits well enough. */
static void takes_the_best_box_left(void **state)
{
    static const Detection truth[] = {
        {0, 0, 1, {0, 0, 10, 10}},
        {0, 0, 1, {0, 0, 10, 13}},
    };
    static const Detection found[] = {
        {0, 0, 0.9, {0, 0, 10, 10}},
        {0, 0, 0.8, {0, 0, 10, 9}},
    };
    NEAR(map_of(*state, found, 2, truth, 2, 1), 1);
    /* Of equal overlaps the first is taken, so that nothing is left for the
     * second detection. */
    static const Detection halves[] = {
        {0, 0, 1, {0, 0, 10, 8}},
        {0, 0, 1, {0, 2, 10, 10}},
    };
    static const Detection equal[] = {
        {0, 0, 0.9, {0, 0, 10, 10}},
        {0, 0, 0.8, {0, 0, 10, 5}},
    };
    NEAR(map_of(*state, equal, 2, halves, 2, 1), 51.0 / 101);
}

static void equal_scores_keep_their_order(void **state)
{
    static const Detection truth[] = {{0, 0, 1, {0, 0, 10, 10}}};
    static const Detection found[] = {
        {0, 0, 0.5, {0, 0, 10, 10}},
        {0, 0, 0.5, {50, 0, 60, 10}},
        {0, 0, 0.5, {0, 0, 10, 10}},
    };
    NEAR(map_of(*state, found, 2, truth, 1, 1), 1);
    NEAR(map_of(*state, found + 1, 2, truth, 1, 1), 0.5);
}

static void agreement(void **state)
{
    Arena *arena = *state;
    static const Detection all[] = {
        {0, 0, 0.9, {0, 0, 10, 10}},
        {0, 0, 0.2, {20, 0, 30, 10}}, /* does not count */
        {2, 1, 0.5, {0, 0, 10, 10}},
    };
    Detections a = {0}, b = {0}, none = {0};
    for (int i = 0; i < 3; i++)
        vec_push(arena, &a, all[i]);
    assert_true(detect_agreement(arena, &a, &a) == 1);
    assert_true(detect_agreement(arena, &none, &none) == 1);
    assert_true(detect_agreement(arena, &a, &none) == 0);
    assert_true(detect_agreement(arena, &none, &a) == 0);
    vec_push(arena, &b, all[0]);
    Detection again = all[0];
    vec_push(arena, &b, again); /* has no partner */
    vec_push(arena, &b, all[2]);
    NEAR(detect_agreement(arena, &a, &b), 2 * 2.0 / 5);
    NEAR(detect_agreement(arena, &b, &a), 2 * 2.0 / 5);
    b.data[2].kind = 0;
    NEAR(detect_agreement(arena, &a, &b), 2 * 1.0 / 5);
}

/* ---- metrics ---------------------------------------------------------- */

static void top1(void **state)
{
    Arena *arena = *state;
    const Score *m = score_metric(METRIC_TOP1);
    assert_string_equal(m->name, "top1");
    enum { COUNT = 6, CLASSES = 3 };
    static const float rows[COUNT][CLASSES] = {
        {0, 2, 1},   {5, 5, 1}, /* the first of equal ones */
        {NAN, 1, 2}, {NAN, NAN, NAN}, {-INFINITY, -1, -2}, {3, 2, NAN},
    };
    static const int64_t labels[COUNT] = {1, 0, 2, 0, 2, 1};
    static const int64_t classes[COUNT] = {1, 0, 2, -1, 1, 0};
    Labels l = {.values = array_ints(arena, labels, COUNT), .count = COUNT};
    int64_t dims[] = {COUNT, CLASSES};
    Array *scores = array_new(arena, DT_F32, 2, dims);
    memcpy(scores->data, rows, sizeof rows);
    Predictions a = {0}, b = {0};
    Str why = {0};
    assert_true(m->read(arena, &l, scores, &a, &why));
    assert_memory_equal(a.classes, classes, sizeof classes);
    NEAR(m->accuracy(arena, &l, &a), 3.0 / 6);
    array_set(scores, 0, 9);
    assert_true(m->read(arena, &l, scores, &b, &why));
    NEAR(m->agreement(arena, &l, &a, &a), 1);
    NEAR(m->agreement(arena, &l, &a, &b), 5.0 / 6);
    l.count = 4;
    assert_false(m->read(arena, &l, scores, &b, &why));
    assert_non_null(strstr(str_text(&why), "4 labels for scores [6, 3]"));
    str_free(&why);
}

static void map50(void **state)
{
    Arena *arena = *state;
    const Score *m = score_metric(METRIC_MAP50);
    assert_string_equal(m->name, "map50");
    Array *cells = no_cells(arena, 2);
    /* The same box of kind 1 in both images; in the first one once more,
     * a bit to the left, which suppression has to remove. */
    set_cell(cells, 0, 0, 1, (double[]){0, 0, log(2), 0, 5, 0, 9});
    set_cell(cells, 0, 0, 0, (double[]){30, 0, log(2), 0, 4, 0, 9});
    set_cell(cells, 1, 0, 1, (double[]){0, 0, log(2), 0, 3, 0, 9});
    set_cell(cells, 1, 1, 2, (double[]){0, 0, 0, 0, 5, 9, 0});
    static const float boxes[][SUITE_BOX] = {
        {0, 1, 5, 0, 25, 10}, {1, 1, 5, 0, 25, 10}, {1, 0, 20, 10, 30, 20}};
    int64_t dims[] = {3, SUITE_BOX};
    Array *values = array_new(arena, DT_F32, 2, dims);
    memcpy(values->data, boxes, sizeof boxes);
    Labels l = {values, 2, 30, 20};
    Predictions a = {0}, b = {0};
    Str why = {0};
    assert_true(m->read(arena, &l, cells, &a, &why));
    NEAR(m->accuracy(arena, &l, &a), 1);
    NEAR(m->agreement(arena, &l, &a, &a), 1);
    set_cell(cells, 1, 1, 2, (double[]){0, 0, 0, 0, 5, 0, 9});
    assert_true(m->read(arena, &l, cells, &b, &why));
    /* Kind 0 is not found; of kind 1, the second is wrong. */
    NEAR(m->accuracy(arena, &l, &b), (51 + 50 * 2.0 / 3) / 101 / 2);
    NEAR(m->agreement(arena, &l, &a, &b), 2 * 2.0 / 6);
    l.count = 3;
    assert_false(m->read(arena, &l, cells, &b, &why));
    assert_non_null(strstr(str_text(&why), "not [2, 7, 2, 3]"));
    str_free(&why);
    cells->rank = 2;
    l.count = 2;
    assert_false(m->read(arena, &l, cells, &b, &why));
    str_free(&why);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(overlaps),
        TEST(decodes_cells),
        TEST(leaves_out_faint_boxes),
        TEST(survives_non_finite_cells),
        TEST(suppresses_greedily),
        TEST(average_precision),
        TEST(mean_average_precision),
        TEST(takes_the_best_box_left),
        TEST(equal_scores_keep_their_order),
        TEST(agreement),
        TEST(top1),
        TEST(map50),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
