/* Graph: what is computed, for no target. Nodes apply operators to
 * tensors; the node list is in topological order after graph_sort.
 *
 * Every node and tensor keeps the names it had in the source through all
 * passes (`sources`), so that layers of two builds match up. */
#ifndef ASSAY_GRAPH_GRAPH_H
#define ASSAY_GRAPH_GRAPH_H

#include "base/array.h"
#include "base/attrs.h"
#include "base/diag.h"
#include "base/hash.h"
#include "base/layout.h"
#include "base/str.h"
#include "base/vec.h"
#include "graph/extent.h"

typedef struct Op Op;
typedef struct OpTable OpTable;
typedef struct Node Node;
typedef struct Tensor Tensor;
typedef struct Group Group;

/* Affine quantization: real = (stored - zero_point) * scale. */
typedef struct Quant {
    int axis; /* -1: one scale for the whole tensor */
    int count;
    const double *scales;
    const int64_t *zero_points;
} Quant;

typedef struct TensorType {
    DType dtype;
    int rank; /* -1: not known */
    Extent dims[MAX_RANK];
    const Quant *quant; /* NULL: not quantized */
} TensorType;

struct Tensor {
    int id;           /* unique in the graph, never reused */
    const char *name; /* unique in the graph */
    TensorType type;
    Node *producer;     /* NULL for inputs and constants */
    const Array *value; /* constants only */
    /* What a small integer tensor holds, by element in row-major order, where
     * that depends on named dimensions; NULL: not known. Set by type
     * inference, with the type. */
    const Extent *symbols;
    Vec(Node *) users; /* a node appears once a use */
    bool is_input, is_output;
    /* A type rule asked for its value, which is not known. */
    bool is_wanted;
    Vec(const char *) sources;
    Layout layout; /* count 0 until the layout pass chose one */
    /* Lies in the storage of that tensor (which may lie in another), where
     * `layout` says; NULL: storage of its own. */
    Tensor *within;
};

/* Why a node is not in the group of an operand's producer. */
typedef enum Apart {
    APART_NONE,      /* it is, or nothing computes the operand */
    APART_OUTPUT,    /* the operand is an output of the graph */
    APART_READERS,   /* others read it that cannot come along */
    APART_ANCHOR,    /* a second anchor */
    APART_OPERAND,   /* an anchor, which reads elements many times */
    APART_TAKEN,     /* is in another group already */
    APART_REDUCTION, /* reduces over axes that the group keeps apart */
    APART_MOVED,     /* moves elements that a tile or row computes */
    APART_SHAPE,     /* has a result of another shape */
    APART_VIEW,      /* either is a view, for which there is no kernel */
    APART_REPEATED,  /* would compute something costly again */
    APART_SIZE,      /* the group is as large as may be */
    APART_EXCLUDED,  /* --no-fuse */
    APART_KIND,      /* impure, or several results */
    APART_PROGRAM,   /* a loop program, which is a kernel by itself */
    APART_CONTROL,   /* control flow, or behind it */
    APART_LEVEL,     /* nothing is fused at -O0 */
    APART_COUNT
} Apart;

struct Node {
    int id;
    const char *name; /* unique, never empty */
    const Op *op;
    Attrs attrs;
    Vec(Tensor *) inputs;  /* NULL: an optional input left out */
    Vec(Tensor *) outputs; /* NULL: an optional output left out */
    Vec(const char *) sources;
    Group *group; /* set by the fusion pass */
    Apart *apart; /* by operand, from the fusion pass as it decides; or NULL */
    bool no_fuse; /* excluded from fusion by the user */
    /* Of control flow: the branches, or what a loop repeats. A body is closed:
     * what it reads from outside are inputs of it and operands of the node,
     * in the order that ops/control.h says. */
    Vec(struct Graph *) bodies;
};

/* Nodes that become one kernel. `anchor` is the node whose computation
 * decides the schedule (NULL for purely elementwise or injective groups). */
struct Group {
    int id;
    Vec(Node *) nodes; /* topological order */
    Node *anchor;
};

typedef struct Graph {
    Arena *arena;
    Diag *diag;
    const char *name;
    const OpTable *ops; /* list of tables, see ops/op.h */
    Vec(Node *) nodes;
    Vec(Tensor *) tensors; /* all, constants included */
    Vec(Tensor *) inputs;
    Vec(Tensor *) outputs;
    Vec(Group *) groups; /* empty before the fusion pass */
    int next_id;
    Map tensor_names, node_names; /* kept by the functions below */
    /* Names that have bounds, each a plain name: the numbers that a run gives
     * to the kernels, in this order. Filled by graph_find_symbols. */
    Vec(Extent) symbols;
    /* Names of tensors (or "NAME[I]" for one element) whose integers shapes
     * may depend on when the model runs, with the bounds of these. */
    Vec(Extent) declared;
    int input_symbols; /* the first of them, which inputs have; kernels
                        * compute the others */
} Graph;

/* What a graph asks of operators, which are opaque here; ops/op.c has the
 * answers. ops_find returns NULL for an unknown operator; op_infer runs the
 * type rule after checking counts and attributes. */
const Op *ops_find(const OpTable *tables, const char *domain,
                   const char *name);
const char *op_name(const Op *op);
const char *op_domain(const Op *op);
bool op_infer(Graph *g, Node *node);

Graph *graph_new(Arena *arena, Diag *diag, const char *name,
                 const OpTable *ops);

/* A graph of its own with the same content; constants are shared. Not for
 * a graph that has groups. */
Graph *graph_copy(Arena *arena, const Graph *from);

/* Builders. Names may be NULL (one is made); a name already taken is made
 * unique with a suffix. A name that was given is also the first source.
 * graph_add_node makes `output_count` fresh output tensors of unknown type
 * and does not infer. `op` is a name, "Conv", or "domain::Name"; an unknown
 * one is an error in g->diag and gives NULL. */
Tensor *graph_add_input(Graph *g, const char *name, TensorType type);
Tensor *graph_add_constant(Graph *g, const char *name, const Array *value);
Node *graph_add_node(Graph *g, const char *op, const char *name,
                     Tensor *const *inputs, int input_count, int output_count);
void graph_mark_output(Graph *g, Tensor *tensor); /* once a tensor */
/* Renames (made unique when taken); sources become the name alone. */
void graph_name_tensor(Graph *g, Tensor *tensor, const char *name);
/* Makes an unused output of a node one that is left out. */
void graph_drop_output(Graph *g, Node *node, int index);
/* The reverse: a tensor that nothing reads. */
void graph_restore_output(Graph *g, Node *node, int index);
/* Shorthand for models: adds the node, infers its types (faults go to
 * g->diag) and returns its first output. Inputs end with a NULL. Example:
 *     y = graph_apply(g, "Conv", "conv1", attrs, x, w, b, NULL) */
Tensor *graph_apply(Graph *g, const char *op, const char *name, Attrs attrs,
                    ...);

/* Copies the nodes of a body to right before `node`. Input i of the body
 * becomes inputs[i]; its output i became outputs[i]. Names of the copies start
 * with `prefix`; constants are shared. */
void graph_inline(Graph *g, Node *node, const Graph *body,
                  Tensor *const *inputs, const char *prefix, Tensor **outputs);

/* Edits keep producer and user lists right. */
void graph_set_input(Graph *g, Node *node, int index, Tensor *tensor);
/* All users (and graph outputs) of `from` use `to` instead; `to` inherits
 * the sources of `from`. A graph output keeps its name: when `from` is an
 * output, `to` takes over the name and the flag. Returns false, changing
 * nothing, when `to` is an input, constant or another output and `from` an
 * output: the caller keeps the node. */
bool graph_replace(Graph *g, Tensor *from, Tensor *to);
/* The users only: a graph output stays what it is. */
void graph_replace_uses(Graph *g, Tensor *from, Tensor *to);
void graph_remove_node(Graph *g, Node *node); /* outputs must be unused */
/* Inserts `node` (already added) right before `before` in the list. */
void graph_move_before(Graph *g, Node *node, Node *before);
void graph_add_source(Graph *g, Node *to, const Node *from);

/* Orders the nodes topologically, stable; false with a diagnostic that
 * names the nodes of a cycle. Linear time, no recursion. */
bool graph_sort(Graph *g);
Tensor *graph_find_tensor(const Graph *g, const char *name);
Node *graph_find_node(const Graph *g, const char *name);
/* "another consumer", ...: for people. */
const char *apart_text(Apart apart);
/* The tensor that has the storage: the outermost that `tensor` is within. */
Tensor *tensor_storage(Tensor *tensor);
/* Element count of a type with constant extents, -1 otherwise (or when it
 * overflows). */
int64_t type_count(const TensorType *type);
bool type_is_static(const TensorType *type);
/* Every extent is a number or has an upper bound. */
bool type_is_bounded(const TensorType *type);
/* Element count with every extent at its upper bound; -1 when one has none,
 * or when it overflows. */
int64_t type_most(const TensorType *type);
/* Fills g->symbols anew: the names of the inputs' extents in order, then those
 * that results have and no input, results within bodies among them. */
void graph_find_symbols(Graph *g);
/* Adds the names with bounds of a type's extents that are not there yet. */
void graph_add_symbols(Graph *g, const TensorType *type);
/* The place of a name among g->symbols, -1 for none. */
int graph_symbol(const Graph *g, const char *name);
/* Element type and extents; quantization does not count. */
bool type_equal(const TensorType *a, const TensorType *b);
void type_print(Str *out, const TensorType *type); /* "f32[1,64,56,56]" */
TensorType type_of_array(const Array *array);

/* Text form. Constants above 16 elements print as a hash of their content
 * unless `values` is set, which the parser needs to read them back. */
void graph_print(Str *out, const Graph *g, bool values);
/* " {group 1, pads [1, 1, 1, 1]}"; nothing without attributes. */
void attrs_print(Str *out, const Attrs *attrs);
Graph *graph_parse(Arena *arena, Diag *diag, const OpTable *ops,
                   const char *text);
/* Invariants of the structure: lists agree, order is topological, types
 * are what the rules say. Calls die() on a violation. */
void graph_verify(const Graph *g);

#endif
