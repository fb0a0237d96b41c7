#include "hosts/applications/frame_replay.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace weft {

FrameReplay::FrameReplay(IpStack& stack, ScheduleExecutor& executor, int interface,
                         std::vector<ReplayedFrame> frames)
    : Application(stack, executor), interface_(interface), frames_(std::move(frames)) {
  const auto earlier = [](const ReplayedFrame& one, const ReplayedFrame& other) {
    return one.after_ps < other.after_ps;
  };
  if (frames_.empty() || frames_.front().after_ps < 0 ||
      !std::is_sorted(frames_.begin(), frames_.end(), earlier))
    throw std::invalid_argument("a replay needs frames in the order of their times, from 0 on");
  progress().node_count = static_cast<uint32_t>(frames_.size());
}

void FrameReplay::on_timer(TimePs now) {
  const TimePs start_ps = status().started_ps;
  for (; next_ < frames_.size() && start_ps + frames_[next_].after_ps <= now; ++next_) {
    const std::string& bytes = frames_[next_].bytes;
    const std::span<const uint8_t> view(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    if (stack().send_frame(interface_, stack().packets().copy_of(view)))
      sent_bytes_ += bytes.size();
    else
      ++not_sent_packets_;
    ++progress().nodes_done;
  }
  if (next_ == frames_.size()) return finish();
  arm(start_ps + frames_[next_].after_ps);
}

}  // namespace weft
