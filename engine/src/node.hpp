// Whatever takes packets: switches, NICs, transmit ports (a paced uplink), packet sockets, collectors.
#pragma once

#include "packet.hpp"

namespace weft {

struct Node {
  virtual ~Node() = default;
  // The packet has arrived whole at the given port of this node, at the engine's now().
  virtual void receive(int port, PacketPtr packet) = 0;
};

}  // namespace weft
