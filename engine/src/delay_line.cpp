#include "delay_line.hpp"

#include <algorithm>
#include <utility>

#include "link.hpp"
#include "pcap_writer.hpp"
#include "probe.hpp"

namespace weft {

DelayLine::DelayLine(Engine& engine, const Link* link)
    : engine_(engine),
      link_(link),
      rank_(engine.events().reserve_rank()),
      timer_(engine.events(), member_action<&DelayLine::on_due>(this)) {
  engine.ledger().add_holder(this, &DelayLine::count_held);
}

DelayLine::~DelayLine() { take_all(); }

void DelayLine::take_in(CacheLineVector<Parcel>& parcels) {
  engine_.packets().take_over(parcels.size());
  for (const Parcel& parcel : parcels) push(PacketPtr(parcel.packet), parcel.due_ps);
  parcels.clear();
  prefetch_first();
}

void DelayLine::push_among(PacketPtr packet, TimePs due_ps) {
  // To the queue whose last packet is the latest of those not later than this one; several senders on one
  // line may leave none, and then the packet goes forward to its place.
  const TimePs first_back = in_order_.empty() ? -1 : in_order_.back().due_ps;
  const TimePs second_back = overtaken_.empty() ? -1 : overtaken_.back().due_ps;
  const bool first_fits = first_back <= due_ps;
  const bool second_fits = second_back <= due_ps;
  const bool to_first = first_fits && (!second_fits || first_back >= second_back);
  RingBuffer<InFlight>& queue = to_first ? in_order_ : overtaken_;
  queue.push({std::move(packet), due_ps});
  for (size_t i = queue.size() - 1; i > 0 && queue[i].due_ps < queue[i - 1].due_ps; --i)
    std::swap(queue[i], queue[i - 1]);
  timer_.arm(first_due_ps(), rank_);
}

TimePs DelayLine::first_due_ps() const {
  const TimePs first = in_order_.empty() ? kNever : in_order_.front().due_ps;
  return overtaken_.empty() ? first : std::min(first, overtaken_.front().due_ps);
}

inline PacketPtr DelayLine::pop_first() {
  const bool overtaken =
      !overtaken_.empty() && (in_order_.empty() || overtaken_.front().due_ps < in_order_.front().due_ps);
  PacketPtr packet = (overtaken ? overtaken_ : in_order_).pop().packet;
  engine_.packets().claim(*packet);
  return packet;
}

std::vector<PacketPtr> DelayLine::take_all() {
  std::vector<PacketPtr> packets;
  while (first_due_ps() != kNever) packets.push_back(pop_first());
  timer_.cancel();
  return packets;
}

void DelayLine::count_held(const void* line, HeldPackets& held) {
  const auto& self = *static_cast<const DelayLine*>(line);
  for (const RingBuffer<InFlight>* queue : {&self.in_order_, &self.overtaken_})
    for (size_t i = 0; i < queue->size(); ++i) held.in_flight.add((*queue)[i].packet->wire_bytes());
}

// The other lines' packets come before them.
void DelayLine::prefetch_first() const {
  if (in_order_.empty()) return;
  const Packet& first = *in_order_.front().packet;
  prefetch<CacheLevel::kSecond>(&first, sizeof(Packet));
  prefetch_headers<CacheLevel::kSecond>(first);
  if (in_order_.size() > 1) prefetch<CacheLevel::kSecond>(in_order_[1].packet.get(), sizeof(Packet));
}

// The other lines' packets come before it.
void DelayLine::prefetch_next() const {
  if (in_order_.empty()) return;
  if (in_order_.size() > 1) prefetch(in_order_[1].packet.get(), sizeof(Packet));
  prefetch_headers(*in_order_.front().packet);
}

void DelayLine::on_due() {
  PacketPtr packet = pop_first();
  prefetch_next();
  if (const TimePs next_ps = first_due_ps(); next_ps != kNever) timer_.arm(next_ps, rank_);
  if (packet->damaged()) [[unlikely]] {
    drop_damaged(*packet);
    return;
  }
  packet->received_ps = engine_.now();
  if (capture_ != nullptr) capture_->write(engine_.now(), *packet, CaptureDirection::kInbound);
  node_->receive(port_, std::move(packet));
}

void DelayLine::drop_damaged(const Packet& packet) {
  damaged_.add(packet.wire_bytes());
  engine_.ledger().drop(DropPlace::kLink, static_cast<size_t>(LinkDrop::kCorrupted), packet.wire_bytes());
  if (Probe* probe = engine_.probe())
    probe->dropped(link_, DropPlace::kLink, static_cast<size_t>(LinkDrop::kCorrupted), packet.wire_bytes(),
                   -1);
}

}  // namespace weft
