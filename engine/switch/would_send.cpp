// Which way packets would go, without a trace of them.
#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "observe/packet_conservation.hpp"
#include "switch/objects.hpp"
#include "switch/switch.hpp"

namespace weft {
namespace {

// What a packet changes of a switch's objects, to be brought back.
class WrittenByPackets {
 public:
  explicit WrittenByPackets(SwitchObjects& objects)
      : objects_(objects),
        registers_(objects.registers().begin(), objects.registers().end()),
        counters_(objects.counters().begin(), objects.counters().end()),
        meters_(objects.meters().begin(), objects.meters().end()) {
    objects.for_each_entry([this](TableEntry& entry) {
      entries_.emplace_back(entry.counter, entry.last_hit_ps);
      if (entry.meter != nullptr) of_entries_.push_back(*entry.meter);
    });
  }

  void bring_back() const {
    std::ranges::copy(registers_, objects_.registers().begin());
    std::ranges::copy(counters_, objects_.counters().begin());
    std::ranges::copy(meters_, objects_.meters().begin());
    auto next = entries_.begin();
    auto next_meter = of_entries_.begin();
    objects_.for_each_entry([&](TableEntry& entry) {
      std::tie(entry.counter, entry.last_hit_ps) = *next++;
      if (entry.meter != nullptr) *entry.meter = *next_meter++;
    });
  }

 private:
  SwitchObjects& objects_;
  std::vector<uint8_t> registers_;
  std::vector<CounterCell> counters_;
  std::vector<Meter> meters_;
  std::vector<std::pair<CounterCell, int64_t>> entries_;
  std::vector<Meter> of_entries_;
};

}  // namespace

std::vector<std::vector<Switch::Output>> Switch::would_send(std::span<const Input> packets) {
  const WrittenByPackets written(objects());
  const PacketConservation conservation = engine_.conservation();
  const Rng random = random_;
  const auto dropped = dropped_;
  const auto losses = losses_;
  const uint64_t received = received_packets_;
  std::vector<std::vector<Output>> left;
  for (const auto& [port, bytes] : packets) left.push_back(process(port, bytes));
  written.bring_back();
  engine_.conservation() = conservation;
  random_ = random;
  dropped_ = dropped;
  losses_ = losses;
  received_packets_ = received;
  return left;
}

}  // namespace weft
