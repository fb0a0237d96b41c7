#include "hosts/aggregation_client.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "hosts/lane_bytes.hpp"
#include "hosts/options.hpp"
#include "hosts/rc_config.hpp"

namespace weft {
namespace {

constexpr uint64_t kMaxRounds = 1ull << 32;  // the wire's round number
// How many packets may follow each other to make up for the time in which others had the link. The switches'
// meters allow for them (weft/controller/job_rates.py).
constexpr TimePs kCatchUpPackets = 8;

const AggregationConfig& checked(const AggregationConfig& config) {
  check(config);
  return config;
}

roce::RoceHeaders contribution_headers(const AggregationConfig& config) {
  roce::RoceHeaders headers = headers_on_path(config);
  headers.dscp = roce::dscp_of_data(config.data_class);
  headers.bth.opcode = roce::kUdSendOnly;
  headers.bth.destination_qp = roce::kAggregationQueuePair;
  headers.deth = {config.q_key, roce::kAggregationQueuePair};
  headers.aggregation = {
      .job_id = config.job_id, .epoch = config.epoch, .rank = config.rank, .lane_count = config.lane_count};
  return headers;
}

}  // namespace

void check(const AggregationConfig& config) {
  if (config.slot_count == 0) refuse_setting("aggregation client: slot_count", 0, "1 to 65535");
  const auto& counts = roce::kAggregationLaneCounts;
  if (config.lane_count == 0 || std::find(counts.begin(), counts.end(), config.lane_count) == counts.end()) {
    refuse_setting("aggregation client: lane_count", config.lane_count, "64, 128, 256 or 1024");
  }
  if (config.rank_count == 0) refuse_setting("aggregation client: rank_count", 0, "1 or more");
  if (config.worker_rank >= config.rank_count)
    refuse_setting("aggregation client: worker_rank", config.worker_rank, "below rank_count");
  if (!config.worker_numbers.empty() && config.worker_numbers.size() != config.rank_count) {
    refuse_setting("aggregation client: worker_numbers of length", config.worker_numbers.size(),
                   "none, or rank_count");
  }
  if (config.retransmission_timeout_ps <= 0) {
    refuse_setting("aggregation client: retransmission_timeout_ps",
                   static_cast<uint64_t>(config.retransmission_timeout_ps), "above 0");
  }
  if (config.data_class >= roce::kDataClasses)
    refuse_setting("aggregation client: data_class", config.data_class, "0 to 5");
  if (config.timeout_backoff_limit > 20) {
    refuse_setting("aggregation client: timeout_backoff_limit", config.timeout_backoff_limit, "0 to 20");
  }
  if (config.source_ip.is_ipv6 != config.destination_ip.is_ipv6) {
    throw std::invalid_argument("aggregation client: source and destination are of different IP versions");
  }
}

AggregationClient::AggregationClient(const AggregationConfig& config, PacketPool& pool,
                                     CompletionHandler* handler)
    : config_(checked(config)),
      pool_(pool),
      handler_(handler),
      headers_(contribution_headers(config)),
      template_(headers_),
      window_(config_.slot_count),
      timeout_(config_.retransmission_timeout_ps, config_.timeout_backoff_limit) {
  slots_.resize(config_.slot_count);
  sent_.resize(size_t{2} * config_.slot_count);
  timeouts_.resize(config_.timeout_backoff_limit + 1);
}

void AggregationClient::post(TimePs now, AggregationBuffers buffers, std::vector<AggregationPart> parts,
                             DataType dtype, ReduceOperation operation, uint64_t work_id) {
  for (const AggregationPart& part : parts) {
    if (part.receiver == AggregationPart::kAll || part.receiver < config_.rank_count) continue;
    throw std::invalid_argument("aggregation client: a result for rank " + std::to_string(part.receiver) +
                                " of " + std::to_string(config_.rank_count));
  }
  Posted posted{
      AggregationRequest(buffers, std::move(parts), dtype, operation, config_.rank_count, config_.lane_count),
      end_of_stream_,
      0,
      work_id,
      now,
      buffers.element_count * element_bytes(dtype)};
  posted.remaining = posted.request.message_count();
  if (error_ != CompletionStatus::kSuccess) return complete(posted, CompletionStatus::kFlushed, now);
  if ((end_of_stream_ - first_message_ + posted.remaining) / config_.slot_count >= kMaxRounds) {
    throw std::invalid_argument("aggregation client: the epoch's 2^32 rounds are used up; start a new epoch");
  }
  end_of_stream_ += posted.remaining;
  requests_.push_back(std::move(posted));
  complete_front(now);
  wake();
}

const AggregationClient::Posted& AggregationClient::posted_of(uint64_t message) const {
  // The last request that starts at or before the message; an empty one shares its start with the next.
  // Usually that is the newest.
  if (const Posted& newest = requests_.back(); newest.first_message <= message) return newest;
  auto after = std::upper_bound(requests_.begin(), requests_.end(), message,
                                [](uint64_t m, const Posted& p) { return m < p.first_message; });
  return *std::prev(after);
}

AggregationClient::Posted& AggregationClient::posted_of(uint64_t message) {
  return const_cast<Posted&>(std::as_const(*this).posted_of(message));
}

bool AggregationClient::can_send_next() const {
  if (next_message_ == end_of_stream_ || slot_of(next_message_).busy) return false;
  if (!window_.allows(in_flight_)) return false;
  if (was_sent(next_message_)) return true;
  const Posted& posted = posted_of(next_message_);
  return posted.request.ready(next_message_ - posted.first_message);
}

PacketPtr AggregationClient::pull(TimePs now) {
  if (error_ != CompletionStatus::kSuccess) return nullptr;
  const auto has_result_meanwhile = [this](uint64_t message) {
    const Slot& slot = slot_of(message);
    return !slot.busy || slot.message != message;
  };
  // A result may have come between the timeout and the NIC's turn.
  while (!resend_.empty() && has_result_meanwhile(resend_.front())) resend_.pop_front();
  if (must_wait(now)) return nullptr;
  if (!resend_.empty()) {
    const uint64_t message = resend_.front();
    resend_.pop_front();
    slot_of(message).queued = false;
    ++counters_.retransmitted_packets;
    return send(now, message);
  }
  if (!can_send_next()) return nullptr;
  const uint64_t message = next_message_++;
  // In order of the stream: message m uses slot m mod slot_count, which is free once m - slot_count has its
  // result.
  slot_of(message) = Slot{true, false, message, 0, 0, now};
  ++in_flight_;
  was_sent(message) ? void(++counters_.repeated_messages) : compose(message);
  return send(now, message);
}

// Whether a contribution could leave but for the rate.
bool AggregationClient::must_wait(TimePs now) {
  const bool waits = now < next_send_ps_ && (!resend_.empty() || can_send_next());
  paced_until_ps_ = waits ? next_send_ps_ : kNever;
  return waits;
}

void AggregationClient::pace_after(TimePs now, size_t frame_bytes) {
  if (config_.rate_bps == 0) return;
  const TimePs gap_ps = BitRate::serialisation_ps(frame_bytes, config_.rate_bps);
  // A worker that the NIC kept waiting may catch up a few packets, as the switches' meters allow.
  next_send_ps_ = std::max(next_send_ps_, now - kCatchUpPackets * gap_ps) + gap_ps;
}

uint16_t AggregationClient::destination_of(const AggregationPurpose& purpose) const {
  if (purpose.receiver == AggregationPart::kAll) return roce::kAllWorkers;
  if (config_.worker_numbers.empty()) return static_cast<uint16_t>(purpose.receiver);
  return config_.worker_numbers[purpose.receiver];
}

// Whether a message's result brings this worker lanes.
bool AggregationClient::gets_lanes(const AggregationPurpose& purpose) const {
  const bool is_for_us = purpose.receiver == AggregationPart::kAll || purpose.receiver == config_.worker_rank;
  return purpose.has_result && is_for_us;
}

void AggregationClient::compose(uint64_t message) {
  const Posted& posted = posted_of(message);
  const uint64_t index = message - posted.first_message;
  Sent& sent = sent_of(message);
  sent.message = message;
  sent.has_result = false;
  sent.purpose = posted.request.purpose(index);
  sent.payload.resize(sent.purpose.has_lanes ? size_t{4} * config_.lane_count : 0);
  if (!sent.purpose.has_lanes) return;
  LaneValues lanes;
  posted.request.compose(index, std::span(lanes).first(config_.lane_count));
  swap_lane_bytes(reinterpret_cast<const uint8_t*>(lanes.data()), sent.payload.data(), config_.lane_count);
}

PacketPtr AggregationClient::send(TimePs now, uint64_t message) {
  const uint64_t place = message - first_message_;
  const auto round = static_cast<uint32_t>(place / config_.slot_count);
  const Sent& sent = sent_of(message);

  headers_.bth.psn = round & 0xFFFFFF;
  headers_.aggregation->operation = static_cast<uint8_t>(sent.purpose.operation);
  headers_.aggregation->data_type = static_cast<uint8_t>(sent.purpose.lane_type);
  headers_.aggregation->slot = static_cast<uint16_t>(place % config_.slot_count);
  headers_.aggregation->round = round;
  headers_.aggregation->lane_count = sent.purpose.has_lanes ? config_.lane_count : 0;
  headers_.aggregation->destination = destination_of(sent.purpose);

  Slot& slot = slot_of(message);
  ++slot.transmissions;
  ++counters_.contributions_sent;
  const uint32_t doublings = timeout_.doublings(slot.timeouts);
  timeouts_[doublings].push_back({now + timeout_.after(doublings), message, slot.transmissions});
  PacketPtr packet = template_.build(pool_, headers_, sent.payload.data(), sent.payload.size());
  pace_after(now, packet->frame_bytes());
  return packet;
}

// Whether a result is accepted, and its number in the stream; counted if it is not.
bool AggregationClient::classify(const roce::ParsedPacket& packet, uint64_t& message) {
  if (!packet.aggregation || packet.aggregation->kind != roce::kResult) {
    ++counters_.unexpected_packets;
    return false;
  }
  const roce::AggregationHeader& header = *packet.aggregation;
  if (header.job_id != config_.job_id || packet.deth.q_key != config_.q_key) {
    ++counters_.foreign_results;
    return false;
  }
  if (header.epoch != config_.epoch) {
    ++counters_.wrong_epoch_results;
    return false;
  }
  message = first_message_ + uint64_t{header.round} * config_.slot_count + header.slot;
  if (header.slot >= config_.slot_count || message >= next_message_) {
    ++counters_.unexpected_results;
    return false;
  }
  const Slot& slot = slot_of(message);
  // A late copy: of a result that came after the timeout, or of another round of the slot.
  if (!slot.busy || slot.message != message) {
    ++counters_.stale_results;
    return false;
  }
  const AggregationPurpose& purpose = sent_of(message).purpose;
  const uint16_t lane_count = gets_lanes(purpose) ? config_.lane_count : 0;
  if (header.operation != static_cast<uint8_t>(purpose.operation) || header.lane_count != lane_count ||
      header.data_type != static_cast<uint8_t>(purpose.lane_type) || (header.flags & ~roce::kOverflow) != 0 ||
      header.destination != destination_of(purpose)) {
    ++counters_.unexpected_results;
    return false;
  }
  return true;
}

void AggregationClient::on_packet(TimePs now, const roce::ParsedPacket& packet) {
  if (error_ != CompletionStatus::kSuccess) {
    ++counters_.dropped_in_error;
    return;
  }
  uint64_t message = 0;
  if (!classify(packet, message)) return;
  LaneValues lanes;
  const size_t lane_count = packet.aggregation->lane_count;
  swap_lane_bytes(packet.payload, reinterpret_cast<uint8_t*>(lanes.data()), lane_count);
  const bool has_overflowed = (packet.aggregation->flags & roce::kOverflow) != 0;
  if (!take_result(message, lane_count != 0 ? lanes.data() : nullptr, has_overflowed)) {
    ++counters_.invalid_results;
    return;
  }
  ++counters_.results_accepted;
  if (packet.ecn == roce::kCe) ++counters_.ce_marked_packets;
  window_.on_result(message, next_message_, config_.rate_bps == 0 && packet.ecn == roce::kCe);
  timeout_.on_result(message, next_message_, now - slot_of(message).sent_ps);
  finish(message);
  resend_overtaken(message);
  complete_front(now);
}

void AggregationClient::finish(uint64_t message) {
  slot_of(message).busy = false;
  --in_flight_;
  drop_stale_timeouts();
}

void AggregationClient::complete_front(TimePs now) {
  while (!requests_.empty() && requests_.front().remaining == 0) {
    const Posted posted = std::move(requests_.front());
    requests_.pop_front();
    complete(posted, CompletionStatus::kSuccess, now);
  }
}

void AggregationClient::queue_resend(uint64_t message) {
  Slot& slot = slot_of(message);
  if (slot.queued) return;
  slot.queued = true;
  resend_.push_back(message);
}

void AggregationClient::resend_overtaken(uint64_t message) {
  if (config_.early_retransmit_distance == 0 || message < config_.early_retransmit_distance) return;
  const uint64_t end = message - config_.early_retransmit_distance + 1;
  // Nothing older than a window can be in flight.
  if (next_message_ > first_message_ + config_.slot_count) {
    overtaken_from_ = std::max(overtaken_from_, next_message_ - config_.slot_count);
  }
  for (; overtaken_from_ < end; ++overtaken_from_) {
    const Slot& slot = slot_of(overtaken_from_);
    if (!slot.busy || slot.message != overtaken_from_ || slot.transmissions > 1) continue;
    ++counters_.early_retransmissions;
    queue_resend(overtaken_from_);
  }
}

bool AggregationClient::is_stale(const Timeout& timeout) const {
  const Slot& slot = slot_of(timeout.message);
  return !slot.busy || slot.message != timeout.message || slot.transmissions != timeout.transmissions;
}

void AggregationClient::drop_stale_timeouts() {
  for (auto& level : timeouts_) {
    while (!level.empty() && is_stale(level.front())) level.pop_front();
  }
}

TimePs AggregationClient::next_deadline() const {
  TimePs earliest = paced_until_ps_;
  for (const auto& level : timeouts_) {
    if (!level.empty()) earliest = std::min(earliest, level.front().deadline_ps);
  }
  return earliest;
}

void AggregationClient::on_deadline(TimePs now) {
  if (paced_until_ps_ <= now) paced_until_ps_ = kNever;
  for (auto& level : timeouts_) {
    while (!level.empty() && level.front().deadline_ps <= now) {
      const Timeout timeout = level.front();
      level.pop_front();
      if (is_stale(timeout)) continue;
      Slot& slot = slot_of(timeout.message);
      ++counters_.timeouts;
      if (++slot.timeouts > config_.retry_limit) return fail(now, CompletionStatus::kRetryExceeded);
      queue_resend(timeout.message);
    }
  }
  drop_stale_timeouts();
}

void AggregationClient::fail(TimePs now, CompletionStatus status) {
  error_ = status;
  for (auto& level : timeouts_) level.clear();
  resend_.clear();
  paced_until_ps_ = kNever;
  in_flight_ = 0;
  std::deque<Posted> failed;
  failed.swap(requests_);
  for (const Posted& posted : failed) {
    complete(posted, std::exchange(status, CompletionStatus::kFlushed), now);
  }
}

void AggregationClient::complete(const Posted& posted, CompletionStatus status, TimePs now) {
  if (handler_ == nullptr) return;
  Completion completion;
  completion.work_id = posted.work_id;
  completion.kind = CompletionKind::kAggregate;
  completion.status = status;
  completion.queue_pair = roce::kAggregationQueuePair;
  completion.length_bytes = posted.length_bytes;
  completion.posted_ps = posted.posted_ps;
  completion.completed_ps = now;
  handler_->on_completion(completion);
}

}  // namespace weft
