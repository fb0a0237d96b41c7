#include "observe/packet_conservation.hpp"

namespace weft {

namespace {

#define WEFT_NAME_AND_MEANING(enumerator, name, meaning) {name, meaning},
constexpr NameAndMeaning kOrigins[] = {WEFT_PACKET_ORIGINS(WEFT_NAME_AND_MEANING)};
constexpr NameAndMeaning kEnds[] = {WEFT_PACKET_ENDS(WEFT_NAME_AND_MEANING)};

}  // namespace

std::span<const NameAndMeaning> packet_origins() { return kOrigins; }
std::span<const NameAndMeaning> packet_ends() { return kEnds; }

void ConservationBalance::add(const PacketConservation& one) {
  for (size_t each = 0; each < entered_.size(); ++each) entered_[each].add(one.entered_[each]);
  for (size_t each = 0; each < left_.size(); ++each) left_[each].add(one.left_[each]);
  for (size_t place = 0; place < one.dropped_.size(); ++place) {
    const std::vector<TrafficCounter>& reasons = one.dropped_[place];
    for (size_t reason = 0; reason < reasons.size(); ++reason)
      if (reasons[reason].packets != 0)
        dropped_[drop_code(static_cast<DropPlace>(place), reason)].add(reasons[reason]);
  }
  resized_bytes_ += one.resized_bytes_;
  for (const PacketConservation::Holder& holder : one.holders_) holder.count_held(holder.component, held_);
}

void ConservationBalance::put(MessageWriter& message) const {
  message.put(entered_);
  message.put(left_);
  message.put(resized_bytes_);
  message.put(held_);
  for (const auto& [code, each] : dropped_) {
    message.put(code);
    message.put(each);
  }
}

void ConservationBalance::add(MessageReader& message) {
  const auto entered = message.get<decltype(entered_)>();
  for (size_t each = 0; each < entered_.size(); ++each) entered_[each].add(entered[each]);
  const auto left = message.get<decltype(left_)>();
  for (size_t each = 0; each < left_.size(); ++each) left_[each].add(left[each]);
  resized_bytes_ += message.get<int64_t>();
  const auto held = message.get<HeldPackets>();
  held_.queued.add(held.queued);
  held_.in_flight.add(held.in_flight);
  held_.in_switches.add(held.in_switches);
  while (!message.at_end()) {
    const auto code = message.get<int64_t>();
    dropped_[code].add(message.get<TrafficCounter>());
  }
}

TrafficCounter ConservationBalance::total_entered() const {
  TrafficCounter total;
  for (const TrafficCounter& each : entered_) total.add(each);
  return total;
}

TrafficCounter ConservationBalance::total_accounted() const {
  TrafficCounter total;
  for (const TrafficCounter& each : left_) total.add(each);
  for (const auto& [code, each] : dropped_) total.add(each);
  total.add(held_.queued);
  total.add(held_.in_flight);
  total.add(held_.in_switches);
  return total;
}

int64_t ConservationBalance::missing_packets() const {
  return static_cast<int64_t>(total_entered().packets - total_accounted().packets);
}

int64_t ConservationBalance::missing_bytes() const {
  return static_cast<int64_t>(total_entered().bytes - total_accounted().bytes) + resized_bytes_;
}

}  // namespace weft
