// The links between the ranks of a host (NVLink and the like), which scale a host up before the network
// scales it out.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "hosts/line_format.hpp"
#include "hosts/memory_region.hpp"
#include "hosts/queue_pair.hpp"
#include "hosts/scale_up_message.hpp"
#include "hosts/scale_up_reductions.hpp"
#include "memory/flat_map.hpp"
#include "observe/statistics.hpp"
#include "time/engine.hpp"
#include "time/event_queue.hpp"
#include "time/time.hpp"

namespace weft {

class ScaleUpChannel;

#define WEFT_SCALE_UP_COUNTERS(STATISTIC)                                                        \
  STATISTIC(uint64_t, sent_messages, "out of the port")                                          \
  STATISTIC(uint64_t, sent_bytes, "out of the port")                                             \
  STATISTIC(uint64_t, received_messages, "into memory, or requests of READs")                    \
  STATISTIC(uint64_t, received_bytes, "into memory")                                             \
  STATISTIC(uint64_t, refused_messages, "to memory that the receiver has not registered")        \
  STATISTIC(uint64_t, abandoned_messages, "whose channel was closed at either end")              \
  STATISTIC(uint64_t, relayed_messages, "of the host's other ranks, sent on by the port's NIC")  \
  STATISTIC(uint64_t, relayed_bytes, "of data in them")                                          \
  STATISTIC(uint64_t, relayed_inside_ps, "sum over them: from posting until the relay had them") \
  STATISTIC(uint64_t, relayed_between_ps, "sum over them: from then until acknowledged")

struct ScaleUpCounters {
  WEFT_STATISTICS(ScaleUpCounters, WEFT_SCALE_UP_COUNTERS)
};

// A READ under way, as its channel remembers it, so that no address travels to other processes and back.
struct ScaleUpRead {
  uint8_t* target = nullptr;  // null: discarded
  uint64_t length_bytes = 0;
  uint64_t work_id = 0;
  TimePs posted_ps = kNever;
  explicit operator bool() const { return posted_ps != kNever; }
};

// What became of a message: nothing if a channel was closed at either end.
using ScaleUpOutcome = std::optional<CompletionStatus>;

// Carries messages to ports that other processes have, and what became of theirs back to them.
struct ScaleUpWire {
  virtual ~ScaleUpWire() = default;
  // The first bit is due at `due_ps`; the data may change when this returns.
  virtual void carry(TimePs due_ps, const ScaleUpMessage& message) = 0;
  virtual void answer(const ScaleUpMessage& message, ScaleUpOutcome outcome) = 0;
};

// Takes what is written over a channel in place of its port's memory, and says later what became of it
// (ScaleUpDomain::forwarded).
struct ScaleUpForwarder {
  virtual ~ScaleUpForwarder() = default;
  // The data may change when this returns.
  virtual void forward(const ScaleUpMessage& message) = 0;
};

// A crossbar that blocks nothing with a port for each rank. A message takes its bytes at the ports' rate out
// of the sender's port, one after the other, `latency_ps` to the receiver's port, and its bytes at the rate
// in through that, in the order in which first bits arrive; out and in overlap (cut-through). So n bytes on
// idle ports take n/rate + latency. Nothing is lost. A READ's request is a message of no bytes; its response
// leaves the peer's port as a message of what the memory held when the request came, so a READ of n bytes on
// idle ports takes n/rate and two latencies.
//
// The crossbar can reduce and multicast (SwitchedWrite), as NVSwitches do. A result's first bit is due at the
// receiver's port with that of its last term, and takes its bytes in through that once. Copies take no bytes
// out of the sender's port.
//
// Under the real clock each rank is a process, with a domain in which the other ports are behind a wire. All
// count the same time, so each port keeps its own order and rate; a sender's completion comes later by the
// time of an answer between processes.
class ScaleUpDomain {
 public:
  // Throws std::invalid_argument for a rate of 0 or a negative latency.
  ScaleUpDomain(Engine& engine, uint64_t rate_bps, TimePs latency_ps, uint32_t port_count);
  ~ScaleUpDomain();
  ScaleUpDomain(const ScaleUpDomain&) = delete;
  ScaleUpDomain& operator=(const ScaleUpDomain&) = delete;

  // Peers of this port may write and read these regions, which outlive the domain. Throws
  // std::invalid_argument for a port there is not.
  void attach(uint32_t port, const MemoryRegistry& memory);
  // All ports but `own_port` are behind the wire, which outlives the domain's last event. Throws
  // std::invalid_argument for a port there is not.
  void set_wire(uint32_t own_port, ScaleUpWire& wire);
  // From the wire: a message to a port that is here, whose data is in `bytes`, or null for zeros. One that
  // comes later than it was due counts as served late.
  void arrive(TimePs due_ps, ScaleUpMessage message, std::unique_ptr<uint8_t[]> bytes);
  // From the wire: what became of a message of a port that is here.
  void finish(const ScaleUpMessage& message, ScaleUpOutcome outcome);
  // From a forwarder: what became of a WRITE that it took, once; nothing if it was closed.
  void forwarded(const ScaleUpMessage& message, ScaleUpOutcome outcome);
  // Counts a WRITE that a port's NIC has sent on, with its times (see ScaleUpCounters).
  void count_relayed(const ScaleUpMessage& message, TimePs arrived_ps);
  const ScaleUpCounters& counters(uint32_t port) const;
  void reset_counters(uint32_t port);
  // Counts what fast-forward has not sent as if it had been sent (see FastForward).
  void add_counters(uint32_t port, const ScaleUpCounters& more);
  Engine& engine() { return engine_; }
  uint32_t port_count() const { return static_cast<uint32_t>(ports_.size()); }

 private:
  friend class ScaleUpChannel;
  using Message = ScaleUpMessage;
  using InFlight = ScaleUpInFlight;
  struct Port;

  Port& port_at(uint32_t port);
  const Port& port_at(uint32_t port) const;
  bool is_elsewhere(uint32_t port) const { return wire_ != nullptr && port != own_port_; }
  void send(TimePs now, Message message, std::unique_ptr<uint8_t[]> bytes = nullptr);
  void put_on_the_way(InFlight arriving);
  void reduce_on_the_way(InFlight term);
  void queue_for(InFlight arriving);
  void forget_terms(uint32_t port, uint32_t channel);
  void first_bits_arrive(Port& port);
  void last_bits_arrive(Port& port);
  void deliver(const InFlight& arrived);
  void deliver_write(const Message& message);
  void deliver_from_elsewhere(const Message& message);
  void deliver_to_itself(const Message& message);
  void deliver_result(const InFlight& arrived);
  void say(const Message& message, ScaleUpOutcome outcome);
  void answer_read(TimePs due_ps, const Message& request);
  void end_read(const Message& response);
  bool is_forwarded(const ScaleUpChannel& receiver, const Message& message);
  CompletionStatus hand_to_receiver(CompletionHandler* handler, const Message& message);
  void tell_receiver(CompletionHandler* handler, const Message& message);
  void complete(CompletionHandler* handler, const Message& message, CompletionStatus status);
  void finish_read(Port& source, const Message& request, ScaleUpOutcome outcome);
  void complete_read(const ScaleUpChannel& channel, const ScaleUpRead& read, CompletionStatus status);
  CompletionStatus place(Port& destination, const Message& message);

  Engine& engine_;
  BitRate rate_;
  TimePs latency_ps_;
  std::vector<std::unique_ptr<Port>> ports_;
  ScaleUpWire* wire_ = nullptr;
  uint32_t own_port_ = 0;
  ScaleUpResult last_result_;
};

// One end of a connection between two ports, named by numbers as queue pairs are. Completions are those of
// RDMA: of a WRITE at both ends, and of a READ at the end that reads, when the last bit is in. With a line
// format the links carry the flags of lines, too, of WRITEs. Channels of a port over which the terms of the
// same reductions come have the same group.
class ScaleUpChannel {
 public:
  // `domain` outlives the channel; `handler` may be null. Throws std::invalid_argument for ports there are
  // not, or a number in use at the port.
  ScaleUpChannel(ScaleUpDomain& domain, uint32_t port, uint32_t number, uint32_t peer_port,
                 uint32_t peer_number, CompletionHandler* handler, LineFormat line_format = LineFormat::kNone,
                 uint32_t group = 0);
  ~ScaleUpChannel();
  ScaleUpChannel(const ScaleUpChannel&) = delete;
  ScaleUpChannel& operator=(const ScaleUpChannel&) = delete;

  // Has a forwarder take what is written over this end, until it is closed; READs are then refused. It
  // outlives the channel.
  void set_forwarder(ScaleUpForwarder& forwarder) { forwarder_ = &forwarder; }
  uint32_t number() const { return number_; }
  uint32_t peer_number() const { return peer_number_; }
  const ScaleUpCounters& port_counters() const { return domain_.counters(port_); }
  void add_port_counters(const ScaleUpCounters& more) { domain_.add_counters(port_, more); }
  // Writes to the peer's memory, as RcQueuePair::post_write; null data writes zeros. `as_length` and
  // `traffic_kind` are those of a queue pair that sends it on. Throws std::invalid_argument for more terms
  // than ports, none, terms that do not go together, and a copy of another length or time than its original.
  void post_write(TimePs now, const uint8_t* data, uint64_t length_bytes, uint64_t remote_address,
                  uint32_t rkey, std::optional<uint32_t> immediate, uint64_t work_id, bool as_length = false,
                  uint8_t traffic_kind = 0, const SwitchedWrite& switched = {});
  // Reads the peer's memory, as RcQueuePair::post_read; what is read for a null target is discarded. As many
  // may be under way as are posted.
  void post_read(TimePs now, uint8_t* target, uint64_t length_bytes, uint64_t remote_address, uint32_t rkey,
                 uint64_t work_id);
  // Forgets what is under way: its data is read no more, nor is anything written to targets of READs.
  void close();

 private:
  friend class ScaleUpDomain;

  // Takes one out; false if there is none.
  ScaleUpRead take_read(uint32_t number);

  ScaleUpDomain& domain_;
  uint32_t port_;
  uint32_t number_;
  uint32_t peer_port_;
  uint32_t peer_number_;
  CompletionHandler* handler_;
  ScaleUpForwarder* forwarder_ = nullptr;
  LineFormat line_format_;
  uint32_t group_;
  bool open_ = true;
  FlatMap<uint32_t, ScaleUpRead> reads_;  // under way, by number
  uint32_t next_read_ = 0;
};

}  // namespace weft
