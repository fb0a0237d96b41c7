// Keeps the datagrams that arrive at a UDP port, with their times, for whoever reads them later.
#pragma once

#include <cstdint>
#include <vector>

#include "hosts/ip/ip_stack.hpp"
#include "time/time.hpp"

namespace weft {

class DatagramLog final : UdpReceiver {
 public:
  // `stack` outlives it. Of the first datagram that exceeds a bound, and of all later ones, only the number
  // is kept. Throws std::invalid_argument if the port is taken or RoCEv2's.
  DatagramLog(IpStack& stack, uint16_t port, size_t most_datagrams, size_t most_bytes);
  ~DatagramLog() override { stack_.release_udp(port_); }
  DatagramLog(const DatagramLog&) = delete;
  DatagramLog& operator=(const DatagramLog&) = delete;

  struct Entry {
    TimePs time;
    size_t end;  // of its bytes in `bytes()`, which begin where the one before ends
  };

  Engine& engine() { return stack_.engine(); }
  const std::vector<Entry>& entries() const { return entries_; }
  const std::vector<uint8_t>& bytes() const { return bytes_; }
  uint64_t not_kept() const { return not_kept_; }

 private:
  void on_datagram(TimePs now, const Datagram& datagram) override;

  IpStack& stack_;
  const uint16_t port_;
  const size_t most_datagrams_;
  const size_t most_bytes_;
  std::vector<Entry> entries_;
  std::vector<uint8_t> bytes_;
  uint64_t not_kept_ = 0;
};

}  // namespace weft
