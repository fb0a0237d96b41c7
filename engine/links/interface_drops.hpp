// How many frames an interface has dropped that the kernel had taken for sending.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

namespace weft {

// Asks the kernel over rtnetlink, in the network namespace in which it was made. A frame may get lost behind
// a packet socket though sending it succeeded: while the kernel has yet to activate an interface that has
// just come up, whose queueing discipline then is `noop`, and, before Linux 6.6 or so, where the receiving
// processor's backlog is full. The interface counts such frames as tx_dropped.
class InterfaceDrops {
 public:
  // Objects of one namespace share one netlink socket. Throws std::system_error.
  static std::shared_ptr<InterfaceDrops> of_this_namespace();

  explicit InterfaceDrops(int fd) : fd_(fd) {}
  ~InterfaceDrops();
  InterfaceDrops(const InterfaceDrops&) = delete;
  InterfaceDrops& operator=(const InterfaceDrops&) = delete;

  // Frames dropped since the interface was made; 0 where there is no such interface any more.
  uint64_t of(int interface_index);

 private:
  int fd_;
  std::mutex mutex_;
  uint32_t sequence_ = 0;
};

}  // namespace weft
