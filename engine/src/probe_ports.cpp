#include "probe_ports.hpp"

#include <stdexcept>
#include <string>

namespace weft {

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
  sampled.whole.transmitted_bytes = port.transmitted().bytes;
  for (int c = 0; c < port.config().classes; ++c)
    sampled.classes[static_cast<size_t>(c)].transmitted_bytes = port.transmitted(c).bytes;
  ports_.push_back(sampled);
}

// Nothing happens between two events, so all samples due before the next one are alike: the first is taken.
TimePs PortSampler::take_samples(TimePs next_event_ps) {
  if (due_ps_ >= next_event_ps) return due_ps_;
  for (Sampled& sampled : ports_) sample(sampled, due_ps_);
  due_ps_ = (next_event_ps + interval_ps_ - 1) / interval_ps_ * interval_ps_;
  return due_ps_;
}

void PortSampler::catch_up(TimePs until_ps) {
  engine_.set_sample_taker(this, take_samples(until_ps));
  for (Sampled& sampled : ports_) sample(sampled, until_ps);
}

void PortSampler::sample(Sampled& sampled, TimePs time_ps) {
  const TransmitPort& port = *sampled.port;
  const Series whole{port.queue_depth_bytes(), port.transmitted().bytes};
  if (whole.queue_bytes == sampled.whole.queue_bytes &&
      whole.transmitted_bytes == sampled.whole.transmitted_bytes)
    return;
  sampled.whole = whole;
  for (int c = 0; c < port.config().classes; ++c) {
    Series& before = sampled.classes[static_cast<size_t>(c)];
    const Series now{port.queue_depth_bytes(c), port.transmitted(c).bytes};
    if (now.queue_bytes == before.queue_bytes && now.transmitted_bytes == before.transmitted_bytes) continue;
    before = now;
    rows_.append({time_ps, sampled.place, c, static_cast<int64_t>(now.queue_bytes),
                  static_cast<int64_t>(now.transmitted_bytes)});
  }
}

}  // namespace weft
