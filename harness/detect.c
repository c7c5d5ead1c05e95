#include "harness/detect.h"

#include <math.h>
#include <stdlib.h>

static const double least_score = 0.01; /* that counts as a detection */
static const double shown_score = 0.25; /* that a user would see */
static const double least_overlap = 0.5;

double detect_iou(Box a, Box b)
{
    double w = fmin(a.x1, b.x1) - fmax(a.x0, b.x0);
    double h = fmin(a.y1, b.y1) - fmax(a.y0, b.y0);
    if (!(w > 0) || !(h > 0))
        return 0;
    double both = w * h;
    double iou = both / ((a.x1 - a.x0) * (a.y1 - a.y0) +
                         (b.x1 - b.x0) * (b.y1 - b.y0) - both);
    return iou > 0 ? iou : 0; /* NaN where an area overflows */
}

/* ---- decoding --------------------------------------------------------- */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

void detect_decode(Arena *arena, const Array *cells, int64_t example,
                   double width, double height, Detections *found)
{
    int kinds = (int)cells->dims[1] - 5;
    int64_t rows = cells->dims[2], columns = cells->dims[3];
    int64_t plane = rows * columns;
    double cell_width = width / (double)columns;
    double cell_height = height / (double)rows;
    for (int64_t i = 0; i < plane; i++) {
        int64_t at = example * cells->dims[1] * plane + i;
        double x = (double)(i % columns) + sigmoid(array_get(cells, at));
        double y =
            (double)(i / columns) + sigmoid(array_get(cells, at + plane));
        double w = exp(array_get(cells, at + 2 * plane));
        double h = exp(array_get(cells, at + 3 * plane));
        double object = sigmoid(array_get(cells, at + 4 * plane));
        Box box = {(x - w / 2) * cell_width, (y - h / 2) * cell_height,
                   (x + w / 2) * cell_width, (y + h / 2) * cell_height};
        /* An infinite extent makes at least one side infinite; NaN makes a
         * score or a side NaN. */
        if (!isfinite(box.x0) || !isfinite(box.y0) || !isfinite(box.x1) ||
            !isfinite(box.y1))
            continue;
        double largest = -INFINITY, sum = 0;
        for (int k = 0; k < kinds; k++)
            largest = fmax(largest, array_get(cells, at + (5 + k) * plane));
        for (int k = 0; k < kinds; k++)
            sum += exp(array_get(cells, at + (5 + k) * plane) - largest);
        for (int k = 0; k < kinds; k++) {
            double kind =
                exp(array_get(cells, at + (5 + k) * plane) - largest);
            Detection d = {(int)example, k, object * kind / sum, box};
            if (d.score > least_score)
                vec_push(arena, found, d);
        }
    }
}

void detect_suppress(Detections *found, int first)
{
    /* An insertion sort: stable, in place, and there are few. */
    for (int i = first + 1; i < found->count; i++) {
        Detection d = found->data[i];
        int at = i;
        for (; at > first && found->data[at - 1].score < d.score; at--)
            found->data[at] = found->data[at - 1];
        found->data[at] = d;
    }
    int kept = first;
    for (int i = first; i < found->count; i++) {
        Detection d = found->data[i];
        bool stays = true;
        for (int k = first; k < kept && stays; k++)
            stays = found->data[k].kind != d.kind ||
                    detect_iou(found->data[k].box, d.box) < least_overlap;
        if (stays)
            found->data[kept++] = d;
    }
    found->count = kept;
}

/* ---- scoring ---------------------------------------------------------- */

double detect_average_precision(const bool *hits, int count, int positives)
{
    enum { STEPS = 100 };
    int total = 0;
    for (int i = 0; i < count; i++)
        total += hits[i];
    /* From the last detection back, so that `best` is the largest precision
     * at this recall or above; recall k / STEPS is reached by the first
     * detection whose hits are enough. */
    double sum = 0, best = 0;
    int step = STEPS, found = total;
    for (int i = count - 1; i >= 0; i--) {
        /* Recalls above that of detection i have their precision. */
        for (; step >= 0 && (int64_t)step * positives > (int64_t)found * STEPS;
             step--)
            sum += best;
        best = fmax(best, (double)found / (i + 1));
        found -= hits[i];
    }
    /* The rest is reached by the first detection, or by none at all. */
    return (sum + (step + 1) * best) / (STEPS + 1);
}

/* First of the boxes, which are in the order of their images, of this image
 * or a later one. */
static int first_of(const Detections *boxes, int example)
{
    int low = 0, high = boxes->count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (boxes->data[middle].example < example)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Takes the box of the image and kind of `d` that it overlaps most, the
 * first of equal ones. False when none overlaps enough. */
static bool take_match(const Detections *boxes, bool *taken,
                       const Detection *d)
{
    int best = -1;
    double overlap = 0;
    for (int i = first_of(boxes, d->example);
         i < boxes->count && boxes->data[i].example == d->example; i++) {
        double iou = detect_iou(boxes->data[i].box, d->box);
        if (taken[i] || boxes->data[i].kind != d->kind || !(iou > overlap))
            continue;
        best = i;
        overlap = iou;
    }
    if (overlap < least_overlap)
        return false;
    taken[best] = true;
    return true;
}

/* qsort is not stable: of equal scores, the position decides. */
static int compare_scores(const void *a, const void *b)
{
    const Detection *x = *(const Detection *const *)a;
    const Detection *y = *(const Detection *const *)b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return (x > y) - (x < y);
}

double detect_map50(Arena *arena, const Detections *found,
                    const Detections *truth, int kinds)
{
    const Detection **ranked =
        ARENA_ARRAY(arena, const Detection *, found->count);
    bool *hits = ARENA_ARRAY(arena, bool, found->count);
    bool *taken = ARENA_ARRAY(arena, bool, truth->count);
    double sum = 0;
    int scored = 0;
    for (int kind = 0; kind < kinds; kind++) {
        int count = 0, positives = 0;
        for (int i = 0; i < truth->count; i++)
            positives += truth->data[i].kind == kind;
        if (!positives)
            continue;
        for (int i = 0; i < found->count; i++)
            if (found->data[i].kind == kind)
                ranked[count++] = &found->data[i];
        qsort(ranked, (size_t)count, sizeof *ranked, compare_scores);
        for (int i = 0; i < count; i++)
            hits[i] = take_match(truth, taken, ranked[i]);
        sum += detect_average_precision(hits, count, positives);
        scored++;
    }
    return scored ? sum / scored : NAN;
}

double detect_agreement(Arena *arena, const Detections *a, const Detections *b)
{
    bool *taken = ARENA_ARRAY(arena, bool, b->count);
    int boxes = 0, pairs = 0;
    for (int i = 0; i < b->count; i++) {
        taken[i] = !(b->data[i].score > shown_score);
        boxes += !taken[i];
    }
    for (int i = 0; i < a->count; i++) {
        if (!(a->data[i].score > shown_score))
            continue;
        boxes++;
        pairs += take_match(b, taken, &a->data[i]);
    }
    return boxes ? 2.0 * pairs / boxes : 1;
}
