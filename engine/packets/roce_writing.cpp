// Checks what is to be written, and writes it field by field.
#include "packets/roce_writing.hpp"

#include <cstring>
#include <stdexcept>
#include <string>

#include "packets/byte_order.hpp"
#include "packets/internet_checksum.hpp"
#include "packets/roce_codec.hpp"

namespace weft::roce::writing {
namespace {

constexpr size_t kMaxUdpBytes = 0xFFFF;

[[noreturn, gnu::cold, gnu::noinline]] void refuse_bits(const char* field, uint64_t value, int bits) {
  throw std::invalid_argument(std::string(field) + " is " + std::to_string(value) + ", which is more than " +
                              std::to_string(bits) + " bits");
}

inline void require_bits(const char* field, uint64_t value, int bits) {
  if (value >> bits != 0) [[unlikely]]
    refuse_bits(field, value, bits);
}

[[noreturn, gnu::cold, gnu::noinline]] void refuse_opcode(uint8_t opcode) {
  if (opcode_extensions(opcode)) {
    throw std::invalid_argument("BTH opcode " + std::to_string(opcode) +
                                " is MRC's: its packets are built with their MRC headers");
  }
  throw std::invalid_argument("unknown BTH opcode " + std::to_string(opcode) +
                              " (valid: RC 0-20, 22, 23; UC 32-43; UD 100, 101; CNP 129)");
}

uint16_t extensions_of(uint8_t opcode) {
  const uint16_t extensions = kOpcodeExtensions[opcode];
  static_assert(kIsMrc > kHasPayload && kIsMrc < kUndefinedOpcode, "one comparison finds both");
  if (extensions >= kIsMrc) [[unlikely]]
    refuse_opcode(opcode);
  return extensions;
}

}  // namespace

size_t ip_bytes(const RoceHeaders& headers) { return headers.source_ip.is_ipv6 ? kIpv6Bytes : kIpv4Bytes; }

size_t udp_bytes(const RoceHeaders& headers, uint16_t extensions, size_t payload_bytes) {
  return kUdpBytes + kBthBytes + extension_bytes(extensions) +
         (headers.aggregation ? kAggregationHeaderBytes : 0) + payload_bytes + pad_bytes(payload_bytes) +
         kIcrcBytes;
}

Layout layout_of(const RoceHeaders& headers, size_t payload_bytes) {
  const uint16_t extensions = extensions_of(headers.bth.opcode);
  const size_t udp_length_bytes = udp_bytes(headers, extensions, payload_bytes);
  const size_t before_udp_bytes =
      kEthernetBytes + (headers.telemetry ? kIntShimBytes : 0) + ip_bytes(headers);
  return {extensions, udp_length_bytes, before_udp_bytes + udp_length_bytes};
}

// Throws for the members of a header that their fields do not hold.
template <class Header>
[[gnu::cold, gnu::noinline]] void refuse_wide_values(const Header& header, const std::string& prefix = "") {
  wire::for_each_member<Header>([&](const char* name, size_t bits, auto member) {
    require_bits((prefix + name).c_str(), static_cast<uint64_t>(header.*member), static_cast<int>(bits));
  });
}

void check_telemetry(const IntStack& stack) {
  if (stack.hop_count > kIntHops) {
    throw std::invalid_argument("INT hop_count is " + std::to_string(stack.hop_count) + " (valid: 0 to 5)");
  }
  if (wire::is_too_wide(stack)) [[unlikely]]
    refuse_wide_values(stack, "INT ");
  for (const IntHop& hop : stack.hops) {
    if (wire::is_too_wide(hop)) [[unlikely]]
      refuse_wide_values(hop, "INT ");
  }
}

void check_aggregation(const RoceHeaders& headers, size_t udp_length_bytes) {
  const bool looks_so = is_aggregation(headers.bth, udp_length_bytes);
  if (headers.aggregation.has_value() == looks_so) return;
  throw std::invalid_argument(
      looks_so ? "a UD packet of this length to an aggregation queue pair needs an aggregation header"
               : "an aggregation header needs opcode 0x64, destination queue pair 0xA66000 or "
                 "0xFFFFFF and a payload of 0, 256, 512, 1024 or 4096 bytes");
}

[[gnu::cold, gnu::noinline]] void refuse_wide_values(const RoceHeaders& headers) {
  require_bits("dscp", headers.dscp, 6);
  require_bits("ecn", headers.ecn, 2);
  require_bits("flow_label", headers.flow_label, 20);
  refuse_wide_values<Bth>(headers.bth);
  refuse_wide_values<Aeth>(headers.aeth);
  refuse_wide_values<Deth>(headers.deth);
}

void check_values(const RoceHeaders& headers, uint16_t extensions, size_t payload_bytes,
                  size_t udp_length_bytes) {
  if (headers.source_ip.is_ipv6 != headers.destination_ip.is_ipv6) {
    throw std::invalid_argument("source and destination address are of different IP versions");
  }
  const bool is_wide_below = (headers.flow_label >> 20 | headers.dscp >> 6 | headers.ecn >> 2) != 0;
  if (is_wide_below || wire::is_too_wide(headers.bth) || wire::is_too_wide(headers.aeth) ||
      wire::is_too_wide(headers.deth)) [[unlikely]]
    refuse_wide_values(headers);
  if ((extensions & kHasPayload) == 0 && payload_bytes != 0) {
    throw std::invalid_argument("BTH opcode " + std::to_string(headers.bth.opcode) +
                                " carries no payload, but " + std::to_string(payload_bytes) +
                                " bytes were given");
  }
  if (udp_length_bytes + kIpv4Bytes > kMaxUdpBytes) {
    throw std::invalid_argument("payload of " + std::to_string(payload_bytes) +
                                " bytes does not fit an IP packet");
  }
  if (headers.telemetry) check_telemetry(*headers.telemetry);
  if (headers.aggregation) {
    require_bits("aggregation kind", headers.aggregation->kind, 1);
    if (wire::is_too_wide(*headers.aggregation)) [[unlikely]]
      refuse_wide_values(*headers.aggregation, "aggregation ");
    check_aggregation(headers, udp_length_bytes);
    if (size_t{4} * headers.aggregation->lane_count != payload_bytes) {
      throw std::invalid_argument("lane_count is " + std::to_string(headers.aggregation->lane_count) +
                                  " in a packet with " + std::to_string(payload_bytes) +
                                  " bytes of lanes (valid: 4 bytes each)");
    }
    return;
  }
  check_aggregation(headers, udp_length_bytes);
}

uint8_t* write_ethernet(const RoceHeaders& headers, uint8_t* at) {
  const uint16_t ip_type = headers.source_ip.is_ipv6 ? kEtherTypeIpv6 : kEtherTypeIpv4;
  std::memcpy(at, headers.destination_mac.data(), 6);
  std::memcpy(at + 6, headers.source_mac.data(), 6);
  store_big_endian<uint16_t>(at + 12, headers.telemetry ? kEtherTypeIntShim : ip_type);
  at += kEthernetBytes;
  return headers.telemetry ? write_int_shim(*headers.telemetry, ip_type, at) : at;
}

uint8_t* write_int_shim(const IntStack& stack, uint16_t ip_type, uint8_t* at) {
  uint8_t* const shim = at;
  at = wire::store_header(stack, shim);
  wire::store_field<IntStack, "next_ethertype">(shim, ip_type);
  for (const IntHop& hop : stack.hops) at = wire::store_header(hop, at);
  return at;
}

uint8_t* write_ip(const RoceHeaders& headers, size_t udp_length_bytes, uint8_t* at) {
  const auto traffic_class = static_cast<uint8_t>(headers.dscp << 2 | headers.ecn);
  if (headers.source_ip.is_ipv6) {
    store_big_endian<uint32_t>(at,
                               6u << 28 | static_cast<uint32_t>(traffic_class) << 20 | headers.flow_label);
    store_big_endian<uint16_t>(at + 4, static_cast<uint16_t>(udp_length_bytes));
    at[6] = kIpProtocolUdp;
    at[7] = headers.hop_limit;
    std::memcpy(at + 8, headers.source_ip.bytes.data(), 16);
    std::memcpy(at + 24, headers.destination_ip.bytes.data(), 16);
    return at + kIpv6Bytes;
  }
  at[0] = 0x45;
  at[1] = traffic_class;
  store_big_endian<uint16_t>(at + 2, static_cast<uint16_t>(kIpv4Bytes + udp_length_bytes));
  store_big_endian<uint16_t>(at + 4, headers.identification);
  store_big_endian<uint16_t>(at + 6, headers.dont_fragment ? 0x4000 : 0);
  at[8] = headers.hop_limit;
  at[9] = kIpProtocolUdp;
  store_big_endian<uint16_t>(at + 10, 0);
  std::memcpy(at + 12, headers.source_ip.bytes.data(), 4);
  std::memcpy(at + 16, headers.destination_ip.bytes.data(), 4);
  store_big_endian<uint16_t>(at + 10, internet_checksum(at, kIpv4Bytes));
  return at + kIpv4Bytes;
}

uint8_t* write_udp(const RoceHeaders& headers, size_t udp_length_bytes, uint8_t* at) {
  store_big_endian<uint16_t>(at, headers.source_udp_port);
  store_big_endian<uint16_t>(at + 2, kUdpPort);
  store_big_endian<uint16_t>(at + 4, static_cast<uint16_t>(udp_length_bytes));
  store_big_endian<uint16_t>(at + 6, 0);
  return at + kUdpBytes;
}

uint8_t* write_bth(const Bth& bth, size_t pad, uint8_t* at) {
  uint8_t* const end = wire::store_header(bth, at);
  wire::store_field<Bth, "pad_count">(at, pad);
  return end;
}

uint8_t* write_extensions(const RoceHeaders& headers, uint16_t extensions, uint8_t* at) {
  if ((extensions & kHasDeth) != 0) at = wire::store_header(headers.deth, at);
  if ((extensions & kHasReth) != 0) at = wire::store_header(headers.reth, at);
  if ((extensions & kHasAtomicEth) != 0) at = wire::store_header(headers.atomic_eth, at);
  if ((extensions & kHasAeth) != 0) at = wire::store_header(headers.aeth, at);
  if ((extensions & kHasAtomicAckEth) != 0) {
    store_big_endian<uint64_t>(at, headers.atomic_ack_original);
    at += kAtomicAckEthBytes;
  }
  if ((extensions & kHasImmediate) != 0) {
    store_big_endian<uint32_t>(at, headers.immediate);
    at += kImmediateBytes;
  }
  if ((extensions & kHasIeth) != 0) {
    store_big_endian<uint32_t>(at, headers.invalidate_rkey);
    at += kIethBytes;
  }
  if ((extensions & kHasCnpReserved) != 0) {
    std::memset(at, 0, kCnpReservedBytes);
    at += kCnpReservedBytes;
  }
  return at;
}

uint8_t* write_aggregation(const AggregationHeader& header, uint8_t* at) {
  return wire::store_header(header, at);
}

uint8_t* write_payload(const uint8_t* payload, size_t payload_bytes, const uint8_t* ip, uint8_t* at) {
  if (payload != nullptr) {
    std::memcpy(at, payload, payload_bytes);
  } else {
    std::memset(at, 0, payload_bytes);
  }
  at += payload_bytes;
  const size_t pad = pad_bytes(payload_bytes);
  std::memset(at, 0, pad);
  at += pad;
  const uint32_t icrc = invariant_crc(ip, static_cast<size_t>(at - ip));
  std::memcpy(at, &icrc, sizeof icrc);  // little-endian, as this machine is
  return at + sizeof icrc;
}

}  // namespace weft::roce::writing
