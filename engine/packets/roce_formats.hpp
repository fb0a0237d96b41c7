// The headers of RoCEv2 packets as plain values: Ethernet, INT shim, IP, UDP, BTH and its extensions.
// Sources: InfiniBand Architecture Specification volume 1, chapter 9 and annex A17 (RoCEv2); docs/spec
// for the INT shim and the aggregation header, which are Weft's own. weft/wire/ describes all of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <tuple>

#include "packets/header_fields.hpp"

namespace weft::roce {

constexpr uint16_t kUdpPort = 4791;
constexpr uint16_t kEtherTypeIpv4 = 0x0800;
constexpr uint16_t kEtherTypeIpv6 = 0x86DD;
constexpr uint16_t kEtherTypeIntShim = 0x88B5;
constexpr uint16_t kEtherTypeIntermediateShim = 0x88B6;
constexpr uint8_t kIpProtocolUdp = 17;
constexpr uint16_t kDefaultPartitionKey = 0xFFFF;

constexpr size_t kEthernetBytes = 14;
constexpr size_t kIntermediateShimBytes = 6;
constexpr size_t kIpv4Bytes = 20;
constexpr size_t kIpv6Bytes = 40;
constexpr size_t kUdpBytes = 8;
constexpr size_t kImmediateBytes = 4;
constexpr size_t kAtomicAckEthBytes = 8;
constexpr size_t kIethBytes = 4;
constexpr size_t kCnpReservedBytes = 16;
constexpr size_t kIcrcBytes = 4;

constexpr uint8_t kIntShimVersion = 1;
constexpr uint8_t kAggregationVersion = 2;

constexpr size_t kIntHops = 5;
// How many lanes an aggregation packet may have.
constexpr std::array<uint16_t, 5> kAggregationLaneCounts = {0, 64, 128, 256, 1024};
constexpr size_t kMaxAggregationLanes = 1024;
constexpr uint8_t kOverflow = 1;                      // a sum left the range of its type
constexpr uint16_t kAllWorkers = 0xFFFF;              // the destination of a result that all get
constexpr uint32_t kAggregationQueuePair = 0xA66000;  // destination of contributions, source of both kinds
constexpr uint32_t kMulticastQueuePair = 0xFFFFFF;    // destination of results

constexpr uint8_t kDataDscp = 26;
constexpr uint8_t kControlDscp = 48;
// The classes that the fabric's switches map these to (controller/identity.py).
constexpr int kDataClass = 3;
constexpr int kControlClass = 6;
// Data may be sent in the classes below that of control, with the DSCP of the class selector of that number
// (RFC 2474) where it is not kDataClass.
constexpr int kDataClasses = kControlClass;
constexpr uint8_t dscp_of_data(int priority_class) {
  return priority_class == kDataClass ? kDataDscp : static_cast<uint8_t>(priority_class << 3);
}

// The two low bits of the IPv4 TOS or IPv6 traffic class (RFC 3168).
enum Ecn : uint8_t { kNotEct = 0, kEct1 = 1, kEct0 = 2, kCe = 3 };

using MacAddress = std::array<uint8_t, 6>;

// An IPv4 address stands in the first four bytes, the others are zero.
struct IpAddress {
  std::array<uint8_t, 16> bytes{};
  bool is_ipv6 = false;
  bool operator==(const IpAddress& other) const {
    return std::memcmp(bytes.data(), other.bytes.data(), sizeof bytes) == 0 && is_ipv6 == other.is_ipv6;
  }
};

struct AddressOrder {
  bool operator()(const IpAddress& one, const IpAddress& other) const {
    return one.is_ipv6 != other.is_ipv6 ? other.is_ipv6 : one.bytes < other.bytes;
  }
};

// BTH opcodes, transport service in the upper three bits (table 38 of the specification).
enum Opcode : uint8_t {
  kRcSendFirst = 0x00,
  kRcSendMiddle = 0x01,
  kRcSendLast = 0x02,
  kRcSendLastImmediate = 0x03,
  kRcSendOnly = 0x04,
  kRcSendOnlyImmediate = 0x05,
  kRcWriteFirst = 0x06,
  kRcWriteMiddle = 0x07,
  kRcWriteLast = 0x08,
  kRcWriteLastImmediate = 0x09,
  kRcWriteOnly = 0x0A,
  kRcWriteOnlyImmediate = 0x0B,
  kRcReadRequest = 0x0C,
  kRcReadResponseFirst = 0x0D,
  kRcReadResponseMiddle = 0x0E,
  kRcReadResponseLast = 0x0F,
  kRcReadResponseOnly = 0x10,
  kRcAcknowledge = 0x11,
  kRcAtomicAcknowledge = 0x12,
  kRcCompareSwap = 0x13,
  kRcFetchAdd = 0x14,
  kRcSendLastInvalidate = 0x16,
  kRcSendOnlyInvalidate = 0x17,
  kUdSendOnly = 0x64,
  kUdSendOnlyImmediate = 0x65,
  kCnp = 0x81,
  kReadAcknowledge = 0xE1,  // of the range for manufacturers, beyond MRC's: answers responses of READs
};

// UC has the SENDs and WRITEs of RC, their opcodes so much higher.
constexpr uint8_t kUcOpcodes = 0x20;

// What follows the BTH of an opcode.
enum Extension : uint16_t {
  kHasDeth = 1 << 0,
  kHasReth = 1 << 1,
  kHasAtomicEth = 1 << 2,
  kHasAeth = 1 << 3,
  kHasAtomicAckEth = 1 << 4,
  kHasImmediate = 1 << 5,
  kHasIeth = 1 << 6,
  kHasCnpReserved = 1 << 7,
  kHasPayload = 1 << 8,
  // The headers of MRC (packets/mrc_formats.hpp) are there too; the bits above say which of RC's are among
  // them.
  kIsMrc = 1 << 9,
};

// Asked several times for every packet that is built or parsed, hence tables: Extension bits by opcode, and
// the length of the headers by Extension bits.
constexpr uint16_t kUndefinedOpcode = 0xFFFF;
extern const std::array<uint16_t, 256> kOpcodeExtensions;
extern const std::array<uint8_t, 2 * kHasPayload> kExtensionBytes;

// Extension bits of an opcode; nullopt if the opcode is none of RC, UC, UD, CNP or MRC.
inline std::optional<uint16_t> opcode_extensions(uint8_t opcode) {
  const uint16_t extensions = kOpcodeExtensions[opcode];
  if (extensions == kUndefinedOpcode) return std::nullopt;
  return extensions;
}

// Length of the extension headers (without payload) that `extensions` stands for, without those of MRC.
inline size_t extension_bytes(uint16_t extensions) {
  return kExtensionBytes[extensions % kExtensionBytes.size()];
}

// AETH syndromes (section 9.7.5.1.1): the type in bits 5 and 6, a value below.
enum Syndrome : uint8_t {
  kSyndromeAck = 0x00,
  kSyndromeAckNoCredits = 0x1F,  // an ACK that does not take part in end-to-end credits
  kSyndromeRnrNak = 0x20,
  kSyndromeNakSequence = 0x60,
  kSyndromeNakInvalidRequest = 0x61,
  kSyndromeNakRemoteAccess = 0x62,
  kSyndromeNakRemoteOperation = 0x63,
};

struct Bth {
  uint8_t opcode = 0;
  bool solicited = false;
  bool migrated = true;
  uint16_t partition_key = kDefaultPartitionKey;
  bool fecn = false;
  bool becn = false;
  uint32_t destination_qp = 0;  // 24 bits
  bool acknowledge_request = false;
  uint32_t psn = 0;  // 24 bits
  bool operator==(const Bth&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("opcode", 8, &Bth::opcode),
                      wire::field("solicited", 1, &Bth::solicited),
                      wire::field("migrated", 1, &Bth::migrated),
                      wire::plain("pad_count", 2, 0),
                      wire::plain("version", 4, 0),
                      wire::field("partition_key", 16, &Bth::partition_key),
                      wire::field("fecn", 1, &Bth::fecn),
                      wire::field("becn", 1, &Bth::becn),
                      wire::plain("reserved1", 6, 0),
                      wire::field("destination_qp", 24, &Bth::destination_qp),
                      wire::field("acknowledge_request", 1, &Bth::acknowledge_request),
                      wire::plain("reserved2", 7, 0),
                      wire::field("psn", 24, &Bth::psn)};
  }
};

struct Reth {
  uint64_t virtual_address = 0;
  uint32_t rkey = 0;
  uint32_t length_bytes = 0;
  bool operator==(const Reth&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("virtual_address", 64, &Reth::virtual_address),
                      wire::field("rkey", 32, &Reth::rkey),
                      wire::field("length_bytes", 32, &Reth::length_bytes)};
  }
};

struct Aeth {
  uint8_t syndrome = 0;
  uint32_t msn = 0;  // 24 bits
  bool operator==(const Aeth&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("syndrome", 8, &Aeth::syndrome), wire::field("msn", 24, &Aeth::msn)};
  }
};

struct Deth {
  uint32_t q_key = 0;
  uint32_t source_qp = 0;  // 24 bits
  bool operator==(const Deth&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("q_key", 32, &Deth::q_key), wire::plain("reserved", 8, 0),
                      wire::field("source_qp", 24, &Deth::source_qp)};
  }
};

struct AtomicEth {
  uint64_t virtual_address = 0;
  uint32_t rkey = 0;
  uint64_t swap_or_add = 0;
  uint64_t compare = 0;
  bool operator==(const AtomicEth&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("virtual_address", 64, &AtomicEth::virtual_address),
                      wire::field("rkey", 32, &AtomicEth::rkey),
                      wire::field("swap_or_add", 64, &AtomicEth::swap_or_add),
                      wire::field("compare", 64, &AtomicEth::compare)};
  }
};

struct IntHop {
  uint8_t rate_code = 0;      // 4 bits
  uint32_t timestamp_ns = 0;  // 24 bits, wraps
  uint32_t tx_units = 0;      // 20 bits of 128 B, wraps
  uint16_t queue_cells = 0;   // 80 B cells, saturates
  bool operator==(const IntHop&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("rate_code", 4, &IntHop::rate_code),
                      wire::field("timestamp_ns", 24, &IntHop::timestamp_ns),
                      wire::field("tx_units", 20, &IntHop::tx_units),
                      wire::field("queue_cells", 16, &IntHop::queue_cells)};
  }
};

// The HPCC telemetry shim between Ethernet and IP; hops[0] is the first switch.
struct IntStack {
  bool echo = false;
  bool overflow = false;
  uint8_t hop_count = 0;  // 4 bits, hops stamped
  uint16_t path_id = 0;   // 12 bits
  std::array<IntHop, kIntHops> hops{};
  bool operator==(const IntStack&) const = default;

  // The hops follow.
  static constexpr auto fields() {
    return std::tuple{wire::plain("version", 4, kIntShimVersion),
                      wire::field("echo", 1, &IntStack::echo),
                      wire::field("overflow", 1, &IntStack::overflow),
                      wire::plain("reserved", 2, 0),
                      wire::plain("hop_slots", 8, kIntHops),
                      wire::plain("next_ethertype", 16, 0),
                      wire::field("hop_count", 4, &IntStack::hop_count),
                      wire::field("path_id", 12, &IntStack::path_id)};
  }
};

enum AggregationKind : uint8_t { kContribution = 0, kResult = 1 };

struct AggregationHeader {
  uint8_t kind = kContribution;  // 4 bits
  uint8_t operation = 0;         // 0 sum, 1 max, 2 min
  uint16_t job_id = 0;
  uint16_t epoch = 0;
  uint16_t slot = 0;
  uint32_t round = 0;
  uint16_t rank = 0;
  uint16_t lane_count = 0;             // of kAggregationLaneCounts
  uint8_t data_type = 0;               // 0 int32, 1 int16 packed in pairs, 2 int8 packed in fours
  uint8_t flags = 0;                   // kOverflow
  uint16_t destination = kAllWorkers;  // worker that gets the lanes of the result
  bool operator==(const AggregationHeader&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::plain("version", 4, kAggregationVersion),
                      wire::field("kind", 4, &AggregationHeader::kind),
                      wire::field("operation", 8, &AggregationHeader::operation),
                      wire::field("job_id", 16, &AggregationHeader::job_id),
                      wire::field("epoch", 16, &AggregationHeader::epoch),
                      wire::field("slot", 16, &AggregationHeader::slot),
                      wire::field("round", 32, &AggregationHeader::round),
                      wire::field("rank", 16, &AggregationHeader::rank),
                      wire::field("lane_count", 16, &AggregationHeader::lane_count),
                      wire::field("data_type", 8, &AggregationHeader::data_type),
                      wire::field("flags", 8, &AggregationHeader::flags),
                      wire::field("destination", 16, &AggregationHeader::destination)};
  }
};

constexpr size_t kBthBytes = wire::kHeaderBytes<Bth>;
constexpr size_t kRethBytes = wire::kHeaderBytes<Reth>;
constexpr size_t kAethBytes = wire::kHeaderBytes<Aeth>;
constexpr size_t kDethBytes = wire::kHeaderBytes<Deth>;
constexpr size_t kAtomicEthBytes = wire::kHeaderBytes<AtomicEth>;
constexpr size_t kAggregationHeaderBytes = wire::kHeaderBytes<AggregationHeader>;
constexpr size_t kIntShimBytes = wire::kHeaderBytes<IntStack> + kIntHops * wire::kHeaderBytes<IntHop>;

// Everything of a packet above its payload. Of the extension headers only those that the opcode has are
// meaningful.
struct RoceHeaders {
  MacAddress destination_mac{};
  MacAddress source_mac{};
  std::optional<IntStack> telemetry;

  IpAddress source_ip;
  IpAddress destination_ip;
  uint8_t dscp = kDataDscp;
  uint8_t ecn = kEct0;
  uint8_t hop_limit = 64;       // TTL in IPv4
  uint16_t identification = 0;  // IPv4 only
  bool dont_fragment = true;    // IPv4 only
  uint32_t flow_label = 0;      // IPv6 only, 20 bits
  uint16_t source_udp_port = 0xC000;

  Bth bth;
  Deth deth;
  Reth reth;
  AtomicEth atomic_eth;
  Aeth aeth;
  uint64_t atomic_ack_original = 0;
  uint32_t immediate = 0;
  uint32_t invalidate_rkey = 0;
  std::optional<AggregationHeader> aggregation;

  bool operator==(const RoceHeaders&) const = default;
};

}  // namespace weft::roce
