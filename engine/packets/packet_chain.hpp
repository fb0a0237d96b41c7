// Packets one behind the other, each due at its own time, without memory of their own: a packet under way
// keeps where the one behind it is and when that is due.
#pragma once

#include <utility>

#include "packets/packet.hpp"
#include "time/time.hpp"

namespace weft {

// Does not own the packets. A packet is written to when it comes and when the one behind it comes, and read
// when it goes.
class PacketChain {
 public:
  bool empty() const { return first_ == nullptr; }
  const Packet* first() const { return first_; }
  TimePs first_due_ps() const { return first_due_ps_; }  // kNever when empty
  TimePs last_due_ps() const { return last_due_ps_; }    // unless empty

  // Behind all others.
  void push(Packet* packet, TimePs due_ps) {
    packet->follower = nullptr;
    packet->follower_due_ps = kNever;
    if (first_ == nullptr) {
      first_ = packet;
      first_due_ps_ = due_ps;
    } else {
      last_->follower = packet;
      last_->follower_due_ps = due_ps;
    }
    last_ = packet;
    last_due_ps_ = due_ps;
  }

  // Before the first that is due later. The chain must be sorted.
  void insert(Packet* packet, TimePs due_ps) {
    if (first_ == nullptr || last_due_ps_ <= due_ps) {
      push(packet, due_ps);
      return;
    }
    Packet** place = &first_;
    TimePs* place_due_ps = &first_due_ps_;
    while (*place_due_ps <= due_ps) {
      place_due_ps = &(*place)->follower_due_ps;
      place = &(*place)->follower;
    }
    packet->follower = std::exchange(*place, packet);
    packet->follower_due_ps = std::exchange(*place_due_ps, due_ps);
  }

  // The chain must not be empty.
  Packet* pop() {
    Packet* packet = first_;
    first_ = packet->follower;
    first_due_ps_ = packet->follower_due_ps;
    packet->context = nullptr;  // with a node again
    return packet;
  }

  // All of the other chain's.
  void append(PacketChain other) {
    if (other.empty()) return;
    if (first_ == nullptr) {
      *this = other;
      return;
    }
    last_->follower = other.first_;
    last_->follower_due_ps = other.first_due_ps_;
    last_ = other.last_;
    last_due_ps_ = other.last_due_ps_;
  }

  size_t size() const {
    size_t count = 0;
    for_each([&](const Packet& /*packet*/) { ++count; });
    return count;
  }

  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const Packet* packet = first_; packet != nullptr; packet = packet->follower) visit(*packet);
  }

 private:
  Packet* first_ = nullptr;
  Packet* last_ = nullptr;
  TimePs first_due_ps_ = kNever;
  TimePs last_due_ps_ = 0;
};

}  // namespace weft
