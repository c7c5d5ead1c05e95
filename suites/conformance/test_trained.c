/* Trained models: those of the suite reach the accuracy they state; those
 * from elsewhere, where they are at hand, the accuracy that another engine
 * gets with them, and they agree with the reference. Their folder is
 * ASSAY_SHARED, or ../shared; without it the tests are skipped. Needs
 * build/assay: runs from the project's folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "harness/npy.h"

enum { IMAGES = 1000, SIDE = 32, PIXELS = SIDE * SIDE, WORDS = 500 };
enum { RUN_TIMEOUT = 600 }; /* seconds */

typedef struct Fixture {
    Arena *arena;
    char dir[64];
    const char *shared, *assay;
} Fixture;

static int set_up(void **state)
{
    Fixture *f = calloc(1, sizeof *f);
    strcpy(f->dir, "/tmp/assay_trained_XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    f->arena = arena_new();
    f->shared = getenv("ASSAY_SHARED");
    if (!f->shared)
        f->shared = "../shared";
    /* The program of this very build, which may be a sanitizer's. */
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = 0;
    char *tests = strstr(self, "/tests/");
    if (tests)
        *tests = 0;
    f->assay = arena_printf(f->arena, "%s/assay", self);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    const char *const argv[] = {"rm", "-rf", f->dir, NULL};
    process_ok(argv, NULL);
    arena_free(f->arena);
    free(f);
    return 0;
}

static unsigned char *read_bytes(Fixture *f, const char *name, size_t size)
{
    FILE *file =
        fopen(arena_printf(f->arena, "%s/data/%s", f->shared, name), "rb");
    if (!file)
        return NULL;
    unsigned char *bytes = arena_alloc(f->arena, size);
    assert_int_equal(fread(bytes, 1, size, file), size);
    fclose(file);
    return bytes;
}

static const char *model_path(Fixture *f, const char *name)
{
    return arena_printf(f->arena, "%s/models/%s.onnx", f->shared, name);
}

static void need(bool there, Fixture *f)
{
    if (!there) {
        print_message("skipped: %s is missing\n", f->shared);
        skip();
    }
}

/* What a model is fed with: (v / scale - mean) / std of each stored value. */
typedef struct Feed {
    DType dtype; /* f32; i8: the value less `zero` as it is stored */
    double scale, mean[3], std[3];
    int zero;
} Feed;

static void store(const Feed *feed, Array *to, int64_t at, int channel, int v)
{
    if (feed->dtype == DT_I8)
        array_set_int(to, at, v - feed->zero);
    else
        array_set(to, at,
                  (v / feed->scale - feed->mean[channel]) /
                      feed->std[channel]);
}

static const char *write_array(Fixture *f, const char *name,
                               const Array *array)
{
    const char *path = arena_printf(f->arena, "%s/%s.npy", f->dir, name);
    Str error = {0};
    assert_true(npy_write(path, array, &error));
    return path;
}

/* CIFAR-10's pixels lie as N H W C. */
static const char *write_images(Fixture *f, const Feed *feed)
{
    unsigned char *bytes =
        read_bytes(f, "cifar10_test1000.X.u8", (size_t)IMAGES * PIXELS * 3);
    need(bytes != NULL, f);
    int64_t dims[] = {IMAGES, 3, SIDE, SIDE};
    Array *images = array_new(f->arena, feed->dtype, 4, dims);
    int64_t at = 0;
    for (int n = 0; n < IMAGES; n++)
        for (int c = 0; c < 3; c++)
            for (int p = 0; p < PIXELS; p++)
                store(feed, images, at++, c, bytes[(n * PIXELS + p) * 3 + c]);
    return write_array(f, "images", images);
}

/* Spectra of spoken words. */
static const char *write_words(Fixture *f, const Feed *feed)
{
    int64_t dims[] = {WORDS, 1, 49, 10};
    unsigned char *bytes =
        read_bytes(f, "kws500.X.i8", (size_t)WORDS * 49 * 10);
    need(bytes != NULL, f);
    Array *words = array_new(f->arena, feed->dtype, 4, dims);
    for (int64_t i = 0; i < array_count(words); i++)
        store(feed, words, i, 0, (signed char)bytes[i]);
    return write_array(f, "words", words);
}

static const char *write_labels(Fixture *f, const char *name, int64_t count)
{
    unsigned char *bytes = read_bytes(f, name, (size_t)count);
    need(bytes != NULL, f);
    Array *labels = array_new(f->arena, DT_I64, 1, &count);
    for (int i = 0; i < count; i++)
        array_set_int(labels, i, bytes[i]);
    return write_array(f, "labels", labels);
}

/* Every mode's top-1, in percent, within 0.3 points. */
static void check_accuracy(Fixture *f, const char *model, bool has_batch,
                           const char *images, const char *labels,
                           double expected)
{
    const char *argv[] = {f->assay,   "run",       model_path(f, model),
                          "--quick",  "--format",  "json",
                          "--images", images,      "--labels",
                          labels,     "--results", f->dir,
                          NULL,       NULL,        NULL};
    if (has_batch) {
        argv[12] = "--dim";
        argv[13] = "N=1";
    }
    Str out = {0};
    ProcessLimits limits = {.seconds = RUN_TIMEOUT};
    ProcessResult result;
    assert_true(process_run(argv, &out, NULL, &limits, &result));
    assert_int_equal(result.exit_code, 0);
    json_t *root = json_loads(str_text(&out), 0, NULL);
    str_free(&out);
    json_t *row;
    size_t i;
    json_array_foreach(json_object_get(root, "cases"), i, row)
    {
        const json_t *values = json_object_get(row, "values");
        double top1 = 100 * json_number_value(json_object_get(values, "top1"));
        print_message("%s %s: %.2f %%\n", model,
                      json_string_value(json_object_get(row, "mode")), top1);
        assert_true(fabs(top1 - expected) <= 0.3);
    }
    assert_int_equal(i, 2);
    json_decref(root);
}

static void check_images(void **state, const char *model, bool has_batch,
                         const Feed *feed, double expected)
{
    Fixture *f = *state;
    const char *images = write_images(f, feed);
    check_accuracy(f, model, has_batch, images,
                   write_labels(f, "cifar10_test1000.Y.u8", IMAGES), expected);
}

static void check_words(void **state, const char *model, const Feed *feed)
{
    Fixture *f = *state;
    const char *words = write_words(f, feed);
    check_accuracy(f, model, false, words,
                   write_labels(f, "kws500.Y.u8", WORDS), 90.6);
}

static void resnet20(void **state)
{
    static const Feed feed = {
        DT_F32, 255, {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}, 0};
    check_images(state, "resnet20_cifar10", true, &feed, 91.5);
}

static void resnet8(void **state)
{
    static const Feed feed = {DT_F32, 1, {0}, {1, 1, 1}, 0};
    check_images(state, "resnet8_mlperftiny_fp32", false, &feed, 88.1);
}

static void resnet8_int8(void **state)
{
    static const Feed feed = {.dtype = DT_I8, .zero = 128};
    check_images(state, "resnet8_mlperftiny_int8qdq", false, &feed, 87.7);
}

static void words(void **state)
{
    static const Feed feed = {DT_F32, 1, {83}, {1 / 0.5847029089927673}, 0};
    check_words(state, "dscnn_kws_fp32", &feed);
}

static void words_int8(void **state)
{
    static const Feed feed = {.dtype = DT_I8};
    check_words(state, "dscnn_kws_int8qdq", &feed);
}

/* On inputs like the pixels that the models are made for: elsewhere, plain
 * f32 loops miss the bound, too, where layers cancel large terms. */
static void check_agreement(Fixture *f, const char *model)
{
    const char *path = model_path(f, model);
    need(!access(path, R_OK), f);
    static const char *const modes[] = {"fused", "unfused", "O0"};
    for (int i = 0; i < 3; i++) {
        const char *const argv[] = {f->assay, "check",   path,    "--mode",
                                    modes[i], "--range", "0,255", NULL};
        Str out = {0};
        ProcessLimits limits = {.seconds = RUN_TIMEOUT};
        ProcessResult result;
        assert_true(process_run(argv, &out, NULL, &limits, &result));
        str_free(&out);
        assert_int_equal(result.exit_code, 0);
    }
}

static void mobilenetv2(void **state)
{
    check_agreement(*state, "mobilenetv2_imagenet_fp32deq");
}

/* Quantized: the same bits as the reference, in every mode. */
static void mobilenetv2_uint8(void **state)
{
    check_agreement(*state, "mobilenetv2_imagenet_uint8qdq");
}

static void yolox(void **state)
{
    check_agreement(*state, "yolox_nano");
}

static int64_t largest(const Array *logits)
{
    int64_t count = logits->dims[2], start = array_count(logits) - count;
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (array_get(logits, start + i) > array_get(logits, start + best))
            best = i;
    return best;
}

/* The token that the artifact puts behind the others. */
static int64_t next_token(Fixture *f, const char *artifact,
                          const int64_t *tokens, int64_t count)
{
    int64_t dims[] = {1, count};
    Arena *arena = arena_new();
    Array *input = array_new(arena, DT_I64, 2, dims);
    memcpy(input->data, tokens, (size_t)count * sizeof *tokens);
    const char *file = arena_printf(arena, "%s/tokens.npy", f->dir);
    const char *const argv[] = {arena_printf(arena, "%s-run", f->assay),
                                artifact,
                                "--input",
                                arena_printf(arena, "tokens=%s", file),
                                "--output",
                                f->dir,
                                NULL};
    Str error = {0}, out = {0};
    ProcessLimits limits = {.seconds = RUN_TIMEOUT};
    ProcessResult result;
    assert_true(npy_write(file, input, &error));
    assert_true(process_run(argv, &out, NULL, &limits, &result));
    assert_int_equal(result.exit_code, 0);
    Array *logits =
        npy_read(arena, arena_printf(arena, "%s/logits.npy", f->dir), &error);
    assert_non_null(logits);
    assert_int_equal(logits->dims[1], count);
    int64_t token = largest(logits);
    str_free(&out);
    arena_free(arena);
    return token;
}

/* Greedy decoding with one artifact for every length of text. */
static void stories260k(void **state)
{
    Fixture *f = *state;
    const char *path = model_path(f, "stories260k_prefill");
    need(!access(path, R_OK), f);
    json_t *list = json_load_file(
        arena_printf(f->arena, "%s/models/stories260k_greedy_tokens.json",
                     f->shared),
        0, NULL);
    enum { MOST = 256 };
    int64_t tokens[MOST];
    int count = (int)json_array_size(list);
    assert_in_range(count, 2, MOST);
    static const char *const modes[] = {"fused", "unfused"};
    for (int i = 0; i < 2; i++) {
        const char *artifact =
            arena_printf(f->arena, "%s/%s", f->dir, modes[i]);
        const char *const argv[] = {f->assay,   "compile", path,     "--dim",
                                    "T=1..256", "--mode",  modes[i], "-o",
                                    artifact,   NULL};
        assert_true(process_ok(argv, NULL));
        tokens[0] = json_integer_value(json_array_get(list, 0));
        for (int n = 1; n < count; n++) {
            tokens[n] = next_token(f, artifact, tokens, n);
            assert_int_equal(tokens[n], json_integer_value(
                                            json_array_get(list, (size_t)n)));
        }
    }
    json_decref(list);
}

/* ---- the suite's own -------------------------------------------------- */

/* What follows the next KEY in the text at `*text`, which moves behind it;
 * NaN when there is none. */
static double next_number(const char **text, const char *key)
{
    const char *found = strstr(*text, key);
    if (!found)
        return NAN;
    *text = found + strlen(key);
    return strtod(*text, NULL);
}

/* Returns the exit code. `quick` is "--quick" or NULL, `data` NULL or a
 * folder to be used instead of suites/data. */
static int run_suite(Fixture *f, const char *model, const char *modes,
                     const char *quick, const char *data, Str *out)
{
    const char *const argv[] = {f->assay, "run",       model,  "--mode",
                                modes,    "--results", f->dir, "--format",
                                "json",   quick,       NULL};
    ProcessLimits limits = {.seconds = RUN_TIMEOUT};
    ProcessResult result;
    if (data)
        setenv("ASSAY_DATA", data, 1);
    assert_true(process_run(argv, out, NULL, &limits, &result));
    unsetenv("ASSAY_DATA");
    return result.exit_code;
}

static void need_fashion(void)
{
    if (access("/usr/share/datasets/fashion-mnist", R_OK)) {
        print_message("skipped: dataset-fashion-mnist is not installed\n");
        skip();
    }
}

/* Both builds reach the bar, on `count` examples, and say the same of
 * nearly all. */
static void check_suite(Fixture *f, const char *model, const char *key,
                        double bar, int count)
{
    need_fashion();
    Str out = {0};
    assert_int_equal(
        run_suite(f, model, "fused,unfused", "--quick", NULL, &out), 0);
    const char *accuracy = str_text(&out), *agreement = accuracy;
    const char *examples = accuracy;
    for (int mode = 0; mode < 2; mode++) {
        double value = next_number(&accuracy, key);
        print_message("%s: %.2f %%\n", model, 100 * value);
        assert_true(value >= bar && value <= 1);
        double same = next_number(&agreement, "\"agreement\":");
        assert_true(same >= (mode ? 0.998 : 1) && same <= 1);
        assert_true(next_number(&examples, "\"examples\":") == count);
    }
    str_free(&out);
}

static void resnet_fashion(void **state)
{
    check_suite(*state, "resnet_fashion", "\"top1\":", 0.92, 2000);
}

static void mobilenet_fashion(void **state)
{
    check_suite(*state, "mobilenet_fashion", "\"top1\":", 0.91, 2000);
}

static void vit_fashion(void **state)
{
    check_suite(*state, "vit_fashion", "\"top1\":", 0.89, 2000);
}

static void yolo_fashion(void **state)
{
    check_suite(*state, "yolo_fashion", "\"map50\":", 0.85, 2000);
}

/* Other weights under a model's name: too weak ones are found out by the
 * labels alone, as they compute what they should; ones for other images
 * cannot be scored. */
static void wrong_weights(void **state)
{
    Fixture *f = *state;
    need_fashion();
    static const struct {
        const char *model, *reason;
        int code;
    } rows[] = {
        {"resnet_fashion", "is below the stated 92.50 %", 1},
        {"yolo_fashion", "f32[2000,1,80,80] given", 2},
    };
    for (int i = 0; i < 2; i++) {
        const char *const argv[] = {
            "cp", "suites/data/mobilenet_fashion.onnx",
            arena_printf(f->arena, "%s/%s.onnx", f->dir, rows[i].model), NULL};
        assert_true(process_ok(argv, NULL));
        Str out = {0};
        assert_int_equal(
            run_suite(f, rows[i].model, "fused", NULL, f->dir, &out),
            rows[i].code);
        assert_non_null(strstr(str_text(&out), rows[i].reason));
        str_free(&out);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(resnet_fashion), TEST(mobilenet_fashion), TEST(vit_fashion),
        TEST(yolo_fashion),   TEST(wrong_weights),     TEST(resnet20),
        TEST(resnet8),        TEST(resnet8_int8),      TEST(words),
        TEST(words_int8),     TEST(mobilenetv2),       TEST(mobilenetv2_uint8),
        TEST(yolox),          TEST(stories260k),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
