#include "verbs/cm/connections.hpp"

#include <algorithm>
#include <cerrno>

namespace weft::cm {

namespace {

constexpr TimePs kPsPerMs = kPsPerSecond / 1000;
constexpr uint32_t kPsnMask = 0xFFFFFF;
// The upper half of transaction IDs; the lower one is the communication ID.
constexpr uint64_t kTransactionHigh = uint64_t{1} << 32;
// As long as a requester may send the same request again.
constexpr TimePs kSidrMemoryPs = (kMaxRetries + 2) * (kPsPerMs << (kResponseTimeout - 8));

Path path_back(const Arrival& arrival) {
  Path path;
  path.port = arrival.port;
  path.local = arrival.local;
  path.remote = arrival.remote;
  return path;
}

template <class Part>
Message message_of(uint64_t transaction_id, const Part& part, std::span<const uint8_t> private_data = {}) {
  Message message;
  message.mad.transaction_id = transaction_id;
  message.body = part;
  message.set_private_data(private_data);
  return message;
}

}  // namespace

TimePs timeout_ps(uint8_t exponent) { return kPsPerMs << (exponent > 8 ? exponent - 8 : 0); }

uint8_t ack_timeout(uint8_t ack_delay, uint8_t packet_life_time) {
  int timeout = packet_life_time + 1;
  if (timeout >= ack_delay) {
    timeout += ack_delay >= timeout - 1 ? 1 : 0;
  } else {
    timeout = ack_delay + (timeout >= ack_delay - 1 ? 1 : 0);
  }
  return static_cast<uint8_t>(std::min(31, timeout));
}

const char* state_name(State state) {
  static constexpr const char* kNames[] = {"idle",
                                           "req_sent",
                                           "mra_req_received",
                                           "req_received",
                                           "rep_sent",
                                           "mra_rep_received",
                                           "rep_received",
                                           "established",
                                           "dreq_sent",
                                           "dreq_received",
                                           "time_wait",
                                           "sidr_req_sent",
                                           "sidr_req_received"};
  return kNames[static_cast<size_t>(state)];
}

const char* event_name(EventKind kind) {
  static constexpr const char* kNames[] = {
      "req_received",      "rep_received",      "rtu_received",      "rej_received",   "dreq_received",
      "drep_received",     "req_timed_out",     "rep_timed_out",     "dreq_timed_out", "time_wait_over",
      "sidr_req_received", "sidr_rep_received", "sidr_req_timed_out"};
  return kNames[static_cast<size_t>(kind)];
}

Connections::Connections(uint64_t node_guid, uint8_t ack_delay, uint32_t seed)
    : node_guid_(node_guid), ack_delay_(ack_delay), id_mask_(seed) {}

void Connections::end_listen(uint64_t service_id) {
  const auto found = listens_.find(service_id);
  if (found != listens_.end() && --found->second == 0) listens_.erase(found);
}

// ---- connections and where they are found

Connection* Connections::make() {
  if (connections_.size() >= kMostConnections) return nullptr;
  uint32_t id;
  do {
    id = next_id_++ ^ id_mask_;
  } while (id == 0 || connections_.contains(id));
  Connection& connection = connections_[id];
  connection.id = id;
  return &connection;
}

Connection* Connections::owned(uint32_t id) {
  const auto found = connections_.find(id);
  return found == connections_.end() || found->second.is_orphan ? nullptr : &found->second;
}

const Connection* Connections::find(uint32_t id) const {
  const auto found = connections_.find(id);
  return found == connections_.end() || found->second.is_orphan ? nullptr : &found->second;
}

Connection* Connections::matching(uint32_t id, uint32_t remote_id) {
  const auto found = connections_.find(id);
  return found == connections_.end() || found->second.remote_id != remote_id ? nullptr : &found->second;
}

void Connections::erase(Connection& connection) {
  set_deadline(connection, kNever);
  leave_remote_ids(connection);
  leave_remote_qpns(connection);
  connections_.erase(uint32_t{connection.id});
}

void Connections::set_deadline(Connection& connection, TimePs deadline) {
  if (connection.deadline_ps != kNever) deadlines_.erase({connection.deadline_ps, connection.id});
  connection.deadline_ps = deadline;
  if (deadline != kNever) deadlines_.insert({deadline, connection.id});
}

void Connections::leave_remote_ids(Connection& connection) {
  if (connection.in_remote_ids) remote_ids_.erase({connection.remote_id, connection.remote_guid});
  connection.in_remote_ids = false;
}

void Connections::leave_remote_qpns(Connection& connection) {
  if (connection.in_remote_qpns) remote_qpns_.erase({connection.remote_qpn, connection.remote_guid});
  connection.in_remote_qpns = false;
}

void Connections::reset(Connection& connection) {
  set_deadline(connection, kNever);
  leave_remote_ids(connection);
  leave_remote_qpns(connection);
  connection.state = State::kIdle;
}

// The remote ID stays known, so that a request that comes late does not begin another connection. The queue
// pair does not: another connection may use it at once.
void Connections::enter_time_wait(TimePs now, Connection& connection) {
  leave_remote_qpns(connection);
  connection.state = State::kTimeWait;
  set_deadline(connection, now + timeout_ps(connection.ack_timeout));
}

void Connections::report(const Connection& connection, EventKind kind, const Message* message) {
  if (connection.is_orphan) return;
  Event& event = events_.emplace_back();
  event.kind = kind;
  event.id = connection.id;
  if (message != nullptr) event.message = *message;
}

// ---- messages that are sent

void Connections::send(const Path& path, Message message) {
  Outgoing& outgoing = outgoing_.emplace_back();
  outgoing.path = path;
  outgoing.mad = build_message(message);
  const auto attribute = std::visit(
      [](const auto& part) { return std::remove_cvref_t<decltype(part)>::kAttribute; }, message.body);
  ++counters_.sent[attribute - kReq];
}

void Connections::send_until_answered(TimePs now, Connection& connection, Message message) {
  send(connection.path, std::move(message));
  connection.awaiting_answer = outgoing_.back().mad;
  connection.retries_left = connection.max_retries;
  connection.message_retry_ps = connection.retry_after_ps;
  set_deadline(connection, now + connection.message_retry_ps);
}

void Connections::send_rej(const Connection& connection, uint16_t reason, std::span<const uint8_t> info,
                           std::span<const uint8_t> private_data) {
  Rej rej;
  rej.local_comm_id = connection.id;
  rej.remote_comm_id = connection.remote_id;
  rej.message = connection.state == State::kReqReceived   ? kAboutReq
                : connection.state == State::kRepReceived ? kAboutRep
                                                          : kAboutOther;
  rej.reason = reason;
  rej.info_length = static_cast<uint8_t>(info.size());
  Message message = message_of(connection.transaction_id, rej, private_data);
  std::copy(info.begin(), info.end(), message.info.begin());
  send(connection.path, std::move(message));
}

// Answers a REQ or REP that belongs to no connection.
void Connections::send_rej_stateless(const Arrival& arrival, const Message& of, uint16_t reason,
                                     uint8_t about) {
  Rej rej;
  rej.message = about;
  rej.reason = reason;
  if (const auto* req = std::get_if<Req>(&of.body)) {
    rej.remote_comm_id = req->local_comm_id;
  } else if (const auto* rep = std::get_if<Rep>(&of.body)) {
    rej.remote_comm_id = rep->local_comm_id;
    rej.local_comm_id = rep->remote_comm_id;
  }
  send(path_back(arrival), message_of(of.mad.transaction_id, rej));
}

void Connections::send_mra(const Connection& connection, uint8_t about) {
  Mra mra;
  mra.local_comm_id = connection.id;
  mra.remote_comm_id = connection.remote_id;
  mra.message = about;
  mra.service_timeout = kServiceTimeout;
  send(connection.path, message_of(connection.transaction_id, mra));
}

void Connections::send_rtu(const Connection& connection) {
  send(connection.path, message_of(connection.transaction_id, Rtu{connection.id, connection.remote_id}));
}

void Connections::send_drep(const Connection& connection) {
  send(connection.path, message_of(connection.transaction_id, Drep{connection.id, connection.remote_id}));
}

void Connections::send_dreq(TimePs now, Connection& connection) {
  connection.transaction_id = kTransactionHigh | connection.id;
  const Dreq dreq{connection.id, connection.remote_id, connection.remote_qpn};
  send_until_answered(now, connection, message_of(connection.transaction_id, dreq));
  connection.state = State::kDreqSent;
}

// ---- what the owner does

uint32_t Connections::connect(TimePs now, const Path& path, uint64_t service_id, uint8_t transport,
                              const QueuePairFacts& queue_pair, std::span<const uint8_t> private_data) {
  Connection* const connection = make();
  if (connection == nullptr) return 0;
  connection->path = path;
  connection->service_id = service_id;
  connection->transport = transport;
  connection->local_qpn = queue_pair.number;
  connection->initiator_depth = queue_pair.initiator_depth;
  connection->responder_resources = queue_pair.responder_resources;
  connection->retry_count = queue_pair.retry_count;
  connection->path_mtu = path.mtu;
  connection->ack_timeout = static_cast<uint8_t>(std::min(31, path.packet_life_time + 1));
  connection->retry_after_ps = 2 * timeout_ps(path.packet_life_time) + timeout_ps(kResponseTimeout);
  connection->max_retries = kMaxRetries;
  connection->transaction_id = kTransactionHigh | connection->id;

  Req req;
  req.local_comm_id = connection->id;
  req.vendor_id = queue_pair.vendor_id;
  req.service_id = service_id;
  req.local_ca_guid = node_guid_;
  req.local_qpn = queue_pair.number;
  req.responder_resources = queue_pair.responder_resources;
  req.initiator_depth = queue_pair.initiator_depth;
  req.remote_response_timeout = kResponseTimeout;
  req.transport = transport;
  req.flow_control = queue_pair.flow_control;
  req.starting_psn = queue_pair.starting_psn;
  req.local_response_timeout = kResponseTimeout;
  req.retry_count = queue_pair.retry_count;
  req.path_mtu = path.mtu;
  req.rnr_retry_count = queue_pair.rnr_retry_count;
  req.max_cm_retries = kMaxRetries;
  req.srq = queue_pair.srq;
  const bool is_routed = path.hop_limit > 1;
  req.primary_local_lid = req.primary_remote_lid = is_routed ? kPermissiveLid : 0;
  req.primary_local_gid_prefix = gid_prefix(path.local);
  req.primary_local_gid_interface = gid_interface(path.local);
  req.primary_remote_gid_prefix = gid_prefix(path.remote);
  req.primary_remote_gid_interface = gid_interface(path.remote);
  req.primary_flow_label = path.flow_label;
  req.primary_traffic_class = path.traffic_class;
  req.primary_hop_limit = path.hop_limit;
  req.primary_service_level = path.service_level;
  req.primary_subnet_local = is_routed ? 0 : 1;
  req.primary_local_ack_timeout = cm::ack_timeout(ack_delay_, path.packet_life_time);
  Message message = message_of(connection->transaction_id, req, private_data);
  message.mad.attribute_modifier = queue_pair.vendor_options;
  send_until_answered(now, *connection, std::move(message));
  connection->state = State::kReqSent;
  return connection->id;
}

int Connections::accept(TimePs now, uint32_t id, const QueuePairFacts& queue_pair,
                        std::span<const uint8_t> private_data) {
  Connection* const connection = owned(id);
  if (connection == nullptr || connection->state != State::kReqReceived) return EINVAL;
  if (private_data.size() > Rep::kPrivateBytes) return EINVAL;
  connection->initiator_depth = queue_pair.initiator_depth;
  connection->responder_resources = queue_pair.responder_resources;
  connection->local_qpn = queue_pair.number;

  Rep rep;
  rep.local_comm_id = connection->id;
  rep.remote_comm_id = connection->remote_id;
  rep.local_qpn = queue_pair.number;
  rep.vendor_id_high = static_cast<uint8_t>(queue_pair.vendor_id >> 16);
  rep.vendor_id_middle = static_cast<uint8_t>(queue_pair.vendor_id >> 8);
  rep.vendor_id_low = static_cast<uint8_t>(queue_pair.vendor_id);
  rep.starting_psn = queue_pair.starting_psn;
  rep.responder_resources = queue_pair.responder_resources;
  rep.initiator_depth = queue_pair.initiator_depth;
  rep.target_ack_delay = ack_delay_;
  rep.flow_control = queue_pair.flow_control;
  rep.rnr_retry_count = queue_pair.rnr_retry_count;
  rep.srq = queue_pair.srq;
  rep.local_ca_guid = node_guid_;
  Message message = message_of(connection->transaction_id, rep, private_data);
  message.mad.attribute_modifier = queue_pair.vendor_options;
  send_until_answered(now, *connection, std::move(message));
  connection->state = State::kRepSent;
  return 0;
}

int Connections::confirm(TimePs, uint32_t id) {
  Connection* const connection = owned(id);
  if (connection == nullptr || connection->state != State::kRepReceived) return EINVAL;
  send_rtu(*connection);
  connection->state = State::kEstablished;
  return 0;
}

int Connections::reject(TimePs now, uint32_t id, uint16_t reason, std::span<const uint8_t> info,
                        std::span<const uint8_t> private_data) {
  Connection* const connection = owned(id);
  if (connection == nullptr || info.size() > Rej::kInfoBytes || private_data.size() > Rej::kPrivateBytes)
    return EINVAL;
  switch (connection->state) {
    case State::kReqSent:
    case State::kMraReqReceived:
    case State::kReqReceived:
    case State::kRepReceived:
      send_rej(*connection, reason, info, private_data);
      reset(*connection);
      return 0;
    case State::kRepSent:
    case State::kMraRepReceived:
      send_rej(*connection, reason, info, private_data);
      enter_time_wait(now, *connection);
      return 0;
    default:
      return EINVAL;
  }
}

int Connections::disconnect(TimePs now, uint32_t id) {
  Connection* const connection = owned(id);
  if (connection == nullptr || connection->state != State::kEstablished) return EINVAL;
  send_dreq(now, *connection);
  return 0;
}

int Connections::answer_disconnect(TimePs now, uint32_t id) {
  Connection* const connection = owned(id);
  if (connection == nullptr || connection->state != State::kDreqReceived) return EINVAL;
  send_drep(*connection);
  enter_time_wait(now, *connection);
  return 0;
}

int Connections::establish(TimePs, uint32_t id) {
  Connection* const connection = owned(id);
  if (connection == nullptr) return EINVAL;
  if (connection->state == State::kEstablished) return EISCONN;
  if (connection->state != State::kRepSent && connection->state != State::kMraRepReceived) return EINVAL;
  set_deadline(*connection, kNever);
  connection->state = State::kEstablished;
  report(*connection, EventKind::kRtuReceived);
  return 0;
}

uint32_t Connections::resolve_service(TimePs now, const Path& path, uint64_t service_id,
                                      std::span<const uint8_t> private_data) {
  Connection* const connection = make();
  if (connection == nullptr) return 0;
  connection->path = path;
  connection->service_id = service_id;
  connection->retry_after_ps = timeout_ps(kResponseTimeout);
  connection->max_retries = kMaxRetries;
  connection->transaction_id = kTransactionHigh | connection->id;
  SidrReq request;
  request.request_id = connection->id;
  request.service_id = service_id;
  send_until_answered(now, *connection, message_of(connection->transaction_id, request, private_data));
  connection->state = State::kSidrReqSent;
  return connection->id;
}

int Connections::answer_service(TimePs now, uint32_t id, uint8_t status, uint32_t qpn, uint32_t qkey,
                                uint32_t vendor_options, std::span<const uint8_t> private_data) {
  Connection* const connection = owned(id);
  if (connection == nullptr || connection->state != State::kSidrReqReceived) return EINVAL;
  if (private_data.size() > SidrRep::kPrivateBytes) return EINVAL;
  SidrRep reply;
  reply.request_id = connection->remote_id;
  reply.status = status;
  reply.qpn = qpn;
  reply.service_id = connection->service_id;
  reply.qkey = qkey;
  Message message = message_of(connection->transaction_id, reply, private_data);
  message.mad.attribute_modifier = vendor_options;
  send(connection->path, std::move(message));
  connection->state = State::kIdle;

  const SidrKey key{connection->remote_id, connection->path.remote};
  SidrReply& remembered = sidr_replies_[key];
  remembered.id = 0;
  remembered.reply = outgoing_.back();
  remembered.forget_ps = now + kSidrMemoryPs;
  sidr_forgotten_.emplace_back(remembered.forget_ps, key);
  return 0;
}

void Connections::destroy(TimePs now, uint32_t id, bool quietly) {
  Connection* const connection = owned(id);
  if (connection == nullptr) return;
  switch (connection->state) {
    case State::kReqSent:
    case State::kMraReqReceived: {
      // The peer finds the connection by this side's ID and GUID: its own ID is not known yet.
      std::array<uint8_t, 8> guid;
      store_big_endian<uint64_t>(guid.data(), node_guid_);
      send_rej(*connection, kTimeout, guid, {});
      break;
    }
    case State::kReqReceived:
      if (!quietly) send_rej(*connection, kConsumerDefined, {}, {});
      break;
    case State::kRepReceived:
      send_rej(*connection, kConsumerDefined, {}, {});
      break;
    case State::kRepSent:
    case State::kMraRepReceived:
      // Nothing answers a REJ. If it is lost, and the peer is connected already, the DREQ ends the
      // connection.
      send_rej(*connection, kConsumerDefined, {}, {});
      send_dreq(now, *connection);
      break;
    case State::kEstablished:
      send_dreq(now, *connection);
      break;
    case State::kDreqReceived:
      send_drep(*connection);
      enter_time_wait(now, *connection);
      break;
    case State::kSidrReqReceived:
      if (quietly) {
        sidr_replies_.erase({connection->remote_id, connection->path.remote});
      } else {
        answer_service(now, id, kSidrRejected, 0, 0, 0, {});
      }
      break;
    default:
      break;
  }
  if (connection->state == State::kDreqSent || connection->state == State::kTimeWait) {
    leave_remote_qpns(*connection);
    connection->is_orphan = true;
  } else {
    erase(*connection);
  }
}

// ---- messages that have come

void Connections::receive(TimePs now, const Arrival& arrival, std::span<const uint8_t> mad) {
  Message message;
  if (const ParseError error = parse_message(mad, message); error != ParseError::kNone) {
    ++counters_.parse_errors[static_cast<size_t>(error)];
    return;
  }
  ++counters_.received[message.mad.attribute_id - kReq];
  if (const auto* req = std::get_if<Req>(&message.body)) return on_req(now, arrival, message, *req);
  if (const auto* mra = std::get_if<Mra>(&message.body)) return on_mra(now, *mra);
  if (const auto* rej = std::get_if<Rej>(&message.body)) return on_rej(now, message, *rej);
  if (const auto* rep = std::get_if<Rep>(&message.body)) return on_rep(now, arrival, message, *rep);
  if (const auto* rtu = std::get_if<Rtu>(&message.body)) return on_rtu(message, *rtu);
  if (const auto* dreq = std::get_if<Dreq>(&message.body)) return on_dreq(now, arrival, message, *dreq);
  if (const auto* drep = std::get_if<Drep>(&message.body)) return on_drep(now, message, *drep);
  if (const auto* request = std::get_if<SidrReq>(&message.body))
    return on_sidr_req(now, arrival, message, *request);
  if (const auto* reply = std::get_if<SidrRep>(&message.body)) return on_sidr_rep(message, *reply);
}

void Connections::on_req(TimePs now, const Arrival& arrival, const Message& message, const Req& req) {
  const RemoteKey id_key{req.local_comm_id, req.local_ca_guid};
  const RemoteKey qpn_key{req.local_qpn, req.local_ca_guid};
  if (const auto found = remote_ids_.find(id_key); found != remote_ids_.end())
    return on_duplicate_req(arrival, message, connections_.at(found->second));
  if (req.transport != kReliable && req.transport != kUnreliable)
    return send_rej_stateless(arrival, message, kInvalidTransport, kAboutReq);
  if (req.path_mtu < 1 || req.path_mtu > 5)
    return send_rej_stateless(arrival, message, kInvalidMtu, kAboutReq);
  // Answers go where the request has come from, not where its body says.
  if (gid_of(req.primary_local_gid_prefix, req.primary_local_gid_interface) != arrival.remote)
    return send_rej_stateless(arrival, message, kInvalidGid, kAboutReq);
  if (const auto found = remote_qpns_.find(qpn_key); found != remote_qpns_.end()) {
    send_rej_stateless(arrival, message, kStaleConnection, kAboutReq);
    return end_stale(now, found->second);
  }
  if (!listens_.contains(req.service_id))
    return send_rej_stateless(arrival, message, kInvalidServiceId, kAboutReq);
  Connection* const connection = make();
  if (connection == nullptr) {
    ++counters_.without_room;
    return;
  }
  connection->remote_id = req.local_comm_id;
  connection->remote_guid = req.local_ca_guid;
  connection->remote_qpn = req.local_qpn;
  connection->service_id = req.service_id;
  connection->transport = req.transport;
  connection->transaction_id = message.mad.transaction_id;
  connection->retry_after_ps = timeout_ps(req.local_response_timeout);
  connection->max_retries = req.max_cm_retries;
  connection->initiator_depth = req.responder_resources;
  connection->responder_resources = req.initiator_depth;
  connection->path_mtu = req.path_mtu;
  connection->send_psn = req.starting_psn;
  connection->retry_count = req.retry_count;
  connection->rnr_retry_count = req.rnr_retry_count;
  Path& path = connection->path;
  path.port = arrival.port;
  path.local = gid_of(req.primary_remote_gid_prefix, req.primary_remote_gid_interface);
  path.remote = gid_of(req.primary_local_gid_prefix, req.primary_local_gid_interface);
  path.flow_label = req.primary_flow_label;
  path.traffic_class = req.primary_traffic_class;
  path.hop_limit = req.primary_hop_limit;
  path.service_level = req.primary_service_level;
  path.mtu = req.path_mtu;
  path.packet_life_time =
      static_cast<uint8_t>(req.primary_local_ack_timeout > 0 ? req.primary_local_ack_timeout - 1 : 0);
  connection->ack_timeout = static_cast<uint8_t>(std::min(31, path.packet_life_time + 1));
  connection->state = State::kReqReceived;
  remote_ids_[id_key] = connection->id;
  remote_qpns_[qpn_key] = connection->id;
  connection->in_remote_ids = connection->in_remote_qpns = true;
  report(*connection, EventKind::kReqReceived, &message);
}

void Connections::on_duplicate_req(const Arrival& arrival, const Message& message,
                                   const Connection& connection) {
  count_duplicate(kReq);
  if (connection.state == State::kReqReceived) {
    send_mra(connection, kAboutReq);  // the owner has not answered yet
  } else if (connection.state == State::kTimeWait) {
    send_rej_stateless(arrival, message, kStaleConnection, kAboutReq);
  }
}

// The peer's queue pair has begun another connection, so this one is over at its end.
void Connections::end_stale(TimePs now, uint32_t id) {
  Connection& connection = connections_.at(id);
  if (connection.state == State::kEstablished) send_dreq(now, connection);
}

void Connections::on_mra(TimePs now, const Mra& mra) {
  Connection* const connection =
      matching(mra.remote_comm_id, mra.message == kAboutReq ? 0 : mra.local_comm_id);
  if (connection == nullptr) return count_unmatched(kMra);
  if (connection->state == State::kReqSent && mra.message == kAboutReq) {
    connection->state = State::kMraReqReceived;
  } else if (connection->state == State::kRepSent && mra.message == kAboutRep) {
    connection->state = State::kMraRepReceived;
  } else {
    return connection->state == State::kMraReqReceived || connection->state == State::kMraRepReceived
               ? count_duplicate(kMra)
               : count_unmatched(kMra);
  }
  connection->message_retry_ps = timeout_ps(mra.service_timeout) + timeout_ps(connection->ack_timeout);
  set_deadline(*connection, now + connection->message_retry_ps);
}

void Connections::on_rej(TimePs now, const Message& message, const Rej& rej) {
  Connection* connection = nullptr;
  if (rej.reason == kTimeout) {
    const auto found = remote_ids_.find({rej.local_comm_id, load_big_endian<uint64_t>(message.info.data())});
    if (found != remote_ids_.end()) connection = &connections_.at(found->second);
  } else {
    connection = matching(rej.remote_comm_id, rej.message == kAboutReq ? 0 : rej.local_comm_id);
  }
  if (connection == nullptr) return count_unmatched(kRej);
  switch (connection->state) {
    case State::kReqSent:
    case State::kMraReqReceived:
    case State::kRepSent:
    case State::kMraRepReceived:
    case State::kReqReceived:
      if (rej.reason == kStaleConnection) {
        enter_time_wait(now, *connection);
      } else {
        reset(*connection);
      }
      break;
    case State::kDreqSent:
    case State::kRepReceived:
    case State::kEstablished:
      enter_time_wait(now, *connection);
      break;
    default:
      return count_unmatched(kRej);
  }
  report(*connection, EventKind::kRejReceived, &message);
}

void Connections::on_rep(TimePs now, const Arrival& arrival, const Message& message, const Rep& rep) {
  Connection* const connection = matching(rep.remote_comm_id, 0);
  if (connection == nullptr && connections_.contains(rep.remote_comm_id)) return on_repeated_rep(rep);
  if (connection == nullptr || connection->state == State::kIdle) {
    // The attempt is over; its peer need not wait for an RTU until it gives up.
    count_unmatched(kRep);
    return send_rej_stateless(arrival, message, kInvalidCommId, kAboutRep);
  }
  if (connection->state != State::kReqSent && connection->state != State::kMraReqReceived)
    return count_unmatched(kRep);
  const RemoteKey id_key{rep.local_comm_id, rep.local_ca_guid};
  const RemoteKey qpn_key{rep.local_qpn, rep.local_ca_guid};
  if (rep.local_comm_id == 0 || remote_ids_.contains(id_key)) return count_unmatched(kRep);
  if (const auto found = remote_qpns_.find(qpn_key); found != remote_qpns_.end()) {
    send_rej_stateless(arrival, message, kStaleConnection, kAboutRep);
    return end_stale(now, found->second);
  }
  set_deadline(*connection, kNever);
  connection->remote_id = rep.local_comm_id;
  connection->remote_guid = rep.local_ca_guid;
  connection->remote_qpn = rep.local_qpn;
  connection->initiator_depth = rep.responder_resources;
  connection->responder_resources = rep.initiator_depth;
  connection->send_psn = rep.starting_psn;
  connection->rnr_retry_count = rep.rnr_retry_count;
  connection->ack_timeout =
      cm::ack_timeout(rep.target_ack_delay, static_cast<uint8_t>(connection->ack_timeout - 1));
  connection->state = State::kRepReceived;
  remote_ids_[id_key] = connection->id;
  remote_qpns_[qpn_key] = connection->id;
  connection->in_remote_ids = connection->in_remote_qpns = true;
  report(*connection, EventKind::kRepReceived, &message);
}

void Connections::on_repeated_rep(const Rep& rep) {
  const Connection* const connection = matching(rep.remote_comm_id, rep.local_comm_id);
  if (connection == nullptr) return count_unmatched(kRep);
  count_duplicate(kRep);
  if (connection->state == State::kEstablished) {
    send_rtu(*connection);
  } else if (connection->state == State::kRepReceived) {
    send_mra(*connection, kAboutRep);  // the owner has not answered yet
  }
}

void Connections::on_rtu(const Message& message, const Rtu& rtu) {
  Connection* const connection = matching(rtu.remote_comm_id, rtu.local_comm_id);
  if (connection == nullptr) return count_unmatched(kRtu);
  if (connection->state != State::kRepSent && connection->state != State::kMraRepReceived)
    return count_duplicate(kRtu);
  set_deadline(*connection, kNever);
  connection->state = State::kEstablished;
  report(*connection, EventKind::kRtuReceived, &message);
}

// A DREQ that has overtaken the REP: its sender has accepted and is gone already. The REP, when it comes,
// must not connect this side with nobody. Result: whether there was such an attempt.
bool Connections::end_attempt(const Arrival& arrival, const Message& message, const Dreq& dreq) {
  Connection* const attempt = matching(dreq.remote_comm_id, 0);
  if (attempt == nullptr || attempt->path.remote != arrival.remote || attempt->local_qpn != dreq.remote_qpn ||
      (attempt->state != State::kReqSent && attempt->state != State::kMraReqReceived))
    return false;
  Rej rej;
  rej.local_comm_id = dreq.local_comm_id;
  rej.remote_comm_id = dreq.remote_comm_id;
  rej.message = kAboutRep;
  rej.reason = kConsumerDefined;
  const Message as_rejected = message_of(message.mad.transaction_id, rej);
  reset(*attempt);
  report(*attempt, EventKind::kRejReceived, &as_rejected);
  return true;
}

void Connections::on_dreq(TimePs now, const Arrival& arrival, const Message& message, const Dreq& dreq) {
  Connection* const connection = matching(dreq.remote_comm_id, dreq.local_comm_id);
  if (connection == nullptr || connection->state == State::kIdle) {
    if (!end_attempt(arrival, message, dreq)) count_duplicate(kDreq);
    const Drep drep{dreq.remote_comm_id, dreq.local_comm_id};
    return send(path_back(arrival), message_of(message.mad.transaction_id, drep));
  }
  if (connection->local_qpn != dreq.remote_qpn) return count_unmatched(kDreq);
  switch (connection->state) {
    case State::kRepSent:
    case State::kMraRepReceived:
    case State::kEstablished:
      set_deadline(*connection, kNever);
      connection->state = State::kDreqReceived;
      connection->transaction_id = message.mad.transaction_id;
      return report(*connection, EventKind::kDreqReceived, &message);
    case State::kDreqSent:
      // Both ends have asked at once, so the owner has nothing more to say.
      connection->transaction_id = message.mad.transaction_id;
      send_drep(*connection);
      enter_time_wait(now, *connection);
      return report(*connection, EventKind::kDreqReceived, &message);
    case State::kTimeWait:
      count_duplicate(kDreq);
      connection->transaction_id = message.mad.transaction_id;
      return send_drep(*connection);
    case State::kDreqReceived:
      return count_duplicate(kDreq);
    default:
      return count_unmatched(kDreq);
  }
}

void Connections::on_drep(TimePs now, const Message& message, const Drep& drep) {
  Connection* const connection = matching(drep.remote_comm_id, drep.local_comm_id);
  if (connection == nullptr) return count_unmatched(kDrep);
  if (connection->state != State::kDreqSent) return count_duplicate(kDrep);
  enter_time_wait(now, *connection);
  report(*connection, EventKind::kDrepReceived, &message);
}

void Connections::on_sidr_req(TimePs, const Arrival& arrival, const Message& message,
                              const SidrReq& request) {
  const SidrKey key{request.request_id, arrival.remote};
  if (const auto found = sidr_replies_.find(key); found != sidr_replies_.end()) {
    count_duplicate(kSidrReq);
    if (found->second.id == 0) {
      outgoing_.push_back(found->second.reply);
      ++counters_.sent_again[kSidrRep - kReq];
    }
    return;
  }
  if (!listens_.contains(request.service_id)) {
    SidrRep reply;
    reply.request_id = request.request_id;
    reply.status = kSidrUnsupported;
    reply.service_id = request.service_id;
    return send(path_back(arrival), message_of(message.mad.transaction_id, reply));
  }
  Connection* const connection = sidr_replies_.size() < kMostSidrReplies ? make() : nullptr;
  if (connection == nullptr) {
    ++counters_.without_room;
    return;
  }
  connection->path = path_back(arrival);
  connection->remote_id = request.request_id;
  connection->service_id = request.service_id;
  connection->transaction_id = message.mad.transaction_id;
  connection->state = State::kSidrReqReceived;
  sidr_replies_[key].id = connection->id;
  report(*connection, EventKind::kSidrReqReceived, &message);
}

void Connections::on_sidr_rep(const Message& message, const SidrRep& reply) {
  Connection* const connection = matching(reply.request_id, 0);
  if (connection == nullptr || connection->state != State::kSidrReqSent) return count_unmatched(kSidrRep);
  set_deadline(*connection, kNever);
  connection->state = State::kIdle;
  report(*connection, EventKind::kSidrRepReceived, &message);
}

// ---- time

TimePs Connections::next_deadline() const {
  const TimePs forget = sidr_forgotten_.empty() ? kNever : sidr_forgotten_.front().first;
  return deadlines_.empty() ? forget : std::min(forget, deadlines_.begin()->first);
}

void Connections::advance(TimePs now) {
  while (!sidr_forgotten_.empty() && sidr_forgotten_.front().first <= now) {
    sidr_replies_.erase(sidr_forgotten_.front().second);
    sidr_forgotten_.pop_front();
  }
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    on_due(now, connections_.at(deadlines_.begin()->second));
  }
}

void Connections::on_due(TimePs now, Connection& connection) {
  set_deadline(connection, kNever);
  if (connection.state == State::kTimeWait) {
    if (connection.is_orphan) return erase(connection);
    leave_remote_ids(connection);
    connection.state = State::kIdle;
    return report(connection, EventKind::kTimeWaitOver);
  }
  if (connection.retries_left > 0) {
    --connection.retries_left;
    outgoing_.push_back({connection.path, connection.awaiting_answer});
    const auto attribute = wire::load_field<MadHeader, "attribute_id">(connection.awaiting_answer.data());
    ++counters_.sent_again[attribute - kReq];
    return set_deadline(connection, now + connection.message_retry_ps);
  }
  switch (connection.state) {
    case State::kReqSent:
    case State::kMraReqReceived:
      reset(connection);
      return report(connection, EventKind::kReqTimedOut);
    case State::kRepSent:
    case State::kMraRepReceived:
      reset(connection);
      return report(connection, EventKind::kRepTimedOut);
    case State::kDreqSent:
      enter_time_wait(now, connection);
      return report(connection, EventKind::kDreqTimedOut);
    case State::kSidrReqSent:
      connection.state = State::kIdle;
      return report(connection, EventKind::kSidrReqTimedOut);
    default:
      return;
  }
}

}  // namespace weft::cm
