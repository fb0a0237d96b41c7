// Whatever takes packets: switches, NICs, transmit ports (a paced uplink), packet sockets, collectors.
#pragma once

#include "packets/packet.hpp"

namespace weft {

class Engine;

struct Node {
  virtual ~Node() = default;
  // Whose events it is served by.
  virtual Engine& engine() = 0;
  // The packet has arrived whole at the given port of this node, at the engine's now().
  virtual void receive(int port, PacketPtr packet) = 0;
};

}  // namespace weft
