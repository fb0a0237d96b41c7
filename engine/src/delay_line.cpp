#include "delay_line.hpp"

#include <utility>

#include "pcap_writer.hpp"

namespace weft {

DelayLine::DelayLine(Engine& engine)
    : engine_(engine), timer_(engine.events(), member_action<&DelayLine::on_due>(this)) {}

void DelayLine::push(PacketPtr packet, TimePs due_ps) {
  ++in_flight_;
  if (!fifo_.empty() && due_ps < fifo_.back().due_ps) {
    // Overtaking is rare (several senders on one line), so it may cost an event of its own.
    engine_.schedule_at(due_ps, [this, packet = std::move(packet)]() mutable { deliver(std::move(packet)); });
    return;
  }
  const uint64_t sequence = engine_.events().reserve_sequence();
  if (fifo_.empty()) timer_.arm(due_ps, sequence);
  fifo_.push({std::move(packet), due_ps, sequence});
}

void DelayLine::on_due() {
  PacketPtr packet = std::move(fifo_.pop().packet);
  if (!fifo_.empty()) timer_.arm(fifo_.front().due_ps, fifo_.front().sequence);
  deliver(std::move(packet));
}

void DelayLine::deliver(PacketPtr packet) {
  --in_flight_;
  packet->received_ps = engine_.now();
  if (capture_ != nullptr) capture_->write(engine_.now(), *packet);
  node_->receive(port_, std::move(packet));
}

}  // namespace weft
