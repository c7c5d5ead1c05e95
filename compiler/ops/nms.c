/* NonMaxSuppression: of boxes that overlap too much the best one.
 *
 * For each class of each image, the best box that is left is taken, and those
 * that overlap it are not left any more. How many are taken depends on the
 * data: of constants the type rule goes through the same steps, in the same
 * f32 operations; otherwise the kernel counts them. */
#include "ops/loop_program.h"
#include "ops/rules.h"

typedef struct Nms {
    int64_t batch, boxes, classes, most;
    float overlap, score;
    bool has_score, is_centred;
} Nms;

static double operand(const Node *node, int index, double fallback)
{
    const Tensor *t =
        index < node->inputs.count ? node->inputs.data[index] : NULL;

    if (!t)
        return fallback;
    return dtype_is_float(t->type.dtype) ? array_get(t->value, 0)
                                         : (double)array_get_int(t->value, 0);
}

static Nms read_nms(const Node *node)
{
    const TensorType *boxes = &node->inputs.data[0]->type;
    Nms n = {.batch = boxes->dims[0].value,
             .boxes = boxes->dims[1].value,
             .classes = node->inputs.data[1]->type.dims[1].value,
             .most = (int64_t)operand(node, 2, 0),
             .overlap = (float)operand(node, 3, 0),
             .score = (float)operand(node, 4, 0),
             .has_score = node_has_input(node, 4),
             .is_centred = attrs_int(&node->attrs, "center_point_box", 0)};

    n.most = n.most < 0 ? 0 : n.most > n.boxes ? n.boxes : n.most;
    return n;
}

typedef struct Box {
    float x0, y0, x1, y1;
} Box;

static Box box_of(const Nms *n, const float *b)
{
    if (n->is_centred)
        return (Box){b[0] - b[2] / 2, b[1] - b[3] / 2, b[0] + b[2] / 2,
                     b[1] + b[3] / 2};
    return (Box){b[1] < b[3] ? b[1] : b[3], b[0] < b[2] ? b[0] : b[2],
                 b[1] < b[3] ? b[3] : b[1], b[0] < b[2] ? b[2] : b[0]};
}

static bool overlaps(const Nms *n, const float *p, const float *q)
{
    Box a = box_of(n, p), b = box_of(n, q);
    float w = (a.x1 < b.x1 ? a.x1 : b.x1) - (a.x0 < b.x0 ? b.x0 : a.x0);
    float h = (a.y1 < b.y1 ? a.y1 : b.y1) - (a.y0 < b.y0 ? b.y0 : a.y0);
    if (!(w > 0) || !(h > 0))
        return false;
    float both = w * h;
    float one = (a.x1 - a.x0) * (a.y1 - a.y0);
    float other = (b.x1 - b.x0) * (b.y1 - b.y0);
    return both > n->overlap * (one + other - both);
}

static int64_t count_taken(const Nms *n, const float *boxes,
                           const float *scores, bool *left)
{
    int64_t taken = 0;

    for (int64_t i = 0; i < n->boxes; i++)
        left[i] = !n->has_score || scores[i] > n->score;
    for (; taken < n->most; taken++) {
        int64_t best = -1;
        for (int64_t i = 0; i < n->boxes; i++)
            if (left[i] && (best < 0 || scores[i] > scores[best]))
                best = i;
        if (best < 0)
            break;
        left[best] = false;
        for (int64_t i = 0; i < n->boxes; i++)
            if (left[i] && overlaps(n, boxes + 4 * best, boxes + 4 * i))
                left[i] = false;
    }
    return taken;
}

static bool infer_nms(InferContext *c)
{
    static const char *const names[] = {"boxes", "scores",
                                        "max_output_boxes_per_class",
                                        "iou_threshold", "score_threshold"};
    const TensorType *boxes = infer_input(c, 0), *scores = infer_input(c, 1);

    if (!infer_types(c, 0, 1 << DT_F32) || !infer_types(c, 1, 1 << DT_F32) ||
        !infer_rank(c, 0, 3, 3) || !infer_rank(c, 1, 3, 3))
        return false;
    for (int i = 0; i < 5; i++)
        if (node_has_input(c->node, i) &&
            (i > 1 || !type_is_static(infer_input(c, i))) &&
            !infer_constant(c, i, names[i]))
            return false;
    for (int i = 2; i < 5; i++)
        if (node_has_input(c->node, i) && type_count(infer_input(c, i)) != 1)
            return infer_error(c, "%s must have one element", names[i]);
    if (boxes->dims[2].value != 4 ||
        !extent_equal(boxes->dims[0], scores->dims[0]) ||
        !extent_equal(boxes->dims[1], scores->dims[2]))
        return infer_error(c, "boxes must be [images, boxes, 4] and scores "
                              "[images, classes, boxes]");
    Nms n = read_nms(c->node);
    if (!c->node->inputs.data[0]->value || !c->node->inputs.data[1]->value) {
        Extent count = infer_counted(c, n.batch * n.classes * n.most);
        infer_set(c, 0, DT_I64, 2, (Extent[]){count, extent_const(3)});
        return true;
    }
    Arena *scratch = arena_new();
    bool *left = ARENA_ARRAY(scratch, bool, n.boxes + 1);
    const float *box = c->node->inputs.data[0]->value->data;
    const float *score = c->node->inputs.data[1]->value->data;
    int64_t taken = 0;
    for (int64_t b = 0; b < n.batch; b++)
        for (int64_t k = 0; k < n.classes; k++)
            taken += count_taken(&n, box + b * n.boxes * 4,
                                 score + (b * n.classes + k) * n.boxes, left);
    arena_free(scratch);
    infer_set(c, 0, DT_I64, 2,
              (Extent[]){extent_const(taken), extent_const(3)});
    return true;
}

/* ---- the loops */

typedef struct BoxExpr {
    const Expr *x0, *y0, *x1, *y1;
} BoxExpr;

static const Expr *corner(LoopContext *c, const Expr *box, int k)
{
    return loop_load(
        c, c->in[0],
        expr_add_int(c->arena, expr_mul_int(c->arena, box, 4), k));
}

static BoxExpr box_expr(LoopContext *c, const Nms *n, const Expr *box)
{
    Arena *a = c->arena;
    const Expr *p[4], *half = expr_const(a, DT_F32, 2);

    for (int k = 0; k < 4; k++)
        p[k] = corner(c, box, k);
    if (!n->is_centred)
        return (BoxExpr){expr_min(a, p[1], p[3]), expr_min(a, p[0], p[2]),
                         expr_max(a, p[1], p[3]), expr_max(a, p[0], p[2])};
    const Expr *w = expr_div(a, p[2], half), *h = expr_div(a, p[3], half);
    return (BoxExpr){expr_sub(a, p[0], w), expr_sub(a, p[1], h),
                     expr_add(a, p[0], w), expr_add(a, p[1], h)};
}

static const Expr *area(Arena *a, BoxExpr b)
{
    return expr_mul(a, expr_sub(a, b.x1, b.x0), expr_sub(a, b.y1, b.y0));
}

static const Expr *overlap_expr(LoopContext *c, const Nms *n, const Expr *p,
                                const Expr *q)
{
    Arena *a = c->arena;
    BoxExpr x = box_expr(c, n, p), y = box_expr(c, n, q);
    const Expr *zero = expr_const(a, DT_F32, 0);
    const Expr *w =
        expr_sub(a, expr_min(a, x.x1, y.x1), expr_max(a, x.x0, y.x0));
    const Expr *h =
        expr_sub(a, expr_min(a, x.y1, y.y1), expr_max(a, x.y0, y.y0));
    const Expr *both = expr_mul(a, w, h);
    const Expr *all = expr_sub(a, expr_add(a, area(a, x), area(a, y)), both);
    const Expr *much = expr_binary(
        a, EX_LT, expr_mul(a, expr_const(a, DT_F32, (double)n->overlap), all),
        both);
    const Expr *meet = expr_binary(a, EX_AND, expr_binary(a, EX_LT, zero, w),
                                   expr_binary(a, EX_LT, zero, h));
    return expr_binary(a, EX_AND, meet, much);
}

static void program_nms(LoopContext *c)
{
    Arena *a = c->arena;
    Nms n = read_nms(c->node);
    if (c->out[0]->dims[0] == 0)
        return;
    const Buffer *left = loop_workspace(c, "left", DT_BOOL, n.boxes);
    const Buffer *at = loop_variable(c, "at", DT_I64);
    const Buffer *best = loop_variable(c, "best", DT_I64);
    const Expr *zero = expr_int(a, 0), *yes = expr_const_int(a, DT_BOOL, 1);
    const Expr *no = expr_const_int(a, DT_BOOL, 0);
    loop_set(c, at, zero);
    const Expr *b = loop_for(c, LOOP_SERIAL, "image", n.batch);
    const Expr *k = loop_for(c, LOOP_SERIAL, "class", n.classes);
    const Expr *row = expr_mul_int(
        a, expr_add(a, expr_mul_int(a, b, n.classes), k), n.boxes);
    const Expr *first = expr_mul_int(a, b, n.boxes);
    const Expr *i = loop_for(c, LOOP_SERIAL, "box", n.boxes);
    const Expr *score = loop_load(c, c->in[1], expr_add(a, row, i));
    loop_store(c, left, i,
               n.has_score
                   ? expr_binary(a, EX_LT,
                                 expr_const(a, DT_F32, (double)n.score), score)
                   : yes);
    loop_end(c);
    loop_for(c, LOOP_SERIAL, "take", n.most);
    loop_set(c, best, expr_int(a, -1));
    i = loop_for(c, LOOP_SERIAL, "box", n.boxes);
    loop_if(c, loop_load(c, left, i));
    const Expr *so_far = loop_load(
        c, c->in[1], expr_add(a, row, expr_max(a, loop_get(c, best), zero)));
    score = loop_load(c, c->in[1], expr_add(a, row, i));
    loop_if(c, expr_binary(a, EX_OR,
                           expr_binary(a, EX_LT, loop_get(c, best), zero),
                           expr_binary(a, EX_LT, so_far, score)));
    loop_set(c, best, i);
    loop_end(c);
    loop_end(c);
    loop_end(c);
    const Expr *taken = loop_get(c, best);
    loop_if(c, expr_binary(a, EX_LE, zero, taken));
    const Expr *to = expr_mul_int(a, loop_get(c, at), 3);
    loop_store(c, c->out[0], to, b);
    loop_store(c, c->out[0], expr_add_int(a, to, 1), k);
    loop_store(c, c->out[0], expr_add_int(a, to, 2), taken);
    loop_set(c, at, expr_add_int(a, loop_get(c, at), 1));
    loop_store(c, left, taken, no);
    i = loop_for(c, LOOP_SERIAL, "box", n.boxes);
    loop_if(c, loop_load(c, left, i));
    loop_if(c, overlap_expr(c, &n, expr_add(a, first, taken),
                            expr_add(a, first, i)));
    loop_store(c, left, i, no);
    loop_end(c);
    loop_end(c);
    loop_end(c);
    loop_end(c);
    loop_end(c);
    loop_end(c);
    loop_end(c);
    loop_set_extent(c, c->node->outputs.data[0]->type.dims[0],
                    loop_get(c, at));
}

static const AttrSpec nms_attrs[] = {{"center_point_box", ATTR_FLAG, false},
                                     {0}};

static const Op op_nms = {.name = "NonMaxSuppression",
                          .domain = "",
                          .min_inputs = 2,
                          .max_inputs = 5,
                          .min_outputs = 1,
                          .max_outputs = 1,
                          .traits = OP_RUNTIME_EXTENTS,
                          .attrs = nms_attrs,
                          .infer = infer_nms,
                          .program = program_nms,
                          .since = 11};

const Op *const ops_nms[] = {&op_nms, NULL};
