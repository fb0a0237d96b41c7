// What a responder with selective repeat has received ahead of a gap: a bitmap with what is needed to go on
// once the gap is closed. It takes no memory until the first packet arrives out of order.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace weft {

struct Arrival {
  uint32_t immediate = 0;
  uint16_t payload_bytes = 0;
  uint16_t message_id = 0;  // UET
  bool arrived = false;
  bool ends_message = false;
  bool has_immediate = false;
  bool is_read = false;  // whose responses take the sequence numbers that follow
};

class ArrivalWindow {
 public:
  // Packets that a sender may have outstanding.
  static constexpr uint64_t kMaxPackets = 1u << 16;

  // Next packet in order.
  uint64_t expected() const { return expected_; }
  // Whether packets wait behind a gap.
  bool has_gap() const { return waiting_ > 0; }
  // `sequence` is expected() or later.
  bool has_room(uint64_t sequence) const { return sequence - expected_ < kMaxPackets; }
  bool contains(uint64_t sequence) const {
    return waiting_ > 0 && sequence - expected_ < arrivals_.size() && at(sequence).arrived;
  }
  // The packet, which the window has room for and does not contain, has arrived.
  void insert(uint64_t sequence, Arrival arrival);
  // Takes the next packet in order, if it has arrived.
  std::optional<Arrival> pop();
  // The next `packets` of the order will not come; what has come in their place is forgotten.
  void skip(uint64_t packets);

 private:
  static constexpr size_t kFirstPackets = 64;

  Arrival& at(uint64_t sequence) { return arrivals_[sequence & (arrivals_.size() - 1)]; }
  const Arrival& at(uint64_t sequence) const { return arrivals_[sequence & (arrivals_.size() - 1)]; }
  void grow(uint64_t least_packets);

  uint64_t expected_ = 0;
  uint64_t waiting_ = 0;
  std::vector<Arrival> arrivals_;  // ring over [expected, ...), a power of two long
};

}  // namespace weft
