#include "hosts/uc_queue_pair.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace weft {
namespace {

const RcConfig& checked_for_uc(const RcConfig& config) {
  check(config);
  const char* const refused = config.telemetry                          ? "telemetry"
                              : config.line_format != LineFormat::kNone ? "line_format"
                              : config.end_to_end_credits               ? "end_to_end_credits"
                                                                        : nullptr;
  if (refused != nullptr)
    throw std::invalid_argument(std::string(refused) + " does not go with UC, which answers nothing");
  return config;
}

bool is_uc_request(uint8_t opcode) {
  return opcode >= roce::kUcOpcodes && opcode <= roce::kUcOpcodes + roce::kRcWriteOnlyImmediate;
}

}  // namespace

UcQueuePair::UcQueuePair(const RcConfig& config, PacketPool& pool, const MemoryRegistry& memory,
                         std::shared_ptr<CongestionControl> congestion_control,
                         std::shared_ptr<PathChoice> path_choice, CompletionHandler* handler,
                         std::shared_ptr<SharedReceives> shared_receives)
    : WritingQueuePair(checked_for_uc(config), std::move(congestion_control)),
      pool_(pool),
      memory_(memory),
      path_choice_(std::move(path_choice)),
      headers_(data_headers(config_)),
      template_(headers_),
      control_headers_(control_headers(config_)),
      control_template_(control_headers_),
      psn_map_(config_.initial_psn),
      completions_(config_.queue_pair, handler),
      notifier_(config_.cnp_interval_ps),
      receives_(config_.queue_pair, handler, std::move(shared_receives)),
      expected_psn_(config_.remote_initial_psn) {}

void UcQueuePair::begin_sending(uint32_t initial_psn) {
  if (end_sequence_ > 0) throw std::logic_error("requests have been posted before");
  RcConfig changed = config_;
  changed.initial_psn = initial_psn;
  check(changed);
  config_ = changed;
  psn_map_ = PsnMap(initial_psn);
}

void UcQueuePair::post(TimePs now, RcRequest request) {
  if (request.kind != CompletionKind::kWrite && request.kind != CompletionKind::kSend) {
    throw std::invalid_argument(std::string("a queue pair of UC carries no ") +
                                completion_kind_name(request.kind) +
                                " (valid: WRITE and SEND, each with or without immediate)");
  }
  if (request.length_bytes > kMaxMessageBytes) {
    throw std::invalid_argument("message of " + std::to_string(request.length_bytes) +
                                " bytes (valid: at most 2147483648)");
  }
  const uint64_t packets = packets_of_payload(request.length_bytes, config_.path_mtu_bytes);
  if (request.posted_ps == kNever) request.posted_ps = now;
  requests_.push_back(Outstanding{std::move(request), end_sequence_, end_sequence_ + packets});
  end_sequence_ += packets;
  if (error_ != CompletionStatus::kSuccess) deliver_completions(now);
  wake();
}

void UcQueuePair::post_receive(TimePs now, PostedReceive receive) {
  if (error_ != CompletionStatus::kSuccess) return receives_.refuse(now, receive);
  receives_.push(std::move(receive));
}

void UcQueuePair::set_headers(TimePs now, const Outstanding& request) {
  const bool first = next_sequence_ == request.first_sequence;
  const bool last = next_sequence_ + 1 == request.end_sequence;
  const bool immediate = request.immediate.has_value();
  headers_.bth.opcode = roce::kUcOpcodes + opcode_of(request.kind, first, last, immediate);
  headers_.bth.psn = psn_map_.psn(next_sequence_);
  headers_.bth.solicited = last && is_solicited(request);
  headers_.immediate = request.immediate.value_or(0);
  headers_.reth = {request.remote_address, request.rkey, static_cast<uint32_t>(request.length_bytes)};
  if (path_choice_ != nullptr)
    set_entropy(headers_, path_choice_->entropy(now, next_sequence_, false) & kEntropyMask);
}

// Null if foreign memory is not there.
PacketPtr UcQueuePair::build(const Outstanding& request, uint64_t offset_bytes, size_t payload_bytes) {
  if (request.as_length) return template_.build_as_length(pool_, headers_, payload_bytes);
  if (request.foreign != nullptr && payload_bytes > 0) {
    payload_.resize(payload_bytes);
    if (!request.foreign->read(offset_bytes, payload_.data(), payload_bytes)) return nullptr;
    return template_.build(pool_, headers_, payload_.data(), payload_bytes);
  }
  return template_.build(pool_, headers_, request.data == nullptr ? nullptr : request.data + offset_bytes,
                         payload_bytes);
}

PacketPtr UcQueuePair::pull(TimePs now) {
  wait_until_ps_ = kNever;
  if (!has_next()) return nullptr;
  if (now < gate_.next_send_ps()) {
    wait_until_ps_ = gate_.next_send_ps();
    return nullptr;
  }
  const Outstanding& request = requests_.request_of(next_sequence_, next_sequence_);
  const uint64_t offset = (next_sequence_ - request.first_sequence) * config_.path_mtu_bytes;
  const size_t payload_bytes = std::min<uint64_t>(config_.path_mtu_bytes, request.length_bytes - offset);
  set_headers(now, request);
  PacketPtr packet = build(request, offset, payload_bytes);
  if (packet == nullptr) {
    error_ = CompletionStatus::kLocalProtectionError;
    due_ps_ = now;  // handlers of completions may do more than a pull() allows
    return nullptr;
  }
  packet->set_traffic_kind(request.traffic_kind);
  const size_t frame_bytes = packet->wire_bytes();
  gate_.on_sent(now, frame_bytes, false);
  gate_.release(frame_bytes);
  ++counters_.data_packets_sent;
  counters_.data_bytes_sent += payload_bytes;
  last_pulled_ = {payload_bytes, next_sequence_ == request.first_sequence};
  ++next_sequence_;
  if (next_sequence_ == request.end_sequence) due_ps_ = now;
  return packet;
}

PacketPtr UcQueuePair::pull_control(TimePs /*now*/) {
  if (!notifier_.has_cnp()) return nullptr;
  notifier_.take(control_headers_);
  ++counters_.cnps_sent;
  PacketPtr packet = control_template_.build(pool_, control_headers_);
  packet->set_traffic_kind(Packet::kControlTraffic);
  return packet;
}

TimePs UcQueuePair::next_deadline() const {
  return std::min({due_ps_, wait_until_ps_, notifier_.due_ps(), congestion_control().next_deadline()});
}

void UcQueuePair::on_deadline(TimePs now) {
  if (now >= wait_until_ps_) wait_until_ps_ = kNever;  // the NIC pulls next
  CongestionControl& congestion_control = gate_.congestion_control();
  if (now >= congestion_control.next_deadline()) congestion_control.on_deadline(now);
  notifier_.on_deadline(now);
  follow_rate();
  if (now < due_ps_) return;
  due_ps_ = kNever;
  deliver_completions(now);
  // A request whose memory is not there fails the queue pair as a whole.
  if (error_ != CompletionStatus::kSuccess) fail(now, error_, CompletionStatus::kFlushed);
}

void UcQueuePair::follow_rate() {
  if (gate_.follow_rate() && wait_until_ps_ != kNever) wait_until_ps_ = gate_.next_send_ps();
}

void UcQueuePair::deliver_completions(TimePs now) {
  requests_.deliver(now, [this] { return next_sequence_; }, error_, completions_);
}

void UcQueuePair::fail(TimePs now, CompletionStatus status, CompletionStatus first_receive) {
  error_ = status;
  due_ps_ = kNever;
  wait_until_ps_ = kNever;
  notifier_.forget();
  message_ = Message::kNone;
  deliver_completions(now);
  receives_.flush(now, first_receive);
}

std::vector<RcRequest> UcQueuePair::withdraw(TimePs now) {
  std::vector<RcRequest> left = requests_.withdraw();
  next_sequence_ = end_sequence_;
  flush(now);
  return left;
}

void UcQueuePair::flush(TimePs now) {
  if (error_ != CompletionStatus::kSuccess) return;
  fail(now, CompletionStatus::kFlushed, CompletionStatus::kFlushed);
  wake();
}

void UcQueuePair::on_packet(TimePs now, const roce::ParsedPacket& packet) {
  if (packet.source_ip != config_.destination_ip) {
    ++counters_.wrong_source;
  } else if (packet.bth.partition_key != roce::kDefaultPartitionKey) {
    ++counters_.wrong_partition_key;
  } else if (packet.bth.opcode == roce::kCnp) {
    ++counters_.cnps_received;
    gate_.congestion_control().on_congestion_notification(now);
    if (path_choice_ != nullptr) path_choice_->on_congestion_notification(now);
    follow_rate();
  } else if (!is_uc_request(packet.bth.opcode)) {
    ++counters_.unexpected_opcode;
  } else if (error_ != CompletionStatus::kSuccess) {
    ++counters_.dropped_in_error;
  } else {
    take(now, packet);
  }
}

void UcQueuePair::take(TimePs now, const roce::ParsedPacket& packet) {
  if (packet.ecn == roce::kCe) {
    ++counters_.ce_marked_packets;
    notifier_.on_mark(now);
  }
  const MessageShape shape = shape_of(packet.bth.opcode - roce::kUcOpcodes);
  if (!follows(shape, packet.bth.psn)) {
    ++uc_counters_.packets_skipped;
    return;
  }
  if (shape.first && !begin(shape, packet)) return;
  if (!place(now, shape, packet)) return;
  ++counters_.data_packets_received;
  counters_.data_bytes_received += packet.payload_bytes;
  if (!shape.last) return;
  message_ = Message::kNone;
  if (shape.message == Message::kWrite && !shape.immediate) return;
  const bool is_send = shape.message == Message::kSend;
  receives_.finish(now, is_send ? CompletionKind::kReceive : CompletionKind::kWriteImmediate,
                   is_send || config_.receive_for_immediate, message_bytes_,
                   shape.immediate ? std::optional(packet.immediate) : std::nullopt, packet.bth.solicited);
}

// Whether the packet begins a message, or goes on with the one in progress. After a gap, or what looks like
// one, everything is dropped until a message begins, whatever its PSN.
bool UcQueuePair::follows(const MessageShape& shape, uint32_t psn) {
  const int32_t ahead = psn_difference(psn, expected_psn_);
  expected_psn_ = (psn + 1) & kPsnMask;
  if (ahead != 0) {
    ++counters_.out_of_sequence_packets;
    if (ahead > 0) uc_counters_.packets_missing += static_cast<uint64_t>(ahead);
    is_dropping_ = true;
  }
  if (shape.first || is_dropping_) break_message();
  if (shape.first) is_dropping_ = false;
  return !is_dropping_;
}

// The receive that it has taken is the next message's.
void UcQueuePair::break_message() {
  if (message_ != Message::kNone) ++uc_counters_.messages_broken;
  message_ = Message::kNone;
}

// The message is dropped, and so is what comes of it.
bool UcQueuePair::drop(uint64_t& counter) {
  ++counter;
  message_ = Message::kNone;
  is_dropping_ = true;
  return false;
}

bool UcQueuePair::begin(const MessageShape& shape, const roce::ParsedPacket& packet) {
  message_ = shape.message;
  message_bytes_ = 0;
  if (shape.message == Message::kSend) {
    if (receives_.lacks()) return drop(uc_counters_.messages_without_receive);
    message_limit_bytes_ = receives_.front().length_bytes;
    return true;
  }
  message_limit_bytes_ = packet.reth.length_bytes;
  write_address_ = packet.reth.virtual_address;
  write_rkey_ = packet.reth.rkey;
  if ((config_.remote_access & kRemoteWrite) == 0) return drop(uc_counters_.messages_refused);
  if (message_limit_bytes_ > kMaxMessageBytes) return drop(uc_counters_.messages_malformed);
  // A WRITE of no bytes touches no memory, so its rkey is not looked at.
  if (message_limit_bytes_ == 0) return true;
  return memory_.find(write_rkey_, write_address_, message_limit_bytes_, kRemoteWrite) != nullptr ||
         drop(uc_counters_.messages_refused);
}

bool UcQueuePair::has_right_size(const MessageShape& shape, const roce::ParsedPacket& packet) const {
  const size_t mtu = config_.path_mtu_bytes;
  return shape.last ? packet.payload_bytes <= mtu && (shape.first || packet.payload_bytes > 0)
                    : packet.payload_bytes == mtu;
}

bool UcQueuePair::place(TimePs now, const MessageShape& shape, const roce::ParsedPacket& packet) {
  const uint64_t end_bytes = message_bytes_ + packet.payload_bytes;
  if (shape.message != message_ || !has_right_size(shape, packet))
    return drop(uc_counters_.messages_malformed);
  const bool has_bytes = packet.payload_bytes > 0 && !packet.as_length;
  if (shape.message == Message::kSend) {
    if (end_bytes > message_limit_bytes_) return drop(uc_counters_.messages_too_long);
    const PostedReceive& receive = receives_.front();
    if (has_bytes && !receive.store(message_bytes_, packet.payload, packet.payload_bytes)) {
      fail(now, CompletionStatus::kFlushed, CompletionStatus::kLocalProtectionError);
      return false;
    }
  } else {
    if (end_bytes > message_limit_bytes_ || (shape.last && end_bytes != message_limit_bytes_))
      return drop(uc_counters_.messages_malformed);
    if (packet.payload_bytes > 0) {
      // Looked up for each packet, because it may have been deregistered meanwhile.
      const uint64_t address = write_address_ + message_bytes_;
      const MemoryRegion* region = memory_.find(write_rkey_, address, packet.payload_bytes, kRemoteWrite);
      if (region == nullptr || (has_bytes && !store(*region, address, packet.payload, packet.payload_bytes)))
        return drop(uc_counters_.messages_refused);
    }
    if (shape.immediate && config_.receive_for_immediate && receives_.lacks())
      return drop(uc_counters_.messages_without_receive);
  }
  message_bytes_ = end_bytes;
  return true;
}

void UcQueuePair::observe(Probe* probe, ConnectionEnds ends, bool messages, bool /*telemetry*/) {
  ends_ = ends;
  completions_.observe(messages ? probe : nullptr, ends);
}

void UcQueuePair::reset_counters() {
  WritingQueuePair::reset_counters();
  uc_counters_ = UcCounters();
}

std::vector<uint8_t> UcQueuePair::data_frame() const {
  roce::RoceHeaders headers = data_headers(config_);
  headers.bth.opcode = roce::kUcOpcodes + roce::kRcWriteMiddle;
  std::vector<uint8_t> frame(roce::frame_bytes(headers, 0));
  roce::write_frame(headers, nullptr, 0, frame.data());
  return frame;
}

}  // namespace weft
