// Socket addresses of commands: IPv4, IPv6 and InfiniBand's own, as GIDs and ports.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>

#include "verbs/cm/messages.hpp"

namespace weft::cm {

constexpr uint16_t kAfIb = 27;  // AF_IB

// struct sockaddr_ib of <infiniband/ib.h>, which not every machine has.
struct SockaddrIb {
  uint16_t family;
  uint16_t pkey;
  uint32_t flow_info;
  Gid address;
  uint64_t service_id;
  uint64_t service_id_mask;
  uint64_t scope_id;
};
static_assert(sizeof(SockaddrIb) == 48);

// 0 for families that are not known.
size_t address_bytes(const sockaddr_storage& address);
// The address alone; an IPv4 one as ::ffff:a.b.c.d.
Gid gid_of(const sockaddr_storage& address);
bool is_ipv4(const Gid& gid);
bool is_multicast(const Gid& gid);
// 0.0.0.0/8, 127.0.0.0/8, :: and ::1, as Linux's CMA takes all of them for "any".
bool is_any(const sockaddr_storage& address);
bool is_zero(const sockaddr_storage& address);
bool is_link_local(const sockaddr_storage& address);
uint16_t port_of_address(const sockaddr_storage& address);
void set_port(sockaddr_storage& address, uint16_t port);
// Writes an address of the GID's family; the port is kept.
void set_gid(sockaddr_storage& address, const Gid& gid);
// Same family and address.
bool same_address(const sockaddr_storage& one, const sockaddr_storage& other);

template <class Part>
Part& address_as(sockaddr_storage& address) {
  return *reinterpret_cast<Part*>(&address);
}
template <class Part>
const Part& address_as(const sockaddr_storage& address) {
  return *reinterpret_cast<const Part*>(&address);
}

}  // namespace weft::cm
