#include "hosts/ud_queue_pair.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <utility>

#include "hosts/options.hpp"
#include "hosts/rc_config.hpp"
#include "hosts/ud_groups.hpp"
#include "packets/psn.hpp"
#include "packets/roce_writing.hpp"

namespace weft {
namespace {

const UdConfig& checked(const UdConfig& config) {
  if (config.queue_pair > kPsnMask) refuse_setting("queue_pair is", config.queue_pair, "24 bits");
  if (config.initial_psn > kPsnMask) refuse_setting("initial_psn is", config.initial_psn, "24 bits");
  check_path_mtu(config.path_mtu_bytes);
  if (config.data_class >= roce::kDataClasses) refuse_setting("data_class is", config.data_class, "0 to 5");
  return config;
}

// The UDP source port that Linux's RDMA core gives a flow label (rdma_flow_label_to_udp_sport).
uint16_t port_of_flow_label(uint32_t flow_label) {
  return static_cast<uint16_t>(0xC000 | ((flow_label & 0x3FFF) ^ (flow_label >> 14)));
}

// What stands before the data in a receive.
std::array<uint8_t, kGrhBytes> grh_of(const roce::ParsedPacket& packet) {
  std::array<uint8_t, kGrhBytes> grh{};
  const size_t ip_bytes = packet.source_ip.is_ipv6 ? roce::kIpv6Bytes : roce::kIpv4Bytes;
  const size_t pad = roce::writing::pad_bytes(packet.payload_bytes);
  const size_t udp_bytes = roce::kUdpBytes + roce::kBthBytes + roce::extension_bytes(packet.extensions) +
                           packet.payload_bytes + pad + roce::kIcrcBytes;
  roce::writing::write_ip(packet, udp_bytes, grh.data() + kGrhBytes - ip_bytes);
  return grh;
}

}  // namespace

UdQueuePair::UdQueuePair(const UdConfig& config, PacketPool& pool, CompletionHandler* handler,
                         std::shared_ptr<UdGroups> groups, std::shared_ptr<SharedReceives> shared_receives)
    : config_(checked(config)),
      pool_(pool),
      groups_(std::move(groups)),
      completions_(config.queue_pair, handler),
      receives_(config.queue_pair, handler, std::move(shared_receives)) {}

UdQueuePair::~UdQueuePair() {
  if (groups_ != nullptr) groups_->forget(*this);
}

UdGroups& UdQueuePair::own_groups() const {
  if (groups_ == nullptr) throw std::invalid_argument("the queue pair was made without groups");
  return *groups_;
}

void UdQueuePair::join(const roce::IpAddress& group) { own_groups().join(*this, group); }

void UdQueuePair::leave(const roce::IpAddress& group) { own_groups().leave(*this, group); }

const roce::IpAddress& UdQueuePair::source_for(const AddressHandle& to) const {
  const auto found = std::ranges::find_if(config_.source_ips, [&](const roce::IpAddress& own) {
    return to.source_ip ? own == *to.source_ip : own.is_ipv6 == to.ip.is_ipv6;
  });
  if (found == config_.source_ips.end() || found->is_ipv6 != to.ip.is_ipv6)
    throw std::invalid_argument(std::string("the port has no such ") + (to.ip.is_ipv6 ? "IPv6" : "IPv4") +
                                " address to send a datagram from");
  return *found;
}

roce::RoceHeaders UdQueuePair::headers_of(const UdRequest& request) const {
  const AddressHandle& to = request.to;
  roce::RoceHeaders headers;
  headers.source_mac = config_.source_mac;
  headers.destination_mac = to.mac;
  headers.source_ip = source_for(to);
  headers.destination_ip = to.ip;
  headers.dscp = to.dscp.value_or(roce::dscp_of_data(config_.data_class));
  headers.ecn = roce::kNotEct;  // nothing here heeds a mark
  headers.hop_limit = to.hop_limit;
  if (to.flow_label != 0) {
    headers.source_udp_port = port_of_flow_label(to.flow_label);
    if (to.ip.is_ipv6) headers.flow_label = to.flow_label;
  } else {
    set_entropy(headers, entropy_udp_port(config_.entropy_seed, headers.source_ip, to.ip, config_.queue_pair,
                                          request.remote_queue_pair) &
                             0x3FFF);
  }
  constexpr uint32_t kOwnKey = 0x80000000;  // section 10.2.5
  headers.bth.opcode = request.immediate ? roce::kUdSendOnlyImmediate : roce::kUdSendOnly;
  headers.bth.solicited = is_solicited(request);
  headers.bth.destination_qp = request.remote_queue_pair;
  headers.deth = {(request.remote_q_key & kOwnKey) != 0 ? config_.q_key : request.remote_q_key,
                  config_.queue_pair};
  headers.immediate = request.immediate.value_or(0);
  return headers;
}

void UdQueuePair::post(TimePs now, UdRequest request) {
  request.kind = CompletionKind::kSend;
  if (request.length_bytes > config_.path_mtu_bytes) {
    throw std::invalid_argument("datagram of " + std::to_string(request.length_bytes) +
                                " bytes (valid: at most a packet, " + std::to_string(config_.path_mtu_bytes) +
                                ")");
  }
  if (request.as_length) throw std::invalid_argument("a queue pair of UD carries bytes, not lengths alone");
  const roce::RoceHeaders headers = headers_of(request);  // refuses what it cannot send to
  // Throws for values that do not fit, and for what looks like in-network aggregation.
  const roce::writing::Layout layout = roce::writing::layout_of(headers, request.length_bytes);
  roce::writing::check_values(headers, layout.extensions, request.length_bytes, layout.udp_bytes);
  if (request.posted_ps == kNever) request.posted_ps = now;
  requests_.push_back(Outstanding{std::move(request), ++end_sequence_});
  if (error_ != CompletionStatus::kSuccess) deliver_completions(now);
  wake();
}

void UdQueuePair::post_receive(TimePs now, PostedReceive receive) {
  if (error_ != CompletionStatus::kSuccess) return receives_.refuse(now, receive);
  receives_.push(std::move(receive));
}

// As adapters do: what is for the port itself does not leave it.
bool UdQueuePair::stays(const UdRequest& request) const {
  return groups_ != nullptr &&
         std::ranges::find(config_.source_ips, request.to.ip) != config_.source_ips.end();
}

PacketPtr UdQueuePair::pull(TimePs now) {
  while (has_next()) {
    const Outstanding& request = requests_.request_of(next_sequence_, next_sequence_);
    due_ps_ = now;  // handlers of completions may do more than a pull() allows
    PacketPtr packet = build_next(request);
    if (packet == nullptr) break;
    const bool leaves = !stays(request);
    const bool to_group = request.remote_queue_pair == roce::kMulticastQueuePair && groups_ != nullptr;
    if (!leaves && groups_->find(request.remote_queue_pair) == nullptr)
      ++counters_.loops_without_queue_pair;
    else if (!leaves || (to_group && groups_->has(request.to.ip)))
      loop(*packet);
    counters_.bytes_sent += request.length_bytes;
    ++counters_.datagrams_sent;
    last_pulled_ = {request.length_bytes, true};
    ++next_sequence_;
    if (leaves) return packet;
  }
  return nullptr;
}

PacketPtr UdQueuePair::build_next(const Outstanding& request) {
  const uint8_t* data = request.data;
  if (request.foreign != nullptr && request.length_bytes > 0) {
    payload_.resize(request.length_bytes);
    data = payload_.data();
    if (!request.foreign->read(0, payload_.data(), payload_.size())) {
      error_ = CompletionStatus::kLocalProtectionError;
      return nullptr;
    }
  }
  roce::RoceHeaders headers = headers_of(request);
  headers.bth.psn = static_cast<uint32_t>(config_.initial_psn + next_sequence_) & kPsnMask;
  PacketPtr packet = roce::build_packet(pool_, headers, data, request.length_bytes);
  packet->set_traffic_kind(request.traffic_kind);
  return packet;
}

void UdQueuePair::loop(const Packet& packet) {
  ++counters_.datagrams_looped;
  loops_.push(pool_.copy_of(packet.bytes()));
}

// A receiver may destroy this queue pair, so that nothing of it is touched after the last copy.
void UdQueuePair::deliver_loops(TimePs now) {
  RingBuffer<PacketPtr> copies = std::exchange(loops_, {});
  const std::shared_ptr<UdGroups> groups = groups_;
  const UdQueuePair* const without = blocks_own_copies_ ? this : nullptr;
  while (!copies.empty()) {
    const PacketPtr copy = copies.pop();
    roce::ParsedPacket parsed;
    if (roce::parse_packet(*copy, parsed) == roce::ParseError::kNone) groups->deliver(now, parsed, without);
  }
}

void UdQueuePair::on_deadline(TimePs now) {
  if (now < due_ps_) return;
  due_ps_ = kNever;
  deliver_completions(now);
  if (error_ != CompletionStatus::kSuccess) receives_.flush(now);
  deliver_loops(now);
}

void UdQueuePair::deliver_completions(TimePs now) {
  requests_.deliver(now, [this] { return next_sequence_; }, error_, completions_);
}

void UdQueuePair::fail(TimePs now, CompletionStatus status, CompletionStatus first_receive) {
  error_ = status;
  due_ps_ = kNever;
  counters_.loops_dropped += loops_.size();
  loops_ = {};
  deliver_completions(now);
  receives_.flush(now, first_receive);
}

void UdQueuePair::flush(TimePs now) {
  if (error_ != CompletionStatus::kSuccess) return;
  fail(now, CompletionStatus::kFlushed, CompletionStatus::kFlushed);
  wake();
}

void UdQueuePair::on_packet(TimePs now, const roce::ParsedPacket& packet) {
  const uint8_t opcode = packet.bth.opcode;
  const bool has_immediate = opcode == roce::kUdSendOnlyImmediate;
  if ((opcode != roce::kUdSendOnly && !has_immediate) || packet.aggregation) {
    ++counters_.unexpected_opcode;
  } else if (packet.bth.partition_key != roce::kDefaultPartitionKey) {
    ++counters_.wrong_partition_key;
  } else if (packet.deth.q_key != config_.q_key) {
    ++counters_.bad_q_key;
  } else if (error_ != CompletionStatus::kSuccess) {
    ++counters_.dropped_in_error;
  } else if (receives_.lacks()) {
    ++counters_.datagrams_without_receive;
  } else if (receives_.front().length_bytes < kGrhBytes + packet.payload_bytes) {
    ++counters_.datagrams_too_long;
  } else if (!place(packet)) {
    fail(now, CompletionStatus::kFlushed, CompletionStatus::kLocalProtectionError);
  } else {
    newest_is_ipv6_ = packet.source_ip.is_ipv6;
    ++counters_.datagrams_received;
    counters_.bytes_received += packet.payload_bytes;
    receives_.finish({.kind = CompletionKind::kReceive,
                      .length_bytes = kGrhBytes + packet.payload_bytes,
                      .has_immediate = has_immediate,
                      .immediate = has_immediate ? packet.immediate : 0,
                      .completed_ps = now,
                      .source_queue_pair = packet.deth.source_qp,
                      .solicited = packet.bth.solicited,
                      .has_grh = true});
  }
}

// Returns false if foreign memory is not there.
bool UdQueuePair::place(const roce::ParsedPacket& packet) {
  const PostedReceive& receive = receives_.front();
  const std::array<uint8_t, kGrhBytes> grh = grh_of(packet);
  if (!receive.store(0, grh.data(), grh.size())) return false;
  return packet.as_length || receive.store(kGrhBytes, packet.payload, packet.payload_bytes);
}

}  // namespace weft
