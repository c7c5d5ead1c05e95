#include "harness/engines.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "harness/common.h"

static const EngineRow rows[] = {
    {"onnxruntime", "onnxruntime==1.32.0\nnumpy==2.4.6\n"},
    {"openvino", "openvino==2026.4.1\nnumpy==2.4.6\n"},
    {"torch", "torch==2.15.0\ntorchvision==0.29.2\nonnx2torch==1.5.15\n"
              "onnx==1.23.2\nnumpy==2.4.6\n"},
    {"tvm", "apache-tvm==0.27.0.post1\nonnx==1.23.2\nnumpy==2.4.6\n"},
    {"ncnn", "ncnn==1.0.20261020\npnnx==20261020\nnumpy==2.4.6\n"},
    {0},
};

/* Written last: what the environment was made from. */
static const char *const mark = "assay-requirements.txt";

const EngineRow *engine_rows(void)
{
    return rows;
}

static const char *python_path(Arena *arena, const char *name,
                               const char *venvs)
{
    return arena_printf(arena, "%s/%s/bin/python", venvs, name);
}

static bool find_program(Arena *arena, const char *path, Engine *engine,
                         Str *error)
{
    if (access(path, X_OK)) {
        str_addf(error, "--engine %s: %s", path, strerror(errno));
        return false;
    }
    *engine = (Engine){.name = arena_strdup(arena, strrchr(path, '/') + 1),
                       .start = {path, NULL}};
    if (!*engine->name)
        str_addf(error, "--engine %s: a folder, not a program", path);
    return *engine->name;
}

bool engine_find(Arena *arena, const char *text, const char *venvs,
                 Engine *engine, Str *error)
{
    if (strchr(text, '/'))
        return find_program(arena, text, engine, error);
    for (const EngineRow *row = rows; row->name; row++) {
        if (strcmp(row->name, text))
            continue;
        *engine = (Engine){.name = row->name,
                           .row = row,
                           .start = {python_path(arena, row->name, venvs),
                                     arena_printf(arena, "%s/harness/peer.py",
                                                  project_folder(arena)),
                                     row->name, NULL}};
        return true;
    }
    str_addf(error, "--engine %s: there are", text);
    for (const EngineRow *row = rows; row->name; row++)
        str_addf(error, "%s %s", row == rows ? "" : ",", row->name);
    str_add(error, ", and programs by their path, as ./mine");
    return false;
}

bool engine_is_installed(Arena *arena, const Engine *engine, const char *venvs)
{
    if (!engine->row)
        return true;
    if (access(engine->start[0], X_OK))
        return false;
    const char *path =
        arena_printf(arena, "%s/%s/%s", venvs, engine->name, mark);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    char text[1024];
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = 0;
    return !strcmp(text, engine->row->requirements);
}

/* What pip says fills a screen; the error is at its end. */
static bool run_step(const char *const *argv, const char *what, Str *error)
{
    enum { SHOWN = 2000, TIMEOUT = 3600 };
    Str text = {0};
    ProcessResult result;
    ProcessLimits limits = {.seconds = TIMEOUT};
    bool started = process_run(argv, NULL, &text, &limits, &result);
    bool ok = started && result.exit_code == 0;
    if (!started) {
        str_addf(error, "%s: %s: %s", what, argv[0], strerror(errno));
    } else if (!ok) {
        const char *said = str_text(&text);
        size_t length = strlen(said);
        str_addf(error, "%s: ", what);
        process_describe(error, &result);
        str_addf(error, ": %s", said + (length > SHOWN ? length - SHOWN : 0));
    }
    str_free(&text);
    return ok;
}

bool engine_install(Arena *arena, const Engine *engine, const char *venvs,
                    Str *error)
{
    const char *home = arena_printf(arena, "%s/%s", venvs, engine->name);
    const char *list = arena_printf(arena, "%s.txt", home);
    const char *done = arena_printf(arena, "%s/%s", home, mark);
    const char *text = engine->row->requirements;
    const char *const venv[] = {"python3", "-m", "venv",
                                "--clear", home, NULL};
    const char *const pip[] = {engine->start[0], "-m", "pip", "install", "-q",
                               "--no-input",     "-r", list,  NULL};
    if (!make_folders(venvs)) {
        str_addf(error, "%s: %s", venvs, strerror(errno));
        return false;
    }
    return write_file(list, text, strlen(text), error) &&
           run_step(venv,
                    "making a virtual environment (Debian has it in "
                    "python3-venv)",
                    error) &&
           run_step(pip, "installing packages", error) &&
           write_file(done, text, strlen(text), error);
}
