#include "link.hpp"

#include <stdexcept>
#include <string>
#include <utility>

#include "probe.hpp"

namespace weft {

namespace {

void check_probability(const char* name, double value) {
  if (!(value >= 0.0 && value <= 1.0))
    throw std::invalid_argument(std::string(name) + " is " + std::to_string(value) +
                                " (a probability is 0 to 1)");
}

}  // namespace

Link::Link(Engine& engine, TimePs delay_ps, FaultConfig faults, Rng rng)
    : engine_(engine), delay_ps_(delay_ps), faults_(faults), rng_(rng), line_(engine), late_line_(engine) {
  if (delay_ps < 0)
    throw std::invalid_argument("link delay_ps is " + std::to_string(delay_ps) + " (0 or more)");
  check(faults);
}

void Link::check(const FaultConfig& faults) {
  check_probability("loss", faults.loss);
  check_probability("duplicate", faults.duplicate);
  check_probability("delay_probability", faults.delay_probability);
  if (faults.delay_ps < 0)
    throw std::invalid_argument("fault delay_ps is " + std::to_string(faults.delay_ps) + " (0 or more)");
}

void Link::connect(Node& node, int port) {
  line_.connect(&node, port);
  late_line_.connect(&node, port);
}

void Link::set_capture(std::shared_ptr<PcapWriter> capture) {
  line_.set_capture(capture);
  late_line_.set_capture(std::move(capture));
}

void Link::set_faults(FaultConfig faults) {
  check(faults);
  faults_ = faults;
}

void Link::transmit(PacketPtr packet, TimePs end_of_serialisation_ps) {
  if (!line_.connected()) throw std::logic_error("a packet was sent on a link that is connected to nothing");
  TimePs arrival_ps = end_of_serialisation_ps + delay_ps_;
  DelayLine* line = &line_;
  bool duplicated = false;
  if (faults_.any()) {
    // Always three draws, so that one probability does not shift the others' decisions.
    const bool lost = rng_.bernoulli(faults_.loss);
    duplicated = rng_.bernoulli(faults_.duplicate);
    const bool delayed = rng_.bernoulli(faults_.delay_probability);
    if (lost) {
      ++counters_.lost_packets;
      if (Probe* probe = engine_.probe()) probe->dropped(this, DropPlace::kLink, 0, packet->wire_bytes(), -1);
      return;
    }
    if (delayed) {
      ++counters_.delayed_packets;
      arrival_ps += faults_.delay_ps;
      line = &late_line_;
    }
  }
  ++counters_.delivered_packets;
  counters_.delivered_bytes += packet->wire_bytes();
  if (duplicated) {
    ++counters_.duplicated_packets;
    ++counters_.delivered_packets;
    counters_.delivered_bytes += packet->wire_bytes();
    PacketPtr copy = packet->clone();
    line->push(std::move(packet), arrival_ps);
    line->push(std::move(copy), arrival_ps);
    return;
  }
  line->push(std::move(packet), arrival_ps);
}

}  // namespace weft
