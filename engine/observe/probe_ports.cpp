#include "observe/probe_ports.hpp"

#include <stdexcept>
#include <string>

namespace weft {
namespace {

// What of a class has left the port by then, the frame that is being sent included as far as it has.
uint64_t left_by(const TransmitPort& port, int priority_class, TimePs time_ps) {
  const uint64_t begun_bytes = port.transmitted(priority_class).bytes;
  return port.sending_class() == priority_class ? begun_bytes - port.unsent_bytes(time_ps) : begun_bytes;
}

}  // namespace

PortSampler::PortSampler(Engine& engine, TimePs interval_ps, ColumnTable& rows)
    : engine_(engine), interval_ps_(interval_ps), rows_(rows) {
  if (interval_ps < 1)
    throw std::invalid_argument("sampling interval_ps is " + std::to_string(interval_ps) + " (1 or more)");
  due_ps_ = (engine.now() + interval_ps - 1) / interval_ps * interval_ps;
  engine.set_sample_taker(this, due_ps_);
}

PortSampler::~PortSampler() { engine_.set_sample_taker(nullptr, kNever); }

void PortSampler::add(const TransmitPort& port, int64_t place) {
  Sampled sampled{.port = &port, .place = place, .whole = {}, .classes = {}};
  const TimePs now = engine_.now();
  sampled.whole.transmitted_bytes = port.transmitted().bytes - port.unsent_bytes(now);
  for (int c = 0; c < port.config().classes; ++c)
    sampled.classes[static_cast<size_t>(c)].transmitted_bytes = left_by(port, c, now);
  ports_.push_back(sampled);
}

// Between two events nothing changes but how much of a frame has left, so that samples due while no port is
// sending are alike: the first is taken.
TimePs PortSampler::take_samples(TimePs next_event_ps) {
  while (due_ps_ < next_event_ps) {
    bool sending = false;
    for (Sampled& sampled : ports_) sending |= sample(sampled, due_ps_);
    due_ps_ =
        sending ? due_ps_ + interval_ps_ : (next_event_ps + interval_ps_ - 1) / interval_ps_ * interval_ps_;
  }
  return due_ps_;
}

void PortSampler::catch_up(TimePs until_ps) {
  engine_.set_sample_taker(this, take_samples(until_ps));
  for (Sampled& sampled : ports_) sample(sampled, until_ps);
}

bool PortSampler::sample(Sampled& sampled, TimePs time_ps) {
  const TransmitPort& port = *sampled.port;
  const uint64_t unsent_bytes = port.unsent_bytes(time_ps);
  const Series whole{port.queue_depth_bytes(), port.transmitted().bytes - unsent_bytes};
  if (whole.queue_bytes == sampled.whole.queue_bytes &&
      whole.transmitted_bytes == sampled.whole.transmitted_bytes)
    return unsent_bytes != 0;
  sampled.whole = whole;
  for (int c = 0; c < port.config().classes; ++c) {
    Series& before = sampled.classes[static_cast<size_t>(c)];
    const Series now{port.queue_depth_bytes(c), left_by(port, c, time_ps)};
    if (now.queue_bytes == before.queue_bytes && now.transmitted_bytes == before.transmitted_bytes) continue;
    before = now;
    rows_.append({time_ps, sampled.place, c, static_cast<int64_t>(now.queue_bytes),
                  static_cast<int64_t>(now.transmitted_bytes)});
  }
  return unsent_bytes != 0;
}

}  // namespace weft
