// Traffic of many flows: WRITEs that start at given times, each over a queue pair of its own that is made
// when the flow starts and destroyed when it is over.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/schedule_executor.hpp"
#include "congestion/congestion_control.hpp"
#include "hosts/mrc/ev_table.hpp"
#include "hosts/mrc/mrc_config.hpp"
#include "hosts/mrc/mrc_counters.hpp"
#include "hosts/nic.hpp"
#include "hosts/rc_config.hpp"
#include "hosts/uet/uet_config.hpp"
#include "hosts/uet/uet_counters.hpp"
#include "hosts/writing_queue_pair.hpp"
#include "observe/probe.hpp"
#include "paths/path_choice.hpp"
#include "time/engine.hpp"
#include "time/event_queue.hpp"

namespace weft {

class MrcQueuePair;

// What the queue pairs of one port have in common.
struct FlowPort {
  int port = 0;
  RcConfig config;  // numbers, sequence numbers and the peer's address are the flow's
  // `frame_bytes` is that of a full data packet of the flow.
  std::function<std::shared_ptr<CongestionControl>(uint32_t frame_bytes)> make_congestion_control;
  // Empty: a path a flow.
  std::function<std::shared_ptr<PathChoice>(uint32_t queue_pair, uint32_t frame_bytes)> make_path_choice;
  // Neither: RC.
  std::optional<MrcConfig> mrc{};
  std::optional<UetConfig> uet{};
  // MRC: the ports of the planes after the first, and the MAC addresses of what leaves by them.
  std::vector<std::pair<int, roce::MacAddress>> more_planes{};
  bool as_lengths = false;  // packets carry their payload as a length, not as zeros
};

// What an engine's probe records of a flow that is sent, and under which names.
struct ObservedFlow {
  ConnectionEnds ends;
  bool message = false;
  bool telemetry = false;
};

// One end of a flow. Both ends know the number of the other's queue pair, and derive first sequence numbers.
struct FlowEnd {
  uint32_t flow = 0;    // its number in the whole workload
  TimePs start_ps = 0;  // after the run's start
  uint32_t place = 0;   // of its port among those added
  roce::IpAddress peer_ip;
  uint32_t queue_pair = 0;
  uint32_t remote_queue_pair = 0;
  uint64_t size_bytes = 0;
  // Of the sending end only: where it writes.
  uint64_t remote_address = 0;
  uint32_t rkey = 0;
  ObservedFlow observed;
};

// What became of a flow this host sent: finished when its last packet was acknowledged.
struct FlowRecord {
  uint32_t flow = 0;
  TimePs started_ps = 0;
  TimePs finished_ps = 0;
  uint64_t retransmitted_packets = 0;
};

// The flows of one host. The run is finished when all that the host sends has been acknowledged and all that
// it receives has come; it fails with the first queue pair that fails. A receiving queue pair stays for as
// long as its peer may still ask for an acknowledgement again. Over UET's service RUDI no receiver learns
// that a flow has come: there the run is finished when all that the host sends has been acknowledged, and
// receiving queue pairs stay until cancel() or the end of the generator. All calls under the engine's lock.
class FlowGenerator final : public CompletionHandler {
 public:
  // Both outlive the generator. The end is reported by way of the executor, as run 0.
  FlowGenerator(Nic& nic, ScheduleExecutor& executor);
  ~FlowGenerator() override;
  FlowGenerator(const FlowGenerator&) = delete;
  FlowGenerator& operator=(const FlowGenerator&) = delete;

  // Returns the place by which flows name the port. Throws std::invalid_argument for parameters out of range,
  // and for UET's service UUD.
  uint32_t add_port(FlowPort port);
  // MRC: the addresses on the planes after the first of the peer that has this one on the first. Before the
  // start.
  void add_peer(const roce::IpAddress& first, std::vector<roce::IpAddress> more);
  // Before the start. Throws std::invalid_argument for an unknown port, a size outside 1 byte to 2 GiB, a
  // start before 0, or a peer of an IP version that the port does not have.
  void add_sent(const FlowEnd& end) { add(sent_, end); }
  void add_received(const FlowEnd& end) { add(received_, end); }

  // Flows start at `start_ps` (now, if that is past) and after; records of messages bear the number of the
  // run, and as their step that of the flow. Throws std::logic_error the second time.
  void start(TimePs start_ps, uint32_t run = 0);
  // Ends the run, if it has not ended; its queue pairs go.
  void cancel();
  const RunStatus& status() const { return status_; }
  // Of the flows sent and acknowledged so far, in that order.
  const std::vector<FlowRecord>& records() const { return records_; }
  // Of all its queue pairs, those that are gone included.
  RcCounters counters() const;
  MrcCounters mrc_counters() const;
  // Of its queue pairs of MRC, by port of the NIC: how many EVs are in which state, or were when their queue
  // pair went.
  std::vector<mrc::EvStateCounts> ev_states() const;
  // By the administrator: excludes an EV of a port's queue pairs to a peer, those to come included, or admits
  // it again. Throws std::invalid_argument if none leads there.
  void set_ev_denied(uint32_t place, const roce::IpAddress& peer, uint32_t value, bool denied);
  // Its queue pairs of MRC that there are now: those of flows that it sends, then those of flows that it
  // receives.
  std::vector<MrcQueuePair*> mrc_queue_pairs() const;
  // That of a number, null if there is none now.
  MrcQueuePair* mrc_queue_pair(uint32_t number) const;
  // Which states of EVs are events, of queue pairs with this EV profile, those to come included.
  void set_ev_event_mask(uint64_t profile_id, uint8_t mask);
  UetCounters uet_counters() const;
  void reset_counters();

  void on_completion(const Completion& completion) override;

 private:
  enum class Direction : uint8_t { kSent, kReceived };
  struct Flow {
    FlowEnd end;
    std::unique_ptr<WritingQueuePair> queue_pair;
  };
  struct Flows {
    std::vector<Flow> items;
    size_t next = 0;  // to be started
  };
  struct Farewell {
    TimePs due_ps;
    uint32_t index;
  };

  void add(Flows& flows, const FlowEnd& end);
  void begin();
  void on_timer();
  void arm();
  void open(Flow& flow);
  std::unique_ptr<WritingQueuePair> make_queue_pair(const FlowPort& port, const RcConfig& config);
  std::unique_ptr<WritingQueuePair> make_mrc_queue_pair(const FlowPort& port, RcConfig config);
  void add_planes(MrcConfig& mrc, const FlowPort& port, const RcConfig& config) const;
  // Adds those of a flow's queue pair, if it is of MRC.
  void add_ev_states(const Flow& flow, std::vector<mrc::EvStateCounts>& by_port) const;
  void close(Flow& flow);
  void post(Flow& flow);
  void close_finished();
  void sent(const Completion& completion);
  void received(const Completion& completion);
  void flow_done();
  void end(RunState state, const std::string& reason);
  void destroy_queue_pairs();

  Nic& nic_;
  Engine& engine_;
  ScheduleExecutor& executor_;
  std::vector<FlowPort> ports_;
  std::map<roce::IpAddress, std::vector<roce::IpAddress>, roce::AddressOrder> peers_;
  Flows sent_;
  Flows received_;
  std::vector<std::pair<uint32_t, uint32_t>> received_by_number_;  // queue pair, index; sorted
  std::vector<std::pair<uint32_t, uint32_t>> sent_by_flow_;        // flow, index; sorted
  std::vector<uint32_t> acknowledged_;                             // flows sent whose queue pairs are to go
  std::deque<Farewell> farewells_;                                 // flows received whole, oldest first
  std::deque<Farewell> sent_farewells_;  // flows over several paths that are acknowledged, oldest first
  std::vector<FlowRecord> records_;
  RcCounters closed_;  // of queue pairs that are gone
  MrcCounters mrc_closed_;
  std::vector<mrc::EvStateCounts> closed_evs_;
  UetCounters uet_closed_;
  RunStatus status_;
  uint32_t run_ = 0;
  bool started_ = false;
  TimePs start_ps_ = 0;
  Timer timer_;
};

}  // namespace weft
