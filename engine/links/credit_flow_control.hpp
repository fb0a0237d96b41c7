// Credit-based flow control of one port, as InfiniBand's (InfiniBand Architecture 1.4, volume 1, 7.9.4): the
// receiver announces, for each class that is a virtual lane, up to which block of 64 bytes it has memory, and
// the sender sends no further.
#pragma once

#include <array>
#include <cstdint>

#include "links/mac_control.hpp"
#include "links/transmit_port.hpp"
#include "observe/statistics.hpp"
#include "switch/shared_buffer.hpp"
#include "time/engine.hpp"

namespace weft {

struct CreditConfig {
  // Blocks are counted modulo 4096, so at most half of that may be outstanding.
  static constexpr uint64_t kMaxBufferBytes = 2048 * SharedBuffer::kCreditBlockBytes;

  roce::MacAddress source_mac{};
  uint32_t lanes = 0;              // bit per class that is one
  uint64_t buffer_bytes = 0;       // of each lane, here
  uint64_t peer_buffer_bytes = 0;  // of each lane, at the far end, as the link starts
  // A lane waits until it has credit for such a frame, whatever its next one is.
  uint64_t largest_frame_bytes = 0;
  // While frames are sent, or cannot be for want of credit, the count is sent to the far end at least so
  // often; on slow links as often as CreditFlowControl::kFramesPerUpdate of these frames pass.
  TimePs update_interval_ps = 20 * kPsPerUs;
};

#define WEFT_CREDIT_COUNTERS(STATISTIC)                           \
  STATISTIC(uint64_t, updates_sent, "frames, all lanes together") \
  STATISTIC(uint64_t, updates_received, "frames, all lanes together")

struct CreditCounters {
  WEFT_STATISTICS(CreditCounters, WEFT_CREDIT_COUNTERS)
};

#define WEFT_CREDIT_LANE_COUNTERS(STATISTIC)                                       \
  STATISTIC(uint64_t, stalls, "how often this port ran out of credit for a frame") \
  STATISTIC(TimePs, stalled_ps, "for how long in all, up to the last change")

struct CreditLaneCounters {
  WEFT_STATISTICS(CreditLaneCounters, WEFT_CREDIT_LANE_COUNTERS)
};

class CreditFlowControl : public IngressListener, public TransmitObserver {
 public:
  // Throws std::invalid_argument without lanes, for a buffer that holds less than a largest frame or more
  // than kMaxBufferBytes, or an interval below 1.
  CreditFlowControl(Engine& engine, TransmitPort& port, const CreditConfig& config);

  // As a receiver. What comes in on a lane passes the MAC and its node, and takes memory of a switch, in
  // which this is port `number`; without, as at a host's NIC, everything is taken at once.
  void set_memory(const SharedBuffer& buffer, uint32_t number);
  void on_arrival(const Packet& packet);
  void on_handed_over(int lane, uint64_t size_bytes);
  void on_credit_freed(int priority_class, uint64_t bytes) override;
  void on_pause_wanted(int /*priority_class*/, bool /*wanted*/) override {}

  // As a sender.
  void on_transmit(int priority_class, const Packet& packet) override;
  void on_update_frame(const mac_control::CreditUpdate& update);
  // The link is new, with nothing on it: both ends count from 0.
  void restart();

  const CreditConfig& config() const { return config_; }
  bool is_lane(int priority_class) const {
    return priority_class < mac_control::kClasses && (config_.lanes >> priority_class & 1u) != 0;
  }
  // Blocks that the lane may still send.
  uint32_t available_blocks(int lane) const;
  bool is_stalled(int lane) const { return (stalled_lanes_ >> lane & 1u) != 0; }
  const CreditCounters& counters() const { return counters_; }
  // Stalls that last counted until now.
  CreditLaneCounters lane_counters(int lane) const;
  void reset_counters();

 private:
  static constexpr uint32_t kModulus = 4096;
  static constexpr uint32_t kHalf = kModulus / 2;
  // Updates go before all else, so that on a slow link they would leave nothing of it to data.
  static constexpr TimePs kFramesPerUpdate = 4;

  struct Lane {
    uint32_t sent_blocks = 0;       // FCTBS: sent in all, modulo 4096
    uint32_t limit_blocks = 0;      // FCCL: up to where the far end has memory
    uint32_t received_blocks = 0;   // ABR: received in all
    uint32_t announced_blocks = 0;  // the limit that was last sent to the far end
    uint32_t passing_blocks = 0;    // received, and not yet with the node
    TimePs stalled_since_ps = 0;
    CreditLaneCounters counters;
  };

  static uint32_t blocks(uint64_t size_bytes) {
    return static_cast<uint32_t>(SharedBuffer::in_blocks(size_bytes) / SharedBuffer::kCreditBlockBytes);
  }
  Lane& lane_of(int number) { return lanes_[static_cast<size_t>(number)]; }
  uint32_t own_limit_blocks(int number) const;
  void tell_if_due(int number);
  void send(bool is_request);
  void update_stalled();
  void on_timer();

  Engine& engine_;
  TransmitPort& port_;
  CreditConfig config_;
  const SharedBuffer* memory_ = nullptr;
  uint32_t memory_port_ = 0;
  uint32_t buffer_blocks_;
  uint32_t frame_blocks_;
  uint32_t stalled_lanes_ = 0;
  std::array<Lane, mac_control::kClasses> lanes_{};
  CreditCounters counters_;
  Timer timer_;
};

}  // namespace weft
