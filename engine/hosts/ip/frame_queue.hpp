// What a host's own stack has to send in one class at one port of its NIC: a queue that takes turns with the
// NIC's queue pairs.
#pragma once

#include <cstddef>
#include <utility>

#include "hosts/queue_pair.hpp"
#include "memory/ring_buffer.hpp"

namespace weft {

class FrameQueue final : public QueuePair {
 public:
  FrameQueue(int data_class, size_t limit_packets) : data_class_(data_class), limit_packets_(limit_packets) {}

  // False, and nothing happens, if the queue is full.
  bool push(PacketPtr& frame) {
    if (frames_.size() >= limit_packets_) return false;
    frames_.push(std::move(frame));
    wake();
    return true;
  }
  size_t size() const { return frames_.size(); }

  void on_packet(TimePs /*now*/, const roce::ParsedPacket& /*packet*/) override {}
  PacketPtr pull(TimePs /*now*/) override { return frames_.empty() ? nullptr : std::move(frames_.pop()); }
  PulledPacket last_pulled() const override { return {}; }
  int data_class() const override { return data_class_; }
  bool may_have_control() const override { return false; }
  bool may_have_data() const override { return !frames_.empty(); }
  TimePs next_deadline() const override { return kNever; }
  void on_deadline(TimePs /*now*/) override {}

 private:
  const int data_class_;
  const size_t limit_packets_;
  RingBuffer<PacketPtr> frames_;
};

}  // namespace weft
