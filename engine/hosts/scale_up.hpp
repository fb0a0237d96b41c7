// The links between the ranks of a host (NVLink and the like), which scale a host up before the network
// scales it out.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "hosts/memory_region.hpp"
#include "hosts/queue_pair.hpp"
#include "observe/statistics.hpp"
#include "time/engine.hpp"
#include "time/event_queue.hpp"
#include "time/time.hpp"

namespace weft {

class ScaleUpChannel;

#define WEFT_SCALE_UP_COUNTERS(STATISTIC)                                                 \
  STATISTIC(uint64_t, sent_messages, "out of the port")                                   \
  STATISTIC(uint64_t, sent_bytes, "out of the port")                                      \
  STATISTIC(uint64_t, received_messages, "into memory")                                   \
  STATISTIC(uint64_t, received_bytes, "into memory")                                      \
  STATISTIC(uint64_t, refused_messages, "to memory that the receiver has not registered") \
  STATISTIC(uint64_t, abandoned_messages, "whose channel was closed at either end")

struct ScaleUpCounters {
  WEFT_STATISTICS(ScaleUpCounters, WEFT_SCALE_UP_COUNTERS)
};

// A crossbar that blocks nothing with a port for each rank. A message takes its bytes at the ports' rate out
// of the sender's port, one after the other, `latency_ps` to the receiver's port, and its bytes at the rate
// in through that, in the order in which first bits arrive; out and in overlap (cut-through). So n bytes on
// idle ports take n/rate + latency. Nothing is lost.
class ScaleUpDomain {
 public:
  // Throws std::invalid_argument for a rate of 0 or a negative latency.
  ScaleUpDomain(Engine& engine, uint64_t rate_bps, TimePs latency_ps, uint32_t port_count);
  ~ScaleUpDomain();
  ScaleUpDomain(const ScaleUpDomain&) = delete;
  ScaleUpDomain& operator=(const ScaleUpDomain&) = delete;

  // What is sent to this port may be written into these regions, which outlive the domain. Throws
  // std::invalid_argument for a port there is not.
  void attach(uint32_t port, const MemoryRegistry& memory);
  const ScaleUpCounters& counters(uint32_t port) const;
  void reset_counters(uint32_t port);
  Engine& engine() { return engine_; }

 private:
  friend class ScaleUpChannel;
  struct Message {
    uint32_t source = 0;  // port
    uint32_t destination = 0;
    uint32_t channel = 0;       // number at the source
    uint32_t peer_channel = 0;  // number at the destination
    const uint8_t* data = nullptr;
    uint64_t length_bytes = 0;
    uint64_t remote_address = 0;
    uint32_t rkey = 0;
    std::optional<uint32_t> immediate;
    uint64_t work_id = 0;
    TimePs posted_ps = 0;
  };
  struct InFlight {
    TimePs due_ps;
    Message message;
  };
  struct Port;

  Port& port_at(uint32_t port);
  const Port& port_at(uint32_t port) const;
  void send(TimePs now, Message message);
  void first_bits_arrive(Port& port);
  void last_bits_arrive(Port& port);
  void deliver(const Message& message);
  CompletionStatus place(Port& destination, const Message& message);

  Engine& engine_;
  BitRate rate_;
  TimePs latency_ps_;
  std::vector<std::unique_ptr<Port>> ports_;
};

// One end of a connection between two ports, named by numbers as queue pairs are. Completions are those of an
// RDMA WRITE, reported to both ends when the last bit is in.
class ScaleUpChannel {
 public:
  // `domain` outlives the channel; `handler` may be null. Throws std::invalid_argument for ports there are
  // not, or a number in use at the port.
  ScaleUpChannel(ScaleUpDomain& domain, uint32_t port, uint32_t number, uint32_t peer_port,
                 uint32_t peer_number, CompletionHandler* handler);
  ~ScaleUpChannel();
  ScaleUpChannel(const ScaleUpChannel&) = delete;
  ScaleUpChannel& operator=(const ScaleUpChannel&) = delete;

  uint32_t number() const { return number_; }
  // Writes to the peer's memory, as RcQueuePair::post_write; null data writes zeros.
  void post_write(TimePs now, const uint8_t* data, uint64_t length_bytes, uint64_t remote_address,
                  uint32_t rkey, std::optional<uint32_t> immediate, uint64_t work_id);
  // Forgets what is under way: its data is read no more.
  void close();

 private:
  friend class ScaleUpDomain;

  ScaleUpDomain& domain_;
  uint32_t port_;
  uint32_t number_;
  uint32_t peer_port_;
  uint32_t peer_number_;
  CompletionHandler* handler_;
  bool open_ = true;
};

}  // namespace weft
