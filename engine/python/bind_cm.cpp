#include "python/bind_cm.hpp"

#include <pybind11/stl.h>

#include <cerrno>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "python/bindings_support.hpp"
#include "python/field_reader.hpp"
#include "python/typed.hpp"
#include "verbs/cm/channel.hpp"
#include "verbs/cm/connections.hpp"
#include "verbs/cm/kernel_routes.hpp"
#include "verbs/cm/messages.hpp"
#include "verbs/cm/ucma.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

namespace {

using CmFields = Typed<"dict[str, object]", py::dict>;
using CmDatagrams = Typed<"list[tuple[int, bytes, bytes, bytes]]", py::list>;

cm::Gid cm_gid(const py::bytes& bytes) {
  const auto view = view_of(bytes);
  cm::Gid gid;
  if (view.size() != gid.size())
    throw std::invalid_argument("a GID of " + std::to_string(view.size()) + " bytes (valid: 16)");
  std::copy(view.begin(), view.end(), gid.begin());
  return gid;
}

template <size_t Index = 0>
bool make_cm_body(const std::string& name, cm::Body& body) {
  if constexpr (Index == std::variant_size_v<cm::Body>) {
    return false;
  } else {
    if (name == cm::attribute_name(std::variant_alternative_t<Index, cm::Body>::kAttribute)) {
      body.emplace<Index>();
      return true;
    }
    return make_cm_body<Index + 1>(name, body);
  }
}

CmFields cm_fields(const cm::Message& message) {
  py::dict dict = header_dict(message.mad);
  const size_t info_bytes = cm::info_bytes_of(message.body);
  const size_t private_bytes = cm::private_bytes_of(message.body);
  std::visit(
      [&](const auto& part) {
        dict["message"] = cm::attribute_name(std::remove_cvref_t<decltype(part)>::kAttribute);
        dict["fields"] = header_dict(part);
      },
      message.body);
  dict["info"] = to_bytes(std::span(message.info).first(info_bytes));
  dict["private_data"] = to_bytes(std::span(message.private_data).first(private_bytes));
  return dict;
}

template <class Array>
void read_cm_bytes(FieldReader& reader, const char* name, size_t most, Array& array) {
  py::bytes bytes;
  reader.read(name, bytes);
  const auto view = view_of(bytes);
  if (view.size() > most)
    throw std::invalid_argument(std::string("message.") + name + ": " + std::to_string(view.size()) +
                                " bytes (valid: at most " + std::to_string(most) + ")");
  std::copy(view.begin(), view.end(), array.begin());
}

py::bytes build_cm(const CmFields& fields) {
  FieldReader reader(fields, "message");
  cm::Message message;
  std::string name;
  reader.read("message", name);
  if (!make_cm_body(name, message.body)) {
    std::string valid;
    for (uint16_t each = cm::kReq; each < cm::kReq + cm::kAttributes; ++each)
      valid += std::string(valid.empty() ? "" : ", ") + cm::attribute_name(each);
    throw std::invalid_argument("message.message: '" + name + "' (valid: " + valid + ")");
  }
  read_header(reader, message.mad);
  reader.read_group("fields", [&](FieldReader& group) {
    std::visit(
        [&](auto& part) {
          read_header(group, part);
          if (wire::is_too_wide(part))
            throw std::invalid_argument("message.fields: a value does not fit its field");
        },
        message.body);
  });
  read_cm_bytes(reader, "info", cm::info_bytes_of(message.body), message.info);
  read_cm_bytes(reader, "private_data", cm::private_bytes_of(message.body), message.private_data);
  reader.finish();
  return to_bytes(cm::build_message(message));
}

CmDatagrams datagrams_of(const std::vector<cm::Outgoing>& outgoing) {
  py::list list;
  for (const cm::Outgoing& each : outgoing)
    list.append(py::make_tuple(each.path.port, to_bytes(each.path.local), to_bytes(each.path.remote),
                               to_bytes(each.mad)));
  return list;
}

CmFields counters_of(const cm::MessageCounters& counters) {
  py::dict dict;
  const auto by_message = [](const std::array<uint64_t, cm::kAttributes>& numbers) {
    py::dict named;
    for (uint16_t each = 0; each < cm::kAttributes; ++each)
      named[cm::attribute_name(static_cast<uint16_t>(cm::kReq + each))] = numbers[each];
    return named;
  };
  dict["sent"] = by_message(counters.sent);
  dict["sent_again"] = by_message(counters.sent_again);
  dict["received"] = by_message(counters.received);
  dict["duplicates"] = by_message(counters.duplicates);
  dict["unmatched"] = by_message(counters.unmatched);
  py::dict errors;
  for (size_t each = 1; each < cm::kParseErrors; ++each)
    errors[cm::parse_error_name(static_cast<cm::ParseError>(each))] = counters.parse_errors[each];
  dict["parse_errors"] = errors;
  dict["without_room"] = counters.without_room;
  return dict;
}

std::optional<TimePs> some_deadline(TimePs time) {
  return time == kNever ? std::nullopt : std::optional<TimePs>(time);
}

// ---- connections

cm::QueuePairFacts queue_pair_facts(uint32_t qpn, uint32_t starting_psn, uint8_t responder_resources,
                                    uint8_t initiator_depth) {
  cm::QueuePairFacts facts;
  facts.number = qpn;
  facts.starting_psn = starting_psn;
  facts.responder_resources = responder_resources;
  facts.initiator_depth = initiator_depth;
  facts.retry_count = 7;
  facts.rnr_retry_count = 7;
  return facts;
}

cm::Path path_between(const py::bytes& local, const py::bytes& remote, uint8_t port) {
  cm::Path path;
  path.port = port;
  path.local = cm_gid(local);
  path.remote = cm_gid(remote);
  return path;
}

CmFields connection_fields(const cm::Connection& connection) {
  return py::dict("state"_a = cm::state_name(connection.state), "local_qpn"_a = connection.local_qpn,
                  "remote_qpn"_a = connection.remote_qpn, "send_psn"_a = connection.send_psn,
                  "initiator_depth"_a = connection.initiator_depth,
                  "responder_resources"_a = connection.responder_resources,
                  "service_id"_a = connection.service_id, "ack_timeout"_a = connection.ack_timeout);
}

void require_private_data(std::span<const uint8_t> data, size_t most) {
  if (data.size() > most)
    throw std::invalid_argument("private_data: " + std::to_string(data.size()) + " bytes (valid: at most " +
                                std::to_string(most) + ")");
}

void bind_connections(py::module_& m) {
  using cm::Connections;
  py::class_<Connections>(
      m, "CmConnections",
      "Communication management of one device without I/O: messages, times and calls go in.")
      .def(py::init<uint64_t, uint8_t, uint32_t>(), "node_guid"_a, py::kw_only(), "ack_delay"_a = 15,
           "seed"_a = 1)
      .def("listen", &Connections::listen, "service_id"_a)
      .def("end_listen", &Connections::end_listen, "service_id"_a)
      .def(
          "connect",
          [](Connections& self, TimePs now, const py::bytes& local, const py::bytes& remote,
             uint64_t service_id, uint32_t qpn, uint32_t starting_psn, uint8_t responder_resources,
             uint8_t initiator_depth, uint8_t transport, const py::bytes& private_data) {
            require_private_data(view_of(private_data), cm::Req::kPrivateBytes);
            return self.connect(now, path_between(local, remote, 1), service_id, transport,
                                queue_pair_facts(qpn, starting_psn, responder_resources, initiator_depth),
                                view_of(private_data));
          },
          "now_ps"_a, py::kw_only(), "local"_a, "remote"_a, "service_id"_a, "qpn"_a, "starting_psn"_a = 0,
          "responder_resources"_a = 1, "initiator_depth"_a = 1, "transport"_a = 0,
          "private_data"_a = py::bytes(), "Send a REQ; returns the connection's ID, 0 if there is no room.")
      .def(
          "accept",
          [](Connections& self, TimePs now, uint32_t id, uint32_t qpn, uint32_t starting_psn,
             uint8_t responder_resources, uint8_t initiator_depth, const py::bytes& private_data) {
            return self.accept(now, id,
                               queue_pair_facts(qpn, starting_psn, responder_resources, initiator_depth),
                               view_of(private_data));
          },
          "now_ps"_a, "id"_a, py::kw_only(), "qpn"_a, "starting_psn"_a = 0, "responder_resources"_a = 1,
          "initiator_depth"_a = 1, "private_data"_a = py::bytes(),
          "Send a REP; returns 0 or an errno, as the others.")
      .def("confirm", &Connections::confirm, "now_ps"_a, "id"_a, "Send an RTU.")
      .def(
          "reject",
          [](Connections& self, TimePs now, uint32_t id, uint16_t reason, const py::bytes& private_data) {
            return self.reject(now, id, reason, {}, view_of(private_data));
          },
          "now_ps"_a, "id"_a, py::kw_only(), "reason"_a = 28, "private_data"_a = py::bytes(), "Send a REJ.")
      .def("disconnect", &Connections::disconnect, "now_ps"_a, "id"_a, "Send a DREQ.")
      .def("answer_disconnect", &Connections::answer_disconnect, "now_ps"_a, "id"_a, "Send a DREP.")
      .def("establish", &Connections::establish, "now_ps"_a, "id"_a, "A packet has come before the RTU.")
      .def(
          "resolve_service",
          [](Connections& self, TimePs now, const py::bytes& local, const py::bytes& remote,
             uint64_t service_id, const py::bytes& private_data) {
            require_private_data(view_of(private_data), cm::SidrReq::kPrivateBytes);
            return self.resolve_service(now, path_between(local, remote, 1), service_id,
                                        view_of(private_data));
          },
          "now_ps"_a, py::kw_only(), "local"_a, "remote"_a, "service_id"_a, "private_data"_a = py::bytes(),
          "Send a SIDR_REQ; returns as connect().")
      .def(
          "answer_service",
          [](Connections& self, TimePs now, uint32_t id, uint8_t status, uint32_t qpn, uint32_t qkey,
             const py::bytes& private_data) {
            return self.answer_service(now, id, status, qpn, qkey, 0, view_of(private_data));
          },
          "now_ps"_a, "id"_a, py::kw_only(), "status"_a = 0, "qpn"_a = 0, "qkey"_a = 0,
          "private_data"_a = py::bytes(), "Send a SIDR_REP.")
      .def("destroy", &Connections::destroy, "now_ps"_a, "id"_a, "quietly"_a = false)
      .def(
          "receive",
          [](Connections& self, TimePs now, const py::bytes& local, const py::bytes& remote,
             const py::bytes& mad) { self.receive(now, {1, cm_gid(local), cm_gid(remote)}, view_of(mad)); },
          "now_ps"_a, py::kw_only(), "local"_a, "remote"_a, "mad"_a)
      .def("advance", &Connections::advance, "now_ps"_a, "Do what is due.")
      .def_property_readonly("next_deadline_ps",
                             [](const Connections& self) { return some_deadline(self.next_deadline()); })
      .def(
          "take_outgoing", [](Connections& self) { return datagrams_of(self.take_outgoing()); },
          "Port, own GID, the other's GID and the 256 bytes of each message.")
      .def(
          "take_events",
          [](Connections& self) {
            py::list list;
            for (const cm::Event& event : self.take_events())
              list.append(py::make_tuple(cm::event_name(event.kind), event.id, cm_fields(event.message)));
            return Typed<"list[tuple[str, int, dict[str, object]]]", py::list>(list);
          },
          "Kind, the connection's ID and the message of each.")
      .def(
          "connection",
          [](const Connections& self, uint32_t id) -> std::optional<CmFields> {
            const cm::Connection* const found = self.find(id);
            if (found == nullptr) return std::nullopt;
            return connection_fields(*found);
          },
          "id"_a, "State and facts; None once destroyed.")
      .def(
          "copy", [](const Connections& self) { return Connections(self); },
          "One that goes on from the same state.")
      .def("__len__", &Connections::size)
      .def_property_readonly("counters",
                             [](const Connections& self) { return counters_of(self.counters()); });
}

// ---- a host

// Surroundings that Python moves: a clock that stands, messages that are kept, routes that are listed.
class ListedSurroundings : public cm::Surroundings {
 public:
  TimePs now() override { return now_ps; }
  void send(const cm::Outgoing& message) override { outgoing.push_back(message); }
  Route route(const cm::Gid& destination, uint8_t port) override {
    const auto found = routes.find(destination);
    if (found == routes.end()) return kernel ? kernel->route(destination, port) : Route{ENETUNREACH, 0};
    if (port != 0 && port != found->second) return {EHOSTUNREACH, 0};
    return {0, found->second};
  }
  void events_wait(uint32_t client) override {
    if (!kernel) signalled.push_back(client);
    if (channels != nullptr) channels->events_wait(client);
  }
  void join(uint8_t port, const cm::Gid& group) override {
    if (!kernel) groups.emplace_back(true, port, to_bytes(group));
  }
  void leave(uint8_t port, const cm::Gid& group) override {
    if (!kernel) groups.emplace_back(false, port, to_bytes(group));
  }

  TimePs now_ps = 0;
  std::map<cm::Gid, uint8_t> routes;
  std::optional<cm::KernelRoutes> kernel;  // where routes has none
  std::vector<cm::Outgoing> outgoing;
  std::vector<uint32_t> signalled;
  std::vector<std::tuple<bool, uint8_t, py::bytes>> groups;
  cm::Channels* channels = nullptr;
};

using CmPorts = std::vector<std::tuple<uint8_t, uint8_t, std::vector<py::bytes>>>;

class PythonCmHost {
 public:
  PythonCmHost(uint64_t node_guid, const CmPorts& ports, uint8_t ack_delay, uint64_t seed, bool asks_kernel)
      : ucma(device_of(node_guid, ports, ack_delay), surroundings, seed), channels(ucma, seed) {
    surroundings.channels = &channels;
    if (asks_kernel) surroundings.kernel.emplace(device_of(node_guid, ports, ack_delay).ports);
  }

  static cm::Device device_of(uint64_t node_guid, const CmPorts& ports, uint8_t ack_delay) {
    cm::Device device;
    device.node_guid = node_guid;
    device.ack_delay = ack_delay;
    for (const auto& [number, mtu, gids] : ports) {
      cm::DevicePort& port = device.ports.emplace_back();
      port.number = number;
      port.mtu = mtu;
      for (const py::bytes& gid : gids)
        port.addresses.push_back({cm_gid(gid), static_cast<uint8_t>(port.addresses.size())});
    }
    return device;
  }

  ListedSurroundings surroundings;
  cm::Ucma ucma;
  cm::Channels channels;
};

void bind_host(py::module_& m) {
  m.def(
      "cm_messages",
      [] {
        std::vector<std::string> names;
        for (uint16_t each = 0; each < cm::kAttributes; ++each)
          names.emplace_back(cm::attribute_name(static_cast<uint16_t>(cm::kReq + each)));
        return names;
      },
      "Names of connection management's messages.");
  py::class_<PythonCmHost>(m, "CmHost", R"doc(A host's /dev/infiniband/rdma_cm without a network.

Its clock stands where `now_ps` is put; what it sends is kept until it is taken.)doc")
      .def(py::init<uint64_t, const CmPorts&, uint8_t, uint64_t, bool>(), "node_guid"_a, "ports"_a,
           py::kw_only(), "ack_delay"_a = 15, "seed"_a = 1, "asks_kernel"_a = false,
           "Ports: number, active MTU as 1 to 5, and GIDs. asks_kernel: other routes are this namespace's.")
      .def_property(
          "now_ps", [](const PythonCmHost& self) { return self.surroundings.now_ps; },
          [](PythonCmHost& self, TimePs now) { self.surroundings.now_ps = now; })
      .def(
          "add_route",
          [](PythonCmHost& self, const py::bytes& destination, uint8_t port) {
            self.surroundings.routes[cm_gid(destination)] = port;
          },
          "destination"_a, "port"_a = 1)
      .def(
          "open", [](PythonCmHost& self) { return self.ucma.open_client(); },
          "Returns a new client's number.")
      .def(
          "close", [](PythonCmHost& self, uint32_t client) { self.ucma.close_client(client); }, "client"_a)
      .def(
          "command",
          [](PythonCmHost& self, uint32_t client, const py::bytes& bytes, const py::bytes& option,
             std::optional<uint32_t> source) {
            const cm::Ucma::Answer answer =
                self.ucma.command(client, view_of(bytes), view_of(option), source);
            return std::tuple(answer.error, to_bytes(answer.response), answer.is_drained);
          },
          "client"_a, "bytes"_a, "option"_a = py::bytes(), "source"_a = py::none(),
          "Returns an errno, the answer, and whether no event waits any more.")
      .def(
          "has_events",
          [](const PythonCmHost& self, uint32_t client) { return self.ucma.has_events(client); }, "client"_a)
      .def(
          "receive",
          [](PythonCmHost& self, uint8_t port, const py::bytes& local, const py::bytes& remote,
             const py::bytes& mad) {
            self.ucma.receive({port, cm_gid(local), cm_gid(remote)}, view_of(mad));
          },
          "port"_a, "local"_a, "remote"_a, "mad"_a)
      .def(
          "advance", [](PythonCmHost& self) { self.ucma.advance(); }, "Do what is due.")
      .def_property_readonly(
          "next_deadline_ps",
          [](const PythonCmHost& self) { return some_deadline(self.ucma.next_deadline()); })
      .def(
          "take_outgoing",
          [](PythonCmHost& self) { return datagrams_of(std::exchange(self.surroundings.outgoing, {})); },
          "Port, own GID, the other's GID and the 256 bytes of each message.")
      .def(
          "take_signalled", [](PythonCmHost& self) { return std::exchange(self.surroundings.signalled, {}); },
          "Clients with events that they have not been told of.")
      .def(
          "take_groups", [](PythonCmHost& self) { return std::exchange(self.surroundings.groups, {}); },
          "Multicast groups that were joined (True) and left, with port and GID.")
      .def(
          "add_channel", [](PythonCmHost& self, int socket) { return self.channels.add(socket); }, "socket"_a,
          "Take over a program's connection; the descriptor is closed at its end.")
      .def(
          "serve_channel", [](PythonCmHost& self, int socket) { return self.channels.serve(socket); },
          "socket"_a, "Serve what has come; returns False once the program has gone.")
      .def(
          "listens",
          [](const PythonCmHost& self, uint64_t service_id) { return self.ucma.listens(service_id); },
          "service_id"_a)
      .def_property_readonly("channels", [](const PythonCmHost& self) { return self.channels.size(); })
      .def_property_readonly("ids", [](const PythonCmHost& self) { return self.ucma.ids(); })
      .def_property_readonly("connections", [](const PythonCmHost& self) { return self.ucma.connections(); })
      .def_property_readonly("counters", [](const PythonCmHost& self) {
        CmFields counters = counters_of(self.ucma.counters());
        counters["forgotten_requests"] = self.ucma.forgotten_requests();
        return counters;
      });
}

}  // namespace

void add_cm_fields(py::dict& headers) {
  headers["MAD"] = fields_list<cm::MadHeader>();
  headers["CMReq"] = fields_list<cm::Req>();
  headers["CMMra"] = fields_list<cm::Mra>();
  headers["CMRej"] = fields_list<cm::Rej>();
  headers["CMRep"] = fields_list<cm::Rep>();
  headers["CMRtu"] = fields_list<cm::Rtu>();
  headers["CMDreq"] = fields_list<cm::Dreq>();
  headers["CMDrep"] = fields_list<cm::Drep>();
  headers["CMSidrReq"] = fields_list<cm::SidrReq>();
  headers["CMSidrRep"] = fields_list<cm::SidrRep>();
  headers["CMIpAddressing"] = fields_list<cm::IpAddressing>();
}

void bind_cm(py::module_& m) {
  m.attr("CM_HELLO_MAGIC") = cm::kHelloMagic;
  m.def(
      "parse_cm",
      [](const py::bytes& mad) {
        cm::Message message;
        if (const cm::ParseError error = cm::parse_message(view_of(mad), message);
            error != cm::ParseError::kNone)
          throw std::invalid_argument(std::string("management datagram: ") + cm::parse_error_name(error));
        return cm_fields(message);
      },
      "mad"_a,
      "A message of communication management as a dictionary. Raises ValueError as cm_parse_error() says.");
  m.def(
      "cm_parse_error",
      [](const py::bytes& mad) {
        cm::Message message;
        return cm::parse_error_name(cm::parse_message(view_of(mad), message));
      },
      "mad"_a, "What parse_cm() would refuse the bytes for: \"none\", \"wrong_length\", \"wrong_class\" …");
  m.def("build_cm", &build_cm, "message"_a, "The 256 bytes of a message as parse_cm() returns it.");
  bind_connections(m);
  bind_host(m);
}

}  // namespace weft
