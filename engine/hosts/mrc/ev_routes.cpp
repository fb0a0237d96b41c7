#include "hosts/mrc/ev_routes.hpp"

#include <algorithm>
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
  by_peer_.insert_or_assign(peer.bytes, ToPeer{std::move(routes), {}});
}

const EvRoutes::ToPeer& EvRoutes::entry_of(const roce::IpAddress& peer) const {
  const auto found = by_peer_.find(peer.bytes);
  if (found == by_peer_.end()) throw std::invalid_argument("no routes of EVs lead to the peer's address");
  return found->second;
}

const std::vector<EvRoute>& EvRoutes::to(const roce::IpAddress& peer) const { return entry_of(peer).routes; }

const std::set<uint32_t>& EvRoutes::denied(const roce::IpAddress& peer) const {
  return entry_of(peer).denied;
}

void EvRoutes::set_denied(const roce::IpAddress& peer, uint32_t value, bool denied) {
  const std::vector<EvRoute>& routes = to(peer);
  if (std::ranges::none_of(routes, [&](const EvRoute& route) { return route.value == value; }))
    throw std::invalid_argument("no route of EV " + std::to_string(value) + " leads to the peer's address");
  std::set<uint32_t>& values = by_peer_.at(peer.bytes).denied;
  denied ? (void)values.insert(value) : (void)values.erase(value);
}

}  // namespace weft::mrc
