// The yardstick of bench_forwarder.py: frames from a mapped receive ring straight into sendmmsg, and a paced
// frame source.
//   bare_forwarder forward IN OUT                           until its standard input ends
//   bare_forwarder send INTERFACE FRAMES_PER_S BYTES SECONDS    prints how many frames it sent
#include <arpa/inet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <system_error>
#include <vector>

#include "packet_ring.hpp"

namespace {

constexpr size_t kBatch = 64;
constexpr size_t kLongestFrame = 1518;
constexpr size_t kRingBytes = 2 * 1024 * 1024;

double now_s() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

int packet_socket() {
  const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "socket");
  const int on = 1;
  setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on);
  setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof on);
  return fd;
}

void bind_to(int fd, const char* interface, int protocol) {
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(static_cast<uint16_t>(protocol));
  address.sll_ifindex = static_cast<int>(if_nametoindex(interface));
  if (address.sll_ifindex == 0 || bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    throw std::system_error(errno, std::generic_category(), interface);
}

void send_all(int fd, std::array<mmsghdr, kBatch>& messages, size_t count) {
  size_t done = 0;
  while (done < count) {
    const int sent = sendmmsg(fd, &messages[done], static_cast<unsigned>(count - done), 0);
    done += sent > 0 ? static_cast<size_t>(sent) : 1;  // a frame that can't be sent is lost
  }
}

struct Batch {
  std::array<iovec, kBatch> vectors{};
  std::array<mmsghdr, kBatch> messages{};
  Batch() {
    for (size_t i = 0; i < kBatch; ++i) {
      messages[i].msg_hdr.msg_iov = &vectors[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
  }
};

void forward(const char* in, const char* out) {
  const int in_fd = packet_socket();
  weft::PacketRing ring(in_fd, kLongestFrame, kRingBytes);
  bind_to(in_fd, in, ETH_P_ALL);
  const int out_fd = packet_socket();
  bind_to(out_fd, out, 0);
  std::vector<uint8_t> frames(kBatch * kLongestFrame);
  Batch batch;
  std::puts("ready");
  std::fflush(stdout);
  for (;;) {
    size_t count = 0;
    while (count < kBatch) {
      const tpacket2_hdr* header = ring.front();
      if (header == nullptr) break;
      uint8_t* frame = &frames[count * kLongestFrame];
      std::memcpy(frame, reinterpret_cast<const uint8_t*>(header) + header->tp_mac, header->tp_snaplen);
      batch.vectors[count] = {.iov_base = frame, .iov_len = header->tp_snaplen};
      ring.pop();
      ++count;
    }
    send_all(out_fd, batch.messages, count);
    if (count > 0) continue;
    std::array<pollfd, 2> waiting{pollfd{in_fd, POLLIN, 0}, pollfd{STDIN_FILENO, POLLIN, 0}};
    if (poll(waiting.data(), waiting.size(), -1) > 0 && waiting[1].revents != 0) return;
  }
}

void send(const char* interface, double frames_per_s, size_t bytes, double seconds) {
  const int fd = packet_socket();
  bind_to(fd, interface, 0);
  std::vector<uint8_t> frame(bytes, 0);
  const uint8_t header[14] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xB6};
  std::memcpy(frame.data(), header, sizeof header);
  Batch batch;
  batch.vectors.fill({.iov_base = frame.data(), .iov_len = bytes});
  const double start_s = now_s();
  double sent = 0;
  for (double elapsed_s = 0; elapsed_s < seconds; elapsed_s = now_s() - start_s) {
    const double owed = elapsed_s * frames_per_s - sent;
    if (owed < 1) continue;
    const auto count = static_cast<size_t>(owed < kBatch ? owed : kBatch);
    send_all(fd, batch.messages, count);
    sent += static_cast<double>(count);
  }
  std::printf("%.0f\n", sent);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count == 4 && std::string(arguments[1]) == "forward") {
      forward(arguments[2], arguments[3]);
      return 0;
    }
    if (count == 6 && std::string(arguments[1]) == "send") {
      send(arguments[2], std::atof(arguments[3]), std::strtoul(arguments[4], nullptr, 10),
           std::atof(arguments[5]));
      return 0;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bare_forwarder: %s\n", error.what());
    return 1;
  }
  std::fprintf(stderr, "usage: bare_forwarder forward IN OUT | send INTERFACE FRAMES_PER_S BYTES SECONDS\n");
  return 2;
}
