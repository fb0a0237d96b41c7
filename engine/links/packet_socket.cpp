#include "links/packet_socket.hpp"

#include <arpa/inet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "links/packet_ring.hpp"
#include "links/pcap_writer.hpp"

namespace weft {

namespace {

constexpr size_t kTransmitBatch = 64;
constexpr int kPollBatchFrames = 256;
constexpr size_t kEthernetHeaderBytes = 14;
constexpr size_t kMacAddressesBytes = 12;
constexpr size_t kVlanTagBytes = 4;
constexpr int kSendBufferBytes = 8 * 1024 * 1024;

int64_t clock_ns(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

void set_option(int fd, int level, int name, int value, const char* what) {
  if (setsockopt(fd, level, name, &value, sizeof value) != 0)
    throw std::system_error(errno, std::generic_category(), what);
}

int query_mtu(int fd, const std::string& interface) {
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  if (ioctl(fd, SIOCGIFMTU, &request) != 0)
    throw std::system_error(errno, std::generic_category(), "SIOCGIFMTU");
  return request.ifr_mtu;
}

}  // namespace

PacketSocket::PacketSocket(Engine& engine, PacketSocketConfig config)
    : engine_(engine), config_(std::move(config)), delay_line_(engine) {
  if (!engine.is_real())
    throw std::logic_error("packet socket on '" + config_.interface + "' needs an engine with a real clock");
  if (config_.interface.empty() || config_.interface.size() >= IFNAMSIZ)
    throw std::invalid_argument("interface name '" + config_.interface + "' (1 to 15 characters)");
  if (config_.ring_bytes == 0 || config_.ring_bytes > (1ull << 31))
    throw std::invalid_argument("ring_bytes is " + std::to_string(config_.ring_bytes) + " (1 to 2^31)");
  transmit_batch_.reserve(kTransmitBatch);
  try {
    open();
  } catch (const std::system_error& error) {
    release();
    std::string doing = error.what();  // the code's message is at its end, and would be there twice
    const std::string ending = ": " + error.code().message();
    if (doing.ends_with(ending)) doing.resize(doing.size() - ending.size());
    throw std::system_error(error.code(), "packet socket on interface '" + config_.interface + "': " + doing);
  }
}

PacketSocket::~PacketSocket() { close(); }

void PacketSocket::open() {
  // Protocol 0: nothing arrives before everything is set up and bind() names the interface.
  fd_ = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "socket(AF_PACKET)");
  interface_index_ = static_cast<int>(if_nametoindex(config_.interface.c_str()));
  if (interface_index_ == 0) throw std::system_error(errno, std::generic_category(), "no such interface");
  mtu_bytes_ = query_mtu(fd_, config_.interface);
  ring_ = std::make_unique<PacketRing>(
      fd_, static_cast<size_t>(mtu_bytes_) + kEthernetHeaderBytes + kVlanTagBytes, config_.ring_bytes);
  set_option(fd_, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1, "PACKET_IGNORE_OUTGOING");
  // Not PACKET_QDISC_BYPASS: what is sent past the queueing layer is seen by no sniffer on this interface,
  // and a veth pair has no queue to save anyway. A larger send buffer needs privileges that a socket does
  // not; without, the system's limit stays.
  setsockopt(fd_, SOL_SOCKET, SO_SNDBUFFORCE, &kSendBufferBytes, sizeof kSendBufferBytes);
  if (config_.promiscuous) {
    packet_mreq membership{};
    membership.mr_ifindex = interface_index_;
    membership.mr_type = PACKET_MR_PROMISC;
    if (setsockopt(fd_, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &membership, sizeof membership) != 0)
      throw std::system_error(errno, std::generic_category(), "PACKET_MR_PROMISC");
  }
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = interface_index_;
  if (bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    throw std::system_error(errno, std::generic_category(), "bind");
}

void PacketSocket::release() {
  ring_.reset();
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void PacketSocket::close() {
  if (fd_ < 0) return;
  flush();
  read_statistics();
  engine_.remove_pollable(this);
  release();
}

void PacketSocket::connect(Node& node, int port) {
  if (fd_ < 0) throw std::logic_error("packet socket on '" + config_.interface + "' is closed");
  const bool first = !delay_line_.connected();
  delay_line_.connect(&node, port);
  if (first) engine_.add_pollable(this);
}

// --- receiving ---

TimePs PacketSocket::poll() {
  if (ring_->front() == nullptr) return kNever;
  // The kernel dates frames by the wall clock, which may be set while we run: related anew for every batch.
  realtime_minus_monotonic_ns_ = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
  TimePs last_ps = 0;
  for (int taken = 0; taken < kPollBatchFrames; ++taken) {
    const tpacket2_hdr* header = ring_->front();
    if (header == nullptr) return kNever;
    last_ps = take_frame(*header);
    ring_->pop();
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
  if (fd_ < 0) {
    ++counters_.interface_down_packets;
    return;
  }
  if (packet->size() < kEthernetHeaderBytes) {
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
    const int sent = sendmmsg(fd_, &messages[done], static_cast<unsigned>(count - done), MSG_DONTWAIT);
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
    case EAGAIN:
      ++counters_.no_buffer_packets;
      break;
    default:
      ++counters_.send_error_packets;
  }
}

// --- statistics ---

void PacketSocket::read_statistics() {
  if (fd_ < 0) return;
  tpacket_stats statistics{};
  socklen_t size = sizeof statistics;
  // Reading sets the kernel's counters to zero.
  if (getsockopt(fd_, SOL_PACKET, PACKET_STATISTICS, &statistics, &size) == 0)
    counters_.ring_dropped_packets += statistics.tp_drops;
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
