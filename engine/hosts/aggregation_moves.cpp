// Streams of an aggregation job that go on in another epoch, or over something else than its trees.
//
// A failure gives the job other trees. All its workers stop, agree on the first message that one of them has
// no result of, and go on from there (docs/spec/aggregation.md, "Failures"). Those that had its result take
// it again: the contributions are the same to the bit, and so are the results.
#include <algorithm>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "hosts/aggregation_client.hpp"
#include "hosts/lane_bytes.hpp"

namespace weft {

uint64_t AggregationClient::first_unfinished() const {
  // A slot is used again when it has its result, so all before a window are there.
  uint64_t message = first_message_;
  if (next_message_ > first_message_ + config_.slot_count) message = next_message_ - config_.slot_count;
  while (message < end_of_stream_ && has_result(message)) ++message;
  return message;
}

void AggregationClient::take_over(AggregationClient& before, uint64_t first_message) {
  if (before.config_.slot_count != config_.slot_count || before.config_.lane_count != config_.lane_count ||
      before.error_ != CompletionStatus::kSuccess) {
    const auto window = [](const AggregationConfig& config) {
      return std::to_string(config.slot_count) + " slots of " + std::to_string(config.lane_count) +
             " lanes, ";
    };
    throw std::invalid_argument("aggregation client: takes over from one of " + window(before.config_) +
                                completion_status_name(before.error_) + " (valid: " + window(config_) +
                                "success)");
  }
  const uint64_t unfinished = before.first_unfinished();
  for (uint64_t message = first_message; message < unfinished; ++message) {
    if (before.was_sent(message)) continue;
    throw std::invalid_argument("aggregation client: takes over at message " + std::to_string(message) +
                                ", whose contribution has been forgotten");
  }
  if (first_message > unfinished) {
    throw std::invalid_argument("aggregation client: takes over at message " + std::to_string(first_message) +
                                " (valid: up to " + std::to_string(unfinished) + ")");
  }
  requests_ = std::exchange(before.requests_, {});
  sent_ = std::exchange(before.sent_, std::vector<Sent>(before.sent_.size()));
  end_of_stream_ = std::exchange(before.end_of_stream_, 0);
  first_message_ = next_message_ = overtaken_from_ = first_message;
  before.first_message_ = before.next_message_ = before.overtaken_from_ = 0;
  before.in_flight_ = 0;
  before.paced_until_ps_ = kNever;
  before.resend_.clear();
  for (auto& level : before.timeouts_) level.clear();
  std::fill(before.slots_.begin(), before.slots_.end(), Slot());
  wake();
}

// Stores a result, unless it is one more of another epoch; false if the request refuses it.
bool AggregationClient::take_result(uint64_t message, const int32_t* lanes, bool has_overflowed) {
  if (has_result(message)) return true;
  Posted& posted = posted_of(message);
  if (lanes != nullptr) {
    const uint64_t overflowed_before = posted.request.overflowed_messages();
    const std::span all(lanes, config_.lane_count);
    if (!posted.request.accept(message - posted.first_message, all, has_overflowed)) return false;
    counters_.overflowed_messages += posted.request.overflowed_messages() - overflowed_before;
  }
  --posted.remaining;
  if (was_sent(message)) sent_of(message).has_result = true;
  return true;
}

AggregationPurpose AggregationClient::purpose_of(uint64_t message) const {
  if (was_sent(message)) return sent_of(message).purpose;
  const Posted& posted = posted_of(message);
  return posted.request.purpose(message - posted.first_message);
}

std::vector<int32_t> AggregationClient::contributions(uint64_t first, uint64_t end, ReduceOperation operation,
                                                      LaneType lane_type) const {
  std::vector<int32_t> all;
  for (uint64_t message = first; message < end; ++message) {
    const AggregationPurpose purpose = purpose_of(message);
    if (purpose.operation != operation || purpose.lane_type != lane_type) continue;
    std::vector<int32_t> lanes(config_.lane_count);  // nothing, to a sum
    if (!purpose.has_lanes && operation != ReduceOperation::kSum) {
      throw std::invalid_argument("aggregation client: message " + std::to_string(message) + " has no lanes");
    }
    if (purpose.has_lanes && was_sent(message)) {
      swap_lane_bytes(sent_of(message).payload.data(), reinterpret_cast<uint8_t*>(lanes.data()),
                      lanes.size());
    } else if (purpose.has_lanes) {
      const Posted& posted = posted_of(message);
      if (!posted.request.ready(message - posted.first_message)) {
        throw std::invalid_argument("aggregation client: message " + std::to_string(message) +
                                    " waits for its exponents");
      }
      posted.request.compose(message - posted.first_message, lanes);
    }
    all.insert(all.end(), lanes.begin(), lanes.end());
  }
  return all;
}

void AggregationClient::take_results(uint64_t first, uint64_t end, ReduceOperation operation,
                                     LaneType lane_type, const std::vector<int32_t>& results) {
  auto next = results.begin();
  for (uint64_t message = first; message < end; ++message) {
    const AggregationPurpose purpose = purpose_of(message);
    if (purpose.operation != operation || purpose.lane_type != lane_type) continue;
    if (results.end() - next < config_.lane_count) {
      throw std::invalid_argument("aggregation client: " + std::to_string(results.size()) +
                                  " lanes are too few results");
    }
    const int32_t* const lanes = std::to_address(next);
    next += config_.lane_count;
    if (!take_result(message, gets_lanes(purpose) ? lanes : nullptr, false)) {
      throw std::invalid_argument("aggregation client: no result of message " + std::to_string(message) +
                                  " can be so");
    }
  }
}

void AggregationClient::skip_to(TimePs now, uint64_t end) {
  first_message_ = next_message_ = overtaken_from_ = end;
  in_flight_ = 0;
  paced_until_ps_ = kNever;
  resend_.clear();
  for (auto& level : timeouts_) level.clear();
  std::fill(slots_.begin(), slots_.end(), Slot());
  complete_front(now);
}

}  // namespace weft
