#include "hosts/nic_dma.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>

namespace weft {
namespace {

constexpr uint64_t kLargestFrameBytes = 4096 + 256;
constexpr uint64_t kFramesAhead = 2;

}  // namespace

NicDma::NicDma(Engine& engine, const NicConfig& config, HostWays ways)
    : engine_(engine),
      config_(config),
      rate_(config.pcie_rate_bps),
      ways_(std::move(ways)),
      write_free_(engine.events(), member_action<&NicDma::place_waiting>(this)),
      read_free_(engine.events(), member_action<&NicDma::fetch>(this)),
      ready_(engine.events(), member_action<&NicDma::on_ready>(this)),
      placed_(engine.events(), member_action<&NicDma::on_placed>(this)) {
  if (config.dma_latency_ps < 0 || config.per_message_overhead_ps < 0 || config.per_packet_overhead_ps < 0) {
    throw std::invalid_argument(
        "dma_latency_ps, per_message_overhead_ps and per_packet_overhead_ps must be 0 or more");
  }
  ways_.fetched.check();
  ways_.placed.check();
}

size_t NicDma::add_port(Client& client, uint64_t line_rate_bps) {
  const HostWay& way = ways_.fetched;
  const TimePs transfer_ps = way.links != nullptr ? way.links->alone_ps(way.over, kLargestFrameBytes)
                                                  : rate_.serialisation_ps(kLargestFrameBytes);
  const TimePs fetch_ps =
      config_.dma_latency_ps + config_.per_message_overhead_ps + config_.per_packet_overhead_ps + transfer_ps;
  const auto bits = static_cast<unsigned __int128>(line_rate_bps) * static_cast<uint64_t>(fetch_ps);
  const auto ahead_bytes = static_cast<uint64_t>(bits / 8 / kPsPerSecond);
  Port& port = ports_.emplace_back();
  port.client = &client;
  port.limit_bytes = line_rate_bps == 0 ? ~0ull : ahead_bytes + kFramesAhead * kLargestFrameBytes;
  return ports_.size() - 1;
}

// Ports take turns; one transfer at a time.
void NicDma::fetch() {
  if (fetching_ || read_free_.armed()) return;
  fetching_ = true;
  const TimePs now = engine_.now();
  size_t without = 0;
  while (without < ports_.size() && read_free_ps_ <= now) {
    const size_t number = next_port_;
    next_port_ = (next_port_ + 1) % ports_.size();
    without = fetch_one(ports_[number], number, now) ? 0 : without + 1;
  }
  fetching_ = false;
  if (read_free_ps_ > now) read_free_.arm(read_free_ps_);
}

bool NicDma::fetch_one(Port& port, size_t number, TimePs now) {
  if (port.classes_with_room == 0) return false;
  PulledPacket pulled;
  int priority_class = 0;
  PacketPtr packet = port.client->next_data(now, port.classes_with_room, priority_class, pulled);
  if (packet == nullptr) return false;
  const TimePs message_ps = pulled.starts_message ? config_.per_message_overhead_ps : 0;
  const TimePs due_ps = transfer(read_free_ps_, now, pulled.payload_bytes, message_ps, ways_.fetched);
  Fetched& fetched = port.of_class[static_cast<size_t>(priority_class)];
  fetched.bytes += packet->wire_bytes();
  if (fetched.bytes >= port.limit_bytes) port.classes_with_room &= ~(1u << priority_class);
  fetched.packets.push({std::move(packet), number, due_ps});
  port.fetched_classes |= 1u << priority_class;
  announced_.push({nullptr, number, due_ps});
  if (!ready_.armed()) ready_.arm(announced_.front().due_ps);
  return true;
}

// The end of a transfer that starts as soon as the direction is free.
TimePs NicDma::transfer(TimePs& free_ps, TimePs now, size_t bytes, TimePs overhead_ps,
                        const HostWay& way) const {
  const TimePs start_ps = std::max(free_ps, now) + overhead_ps + config_.per_packet_overhead_ps;
  free_ps = way.links != nullptr ? way.links->cross(way.over, start_ps, bytes)
                                 : start_ps + rate_.serialisation_ps(bytes);
  return free_ps + config_.dma_latency_ps;
}

void NicDma::on_ready() {
  while (!announced_.empty() && announced_.front().due_ps <= engine_.now()) {
    ports_[announced_.pop().port].client->on_fetched();
  }
  if (!announced_.empty() && !ready_.armed()) ready_.arm(announced_.front().due_ps);
}

uint32_t NicDma::ready_classes(size_t number, TimePs now) const {
  const Port& port = ports_[number];
  uint32_t ready = 0;
  for (uint32_t left = port.fetched_classes; left != 0; left &= left - 1) {
    const auto each = static_cast<size_t>(std::countr_zero(left));
    if (port.of_class[each].packets.front().due_ps <= now) ready |= 1u << each;
  }
  return ready;
}

PacketPtr NicDma::take(size_t number, int priority_class) {
  Port& port = ports_[number];
  Fetched& fetched = port.of_class[static_cast<size_t>(priority_class)];
  PacketPtr packet = fetched.packets.pop().packet;
  if (fetched.packets.empty()) port.fetched_classes &= ~(1u << priority_class);
  fetched.bytes -= packet->wire_bytes();
  if (fetched.bytes < port.limit_bytes) port.classes_with_room |= 1u << priority_class;
  fetch();
  return packet;
}

void NicDma::deliver(size_t port, PacketPtr packet, const roce::ParsedPacket& parsed) {
  Arriving arriving{std::move(packet), parsed, port, 0};
  if (ways_.placed.links == nullptr || (waiting_.empty() && write_free_ps_ <= engine_.now())) {
    return place(std::move(arriving));
  }
  waiting_bytes_ += parsed.payload_bytes;
  most_waiting_bytes_ = std::max(most_waiting_bytes_, waiting_bytes_);
  waiting_.push(std::move(arriving));
  if (!write_free_.armed()) write_free_.arm(write_free_ps_);
}

void NicDma::place(Arriving arriving) {
  arriving.due_ps = transfer(write_free_ps_, engine_.now(), arriving.parsed.payload_bytes, 0, ways_.placed);
  const TimePs due_ps = arriving.due_ps;
  arriving_.push(std::move(arriving));
  if (!placed_.armed()) placed_.arm(due_ps);
}

void NicDma::place_waiting() {
  while (!waiting_.empty() && write_free_ps_ <= engine_.now()) {
    waiting_bytes_ -= waiting_.front().parsed.payload_bytes;
    place(waiting_.pop());
  }
  if (!waiting_.empty()) write_free_.arm(write_free_ps_);
}

void NicDma::on_placed() {
  while (!arriving_.empty() && arriving_.front().due_ps <= engine_.now()) {
    const Arriving arrived = arriving_.pop();
    ports_[arrived.port].client->on_placed(arrived.parsed);
  }
  if (!arriving_.empty() && !placed_.armed()) placed_.arm(arriving_.front().due_ps);
}

}  // namespace weft
