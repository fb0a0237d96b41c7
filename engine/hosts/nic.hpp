// A RoCEv2 network adapter with one or more ports: checks and counts what arrives, hands it to its queue
// pairs, and lets them take turns at each port whenever it is free.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hosts/memory_region.hpp"
#include "hosts/nic_dma.hpp"
#include "hosts/queue_pair.hpp"
#include "hosts/queue_pair_numbers.hpp"
#include "hosts/recovery_times.hpp"
#include "links/node.hpp"
#include "links/transmit_port.hpp"
#include "memory/prefetch_step.hpp"
#include "observe/statistics.hpp"
#include "packets/roce_codec.hpp"
#include "time/engine.hpp"

namespace weft {

template <class Sender>
class NotifiedSenders;

class PcapWriter;
namespace uet {
class CreditPacer;
class PdcTable;
}  // namespace uet

struct NicPortConfig {
  roce::MacAddress mac{};
  std::vector<roce::IpAddress> addresses;  // IPv4 and IPv6 addresses of the port
  HostWays ways;                           // between it and its memory
};

// Why a frame was not delivered to a queue pair: a parse error, or one of these.
enum class NicDrop : uint8_t {
  kForeignMac,        // not to this port's MAC, nor to a group
  kForeignAddress,    // not to one of this port's addresses, nor to an attached group
  kUnknownQueuePair,  // no such queue pair on this port
  kCount,
};
const char* nic_drop_name(NicDrop drop);

#define WEFT_NIC_PORT_COUNTERS(STATISTIC)                            \
  STATISTIC(uint64_t, received_packets, "delivered to a queue pair") \
  STATISTIC(uint64_t, received_bytes, "delivered to a queue pair")   \
  STATISTIC(uint64_t, not_roce_packets, "other traffic (ARP, ping), left to the host's kernel or IP stack")

struct NicPortCounters {
  WEFT_STATISTICS(NicPortCounters, WEFT_NIC_PORT_COUNTERS)
  std::array<uint64_t, static_cast<size_t>(roce::ParseError::kCount)> parse_errors{};
  std::array<uint64_t, static_cast<size_t>(NicDrop::kCount)> drops{};
};

// Takes what arrives that is not RoCEv2's, and accounts for it: see hosts/ip/ip_stack.hpp.
struct NonRoceReceiver {
  virtual ~NonRoceReceiver() = default;
  virtual void receive_non_roce(int port, PacketPtr packet) = 0;
};

class Nic final : public Node {
 public:
  Nic(Engine& engine, std::string name, const NicConfig& config = {});
  ~Nic() override;
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;

  // Adds a port that sends through `transmit` (its rate is the NIC's, its link leads to the fabric) and
  // returns its number, from 0: the port to name to Link::connect() for what arrives. The NIC becomes its
  // packet source.
  int add_port(NicPortConfig config, TransmitPort& transmit);
  size_t port_count() const { return ports_.size(); }
  const NicPortConfig& port_config(int port) const;
  uint64_t line_rate_bps(int port) const;
  // The port's address of the peer's IP version. Throws std::invalid_argument if it has none.
  const roce::IpAddress& own_address(int port, const roce::IpAddress& peer) const;

  // A queue pair number not in use, from 0x11 up (0 and 1 are InfiniBand's management queue pairs).
  uint32_t allocate_queue_pair_number();
  // Delivers packets to queue pair `number` that arrive at `port`, and sends what it has to send there. A
  // queue pair that is destroyed detaches itself. Throws std::invalid_argument if the number is taken or more
  // than 24 bits, or the port does not exist.
  void attach(QueuePair& queue_pair, int port, uint32_t number);
  // Delivers packets to a queue pair of this number, which is attached to another port, that arrive at
  // `port`. Throws std::invalid_argument if none is, or if the port has one of that number.
  void attach_leg(QueuePair& leg, int port, uint32_t number);
  // Also delivers what arrives at the queue pair's port for the multicast queue pair (0xFFFFFF) of this group
  // address. The queue pair may be attached by group only, without a number. Throws std::invalid_argument if
  // the group is taken.
  void attach_group(QueuePair& queue_pair, int port, const roce::IpAddress& group);
  // The queue pair of this number, null if there is none.
  QueuePair* find(uint32_t number) const;
  // Who learns of a port that loses its link or has it again.
  struct PortWatcher {
    virtual ~PortWatcher() = default;
    virtual void on_port(int port, bool up) = 0;
  };
  // For as long as the NIC lives.
  void watch_ports(PortWatcher* watcher) { port_watchers_.push_back(watcher); }
  // A port's link is there, or not; down as TransmitPort::set_up(), and known to whoever watches.
  void set_port_up(int port, bool up);
  bool is_port_up(int port) const;
  // Gives a sender its turns at a port; nothing is delivered to it. Throws std::invalid_argument if it is
  // attached to another port.
  void attach_sender(QueuePair& sender, int port);
  // Null: what is not RoCEv2's is counted and dropped.
  void set_non_roce_receiver(NonRoceReceiver* receiver) { non_roce_receiver_ = receiver; }
  NonRoceReceiver* non_roce_receiver() const { return non_roce_receiver_; }
  // Gives a switch's notification to the queue pair that sends to that queue pair of that address. Returns
  // whether there is one at the port.
  bool notify(int port, const roce::IpAddress& peer, const switch_notification::Header& header);
  // Keeps an attached queue pair alive until it is detached. Throws std::invalid_argument if it is not
  // attached.
  void keep(std::shared_ptr<QueuePair> queue_pair);
  // Forgets a queue pair: its numbers, its groups and its timer. Not from within that queue pair's own
  // completions.
  void detach(QueuePair& queue_pair);

  // Of its queue pairs of UET; from the first call on it delivers packets to UDP port 4793 to them.
  const std::shared_ptr<uet::PdcTable>& pdcs();

  // Of queue pairs at the port with receiver credits.
  std::shared_ptr<uet::CreditPacer> credit_pacer(int port);

  MemoryRegistry& memory() { return memory_; }
  Engine& engine() override { return engine_; }
  const std::string& name() const { return name_; }
  // Draws the source ports that the host's queue pairs and IP stack choose for themselves.
  uint64_t entropy_seed() const { return entropy_seed_; }

  void receive(int port, PacketPtr packet) override;

  // When packets that its queue pairs sent again were acknowledged, since the last call.
  RecoveryTimes take_recovery_times() { return std::exchange(recovery_times_, RecoveryTimes()); }

  const NicPortCounters& counters(int port) const;
  // Most payload received at a port that has waited at once for the host's links.
  uint64_t most_waiting_bytes(int port) const;
  void reset_counters();
  // Records what a port receives and sends; null stops.
  void set_capture(int port, std::shared_ptr<PcapWriter> capture);

 private:
  struct Attachment;
  struct Port;

  // See Visited.
  static void fetch(const void* nic, PrefetchStep step);
  Port& port_at(int port);
  const Port& port_at(int port) const;
  Attachment& attachment_for(QueuePair& queue_pair, int port);
  // What roce::parse_packet() has refused.
  void receive_other(Port& port, int number, PacketPtr packet, roce::ParseError error);
  bool receive_uet(Port& port, PacketPtr& packet);
  void receive_non_roce(Port& port, int number, PacketPtr packet);
  void deliver(Port& port, PacketPtr& packet, const roce::ParsedPacket& parsed);
  // Null if there is none; `reason` then says why.
  Attachment* find_receiver(Port& port, const roce::ParsedPacket& packet, NicDrop& reason);
  void hand_over(Port& port, Attachment& attachment, const roce::ParsedPacket& packet);
  template <class Work>
  void let_work(Port& port, Attachment& attachment, Work&& work);

  Engine& engine_;
  std::string name_;
  uint64_t entropy_seed_;
  MemoryRegistry memory_;
  NicConfig config_;
  std::unique_ptr<NicDma> dma_;  // of all ports without ways of their own; null: memory is at hand in no time
  std::vector<std::unique_ptr<Port>> ports_;
  std::unordered_map<QueuePair*, std::unique_ptr<Attachment>> attachments_;
  CacheLineVector<Attachment*> attached_;  // the same, each at its own place
  QueuePairNumbers<Attachment> by_number_;
  uint32_t next_number_ = 0x11;
  RecoveryTimes recovery_times_;
  NonRoceReceiver* non_roce_receiver_ = nullptr;
  std::unique_ptr<NotifiedSenders<Attachment>> notified_;  // null: no switch has notified anybody
  std::vector<PortWatcher*> port_watchers_;
  std::shared_ptr<uet::PdcTable> pdcs_;  // null: no queue pair is of UET
};

}  // namespace weft
