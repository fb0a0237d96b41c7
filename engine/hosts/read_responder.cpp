#include "hosts/read_responder.hpp"

#include <algorithm>

#include "hosts/rc_request.hpp"

namespace weft {

ReadResponder::ReadResponder(const RcConfig& config, RcCounters& counters, PacketPool& pool,
                             const MemoryRegistry& memory, SendGate& gate, PathChoice* path_choice,
                             const PsnMap& psn_map)
    : config_(config),
      counters_(counters),
      pool_(pool),
      memory_(memory),
      gate_(gate),
      path_choice_(path_choice),
      psn_map_(psn_map),
      selective_repeat_(config.retransmission == Retransmission::kSelectiveRepeat),
      headers_(data_headers(config)),
      template_(headers_),
      sent_(config, gate, path_choice) {
  headers_.bth.opcode = roce::kRcReadResponseOnly;
  largest_frame_bytes_ = roce::frame_bytes(headers_, config.path_mtu_bytes);
}

uint64_t ReadResponder::packets_of(const roce::ParsedPacket& request) const {
  return packets_of_payload(request.reth.length_bytes, config_.path_mtu_bytes);
}

uint8_t ReadResponder::accept(TimePs now, uint64_t psn, const roce::ParsedPacket& request, uint32_t msn) {
  if (!make_room(now, request)) return roce::kSyndromeNakInvalidRequest;
  if (const uint8_t refusal = grant(request); refusal != roce::kSyndromeAck) return refusal;
  Read read{.first_psn = psn,
            .packets = packets_of(request),
            .first_response = end_,
            .address = request.reth.virtual_address,
            .length_bytes = request.reth.length_bytes,
            .rkey = request.reth.rkey,
            .msn = msn,
            .as_length = request.as_length,
            .traffic_kind = request.traffic_kind};
  if (request.bth.opcode != roce::kRcReadRequest) {
    read.is_atomic = true;
    const std::optional<uint64_t> original = do_atomic(request);
    if (!original) return roce::kSyndromeNakRemoteOperation;
    read.original = *original;
    results_.push({psn, read.original, msn});
  }
  reads_.push_back(read);
  end_ = read.end_response();
  return roce::kSyndromeAck;
}

// Whether the request is well formed and its memory open to it.
uint8_t ReadResponder::grant(const roce::ParsedPacket& request) const {
  const bool is_atomic = request.bth.opcode != roce::kRcReadRequest;
  if ((config_.remote_access & (is_atomic ? kRemoteAtomic : kRemoteRead)) == 0)
    return roce::kSyndromeNakInvalidRequest;
  if (is_atomic) {
    const roce::AtomicEth& atomic = request.atomic_eth;
    if (atomic.virtual_address % kAtomicBytes != 0) return roce::kSyndromeNakInvalidRequest;
    return memory_.find(atomic.rkey, atomic.virtual_address, kAtomicBytes, kRemoteAtomic) == nullptr
               ? roce::kSyndromeNakRemoteAccess
               : roce::kSyndromeAck;
  }
  const roce::Reth& reth = request.reth;
  if (reth.length_bytes > kMaxMessageBytes || packets_of(request) > kMaxReadPackets)
    return roce::kSyndromeNakInvalidRequest;
  // A READ of no bytes touches no memory, so its rkey is not looked at (section 9.7.4.1.5).
  if (reth.length_bytes == 0) return roce::kSyndromeAck;
  return memory_.find(reth.rkey, reth.virtual_address, reth.length_bytes, kRemoteRead) == nullptr
             ? roce::kSyndromeNakRemoteAccess
             : roce::kSyndromeAck;
}

// A sink holds 0. The value is in the host's byte order.
std::optional<uint64_t> ReadResponder::do_atomic(const roce::ParsedPacket& request) const {
  const roce::AtomicEth& atomic = request.atomic_eth;
  const MemoryRegion& region =
      *memory_.find(atomic.rkey, atomic.virtual_address, kAtomicBytes, kRemoteAtomic);
  uint64_t original = 0;
  auto* const found = reinterpret_cast<uint8_t*>(&original);
  if (!load(region, atomic.virtual_address, found, kAtomicBytes)) return std::nullopt;
  uint64_t value = original;
  if (request.bth.opcode == roce::kRcFetchAdd) {
    value += atomic.swap_or_add;
  } else if (original == atomic.compare) {
    value = atomic.swap_or_add;
  }
  const auto* const written = reinterpret_cast<const uint8_t*>(&value);
  if (!store(region, atomic.virtual_address, written, kAtomicBytes)) return std::nullopt;
  return original;
}

// A requester that keeps to its limit has all of the oldest READ when it asks for one too many.
bool ReadResponder::make_room(TimePs now, const roce::ParsedPacket& request) {
  if (reads_.size() < config_.max_outstanding_reads) return true;
  const uint64_t end = reads_.front().end_response();
  if (next_ < end) return false;
  if (end > sent_.accepted()) sent_.acknowledge(now, end, std::nullopt, request);
  reads_.pop_front();
  return true;
}

const ReadResponder::Read& ReadResponder::read_of(uint64_t response) const {
  return *std::partition_point(reads_.begin(), reads_.end(),
                               [&](const Read& read) { return read.end_response() <= response; });
}

// Responses with PSNs below this one; at least those that are known to have arrived.
uint64_t ReadResponder::responses_before(uint64_t psn) const {
  uint64_t end = sent_.accepted();
  for (const Read& read : reads_) {
    if (psn <= read.first_psn) break;
    end = std::max(end, read.first_response + std::min(read.responses(), psn - read.first_psn));
  }
  return end;
}

void ReadResponder::repeat(TimePs now, uint64_t psn, const roce::ParsedPacket& request) {
  const roce::Reth& reth = request.reth;
  for (const Read& read : reads_) {
    if (psn < read.first_psn || psn >= read.first_psn + read.packets) continue;
    const bool asks_for_result = request.bth.opcode != roce::kRcReadRequest;
    if (read.is_atomic != asks_for_result) return;
    if (read.is_atomic) return results_.push({psn, read.original, read.msn});
    const uint64_t index = psn - read.first_psn;
    const uint64_t offset = index * config_.path_mtu_bytes;
    // What does not continue that READ asks for nothing that was granted.
    const bool continues = reth.rkey == read.rkey && reth.virtual_address == read.address + offset &&
                           reth.length_bytes <= read.length_bytes - offset;
    const uint64_t response = read.first_response + index;
    if (!continues || response < sent_.accepted()) return;
    return response < next_ ? go_back(now, response) : give_up_overdue(now);
  }
}

// This response has not arrived. Of those before it, others may be missing, too: their READs are asked for
// again on their own.
void ReadResponder::go_back(TimePs now, uint64_t response) {
  CongestionControl& congestion_control = gate_.congestion_control();
  if (selective_repeat_) {
    if (path_choice_ != nullptr) path_choice_->on_timeout(now);
    const uint64_t lost_bytes = sent_.take_overdue_for_lost(now, response, next_, now - timeout_ps());
    congestion_control.on_lost_bytes(now, true, lost_bytes);
  } else {
    congestion_control.on_lost_bytes(now, false, sent_.packet(response).frame_bytes);
    sent_.go_back(now, response, next_);
    next_ = response;
    restarted_at_ = response;
  }
  follow_rate(now);
}

// The requester waits for a response that has not been sent. What is long out may have arrived with its
// answer lost, and must not keep the window closed.
void ReadResponder::give_up_overdue(TimePs now) {
  if (selective_repeat_) {
    sent_.take_overdue_for_lost(now, sent_.accepted(), next_, now - timeout_ps());
  } else {
    sent_.release_overdue(next_, now - timeout_ps());
  }
}

TimePs ReadResponder::timeout_ps() const {
  return std::max(config_.retransmission_timeout_ps, sent_.round_trips().timeout_ps());
}

void ReadResponder::on_acknowledgement(TimePs now, const roce::ParsedPacket& packet) {
  if (reads_.empty()) {
    ++counters_.invalid_acknowledgements;
    return;
  }
  const uint64_t near = reads_.back().first_psn;
  const int64_t psn = psn_map_.sequence(packet.bth.psn, near);
  const int64_t answered_psn = psn_map_.sequence(packet.aeth.msn, near);
  if (psn < -1 || answered_psn < 0) {
    ++counters_.invalid_acknowledgements;
    return;
  }
  const uint64_t end = responses_before(static_cast<uint64_t>(psn + 1));
  const uint64_t answered_end = responses_before(static_cast<uint64_t>(answered_psn) + 1);
  if (end > sent_.highest() || answered_end > sent_.highest()) {
    ++counters_.invalid_acknowledgements;
    return;
  }
  ++counters_.acknowledgements_received;
  std::optional<uint64_t> answered;
  if (answered_end > sent_.accepted()) answered = answered_end - 1;
  const bool covers_more = end > sent_.accepted();
  if (!sent_.acknowledge(now, end, answered, packet) && !covers_more) ++counters_.stale_acknowledgements;
  next_ = std::max(next_, sent_.accepted());
  if (selective_repeat_) detect_losses(now);
  follow_rate(now);
}

void ReadResponder::detect_losses(TimePs now) {
  if (const uint64_t lost_bytes = sent_.detect_losses(now); lost_bytes > 0)
    gate_.congestion_control().on_lost_bytes(now, false, lost_bytes);
}

void ReadResponder::on_deadline(TimePs now) {
  if (now >= wait_until_ps_) wait_until_ps_ = kNever;  // the NIC pulls next
  if (now >= sent_.loss_deadline_ps()) detect_losses(now);
}

void ReadResponder::follow_rate(TimePs now) {
  gate_.follow_rate();
  if (wait_until_ps_ == kNever) return;
  const TimePs earliest = gate_.next_send_ps();
  wait_until_ps_ = earliest <= now ? kNever : earliest;  // the NIC pulls next
}

void ReadResponder::stop() {
  reads_.clear();
  results_ = {};
  next_ = end_;
  wait_until_ps_ = kNever;
  sent_.release();
}

std::optional<uint64_t> ReadResponder::response_to_send() {
  if (sent_.has_lost()) {
    if (const std::optional<uint64_t> lost = sent_.next_lost()) return lost;
  }
  if (next_ >= end_) return std::nullopt;
  return next_;
}

bool ReadResponder::may_have_data() const {
  if (failed_psn_ || (next_ >= end_ && !sent_.has_lost())) return false;
  return wait_until_ps_ != kNever || sent_.has_lost() || gate_.has_room(0);
}

size_t ReadResponder::payload_bytes(const Read& read, uint64_t response) const {
  const uint64_t offset = (response - read.first_response) * config_.path_mtu_bytes;
  return std::min<uint64_t>(config_.path_mtu_bytes, read.length_bytes - offset);
}

PacketPtr ReadResponder::pull(TimePs now) {
  wait_until_ps_ = kNever;
  const std::optional<uint64_t> response = failed_psn_ ? std::nullopt : response_to_send();
  if (!response) return nullptr;
  if (now < gate_.next_send_ps()) {
    wait_until_ps_ = gate_.next_send_ps();
    return nullptr;
  }
  const Read& read = read_of(*response);
  const size_t payload = payload_bytes(read, *response);
  set_headers(now, read, *response);
  const size_t frame_bytes = roce::frame_bytes(headers_, payload);
  if (!gate_.has_room(frame_bytes)) return nullptr;
  const bool ends_read = *response + 1 == read.end_response();
  headers_.bth.acknowledge_request =
      ends_read || *response != next_ ||
      sent_.should_ask(*response, gate_.in_flight_bytes() + frame_bytes, largest_frame_bytes_);
  if (headers_.bth.acknowledge_request) sent_.ask(*response);
  PacketPtr packet = build(read, *response, payload);
  if (packet == nullptr) return nullptr;
  packet->set_traffic_kind(read.traffic_kind);
  ++counters_.data_packets_sent;
  counters_.data_bytes_sent += payload;
  last_pulled_ = {payload, *response == read.first_response};
  const auto entropy = static_cast<uint16_t>(headers_.source_udp_port & kEntropyMask);
  if (sent_.record(now, *response, static_cast<uint16_t>(frame_bytes), entropy))
    ++counters_.retransmitted_packets;
  if (*response == next_) ++next_;
  return packet;
}

// With selective repeat every response is one of its own, which its PSN alone puts in its place.
void ReadResponder::set_headers(TimePs now, const Read& read, uint64_t response) {
  const bool first = response == read.first_response || response == restarted_at_;
  const bool last = response + 1 == read.end_response();
  headers_.bth.psn = psn_map_.psn(read.first_psn + (response - read.first_response));
  headers_.aeth = {roce::kSyndromeAckNoCredits, read.msn};
  if (selective_repeat_ || (first && last)) {
    headers_.bth.opcode = roce::kRcReadResponseOnly;
  } else if (first) {
    headers_.bth.opcode = roce::kRcReadResponseFirst;
  } else {
    headers_.bth.opcode = last ? roce::kRcReadResponseLast : roce::kRcReadResponseMiddle;
  }
  if (path_choice_ == nullptr) return;
  const bool retransmission = response < sent_.highest();
  const uint16_t entropy = path_choice_->entropy(now, response, retransmission) & kEntropyMask;
  set_entropy(headers_, entropy);
}

// The region is looked up for each packet, because it may have been deregistered meanwhile.
PacketPtr ReadResponder::build(const Read& read, uint64_t response, size_t payload_bytes) {
  const uint64_t address = read.address + (response - read.first_response) * config_.path_mtu_bytes;
  const uint8_t* data = nullptr;
  if (payload_bytes > 0) {
    const MemoryRegion* region = memory_.find(read.rkey, address, payload_bytes, kRemoteRead);
    if (region == nullptr) return refuse(read, response, roce::kSyndromeNakRemoteAccess);
    if (region->data != nullptr) {
      data = region->data + (address - region->virtual_address);
    } else if (region->foreign != nullptr && !read.as_length) {
      payload_.resize(payload_bytes);
      data = payload_.data();
      if (!load(*region, address, payload_.data(), payload_bytes))
        return refuse(read, response, roce::kSyndromeNakRemoteOperation);
    }
  }
  return read.as_length ? template_.build_as_length(pool_, headers_, payload_bytes)
                        : template_.build(pool_, headers_, data, payload_bytes);
}

PacketPtr ReadResponder::refuse(const Read& read, uint64_t response, uint8_t syndrome) {
  failed_psn_ = read.first_psn + (response - read.first_response);
  failed_syndrome_ = syndrome;
  return nullptr;
}

}  // namespace weft
