/* The base: arena, strings, arrays, attributes, maps and layouts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/attrs.h"
#include "base/diag.h"
#include "base/hash.h"
#include "base/layout.h"
#include "base/str.h"

static int setup(void **state)
{
    *state = arena_new();
    return 0;
}

static int teardown(void **state)
{
    arena_free(*state);
    return 0;
}

static void test_arena(void **state)
{
    Arena *a = *state;
    char *last = NULL;
    for (size_t size = 0; size < 3000; size += 7) {
        char *data = arena_alloc(a, size);
        assert_int_equal((uintptr_t)data % (size >= 64 ? 64 : 16), 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(data[i], 0);
        memset(data, 0xff, size);
        assert_ptr_not_equal(data, last);
        last = data;
    }
    char *big = arena_alloc(a, 5 << 20);
    assert_int_equal(big[(5 << 20) - 1], 0);
    assert_string_equal(arena_printf(a, "%d-%s", 7, "x"), "7-x");
    assert_string_equal(arena_strndup(a, "hello", 2), "he");
    size_t before = arena_used(a);
    assert_string_equal(arena_strndup(a, "hello", 60), "hello");
    assert_in_range(arena_used(a) - before, 6, 32);
    assert_true(arena_used(a) > (5 << 20));
}

static void test_vec(void **state)
{
    Vec(int) list = {0};
    for (int i = 0; i < 1000; i++)
        vec_push(*state, &list, i * i);
    assert_int_equal(list.count, 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(list.data[i], i * i);
    vec_remove(&list, 3);
    assert_int_equal(list.count, 999);
    assert_int_equal(list.data[2], 4);
    assert_int_equal(list.data[3], 16);
    assert_int_equal(list.data[998], 999 * 999);
}

static void expect_float(float value, const char *text)
{
    Str str = {0};
    str_add_float(&str, value);
    assert_string_equal(str_text(&str), text);
    str_free(&str);
}

static void test_str(void **state)
{
    (void)state;
    Str str = {0};
    assert_string_equal(str_text(&str), "");
    str_addf(&str, "%s=%d;", "a", 12);
    str_add_double(&str, 0.1);
    str_add(&str, " ");
    str_add_double(&str, 1.0 / 3);
    str_add(&str, " ");
    str_add_quoted(&str, "a\"b\\c\nd\x01\xc3\xa9");
    assert_string_equal(str_text(&str), "a=12;0.1 0.3333333333333333 "
                                        "\"a\\\"b\\\\c\\nd\\x01\xc3\xa9\"");
    str_free(&str);
    for (int i = 0; i < 300; i++)
        str_add(&str, "abc");
    assert_int_equal(str.length, 900);
    assert_int_equal(strlen(str_text(&str)), 900);
    str_free(&str);
    expect_float(0.1f, "0.1");
    expect_float(16777216.0f, "16777216");
    expect_float(1e-45f, "1e-45");
    expect_float(-0.0f, "-0");
    expect_float(-INFINITY, "-inf");
    expect_float(NAN, "nan");
}

static void test_diag(void **state)
{
    Diag *diag = diag_new(*state, "m.onnx");
    assert_false(diag_error(diag, "node %s", "n1"));
    diag_warn(diag, "odd %d", 3);
    assert_int_equal(diag->errors.count, 1);
    assert_string_equal(diag->errors.data[0], "node n1");
    assert_string_equal(diag->warnings.data[0], "odd 3");
}

static void test_hash(void **state)
{
    /* XXH3's published value for the empty input and seed 0. */
    assert_true(hash_bytes("", 0, 0) == 0x2d06800538d394c2u);
    assert_true(hash_text("abc") == hash_bytes("abcd", 3, 0));
    assert_true(hash_text("abc") != hash_text("abd"));
    Map map;
    map_init(&map, *state);
    assert_null(map_get(&map, "x"));
    for (intptr_t i = 1; i <= 5000; i++)
        map_set(&map, arena_printf(*state, "key%d", (int)i), (void *)i);
    map_set(&map, "key17", (void *)(intptr_t)99999);
    assert_int_equal(map.count, 5000);
    for (int i = 1; i <= 5000; i++) {
        char key[20];
        snprintf(key, sizeof key, "key%d", i);
        assert_int_equal((intptr_t)map_get(&map, key), i == 17 ? 99999 : i);
    }
    assert_null(map_get(&map, "key5001"));
}

static void test_array(void **state)
{
    const int64_t dims[] = {2, 3};
    Array *array = array_new(*state, DT_F32, 2, dims);
    assert_int_equal(array_count(array), 6);
    assert_int_equal(array_bytes(array), 24);
    assert_int_equal((uintptr_t)array->data % 64, 0);
    array_set(array, 4, 0.1);
    assert_true(array_get(array, 4) == (double)0.1f);
    assert_int_equal(array_count(array_scalar(*state, DT_I32, 3)), 1);
    const int64_t empty[] = {3, 0, 4};
    assert_int_equal(array_bytes(array_new(*state, DT_F64, 3, empty)), 0);
    const int64_t ints[] = {INT64_MAX, -5};
    Array *list = array_ints(*state, ints, 2);
    assert_true(array_get_int(list, 0) == INT64_MAX);
    assert_int_equal(array_get_int(list, 1), -5);

    /* Saturation, truncation, and NaN as true. */
    Array *bytes = array_new(*state, DT_I8, 2, dims);
    array_set(bytes, 0, 300);
    array_set(bytes, 1, -1.9);
    array_set_int(bytes, 2, -1000);
    array_set(bytes, 3, (double)NAN);
    assert_int_equal(array_get_int(bytes, 0), 127);
    assert_int_equal(array_get_int(bytes, 1), -1);
    assert_int_equal(array_get_int(bytes, 2), -128);
    assert_int_equal(array_get_int(bytes, 3), 0);
    Array *bools = array_scalar(*state, DT_BOOL, (double)NAN);
    assert_int_equal(array_get_int(bools, 0), 1);
    Array *large = array_scalar(*state, DT_U64, 0x1p63);
    assert_true(array_get(large, 0) == 0x1p63);
    for (int i = DT_INVALID + 1; i < DT_COUNT; i++)
        assert_int_equal(dtype_parse(dtype_name((DType)i)), i);
    assert_int_equal(dtype_parse("f33"), DT_INVALID);
}

static void test_half(void **state)
{
    (void)state;
    assert_int_equal(float_to_half(1.0f), 0x3c00);
    assert_int_equal(float_to_half(-2.0f), 0xc000);
    assert_int_equal(float_to_half(65504.0f), 0x7bff);
    assert_int_equal(float_to_half(65519.0f), 0x7bff);
    assert_int_equal(float_to_half(65520.0f), 0x7c00);
    assert_int_equal(float_to_half(0x1p-24f), 1);
    assert_int_equal(float_to_half(0x1p-25f), 0); /* a tie, to even */
    assert_int_equal(float_to_half(0x1.8p-24f), 2);
    assert_int_equal(float_to_half(1.0f + 0x1p-11f), 0x3c00);
    assert_int_equal(float_to_half(1.0f + 0x1.8p-10f), 0x3c02);
    for (int bits = 0; bits < 0x10000; bits++) {
        float value = half_to_float((uint16_t)bits);
        if (isnan(value))
            assert_true((float_to_half(value) & 0x7fff) > 0x7c00);
        else
            assert_int_equal(float_to_half(value), bits);
    }
    assert_int_equal(float_to_bfloat(1.0f), 0x3f80);
    assert_int_equal(float_to_bfloat(0x1.01p0f), 0x3f80); /* tie, to even */
    assert_int_equal(float_to_bfloat(0x1.03p0f), 0x3f82);
    assert_true(isnan(bfloat_to_float(float_to_bfloat(NAN))));
    assert_true(bfloat_to_float(0x4049) == 3.140625f);
}

static void test_attrs(void **state)
{
    Attrs attrs = {0};
    int64_t pads[] = {1, 2, 3, 4};
    int count;
    attrs_set_ints(*state, &attrs, "pads", pads, 4);
    attrs_set_int(*state, &attrs, "group", 2);
    attrs_set_float(*state, &attrs, "alpha", 0.5);
    attrs_set_string(*state, &attrs, "mode", "linear");
    attrs_set_int(*state, &attrs, "group", 3);
    pads[0] = 9; /* the values were copied */
    assert_int_equal(attrs.list.count, 4);
    assert_string_equal(attrs.list.data[0].name, "alpha");
    assert_string_equal(attrs.list.data[3].name, "pads");
    assert_int_equal(attrs_int(&attrs, "group", 1), 3);
    assert_int_equal(attrs_int(&attrs, "absent", 7), 7);
    assert_true(attrs_float(&attrs, "alpha", 1) == 0.5);
    assert_string_equal(attrs_string(&attrs, "mode", ""), "linear");
    assert_int_equal(attrs_ints(&attrs, "pads", &count)[0], 1);
    assert_int_equal(count, 4);
    assert_null(attrs_ints(&attrs, "absent", &count));
    assert_int_equal(count, 0);
    attrs_remove(&attrs, "group");
    assert_null(attrs_find(&attrs, "group"));
    assert_int_equal(attrs.list.count, 3);
}

static Layout parse(const char *text, int rank)
{
    Layout layout;
    const char *at = text;
    assert_true(layout_parse(&at, rank, &layout));
    assert_int_equal(*at, 0);
    Str printed = {0};
    layout_print(&printed, &layout);
    assert_string_equal(str_text(&printed), text);
    str_free(&printed);
    return layout;
}

/* Packing and unpacking gives the array back, and each element lies where
 * layout_offset says. */
static void round_trip(Arena *a, const Layout *layout, int rank,
                       const int64_t *dims)
{
    Array *from = array_new(a, DT_I32, rank, dims);
    for (int64_t i = 0; i < array_count(from); i++)
        array_set_int(from, i, i + 1);
    int64_t size = layout_size(layout, rank, dims), filled = 0;
    int32_t *storage = ARENA_ARRAY(a, int32_t, size);
    memset(storage, 0x55, (size_t)size * 4);
    layout_pack(layout, from, storage);
    for (int64_t i = 0; i < array_count(from); i++) {
        int64_t index[MAX_RANK], rest = i;
        for (int axis = rank - 1; axis >= 0; axis--) {
            index[axis] = rest % dims[axis];
            rest /= dims[axis];
        }
        int64_t offset = layout_offset(layout, rank, dims, index);
        assert_in_range(offset, 0, size - 1);
        assert_int_equal(storage[offset], i + 1);
    }
    for (int64_t i = 0; i < size; i++)
        filled += storage[i] != 0;
    assert_int_equal(filled, array_count(from));
    Array *back = array_new(a, DT_I32, rank, dims);
    layout_unpack(layout, storage, back);
    assert_memory_equal(from->data, back->data, array_bytes(from));
}

static void test_layout(void **state)
{
    const int64_t dims[] = {2, 19, 3, 5};
    const int64_t index[] = {1, 18, 2, 4};
    Layout plain = layout_row_major(4);
    assert_true(layout_is_row_major(&plain, 4));
    round_trip(*state, &plain, 4, dims);

    Layout last = parse("[0 2+1+1 3+1+2 1]", 4);
    assert_true(layout_has_border(&last));
    assert_false(layout_is_row_major(&last, 4));
    assert_int_equal(layout_size(&last, 4, dims), 2 * 5 * 8 * 19);
    assert_int_equal(layout_offset(&last, 4, dims, index),
                     ((1 * 5 + 3) * 8 + 5) * 19 + 18);
    const int64_t border[] = {0, 0, -1, -1};
    assert_int_equal(layout_offset(&last, 4, dims, border), 0);
    round_trip(*state, &last, 4, dims);

    Layout blocked = parse("[0 1 2 3 1%8]", 4);
    assert_int_equal(layout_extent(&blocked, 1, dims), 3);
    assert_int_equal(layout_size(&blocked, 4, dims), 2 * 3 * 15 * 8);
    assert_int_equal(layout_offset(&blocked, 4, dims, index),
                     ((1 * 3 + 2) * 15 + 14) * 8 + 2);
    round_trip(*state, &blocked, 4, dims);

    Layout twice = parse("[0 1 2+1+0 1%4 3 1%2]", 4);
    assert_int_equal(layout_extent(&twice, 1, dims), 3);
    round_trip(*state, &twice, 4, dims);

    /* A part of a larger buffer: the same offsets, shifted, and storage of
     * the same size. Here channels 4 to 10 of 19, then rows 1 and 2. */
    Layout part = parse("[0 2 3+1+2 1]", 4);
    assert_false(layout_is_part(&part));
    Layout whole = part;
    int64_t part_dims[] = {2, 7, 3, 5}, at[] = {1, 6, 2, 4},
            whole_at[] = {1, 10, 2, 4};
    assert_true(layout_take_part(&part, dims, 1, 4, 7));
    assert_true(layout_is_part(&part) && !layout_equal(&part, &whole));
    assert_int_equal(layout_size(&part, 4, part_dims),
                     layout_size(&whole, 4, dims));
    assert_int_equal(layout_offset(&part, 4, part_dims, at),
                     layout_offset(&whole, 4, dims, whole_at));
    round_trip(*state, &part, 4, part_dims);
    assert_true(layout_take_part(&part, part_dims, 2, 1, 2));
    part_dims[2] = 2;
    at[2] = 1;
    assert_int_equal(layout_size(&part, 4, part_dims),
                     layout_size(&whole, 4, dims));
    assert_int_equal(layout_offset(&part, 4, part_dims, at),
                     layout_offset(&whole, 4, dims, whole_at));
    round_trip(*state, &part, 4, part_dims);
    Layout printed = parse("[0 2~152~0 3+1+2 1~4~8]", 4);
    assert_true(layout_equal(&part, &printed));
    /* Along an axis with a border the outer parts have it, and it is others'
     * to those within. */
    for (int start = 0; start < 5; start += 2) {
        Layout edge = parse("[0 2 3+1+2 1]", 4);
        const int64_t few[] = {2, 19, 3, start < 4 ? 2 : 1};
        const int64_t place[] = {1, 10, 2, 0};
        const int64_t whole_place[] = {1, 10, 2, start};
        assert_true(layout_take_part(&edge, dims, 3, start, few[3]));
        assert_int_equal(edge.lo[3], start == 0 ? 1 : 0);
        assert_int_equal(edge.hi[3], start == 4 ? 2 : 0);
        assert_int_equal(layout_size(&edge, 4, few),
                         layout_size(&whole, 4, dims));
        assert_int_equal(layout_offset(&edge, 4, few, place),
                         layout_offset(&whole, 4, dims, whole_place));
        round_trip(*state, &edge, 4, few);
    }
    assert_false(layout_take_part(&blocked, dims, 1, 8, 8));

    /* Axes of one element may lie anywhere; borders may not. */
    const int64_t thin[] = {1, 19, 3, 1};
    Layout a = parse("[0 2 3 1]", 4), b = parse("[2 0 1 3]", 4);
    assert_true(layout_same_storage(&a, &b, 4, thin));
    assert_false(layout_same_storage(&a, &b, 4, dims));
    b = parse("[2 0 1 3+1+0]", 4);
    assert_false(layout_same_storage(&a, &b, 4, thin));
    b = parse("[2 0~0~19 1 3]", 4);
    assert_false(layout_same_storage(&a, &b, 4, thin));
    a = parse("[0 2 3~0~19 1]", 4);
    assert_true(layout_same_storage(&a, &b, 4, thin));

    const int order[] = {0, 2, 3, 1};
    Layout nhwc = layout_permuted(4, order), same = parse("[0 2 3 1]", 4);
    assert_true(layout_equal(&nhwc, &same));
    Layout scalar = parse("[]", 0);
    round_trip(*state, &scalar, 0, NULL);

    const char *bad[] = {"[0 1",    "[0 2]",   "[0 0 1]", "[0 1 1%0]",
                         "0 1]",    "[0  1]",  "[0 1+1]", "[0]",
                         "[0 1~2]", "[0 1~2~]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *text = bad[i];
        Layout layout;
        assert_false(layout_parse(&text, 2, &layout));
        assert_ptr_equal(text, bad[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_arena, setup, teardown),
        cmocka_unit_test_setup_teardown(test_vec, setup, teardown),
        cmocka_unit_test_setup_teardown(test_str, setup, teardown),
        cmocka_unit_test_setup_teardown(test_diag, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hash, setup, teardown),
        cmocka_unit_test_setup_teardown(test_array, setup, teardown),
        cmocka_unit_test_setup_teardown(test_half, setup, teardown),
        cmocka_unit_test_setup_teardown(test_attrs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_layout, setup, teardown),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
