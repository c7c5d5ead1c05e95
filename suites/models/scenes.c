/* A scene has one to four garments on black. Each is scaled to a square of
 * 20 to 40 pixels (bilinear, half-pixel centres) at a place where its square
 * overlaps no other by an IoU over 0.1; after 20 vain tries it is left out.
 * Where garments overlap, the brighter pixel counts. A garment's box is the
 * tight one around its own pixels above 0.1. */
#include "suites/models/scenes.h"

#include <math.h>
#include <string.h>

#include "base/vec.h"
#include "suites/models/fashion.h"
#include "suites/random.h"

enum {
    SIDE = 28, /* of a garment's image */
    IMAGES = 10000,
    LEAST = 20,
    MOST = 40,
    TRIES = 20
};

static const float box_threshold = 0.1f;

/* A stream of random numbers for each scene. */
typedef struct Stream {
    uint64_t key, count;
} Stream;

static int draw(Stream *s, int below)
{
    return (int)(random_bits(s->key, s->count++) % (uint64_t)below);
}

typedef struct Square {
    int x, y, side;
} Square;

static int overlap(int a, int a_side, int b, int b_side)
{
    int low = a > b ? a : b;
    int high = a + a_side < b + b_side ? a + a_side : b + b_side;
    return high > low ? high - low : 0;
}

static int place(Stream *s, Square squares[SCENE_GARMENTS])
{
    int wanted = 1 + draw(s, SCENE_GARMENTS), count = 0;
    for (int i = 0; i < wanted; i++) {
        bool placed = false;
        for (int try = 0; try < TRIES && !placed; try++) {
            Square q = {.side = LEAST + draw(s, MOST - LEAST + 1)};
            q.x = draw(s, SCENE_SIDE - q.side + 1);
            q.y = draw(s, SCENE_SIDE - q.side + 1);
            placed = true;
            for (int k = 0; k < count; k++) {
                const Square *p = &squares[k];
                int both = overlap(q.x, q.side, p->x, p->side) *
                           overlap(q.y, q.side, p->y, p->side);
                int either = q.side * q.side + p->side * p->side - both;
                placed = placed && 10 * both <= either;
            }
            if (placed)
                squares[count++] = q;
        }
    }
    return count;
}

/* Where pixel `i` of `side` lies in an image of SIDE pixels: between `low`
 * and `low` + 1, or the edge. */
static int sample(int i, int side, float *fraction)
{
    float at = ((float)i + 0.5f) * (float)SIDE / (float)side - 0.5f;
    at = fminf(fmaxf(at, 0), SIDE - 1);
    int low = at < SIDE - 1 ? (int)at : SIDE - 2;
    *fraction = at - (float)low;
    return low;
}

/* Puts a garment into the scene. Its box, x0 y0 x1 y1, ends behind the last
 * pixel; false when no pixel is bright enough. */
static bool paint(float *scene, const float *garment, Square q, int box[4])
{
    bool any = false;
    for (int y = 0; y < q.side; y++)
        for (int x = 0; x < q.side; x++) {
            float fx, fy;
            int column = sample(x, q.side, &fx), row = sample(y, q.side, &fy);
            const float *p = garment + row * SIDE + column;
            float above = p[0] + fx * (p[1] - p[0]);
            float below = p[SIDE] + fx * (p[SIDE + 1] - p[SIDE]);
            float value = above + fy * (below - above);
            int left = q.x + x, top = q.y + y;
            float *pixel = scene + top * SCENE_SIDE + left;
            *pixel = fmaxf(*pixel, value);
            if (!(value > box_threshold))
                continue;
            box[0] = any && box[0] < left ? box[0] : left;
            box[1] = any ? box[1] : top; /* rows come in order */
            box[2] = any && box[2] > left + 1 ? box[2] : left + 1;
            box[3] = top + 1;
            any = true;
        }
    return any;
}

bool scenes_load(Arena *arena, int limit, Array **inputs, Array **labels,
                 Str *why)
{
    Array *garments, *kinds;
    if (!fashion_load(arena, IMAGES, &garments, &kinds, why))
        return false;
    int64_t dims[] = {limit, 1, SCENE_SIDE, SCENE_SIDE};
    *inputs = array_new(arena, DT_F32, 4, dims);
    Vec(float) rows = {0};
    for (int i = 0; i < limit; i++) {
        /* Keys far apart: counters of neighbours would meet otherwise. */
        Stream stream = {.key = random_bits(1, (uint64_t)i)};
        float *scene =
            (float *)(*inputs)->data + (int64_t)i * SCENE_SIDE * SCENE_SIDE;
        Square squares[SCENE_GARMENTS];
        int count = place(&stream, squares);
        for (int k = 0; k < count; k++) {
            int which = draw(&stream, IMAGES), box[4];
            const float *garment =
                (const float *)garments->data + which * SIDE * SIDE;
            if (!paint(scene, garment, squares[k], box))
                continue;
            vec_push(arena, &rows, (float)i);
            vec_push(arena, &rows, (float)array_get_int(kinds, which));
            for (int c = 0; c < 4; c++)
                vec_push(arena, &rows, (float)box[c]);
        }
    }
    int64_t boxes[] = {rows.count / SUITE_BOX, SUITE_BOX};
    *labels = array_new(arena, DT_F32, 2, boxes);
    memcpy((*labels)->data, rows.data, array_bytes(*labels));
    return true;
}
