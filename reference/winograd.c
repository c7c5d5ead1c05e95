/* Winograd's tiles, without tiles: the weights are G w G' by the definition
 * of G; a convolution takes the plain weights back out of them and sums
 * directly. */
#include <math.h>

#include "reference/internal.h"

enum { MOST_POINTS = 6 };

/* Row k of G for the finite points p: powers of p[k] over the product of its
 * distances from the others; the last row is that of infinity. For tile 2 the
 * sign of row 0 is the usual one. */
static bool read_matrix(RefCall *call, double g[MOST_POINTS][3], int *points)
{
    const double near = sqrt(0.5), far = sqrt(2);
    const double two[] = {0, 1, -1}, four[] = {0, near, -near, far, -far};
    int64_t tile = attrs_int(call->attrs, "tile", 0);
    const double *p = tile == 2 ? two : four;
    int finite = (int)tile + 1;

    if (tile != 2 && tile != 4)
        return ref_fail(call, "tile %lld", (long long)tile);
    for (int k = 0; k < finite; k++) {
        double scale = tile == 2 && k == 0 ? -1 : 1;
        for (int l = 0; l < finite; l++)
            scale *= l == k ? 1 : p[k] - p[l];
        for (int j = 0; j < 3; j++)
            g[k][j] = (j ? pow(p[k], j) : 1) / scale;
    }
    for (int j = 0; j < 3; j++)
        g[finite][j] = j == 2;
    *points = finite + 1;
    return true;
}

bool ref_winograd_weights(RefCall *call)
{
    double g[MOST_POINTS][3];
    int points;

    if (!ref_need(call, 1) || !read_matrix(call, g, &points))
        return false;
    const Array *w = call->in[0];
    if (w->rank != 4 || w->dims[2] != 3 || w->dims[3] != 3)
        return ref_fail(call, "a kernel that is not 3x3");
    int64_t pairs = w->dims[0] * w->dims[1];
    int64_t dims[] = {points, points, w->dims[0], w->dims[1]};
    Array *u = ref_out(call, 0, w->dtype, 4, dims);
    const double *x = ref_doubles(call, w);
    for (int p = 0; p < points; p++)
        for (int q = 0; q < points; q++)
            for (int64_t i = 0; i < pairs; i++) {
                double sum = 0;
                for (int r = 0; r < 3; r++)
                    for (int s = 0; s < 3; s++)
                        sum += g[p][r] * g[q][s] * x[i * 9 + r * 3 + s];
                array_set(u, (p * points + q) * pairs + i, sum);
            }
    return true;
}

/* Row r of a matrix that undoes G: the weight itself stands in the first and
 * last row, that between in the difference of the second and third. */
static void undo(double g[MOST_POINTS][3], int points, double back[3][6])
{
    for (int r = 0; r < 3; r++)
        for (int p = 0; p < points; p++)
            back[r][p] = 0;
    back[0][0] = 1 / g[0][0];
    back[1][1] = 1 / (g[1][1] - g[2][1]);
    back[1][2] = -back[1][1];
    back[2][points - 1] = 1;
}

bool ref_winograd_conv(RefCall *call)
{
    double g[MOST_POINTS][3], back[3][MOST_POINTS];
    int points;

    if (!ref_need(call, 2) || !read_matrix(call, g, &points))
        return false;
    const Array *u = call->in[1];
    if (u->rank != 4 || u->dims[0] != points || u->dims[1] != points)
        return ref_fail(call, "weights that are not of %d points", points);
    undo(g, points, back);
    int64_t pairs = u->dims[2] * u->dims[3];
    int64_t dims[] = {u->dims[2], u->dims[3], 3, 3};
    Array *w = array_new(call->scratch, DT_F64, 4, dims);
    const double *x = ref_doubles(call, u);
    for (int64_t i = 0; i < pairs; i++)
        for (int r = 0; r < 3; r++)
            for (int s = 0; s < 3; s++) {
                double sum = 0;
                for (int p = 0; p < points; p++)
                    for (int q = 0; q < points; q++)
                        sum += back[r][p] * back[s][q] *
                               x[(p * points + q) * pairs + i];
                array_set(w, i * 9 + r * 3 + s, sum);
            }
    const Array *in[] = {call->in[0], w, ref_in(call, 2)};
    RefCall plain = *call;
    plain.in = in;
    plain.in_count = 3;
    bool ok = ref_conv(&plain);
    call->error = plain.error;
    call->out[0] = plain.out[0];
    return ok;
}
