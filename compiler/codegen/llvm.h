/* Small wrappers over the LLVM C API, private to codegen/. */
#ifndef ASSAY_CODEGEN_LLVM_H
#define ASSAY_CODEGEN_LLVM_H

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

#include "codegen/codegen.h"
#include "tensor/ptrmap.h"

/* One module under construction. One context, hence one thread. */
typedef struct Module {
    Arena *arena; /* own, as kernels are emitted in several threads */
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    LLVMTypeRef ptr, i64, i32, i8, i1, f32, f64, void_;
    const Target *target;
    bool sanitize, sanitize_threads;
} Module;

void module_open(Module *m, const Target *target, const char *name);
void module_close(Module *m);
LLVMTypeRef module_type(const Module *m, DType dtype);   /* in SSA form */
LLVMValueRef module_int(const Module *m, int64_t value); /* i64 */
/* Calls an overloaded intrinsic on values of type `type`. */
LLVMValueRef module_intrinsic(Module *m, const char *name, LLVMTypeRef type,
                              LLVMValueRef *args, unsigned count);
/* A function attribute as text, or an enum attribute with a value. */
void module_text_attribute(Module *m, LLVMValueRef function, const char *key,
                           const char *value);
void module_attribute(Module *m, LLVMValueRef function, int index,
                      const char *name, uint64_t value);
/* void name(const AssayRun *, void *const *) */
LLVMTypeRef module_kernel_type(const Module *m);
/* Field `index` of an AssayRun, all of which are pointers. */
LLVMValueRef module_run_field(Module *m, LLVMValueRef run, unsigned index);

/* Emits the kernel's functions into the module. */
void emit_kernel(Module *m, const Kernel *kernel);
/* Emits assay_model_run, assay_model_abi and assay_model_facts. */
void emit_model(Module *m, const Program *program);

#endif
