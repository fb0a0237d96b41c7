// A switch's notification of a queue to the sender of a packet that met it: the payload of a UDP datagram
// (docs/spec/host-transports.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>

#include "packets/header_fields.hpp"

namespace weft::switch_notification {

constexpr uint8_t kVersion = 1;
constexpr uint16_t kUdpPort = 0x4570;  // destination; IANA has assigned it to nobody

struct Header {
  uint8_t version = kVersion;
  uint32_t queue_pair = 0;  // the packet's destination
  uint32_t psn = 0;         // the packet's
  uint32_t queue_bytes = 0;
  uint32_t rate_mbps = 0;
  bool operator==(const Header&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("version", 8, &Header::version),
                      wire::field("queue_pair", 24, &Header::queue_pair),
                      wire::plain("reserved", 8, 0),
                      wire::field("psn", 24, &Header::psn),
                      wire::field("queue_bytes", 32, &Header::queue_bytes),
                      wire::field("rate_mbps", 32, &Header::rate_mbps)};
  }
};

// What a packet says to switches in the bits that the BTH reserves after FECN and BECN (FIRST_WINDOW and
// LAST_WINDOW in p4/include/bolt/headers.p4).
constexpr uint8_t kLastWindow = 0x20;
constexpr uint8_t kFirstWindow = 0x10;

constexpr size_t kHeaderBytes = wire::kHeaderBytes<Header>;

constexpr uint64_t rate_bps(const Header& header) { return uint64_t{header.rate_mbps} * 1'000'000; }

}  // namespace weft::switch_notification
