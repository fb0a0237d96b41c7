// The header of packets to switches' services (docs/spec/services.md): the payload of a UD SEND.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "packets/header_fields.hpp"

namespace weft::service {

constexpr uint8_t kVersion = 1;
constexpr uint32_t kQueuePair = 0xA66001;  // destination of requests, source of both kinds

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

  static constexpr auto fields() {
    return std::tuple{
        wire::field("version", 4, &Header::version),     wire::field("kind", 4, &Header::kind),
        wire::field("operation", 8, &Header::operation), wire::field("group_id", 16, &Header::group_id),
        wire::field("epoch", 16, &Header::epoch),        wire::field("cell", 16, &Header::cell),
        wire::field("sequence", 32, &Header::sequence),  wire::field("member", 16, &Header::member),
        wire::field("flags", 16, &Header::flags),        wire::field("operand", 64, &Header::operand),
        wire::field("comparand", 64, &Header::comparand)};
  }
};

constexpr size_t kHeaderBytes = wire::kHeaderBytes<Header>;

inline std::array<uint8_t, kHeaderBytes> encoded(const Header& header) {
  std::array<uint8_t, kHeaderBytes> bytes;
  wire::store_header(header, bytes.data());
  return bytes;
}

// `at` has kHeaderBytes.
inline Header decoded(const uint8_t* at) {
  Header header;
  wire::load_header(header, at);
  return header;
}

}  // namespace weft::service
