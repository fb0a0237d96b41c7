#include "collectives/reduction.hpp"

namespace weft {
namespace {

template <class T, class Function>
void combine(void* destination, const void* source, size_t count, Function function) {
  T* out = static_cast<T*>(destination);
  const T* in = static_cast<const T*>(source);
  for (size_t i = 0; i < count; ++i) out[i] = function(out[i], in[i]);
}

template <class T>
T larger(T a, T b) {
  return (b > a || b != b) ? b : a;
}

template <class T>
T smaller(T a, T b) {
  return (b < a || b != b) ? b : a;
}

}  // namespace

const char* data_type_name(DataType dtype) { return dtype == DataType::kInt32 ? "int32" : "float32"; }

const char* reduce_operation_name(ReduceOperation operation) {
  switch (operation) {
    case ReduceOperation::kSum:
      return "sum";
    case ReduceOperation::kMax:
      return "max";
    case ReduceOperation::kMin:
      return "min";
  }
  return "unknown";
}

void reduce(void* destination, const void* source, size_t count, DataType dtype, ReduceOperation operation) {
  const bool is_float = dtype == DataType::kFloat32;
  switch (operation) {
    case ReduceOperation::kSum:
      if (is_float) return combine<float>(destination, source, count, [](float a, float b) { return a + b; });
      return combine<uint32_t>(destination, source, count, [](uint32_t a, uint32_t b) { return a + b; });
    case ReduceOperation::kMax:
      if (is_float) return combine<float>(destination, source, count, larger<float>);
      return combine<int32_t>(destination, source, count, larger<int32_t>);
    case ReduceOperation::kMin:
      if (is_float) return combine<float>(destination, source, count, smaller<float>);
      return combine<int32_t>(destination, source, count, smaller<int32_t>);
  }
}

}  // namespace weft
