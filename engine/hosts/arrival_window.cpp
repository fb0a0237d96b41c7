#include "hosts/arrival_window.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace weft {

void ArrivalWindow::insert(uint64_t sequence, Arrival arrival) {
  if (sequence - expected_ >= arrivals_.size()) grow(sequence - expected_ + 1);
  arrival.arrived = true;
  at(sequence) = arrival;
  ++waiting_;
}

std::optional<Arrival> ArrivalWindow::pop() {
  if (waiting_ == 0 || !at(expected_).arrived) return std::nullopt;
  const Arrival arrival = std::exchange(at(expected_), Arrival());
  ++expected_;
  --waiting_;
  return arrival;
}

void ArrivalWindow::skip(uint64_t packets) {
  const uint64_t end = expected_ + packets;
  while (waiting_ > 0 && expected_ < end) {
    if (std::exchange(at(expected_), Arrival()).arrived) --waiting_;
    ++expected_;
  }
  expected_ = end;
}

void ArrivalWindow::grow(uint64_t least_packets) {
  std::vector<Arrival> larger(std::bit_ceil(std::max<uint64_t>(least_packets, kFirstPackets)));
  for (uint64_t sequence = expected_; sequence < expected_ + arrivals_.size(); ++sequence) {
    larger[sequence & (larger.size() - 1)] = at(sequence);
  }
  arrivals_ = std::move(larger);
}

}  // namespace weft
