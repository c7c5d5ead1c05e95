/* The C backend: one C file a kernel and one for `run`, each compiled to an
 * object by the target's C compiler. */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "codegen/c.h"
#include "codegen/facts.h"
#include "runtime/abi.h"

extern char **environ;

/* Contraction off and no errno: each operation is the one in the loops.
 * Signed arithmetic wraps, as loops say. A kernel may have the name of a
 * library function. */
static const char *const flags[] = {"-std=c17",
                                    "-O2",
                                    "-fPIC",
                                    "-ffp-contract=off",
                                    "-fwrapv",
                                    "-fno-math-errno",
                                    "-fno-builtin",
                                    "-fno-strict-aliasing",
                                    "-Wall",
                                    "-Wextra",
                                    "-Werror",
                                    "-c",
                                    NULL};

bool codegen_c_text(Str *out, const Kernel *kernel)
{
    c_emit_preamble(out);
    c_emit_kernel(out, kernel);
    return true;
}

static void emit_argument(Str *out, const ProgramBuffer *b)
{
    static const char *const bases[] = {"run->inputs", "run->outputs",
                                        "run->weights", "run->arena"};

    if (b->kind == PB_EXTENTS)
        str_add(out, "run->extents");
    else if (b->kind == PB_INPUT || b->kind == PB_OUTPUT)
        str_addf(out, "%s[%" PRId64 "]", bases[b->kind], b->offset);
    else
        str_addf(out, "(void *)(%s + %" PRId64 ")", bases[b->kind], b->offset);
}

static void emit_facts(Str *out, const Program *p)
{
    Facts facts = program_facts(p);

    str_addf(out,
             "extern const uint64_t assay_model_facts[%d];\n"
             "const uint64_t assay_model_facts[%d] = {",
             FACT_COUNT, FACT_COUNT);
    for (int i = 0; i < FACT_COUNT; i++)
        str_addf(out, "%s\n    UINT64_C(0x%016" PRIx64 ")", i ? "," : "",
                 facts.item[i]);
    str_add(out, "};\n\n");
}

static void emit_step(Str *out, Arena *scratch, const Program *p, int s)
{
    const ProgramStep *step = &p->steps.data[s];
    str_add(out, "    {\n        void *const args[] = {");
    for (int a = 0; a < step->arg_count; a++) {
        str_add(out, a ? ",\n                              " : "");
        emit_argument(out, &p->buffers.data[step->args[a]]);
    }
    str_add(out, step->arg_count ? "};\n" : "0};\n");
    const char *name =
        c_kernel_symbol(scratch, p->kernels.data[step->kernel].kernel);
    str_addf(out,
             "        if (run->on_step)\n"
             "            run->on_step(run->user, %d, 0);\n"
             "        %s(run, args);\n"
             "        if (run->on_step)\n"
             "            run->on_step(run->user, %d, 1);\n    }\n",
             s, name, s);
}

static void emit_block(Str *out, Arena *scratch, const Program *p, int parent,
                       bool in_otherwise, int first, int end);

static void emit_element(Str *out, const Program *p, int buffer,
                         const char *type)
{
    str_addf(out, "*(%s *)", type);
    emit_argument(out, &p->buffers.data[buffer]);
}

static void emit_branch(Str *out, Arena *scratch, const Program *p, int index)
{
    const ProgramRegion *r = &p->regions.data[index];

    str_add(out, "    if (");
    emit_element(out, p, r->cond, "const uint8_t");
    str_add(out, ") {\n");
    emit_block(out, scratch, p, index, false, r->first, r->otherwise);
    if (r->otherwise < r->end) {
        str_add(out, "    } else {\n");
        emit_block(out, scratch, p, index, true, r->otherwise, r->end);
    }
    str_add(out, "    }\n");
}

static void emit_loop(Str *out, Arena *scratch, const Program *p, int index)
{
    const ProgramRegion *r = &p->regions.data[index];

    str_addf(out, "    const int64_t most%d = ", index);
    if (r->trips >= 0)
        emit_element(out, p, r->trips, "const int64_t");
    else
        str_addf(out, "INT64_C(%" PRId64 ")", r->most);
    str_addf(out, ";\n    for (int64_t i%d = 0; i%d < most%d", index, index,
             index);
    if (r->cond >= 0) {
        str_add(out, " && ");
        emit_element(out, p, r->cond, "const uint8_t");
    }
    str_addf(out, "; i%d++) {\n", index);
    if (r->counter >= 0) {
        str_add(out, "        ");
        emit_element(out, p, r->counter, "int64_t");
        str_addf(out, " = i%d;\n", index);
    }
    emit_block(out, scratch, p, index, false, r->first, r->end);
    str_add(out, "    }\n");
}

/* Steps with the regions directly among them. */
static void emit_block(Str *out, Arena *scratch, const Program *p, int parent,
                       bool in_otherwise, int first, int end)
{
    int region = -1;

    for (;;) {
        region =
            program_next_region(p, parent, in_otherwise, first, end, region);
        const ProgramRegion *r = region >= 0 ? &p->regions.data[region] : NULL;
        for (; first < (r ? r->first : end); first++)
            emit_step(out, scratch, p, first);
        if (!r)
            return;
        if (r->kind == REGION_BRANCH)
            emit_branch(out, scratch, p, region);
        else
            emit_loop(out, scratch, p, region);
        first = r->end;
    }
}

enum { STEPS_A_PART = 64 };

static void emit_model(Str *out, const Program *p)
{
    Arena *scratch = arena_new();

    for (int i = 0; i < p->kernels.count; i++)
        str_addf(out, "void %s(const AssayRun *run, void *const *args);\n",
                 c_kernel_symbol(scratch, p->kernels.data[i].kernel));
    str_addf(out,
             "\nextern const int32_t assay_model_abi;\n"
             "const int32_t assay_model_abi = %d;\n\n"
             "void assay_model_run(const AssayRun *run);\n",
             ASSAY_ABI_VERSION);
    emit_facts(out, p);
    /* In pieces: compilers' work on a function grows faster than its size,
     * and functions that others could call are not put together again. */
    int parts = 0;
    for (int at = 0, end; at < p->steps.count; at = end, parts++) {
        end = program_cut(p, at, STEPS_A_PART);
        str_addf(out,
                 "void assay_model_part%d(const AssayRun *run);\n"
                 "void assay_model_part%d(const AssayRun *run)\n{\n",
                 parts, parts);
        emit_block(out, scratch, p, -1, false, at, end);
        str_add(out, "}\n\n");
    }
    str_add(out, "void assay_model_run(const AssayRun *run)\n{\n"
                 "    (void)run;\n");
    for (int i = 0; i < parts; i++)
        str_addf(out, "    assay_model_part%d(run);\n", i);
    str_add(out, "}\n");
    arena_free(scratch);
}

static bool write_text(Diag *diag, const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    bool ok = file && fputs(text, file) >= 0;
    int error = errno;

    if (file && fclose(file) != 0) {
        ok = false;
        error = errno;
    }
    return ok ||
           diag_error(diag, "cannot write \"%s\": %s", path, strerror(error));
}

static char *read_whole(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    Str text = {0};
    char piece[8192];
    size_t n;

    if (!file)
        return NULL;
    while ((n = fread(piece, 1, sizeof piece, file)) > 0)
        str_add_bytes(&text, piece, n);
    fclose(file);
    *size = text.length;
    if (!text.data)
        str_add(&text, "");
    return text.data;
}

/* Starts `cc FLAGS NAME.c -o NAME.o` in `dir`: with relative names no path
 * of this machine gets into the object. Messages go to NAME.log. */
static bool start_compiler(Arena *arena, Diag *diag, const char *cc,
                           const char *dir, const char *name, pid_t *pid)
{
    Vec(char *) argv = {0};
    posix_spawn_file_actions_t actions;
    char *words = arena_strdup(arena, cc), *state;

    for (char *w = strtok_r(words, " ", &state); w;
         w = strtok_r(NULL, " ", &state))
        vec_push(arena, &argv, w);
    for (int i = 0; flags[i]; i++)
        vec_push(arena, &argv, (char *)flags[i]);
    /* Calls in a row have nothing to gain; and gcc looks for misleading
     * indentation in time that is quadratic in the size of a file. */
    if (strcmp(name, "model") == 0) {
        vec_push(arena, &argv, (char *)"-O0");
        vec_push(arena, &argv, (char *)"-Wno-misleading-indentation");
    }
    vec_push(arena, &argv, arena_printf(arena, "%s.c", name));
    vec_push(arena, &argv, (char *)"-o");
    vec_push(arena, &argv, arena_printf(arena, "%s.o", name));
    vec_push(arena, &argv, NULL);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addchdir_np(&actions, dir);
    posix_spawn_file_actions_addopen(&actions, 2,
                                     arena_printf(arena, "%s.log", name),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0666);
    int error =
        posix_spawnp(pid, argv.data[0], &actions, NULL, argv.data, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (!error)
        cleanup_add_child(*pid);
    return !error || diag_error(diag, "cannot run the C compiler \"%s\": %s",
                                argv.data[0], strerror(error));
}

static bool finish_compiler(Arena *arena, Diag *diag, const char *dir,
                            const char *name, pid_t pid)
{
    const char *log = arena_printf(arena, "%s/%s.log", dir, name);
    int status;
    size_t size;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return diag_error(diag, "waiting for the C compiler: %s",
                              strerror(errno));
    cleanup_forget_child(pid);
    bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!ok) {
        char *text = read_whole(log, &size);
        diag_error(diag, "the C compiler refuses %s.c: %s", name,
                   text ? text : "");
        free(text);
    }
    unlink(log);
    unlink(arena_printf(arena, "%s/%s.c", dir, name));
    return ok;
}

/* Hash and size of the machine code in an ELF object. */
static bool code_facts(Diag *diag, const char *path, ProgramKernel *kernel)
{
    size_t size;
    char *data = read_whole(path, &size);
    bool ok = data && size >= sizeof(Elf64_Ehdr) &&
              memcmp(data, ELFMAG, SELFMAG) == 0 &&
              data[EI_CLASS] == ELFCLASS64;

    kernel->code_hash = 0;
    kernel->code_bytes = 0;
    if (ok) {
        const Elf64_Ehdr *head = (const Elf64_Ehdr *)data;
        ok = head->e_shoff + (uint64_t)head->e_shnum * sizeof(Elf64_Shdr) <=
             size;
        const Elf64_Shdr *s = (const Elf64_Shdr *)(data + head->e_shoff);
        for (int i = 0; ok && i < head->e_shnum; i++) {
            if (s[i].sh_type != SHT_PROGBITS ||
                !(s[i].sh_flags & SHF_EXECINSTR))
                continue;
            ok = s[i].sh_offset + s[i].sh_size <= size;
            if (!ok)
                break;
            kernel->code_hash = hash_bytes(data + s[i].sh_offset, s[i].sh_size,
                                           kernel->code_hash);
            kernel->code_bytes += (int64_t)s[i].sh_size;
        }
    }
    free(data);
    return ok || diag_error(diag, "\"%s\" is not a 64-bit ELF object", path);
}

static bool write_source(const Program *p, Diag *diag, const char *path,
                         int index)
{
    Str text = {0};

    c_emit_preamble(&text);
    if (index < p->kernels.count)
        c_emit_kernel(&text, p->kernels.data[index].kernel);
    else
        emit_model(&text, p);
    bool ok = write_text(diag, path, str_text(&text));
    str_free(&text);
    return ok;
}

bool codegen_c(Program *p, Diag *diag, const CodegenOptions *o,
               const char *dir, const char ***objects, int *count)
{
    Arena *a = p->arena;
    int n = p->kernels.count + 1, jobs = o->jobs > 0 ? o->jobs : 1;
    const char *cc = o->cc ? o->cc : p->target->cc ? p->target->cc : "cc";
    const char **names = ARENA_ARRAY(a, const char *, n);
    const char **paths = ARENA_ARRAY(a, const char *, n);
    pid_t *running = ARENA_ARRAY(a, pid_t, n);
    int started = 0, finished = 0;
    bool ok = true;

    for (int i = 0; i < n; i++) {
        names[i] = i + 1 < n ? c_kernel_symbol(a, p->kernels.data[i].kernel)
                             : "model";
        paths[i] = arena_printf(a, "%s/%s.o", dir, names[i]);
    }
    /* Started and awaited in order, so that messages are too. */
    while (finished < started || (ok && started < n)) {
        if (ok && started < n && started - finished < jobs) {
            const char *source =
                arena_printf(a, "%s/%s.c", dir, names[started]);
            ok = write_source(p, diag, source, started) &&
                 start_compiler(a, diag, cc, dir, names[started],
                                &running[started]);
            started += ok;
            continue;
        }
        ok &=
            finish_compiler(a, diag, dir, names[finished], running[finished]);
        finished++;
    }
    for (int i = 0; ok && i + 1 < n; i++)
        ok = code_facts(diag, paths[i], &p->kernels.data[i]);
    *objects = paths;
    *count = n;
    return ok;
}
