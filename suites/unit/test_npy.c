/* .npy files: what is written reads back, NumPy's own bytes are understood,
 * and broken files are refused with their name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "harness/npy.h"

typedef struct Fixture {
    Arena *arena;
    char path[64];
    Str error;
} Fixture;

static int set_up(void **state)
{
    Fixture *f = calloc(1, sizeof *f);
    f->arena = arena_new();
    strcpy(f->path, "/tmp/assay_npy_XXXXXX");
    int fd = mkstemp(f->path);
    close(fd);
    *state = f;
    return fd < 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    unlink(f->path);
    arena_free(f->arena);
    str_free(&f->error);
    free(f);
    return 0;
}

static void write_bytes(Fixture *f, const char *head, size_t head_size,
                        const void *data, size_t size)
{
    FILE *file = fopen(f->path, "wb");
    assert_int_equal(fwrite(head, 1, head_size, file), head_size);
    assert_int_equal(fwrite(data, 1, size, file), size);
    fclose(file);
}

static void every_type_reads_back(void **state)
{
    Fixture *f = *state;
    static const DType types[] = {DT_F64, DT_F32, DT_F16, DT_I64,
                                  DT_I32, DT_I16, DT_I8,  DT_U64,
                                  DT_U32, DT_U16, DT_U8,  DT_BOOL};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (int rank = 0; rank <= 4; rank++) {
            int64_t dims[4] = {2, 1, 3, 2};
            Array *a = array_new(f->arena, types[t], rank, dims);
            for (int64_t i = 0; i < array_count(a); i++)
                array_set(a, i, types[t] == DT_BOOL ? i % 2 : (double)i);
            assert_true(npy_write(f->path, a, &f->error));
            Array *b = npy_read(f->arena, f->path, &f->error);
            assert_non_null(b);
            assert_int_equal(b->dtype, a->dtype);
            assert_int_equal(b->rank, rank);
            assert_memory_equal(b->dims, dims, (size_t)rank * sizeof *dims);
            assert_memory_equal(b->data, a->data, array_bytes(a));
        }
}

/* The bytes of numpy.save of array([[1, 2], [3, 4.5]], float32), whose
 * header NumPy pads differently from ours. */
static void reads_numpys_bytes(void **state)
{
    Fixture *f = *state;
    static const char head[] =
        "\x93NUMPY\x01\x00\x46\x00{'descr': '<f4', 'fortran_order': False, "
        "'shape': (2, 2), }          \n";
    static const float data[] = {1, 2, 3, 4.5f};
    write_bytes(f, head, sizeof head - 1, data, sizeof data);
    Array *a = npy_read(f->arena, f->path, &f->error);
    if (!a)
        fail_msg("%s", str_text(&f->error));
    assert_int_equal(a->rank, 2);
    assert_true(array_get(a, 3) == 4.5);
}

static void data_is_aligned(void **state)
{
    Fixture *f = *state;
    Array *a = array_new(f->arena, DT_U8, 1, (int64_t[]){1});
    assert_true(npy_write(f->path, a, &f->error));
    FILE *file = fopen(f->path, "rb");
    fseek(file, 0, SEEK_END);
    assert_int_equal(ftell(file) % 64, 1);
    fclose(file);
}

static void refused(Fixture *f, const char *word)
{
    Str error = {0};
    assert_null(npy_read(f->arena, f->path, &error));
    assert_non_null(strstr(str_text(&error), f->path));
    if (!strstr(str_text(&error), word))
        fail_msg("\"%s\" does not say \"%s\"", str_text(&error), word);
    str_free(&error);
}

static void broken_files_are_refused(void **state)
{
    Fixture *f = *state;
    static const char fortran[] =
        "\x93NUMPY\x01\x00\x3f\x00{'descr': '<f4', 'fortran_order': True, "
        "'shape': (2, 2), }    \n";
    static const char complex_type[] =
        "\x93NUMPY\x01\x00\x40\x00{'descr': '<c8', 'fortran_order': False, "
        "'shape': (2, 2), }    \n";
    static const char negative[] =
        "\x93NUMPY\x01\x00\x40\x00{'descr': '<f4', 'fortran_order': False, "
        "'shape': (2,-2), }    \n";
    static const char huge[] =
        "\x93NUMPY\x01\x00\x5d\x00{'descr': '<f4', 'fortran_order': False, "
        "'shape': (4611686018427387904, 4611686018427387904), }\n";
    static const char data[16] = {0};
    write_bytes(f, data, 16, data, 16);
    refused(f, "not a .npy");
    write_bytes(f, fortran, sizeof fortran - 1, data, 16);
    refused(f, "C order");
    write_bytes(f, complex_type, sizeof complex_type - 1, data, 16);
    refused(f, "<c8");
    write_bytes(f, negative, sizeof negative - 1, data, 16);
    refused(f, "shape");
    write_bytes(f, huge, sizeof huge - 1, data, 16);
    refused(f, "its shape needs");
    write_bytes(f, fortran, 40, data, 0);
    refused(f, "truncated");
    write_bytes(f, fortran, 7, data, 0);
    refused(f, "not a .npy");
    unlink(f->path);
    refused(f, "No such file");
}

/* A write that fails half-way, as on a full disk, leaves the old array and
 * no other file. */
static void failed_write_keeps_the_old(void **state)
{
    Fixture *f = *state;
    Array *a = array_new(f->arena, DT_F32, 1, (int64_t[]){4});
    Array *big = array_new(f->arena, DT_F32, 1, (int64_t[]){100000});
    array_set(a, 2, 7);
    assert_true(npy_write(f->path, a, &f->error));
    struct rlimit before, small = {4096, 4096};
    getrlimit(RLIMIT_FSIZE, &before);
    small.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    bool wrote = npy_write(f->path, big, &f->error);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_false(wrote);
    assert_non_null(strstr(str_text(&f->error), "File too large"));
    Array *again = npy_read(f->arena, f->path, &f->error);
    assert_non_null(again);
    assert_int_equal(array_count(again), 4);
    assert_true(array_get(again, 2) == 7);
    glob_t leftover;
    char pattern[80];
    snprintf(pattern, sizeof pattern, "%s.*", f->path);
    assert_int_equal(glob(pattern, 0, NULL, &leftover), GLOB_NOMATCH);
}

static void full_disk_is_told(void **state)
{
    Fixture *f = *state;
    if (access("/dev/full", W_OK))
        skip();
    Array *a = array_new(f->arena, DT_F32, 1, (int64_t[]){4});
    assert_false(npy_write("/dev/full", a, &f->error));
    assert_non_null(strstr(str_text(&f->error), "/dev/full"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_type_reads_back), TEST(reads_numpys_bytes),
        TEST(data_is_aligned),       TEST(broken_files_are_refused),
        TEST(full_disk_is_told),     TEST(failed_write_keeps_the_old),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
