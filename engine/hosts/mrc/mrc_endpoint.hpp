// The endpoint operations of a NIC with MRC: it tells its peers which of its ports are up, and answers theirs
// and probes of paths. They belong to no connection (queue pair 2). Source: OCP MRC 1.0, section 7, as
// docs/spec/mrc.md and docs/mrc.md describe it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "hosts/mrc/mrc_config.hpp"
#include "hosts/mrc/mrc_counters.hpp"
#include "hosts/nic.hpp"
#include "hosts/queue_pair.hpp"
#include "memory/ring_buffer.hpp"
#include "packets/mrc_formats.hpp"

namespace weft {

class MrcQueuePair;

namespace mrc {

// Attached to all ports of a NIC. A port has the same number as the peer's port that it leads to, and as its
// bit in the masks that they exchange.
class Endpoint final : public QueuePair,
                       public Nic::PortWatcher,
                       public std::enable_shared_from_this<Endpoint> {
 public:
  // The NIC's, which is made when it is asked for first. Throws std::invalid_argument if another queue pair
  // has its number.
  static Endpoint& of(Nic& nic);
  // The same, null if there is none.
  static Endpoint* find(Nic& nic);
  explicit Endpoint(Nic& nic);
  ~Endpoint() override;

  // Attaches a queue pair and its legs to these ports, one for each of its planes, and has it know of ports
  // that go down here and at its peer. Throws std::invalid_argument as Nic::attach().
  void attach(MrcQueuePair& queue_pair, const std::vector<int>& ports, uint32_t number);
  // The queue pair is being destroyed.
  void forget(MrcQueuePair& queue_pair);
  // An operator has taken these ports out of use, a bit for each, here and at all peers: their links are up,
  // and packets that are under way still arrive.
  void set_withdrawn(uint32_t ports);

  const MrcEndpointCounters& counters() const { return counters_; }
  void reset_counters() { counters_ = MrcEndpointCounters(); }

  void on_port(int port, bool up) override;
  void on_packet(TimePs, const roce::ParsedPacket& packet) override { receive(0, packet); }
  PacketPtr pull_control(TimePs) override { return pull_for(0); }
  PacketPtr pull(TimePs) override { return nullptr; }
  PulledPacket last_pulled() const override { return {}; }
  bool may_have_control() const override { return !answers_.empty() || !to_tell_.empty(); }
  bool may_have_data() const override { return false; }
  TimePs next_deadline() const override;
  void on_deadline(TimePs now) override;

 private:
  class Leg;
  // The host at the other end of queue pairs, known by its address of their first plane.
  struct Peer {
    std::vector<MrcQueuePair*> queue_pairs;
    uint32_t ports_up = ~0u;              // as it has said
    std::optional<uint16_t> newest_id{};  // of its updates
    std::optional<uint32_t> told;         // which of our ports are up, as it has confirmed
    // The update that it has not confirmed.
    std::optional<uint16_t> unconfirmed{};
    uint32_t told_last = 0;
    uint32_t tries = 0;
    TimePs due_ps = 0;
    int last_port = -1;
  };
  struct Answer {
    int port = 0;
    MrcPath path;
    uint32_t entropy = 0;
    uint16_t id = 0;
    uint16_t tx_timestamp = 0;
    uint8_t operation = 0;
  };

  void join_ports();
  void receive(int port, const roce::ParsedPacket& packet);
  void on_request(int port, const roce::ParsedPacket& packet, const Erth& request);
  void on_update(Peer& peer, uint16_t id, uint32_t ports_up);
  void on_response(const roce::ParsedPacket& packet);
  Peer* peer_of(const roce::IpAddress& source);
  void apply(Peer& peer);
  void apply(const Peer& peer, MrcQueuePair& queue_pair);
  void tell(TimePs now, Peer& peer);
  void wake_all();
  PacketPtr pull_for(int port);
  static TimePs repeated_ps(TimePs now, const Peer& peer);
  PacketPtr build(roce::RoceHeaders headers, const Headers& mrc, uint16_t id, uint8_t opcode);
  std::optional<size_t> plane_to_tell(const Peer& peer, int port) const;

  Nic& nic_;
  MrcEndpointCounters counters_;
  std::map<roce::IpAddress, Peer, roce::AddressOrder> peers_;
  std::vector<std::unique_ptr<Leg>> legs_;
  uint32_t ports_up_ = 0;
  uint32_t withdrawn_ = 0;
  uint16_t next_id_ = 0;
  RingBuffer<Answer> answers_;
  std::vector<Peer*> to_tell_;      // by the next packets
  std::vector<Peer*> unconfirmed_;  // that are to be told again, unless they confirm it
};

}  // namespace mrc
}  // namespace weft
