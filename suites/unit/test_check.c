/* Comparing with the reference: what agrees, what does not, and what is
 * said about it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>

#include "harness/check.h"

static Difference compare(DType dtype, int count, const double *got,
                          const double *wanted)
{
    Arena *arena = arena_new();
    int64_t dims[] = {count};
    Array *a = array_new(arena, dtype, 1, dims);
    Array *b = array_new(arena, dtype, 1, dims);
    for (int i = 0; i < count; i++) {
        array_set(a, i, got[i]);
        array_set(b, i, wanted[i]);
    }
    Difference d = compare_arrays(a, b, tolerance_f32);
    arena_free(arena);
    return d;
}

static void equal_agrees(void **state)
{
    (void)state;
    static const double v[] = {1, -2, 0, 1e30};
    Difference d = compare(DT_F64, 4, v, v);
    assert_true(d.agrees && d.max_error == 0 && d.max_excess == 0);
    assert_true(isinf(d.sqnr) && d.sqnr > 0);
}

/* rms 5, so atol allows 5e-4; at the element 5 rtol adds 5e-3. */
static void tolerance_is_as_stated(void **state)
{
    (void)state;
    static const double wanted[] = {5, 5, 5, 5};
    double got[] = {5, 5, 5 + 5.4e-3, 5};
    Difference d = compare(DT_F64, 4, got, wanted);
    assert_true(d.agrees);
    got[2] = 5 + 5.6e-3;
    d = compare(DT_F64, 4, got, wanted);
    assert_false(d.agrees);
    assert_int_equal(d.worst, 2);
    assert_true(fabs(d.max_excess - 5.6 / 5.5) < 1e-9);
    assert_true(fabs(d.max_error - 5.6e-3 / 5) < 1e-9);
    assert_true(fabs(d.rms - 5) < 1e-12);
}

static void signal_to_noise(void **state)
{
    (void)state;
    static const double wanted[] = {10, 10}, got[] = {10.1, 9.9};
    Difference d = compare(DT_F64, 2, got, wanted);
    assert_true(fabs(d.sqnr - 40) < 1e-9); /* 200 to 0.02 */
}

static void special_values(void **state)
{
    (void)state;
    static const double wanted[] = {NAN, INFINITY, -INFINITY, 1};
    double got[] = {NAN, INFINITY, -INFINITY, 1};
    assert_true(compare(DT_F32, 4, got, wanted).agrees);
    for (int i = 0; i < 4; i++) {
        double kept = got[i];
        got[i] = i == 3 ? NAN : 1;
        Difference d = compare(DT_F32, 4, got, wanted);
        assert_false(d.agrees);
        assert_int_equal(d.worst, i);
        got[i] = kept;
    }
    got[1] = -INFINITY;
    assert_false(compare(DT_F32, 4, got, wanted).agrees);
}

/* All zeros as reference: only zeros agree. */
static void zero_reference(void **state)
{
    (void)state;
    static const double zero[] = {0, 0}, tiny[] = {0, 1e-30};
    assert_true(compare(DT_F64, 2, zero, zero).agrees);
    assert_false(compare(DT_F64, 2, tiny, zero).agrees);
}

static void integers_must_be_equal(void **state)
{
    (void)state;
    static const double wanted[] = {1, 200, -3}, got[] = {1, 201, -3};
    assert_true(compare(DT_I32, 3, wanted, wanted).agrees);
    Difference d = compare(DT_I32, 3, got, wanted);
    assert_false(d.agrees);
    assert_int_equal(d.worst, 1);
    assert_true(d.got == 201 && d.wanted == 200);
}

/* Two 64-bit integers that are one double. */
static void large_integers(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    int64_t dims[] = {1};
    Array *a = array_new(arena, DT_I64, 1, dims);
    Array *b = array_new(arena, DT_I64, 1, dims);
    array_set_int(a, 0, (INT64_C(1) << 60) + 1);
    array_set_int(b, 0, INT64_C(1) << 60);
    assert_false(compare_arrays(a, b, tolerance_f32).agrees);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_agrees),
        cmocka_unit_test(tolerance_is_as_stated),
        cmocka_unit_test(signal_to_noise),
        cmocka_unit_test(special_values),
        cmocka_unit_test(zero_reference),
        cmocka_unit_test(integers_must_be_equal),
        cmocka_unit_test(large_integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
