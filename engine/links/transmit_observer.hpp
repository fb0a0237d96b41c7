// Who watches what a port sends.
#pragma once

namespace weft {

class Packet;

// What flow control wants to know of each frame that a port sends, other than its own.
struct TransmitObserver {
  virtual ~TransmitObserver() = default;
  virtual void on_transmit(int priority_class, const Packet& packet) = 0;
};

}  // namespace weft
