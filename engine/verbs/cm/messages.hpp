// Messages of InfiniBand's communication management as plain values, and their 256 bytes on the wire:
// InfiniBand Architecture, volume 1, 12.6 and 13.4; annex A11 for IP addresses. weft/wire/headers/cm.py
// describes the same fields. Alternate paths are not looked at and written as zeros.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <variant>

#include "packets/header_fields.hpp"

namespace weft::cm {

constexpr size_t kMadBytes = 256;
constexpr uint32_t kQueuePair = 1;
constexpr uint32_t kQueuePairQKey = 0x80010000;
constexpr uint16_t kDefaultPKey = 0xFFFF;
constexpr uint16_t kPermissiveLid = 0xFFFF;

using MadBytes = std::array<uint8_t, kMadBytes>;
using Gid = std::array<uint8_t, 16>;

// `attribute_id` of a message.
enum Attribute : uint16_t {
  kReq = 0x10,
  kMra = 0x11,
  kRej = 0x12,
  kRep = 0x13,
  kRtu = 0x14,
  kDreq = 0x15,
  kDrep = 0x16,
  kSidrReq = 0x17,
  kSidrRep = 0x18,
};
constexpr uint16_t kAttributes = kSidrRep - kReq + 1;
// "req", "mra" …; null for other numbers.
const char* attribute_name(uint16_t attribute);

// Which message a REJ or an MRA is about.
enum About : uint8_t { kAboutReq = 0, kAboutRep = 1, kAboutOther = 2 };

// `reason` of a REJ, as far as they are sent or looked at.
enum RejectReason : uint16_t {
  kNoQueuePair = 1,
  kNoResources = 3,
  kTimeout = 4,
  kInvalidCommId = 6,
  kInvalidServiceId = 8,
  kInvalidTransport = 9,
  kStaleConnection = 10,
  kInvalidGid = 12,
  kInvalidMtu = 26,
  kConsumerDefined = 28,
  kVendorOptionNotSupported = 35,
};

// `status` of a SIDR_REP.
enum SidrStatus : uint8_t { kSidrValid = 0, kSidrUnsupported = 1, kSidrRejected = 2 };

// `transport` of a REQ.
enum Transport : uint8_t { kReliable = 0, kUnreliable = 1, kReliableDatagram = 2, kExtended = 3 };

struct MadHeader {
  uint8_t base_version = 1;
  uint8_t management_class = 0x07;
  uint8_t class_version = 2;
  uint8_t method = 0x03;
  uint64_t transaction_id = 0;
  uint16_t attribute_id = kReq;
  uint32_t attribute_modifier = 0;
  bool operator==(const MadHeader&) const = default;

  static constexpr auto fields() {
    using wire::field, wire::plain;
    return std::tuple{field("base_version", 8, &MadHeader::base_version),
                      field("management_class", 8, &MadHeader::management_class),
                      field("class_version", 8, &MadHeader::class_version),
                      field("method", 8, &MadHeader::method),
                      plain("status", 16, 0),
                      plain("class_specific", 16, 0),
                      field("transaction_id", 64, &MadHeader::transaction_id),
                      field("attribute_id", 16, &MadHeader::attribute_id),
                      plain("reserved", 16, 0),
                      field("attribute_modifier", 32, &MadHeader::attribute_modifier)};
  }
};

struct Req {
  uint32_t local_comm_id = 0;
  uint32_t vendor_id = 0;
  uint64_t service_id = 0;
  uint64_t local_ca_guid = 0;
  uint32_t local_qkey = 0;
  uint32_t local_qpn = 0;
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  uint8_t remote_response_timeout = 0;
  uint8_t transport = kReliable;
  uint8_t flow_control = 0;
  uint32_t starting_psn = 0;
  uint8_t local_response_timeout = 0;
  uint8_t retry_count = 0;
  uint16_t pkey = kDefaultPKey;
  uint8_t path_mtu = 1;
  uint8_t rdc_exists = 0;
  uint8_t rnr_retry_count = 0;
  uint8_t max_cm_retries = 0;
  uint8_t srq = 0;
  uint8_t extended_transport = 0;
  uint16_t primary_local_lid = 0;
  uint16_t primary_remote_lid = 0;
  uint64_t primary_local_gid_prefix = 0;
  uint64_t primary_local_gid_interface = 0;
  uint64_t primary_remote_gid_prefix = 0;
  uint64_t primary_remote_gid_interface = 0;
  uint32_t primary_flow_label = 0;
  uint8_t primary_packet_rate = 0;
  uint8_t primary_traffic_class = 0;
  uint8_t primary_hop_limit = 0;
  uint8_t primary_service_level = 0;
  uint8_t primary_subnet_local = 0;
  uint8_t primary_local_ack_timeout = 0;
  bool operator==(const Req&) const = default;

  static constexpr Attribute kAttribute = kReq;
  static constexpr size_t kInfoBytes = 0;
  static constexpr size_t kPrivateBytes = 92;

  static constexpr auto fields() {
    using wire::field, wire::plain;
    return std::tuple{field("local_comm_id", 32, &Req::local_comm_id),
                      plain("reserved1", 8, 0),
                      field("vendor_id", 24, &Req::vendor_id),
                      field("service_id", 64, &Req::service_id),
                      field("local_ca_guid", 64, &Req::local_ca_guid),
                      plain("reserved2", 32, 0),
                      field("local_qkey", 32, &Req::local_qkey),
                      field("local_qpn", 24, &Req::local_qpn),
                      field("responder_resources", 8, &Req::responder_resources),
                      plain("local_eecn", 24, 0),
                      field("initiator_depth", 8, &Req::initiator_depth),
                      plain("remote_eecn", 24, 0),
                      field("remote_response_timeout", 5, &Req::remote_response_timeout),
                      field("transport", 2, &Req::transport),
                      field("flow_control", 1, &Req::flow_control),
                      field("starting_psn", 24, &Req::starting_psn),
                      field("local_response_timeout", 5, &Req::local_response_timeout),
                      field("retry_count", 3, &Req::retry_count),
                      field("pkey", 16, &Req::pkey),
                      field("path_mtu", 4, &Req::path_mtu),
                      field("rdc_exists", 1, &Req::rdc_exists),
                      field("rnr_retry_count", 3, &Req::rnr_retry_count),
                      field("max_cm_retries", 4, &Req::max_cm_retries),
                      field("srq", 1, &Req::srq),
                      field("extended_transport", 3, &Req::extended_transport),
                      field("primary_local_lid", 16, &Req::primary_local_lid),
                      field("primary_remote_lid", 16, &Req::primary_remote_lid),
                      field("primary_local_gid_prefix", 64, &Req::primary_local_gid_prefix),
                      field("primary_local_gid_interface", 64, &Req::primary_local_gid_interface),
                      field("primary_remote_gid_prefix", 64, &Req::primary_remote_gid_prefix),
                      field("primary_remote_gid_interface", 64, &Req::primary_remote_gid_interface),
                      field("primary_flow_label", 20, &Req::primary_flow_label),
                      plain("primary_reserved1", 6, 0),
                      field("primary_packet_rate", 6, &Req::primary_packet_rate),
                      field("primary_traffic_class", 8, &Req::primary_traffic_class),
                      field("primary_hop_limit", 8, &Req::primary_hop_limit),
                      field("primary_service_level", 4, &Req::primary_service_level),
                      field("primary_subnet_local", 1, &Req::primary_subnet_local),
                      plain("primary_reserved2", 3, 0),
                      field("primary_local_ack_timeout", 5, &Req::primary_local_ack_timeout),
                      plain("primary_reserved3", 3, 0),
                      plain("alternate_local_lid", 16, 0),
                      plain("alternate_remote_lid", 16, 0),
                      plain("alternate_local_gid_prefix", 64, 0),
                      plain("alternate_local_gid_interface", 64, 0),
                      plain("alternate_remote_gid_prefix", 64, 0),
                      plain("alternate_remote_gid_interface", 64, 0),
                      plain("alternate_flow_label", 20, 0),
                      plain("alternate_reserved1", 6, 0),
                      plain("alternate_packet_rate", 6, 0),
                      plain("alternate_traffic_class", 8, 0),
                      plain("alternate_hop_limit", 8, 0),
                      plain("alternate_service_level", 4, 0),
                      plain("alternate_subnet_local", 1, 0),
                      plain("alternate_reserved2", 3, 0),
                      plain("alternate_local_ack_timeout", 5, 0),
                      plain("sap_supported", 1, 0),
                      plain("alternate_reserved3", 2, 0)};
  }
};

struct Mra {
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  uint8_t message = kAboutReq;
  uint8_t service_timeout = 0;
  bool operator==(const Mra&) const = default;

  static constexpr Attribute kAttribute = kMra;
  static constexpr size_t kInfoBytes = 0;
  static constexpr size_t kPrivateBytes = 222;

  static constexpr auto fields() {
    using wire::field, wire::plain;
    return std::tuple{field("local_comm_id", 32, &Mra::local_comm_id),
                      field("remote_comm_id", 32, &Mra::remote_comm_id),
                      field("message", 2, &Mra::message),
                      plain("reserved1", 6, 0),
                      field("service_timeout", 5, &Mra::service_timeout),
                      plain("reserved2", 3, 0)};
  }
};

struct Rej {
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  uint8_t message = kAboutReq;
  uint8_t info_length = 0;
  uint16_t reason = 0;
  bool operator==(const Rej&) const = default;

  static constexpr Attribute kAttribute = kRej;
  static constexpr size_t kInfoBytes = 72;
  static constexpr size_t kPrivateBytes = 148;

  static constexpr auto fields() {
    using wire::field, wire::plain;
    return std::tuple{field("local_comm_id", 32, &Rej::local_comm_id),
                      field("remote_comm_id", 32, &Rej::remote_comm_id),
                      field("message", 2, &Rej::message),
                      plain("reserved1", 6, 0),
                      field("info_length", 7, &Rej::info_length),
                      plain("reserved2", 1, 0),
                      field("reason", 16, &Rej::reason)};
  }
};

struct Rep {
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  uint32_t local_qkey = 0;
  uint32_t local_qpn = 0;
  uint8_t vendor_id_high = 0;
  uint8_t vendor_id_middle = 0;
  uint32_t starting_psn = 0;
  uint8_t vendor_id_low = 0;
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  uint8_t target_ack_delay = 0;
  uint8_t failover_accepted = 0;
  uint8_t flow_control = 0;
  uint8_t rnr_retry_count = 0;
  uint8_t srq = 0;
  uint64_t local_ca_guid = 0;
  bool operator==(const Rep&) const = default;

  static constexpr Attribute kAttribute = kRep;
  static constexpr size_t kInfoBytes = 0;
  static constexpr size_t kPrivateBytes = 196;

  static constexpr auto fields() {
    using wire::field, wire::plain;
    return std::tuple{field("local_comm_id", 32, &Rep::local_comm_id),
                      field("remote_comm_id", 32, &Rep::remote_comm_id),
                      field("local_qkey", 32, &Rep::local_qkey),
                      field("local_qpn", 24, &Rep::local_qpn),
                      field("vendor_id_high", 8, &Rep::vendor_id_high),
                      plain("local_eecn", 24, 0),
                      field("vendor_id_middle", 8, &Rep::vendor_id_middle),
                      field("starting_psn", 24, &Rep::starting_psn),
                      field("vendor_id_low", 8, &Rep::vendor_id_low),
                      field("responder_resources", 8, &Rep::responder_resources),
                      field("initiator_depth", 8, &Rep::initiator_depth),
                      field("target_ack_delay", 5, &Rep::target_ack_delay),
                      field("failover_accepted", 2, &Rep::failover_accepted),
                      field("flow_control", 1, &Rep::flow_control),
                      field("rnr_retry_count", 3, &Rep::rnr_retry_count),
                      field("srq", 1, &Rep::srq),
                      plain("reserved", 4, 0),
                      field("local_ca_guid", 64, &Rep::local_ca_guid)};
  }
};

struct Rtu {
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  bool operator==(const Rtu&) const = default;

  static constexpr Attribute kAttribute = kRtu;
  static constexpr size_t kInfoBytes = 0;
  static constexpr size_t kPrivateBytes = 224;

  static constexpr auto fields() {
    return std::tuple{wire::field("local_comm_id", 32, &Rtu::local_comm_id),
                      wire::field("remote_comm_id", 32, &Rtu::remote_comm_id)};
  }
};

struct Dreq {
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  uint32_t remote_qpn = 0;
  bool operator==(const Dreq&) const = default;

  static constexpr Attribute kAttribute = kDreq;
  static constexpr size_t kInfoBytes = 0;
  static constexpr size_t kPrivateBytes = 220;

  static constexpr auto fields() {
    using wire::field, wire::plain;
    return std::tuple{field("local_comm_id", 32, &Dreq::local_comm_id),
                      field("remote_comm_id", 32, &Dreq::remote_comm_id),
                      field("remote_qpn", 24, &Dreq::remote_qpn), plain("reserved", 8, 0)};
  }
};

struct Drep {
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  bool operator==(const Drep&) const = default;

  static constexpr Attribute kAttribute = kDrep;
  static constexpr size_t kInfoBytes = 0;
  static constexpr size_t kPrivateBytes = 224;

  static constexpr auto fields() {
    return std::tuple{wire::field("local_comm_id", 32, &Drep::local_comm_id),
                      wire::field("remote_comm_id", 32, &Drep::remote_comm_id)};
  }
};

struct SidrReq {
  uint32_t request_id = 0;
  uint16_t pkey = kDefaultPKey;
  uint64_t service_id = 0;
  bool operator==(const SidrReq&) const = default;

  static constexpr Attribute kAttribute = kSidrReq;
  static constexpr size_t kInfoBytes = 0;
  static constexpr size_t kPrivateBytes = 216;

  static constexpr auto fields() {
    using wire::field, wire::plain;
    return std::tuple{field("request_id", 32, &SidrReq::request_id), field("pkey", 16, &SidrReq::pkey),
                      plain("reserved", 16, 0), field("service_id", 64, &SidrReq::service_id)};
  }
};

struct SidrRep {
  uint32_t request_id = 0;
  uint8_t status = kSidrValid;
  uint8_t info_length = 0;
  uint32_t qpn = 0;
  uint64_t service_id = 0;
  uint32_t qkey = 0;
  bool operator==(const SidrRep&) const = default;

  static constexpr Attribute kAttribute = kSidrRep;
  static constexpr size_t kInfoBytes = 72;
  static constexpr size_t kPrivateBytes = 136;

  static constexpr auto fields() {
    using wire::field, wire::plain;
    return std::tuple{field("request_id", 32, &SidrRep::request_id),
                      field("status", 8, &SidrRep::status),
                      field("info_length", 8, &SidrRep::info_length),
                      plain("reserved1", 16, 0),
                      field("qpn", 24, &SidrRep::qpn),
                      plain("reserved2", 8, 0),
                      field("service_id", 64, &SidrRep::service_id),
                      field("qkey", 32, &SidrRep::qkey)};
  }
};

using Body = std::variant<Req, Mra, Rej, Rep, Rtu, Dreq, Drep, SidrReq, SidrRep>;

constexpr size_t kMostInfoBytes = 72;
constexpr size_t kMostPrivateBytes = 224;

// A whole message. `attribute_id` of `mad` follows from the body; bytes of information and private data
// beyond the message's own are not written.
struct Message {
  MadHeader mad;
  Body body;
  std::array<uint8_t, kMostInfoBytes> info{};
  std::array<uint8_t, kMostPrivateBytes> private_data{};
  bool operator==(const Message&) const = default;

  void set_private_data(std::span<const uint8_t> data);  // at most kMostPrivateBytes
};

size_t private_bytes_of(const Body& body);
size_t info_bytes_of(const Body& body);

enum class ParseError : uint8_t {
  kNone,
  kWrongLength,  // not 256 bytes
  kWrongClass,   // not of communication management
  kWrongVersion,
  kWrongMethod,
  kUnknownAttribute,  // LAP and APR among them: RoCE has no alternate paths
};
constexpr size_t kParseErrors = 6;
// Snake-case name, as used for drop counters ("wrong_length").
const char* parse_error_name(ParseError error);

// Complete only if the result is kNone. Reserved bits are not looked at.
ParseError parse_message(std::span<const uint8_t> bytes, Message& out);
// Bits of a member beyond its field's are not written.
MadBytes build_message(const Message& message);

// At the beginning of a REQ's or SIDR_REQ's private data (annex A11.4).
struct IpAddressing {
  uint8_t major_version = 0;
  uint8_t minor_version = 0;
  uint8_t ip_version = 4;
  uint16_t source_port = 0;
  uint64_t source_address_high = 0;
  uint64_t source_address_low = 0;
  uint64_t destination_address_high = 0;
  uint64_t destination_address_low = 0;
  bool operator==(const IpAddressing&) const = default;

  static constexpr auto fields() {
    using wire::field, wire::plain;
    return std::tuple{field("major_version", 4, &IpAddressing::major_version),
                      field("minor_version", 4, &IpAddressing::minor_version),
                      field("ip_version", 4, &IpAddressing::ip_version),
                      plain("reserved", 4, 0),
                      field("source_port", 16, &IpAddressing::source_port),
                      field("source_address_high", 64, &IpAddressing::source_address_high),
                      field("source_address_low", 64, &IpAddressing::source_address_low),
                      field("destination_address_high", 64, &IpAddressing::destination_address_high),
                      field("destination_address_low", 64, &IpAddressing::destination_address_low)};
  }
};
constexpr size_t kIpAddressingBytes = wire::kHeaderBytes<IpAddressing>;
static_assert(kIpAddressingBytes == 36);

inline uint64_t gid_prefix(const Gid& gid) { return load_big_endian<uint64_t>(gid.data()); }
inline uint64_t gid_interface(const Gid& gid) { return load_big_endian<uint64_t>(gid.data() + 8); }
inline Gid gid_of(uint64_t prefix, uint64_t interface) {
  Gid gid;
  store_big_endian<uint64_t>(gid.data(), prefix);
  store_big_endian<uint64_t>(gid.data() + 8, interface);
  return gid;
}

}  // namespace weft::cm
