// Linux's /dev/infiniband/rdma_cm (drivers/infiniband/core/ucma.c and cma.c, ABI 4 of rdma/rdma_user_cm.h)
// for the programs of one host: commands come as the bytes that librdmacm writes, answers and events leave as
// the bytes that it reads. What it does to the network goes through Connections, and through the
// Surroundings.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "time/random.hpp"
#include "verbs/cm/connections.hpp"
#include "verbs/cm/protocol.hpp"

namespace weft::cm {

constexpr uint32_t kDatagramQKey = 0x01234567;  // RDMA_UDP_QKEY
constexpr int kMostBacklog = 1024;
constexpr size_t kMostIds = 1 << 16;     // of a client
constexpr size_t kMostEvents = 1 << 16;  // of a client that takes none

struct DeviceAddress {
  Gid gid{};          // an IPv4 address as ::ffff:a.b.c.d
  uint8_t index = 0;  // in the port's table of GIDs
};

struct DevicePort {
  uint8_t number = 1;
  uint8_t mtu = 3;  // active MTU: 1 is 256 bytes, 5 is 4096
  std::vector<DeviceAddress> addresses;
};

struct Device {
  uint64_t node_guid = 0;
  uint32_t index = 0;  // of the device, as ibv_get_device_index() returns it
  uint8_t ack_delay = 15;
  std::vector<DevicePort> ports;
};

// What the emulation needs of the host. Nothing here may call the Ucma back.
class Surroundings {
 public:
  struct Route {
    int error = 0;     // ENETUNREACH, EHOSTUNREACH …
    uint8_t port = 0;  // the device's port that leads there
  };

  virtual ~Surroundings() = default;
  virtual TimePs now() = 0;
  // As a UD SEND from queue pair 1 of `path.port` to that of `path.remote`.
  virtual void send(const Outgoing& message) = 0;
  // The way to another host; by a certain port unless that is 0.
  virtual Route route(const Gid& destination, uint8_t port) = 0;
  // Events of a client wait; said again only after an answer with `is_drained`.
  virtual void events_wait(uint32_t client) = 0;
  // Membership of an IPv4 multicast group.
  virtual void join(uint8_t port, const Gid& group) = 0;
  virtual void leave(uint8_t port, const Gid& group) = 0;
};

class Ucma {
 public:
  struct Answer {
    int error = 0;  // an errno
    std::vector<uint8_t> response;
    bool is_drained = false;         // the client was told of events, and none waits now
    bool is_source_drained = false;  // the same of the client of MIGRATE_ID's `fd`
  };

  // Throws std::invalid_argument for a device without ports, or ports numbered 0 or twice.
  Ucma(Device device, Surroundings& surroundings, uint64_t seed);

  uint32_t open_client();
  void close_client(uint32_t client);  // and all that it has

  // `bytes`: struct rdma_ucm_cmd_hdr and what follows; `option`: of SET_OPTION; `from`: the client of
  // MIGRATE_ID's `fd`. GET_EVENT answers EAGAIN if there is none.
  Answer command(uint32_t client, std::span<const uint8_t> bytes, std::span<const uint8_t> option = {},
                 std::optional<uint32_t> from = std::nullopt);
  bool has_events(uint32_t client) const;

  void receive(const Arrival& arrival, std::span<const uint8_t> mad);
  void advance();
  TimePs next_deadline() const { return connections_.next_deadline(); }

  const MessageCounters& counters() const { return connections_.counters(); }
  // Requests of other hosts that no client could be told of, and that may come again.
  uint64_t forgotten_requests() const { return forgotten_requests_; }
  bool listens(uint64_t service_id) const { return connections_.listens(service_id); }
  size_t ids() const { return ids_.size(); }
  size_t connections() const { return connections_.size(); }

 private:
  enum class IdState : uint8_t {
    kIdle,
    kAddressBound,
    kAddressResolved,
    kRouteResolved,
    kConnect,
    kDisconnect,
    kListen,
  };

  // Of a client: struct rdma_cm_id.
  struct Id {
    uint32_t number = 0;
    uint32_t client = 0;
    uint64_t uid = 0;  // 0: a request that has come, and is not accepted yet
    uint16_t port_space = 0;
    uint8_t qp_type = 0;
    IdState state = IdState::kIdle;
    sockaddr_storage source{};
    sockaddr_storage destination{};
    uint8_t device_port = 0;  // 0: not bound to the device
    uint16_t bound_space = 0;
    uint16_t bound_port = 0;
    bool owns_port = false;
    bool reuse_address = false;
    bool only_family = false;
    bool only_family_is_set = false;
    uint8_t type_of_service = 0;
    std::optional<uint8_t> ack_timeout;
    std::optional<Path> path;
    uint32_t starting_psn = 0;
    uint32_t qpn = 0;
    uint8_t srq = 0;
    uint32_t vendor_id = 0;
    uint32_t vendor_options = 0;
    uint32_t qkey = 0;
    int backlog = 0;
    uint64_t service_id = 0;  // while it listens
    uint32_t connection = 0;
    uint32_t events_reported = 0;
    std::set<uint32_t> groups;
  };
  struct Group {
    uint32_t id = 0;
    uint64_t uid = 0;
    uint8_t port = 0;
    Gid gid{};
    bool receives = true;
    uint32_t events_reported = 0;
  };
  struct Waiting {
    rdma_ucm_event_resp bytes{};
    uint32_t id = 0;                     // to which it is reported
    std::optional<uint32_t> group;       // of a multicast event
    std::optional<uint32_t> request_id;  // of a connection request: the new ID
  };
  struct Client {
    std::deque<Waiting> events;
    std::set<uint32_t> ids;
    bool is_signalled = false;
  };
  using PortKey = std::pair<uint16_t, uint16_t>;  // port space and port

  // ucma.cpp: IDs, events, what comes from the network
  Id* make_id(uint32_t client);
  Id* id_of(uint32_t client, uint32_t number);
  Id* bound_id_of(uint32_t client, uint32_t number);
  uint32_t destroy_id(uint32_t number);
  void leave_group(uint32_t number);
  void signal(uint32_t client);
  bool end_signal(uint32_t client);
  void push(const Id& id, Waiting waiting);
  void push_plain(const Id& id, uint32_t event, int status = 0);
  void settle();
  void on_event(const Event& event);
  void on_request(const Event& event);
  Id* listener_of(uint64_t service_id, const IpAddressing& addressing);
  bool matches(const Id& listener, const IpAddressing& addressing) const;
  void fill_request(rdma_ucm_event_resp& bytes, const Message& message, bool is_datagram) const;
  void on_service_reply(Id& id, const Message& message);
  void on_connection_event(Id& id, const Event& event);
  rdma_ucm_conn_param connection_of(const Rep& rep) const;
  ib_uverbs_ah_attr address_handle(const Path& path) const;

  // addresses
  const DevicePort* port_of(const Gid& gid) const;
  const DevicePort* port_numbered(uint8_t number) const;
  const Gid* own_address(const DevicePort& port, const Gid& near) const;
  uint8_t gid_index(uint8_t port, const Gid& gid) const;

  // ucma_addresses.cpp: binding and resolving
  int bind(Id& id, const sockaddr_storage& address);
  int take_port(Id& id);
  int take_any_port(Id& id, uint16_t space);
  int check_port(const Id& id, uint16_t space, uint16_t port, bool reuse) const;
  void own_port(Id& id, uint16_t space, uint16_t port);
  void release_port(Id& id);
  int resolve_address(Id& id, const sockaddr_storage* source, const sockaddr_storage& destination);
  int reach(Id& id, const Gid& destination);
  int resolve_route(Id& id);
  int listen(Id& id, uint32_t backlog);
  int join(Id& id, uint64_t uid, const sockaddr_storage& address, uint16_t flags, uint32_t& number);

  // ucma_commands.cpp
  int dispatch(uint32_t client, const rdma_ucm_cmd_hdr& header, std::span<const uint8_t> body,
               std::span<const uint8_t> option, std::optional<uint32_t> from, Answer& answer);
  int create_id(uint32_t client, std::span<const uint8_t> body, uint16_t room, Answer& answer);
  int query_route(const Id& id, uint16_t room, Answer& answer) const;
  int query(const Id& id, uint32_t option, uint16_t room, Answer& answer) const;
  void query_device(const Id& id, rdma_ucm_query_addr_resp& bytes) const;
  int connect(Id& id, const rdma_ucm_conn_param& parameters);
  int accept(Id& id, const rdma_ucm_accept& command);
  int reject(Id& id, const rdma_ucm_reject& command);
  int disconnect(Id& id);
  int init_qp_attr(Id& id, uint32_t state, Answer& answer);
  int connection_attr(const Id& id, uint32_t state, ib_uverbs_qp_attr& attr) const;
  int get_event(uint32_t client, uint16_t room, Answer& answer);
  int set_option(Id& id, const rdma_ucm_set_option& command, std::span<const uint8_t> option);
  int set_path(Id& id, std::span<const uint8_t> records);
  int migrate(uint32_t client, uint32_t from, uint32_t number, Answer& answer);

  const Device device_;
  Surroundings& surroundings_;
  Rng random_;
  Connections connections_;
  uint32_t next_client_ = 1;
  std::unordered_map<uint32_t, Client> clients_;
  std::map<uint32_t, std::unique_ptr<Id>> ids_;
  std::set<uint32_t> free_ids_;  // below next_id_
  uint32_t next_id_ = 0;
  std::map<uint32_t, Group> groups_;
  uint32_t next_group_ = 0;
  std::map<PortKey, std::vector<Id*>> ports_;
  std::unordered_map<uint32_t, uint32_t> id_of_connection_;
  uint64_t forgotten_requests_ = 0;
};

}  // namespace weft::cm
