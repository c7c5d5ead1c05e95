/* ONNX's own node cases, as Debian's libonnx-testdata installs them, and
 * extra cases where they are there: imported, evaluated node by node in
 * the interpreter, compared with the expected outputs.
 *
 * A case of an operator that Assay does not have is passed over; one that
 * is imported must give the right values, or be refused with an error, and
 * the number of right ones must not fall. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/onnx.h"
#include "ops/op.h"
#include "ops_run.h"

typedef enum Verdict { RIGHT, WRONG, REFUSED, ABSENT } Verdict;

typedef struct Run {
    Arena *arena;
    Diag *diag;
    Graph *g;
    const Array **values; /* by tensor id */
} Run;

/* Runs all nodes in order; shape arithmetic becomes constants on the way,
 * as the type rules want it. */
static bool run_graph(Run *r)
{
    Graph *g = r->g;
    for (int i = 0; i < g->nodes.count; i++) {
        Node *node = g->nodes.data[i];
        const Array *in[MAX_OP_INPUTS] = {NULL};
        Array *out[MAX_OP_OUTPUTS] = {NULL};
        if (!op_infer(g, node) || !op_check_lowerable(g, node))
            return false;
        for (int k = 0; k < node->inputs.count; k++) {
            const Tensor *t = node->inputs.data[k];
            if (t)
                in[k] = t->value ? t->value : r->values[t->id];
        }
        if (!ops_run_node(r->arena, r->diag, node, in, out))
            return false;
        for (int k = 0; k < node->outputs.count; k++)
            if (node->outputs.data[k]) {
                Tensor *t = node->outputs.data[k];
                r->values[t->id] = out[k];
                if (out[k]->dtype == DT_I64 && out[k]->rank <= 1)
                    t->value = out[k];
            }
    }
    return true;
}

static bool same_values(const Array *is, const Array *wanted, char *why,
                        size_t room)
{
    if (is->dtype != wanted->dtype || is->rank != wanted->rank ||
        (is->rank && memcmp(is->dims, wanted->dims,
                            (size_t)is->rank * sizeof *is->dims) != 0)) {
        snprintf(why, room, "another type");
        return false;
    }
    for (int64_t i = 0; i < array_count(is); i++) {
        double a = array_get(is, i), b = array_get(wanted, i);
        bool ok = isnan(b) || isinf(b) ? (isnan(b) ? isnan(a) : a == b)
                                       : fabs(a - b) <= 1e-5 + 1e-3 * fabs(b);
        if (!dtype_is_float(is->dtype))
            ok = array_get_int(is, i) == array_get_int(wanted, i);
        if (!ok) {
            snprintf(why, room, "element %d is %.9g, not %.9g", (int)i, a, b);
            return false;
        }
    }
    return true;
}

static Array *read_case(Run *r, const char *folder, const char *kind, int i)
{
    char *path =
        arena_printf(r->arena, "%s/test_data_set_0/%s_%d.pb", folder, kind, i);
    Diag *quiet = diag_new(r->arena, NULL);
    return access(path, R_OK) == 0 ? onnx_read_tensor(r->arena, quiet, path)
                                   : NULL;
}

/* Inputs that are left out in the case's data keep the place of nothing:
 * the n-th file belongs to the n-th input. */
static Verdict run_case(Arena *arena, const char *folder, char *why,
                        size_t room)
{
    Run r = {arena, diag_new(arena, NULL), NULL, NULL};
    char *path = arena_printf(arena, "%s/model.onnx", folder);
    if (access(path, R_OK) != 0)
        return ABSENT;
    r.g = onnx_import(arena, r.diag, ops_builtin(), path, NULL, 0);
    if (r.g) {
        r.values = ARENA_ARRAY(arena, const Array *, r.g->next_id + 1);
        for (int i = 0; i < r.g->inputs.count; i++) {
            Tensor *input = r.g->inputs.data[i];
            const Array *value = read_case(&r, folder, "input", i);
            if (!value)
                return ABSENT;
            r.values[input->id] = value;
            /* As a constant, so that shape operands are known. */
            if (value->dtype == DT_I64 || value->dtype == DT_BOOL ||
                array_count(value) <= 8)
                input->value = value;
            input->type = type_of_array(value);
        }
    }
    if (!r.g || !run_graph(&r)) {
        const Diag *diag = r.diag;
        snprintf(why, room, "%s",
                 diag->errors.count ? diag->errors.data[0] : "no reason");
        return REFUSED;
    }
    for (int i = 0; i < r.g->outputs.count; i++) {
        const Tensor *output = r.g->outputs.data[i];
        const Array *wanted = read_case(&r, folder, "output", i);
        if (wanted && !same_values(r.values[output->id], wanted, why, room))
            return WRONG;
    }
    return RIGHT;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Cases whose expected values are not to be reproduced. The first ones
 * store bfloat16 as another type; the resized length counts as a whole
 * number since version 19 of the operator; fixed inputs cannot be fed. */
static const char *const exceptions[] = {
    "test_cast_BFLOAT16_to_FLOAT",
    "test_cast_FLOAT_to_BFLOAT16",
    "test_castlike_BFLOAT16_to_FLOAT",
    "test_castlike_BFLOAT16_to_FLOAT_expanded",
    "test_castlike_FLOAT_to_BFLOAT16",
    "test_castlike_FLOAT_to_BFLOAT16_expanded",
    "test_resize_downsample_scales_linear_align_corners",
    "init_as_input",
    NULL};

static void run_folder(const char *folder, const char *prefix, int at_least)
{
    Arena *arena = arena_new();
    enum { MOST = 4096 };
    char **names = ARENA_ARRAY(arena, char *, MOST);
    int count = 0, verdicts[4] = {0};
    bool verbose = getenv("ASSAY_VERBOSE") != NULL;
    DIR *dir = opendir(folder);
    if (!dir) {
        print_message("skipped: no cases at %s\n", folder);
        arena_free(arena);
        return;
    }
    for (struct dirent *e; (e = readdir(dir)) && count < MOST;)
        if (strncmp(e->d_name, prefix, strlen(prefix)) == 0 &&
            e->d_name[0] != '.')
            names[count++] = arena_strdup(arena, e->d_name);
    closedir(dir);
    qsort(names, (size_t)count, sizeof *names, compare_names);
    for (int i = 0; i < count; i++) {
        Arena *own = arena_new();
        char why[300] = "", *path;
        bool known = false;
        for (const char *const *row = exceptions; *row; row++)
            known |= strcmp(*row, names[i]) == 0;
        path = arena_printf(own, "%s/%s", folder, names[i]);
        Verdict verdict =
            known ? ABSENT : run_case(own, path, why, sizeof why);
        verdicts[verdict]++;
        if (verdict == WRONG)
            print_error("%s: %s\n", names[i], why);
        else if (verdict == REFUSED && verbose)
            print_message("%s: %s\n", names[i], why);
        arena_free(own);
    }
    print_message("%s: %d right, %d wrong, %d refused, %d without data\n",
                  folder, verdicts[RIGHT], verdicts[WRONG], verdicts[REFUSED],
                  verdicts[ABSENT]);
    arena_free(arena);
    assert_int_equal(verdicts[WRONG], 0);
    assert_true(verdicts[RIGHT] >= at_least);
}

static void test_onnx_cases(void **state)
{
    (void)state;
    run_folder("/usr/share/libonnx-testdata/data/node", "test_", 580);
}

static void test_extra_cases(void **state)
{
    (void)state;
    char path[4096];
    const char *shared = getenv("ASSAY_SHARED");
    snprintf(path, sizeof path, "%s/cases/cases",
             shared ? shared : "../shared");
    run_folder(path, "", 68);
}

static void test_newer_cases(void **state)
{
    (void)state;
    const char *folder = getenv("ASSAY_NEWER_CASES");
    if (folder)
        run_folder(folder, "test_", 173);
    else
        print_message("skipped: ASSAY_NEWER_CASES names no folder\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_onnx_cases),
        cmocka_unit_test(test_extra_cases),
        cmocka_unit_test(test_newer_cases),
    };
    return cmocka_run_group_tests_name("conformance", tests, NULL, NULL);
}
