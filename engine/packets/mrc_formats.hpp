// The headers that Multipath Reliable Connection (MRC, OCP specification 1.0) adds to RoCEv2, as plain
// values. docs/spec/mrc.md says which fields rest on which source; weft/wire/headers/mrc.py describes the
// same fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>

#include "packets/header_fields.hpp"
#include "packets/roce_formats.hpp"

namespace weft::mrc {

enum Opcode : uint8_t {
  kWriteFirst = 0xC6,
  kWriteMiddle = 0xC7,
  kWriteLast = 0xC8,
  kWriteLastImmediate = 0xC9,
  kWriteOnly = 0xCA,
  kWriteOnlyImmediate = 0xCB,
  kAcknowledge = 0xD1,
  kEndpointRequest = 0xD8,
  kEndpointResponse = 0xD9,
  kSack = 0xDC,
  kNack = 0xDD,
  kReliabilityProbe = 0xDE,
};

constexpr bool is_write(uint8_t opcode) { return opcode >= kWriteFirst && opcode <= kWriteOnlyImmediate; }
constexpr bool is_endpoint_operation(uint8_t opcode) {
  return opcode == kEndpointRequest || opcode == kEndpointResponse;
}

// Endpoint operations belong to no connection: they go to this queue pair, and BTH.PSN[15:0] is their id.
constexpr uint32_t kEndpointQueuePair = 2;

// Code points that networks use by default.
enum Dscp : uint8_t {
  kDscpNoTrim = 0,
  kDscpTrimmable = 4,
  kDscpTrimmableRetransmission = 8,
  kDscpTrimmed = 12,
  kDscpTrimmedLastHop = 16,
  kDscpControl = 46,
};
constexpr bool is_trimmed(uint8_t dscp) { return dscp == kDscpTrimmed || dscp == kDscpTrimmedLastHop; }

// Seth::m: what the sender is to do with the entropy value.
enum PathMark : uint8_t { kMarkNone = 0, kMarkSkipOnce = 1, kMarkAlwaysSkip = 2 };

enum NackReason : uint8_t {
  kNackTrimmed = 0x01,
  kNackTrimmedLastHop = 0x02,
  kNackNoBitmap = 0x06,
  kNackNoPacketBuffer = 0x07,
  kNackNoResource = 0x0A,
  kNackPsnOutOfWindow = 0x0B,
  kNackUnexpectedEvent = 0x19,
};

enum EndpointOperation : uint8_t { kPortStatusUpdate = 0, kEvProbe = 1 };

// TSETH, PETH and ERTH: whether tx_timestamp means anything.
enum TimestampFormat : uint8_t { kNoTimestamp = 0, kTimestamp = 1 };
constexpr uint32_t kTimestampUnitNs = 128;  // with tsr 0
constexpr uint32_t kMprUnitPsns = 128;      // of Seth::mpr
constexpr uint32_t kReceivedUnitBytes = 256;
constexpr size_t kSackBits = 64;

// The BTH as MRC uses it. What an RC packet says with the bits that have no member here is reserved.
struct Bth {
  uint8_t opcode = 0;
  uint16_t partition_key = roce::kDefaultPartitionKey;
  uint32_t destination_qp = 0;  // 24 bits
  bool acknowledge_request = false;
  bool retransmission = false;
  bool has_timestamp = false;  // a TSETH follows the METH
  uint32_t psn = 0;            // 24 bits
  bool operator==(const Bth&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("opcode", 8, &Bth::opcode),
                      wire::plain("reserved1", 2, 0),
                      wire::plain("pad_count", 2, 0),
                      wire::plain("version", 4, 0),
                      wire::field("partition_key", 16, &Bth::partition_key),
                      wire::plain("variant_reserved", 8, 0),
                      wire::field("destination_qp", 24, &Bth::destination_qp),
                      wire::field("acknowledge_request", 1, &Bth::acknowledge_request),
                      wire::plain("reserved2", 1, 0),
                      wire::field("retransmission", 1, &Bth::retransmission),
                      wire::field("has_timestamp", 1, &Bth::has_timestamp),
                      wire::plain("invariant_reserved", 4, 0),
                      wire::field("psn", 24, &Bth::psn)};
  }
};

// Message extended transport header: of every write packet.
struct Meth {
  uint16_t rqmsn = 0;  // number of the WRITE with immediate; 0 in other writes
  uint16_t msn = 0;    // number of the message
  bool operator==(const Meth&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("rqmsn", 16, &Meth::rqmsn), wire::field("msn", 16, &Meth::msn)};
  }
};

// Requestor timestamp extended header.
struct Tseth {
  uint16_t tx_timestamp = 0;
  bool tsr = false;  // false: units of kTimestampUnitNs; true: the implementation's
  uint8_t ftype = kTimestamp;
  bool operator==(const Tseth&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("tx_timestamp", 16, &Tseth::tx_timestamp),
                      wire::field("tsr", 1, &Tseth::tsr), wire::plain("reserved", 11, 0),
                      wire::field("ftype", 4, &Tseth::ftype)};
  }
};

// Reliability SACK; a CcState follows.
struct Seth {
  uint8_t m = kMarkNone;
  bool pr = false;             // answers a reliability probe
  int16_t ack_psn_offset = 0;  // from cack_psn to the packet that this answers; with pr: the probe's id
  uint32_t entropy = 0;        // of that packet
  uint16_t spdcid = 0;         // low 16 bits of the sender's queue pair
  uint16_t dpdcid = 0;         // of the receiver's
  uint32_t cack_psn = 0;       // 24 bits: all packets up to it have arrived
  uint8_t cc_type = 0;
  uint8_t cc_flags = 0;
  uint8_t mpr = 0;          // in units of kMprUnitPsns
  int16_t sack_offset = 0;  // from cack_psn to the PSN of bit 0
  uint64_t sack_bitmap = 0;
  bool operator==(const Seth&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::plain("type", 4, 0),
                      wire::plain("next_header", 5, 0),
                      wire::field("m", 2, &Seth::m),
                      wire::plain("reserved1", 3, 0),
                      wire::field("pr", 1, &Seth::pr),
                      wire::plain("reserved2", 1, 0),
                      wire::field("ack_psn_offset", 16, &Seth::ack_psn_offset),
                      wire::field("entropy", 32, &Seth::entropy),
                      wire::field("spdcid", 16, &Seth::spdcid),
                      wire::field("dpdcid", 16, &Seth::dpdcid),
                      wire::plain("reserved3", 8, 0),
                      wire::field("cack_psn", 24, &Seth::cack_psn),
                      wire::field("cc_type", 4, &Seth::cc_type),
                      wire::field("cc_flags", 4, &Seth::cc_flags),
                      wire::field("mpr", 8, &Seth::mpr),
                      wire::field("sack_offset", 16, &Seth::sack_offset),
                      wire::field("sack_bitmap", 64, &Seth::sack_bitmap)};
  }
};

// Congestion control state of the responder (CC_STATE).
struct CcState {
  uint16_t tx_timestamp = 0;  // of the packet that the SACK answers
  uint16_t ooo_count = 0;     // 15 bits: packets beyond cack_psn
  bool restore_cwnd = false;
  uint8_t rcv_cwnd_pen = 0;  // 7 bits: 0 no penalty, 127 a packet a round trip
  uint32_t rcvd_units = 0;   // 24 bits of kReceivedUnitBytes, wraps
  bool operator==(const CcState&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("tx_timestamp", 16, &CcState::tx_timestamp),
                      wire::plain("reserved", 1, 0),
                      wire::field("ooo_count", 15, &CcState::ooo_count),
                      wire::field("restore_cwnd", 1, &CcState::restore_cwnd),
                      wire::field("rcv_cwnd_pen", 7, &CcState::rcv_cwnd_pen),
                      wire::field("rcvd_units", 24, &CcState::rcvd_units)};
  }
};

// Reliability NACK.
struct Neth {
  uint8_t nack_reason = 0;  // NackReason
  uint8_t vendor_info = 0;
  uint32_t entropy = 0;
  uint16_t spdcid = 0;
  uint16_t dpdcid = 0;
  uint32_t nack_psn = 0;  // 24 bits
  uint8_t cc_type = 2;    // as both sources that build NACKs send it
  uint8_t cc_flags = 0;
  uint16_t tx_timestamp = 0;  // of the packet that the NACK answers
  bool operator==(const Neth&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::plain("type", 4, 0),
                      wire::plain("next_header", 5, 0),
                      wire::plain("reserved1", 7, 0),
                      wire::field("nack_reason", 8, &Neth::nack_reason),
                      wire::field("vendor_info", 8, &Neth::vendor_info),
                      wire::field("entropy", 32, &Neth::entropy),
                      wire::field("spdcid", 16, &Neth::spdcid),
                      wire::field("dpdcid", 16, &Neth::dpdcid),
                      wire::plain("reserved2", 8, 0),
                      wire::field("nack_psn", 24, &Neth::nack_psn),
                      wire::field("cc_type", 4, &Neth::cc_type),
                      wire::field("cc_flags", 4, &Neth::cc_flags),
                      wire::plain("reserved3", 8, 0),
                      wire::field("tx_timestamp", 16, &Neth::tx_timestamp)};
  }
};

// Reliability probe of a connection; a SACK with pr answers it.
struct Peth {
  uint8_t vendor_info = 0;
  uint16_t probe_id = 0;
  uint16_t spdcid = 0;
  uint16_t dpdcid = 0;
  uint16_t tx_timestamp = 0;
  bool tsr = false;
  uint8_t ftype = kTimestamp;
  bool operator==(const Peth&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::plain("type", 4, 0),
                      wire::plain("next_header", 5, 0),
                      wire::plain("reserved1", 15, 0),
                      wire::field("vendor_info", 8, &Peth::vendor_info),
                      wire::field("probe_id", 16, &Peth::probe_id),
                      wire::plain("reserved2", 16, 0),
                      wire::field("spdcid", 16, &Peth::spdcid),
                      wire::field("dpdcid", 16, &Peth::dpdcid),
                      wire::field("tx_timestamp", 16, &Peth::tx_timestamp),
                      wire::field("tsr", 1, &Peth::tsr),
                      wire::plain("reserved3", 11, 0),
                      wire::field("ftype", 4, &Peth::ftype)};
  }
};

// Endpoint request: a probe of an entropy value, or which ports are up.
struct Erth {
  uint8_t op = kPortStatusUpdate;  // EndpointOperation
  uint8_t vendor_info = 0;
  uint32_t port_status_mask = 0;
  uint16_t tx_timestamp = 0;
  bool tsr = false;
  uint8_t ftype = kTimestamp;
  bool operator==(const Erth&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::plain("type", 4, 0),
                      wire::plain("next_header", 5, 0),
                      wire::plain("reserved1", 5, 0),
                      wire::field("op", 2, &Erth::op),
                      wire::plain("reserved2", 8, 0),
                      wire::field("vendor_info", 8, &Erth::vendor_info),
                      wire::field("port_status_mask", 32, &Erth::port_status_mask),
                      wire::plain("reserved3", 32, 0),
                      wire::field("tx_timestamp", 16, &Erth::tx_timestamp),
                      wire::field("tsr", 1, &Erth::tsr),
                      wire::plain("reserved4", 11, 0),
                      wire::field("ftype", 4, &Erth::ftype)};
  }
};

// Endpoint response, as long as a SACK.
struct Eeth {
  uint8_t op = kPortStatusUpdate;  // the request's
  uint16_t tx_timestamp = 0;       // the request's
  bool operator==(const Eeth&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::plain("type", 4, 0),       wire::plain("next_header", 5, 0),
                      wire::plain("reserved1", 3, 0),  wire::field("op", 2, &Eeth::op),
                      wire::plain("reserved2", 2, 0),  wire::plain("reserved3", 16, 0),
                      wire::plain("reserved4", 64, 0), wire::plain("reserved5", 64, 0),
                      wire::plain("reserved6", 64, 0), wire::field("tx_timestamp", 16, &Eeth::tx_timestamp),
                      wire::plain("reserved7", 16, 0), wire::plain("reserved8", 32, 0)};
  }
};

constexpr size_t kMethBytes = wire::kHeaderBytes<Meth>;
constexpr size_t kTsethBytes = wire::kHeaderBytes<Tseth>;
constexpr size_t kSethBytes = wire::kHeaderBytes<Seth>;
constexpr size_t kCcStateBytes = wire::kHeaderBytes<CcState>;
constexpr size_t kNethBytes = wire::kHeaderBytes<Neth>;
constexpr size_t kPethBytes = wire::kHeaderBytes<Peth>;
constexpr size_t kErthBytes = wire::kHeaderBytes<Erth>;
constexpr size_t kEethBytes = wire::kHeaderBytes<Eeth>;
static_assert(wire::kHeaderBytes<Bth> == roce::kBthBytes);
static_assert(kSethBytes == 28 && kNethBytes == 20 && kPethBytes == 16 && kErthBytes == 16 &&
              kEethBytes == kSethBytes + kCcStateBytes);

// What a packet has in addition to roce::RoceHeaders, which hold its RETH, immediate and AETH. Only the
// headers that its opcode has are meaningful. They are apart so that packets of RC do not carry them.
struct Headers {
  bool retransmission = false;
  bool has_timestamp = false;  // of a write: tseth is there
  Meth meth;
  Tseth tseth;
  Seth seth;
  CcState cc_state;
  Neth neth;
  Peth peth;
  Erth erth;
  Eeth eeth;
  // The packet goes in an outer IPv6 header to this address (RFC 2473, RFC 8986). Parsers of hosts leave it
  // out: the last switch has taken it off.
  std::optional<roce::IpAddress> outer_destination;
  bool operator==(const Headers&) const = default;
};

// An entropy value (EV) of 32 bits is UDP.source_port || IPv6.flow_label[15:0]. IPv4 has no flow label: only
// the upper half travels, and the lower half of what is read is 0.
constexpr uint32_t entropy_of(const roce::RoceHeaders& headers) {
  const uint32_t lower = headers.source_ip.is_ipv6 ? headers.flow_label & 0xFFFF : 0;
  return uint32_t{headers.source_udp_port} << 16 | lower;
}
constexpr void set_entropy(roce::RoceHeaders& headers, uint32_t entropy) {
  headers.source_udp_port = static_cast<uint16_t>(entropy >> 16);
  if (headers.source_ip.is_ipv6) headers.flow_label = (headers.flow_label & 0xF0000) | (entropy & 0xFFFF);
}

}  // namespace weft::mrc
