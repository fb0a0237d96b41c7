#include "verbs/cm/socket_addresses.hpp"

#include <algorithm>

namespace weft::cm {

size_t address_bytes(const sockaddr_storage& address) {
  switch (address.ss_family) {
    case AF_INET:
      return sizeof(sockaddr_in);
    case AF_INET6:
      return sizeof(sockaddr_in6);
    case kAfIb:
      return sizeof(SockaddrIb);
    default:
      return 0;
  }
}

Gid gid_of(const sockaddr_storage& address) {
  Gid gid{};
  if (address.ss_family == AF_INET) {
    gid[10] = gid[11] = 0xFF;
    std::memcpy(gid.data() + 12, &address_as<sockaddr_in>(address).sin_addr, 4);
  } else if (address.ss_family == AF_INET6) {
    std::memcpy(gid.data(), &address_as<sockaddr_in6>(address).sin6_addr, 16);
  } else if (address.ss_family == kAfIb) {
    gid = address_as<SockaddrIb>(address).address;
  }
  return gid;
}

bool is_ipv4(const Gid& gid) { return gid_prefix(gid) == 0 && gid_interface(gid) >> 32 == 0xFFFF; }

bool is_multicast(const Gid& gid) { return is_ipv4(gid) ? gid[12] >> 4 == 0xE : gid[0] == 0xFF; }

bool is_zero(const sockaddr_storage& address) {
  const Gid gid = gid_of(address);
  return address.ss_family == AF_INET ? gid[12] == 0 : gid == Gid{};
}

bool is_any(const sockaddr_storage& address) {
  const Gid gid = gid_of(address);
  if (address.ss_family == AF_INET) return gid[12] == 0 || gid[12] == 127;
  return gid == Gid{} || gid == gid_of(uint64_t{0}, uint64_t{1});
}

bool is_link_local(const sockaddr_storage& address) {
  const Gid gid = gid_of(address);
  return address.ss_family == AF_INET6 && gid[0] == 0xFE && (gid[1] & 0xC0) == 0x80;
}

uint16_t port_of_address(const sockaddr_storage& address) {
  switch (address.ss_family) {
    case AF_INET:
      return ntohs(address_as<sockaddr_in>(address).sin_port);
    case AF_INET6:
      return ntohs(address_as<sockaddr_in6>(address).sin6_port);
    case kAfIb: {
      const auto& ib = address_as<SockaddrIb>(address);
      return static_cast<uint16_t>(swap_to_big_endian(ib.service_id & ib.service_id_mask));
    }
    default:
      return 0;
  }
}

void set_port(sockaddr_storage& address, uint16_t port) {
  if (address.ss_family == AF_INET) {
    address_as<sockaddr_in>(address).sin_port = htons(port);
  } else if (address.ss_family == AF_INET6) {
    address_as<sockaddr_in6>(address).sin6_port = htons(port);
  } else if (address.ss_family == kAfIb) {
    auto& ib = address_as<SockaddrIb>(address);
    const uint64_t space = swap_to_big_endian(ib.service_id & ib.service_id_mask) & ~uint64_t{0xFFFF};
    ib.service_id = swap_to_big_endian(space | port);
    ib.service_id_mask = ~uint64_t{0};
  }
}

void set_gid(sockaddr_storage& address, const Gid& gid) {
  const uint16_t port = port_of_address(address);
  if (is_ipv4(gid)) {
    address = {};
    address.ss_family = AF_INET;
    std::memcpy(&address_as<sockaddr_in>(address).sin_addr, gid.data() + 12, 4);
  } else {
    const uint32_t scope =
        address.ss_family == AF_INET6 ? address_as<sockaddr_in6>(address).sin6_scope_id : 0;
    address = {};
    address.ss_family = AF_INET6;
    std::memcpy(&address_as<sockaddr_in6>(address).sin6_addr, gid.data(), 16);
    address_as<sockaddr_in6>(address).sin6_scope_id = scope;
  }
  set_port(address, port);
}

bool same_address(const sockaddr_storage& one, const sockaddr_storage& other) {
  if (one.ss_family != other.ss_family || gid_of(one) != gid_of(other)) return false;
  return !is_link_local(other) ||
         address_as<sockaddr_in6>(one).sin6_scope_id == address_as<sockaddr_in6>(other).sin6_scope_id;
}

}  // namespace weft::cm
