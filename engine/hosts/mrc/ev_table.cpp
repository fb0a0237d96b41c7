#include "hosts/mrc/ev_table.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "hosts/rc_config.hpp"
#include "paths/path_choice.hpp"

namespace weft::mrc {
namespace {

constexpr uint16_t kFirstEvPort = 0xC000;
// Of a rotation of many EVs, and of one of few.
constexpr size_t kBlocks = 4;
constexpr size_t kLeastBlock = 4;
constexpr uint32_t kEntropies = kEntropyMask + 1u;

void require_counts(uint32_t planes, uint32_t active, uint32_t backups) {
  if (planes == 0 || active < planes || active + backups > kEntropies / 2) {
    throw std::invalid_argument(std::to_string(active) + " EVs and " + std::to_string(backups) +
                                " backups for " + std::to_string(planes) +
                                " planes (valid: an EV for each plane, 8192 together)");
  }
}

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
    : planes_(planes),
      rng_(seed, "mrc entropy values"),
      probe_rng_(seed, "mrc ev probes"),
      counters_(counters) {
  require_counts(planes, active, backups);
  for (uint32_t plane = 0; plane < planes; ++plane) {
    Plane& own = planes_[plane];
    own.target = active / planes;
    const uint32_t count = own.target + backups / planes;
    for (uint32_t number = 0; number < count; ++number) {
      const uint16_t port = unused_port();
      add(plane, uint32_t{port} << 16 | entropy_flow_label(port));
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

EvTable::EvTable(const std::vector<const std::vector<EvRoute>*>& by_plane, bool encapsulates, uint32_t active,
                 uint32_t backups, uint64_t seed, MrcCounters& counters)
    : planes_(by_plane.size()),
      rng_(seed, "mrc entropy values"),
      probe_rng_(seed, "mrc ev probes"),
      counters_(counters) {
  name_paths_ = true;
  const auto planes = static_cast<uint32_t>(by_plane.size());
  require_counts(planes, active, backups);
  for (uint32_t plane = 0; plane < planes; ++plane) {
    const std::vector<EvRoute>& routes = *by_plane[plane];
    std::vector<uint32_t> chosen(routes.size());
    std::iota(chosen.begin(), chosen.end(), 0u);
    const size_t most = active / planes + backups / planes;
    // Otherwise the backups of all queue pairs would be the same paths.
    shuffle(chosen);
    chosen.resize(std::min(chosen.size(), most));
    Plane& own = planes_[plane];
    own.target = std::min(active / planes, static_cast<uint32_t>(chosen.size()));
    for (const uint32_t number : chosen) {
      const EvRoute& route = routes[number];
      if (!claim_port(static_cast<uint16_t>(route.value >> 16)))
        throw std::invalid_argument("two EVs have the same UDP source port");
      add(plane, route.value);
      if (encapsulates) outers_.push_back(route.outer_destination);
    }
    shuffle(own.active);
  }
}

// As an active EV until the plane has enough.
void EvTable::add(uint32_t plane, uint32_t value) {
  Plane& own = planes_[plane];
  const auto ev = static_cast<uint32_t>(entries_.size());
  const bool is_active = own.active.size() < own.target;
  entries_.push_back({.value = value, .plane = plane, .active = is_active});
  (is_active ? own.active : own.backups).push_back(ev);
}

// For the EV that is added next. Returns whether no other has it.
bool EvTable::claim_port(uint16_t port) {
  const auto place = std::ranges::lower_bound(ev_of_port_, std::pair<uint16_t, uint16_t>(port, 0));
  if (place != ev_of_port_.end() && place->first == port) return false;
  ev_of_port_.insert(place, {port, static_cast<uint16_t>(entries_.size())});
  return true;
}

uint16_t EvTable::unused_port() {
  while (true) {
    const auto port = static_cast<uint16_t>(kFirstEvPort | rng_.below(kEntropies));
    if (claim_port(port)) return port;
  }
}

std::optional<size_t> EvTable::first_of(size_t plane) const {
  const auto place = std::ranges::find(entries_, plane, &Entry::plane);
  return place == entries_.end() ? std::nullopt
                                 : std::optional(static_cast<size_t>(place - entries_.begin()));
}

std::optional<size_t> EvTable::find(uint32_t value) const {
  const auto port = static_cast<uint16_t>(value >> 16);
  const auto place = std::ranges::lower_bound(ev_of_port_, std::pair<uint16_t, uint16_t>(port, 0));
  if (place == ev_of_port_.end() || place->first != port) return std::nullopt;
  return place->second;
}

void EvTable::shuffle(std::span<uint32_t> evs) {
  for (size_t left = evs.size(); left > 1; --left) std::swap(evs[left - 1], evs[rng_.below(left)]);
}

// Where EVs name paths, just one EV of a queue pair takes a failed spine, so packets are lost until its next
// turn. An order that is drawn anew would leave it alone for up to two rotations, or give it two turns in a
// row, which lose two packets. Within a block no EV waits for more than a rotation and a block. The blocks of
// the next rotation straddle those of this one, so that after some rotations every EV may follow every other.
void EvTable::stir(Plane& plane) {
  std::span<uint32_t> rest(plane.active);
  const size_t block = std::max(kLeastBlock, rest.size() / kBlocks);
  size_t length = plane.is_shifted ? block / 2 : block;
  plane.is_shifted = !plane.is_shifted;
  for (; !rest.empty(); length = block) {
    length = std::min(length, rest.size());
    shuffle(rest.first(length));
    rest = rest.subspan(length);
  }
}

std::optional<size_t> EvTable::next(uint32_t plane) {
  Plane& own = planes_[plane];
  // All may be to be passed over; then each is good in the second rotation.
  for (size_t passed = 0; passed <= 2 * own.active.size() && !own.active.empty(); ++passed) {
    if (own.turn >= own.active.size()) {
      own.turn = 0;
      name_paths_ ? stir(own) : shuffle(own.active);
    }
    const uint32_t ev = own.active[own.turn++];
    if (entries_[ev].state == EvState::kGood) {
      ++entries_[ev].turns;
      return ev;
    }
    entries_[ev].state = EvState::kGood;
    ++counters_.evs_to_good;
  }
  if (own.bad.empty()) return std::nullopt;
  own.bad_turn = (own.bad_turn + 1) % own.bad.size();
  ++entries_[own.bad[own.bad_turn]].turns;
  return own.bad[own.bad_turn];
}

std::optional<size_t> EvTable::next_reverse(uint32_t plane) {
  const uint32_t proven = planes_[plane].proven;
  if (proven == kNone || !works(proven)) return next(plane);
  ++entries_[proven].turns;
  return proven;
}

std::optional<size_t> EvTable::drawn() {
  const size_t first = probe_rng_.below(entries_.size());
  const auto may_be_probed = [&](size_t ev) { return works(ev) && planes_[entries_[ev].plane].up; };
  if (may_be_probed(first)) return first;
  std::vector<uint32_t> others;
  for (size_t ev = 0; ev < entries_.size(); ++ev) {
    if (may_be_probed(ev)) others.push_back(static_cast<uint32_t>(ev));
  }
  if (others.empty()) return std::nullopt;
  return others[probe_rng_.below(others.size())];
}

std::vector<EvStateCounts> EvTable::states() const {
  std::vector<EvStateCounts> by_plane(planes_.size());
  for (const Entry& entry : entries_) ++by_plane[entry.plane][static_cast<size_t>(entry.state)];
  return by_plane;
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
  if (is_needed(ev)) return false;
  leave(ev);
  entry.state = EvState::kAssumedBad;
  planes_[entry.plane].bad.push_back(static_cast<uint32_t>(ev));
  ++counters_.evs_to_assumed_bad;
  if (observer_ != nullptr) observer_->on_ev_state(ev, EvState::kAssumedBad);
  return true;
}

// Whether no backup would replace it and too few would be left.
bool EvTable::is_needed(size_t ev) const {
  const Entry& entry = entries_[ev];
  if (!entry.active || !planes_[entry.plane].backups.empty()) return false;
  size_t active = 0;
  for (const Plane& plane : planes_) active += plane.active.size();
  return active <= min_active_;
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

bool EvTable::has_other_than(size_t ev) const {
  for (size_t other = 0; other < entries_.size(); ++other) {
    if (other != ev && entries_[other].state != EvState::kDenied) return true;
  }
  return false;
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
  if (observer_ != nullptr) observer_->on_ev_state(ev, EvState::kGood);
}

}  // namespace weft::mrc
