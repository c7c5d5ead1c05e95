/* Emission of one kernel: state shared by expressions and statements. */
#ifndef ASSAY_CODEGEN_LLVM_EMIT_H
#define ASSAY_CODEGEN_LLVM_EMIT_H

#include "codegen/llvm.h"

typedef struct Emit {
    Module *m;
    const Kernel *kernel;
    LLVMValueRef function;   /* being filled */
    LLVMBasicBlockRef entry; /* allocas go here */
    LLVMValueRef *params;    /* a pointer each */
    LLVMValueRef *temps;     /* allocas, NULL until used */
    LLVMValueRef run, args;  /* only in the outer function */
    PtrMap vars;             /* Var to i64 value */
    /* vector loop in progress; lanes is 0 outside */
    const Var *lane_var;
    int lanes;
    LLVMValueRef mask; /* lanes that may touch memory, or NULL */
    int tasks;
} Emit;

/* Binds a loop variable to an i64 value. */
void emit_bind(Emit *e, const Var *var, LLVMValueRef value);
/* The statement's store, for one element or for all lanes. */
void emit_store(Emit *e, const Stmt *s);
/* The hint to bring a cache line into the second level cache. */
void emit_prefetch(Emit *e, const Stmt *s);
/* A boolean or index expression outside vector loops. */
LLVMValueRef emit_value(Emit *e, const Expr *x);

#endif
