#include "observe/probe.hpp"

#include <algorithm>
#include <stdexcept>

#include "observe/probe_ports.hpp"

namespace weft {

Probe::Probe(Engine& engine, size_t row_limit)
    : engine_(engine),
      drops_({"time_ps", "place", "reason", "priority_class", "size_bytes"}, row_limit),
      pauses_({"place", "priority_class", "begin_ps", "end_ps"}, row_limit),
      flows_({"source", "destination", "plane", "run", "step", "size_bytes", "start_ps", "end_ps",
              "retransmitted_packets", "status"},
             row_limit),
      telemetry_({"time_ps", "source", "destination", "plane", "psn", "path_id", "hop", "rate_code",
                  "queue_cells", "tx_units", "timestamp_ns"},
                 row_limit),
      steps_({"rank", "run", "step", "kind", "peer", "plane", "size_bytes", "start_ps", "end_ps"}, row_limit),
      queues_({"time_ps", "place", "priority_class", "queue_bytes", "transmitted_bytes"}, row_limit) {}

Probe::~Probe() = default;

void Probe::dropped(const void* component, DropPlace kind, size_t reason, uint64_t size_bytes,
                    int priority_class) {
  const auto found = places_.find(component);
  if (found == places_.end()) return;
  drops_.append({engine_.now(), found->second, drop_code(kind, reason), priority_class,
                 static_cast<int64_t>(size_bytes)});
}

void Probe::paused(const void* component, int priority_class, TimePs begin_ps, TimePs end_ps) {
  const auto found = places_.find(component);
  if (found == places_.end()) return;
  pauses_.append({found->second, priority_class, begin_ps, end_ps});
}

void Probe::message_completed(const MessageRecord& record) {
  flows_.append({record.ends.source, record.ends.destination, record.ends.plane,
                 static_cast<int64_t>(record.id >> 32), static_cast<uint32_t>(record.id),
                 static_cast<int64_t>(record.length_bytes), record.posted_ps, record.completed_ps,
                 static_cast<int64_t>(record.retransmitted_packets), record.status});
}

void Probe::telemetry_arrived(TimePs now, const ConnectionEnds& ends, uint32_t psn,
                              const roce::IntStack& stack) {
  for (int hop = 0; hop < std::min<int>(stack.hop_count, roce::kIntHops); ++hop) {
    const roce::IntHop& at = stack.hops[static_cast<size_t>(hop)];
    telemetry_.append({now, ends.source, ends.destination, ends.plane, psn, stack.path_id, hop, at.rate_code,
                       at.queue_cells, at.tx_units, at.timestamp_ns});
  }
}

void Probe::step_done(const StepRecord& record) {
  steps_.append({record.rank, static_cast<int64_t>(record.run), record.node, record.kind,
                 record.ends.destination, record.ends.plane, static_cast<int64_t>(record.length_bytes),
                 record.start_ps, record.end_ps});
}

void Probe::start_sampling(TimePs interval_ps) {
  if (sampler_ != nullptr) throw std::logic_error("ports are sampled already");
  sampler_ = std::make_unique<PortSampler>(engine_, interval_ps, queues_);
}

void Probe::sample(const TransmitPort& port, int64_t place) {
  if (sampler_ == nullptr) throw std::logic_error("sampling has no interval yet (start_sampling first)");
  sampler_->add(port, place);
}

void Probe::catch_up(TimePs until_ps) {
  if (sampler_ != nullptr) sampler_->catch_up(std::max(until_ps, engine_.now()));
}

std::vector<Probe::NamedTable> Probe::tables() {
  return {{"drops", &drops_},         {"pauses", &pauses_}, {"flows", &flows_},
          {"telemetry", &telemetry_}, {"steps", &steps_},   {"queues", &queues_}};
}

}  // namespace weft
