// Queue pairs in Python.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "congestion/bandwidth_delay_product.hpp"
#include "hosts/mrc/mrc_endpoint.hpp"
#include "hosts/mrc/mrc_queue_pair.hpp"
#include "hosts/rc_queue_pair.hpp"
#include "hosts/uet/rudi_queue_pair.hpp"
#include "hosts/uet/uet_queue_pair.hpp"
#include "hosts/uet/uud_queue_pair.hpp"
#include "python/bind_codec.hpp"
#include "python/bind_hop_latencies.hpp"
#include "python/bindings.hpp"
#include "python/bindings_support.hpp"
#include "python/ev_states.hpp"
#include "python/made_by_python.hpp"
#include "python/rc_options.hpp"
#include "python/registered_memory.hpp"
#include "python/shared_receives.hpp"
#include "python/statistics_dict.hpp"
#include "python/typed.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

namespace {

class PythonRcQueuePair final : public RcQueuePair, public MadeByPython {
 public:
  PythonRcQueuePair(Nic& nic, const RcConfig& config, std::shared_ptr<CongestionControl> congestion_control,
                    std::shared_ptr<PathChoice> path_choice, std::shared_ptr<CompletionHandler> handler,
                    std::shared_ptr<MemoryDomain> domain, std::shared_ptr<SharedReceives> shared_receives)
      : RcQueuePair(config, nic.engine().packets(), registry_of(nic, domain), std::move(congestion_control),
                    std::move(path_choice), handler.get(), std::move(shared_receives)),
        MadeByPython(nic, std::move(handler), std::move(domain)) {}
};

class PythonMrcQueuePair final : public MrcQueuePair, public MadeByPython {
 public:
  PythonMrcQueuePair(Nic& nic, const RcConfig& config, const MrcConfig& mrc,
                     std::shared_ptr<CongestionControl> congestion_control,
                     std::shared_ptr<CompletionHandler> handler, std::shared_ptr<MemoryDomain> domain)
      : MrcQueuePair(config, mrc, nic.engine().packets(), registry_of(nic, domain),
                     std::move(congestion_control), handler.get()),
        MadeByPython(nic, std::move(handler), std::move(domain)) {}
};

class PythonUetQueuePair final : public UetQueuePair, public MadeByPython {
 public:
  PythonUetQueuePair(Nic& nic, int port, const RcConfig& config, const UetConfig& uet,
                     std::shared_ptr<CongestionControl> congestion_control,
                     std::shared_ptr<PathChoice> path_choice, std::shared_ptr<CompletionHandler> handler)
      : UetQueuePair(config, uet, nic.engine().packets(), nic.memory(), nic.pdcs(),
                     uet.receiver_credits ? nic.credit_pacer(port) : nullptr, std::move(congestion_control),
                     std::move(path_choice), handler.get()),
        MadeByPython(nic, std::move(handler)) {}
};

class PythonRudiQueuePair final : public RudiQueuePair, public MadeByPython {
 public:
  PythonRudiQueuePair(Nic& nic, int /*port*/, const RcConfig& config, const UetConfig& uet,
                      std::shared_ptr<CongestionControl> congestion_control,
                      std::shared_ptr<PathChoice> path_choice, std::shared_ptr<CompletionHandler> handler)
      : RudiQueuePair(config, uet, nic.engine().packets(), nic.memory(), nic.pdcs(),
                      std::move(congestion_control), std::move(path_choice), handler.get()),
        MadeByPython(nic, std::move(handler)) {}
};

class PythonUudQueuePair final : public UudQueuePair, public MadeByPython {
 public:
  PythonUudQueuePair(Nic& nic, int /*port*/, const RcConfig& config, const UetConfig& uet,
                     std::shared_ptr<CongestionControl> congestion_control,
                     std::shared_ptr<PathChoice> path_choice, std::shared_ptr<CompletionHandler> handler)
      : UudQueuePair(config, uet, nic.engine().packets(), nic.pdcs(), std::move(congestion_control),
                     std::move(path_choice), handler.get()),
        MadeByPython(nic, std::move(handler)) {}
};

std::shared_ptr<RcQueuePair> make_rc_queue_pair(
    Nic& nic, int port, std::shared_ptr<CompletionHandler> completions, uint32_t remote_queue_pair,
    const std::string& destination_mac, const std::string& destination_ip,
    std::shared_ptr<CongestionControl> congestion_control, std::shared_ptr<PathChoice> path_choice,
    std::optional<uint32_t> queue_pair, std::optional<uint16_t> source_udp_port,
    std::shared_ptr<MemoryDomain> domain, const std::shared_ptr<PythonSharedReceives>& shared_receives,
    const py::KWArgs<Typed<"typing.Unpack[RcOptions]">>& options) {
  auto config = options_of<RcConfig>(options, "RcQueuePair");
  Engine& engine = nic.engine();
  PythonGuard guard(engine);
  set_ends(config, nic, port, queue_pair, remote_queue_pair, destination_mac, destination_ip);
  config.source_udp_port = source_udp_port_of(nic, config, source_udp_port);
  auto made = make_in_cache_lines<PythonRcQueuePair>(nic, config, std::move(congestion_control),
                                                     std::move(path_choice), std::move(completions),
                                                     std::move(domain), receives_of(shared_receives));
  nic.attach(*made, port, config.queue_pair);
  nic.keep(made);
  return released_under_lock<RcQueuePair>(std::move(made), engine);
}

// Port, destination MAC and destination IP.
using MrcPlane = std::tuple<int, std::string, std::string>;

std::shared_ptr<MrcQueuePair> make_mrc_queue_pair(
    Nic& nic, int port, std::shared_ptr<CompletionHandler> completions, uint32_t remote_queue_pair,
    const std::string& destination_mac, const std::string& destination_ip,
    std::shared_ptr<CongestionControl> congestion_control, const Record<"MrcOptions">& mrc_options,
    const std::vector<MrcPlane>& more_planes, std::shared_ptr<mrc::EvRoutes> routes,
    std::optional<uint32_t> queue_pair, std::shared_ptr<MemoryDomain> domain,
    const py::KWArgs<Typed<"typing.Unpack[RcOptions]">>& options) {
  auto config = options_of<RcConfig>(options, "MrcQueuePair");
  if (!options.contains("retransmission")) config.retransmission = Retransmission::kSelectiveRepeat;
  auto mrc = options_of<MrcConfig>(mrc_options, "MrcQueuePair");
  mrc.routes = std::move(routes);
  Engine& engine = nic.engine();
  PythonGuard guard(engine);
  set_ends(config, nic, port, queue_pair, remote_queue_pair, destination_mac, destination_ip);
  std::vector<int> ports{port};
  for (const auto& [other, mac, ip] : more_planes) {
    const roce::IpAddress peer = parse_ip(ip);
    mrc.more_paths.push_back(
        {nic.port_config(other).mac, parse_mac(mac), nic.own_address(other, peer), peer});
    config.line_rate_bps += nic.line_rate_bps(other);
    ports.push_back(other);
  }
  mrc.ev_seed = mrc_seed(nic.entropy_seed(), config.queue_pair, config.remote_queue_pair);
  auto made = make_in_cache_lines<PythonMrcQueuePair>(nic, config, mrc, std::move(congestion_control),
                                                      std::move(completions), std::move(domain));
  mrc::Endpoint::of(nic).attach(*made, ports, config.queue_pair);
  nic.keep(made);
  return released_under_lock<MrcQueuePair>(std::move(made), engine);
}

// Python's name of a class of queue pairs of UET, and what is made for it.
template <class Base>
struct UetClass;
template <>
struct UetClass<UetQueuePair> {
  using Made = PythonUetQueuePair;
  static constexpr const char* kName = "UetQueuePair";
};
template <>
struct UetClass<RudiQueuePair> {
  using Made = PythonRudiQueuePair;
  static constexpr const char* kName = "RudiQueuePair";
};
template <>
struct UetClass<UudQueuePair> {
  using Made = PythonUudQueuePair;
  static constexpr const char* kName = "UudQueuePair";
};

template <class Base>
std::shared_ptr<Base> make_uet_queue_pair(
    Nic& nic, int port, std::shared_ptr<CompletionHandler> completions, uint32_t remote_queue_pair,
    const std::string& destination_mac, const std::string& destination_ip,
    std::shared_ptr<CongestionControl> congestion_control, const Record<"UetOptions">& uet_options,
    std::shared_ptr<PathChoice> path_choice, std::optional<uint32_t> queue_pair,
    std::optional<uint16_t> source_udp_port, const py::KWArgs<Typed<"typing.Unpack[RcOptions]">>& options) {
  auto config = options_of<RcConfig>(options, UetClass<Base>::kName);
  const auto uet = options_of<UetConfig>(uet_options, UetClass<Base>::kName);
  if (!options.contains("retransmission")) config.retransmission = retransmission_of(uet.service);
  Engine& engine = nic.engine();
  PythonGuard guard(engine);
  set_ends(config, nic, port, queue_pair, remote_queue_pair, destination_mac, destination_ip);
  config.source_udp_port = source_udp_port_of(nic, config, source_udp_port);
  auto made = make_in_cache_lines<typename UetClass<Base>::Made>(
      nic, port, config, uet, std::move(congestion_control), std::move(path_choice), std::move(completions));
  nic.attach(*made, port, config.queue_pair);
  nic.keep(made);
  return released_under_lock<Base>(std::move(made), engine);
}

// The class as Python has it, with what all services have.
template <class Base>
py::class_<Base, WritingQueuePair, std::shared_ptr<Base>> bind_uet_class(py::module_& m, const char* doc) {
  py::class_<Base, WritingQueuePair, std::shared_ptr<Base>> bound(m, UetClass<Base>::kName, doc);
  bound
      .def(py::init(&make_uet_queue_pair<Base>), "nic"_a, "port"_a, "completions"_a, py::kw_only(),
           "remote_queue_pair"_a, "destination_mac"_a, "destination_ip"_a, "congestion_control"_a,
           "uet_options"_a = py::dict(), "path_choice"_a = py::none(), "queue_pair"_a = py::none(),
           "source_udp_port"_a = py::none(), py::keep_alive<1, 2>(), py::keep_alive<1, 4>())
      .def(
          "uet_stats",
          [](const Base& queue_pair) {
            PythonGuard guard(MadeByPython::engine_of(queue_pair));
            return Record<"UetCounters">(statistics_dict(queue_pair.uet_counters()));
          },
          "What it counts beyond RcStats.");
  return bound;
}

py::bytes frame_of(const WritingQueuePair& queue_pair) {
  const std::vector<uint8_t> frame = queue_pair.data_frame();
  return {reinterpret_cast<const char*>(frame.data()), frame.size()};
}

Record<"RcStats"> rc_stats(const WritingQueuePair& queue_pair) {
  PythonGuard guard(MadeByPython::engine_of(queue_pair));
  py::dict stats = statistics_dict(queue_pair.counters());
  stats[shared_key("in_flight_bytes")] = queue_pair.in_flight_bytes();
  stats[shared_key("outstanding_requests")] = queue_pair.outstanding_requests();
  stats[shared_key("error")] = completion_status_name(queue_pair.error());
  stats[shared_key("responder_error")] = completion_status_name(queue_pair.responder_error());
  return stats;
}

void post_write(WritingQueuePair& queue_pair, const RegisteredMemory* memory, uint64_t offset_bytes,
                uint64_t length_bytes, uint64_t remote_address, uint32_t rkey,
                std::optional<uint32_t> immediate, std::optional<bool> solicited, uint64_t work_id) {
  LocalRange local(memory, offset_bytes, length_bytes);
  Engine& engine = MadeByPython::engine_of(queue_pair);
  PythonGuard guard(engine);
  queue_pair.post(engine.now(), {.kind = CompletionKind::kWrite,
                                 .work_id = work_id,
                                 .data = local.data,
                                 .length_bytes = length_bytes,
                                 .remote_address = remote_address,
                                 .rkey = rkey,
                                 .immediate = immediate,
                                 .owner = std::move(local.owner),
                                 .solicits = solicits(solicited),
                                 .foreign = local.foreign});
}

void post_write_as_length(WritingQueuePair& queue_pair, uint64_t length_bytes, uint64_t remote_address,
                          uint32_t rkey, std::optional<uint32_t> immediate, uint64_t work_id) {
  Engine& engine = MadeByPython::engine_of(queue_pair);
  PythonGuard guard(engine);
  queue_pair.post_write_as_length(engine.now(), length_bytes, remote_address, rkey, immediate, work_id);
}

void post(WritingQueuePair& queue_pair, RcRequest request) {
  Engine& engine = MadeByPython::engine_of(queue_pair);
  PythonGuard guard(engine);
  queue_pair.post(engine.now(), std::move(request));
}

void post_send(WritingQueuePair& queue_pair, const RegisteredMemory* memory, uint64_t offset_bytes,
               uint64_t length_bytes, std::optional<uint32_t> immediate, std::optional<bool> solicited,
               uint64_t work_id) {
  LocalRange local(memory, offset_bytes, length_bytes);
  post(queue_pair, {.kind = CompletionKind::kSend,
                    .work_id = work_id,
                    .data = local.data,
                    .length_bytes = length_bytes,
                    .immediate = immediate,
                    .owner = std::move(local.owner),
                    .solicits = solicits(solicited),
                    .foreign = local.foreign});
}

void post_read(WritingQueuePair& queue_pair, const RegisteredMemory* memory, uint64_t offset_bytes,
               uint64_t length_bytes, uint64_t remote_address, uint32_t rkey, uint64_t work_id) {
  require_writable(memory, "READ");
  LocalRange local(memory, offset_bytes, length_bytes);
  post(queue_pair, {.kind = CompletionKind::kRead,
                    .work_id = work_id,
                    .length_bytes = length_bytes,
                    .remote_address = remote_address,
                    .rkey = rkey,
                    .owner = std::move(local.owner),
                    .target = local.data,
                    .foreign = local.foreign});
}

void post_read_as_length(WritingQueuePair& queue_pair, uint64_t length_bytes, uint64_t remote_address,
                         uint32_t rkey, uint64_t work_id) {
  post(queue_pair, {.kind = CompletionKind::kRead,
                    .work_id = work_id,
                    .length_bytes = length_bytes,
                    .remote_address = remote_address,
                    .rkey = rkey,
                    .as_length = true});
}

void post_compare_swap(WritingQueuePair& queue_pair, const RegisteredMemory* memory, uint64_t offset_bytes,
                       uint64_t remote_address, uint32_t rkey, uint64_t compare, uint64_t swap,
                       uint64_t work_id) {
  require_writable(memory, "compare-and-swap");
  LocalRange local(memory, offset_bytes, kAtomicBytes);
  post(queue_pair, {.kind = CompletionKind::kCompareSwap,
                    .work_id = work_id,
                    .length_bytes = kAtomicBytes,
                    .remote_address = remote_address,
                    .rkey = rkey,
                    .owner = std::move(local.owner),
                    .target = local.data,
                    .swap_or_add = swap,
                    .compare = compare,
                    .foreign = local.foreign});
}

void post_fetch_add(WritingQueuePair& queue_pair, const RegisteredMemory* memory, uint64_t offset_bytes,
                    uint64_t remote_address, uint32_t rkey, uint64_t add, uint64_t work_id) {
  require_writable(memory, "fetch-and-add");
  LocalRange local(memory, offset_bytes, kAtomicBytes);
  post(queue_pair, {.kind = CompletionKind::kFetchAdd,
                    .work_id = work_id,
                    .length_bytes = kAtomicBytes,
                    .remote_address = remote_address,
                    .rkey = rkey,
                    .owner = std::move(local.owner),
                    .target = local.data,
                    .swap_or_add = add,
                    .foreign = local.foreign});
}

void post_receive(WritingQueuePair& queue_pair, const RegisteredMemory* memory, uint64_t offset_bytes,
                  uint64_t length_bytes, uint64_t work_id) {
  PostedReceive receive = receive_in(memory, offset_bytes, length_bytes, work_id);
  Engine& engine = MadeByPython::engine_of(queue_pair);
  PythonGuard guard(engine);
  queue_pair.post_receive(engine.now(), std::move(receive));
}

void flush(WritingQueuePair& queue_pair) {
  Engine& engine = MadeByPython::engine_of(queue_pair);
  PythonGuard guard(engine);
  queue_pair.flush(engine.now());
}

std::optional<Record<"TelemetryFields">> last_telemetry(const WritingQueuePair& queue_pair) {
  PythonGuard guard(MadeByPython::engine_of(queue_pair));
  if (!queue_pair.last_telemetry()) return std::nullopt;
  return telemetry_dict(*queue_pair.last_telemetry());
}

// Entropy values without a queue pair, for who wants to see how they change.
struct StandaloneEvTable {
  StandaloneEvTable(uint32_t planes, uint32_t active, uint32_t backups, uint64_t seed)
      : table(planes, active, backups, seed, counters) {}
  size_t checked(size_t ev) const {
    if (ev < table.size()) return ev;
    throw std::invalid_argument("no entropy value " + std::to_string(ev) + " (valid: 0 to " +
                                std::to_string(table.size() - 1) + ")");
  }
  uint32_t checked_plane(uint32_t plane) const {
    if (plane < table.planes()) return plane;
    throw std::invalid_argument("no plane " + std::to_string(plane) + " (valid: 0 to " +
                                std::to_string(table.planes() - 1) + ")");
  }

  MrcCounters counters;
  mrc::EvTable table;
};

void bind_ev_table(py::module_& m) {
  using Table = StandaloneEvTable;
  py::class_<Table>(m, "EvTable",
                    R"doc(Entropy values (EVs) of an MRC queue pair and their states, without packets.

Raises ValueError if a plane would have none, and for indices and planes that there are not.)doc")
      .def(py::init<uint32_t, uint32_t, uint32_t, uint64_t>(), "planes"_a, "active"_a, "backups"_a,
           "seed"_a = 0)
      .def(
          "evs", [](const Table& own) { return entropy_values(own.table); }, "All of them, by index.")
      .def(
          "next", [](Table& own, uint32_t plane) { return own.table.next(own.checked_plane(plane)); },
          "plane"_a = 0, "The EV of the plane for the next packet; None if all are denied.")
      .def(
          "next_reverse",
          [](Table& own, uint32_t plane) { return own.table.next_reverse(own.checked_plane(plane)); },
          "plane"_a = 0, "The same for SACKs and NACKs: the EV that was proven last.")
      .def(
          "on_proof", [](Table& own, size_t ev) { own.table.on_proof(own.checked(ev)); }, "ev"_a,
          "An answer shows that its path works.")
      .def(
          "drawn", [](Table& own) { return own.table.drawn(); },
          "An EV to probe, at random; None if all are denied, assumed bad or on planes that are down.")
      .def(
          "find", [](const Table& own, uint32_t value) { return own.table.find(value); }, "value"_a,
          "The index of a value, None if there is none.")
      .def(
          "set_up",
          [](Table& own, uint32_t plane, bool up) { own.table.set_up(own.checked_plane(plane), up); },
          "plane"_a, "up"_a, "The plane's port is up at both ends, or not.")
      .def(
          "may_use",
          [](const Table& own, uint32_t plane) { return own.table.may_use(own.checked_plane(plane)); },
          "plane"_a, "Whether packets may go over the plane.")
      .def(
          "on_congestion", [](Table& own, size_t ev) { own.table.on_congestion(own.checked(ev)); }, "ev"_a,
          "Its path has marked a packet, or trimmed it.")
      .def(
          "on_failure", [](Table& own, size_t ev) { return own.table.on_failure(own.checked(ev)); }, "ev"_a,
          "A packet was lost without a word; returns whether that is news.")
      .def(
          "on_probe_answer",
          [](Table& own, size_t ev, bool marked) { own.table.on_probe_answer(own.checked(ev), marked); },
          "ev"_a, "marked"_a = false, "A probe came back.")
      .def(
          "deny", [](Table& own, size_t ev) { own.table.deny(own.checked(ev)); }, "ev"_a,
          "Exclude it, as an administrator does.")
      .def(
          "allow", [](Table& own, size_t ev) { own.table.allow(own.checked(ev)); }, "ev"_a, "Admit it again.")
      .def(
          "counters", [](const Table& own) { return Record<"MrcCounters">(statistics_dict(own.counters)); },
          "Changes of state.");
}

void bind_ev_routes(py::module_& m) {
  using mrc::EvRoutes;
  py::class_<EvRoutes, std::shared_ptr<EvRoutes>>(
      m, "EvRoutes",
      R"doc(The paths that entropy values (EVs) name, by peer; encapsulates: in an outer IPv6 header.)doc")
      .def(py::init<bool>(), py::kw_only(), "encapsulates"_a)
      .def(
          "add",
          [](EvRoutes& own, const std::string& peer,
             const std::vector<std::tuple<uint32_t, std::string>>& routes) {
            std::vector<mrc::EvRoute> added;
            for (const auto& [value, outer] : routes)
              added.push_back({value, outer.empty() ? roce::IpAddress() : parse_ip(outer)});
            own.add(parse_ip(peer), std::move(added));
          },
          "peer"_a, "routes"_a,
          R"doc(Set the routes to a peer's address: EVs, each with the outer destination (empty: none).

Raises ValueError for none, more than 16,384, two with one UDP source port, and encapsulated ones without an
outer IPv6 address.)doc");
}

}  // namespace

void bind_queue_pair(py::module_& m) {
  declare_options<RcConfig>("RcOptions");
  declare_record<RcCounters>("RcCounters");
  declare_options<MrcConfig>("MrcOptions");
  declare_record<MrcCounters>("MrcCounters");
  declare_record<MrcEndpointCounters>("MrcEndpointCounters");
  m.def(
      "mrc_endpoint_stats",
      [](Nic& nic) {
        PythonGuard guard(nic.engine());
        mrc::Endpoint* endpoint = mrc::Endpoint::find(nic);
        return Record<"MrcEndpointCounters">(
            statistics_dict(endpoint == nullptr ? MrcEndpointCounters() : endpoint->counters()));
      },
      "nic"_a, "What a NIC has counted of endpoint operations, zeros without a queue pair of MRC.");
  m.def(
      "reset_mrc_endpoint_stats",
      [](Nic& nic) {
        PythonGuard guard(nic.engine());
        if (mrc::Endpoint* endpoint = mrc::Endpoint::find(nic)) endpoint->reset_counters();
      },
      "nic"_a);
  m.def(
      "withdraw_mrc_ports",
      [](Nic& nic, const std::vector<int>& ports) {
        PythonGuard guard(nic.engine());
        mrc::Endpoint& endpoint = mrc::Endpoint::of(nic);  // refuses more ports than there are bits
        uint32_t withdrawn = 0;
        for (const int port : ports) {
          nic.port_config(port);  // refuses what the NIC does not have
          withdrawn |= 1u << port;
        }
        endpoint.set_withdrawn(withdrawn);
      },
      "nic"_a, "ports"_a,
      "Has queue pairs of MRC leave these ports, as an operator says, here and at all peers; and use all "
      "others.");
  m.def(
      "take_mrc_ev_events",
      [](Nic& nic, size_t most) {
        PythonGuard guard(nic.engine());
        mrc::Endpoint* endpoint = mrc::Endpoint::find(nic);
        std::vector<Record<"EvEvent">> taken;
        if (endpoint == nullptr) return taken;
        for (const mrc::EvEvent& event : endpoint->take_events(most)) {
          taken.emplace_back(py::dict(
              "time_ps"_a = event.at_ps, "profile_id"_a = event.profile_id, "queue_pair"_a = event.queue_pair,
              "peer"_a = format_ip(event.peer), "port"_a = event.port, "value"_a = event.value,
              "state"_a = mrc::ev_state_name(event.state), "drop_count"_a = event.drop_count));
        }
        return taken;
      },
      "nic"_a, "most"_a = mrc::Endpoint::kMostEvents,
      R"doc(Take the oldest EV events of a NIC that nobody has taken, at most so many.

Up to 4,096 wait; further ones are dropped, and counted in the next.)doc");
  declare_record("EvEvent",
                 {{"time_ps", "int", "when the state began"},
                  {"profile_id", "int", "the queue pair's ev_profile_id"},
                  {"queue_pair", "int", "that has the entropy value"},
                  {"peer", "str", "address of the peer on the entropy value's plane"},
                  {"port", "int", "of the NIC, for the entropy value's plane"},
                  {"value", "int", "UDP source port, and flow label in the low half"},
                  {"state", "str", "good or assumed_bad"},
                  {"drop_count", "int", "events that were dropped between the one before and this one"}});
  declare_options<UetConfig>("UetOptions");
  declare_record<UetCounters>("UetCounters");
  declare_record("EntropyValue", {{"value", "int", "UDP source port, and flow label in the low half"},
                                  {"plane", "int", "that its packets take"},
                                  {"state", "str", "good, skip, assumed_bad or denied"},
                                  {"active", "bool", "false: in reserve, or not to be used"},
                                  {"turns", "int", "times that it was chosen for a packet"},
                                  {"outer_destination", "str", "of the outer IPv6 header; empty: none"}});
  declare_record<RcCounters>("RcStats",
                             {{"in_flight_bytes", "int", "sent and not acknowledged"},
                              {"outstanding_requests", "int", "posted and not completed"},
                              {"error", "str", "why requests fail; \"success\" as long as they do not"},
                              {"responder_error", "str", "why what the peer sends is refused"}});
  bind_ev_table(m);
  bind_ev_routes(m);
  m.def(
      "rc_defaults",
      [] {
        const RcConfig config;
        Record<"RcOptions"> defaults;
        RcConfig::each_option([&]<class Value>(const char* option, Value RcConfig::* member, const char*) {
          if constexpr (std::is_arithmetic_v<Value>) defaults[option] = config.*member;
        });
        return defaults;
      },
      "Defaults of the options that are numbers.");
  m.def(
      "mrc_defaults",
      [] {
        const MrcConfig config;
        Record<"MrcOptions"> defaults;
        MrcConfig::each_option([&]<class Value>(const char* option, Value MrcConfig::* member, const char*) {
          defaults[option] = config.*member;
        });
        return defaults;
      },
      "Defaults of MRC's options.");
  m.def(
      "uet_defaults",
      [] {
        const UetConfig config;
        Record<"UetOptions"> defaults;
        UetConfig::each_option([&]<class Value>(const char* option, Value UetConfig::* member, const char*) {
          if constexpr (std::is_arithmetic_v<Value>) defaults[option] = config.*member;
        });
        return defaults;
      },
      "Defaults of UET's options that are numbers.");
  py::class_<QueuePair, std::shared_ptr<QueuePair>>(m, "QueuePair", "What a NIC sends and receives for.");
  py::class_<WritingQueuePair, QueuePair, std::shared_ptr<WritingQueuePair>>(
      m, "WritingQueuePair", R"doc(A connected queue pair, whichever its transport.

Posting what the transport does not carry raises ValueError: MRC has WRITEs only, UET no atomics.)doc")
      .def_property_readonly(
          "queue_pair", [](const WritingQueuePair& queue_pair) { return queue_pair.config().queue_pair; },
          "Its number.")
      .def("post_write", &post_write, "memory"_a.none(true), "offset_bytes"_a, "length_bytes"_a,
           "remote_address"_a, "rkey"_a, py::kw_only(), "immediate"_a = py::none(),
           "solicited"_a = py::none(), "work_id"_a = 0,
           R"doc(RDMA WRITE from memory (None: zeros) to the peer's remote_address; completes as "write".

With an immediate, the peer gets "write_immediate" when all has arrived, which is solicited unless
solicited is False. The bytes must not change
before the completion. Raises ValueError for a range outside the region or more than 2^31 bytes.)doc")
      .def("post_write_as_length", &post_write_as_length, "length_bytes"_a, "remote_address"_a, "rkey"_a,
           py::kw_only(), "immediate"_a = py::none(), "work_id"_a = 0,
           "Like post_write, with payloads that are only counted: the peer writes nothing, nothing is "
           "checked.")
      .def("post_read", &post_read, "memory"_a.none(true), "offset_bytes"_a, "length_bytes"_a,
           "remote_address"_a, "rkey"_a, py::kw_only(), "work_id"_a = 0,
           R"doc(RDMA READ from the peer's remote_address to memory (None: discarded); completes as "read".

The peer's region must have been registered with remote_read. Raises ValueError for a range outside the
region, or more bytes than 2^31 or 2^22 packets.)doc")
      .def("post_read_as_length", &post_read_as_length, "length_bytes"_a, "remote_address"_a, "rkey"_a,
           py::kw_only(), "work_id"_a = 0,
           "Like post_read, with payloads that are only counted: nothing is read or written.")
      .def("post_compare_swap", &post_compare_swap, "memory"_a.none(true), "offset_bytes"_a,
           "remote_address"_a, "rkey"_a, py::kw_only(), "compare"_a, "swap"_a, "work_id"_a = 0,
           R"doc(Set the 8 bytes at the peer's remote_address to swap if they equal compare.

What they were goes to 8 bytes of memory (None: nowhere). Numbers have the hosts' byte order. The
peer's region must have been registered with remote_atomic, the address must be a multiple of 8.
Completes as "compare_swap".)doc")
      .def("post_fetch_add", &post_fetch_add, "memory"_a.none(true), "offset_bytes"_a, "remote_address"_a,
           "rkey"_a, py::kw_only(), "add"_a, "work_id"_a = 0,
           R"doc(Add to the 8 bytes at the peer's remote_address, modulo 2^64; otherwise as post_compare_swap.

Completes as "fetch_add".)doc")
      .def("post_send", &post_send, "memory"_a.none(true), "offset_bytes"_a, "length_bytes"_a, py::kw_only(),
           "immediate"_a = py::none(), "solicited"_a = py::none(), "work_id"_a = 0,
           R"doc(SEND into a receive that the peer has posted; completes as "send".

solicited: whether its completion there is one that programs wait for which want such alone; None: with an
immediate.)doc")
      .def("post_receive", &post_receive, "memory"_a.none(true), "offset_bytes"_a, "length_bytes"_a,
           py::kw_only(), "work_id"_a = 0,
           "A place (None: bytes are discarded) for one incoming SEND; completes as \"receive\".")
      .def(
          "set_remote_access",
          [](WritingQueuePair& queue_pair, bool write, bool read, bool atomic) {
            PythonGuard guard(MadeByPython::engine_of(queue_pair));
            queue_pair.set_remote_access(static_cast<uint8_t>(
                (write ? kRemoteWrite : 0) | (read ? kRemoteRead : 0) | (atomic ? kRemoteAtomic : 0)));
          },
          py::kw_only(), "write"_a, "read"_a, "atomic"_a,
          "What the peer may ask for, whatever regions grant; at first everything. RC with go-back-N, UC and "
          "MRC.")
      .def("flush", &flush,
           "Put the queue pair into the error state: what is posted completes as \"flushed\", the peer gets "
           "no "
           "answers.")
      .def_property_readonly("last_telemetry", &last_telemetry,
                             "The INT stack that the newest acknowledgement echoed.")
      .def("stats", &rc_stats)
      .def_property_readonly("frame", &frame_of, "A frame that goes the way of its data, without a payload.")
      .def(
          "observe",
          [](WritingQueuePair& queue_pair, int32_t source, int32_t destination, int32_t plane, bool messages,
             bool telemetry) {
            Engine& engine = MadeByPython::engine_of(queue_pair);
            PythonGuard guard(engine);
            if (engine.probe() == nullptr) throw std::logic_error("the engine has no probe");
            queue_pair.observe(engine.probe(), {source, destination, plane}, messages, telemetry);
          },
          "source"_a, "destination"_a, "plane"_a, py::kw_only(), "messages"_a = true, "telemetry"_a = false,
          R"doc(Have the engine's probe record messages sent, and INT stacks echoed, under these ranks and plane.

Raises RuntimeError if the engine has no probe.)doc")
      .def(
          "count_hops",
          [](WritingQueuePair& queue_pair, const std::shared_ptr<PythonHopLatencies>& latencies, int32_t peer,
             int32_t plane) {
            Engine& engine = MadeByPython::engine_of(queue_pair);
            if (&latencies->engine() != &engine) throw std::invalid_argument("they belong to another engine");
            PythonGuard guard(engine);
            queue_pair.count_hops(latencies, peer, plane);
          },
          "latencies"_a, "peer"_a, "plane"_a,
          "Have every INT stack that comes back counted there, as of packets to this rank over this plane.")
      .def_property_readonly(
          "window_bytes",
          [](const WritingQueuePair& queue_pair) {
            PythonGuard guard(MadeByPython::engine_of(queue_pair));
            return queue_pair.congestion_control().window_bytes();
          },
          "How many bytes of frames its congestion control lets be in flight now.")
      .def_property_readonly(
          "pacing_rate_bps",
          [](const WritingQueuePair& queue_pair) {
            PythonGuard guard(MadeByPython::engine_of(queue_pair));
            return queue_pair.congestion_control().pacing_rate_bps();
          },
          "The rate at which its congestion control lets it send now; 0: as fast as the port takes frames.")
      .def("reset_stats", [](WritingQueuePair& queue_pair) {
        PythonGuard guard(MadeByPython::engine_of(queue_pair));
        queue_pair.reset_counters();
      });
  m.def("rnr_timer_ps", &rnr_timer_ps, "code"_a, "What an RNR timer code stands for (InfiniBand, table 45).");
  py::class_<RcQueuePair, WritingQueuePair, std::shared_ptr<RcQueuePair>>(
      m, "RcQueuePair", R"doc(A connected RC queue pair on a port of a NIC: WRITE, READ, atomics and SEND.

retransmission "selective-repeat" carries no SENDs, places data in any order and sends again only what was
overtaken by a packet sent more than reordering_window_ps later. path_choice None: all packets have one
entropy. congestion_control and path_choice serve this queue pair alone. queue_pair None allocates a
number; source_udp_port None takes 14 bits of entropy from addresses and numbers. memory_domain: what the
peer may reach, None: the NIC's first. shared_receives: where its receives are posted, None: here. RcOptions
has all other options, of which retransmission_timeout_ps has no default: see the function of that name.
Raises ValueError naming the parameter that is out of range.)doc")
      .def(py::init(&make_rc_queue_pair), "nic"_a, "port"_a, "completions"_a, py::kw_only(),
           "remote_queue_pair"_a, "destination_mac"_a, "destination_ip"_a, "congestion_control"_a,
           "path_choice"_a = py::none(), "queue_pair"_a = py::none(), "source_udp_port"_a = py::none(),
           "memory_domain"_a = py::none(), "shared_receives"_a = py::none(), py::keep_alive<1, 2>(),
           py::keep_alive<1, 4>())
      .def_property_readonly(
          "source_udp_port",
          [](const RcQueuePair& queue_pair) { return queue_pair.config().source_udp_port; })
      .def(
          "begin_sending",
          [](RcQueuePair& queue_pair, uint32_t initial_psn, TimePs retransmission_timeout_ps,
             uint32_t retry_limit, uint32_t rnr_retry_limit, uint32_t max_reads) {
            PythonGuard guard(MadeByPython::engine_of(queue_pair));
            queue_pair.begin_sending({.initial_psn = initial_psn,
                                      .retransmission_timeout_ps = retransmission_timeout_ps,
                                      .retry_limit = retry_limit,
                                      .rnr_retry_limit = rnr_retry_limit,
                                      .max_reads = max_reads});
          },
          py::kw_only(), "initial_psn"_a, "retransmission_timeout_ps"_a, "retry_limit"_a, "rnr_retry_limit"_a,
          "max_reads"_a,
          "Set what the sending half alone needs, before anything is posted. Raises ValueError as the "
          "constructor.");
  py::class_<MrcQueuePair, WritingQueuePair, std::shared_ptr<MrcQueuePair>>(
      m, "MrcQueuePair",
      R"doc(A connected queue pair of Multipath Reliable Connection: WRITE, with or without immediate.

Each packet takes the path of another entropy value (EV). more_planes: port, destination MAC and destination
IP of each plane after the first. routes: the paths to the peer that EVs name; None: switches hash EVs. Of
RcOptions those of READs, SENDs, CNPs and INT do not apply, and retransmission is "selective-repeat".
Otherwise as RcQueuePair. Raises ValueError naming the parameter that is out of range.)doc")
      .def(py::init(&make_mrc_queue_pair), "nic"_a, "port"_a, "completions"_a, py::kw_only(),
           "remote_queue_pair"_a, "destination_mac"_a, "destination_ip"_a, "congestion_control"_a,
           "mrc_options"_a = py::dict(), "more_planes"_a = std::vector<MrcPlane>(), "routes"_a = py::none(),
           "queue_pair"_a = py::none(), "memory_domain"_a = py::none(), py::keep_alive<1, 2>(),
           py::keep_alive<1, 4>())
      .def(
          "begin_sending",
          [](MrcQueuePair& queue_pair, uint32_t initial_psn, TimePs retransmission_timeout_ps,
             uint32_t retry_limit, uint32_t even_retries, uint32_t max_wimm, uint32_t mpr) {
            PythonGuard guard(MadeByPython::engine_of(queue_pair));
            queue_pair.begin_sending({.initial_psn = initial_psn,
                                      .retransmission_timeout_ps = retransmission_timeout_ps,
                                      .retry_limit = retry_limit,
                                      .even_retries = even_retries,
                                      .max_wimm = max_wimm,
                                      .mpr = mpr});
          },
          py::kw_only(), "initial_psn"_a, "retransmission_timeout_ps"_a, "retry_limit"_a, "even_retries"_a,
          "max_wimm"_a, "mpr"_a,
          "As of RcQueuePair. even_retries: timeouts in a row, of retry_limit, before they begin to double.")
      .def(
          "mrc_stats",
          [](const MrcQueuePair& queue_pair) {
            PythonGuard guard(MadeByPython::engine_of(queue_pair));
            return Record<"MrcCounters">(statistics_dict(queue_pair.mrc_counters()));
          },
          "What it counts beyond RcStats, whose acknowledgements are SACKs here.")
      .def(
          "planes_up",
          [](const MrcQueuePair& queue_pair) {
            PythonGuard guard(MadeByPython::engine_of(queue_pair));
            std::vector<bool> up;
            for (uint32_t plane = 0; plane < queue_pair.evs().planes(); ++plane)
              up.push_back(queue_pair.evs().is_up(plane));
            return up;
          },
          "Of each plane, whether its port is up at both ends.")
      .def(
          "ev_states",
          [](const MrcQueuePair& queue_pair) {
            PythonGuard guard(MadeByPython::engine_of(queue_pair));
            return named_states(queue_pair.evs().states());
          },
          "Of each plane, how many of its entropy values are in which state; no zeros.")
      .def(
          "evs",
          [](const MrcQueuePair& queue_pair) {
            PythonGuard guard(MadeByPython::engine_of(queue_pair));
            return entropy_values(queue_pair.evs());
          },
          "Its entropy values, by index.")
      .def(
          "deny_ev",
          [](MrcQueuePair& queue_pair, size_t ev) {
            PythonGuard guard(MadeByPython::engine_of(queue_pair));
            queue_pair.deny_ev(ev);
          },
          "ev"_a,
          R"doc(Exclude an entropy value.

Raises ValueError for an index that there is not, and for the last one that is not excluded.)doc")
      .def(
          "allow_ev",
          [](MrcQueuePair& queue_pair, size_t ev) {
            PythonGuard guard(MadeByPython::engine_of(queue_pair));
            queue_pair.allow_ev(ev);
          },
          "ev"_a, "Admit an excluded entropy value again. Raises ValueError for an index that there is not.")
      .def(
          "probe_evs",
          [](MrcQueuePair& queue_pair, const std::vector<size_t>& evs) {
            PythonGuard guard(MadeByPython::engine_of(queue_pair));
            queue_pair.probe_evs(evs);
          },
          "evs"_a, R"doc(Send an EV probe over each of these, by index, whatever their states.

One that is not answered within the retransmission timeout is given up and counted (ev_probes_expired).

Unanswered ones of an earlier call are given up. Raises ValueError for an index that there is not, or if the NIC
has too many probes on their way.)doc")
      .def(
          "set_ev_event_mask",
          [](MrcQueuePair& queue_pair, uint8_t mask) {
            PythonGuard guard(MadeByPython::engine_of(queue_pair));
            queue_pair.set_ev_event_mask(mask);
          },
          "mask"_a, "Which states of its EVs are EV events from now on, as the option ev_event_mask.")
      .def_property_readonly(
          "ev_profile_id",
          [](const MrcQueuePair& queue_pair) { return queue_pair.mrc_config().ev_profile_id; })
      .def(
          "probed_round_trips",
          [](const MrcQueuePair& queue_pair) {
            PythonGuard guard(MadeByPython::engine_of(queue_pair));
            return queue_pair.probed_round_trips();
          },
          "By index, the round trip in picoseconds of each EV probe of the last probe_evs(); None: no "
          "answer.");
  bind_uet_class<UetQueuePair>(
      m,
      R"doc(A connected queue pair of Ultra Ethernet Transport: WRITE and SEND, each with or without immediate, READ.

Of RcOptions those of CNPs and INT do not apply; retransmission is "selective-repeat" with service
"rud", "go-back-n" with "rod". Otherwise as RcQueuePair. Raises ValueError naming the parameter that is out of
range.)doc")
      .def_property_readonly(
          "pdc_state",
          [](const UetQueuePair& queue_pair) {
            PythonGuard guard(MadeByPython::engine_of(queue_pair));
            return uet::pdc_state_name(queue_pair.initiator_state());
          },
          "Of its PDC as initiator: closed, syn, established or closing.")
      .def_property_readonly(
          "has_target_pdc",
          [](const UetQueuePair& queue_pair) {
            PythonGuard guard(MadeByPython::engine_of(queue_pair));
            return queue_pair.has_target_pdc();
          },
          "Whether the peer has a PDC open here.");

  bind_uet_class<RudiQueuePair>(
      m, R"doc(A queue pair of Ultra Ethernet Transport with service "rudi": WRITE without immediate, READ.

The peer may write a packet more than once, and learns nothing of messages. Otherwise as UetQueuePair.)doc");
  bind_uet_class<UudQueuePair>(
      m,
      R"doc(A queue pair of Ultra Ethernet Transport with service "uud": SENDs of one packet, which may be lost.

A SEND completes when its packet has left. What arrives takes a posted receive, or is dropped and counted. Its
congestion control is not asked. Otherwise as UetQueuePair.)doc");

  m.def("retransmission_timeout_ps", &retransmission_timeout_ps, "base_round_trip_ps"_a, py::kw_only(),
        "round_trips"_a = 4.0, "wall_clock_floor_ns"_a = 0, "dilation"_a = 1.0,
        R"doc(The larger of round_trips base round trips and a floor of real time, in emulated time.

Under a real clock a host's process may run late, so the floor must lie above its jitter.)doc");
  m.def(
      "full_frame_bytes",
      [](uint32_t path_mtu_bytes, bool is_ipv6, bool telemetry, const std::string& retransmission) {
        RcConfig config;
        config.path_mtu_bytes = path_mtu_bytes;
        config.source_ip.is_ipv6 = config.destination_ip.is_ipv6 = is_ipv6;
        config.telemetry = telemetry;
        config.retransmission = PythonOption<Retransmission>::of(py::str(retransmission));
        return full_frame_bytes(config);
      },
      "path_mtu_bytes"_a, py::kw_only(), "is_ipv6"_a = false, "telemetry"_a = false,
      "retransmission"_a = "go-back-n",
      "Frame of a data packet with a full payload, from Ethernet to iCRC (go-back-N: within a message).");
  m.def(
      "mrc_full_frame_bytes",
      [](uint32_t path_mtu_bytes, bool is_ipv6, bool encapsulated) {
        RcConfig config;
        config.path_mtu_bytes = path_mtu_bytes;
        config.source_ip.is_ipv6 = config.destination_ip.is_ipv6 = is_ipv6;
        return mrc::full_frame_bytes(config, encapsulated);
      },
      "path_mtu_bytes"_a, py::kw_only(), "is_ipv6"_a = false, "encapsulated"_a = false,
      "The same of MRC; encapsulated: in an outer IPv6 header.");
  m.def(
      "uet_full_frame_bytes",
      [](uint32_t path_mtu_bytes, bool is_ipv6, bool receiver_credits, const std::string& service) {
        RcConfig config;
        config.path_mtu_bytes = path_mtu_bytes;
        config.source_ip.is_ipv6 = config.destination_ip.is_ipv6 = is_ipv6;
        UetConfig uet;
        uet.receiver_credits = receiver_credits;
        uet.service = PythonOption<UetService>::of(py::str(service));
        return uet::full_frame_bytes(config, uet);
      },
      "path_mtu_bytes"_a, py::kw_only(), "is_ipv6"_a = false, "receiver_credits"_a = false,
      "service"_a = "rud", "The same of UET.");
  m.def("bandwidth_delay_product_bytes", &bandwidth_delay_product_bytes, "rate_bps"_a, "round_trip_ps"_a,
        "Bytes on the way in a round trip, rounded up.");
}

}  // namespace weft
