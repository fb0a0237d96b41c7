#include "switch/shared_buffer.hpp"

#include <algorithm>
#include <stdexcept>

namespace weft {

namespace {

constexpr uint32_t kMaxPort = 511;

std::string bytes_text(uint64_t bytes) { return std::to_string(bytes) + " B"; }

}  // namespace

SharedBuffer::SharedBuffer(Engine& engine, const SharedBufferConfig& config)
    : engine_(engine),
      config_(config),
      shared_capacity_bytes_(config.capacity_bytes),
      index_(kMaxPort + 1, static_cast<uint16_t>(kNoIngress)) {
  if (config.capacity_bytes == 0) throw std::invalid_argument("a buffer of 0 B (1 or more)");
  for (const ClassMemory& each : config.classes)
    if (!(each.alpha > 0))
      throw std::invalid_argument("buffer alpha is " + std::to_string(each.alpha) + " (above 0)");
}

void SharedBuffer::carve(uint64_t bytes, const std::string& what) {
  if (bytes > free_shared_bytes())
    throw std::invalid_argument(what + " of " + bytes_text(bytes) + " does not fit: of a buffer of " +
                                bytes_text(config_.capacity_bytes) + ", " + bytes_text(free_shared_bytes()) +
                                " are left");
  shared_capacity_bytes_ -= bytes;
}

void SharedBuffer::add_port(uint32_t port) {
  if (port > kMaxPort)
    throw std::invalid_argument("buffer port " + std::to_string(port) + " (0 to " + std::to_string(kMaxPort) +
                                ")");
  if (index_[port] != kNoIngress)
    throw std::invalid_argument("buffer port " + std::to_string(port) + " is there already");
  uint64_t reserved_bytes = 0;
  for (const ClassMemory& each : config_.classes) reserved_bytes += each.reserved_bytes;
  carve(reserved_bytes, "the reservation of port " + std::to_string(port));
  index_[port] = static_cast<uint16_t>(ports_.size());
  ports_.emplace_back();
}

void SharedBuffer::set_ingress(uint32_t port, int priority_class, const IngressLimits& limits,
                               IngressListener* listener) {
  const std::string place =
      "ingress port " + std::to_string(port) + ", class " + std::to_string(priority_class);
  if (priority_class < 0 || priority_class >= kClasses)
    throw std::invalid_argument(place + ": a class is 0 to " + std::to_string(kClasses - 1));
  Group* group = group_of(port, priority_class);
  if (group == nullptr) throw std::invalid_argument(place + ": the buffer has no such port");
  if (group->limits.kind != IngressLimits::Kind::kNone)
    throw std::invalid_argument(place + ": has flow control already");
  if (limits.kind == IngressLimits::Kind::kPause && limits.xoff_bytes == 0 && !(limits.alpha > 0))
    throw std::invalid_argument(place + ": needs a threshold, xoff_bytes or alpha above 0");
  carve(limits.own_bytes, "the own memory of " + place);
  group->limits = limits;
  group->listener = listener;
}

const SharedBuffer::Port& SharedBuffer::port(uint32_t number) const {
  if (number > kMaxPort || index_[number] == kNoIngress)
    throw std::out_of_range("the buffer has no port " + std::to_string(number));
  return ports_[index_[number]];
}

SharedBuffer::Group* SharedBuffer::group_of(uint32_t ingress_port, int priority_class) {
  if (ingress_port > kMaxPort || index_[ingress_port] == kNoIngress) return nullptr;
  return &ports_[index_[ingress_port]].groups[slot(priority_class)];
}

uint64_t SharedBuffer::threshold_bytes(int priority_class) const {
  return static_cast<uint64_t>(config_.classes.at(slot(priority_class)).alpha *
                               static_cast<double>(free_shared_bytes()));
}

uint64_t SharedBuffer::pause_threshold_bytes(const Group& group) const {
  if (group.limits.xoff_bytes != 0) return group.limits.xoff_bytes;
  return static_cast<uint64_t>(group.limits.alpha * static_cast<double>(free_shared_bytes()));
}

SharedBuffer::Charge SharedBuffer::choose(const Group* group, const Queue& queue, int priority_class,
                                          uint64_t size_bytes) const {
  const auto kind = group == nullptr ? IngressLimits::Kind::kNone : group->limits.kind;
  if (kind == IngressLimits::Kind::kCredits) {
    const bool fits = group->own_used_bytes + in_blocks(size_bytes) <= group->limits.own_bytes;
    return fits ? Charge::kOwn : Charge::kRefusedIngress;
  }
  if (queue.reserved_used_bytes + size_bytes <= config_.classes[slot(priority_class)].reserved_bytes)
    return Charge::kReserved;
  const bool shared_has_room = size_bytes <= free_shared_bytes();
  if (kind == IngressLimits::Kind::kPause) {
    if (!group->is_paused && shared_has_room) return Charge::kShared;
    const bool fits = group->own_used_bytes + size_bytes <= group->limits.own_bytes;
    return fits ? Charge::kOwn : Charge::kRefusedIngress;
  }
  const bool below = queue.shared_used_bytes < threshold_bytes(priority_class);
  return shared_has_room && below ? Charge::kShared : Charge::kRefusedQueue;
}

void SharedBuffer::take(Group* group, Queue& queue, uint64_t size_bytes, Charge charge) {
  const bool by_credits = group != nullptr && group->limits.kind == IngressLimits::Kind::kCredits;
  if (by_credits) {
    queue.credit_used_bytes += size_bytes;
    group->own_used_bytes += in_blocks(size_bytes);
  } else if (charge == Charge::kReserved) {
    queue.reserved_used_bytes += size_bytes;
  } else {
    queue.shared_used_bytes += size_bytes;
    (charge == Charge::kShared ? shared_used_bytes_ : group->own_used_bytes) += size_bytes;
  }
}

void SharedBuffer::give_back(Group* group, Queue& queue, uint64_t size_bytes, Charge charge) {
  const auto kind = group == nullptr ? IngressLimits::Kind::kNone : group->limits.kind;
  if (kind == IngressLimits::Kind::kCredits) {
    queue.credit_used_bytes -= size_bytes;
    group->own_used_bytes -= in_blocks(size_bytes);
  } else if (charge == Charge::kReserved) {
    queue.reserved_used_bytes -= size_bytes;
  } else {
    queue.shared_used_bytes -= size_bytes;
    uint64_t from_headroom = 0;
    if (kind == IngressLimits::Kind::kPause) {
      from_headroom = std::min(size_bytes, group->own_used_bytes);
      group->own_used_bytes -= from_headroom;
    }
    shared_used_bytes_ -= size_bytes - from_headroom;
  }
}

SharedBuffer::Charge SharedBuffer::admit(uint32_t ingress_port, uint32_t egress_port, int priority_class,
                                         uint64_t size_bytes) {
  Group* group = group_of(ingress_port, priority_class);
  Queue& queue = ports_[index_[egress_port]].queues[slot(priority_class)];
  const Charge charge = choose(group, queue, priority_class, size_bytes);
  if (!admitted(charge)) {
    if (group != nullptr) {
      ++group->dropped_packets;
      group->dropped_bytes += size_bytes;
    }
    return charge;
  }
  take(group, queue, size_bytes, charge);
  class_bytes_[slot(priority_class)] += size_bytes;
  used_bytes_ += size_bytes;
  max_used_bytes_ = std::max(max_used_bytes_, used_bytes_);
  if (group != nullptr) {
    group->held_bytes += size_bytes;
    group->max_held_bytes = std::max(group->max_held_bytes, group->held_bytes);
    group->max_own_used_bytes = std::max(group->max_own_used_bytes, group->own_used_bytes);
    if (group->limits.kind == IngressLimits::Kind::kPause) update_pause(*group, priority_class);
  }
  return charge;
}

void SharedBuffer::release(uint32_t ingress_port, uint32_t egress_port, int priority_class,
                           uint64_t size_bytes, Charge charge) {
  Group* group = group_of(ingress_port, priority_class);
  give_back(group, ports_[index_[egress_port]].queues[slot(priority_class)], size_bytes, charge);
  class_bytes_[slot(priority_class)] -= size_bytes;
  used_bytes_ -= size_bytes;
  if (group == nullptr) return;
  group->held_bytes -= size_bytes;
  if (group->limits.kind == IngressLimits::Kind::kPause) {
    update_pause(*group, priority_class);
  } else if (group->limits.kind == IngressLimits::Kind::kCredits && group->listener != nullptr) {
    group->listener->on_credit_freed(priority_class, in_blocks(size_bytes));
  }
}

void SharedBuffer::update_pause(Group& group, int priority_class) {
  const uint64_t threshold_bytes = pause_threshold_bytes(group);
  const uint64_t margin_bytes = std::min(threshold_bytes, group.limits.hysteresis_bytes);
  const bool wanted =
      group.is_paused ? group.held_bytes != 0 &&
                            (group.own_used_bytes != 0 || group.held_bytes > threshold_bytes - margin_bytes)
                      : group.held_bytes > threshold_bytes || group.own_used_bytes != 0;
  if (wanted == group.is_paused) return;
  group.is_paused = wanted;
  if (group.listener != nullptr) group.listener->on_pause_wanted(priority_class, wanted);
}

uint64_t SharedBuffer::queue_bytes(uint32_t egress_port, int priority_class) const {
  const Queue& queue = port(egress_port).queues.at(slot(priority_class));
  return queue.reserved_used_bytes + queue.shared_used_bytes + queue.credit_used_bytes;
}

const SharedBuffer::Group& SharedBuffer::group(uint32_t ingress_port, int priority_class) const {
  return port(ingress_port).groups.at(slot(priority_class));
}

std::vector<uint32_t> SharedBuffer::ports() const {
  std::vector<uint32_t> numbers;
  for (uint32_t number = 0; number <= kMaxPort; ++number)
    if (index_[number] != kNoIngress) numbers.push_back(number);
  return numbers;
}

void SharedBuffer::reset_counters() {
  max_used_bytes_ = used_bytes_;
  for (Port& each : ports_) {
    for (Group& group : each.groups) {
      group.max_held_bytes = group.held_bytes;
      group.max_own_used_bytes = group.own_used_bytes;
      group.dropped_packets = group.dropped_bytes = 0;
    }
  }
}

}  // namespace weft
