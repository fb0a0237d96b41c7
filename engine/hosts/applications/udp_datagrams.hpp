// What the datagrams of UDP sources and sinks begin with: a number, when it was sent, and what it is.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "packets/byte_order.hpp"
#include "time/time.hpp"

namespace weft {

enum class UdpDatagramKind : uint8_t { kData = 0, kEnd = 1, kEndHeard = 2 };

struct UdpDatagramHeader {
  static constexpr size_t kBytes = 20;
  static constexpr uint16_t kMagic = 0x5755;

  uint64_t sequence = 0;
  TimePs sent_ps = 0;
  UdpDatagramKind kind = UdpDatagramKind::kData;

  void write(uint8_t* at) const {
    store_big_endian(at, sequence);
    store_big_endian(at + 8, static_cast<uint64_t>(sent_ps));
    store_big_endian(at + 16, kMagic);
    at[18] = static_cast<uint8_t>(kind);
    at[19] = 0;
  }
  static std::optional<UdpDatagramHeader> read(std::span<const uint8_t> payload) {
    if (payload.size() < kBytes || load_big_endian<uint16_t>(payload.data() + 16) != kMagic ||
        payload[18] > static_cast<uint8_t>(UdpDatagramKind::kEndHeard))
      return std::nullopt;
    return UdpDatagramHeader{load_big_endian<uint64_t>(payload.data()),
                             static_cast<TimePs>(load_big_endian<uint64_t>(payload.data() + 8)),
                             static_cast<UdpDatagramKind>(payload[18])};
  }
};

}  // namespace weft
