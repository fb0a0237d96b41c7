// Paths that entropy values (EVs) name: to each peer a list of EVs, each with the way that its packets take.
// Sources: OCP MRC 1.0, as docs/mrc.md describes its routes; RFC 9800 (SRv6's compressed segment lists).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "packets/roce_formats.hpp"

namespace weft::mrc {

struct EvRoute {
  uint32_t value = 0;                 // the EV
  roce::IpAddress outer_destination;  // of the outer IPv6 header, if there is one
};

// Of one port of a NIC. Queue pairs take their EVs from here instead of drawing them.
class EvRoutes {
 public:
  // With `encapsulates`, packets go in an outer IPv6 header to the EV's outer destination (SRv6).
  explicit EvRoutes(bool encapsulates) : encapsulates_(encapsulates) {}

  bool encapsulates() const { return encapsulates_; }
  bool knows(const roce::IpAddress& peer) const { return by_peer_.contains(peer.bytes); }
  // Throws std::invalid_argument if there is none, two have the same UDP source port, or there are more than
  // kMaxRoutes.
  void add(const roce::IpAddress& peer, std::vector<EvRoute> routes);
  // Throws std::invalid_argument for a peer to which there are none.
  const std::vector<EvRoute>& to(const roce::IpAddress& peer) const;

  // By the administrator: queue pairs that are made from now on begin with the EV excluded, or admitted
  // again. Throws as to(), and for an EV that does not lead there.
  void set_denied(const roce::IpAddress& peer, uint32_t value, bool denied);
  const std::set<uint32_t>& denied(const roce::IpAddress& peer) const;

  static constexpr size_t kMaxRoutes = 1 << 14;

 private:
  struct ToPeer {
    std::vector<EvRoute> routes;
    std::set<uint32_t> denied;  // values
  };

  const ToPeer& entry_of(const roce::IpAddress& peer) const;

  bool encapsulates_;
  std::map<std::array<uint8_t, 16>, ToPeer> by_peer_;
};

}  // namespace weft::mrc
