// Communication management of one device as a pure state machine: messages and times go in, messages, events
// and the next deadline come out. Source: InfiniBand Architecture, volume 1, 12.9 (states) and 12.11 (service
// ID resolution), with timeouts, retries and answers to duplicates as Linux has them
// (drivers/infiniband/core/cm.c, cma.c). docs/spec/connection-management.md says where it differs.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "time/time.hpp"
#include "verbs/cm/messages.hpp"

namespace weft::cm {

constexpr uint8_t kResponseTimeout = 20;  // 4.096 us * 2^20, as Linux's CMA asks for
constexpr uint8_t kMaxRetries = 15;
constexpr uint8_t kServiceTimeout = 24;       // of an MRA
constexpr uint8_t kPacketLifeTime = 16;       // of a path over Ethernet
constexpr size_t kMostConnections = 1 << 16;  // of a device; more are refused or dropped
constexpr size_t kMostSidrReplies = 1 << 12;  // remembered for requests that come again

// Linux's rounding of 4.096 us * 2^exponent to milliseconds.
TimePs timeout_ps(uint8_t exponent);
// The local ACK timeout of a path, and of a path whose far end takes this long to acknowledge.
uint8_t ack_timeout(uint8_t ack_delay, uint8_t packet_life_time);

// The way of a connection's packets, as far as communication management decides it.
struct Path {
  uint8_t port = 1;  // of this device
  Gid local{};
  Gid remote{};
  uint32_t flow_label = 0;
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 64;
  uint8_t service_level = 0;
  uint8_t mtu = 3;  // as in the REQ: 1 is 256 bytes, 5 is 4096
  uint8_t packet_life_time = kPacketLifeTime;
  bool operator==(const Path&) const = default;
};

struct Outgoing {
  Path path;
  MadBytes mad;
};

// Where a message has come from, and to which of this device's addresses.
struct Arrival {
  uint8_t port = 1;
  Gid local{};
  Gid remote{};
};

enum class State : uint8_t {
  kIdle,
  kReqSent,
  kMraReqReceived,
  kReqReceived,
  kRepSent,
  kMraRepReceived,
  kRepReceived,
  kEstablished,
  kDreqSent,
  kDreqReceived,
  kTimeWait,
  kSidrReqSent,
  kSidrReqReceived,
};
const char* state_name(State state);

enum class EventKind : uint8_t {
  kReqReceived,  // `id` is new
  kRepReceived,
  kRtuReceived,  // or told by establish()
  kRejReceived,
  kDreqReceived,
  kDrepReceived,
  kReqTimedOut,
  kRepTimedOut,
  kDreqTimedOut,
  kTimeWaitOver,
  kSidrReqReceived,  // `id` is new
  kSidrRepReceived,
  kSidrReqTimedOut,
};
const char* event_name(EventKind kind);

struct Event {
  EventKind kind{};
  uint32_t id = 0;
  Message message;  // that has come; of the first four and of DREQ, DREP, SIDR_REQ and SIDR_REP
};

// What both sides say of their queue pair in a REQ or REP.
struct QueuePairFacts {
  uint32_t number = 0;
  uint32_t starting_psn = 0;
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  uint8_t flow_control = 0;
  uint8_t retry_count = 0;  // REQ only
  uint8_t rnr_retry_count = 0;
  uint8_t srq = 0;
  uint32_t vendor_id = 0;
  uint32_t vendor_options = 0;
};

// One side of a connection or of a service ID resolution.
struct Connection {
  State state = State::kIdle;
  Path path;
  uint64_t service_id = 0;
  uint8_t transport = kReliable;
  uint32_t local_qpn = 0;
  uint32_t remote_qpn = 0;
  uint32_t send_psn = 0;  // the first one that is sent: the receiver has named it
  uint8_t path_mtu = 1;
  uint8_t initiator_depth = 0;
  uint8_t responder_resources = 0;
  uint8_t retry_count = 0;
  uint8_t rnr_retry_count = 0;
  uint8_t ack_timeout = 0;

  uint32_t id = 0;
  uint32_t remote_id = 0;
  uint64_t remote_guid = 0;
  uint64_t transaction_id = 0;
  bool is_orphan = false;  // its owner has destroyed it
  bool in_remote_ids = false;
  bool in_remote_qpns = false;
  TimePs retry_after_ps = 0;
  TimePs message_retry_ps = 0;  // of the message that awaits its answer: an MRA lengthens it
  uint8_t max_retries = 0;
  uint8_t retries_left = 0;
  MadBytes awaiting_answer{};  // sent again until an answer comes
  TimePs deadline_ps = kNever;
};

struct MessageCounters {
  std::array<uint64_t, kAttributes> sent{};  // without retransmissions
  std::array<uint64_t, kAttributes> sent_again{};
  std::array<uint64_t, kAttributes> received{};
  std::array<uint64_t, kAttributes> duplicates{};
  std::array<uint64_t, kAttributes> unmatched{};      // of no connection, or not of its state
  std::array<uint64_t, kParseErrors> parse_errors{};  // by ParseError
  uint64_t without_room = 0;
};

// A copy goes on from the same state. All functions that return int return 0 or an errno: EINVAL in a state,
// or with sizes, that do not allow it.
class Connections {
 public:
  // `ack_delay`: the device's, as an exponent. `seed` decides the communication IDs.
  Connections(uint64_t node_guid, uint8_t ack_delay, uint32_t seed);

  void listen(uint64_t service_id) { ++listens_[service_id]; }
  void end_listen(uint64_t service_id);
  bool listens(uint64_t service_id) const { return listens_.contains(service_id); }

  // 0 if there are kMostConnections already; `private_data` of at most Req::kPrivateBytes.
  uint32_t connect(TimePs now, const Path& path, uint64_t service_id, uint8_t transport,
                   const QueuePairFacts& queue_pair, std::span<const uint8_t> private_data);
  int accept(TimePs now, uint32_t id, const QueuePairFacts& queue_pair,
             std::span<const uint8_t> private_data);
  int confirm(TimePs now, uint32_t id);  // by an RTU
  int reject(TimePs now, uint32_t id, uint16_t reason, std::span<const uint8_t> info,
             std::span<const uint8_t> private_data);
  int disconnect(TimePs now, uint32_t id);         // by a DREQ
  int answer_disconnect(TimePs now, uint32_t id);  // by a DREP
  int establish(TimePs now, uint32_t id);          // a packet of the connection has come before the RTU
  // 0 as connect().
  uint32_t resolve_service(TimePs now, const Path& path, uint64_t service_id,
                           std::span<const uint8_t> private_data);
  int answer_service(TimePs now, uint32_t id, uint8_t status, uint32_t qpn, uint32_t qkey,
                     uint32_t vendor_options, std::span<const uint8_t> private_data);
  // Ends whatever is under way; what the peer must hear is sent, and sent again, without the owner.
  // `quietly`: a request that has come is forgotten, so that it can come again.
  void destroy(TimePs now, uint32_t id, bool quietly = false);

  void receive(TimePs now, const Arrival& arrival, std::span<const uint8_t> mad);
  // Does what is due.
  void advance(TimePs now);
  TimePs next_deadline() const;

  // To be taken after each call of the above.
  std::vector<Outgoing> take_outgoing() { return std::exchange(outgoing_, {}); }
  std::deque<Event> take_events() { return std::exchange(events_, {}); }

  // Null once destroyed.
  const Connection* find(uint32_t id) const;
  size_t size() const { return connections_.size(); }
  const MessageCounters& counters() const { return counters_; }

 private:
  using RemoteKey = std::pair<uint32_t, uint64_t>;  // of an ID or a queue pair, and the node's GUID
  using SidrKey = std::pair<uint32_t, Gid>;
  struct SidrReply {
    uint32_t id = 0;  // while it is not answered
    Outgoing reply;
    TimePs forget_ps = kNever;
  };

  Connection* make();
  Connection* owned(uint32_t id);
  Connection* matching(uint32_t id, uint32_t remote_id);
  void erase(Connection& connection);
  void set_deadline(Connection& connection, TimePs deadline);
  void leave_remote_ids(Connection& connection);
  void leave_remote_qpns(Connection& connection);
  void reset(Connection& connection);
  void enter_time_wait(TimePs now, Connection& connection);
  void report(const Connection& connection, EventKind kind, const Message* message = nullptr);

  void send(const Path& path, Message message);
  void send_until_answered(TimePs now, Connection& connection, Message message);
  void send_rej(const Connection& connection, uint16_t reason, std::span<const uint8_t> info,
                std::span<const uint8_t> private_data);
  void send_rej_stateless(const Arrival& arrival, const Message& of, uint16_t reason, uint8_t about);
  void send_mra(const Connection& connection, uint8_t about);
  void send_rtu(const Connection& connection);
  void send_drep(const Connection& connection);
  void send_dreq(TimePs now, Connection& connection);
  void end_stale(TimePs now, uint32_t id);

  void on_req(TimePs now, const Arrival& arrival, const Message& message, const Req& req);
  void on_duplicate_req(const Arrival& arrival, const Message& message, const Connection& connection);
  void on_mra(TimePs now, const Mra& mra);
  void on_rej(TimePs now, const Message& message, const Rej& rej);
  void on_rep(TimePs now, const Arrival& arrival, const Message& message, const Rep& rep);
  void on_repeated_rep(const Rep& rep);
  void on_rtu(const Message& message, const Rtu& rtu);
  bool end_attempt(const Arrival& arrival, const Message& message, const Dreq& dreq);
  void on_dreq(TimePs now, const Arrival& arrival, const Message& message, const Dreq& dreq);
  void on_drep(TimePs now, const Message& message, const Drep& drep);
  void on_sidr_req(TimePs now, const Arrival& arrival, const Message& message, const SidrReq& request);
  void on_sidr_rep(const Message& message, const SidrRep& reply);
  void on_due(TimePs now, Connection& connection);
  void count_duplicate(Attribute attribute) { ++counters_.duplicates[attribute - kReq]; }
  void count_unmatched(Attribute attribute) { ++counters_.unmatched[attribute - kReq]; }

  const uint64_t node_guid_;
  const uint8_t ack_delay_;
  const uint32_t id_mask_;
  uint32_t next_id_ = 1;
  std::unordered_map<uint32_t, Connection> connections_;  // which stay where they are
  std::map<RemoteKey, uint32_t> remote_ids_;              // those of connections whose peer is known
  std::map<RemoteKey, uint32_t> remote_qpns_;             // without those in time-wait
  std::map<uint64_t, uint32_t> listens_;
  std::set<std::pair<TimePs, uint32_t>> deadlines_;
  std::map<SidrKey, SidrReply> sidr_replies_;
  std::deque<std::pair<TimePs, SidrKey>> sidr_forgotten_;  // in the order of time
  std::vector<Outgoing> outgoing_;
  std::deque<Event> events_;
  MessageCounters counters_;
};

}  // namespace weft::cm
