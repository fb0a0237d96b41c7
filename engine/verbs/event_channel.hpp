// A pair of sockets by which a client hears of events; it reads the far end as it would a kernel's file.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <vector>

namespace weft::verbs {

class EventChannel {
 public:
  // Throws std::system_error.
  EventChannel() {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
      throw std::system_error(errno, std::generic_category(), "socketpair");
    own_ = ends[0];
    clients_ = ends[1];
    // Beyond the system's limit where this process may.
    if (setsockopt(own_, SOL_SOCKET, SO_SNDBUFFORCE, &kRoomBytes, sizeof kRoomBytes) != 0)
      setsockopt(own_, SOL_SOCKET, SO_SNDBUF, &kRoomBytes, sizeof kRoomBytes);
  }
  ~EventChannel() {
    close(own_);
    close(clients_);
  }
  EventChannel(const EventChannel&) = delete;
  EventChannel& operator=(const EventChannel&) = delete;

  // The end for the client, which gets a descriptor of its own.
  int clients_end() const { return clients_; }

  // Whether it was taken; not, if the client has let too many pile up.
  template <class Event>
  bool send(const Event& event) const {
    ++sent_;
    return ::send(own_, &event, sizeof event, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof event;
  }

  // How many it has tried to.
  uint64_t sent() const { return sent_; }

  // Takes back what the client has not read yet of this object. Result: how many events.
  template <class Event>
  uint32_t take_back(uint64_t cookie) const {
    std::vector<Event> others;
    uint32_t found = 0;
    Event event;
    while (::recv(clients_, &event, sizeof event, MSG_DONTWAIT) == sizeof event) {
      if (event.cookie == cookie)
        ++found;
      else
        others.push_back(event);
    }
    for (const Event& each : others) send(each);
    return found;
  }

 private:
  // Room for an event of every completion queue that a client may have, as the kernel counts small messages.
  static constexpr int kRoomBytes = 4096 * 1024;

  mutable uint64_t sent_ = 0;
  int own_ = -1;
  int clients_ = -1;
};

}  // namespace weft::verbs
