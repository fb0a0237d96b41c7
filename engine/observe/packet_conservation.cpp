#include "observe/packet_conservation.hpp"

namespace weft {

const char* ledger_source_name(LedgerSource source) {
  static constexpr std::array<const char*, static_cast<size_t>(LedgerSource::kCount)> kNames = {
      "sent", "from_controller", "multicast", "cloned", "duplicated", "flow_control", "injected"};
  return kNames.at(static_cast<size_t>(source));
}

const char* ledger_sink_name(LedgerSink sink) {
  static constexpr std::array<const char*, static_cast<size_t>(LedgerSink::kCount)> kNames = {
      "delivered", "to_controller", "flow_control", "collected"};
  return kNames.at(static_cast<size_t>(sink));
}

void LedgerBalance::add(const Ledger& ledger) {
  for (size_t each = 0; each < entered_.size(); ++each) entered_[each].add(ledger.entered_[each]);
  for (size_t each = 0; each < left_.size(); ++each) left_[each].add(ledger.left_[each]);
  for (size_t place = 0; place < ledger.dropped_.size(); ++place) {
    const std::vector<TrafficCounter>& reasons = ledger.dropped_[place];
    for (size_t reason = 0; reason < reasons.size(); ++reason)
      if (reasons[reason].packets != 0)
        dropped_[drop_code(static_cast<DropPlace>(place), reason)].add(reasons[reason]);
  }
  resized_bytes_ += ledger.resized_bytes_;
  for (const Ledger::Holder& holder : ledger.holders_) holder.count_held(holder.component, held_);
}

TrafficCounter LedgerBalance::total_entered() const {
  TrafficCounter total;
  for (const TrafficCounter& each : entered_) total.add(each);
  return total;
}

TrafficCounter LedgerBalance::total_accounted() const {
  TrafficCounter total;
  for (const TrafficCounter& each : left_) total.add(each);
  for (const auto& [code, each] : dropped_) total.add(each);
  total.add(held_.queued);
  total.add(held_.in_flight);
  total.add(held_.in_switches);
  return total;
}

int64_t LedgerBalance::missing_packets() const {
  return static_cast<int64_t>(total_entered().packets - total_accounted().packets);
}

int64_t LedgerBalance::missing_bytes() const {
  return static_cast<int64_t>(total_entered().bytes - total_accounted().bytes) + resized_bytes_;
}

}  // namespace weft
