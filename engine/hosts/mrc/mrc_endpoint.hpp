// The endpoint operations of a NIC with MRC: it tells its peers which of its ports are up, probes entropy
// values (EVs) for its queue pairs, and answers its peers' requests. They belong to no connection (queue pair
// 2). Source: OCP MRC 1.0, section 7, as docs/spec/mrc.md and docs/mrc.md describe it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "hosts/mrc/ev_table.hpp"
#include "hosts/mrc/mrc_config.hpp"
#include "hosts/mrc/mrc_counters.hpp"
#include "hosts/nic.hpp"
#include "hosts/queue_pair.hpp"
#include "memory/ring_buffer.hpp"
#include "packets/mrc_formats.hpp"
#include "time/random.hpp"

namespace weft {

class MrcQueuePair;

namespace mrc {

// An entropy value (EV) of a queue pair has changed to a state that the queue pair's event mask names.
struct EvEvent {
  TimePs at_ps = 0;
  uint64_t profile_id = 0;
  uint32_t queue_pair = 0;
  roce::IpAddress peer;  // on the EV's plane
  int port = 0;
  uint32_t value = 0;
  EvState state = EvState::kGood;
  uint64_t drop_count = 0;  // events between the one before and this one that were dropped
};

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

  // Probes an EV for a queue pair that is attached, and returns the probe's id; nothing if kMostProbes are
  // unanswered. The answer goes to MrcQueuePair::on_ev_probe_answer(), and on_ev_probe_expired() is called if
  // there is none within the retransmission timeout, when the endpoint is used next.
  std::optional<uint16_t> probe(MrcQueuePair& queue_pair, size_t ev);
  // Gives up all probes whose answers are overdue. Everything that tells of probes begins with it, so it
  // needs no timer.
  void expire_probes();
  // Nobody waits for this probe's answer any more.
  void give_up(uint16_t id) { ev_probes_.erase(id); }
  static constexpr size_t kMostProbes = 1 << 15;  // half of all ids, so that a free one is found soon

  // Queues an event. Beyond kMostEvents that wait to be taken it is dropped and counted.
  void note(EvEvent event);
  // Those that have been queued since the last call, oldest first, at most so many.
  std::vector<EvEvent> take_events(size_t most);
  static constexpr size_t kMostEvents = 4096;

  const MrcEndpointCounters& counters() {
    expire_probes();
    return counters_;
  }
  void reset_counters() { counters_ = MrcEndpointCounters(); }

  void on_port(int port, bool up) override;
  void on_packet(TimePs now, const roce::ParsedPacket& packet) override { receive(now, 0, packet); }
  PacketPtr pull_control(TimePs) override { return pull_for(0); }
  // EV probes, which no SACK is to wait for.
  PacketPtr pull(TimePs now) override { return pull_probe(now, 0); }
  PulledPacket last_pulled() const override { return {0, true}; }
  bool may_have_control() const override { return !answers_.empty() || !to_tell_.empty(); }
  bool may_have_data() const override { return !due_probes_.empty(); }
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
  // How a packet goes to a peer.
  struct Way {
    MrcPath path;
    uint32_t entropy = 0;
    std::optional<roce::IpAddress> outer_destination{};
  };
  struct Answer {
    int port = 0;
    Way way;
    uint16_t id = 0;
    uint16_t tx_timestamp = 0;
    uint8_t operation = 0;
  };

  struct EvProbe {
    MrcQueuePair* queue_pair = nullptr;
    size_t ev = 0;
    size_t plane = 0;
    TimePs due_ps = 0;        // it expires after this
    TimePs sent_ps = kNever;  // not yet
    uint16_t tx_timestamp = 0;
  };
  struct Deadline {
    TimePs due_ps = 0;
    uint16_t id = 0;
  };
  struct DueProbe {
    int port = 0;
    uint16_t id = 0;
  };

  void join_ports();
  void receive(TimePs now, int port, const roce::ParsedPacket& packet);
  void on_request(int port, const roce::ParsedPacket& packet, const Erth& request);
  void on_update(Peer& peer, uint16_t id, uint32_t ports_up);
  void on_response(TimePs now, int port, const roce::ParsedPacket& packet, const Eeth& response);
  void on_confirmation(const roce::ParsedPacket& packet);
  void on_probe_response(TimePs now, int port, const roce::ParsedPacket& packet, const Eeth& response);
  Peer* peer_of(const roce::IpAddress& source);
  void apply(Peer& peer);
  void apply(const Peer& peer, MrcQueuePair& queue_pair);
  void tell(TimePs now, Peer& peer);
  void wake_all();
  void wake_port(int port);
  PacketPtr pull_for(int port);
  PacketPtr pull_answer(int port);
  PacketPtr pull_update(int port);
  PacketPtr pull_probe(TimePs now, int port);
  static TimePs repeated_ps(TimePs now, const Peer& peer);
  static Way way_of(const MrcQueuePair& queue_pair, size_t plane, size_t ev);
  PacketPtr build(const Way& way, Headers mrc, uint16_t id, uint8_t opcode);
  std::optional<size_t> plane_to_tell(const Peer& peer, int port) const;

  Nic& nic_;
  MrcEndpointCounters counters_;
  std::map<roce::IpAddress, Peer, roce::AddressOrder> peers_;
  std::vector<std::unique_ptr<Leg>> legs_;
  uint32_t ports_up_ = 0;
  uint32_t withdrawn_ = 0;
  uint16_t next_id_ = 0;
  RingBuffer<Answer> answers_;
  std::unordered_map<uint16_t, EvProbe> ev_probes_;  // unanswered, by id
  RingBuffer<Deadline> deadlines_;                   // of these and of others before them, oldest first
  RingBuffer<DueProbe> due_probes_;                  // of these, to be sent
  RingBuffer<EvEvent> events_;
  uint64_t dropped_events_ = 0;  // since the last one that was queued
  Rng probe_ids_;
  std::vector<Peer*> to_tell_;      // by the next packets
  std::vector<Peer*> unconfirmed_;  // that are to be told again, unless they confirm it
};

}  // namespace mrc
}  // namespace weft
