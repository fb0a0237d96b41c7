// Finds how far into a packet its headers reach.
#pragma once

#include <cstdint>

namespace weft {

class Packet;

struct HeaderParser {
  virtual ~HeaderParser() = default;
  // Bytes of a packet that comes in by a port which are headers to the program; all of them if it looks for
  // more than there are.
  virtual uint64_t header_bytes(int port, const Packet& packet) = 0;
};

}  // namespace weft
