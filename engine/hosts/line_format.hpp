// The forms of NCCL's protocols LL and LL128, in which the receiver sees from flags between the data, not
// from a later signal, that data have arrived. Buffers have this form on the sending GPU, and the network
// carries them as they are: the proxy posts the size of the whole lines (NCCL: ncclLLFifoLine in
// src/include/device.h, waitSend in src/device/prims_ll.h and prims_ll128.h, sendProxyProgress in
// src/transport/net.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace weft {

enum class LineFormat : uint8_t {
  kNone,   // bytes as they are: NCCL's protocol Simple
  kLl,     // 4 bytes of data, 4 of flag; two such lines at least
  kLl128,  // 120 bytes of data, 8 of flag; 16 such lines at least, a warp's
};

struct LineShape {
  uint32_t data_bytes = 1;
  uint32_t flag_bytes = 0;
  uint32_t lines_at_once = 1;  // messages are padded to a multiple
  constexpr uint64_t line_bytes() const { return data_bytes + flag_bytes; }
};

constexpr LineShape shape_of(LineFormat format) {
  switch (format) {
    case LineFormat::kLl:
      return {4, 4, 2};
    case LineFormat::kLl128:
      return {120, 8, 16};
    case LineFormat::kNone:
      break;
  }
  return {};
}

// Bytes on a link of a message with so many bytes of data.
constexpr uint64_t wire_bytes(LineFormat format, uint64_t data_bytes) {
  if (format == LineFormat::kNone) [[likely]]
    return data_bytes;
  const LineShape shape = shape_of(format);
  const uint64_t unit_data_bytes = uint64_t{shape.data_bytes} * shape.lines_at_once;
  const uint64_t units = (data_bytes + unit_data_bytes - 1) / unit_data_bytes;
  return units * shape.lines_at_once * shape.line_bytes();
}

// The least data that a message of so many bytes on a link has.
constexpr uint64_t least_data_bytes(LineFormat format, uint64_t wire_bytes) {
  if (format == LineFormat::kNone || wire_bytes == 0) return wire_bytes;
  const LineShape shape = shape_of(format);
  const uint64_t unit_bytes = shape.lines_at_once * shape.line_bytes();
  const uint64_t units = (wire_bytes + unit_bytes - 1) / unit_bytes;
  return (units - 1) * shape.lines_at_once * shape.data_bytes + 1;
}

// Bytes of data before the line that begins so many bytes into a message.
constexpr uint64_t data_offset(LineFormat format, uint64_t wire_offset) {
  if (format == LineFormat::kNone) [[likely]]
    return wire_offset;
  const LineShape shape = shape_of(format);
  return wire_offset / shape.line_bytes() * shape.data_bytes;
}

// Writes the lines that begin `wire_offset` bytes into a message of `length_bytes` of data (null: zeros). A
// flag counts the data of its line: NCCL's counts steps, because its receiver knows the length.
void write_lines(LineFormat format, const uint8_t* data, uint64_t length_bytes, uint64_t wire_offset,
                 uint8_t* lines, size_t lines_bytes);

// Returns how many bytes of data lines have, nothing for lines that are not whole, with flags that are too
// large or with data behind a line that is not full.
std::optional<size_t> data_in_lines(LineFormat format, const uint8_t* lines, size_t lines_bytes);

// Copies the data of such lines.
void read_lines(LineFormat format, const uint8_t* lines, size_t data_bytes, uint8_t* data);

}  // namespace weft
