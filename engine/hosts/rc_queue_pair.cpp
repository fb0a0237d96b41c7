#include "hosts/rc_queue_pair.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "memory/prefetch.hpp"

namespace weft {
namespace {

const RcConfig& checked(const RcConfig& config) {
  check(config);
  if (config.retransmission == Retransmission::kSelectiveRepeat && config.receive_for_immediate) {
    throw std::invalid_argument("receive_for_immediate does not go with selective repeat");
  }
  if (config.retransmission == Retransmission::kSelectiveRepeat && config.end_to_end_credits) {
    throw std::invalid_argument("end_to_end_credits does not go with selective repeat");
  }
  return config;
}

bool is_read_response(uint8_t opcode) {
  return (opcode >= roce::kRcReadResponseFirst && opcode <= roce::kRcReadResponseOnly) ||
         opcode == roce::kRcAtomicAcknowledge;
}

bool is_request(uint8_t opcode) {
  return opcode <= roce::kRcReadRequest || opcode == roce::kRcCompareSwap || opcode == roce::kRcFetchAdd ||
         opcode == roce::kRcSendLastInvalidate || opcode == roce::kRcSendOnlyInvalidate;
}

}  // namespace

RcQueuePair::RcQueuePair(const RcConfig& config, PacketPool& pool, const MemoryRegistry& memory,
                         std::shared_ptr<CongestionControl> congestion_control,
                         std::shared_ptr<PathChoice> path_choice, CompletionHandler* handler,
                         std::shared_ptr<SharedReceives> shared_receives)
    : WritingQueuePair(checked(config), std::move(congestion_control)),
      path_choice_(std::move(path_choice)),
      requester_(config_, counters_, pool, gate_, path_choice_.get(), handler),
      responder_(config_, counters_, pool, memory, gate_, path_choice_.get(), handler, shared_receives) {
  // What others may take meanwhile cannot be promised (section 9.7.7.2.5).
  if (shared_receives != nullptr && config_.end_to_end_credits)
    throw std::invalid_argument("end_to_end_credits does not go with a shared receive queue");
}

void RcQueuePair::fetch(PrefetchStep step) const {
  if (step == PrefetchStep::kObject) {
    prefetch<CacheLevel::kSecond>(this, sizeof(RcQueuePair));
    return;
  }
  constexpr size_t kUsualBytes = 128;
  prefetch<CacheLevel::kSecond>(congestion_control_.get(), kUsualBytes);
  if (path_choice_ != nullptr) prefetch<CacheLevel::kSecond>(path_choice_.get(), kUsualBytes);
  requester_.fetch();
}

void RcQueuePair::post_receive(TimePs now, PostedReceive receive) {
  if (responder_.post_receive(now, std::move(receive))) wake();
}

std::vector<RcRequest> RcQueuePair::withdraw(TimePs now) {
  std::vector<RcRequest> left = requester_.withdraw();
  join_errors(now);
  return left;
}

void RcQueuePair::on_packet(TimePs now, const roce::ParsedPacket& packet) {
  const uint8_t opcode = packet.bth.opcode;
  if (packet.source_ip != config_.destination_ip) {
    ++counters_.wrong_source;
  } else if (packet.bth.partition_key != roce::kDefaultPartitionKey) {
    ++counters_.wrong_partition_key;
  } else if (opcode == roce::kRcAcknowledge) {
    requester_.on_acknowledgement(now, packet);
  } else if (opcode == roce::kCnp) {
    requester_.on_congestion_notification(now);
  } else if (is_read_response(opcode)) {
    responder_.note_congestion(now, packet);
    requester_.on_read_response(now, packet);
  } else if (opcode == roce::kReadAcknowledge && responder_.reads() != nullptr) {
    responder_.reads()->on_acknowledgement(now, packet);
    requester_.note_telemetry(now, packet);
  } else if (is_request(opcode)) {
    responder_.on_request(now, packet);
  } else {
    ++counters_.unexpected_opcode;
  }
  follow_rate(now);
  join_errors(now);
}

void RcQueuePair::on_switch_notification(TimePs now, const switch_notification::Header& header) {
  requester_.on_switch_notification(now, header);
  follow_rate(now);
  join_errors(now);
}

PacketPtr RcQueuePair::pull_control(TimePs now) {
  PacketPtr packet = responder_.pull_control(now);
  if (packet == nullptr) packet = requester_.pull_control();
  if (packet != nullptr) packet->set_traffic_kind(Packet::kControlTraffic);
  return packet;
}

// Requests and responses take turns.
PacketPtr RcQueuePair::pull(TimePs now) {
  if (!may_have_responses()) [[likely]]
    return pull_request(now);
  const bool request_first = response_pulled_;
  if (PacketPtr packet = request_first ? pull_request(now) : pull_response(now)) return packet;
  return request_first ? pull_response(now) : pull_request(now);
}

PacketPtr RcQueuePair::pull_request(TimePs now) {
  response_pulled_ = false;
  try {
    return requester_.pull(now);
  } catch (const UnreadableMemory&) {
    requester_.on_unreadable(now);
    return nullptr;
  }
}

PacketPtr RcQueuePair::pull_response(TimePs now) {
  response_pulled_ = true;
  return responder_.pull_response(now);
}

TimePs RcQueuePair::next_deadline() const {
  return std::min(requester_.next_deadline(), responder_.next_deadline());
}

void RcQueuePair::on_deadline(TimePs now) {
  requester_.on_deadline(now);
  responder_.on_deadline(now);
  follow_rate(now);
  join_errors(now);
}

// Requests and responses share a rate, which an event of either may change.
void RcQueuePair::follow_rate(TimePs now) {
  if (responder_.reads() == nullptr) return;
  requester_.renew_wait(now);
  responder_.reads()->follow_rate(now);
}

void RcQueuePair::begin_sending(const Sending& sending) {
  if (requester_.has_begun()) throw std::logic_error("requests have been posted before");
  RcConfig changed = config_;
  changed.initial_psn = sending.initial_psn;
  changed.retransmission_timeout_ps = sending.retransmission_timeout_ps;
  changed.retry_limit = sending.retry_limit;
  changed.rnr_retry_limit = sending.rnr_retry_limit;
  changed.max_reads_sent = sending.max_reads;
  check(changed);
  config_ = changed;
  requester_.begin(changed.initial_psn);
}

void RcQueuePair::flush(TimePs now) {
  requester_.flush(now);
  responder_.flush(now);
  wake();
}

std::vector<uint8_t> RcQueuePair::data_frame() const {
  roce::RoceHeaders headers = data_headers(config_);
  headers.bth.opcode = roce::kRcWriteMiddle;
  std::vector<uint8_t> frame(roce::frame_bytes(headers, 0));
  roce::write_frame(headers, nullptr, 0, frame.data());
  return frame;
}

// A queue pair fails as a whole (section 10.3.1, error state).
void RcQueuePair::join_errors(TimePs now) {
  if (requester_.error() != CompletionStatus::kSuccess) responder_.flush(now);
  if (responder_.error() != CompletionStatus::kSuccess) requester_.flush(now);
}

}  // namespace weft
