#include "hosts/mrc/ev_table.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "hosts/rc_config.hpp"
#include "paths/path_choice.hpp"

namespace weft::mrc {
namespace {

constexpr uint16_t kFirstEvPort = 0xC000;
constexpr uint32_t kEntropies = kEntropyMask + 1u;

}  // namespace

const char* ev_state_name(EvState state) {
  switch (state) {
    case EvState::kGood:
      return "good";
    case EvState::kSkip:
      return "skip";
    case EvState::kAssumedBad:
      return "assumed_bad";
    case EvState::kDenied:
      return "denied";
  }
  return "unknown";
}

EvTable::EvTable(uint32_t planes, uint32_t active, uint32_t backups, uint64_t seed, MrcCounters& counters)
    : planes_(planes), rng_(seed, "mrc entropy values"), counters_(counters) {
  if (planes == 0 || active < planes || active + backups > kEntropies / 2) {
    throw std::invalid_argument(std::to_string(active) + " EVs and " + std::to_string(backups) +
                                " backups for " + std::to_string(planes) +
                                " planes (valid: an EV for each plane, 8192 together)");
  }
  for (uint32_t plane = 0; plane < planes; ++plane) {
    Plane& own = planes_[plane];
    own.target = active / planes;
    const uint32_t count = own.target + backups / planes;
    for (uint32_t number = 0; number < count; ++number) {
      const uint16_t port = unused_port();
      const auto ev = static_cast<uint32_t>(entries_.size());
      const bool is_active = number < own.target;
      entries_.push_back(
          {.value = uint32_t{port} << 16 | entropy_flow_label(port), .plane = plane, .active = is_active});
      (is_active ? own.active : own.backups).push_back(ev);
    }
    shuffle(own.active);
  }
  count_planes();
}

void EvTable::count_planes() {
  up_planes_ = usable_planes_ = 0;
  for (uint32_t plane = 0; plane < planes(); ++plane) {
    up_planes_ += planes_[plane].up;
    usable_planes_ += is_usable(plane);
  }
}

void EvTable::set_up(uint32_t plane, bool up) {
  planes_[plane].up = up;
  count_planes();
}

// Of the EV that is added next.
uint16_t EvTable::unused_port() {
  while (true) {
    const auto port = static_cast<uint16_t>(kFirstEvPort | rng_.below(kEntropies));
    const std::pair<uint16_t, uint16_t> added(port, static_cast<uint16_t>(entries_.size()));
    const auto place = std::ranges::lower_bound(ev_of_port_, std::pair<uint16_t, uint16_t>(port, 0));
    if (place != ev_of_port_.end() && place->first == port) continue;
    ev_of_port_.insert(place, added);
    return port;
  }
}

std::optional<size_t> EvTable::find(uint32_t value) const {
  const auto port = static_cast<uint16_t>(value >> 16);
  const auto place = std::ranges::lower_bound(ev_of_port_, std::pair<uint16_t, uint16_t>(port, 0));
  if (place == ev_of_port_.end() || place->first != port) return std::nullopt;
  return place->second;
}

void EvTable::shuffle(std::vector<uint32_t>& evs) {
  for (size_t left = evs.size(); left > 1; --left) std::swap(evs[left - 1], evs[rng_.below(left)]);
}

std::optional<size_t> EvTable::next(uint32_t plane) {
  Plane& own = planes_[plane];
  // All may be to be passed over; then each is good in the second rotation.
  for (size_t passed = 0; passed <= 2 * own.active.size() && !own.active.empty(); ++passed) {
    if (own.turn >= own.active.size()) {
      own.turn = 0;
      shuffle(own.active);
    }
    const uint32_t ev = own.active[own.turn++];
    if (entries_[ev].state == EvState::kGood) return ev;
    entries_[ev].state = EvState::kGood;
    ++counters_.evs_to_good;
  }
  if (own.bad.empty()) return std::nullopt;
  own.bad_turn = (own.bad_turn + 1) % own.bad.size();
  return own.bad[own.bad_turn];
}

void EvTable::on_congestion(size_t ev) {
  Entry& entry = entries_[ev];
  if (entry.state != EvState::kGood) return;
  entry.state = EvState::kSkip;
  ++counters_.evs_to_skip;
}

bool EvTable::on_failure(size_t ev) {
  Entry& entry = entries_[ev];
  if (entry.state != EvState::kGood && entry.state != EvState::kSkip) return false;
  leave(ev);
  entry.state = EvState::kAssumedBad;
  planes_[entry.plane].bad.push_back(static_cast<uint32_t>(ev));
  ++counters_.evs_to_assumed_bad;
  return true;
}

void EvTable::on_probe_answer(size_t ev, bool marked) {
  if (entries_[ev].state != EvState::kAssumedBad) return;
  std::erase(planes_[entries_[ev].plane].bad, static_cast<uint32_t>(ev));
  enter(ev, marked);
}

void EvTable::deny(size_t ev) {
  Entry& entry = entries_[ev];
  if (entry.state == EvState::kDenied) return;
  if (entry.state == EvState::kAssumedBad) {
    std::erase(planes_[entry.plane].bad, static_cast<uint32_t>(ev));
  } else {
    leave(ev);
  }
  entry.state = EvState::kDenied;
}

void EvTable::allow(size_t ev) {
  if (entries_[ev].state == EvState::kDenied) enter(ev, false);
}

// Out of use, a backup of the same plane in its place. That takes its turn where the other had it, so that
// the plane sends as much as before.
void EvTable::leave(size_t ev) {
  Entry& entry = entries_[ev];
  Plane& own = planes_[entry.plane];
  const auto number = static_cast<uint32_t>(ev);
  if (!entry.active) {
    std::erase(own.backups, number);
    return;
  }
  entry.active = false;
  const auto place = std::ranges::find(own.active, number);
  if (!own.backups.empty()) {
    *place = own.backups.back();
    own.backups.pop_back();
    entries_[*place].active = true;
    return;
  }
  if (static_cast<size_t>(place - own.active.begin()) < own.turn) --own.turn;
  own.active.erase(place);
  count_planes();
}

// In use again: in the next turn of the rotation, or as a backup if the plane has enough.
void EvTable::enter(size_t ev, bool marked) {
  Entry& entry = entries_[ev];
  Plane& own = planes_[entry.plane];
  const auto number = static_cast<uint32_t>(ev);
  entry.state = marked ? EvState::kSkip : EvState::kGood;
  ++(marked ? counters_.evs_to_skip : counters_.evs_to_good);
  entry.active = own.active.size() < own.target;
  if (entry.active)
    own.active.push_back(number);
  else
    own.backups.insert(own.backups.begin(), number);
  count_planes();
}

}  // namespace weft::mrc
