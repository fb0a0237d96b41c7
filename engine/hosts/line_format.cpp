#include "hosts/line_format.hpp"

#include <algorithm>
#include <cstring>

namespace weft {
namespace {

// The flag's first byte; the others are zeros.
size_t flagged_bytes(const LineShape& shape, const uint8_t* line) {
  const uint8_t* flag = line + shape.data_bytes;
  const bool fits = std::all_of(flag + 1, flag + shape.flag_bytes, [](uint8_t more) { return more == 0; });
  return fits ? flag[0] : SIZE_MAX;
}

}  // namespace

void write_lines(LineFormat format, const uint8_t* data, uint64_t length_bytes, uint64_t wire_offset,
                 uint8_t* lines, size_t lines_bytes) {
  const LineShape shape = shape_of(format);
  std::memset(lines, 0, lines_bytes);
  uint64_t offset = data_offset(format, wire_offset);
  for (size_t line = 0; line < lines_bytes && offset < length_bytes; line += shape.line_bytes()) {
    const auto count = static_cast<size_t>(std::min<uint64_t>(shape.data_bytes, length_bytes - offset));
    if (data != nullptr) std::copy_n(data + offset, count, lines + line);
    lines[line + shape.data_bytes] = static_cast<uint8_t>(count);
    offset += count;
  }
}

std::optional<size_t> data_in_lines(LineFormat format, const uint8_t* lines, size_t lines_bytes) {
  const LineShape shape = shape_of(format);
  if (lines_bytes % shape.line_bytes() != 0) return std::nullopt;
  size_t data_bytes = 0;
  bool full = true;
  for (size_t line = 0; line < lines_bytes; line += shape.line_bytes()) {
    const size_t count = flagged_bytes(shape, lines + line);
    if (count > shape.data_bytes || (count > 0 && !full)) return std::nullopt;
    full = count == shape.data_bytes;
    data_bytes += count;
  }
  return data_bytes;
}

void read_lines(LineFormat format, const uint8_t* lines, size_t data_bytes, uint8_t* data) {
  const LineShape shape = shape_of(format);
  for (size_t offset = 0; offset < data_bytes; offset += shape.data_bytes, lines += shape.line_bytes())
    std::copy_n(lines, std::min<size_t>(shape.data_bytes, data_bytes - offset), data + offset);
}

}  // namespace weft
