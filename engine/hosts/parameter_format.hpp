// Packets between workers and a parameter store (docs/spec/services.md): the payload of a UD SEND.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "packets/byte_order.hpp"
#include "packets/header_fields.hpp"

namespace weft::parameter {

constexpr uint8_t kVersion = 1;
constexpr uint32_t kStoreQueuePair = 0xA66002;
constexpr uint32_t kClientQueuePair = 0xA66003;
constexpr size_t kBlockWords = 16;
constexpr size_t kBlockBytes = 8 * kBlockWords;
constexpr uint8_t kCached = 1;  // flag: a switch has answered

enum Kind : uint8_t { kPull = 0, kPush = 1, kValue = 2, kDone = 3 };

constexpr bool has_block(uint8_t kind) { return kind == kPush || kind == kValue; }

struct Header {
  uint8_t version = kVersion;
  uint8_t kind = kPull;
  uint8_t flags = 0;
  uint16_t group_id = 0;
  uint16_t epoch = 0;
  uint16_t client = 0;
  uint32_t block = 0;
  uint32_t sequence = 0;
  uint32_t block_version = 0;
  uint32_t reserved = 0;
  bool operator==(const Header&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("version", 4, &Header::version),
                      wire::field("kind", 4, &Header::kind),
                      wire::field("flags", 8, &Header::flags),
                      wire::field("group_id", 16, &Header::group_id),
                      wire::field("epoch", 16, &Header::epoch),
                      wire::field("client", 16, &Header::client),
                      wire::field("block", 32, &Header::block),
                      wire::field("sequence", 32, &Header::sequence),
                      wire::field("block_version", 32, &Header::block_version),
                      wire::field("reserved", 32, &Header::reserved)};
  }
};

constexpr size_t kHeaderBytes = wire::kHeaderBytes<Header>;
constexpr size_t kLargestBytes = kHeaderBytes + kBlockBytes;
constexpr size_t bytes_of(uint8_t kind) { return has_block(kind) ? kLargestBytes : kHeaderBytes; }

// Who wrote a block last: a client and the number of its push; kNobody and 0 at first.
struct Writer {
  uint32_t client = 0;
  uint32_t sequence = 0;
  bool operator==(const Writer&) const = default;
};
constexpr uint32_t kNobody = 0xFFFFFFFF;

// What a writer writes into a block: its name, and words that follow from block and name, so that a reader
// notices if a block is a mixture.
using Words = std::array<uint64_t, kBlockWords>;
inline Words contents(uint32_t block, const Writer& writer) {
  Words words;
  words[0] = uint64_t{writer.client} << 32 | writer.sequence;
  uint64_t state = words[0] * 0x9E3779B97F4A7C15 + block;
  for (size_t word = 1; word < kBlockWords; ++word) {
    state = (state ^ state >> 31) * 0xBF58476D1CE4E5B9 + word;
    words[word] = state;
  }
  return words;
}

inline Writer writer_of(const Words& words) {
  return {static_cast<uint32_t>(words[0] >> 32), static_cast<uint32_t>(words[0])};
}

// Writes bytes_of(header.kind) bytes; `words` are those of a block, if it has one.
inline void encode(const Header& header, const Words* words, uint8_t* at) {
  wire::store_header(header, at);
  if (!has_block(header.kind)) return;
  for (size_t word = 0; word < kBlockWords; ++word)
    store_big_endian<uint64_t>(at + kHeaderBytes + 8 * word, (*words)[word]);
}

// `at` has kHeaderBytes.
inline Header decode(const uint8_t* at) {
  Header header;
  wire::load_header(header, at);
  return header;
}

inline Words decode_block(const uint8_t* at) {
  Words words;
  for (size_t word = 0; word < kBlockWords; ++word)
    words[word] = load_big_endian<uint64_t>(at + kHeaderBytes + 8 * word);
  return words;
}

}  // namespace weft::parameter
