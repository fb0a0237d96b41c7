// The server's end of a program's descriptor of /dev/infiniband/rdma_cm (protocol.hpp): reads commands from a
// Unix socket, has a Ucma carry them out, and sends the answers.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "verbs/cm/protocol.hpp"
#include "verbs/cm/ucma.hpp"

namespace weft::cm {

// All of a host's. Not safe for threads: its owner calls it where it calls the Ucma.
class Channels {
 public:
  // `ucma` outlives it. `seed` decides the names of channels, which no other user should guess.
  Channels(Ucma& ucma, uint64_t seed);
  ~Channels();
  Channels(const Channels&) = delete;

  // Takes over a connected SOCK_SEQPACKET socket from which nothing has been read, or whose Hello has been:
  // `hello_is_read`. Returns whether it is kept: not if that fails, and then it is closed.
  bool add(int socket, bool hello_is_read = false);
  // A socket is readable: serves what it has, without waiting. Returns false if the program has gone, or has
  // broken the protocol: then all that it had is gone, and the socket closed.
  bool serve(int socket);
  void remove(int socket);
  // For Surroundings::events_wait().
  void events_wait(uint32_t client);

  size_t size() const { return channels_.size(); }

 private:
  struct Channel {
    uint32_t client = 0;
    uint64_t name = 0;
    bool has_said_hello = false;
  };

  bool greet(int socket, Channel& channel, std::span<const uint8_t> message);
  bool carry_out(Channel& channel, std::span<const uint8_t> message, int reply);

  Ucma& ucma_;
  Rng random_;
  std::unordered_map<int, Channel> channels_;
  std::unordered_map<uint64_t, uint32_t> clients_;  // by a channel's name
  std::unordered_map<uint32_t, int> sockets_;       // by client
};

}  // namespace weft::cm
