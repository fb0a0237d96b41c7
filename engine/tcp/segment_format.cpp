#include "tcp/segment_format.hpp"

#include <algorithm>

#include "packets/byte_order.hpp"

namespace weft::tcp {
namespace {

enum OptionKind : uint8_t {
  kEnd = 0,
  kNoOperation = 1,
  kMaximumSegmentSize = 2,
  kWindowScale = 3,
  kSackPermitted = 4,
  kSack = 5,
  kTimestamps = 8,
};

constexpr size_t kMostOptionsBytes = kMostHeaderBytes - kLeastHeaderBytes;
constexpr size_t kSackBlockBytes = 8;

uint32_t fitting_sack_blocks(const Options& options, size_t other_bytes) {
  if (options.sack_block_count == 0 || other_bytes + 4 + kSackBlockBytes > kMostOptionsBytes) return 0;
  const size_t room = (kMostOptionsBytes - other_bytes - 4) / kSackBlockBytes;
  return std::min(options.sack_block_count, static_cast<uint32_t>(room));
}

size_t other_options_bytes(const Options& options) {
  size_t bytes = 0;
  if (options.maximum_segment_bytes) bytes += 4;
  if (options.sack_permitted) bytes += 4;
  if (options.timestamps) bytes += kTimestampsBytes;
  if (options.window_scale) bytes += 4;
  return bytes;
}

class Writer {
 public:
  explicit Writer(uint8_t* to) : to_(to) {}

  template <class... Bytes>
  void bytes(Bytes... values) {
    ((*to_++ = static_cast<uint8_t>(values)), ...);
  }
  template <class Integer>
  void integer(Integer value) {
    store_big_endian(to_, value);
    to_ += sizeof value;
  }

 private:
  uint8_t* to_;
};

void write_options(const Options& options, uint8_t* to) {
  Writer writer(to);
  if (options.maximum_segment_bytes) {
    writer.bytes(kMaximumSegmentSize, 4);
    writer.integer(*options.maximum_segment_bytes);
  }
  if (options.sack_permitted) writer.bytes(kNoOperation, kNoOperation, kSackPermitted, 2);
  if (options.timestamps) {
    writer.bytes(kNoOperation, kNoOperation, kTimestamps, 10);
    writer.integer(options.timestamps->value);
    writer.integer(options.timestamps->echo);
  }
  if (options.window_scale) writer.bytes(kNoOperation, kWindowScale, 3, *options.window_scale);
  const uint32_t blocks = fitting_sack_blocks(options, other_options_bytes(options));
  if (blocks == 0) return;
  writer.bytes(kNoOperation, kNoOperation, kSack, 2 + kSackBlockBytes * blocks);
  for (uint32_t each = 0; each < blocks; ++each) {
    writer.integer(options.sack_blocks[each].begin);
    writer.integer(options.sack_blocks[each].end);
  }
}

void read_sack_blocks(std::span<const uint8_t> value, Options& options) {
  if (value.size() % kSackBlockBytes != 0) return;
  for (; !value.empty() && options.sack_block_count < kMostSackBlocks;
       value = value.subspan(kSackBlockBytes)) {
    options.sack_blocks[options.sack_block_count++] = {load_big_endian<uint32_t>(value.data()),
                                                       load_big_endian<uint32_t>(value.data() + 4)};
  }
}

// An option of a wrong length counts as not known.
void read_option(uint8_t kind, std::span<const uint8_t> value, Options& options) {
  if (kind == kMaximumSegmentSize && value.size() == 2) {
    options.maximum_segment_bytes = load_big_endian<uint16_t>(value.data());
  } else if (kind == kWindowScale && value.size() == 1) {
    options.window_scale = std::min(value[0], kMostWindowScale);
  } else if (kind == kSackPermitted && value.empty()) {
    options.sack_permitted = true;
  } else if (kind == kTimestamps && value.size() == 8) {
    options.timestamps = {load_big_endian<uint32_t>(value.data()),
                          load_big_endian<uint32_t>(value.data() + 4)};
  } else if (kind == kSack) {
    read_sack_blocks(value, options);
  }
}

const char* read_options(std::span<const uint8_t> bytes, Options& options) {
  while (!bytes.empty() && bytes[0] != kEnd) {
    if (bytes[0] == kNoOperation) {
      bytes = bytes.subspan(1);
      continue;
    }
    if (bytes.size() < 2 || bytes[1] < 2 || bytes[1] > bytes.size()) return "an option's length is wrong";
    read_option(bytes[0], bytes.subspan(2, bytes[1] - 2u), options);
    bytes = bytes.subspan(bytes[1]);
  }
  return nullptr;
}

}  // namespace

size_t options_bytes(const Options& options) {
  const size_t others = other_options_bytes(options);
  const uint32_t blocks = fitting_sack_blocks(options, others);
  return others + (blocks == 0 ? 0 : 4 + kSackBlockBytes * blocks);
}

size_t write_header(const Segment& segment, uint8_t* to) {
  const size_t header_bytes = kLeastHeaderBytes + options_bytes(segment.options);
  Writer writer(to);
  writer.integer(segment.source_port);
  writer.integer(segment.destination_port);
  writer.integer(segment.sequence);
  writer.integer(segment.acknowledgement);
  writer.bytes(header_bytes / 4 << 4, segment.flags);
  writer.integer(segment.window);
  writer.integer(uint32_t{0});  // checksum and urgent pointer
  write_options(segment.options, to + kLeastHeaderBytes);
  return header_bytes;
}

const char* read_header(std::span<const uint8_t> bytes, Segment& segment) {
  if (bytes.size() < kLeastHeaderBytes) return "shorter than a header";
  const size_t header_bytes = (bytes[12] >> 4) * size_t{4};
  if (header_bytes < kLeastHeaderBytes) return "the data offset is below 5";
  if (header_bytes > bytes.size()) return "the data offset is beyond the segment's end";
  segment = {};
  segment.source_port = load_big_endian<uint16_t>(&bytes[0]);
  segment.destination_port = load_big_endian<uint16_t>(&bytes[2]);
  segment.sequence = load_big_endian<uint32_t>(&bytes[4]);
  segment.acknowledgement = load_big_endian<uint32_t>(&bytes[8]);
  segment.flags = bytes[13];
  segment.window = load_big_endian<uint16_t>(&bytes[14]);
  segment.payload_bytes = static_cast<uint32_t>(bytes.size() - header_bytes);
  return read_options(bytes.subspan(kLeastHeaderBytes, header_bytes - kLeastHeaderBytes), segment.options);
}

}  // namespace weft::tcp
