// A shared receive queue: receives that several queue pairs take theirs from, each when a message arrives
// that needs one (InfiniBand specification volume 1, section 10.2.9). Completions go to the handler of the
// queue pair that took the receive.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

#include "hosts/posted_receive.hpp"
#include "memory/ring_buffer.hpp"

namespace weft {

class SharedReceives {
 public:
  size_t size() const { return receives_.size(); }
  void post(PostedReceive receive) { receives_.push(std::move(receive)); }
  // Has `on_reached` called, once, when a queue pair has taken a receive and fewer than `limit` are left: at
  // once in the engine's thread, and it may post. 0 disarms. One that is armed replaces the one before.
  void arm(size_t limit, std::function<void()> on_reached) {
    limit_ = limit;
    on_reached_ = std::move(on_reached);
  }
  // As armed; 0 if it is not, or has been reached.
  size_t limit() const { return limit_; }

  // The oldest, nullopt if there is none.
  std::optional<PostedReceive> take() {
    if (receives_.empty()) return std::nullopt;
    PostedReceive taken = receives_.pop();
    if (receives_.size() < limit_) {
      limit_ = 0;
      if (const auto reached = std::exchange(on_reached_, nullptr)) reached();
    }
    return taken;
  }

 private:
  RingBuffer<PostedReceive> receives_;
  size_t limit_ = 0;
  std::function<void()> on_reached_;
};

}  // namespace weft
