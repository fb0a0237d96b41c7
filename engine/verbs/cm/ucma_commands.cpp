// Commands of /dev/infiniband/rdma_cm: their sizes are checked, then they act on an ID.
#include <rdma/ib_user_verbs.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "verbs/cm/socket_addresses.hpp"
#include "verbs/cm/uapi.hpp"
#include "verbs/cm/ucma.hpp"

namespace weft::cm {

namespace {

// struct ibv_path_record: a path record as the subnet administration sends it (table 203), big-endian.
struct PathRecord {
  uint64_t service_id;
  Gid destination;
  Gid source;
  uint16_t destination_lid;
  uint16_t source_lid;
  uint32_t flow_label_and_hop_limit;  // flow label in bits 27 to 8
  uint8_t traffic_class;
  uint8_t reversible_and_paths;
  uint16_t pkey;
  uint16_t qos_class_and_service_level;
  uint8_t mtu;  // selector in bits 7 and 6, as in the next two
  uint8_t rate;
  uint8_t packet_life_time;
  uint8_t preference;
  uint8_t reserved[6];
};
static_assert(sizeof(PathRecord) == sizeof(ib_path_rec_data::path_rec));

constexpr uint8_t kExactly = 2;  // selector
constexpr uint32_t kPathFlags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;

// Reads a command, or as much of it as `least` bytes at least; what is not there is 0.
template <class Command>
bool read(std::span<const uint8_t> body, Command& command, size_t least = sizeof(Command)) {
  if (body.size() < least) return false;
  std::memset(&command, 0, sizeof command);
  std::memcpy(&command, body.data(), std::min(body.size(), sizeof command));
  return true;
}

// Answers with as much of `bytes` as there is room for; ENOSPC for less than `least`.
template <class Response>
int respond(const Response& bytes, uint16_t room, Ucma::Answer& answer, size_t least = sizeof(Response)) {
  if (room < least) return ENOSPC;
  const auto* const from = reinterpret_cast<const uint8_t*>(&bytes);
  answer.response.assign(from, from + std::min<size_t>(room, sizeof bytes));
  return 0;
}

template <class Part>
sockaddr_storage stored(const Part& address) {
  static_assert(sizeof(Part) <= sizeof(sockaddr_storage));
  sockaddr_storage storage{};
  std::memcpy(&storage, &address, sizeof address);
  return storage;
}

// For commands that have room for an IPv6 address only.
bool fits_ipv6(const sockaddr_storage& address) {
  const size_t bytes = address_bytes(address);
  return bytes != 0 && bytes <= sizeof(sockaddr_in6);
}

}  // namespace

Ucma::Answer Ucma::command(uint32_t client, std::span<const uint8_t> bytes, std::span<const uint8_t> option,
                           std::optional<uint32_t> from) {
  Answer answer;
  rdma_ucm_cmd_hdr header;
  if (!clients_.contains(client)) {
    answer.error = ENODEV;
  } else if (bytes.size() < sizeof header) {
    answer.error = EINVAL;
  } else {
    std::memcpy(&header, bytes.data(), sizeof header);
    const std::span<const uint8_t> body = bytes.subspan(sizeof header);
    answer.error = header.in > body.size()
                       ? EINVAL
                       : dispatch(client, header, body.first(header.in), option, from, answer);
  }
  settle();
  if (answer.error != 0) answer.response.clear();
  answer.is_drained = end_signal(client);
  if (from && *from != client) answer.is_source_drained = end_signal(*from);
  return answer;
}

int Ucma::dispatch(uint32_t client, const rdma_ucm_cmd_hdr& header, std::span<const uint8_t> body,
                   std::span<const uint8_t> option, std::optional<uint32_t> from, Answer& answer) {
  switch (header.cmd) {
    case RDMA_USER_CM_CMD_CREATE_ID:
      return create_id(client, body, header.out, answer);
    case RDMA_USER_CM_CMD_DESTROY_ID: {
      rdma_ucm_destroy_id command;
      if (!read(body, command)) return EINVAL;
      if (header.out < sizeof(rdma_ucm_destroy_id_resp)) return ENOSPC;
      if (id_of(client, command.id) == nullptr) return ENOENT;
      return respond(rdma_ucm_destroy_id_resp{destroy_id(command.id)}, header.out, answer);
    }
    case RDMA_USER_CM_CMD_BIND_IP: {
      rdma_ucm_bind_ip command;
      if (!read(body, command)) return EINVAL;
      const sockaddr_storage address = stored(command.addr);
      if (!fits_ipv6(address)) return EINVAL;
      Id* const id = id_of(client, command.id);
      return id == nullptr ? ENOENT : bind(*id, address);
    }
    case RDMA_USER_CM_CMD_BIND: {
      rdma_ucm_bind command;
      if (!read(body, command)) return EINVAL;
      const sockaddr_storage address = stored(command.addr);
      if (command.reserved != 0 || command.addr_size == 0 || command.addr_size != address_bytes(address))
        return EINVAL;
      Id* const id = id_of(client, command.id);
      return id == nullptr ? ENOENT : bind(*id, address);
    }
    case RDMA_USER_CM_CMD_RESOLVE_IP: {
      rdma_ucm_resolve_ip command;
      if (!read(body, command)) return EINVAL;
      const sockaddr_storage source = stored(command.src_addr);
      const sockaddr_storage destination = stored(command.dst_addr);
      if ((source.ss_family != 0 && !fits_ipv6(source)) || !fits_ipv6(destination)) return EINVAL;
      Id* const id = id_of(client, command.id);
      return id == nullptr ? ENOENT : resolve_address(*id, &source, destination);
    }
    case RDMA_USER_CM_CMD_RESOLVE_ADDR: {
      rdma_ucm_resolve_addr command;
      if (!read(body, command)) return EINVAL;
      const sockaddr_storage source = stored(command.src_addr);
      const sockaddr_storage destination = stored(command.dst_addr);
      if (command.reserved != 0 || (command.src_size != 0 && command.src_size != address_bytes(source)) ||
          command.dst_size == 0 || command.dst_size != address_bytes(destination))
        return EINVAL;
      Id* const id = id_of(client, command.id);
      return id == nullptr ? ENOENT
                           : resolve_address(*id, command.src_size != 0 ? &source : nullptr, destination);
    }
    case RDMA_USER_CM_CMD_RESOLVE_ROUTE: {
      rdma_ucm_resolve_route command;
      if (!read(body, command)) return EINVAL;
      Id* const id = bound_id_of(client, command.id);
      return id == nullptr || command.timeout_ms == 0 ? EINVAL : resolve_route(*id);
    }
    case RDMA_USER_CM_CMD_QUERY_ROUTE:
    case RDMA_USER_CM_CMD_QUERY: {
      rdma_ucm_query command;
      if (!read(body, command)) return EINVAL;
      const Id* const id = id_of(client, command.id);
      if (id == nullptr) return ENOENT;
      return header.cmd == RDMA_USER_CM_CMD_QUERY ? query(*id, command.option, header.out, answer)
                                                  : query_route(*id, header.out, answer);
    }
    case RDMA_USER_CM_CMD_CONNECT: {
      rdma_ucm_connect command;
      if (!read(body, command, offsetof(rdma_ucm_connect, ece)) || !command.conn_param.valid) return EINVAL;
      Id* const id = bound_id_of(client, command.id);
      if (id == nullptr) return EINVAL;
      id->vendor_id = command.ece.vendor_id;
      id->vendor_options = command.ece.attr_mod;
      return connect(*id, command.conn_param);
    }
    case RDMA_USER_CM_CMD_LISTEN: {
      rdma_ucm_listen command;
      if (!read(body, command)) return EINVAL;
      Id* const id = id_of(client, command.id);
      return id == nullptr ? ENOENT : listen(*id, command.backlog);
    }
    case RDMA_USER_CM_CMD_ACCEPT: {
      rdma_ucm_accept command;
      if (!read(body, command, offsetof(rdma_ucm_accept, ece))) return EINVAL;
      Id* const id = bound_id_of(client, command.id);
      return id == nullptr ? EINVAL : accept(*id, command);
    }
    case RDMA_USER_CM_CMD_REJECT: {
      rdma_ucm_reject command;
      if (!read(body, command)) return EINVAL;
      Id* const id = bound_id_of(client, command.id);
      return id == nullptr ? EINVAL : reject(*id, command);
    }
    case RDMA_USER_CM_CMD_DISCONNECT: {
      rdma_ucm_disconnect command;
      if (!read(body, command)) return EINVAL;
      Id* const id = bound_id_of(client, command.id);
      return id == nullptr ? EINVAL : disconnect(*id);
    }
    case RDMA_USER_CM_CMD_INIT_QP_ATTR: {
      rdma_ucm_init_qp_attr command;
      if (!read(body, command)) return EINVAL;
      if (header.out < sizeof(ib_uverbs_qp_attr)) return ENOSPC;
      Id* const id = bound_id_of(client, command.id);
      return id == nullptr ? EINVAL : init_qp_attr(*id, command.qp_state, answer);
    }
    case RDMA_USER_CM_CMD_GET_EVENT: {
      rdma_ucm_get_event command;
      return read(body, command) ? get_event(client, header.out, answer) : EINVAL;
    }
    case RDMA_USER_CM_CMD_SET_OPTION: {
      rdma_ucm_set_option command;
      if (!read(body, command) || command.optlen != option.size()) return EINVAL;
      Id* const id = id_of(client, command.id);
      return id == nullptr ? ENOENT : set_option(*id, command, option);
    }
    case RDMA_USER_CM_CMD_NOTIFY: {
      rdma_ucm_notify command;
      if (!read(body, command)) return EINVAL;
      Id* const id = bound_id_of(client, command.id);
      if (id == nullptr || id->connection == 0 || command.event != uapi::kCommunicationEstablished)
        return EINVAL;
      return connections_.establish(surroundings_.now(), id->connection);
    }
    case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
    case RDMA_USER_CM_CMD_JOIN_MCAST: {
      uint64_t uid = 0;
      uint32_t number = 0;
      uint16_t flags = RDMA_MC_JOIN_FLAG_FULLMEMBER;
      sockaddr_storage address{};
      if (header.cmd == RDMA_USER_CM_CMD_JOIN_MCAST) {
        rdma_ucm_join_mcast command;
        if (!read(body, command)) return EINVAL;
        address = stored(command.addr);
        if (address_bytes(address) == 0 || command.addr_size != address_bytes(address)) return EINVAL;
        uid = command.uid;
        number = command.id;
        flags = command.join_flags;
      } else {
        rdma_ucm_join_ip_mcast command;
        if (!read(body, command)) return EINVAL;
        address = stored(command.addr);
        if (!fits_ipv6(address)) return EINVAL;
        uid = command.uid;
        number = command.id;
      }
      if (header.out < sizeof(rdma_ucm_create_id_resp)) return ENOSPC;
      Id* const id = bound_id_of(client, number);
      if (id == nullptr) return EINVAL;
      rdma_ucm_create_id_resp bytes{};
      if (const int error = join(*id, uid, address, flags, bytes.id); error != 0) return error;
      return respond(bytes, header.out, answer);
    }
    case RDMA_USER_CM_CMD_LEAVE_MCAST: {
      rdma_ucm_destroy_id command;
      if (!read(body, command)) return EINVAL;
      if (header.out < sizeof(rdma_ucm_destroy_id_resp)) return ENOSPC;
      const auto group = groups_.find(command.id);
      if (group == groups_.end() || id_of(client, group->second.id) == nullptr) return ENOENT;
      const rdma_ucm_destroy_id_resp bytes{group->second.events_reported};
      leave_group(command.id);
      return respond(bytes, header.out, answer);
    }
    case RDMA_USER_CM_CMD_MIGRATE_ID: {
      rdma_ucm_migrate_id command;
      if (!read(body, command)) return EINVAL;
      if (header.out < sizeof(rdma_ucm_migrate_resp)) return ENOSPC;
      return from ? migrate(client, *from, command.id, answer) : EINVAL;
    }
    case RDMA_USER_CM_CMD_GET_OPTION:
      return ENOSYS;
    default:
      return EINVAL;
  }
}

Ucma::Id* Ucma::bound_id_of(uint32_t client, uint32_t number) {
  Id* const id = id_of(client, number);
  return id == nullptr || id->device_port == 0 ? nullptr : id;
}

int Ucma::create_id(uint32_t client, std::span<const uint8_t> body, uint16_t room, Answer& answer) {
  rdma_ucm_create_id command;
  if (!read(body, command)) return EINVAL;
  if (room < sizeof(rdma_ucm_create_id_resp)) return ENOSPC;
  uint8_t type = 0;
  switch (command.ps) {
    case RDMA_PS_TCP:
      type = uapi::kReliableConnected;
      break;
    case RDMA_PS_UDP:
      type = uapi::kDatagram;
      break;
    case RDMA_PS_IPOIB:
      return EPROTONOSUPPORT;
    case RDMA_PS_IB:
      type = command.qp_type;
      if (type != uapi::kReliableConnected && type != uapi::kUnreliableConnected && type != uapi::kDatagram)
        return EOPNOTSUPP;
      break;
    default:
      return EINVAL;
  }
  Id* const id = make_id(client);
  if (id == nullptr) return ENOMEM;
  id->uid = command.uid;
  id->port_space = command.ps;
  id->qp_type = type;
  return respond(rdma_ucm_create_id_resp{id->number}, room, answer);
}

// ---- questions

int Ucma::query_route(const Id& id, uint16_t room, Answer& answer) const {
  rdma_ucm_query_route_resp bytes{};
  std::memcpy(&bytes.src_addr, &id.source, sizeof bytes.src_addr);
  std::memcpy(&bytes.dst_addr, &id.destination, sizeof bytes.dst_addr);
  if (id.device_port != 0) {
    bytes.node_guid = swap_to_big_endian(device_.node_guid);
    bytes.ibdev_index = device_.index;
    bytes.port_num = id.device_port;
    bytes.num_paths = id.path ? 1 : 0;
    ib_user_path_rec& record = bytes.ib_route[0];
    const Gid source = id.path ? id.path->local : gid_of(id.source);
    const Gid destination = id.path ? id.path->remote : gid_of(id.destination);
    std::copy(source.begin(), source.end(), record.sgid);
    std::copy(destination.begin(), destination.end(), record.dgid);
    record.pkey = swap_to_big_endian(kDefaultPKey);
    if (id.path) {
      record.flow_label = swap_to_big_endian(id.path->flow_label);
      record.reversible = 1;
      record.mtu = id.path->mtu;
      record.hop_limit = id.path->hop_limit;
      record.traffic_class = id.path->traffic_class;
      record.sl = id.path->service_level;
      record.mtu_selector = record.rate_selector = record.packet_life_time_selector = kExactly;
      record.packet_life_time = id.path->packet_life_time;
    }
  }
  return respond(bytes, room, answer, offsetof(rdma_ucm_query_route_resp, ibdev_index));
}

void Ucma::query_device(const Id& id, rdma_ucm_query_addr_resp& bytes) const {
  if (id.device_port == 0) return;
  bytes.node_guid = swap_to_big_endian(device_.node_guid);
  bytes.ibdev_index = device_.index;
  bytes.port_num = id.device_port;
  bytes.pkey = swap_to_big_endian(kDefaultPKey);
}

int Ucma::query(const Id& id, uint32_t option, uint16_t room, Answer& answer) const {
  constexpr size_t kLeast = offsetof(rdma_ucm_query_addr_resp, ibdev_index);
  if (option == RDMA_USER_CM_QUERY_ADDR) {
    rdma_ucm_query_addr_resp bytes{};
    bytes.src_size = static_cast<uint16_t>(address_bytes(id.source));
    bytes.dst_size = static_cast<uint16_t>(address_bytes(id.destination));
    std::memcpy(&bytes.src_addr, &id.source, bytes.src_size);
    std::memcpy(&bytes.dst_addr, &id.destination, bytes.dst_size);
    query_device(id, bytes);
    return respond(bytes, room, answer, kLeast);
  }
  if (option == RDMA_USER_CM_QUERY_GID) {
    rdma_ucm_query_addr_resp bytes{};
    query_device(id, bytes);
    const auto fill = [&](const sockaddr_storage& address, auto& to, uint16_t& bytes_of) {
      SockaddrIb ib{};
      if (address.ss_family == kAfIb) {
        ib = address_as<SockaddrIb>(address);
      } else {
        ib.family = kAfIb;
        ib.pkey = bytes.pkey;
        if (id.device_port != 0) ib.address = gid_of(address);
        ib.service_id = swap_to_big_endian(uint64_t{id.port_space} << 16 | port_of_address(address));
      }
      std::memcpy(&to, &ib, sizeof ib);
      bytes_of = sizeof ib;
    };
    fill(id.source, bytes.src_addr, bytes.src_size);
    fill(id.destination, bytes.dst_addr, bytes.dst_size);
    return respond(bytes, room, answer, kLeast);
  }
  if (option != RDMA_USER_CM_QUERY_PATH) return ENOSYS;

  constexpr size_t kHeadBytes = sizeof(rdma_ucm_query_path_resp);
  if (room < kHeadBytes) return ENOSPC;
  const uint32_t num_paths = id.path ? 1 : 0;
  answer.response.resize(kHeadBytes);
  std::memcpy(answer.response.data() + offsetof(rdma_ucm_query_path_resp, num_paths), &num_paths,
              sizeof num_paths);
  // Linux writes a record only if there is room for more.
  if (!id.path || room <= kHeadBytes + sizeof(ib_path_rec_data)) return 0;
  PathRecord record{};
  record.destination = id.path->remote;
  record.source = id.path->local;
  record.flow_label_and_hop_limit = swap_to_big_endian(id.path->flow_label << 8 | id.path->hop_limit);
  record.traffic_class = id.path->traffic_class;
  record.reversible_and_paths = 0x80;
  record.pkey = kDefaultPKey;
  record.qos_class_and_service_level = swap_to_big_endian(uint16_t{id.path->service_level});
  record.mtu = static_cast<uint8_t>(kExactly << 6 | id.path->mtu);
  record.rate = kExactly << 6;
  record.packet_life_time = static_cast<uint8_t>(kExactly << 6 | id.path->packet_life_time);
  ib_path_rec_data data{};
  data.flags = kPathFlags;
  std::memcpy(data.path_rec, &record, sizeof record);
  answer.response.resize(kHeadBytes + sizeof data);
  std::memcpy(answer.response.data() + kHeadBytes, &data, sizeof data);
  return 0;
}

// ---- connections

int Ucma::connect(Id& id, const rdma_ucm_conn_param& parameters) {
  if (id.state != IdState::kRouteResolved) return EINVAL;
  const bool is_datagram = id.qp_type == uapi::kDatagram;
  const size_t bytes = kIpAddressingBytes + parameters.private_data_len;
  if (bytes > (is_datagram ? SidrReq::kPrivateBytes : Req::kPrivateBytes)) return EINVAL;
  std::array<uint8_t, kMostPrivateBytes> data{};
  IpAddressing addressing;
  const Gid source = gid_of(id.source);
  const Gid destination = gid_of(id.destination);
  const bool is_ip4 = is_ipv4(source);
  addressing.ip_version = is_ip4 ? 4 : 6;
  addressing.source_port = port_of_address(id.source);
  const auto low = [&](const Gid& gid) {
    return is_ip4 ? static_cast<uint32_t>(gid_interface(gid)) : gid_interface(gid);
  };
  addressing.source_address_high = gid_prefix(source);
  addressing.source_address_low = low(source);
  addressing.destination_address_high = gid_prefix(destination);
  addressing.destination_address_low = low(destination);
  wire::store_header(addressing, data.data());
  std::memcpy(data.data() + kIpAddressingBytes, parameters.private_data, parameters.private_data_len);

  id.qpn = parameters.qp_num & 0xFFFFFF;
  id.srq = parameters.srq;
  const uint64_t service_id = uint64_t{id.port_space} << 16 | port_of_address(id.destination);
  const std::span<const uint8_t> private_data(data.data(), bytes);
  if (is_datagram) {
    id.connection = connections_.resolve_service(surroundings_.now(), *id.path, service_id, private_data);
  } else {
    QueuePairFacts facts;
    facts.number = id.qpn;
    facts.starting_psn = id.starting_psn;
    facts.responder_resources = parameters.responder_resources;
    facts.initiator_depth = parameters.initiator_depth;
    facts.flow_control = parameters.flow_control != 0;
    facts.retry_count = std::min<uint8_t>(7, parameters.retry_count);
    facts.rnr_retry_count = std::min<uint8_t>(7, parameters.rnr_retry_count);
    facts.srq = id.srq != 0;
    facts.vendor_id = id.vendor_id;
    facts.vendor_options = id.vendor_options;
    const uint8_t transport = id.qp_type == uapi::kReliableConnected ? kReliable : kUnreliable;
    id.connection =
        connections_.connect(surroundings_.now(), *id.path, service_id, transport, facts, private_data);
  }
  if (id.connection == 0) return ENOMEM;
  id_of_connection_[id.connection] = id.number;
  id.state = IdState::kConnect;
  return 0;
}

int Ucma::accept(Id& id, const rdma_ucm_accept& command) {
  if (id.state != IdState::kConnect || id.connection == 0) return EINVAL;
  const rdma_ucm_conn_param& parameters = command.conn_param;
  const TimePs now = surroundings_.now();
  const std::span<const uint8_t> private_data(parameters.private_data,
                                              parameters.valid ? parameters.private_data_len : 0);
  id.vendor_id = command.ece.vendor_id;
  id.vendor_options = command.ece.attr_mod;
  if (parameters.valid) {
    id.qpn = parameters.qp_num & 0xFFFFFF;
    id.srq = parameters.srq;
  }
  int error = 0;
  if (id.qp_type == uapi::kDatagram) {
    if (id.qkey == 0) id.qkey = kDatagramQKey;
    error = connections_.answer_service(now, id.connection, kSidrValid, id.qpn, id.qkey, id.vendor_options,
                                        private_data);
  } else if (parameters.valid) {
    QueuePairFacts facts;
    facts.number = id.qpn;
    facts.starting_psn = id.starting_psn;
    facts.responder_resources = parameters.responder_resources;
    facts.initiator_depth = parameters.initiator_depth;
    facts.flow_control = parameters.flow_control != 0;
    facts.rnr_retry_count = std::min<uint8_t>(7, parameters.rnr_retry_count);
    facts.srq = id.srq != 0;
    facts.vendor_id = id.vendor_id;
    facts.vendor_options = id.vendor_options;
    error = connections_.accept(now, id.connection, facts, private_data);
  } else {
    error = connections_.confirm(now, id.connection);
  }
  if (error != 0) {
    if (id.qp_type == uapi::kDatagram) {
      connections_.answer_service(now, id.connection, kSidrRejected, 0, 0, 0, {});
    } else {
      connections_.reject(now, id.connection, kConsumerDefined, {}, {});
    }
  } else if (parameters.valid) {
    id.uid = command.uid;
  }
  return error;
}

int Ucma::reject(Id& id, const rdma_ucm_reject& command) {
  const uint8_t reason = command.reason == 0 ? uint8_t{kConsumerDefined} : command.reason;
  if (reason != kConsumerDefined && reason != kVendorOptionNotSupported) return EINVAL;
  if (id.connection == 0) return EINVAL;
  const std::span<const uint8_t> private_data(command.private_data, command.private_data_len);
  if (id.qp_type == uapi::kDatagram)
    return connections_.answer_service(surroundings_.now(), id.connection, kSidrRejected, 0, 0, 0,
                                       private_data);
  return connections_.reject(surroundings_.now(), id.connection, reason, {}, private_data);
}

// Asks for the end of a connection, or answers the peer that has asked. Linux reports no error of either.
int Ucma::disconnect(Id& id) {
  if (id.connection == 0) return EINVAL;
  const TimePs now = surroundings_.now();
  if (connections_.disconnect(now, id.connection) != 0) connections_.answer_disconnect(now, id.connection);
  return 0;
}

int Ucma::init_qp_attr(Id& id, uint32_t state, Answer& answer) {
  if (state > uapi::kError) return EINVAL;
  ib_uverbs_qp_attr attr{};
  attr.qp_state = state;
  if (id.connection != 0 && id.qp_type != uapi::kDatagram) {
    if (const int error = connection_attr(id, state, attr); error != 0) return error;
  } else {
    attr.port_num = id.device_port;
    attr.qp_attr_mask = uapi::kMaskState | uapi::kMaskPKeyIndex | uapi::kMaskPort;
    if (id.qp_type == uapi::kDatagram) {
      if (id.qkey == 0) id.qkey = kDatagramQKey;
      attr.qkey = id.qkey;
      attr.qp_attr_mask |= uapi::kMaskQKey;
    } else {
      attr.qp_attr_mask |= uapi::kMaskAccessFlags;
    }
  }
  if (state == uapi::kReadyToReceive) attr.rq_psn = id.starting_psn;
  if ((attr.qp_attr_mask & uapi::kMaskTimeout) != 0 && id.ack_timeout) attr.timeout = *id.ack_timeout;
  return respond(attr, sizeof attr, answer);
}

int Ucma::connection_attr(const Id& id, uint32_t state, ib_uverbs_qp_attr& attr) const {
  const Connection* const connection = connections_.find(id.connection);
  if (connection == nullptr) return EINVAL;
  const bool is_reliable = id.qp_type == uapi::kReliableConnected;
  const bool knows_peer = connection->state == State::kReqReceived ||
                          connection->state == State::kRepReceived || connection->state == State::kRepSent ||
                          connection->state == State::kMraRepReceived ||
                          connection->state == State::kEstablished;
  const bool is_asking = connection->state == State::kReqSent || connection->state == State::kMraReqReceived;
  if (!knows_peer && !(is_asking && state == uapi::kInit)) return EINVAL;
  switch (state) {
    case uapi::kInit:
      attr.qp_attr_mask = uapi::kMaskState | uapi::kMaskAccessFlags | uapi::kMaskPKeyIndex | uapi::kMaskPort;
      attr.qp_access_flags = uapi::kRemoteWrite;
      if (connection->responder_resources != 0)
        attr.qp_access_flags |= uapi::kRemoteRead | uapi::kRemoteAtomic;
      attr.port_num = connection->path.port;
      return 0;
    case uapi::kReadyToReceive:
      attr.qp_attr_mask = uapi::kMaskState | uapi::kMaskAddress | uapi::kMaskPathMtu |
                          uapi::kMaskDestinationQpn | uapi::kMaskReceivePsn;
      attr.ah_attr = address_handle(connection->path);
      attr.path_mtu = connection->path_mtu;
      attr.dest_qp_num = connection->remote_qpn;
      if (is_reliable) {
        attr.qp_attr_mask |= uapi::kMaskMaxDestinationReadAtomic | uapi::kMaskMinRnrTimer;
        attr.max_dest_rd_atomic = connection->responder_resources;
      }
      return 0;
    case uapi::kReadyToSend:
      attr.qp_attr_mask = uapi::kMaskState | uapi::kMaskSendPsn;
      attr.sq_psn = connection->send_psn;
      if (is_reliable) {
        attr.qp_attr_mask |=
            uapi::kMaskRetryCount | uapi::kMaskRnrRetry | uapi::kMaskMaxReadAtomic | uapi::kMaskTimeout;
        attr.retry_cnt = connection->retry_count;
        attr.rnr_retry = connection->rnr_retry_count;
        attr.max_rd_atomic = connection->initiator_depth;
        attr.timeout = connection->ack_timeout;
      }
      return 0;
    default:
      return EINVAL;
  }
}

// ---- the rest

int Ucma::get_event(uint32_t number, uint16_t room, Answer& answer) {
  constexpr size_t kLeast = offsetof(rdma_ucm_event_resp, reserved);
  if (room < kLeast) return ENOSPC;
  Client& client = clients_.at(number);
  if (client.events.empty()) return EAGAIN;
  const Waiting waiting = client.events.front();
  client.events.pop_front();
  Id& id = *ids_.at(waiting.id);
  ++id.events_reported;
  if (waiting.group) ++groups_.at(*waiting.group).events_reported;
  if (waiting.request_id) ++id.backlog;
  return respond(waiting.bytes, room, answer, kLeast);
}

int Ucma::set_option(Id& id, const rdma_ucm_set_option& command, std::span<const uint8_t> option) {
  const auto number = [&] {
    int value = 0;
    std::memcpy(&value, option.data(), sizeof value);
    return value;
  };
  if (command.level == RDMA_OPTION_IB)
    return command.optname == RDMA_OPTION_IB_PATH ? set_path(id, option) : ENOSYS;
  if (command.level != RDMA_OPTION_ID) return ENOSYS;
  switch (command.optname) {
    case RDMA_OPTION_ID_TOS:
      if (option.size() != 1) return EINVAL;
      id.type_of_service = option[0];
      return 0;
    case RDMA_OPTION_ID_REUSEADDR: {
      if (option.size() != sizeof(int)) return EINVAL;
      const bool reuse = number() != 0;
      if (!(reuse && id.state != IdState::kListen) && id.state != IdState::kIdle) return EINVAL;
      id.reuse_address = reuse;
      return 0;
    }
    case RDMA_OPTION_ID_AFONLY:
      if (option.size() != sizeof(int)) return EINVAL;
      if (id.state != IdState::kIdle && id.state != IdState::kAddressBound) return EINVAL;
      id.only_family = number() != 0;
      id.only_family_is_set = true;
      return 0;
    case RDMA_OPTION_ID_ACK_TIMEOUT:
      if (option.size() != 1 || id.qp_type != uapi::kReliableConnected || option[0] > 31) return EINVAL;
      id.ack_timeout = option[0];
      return 0;
    default:
      return ENOSYS;
  }
}

// A route that the program has found by itself: what of it has a meaning on Ethernet is taken.
int Ucma::set_path(Id& id, std::span<const uint8_t> records) {
  if (records.size() % sizeof(ib_path_rec_data) != 0) return EINVAL;
  for (; !records.empty(); records = records.subspan(sizeof(ib_path_rec_data))) {
    ib_path_rec_data data;
    std::memcpy(&data, records.data(), sizeof data);
    if (data.flags != kPathFlags) continue;
    if (id.device_port == 0) return EINVAL;
    PathRecord record;
    std::memcpy(&record, data.path_rec, sizeof record);
    if (record.source != gid_of(id.source) || record.destination != gid_of(id.destination)) return EINVAL;
    if (const int error = resolve_route(id); error != 0) return error;
    const uint32_t label = swap_to_big_endian(record.flow_label_and_hop_limit);
    id.path->flow_label = label >> 8 & 0xFFFFF;
    id.path->hop_limit = static_cast<uint8_t>(label);
    id.path->traffic_class = record.traffic_class;
    id.path->packet_life_time = record.packet_life_time & 0x1F;
    return 0;
  }
  return EINVAL;
}

int Ucma::migrate(uint32_t client, uint32_t from, uint32_t number, Answer& answer) {
  Id* const id = id_of(from, number);
  if (id == nullptr) return ENOENT;
  rdma_ucm_migrate_resp bytes{id->events_reported};
  if (client != from) {
    Client& source = clients_.at(from);
    Client& target = clients_.at(client);
    if (target.ids.size() >= kMostIds) return ENOMEM;
    source.ids.erase(number);
    target.ids.insert(number);
    id->client = client;
    for (auto each = source.events.begin(); each != source.events.end();) {
      if (each->id == number) {
        target.events.push_back(std::move(*each));
        each = source.events.erase(each);
      } else {
        ++each;
      }
    }
    if (!target.events.empty()) signal(client);
  }
  return respond(bytes, sizeof bytes, answer);
}

}  // namespace weft::cm
