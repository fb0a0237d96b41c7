// Element types and operations of reductions, and their kernels on the host.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft {

enum class DataType : uint8_t { kInt32, kFloat32 };
constexpr size_t kElementBytes = 4;  // of every data type

// The values are those of the aggregation header's operation field.
enum class ReduceOperation : uint8_t { kSum = 0, kMax = 1, kMin = 2 };

const char* data_type_name(DataType dtype);
const char* reduce_operation_name(ReduceOperation operation);

// destination[i] = operation(destination[i], source[i]). Integer sums wrap; a NaN wins a float maximum or
// minimum, as in NumPy. The ranges are the same or do not overlap; both are aligned to an element.
void reduce(void* destination, const void* source, size_t count, DataType dtype, ReduceOperation operation);

}  // namespace weft
