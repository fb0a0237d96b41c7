// Whom switches may notify of their queues, by the far end that data go to.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>

#include "hosts/queue_pair.hpp"
#include "packets/roce_formats.hpp"

namespace weft {

// `Sender` has the queue pair as `queue_pair`, and compares its port's address: `&sender.port`.
template <class Sender>
class NotifiedSenders {
 public:
  void add(Sender& sender) {
    if (const auto far_end = sender.queue_pair.notified_for())
      places_.emplace(&sender, by_far_end_.emplace(*far_end, &sender));
  }
  // Asks the queue pair nothing: it may be half destroyed.
  void remove(const Sender& sender) {
    const auto found = places_.find(&sender);
    if (found == places_.end()) return;
    by_far_end_.erase(found->second);
    places_.erase(found);
  }
  // The first that was added, of several; null if there is none at the port.
  template <class Port>
  Sender* find(const FarEnd& far_end, const Port& port) const {
    const auto [begin, end] = by_far_end_.equal_range(far_end);
    for (auto each = begin; each != end; ++each) {
      if (&each->second->port == &port) return each->second;
    }
    return nullptr;
  }

 private:
  struct Order {
    bool operator()(const FarEnd& one, const FarEnd& other) const {
      if (one.queue_pair != other.queue_pair) return one.queue_pair < other.queue_pair;
      return roce::AddressOrder()(one.address, other.address);
    }
  };
  using ByFarEnd = std::multimap<FarEnd, Sender*, Order>;

  ByFarEnd by_far_end_;
  std::unordered_map<const Sender*, typename ByFarEnd::iterator> places_;
};

}  // namespace weft
