#include "collectives/reduction.hpp"

#include <stdexcept>
#include <string>
#include <type_traits>

#include "collectives/narrow_floats.hpp"

namespace weft {
namespace {

template <class T, class Function>
void combine(void* destination, const void* source, size_t count, Function function) {
  T* out = static_cast<T*>(destination);
  const T* in = static_cast<const T*>(source);
  for (size_t i = 0; i < count; ++i) out[i] = function(out[i], in[i]);
}

template <class T, class Function>
void combine_narrow(void* destination, const void* source, size_t count, Function function) {
  // A double holds the sum of two of these numbers, or rounds it so far down that rounding again changes
  // nothing (Figueroa, "When is double rounding innocuous?", 1995).
  combine<T>(destination, source, count,
             [function](T a, T b) { return T::of(function(a.value(), b.value())); });
}

template <class T>
T larger(T a, T b) {
  return (b > a || b != b) ? b : a;
}

template <class T>
T smaller(T a, T b) {
  return (b < a || b != b) ? b : a;
}

template <class T>
void reduce_integers(void* destination, const void* source, size_t count, ReduceOperation operation) {
  using Bits = std::make_unsigned_t<T>;
  switch (operation) {
    case ReduceOperation::kSum:
      return combine<Bits>(destination, source, count,
                           [](Bits a, Bits b) { return static_cast<Bits>(a + b); });
    case ReduceOperation::kMax:
      return combine<T>(destination, source, count, larger<T>);
    case ReduceOperation::kMin:
      return combine<T>(destination, source, count, smaller<T>);
    case ReduceOperation::kAnd:
      return combine<Bits>(destination, source, count,
                           [](Bits a, Bits b) { return static_cast<Bits>(a & b); });
    case ReduceOperation::kOr:
      return combine<Bits>(destination, source, count,
                           [](Bits a, Bits b) { return static_cast<Bits>(a | b); });
    case ReduceOperation::kXor:
      return combine<Bits>(destination, source, count,
                           [](Bits a, Bits b) { return static_cast<Bits>(a ^ b); });
  }
}

void reduce_float32(void* destination, const void* source, size_t count, ReduceOperation operation) {
  if (operation == ReduceOperation::kSum) {
    return combine<float>(destination, source, count, [](float a, float b) { return a + b; });
  }
  combine<float>(destination, source, count,
                 operation == ReduceOperation::kMax ? larger<float> : smaller<float>);
}

template <class T>
void reduce_narrow(void* destination, const void* source, size_t count, ReduceOperation operation) {
  if (operation == ReduceOperation::kSum) {
    return combine_narrow<T>(destination, source, count, [](double a, double b) { return a + b; });
  }
  combine_narrow<T>(destination, source, count,
                    operation == ReduceOperation::kMax ? larger<double> : smaller<double>);
}

template <class T>
void divide_integers(void* data, size_t count, uint32_t divisor) {
  T* values = static_cast<T*>(data);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<T>(int64_t{values[i]} / int64_t{divisor});
}

template <class T>
void divide_floats(void* data, size_t count, uint32_t divisor) {
  T* values = static_cast<T*>(data);
  for (size_t i = 0; i < count; ++i) values[i] = nearest<T>(value_of(values[i]) / divisor);
}

}  // namespace

const char* data_type_name(DataType dtype) {
  switch (dtype) {
    case DataType::kInt32:
      return "int32";
    case DataType::kInt16:
      return "int16";
    case DataType::kInt8:
      return "int8";
    case DataType::kFloat32:
      return "float32";
    case DataType::kFloat16:
      return "float16";
    case DataType::kBfloat16:
      return "bfloat16";
  }
  return "unknown";
}

const char* reduce_operation_name(ReduceOperation operation) {
  switch (operation) {
    case ReduceOperation::kSum:
      return "sum";
    case ReduceOperation::kMax:
      return "max";
    case ReduceOperation::kMin:
      return "min";
    case ReduceOperation::kAnd:
      return "and";
    case ReduceOperation::kOr:
      return "or";
    case ReduceOperation::kXor:
      return "xor";
  }
  return "unknown";
}

void check_reduction(DataType dtype, ReduceOperation operation) {
  if (!is_float(dtype) || !is_bitwise(operation)) return;
  throw std::invalid_argument(std::string(reduce_operation_name(operation)) + " of " + data_type_name(dtype) +
                              " (valid: sum, max, min; and, or, xor are of integers)");
}

void reduce(void* destination, const void* source, size_t count, DataType dtype, ReduceOperation operation) {
  check_reduction(dtype, operation);
  switch (dtype) {
    case DataType::kInt32:
      return reduce_integers<int32_t>(destination, source, count, operation);
    case DataType::kInt16:
      return reduce_integers<int16_t>(destination, source, count, operation);
    case DataType::kInt8:
      return reduce_integers<int8_t>(destination, source, count, operation);
    case DataType::kFloat32:
      return reduce_float32(destination, source, count, operation);
    case DataType::kFloat16:
      return reduce_narrow<Float16>(destination, source, count, operation);
    case DataType::kBfloat16:
      return reduce_narrow<Bfloat16>(destination, source, count, operation);
  }
}

void divide(void* data, size_t count, DataType dtype, uint32_t divisor) {
  switch (dtype) {
    case DataType::kInt32:
      return divide_integers<int32_t>(data, count, divisor);
    case DataType::kInt16:
      return divide_integers<int16_t>(data, count, divisor);
    case DataType::kInt8:
      return divide_integers<int8_t>(data, count, divisor);
    case DataType::kFloat32:
      return divide_floats<float>(data, count, divisor);
    case DataType::kFloat16:
      return divide_floats<Float16>(data, count, divisor);
    case DataType::kBfloat16:
      return divide_floats<Bfloat16>(data, count, divisor);
  }
}

}  // namespace weft
