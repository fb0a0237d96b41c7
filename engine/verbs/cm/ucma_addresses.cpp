// Binding to addresses and ports, and resolving: as drivers/infiniband/core/cma.c.
#include <algorithm>
#include <cerrno>

#include "verbs/cm/socket_addresses.hpp"
#include "verbs/cm/uapi.hpp"
#include "verbs/cm/ucma.hpp"

namespace weft::cm {

namespace {

constexpr uint32_t kFlowLabelMask = 0xFFFFF;
// net.ipv4.ip_local_port_range, Linux's default.
constexpr uint16_t kFirstEphemeral = 32768;
constexpr uint16_t kLastEphemeral = 60999;

uint64_t service_id_of(uint16_t space, uint16_t port) { return uint64_t{space} << 16 | port; }

// Port space that an AF_IB address names by its service ID; 0 if that of the ID does not allow it.
uint16_t space_of(const SockaddrIb& address, uint16_t space) {
  const uint64_t mask = swap_to_big_endian(address.service_id_mask) & ~uint64_t{0xFFFF};
  const uint64_t id = swap_to_big_endian(address.service_id) & mask;
  for (const uint16_t each : {uint16_t{RDMA_PS_IB}, uint16_t{RDMA_PS_TCP}, uint16_t{RDMA_PS_UDP}}) {
    if ((space == RDMA_PS_IB || space == each) && id == (service_id_of(each, 0) & mask)) return each;
  }
  return 0;
}

}  // namespace

int Ucma::bind(Id& id, const sockaddr_storage& address) {
  if (address_bytes(address) == 0) return EAFNOSUPPORT;
  if (id.state != IdState::kIdle) return EINVAL;
  if (is_link_local(address) && address_as<sockaddr_in6>(address).sin6_scope_id == 0) return EINVAL;
  uint8_t device_port = 0;
  if (!is_any(address)) {
    // A RoCE device has no addresses of InfiniBand's own.
    if (address.ss_family == kAfIb) return ENODEV;
    const DevicePort* const port = port_of(gid_of(address));
    if (port == nullptr) return EADDRNOTAVAIL;
    device_port = port->number;
  }
  id.source = address;
  if (!id.only_family_is_set && address.ss_family == AF_INET) id.only_family = true;
  if (const int error = take_port(id); error != 0) {
    id.source = {};
    return error;
  }
  id.device_port = device_port;
  if (id.destination.ss_family == 0) id.destination.ss_family = address.ss_family;
  id.state = IdState::kAddressBound;
  return 0;
}

int Ucma::take_port(Id& id) {
  const uint16_t space = id.source.ss_family == kAfIb
                             ? space_of(address_as<SockaddrIb>(id.source), id.port_space)
                             : id.port_space;
  if (space == 0) return EPROTONOSUPPORT;
  const uint16_t port = port_of_address(id.source);
  if (port == 0) return take_any_port(id, space);
  if (const int error = check_port(id, space, port, id.reuse_address); error != 0) return error;
  own_port(id, space, port);
  return 0;
}

int Ucma::take_any_port(Id& id, uint16_t space) {
  constexpr uint32_t kCount = kLastEphemeral - kFirstEphemeral + 1;
  const auto first = static_cast<uint32_t>(random_.below(kCount));
  for (uint32_t tried = 0; tried < kCount; ++tried) {
    const auto port = static_cast<uint16_t>(kFirstEphemeral + (first + tried) % kCount);
    if (ports_.contains({space, port})) continue;
    own_port(id, space, port);
    return 0;
  }
  return EADDRNOTAVAIL;
}

int Ucma::check_port(const Id& id, uint16_t space, uint16_t port, bool reuse) const {
  const auto owners = ports_.find({space, port});
  if (owners == ports_.end()) return 0;
  for (const Id* const owner : owners->second) {
    if (owner == &id || (reuse && owner->reuse_address)) continue;
    if (id.only_family && owner->only_family && id.source.ss_family != owner->source.ss_family) continue;
    if (is_any(id.source) || is_any(owner->source)) return EADDRNOTAVAIL;
    if (same_address(id.source, owner->source)) return EADDRINUSE;
  }
  return 0;
}

void Ucma::own_port(Id& id, uint16_t space, uint16_t port) {
  set_port(id.source, port);
  ports_[{space, port}].push_back(&id);
  id.bound_space = space;
  id.bound_port = port;
  id.owns_port = true;
}

void Ucma::release_port(Id& id) {
  if (!id.owns_port) return;
  const auto owners = ports_.find({id.bound_space, id.bound_port});
  std::erase(owners->second, &id);
  if (owners->second.empty()) ports_.erase(owners);
  id.owns_port = false;
}

int Ucma::resolve_address(Id& id, const sockaddr_storage* source, const sockaddr_storage& destination) {
  if (id.state == IdState::kIdle) {
    sockaddr_storage any{};
    any.ss_family = destination.ss_family;
    if (destination.ss_family == AF_INET6)
      address_as<sockaddr_in6>(any).sin6_scope_id = address_as<sockaddr_in6>(destination).sin6_scope_id;
    const bool has_source = source != nullptr && source->ss_family != 0;
    if (const int error = bind(id, has_source ? *source : any); error != 0) return error;
  } else if (id.state != IdState::kAddressBound) {
    return EINVAL;
  }
  if (id.source.ss_family != destination.ss_family) return EINVAL;
  if (destination.ss_family == kAfIb) return ENODEV;
  if (clients_.at(id.client).events.size() >= kMostEvents) return ENOMEM;
  id.destination = destination;
  if (const int error = reach(id, gid_of(destination)); error != 0) {
    push_plain(id, uapi::kAddressError, -error);
    return 0;
  }
  id.state = IdState::kAddressResolved;
  push_plain(id, uapi::kAddressResolved);
  return 0;
}

// Finds the port towards a destination, and binds to it.
int Ucma::reach(Id& id, const Gid& destination) {
  const DevicePort* port = port_numbered(id.device_port);
  Gid near = destination;
  if (is_any(id.destination) || is_multicast(destination)) {
    // The port that is bound, or else the first with an address of that family.
    for (const DevicePort& each : device_.ports) {
      if (port == nullptr && own_address(each, near) != nullptr) port = &each;
    }
    if (port == nullptr) return EADDRNOTAVAIL;
    if (is_any(id.destination)) {
      const Gid* const own = id.device_port != 0 ? nullptr : own_address(*port, near);
      near = own != nullptr ? *own : gid_of(id.source);
      set_gid(id.destination, near);
    }
  } else if (const DevicePort* const own = port_of(destination); own != nullptr) {
    if (port == nullptr) port = own;
  } else {
    const Surroundings::Route route = surroundings_.route(destination, id.device_port);
    if (route.error != 0) return route.error;
    port = port_numbered(route.port);
    if (port == nullptr) return ENETUNREACH;
  }
  if (id.device_port == 0) {
    const Gid* const own = own_address(*port, near);
    if (own == nullptr) return EADDRNOTAVAIL;
    set_gid(id.source, *own);
    id.device_port = port->number;
  }
  return 0;
}

int Ucma::resolve_route(Id& id) {
  if (id.state != IdState::kAddressResolved) return EINVAL;
  if (clients_.at(id.client).events.size() >= kMostEvents) return ENOMEM;
  const DevicePort& port = *port_numbered(id.device_port);
  Path path;
  path.port = port.number;
  path.local = gid_of(id.source);
  path.remote = gid_of(id.destination);
  path.mtu = port.mtu;
  path.traffic_class = id.type_of_service;
  if (id.source.ss_family == AF_INET6)
    path.flow_label = ntohl(address_as<sockaddr_in6>(id.source).sin6_flowinfo) & kFlowLabelMask;
  if (path.flow_label == 0)
    path.flow_label =
        (uint32_t{port_of_address(id.source)} * 31 + port_of_address(id.destination)) & kFlowLabelMask;
  // Half of the ACK timeout that the program has asked for.
  if (id.ack_timeout.value_or(0) != 0) path.packet_life_time = static_cast<uint8_t>(*id.ack_timeout - 1);
  id.path = path;
  id.state = IdState::kRouteResolved;
  push_plain(id, uapi::kRouteResolved);
  return 0;
}

int Ucma::listen(Id& id, uint32_t backlog) {
  if (id.state == IdState::kIdle) {
    sockaddr_storage any{};
    any.ss_family = AF_INET;
    if (const int error = bind(id, any); error != 0) return error;
  }
  if (id.state != IdState::kAddressBound) return EINVAL;
  // A port that one ID listens on is its alone.
  if (id.reuse_address) {
    if (const int error = check_port(id, id.bound_space, id.bound_port, false); error != 0) return error;
    id.reuse_address = false;
  }
  id.backlog = backlog == 0 || backlog > kMostBacklog ? kMostBacklog : static_cast<int>(backlog);
  id.service_id = service_id_of(id.bound_space, id.bound_port);
  connections_.listen(id.service_id);
  id.state = IdState::kListen;
  return 0;
}

int Ucma::join(Id& id, uint64_t uid, const sockaddr_storage& address, uint16_t flags, uint32_t& number) {
  if (flags != RDMA_MC_JOIN_FLAG_FULLMEMBER && flags != RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER) return EINVAL;
  if (id.state != IdState::kAddressBound && id.state != IdState::kAddressResolved) return EINVAL;
  if (id.qp_type != uapi::kDatagram || is_zero(address)) return EINVAL;
  // As Linux for RoCEv2: there is no MLD.
  if (address.ss_family != AF_INET) return EOPNOTSUPP;
  const Gid gid = gid_of(address);
  if (!is_multicast(gid)) return EINVAL;
  if (id.groups.size() >= kMostIds || clients_.at(id.client).events.size() >= kMostEvents) return ENOMEM;
  number = next_group_++;
  Group& group = groups_[number];
  group.id = id.number;
  group.uid = uid;
  group.port = id.device_port;
  group.gid = gid;
  group.receives = flags == RDMA_MC_JOIN_FLAG_FULLMEMBER;
  id.groups.insert(number);
  if (group.receives) surroundings_.join(group.port, gid);
  if (id.qkey == 0) id.qkey = kDatagramQKey;

  Path path;
  path.port = id.device_port;
  path.local = gid_of(id.source);
  path.remote = gid;
  Waiting waiting;
  waiting.group = number;
  waiting.bytes.uid = uid;
  waiting.bytes.id = number;
  waiting.bytes.event = uapi::kMulticastJoin;
  waiting.bytes.param.ud.ah_attr = address_handle(path);
  waiting.bytes.param.ud.qp_num = 0xFFFFFF;
  waiting.bytes.param.ud.qkey = id.qkey;
  push(id, std::move(waiting));
  return 0;
}

}  // namespace weft::cm
