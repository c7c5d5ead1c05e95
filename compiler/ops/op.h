/* Operators: one row each, gathered in tables. Nothing outside ops/
 * switches on operator names; passes and schedules ask for traits and look
 * at the definitions.
 *
 * The graph holds one canonical form of each operator: that of its newest
 * ONNX version, with shape-like operands (axes, pads, starts, shape) as
 * tensors. The importer brings older versions to that form. */
#ifndef ASSAY_OPS_OP_H
#define ASSAY_OPS_OP_H

#include "graph/graph.h"
#include "tensor/definition.h"

typedef enum OpTrait {
    /* Output element i depends on input elements i only (after
     * broadcasting); no reduction. */
    OP_ELEMENTWISE = 1 << 0,
    /* Inputs broadcast against each other as NumPy does. */
    OP_BROADCAST = 1 << 1,
    /* Each output element is one input element, moved: reshape, slice. */
    OP_INJECTIVE = 1 << 2,
    /* Combines many elements of one input along axes. */
    OP_REDUCTION = 1 << 3,
    /* Heavy: decides the schedule of its group (convolution, product). */
    OP_ANCHOR = 1 << 4,
    /* Output equals the first input, bit for bit, in every case. */
    OP_IDENTITY = 1 << 5,
    OP_COMMUTATIVE = 1 << 6,
    /* The output has the elements of the first input in row-major order
     * under another shape. */
    OP_RESHAPE = 1 << 7,
    /* Linear in operand 1 (weights): scaling output channel c equals
     * scaling the weights of channel c. See Op.channel_axis. */
    OP_LINEAR_WEIGHTS = 1 << 8,
    /* Depends on anything but inputs and attributes; never folded. */
    OP_IMPURE = 1 << 9,
    /* The result follows from the types of the inputs: where these are
     * static, `decompose` makes it a constant. */
    OP_TYPE_ONLY = 1 << 10,
    /* The definition holds where extents are known at run time only: it takes
     * counts from define_extent, never from the upper bounds in Buffer.dims.
     * Elementwise operators need no such mark. */
    OP_RUNTIME_EXTENTS = 1 << 11,
    /* Control flow, see ops/control.h. The first operand chooses between two
     * bodies, or a body is repeated. */
    OP_BRANCH = 1 << 12,
    OP_LOOP = 1 << 13,
    /* Takes strings, which must be constants: `decompose` then replaces the
     * node as soon as its type is known. */
    OP_STRINGS = 1 << 14
} OpTrait;

/* For an AttrSpec: an integer that must be 0 or 1. */
#define ATTR_FLAG ((AttrKind)(ATTR_TENSOR + 1))

typedef struct AttrSpec {
    const char *name;
    AttrKind kind;
    bool required;
} AttrSpec;

/* What a type rule works on. It reads node->inputs (types, and values of
 * constants) and sets node->outputs[i]->type. Faults go to diag through
 * infer_error, which prefixes the node: "Conv \"conv1\" (output y): ...". */
typedef struct InferContext {
    Graph *graph;
    Node *node;
} InferContext;

bool infer_error(InferContext *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What a definition rule works on: buffers stand for the node's tensors.
 * in[i] is NULL where the input was left out; a rule adds stages that
 * write out[i] with the functions of tensor/definition.h. Constant inputs
 * that the rule needs as numbers (axes, pads) are in node->inputs[i]. */
enum { MAX_OP_INPUTS = 64, MAX_OP_OUTPUTS = 32 };
typedef struct DefineContext {
    Definition *def;
    const Node *node;
    Buffer *in[MAX_OP_INPUTS];
    Buffer *out[MAX_OP_OUTPUTS];
    /* The numbers that a run gives, by place in graph->symbols; NULL where
     * the node's types are static. */
    const Graph *graph;
    Buffer *extents;
} DefineContext;

/* Adds the buffer of these numbers to a definition. */
Buffer *define_extents_buffer(Definition *def, const Graph *graph);
/* All types are static. */
bool node_is_static(const Node *node);
bool node_has_strings(const Node *node);
/* It is lowered by its operator's program, not by a definition. */
bool node_is_program(const Node *node);

/* An extent as an i64 expression for definitions. */
const Expr *define_extent(const DefineContext *c, Extent extent);

/* What a loop program is built from; see ops/loop_program.h. */
typedef struct LoopContext LoopContext;

/* What computing a node takes, for a choice between algorithms. */
typedef struct OpWork {
    double products;       /* multiply-adds, of whole vectors of results */
    double elements;       /* that transforms read or write besides */
    double constant_bytes; /* of constant operands, as they are read */
} OpWork;

/* A way to compute a node: one of several whose results differ by rounding,
 * and which no schedule turns into another. */
typedef struct OpAlgorithm {
    const char *name; /* NULL ends a list */
    /* For vectors of `lanes` elements. False: does not apply to the node, of
     * which types and constants are known. */
    bool (*work)(const Node *node, int lanes, OpWork *work);
    /* Puts other nodes in place of the node; NULL: computed as it stands. */
    void (*rewrite)(Graph *g, Node *node);
} OpAlgorithm;

struct Op {
    const char *name;           /* ONNX's name, CamelCase */
    const char *domain;         /* "" is ai.onnx */
    int min_inputs, max_inputs; /* -1: any number */
    int min_outputs, max_outputs;
    unsigned traits;
    const AttrSpec *attrs; /* ends with a NULL name; NULL: none */
    bool (*infer)(InferContext *c);
    /* NULL: has a program, or must have been rewritten or folded before
     * lowering. */
    void (*define)(DefineContext *c);
    /* In place of a definition, where no tensor expression says what is
     * computed, or says it well: the kernel's loops. The node is a group of
     * its own, and its operands and results are row-major. */
    void (*program)(LoopContext *c);
    /* Of an operator that has both: whether the loops are the better form of
     * the node. */
    bool (*prefers_program)(const Node *node);
    /* Rewrites the node into simpler ones of the same bits (-O1) or of
     * reassociated ones (-O2); true when it did. NULL: nothing to do. Used
     * for BatchNormalization and the like. */
    bool (*decompose)(Graph *g, Node *node);
    /* Rewrites the node, with those before it, into the form in which all
     * levels compute it and the reference, too; true when it did. NULL: it is
     * computed as it stands. */
    bool (*canonical)(Graph *g, Node *node);
    /* The node as it stands, then what may replace it; NULL: no choice. */
    const OpAlgorithm *algorithms;
    /* Floating operations by which speed is reported, where the definition
     * reaches the result with fewer; NULL: those of the definition. */
    double (*flops)(const Node *node);
    /* Weights axis that is output channel, for OP_LINEAR_WEIGHTS; the
     * output's channel axis comes from `output_channel_axis`. Negative
     * counts from the end. */
    int channel_axis, output_channel_axis;
    int since; /* first ONNX opset with this canonical form */
    /* The template to try first (schedules/choose.h); NULL: by the look. */
    const char *schedule;
};

struct OpTable {
    const Op *const *ops; /* ends with NULL */
    const OpTable *next;  /* a user's own tables come first in the list */
};

/* ops_find and op_infer are declared in graph/graph.h. */
const OpTable *ops_builtin(void);

/* ONNX's number of an element type, as in Cast's `to`; DT_INVALID for one
 * that Assay does not have. */
DType dtype_of_onnx(int64_t number);

/* op_infer of all nodes in order. A node whose inputs could not be typed
 * is skipped: its fault was reported at the node that caused it. False when
 * any was reported. */
bool ops_infer_graph(Graph *g);
/* Whether every node can be lowered: it has a definition or a program, static
 * types and element types that are computed. All faults are reported. */
bool ops_check_lowerable(const Graph *g);
/* Whether the node has a definition for its types where some extent is known
 * at run time only. */
bool op_takes_runtime_extents(const Node *node);
bool op_check_lowerable(const Graph *g, const Node *node);
/* The name of the extent that a node's result has where it is as large as the
 * data say. */
const char *op_counted_name(Arena *arena, const Node *node);

#endif
