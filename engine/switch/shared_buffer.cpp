#include "switch/shared_buffer.hpp"

#include <algorithm>
#include <stdexcept>

#include "switch/abi.hpp"

namespace weft {

namespace {

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
    // The sender counts whole blocks, so the receiver must: a byte of difference would become a drop.
    const bool fits = group->own_used_bytes + in_blocks(size_bytes) <= group->limits.own_bytes;
    return fits ? Charge::kOwn : Charge::kRefusedIngress;
  }
  if (queue.reserved_used_bytes + size_bytes <= config_.classes[slot(priority_class)].reserved_bytes)
    return Charge::kReserved;
  const bool shared_has_room = size_bytes <= free_shared_bytes();
  if (kind == IngressLimits::Kind::kPause) {
    // Headroom is for what arrives after the pause was asked for; taken before, it would be missing then.
    if (!group->is_paused && shared_has_room) return Charge::kShared;
    const bool fits = group->own_used_bytes + size_bytes <= group->limits.own_bytes;
    return fits ? Charge::kOwn : Charge::kRefusedIngress;
  }
  // Before the packet, not with it: a threshold smaller than a packet still lets one in.
  const bool below = queue.shared_used_bytes < threshold_bytes(priority_class);
  return shared_has_room && below ? Charge::kShared : Charge::kRefusedQueue;
}

uint64_t& SharedBuffer::part_of(Queue& queue, const Group* group, Charge charge) {
  if (group != nullptr && group->limits.kind == IngressLimits::Kind::kCredits) return queue.credit_used_bytes;
  return charge == Charge::kReserved ? queue.reserved_used_bytes : queue.shared_used_bytes;
}

void SharedBuffer::take(Group* group, int lane, uint64_t size_bytes, Charge charge) {
  const auto kind = group == nullptr ? IngressLimits::Kind::kNone : group->limits.kind;
  if (kind == IngressLimits::Kind::kCredits)
    group->own_used_bytes += in_blocks(size_bytes);
  else if (charge == Charge::kShared)
    shared_used_bytes_ += size_bytes;
  else if (charge == Charge::kOwn)
    group->own_used_bytes += size_bytes;
  used_bytes_ += size_bytes;
  max_used_bytes_ = std::max(max_used_bytes_, used_bytes_);
  if (group == nullptr) return;
  group->held_bytes += size_bytes;
  group->max_held_bytes = std::max(group->max_held_bytes, group->held_bytes);
  group->max_own_used_bytes = std::max(group->max_own_used_bytes, group->own_used_bytes);
  if (kind == IngressLimits::Kind::kPause) update_pause(*group, lane);
}

void SharedBuffer::give_back(Group* group, int lane, uint64_t size_bytes, Charge charge) {
  const auto kind = group == nullptr ? IngressLimits::Kind::kNone : group->limits.kind;
  if (kind == IngressLimits::Kind::kCredits) {
    group->own_used_bytes -= in_blocks(size_bytes);
  } else if (charge != Charge::kReserved) {
    uint64_t from_headroom = 0;
    if (kind == IngressLimits::Kind::kPause) {
      // Headroom first: it has to be whole again before the sender may go on.
      from_headroom = std::min(size_bytes, group->own_used_bytes);
      group->own_used_bytes -= from_headroom;
    }
    shared_used_bytes_ -= size_bytes - from_headroom;
  }
  used_bytes_ -= size_bytes;
  if (group == nullptr) return;
  group->held_bytes -= size_bytes;
  if (kind == IngressLimits::Kind::kPause) {
    update_pause(*group, lane);
  } else if (kind == IngressLimits::Kind::kCredits && group->listener != nullptr) {
    group->listener->on_credit_freed(lane, in_blocks(size_bytes));
  }
}

SharedBuffer::Charge SharedBuffer::refuse(Group* group, const TrafficCounter& traffic, Charge charge) {
  if (group != nullptr) {
    group->dropped_packets += traffic.packets;
    group->dropped_bytes += traffic.bytes;
  }
  return charge;
}

void SharedBuffer::forget_refusal(const Arrival& arrival, const TrafficCounter& traffic) {
  Group* group = arrival.lane < kClasses ? group_of(arrival.port, arrival.lane) : nullptr;
  if (group == nullptr) return;
  group->dropped_packets -= traffic.packets;
  group->dropped_bytes -= traffic.bytes;
}

SharedBuffer::Charge SharedBuffer::admit(Arrival& arrival, uint32_t egress_port, int priority_class,
                                         const TrafficCounter& traffic) {
  const uint64_t size_bytes = traffic.bytes;
  if (!admitted(arrival.charge)) [[unlikely]]  // with the other copies
    return arrival.charge;
  if (arrival.lane >= kClasses) arrival.lane = static_cast<uint8_t>(priority_class);
  Group* group = group_of(arrival.port, arrival.lane);
  Queue& queue = ports_[index_[egress_port]].queues[slot(priority_class)];
  if (arrival.account != Arrival::kAlone) [[unlikely]] {
    ++accounts_[arrival.account].holders;
  } else {
    arrival.charge = choose(group, queue, priority_class, size_bytes);
    if (!admitted(arrival.charge)) return refuse(group, traffic, arrival.charge);
    take(group, arrival.lane, size_bytes, arrival.charge);
  }
  part_of(queue, group, arrival.charge) += size_bytes;
  return arrival.charge;
}

void SharedBuffer::leave_queue(const Arrival& arrival, uint32_t egress_port, int priority_class,
                               uint64_t size_bytes) {
  const Group* group = group_of(arrival.port, arrival.lane);
  part_of(ports_[index_[egress_port]].queues[slot(priority_class)], group, arrival.charge) -= size_bytes;
}

void SharedBuffer::leave(const Arrival& arrival, uint64_t size_bytes) {
  if (!admitted(arrival.charge)) [[unlikely]]
    return;
  if (arrival.account != Arrival::kAlone) [[unlikely]]
    return let_go(arrival);
  give_back(group_of(arrival.port, arrival.lane), arrival.lane, size_bytes, arrival.charge);
}

// ---- accounts of several

SharedBuffer::Arrival SharedBuffer::new_account(const Arrival& arrival, uint64_t size_bytes,
                                                uint32_t holders) {
  if (free_accounts_.empty()) {
    free_accounts_.push_back(static_cast<uint32_t>(accounts_.size()));
    accounts_.emplace_back();
  }
  Arrival shared = arrival;
  shared.account = free_accounts_.back();
  free_accounts_.pop_back();
  accounts_[shared.account] = {arrival, size_bytes, holders};
  return shared;
}

SharedBuffer::Arrival SharedBuffer::open_account(const Arrival& arrival, const TrafficCounter& traffic) {
  const uint64_t size_bytes = traffic.bytes;
  if (arrival.account != Arrival::kAlone) {
    ++accounts_[arrival.account].holders;
    return arrival;
  }
  Group* group = arrival.lane < kClasses ? group_of(arrival.port, arrival.lane) : nullptr;
  if (group == nullptr || group->limits.kind == IngressLimits::Kind::kNone) return {};
  Queue without_reservation;
  without_reservation.reserved_used_bytes = config_.classes[arrival.lane].reserved_bytes;
  Arrival charged = arrival;
  charged.charge = choose(group, without_reservation, arrival.lane, size_bytes);
  if (!admitted(charged.charge)) {
    refuse(group, traffic, charged.charge);
    return charged;
  }
  take(group, charged.lane, size_bytes, charged.charge);
  return new_account(charged, size_bytes, 1);
}

SharedBuffer::Arrival SharedBuffer::admit_again(Arrival& arrival, uint64_t size_bytes) {
  if (arrival.account != Arrival::kAlone) return arrival;
  const Group* group = group_of(arrival.port, arrival.lane);
  if (group != nullptr && group->limits.kind != IngressLimits::Kind::kNone)
    return arrival = new_account(arrival, size_bytes, 1);
  leave(arrival, size_bytes);
  arrival.charge = Charge::kRefusedQueue;  // so it holds nothing any more
  return {arrival.port, arrival.lane};
}

void SharedBuffer::let_go(const Arrival& shared) {
  if (shared.account == Arrival::kAlone) return;
  Account& account = accounts_[shared.account];
  if (--account.holders != 0) return;
  const Account last = account;
  free_accounts_.push_back(shared.account);
  leave(last.arrival, last.size_bytes);
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
  return port(egress_port).queues.at(slot(priority_class)).bytes();
}

uint64_t SharedBuffer::class_bytes(int priority_class) const {
  uint64_t bytes = 0;
  for (const Port& each : ports_) bytes += each.queues.at(slot(priority_class)).bytes();
  return bytes;
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
