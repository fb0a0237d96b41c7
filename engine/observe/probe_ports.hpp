// Time series of transmit ports, sampled at every multiple of an interval.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "links/transmit_port.hpp"
#include "observe/column_table.hpp"
#include "time/engine.hpp"

namespace weft {

// A sample of time t is taken when all events up to and including t have been served and the next one is to
// be: it needs no event of its own, so that observing changes nothing and never keeps a fabric from falling
// idle. A series gets a row only where it differs from its row before; until the next one it stands.
class PortSampler final : public SampleTaker {
 public:
  // Throws std::invalid_argument for an interval below 1.
  PortSampler(Engine& engine, TimePs interval_ps, ColumnTable& rows);
  ~PortSampler() override;

  void add(const TransmitPort& port, int64_t place);
  TimePs take_samples(TimePs next_event_ps) override;
  // Takes what is due before `until_ps`, up to which all events have been served, and a sample of that
  // moment.
  void catch_up(TimePs until_ps);

 private:
  struct Series {
    uint64_t queue_bytes = 0;
    uint64_t transmitted_bytes = 0;
  };
  struct Sampled {
    const TransmitPort* port;
    int64_t place;
    Series whole;
    std::array<Series, TransmitPort::kMaxClasses> classes;
  };

  // Whether the port is sending a frame at that time.
  bool sample(Sampled& sampled, TimePs time_ps);

  Engine& engine_;
  TimePs interval_ps_;
  TimePs due_ps_;
  ColumnTable& rows_;
  std::vector<Sampled> ports_;
};

}  // namespace weft
