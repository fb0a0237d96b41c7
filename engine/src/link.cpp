#include "link.hpp"

#include <stdexcept>
#include <string>
#include <utility>

#include "partition.hpp"
#include "partitions.hpp"
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
    : engine_(engine), delay_ps_(delay_ps), rng_(rng) {
  if (delay_ps < 0)
    throw std::invalid_argument("link delay_ps is " + std::to_string(delay_ps) + " (0 or more)");
  set_faults(faults);
}

void Link::check(const FaultConfig& faults) {
  check_probability("loss", faults.loss);
  check_probability("duplicate", faults.duplicate);
  check_probability("delay_probability", faults.delay_probability);
  if (faults.delay_ps < 0)
    throw std::invalid_argument("fault delay_ps is " + std::to_string(faults.delay_ps) + " (0 or more)");
}

void Link::connect(Node& node, int port) {
  Engine& far = node.engine();
  if (line_ == nullptr) {
    if (&far != &engine_) Partitions::join(engine_, far, delay_ps_);
    line_ = std::make_unique<DelayLine>(far);
    line_->set_capture(capture_);
    crosses_ = &far != &engine_;
  } else if (&line_->engine() != &far) {
    throw std::logic_error("a link that ends in one partition cannot be connected to another");
  }
  line_->connect(&node, port);
}

void Link::set_capture(std::shared_ptr<PcapWriter> capture) {
  capture_ = std::move(capture);
  if (line_ != nullptr) line_->set_capture(capture_);
}

void Link::set_faults(FaultConfig faults) {
  check(faults);
  faults_ = faults;
  faulty_ = faults.any();
}

void Link::transmit(PacketPtr packet, TimePs end_of_serialisation_ps) {
  if (line_ == nullptr) throw std::logic_error("a packet was sent on a link that is connected to nothing");
  const TimePs arrival_ps = end_of_serialisation_ps + delay_ps_;
  if (faulty_)
    transmit_with_faults(std::move(packet), arrival_ps);
  else
    deliver(std::move(packet), arrival_ps);
}

void Link::transmit_with_faults(PacketPtr packet, TimePs arrival_ps) {
  // Always three draws, so that one probability does not shift the others' decisions.
  const bool lost = rng_.bernoulli(faults_.loss);
  const bool duplicated = rng_.bernoulli(faults_.duplicate);
  const bool delayed = rng_.bernoulli(faults_.delay_probability);
  if (lost) {
    ++counters_.lost_packets;
    if (Probe* probe = engine_.probe()) probe->dropped(this, DropPlace::kLink, 0, packet->wire_bytes(), -1);
    return;
  }
  if (delayed) {
    ++counters_.delayed_packets;
    arrival_ps += faults_.delay_ps;
  }
  PacketPtr copy;
  if (duplicated) {
    ++counters_.duplicated_packets;
    copy = packet->clone();
  }
  deliver(std::move(packet), arrival_ps);
  if (copy != nullptr) deliver(std::move(copy), arrival_ps);
}

void Link::send_across(PacketPtr packet, TimePs arrival_ps) {
  engine_.partition()->send(*line_, std::move(packet), arrival_ps);
}

}  // namespace weft
