#include "links/link.hpp"

#include <array>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "links/link_retry.hpp"
#include "observe/probe.hpp"
#include "time/partition.hpp"
#include "time/partitions.hpp"

namespace weft {

namespace {

void check_probability(const char* name, double value) {
  if (!(value >= 0.0 && value <= 1.0))
    throw std::invalid_argument(std::string(name) + " is " + std::to_string(value) +
                                " (a probability is 0 to 1)");
}

}  // namespace

Link::Link(Engine& engine, TimePs delay_ps, FaultConfig faults, Rng rng)
    : delay_ps_(delay_ps), engine_(engine), rng_(rng) {
  if (delay_ps < 0)
    throw std::invalid_argument("link delay_ps is " + std::to_string(delay_ps) + " (0 or more)");
  set_faults(faults);
}

Link::~Link() = default;

void Link::check(const FaultConfig& faults) {
  check_probability("loss", faults.loss);
  check_probability("duplicate", faults.duplicate);
  check_probability("delay_probability", faults.delay_probability);
  check_probability("bit_error_rate", faults.bit_error_rate);
  if (faults.delay_ps < 0)
    throw std::invalid_argument("fault delay_ps is " + std::to_string(faults.delay_ps) + " (0 or more)");
}

Link::FarEnd Link::far_end_at(Node& node, int port) {
  Engine& far = node.engine();
  // The delay is what lets both partitions go ahead alone, so the shortest one bounds the window.
  if (&far != &engine_) Partitions::join(engine_, far, delay_ps_);
  FarEnd made{std::make_unique<DelayLine>(far, this), {}};
  made.delay_line->connect(&node, port);
  Outbox& outbox = made.outbox;
  outbox.delay_line = made.delay_line.get();
  if (&far != &engine_) {
    outbox.sender = engine_.partition();
    outbox.target = far.partition();
    outbox.target->add_incoming(*made.delay_line);
    outbox.batches = std::make_unique<std::array<OutboxBatch, 2>>();
    const uint32_t line = outbox.target->owner().add_line(*made.delay_line);
    for (OutboxBatch& batches : *outbox.batches) {
      batches.delay_line = made.delay_line.get();
      batches.line = line;
    }
  }
  return made;
}

void Link::connect(Node& node, int port) {
  if (delay_line_ == nullptr) {
    FarEnd made = far_end_at(node, port);
    delay_line_ = std::move(made.delay_line);
    outbox_ = std::move(made.outbox);
    delay_line_->set_capture(capture_);
  } else if (&delay_line_->engine() != &node.engine()) {
    throw std::logic_error("a link that ends in one partition cannot be connected to another");
  } else {
    delay_line_->connect(&node, port);
  }
}

size_t Link::add_far_end(Node& node, int port) {
  if (delay_line_ == nullptr) throw std::logic_error("a link's first far end is what it is connected to");
  if (far_ends_.empty()) far_ends_.emplace_back();
  far_ends_.push_back(far_end_at(node, port));
  return far_ends_.size() - 1;
}

void Link::join(size_t far_end) {
  if (far_end == present_) return;
  if (far_end >= far_ends_.size())
    throw std::out_of_range("far end " + std::to_string(far_end) + " of a link that has " +
                            std::to_string(far_ends_.empty() ? 1 : far_ends_.size()));
  require_between_windows("joined to another far end");
  if (delay_line_->size() != 0)
    throw std::logic_error("a link with packets on it is cut before it is joined anew");
  set_capture(nullptr);
  // Kept, with its counters: the circuit may come back.
  far_ends_[present_] = {std::move(delay_line_), std::move(outbox_)};
  delay_line_ = std::move(far_ends_[far_end].delay_line);
  outbox_ = std::move(far_ends_[far_end].outbox);
  present_ = far_end;
}

void Link::require_between_windows(const char* what) const {
  if (outbox_.target == nullptr) return;
  if (Engine::served_here() != nullptr)
    throw std::logic_error(std::string("a link between partitions is ") + what +
                           " between windows, not by an event");
  outbox_.target->owner().deliver_outboxes();
}

void Link::set_capture(std::shared_ptr<PcapWriter> capture) {
  capture_ = std::move(capture);
  if (delay_line_ != nullptr) delay_line_->set_capture(capture_);
}

void Link::set_faults(FaultConfig faults) {
  check(faults);
  if (retry_ != nullptr) require_no_reordering(faults);
  faults_ = faults;
  // Few packets take the way of those that may be lost.
  faulty_ = faults.any() || retry_ != nullptr;
  // log1p and expm1, because 1 - 1e-12 would lose most of the rate's digits.
  log_bit_intact_ = std::log1p(-faults.bit_error_rate);
}

void Link::require_no_reordering(const FaultConfig& faults) {
  if (faults.duplicate > 0 || faults.delay_probability > 0)
    throw std::logic_error(
        "a link with retry keeps packets in order, and neither duplicates nor delays them");
}

void Link::enable_retry(TransmitPort& port, const LinkRetryConfig& config) {
  if (retry_ != nullptr) throw std::logic_error("the link has retry already");
  if (early_) throw std::logic_error("retry on a link whose packets arrive with their first bit");
  require_no_reordering(faults_);
  retry_ = std::make_unique<LinkRetry>(*this, port, config);
  faulty_ = true;
}

void Link::set_early(bool early) {
  if (early && retry_ != nullptr) throw std::logic_error("a link with retry hands on whole packets");
  early_ = early;
}

Link::Fate Link::draw_fate(const Packet& packet) {
  const double fate = rng_.uniform();
  if (fate < faults_.loss) return Fate::kLost;
  if (fate < faults_.loss + (1.0 - faults_.loss) * damage_probability(packet.wire_bytes()))
    return Fate::kCorrupted;
  return Fate::kArrives;
}

bool Link::loses_message(uint64_t bytes) {
  return rng_.uniform() < faults_.loss + (1.0 - faults_.loss) * damage_probability(bytes);
}

void Link::drop_lost(const TrafficCounter& traffic) {
  counters_.lost_packets += traffic.packets;
  counters_.lost_bytes += traffic.bytes;
  drop(LinkDrop::kLost, traffic);
}

void Link::transmit_with_faults(PacketPtr packet, TimePs arrival_ps) {
  if (outbox_.delay_line == nullptr)
    throw std::logic_error("a packet was sent on a link that is connected to nothing");
  if (retry_ != nullptr) {
    retry_->send(std::move(packet), arrival_ps - delay_ps_);
    return;
  }
  // Always three draws, so that one probability does not shift the others' decisions. The first decides the
  // lost ones, and of the rest the corrupted ones.
  const double fate = rng_.uniform();
  const bool duplicated = rng_.bernoulli(faults_.duplicate);
  const bool delayed = rng_.bernoulli(faults_.delay_probability);
  if (fate < faults_.loss) {
    drop_lost(packet->traffic());
    return;
  }
  if (delayed) {
    counters_.delayed_packets += packet->packets();
    arrival_ps += faults_.delay_ps;
  }
  PacketPtr copy;
  if (duplicated) {
    counters_.duplicated_packets += packet->packets();
    copy = packet->clone();
    engine_.conservation().enter(PacketOrigin::kDuplicated, copy->traffic());
  }
  // The copy is a transmission of its own: the error is the first one's.
  if (fate < faults_.loss + (1.0 - faults_.loss) * damage_probability(packet->wire_bytes()))
    packet->set_damaged();
  deliver(std::move(packet), arrival_ps);
  if (copy != nullptr) deliver(std::move(copy), arrival_ps);
}

double Link::damage_probability(uint64_t bytes) const {
  return -std::expm1(static_cast<double>(8 * bytes) * log_bit_intact_);
}

LinkCounters Link::counters() const {
  LinkCounters counters = counters_;
  if (delay_line_ == nullptr) return counters;
  TrafficCounter damaged = delay_line_->damaged();
  for (const FarEnd& other : far_ends_)
    if (other.delay_line != nullptr) damaged.add(other.delay_line->damaged());
  counters.corrupted_packets = damaged.packets;
  counters.corrupted_bytes = damaged.bytes;
  counters.delivered_packets -= counters.corrupted_packets;
  counters.delivered_bytes -= counters.corrupted_bytes;
  return counters;
}

void Link::reset_counters() {
  counters_ = LinkCounters();
  if (retry_ != nullptr) retry_->reset_counters();
  if (delay_line_ != nullptr) delay_line_->reset_counters();
  for (const FarEnd& other : far_ends_)
    if (other.delay_line != nullptr) other.delay_line->reset_counters();
}

void Link::drop(LinkDrop reason, const TrafficCounter& traffic) {
  engine_.conservation().drop(DropPlace::kLink, static_cast<size_t>(reason), traffic);
  if (Probe* probe = engine_.probe())
    probe->dropped(this, DropPlace::kLink, static_cast<size_t>(reason), traffic.bytes, -1);
}

TrafficCounter Link::cut() {
  TrafficCounter lost;
  if (delay_line_ == nullptr) return lost;
  require_between_windows("cut");
  const Engine::Guard far_guard(delay_line_->engine());
  std::vector<uint64_t> dropped;  // packets and bytes of each
  for (const PacketPtr& packet : delay_line_->take_all()) {
    dropped.push_back(packet->traffic().packets);
    dropped.push_back(packet->traffic().bytes);
  }
  // The far end may be another process's.
  if (Partition* far = delay_line_->engine().partition()) far->owner().share(*far, dropped);
  for (size_t each = 0; each + 1 < dropped.size(); each += 2) {
    const TrafficCounter traffic{dropped[each], dropped[each + 1]};
    lost.add(traffic);
    drop(LinkDrop::kCut, traffic);
  }
  // They were counted as they were sent, maybe before the counters were reset.
  TrafficCounter delivered{counters_.delivered_packets, counters_.delivered_bytes};
  delivered.take_away(lost);
  counters_.delivered_packets = delivered.packets;
  counters_.delivered_bytes = delivered.bytes;
  if (retry_ != nullptr) {
    const TrafficCounter taken = retry_->take_all();
    std::vector<uint64_t> shared{taken.packets, taken.bytes};
    // The near end may be another process's.
    if (Partition* near = engine_.partition()) near->owner().share(*near, shared);
    const TrafficCounter kept{shared[0], shared[1]};
    if (kept.packets != 0) drop(LinkDrop::kCut, kept);
    lost.add(kept);
  }
  counters_.cut.add(lost);
  return lost;
}

void Link::send_across(PacketPtr packet, TimePs arrival_ps) {
  outbox_.sender->send(outbox_, std::move(packet), arrival_ps);
}

}  // namespace weft
