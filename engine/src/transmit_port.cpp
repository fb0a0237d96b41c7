#include "transmit_port.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>
#include <utility>

#include "pcap_writer.hpp"
#include "probe.hpp"

namespace weft {

TransmitPort::TransmitPort(Engine& engine, PortConfig config, Link& link)
    : engine_(engine),
      config_(config),
      rate_(config.rate_bps),
      link_(link),
      line_free_(engine.events(), member_action<&TransmitPort::on_line_free>(this)) {
  if (config.classes < 1 || config.classes > kMaxClasses)
    throw std::invalid_argument("port with " + std::to_string(config.classes) + " classes (1 to 8)");
  if (config.queue_capacity_bytes == 0)
    throw std::invalid_argument("port queue_capacity_bytes is 0 (1 or more)");
  if (&link.engine() != &engine) throw std::invalid_argument("a port and its link are of two engines");
}

int TransmitPort::clamp_class(int priority_class) const {
  return std::clamp(priority_class, 0, config_.classes - 1);
}

const TransmitPort::ClassQueue& TransmitPort::class_queue(int priority_class) const {
  if (priority_class < 0 || priority_class >= config_.classes)
    throw std::out_of_range("priority class " + std::to_string(priority_class) + " (0 to " +
                            std::to_string(config_.classes - 1) + ")");
  return classes_[static_cast<size_t>(priority_class)];
}

bool TransmitPort::enqueue(PacketPtr packet, int priority_class) {
  priority_class = clamp_class(priority_class);
  ClassQueue& queue = classes_[static_cast<size_t>(priority_class)];
  const uint64_t size = packet->wire_bytes();
  if (queue_depth_bytes_ + size > config_.queue_capacity_bytes) {
    queue.tail_dropped.add(size);
    tail_dropped_.add(size);
    if (Probe* probe = engine_.probe()) probe->dropped(this, DropPlace::kQueue, 0, size, priority_class);
    return false;
  }
  const TimePs now = engine_.now();
  queue.packets.push({std::move(packet), now, queue_depth_bytes_});
  queue.depth_bytes += size;
  queue_depth_bytes_ += size;
  ++queue_depth_packets_;
  nonempty_classes_ |= 1u << priority_class;
  start_if_idle(now, config_.arrivals_serialised ? now - rate_.serialisation_ps(size) : now);
  max_queue_depth_bytes_ = std::max(max_queue_depth_bytes_, queue_depth_bytes_);
  return true;
}

void TransmitPort::receive(int /*port*/, PacketPtr packet) { enqueue(std::move(packet), 0); }

void TransmitPort::set_egress_stage(EgressStage* stage, int number) {
  stage_ = stage;
  stage_port_ = number;
}

void TransmitPort::set_source(PacketSource* source) {
  source_ = source;
  if (source != nullptr) kick();
}

void TransmitPort::kick() {
  const TimePs now = engine_.now();
  start_if_idle(now, now);
}

void TransmitPort::start_if_idle(TimePs now, TimePs earliest_ps) {
  if (serving_ || line_free_.armed()) return;
  if (now < busy_until_ps_)
    line_free_.arm(busy_until_ps_);
  else
    serve(std::max(earliest_ps, busy_until_ps_));
}

void TransmitPort::on_line_free() { serve(busy_until_ps_); }

void TransmitPort::serve(TimePs start_ps) {
  // An egress stage or a source may call back into enqueue() or kick(); the loop below picks that up.
  struct Serving {
    bool& flag;
    explicit Serving(bool& serving) : flag(serving) { flag = true; }
    ~Serving() { flag = false; }
  } serving(serving_);

  int priority_class = 0;
  while (PacketPtr packet = next_packet(start_ps, priority_class)) {
    const uint64_t size = packet->wire_bytes();
    transmitted_.add(size);
    classes_[static_cast<size_t>(priority_class)].transmitted.add(size);
    if (capture_ != nullptr) capture_->write(start_ps, *packet);
    const TimePs end_ps = start_ps + rate_.serialisation_ps(size);
    link_.transmit(std::move(packet), end_ps);
    if (end_ps > start_ps) {
      busy_until_ps_ = end_ps;
      // Nothing to send next: the line falls idle without costing an event, and kick() looks at
      // busy_until_ps_.
      if (nonempty_classes_ != 0 || source_ != nullptr) line_free_.arm(end_ps);
      return;
    }
  }
}

PacketPtr TransmitPort::next_packet(TimePs start_ps, int& priority_class) {
  while (nonempty_classes_ != 0) {
    QueueStamp stamp;
    PacketPtr packet = dequeue(start_ps, stamp);
    priority_class = stamp.priority_class;
    if (stage_ == nullptr) return packet;
    const uint64_t size = packet->wire_bytes();
    packet = stage_->on_dequeue(stage_port_, std::move(packet), stamp);
    if (packet != nullptr) return packet;
    egress_dropped_.add(size);
  }
  if (source_ == nullptr) return nullptr;
  priority_class = 0;
  return source_->pull(start_ps);
}

PacketPtr TransmitPort::dequeue(TimePs start_ps, QueueStamp& stamp) {
  const int priority_class = static_cast<int>(std::bit_width(nonempty_classes_)) - 1;
  ClassQueue& queue = classes_[static_cast<size_t>(priority_class)];
  Waiting waiting = queue.packets.pop();
  const uint64_t size = waiting.packet->wire_bytes();
  if (queue.packets.empty()) nonempty_classes_ &= ~(1u << priority_class);
  queue.depth_bytes -= size;
  queue_depth_bytes_ -= size;
  --queue_depth_packets_;
  stamp = {.enqueued_ps = waiting.enqueued_ps,
           .enqueue_depth_bytes = waiting.enqueue_depth_bytes,
           .dequeued_ps = start_ps,
           .dequeue_depth_bytes = queue_depth_bytes_,
           .priority_class = priority_class};
  return std::move(waiting.packet);
}

void TransmitPort::set_rate_bps(uint64_t rate_bps) {
  config_.rate_bps = rate_bps;
  rate_ = BitRate(rate_bps);
}

uint64_t TransmitPort::queue_depth_bytes(int priority_class) const {
  return class_queue(priority_class).depth_bytes;
}

uint64_t TransmitPort::queue_depth_packets(int priority_class) const {
  return class_queue(priority_class).packets.size();
}

const TrafficCounter& TransmitPort::transmitted(int priority_class) const {
  return class_queue(priority_class).transmitted;
}

const TrafficCounter& TransmitPort::tail_dropped(int priority_class) const {
  return class_queue(priority_class).tail_dropped;
}

void TransmitPort::reset_counters() {
  transmitted_ = tail_dropped_ = egress_dropped_ = TrafficCounter();
  for (ClassQueue& queue : classes_) queue.transmitted = queue.tail_dropped = TrafficCounter();
  max_queue_depth_bytes_ = queue_depth_bytes_;
}

}  // namespace weft
