#include "verbs/cm/ucma.hpp"

#include <rdma/ib_user_verbs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

#include "verbs/cm/socket_addresses.hpp"
#include "verbs/cm/uapi.hpp"

namespace weft::cm {

namespace {

// An IPv4 address fills the last four bytes only, and the others are zeros there.
Gid address_in(const IpAddressing& addressing, uint64_t high, uint64_t low) {
  if (addressing.ip_version == 4) return gid_of(uint64_t{0}, 0xFFFF00000000 | static_cast<uint32_t>(low));
  return gid_of(high, low);
}
Gid source_of(const IpAddressing& addressing) {
  return address_in(addressing, addressing.source_address_high, addressing.source_address_low);
}
Gid destination_of(const IpAddressing& addressing) {
  return address_in(addressing, addressing.destination_address_high, addressing.destination_address_low);
}

}  // namespace

Ucma::Ucma(Device device, Surroundings& surroundings, uint64_t seed)
    : device_(std::move(device)),
      surroundings_(surroundings),
      random_(seed, "connection management"),
      connections_(device_.node_guid, device_.ack_delay, static_cast<uint32_t>(random_.next_u64())) {
  std::set<uint8_t> numbers;
  for (const DevicePort& port : device_.ports) {
    if (port.number == 0 || !numbers.insert(port.number).second)
      throw std::invalid_argument("ports of a device: number " + std::to_string(port.number) +
                                  " (valid: from 1, each once)");
    if (port.mtu < 1 || port.mtu > 5)
      throw std::invalid_argument("port " + std::to_string(port.number) + ": mtu " +
                                  std::to_string(port.mtu) + " (valid: 1 to 5)");
  }
  if (numbers.empty()) throw std::invalid_argument("a device without ports");
}

uint32_t Ucma::open_client() {
  clients_[next_client_];
  return next_client_++;
}

void Ucma::close_client(uint32_t number) {
  const auto client = clients_.find(number);
  if (client == clients_.end()) return;
  while (!client->second.ids.empty()) destroy_id(*client->second.ids.begin());
  clients_.erase(client);
  settle();
}

bool Ucma::has_events(uint32_t client) const {
  const auto found = clients_.find(client);
  return found != clients_.end() && !found->second.events.empty();
}

void Ucma::receive(const Arrival& arrival, std::span<const uint8_t> mad) {
  connections_.receive(surroundings_.now(), arrival, mad);
  settle();
}

void Ucma::advance() {
  connections_.advance(surroundings_.now());
  settle();
}

// Hands on what the connections have to say, until they have nothing more. Messages to this host never reach
// the network, as an adapter's do not.
void Ucma::settle() {
  std::vector<Outgoing> outgoing;
  std::deque<Event> events;
  while (true) {
    outgoing = connections_.take_outgoing();
    events = connections_.take_events();
    if (outgoing.empty() && events.empty()) return;
    for (const Event& event : events) on_event(event);
    for (const Outgoing& message : outgoing) {
      if (const DevicePort* const port = port_of(message.path.remote); port != nullptr) {
        connections_.receive(surroundings_.now(), {port->number, message.path.remote, message.path.local},
                             message.mad);
      } else {
        surroundings_.send(message);
      }
    }
  }
}

// ---- IDs

Ucma::Id* Ucma::make_id(uint32_t client) {
  std::set<uint32_t>& of_client = clients_.at(client).ids;
  if (of_client.size() >= kMostIds) return nullptr;
  // The lowest number that is free, as the kernel: librdmacm indexes a table with it.
  uint32_t number = next_id_;
  if (free_ids_.empty()) {
    ++next_id_;
  } else {
    number = *free_ids_.begin();
    free_ids_.erase(free_ids_.begin());
  }
  auto& id = ids_[number] = std::make_unique<Id>();
  id->number = number;
  id->client = client;
  id->starting_psn = static_cast<uint32_t>(random_.next_u64()) & 0xFFFFFF;
  of_client.insert(number);
  return id.get();
}

Ucma::Id* Ucma::id_of(uint32_t client, uint32_t number) {
  const auto found = ids_.find(number);
  // Another client's ID is as one that is not there.
  return found == ids_.end() || found->second->client != client ? nullptr : found->second.get();
}

uint32_t Ucma::destroy_id(uint32_t number) {
  Id& id = *ids_.at(number);
  if (id.connection != 0) {
    id_of_connection_.erase(id.connection);
    connections_.destroy(surroundings_.now(), id.connection);
  }
  if (id.service_id != 0) connections_.end_listen(id.service_id);
  release_port(id);
  Client& client = clients_.at(id.client);
  // Connections whose request the client has not seen end with their listener.
  std::vector<uint32_t> unseen;
  std::erase_if(client.events, [&](const Waiting& waiting) {
    if (waiting.id != number) return false;
    if (waiting.request_id) unseen.push_back(*waiting.request_id);
    return true;
  });
  while (!id.groups.empty()) leave_group(*id.groups.begin());
  const uint32_t reported = id.events_reported;
  // Nor is it named any more by an event that its listener's client has not seen: its number will be
  // another's.
  for (auto& [each, other] : clients_) {
    std::erase_if(other.events, [&](const Waiting& waiting) {
      if (waiting.request_id != number) return false;
      ++ids_.at(waiting.id)->backlog;
      return true;
    });
  }
  client.ids.erase(number);
  ids_.erase(number);
  free_ids_.insert(number);
  for (const uint32_t each : unseen) {
    if (ids_.contains(each)) destroy_id(each);
  }
  return reported;
}

void Ucma::leave_group(uint32_t number) {
  const auto found = groups_.find(number);
  const Group& group = found->second;
  if (group.receives) surroundings_.leave(group.port, group.gid);
  Id& id = *ids_.at(group.id);
  std::erase_if(clients_.at(id.client).events,
                [&](const Waiting& waiting) { return waiting.group == number; });
  id.groups.erase(number);
  groups_.erase(found);
}

// ---- events

void Ucma::push(const Id& id, Waiting waiting) {
  Client& client = clients_.at(id.client);
  waiting.id = id.number;
  client.events.push_back(std::move(waiting));
  signal(id.client);
}

void Ucma::signal(uint32_t number) {
  Client& client = clients_.at(number);
  if (!client.is_signalled) surroundings_.events_wait(number);
  client.is_signalled = true;
}

bool Ucma::end_signal(uint32_t number) {
  const auto client = clients_.find(number);
  if (client == clients_.end() || !client->second.is_signalled || !client->second.events.empty())
    return false;
  client->second.is_signalled = false;
  return true;
}

void Ucma::push_plain(const Id& id, uint32_t event, int status) {
  Waiting waiting;
  waiting.bytes.uid = id.uid;
  waiting.bytes.id = id.number;
  waiting.bytes.event = event;
  waiting.bytes.status = static_cast<uint32_t>(status);
  push(id, std::move(waiting));
}

void Ucma::on_event(const Event& event) {
  if (event.kind == EventKind::kReqReceived || event.kind == EventKind::kSidrReqReceived)
    return on_request(event);
  const auto found = id_of_connection_.find(event.id);
  if (found == id_of_connection_.end()) return;
  Id& id = *ids_.at(found->second);
  const IdState expected = event.kind == EventKind::kTimeWaitOver ? IdState::kDisconnect : IdState::kConnect;
  if (id.state == expected) on_connection_event(id, event);
}

void Ucma::on_connection_event(Id& id, const Event& event) {
  Waiting waiting;
  rdma_ucm_event_resp& bytes = waiting.bytes;
  switch (event.kind) {
    case EventKind::kReqTimedOut:
    case EventKind::kRepTimedOut:
    case EventKind::kSidrReqTimedOut:
      bytes.event = uapi::kUnreachable;
      bytes.status = static_cast<uint32_t>(-ETIMEDOUT);
      break;
    case EventKind::kRepReceived: {
      bytes.event = uapi::kConnectResponse;
      const Rep& rep = std::get<Rep>(event.message.body);
      bytes.param.conn = connection_of(rep);
      std::memcpy(bytes.param.conn.private_data, event.message.private_data.data(), Rep::kPrivateBytes);
      bytes.param.conn.private_data_len = Rep::kPrivateBytes;
      bytes.ece.vendor_id = static_cast<uint32_t>(rep.vendor_id_high) << 16 |
                            static_cast<uint32_t>(rep.vendor_id_middle) << 8 | rep.vendor_id_low;
      bytes.ece.attr_mod = event.message.mad.attribute_modifier;
      break;
    }
    case EventKind::kRtuReceived:
      bytes.event = uapi::kEstablished;
      break;
    case EventKind::kDreqTimedOut:
      bytes.status = static_cast<uint32_t>(-ETIMEDOUT);
      [[fallthrough]];
    case EventKind::kDreqReceived:
    case EventKind::kDrepReceived:
      id.state = IdState::kDisconnect;
      bytes.event = uapi::kDisconnected;
      break;
    case EventKind::kTimeWaitOver:
      bytes.event = uapi::kTimeWaitExit;
      break;
    case EventKind::kRejReceived: {
      bytes.event = uapi::kRejected;
      bytes.status = std::get<Rej>(event.message.body).reason;
      std::memcpy(bytes.param.conn.private_data, event.message.private_data.data(), Rej::kPrivateBytes);
      bytes.param.conn.private_data_len = Rej::kPrivateBytes;
      break;
    }
    case EventKind::kSidrRepReceived:
      return on_service_reply(id, event.message);
    default:
      return;
  }
  if (id.uid == 0) return;  // not accepted yet: accepting will fail
  bytes.uid = id.uid;
  bytes.id = id.number;
  push(id, std::move(waiting));
}

rdma_ucm_conn_param Ucma::connection_of(const Rep& rep) const {
  rdma_ucm_conn_param parameters{};
  parameters.responder_resources = rep.initiator_depth;
  parameters.initiator_depth = rep.responder_resources;
  parameters.flow_control = rep.flow_control;
  parameters.rnr_retry_count = rep.rnr_retry_count;
  parameters.srq = rep.srq;
  parameters.qp_num = rep.local_qpn;
  return parameters;
}

void Ucma::on_service_reply(Id& id, const Message& message) {
  const SidrRep& reply = std::get<SidrRep>(message.body);
  Waiting waiting;
  rdma_ucm_event_resp& bytes = waiting.bytes;
  bytes.uid = id.uid;
  bytes.id = id.number;
  rdma_ucm_ud_param& parameters = bytes.param.ud;
  std::memcpy(parameters.private_data, message.private_data.data(), SidrRep::kPrivateBytes);
  parameters.private_data_len = SidrRep::kPrivateBytes;
  if (reply.status == kSidrValid) {
    bytes.event = uapi::kEstablished;
    id.qkey = reply.qkey;
    parameters.qp_num = reply.qpn;
    parameters.qkey = reply.qkey;
    parameters.ah_attr = address_handle(*id.path);
  } else {
    bytes.event = uapi::kUnreachable;
    bytes.status = reply.status;
  }
  push(id, std::move(waiting));
}

ib_uverbs_ah_attr Ucma::address_handle(const Path& path) const {
  ib_uverbs_ah_attr handle{};
  std::copy(path.remote.begin(), path.remote.end(), handle.grh.dgid);
  handle.grh.flow_label = path.flow_label;
  handle.grh.sgid_index = gid_index(path.port, path.local);
  handle.grh.hop_limit = path.hop_limit;
  handle.grh.traffic_class = path.traffic_class;
  handle.sl = path.service_level;
  handle.is_global = 1;
  handle.port_num = path.port;
  return handle;
}

// ---- requests of other hosts

void Ucma::on_request(const Event& event) {
  const TimePs now = surroundings_.now();
  const bool is_datagram = event.kind == EventKind::kSidrReqReceived;
  const Connection& connection = *connections_.find(event.id);
  IpAddressing addressing;
  wire::load_header(addressing, event.message.private_data.data());
  Id* const listener = listener_of(connection.service_id, addressing);
  const uint8_t type = is_datagram                         ? uapi::kDatagram
                       : connection.transport == kReliable ? uapi::kReliableConnected
                                                           : uapi::kUnreliableConnected;
  if (listener == nullptr || listener->qp_type != type) return connections_.destroy(now, event.id);
  const DevicePort* const port = port_of(connection.path.local);
  if (port == nullptr || port->number != connection.path.port) {
    const DevicePort* const arrived = port_numbered(connection.path.port);
    std::span<const uint8_t> own;
    if (arrived != nullptr && !arrived->addresses.empty()) own = arrived->addresses.front().gid;
    if (!is_datagram) connections_.reject(now, event.id, kInvalidGid, own, {});
    return connections_.destroy(now, event.id);
  }
  const bool has_room = listener->backlog > 0 && clients_.at(listener->client).events.size() < kMostEvents;
  Id* const id = has_room ? make_id(listener->client) : nullptr;
  if (id == nullptr) {
    // It may come again once the client has taken a request.
    ++forgotten_requests_;
    return connections_.destroy(now, event.id, true);
  }
  --listener->backlog;
  id->port_space = listener->port_space;
  id->qp_type = type;
  id->state = IdState::kConnect;
  id->device_port = port->number;
  id->connection = event.id;
  id_of_connection_[event.id] = id->number;
  set_gid(id->source, destination_of(addressing));
  set_port(id->source, static_cast<uint16_t>(connection.service_id));
  set_gid(id->destination, source_of(addressing));
  set_port(id->destination, addressing.source_port);
  if (!is_datagram) id->path = connection.path;

  Waiting waiting;
  waiting.request_id = id->number;
  waiting.bytes.uid = listener->uid;
  waiting.bytes.id = id->number;
  waiting.bytes.event = uapi::kConnectRequest;
  fill_request(waiting.bytes, event.message, is_datagram);
  push(*listener, std::move(waiting));
}

void Ucma::fill_request(rdma_ucm_event_resp& bytes, const Message& message, bool is_datagram) const {
  const uint8_t* const data = message.private_data.data() + kIpAddressingBytes;
  if (is_datagram) {
    bytes.param.ud.private_data_len = SidrReq::kPrivateBytes - kIpAddressingBytes;
    std::memcpy(bytes.param.ud.private_data, data, bytes.param.ud.private_data_len);
    return;
  }
  const Req& req = std::get<Req>(message.body);
  rdma_ucm_conn_param& parameters = bytes.param.conn;
  parameters.private_data_len = Req::kPrivateBytes - kIpAddressingBytes;
  std::memcpy(parameters.private_data, data, parameters.private_data_len);
  parameters.responder_resources = req.initiator_depth;
  parameters.initiator_depth = req.responder_resources;
  parameters.flow_control = req.flow_control;
  parameters.retry_count = req.retry_count;
  parameters.rnr_retry_count = req.rnr_retry_count;
  parameters.srq = req.srq;
  parameters.qp_num = req.local_qpn;
  bytes.ece.vendor_id = req.vendor_id;
  bytes.ece.attr_mod = message.mad.attribute_modifier;
}

Ucma::Id* Ucma::listener_of(uint64_t service_id, const IpAddressing& addressing) {
  if (addressing.major_version != 0 || addressing.minor_version != 0) return nullptr;
  if (addressing.ip_version != 4 && addressing.ip_version != 6) return nullptr;
  const auto owners =
      ports_.find({static_cast<uint16_t>(service_id >> 16), static_cast<uint16_t>(service_id)});
  if (owners == ports_.end()) return nullptr;
  for (Id* const id : owners->second) {
    if (id->state == IdState::kListen && matches(*id, addressing)) return id;
  }
  return nullptr;
}

bool Ucma::matches(const Id& listener, const IpAddressing& addressing) const {
  const bool listens_to_any = is_any(listener.source);
  if (listens_to_any && !listener.only_family) return true;
  const int family = listener.source.ss_family;
  if (family == kAfIb) return true;
  if ((family == AF_INET ? 4 : 6) != addressing.ip_version) return false;
  return listens_to_any || destination_of(addressing) == gid_of(listener.source);
}

// ---- the device's addresses

const DevicePort* Ucma::port_of(const Gid& gid) const {
  for (const DevicePort& port : device_.ports) {
    for (const DeviceAddress& address : port.addresses) {
      if (address.gid == gid) return &port;
    }
  }
  return nullptr;
}

const DevicePort* Ucma::port_numbered(uint8_t number) const {
  for (const DevicePort& port : device_.ports) {
    if (port.number == number) return &port;
  }
  return nullptr;
}

// The port's address of the same family that has the most leading bits in common.
const Gid* Ucma::own_address(const DevicePort& port, const Gid& near) const {
  const auto common = [&](const Gid& gid) {
    size_t bits = 0;
    while (bits < 128 && ((gid[bits / 8] ^ near[bits / 8]) >> (7 - bits % 8) & 1) == 0) ++bits;
    return bits;
  };
  const Gid* best = nullptr;
  for (const DeviceAddress& address : port.addresses) {
    if (is_ipv4(address.gid) != is_ipv4(near)) continue;
    if (best == nullptr || common(address.gid) > common(*best)) best = &address.gid;
  }
  return best;
}

uint8_t Ucma::gid_index(uint8_t number, const Gid& gid) const {
  const DevicePort* const port = port_numbered(number);
  if (port == nullptr) return 0;
  for (const DeviceAddress& address : port->addresses) {
    if (address.gid == gid) return address.index;
  }
  return 0;
}

}  // namespace weft::cm
