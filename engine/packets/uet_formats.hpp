// Headers of Ultra Ethernet Transport (UET, Ultra Ethernet Specification 1.0.1) as plain values: its packet
// delivery sublayer (PDS) and its semantic sublayer (SES). docs/spec/uet.md says which fields rest on which
// source; weft/wire/headers/uet.py describes the same fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <variant>

#include "packets/header_fields.hpp"

namespace weft::uet {

constexpr uint16_t kUdpPort = 4793;

// `type` of a packet's first header.
enum Type : uint8_t {
  kEncrypted = 1,  // has the header of UET's transport security, which is not read
  kRudRequest = 2,
  kRodRequest = 3,
  kRudiRequest = 4,
  kRudiResponse = 5,
  kUudRequest = 6,
  kAck = 7,
  kAckCc = 8,
  kAckCcx = 9,
  kNack = 10,
  kControl = 11,
  kNackCcx = 12,
  kRudCcRequest = 13,
  kRodCcRequest = 14,
};

// `next_header`: which semantic header follows.
enum NextHeader : uint8_t {
  kNone = 0,
  kRequestSmall = 1,
  kRequestMedium = 2,
  kRequestStandard = 3,
  kResponse = 4,
  kResponseData = 5,
  kResponseDataSmall = 6,
};

// `opcode` of a request.
enum RequestOpcode : uint8_t {
  kNoOp = 0x00,
  kWrite = 0x01,
  kRead = 0x02,
  kAtomic = 0x03,
  kFetchingAtomic = 0x04,
  kSend = 0x05,
  kRendezvousSend = 0x06,
  kDatagramSend = 0x07,
  kDeferrableSend = 0x08,
  kTaggedSend = 0x09,
  kRendezvousTaggedSend = 0x0A,
  kDeferrableTaggedSend = 0x0B,
  kDeferrableRestart = 0x0C,
  kTaggedSendAtomic = 0x0D,
  kTaggedSendFetchingAtomic = 0x0E,
  kMessageError = 0x0F,
};
constexpr uint8_t kRequestOpcodes = 0x10;

constexpr bool has_atomic_extension(uint8_t opcode) {
  return opcode == kAtomic || opcode == kFetchingAtomic || opcode == kTaggedSendAtomic ||
         opcode == kTaggedSendFetchingAtomic;
}
constexpr bool has_rendezvous_extension(uint8_t opcode) {
  return opcode == kRendezvousSend || opcode == kRendezvousTaggedSend;
}
constexpr bool is_deferrable(uint8_t opcode) {
  return opcode == kDeferrableSend || opcode == kDeferrableTaggedSend;
}
// Atomic operations with two operands, which stand behind the atomic extension.
constexpr bool is_compare_and_swap(uint8_t atomic_code) { return atomic_code >= 0x0D && atomic_code <= 0x12; }

// `cc_type` of an ACK_CC.
enum CcType : uint8_t { kNscc = 0, kCredit = 1 };

struct Request {
  static constexpr const char* kName = "UETRequest";
  uint8_t type = 2;         // 5 bits
  uint8_t next_header = 0;  // 4 bits
  bool retx = false;
  bool ackreq = false;
  int16_t clear_psn_offset = 0;
  uint32_t psn = 0;
  uint16_t spdcid = 0;
  uint16_t dpdcid = 0;
  bool operator==(const Request&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("type", 5, &Request::type),
                      wire::field("next_header", 4, &Request::next_header),
                      wire::plain("reserved1", 2, 0),
                      wire::field("retx", 1, &Request::retx),
                      wire::field("ackreq", 1, &Request::ackreq),
                      wire::plain("syn", 1, 0),
                      wire::plain("reserved2", 2, 0),
                      wire::field("clear_psn_offset", 16, &Request::clear_psn_offset),
                      wire::field("psn", 32, &Request::psn),
                      wire::field("spdcid", 16, &Request::spdcid),
                      wire::field("dpdcid", 16, &Request::dpdcid)};
  }
};

struct SynRequest {
  static constexpr const char* kName = "UETSynRequest";
  uint8_t type = 2;         // 5 bits
  uint8_t next_header = 0;  // 4 bits
  bool retx = false;
  bool ackreq = false;
  int16_t clear_psn_offset = 0;
  uint32_t psn = 0;
  uint16_t spdcid = 0;
  bool use_rsv_pdc = false;
  uint16_t psn_offset = 0;  // 12 bits
  bool operator==(const SynRequest&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("type", 5, &SynRequest::type),
                      wire::field("next_header", 4, &SynRequest::next_header),
                      wire::plain("reserved1", 2, 0),
                      wire::field("retx", 1, &SynRequest::retx),
                      wire::field("ackreq", 1, &SynRequest::ackreq),
                      wire::plain("syn", 1, 1),
                      wire::plain("reserved2", 2, 0),
                      wire::field("clear_psn_offset", 16, &SynRequest::clear_psn_offset),
                      wire::field("psn", 32, &SynRequest::psn),
                      wire::field("spdcid", 16, &SynRequest::spdcid),
                      wire::field("use_rsv_pdc", 1, &SynRequest::use_rsv_pdc),
                      wire::plain("reserved3", 3, 0),
                      wire::field("psn_offset", 12, &SynRequest::psn_offset)};
  }
};

struct RequestCcState {
  static constexpr const char* kName = "UETRequestCCState";
  uint8_t ccc_id = 0;
  uint32_t credit_target = 0;  // 24 bits
  bool operator==(const RequestCcState&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("ccc_id", 8, &RequestCcState::ccc_id),
                      wire::field("credit_target", 24, &RequestCcState::credit_target)};
  }
};

struct Ack {
  static constexpr const char* kName = "UETAck";
  uint8_t type = 7;         // 5 bits
  uint8_t next_header = 0;  // 4 bits
  bool m = false;
  bool retx = false;
  bool probe = false;
  uint8_t req = 0;  // 2 bits
  int16_t ack_psn_offset = 0;
  uint32_t cack_psn = 0;
  uint16_t spdcid = 0;
  uint16_t dpdcid = 0;
  bool operator==(const Ack&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("type", 5, &Ack::type),
                      wire::field("next_header", 4, &Ack::next_header),
                      wire::plain("reserved1", 1, 0),
                      wire::field("m", 1, &Ack::m),
                      wire::field("retx", 1, &Ack::retx),
                      wire::field("probe", 1, &Ack::probe),
                      wire::field("req", 2, &Ack::req),
                      wire::plain("reserved2", 1, 0),
                      wire::field("ack_psn_offset", 16, &Ack::ack_psn_offset),
                      wire::field("cack_psn", 32, &Ack::cack_psn),
                      wire::field("spdcid", 16, &Ack::spdcid),
                      wire::field("dpdcid", 16, &Ack::dpdcid)};
  }
};

struct AckCc {
  static constexpr const char* kName = "UETAckCC";
  uint8_t cc_type = 0;   // 4 bits
  uint8_t cc_flags = 0;  // 4 bits
  uint8_t mpr = 0;
  int16_t sack_psn_offset = 0;
  uint64_t sack_bitmap = 0;
  bool operator==(const AckCc&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("cc_type", 4, &AckCc::cc_type),
                      wire::field("cc_flags", 4, &AckCc::cc_flags), wire::field("mpr", 8, &AckCc::mpr),
                      wire::field("sack_psn_offset", 16, &AckCc::sack_psn_offset),
                      wire::field("sack_bitmap", 64, &AckCc::sack_bitmap)};
  }
};

struct NsccState {
  static constexpr const char* kName = "UETNSCCState";
  uint16_t service_time = 0;
  bool restore_cwnd = false;
  uint8_t rcv_cwnd_pend = 0;  // 7 bits
  uint32_t rcvd_bytes = 0;    // 24 bits
  uint16_t ooo_count = 0;
  bool operator==(const NsccState&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("service_time", 16, &NsccState::service_time),
                      wire::field("restore_cwnd", 1, &NsccState::restore_cwnd),
                      wire::field("rcv_cwnd_pend", 7, &NsccState::rcv_cwnd_pend),
                      wire::field("rcvd_bytes", 24, &NsccState::rcvd_bytes),
                      wire::field("ooo_count", 16, &NsccState::ooo_count)};
  }
};

struct CreditState {
  static constexpr const char* kName = "UETCreditState";
  uint32_t credit = 0;  // 24 bits
  uint16_t ooo_count = 0;
  bool operator==(const CreditState&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("credit", 24, &CreditState::credit), wire::plain("reserved", 24, 0),
                      wire::field("ooo_count", 16, &CreditState::ooo_count)};
  }
};

struct OtherCcState {
  static constexpr const char* kName = "UETOtherCCState";
  uint64_t state = 0;
  bool operator==(const OtherCcState&) const = default;

  static constexpr auto fields() { return std::tuple{wire::field("state", 64, &OtherCcState::state)}; }
};

struct CcxState {
  static constexpr const char* kName = "UETCCXState";
  uint64_t state1 = 0;
  uint64_t state2 = 0;
  bool operator==(const CcxState&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("state1", 64, &CcxState::state1),
                      wire::field("state2", 64, &CcxState::state2)};
  }
};

struct Nack {
  static constexpr const char* kName = "UETNack";
  uint8_t type = 10;  // 5 bits
  bool m = false;
  bool retx = false;
  bool nt = false;
  uint8_t nack_code = 0;
  uint8_t vendor_code = 0;
  uint32_t nack_psn = 0;
  uint16_t spdcid = 0;
  uint16_t dpdcid = 0;
  uint32_t nack_payload = 0;
  bool operator==(const Nack&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("type", 5, &Nack::type),
                      wire::plain("next_header", 4, 0),
                      wire::plain("reserved1", 1, 0),
                      wire::field("m", 1, &Nack::m),
                      wire::field("retx", 1, &Nack::retx),
                      wire::field("nt", 1, &Nack::nt),
                      wire::plain("reserved2", 3, 0),
                      wire::field("nack_code", 8, &Nack::nack_code),
                      wire::field("vendor_code", 8, &Nack::vendor_code),
                      wire::field("nack_psn", 32, &Nack::nack_psn),
                      wire::field("spdcid", 16, &Nack::spdcid),
                      wire::field("dpdcid", 16, &Nack::dpdcid),
                      wire::field("nack_payload", 32, &Nack::nack_payload)};
  }
};

struct NackCcx {
  static constexpr const char* kName = "UETNackCCX";
  uint8_t nccx_type = 0;  // 4 bits
  uint64_t state1 = 0;    // 60 bits
  uint64_t state2 = 0;
  bool operator==(const NackCcx&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("nccx_type", 4, &NackCcx::nccx_type),
                      wire::field("state1", 60, &NackCcx::state1),
                      wire::field("state2", 64, &NackCcx::state2)};
  }
};

struct Control {
  static constexpr const char* kName = "UETControl";
  uint8_t type = 11;     // 5 bits
  uint8_t ctl_type = 0;  // 4 bits
  bool isrod = false;
  bool retx = false;
  bool ackreq = false;
  uint16_t probe_opaque = 0;
  uint32_t psn = 0;
  uint16_t spdcid = 0;
  uint16_t dpdcid = 0;
  uint32_t ctl_payload = 0;
  bool operator==(const Control&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("type", 5, &Control::type),
                      wire::field("ctl_type", 4, &Control::ctl_type),
                      wire::plain("reserved1", 1, 0),
                      wire::field("isrod", 1, &Control::isrod),
                      wire::field("retx", 1, &Control::retx),
                      wire::field("ackreq", 1, &Control::ackreq),
                      wire::plain("syn", 1, 0),
                      wire::plain("reserved2", 2, 0),
                      wire::field("probe_opaque", 16, &Control::probe_opaque),
                      wire::field("psn", 32, &Control::psn),
                      wire::field("spdcid", 16, &Control::spdcid),
                      wire::field("dpdcid", 16, &Control::dpdcid),
                      wire::field("ctl_payload", 32, &Control::ctl_payload)};
  }
};

struct SynControl {
  static constexpr const char* kName = "UETSynControl";
  uint8_t type = 11;     // 5 bits
  uint8_t ctl_type = 0;  // 4 bits
  bool isrod = false;
  bool retx = false;
  bool ackreq = false;
  uint16_t probe_opaque = 0;
  uint32_t psn = 0;
  uint16_t spdcid = 0;
  bool use_rsv_pdc = false;
  uint16_t psn_offset = 0;  // 12 bits
  uint32_t ctl_payload = 0;
  bool operator==(const SynControl&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("type", 5, &SynControl::type),
                      wire::field("ctl_type", 4, &SynControl::ctl_type),
                      wire::plain("reserved1", 1, 0),
                      wire::field("isrod", 1, &SynControl::isrod),
                      wire::field("retx", 1, &SynControl::retx),
                      wire::field("ackreq", 1, &SynControl::ackreq),
                      wire::plain("syn", 1, 1),
                      wire::plain("reserved2", 2, 0),
                      wire::field("probe_opaque", 16, &SynControl::probe_opaque),
                      wire::field("psn", 32, &SynControl::psn),
                      wire::field("spdcid", 16, &SynControl::spdcid),
                      wire::field("use_rsv_pdc", 1, &SynControl::use_rsv_pdc),
                      wire::plain("reserved3", 3, 0),
                      wire::field("psn_offset", 12, &SynControl::psn_offset),
                      wire::field("ctl_payload", 32, &SynControl::ctl_payload)};
  }
};

struct Rudi {
  static constexpr const char* kName = "UETRudi";
  uint8_t type = 4;         // 5 bits
  uint8_t next_header = 0;  // 4 bits
  bool m = false;
  bool retx = false;
  uint32_t pkt_id = 0;
  bool operator==(const Rudi&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("type", 5, &Rudi::type), wire::field("next_header", 4, &Rudi::next_header),
                      wire::plain("reserved1", 1, 0),      wire::field("m", 1, &Rudi::m),
                      wire::field("retx", 1, &Rudi::retx), wire::plain("reserved2", 4, 0),
                      wire::plain("reserved3", 16, 0),     wire::field("pkt_id", 32, &Rudi::pkt_id)};
  }
};

struct Uud {
  static constexpr const char* kName = "UETUud";
  uint8_t type = 6;         // 5 bits
  uint8_t next_header = 0;  // 4 bits
  bool operator==(const Uud&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("type", 5, &Uud::type), wire::field("next_header", 4, &Uud::next_header),
                      wire::plain("flags", 7, 0), wire::plain("reserved", 16, 0)};
  }
};

struct Standard {
  static constexpr const char* kName = "UETStandard";
  uint8_t opcode = 0;  // 6 bits
  bool dc = false;
  bool ie = false;
  bool rel = false;
  bool hd = false;
  bool eom = true;
  uint16_t message_id = 0;
  uint8_t ri_generation = 0;
  uint32_t job_id = 0;          // 24 bits
  uint16_t pid_on_fep = 0;      // 12 bits
  uint16_t resource_index = 0;  // 12 bits
  uint64_t buffer_offset = 0;
  uint32_t initiator = 0;
  uint64_t match_bits = 0;
  uint64_t header_data = 0;
  uint32_t request_length = 0;
  bool operator==(const Standard&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::plain("reserved1", 2, 0),
                      wire::field("opcode", 6, &Standard::opcode),
                      wire::plain("version", 2, 0),
                      wire::field("dc", 1, &Standard::dc),
                      wire::field("ie", 1, &Standard::ie),
                      wire::field("rel", 1, &Standard::rel),
                      wire::field("hd", 1, &Standard::hd),
                      wire::field("eom", 1, &Standard::eom),
                      wire::plain("som", 1, 1),
                      wire::field("message_id", 16, &Standard::message_id),
                      wire::field("ri_generation", 8, &Standard::ri_generation),
                      wire::field("job_id", 24, &Standard::job_id),
                      wire::plain("reserved2", 4, 0),
                      wire::field("pid_on_fep", 12, &Standard::pid_on_fep),
                      wire::plain("reserved3", 4, 0),
                      wire::field("resource_index", 12, &Standard::resource_index),
                      wire::field("buffer_offset", 64, &Standard::buffer_offset),
                      wire::field("initiator", 32, &Standard::initiator),
                      wire::field("match_bits", 64, &Standard::match_bits),
                      wire::field("header_data", 64, &Standard::header_data),
                      wire::field("request_length", 32, &Standard::request_length)};
  }
};

struct Continuation {
  static constexpr const char* kName = "UETContinuation";
  uint8_t opcode = 0;  // 6 bits
  bool dc = false;
  bool ie = false;
  bool rel = false;
  bool hd = false;
  bool eom = true;
  uint16_t message_id = 0;
  uint8_t ri_generation = 0;
  uint32_t job_id = 0;          // 24 bits
  uint16_t pid_on_fep = 0;      // 12 bits
  uint16_t resource_index = 0;  // 12 bits
  uint64_t buffer_offset = 0;
  uint32_t initiator = 0;
  uint64_t match_bits = 0;
  uint16_t payload_length = 0;  // 14 bits
  uint32_t message_offset = 0;
  uint32_t request_length = 0;
  bool operator==(const Continuation&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::plain("reserved1", 2, 0),
                      wire::field("opcode", 6, &Continuation::opcode),
                      wire::plain("version", 2, 0),
                      wire::field("dc", 1, &Continuation::dc),
                      wire::field("ie", 1, &Continuation::ie),
                      wire::field("rel", 1, &Continuation::rel),
                      wire::field("hd", 1, &Continuation::hd),
                      wire::field("eom", 1, &Continuation::eom),
                      wire::plain("som", 1, 0),
                      wire::field("message_id", 16, &Continuation::message_id),
                      wire::field("ri_generation", 8, &Continuation::ri_generation),
                      wire::field("job_id", 24, &Continuation::job_id),
                      wire::plain("reserved2", 4, 0),
                      wire::field("pid_on_fep", 12, &Continuation::pid_on_fep),
                      wire::plain("reserved3", 4, 0),
                      wire::field("resource_index", 12, &Continuation::resource_index),
                      wire::field("buffer_offset", 64, &Continuation::buffer_offset),
                      wire::field("initiator", 32, &Continuation::initiator),
                      wire::field("match_bits", 64, &Continuation::match_bits),
                      wire::plain("reserved4", 18, 0),
                      wire::field("payload_length", 14, &Continuation::payload_length),
                      wire::field("message_offset", 32, &Continuation::message_offset),
                      wire::field("request_length", 32, &Continuation::request_length)};
  }
};

struct Deferrable {
  static constexpr const char* kName = "UETDeferrable";
  uint8_t opcode = 8;  // 6 bits
  bool dc = false;
  bool ie = false;
  bool rel = false;
  bool hd = false;
  bool eom = true;
  uint16_t message_id = 0;
  uint8_t ri_generation = 0;
  uint32_t job_id = 0;          // 24 bits
  uint16_t pid_on_fep = 0;      // 12 bits
  uint16_t resource_index = 0;  // 12 bits
  uint32_t initiator_token = 0;
  uint32_t target_token = 0;
  uint32_t initiator = 0;
  uint64_t match_bits = 0;
  uint64_t header_data = 0;
  uint32_t request_length = 0;
  bool operator==(const Deferrable&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::plain("reserved1", 2, 0),
                      wire::field("opcode", 6, &Deferrable::opcode),
                      wire::plain("version", 2, 0),
                      wire::field("dc", 1, &Deferrable::dc),
                      wire::field("ie", 1, &Deferrable::ie),
                      wire::field("rel", 1, &Deferrable::rel),
                      wire::field("hd", 1, &Deferrable::hd),
                      wire::field("eom", 1, &Deferrable::eom),
                      wire::plain("som", 1, 1),
                      wire::field("message_id", 16, &Deferrable::message_id),
                      wire::field("ri_generation", 8, &Deferrable::ri_generation),
                      wire::field("job_id", 24, &Deferrable::job_id),
                      wire::plain("reserved2", 4, 0),
                      wire::field("pid_on_fep", 12, &Deferrable::pid_on_fep),
                      wire::plain("reserved3", 4, 0),
                      wire::field("resource_index", 12, &Deferrable::resource_index),
                      wire::field("initiator_token", 32, &Deferrable::initiator_token),
                      wire::field("target_token", 32, &Deferrable::target_token),
                      wire::field("initiator", 32, &Deferrable::initiator),
                      wire::field("match_bits", 64, &Deferrable::match_bits),
                      wire::field("header_data", 64, &Deferrable::header_data),
                      wire::field("request_length", 32, &Deferrable::request_length)};
  }
};

struct DeferrableContinuation {
  static constexpr const char* kName = "UETDeferrableContinuation";
  uint8_t opcode = 8;  // 6 bits
  bool dc = false;
  bool ie = false;
  bool rel = false;
  bool hd = false;
  bool eom = true;
  uint16_t message_id = 0;
  uint8_t ri_generation = 0;
  uint32_t job_id = 0;          // 24 bits
  uint16_t pid_on_fep = 0;      // 12 bits
  uint16_t resource_index = 0;  // 12 bits
  uint32_t initiator_token = 0;
  uint32_t target_token = 0;
  uint32_t initiator = 0;
  uint64_t match_bits = 0;
  uint16_t payload_length = 0;  // 14 bits
  uint32_t message_offset = 0;
  uint32_t request_length = 0;
  bool operator==(const DeferrableContinuation&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::plain("reserved1", 2, 0),
                      wire::field("opcode", 6, &DeferrableContinuation::opcode),
                      wire::plain("version", 2, 0),
                      wire::field("dc", 1, &DeferrableContinuation::dc),
                      wire::field("ie", 1, &DeferrableContinuation::ie),
                      wire::field("rel", 1, &DeferrableContinuation::rel),
                      wire::field("hd", 1, &DeferrableContinuation::hd),
                      wire::field("eom", 1, &DeferrableContinuation::eom),
                      wire::plain("som", 1, 0),
                      wire::field("message_id", 16, &DeferrableContinuation::message_id),
                      wire::field("ri_generation", 8, &DeferrableContinuation::ri_generation),
                      wire::field("job_id", 24, &DeferrableContinuation::job_id),
                      wire::plain("reserved2", 4, 0),
                      wire::field("pid_on_fep", 12, &DeferrableContinuation::pid_on_fep),
                      wire::plain("reserved3", 4, 0),
                      wire::field("resource_index", 12, &DeferrableContinuation::resource_index),
                      wire::field("initiator_token", 32, &DeferrableContinuation::initiator_token),
                      wire::field("target_token", 32, &DeferrableContinuation::target_token),
                      wire::field("initiator", 32, &DeferrableContinuation::initiator),
                      wire::field("match_bits", 64, &DeferrableContinuation::match_bits),
                      wire::plain("reserved4", 18, 0),
                      wire::field("payload_length", 14, &DeferrableContinuation::payload_length),
                      wire::field("message_offset", 32, &DeferrableContinuation::message_offset),
                      wire::field("request_length", 32, &DeferrableContinuation::request_length)};
  }
};

struct Restart {
  static constexpr const char* kName = "UETRestart";
  uint8_t opcode = 12;  // 6 bits
  bool dc = false;
  bool ie = false;
  bool rel = false;
  bool hd = false;
  bool eom = true;
  bool som = true;
  uint16_t message_id = 0;
  uint8_t ri_generation = 0;
  uint32_t job_id = 0;          // 24 bits
  uint16_t pid_on_fep = 0;      // 12 bits
  uint16_t resource_index = 0;  // 12 bits
  uint64_t buffer_offset = 0;
  uint32_t initiator = 0;
  uint32_t initiator_token = 0;
  uint32_t target_token = 0;
  uint64_t header_data = 0;
  uint32_t request_length = 0;
  bool operator==(const Restart&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::plain("reserved1", 2, 0),
                      wire::field("opcode", 6, &Restart::opcode),
                      wire::plain("version", 2, 0),
                      wire::field("dc", 1, &Restart::dc),
                      wire::field("ie", 1, &Restart::ie),
                      wire::field("rel", 1, &Restart::rel),
                      wire::field("hd", 1, &Restart::hd),
                      wire::field("eom", 1, &Restart::eom),
                      wire::field("som", 1, &Restart::som),
                      wire::field("message_id", 16, &Restart::message_id),
                      wire::field("ri_generation", 8, &Restart::ri_generation),
                      wire::field("job_id", 24, &Restart::job_id),
                      wire::plain("reserved2", 4, 0),
                      wire::field("pid_on_fep", 12, &Restart::pid_on_fep),
                      wire::plain("reserved3", 4, 0),
                      wire::field("resource_index", 12, &Restart::resource_index),
                      wire::field("buffer_offset", 64, &Restart::buffer_offset),
                      wire::field("initiator", 32, &Restart::initiator),
                      wire::field("initiator_token", 32, &Restart::initiator_token),
                      wire::field("target_token", 32, &Restart::target_token),
                      wire::field("header_data", 64, &Restart::header_data),
                      wire::field("request_length", 32, &Restart::request_length)};
  }
};

struct Small {
  static constexpr const char* kName = "UETSmall";
  uint8_t opcode = 0;  // 6 bits
  bool dc = false;
  bool ie = false;
  bool rel = false;
  bool eom = true;
  bool som = true;
  uint16_t request_length = 0;  // 14 bits
  uint8_t ri_generation = 0;
  uint32_t job_id = 0;          // 24 bits
  uint16_t pid_on_fep = 0;      // 12 bits
  uint16_t resource_index = 0;  // 12 bits
  uint64_t buffer_offset = 0;
  bool operator==(const Small&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::plain("reserved1", 2, 0),
                      wire::field("opcode", 6, &Small::opcode),
                      wire::plain("version", 2, 0),
                      wire::field("dc", 1, &Small::dc),
                      wire::field("ie", 1, &Small::ie),
                      wire::field("rel", 1, &Small::rel),
                      wire::plain("hd", 1, 0),
                      wire::field("eom", 1, &Small::eom),
                      wire::field("som", 1, &Small::som),
                      wire::plain("reserved4", 2, 0),
                      wire::field("request_length", 14, &Small::request_length),
                      wire::field("ri_generation", 8, &Small::ri_generation),
                      wire::field("job_id", 24, &Small::job_id),
                      wire::plain("reserved2", 4, 0),
                      wire::field("pid_on_fep", 12, &Small::pid_on_fep),
                      wire::plain("reserved3", 4, 0),
                      wire::field("resource_index", 12, &Small::resource_index),
                      wire::field("buffer_offset", 64, &Small::buffer_offset)};
  }
};

struct Medium {
  static constexpr const char* kName = "UETMedium";
  uint8_t opcode = 0;  // 6 bits
  bool dc = false;
  bool ie = false;
  bool rel = false;
  bool hd = false;
  bool eom = true;
  bool som = true;
  uint16_t request_length = 0;  // 14 bits
  uint8_t ri_generation = 0;
  uint32_t job_id = 0;          // 24 bits
  uint16_t pid_on_fep = 0;      // 12 bits
  uint16_t resource_index = 0;  // 12 bits
  uint64_t buffer_offset = 0;
  uint32_t initiator = 0;
  uint64_t match_bits = 0;
  bool operator==(const Medium&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::plain("reserved1", 2, 0),
                      wire::field("opcode", 6, &Medium::opcode),
                      wire::plain("version", 2, 0),
                      wire::field("dc", 1, &Medium::dc),
                      wire::field("ie", 1, &Medium::ie),
                      wire::field("rel", 1, &Medium::rel),
                      wire::field("hd", 1, &Medium::hd),
                      wire::field("eom", 1, &Medium::eom),
                      wire::field("som", 1, &Medium::som),
                      wire::plain("reserved4", 2, 0),
                      wire::field("request_length", 14, &Medium::request_length),
                      wire::field("ri_generation", 8, &Medium::ri_generation),
                      wire::field("job_id", 24, &Medium::job_id),
                      wire::plain("reserved2", 4, 0),
                      wire::field("pid_on_fep", 12, &Medium::pid_on_fep),
                      wire::plain("reserved3", 4, 0),
                      wire::field("resource_index", 12, &Medium::resource_index),
                      wire::field("buffer_offset", 64, &Medium::buffer_offset),
                      wire::field("initiator", 32, &Medium::initiator),
                      wire::field("match_bits", 64, &Medium::match_bits)};
  }
};

struct Rendezvous {
  static constexpr const char* kName = "UETRendezvous";
  uint32_t eager_length = 0;
  uint8_t read_ri_generation = 0;
  uint16_t read_pid_on_fep = 0;      // 12 bits
  uint16_t read_resource_index = 0;  // 12 bits
  uint64_t read_offset = 0;
  uint64_t read_mem_key = 0;
  bool operator==(const Rendezvous&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("eager_length", 32, &Rendezvous::eager_length),
                      wire::field("read_ri_generation", 8, &Rendezvous::read_ri_generation),
                      wire::field("read_pid_on_fep", 12, &Rendezvous::read_pid_on_fep),
                      wire::field("read_resource_index", 12, &Rendezvous::read_resource_index),
                      wire::field("read_offset", 64, &Rendezvous::read_offset),
                      wire::field("read_mem_key", 64, &Rendezvous::read_mem_key)};
  }
};

struct Atomic {
  static constexpr const char* kName = "UETAtomic";
  uint8_t atomic_code = 0;
  uint8_t atomic_datatype = 0;
  uint8_t semantic_control = 0;
  bool operator==(const Atomic&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("atomic_code", 8, &Atomic::atomic_code),
                      wire::field("atomic_datatype", 8, &Atomic::atomic_datatype),
                      wire::field("semantic_control", 8, &Atomic::semantic_control),
                      wire::plain("reserved", 8, 0)};
  }
};

struct CompareSwap {
  static constexpr const char* kName = "UETCompareSwap";
  uint64_t compare_high = 0;
  uint64_t compare_low = 0;
  uint64_t swap_high = 0;
  uint64_t swap_low = 0;
  bool operator==(const CompareSwap&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("compare_high", 64, &CompareSwap::compare_high),
                      wire::field("compare_low", 64, &CompareSwap::compare_low),
                      wire::field("swap_high", 64, &CompareSwap::swap_high),
                      wire::field("swap_low", 64, &CompareSwap::swap_low)};
  }
};

struct Response {
  static constexpr const char* kName = "UETResponse";
  uint8_t list = 0;         // 2 bits
  uint8_t opcode = 0;       // 6 bits
  uint8_t return_code = 0;  // 6 bits
  uint16_t message_id = 0;
  uint8_t ri_generation = 0;
  uint32_t job_id = 0;  // 24 bits
  uint32_t modified_length = 0;
  bool operator==(const Response&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("list", 2, &Response::list),
                      wire::field("opcode", 6, &Response::opcode),
                      wire::plain("version", 2, 0),
                      wire::field("return_code", 6, &Response::return_code),
                      wire::field("message_id", 16, &Response::message_id),
                      wire::field("ri_generation", 8, &Response::ri_generation),
                      wire::field("job_id", 24, &Response::job_id),
                      wire::field("modified_length", 32, &Response::modified_length)};
  }
};

struct ResponseData {
  static constexpr const char* kName = "UETResponseData";
  uint8_t list = 0;         // 2 bits
  uint8_t opcode = 0;       // 6 bits
  uint8_t return_code = 0;  // 6 bits
  uint16_t response_message_id = 0;
  uint32_t job_id = 0;  // 24 bits
  uint16_t read_request_message_id = 0;
  uint16_t payload_length = 0;  // 14 bits
  uint32_t modified_length = 0;
  uint32_t message_offset = 0;
  bool operator==(const ResponseData&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("list", 2, &ResponseData::list),
                      wire::field("opcode", 6, &ResponseData::opcode),
                      wire::plain("version", 2, 0),
                      wire::field("return_code", 6, &ResponseData::return_code),
                      wire::field("response_message_id", 16, &ResponseData::response_message_id),
                      wire::plain("reserved1", 8, 0),
                      wire::field("job_id", 24, &ResponseData::job_id),
                      wire::field("read_request_message_id", 16, &ResponseData::read_request_message_id),
                      wire::plain("reserved2", 2, 0),
                      wire::field("payload_length", 14, &ResponseData::payload_length),
                      wire::field("modified_length", 32, &ResponseData::modified_length),
                      wire::field("message_offset", 32, &ResponseData::message_offset)};
  }
};

struct SmallResponseData {
  static constexpr const char* kName = "UETSmallResponseData";
  uint8_t list = 0;             // 2 bits
  uint8_t opcode = 0;           // 6 bits
  uint8_t return_code = 0;      // 6 bits
  uint16_t payload_length = 0;  // 14 bits
  uint32_t job_id = 0;          // 24 bits
  uint32_t original_request_psn = 0;
  bool operator==(const SmallResponseData&) const = default;

  static constexpr auto fields() {
    return std::tuple{wire::field("list", 2, &SmallResponseData::list),
                      wire::field("opcode", 6, &SmallResponseData::opcode),
                      wire::plain("version", 2, 0),
                      wire::field("return_code", 6, &SmallResponseData::return_code),
                      wire::plain("reserved1", 2, 0),
                      wire::field("payload_length", 14, &SmallResponseData::payload_length),
                      wire::plain("reserved2", 8, 0),
                      wire::field("job_id", 24, &SmallResponseData::job_id),
                      wire::field("original_request_psn", 32, &SmallResponseData::original_request_psn)};
  }
};

// Any of them.
using Header = std::variant<Request, SynRequest, RequestCcState, Ack, AckCc, NsccState, CreditState,
                            OtherCcState, CcxState, Nack, NackCcx, Control, SynControl, Rudi, Uud, Standard,
                            Continuation, Deferrable, DeferrableContinuation, Restart, Small, Medium,
                            Rendezvous, Atomic, CompareSwap, Response, ResponseData, SmallResponseData>;

}  // namespace weft::uet
