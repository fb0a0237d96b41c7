// The entropy values (EVs) of an MRC queue pair and their states: events in, the next EV out. Pure state,
// without clock and packets. Source: OCP MRC 1.0, section 9, as docs/mrc.md describes it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "hosts/mrc/ev_routes.hpp"
#include "hosts/mrc/mrc_counters.hpp"
#include "time/random.hpp"

namespace weft::mrc {

enum class EvState : uint8_t {
  kGood,
  kSkip,        // congested: passed over once, then good again
  kAssumedBad,  // its path is taken for dead: no data until a probe comes back
  kDenied,      // by the administrator: neither data nor probes
};
constexpr size_t kEvStates = 4;
const char* ev_state_name(EvState state);
// How many EVs are in which state.
using EvStateCounts = std::array<uint64_t, kEvStates>;

// Hears of EVs whose paths are taken for dead, and of those that are in use again.
class EvObserver {
 public:
  virtual ~EvObserver() = default;
  virtual void on_ev_state(size_t ev, EvState state) = 0;
};

// EVs have indices: those of plane 0 first, of each plane the active ones before the backups.
class EvTable {
 public:
  // Each of `planes` planes gets active / planes EVs to send with and backups / planes in reserve, at least
  // one active. Throws std::invalid_argument if a plane would have none, or all together are more than there
  // are values.
  EvTable(uint32_t planes, uint32_t active, uint32_t backups, uint64_t seed, MrcCounters& counters);
  // The same with EVs that name paths: `by_plane` has those of each plane, of which a plane takes as many as
  // there are at most, drawn at random. With fewer than active / planes, all are active. Throws
  // std::invalid_argument also if two EVs have the same UDP source port.
  EvTable(const std::vector<const std::vector<EvRoute>*>& by_plane, bool encapsulates, uint32_t active,
          uint32_t backups, uint64_t seed, MrcCounters& counters);

  size_t size() const { return entries_.size(); }
  uint32_t planes() const { return static_cast<uint32_t>(planes_.size()); }
  EvState state(size_t ev) const { return entries_[ev].state; }
  bool is_active(size_t ev) const { return entries_[ev].active; }
  // How many times it was chosen for a packet.
  uint64_t turns(size_t ev) const { return entries_[ev].turns; }
  uint32_t plane_of(size_t ev) const { return entries_[ev].plane; }
  std::optional<size_t> first_of(size_t plane) const;
  // UDP source port in the upper half, what goes into IPv6's flow label in the lower.
  uint32_t value(size_t ev) const { return entries_[ev].value; }
  // Of the outer header of its packets; nothing if they have none.
  std::optional<roce::IpAddress> outer_destination(size_t ev) const {
    return outers_.empty() ? std::nullopt : std::optional(outers_[ev]);
  }
  bool encapsulates() const { return !outers_.empty(); }
  // By the upper half alone: over IPv4 there is no more.
  std::optional<size_t> find(uint32_t value) const;

  // The EV of the plane for the next packet. Its active EVs take turns in an order that is drawn anew for
  // each rotation; where EVs name paths, neighbours change places instead (stir()). One to be passed over
  // becomes good. With none left one of those assumed bad, as a probe that carries data. Nothing if all are
  // denied.
  std::optional<size_t> next(uint32_t plane);
  // The EV of the plane for SACKs and NACKs (the reverse EV set): the one whose path an answer proved
  // last, unless it is denied or assumed bad by now. Until there is one, as next().
  std::optional<size_t> next_reverse(uint32_t plane);
  // An answer shows that a packet with this EV has arrived.
  void on_proof(size_t ev) {
    if (works(ev)) planes_[entries_[ev].plane].proven = static_cast<uint32_t>(ev);
  }
  // One drawn at random from those that are neither denied nor assumed bad, on planes that are up; nothing if
  // there is none.
  std::optional<size_t> drawn();
  // Whether the plane is up, and has an EV to send with that is not assumed bad.
  bool is_usable(uint32_t plane) const { return planes_[plane].up && !planes_[plane].active.empty(); }
  // Whether packets may go over the plane: one without an EV that works is left alone as long as another has
  // one, and one that is down as long as another is up.
  bool may_use(uint32_t plane) const {
    return is_usable(plane) || (usable_planes_ == 0 && (planes_[plane].up || up_planes_ == 0));
  }

  bool may_use_all() const { return usable_planes_ == planes_.size(); }

  // The path has marked a packet, or trimmed it before its last hop.
  void on_congestion(size_t ev);
  // A packet was lost without a word, or the peer says so (always-skip). Returns whether that is news. The EV
  // stays in use if fewer than `min_active` would be active without it.
  bool on_failure(size_t ev);
  // A probe of an EV that is assumed bad came back, marked or not.
  void on_probe_answer(size_t ev, bool marked);
  // The plane's port is up at both ends, or not at one of them. Its EVs keep their states.
  void set_up(uint32_t plane, bool up);
  bool is_up(uint32_t plane) const { return planes_[plane].up; }
  // By the administrator; allow() makes good what deny() has excluded.
  void deny(size_t ev);
  void allow(size_t ev);
  // Whether another EV is not denied.
  bool has_other_than(size_t ev) const;
  // By plane.
  std::vector<EvStateCounts> states() const;
  void set_min_active(uint32_t count) { min_active_ = count; }
  // Null: nobody.
  void observe(EvObserver* observer) { observer_ = observer; }

 private:
  static constexpr uint32_t kNone = ~0u;

  struct Entry {
    uint32_t value = 0;
    uint32_t plane = 0;
    uint64_t turns = 0;
    EvState state = EvState::kGood;
    bool active = false;
  };
  struct Plane {
    std::vector<uint32_t> active;   // in the order of this rotation
    std::vector<uint32_t> backups;  // good ones, the next last
    std::vector<uint32_t> bad;      // assumed bad
    size_t turn = 0;                // in active
    bool is_shifted = false;        // stir() has blocks that begin half a block earlier
    size_t bad_turn = 0;
    uint32_t target = 0;  // how many are to be active
    uint32_t proven = kNone;
    bool up = true;
  };

  void add(uint32_t plane, uint32_t value);
  bool claim_port(uint16_t port);
  uint16_t unused_port();
  void shuffle(std::span<uint32_t> evs);
  void stir(Plane& plane);
  void count_planes();
  void leave(size_t ev);
  void enter(size_t ev, bool marked);
  bool is_needed(size_t ev) const;
  bool works(size_t ev) const {
    return entries_[ev].state == EvState::kGood || entries_[ev].state == EvState::kSkip;
  }

  std::vector<Entry> entries_;
  std::vector<roce::IpAddress> outers_;  // by EV; empty without outer headers
  std::vector<Plane> planes_;
  std::vector<std::pair<uint16_t, uint16_t>> ev_of_port_;  // UDP source port, index; sorted
  uint32_t usable_planes_ = 0;
  uint32_t up_planes_ = 0;
  uint32_t min_active_ = 0;
  bool name_paths_ = false;
  EvObserver* observer_ = nullptr;
  Rng rng_;
  Rng probe_rng_;  // apart, so that probes do not change the order of data
  MrcCounters& counters_;
};

}  // namespace weft::mrc
