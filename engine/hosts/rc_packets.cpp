// The packets of a requester: their payload, headers and path.
#include <algorithm>

#include "hosts/message_shape.hpp"
#include "hosts/rc_requester.hpp"
#include "hosts/switch_notification.hpp"

namespace weft {
namespace {

constexpr size_t kCongestionByteOfBth = 4;  // FECN, BECN and six reserved bits

}  // namespace

size_t RcRequester::packet_payload_bytes(const Outstanding& request, uint64_t sequence) const {
  if (is_read(request.kind)) return 0;
  const uint64_t offset = (sequence - request.first_sequence) * config_.path_mtu_bytes;
  return std::min<uint64_t>(config_.path_mtu_bytes, request.wire_bytes - offset);
}

uint64_t RcRequester::packet_data_offset(const Outstanding& request, uint64_t sequence) const {
  const uint64_t offset = (sequence - request.first_sequence) * config_.path_mtu_bytes;
  if (config_.line_format == LineFormat::kNone || request.length_bytes == 0) [[likely]]
    return offset;
  return std::min(data_offset(config_.line_format, offset), request.length_bytes - 1);
}

// With selective repeat every packet says where its payload goes, so that it can be placed whenever it
// arrives: a WRITE of its own, the solicited event bit marking the last one of a message.
void RcRequester::set_packet_headers(const Outstanding& request, uint64_t sequence, uint32_t packets,
                                     size_t payload_bytes) {
  const bool first = sequence == request.first_sequence;
  const bool last = sequence + packets == request.end_sequence;
  const bool immediate = request.immediate.has_value();
  if (is_read(request.kind)) return set_read_headers(request, request.first_psn, 0);
  headers_.bth.psn = psn_map_.psn(request.psn_of(sequence));
  headers_.immediate = request.immediate.value_or(0);
  if (selective_repeat_) {
    const uint64_t offset = packet_data_offset(request, sequence);
    headers_.bth.opcode = opcode_of(CompletionKind::kWrite, true, true, last && immediate);
    headers_.bth.solicited = last;
    headers_.reth = {request.remote_address + offset, request.rkey, static_cast<uint32_t>(payload_bytes)};
  } else {
    headers_.bth.opcode = opcode_of(request.kind, first, last, immediate);
    headers_.bth.solicited = last && is_solicited(request);
    headers_.reth = {request.remote_address, request.rkey, static_cast<uint32_t>(request.wire_bytes)};
  }
}

void RcRequester::set_read_headers(const Request& request, uint64_t psn, uint64_t offset_bytes) {
  headers_.bth.psn = psn_map_.psn(psn);
  headers_.bth.solicited = false;
  if (is_atomic(request.kind)) {
    const bool swaps = request.kind == CompletionKind::kCompareSwap;
    headers_.bth.opcode = swaps ? roce::kRcCompareSwap : roce::kRcFetchAdd;
    headers_.atomic_eth = {request.remote_address, request.rkey, request.swap_or_add, request.compare};
    return;
  }
  headers_.bth.opcode = roce::kRcReadRequest;
  headers_.reth = {request.remote_address + offset_bytes, request.rkey,
                   static_cast<uint32_t>(request.length_bytes - offset_bytes)};
}

void RcRequester::set_path(TimePs now, uint64_t sequence, bool retransmission) {
  set_entropy(headers_, path_choice_->entropy(now, sequence, retransmission) & kEntropyMask);
}

// Bolt's flags FIRST and LAST (NSDI 2023, section 3.2), in bits of the BTH that the iCRC does not cover. As
// in the authors' simulator: FIRST until a packet of the flow is acknowledged, LAST if the acknowledgement
// will let no new one out. A flow is what is posted without a pause; a packet that is sent again was counted
// once.
void RcRequester::mark_end_of_flow(Packet& packet, uint64_t sequence) const {
  if (sequence < sent_.highest()) return;
  const uint64_t window_packets = std::max<uint64_t>(1, gate_.window_bytes() / largest_frame_bytes_);
  const bool last = end_sequence_ - sequence <= window_packets;
  const bool first = sent_.accepted() <= flow_first_sequence_;
  const size_t bth_at = roce::kEthernetBytes + (headers_.telemetry ? roce::kIntShimBytes : 0) +
                        (headers_.source_ip.is_ipv6 ? roce::kIpv6Bytes : roce::kIpv4Bytes) + roce::kUdpBytes;
  packet.data()[bth_at + kCongestionByteOfBth] |= static_cast<uint8_t>(
      (first ? switch_notification::kFirstWindow : 0) | (last ? switch_notification::kLastWindow : 0));
}

PacketPtr RcRequester::build(const Outstanding& request, uint64_t sequence, size_t payload_bytes) {
  if (request.as_length) return template_.build_as_length(pool_, headers_, payload_bytes);
  const uint64_t offset = (sequence - request.first_sequence) * config_.path_mtu_bytes;
  if (config_.line_format != LineFormat::kNone && payload_bytes > 0) [[unlikely]] {
    payload_.resize(payload_bytes);
    write_lines(config_.line_format, request.data, request.length_bytes, offset, payload_.data(),
                payload_bytes);
    return template_.build(pool_, headers_, payload_.data(), payload_bytes);
  }
  if (request.data == nullptr) return build_without_data(request, offset, payload_bytes);
  return template_.build(pool_, headers_, request.data + offset, payload_bytes);
}

// Of zeros, of a READ's request, or from foreign memory.
PacketPtr RcRequester::build_without_data(const Outstanding& request, uint64_t offset, size_t payload_bytes) {
  if (request.foreign == nullptr || payload_bytes == 0)
    return template_.build(pool_, headers_, nullptr, payload_bytes);
  payload_.resize(payload_bytes);
  if (!request.foreign->read(offset, payload_.data(), payload_bytes)) throw UnreadableMemory();
  return template_.build(pool_, headers_, payload_.data(), payload_bytes);
}

}  // namespace weft
