#include "hosts/mrc/ev_routes.hpp"

#include <set>
#include <stdexcept>
#include <string>
#include <utility>

namespace weft::mrc {

void EvRoutes::add(const roce::IpAddress& peer, std::vector<EvRoute> routes) {
  if (routes.empty() || routes.size() > kMaxRoutes) {
    throw std::invalid_argument(std::to_string(routes.size()) + " routes to a peer (valid: 1 to " +
                                std::to_string(kMaxRoutes) + ")");
  }
  std::set<uint32_t> ports;
  for (const EvRoute& route : routes) {
    if (encapsulates_ && !route.outer_destination.is_ipv6)
      throw std::invalid_argument("the outer destination of an EV is no IPv6 address");
    if (!ports.insert(route.value >> 16).second) {
      throw std::invalid_argument("two EVs have the UDP source port " + std::to_string(route.value >> 16));
    }
  }
  by_peer_.insert_or_assign(peer.bytes, std::move(routes));
}

const std::vector<EvRoute>& EvRoutes::to(const roce::IpAddress& peer) const {
  const auto found = by_peer_.find(peer.bytes);
  if (found == by_peer_.end()) throw std::invalid_argument("no routes of EVs lead to the peer's address");
  return found->second;
}

}  // namespace weft::mrc
