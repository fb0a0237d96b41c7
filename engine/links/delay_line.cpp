#include "links/delay_line.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "links/link.hpp"
#include "links/pcap_writer.hpp"
#include "memory/prefetch.hpp"
#include "observe/probe.hpp"
#include "time/outbox.hpp"
#include "time/partition.hpp"

namespace weft {

// Both compilers lay such a class out as if it were a standard one.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
struct DelayLine::Layout {
  static_assert(EventQueue::kRanks <= 1ull << 32, "rank_ has 32 bits");
  static_assert(offsetof(DelayLine, capture_) == kCacheLineBytes, "a packet touches one cache line");
};
#pragma GCC diagnostic pop

DelayLine::DelayLine(Engine& engine, const Link* link)
    : engine_(engine),
      timer_(engine.events(), member_action<&DelayLine::on_due>(this)),
      rank_(static_cast<uint32_t>(engine.events().reserve_rank())),
      between_partitions_(link != nullptr && &link->engine() != &engine),
      link_(link) {
  engine.conservation().add_holder(this, &DelayLine::count_held);
  if (engine.partition() != nullptr) engine.partition()->add_visited(*this);
}

DelayLine::~DelayLine() {
  take_all();
  timer_.give_back(engine_.events());
}

void DelayLine::take_in(OutboxBatch& batch) {
  PacketChain& sent = batch.chain;
  const bool fit = in_order_.empty() || in_order_.last_due_ps() <= sent.first_due_ps();
  if (fit && batch.sorted && !has_overtaken()) [[likely]] {
    in_order_.append(std::exchange(sent, {}));
  } else {
    while (!sent.empty()) {
      const TimePs due_ps = sent.first_due_ps();
      add(sent.pop(), due_ps);
    }
  }
  wake();
}

void DelayLine::wake() {
  EventQueue& events = engine_.events();
  if (const TimePs due_ps = first_due_ps(); due_ps != timer_.deadline(events))
    timer_.arm(events, due_ps, rank_);
  // All other delay lines are woken before it comes.
  prefetch_packet<CacheLevel::kSecond>(in_order_.first());
}

bool DelayLine::add_among(Packet* packet, TimePs due_ps) {
  // To the chain whose last packet is the latest of those not later than this one; several senders on one
  // delay line may leave none, and then the packet goes forward to its place.
  const TimePs first_before_ps = first_due_ps();
  const TimePs first_back_ps = in_order_.empty() ? -1 : in_order_.last_due_ps();
  const TimePs second_back_ps = overtaken_.empty() ? -1 : overtaken_.last_due_ps();
  const bool first_fits = first_back_ps <= due_ps;
  const bool second_fits = second_back_ps <= due_ps;
  const bool to_first = first_fits && (!second_fits || first_back_ps >= second_back_ps);
  (to_first ? in_order_ : overtaken_).insert(packet, due_ps);
  look_for_extras();
  return due_ps < first_before_ps;
}

inline PacketPtr DelayLine::pop_first() {
  Packet* packet = nullptr;
  if (extras_) [[unlikely]] {
    packet = (overtaken_.first_due_ps() < in_order_.first_due_ps() ? overtaken_ : in_order_).pop();
    look_for_extras();
  } else {
    packet = in_order_.pop();
  }
  if (between_partitions_) engine_.packets().claim(*packet);
  return PacketPtr(packet);
}

std::vector<PacketPtr> DelayLine::take_all() {
  std::vector<PacketPtr> packets;
  while (first_due_ps() != kNever) packets.push_back(pop_first());
  timer_.cancel(engine_.events());
  return packets;
}

void DelayLine::count_held(const void* line, HeldPackets& held) {
  const auto& self = *static_cast<const DelayLine*>(line);
  for (const PacketChain* chain : {&self.in_order_, &self.overtaken_})
    chain->for_each([&](const Packet& packet) { held.in_flight.add(packet.traffic()); });
}

void DelayLine::on_due() {
  PacketPtr packet = pop_first();
  // Few packets, those of other delay lines, come before it.
  prefetch_packet(in_order_.first());
  if (const TimePs next_ps = first_due_ps(); next_ps != kNever) timer_.arm(engine_.events(), next_ps, rank_);
  if (packet->damaged()) [[unlikely]] {
    drop_damaged(*packet);
    return;
  }
  packet->received_ps = engine_.now();
  if (extras_ && capture_ != nullptr) [[unlikely]]
    capture_->write(engine_.now(), *packet, CaptureDirection::kInbound);
  node_->receive(port_, std::move(packet));
}

void DelayLine::drop_damaged(const Packet& packet) {
  damaged_.add(packet.traffic());
  engine_.conservation().drop(DropPlace::kLink, static_cast<size_t>(LinkDrop::kCorrupted), packet.traffic());
  if (Probe* probe = engine_.probe())
    probe->dropped(link_, DropPlace::kLink, static_cast<size_t>(LinkDrop::kCorrupted), packet.wire_bytes(),
                   -1);
}

}  // namespace weft
