// TCP on a host's IP stack: which connection a segment is for, and segments as packets.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>

#include "hosts/ip/ip_stack.hpp"
#include "observe/statistics.hpp"
#include "tcp/segment.hpp"

namespace weft {

#define WEFT_TCP_COUNTERS(STATISTIC)                                                                        \
  STATISTIC(uint64_t, malformed_segments, "with a header that makes no sense, or cut")                      \
  STATISTIC(uint64_t, bad_checksum_segments, "with a wrong checksum")                                       \
  STATISTIC(uint64_t, unexpected_segments, "to no connection; a RST answers them")                          \
  STATISTIC(uint64_t, refused_openings, "SYNs to a listener that expects another peer; a RST answers them") \
  STATISTIC(uint64_t, not_sent_segments, "that the stack has not taken")

struct TcpCounters {
  WEFT_STATISTICS(TcpCounters, WEFT_TCP_COUNTERS)
};

// A connection, seen from the protocol.
struct TcpReceiver {
  virtual ~TcpReceiver() = default;
  virtual void on_segment(TimePs now, const tcp::Segment& segment, std::span<const uint8_t> payload) = 0;
};

struct TcpListener {
  virtual ~TcpListener() = default;
  // A SYN to its port, of a connection that is not known. Null refuses it.
  virtual TcpReceiver* accept(const IpPacket& packet, const tcp::Segment& syn) = 0;
};

class TcpProtocol final : public IpProtocol {
 public:
  // The stack outlives it. Throws std::invalid_argument if the stack has a TCP already.
  explicit TcpProtocol(IpStack& stack);
  ~TcpProtocol() override;
  TcpProtocol(const TcpProtocol&) = delete;
  TcpProtocol& operator=(const TcpProtocol&) = delete;

  IpStack& stack() { return stack_; }

  // Throws std::invalid_argument if the port is taken.
  void listen(uint16_t port, TcpListener& listener);
  void stop_listening(uint16_t port) { listeners_.erase(port); }
  // Throws std::invalid_argument if there is such a connection.
  void add(const IpAddress& peer, uint16_t peer_port, uint16_t own_port, TcpReceiver& receiver);
  void remove(const IpAddress& peer, uint16_t peer_port, uint16_t own_port);

  // `payload` are the stream's bytes at the segment's place.
  void send(const IpAddress& peer, uint8_t dscp, const tcp::Segment& segment,
            std::span<const uint8_t> payload);

  void on_packet(TimePs now, const IpPacket& packet) override;
  const TcpCounters& counters() const { return counters_; }

 private:
  using Key = std::tuple<std::array<uint8_t, 16>, bool, uint16_t, uint16_t>;

  static Key key_of(const IpAddress& peer, uint16_t peer_port, uint16_t own_port) {
    return {peer.bytes, peer.is_ipv6, peer_port, own_port};
  }
  TcpReceiver* accepted(const IpPacket& packet, const tcp::Segment& segment);
  TcpReceiver* receiver_of(const IpPacket& packet, const tcp::Segment& segment);

  IpStack& stack_;
  std::map<Key, TcpReceiver*> connections_;
  std::map<uint16_t, TcpListener*> listeners_;
  TcpCounters counters_;
};

}  // namespace weft
