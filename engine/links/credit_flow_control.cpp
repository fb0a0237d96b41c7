#include "links/credit_flow_control.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "observe/probe.hpp"

namespace weft {

CreditFlowControl::CreditFlowControl(Engine& engine, TransmitPort& port, const CreditConfig& config)
    : engine_(engine),
      port_(port),
      config_(config),
      buffer_blocks_(static_cast<uint32_t>(config.buffer_bytes / SharedBuffer::kCreditBlockBytes)),
      frame_blocks_(blocks(config.largest_frame_bytes)),
      timer_(engine.events(), member_action<&CreditFlowControl::on_timer>(this)) {
  if (config.lanes == 0) throw std::invalid_argument("credits for no class");
  if (config.largest_frame_bytes == 0) throw std::invalid_argument("credits for frames of 0 B (1 or more)");
  const uint64_t least_bytes = SharedBuffer::in_blocks(config.largest_frame_bytes);
  for (const uint64_t bytes : {config.buffer_bytes, config.peer_buffer_bytes})
    if (bytes < least_bytes || bytes > CreditConfig::kMaxBufferBytes)
      throw std::invalid_argument("a credit buffer of " + std::to_string(bytes) + " B (a largest frame, " +
                                  std::to_string(least_bytes) + ", to " +
                                  std::to_string(CreditConfig::kMaxBufferBytes) + ")");
  if (config.update_interval_ps < 1)
    throw std::invalid_argument("credit update_interval_ps is " + std::to_string(config.update_interval_ps) +
                                " (1 or more)");
  // On a slow link updates at the configured interval would take a large part of the line.
  config_.update_interval_ps = std::max(
      config.update_interval_ps, kFramesPerUpdate * port.rate().serialisation_ps(config.largest_frame_bytes));
  for (Lane& lane : lanes_) {
    lane.limit_blocks = static_cast<uint32_t>(config.peer_buffer_bytes / SharedBuffer::kCreditBlockBytes);
    lane.announced_blocks = buffer_blocks_;
  }
}

// --- receiver

void CreditFlowControl::set_memory(const SharedBuffer& buffer, uint32_t number) {
  memory_ = &buffer;
  memory_port_ = number;
}

uint32_t CreditFlowControl::own_limit_blocks(int number) const {
  const Lane& lane = lanes_[static_cast<size_t>(number)];
  const uint64_t held_bytes = memory_ == nullptr ? 0 : memory_->group(memory_port_, number).own_used_bytes;
  // A frame that the MAC has received, and the switch does not hold yet, takes memory, too.
  const uint32_t taken = std::min(blocks(held_bytes) + lane.passing_blocks, buffer_blocks_);
  return (lane.received_blocks + buffer_blocks_ - taken) % kModulus;
}

void CreditFlowControl::on_arrival(const Packet& packet) {
  if (!is_lane(packet.virtual_lane())) return;
  Lane& lane = lane_of(packet.virtual_lane());
  const uint32_t size = blocks(packet.wire_bytes());
  lane.received_blocks = (lane.received_blocks + size) % kModulus;
  lane.passing_blocks += size;
}

void CreditFlowControl::on_handed_over(int number, uint64_t size_bytes) {
  if (!is_lane(number)) return;
  Lane& lane = lane_of(number);
  lane.passing_blocks -= blocks(size_bytes);
  tell_if_due(number);
}

void CreditFlowControl::on_credit_freed(int priority_class, uint64_t /*bytes*/) {
  tell_if_due(priority_class);
}

// Every update costs a frame, so it waits until it is worth one of the far end's largest: or less, where the
// rest of the buffer would not hold such a frame, and the far end would wait for this update.
void CreditFlowControl::tell_if_due(int number) {
  const uint32_t more = (own_limit_blocks(number) - lane_of(number).announced_blocks) % kModulus;
  // Counts wrap, so a difference beyond half the range is negative.
  if (more <= kHalf && more >= std::min(frame_blocks_, buffer_blocks_ - frame_blocks_ + 1)) send(false);
}

void CreditFlowControl::send(bool is_request) {
  mac_control::CreditUpdate update;
  update.is_request = is_request;
  update.enabled_lanes = static_cast<uint8_t>(config_.lanes);
  for (int each = 0; each < mac_control::kClasses; ++each) {
    if (!is_lane(each)) continue;
    Lane& lane = lane_of(each);
    lane.announced_blocks = own_limit_blocks(each);
    update.sent_blocks[static_cast<size_t>(each)] = static_cast<uint16_t>(lane.sent_blocks);
    update.limit_blocks[static_cast<size_t>(each)] = static_cast<uint16_t>(lane.announced_blocks);
  }
  ++counters_.updates_sent;
  port_.send_control(mac_control::make_credit_update(engine_.packets(), config_.source_mac, update));
}

// --- sender

uint32_t CreditFlowControl::available_blocks(int number) const {
  const Lane& lane = lanes_.at(static_cast<size_t>(number));
  const uint32_t available = (lane.limit_blocks - lane.sent_blocks) % kModulus;
  return available <= kHalf ? available : 0;
}

void CreditFlowControl::on_transmit(int priority_class, const Packet& packet) {
  if (!is_lane(priority_class)) return;
  Lane& lane = lane_of(priority_class);
  lane.sent_blocks = (lane.sent_blocks + blocks(packet.wire_bytes())) % kModulus;
  // What the link loses would be missing for ever, did the far end not learn how much was sent.
  if (!timer_.armed()) timer_.arm(engine_.now() + config_.update_interval_ps);
  update_stalled();
}

void CreditFlowControl::on_update_frame(const mac_control::CreditUpdate& update) {
  ++counters_.updates_received;
  for (int each = 0; each < mac_control::kClasses; ++each) {
    if ((update.enabled_lanes >> each & 1u) == 0 || !is_lane(each)) continue;
    Lane& lane = lane_of(each);
    // Links keep the order, so what was sent before and has not come is lost.
    lane.received_blocks = update.sent_blocks[static_cast<size_t>(each)];
    lane.limit_blocks = update.limit_blocks[static_cast<size_t>(each)];
  }
  update_stalled();
  if (update.is_request) send(false);
  for (int each = 0; each < mac_control::kClasses; ++each)
    if (is_lane(each)) tell_if_due(each);
}

void CreditFlowControl::update_stalled() {
  const TimePs now = engine_.now();
  for (int each = 0; each < mac_control::kClasses; ++each) {
    if (!is_lane(each)) continue;
    // For a largest frame, whatever comes next: the port need not look into its queues.
    const bool stalled = available_blocks(each) < frame_blocks_;
    if (stalled == is_stalled(each)) continue;
    stalled_lanes_ ^= 1u << each;
    Lane& lane = lane_of(each);
    if (stalled) {
      lane.stalled_since_ps = now;
      ++lane.counters.stalls;
      continue;
    }
    lane.counters.stalled_ps += now - lane.stalled_since_ps;
    if (Probe* probe = engine_.probe()) probe->paused(&port_, each, lane.stalled_since_ps, now);
  }
  if (stalled_lanes_ != 0 && !timer_.armed()) timer_.arm(now + config_.update_interval_ps);
  port_.set_blocked_classes(stalled_lanes_);
}

void CreditFlowControl::on_timer() {
  // A lane without credit asks, in case the far end's update was lost.
  const bool is_request = stalled_lanes_ != 0;
  if (is_request) timer_.arm(engine_.now() + config_.update_interval_ps);
  send(is_request);
}

void CreditFlowControl::restart() {
  // A limit of 0 blocks sending until the far end has answered the request with its own.
  for (Lane& lane : lanes_) lane.sent_blocks = lane.limit_blocks = lane.received_blocks = 0;
  update_stalled();
  send(true);
}

// --- figures

CreditLaneCounters CreditFlowControl::lane_counters(int number) const {
  const Lane& lane = lanes_.at(static_cast<size_t>(number));
  CreditLaneCounters counters = lane.counters;
  if (is_stalled(number)) counters.stalled_ps += engine_.now() - lane.stalled_since_ps;
  return counters;
}

void CreditFlowControl::reset_counters() {
  counters_ = CreditCounters();
  for (Lane& lane : lanes_) {
    lane.counters = CreditLaneCounters();
    lane.stalled_since_ps = engine_.now();
  }
}

}  // namespace weft
