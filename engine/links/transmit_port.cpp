#include "links/transmit_port.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "links/pcap_writer.hpp"
#include "memory/prefetch.hpp"
#include "observe/probe.hpp"
#include "time/partition.hpp"

namespace weft {

namespace {

// Below it a round would be many times as long as a packet takes to pass.
constexpr uint32_t kSmallestQuantumBytes = 64;

#define WEFT_DROP_COUNTER(enumerator, name, statistic) &PortCounters::statistic,
constexpr std::array<TrafficCounter PortCounters::*, kQueueDrops.size()> kDropCounters{
    WEFT_QUEUE_DROPS(WEFT_DROP_COUNTER)};

}  // namespace

// Both compilers lay such a class out as if it were a standard one.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
struct TransmitPort::Layout {
  static_assert(offsetof(TransmitPort, source_) == kCacheLineBytes,
                "what begins to send a packet is one cache line with the object's head");
  static_assert(offsetof(TransmitPort, observer_) == 2 * kCacheLineBytes,
                "a packet touches two cache lines of a port, and its class's");
};
#pragma GCC diagnostic pop

TransmitPort::TransmitPort(Engine& engine, PortConfig config, Link& link)
    : engine_(engine),
      link_(link),
      rate_(config.rate_bps),
      last_class_(static_cast<int8_t>(config.classes - 1)),
      arrivals_serialised_(config.arrivals_serialised),
      queue_capacity_bytes_(config.queue_capacity_bytes),
      serialiser_free_(engine.events(), member_action<&TransmitPort::on_serialiser_free>(this)),
      round_robin_(config.quantum_bytes),
      config_(config) {
  if (config.classes < 1 || config.classes > kMaxClasses)
    throw std::invalid_argument("port with " + std::to_string(config.classes) + " classes (1 to 8)");
  if (config.queue_capacity_bytes == 0)
    throw std::invalid_argument("port queue_capacity_bytes is 0 (1 or more)");
  if (&link.engine() != &engine) throw std::invalid_argument("a port and its link are of two engines");
  for (const uint32_t quantum_bytes : config.quantum_bytes)
    if (quantum_bytes != 0 && quantum_bytes < kSmallestQuantumBytes)
      throw std::invalid_argument("port quantum_bytes is " + std::to_string(quantum_bytes) +
                                  " (0 for strict priority, or 64 or more)");
  dwrr_classes_ = static_cast<uint8_t>(round_robin_.members());
  engine.conservation().add_holder(this, &TransmitPort::count_held);
  if (engine.partition() != nullptr) engine.partition()->add_visited(*this);
}

const TransmitPort::ClassQueue& TransmitPort::class_queue(int priority_class) const {
  if (priority_class < 0 || priority_class > last_class_)
    throw std::out_of_range("priority class " + std::to_string(priority_class) + " (0 to " +
                            std::to_string(last_class_) + ")");
  return classes_[static_cast<size_t>(priority_class)];
}

// --- in

bool TransmitPort::enqueue(PacketPtr packet, int priority_class, SharedBuffer::Arrival arrival) {
  priority_class = clamp_class(priority_class);
  const uint64_t size = packet->wire_bytes();
  if (plain_) [[likely]] {
    // All classes share the port's memory, as fabrics without `buffer` have it.
    if (queue_depth_bytes_ + size > queue_capacity_bytes_)
      return trim_or_drop(std::move(packet), priority_class, arrival);
  } else if (const Admission admission = admit(priority_class, arrival, packet->traffic());
             admission != Admission::kAdmitted) {
    if (admission == Admission::kFull) return trim_or_drop(std::move(packet), priority_class, arrival);
    note_lost_data(*packet);
    return false;
  }
  const TimePs now = engine_.now();
  // Cut-through: a packet may leave while it arrives, unless its end would then leave before it has come.
  const bool whole = is_whole(*packet, now);
  // The usual case in a fabric that is not congested: no queue is touched.
  if (whole && passes_at_once(priority_class, now))
    pass(std::move(packet), priority_class, now);
  else
    wait(std::move(packet), priority_class, arrival, whole);
  return true;
}

void TransmitPort::wait(PacketPtr packet, int priority_class, SharedBuffer::Arrival arrival, bool whole) {
  const TimePs now = engine_.now();
  const TrafficCounter traffic = packet->traffic();
  ClassQueue& queue = classes_[static_cast<size_t>(priority_class)];
  queue.depth_bytes += traffic.bytes;
  queue.depth_packets += traffic.packets;
  queue_depth_bytes_ += traffic.bytes;
  queue_depth_packets_ += static_cast<uint32_t>(traffic.packets);
  if (!whole) [[unlikely]] {
    const TimePs whole_ps = packet->received_ps;
    push_when_whole(Waiting(std::move(packet), now, arrival), priority_class, whole_ps);
  } else {
    const TimePs earliest_ps = begin_ps(now, *packet);
    queue.packets.push(Waiting(std::move(packet), now, arrival));
    set_nonempty(priority_class);
    start_if_idle(now, earliest_ps);
  }
  max_queue_depth_bytes_ = std::max(max_queue_depth_bytes_, queue_depth_bytes_);
}

TransmitPort::Waiting::Waiting(PacketPtr waiting, TimePs now, SharedBuffer::Arrival from)
    : packet(std::move(waiting)),
      context(packet->context),
      arrival(from),
      size_bytes(static_cast<uint32_t>(packet->wire_bytes())),
      packets(static_cast<uint8_t>(packet->packets())),
      context_bytes(context == nullptr ? 0 : context->used_bytes) {
  packet->enqueued_ps = now;
}

// On a link faster than the one it comes by, its sending would overtake its end.
void TransmitPort::push_when_whole(Waiting waiting, int priority_class, TimePs whole_ps) {
  engine_.schedule_at(whole_ps, [this, priority_class, waiting = std::move(waiting)]() mutable {
    if (!refuses(priority_class)) {
      classes_[static_cast<size_t>(priority_class)].packets.push(std::move(waiting));
      set_nonempty(priority_class);
      kick();
      return;
    }
    leave_queue(waiting, priority_class);
    drop_refused(waiting, priority_class);
  });
}

void TransmitPort::drop_refused(const Waiting& waiting, int priority_class) {
  leave(waiting);
  note_lost_data(*waiting.packet);
  drop(refusal(), priority_class, waiting.traffic());
}

void TransmitPort::note_lost_data(const Packet& packet) {
  if (!up_ && packet.traffic_kind() != Packet::kControlTraffic) last_down_data_drop_ps_ = engine_.now();
}

void TransmitPort::drop(QueueDrop reason, int priority_class, const TrafficCounter& traffic) {
  (counters_.*kDropCounters[static_cast<size_t>(reason)]).add(traffic);
  engine_.conservation().drop(DropPlace::kQueue, static_cast<size_t>(reason), traffic);
  if (reason == QueueDrop::kDown && priority_class != kControl) last_down_drop_ps_ = engine_.now();
  if (reason == QueueDrop::kStorm) discarding_->dropped[static_cast<size_t>(priority_class)].add(traffic);
  if (Probe* probe = engine_.probe())
    probe->dropped(this, DropPlace::kQueue, static_cast<size_t>(reason), traffic.bytes, priority_class);
}

TransmitPort::Admission TransmitPort::admit(int priority_class, SharedBuffer::Arrival& arrival,
                                            const TrafficCounter& traffic) {
  if (refuses(priority_class)) {
    drop(refusal(), priority_class, traffic);
    return Admission::kDropped;
  }
  const auto charge = buffer_->admit(arrival, buffer_port_, priority_class, traffic);
  if (SharedBuffer::admitted(charge)) return Admission::kAdmitted;
  if (charge == SharedBuffer::Charge::kRefusedQueue) return Admission::kFull;
  // A class with flow control: its packets are never trimmed, as nothing of it is to be lost.
  drop(QueueDrop::kNoHeadroom, priority_class, traffic);
  return Admission::kDropped;
}

bool TransmitPort::trim_or_drop(PacketPtr packet, int priority_class, SharedBuffer::Arrival arrival) {
  const TrafficCounter traffic = packet->traffic();
  const bool fits_reserve =
      trimming_ != nullptr && buffer_ == nullptr &&
      queue_depth_bytes_ + traffic.bytes <= queue_capacity_bytes_ + trimming_->config.reserved_bytes;
  if (fits_reserve && priority_class == trimming_->config.priority_class) {
    // Another switch may have trimmed it.
    const bool whole = is_whole(*packet, engine_.now());
    wait(std::move(packet), priority_class, arrival, whole);
    return true;
  }
  if (trimming_ != nullptr && stage_ != nullptr && trimming_->config.trims(priority_class)) {
    const TrimmingConfig& config = trimming_->config;
    if (packet->packets() > 1) return enqueue_each(std::move(packet), priority_class, arrival);
    if (stage_->trim(*packet, config, waiting(config.priority_class))) {
      const TrafficCounter cut{1, traffic.bytes - packet->wire_bytes()};
      trimming_->trimmed[static_cast<size_t>(priority_class)].add(cut);
      counters_.trimmed.add(cut);
      if (buffer_ != nullptr) buffer_->forget_refusal(arrival, traffic);
      return enqueue_trimmed(std::move(packet), arrival);
    }
  }
  tail_dropped_[static_cast<size_t>(priority_class)].add(traffic);
  drop(QueueDrop::kFull, priority_class, traffic);
  return false;
}

// A part of the segment may have room, and each of the others is trimmed on its own.
bool TransmitPort::enqueue_each(PacketPtr segment, int priority_class, SharedBuffer::Arrival arrival) {
  if (buffer_ != nullptr) buffer_->forget_refusal(arrival, segment->traffic());
  const SharedBuffer::Arrival anew(arrival.port, arrival.lane);
  uint64_t refused = 0;
  PacketPtr rest = std::move(segment);
  while (rest != nullptr) {
    PacketPtr first = std::move(rest);
    if (first->packets() > 1) rest = stage_->split(*first);
    if (!enqueue(std::move(first), priority_class, anew)) ++refused;
  }
  if (refused != 0) stage_->on_refused_of_segment(refused);
  return true;
}

bool TransmitPort::enqueue_trimmed(PacketPtr packet, SharedBuffer::Arrival arrival) {
  const int priority_class = trimming_->config.priority_class;
  const TrafficCounter traffic = packet->traffic();
  if (refuses(priority_class)) {
    drop(refusal(), priority_class, traffic);
    return false;
  }
  SharedBuffer::Arrival anew(arrival.port, arrival.lane);
  const bool fits =
      buffer_ != nullptr
          ? SharedBuffer::admitted(buffer_->admit(anew, buffer_port_, priority_class, traffic))
          : queue_depth_bytes_ + traffic.bytes <= queue_capacity_bytes_ + trimming_->config.reserved_bytes;
  if (!fits) {
    drop(QueueDrop::kTrimmed, priority_class, traffic);
    return false;
  }
  const bool whole = is_whole(*packet, engine_.now());
  wait(std::move(packet), priority_class, anew, whole);
  return true;
}

void TransmitPort::receive(int port, PacketPtr packet) {
  const SharedBuffer::Arrival arrival(port, packet->virtual_lane());
  enqueue(std::move(packet), 0, arrival);
}

void TransmitPort::send_control(PacketPtr frame) {
  if (!up_) return;
  engine_.conservation().enter(PacketOrigin::kFlowControl, frame->traffic());
  control_.push(std::move(frame));
  set_nonempty(kMaxClasses);
  kick();
}

// --- settings

void TransmitPort::set_egress_stage(EgressStage* stage, int number) {
  stage_ = stage;
  stage_port_ = static_cast<uint16_t>(number);
}

void TransmitPort::set_source(PacketSource* source) {
  source_ = source;
  if (source == nullptr) return;
  source->on_blocked_classes(blocked_classes_);
  kick();
}

void TransmitPort::count_by_kind() {
  if (by_kind_ != nullptr) return;
  by_kind_ = std::make_unique<TrafficByKind>(observer_);
  observer_ = by_kind_.get();
  look_for_extras();
}

void TransmitPort::set_buffer(SharedBuffer* buffer, uint32_t number) {
  if (queue_depth_packets_ != 0) throw std::logic_error("a port with packets waiting takes no other memory");
  buffer_ = buffer;
  buffer_port_ = number;
  plain_ = up_ && buffer_ == nullptr;
}

void TransmitPort::set_trimming(const TrimmingConfig& config) {
  const auto refuse = [](const std::string& what) { throw std::invalid_argument("port trimming: " + what); };
  if (config.size_bytes < TrimmingConfig::kSmallestBytes)
    refuse("size_bytes is " + std::to_string(config.size_bytes) + " (" +
           std::to_string(TrimmingConfig::kSmallestBytes) + " or more)");
  if (config.dscp >= TrimmingConfig::kDscps)
    refuse("dscp is " + std::to_string(config.dscp) + " (0 to " + std::to_string(TrimmingConfig::kDscps - 1) +
           ")");
  if (config.may_trim(config.dscp))
    refuse("dscp " + std::to_string(config.dscp) + " of trimmed packets is one of trimmable_dscps");
  if (config.priority_class > last_class_)
    refuse("priority_class is " + std::to_string(config.priority_class) + " (0 to " +
           std::to_string(last_class_) + ")");
  if (config.trims(config.priority_class))
    refuse("class " + std::to_string(config.priority_class) + " of trimmed packets is one of classes");
  trimming_ = std::make_unique<Trimming>(Trimming{config, {}});
}

void TransmitPort::set_blocked_classes(uint32_t blocked_classes) {
  if (blocked_classes == blocked_classes_) return;
  const uint32_t released = blocked_classes_ & ~blocked_classes;
  blocked_classes_ = static_cast<uint16_t>(blocked_classes);
  if (source_ != nullptr) source_->on_blocked_classes(blocked_classes);
  if (released != 0) kick();
}

void TransmitPort::set_up(bool up) {
  if (up == up_) return;
  up_ = up;
  plain_ = up_ && buffer_ == nullptr;
  look_for_refused();
  if (!up)
    // As switches flush a port that has lost its link; what is on the link is Link::cut's.
    drop_all_waiting();
  else
    kick();
}

void TransmitPort::set_discarded_classes(uint32_t classes) {
  if (discarding_ == nullptr) discarding_ = std::make_unique<Discarding>();
  const auto added = static_cast<uint8_t>(classes & ~discarding_->classes);
  discarding_->classes = static_cast<uint8_t>(classes);
  look_for_refused();
  for (int each = 0; each <= last_class_; ++each)
    if ((added >> each & 1) != 0) drop_waiting(each);
}

void TransmitPort::look_for_refused() {
  const uint8_t discarded = discarding_ == nullptr ? uint8_t{0} : discarding_->classes;
  refused_classes_ = up_ ? discarded : uint8_t{0xff};
}

void TransmitPort::drop_waiting(int priority_class) {
  while (!classes_[static_cast<size_t>(priority_class)].packets.empty())
    drop_refused(take_first(priority_class), priority_class);
}

void TransmitPort::drop_all_waiting() {
  for (int priority_class = 0; priority_class <= last_class_; ++priority_class) drop_waiting(priority_class);
  while (!control_.empty()) drop(QueueDrop::kDown, kControl, control_.pop()->traffic());
  set_empty(kMaxClasses);
  serialiser_free_.cancel();
  serialiser_armed_ = false;
}

void TransmitPort::occupy_until(TimePs until_ps) {
  if (until_ps <= busy_until_ps_) return;
  busy_until_ps_ = until_ps;
  if (serialiser_armed_ || may_send()) arm_serialiser();
}

void TransmitPort::set_rate_bps(uint64_t rate_bps) {
  config_.rate_bps = rate_bps;
  rate_ = BitRate(rate_bps);
}

void TransmitPort::set_queue_capacity_bytes(uint64_t queue_capacity_bytes) {
  if (queue_capacity_bytes == 0) throw std::invalid_argument("port queue_capacity_bytes is 0 (1 or more)");
  config_.queue_capacity_bytes = queue_capacity_bytes_ = queue_capacity_bytes;
}

void TransmitPort::set_packet_rate_pps(uint64_t packet_rate_pps) {
  packet_rate_pps_ = packet_rate_pps;
  packet_interval_ps_ = packet_rate_pps == 0 ? 0 : kPsPerSecond / static_cast<TimePs>(packet_rate_pps);
  look_for_extras();
}

void TransmitPort::look_for_extras() {
  extras_ = capture_ != nullptr || observer_ != nullptr || (packet_interval_ps_ | rest_ps_) != 0 ||
            segment_packet_ps_ != 0;
}

// --- out

void TransmitPort::kick() {
  const TimePs now = engine_.now();
  start_if_idle(now, now);
}

void TransmitPort::start_if_idle(TimePs now, TimePs earliest_ps) {
  if (serving_) return;
  if (extras_ && segment_packet_ps_ != 0 && now < segment_end_ps_) [[unlikely]]
    send_between_packets(now);
  if (serialiser_armed_) return;
  if (now < busy_until_ps_)
    arm_serialiser();
  else
    serve(std::max(earliest_ps, busy_until_ps_));
}

void TransmitPort::on_serialiser_free() {
  serialiser_armed_ = false;
  serve(busy_until_ps_);
}

bool TransmitPort::may_send() const {
  return (nonempty_classes_ & ~blocked_classes_) != 0 || (source_ != nullptr && source_->may_have_packets());
}

// Looks at nothing itself.
void TransmitPort::prefetch_for(int priority_class) const {
  prefetch(this, kHotBytes);
  prefetch(&classes_[static_cast<size_t>(priority_class)], sizeof(ClassQueue));
}

[[gnu::always_inline]] inline void TransmitPort::pass(PacketPtr packet, int priority_class, TimePs now) {
  const Serving serving(serving_);
  const TimePs start_ps = std::max(begin_ps(now, *packet), busy_until_ps_);
  packet = through_stage(
      std::move(packet),
      {.enqueued_ps = std::min(now, start_ps), .dequeued_ps = start_ps, .priority_class = priority_class});
  if (packet == nullptr || !send(std::move(packet), priority_class, start_ps)) send_waiting(start_ps);
}

void TransmitPort::serve(TimePs start_ps) {
  const Serving serving(serving_);
  send_waiting(start_ps);
}

void TransmitPort::send_waiting(TimePs start_ps) {
  int priority_class = 0;
  while (PacketPtr packet = next_packet(start_ps, priority_class))
    if (send(std::move(packet), priority_class, start_ps)) return;
}

bool TransmitPort::send(PacketPtr packet, int priority_class, TimePs start_ps) {
  if (extras_ || priority_class == kControl || packet->packets() > 1) [[unlikely]]
    return send_with_extras(std::move(packet), priority_class, start_ps);
  const size_t bytes = packet->frame_bytes();
  packet->set_virtual_lane(priority_class);
  classes_[static_cast<size_t>(priority_class)].transmitted.add(bytes);
  used_classes_ = static_cast<uint8_t>(used_classes_ | 1u << priority_class);
  const TimePs end_ps = start_ps + rate_.serialisation_ps(bytes);
  link_.transmit(std::move(packet), link_.is_early() ? start_ps : end_ps);
  // A port without a rate: the next packet leaves at the same moment.
  if (end_ps == start_ps) return false;
  busy_until_ps_ = end_ps;
  sending_class_ = static_cast<int8_t>(priority_class);
  // Nothing to send next: the serialiser falls idle without costing an event, and kick() looks at
  // busy_until_ps_.
  if (may_send()) arm_serialiser();
  return true;
}

bool TransmitPort::send_with_extras(PacketPtr packet, int priority_class, TimePs start_ps) {
  const uint32_t packets = packet->packets();
  TimePs end_ps = transmit(std::move(packet), priority_class, start_ps);
  if ((packet_interval_ps_ | rest_ps_) != 0) {
    const TimePs next_ps = priority_class == kControl ? end_ps : start_ps + packet_interval_ps_ * packets;
    rest_ps_ = std::max<TimePs>(0, next_ps - end_ps);
    end_ps += rest_ps_;
  }
  if (end_ps != start_ps) {
    busy_until_ps_ = end_ps;
    sending_class_ = static_cast<int8_t>(priority_class);
    segment_packet_ps_ = 0;
    if (packets > 1) {
      segment_packet_ps_ = std::max<TimePs>(1, (end_ps - start_ps) / packets);
      segment_end_ps_ = end_ps;
      between_until_ps_ = 0;
      send_between_packets(engine_.now());
    }
    if (may_send()) arm_serialiser();
  }
  look_for_extras();
  return end_ps != start_ps;
}

// What goes before the class of the segment that is being sent leaves when one of its packets has, and delays
// what follows the segment.
void TransmitPort::send_between_packets(TimePs now) {
  const Serving serving(serving_);
  const TimePs left_ps = segment_end_ps_ - now;
  TimePs start_ps = segment_end_ps_ - left_ps / segment_packet_ps_ * segment_packet_ps_;
  start_ps = std::max(start_ps, between_until_ps_);
  int priority_class = 0;
  while (start_ps < segment_end_ps_) {
    PacketPtr packet = next_before_segment(start_ps, priority_class);
    if (packet == nullptr) break;
    const TimePs end_ps = transmit(std::move(packet), priority_class, start_ps);
    busy_until_ps_ += end_ps - start_ps;
    between_until_ps_ = start_ps = end_ps;
  }
  if (serialiser_armed_) arm_serialiser();
}

PacketPtr TransmitPort::next_before_segment(TimePs start_ps, int& priority_class) {
  const uint32_t before = ~0u << (sending_class_ + 1) & ~dwrr_classes_ & ~blocked_classes_;
  while (const uint32_t ready = nonempty_classes_ & before) {
    if ((ready & kControlBit) != 0) return pop_control(priority_class);
    priority_class = static_cast<int>(std::bit_width(ready)) - 1;
    if (PacketPtr packet = dequeue(priority_class, start_ps)) return packet;
  }
  if (source_ == nullptr || !up_) return nullptr;
  return entered(source_->pull_before(sending_class_, start_ps, priority_class));
}

TimePs TransmitPort::transmit(PacketPtr packet, int priority_class, TimePs start_ps) {
  const TrafficCounter traffic = packet->traffic();
  if (priority_class == kControl) {
    counters_.control_transmitted.add(traffic);
  } else {
    packet->set_virtual_lane(priority_class);
    classes_[static_cast<size_t>(priority_class)].transmitted.add(traffic);
    used_classes_ = static_cast<uint8_t>(used_classes_ | 1u << priority_class);
  }
  if (capture_ != nullptr) capture_->write(start_ps, *packet, CaptureDirection::kOutbound);
  if (observer_ != nullptr && priority_class != kControl) observer_->on_transmit(priority_class, *packet);
  const TimePs end_ps = start_ps + rate_.serialisation_ps(traffic.bytes);
  const bool by_first_bit = link_.is_early() && priority_class != kControl;
  link_.transmit(std::move(packet), by_first_bit ? start_ps : end_ps);
  return end_ps;
}

uint64_t TransmitPort::unsent_bytes(TimePs time_ps) const {
  const TimePs left_ps = busy_until_ps_ - rest_ps_ - time_ps;
  if (left_ps <= 0) return 0;
  const auto bits = static_cast<unsigned __int128>(left_ps) * rate_.bits_per_second();
  constexpr unsigned __int128 kBitsPerByte = 8ull * kPsPerSecond;
  return static_cast<uint64_t>((bits + kBitsPerByte - 1) / kBitsPerByte);
}

PacketPtr TransmitPort::next_packet(TimePs start_ps, int& priority_class) {
  while (const uint32_t ready = nonempty_classes_ & ~blocked_classes_) {
    if ((ready & kControlBit) != 0) [[unlikely]]
      return pop_control(priority_class);
    priority_class = next_class(ready);
    PacketPtr packet = dequeue(priority_class, start_ps);
    if (packet != nullptr) return packet;
  }
  if (source_ == nullptr || !up_) return nullptr;
  return pull_from_source(start_ps, priority_class);
}

// Null if the stage has dropped it.
[[gnu::always_inline]] inline PacketPtr TransmitPort::through_stage(PacketPtr packet,
                                                                    const QueueStamp& stamp) {
  if (stage_ == nullptr) return packet;
  prefetch(&link_, kCacheLineBytes);  // for when the stage has had its turn
  const TrafficCounter traffic = packet->traffic();
  packet = stage_->on_dequeue(stage_port_, std::move(packet), stamp);
  if (packet == nullptr) counters_.egress_dropped.add(traffic);
  return packet;
}

PacketPtr TransmitPort::pop_control(int& priority_class) {
  PacketPtr frame = control_.pop();
  if (control_.empty()) set_empty(kMaxClasses);
  priority_class = kControl;
  return frame;
}

PacketPtr TransmitPort::pull_from_source(TimePs start_ps, int& priority_class) {
  return entered(source_->pull(start_ps, priority_class));
}

PacketPtr TransmitPort::entered(PacketPtr packet) {
  if (packet != nullptr) engine_.conservation().enter(PacketOrigin::kSent, packet->traffic());
  return packet;
}

int TransmitPort::next_class(uint32_t ready) {
  const uint32_t strict = ready & ~dwrr_classes_;
  if (strict != 0) [[likely]]
    return static_cast<int>(std::bit_width(strict)) - 1;
  return round_robin_.next(ready, [this](int priority_class) {
    const ClassQueue& queue = classes_[static_cast<size_t>(priority_class)];
    const Waiting& first = queue.packets.front();
    return must_split(queue) ? first.size_bytes / first.packets : first.size_bytes;
  });
}

// Goes on where fetch_waiting() has stopped. Those of a short queue have come a moment ago.
void TransmitPort::prefetch_waiting(const RingBuffer<Waiting>& packets) {
  if (packets.size() >= kFetchedWaiting) packets[kFetchedWaiting - 1].prefetch();
}

bool TransmitPort::must_split(const ClassQueue& queue) const {
  // Segments first: packets never read the configuration, which lies in a line that nothing else needs here.
  return queue.packets.front().packets > 1 && queue.depth_bytes > config_.split_depth_bytes &&
         stage_ != nullptr;
}

// The rest of the segment stays where it was.
TransmitPort::Waiting TransmitPort::take_first_of_segment(int priority_class) {
  Waiting& segment = classes_[static_cast<size_t>(priority_class)].packets.front();
  PacketPtr rest = stage_->split(*segment.packet);
  const TimePs enqueued_ps = segment.packet->enqueued_ps;
  Waiting first(std::exchange(segment.packet, std::move(rest)), enqueued_ps, segment.arrival);
  segment.context = segment.packet->context;
  segment.size_bytes -= first.size_bytes;
  segment.packets = static_cast<uint8_t>(segment.packets - 1);
  leave_queue(first, priority_class);
  return first;
}

TransmitPort::Waiting TransmitPort::take_first(int priority_class) {
  ClassQueue& queue = classes_[static_cast<size_t>(priority_class)];
  if (must_split(queue)) [[unlikely]]
    return take_first_of_segment(priority_class);
  Waiting waiting = queue.packets.pop();
  prefetch_waiting(queue.packets);
  if (queue.packets.empty()) {
    set_empty(priority_class);
    if (dwrr_classes_ != 0) [[unlikely]]
      round_robin_.emptied(priority_class);
  }
  leave_queue(waiting, priority_class);
  return waiting;
}

void TransmitPort::leave_queue(const Waiting& waiting, int priority_class) {
  const uint64_t size_bytes = waiting.size_bytes;
  ClassQueue& queue = classes_[static_cast<size_t>(priority_class)];
  queue.depth_bytes -= size_bytes;
  queue.depth_packets -= waiting.packets;
  queue_depth_bytes_ -= size_bytes;
  queue_depth_packets_ -= waiting.packets;
  if (has_buffer()) [[unlikely]]
    buffer_->leave_queue(waiting.arrival, buffer_port_, priority_class, size_bytes);
}

// Null if the stage has dropped it, or sent it elsewhere.
PacketPtr TransmitPort::dequeue(int priority_class, TimePs start_ps) {
  Waiting waiting = take_first(priority_class);
  const ClassQueue& queue = classes_[static_cast<size_t>(priority_class)];
  const TimePs enqueued_ps = waiting.packet->enqueued_ps;
  PacketPtr packet =
      through_stage(std::move(waiting.packet), {.enqueued_ps = std::min(enqueued_ps, start_ps),
                                                .dequeued_ps = start_ps,
                                                .dequeue_depth_bytes = queue_depth_bytes_,
                                                .priority_class = priority_class,
                                                .class_depth_bytes = queue.depth_bytes,
                                                .class_depth_packets = queue.depth_packets,
                                                .arrival = has_buffer() ? &waiting.arrival : nullptr,
                                                .size_bytes = waiting.size_bytes});
  leave(waiting);
  return packet;
}

// --- figures

uint64_t TransmitPort::queue_depth_bytes(int priority_class) const {
  return class_queue(priority_class).depth_bytes;
}

uint64_t TransmitPort::queue_depth_packets(int priority_class) const {
  return class_queue(priority_class).depth_packets;
}

std::vector<WaitingFrom> TransmitPort::waiting_by_arrival() const {
  std::vector<WaitingFrom> found;
  for (int each = 0; each <= last_class_; ++each) {
    const RingBuffer<Waiting>& packets = classes_[static_cast<size_t>(each)].packets;
    const size_t of_class = found.size();
    for (size_t i = 0; i < packets.size(); ++i) {
      const SharedBuffer::Arrival& arrival = packets[i].arrival;
      auto at = std::find_if(found.begin() + static_cast<ptrdiff_t>(of_class), found.end(),
                             [&arrival](const WaitingFrom& from) {
                               return from.ingress_port == arrival.port && from.lane == arrival.lane;
                             });
      if (at == found.end()) at = found.insert(at, {each, arrival.port, arrival.lane, {}});
      at->waiting.add(packets[i].traffic());
    }
  }
  return found;
}

TrafficCounter TransmitPort::transmitted() const {
  TrafficCounter sum = counters_.control_transmitted;
  for (const ClassQueue& queue : classes_) sum.add(queue.transmitted);
  return sum;
}

const TrafficCounter& TransmitPort::transmitted(int priority_class) const {
  return class_queue(priority_class).transmitted;
}

const TrafficCounter& TransmitPort::tail_dropped(int priority_class) const {
  class_queue(priority_class);  // in range
  return tail_dropped_[static_cast<size_t>(priority_class)];
}

TrafficCounter TransmitPort::trimmed(int priority_class) const {
  class_queue(priority_class);  // in range
  return trimming_ == nullptr ? TrafficCounter() : trimming_->trimmed[static_cast<size_t>(priority_class)];
}

TrafficCounter TransmitPort::discarded(int priority_class) const {
  class_queue(priority_class);  // in range
  return discarding_ == nullptr ? TrafficCounter()
                                : discarding_->dropped[static_cast<size_t>(priority_class)];
}

TimePs TransmitPort::waits_since_ps(int priority_class) const {
  const RingBuffer<Waiting>& packets = class_queue(priority_class).packets;
  return packets.empty() ? kNever : packets.front().packet->enqueued_ps;
}

void TransmitPort::count_held(const void* port, HeldPackets& held) {
  const auto& self = *static_cast<const TransmitPort*>(port);
  held.queued.add({self.queue_depth_packets_, self.queue_depth_bytes_});
  for (size_t i = 0; i < self.control_.size(); ++i) held.queued.add(self.control_[i]->traffic());
}

void TransmitPort::reset_counters() {
  counters_ = PortCounters();
  for (ClassQueue& queue : classes_) queue.transmitted = TrafficCounter();
  tail_dropped_ = {};
  if (trimming_ != nullptr) trimming_->trimmed = {};
  if (discarding_ != nullptr) discarding_->dropped = {};
  max_queue_depth_bytes_ = queue_depth_bytes_;
  if (by_kind_ != nullptr) by_kind_->reset();
}

}  // namespace weft
