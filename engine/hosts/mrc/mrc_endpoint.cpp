#include "hosts/mrc/mrc_endpoint.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "hosts/mrc/mrc_queue_pair.hpp"
#include "packets/mrc_codec.hpp"

namespace weft::mrc {
namespace {

// Requests that wait for an answer to leave; older ones are asked again.
constexpr size_t kMostAnswers = 1024;
// An update is repeated after the retransmission timeout, doubled so often at most.
constexpr uint32_t kMostDoublings = 6;
constexpr size_t kMostPorts = 32;  // of a port_status_mask
constexpr TimePs kTimestampUnitPs = kTimestampUnitNs * kPsPerNs;

bool is_newer(uint16_t id, uint16_t other) { return static_cast<int16_t>(id - other) > 0; }

}  // namespace

// What the NIC's other ports send and receive for.
class Endpoint::Leg final : public QueuePair {
 public:
  Leg(Endpoint& owner, int port) : owner_(owner), port_(port) {}
  void on_packet(TimePs now, const roce::ParsedPacket& packet) override {
    owner_.receive(now, port_, packet);
  }
  PacketPtr pull_control(TimePs) override { return owner_.pull_for(port_); }
  PacketPtr pull(TimePs now) override { return owner_.pull_probe(now, port_); }
  PulledPacket last_pulled() const override { return owner_.last_pulled(); }
  bool may_have_control() const override { return owner_.may_have_control(); }
  bool may_have_data() const override { return owner_.may_have_data(); }
  // Any port may be the one that lasts.
  TimePs next_deadline() const override { return owner_.next_deadline(); }
  void on_deadline(TimePs now) override { owner_.on_deadline(now); }
  void wake_up() { wake(); }

 private:
  Endpoint& owner_;
  int port_;
};

Endpoint* Endpoint::find(Nic& nic) { return dynamic_cast<Endpoint*>(nic.find(kEndpointQueuePair)); }

Endpoint& Endpoint::of(Nic& nic) {
  Endpoint* found = find(nic);
  if (found == nullptr) {
    const auto made = std::make_shared<Endpoint>(nic);
    nic.attach(*made, 0, kEndpointQueuePair);
    nic.keep(made);
    nic.watch_ports(made.get());
    found = made.get();
  }
  found->join_ports();
  return *found;
}

Endpoint::Endpoint(Nic& nic) : nic_(nic), probe_ids_(nic.entropy_seed(), "mrc probe ids " + nic.name()) {}

Endpoint::~Endpoint() = default;

// Those that the NIC has by now.
void Endpoint::join_ports() {
  if (nic_.port_count() > kMostPorts)
    throw std::invalid_argument("a NIC of " + std::to_string(nic_.port_count()) +
                                " ports for MRC (valid: at most " + std::to_string(kMostPorts) + ")");
  for (auto port = static_cast<int>(legs_.size() + 1); port < static_cast<int>(nic_.port_count()); ++port) {
    legs_.push_back(std::make_unique<Leg>(*this, port));
    nic_.attach_leg(*legs_.back(), port, kEndpointQueuePair);
  }
  ports_up_ = 0;
  for (size_t port = 0; port < nic_.port_count(); ++port)
    ports_up_ |= uint32_t{nic_.is_port_up(static_cast<int>(port))} << port;
}

void Endpoint::attach(MrcQueuePair& queue_pair, const std::vector<int>& ports, uint32_t number) {
  nic_.attach(queue_pair, ports.front(), number);
  for (size_t plane = 1; plane < ports.size(); ++plane)
    nic_.attach_leg(queue_pair.leg(plane), ports[plane], number);
  queue_pair.join(weak_from_this(), ports);
  const auto [found, added] = peers_.try_emplace(queue_pair.path(0).destination_ip);
  Peer& peer = found->second;
  if (added) peer.told = static_cast<uint32_t>((uint64_t{1} << nic_.port_count()) - 1);
  peer.queue_pairs.push_back(&queue_pair);
  apply(peer, queue_pair);
  if (peer.told != ports_up_ && !peer.unconfirmed) tell(nic_.engine().now(), peer);
}

void Endpoint::forget(MrcQueuePair& queue_pair) {
  std::erase_if(ev_probes_, [&](const auto& probe) { return probe.second.queue_pair == &queue_pair; });
  const auto found = peers_.find(queue_pair.path(0).destination_ip);
  if (found == peers_.end()) return;
  Peer& peer = found->second;
  std::erase(peer.queue_pairs, &queue_pair);
  if (!peer.queue_pairs.empty()) return;
  // Nobody is there to be told; the next queue pair to this peer has it told.
  peer.unconfirmed.reset();
  std::erase(to_tell_, &peer);
  std::erase(unconfirmed_, &peer);
}

void Endpoint::on_port(int port, bool up) {
  ports_up_ = up ? ports_up_ | 1u << port : ports_up_ & ~(1u << port);
  for (auto& [address, peer] : peers_) {
    apply(peer);
    if (!peer.queue_pairs.empty()) tell(nic_.engine().now(), peer);
  }
}

void Endpoint::apply(Peer& peer) {
  for (MrcQueuePair* queue_pair : peer.queue_pairs) apply(peer, *queue_pair);
}

void Endpoint::apply(const Peer& peer, MrcQueuePair& queue_pair) {
  queue_pair.follow_ports(ports_up_ & peer.ports_up, withdrawn_);
}

void Endpoint::set_withdrawn(uint32_t ports) {
  if (ports == withdrawn_) return;
  withdrawn_ = ports;
  for (auto& [address, peer] : peers_) apply(peer);
}

void Endpoint::tell(TimePs now, Peer& peer) {
  peer.told.reset();
  peer.unconfirmed = next_id_++;
  peer.tries = 0;
  peer.due_ps = repeated_ps(now, peer);
  if (std::ranges::find(to_tell_, &peer) == to_tell_.end()) to_tell_.push_back(&peer);
  if (std::ranges::find(unconfirmed_, &peer) == unconfirmed_.end()) unconfirmed_.push_back(&peer);
  wake_all();
}

TimePs Endpoint::repeated_ps(TimePs now, const Peer& peer) {
  const TimePs timeout_ps = peer.queue_pairs.front()->config().retransmission_timeout_ps;
  return now + (timeout_ps << std::min(peer.tries, kMostDoublings));
}

void Endpoint::wake_all() {
  wake();
  for (const auto& leg : legs_) leg->wake_up();
}

void Endpoint::wake_port(int port) {
  if (port == 0)
    wake();
  else
    legs_[static_cast<size_t>(port) - 1]->wake_up();
}

// Ids are drawn, so that others cannot tell which are on their way.
std::optional<uint16_t> Endpoint::probe(MrcQueuePair& queue_pair, size_t ev) {
  expire_probes();
  if (ev_probes_.size() >= kMostProbes) return std::nullopt;
  const size_t plane = queue_pair.evs().plane_of(ev);
  const TimePs due_ps = nic_.engine().now() + queue_pair.config().retransmission_timeout_ps;
  const EvProbe added{.queue_pair = &queue_pair, .ev = ev, .plane = plane, .due_ps = due_ps};
  auto id = static_cast<uint16_t>(probe_ids_.next_u64());
  while (!ev_probes_.try_emplace(id, added).second) id = static_cast<uint16_t>(probe_ids_.next_u64());
  deadlines_.push({due_ps, id});
  const int port = queue_pair.port_of(plane);
  due_probes_.push({port, id});
  wake_port(port);
  return id;
}

void Endpoint::expire_probes() {
  const TimePs now = nic_.engine().now();
  while (!deadlines_.empty() && deadlines_.front().due_ps < now) {
    const Deadline deadline = deadlines_.pop();
    const auto found = ev_probes_.find(deadline.id);
    // Answered or given up, and another probe may have its id by now.
    if (found == ev_probes_.end() || found->second.due_ps != deadline.due_ps) continue;
    const EvProbe probe = found->second;
    ev_probes_.erase(found);
    ++counters_.ev_probes_expired;
    probe.queue_pair->on_ev_probe_expired(deadline.id, probe.ev);
  }
}

void Endpoint::note(EvEvent event) {
  if (events_.size() >= kMostEvents) {
    ++dropped_events_;
    ++counters_.ev_events_dropped;
    return;
  }
  event.at_ps = nic_.engine().now();
  event.drop_count = std::exchange(dropped_events_, 0);
  events_.push(event);
}

std::vector<EvEvent> Endpoint::take_events(size_t most) {
  std::vector<EvEvent> taken;
  while (taken.size() < most && !events_.empty()) taken.push_back(events_.pop());
  return taken;
}

TimePs Endpoint::next_deadline() const {
  TimePs next = kNever;
  for (const Peer* peer : unconfirmed_) next = std::min(next, peer->due_ps);
  return next;
}

void Endpoint::on_deadline(TimePs now) {
  bool any = false;
  for (Peer* peer : unconfirmed_) {
    if (peer->due_ps > now) continue;
    ++peer->tries;
    peer->due_ps = repeated_ps(now, *peer);
    if (std::ranges::find(to_tell_, peer) == to_tell_.end()) to_tell_.push_back(peer);
    any = true;
  }
  if (any) wake_all();
}

// By its address on any plane.
Endpoint::Peer* Endpoint::peer_of(const roce::IpAddress& source) {
  const auto is_at = [&](const auto& known) {
    const auto& queue_pairs = known.second.queue_pairs;
    return !queue_pairs.empty() && queue_pairs.front()->is_peer(source);
  };
  const auto found = std::ranges::find_if(peers_, is_at);
  return found == peers_.end() ? nullptr : &found->second;
}

void Endpoint::receive(TimePs now, int port, const roce::ParsedPacket& packet) {
  const bool known = is_endpoint_operation(packet.bth.opcode) &&
                     packet.bth.partition_key == roce::kDefaultPartitionKey &&
                     peer_of(packet.source_ip) != nullptr;
  if (!known) {
    ++counters_.endpoint_packets_refused;
    return;
  }
  if (packet.bth.opcode == kEndpointRequest)
    on_request(port, packet, load_headers(packet).erth);
  else
    on_response(now, port, packet, load_headers(packet).eeth);
}

void Endpoint::on_request(int port, const roce::ParsedPacket& packet, const Erth& request) {
  Peer& peer = *peer_of(packet.source_ip);
  const auto id = static_cast<uint16_t>(packet.bth.psn);
  if (request.op == kPortStatusUpdate)
    on_update(peer, id, request.port_status_mask);
  else
    ++counters_.ev_probes_received;
  MrcQueuePair& queue_pair = *peer.queue_pairs.front();
  const std::optional<size_t> plane = queue_pair.plane_at(port);
  std::optional<size_t> ev = plane ? queue_pair.next_ev(*plane) : std::nullopt;
  // All may be denied: the peer asks about its own way here.
  if (plane && !ev) ev = queue_pair.evs().first_of(*plane);
  if (!ev) {  // not over a port that joins the two
    ++counters_.endpoint_packets_refused;
    return;
  }
  if (answers_.size() >= kMostAnswers) answers_.pop();
  answers_.push({.port = port,
                 .way = way_of(queue_pair, *plane, *ev),
                 .id = id,
                 .tx_timestamp = request.tx_timestamp,
                 .operation = request.op});
  wake_all();
}

// Updates may overtake each other.
void Endpoint::on_update(Peer& peer, uint16_t id, uint32_t ports_up) {
  ++counters_.port_updates_received;
  if (peer.newest_id && !is_newer(id, *peer.newest_id)) return;
  peer.newest_id = id;
  peer.ports_up = ports_up;
  apply(peer);
}

void Endpoint::on_response(TimePs now, int port, const roce::ParsedPacket& packet, const Eeth& response) {
  if (response.op == kEvProbe)
    on_probe_response(now, port, packet, response);
  else
    on_confirmation(packet);
}

void Endpoint::on_probe_response(TimePs now, int port, const roce::ParsedPacket& packet,
                                 const Eeth& response) {
  expire_probes();
  const auto id = static_cast<uint16_t>(packet.bth.psn);
  const auto found = ev_probes_.find(id);
  const bool known = found != ev_probes_.end() && found->second.sent_ps != kNever &&
                     found->second.tx_timestamp == response.tx_timestamp &&
                     found->second.queue_pair->port_of(found->second.plane) == port &&
                     found->second.queue_pair->path(found->second.plane).destination_ip == packet.source_ip;
  if (!known) {
    ++counters_.ev_probe_responses_refused;
    return;
  }
  ++counters_.ev_probes_answered;
  const EvProbe probe = found->second;
  ev_probes_.erase(found);
  probe.queue_pair->on_ev_probe_answer(id, probe.ev, now - probe.sent_ps);
}

void Endpoint::on_confirmation(const roce::ParsedPacket& packet) {
  Peer& peer = *peer_of(packet.source_ip);
  if (peer.unconfirmed != static_cast<uint16_t>(packet.bth.psn)) return;  // of an earlier request
  ++counters_.port_updates_confirmed;
  peer.unconfirmed.reset();
  peer.told = peer.told_last;
  std::erase(to_tell_, &peer);
  std::erase(unconfirmed_, &peer);
}

// The plane over which this port tells the peer. A repeated update takes another port if there is one.
std::optional<size_t> Endpoint::plane_to_tell(const Peer& peer, int port) const {
  const MrcQueuePair& queue_pair = *peer.queue_pairs.front();
  const std::optional<size_t> plane = queue_pair.plane_at(port);
  if (!plane || !queue_pair.may_use(*plane)) return std::nullopt;
  if (port != peer.last_port) return plane;
  for (size_t other = 0; other < queue_pair.planes(); ++other) {
    if (other != *plane && queue_pair.may_use(other)) return std::nullopt;
  }
  return plane;
}

PacketPtr Endpoint::pull_for(int port) {
  if (PacketPtr answer = pull_answer(port)) return answer;
  return pull_update(port);
}

PacketPtr Endpoint::pull_answer(int port) {
  for (size_t left = answers_.size(); left > 0; --left) {
    const Answer answer = answers_.pop();
    if (answer.port != port) {
      answers_.push(answer);
      continue;
    }
    Headers mrc;
    mrc.eeth = {.op = answer.operation, .tx_timestamp = answer.tx_timestamp};
    return build(answer.way, mrc, answer.id, kEndpointResponse);
  }
  return nullptr;
}

PacketPtr Endpoint::pull_update(int port) {
  for (auto place = to_tell_.begin(); place != to_tell_.end(); ++place) {
    Peer& peer = **place;
    const std::optional<size_t> plane = plane_to_tell(peer, port);
    if (!plane) continue;
    MrcQueuePair& queue_pair = *peer.queue_pairs.front();
    const std::optional<size_t> ev = queue_pair.next_ev(*plane);
    if (!ev) continue;
    to_tell_.erase(place);
    peer.last_port = port;
    peer.told_last = ports_up_;
    ++counters_.port_updates_sent;
    Headers mrc;
    mrc.erth = {.op = kPortStatusUpdate, .port_status_mask = ports_up_, .ftype = kNoTimestamp};
    return build(way_of(queue_pair, *plane, *ev), mrc, *peer.unconfirmed, kEndpointRequest);
  }
  return nullptr;
}

PacketPtr Endpoint::pull_probe(TimePs now, int port) {
  for (size_t left = due_probes_.size(); left > 0; --left) {
    const DueProbe due = due_probes_.pop();
    const auto found = ev_probes_.find(due.id);
    if (found == ev_probes_.end()) continue;  // given up
    if (due.port != port) {
      due_probes_.push(due);
      continue;
    }
    EvProbe& probe = found->second;
    if (probe.queue_pair->port_of(probe.plane) != port) continue;  // of another one that had its id
    probe.sent_ps = now;
    probe.tx_timestamp = static_cast<uint16_t>(now / kTimestampUnitPs);
    ++counters_.ev_probes_sent;
    Headers mrc;
    mrc.erth = {.op = kEvProbe, .tx_timestamp = probe.tx_timestamp};
    return build(way_of(*probe.queue_pair, probe.plane, probe.ev), mrc, due.id, kEndpointRequest);
  }
  return nullptr;
}

Endpoint::Way Endpoint::way_of(const MrcQueuePair& queue_pair, size_t plane, size_t ev) {
  return {queue_pair.path(plane), queue_pair.evs().value(ev), queue_pair.evs().outer_destination(ev)};
}

PacketPtr Endpoint::build(const Way& way, Headers mrc, uint16_t id, uint8_t opcode) {
  roce::RoceHeaders headers = headers_of(way.path);
  set_entropy(headers, way.entropy);
  mrc.outer_destination = way.outer_destination;
  headers.dscp = kDscpControl;
  headers.ecn = roce::kNotEct;
  headers.bth.opcode = opcode;
  headers.bth.destination_qp = kEndpointQueuePair;
  headers.bth.acknowledge_request = false;
  headers.bth.psn = id;
  PacketPtr packet = build_packet(nic_.engine().packets(), headers, mrc);
  packet->set_traffic_kind(Packet::kControlTraffic);
  return packet;
}

}  // namespace weft::mrc
