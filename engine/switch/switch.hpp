// A v1model switch: the architecture around a compiled program, as behavioral-model's docs/simple_switch.md
// describes it. Ports are transmit ports of the engine; the egress pipeline runs as a packet leaves its
// queue.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "links/header_parser.hpp"
#include "links/node.hpp"
#include "links/transmit_port.hpp"
#include "memory/cache_line.hpp"
#include "memory/prefetch_step.hpp"
#include "memory/ring_buffer.hpp"
#include "switch/abi.hpp"
#include "switch/events.hpp"
#include "switch/objects.hpp"
#include "switch/program.hpp"
#include "switch/replication.hpp"
#include "switch/state_pool.hpp"
#include "switch/trace.hpp"
#include "time/engine.hpp"

namespace weft {

constexpr uint32_t kCellBytes = 80;

struct SwitchOptions {
  enum class DepthUnit : uint8_t { kCells, kPackets };            // of enq_qdepth and deq_qdepth
  enum class TimeUnit : uint8_t { kNanoseconds, kMicroseconds };  // of all timestamps

  std::string name;
  uint32_t cpu_port = 510;
  uint32_t drop_port = kMaxPort;
  DepthUnit depth_unit = DepthUnit::kCells;
  uint32_t cell_bytes = kCellBytes;  // times a power of two
  TimeUnit time_unit = TimeUnit::kNanoseconds;
};

enum class DropReason : uint8_t {
  kNoPipeline,           // no program loaded yet
  kPipelineReplaced,     // queued under a program that has been replaced since
  kProgramIngress,       // egress_spec was the drop port after ingress
  kProgramEgress,        // ... after egress
  kTailDrop,             // no room in the egress port's queue
  kUnknownPort,          // egress port not attached
  kEmptyMulticastGroup,  // unknown group, or one without replicas
  kPassLimit,            // resubmitted, recirculated or cloned without end
  kAssertion,            // assert() or assume() failed
  kLoopLimit,            // actions jumped backward without end
  kUnknownCloneSession,  // no copy was made (the packet itself lives on)
  kCpuQueueFull,         // packet-in not fetched in time
  kDigestQueueFull,      // digest not fetched in time (the packet itself lives on)
  kPortDown,             // the egress port has no link
  kCount,
};
const char* drop_reason_name(DropReason reason);

class alignas(64) Switch : public Node, public EgressStage, public HeaderParser {
 public:
  enum InstanceType : uint32_t {
    kNormal = 0,
    kIngressClone = 1,
    kEgressClone = 2,
    kRecirculated = 4,
    kReplicated = 5,
    kResubmitted = 6,
  };
  struct Output {
    uint32_t port;
    std::vector<uint8_t> bytes;
  };

  Switch(Engine& engine, SwitchOptions options);
  ~Switch() override;

  // Replaces program, tables and all other state.
  void load(std::shared_ptr<const SwitchProgram> program);
  // Instrumented code in place of the program's own, or back; see SwitchObjects::replace_code.
  void replace_code(std::shared_ptr<const SwitchProgram> program) {
    objects().replace_code(std::move(program));
  }
  // Throws std::logic_error if no program has been loaded.
  SwitchObjects& objects();

  // Packets for this port go there; the port's egress stage becomes this switch.
  void attach_port(uint32_t port, TransmitPort& transmit_port);

  void receive(int port, PacketPtr packet) override;
  PacketPtr split(Packet& packet) override;
  bool trim(Packet& packet, const TrimmingConfig& trimming, const TrafficCounter& waiting) override;
  void on_refused_of_segment(uint64_t packets) override { count(DropReason::kTailDrop, {packets, 0}); }
  PacketPtr on_dequeue(int port, PacketPtr packet, const QueueStamp& stamp) override;
  uint64_t header_bytes(int port, const Packet& packet) override;

  // Runs one packet through ingress and egress at once, through no queue, and returns what leaves. For tests
  // and benchmarks.
  std::vector<Output> process(uint32_t port, std::span<const uint8_t> bytes);
  // `count` packets, those given over and over again, outputs dropped. Returns the number that left.
  struct Input {
    uint32_t port;
    std::span<const uint8_t> bytes;
  };
  uint64_t process_repeatedly(std::span<const Input> packets, uint64_t count);
  // What would leave if these packets came, for each of them: as process(), but counters, registers and
  // random numbers are as before afterwards.
  std::vector<std::vector<Output>> would_send(std::span<const Input> packets);

  ReplicationEngine& replication() { return replication_; }
  StreamEventQueue& events() { return events_; }
  const SwitchOptions& options() const { return options_; }
  Engine& engine() override { return engine_; }
  uint64_t dropped(DropReason reason) const { return dropped_[static_cast<size_t>(reason)]; }
  // Packets that ended here: why, what had marked them (PacketState::drop_site, 0 where nothing did), the
  // port by which they had come, and whether they were copies of others, as those that a program takes out of
  // a flood. Not those that a port refused, which it counts itself.
  struct Loss {
    DropReason reason;
    uint32_t site;
    uint32_t port;
    bool is_copy;
    uint64_t packets;
  };
  std::vector<Loss> losses() const;
  void reset_drop_counters() {
    dropped_.fill(0);
    losses_.clear();
  }
  uint64_t received_packets() const { return received_packets_; }

  // Random numbers are drawn from another stream from now on.
  void draw_from(const Rng& rng) { random_ = rng; }
  SwitchTrace& trace() { return trace_; }
  void set_logging(bool enabled);
  // The lines since the last call, at most kLogCapacity; where there were more, the first line says how many.
  std::vector<std::string> take_log();

  // Called by generated code.
  uint64_t random_between(uint64_t low, uint64_t high);
  void log_message(uint32_t format, std::span<const uint64_t> values, size_t value_words);

 private:
  static constexpr size_t kLogCapacity = 4096;
  static constexpr size_t kReasons = static_cast<size_t>(DropReason::kCount);

  using StatePtr = std::unique_ptr<StateBlock, void (*)(StateBlock*)>;

  struct Waiting {
    uint32_t port = 0;
    PacketPtr packet;
  };

  // See Visited.
  static void fetch(const void* self, PrefetchStep step);
  StateBlock* new_state();
  void clear_state(PacketState& state);
  StateBlock* state_of(Packet& packet) { return static_cast<StateBlock*>(packet.context); }
  void clear_large_headers(PacketState& state);
  void clear_metadata(PacketState& state);
  void clear_requests(PacketState& state);
  void point_at(PacketState& state, const Packet& packet);
  PacketPtr copy_with_state(const Packet& packet);
  PacketPtr copy_with_state(const Packet& packet, PacketOrigin source);
  static bool spend_pass(PacketState& state);

  // Where the packet is going to be queued.
  void prefetch_port(const PacketState& state) const {
    const TransmitPort* port = state.egress_spec < ports_.size() ? ports_[state.egress_spec] : nullptr;
    const uint32_t priority_class = std::min<uint32_t>(state.priority, TransmitPort::kMaxClasses - 1);
    if (port != nullptr) port->prefetch_for(static_cast<int>(priority_class));
  }
  uint64_t timestamp(TimePs time_ps) const;
  uint32_t depth(uint64_t bytes, uint64_t packets) const;

  using Arrival = SharedBuffer::Arrival;

  void begin_state(PacketState& state, const Packet& packet, uint32_t port, InstanceType type,
                   uint32_t pass_budget);
  bool arrive(Packet& packet, StateBlock& block, uint32_t port);
  void receive_generally(PacketPtr packet, StateBlock* block, uint32_t port, Arrival arrival);
  void recirculate(PacketPtr packet, Arrival arrival);
  void preserve(PacketState& state, const PacketState& previous, uint32_t field_list);
  void parse(Packet& packet, PacketState& state);
  void parse_written_out(Packet& packet, PacketState& state);
  void run_ingress(PacketPtr packet, Arrival arrival);
  void go_on(PacketPtr packet, Arrival arrival);
  // Serves a packet that asks_for_more() after ingress. Result: the packet, if it goes on as others do; with
  // `again` set, one that ingress is to run for; null: the packet has ended.
  PacketPtr serve_ingress_requests(PacketPtr packet, Arrival arrival, bool& again);
  PacketPtr resubmit(PacketPtr packet);
  // Null, and counted, if there is no session of the number that the program asks for.
  const CloneSession* requested_session(PacketState& original);
  void note_first_of_segment(int port, Packet& packet) const;
  void clone_from_ingress(const Packet& packet);
  void clone_from_egress(const Packet& packet);
  void send_clone(PacketPtr clone, const CloneSession& session);
  void send_digest(const PacketState& state);
  SharedBuffer* memory_of(Arrival arrival) const;
  void multicast(PacketPtr packet, const std::vector<Replica>& replicas, Arrival arrival);
  void enqueue(uint32_t port, PacketPtr packet, Arrival arrival);
  void run_bypassing();
  void bypass_queue(uint32_t port, PacketPtr packet);
  bool dropped_by_abort(const PacketState& state, const Packet& packet);
  // stamp: of the queue it has left, null where it passed none.
  PacketPtr run_egress(uint32_t port, PacketPtr packet, const QueueStamp* stamp);
  // Serves a packet that asks_for_more() after egress. False: it has ended.
  bool serve_egress_requests(const Packet& packet, PacketState& state);
  Arrival admitted_again(const QueueStamp* stamp) const;
  void deparse(Packet& packet, PacketState& state);
  void deliver(uint32_t port, uint32_t came_by, PacketPtr packet);
  // A packet ends here. Its state is still there.
  void drop(DropReason reason, const Packet& packet, const PacketState& state) {
    const bool by_program = reason == DropReason::kProgramIngress || reason == DropReason::kProgramEgress;
    const bool is_copy =
        by_program && (state.instance_type == kReplicated || state.instance_type == kIngressClone ||
                       state.instance_type == kEgressClone);
    drop(packet, {reason, by_program ? state.drop_site : 0, state.ingress_port, is_copy, packet.packets()},
         state.trace);
  }
  void drop(const Packet& packet, const Loss& loss, TraceNumbers of) {
    engine_.conservation().drop(DropPlace::kSwitch, static_cast<size_t>(loss.reason), packet.traffic());
    count(loss.reason, packet.traffic());
    note(loss);
    record(of, TraceSite::kDropped, {static_cast<uint32_t>(loss.reason)});
  }
  void note(const Loss& loss) {
    const size_t row = (loss.site * 2 + (loss.is_copy ? 1 : 0)) * kReasons + static_cast<size_t>(loss.reason);
    if (row >= losses_.size()) [[unlikely]]
      losses_.resize(row + 1);
    std::vector<uint64_t>& by_port = losses_[row];
    if (loss.port >= by_port.size()) [[unlikely]]
      by_port.resize(loss.port + 1);
    by_port[loss.port] += loss.packets;
  }
  void forget_drop_sites();
  // Something is not done, and the packet lives on, or its end is accounted for elsewhere.
  void count(DropReason reason, const TrafficCounter& traffic = {1, 0}) {
    dropped_[static_cast<size_t>(reason)] += traffic.packets;
    if (engine_.probe() != nullptr) [[unlikely]]
      report_dropped(reason, traffic.bytes);
  }
  void report_dropped(DropReason reason, uint64_t size_bytes);
  void record_received(const PacketState& state, const Packet& packet);
  void record_egress(const PacketState& state, uint32_t port);
  void record(TraceNumbers of, TraceSite site, std::initializer_list<uint32_t> values,
              std::span<const uint8_t> bytes = {}) {
    if (of.packet != 0) trace_.record(of, site, values, engine_.now(), bytes);
  }

  Engine& engine_;
  SwitchOptions options_;
  int cell_shift_;  // a cell has kCellBytes times two to this
  std::unique_ptr<SwitchObjects> objects_;
  std::unique_ptr<StatePool, CloseStatePool> states_;
  std::vector<uint8_t> digest_buffer_;
  CacheLineVector<TransmitPort*> ports_;  // by number, null where none is attached
  uint32_t port_count_ = 0;               // one more than the highest number attached
  ReplicationEngine replication_;
  StreamEventQueue events_;
  Rng random_;
  SwitchTrace trace_;
  std::deque<std::string> log_;
  uint64_t log_lines_lost_ = 0;
  bool logging_ = false;

  // Packets for egress that pass no queue of a port (the CPU port's, and all while process() runs), in order:
  // a copy's further copies come behind what is there already.
  RingBuffer<Waiting> bypassing_;

  bool capturing_ = false;                   // while one of these two runs
  std::vector<Output>* captured_ = nullptr;  // set while process() runs
  uint64_t* captured_count_ = nullptr;       // set while process_repeatedly() runs
  uint64_t received_packets_ = 0;
  std::array<uint64_t, kReasons> dropped_{};
  std::vector<std::vector<uint64_t>> losses_;  // by site, copies and reason, then by port
};

}  // namespace weft
