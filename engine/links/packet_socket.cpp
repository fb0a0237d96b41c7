#include "links/packet_socket.hpp"

#include <arpa/inet.h>
#include <net/ethernet.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <utility>

#include "links/pcap_writer.hpp"

namespace weft {

namespace {

constexpr size_t kTransmitBatch = 64;
constexpr int kPollBatchFrames = 256;
constexpr size_t kMacAddressesBytes = 12;

int64_t clock_ns(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

PacketSocket::PacketSocket(Engine& engine, PacketSocketConfig config, std::unique_ptr<BoundSocket> socket)
    : engine_(engine),
      config_(std::move(config)),
      mtu_bytes_(socket->mtu_bytes()),
      socket_(std::move(socket)),
      delay_line_(engine) {
  transmit_batch_.reserve(kTransmitBatch);
  interface_dropped_before_ = socket_->interface_dropped_packets();
}

PacketSocket::~PacketSocket() { detach(); }

std::unique_ptr<BoundSocket> PacketSocket::open(const Engine& engine, const PacketSocketConfig& config) {
  if (!engine.is_real())
    throw std::logic_error("packet socket on '" + config.interface + "' needs an engine with a real clock");
  return std::make_unique<BoundSocket>(config);
}

std::unique_ptr<BoundSocket> PacketSocket::detach() {
  if (socket_ == nullptr) return nullptr;
  flush();
  read_statistics();
  engine_.remove_pollable(this);
  return std::move(socket_);
}

void PacketSocket::connect(Node& node, int port) {
  if (socket_ == nullptr) throw std::logic_error("packet socket on '" + config_.interface + "' is closed");
  const bool first = !delay_line_.connected();
  delay_line_.connect(&node, port);
  if (first) engine_.add_pollable(this);
}

// --- receiving ---

TimePs PacketSocket::poll() {
  PacketRing& ring = socket_->ring();
  if (ring.front() == nullptr) return kNever;
  // The kernel dates frames by the wall clock, which may be set while we run: related anew for every batch.
  realtime_minus_monotonic_ns_ = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
  TimePs last_ps = 0;
  for (int taken = 0; taken < kPollBatchFrames; ++taken) {
    const tpacket2_hdr* header = ring.front();
    if (header == nullptr) return kNever;
    last_ps = take_frame(*header);
    ring.pop();
  }
  return last_ps;
}

TimePs PacketSocket::take_frame(const tpacket2_hdr& header) {
  const int64_t realtime_ns = static_cast<int64_t>(header.tp_sec) * 1'000'000'000 + header.tp_nsec;
  const TimePs arrival_ps =
      std::max(engine_.now(), engine_.real_clock()->emulated_ps(realtime_ns - realtime_minus_monotonic_ns_));
  if (header.tp_len > header.tp_snaplen) {
    ++counters_.truncated_packets;
    return arrival_ps;
  }
  const uint8_t* frame = reinterpret_cast<const uint8_t*>(&header) + header.tp_mac;
  PacketPtr packet = engine_.packets().copy_of({frame, header.tp_snaplen});
  if ((header.tp_status & TP_STATUS_VLAN_VALID) != 0 && packet->size() >= kMacAddressesBytes) {
    const bool tpid_valid = (header.tp_status & TP_STATUS_VLAN_TPID_VALID) != 0;
    const uint16_t tag[2] = {htons(tpid_valid ? header.tp_vlan_tpid : ETHERTYPE_VLAN),
                             htons(header.tp_vlan_tci)};
    static_assert(sizeof tag == kVlanTagBytes);
    uint8_t* front = packet->prepend(kVlanTagBytes);
    // The kernel takes the tag out of the frame, so it is put back: switches and captures see the frame as it
    // was sent.
    std::memmove(front, front + kVlanTagBytes, kMacAddressesBytes);
    std::memcpy(front + kMacAddressesBytes, tag, kVlanTagBytes);
  }
  if ((header.tp_status & TP_STATUS_CSUMNOTREADY) != 0) ++counters_.unfinished_checksum_packets;
  ++counters_.received_packets;
  counters_.received_bytes += packet->size();
  delay_line_.push(std::move(packet), arrival_ps);
  return arrival_ps;
}

void PacketSocket::set_capture(std::shared_ptr<PcapWriter> received, std::shared_ptr<PcapWriter> sent) {
  delay_line_.set_capture(std::move(received));
  sent_capture_ = std::move(sent);
}

// --- transmitting ---

void PacketSocket::receive(int /*port*/, PacketPtr packet) {
  if (socket_ == nullptr) {
    ++counters_.interface_down_packets;
    return;
  }
  if (packet->size() < ETHER_HDR_LEN) {
    ++counters_.runt_packets;
    return;
  }
  packet->materialise();
  if (sent_capture_ != nullptr) sent_capture_->write(engine_.now(), *packet, CaptureDirection::kOutbound);
  if (transmit_batch_.empty()) engine_.flush_later(this);
  transmit_batch_.push_back(std::move(packet));
  if (transmit_batch_.size() >= kTransmitBatch) flush();
}

void PacketSocket::flush() {
  // Without PACKET_QDISC_BYPASS: frames that bypass the queueing layer are seen by no sniffer on the
  // interface.
  std::array<iovec, kTransmitBatch> vectors{};
  std::array<mmsghdr, kTransmitBatch> messages{};
  const size_t count = transmit_batch_.size();
  for (size_t i = 0; i < count; ++i) {
    vectors[i] = {.iov_base = transmit_batch_[i]->data(), .iov_len = transmit_batch_[i]->size()};
    messages[i].msg_hdr.msg_iov = &vectors[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  size_t done = 0;
  while (done < count) {
    const int sent =
        sendmmsg(file_descriptor(), &messages[done], static_cast<unsigned>(count - done), MSG_DONTWAIT);
    for (int i = 0; i < sent; ++i) {
      ++counters_.transmitted_packets;
      counters_.transmitted_bytes += transmit_batch_[done++]->size();
    }
    if (sent > 0 || errno == EINTR) continue;
    // The first of the remaining frames is what failed; those after it get their own chance.
    count_transmit_error(errno);
    ++done;
  }
  transmit_batch_.clear();
}

void PacketSocket::count_transmit_error(int error) {
  switch (error) {
    case EMSGSIZE:
      ++counters_.oversize_packets;
      break;
    case ENETDOWN:
    case ENXIO:
    case ENODEV:
      ++counters_.interface_down_packets;
      break;
    case ENOBUFS:
      ++refused_by_interface_;
      [[fallthrough]];
    case EAGAIN:
      ++counters_.no_buffer_packets;
      break;
    default:
      ++counters_.send_error_packets;
  }
}

// --- statistics ---

void PacketSocket::read_statistics() {
  if (socket_ == nullptr) return;
  tpacket_stats statistics{};
  socklen_t size = sizeof statistics;
  // Reading sets the kernel's counters to zero.
  if (getsockopt(file_descriptor(), SOL_PACKET, PACKET_STATISTICS, &statistics, &size) == 0)
    counters_.ring_dropped_packets += statistics.tp_drops;
  // Of some of these newer kernels say so (ENOBUFS), and then they are no_buffer_packets already. 0: no
  // answer.
  const uint64_t dropped = socket_->interface_dropped_packets();
  const uint64_t dropped_now = dropped - std::min(dropped, interface_dropped_before_);
  if (dropped_now == 0) return;
  counters_.interface_dropped_packets += dropped_now - std::min(dropped_now, refused_by_interface_);
  interface_dropped_before_ = dropped;
  refused_by_interface_ = 0;
}

const PacketSocketCounters& PacketSocket::counters() {
  read_statistics();
  return counters_;
}

void PacketSocket::reset_counters() {
  read_statistics();
  counters_ = PacketSocketCounters();
}

}  // namespace weft
