// Element types and operations of reductions, and their kernels on the host.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weft {

enum class DataType : uint8_t { kInt32, kInt16, kInt8, kFloat32, kFloat16, kBfloat16 };
inline constexpr std::array kDataTypes = {DataType::kInt32,   DataType::kInt16,   DataType::kInt8,
                                          DataType::kFloat32, DataType::kFloat16, DataType::kBfloat16};

// The values are those of the aggregation header's operation field.
enum class ReduceOperation : uint8_t { kSum = 0, kMax = 1, kMin = 2, kAnd = 3, kOr = 4, kXor = 5 };
inline constexpr std::array kReduceOperations = {ReduceOperation::kSum, ReduceOperation::kMax,
                                                 ReduceOperation::kMin, ReduceOperation::kAnd,
                                                 ReduceOperation::kOr,  ReduceOperation::kXor};

constexpr size_t element_bytes(DataType dtype) {
  switch (dtype) {
    case DataType::kInt8:
      return 1;
    case DataType::kInt16:
    case DataType::kFloat16:
    case DataType::kBfloat16:
      return 2;
    case DataType::kInt32:
    case DataType::kFloat32:
      break;
  }
  return 4;
}

constexpr bool is_float(DataType dtype) {
  return dtype == DataType::kFloat32 || dtype == DataType::kFloat16 || dtype == DataType::kBfloat16;
}

constexpr bool is_bitwise(ReduceOperation operation) { return operation >= ReduceOperation::kAnd; }

const char* data_type_name(DataType dtype);
const char* reduce_operation_name(ReduceOperation operation);

// Throws std::invalid_argument for and, or, xor of floats.
void check_reduction(DataType dtype, ReduceOperation operation);

// destination[i] = operation(destination[i], source[i]). Integer sums wrap, those of floats are rounded to
// nearest; a NaN wins a float maximum or minimum, as in NumPy. The ranges are the same or do not overlap;
// both are aligned to an element. Throws as check_reduction().
void reduce(void* destination, const void* source, size_t count, DataType dtype, ReduceOperation operation);

// data[i] /= divisor (1 or more): integers rounded towards zero, floats to nearest.
void divide(void* data, size_t count, DataType dtype, uint32_t divisor);

}  // namespace weft
