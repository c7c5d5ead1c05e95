/* The LLVM back end: modules to objects, one a kernel, in parallel. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Object.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include "base/diag.h"
#include "base/hash.h"
#include "codegen/llvm.h"
#include "runtime/abi.h"

/* LLVM's list of targets is global; only those that Assay generates code
 * for. */
static void on_fatal(const char *reason)
{
    die("LLVM: %s", reason);
}

static void initialize(void)
{
    /* By default it exits with code 1, which means a failed check here. */
    LLVMInstallFatalErrorHandler(on_fatal);
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
}

const char *codegen_backend(Arena *arena, TargetCodegen codegen)
{
    unsigned major, minor, patch;
    if (codegen == CODEGEN_C)
        return "cc";
    LLVMGetVersion(&major, &minor, &patch);
    return arena_printf(arena, "llvm%u", major);
}

static LLVMTargetMachineRef open_machine(const Target *target, char **error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, initialize);
    LLVMTargetRef t;
    if (LLVMGetTargetFromTriple(target->triple, &t, error))
        return NULL;
    return LLVMCreateTargetMachine(
        t, target->triple, target->cpu, target->features,
        LLVMCodeGenLevelAggressive, LLVMRelocPIC, LLVMCodeModelDefault);
}

/* LLVM's own loop and SLP vectorizers stay off: the schedule decides. The
 * option keeps a check of LLVM's own from ending the process where one more
 * round would have combined further. */
static const char *const pipeline =
    "function(sroa,early-cse<memssa>,simplifycfg,"
    "instcombine<no-verify-fixpoint>,"
    "loop-mssa(licm),early-cse<memssa>,simplifycfg)";

/* Verifies and optimizes; NULL, or a message to free with LLVM. */
static char *optimize(Module *m, LLVMTargetMachineRef machine)
{
    char *triple = LLVMGetTargetMachineTriple(machine);
    LLVMSetTarget(m->module, triple);
    LLVMDisposeMessage(triple);
    LLVMTargetDataRef data = LLVMCreateTargetDataLayout(machine);
    LLVMSetModuleDataLayout(m->module, data);
    LLVMDisposeTargetData(data);
    char *message = NULL;
    /* The user's model cannot cause this; it is a fault of the emitter. */
    if (LLVMVerifyModule(m->module, LLVMReturnStatusAction, &message))
        die("LLVM refuses the module: %s", message);
    LLVMDisposeMessage(message);
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    char *passes =
        arena_printf(m->arena, "%s%s%s", pipeline, m->sanitize ? ",asan" : "",
                     m->sanitize_threads ? ",function(tsan),tsan-module" : "");
    LLVMErrorRef error = LLVMRunPasses(m->module, passes, machine, options);
    LLVMDisposePassBuilderOptions(options);
    return error ? LLVMGetErrorMessage(error) : NULL;
}

typedef struct Job {
    Program *program;
    const Target *target;
    const CodegenOptions *options;
    const char **paths; /* of kernels, then of the model */
    char **errors;
    atomic_int *next;
} Job;

/* Hash and size of the machine code in an object. */
static void code_facts(LLVMMemoryBufferRef object, ProgramKernel *kernel)
{
    char *message = NULL;
    LLVMBinaryRef binary = LLVMCreateBinary(object, NULL, &message);
    if (!binary)
        die("cannot read back an object: %s", message);
    uint64_t hash = 0;
    LLVMSectionIteratorRef s = LLVMObjectFileCopySectionIterator(binary);
    for (; !LLVMObjectFileIsSectionIteratorAtEnd(binary, s);
         LLVMMoveToNextSection(s)) {
        const char *name = LLVMGetSectionName(s);
        /* Code only: data and notes of the compiler do not tell kernels
         * apart. */
        if (!name || strncmp(name, ".text", 5))
            continue;
        uint64_t size = LLVMGetSectionSize(s);
        hash = hash_bytes(LLVMGetSectionContents(s), size, hash);
        kernel->code_bytes += (int64_t)size;
    }
    kernel->code_hash = hash;
    LLVMDisposeSectionIterator(s);
    LLVMDisposeBinary(binary);
}

static char *write_file(const char *path, LLVMMemoryBufferRef buffer)
{
    FILE *f = fopen(path, "wb");
    size_t size = LLVMGetBufferSize(buffer);
    bool ok = f && fwrite(LLVMGetBufferStart(buffer), 1, size, f) == size;
    int error = errno;
    if (f && fclose(f) && ok) {
        ok = false;
        error = errno;
    }
    if (ok)
        return NULL;
    char text[512];
    snprintf(text, sizeof text, "%s: %s", path, strerror(error));
    return LLVMCreateMessage(text);
}

static char *compile_one(const Job *job, int index)
{
    Program *p = job->program;
    Module m;
    char *error = NULL;
    /* A machine and a context for each module: threads share neither. */
    LLVMTargetMachineRef machine = open_machine(job->target, &error);
    if (!machine)
        return error;
    bool is_model = index == p->kernels.count;
    module_open(&m, job->target, is_model ? "model" : "kernel");
    m.sanitize = job->options->sanitize;
    m.sanitize_threads = job->options->sanitize_threads;
    if (is_model)
        emit_model(&m, p);
    else
        emit_kernel(&m, p->kernels.data[index].kernel);
    error = optimize(&m, machine);
    LLVMMemoryBufferRef object = NULL;
    if (!error && !LLVMTargetMachineEmitToMemoryBuffer(
                      machine, m.module, LLVMObjectFile, &error, &object)) {
        error = write_file(job->paths[index], object);
        if (!is_model)
            code_facts(object, &p->kernels.data[index]);
        LLVMDisposeMemoryBuffer(object);
    }
    module_close(&m);
    LLVMDisposeTargetMachine(machine);
    return error;
}

static void *worker(void *argument)
{
    Job *job = argument;
    for (;;) {
        int i = atomic_fetch_add(job->next, 1);
        if (i > job->program->kernels.count)
            return NULL;
        /* Each place is written by one thread and read after all have ended:
         * messages come in the order of kernels, whatever ended first. */
        job->errors[i] = compile_one(job, i);
    }
}

bool codegen_llvm(Program *program, Diag *diag, const CodegenOptions *o,
                  const char *dir, const char ***objects, int *count)
{
    Arena *a = program->arena;
    atomic_int next = 0;
    int n = program->kernels.count + 1;
    Job job = {program,
               program->target,
               o,
               ARENA_ARRAY(a, const char *, n),
               ARENA_ARRAY(a, char *, n),
               &next};
    for (int i = 0; i < n; i++)
        job.paths[i] =
            i + 1 < n ? arena_printf(a, "%s/%s.o", dir,
                                     program->kernels.data[i].kernel->name)
                      : arena_printf(a, "%s/model.o", dir);
    enum { MAX_JOBS = 64 };
    pthread_t threads[MAX_JOBS];
    int jobs = o->jobs > n ? n : o->jobs, started = 0;
    for (; started + 1 < jobs && started < MAX_JOBS; started++)
        if (pthread_create(&threads[started], NULL, worker, &job))
            break;
    worker(&job);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    bool ok = true;
    for (int i = 0; i < n; i++) {
        if (!job.errors[i])
            continue;
        ok = diag_error(diag, "code generation of %s: %s", job.paths[i],
                        job.errors[i]);
        LLVMDisposeMessage(job.errors[i]);
    }
    *objects = job.paths;
    *count = n;
    return ok;
}

bool codegen_llvm_text(Str *out, Diag *diag, const Kernel *kernel,
                       const Target *target, bool assembly)
{
    char *error = NULL;
    LLVMTargetMachineRef machine = open_machine(target, &error);
    if (!machine) {
        diag_error(diag, "target %s: %s", target->name, error);
        LLVMDisposeMessage(error);
        return false;
    }
    Module m;
    module_open(&m, target, kernel->name);
    emit_kernel(&m, kernel);
    error = optimize(&m, machine);
    LLVMMemoryBufferRef text = NULL;
    if (!error && assembly &&
        !LLVMTargetMachineEmitToMemoryBuffer(
            machine, m.module, LLVMAssemblyFile, &error, &text)) {
        str_add_bytes(out, LLVMGetBufferStart(text), LLVMGetBufferSize(text));
        LLVMDisposeMemoryBuffer(text);
    } else if (!error) {
        char *ir = LLVMPrintModuleToString(m.module);
        str_add(out, ir);
        LLVMDisposeMessage(ir);
    }
    module_close(&m);
    LLVMDisposeTargetMachine(machine);
    if (!error)
        return true;
    diag_error(diag, "kernel %s: %s", kernel->name, error);
    LLVMDisposeMessage(error);
    return false;
}

/* ---- evaluation in memory ------------------------------------------ */

static void run_serially(void *pool, AssayTask task, void *context,
                         int64_t count)
{
    (void)pool;
    if (count > 0)
        task(context, 0, count);
}

/* The least a host of its kind has, so that folded constants do not depend
 * on where the compiler ran. */
static const Target baseline = {
    .name = "baseline",
#if defined(__aarch64__)
    .triple = "aarch64-unknown-linux-gnu",
    .cpu = "generic",
    .features = "+neon",
#else
    .triple = "x86_64-unknown-linux-gnu",
    .cpu = "x86-64-v2",
    .features = "",
#endif
    .vector_bytes = 16,
    .vector_registers = 16,
    .tile_registers = 11,
};

static bool jit_failed(Diag *diag, const Kernel *kernel, LLVMErrorRef error)
{
    if (!error)
        return false;
    char *message = LLVMGetErrorMessage(error);
    diag_error(diag, "evaluation of %s: %s", kernel->name, message);
    LLVMDisposeErrorMessage(message);
    return true;
}

bool codegen_llvm_evaluate(const Kernel *kernel, void *const *data, Diag *diag)
{
    char *text = NULL;
    LLVMTargetMachineRef machine = open_machine(&baseline, &text);
    if (!machine) {
        diag_error(diag, "evaluation of %s: %s", kernel->name, text);
        LLVMDisposeMessage(text);
        return false;
    }
    Module m;
    module_open(&m, &baseline, kernel->name);
    emit_kernel(&m, kernel);
    text = optimize(&m, machine);
    LLVMMemoryBufferRef object = NULL;
    if (!text)
        LLVMTargetMachineEmitToMemoryBuffer(machine, m.module, LLVMObjectFile,
                                            &text, &object);
    module_close(&m);
    LLVMDisposeTargetMachine(machine);
    if (text) {
        diag_error(diag, "evaluation of %s: %s", kernel->name, text);
        LLVMDisposeMessage(text);
        return false;
    }
    LLVMOrcLLJITRef jit = NULL;
    if (jit_failed(diag, kernel, LLVMOrcCreateLLJIT(&jit, NULL)))
        return false;
    LLVMOrcExecutorAddress address = 0;
    /* The object belongs to the JIT from here on. */
    bool ok =
        !jit_failed(diag, kernel,
                    LLVMOrcLLJITAddObjectFile(
                        jit, LLVMOrcLLJITGetMainJITDylib(jit), object)) &&
        !jit_failed(diag, kernel,
                    LLVMOrcLLJITLookup(jit, &address, kernel->name));
    if (ok) {
        AssayRun run = {.parallel_for = run_serially};
        void (*entry)(const AssayRun *, void *const *);
        memcpy(&entry, &address, sizeof entry);
        entry(&run, data);
    }
    LLVMOrcDisposeLLJIT(jit);
    return ok;
}
