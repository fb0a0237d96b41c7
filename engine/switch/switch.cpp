#include "switch/switch.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <optional>
#include <stdexcept>

#include "memory/prefetch.hpp"
#include "observe/probe.hpp"
#include "packets/frame_dscp.hpp"
#include "switch/log.hpp"
#include "time/partition.hpp"

namespace weft {

namespace {

constexpr uint32_t kMaxDepth = (1U << 19) - 1;  // enq_qdepth and deq_qdepth have 19 bits

uint32_t low_word(uint64_t value) { return static_cast<uint32_t>(value); }
uint32_t high_word(uint64_t value) { return static_cast<uint32_t>(value >> 32); }

uint32_t saturate_u32(uint64_t value) { return static_cast<uint32_t>(std::min<uint64_t>(value, UINT32_MAX)); }

}  // namespace

const char* drop_reason_name(DropReason reason) {
  static constexpr std::array<const char*, static_cast<size_t>(DropReason::kCount)> kNames = {
      "no_pipeline",           "pipeline_replaced",     "program_ingress",   "program_egress", "tail_drop",
      "unknown_port",          "empty_multicast_group", "pass_limit",        "assertion",      "loop_limit",
      "unknown_clone_session", "cpu_queue_full",        "digest_queue_full", "port_down"};
  return kNames.at(static_cast<size_t>(reason));
}

Switch::Switch(Engine& engine, SwitchOptions options)
    : engine_(engine),
      options_(std::move(options)),
      cell_shift_(std::countr_zero(options_.cell_bytes / kCellBytes)),
      ports_(kMaxPort + 1, nullptr),
      random_(engine.stream("switch/" + options_.name)) {
  if (options_.cell_bytes % kCellBytes != 0 || !std::has_single_bit(options_.cell_bytes / kCellBytes))
    throw std::invalid_argument("switch '" + options_.name + "': cell_bytes " +
                                std::to_string(options_.cell_bytes) + " (valid: 80 times a power of two)");
  if (options_.cpu_port > kMaxPort || options_.drop_port > kMaxPort ||
      options_.cpu_port == options_.drop_port)
    throw std::invalid_argument(
        "switch '" + options_.name + "': cpu_port " + std::to_string(options_.cpu_port) + " and drop_port " +
        std::to_string(options_.drop_port) + " must differ and be at most " + std::to_string(kMaxPort));
  if (engine.partition() != nullptr) engine.partition()->add_visited({this, &Switch::fetch});
}

Switch::~Switch() = default;

void Switch::fetch(const void* self, PrefetchStep step) {
  const auto& of = *static_cast<const Switch*>(self);
  if (step == PrefetchStep::kObject) {
    prefetch<CacheLevel::kSecond>(self, sizeof(Switch));
  } else if (of.objects_ == nullptr) {
    return;
  } else if (step == PrefetchStep::kOneAway) {
    // The switch itself has been fetched in the step before, so its pointers may be read.
    prefetch<CacheLevel::kSecond>(of.objects_.get(), sizeof(SwitchObjects));
    prefetch<CacheLevel::kSecond>(of.states_.get(), sizeof(StatePool));
    prefetch<CacheLevel::kSecond>(of.ports_.data(), of.port_count_ * sizeof(TransmitPort*));
  } else {
    of.objects_->fetch(step - PrefetchStep::kTwoAway, of.port_count_);
  }
}

void Switch::load(std::shared_ptr<const SwitchProgram> program) {
  digest_buffer_.resize(program->max_digest_bytes);
  forget_drop_sites();
  states_.reset(StatePool::create(program, engine_.packets()));
  objects_ = std::make_unique<SwitchObjects>(std::move(program), this);
  replication_ = {};
  events_.clear();  // laid out as the program before had it
  objects_->context().log_enabled = logging_ ? 1 : 0;
  objects_->context().drop_port = options_.drop_port;
  objects_->context().now_ps = engine_.now();
}

SwitchObjects& Switch::objects() {
  if (objects_ == nullptr)
    throw std::logic_error("switch '" + options_.name + "' has no forwarding pipeline yet");
  return *objects_;
}

void Switch::attach_port(uint32_t port, TransmitPort& transmit_port) {
  if (port > kMaxPort || port == options_.drop_port || port == options_.cpu_port)
    throw std::invalid_argument("switch '" + options_.name + "': port " + std::to_string(port) +
                                " is not attachable (valid: 0 to " + std::to_string(kMaxPort) +
                                " except the CPU and drop ports)");
  if (&transmit_port.engine() != &engine_)
    throw std::invalid_argument("switch '" + options_.name + "': port " + std::to_string(port) +
                                " is of another engine");
  if (ports_[port] != nullptr)
    throw std::invalid_argument("switch '" + options_.name + "': port " + std::to_string(port) +
                                " is attached already");
  ports_[port] = &transmit_port;
  port_count_ = std::max(port_count_, port + 1);
  transmit_port.set_egress_stage(this, static_cast<int>(port));
}

// ---- packet states

StateBlock* Switch::new_state() {
  StateBlock* block = states_->acquire();
  clear_state(block->state);
  return block;
}

void Switch::clear_state(PacketState& state) {
  clear_large_headers(state);
  objects_->program().clear(&state);
  state.truncated_length_bytes = PacketState::kNotTruncated;
  state.loop_budget = PacketState::kLoopBudget;
}

void Switch::clear_large_headers(PacketState& state) {
  if (state.large_headers_written == 0) [[likely]]
    return;
  const SwitchProgram& program = objects_->program();
  uint8_t* part = reinterpret_cast<uint8_t*>(&state);
  for (const uint32_t bytes : program.large_parts_bytes)
    std::memset(part += program.large_apart_bytes, 0, bytes);
}

void Switch::clear_metadata(PacketState& state) {
  const SwitchProgram& program = objects_->program();
  std::memset(reinterpret_cast<uint8_t*>(&state) + program.metadata_offset_bytes, 0, program.metadata_bytes);
}

void Switch::clear_requests(PacketState& state) {
  state.clone_session = 0;
  state.clone_field_list = 0;
  state.digest_list = 0;
  state.resubmit_field_list = 0;
  state.recirculate_field_list = 0;
  state.exit_requested = 0;
  state.multicast_group = 0;
}

void Switch::point_at(PacketState& state, const Packet& packet) {
  state.data = packet.data();
  state.size_bytes = static_cast<uint32_t>(packet.size());
  state.virtual_bytes = static_cast<uint32_t>(packet.virtual_bytes());
  state.packets = packet.packets();
}

PacketPtr Switch::copy_with_state(const Packet& packet, PacketOrigin source) {
  engine_.conservation().enter(source, packet.traffic());
  return copy_with_state(packet);
}

PacketPtr Switch::split(Packet& packet) {
  PacketPtr rest = copy_with_state(packet);
  packet.split(*rest);
  const auto first_bytes = static_cast<uint32_t>(packet.wire_bytes());
  state_of(packet)->state.packet_length_bytes = first_bytes;
  state_of(*rest)->state.packet_length_bytes -= first_bytes;
  return rest;
}

// Copies are not trimmed, as in switches (NVIDIA's Spectrum trims known unicast alone): a loss among several
// receivers is nothing that one trimmed packet can tell.
bool Switch::trim(Packet& packet, const TrimmingConfig& trimming, const TrafficCounter& waiting) {
  PacketState& state = state_of(packet)->state;
  const std::optional<uint8_t> dscp = dscp_of(packet.bytes());
  if (state.instance_type != kNormal || !dscp.has_value() || !trimming.may_trim(*dscp)) return false;
  // The deparser writes as many headers as the parser has read, so these stay whole.
  const size_t kept_bytes =
      std::min<size_t>(packet.frame_bytes(), std::max(trimming.size_bytes, state.payload_offset_bytes));
  const size_t cut_bytes = packet.frame_bytes() - kept_bytes;
  if (cut_bytes != 0) packet.resize(kept_bytes);
  engine_.conservation().resize(-static_cast<int64_t>(cut_bytes));
  state.packet_length_bytes -= static_cast<uint32_t>(cut_bytes);
  state.trimmed = 1;
  state.trimmed_dscp = trimming.dscp;
  // Specialised code would leave the headers where they are, past mark_trimmed().
  state.arrived_by = nullptr;
  state.queue_class = trimming.priority_class;
  state.enqueue_depth = depth(waiting.bytes, waiting.packets);
  record(state.trace, TraceSite::kTrimmed, {static_cast<uint32_t>(kept_bytes), state.queue_class});
  return true;
}

PacketPtr Switch::copy_with_state(const Packet& packet) {
  PacketPtr copy = packet.clone();
  StateBlock* block = states_->acquire();
  const PacketState& from = static_cast<const StateBlock*>(packet.context)->state;
  const SwitchProgram& program = objects_->program();
  // The copy takes over that none is written, so what the block's last packet has left must go.
  if (from.large_headers_written == 0) clear_large_headers(block->state);
  std::memcpy(static_cast<void*>(&block->state), &from, program.cleared_bytes);
  if (from.large_headers_written != 0) {
    auto* to_part = reinterpret_cast<uint8_t*>(&block->state);
    const auto* from_part = reinterpret_cast<const uint8_t*>(&from);
    for (const uint32_t bytes : program.large_parts_bytes)
      std::memcpy(to_part += program.large_apart_bytes, from_part += program.large_apart_bytes, bytes);
  }
  point_at(block->state, *copy);
  copy->context = block;
  return copy;
}

// A program counts what it drops by counters of its own, and what it absorbs on purpose looks alike. A port
// reports what it refuses itself.
void Switch::report_dropped(DropReason reason, uint64_t size_bytes) {
  if (reason == DropReason::kProgramIngress || reason == DropReason::kProgramEgress ||
      reason == DropReason::kTailDrop || reason == DropReason::kPortDown)
    return;
  engine_.probe()->dropped(this, DropPlace::kSwitch, static_cast<size_t>(reason), size_bytes, -1);
}

std::vector<Switch::Loss> Switch::losses() const {
  std::vector<Loss> found;
  for (size_t row = 0; row < losses_.size(); ++row)
    for (size_t port = 0; port < losses_[row].size(); ++port)
      if (losses_[row][port] != 0)
        found.push_back({static_cast<DropReason>(row % kReasons), static_cast<uint32_t>(row / kReasons / 2),
                         static_cast<uint32_t>(port), row / kReasons % 2 == 1, losses_[row][port]});
  return found;
}

// Sites are numbered by program, and the program is about to be another one.
void Switch::forget_drop_sites() {
  const std::vector<Loss> before = losses();
  losses_.clear();
  for (Loss loss : before) {
    loss.site = 0;
    note(loss);
  }
}

bool Switch::spend_pass(PacketState& state) {
  if (state.pass_budget == 0) return false;
  --state.pass_budget;
  return true;
}

uint64_t Switch::timestamp(TimePs time_ps) const {
  // Two divisions by constants, which are multiplications, and not one by either.
  const auto time = static_cast<uint64_t>(time_ps);
  if (options_.time_unit == SwitchOptions::TimeUnit::kNanoseconds) [[likely]]
    return time / static_cast<uint64_t>(kPsPerNs);
  return time / static_cast<uint64_t>(kPsPerUs);
}

uint32_t Switch::depth(uint64_t bytes, uint64_t packets) const {
  const uint64_t units =
      options_.depth_unit == SwitchOptions::DepthUnit::kCells ? bytes / kCellBytes >> cell_shift_ : packets;
  return static_cast<uint32_t>(std::min<uint64_t>(units, kMaxDepth));
}

bool Switch::dropped_by_abort(const PacketState& state, const Packet& packet) {
  if (state.abort_reason == 0) return false;
  drop(state.abort_reason == PacketState::kLoopLimit ? DropReason::kLoopLimit : DropReason::kAssertion,
       packet, state);
  return true;
}

// ---- ingress

[[gnu::always_inline]] inline void Switch::parse(Packet& packet, PacketState& state) {
  objects_->program().parse(&state, &objects_->context());
  if (state.virtual_bytes != 0 && state.parser_error != 0) [[unlikely]]
    parse_written_out(packet, state);
}

// A parser that has looked for more than the bytes that are there starts over on the packet written out.
void Switch::parse_written_out(Packet& packet, PacketState& state) {
  const PacketState before = state;
  clear_state(state);
  packet.materialise();
  point_at(state, packet);
  state.trace = before.trace;
  state.ingress_port = before.ingress_port;
  state.instance_type = before.instance_type;
  state.packet_length_bytes = state.size_bytes;
  state.ingress_timestamp = before.ingress_timestamp;
  state.pass_budget = before.pass_budget;
  objects_->program().parse(&state, &objects_->context());
}

PacketPtr Switch::serve_ingress_requests(PacketPtr packet, Arrival arrival, bool& again) {
  PacketState& state = state_of(*packet)->state;
  if (dropped_by_abort(state, *packet)) return nullptr;
  if ((state.clone_session & PacketState::kCloneRequested) != 0) clone_from_ingress(*packet);
  if (state.digest_list != 0) send_digest(state);
  if (state.resubmit_field_list != 0) {
    again = true;
    return resubmit(std::move(packet));
  }
  const uint32_t group_id = state.multicast_group;
  clear_requests(state);
  if (group_id == 0) return packet;
  const std::vector<Replica>* replicas = replication_.multicast_group(group_id);
  const size_t replica_count = replicas == nullptr ? 0 : replicas->size();
  record(state.trace, TraceSite::kMulticast, {group_id, static_cast<uint32_t>(replica_count)});
  if (replica_count == 0) {
    drop(DropReason::kEmptyMulticastGroup, *packet, state);
    return nullptr;
  }
  state.instance_type = kReplicated;
  state.truncated_length_bytes = PacketState::kNotTruncated;  // as in BMv2, whose copies are whole
  multicast(std::move(packet), *replicas, arrival);
  return nullptr;
}

[[gnu::always_inline]] inline void Switch::run_ingress(PacketPtr packet, Arrival arrival) {
  SwitchContext& context = objects_->context();
  const SwitchProgram& program = objects_->program();
  context.now_ps = engine_.now();
  for (bool again = true; again;) {
    again = false;
    PacketState& state = state_of(*packet)->state;
    if (!spend_pass(state)) [[unlikely]] {
      drop(DropReason::kPassLimit, *packet, state);
      return;
    }
    if (state.trace.packet != 0) [[unlikely]]
      record_received(state, *packet);
    parse(*packet, state);
    if (state.abort_reason == 0) [[likely]] {
      program.ingress(&state, &context);
      prefetch_port(state);
    }
    if (state.asks_for_more()) [[unlikely]] {
      packet = serve_ingress_requests(std::move(packet), arrival, again);
      if (packet == nullptr) return;
    }
  }
  go_on(std::move(packet), arrival);
}

// After ingress that has asked for nothing.
[[gnu::always_inline]] inline void Switch::go_on(PacketPtr packet, Arrival arrival) {
  PacketState& state = state_of(*packet)->state;
  const uint32_t egress_port = state.egress_spec;
  if (egress_port == options_.drop_port) {
    drop(DropReason::kProgramIngress, *packet, state);
    return;
  }
  state.instance_type = kNormal;
  enqueue(egress_port, std::move(packet), arrival);
}

// The usual way of a packet through specialised code. False: it is the general code's, with its state
// cleared.
[[gnu::always_inline]] inline bool Switch::arrive(Packet& packet, StateBlock& block, uint32_t port) {
  const SwitchProgram& program = objects_->program();
  if (program.arrive == nullptr || trace_.is_waiting()) return false;
  PacketState& state = block.state;
  clear_state(state);
  begin_state(state, packet, port, kNormal, PacketState::kPassBudget - 1);
  state.arrived_by = &program;
  packet.release_context();
  packet.context = &block;
  SwitchContext& context = objects_->context();
  context.now_ps = engine_.now();
  if (program.arrive(&state, &context) == kWriteOut) [[unlikely]] {
    parse_written_out(packet, state);
    if (state.abort_reason == 0) program.ingress(&state, &context);
  }
  prefetch_port(state);
  return true;
}

void Switch::receive(int port, PacketPtr packet) {
  received_packets_ += packet->packets();
  if (objects_ == nullptr) {
    drop(*packet, {DropReason::kNoPipeline, 0, static_cast<uint32_t>(port), false, packet->packets()}, {});
    return;
  }
  if (packet->packets() > 1) [[unlikely]]
    note_first_of_segment(port, *packet);
  const Arrival arrival(port, packet->virtual_lane());
  StateBlock* block = states_->acquire();
  if (arrive(*packet, *block, static_cast<uint32_t>(port))) [[likely]] {
    if (block->state.asks_for_more()) [[unlikely]] {
      bool again = false;
      packet = serve_ingress_requests(std::move(packet), arrival, again);
      if (again)
        run_ingress(std::move(packet), arrival);
      else if (packet != nullptr)
        go_on(std::move(packet), arrival);
    } else {
      go_on(std::move(packet), arrival);
    }
  } else {
    receive_generally(std::move(packet), block, static_cast<uint32_t>(port), arrival);
  }
  if (!bypassing_.empty()) [[unlikely]]
    run_bypassing();
}

// When the first packet of a segment was there, so that the next port can have it leave as it would have
// left.
void Switch::note_first_of_segment(int port, Packet& packet) const {
  const auto number = static_cast<size_t>(port);
  if (number >= ports_.size() || ports_[number] == nullptr) return;
  packet.received_ps -= ports_[number]->rate().serialisation_ps(packet.wire_bytes() - packet.frame_bytes());
}

void Switch::receive_generally(PacketPtr packet, StateBlock* block, uint32_t port, Arrival arrival) {
  PacketState& state = block->state;
  clear_state(state);
  begin_state(state, *packet, port, kNormal, PacketState::kPassBudget);
  packet->release_context();
  packet->context = block;
  trace_.begin(state.trace, port, engine_.now());
  // Only what has come from a port is parsed a second time if it must be, see parse().
  if (state.trace.packet != 0) [[unlikely]] {
    packet->materialise();
    point_at(state, *packet);
  }
  run_ingress(std::move(packet), arrival);
}

[[gnu::always_inline]] inline void Switch::begin_state(PacketState& state, const Packet& packet,
                                                       uint32_t port, InstanceType type,
                                                       uint32_t pass_budget) {
  point_at(state, packet);
  state.ingress_port = port;
  state.instance_type = type;
  state.packet_length_bytes = static_cast<uint32_t>(packet.wire_bytes());
  state.ingress_timestamp = timestamp(engine_.now());
  state.pass_budget = pass_budget;
}

void Switch::recirculate(PacketPtr packet, Arrival arrival) {
  StateBlock* old_block = state_of(*packet);
  const PacketState& previous = old_block->state;
  packet->materialise();
  StateBlock* block = new_state();
  PacketState& state = block->state;
  begin_state(state, *packet, previous.ingress_port, kRecirculated, previous.pass_budget);
  packet->context = block;  // the old one goes back only after its fields have been copied
  trace_.copied(previous.trace, state.trace, kRecirculated, engine_.now());
  preserve(state, previous, previous.recirculate_field_list);
  old_block->release(old_block);
  run_ingress(std::move(packet), arrival);
}

// As BMv2 does: nothing but the list's fields comes along, not even the ingress port.
void Switch::preserve(PacketState& state, const PacketState& previous, uint32_t field_list) {
  objects_->program().copy_fields(&state, &previous, field_list);
  objects_->program().set_metadata_again(&state, &objects_->context());
  state.loop_budget = previous.loop_budget;
}

PacketPtr Switch::resubmit(PacketPtr packet) {
  StateBlock* old_block = state_of(*packet);
  const PacketState& old_state = old_block->state;
  StateBlock* block = new_state();
  PacketState& state = block->state;
  trace_.copied(old_state.trace, state.trace, kResubmitted, engine_.now());
  packet->materialise();
  point_at(state, *packet);
  state.ingress_port = old_state.ingress_port;
  state.instance_type = kResubmitted;
  state.packet_length_bytes = static_cast<uint32_t>(packet->wire_bytes());
  state.pass_budget = old_state.pass_budget;
  preserve(state, old_state, old_state.resubmit_field_list);
  packet->context = block;
  old_block->release(old_block);
  return packet;
}

const CloneSession* Switch::requested_session(PacketState& original) {
  const uint32_t id = original.clone_session & ~PacketState::kCloneRequested;
  const CloneSession* session = replication_.clone_session(id);
  if (session == nullptr) {
    count(DropReason::kUnknownCloneSession);
    record(original.trace, TraceSite::kNoCloneSession, {id});
  }
  return session;
}

void Switch::clone_from_ingress(const Packet& packet) {
  PacketState& original = static_cast<StateBlock*>(packet.context)->state;
  const CloneSession* session = requested_session(original);
  if (session == nullptr) return;
  // The clone is the packet as it entered ingress, parsed again.
  PacketPtr clone = packet.clone();
  engine_.conservation().enter(PacketOrigin::kCloned, clone->traffic());
  clone->materialise();
  StateBlock* block = new_state();
  PacketState& state = block->state;
  clone->context = block;
  point_at(state, *clone);
  state.ingress_port = original.ingress_port;
  original.pass_budget /= 2;
  state.pass_budget = original.pass_budget;
  state.loop_budget = original.loop_budget;
  trace_.copied(original.trace, state.trace, kIngressClone, engine_.now());
  SwitchContext& context = objects_->context();
  const SwitchProgram& program = objects_->program();
  // As BMv2 does: of all metadata, this parser sees the ingress port only.
  program.parse(&state, &context);
  if (dropped_by_abort(state, *clone)) return;
  state.packet_length_bytes +=
      static_cast<uint32_t>(clone->wire_bytes());  // the parser may have added headers
  clear_metadata(state);
  state.instance_type = kIngressClone;
  program.copy_fields(&state, &original, original.clone_field_list);
  send_clone(std::move(clone), *session);
}

void Switch::clone_from_egress(const Packet& packet) {
  PacketState& original = static_cast<StateBlock*>(packet.context)->state;
  const CloneSession* session = requested_session(original);
  if (session == nullptr) return;
  if (!spend_pass(original)) {
    count(DropReason::kPassLimit);
    record(original.trace, TraceSite::kDropped, {static_cast<uint32_t>(DropReason::kPassLimit)});
    return;
  }
  original.pass_budget /= 2;
  PacketPtr clone = copy_with_state(packet, PacketOrigin::kCloned);
  PacketState& state = state_of(*clone)->state;
  clear_metadata(state);
  clear_requests(state);
  state.truncated_length_bytes = PacketState::kNotTruncated;
  state.instance_type = kEgressClone;
  trace_.copied(original.trace, state.trace, kEgressClone, engine_.now());
  objects_->program().copy_fields(&state, &original, original.clone_field_list);
  send_clone(std::move(clone), *session);
}

void Switch::send_clone(PacketPtr clone, const CloneSession& session) {
  PacketState& state = state_of(*clone)->state;
  state.priority = session.priority_class;
  if (session.packet_length_bytes != 0) state.truncated_length_bytes = session.packet_length_bytes;
  if (session.replicas.empty()) {
    drop(DropReason::kEmptyMulticastGroup, *clone, state);
    return;
  }
  multicast(std::move(clone), session.replicas, {});
}

void Switch::send_digest(const PacketState& state) {
  const uint32_t size = objects_->program().pack_digest(&state, state.digest_list, digest_buffer_.data());
  if (size == 0) return;  // a list that the program does not have, or an empty one
  record(state.trace, TraceSite::kDigest, {state.digest_list});
  StreamEvent event;
  event.kind = StreamEvent::Kind::kDigest;
  event.learn_list = state.digest_list;
  event.bytes.assign(digest_buffer_.begin(), digest_buffer_.begin() + size);
  event.time_ps = engine_.now();
  if (!events_.push(std::move(event))) count(DropReason::kDigestQueueFull);
}

SharedBuffer* Switch::memory_of(Arrival arrival) const {
  const TransmitPort* port = arrival.port < ports_.size() ? ports_[arrival.port] : nullptr;
  return port == nullptr ? nullptr : port->buffer();
}

// The memory of a packet that recirculates.
Switch::Arrival Switch::admitted_again(const QueueStamp* stamp) const {
  if (stamp == nullptr || stamp->arrival == nullptr) return {};
  SharedBuffer* memory = memory_of(*stamp->arrival);
  return memory == nullptr ? Arrival() : memory->admit_again(*stamp->arrival, stamp->size_bytes);
}

void Switch::multicast(PacketPtr packet, const std::vector<Replica>& replicas, Arrival arrival) {
  SharedBuffer* memory = memory_of(arrival);
  const Arrival shared = memory == nullptr ? Arrival() : memory->open_account(arrival, packet->traffic());
  // Copies share what is left of the budget, so that a program that multiplies packets comes to an end.
  PacketState& state = state_of(*packet)->state;
  const TraceNumbers original = state.trace;  // the state itself goes with the last copy
  if (replicas.size() > 1) state.pass_budget /= static_cast<uint32_t>(replicas.size());
  for (size_t i = 0; i < replicas.size(); ++i) {
    const bool last = i + 1 == replicas.size();
    PacketPtr copy = last ? std::move(packet) : copy_with_state(*packet, PacketOrigin::kMulticast);
    // The original's records end here, unless it is the only copy.
    if (replicas.size() > 1)
      trace_.copied(original, state_of(*copy)->state.trace, kReplicated, engine_.now());
    state_of(*copy)->state.egress_rid = replicas[i].instance;
    enqueue(replicas[i].port, std::move(copy), shared);
  }
  if (memory != nullptr) memory->let_go(shared);
}

// With a state of its own: the packet is parsed again when it is received.
uint64_t Switch::header_bytes(int port, const Packet& packet) {
  if (objects_ == nullptr) return packet.frame_bytes();
  StateBlock* block = new_state();
  PacketState& state = block->state;
  point_at(state, packet);
  state.ingress_port = static_cast<uint32_t>(port);
  state.instance_type = kNormal;
  state.packet_length_bytes = static_cast<uint32_t>(packet.wire_bytes());
  objects_->context().now_ps = engine_.now();
  objects_->program().parse(&state, &objects_->context());
  const bool refused = state.parser_error != 0 || state.abort_reason != 0;
  const uint64_t parsed = refused ? packet.frame_bytes() : state.payload_offset_bytes;
  block->release(block);
  return parsed;
}

// ---- queue

void Switch::enqueue(uint32_t port, PacketPtr packet, Arrival arrival) {
  PacketState& state = state_of(*packet)->state;
  state.queue_class = std::min<uint32_t>(state.priority, TransmitPort::kMaxClasses - 1);
  record(state.trace, TraceSite::kEnqueued, {port, state.queue_class});
  if (capturing_ || port == options_.cpu_port) [[unlikely]] {
    bypassing_.push(Waiting{port, std::move(packet)});
    return;
  }
  TransmitPort* transmit_port = port < ports_.size() ? ports_[port] : nullptr;
  if (transmit_port == nullptr) [[unlikely]] {
    drop(DropReason::kUnknownPort, *packet, state);
    return;
  }
  const int queue_class = std::min(static_cast<int>(state.queue_class), transmit_port->last_class());
  state.queue_class = static_cast<uint32_t>(queue_class);
  const TrafficCounter waiting = transmit_port->waiting(queue_class);
  state.enqueue_depth = depth(waiting.bytes, waiting.packets);
  const TraceNumbers trace = state.trace;  // a packet that finds no room is gone with its state
  const uint64_t packets = packet->packets();
  if (!transmit_port->enqueue(std::move(packet), queue_class, arrival)) [[unlikely]] {
    const auto reason = transmit_port->is_up() ? DropReason::kTailDrop : DropReason::kPortDown;
    count(reason, {packets, 0});
    record(trace, TraceSite::kDropped, {static_cast<uint32_t>(reason)});
  }
}

void Switch::run_bypassing() {
  while (!bypassing_.empty()) {
    Waiting next = bypassing_.pop();
    bypass_queue(next.port, std::move(next.packet));
  }
}

void Switch::record_received(const PacketState& state, const Packet& packet) {
  record(state.trace, TraceSite::kReceived,
         {state.ingress_port, state.instance_type, low_word(state.ingress_timestamp),
          high_word(state.ingress_timestamp)},
         packet.bytes());
}

void Switch::record_egress(const PacketState& state, uint32_t port) {
  record(state.trace, TraceSite::kEgress,
         {port, state.egress_rid, state.instance_type, state.enqueue_depth, state.dequeue_depth,
          state.dequeue_time_delta, low_word(state.enqueue_timestamp), high_word(state.enqueue_timestamp),
          low_word(state.egress_timestamp), high_word(state.egress_timestamp)});
}

// ---- egress

// The headers are written to where they go, in front of the payload: the state has all that was there.
[[gnu::always_inline]] inline void Switch::deparse(Packet& packet, PacketState& state) {
  const SwitchProgram& program = objects_->program();
  const uint32_t parsed_bytes = state.payload_offset_bytes;
  std::span<uint8_t> room = packet.room_before(parsed_bytes);
  uint32_t headers_bytes = program.deparse(&state, room.data(), static_cast<uint32_t>(room.size()));
  if (headers_bytes == kNoRoom) [[unlikely]] {
    packet.reserve_headroom(program.max_headers_bytes);
    room = packet.room_before(parsed_bytes);
    headers_bytes = program.deparse(&state, room.data(), static_cast<uint32_t>(room.size()));
  }
  if (headers_bytes != parsed_bytes) [[unlikely]]
    engine_.conservation().resize((int64_t{headers_bytes} - int64_t{parsed_bytes}) * packet.packets());
  packet.replace_front(parsed_bytes, headers_bytes);
}

bool Switch::serve_egress_requests(const Packet& packet, PacketState& state) {
  if (dropped_by_abort(state, packet)) return false;
  if ((state.clone_session & PacketState::kCloneRequested) != 0) clone_from_egress(packet);
  return true;
}

[[gnu::always_inline]] inline PacketPtr Switch::run_egress(uint32_t port, PacketPtr packet,
                                                           const QueueStamp* stamp) {
  SwitchContext& context = objects_->context();
  const SwitchProgram& program = objects_->program();
  context.now_ps = engine_.now();
  Packet& sent = *packet;
  PacketState& state = state_of(sent)->state;
  state.egress_port = port;
  state.egress_spec = options_.drop_port + 1;  // anything but the drop port
  point_at(state, sent);
  if (state.trace.packet != 0) [[unlikely]]
    record_egress(state, port);
  uint32_t done = kAsks;
  if (program.send != nullptr && state.arrived_by == &program) [[likely]]
    done = program.send(&state, &context);
  else
    program.egress(&state, &context);
  if (done == kAsks) {
    if (state.asks_for_more() && !serve_egress_requests(sent, state)) [[unlikely]]
      return nullptr;
    if (state.egress_spec == options_.drop_port) [[unlikely]] {
      drop(DropReason::kProgramEgress, sent, state);
      return nullptr;
    }
    program.finish(&state, &context);
  }
  if (done != kInPlace) {
    deparse(sent, state);
    if (state.trimmed != 0) [[unlikely]]
      mark_trimmed(sent.bytes(), sent.frame_bytes(), state.trimmed_dscp);
  }
  if (state.asks_for_more()) [[unlikely]] {
    if (dropped_by_abort(state, sent)) return nullptr;
    if (state.recirculate_field_list != 0) {
      recirculate(std::move(packet), admitted_again(stamp));
      return nullptr;
    }
  }
  // BMv2 recirculates the whole packet, so this comes last.
  if (sent.frame_bytes() > state.truncated_length_bytes) [[unlikely]] {
    const auto more_bytes = int64_t{state.truncated_length_bytes} - static_cast<int64_t>(sent.frame_bytes());
    engine_.conservation().resize(more_bytes * sent.packets());
    sent.resize(state.truncated_length_bytes);
  }
  record(state.trace, TraceSite::kSent, {port}, sent.bytes());
  sent.release_context();
  return packet;
}

void Switch::bypass_queue(uint32_t port, PacketPtr packet) {
  PacketState& state = state_of(*packet)->state;
  state.enqueue_timestamp = state.egress_timestamp = timestamp(engine_.now());
  state.enqueue_depth = state.dequeue_depth = state.dequeue_time_delta = 0;
  const uint32_t came_by = state.ingress_port;
  packet = run_egress(port, std::move(packet), nullptr);
  if (packet != nullptr) deliver(port, came_by, std::move(packet));
}

PacketPtr Switch::on_dequeue(int port, PacketPtr packet, const QueueStamp& stamp) {
  StateBlock* block = state_of(*packet);
  if (block == nullptr || block->pool != states_.get()) {
    // The port by which it came is in its state, if that is still there.
    const uint32_t came_by = block == nullptr ? static_cast<uint32_t>(port) : block->state.ingress_port;
    drop(*packet, {DropReason::kPipelineReplaced, 0, came_by, false, packet->packets()}, {});
    return nullptr;
  }
  PacketState& state = block->state;
  state.enqueue_timestamp = timestamp(stamp.enqueued_ps);
  state.egress_timestamp = timestamp(stamp.dequeued_ps);
  state.dequeue_time_delta = saturate_u32(state.egress_timestamp - state.enqueue_timestamp);
  state.dequeue_depth = depth(stamp.class_depth_bytes, stamp.class_depth_packets);
  packet = run_egress(static_cast<uint32_t>(port), std::move(packet), &stamp);
  if (!bypassing_.empty()) [[unlikely]]
    run_bypassing();
  return packet;
}

void Switch::deliver(uint32_t port, uint32_t came_by, PacketPtr packet) {
  packet->materialise();
  if (capturing_) engine_.conservation().leave(PacketEnd::kCollected, packet->traffic());
  if (captured_count_ != nullptr) {
    ++*captured_count_;
  } else if (captured_ != nullptr) {
    captured_->push_back(Output{port, {packet->data(), packet->data() + packet->size()}});
  } else {
    StreamEvent event;
    event.bytes.assign(packet->data(), packet->data() + packet->size());
    event.time_ps = engine_.now();
    if (events_.push(std::move(event)))
      engine_.conservation().leave(PacketEnd::kToController, packet->traffic());
    else
      drop(*packet, {DropReason::kCpuQueueFull, 0, came_by, false, packet->packets()}, {});
  }
}

// ---- tests and benchmarks

std::vector<Switch::Output> Switch::process(uint32_t port, std::span<const uint8_t> bytes) {
  std::vector<Output> outputs;
  captured_ = &outputs;
  capturing_ = true;
  engine_.conservation().enter(PacketOrigin::kInjected, {1, bytes.size()});
  receive(static_cast<int>(port), engine_.packets().copy_of(bytes));
  captured_ = nullptr;
  capturing_ = false;
  return outputs;
}

uint64_t Switch::process_repeatedly(std::span<const Input> packets, uint64_t count) {
  uint64_t left = 0;
  captured_count_ = &left;
  capturing_ = true;
  for (size_t next = 0; count > 0; --count) {
    const auto& [port, bytes] = packets[next];
    engine_.conservation().enter(PacketOrigin::kInjected, {1, bytes.size()});
    receive(static_cast<int>(port), engine_.packets().copy_of(bytes));
    if (++next == packets.size()) next = 0;
  }
  captured_count_ = nullptr;
  capturing_ = false;
  return left;
}

// ---- services to generated code

uint64_t Switch::random_between(uint64_t low, uint64_t high) {
  const uint64_t span = high - low + 1;  // 0: all 64 bits
  return low + (span == 0 ? random_.next_u64() : random_.below(span));
}

void Switch::set_logging(bool enabled) {
  logging_ = enabled;
  if (objects_ != nullptr) objects_->context().log_enabled = enabled ? 1 : 0;
}

void Switch::log_message(uint32_t format, std::span<const uint64_t> values, size_t value_words) {
  std::string line = format_message(objects_->program().log_formats.at(format), values, value_words);
  if (log_.size() >= kLogCapacity) {
    log_.pop_front();
    ++log_lines_lost_;
  }
  log_.push_back(std::move(line));
}

std::vector<std::string> Switch::take_log() {
  std::vector<std::string> lines;
  if (log_lines_lost_ != 0) lines.push_back(std::to_string(log_lines_lost_) + " earlier lines were lost");
  lines.insert(lines.end(), std::make_move_iterator(log_.begin()), std::make_move_iterator(log_.end()));
  log_.clear();
  log_lines_lost_ = 0;
  return lines;
}

}  // namespace weft
