// The yardstick of bench_switch.py: frames from a mapped receive ring straight into sendmmsg, and a paced
// frame source.
//   bare_forwarder forward IN OUT        until its standard input ends
//   bare_forwarder send INTERFACE FRAMES_PER_S SECONDS
//       sends the frames on its standard input (hexadecimal, one a line) in turn; prints how many the kernel
//       took
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
#include <iostream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "links/packet_ring.hpp"

namespace {

constexpr size_t kBatch = 64;
constexpr size_t kLongestFrame = 1518;
constexpr size_t kRingBytes = 2 * 1024 * 1024;
constexpr double kLongestBurstS = 100e-6;

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

// How many were taken; a frame that can't be sent is lost.
size_t send_all(int fd, std::array<mmsghdr, kBatch>& messages, size_t count) {
  size_t taken = 0;
  for (size_t done = 0; done < count;) {
    const int sent = sendmmsg(fd, &messages[done], static_cast<unsigned>(count - done), 0);
    done += sent > 0 ? static_cast<size_t>(sent) : 1;
    taken += sent > 0 ? static_cast<size_t>(sent) : 0;
  }
  return taken;
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

std::vector<std::vector<uint8_t>> read_frames() {
  std::vector<std::vector<uint8_t>> frames;
  for (std::string line; std::getline(std::cin, line);) {
    std::vector<uint8_t> frame;
    for (size_t i = 0; i + 1 < line.size(); i += 2)
      frame.push_back(static_cast<uint8_t>(std::stoul(line.substr(i, 2), nullptr, 16)));
    frames.push_back(std::move(frame));
  }
  if (frames.empty()) throw std::runtime_error("no frames on standard input");
  return frames;
}

void send(const char* interface, double frames_per_s, double seconds) {
  std::vector<std::vector<uint8_t>> frames = read_frames();
  const int fd = packet_socket();
  bind_to(fd, interface, 0);
  Batch batch;
  size_t next = 0;
  size_t sent = 0;
  double paid = 0;  // frames that were due and have been sent, or were forgiven
  const double start_s = now_s();
  for (double elapsed_s = 0; elapsed_s < seconds; elapsed_s = now_s() - start_s) {
    double owed = elapsed_s * frames_per_s - paid;
    if (owed < 1) continue;
    // What fell due while this process was not running is not made up for: that would be a burst, not a rate.
    const double burst = kLongestBurstS * frames_per_s + kBatch;
    if (owed > burst) {
      paid += owed - burst;
      owed = burst;
    }
    const auto count = static_cast<size_t>(owed < kBatch ? owed : kBatch);
    for (size_t i = 0; i < count; ++i) {
      batch.vectors[i] = {.iov_base = frames[next].data(), .iov_len = frames[next].size()};
      if (++next == frames.size()) next = 0;
    }
    sent += send_all(fd, batch.messages, count);
    paid += static_cast<double>(count);
  }
  std::printf("%zu\n", sent);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count == 4 && std::string(arguments[1]) == "forward") {
      forward(arguments[2], arguments[3]);
      return 0;
    }
    if (count == 5 && std::string(arguments[1]) == "send") {
      send(arguments[2], std::atof(arguments[3]), std::atof(arguments[4]));
      return 0;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bare_forwarder: %s\n", error.what());
    return 1;
  }
  std::fprintf(stderr, "usage: bare_forwarder forward IN OUT | send INTERFACE FRAMES_PER_S SECONDS\n");
  return 2;
}
