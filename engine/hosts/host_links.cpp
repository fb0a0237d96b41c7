#include "hosts/host_links.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace weft {

HostLinks::HostLinks(Engine& engine, const std::vector<uint64_t>& rates_bps) : engine_(engine) {
  for (const uint64_t rate_bps : rates_bps) {
    if (rate_bps == 0) throw std::invalid_argument("a link of 0 b/s (valid: 1 or more)");
    links_.push_back({.rate = BitRate(rate_bps), .free_ps = 0, .counters = {}});
  }
}

TimePs HostLinks::cross(const std::vector<uint32_t>& links, TimePs now, size_t bytes) {
  TimePs start_ps = now;
  TimePs end_ps = now;
  for (const uint32_t number : links) {
    Link& link = links_[number];
    const TimePs taken_ps = link.rate.serialisation_ps(bytes);
    const TimePs waited_ps = std::max<TimePs>(0, link.free_ps - start_ps);
    start_ps += waited_ps;
    link.free_ps = start_ps + taken_ps;
    end_ps = std::max(end_ps, link.free_ps);
    HostLinkCounters& counters = link.counters;
    if (counters.packets == 0) counters.first_ps = static_cast<uint64_t>(start_ps);
    ++counters.packets;
    counters.bytes += bytes;
    counters.busy_ps += static_cast<uint64_t>(taken_ps);
    counters.waited_ps += static_cast<uint64_t>(waited_ps);
    counters.last_ps = static_cast<uint64_t>(link.free_ps);
  }
  return end_ps;
}

TimePs HostLinks::alone_ps(const std::vector<uint32_t>& links, size_t bytes) const {
  std::vector<TimePs> free_ps(links_.size(), 0);
  TimePs start_ps = 0;
  TimePs end_ps = 0;
  for (const uint32_t number : links) {
    start_ps = std::max(start_ps, free_ps[number]);
    free_ps[number] = start_ps + links_[number].rate.serialisation_ps(bytes);
    end_ps = std::max(end_ps, free_ps[number]);
  }
  return end_ps;
}

void HostLinks::reset_counters() {
  for (Link& link : links_) link.counters = HostLinkCounters();
}

void HostWay::check() const {
  for (const uint32_t link : over) {
    if (links == nullptr || link >= links->size()) {
      throw std::invalid_argument("no link " + std::to_string(link) + " in the host (valid: below " +
                                  std::to_string(links == nullptr ? 0 : links->size()) + ")");
    }
  }
}

}  // namespace weft
