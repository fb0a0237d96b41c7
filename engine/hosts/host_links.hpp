// The links inside a host that payload crosses between its memories and its NICs: PCIe, sockets, memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "observe/statistics.hpp"
#include "time/engine.hpp"
#include "time/time.hpp"

namespace weft {

#define WEFT_HOST_LINK_COUNTERS(STATISTIC)                                     \
  STATISTIC(uint64_t, packets, "that have crossed it, or are about to")        \
  STATISTIC(uint64_t, bytes, "of payload in them")                             \
  STATISTIC(uint64_t, busy_ps, "time that they occupy it")                     \
  STATISTIC(uint64_t, waited_ps, "sum over them: until others had crossed it") \
  STATISTIC(uint64_t, first_ps, "when the first one began")                    \
  STATISTIC(uint64_t, last_ps, "when the last one ends")

struct HostLinkCounters {
  WEFT_STATISTICS(HostLinkCounters, WEFT_HOST_LINK_COUNTERS)
};

// Each link carries one packet at a time, in the order in which they ask, whichever rank they are of. A
// packet cuts through: it begins on a link when it has begun on the one before and the link is free.
class HostLinks {
 public:
  // By number. Throws std::invalid_argument for a rate of 0.
  HostLinks(Engine& engine, const std::vector<uint64_t>& rates_bps);

  Engine& engine() const { return engine_; }
  size_t size() const { return links_.size(); }
  // Has a packet cross these links, from now on at the earliest; returns when its last bit has crossed all.
  TimePs cross(const std::vector<uint32_t>& links, TimePs now, size_t bytes);
  // How long a packet that meets no other takes.
  TimePs alone_ps(const std::vector<uint32_t>& links, size_t bytes) const;
  const HostLinkCounters& counters(uint32_t link) const { return links_.at(link).counters; }
  void reset_counters();

 private:
  struct Link {
    BitRate rate;
    TimePs free_ps = 0;
    HostLinkCounters counters;
  };

  Engine& engine_;
  std::vector<Link> links_;
};

// The links that a port's payload crosses in one direction; without links it takes no time.
struct HostWay {
  std::shared_ptr<HostLinks> links;
  std::vector<uint32_t> over;

  // Throws std::invalid_argument for links there are not.
  void check() const;
};

}  // namespace weft
