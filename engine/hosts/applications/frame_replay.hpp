// Sends given frames at given times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hosts/applications/application.hpp"

namespace weft {

struct ReplayedFrame {
  TimePs after_ps = 0;  // the start
  std::string bytes;
};

class FrameReplay final : public Application {
 public:
  // Times do not decrease. Throws std::invalid_argument if they do, or there is no frame.
  FrameReplay(IpStack& stack, ScheduleExecutor& executor, int interface, std::vector<ReplayedFrame> frames);
  ~FrameReplay() override { close(); }

  uint64_t sent_bytes() const { return sent_bytes_; }
  uint64_t not_sent_packets() const { return not_sent_packets_; }

 private:
  void begin(TimePs now) override { on_timer(now); }
  void on_timer(TimePs now) override;
  void release() override {}

  const int interface_;
  const std::vector<ReplayedFrame> frames_;
  size_t next_ = 0;
  uint64_t sent_bytes_ = 0;
  uint64_t not_sent_packets_ = 0;
};

}  // namespace weft
