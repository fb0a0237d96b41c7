// A pair of sockets by which a client hears of events; it reads the far end as it would a kernel's file.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

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
  }
  ~EventChannel() {
    close(own_);
    close_clients_end();
  }
  EventChannel(const EventChannel&) = delete;
  EventChannel& operator=(const EventChannel&) = delete;

  // The end for the client, until it has it.
  int clients_end() const { return clients_; }
  void close_clients_end() {
    if (clients_ >= 0) close(std::exchange(clients_, -1));
  }

  // Whether it was taken; not, if the client has let too many pile up or has closed its end.
  template <class Event>
  bool send(const Event& event) const {
    return ::send(own_, &event, sizeof event, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof event;
  }

 private:
  int own_ = -1;
  int clients_ = -1;
};

}  // namespace weft::verbs
