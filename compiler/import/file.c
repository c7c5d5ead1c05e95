/* Files and protobuf messages, both of which may be malformed. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/reader.h"

/* A pipe would have to be waited for, hence O_NONBLOCK.
 *
 * Mapped rather than read: the weights of a large model are then only copied
 * once, by protobuf. */
bool file_open(Diag *diag, const char *path, FileData *file)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *file = (FileData){0};
    if (fd < 0)
        return diag_error(diag, "cannot open %s: %s", path, strerror(errno));
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        close(fd);
        return diag_error(diag, "cannot read %s: it is not a file", path);
    }
    if (info.st_size == 0) {
        close(fd);
        return diag_error(diag, "%s is empty", path);
    }
    void *data =
        mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    int error = errno;
    close(fd);
    if (data == MAP_FAILED)
        return diag_error(diag, "cannot read %s: %s", path, strerror(error));
    file->data = data;
    file->size = (size_t)info.st_size;
    return true;
}

void file_close(FileData *file)
{
    if (file->data)
        munmap((void *)file->data, file->size);
    *file = (FileData){0};
}

/* Deeper than any real model: messages nest once for each graph inside a
 * graph and a few times in types. */
enum { MAX_NESTING = 256 };

/* Moves *at past a variable-length integer. */
static bool read_varint(const uint8_t **at, const uint8_t *end,
                        uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 70 && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        if (shift < 64)
            *value |= (uint64_t)(byte & 127) << shift;
        if (!(byte & 128))
            return true;
    }
    return false;
}

/* The place of the first fault, or NULL. */
static const uint8_t *find_fault(const ProtobufCMessageDescriptor *descriptor,
                                 const uint8_t *at, const uint8_t *end,
                                 int depth)
{
    if (depth > MAX_NESTING)
        return at;
    while (at < end) {
        const uint8_t *start = at;
        uint64_t tag, length = 0;
        if (!read_varint(&at, end, &tag) || tag >> 3 == 0 || tag >> 32)
            return start;
        switch (tag & 7) {
        case 0:
            if (!read_varint(&at, end, &length))
                return start;
            continue;
        case 1:
            length = 8;
            break;
        case 2:
            if (!read_varint(&at, end, &length))
                return start;
            break;
        case 5:
            length = 4;
            break;
        default:
            return start;
        }
        if (length > (uint64_t)(end - at))
            return start;
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(descriptor,
                                                    (unsigned)(tag >> 3));
        if (field && field->type == PROTOBUF_C_TYPE_MESSAGE) {
            const uint8_t *fault =
                (tag & 7) == 2
                    ? find_fault(field->descriptor, at, at + length, depth + 1)
                    : start;
            if (fault)
                return fault;
        }
        at += length;
    }
    return NULL;
}

/* protobuf-c would recurse without a limit and allocate as it goes; after
 * this walk neither can happen unseen. */
bool message_check(Diag *diag, const ProtobufCMessageDescriptor *descriptor,
                   const FileData *file)
{
    const uint8_t *fault =
        find_fault(descriptor, file->data, file->data + file->size, 0);
    if (!fault)
        return true;
    return diag_error(diag,
                      "not a sound ONNX file: it is cut off or damaged near "
                      "byte %zu of %zu",
                      (size_t)(fault - file->data), file->size);
}

/* Nothing is freed: the messages live as long as the graph that points into
 * them. */
static void *arena_allocate(void *arena, size_t size)
{
    return arena_alloc(arena, size);
}

static void arena_release(void *arena, void *data)
{
    (void)arena;
    (void)data;
}

ProtobufCMessage *message_unpack(Arena *arena,
                                 const ProtobufCMessageDescriptor *descriptor,
                                 const FileData *file)
{
    ProtobufCAllocator allocator = {arena_allocate, arena_release, arena};
    return protobuf_c_message_unpack(descriptor, &allocator, file->size,
                                     file->data);
}
