// A shared receive queue of a client.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "hosts/shared_receives.hpp"
#include "verbs/client.hpp"
#include "verbs/client_memory.hpp"
#include "verbs/protocol.hpp"
#include "verbs/shared_memory.hpp"
#include "verbs/values.hpp"
#include "verbs/work_ring.hpp"

namespace weft::verbs {

class ClientSharedQueue {
 public:
  // Throws std::system_error.
  ClientSharedQueue(Client& client, uint32_t domain, uint32_t requests, uint32_t pieces, uint64_t cookie)
      : client_(client),
        domain_(domain),
        cookie_(cookie),
        ring_(requests, receive_entry_bytes(pieces), pieces),
        memory_(ring_.size_bytes()) {
    ring_.place(memory_, 0);
  }

  uint32_t domain() const { return domain_; }
  int descriptor() const { return memory_.descriptor(); }
  uint32_t entries() const { return ring_.size(); }
  uint32_t max_pieces() const { return ring_.max_pieces(); }
  const std::shared_ptr<SharedReceives>& receives() const { return receives_; }
  uint32_t asynchronous_events = 0;
  uint32_t users = 0;  // queue pairs that take receives from here

  size_t limit() const { return receives_->limit(); }
  // An event tells once that fewer are left; 0: none.
  void arm(size_t limit) {
    receives_->arm(limit, [this] {
      if (client_.raise(kEventSharedLimit, cookie_)) ++asynchronous_events;
    });
  }

  // Takes what the client has posted. A receive with more pieces than the queue has is one of no bytes, so
  // that whoever takes it fails as with one that is too short.
  void take_receives() {
    // Clients that count their receives never hold more than the ring has places.
    for (uint32_t left = ring_.waiting(); left > 0 && held_.count() < ring_.size(); --left) {
      const ReceiveEntry* entry = ring_.take();
      if (entry == nullptr) return;
      const uint32_t count = entry->pieces <= ring_.max_pieces() ? entry->pieces : 0;
      const auto pieces =
          client_.pieces(domain_, reinterpret_cast<const Piece*>(ring_.after_entry()), count, true);
      receives_->post({.length_bytes = pieces->length_bytes(),
                       .work_id = held_.put(entry->work_id),
                       .owner = pieces,
                       .foreign = pieces.get()});
    }
  }
  // The work identifier of a receive that has completed.
  uint64_t finish(uint64_t place) {
    const bool was_full = held_.count() == ring_.size();
    const uint64_t work_id = held_.take(place);
    if (was_full) take_receives();
    return work_id;
  }

 private:
  Client& client_;
  uint32_t domain_;
  uint64_t cookie_;
  WorkRing<ReceiveEntry> ring_;
  SharedMemory memory_;
  HeldReceives held_;
  std::shared_ptr<SharedReceives> receives_ = std::make_shared<SharedReceives>();
};

}  // namespace weft::verbs
