// The header of packets to switches' services (docs/spec/services.md): the payload of a UD SEND.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "packets/byte_order.hpp"

namespace weft::service {

constexpr uint8_t kVersion = 1;
constexpr uint32_t kQueuePair = 0xA66001;  // destination of requests, source of both kinds
constexpr size_t kHeaderBytes = 32;

enum Kind : uint8_t { kRequest = 0, kAnswer = 1 };

struct Header {
  uint8_t version = kVersion;
  uint8_t kind = kRequest;
  uint8_t operation = 0;
  uint16_t group_id = 0;
  uint16_t epoch = 0;
  uint16_t cell = 0;
  uint32_t sequence = 0;
  uint16_t member = 0;
  uint16_t flags = 0;
  uint64_t operand = 0;
  uint64_t comparand = 0;
  bool operator==(const Header&) const = default;
};

inline std::array<uint8_t, kHeaderBytes> encoded(const Header& header) {
  std::array<uint8_t, kHeaderBytes> bytes;
  uint8_t* const at = bytes.data();
  at[0] = static_cast<uint8_t>(header.version << 4 | (header.kind & 0x0F));
  at[1] = header.operation;
  store_big_endian<uint16_t>(at + 2, header.group_id);
  store_big_endian<uint16_t>(at + 4, header.epoch);
  store_big_endian<uint16_t>(at + 6, header.cell);
  store_big_endian<uint32_t>(at + 8, header.sequence);
  store_big_endian<uint16_t>(at + 12, header.member);
  store_big_endian<uint16_t>(at + 14, header.flags);
  store_big_endian<uint64_t>(at + 16, header.operand);
  store_big_endian<uint64_t>(at + 24, header.comparand);
  return bytes;
}

// `at` has kHeaderBytes.
inline Header decoded(const uint8_t* at) {
  return {.version = static_cast<uint8_t>(at[0] >> 4),
          .kind = static_cast<uint8_t>(at[0] & 0x0F),
          .operation = at[1],
          .group_id = load_big_endian<uint16_t>(at + 2),
          .epoch = load_big_endian<uint16_t>(at + 4),
          .cell = load_big_endian<uint16_t>(at + 6),
          .sequence = load_big_endian<uint32_t>(at + 8),
          .member = load_big_endian<uint16_t>(at + 12),
          .flags = load_big_endian<uint16_t>(at + 14),
          .operand = load_big_endian<uint64_t>(at + 16),
          .comparand = load_big_endian<uint64_t>(at + 24)};
}

}  // namespace weft::service
