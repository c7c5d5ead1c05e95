/* TensorProto to Array. Sizes are compared before anything is allocated or
 * copied, so that a short file cannot ask for much memory. */
#include <string.h>

#include "import/reader.h"
#include "ops/op.h"

/* Tensors from this size on are used where protobuf unpacked them. */
enum { ALIAS_BYTES = 4096 };

/* Extents and element type, checked for sense and size. */
static bool read_shape(Arena *arena, Diag *diag,
                       const Onnx__TensorProto *proto, const char *name,
                       Array *array)
{
    array->dtype = dtype_of_onnx(proto->data_type);
    if (array->dtype == DT_INVALID)
        array->bits = narrow_bits(proto->data_type, &array->dtype);
    if (array->dtype == DT_INVALID)
        return diag_error(diag,
                          "tensor %s has the element type %s, which is not "
                          "supported",
                          name, narrow_name(arena, proto->data_type));
    if (proto->n_dims > MAX_RANK)
        return diag_error(diag,
                          "tensor %s has rank %zu; at most %d is "
                          "supported",
                          name, proto->n_dims, MAX_RANK);
    array->rank = (int)proto->n_dims;
    int64_t bytes = (int64_t)dtype_size(array->dtype);
    bool empty = false, fits = true;
    for (int i = 0; i < array->rank; i++) {
        array->dims[i] = proto->dims[i];
        if (array->dims[i] < 0)
            return diag_error(diag, "tensor %s has a dimension of %lld", name,
                              (long long)array->dims[i]);
        empty |= array->dims[i] == 0;
        fits &= !__builtin_mul_overflow(bytes, array->dims[i], &bytes);
    }
    if (!fits && !empty)
        return diag_error(diag,
                          "tensor %s has more elements than 64 bits "
                          "count",
                          name);
    /* An empty tensor keeps its extents within what products can hold. */
    for (int i = 0; i < array->rank; i++)
        if (empty && array->dims[i] > INT32_MAX)
            return diag_error(diag, "tensor %s has a dimension of %lld", name,
                              (long long)array->dims[i]);
    return true;
}

/* Both sizes are named: which of them is the wrong one, only the author of
 * the file knows. */
static bool wrong_size(Diag *diag, const char *name, size_t has,
                       const char *unit, int64_t needs)
{
    return diag_error(diag, "tensor %s carries %zu %s, its shape holds %lld",
                      name, has, unit, (long long)needs);
}

/* Raw bytes are little-endian, as all targets are. */
static bool from_raw(Arena *arena, Diag *diag, const Onnx__TensorProto *proto,
                     const char *name, Array *array)
{
    size_t bytes = (size_t)array_count(array) * dtype_size(array->dtype);
    if (proto->raw_data.len != bytes)
        return wrong_size(diag, name, proto->raw_data.len, "bytes of raw data",
                          (int64_t)bytes);
    bool aligned = (uintptr_t)proto->raw_data.data % 64 == 0;
    if (bytes >= ALIAS_BYTES && aligned && array->dtype != DT_BOOL) {
        array->data = proto->raw_data.data;
        return true;
    }
    *array = *array_new(arena, array->dtype, array->rank, array->dims);
    if (bytes)
        memcpy(array->data, proto->raw_data.data, bytes);
    uint8_t *flags = array->data;
    for (size_t i = 0; array->dtype == DT_BOOL && i < bytes; i++)
        flags[i] = flags[i] != 0;
    return true;
}

/* Texts are used as such from here on: they end at a zero byte. */
static bool from_strings(Arena *arena, Diag *diag,
                         const Onnx__TensorProto *proto, const char *name,
                         Array *array)
{
    int64_t count = array_count(array);
    if (proto->n_string_data != (size_t)count)
        return wrong_size(diag, name, proto->n_string_data, "strings", count);
    *array = *array_new(arena, DT_STRING, array->rank, array->dims);
    const char **texts = array->data;
    for (int64_t i = 0; i < count; i++) {
        const ProtobufCBinaryData *bytes = &proto->string_data[i];
        if (bytes->len && memchr(bytes->data, 0, bytes->len))
            return diag_error(diag,
                              "tensor %s: string %lld has a zero byte, which "
                              "is not supported",
                              name, (long long)i);
        texts[i] = bytes->len
                       ? arena_strndup(arena, (char *)bytes->data, bytes->len)
                       : "";
    }
    return true;
}

/* The typed field that holds this element type: its item count. */
static size_t typed_count(const Onnx__TensorProto *proto, DType dtype)
{
    switch (dtype) {
    case DT_F32:
        return proto->n_float_data;
    case DT_F64:
        return proto->n_double_data;
    case DT_I64:
        return proto->n_int64_data;
    case DT_U64:
    case DT_U32:
        return proto->n_uint64_data;
    default:
        return proto->n_int32_data;
    }
}

/* Values in repeated fields; narrow types are stored as int32. */
static bool from_typed(Arena *arena, Diag *diag,
                       const Onnx__TensorProto *proto, const char *name,
                       Array *array)
{
    DType dtype = array->dtype;
    int64_t count = array_count(array);
    size_t given = typed_count(proto, dtype);
    if (given != (size_t)count)
        return wrong_size(diag, name, given, "elements", count);
    *array = *array_new(arena, dtype, array->rank, array->dims);
    for (int64_t i = 0; i < count; i++) {
        switch (dtype) {
        case DT_F32:
            ((float *)array->data)[i] = proto->float_data[i];
            break;
        case DT_F64:
            ((double *)array->data)[i] = proto->double_data[i];
            break;
        case DT_I64:
            ((int64_t *)array->data)[i] = proto->int64_data[i];
            break;
        case DT_U64:
        case DT_U32:
            array_set_int(array, i, (int64_t)proto->uint64_data[i]);
            break;
        case DT_F16: /* bit patterns */
        case DT_BF16:
            ((uint16_t *)array->data)[i] = (uint16_t)proto->int32_data[i];
            break;
        default:
            array_set_int(array, i, proto->int32_data[i]);
            if (dtype != DT_BOOL &&
                array_get_int(array, i) != proto->int32_data[i])
                return diag_error(diag,
                                  "tensor %s: element %lld is %d, which is "
                                  "no %s",
                                  name, (long long)i, proto->int32_data[i],
                                  dtype_name(dtype));
        }
    }
    return true;
}

/* The data, wherever they are. */
static bool read_data(Arena *arena, Diag *diag, const Onnx__TensorProto *proto,
                      const char *name, const char *model_path, Array *array)
{
    if (proto->segment)
        return diag_error(diag,
                          "tensor %s is stored in segments, which is not "
                          "supported",
                          name);
    if (array->dtype == DT_STRING)
        return from_strings(arena, diag, proto, name, array);
    if (proto->has_data_location &&
        proto->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        return external_read(arena, diag, proto, name, model_path, array);
    return proto->has_raw_data ? from_raw(arena, diag, proto, name, array)
                               : from_typed(arena, diag, proto, name, array);
}

Array *tensor_value(Arena *arena, Diag *diag, const Onnx__TensorProto *proto,
                    const char *name, const char *model_path)
{
    Array *array = ARENA_NEW(arena, Array);
    if (!read_shape(arena, diag, proto, name, array))
        return NULL;
    if (!array->bits)
        return read_data(arena, diag, proto, name, model_path, array) ? array
                                                                      : NULL;
    int64_t each = 8 / array->bits;
    Array packed = {.dtype = DT_U8, .rank = 1};
    packed.dims[0] = (array_count(array) + each - 1) / each;
    if (!read_data(arena, diag, proto, name, model_path, &packed))
        return NULL;
    return narrow_unpack(arena, &packed, array);
}

Array *onnx_read_tensor(Arena *arena, Diag *diag, const char *path)
{
    const ProtobufCMessageDescriptor *kind = &onnx__tensor_proto__descriptor;
    FileData file;
    Array *array = NULL;
    if (!file_open(diag, path, &file))
        return NULL;
    if (message_check(diag, kind, &file)) {
        ProtobufCMessage *message = message_unpack(arena, kind, &file);
        if (message)
            array = tensor_value(arena, diag, (Onnx__TensorProto *)message,
                                 path, NULL);
        else
            diag_error(diag, "%s is not a sound tensor file", path);
    }
    file_close(&file);
    return array;
}
