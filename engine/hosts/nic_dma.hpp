// How a network adapter reaches its host's memory: PCIe with a rate and a latency, or the host's links that
// lead there, and the time that messages and packets cost the adapter itself. All of it costs nothing unless
// configured.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "hosts/host_links.hpp"
#include "hosts/queue_pair.hpp"
#include "links/deficit_round_robin.hpp"
#include "memory/ring_buffer.hpp"
#include "packets/packet.hpp"
#include "packets/roce_codec.hpp"
#include "time/engine.hpp"

namespace weft {

struct NicConfig {
  uint64_t pcie_rate_bps = 0;  // of payload, each direction on its own, shared by all ports; 0: unlimited
  TimePs dma_latency_ps = 0;   // from the end of a transfer until its bytes are there
  TimePs per_message_overhead_ps = 0;  // before the first packet of each message that is sent
  TimePs per_packet_overhead_ps = 0;   // before each data packet, in either direction
  uint64_t entropy_seed = 0;           // of the source ports that the host chooses

  bool takes_time() const {
    return pcie_rate_bps != 0 || dma_latency_ps != 0 || per_message_overhead_ps != 0 ||
           per_packet_overhead_ps != 0;
  }
};

// The host's links between memory and a port, in place of a rate that all ports share.
struct HostWays {
  HostWay fetched;
  HostWay placed;

  bool any() const { return !fetched.over.empty() || !placed.over.empty(); }
};

// Fetches the payload of data packets ahead of the port, and puts that of received ones into memory before
// anybody hears of them. Acknowledgements and CNPs are the adapter's own and pass it by. The queue pairs'
// clocks (round trips, pacing) start when a packet is fetched; of each class, at most the port's rate over
// the time that a fetch takes, and two frames, are fetched ahead.
class NicDma {
 public:
  // A port of the adapter.
  class Client {
   public:
    virtual ~Client() = default;
    // The next data packet of these classes (a bit each) and its class, null if there is none.
    virtual PacketPtr next_data(TimePs now, uint32_t classes, int& priority_class, PulledPacket& pulled) = 0;
    // take() has a packet.
    virtual void on_fetched() = 0;
    // The payload of a packet from deliver() is in memory.
    virtual void on_placed(const roce::ParsedPacket& packet) = 0;
  };

  // With ways it has one port. Throws std::invalid_argument for negative times and links there are not.
  NicDma(Engine& engine, const NicConfig& config, HostWays ways = {});

  // Returns the port's number, from 0. `line_rate_bps` 0: unpaced.
  size_t add_port(Client& client, uint64_t line_rate_bps);
  // Some port may have something to send.
  void fetch();
  // Classes (a bit each) of which a port has a packet that is ready to leave.
  uint32_t ready_classes(size_t port, TimePs now) const;
  // The next packet of such a class.
  PacketPtr take(size_t port, int priority_class);
  // `parsed` is the packet's.
  void deliver(size_t port, PacketPtr packet, const roce::ParsedPacket& parsed);
  // Most payload that has waited at once until it could cross the host's links to memory.
  uint64_t most_waiting_bytes() const { return most_waiting_bytes_; }
  void reset_most_waiting() { most_waiting_bytes_ = waiting_bytes_; }

 private:
  struct Timed {
    PacketPtr packet;
    size_t port = 0;
    TimePs due_ps = 0;
  };
  struct Arriving {
    PacketPtr packet;
    roce::ParsedPacket parsed;
    size_t port = 0;
    TimePs due_ps = 0;
  };
  struct Fetched {
    uint64_t bytes = 0;
    RingBuffer<Timed> packets;
  };
  struct Port {
    Client* client = nullptr;
    uint64_t limit_bytes = 0;  // of each class
    uint32_t classes_with_room = (1u << DeficitRoundRobin::kMaxClasses) - 1;
    uint32_t fetched_classes = 0;
    std::array<Fetched, DeficitRoundRobin::kMaxClasses> of_class;
  };

  bool fetch_one(Port& port, size_t number, TimePs now);
  TimePs transfer(TimePs& free_ps, TimePs now, size_t bytes, TimePs overhead_ps, const HostWay& way) const;
  void place(Arriving arriving);
  void place_waiting();
  void on_ready();
  void on_placed();

  Engine& engine_;
  NicConfig config_;
  BitRate rate_;
  HostWays ways_;
  std::vector<Port> ports_;
  size_t next_port_ = 0;
  bool fetching_ = false;
  TimePs read_free_ps_ = 0;
  TimePs write_free_ps_ = 0;
  RingBuffer<Timed> announced_;  // without packets: when which port's next one is ready
  RingBuffer<Arriving> arriving_;
  RingBuffer<Arriving> waiting_;  // with ways: a link may not be asked for what cannot begin to cross yet
  uint64_t waiting_bytes_ = 0;
  uint64_t most_waiting_bytes_ = 0;
  Timer write_free_;
  Timer read_free_;
  Timer ready_;
  Timer placed_;
};

}  // namespace weft
