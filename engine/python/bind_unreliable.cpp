// Queue pairs of UC and UD in Python.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "hosts/uc_queue_pair.hpp"
#include "hosts/ud_groups.hpp"
#include "hosts/ud_queue_pair.hpp"
#include "python/bind_codec.hpp"
#include "python/bindings.hpp"
#include "python/bindings_support.hpp"
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

class PythonUcQueuePair final : public UcQueuePair, public MadeByPython {
 public:
  PythonUcQueuePair(Nic& nic, const RcConfig& config, std::shared_ptr<CongestionControl> congestion_control,
                    std::shared_ptr<PathChoice> path_choice, std::shared_ptr<CompletionHandler> handler,
                    std::shared_ptr<MemoryDomain> domain, std::shared_ptr<SharedReceives> shared_receives)
      : UcQueuePair(config, nic.engine().packets(), registry_of(nic, domain), std::move(congestion_control),
                    std::move(path_choice), handler.get(), std::move(shared_receives)),
        MadeByPython(nic, std::move(handler), std::move(domain)) {}
};

class PythonUdQueuePair final : public UdQueuePair, public MadeByPython {
 public:
  PythonUdQueuePair(Nic& nic, const UdConfig& config, std::shared_ptr<CompletionHandler> handler,
                    std::shared_ptr<UdGroups> groups, std::shared_ptr<SharedReceives> shared_receives)
      : UdQueuePair(config, nic.engine().packets(), handler.get(), std::move(groups),
                    std::move(shared_receives)),
        MadeByPython(nic, std::move(handler)) {}
};

// The groups of a port, with the engine whose lock they need.
struct PythonUdGroups {
  PythonUdGroups(std::shared_ptr<Nic> nic_, int port)
      : nic(std::move(nic_)), groups(std::make_shared<UdGroups>(*nic, port)) {}
  ~PythonUdGroups() {
    PythonGuard last(nic->engine());
    groups.reset();
  }
  std::shared_ptr<Nic> nic;
  std::shared_ptr<UdGroups> groups;
};

std::shared_ptr<UcQueuePair> make_uc_queue_pair(
    Nic& nic, int port, std::shared_ptr<CompletionHandler> completions, uint32_t remote_queue_pair,
    const std::string& destination_mac, const std::string& destination_ip,
    std::shared_ptr<CongestionControl> congestion_control, std::shared_ptr<PathChoice> path_choice,
    std::optional<uint32_t> queue_pair, std::optional<uint16_t> source_udp_port,
    std::shared_ptr<MemoryDomain> domain, const std::shared_ptr<PythonSharedReceives>& shared_receives,
    const py::KWArgs<Typed<"typing.Unpack[RcOptions]">>& options) {
  auto config = options_of<RcConfig>(options, "UcQueuePair");
  if (!options.contains("retransmission_timeout_ps")) config.retransmission_timeout_ps = 1;  // it has none
  Engine& engine = nic.engine();
  PythonGuard guard(engine);
  set_ends(config, nic, port, queue_pair, remote_queue_pair, destination_mac, destination_ip);
  config.source_udp_port = source_udp_port_of(nic, config, source_udp_port);
  auto made = make_in_cache_lines<PythonUcQueuePair>(nic, config, std::move(congestion_control),
                                                     std::move(path_choice), std::move(completions),
                                                     std::move(domain), receives_of(shared_receives));
  nic.attach(*made, port, config.queue_pair);
  nic.keep(made);
  return released_under_lock<UcQueuePair>(std::move(made), engine);
}

std::shared_ptr<UdQueuePair> make_ud_queue_pair(
    Nic& nic, int port, std::shared_ptr<CompletionHandler> completions, uint32_t q_key,
    std::optional<uint32_t> queue_pair, uint32_t path_mtu_bytes, uint8_t data_class, uint32_t initial_psn,
    const std::shared_ptr<PythonUdGroups>& groups,
    const std::shared_ptr<PythonSharedReceives>& shared_receives) {
  Engine& engine = nic.engine();
  PythonGuard guard(engine);
  UdConfig config;
  config.queue_pair = queue_pair ? *queue_pair : nic.allocate_queue_pair_number();
  config.source_mac = nic.port_config(port).mac;
  config.source_ips = nic.port_config(port).addresses;
  config.entropy_seed = nic.entropy_seed();
  config.data_class = data_class;
  config.path_mtu_bytes = path_mtu_bytes;
  config.q_key = q_key;
  config.initial_psn = initial_psn;
  auto made = make_in_cache_lines<PythonUdQueuePair>(nic, config, std::move(completions),
                                                     groups == nullptr ? nullptr : groups->groups,
                                                     receives_of(shared_receives));
  nic.attach(*made, port, config.queue_pair);
  nic.keep(made);
  return released_under_lock<UdQueuePair>(std::move(made), engine);
}

void post_datagram(UdQueuePair& queue_pair, const RegisteredMemory* memory, uint64_t offset_bytes,
                   uint64_t length_bytes, const std::string& destination_mac,
                   const std::string& destination_ip, uint32_t remote_queue_pair, uint32_t q_key,
                   std::optional<uint32_t> immediate, std::optional<bool> solicited,
                   std::optional<uint8_t> dscp, uint8_t hop_limit, uint32_t flow_label, uint64_t work_id) {
  LocalRange local(memory, offset_bytes, length_bytes);
  UdRequest request;
  request.work_id = work_id;
  request.data = local.data;
  request.length_bytes = length_bytes;
  request.immediate = immediate;
  request.solicits = solicits(solicited);
  request.owner = std::move(local.owner);
  request.foreign = local.foreign;
  request.to = {.ip = parse_ip(destination_ip),
                .mac = parse_mac(destination_mac),
                .dscp = dscp,
                .hop_limit = hop_limit,
                .flow_label = flow_label};
  request.remote_queue_pair = remote_queue_pair;
  request.remote_q_key = q_key;
  Engine& engine = MadeByPython::engine_of(queue_pair);
  PythonGuard guard(engine);
  queue_pair.post(engine.now(), std::move(request));
}

void bind_uc(py::module_& m) {
  declare_record<UcCounters>("UcCounters");
  py::class_<UcQueuePair, WritingQueuePair, std::shared_ptr<UcQueuePair>>(
      m, "UcQueuePair",
      R"doc(A connected UC queue pair on a port of a NIC: WRITE and SEND, each with or without immediate.

A request completes when it has left. A message of which a packet is lost is dropped and counted. Of RcOptions
those of acknowledgements, retransmission and READs do not apply; the rate of its congestion control does, the
window does not. Otherwise as RcQueuePair. Raises ValueError naming the parameter that is out of range.)doc")
      .def(py::init(&make_uc_queue_pair), "nic"_a, "port"_a, "completions"_a, py::kw_only(),
           "remote_queue_pair"_a, "destination_mac"_a, "destination_ip"_a, "congestion_control"_a,
           "path_choice"_a = py::none(), "queue_pair"_a = py::none(), "source_udp_port"_a = py::none(),
           "memory_domain"_a = py::none(), "shared_receives"_a = py::none(), py::keep_alive<1, 2>(),
           py::keep_alive<1, 4>())
      .def(
          "begin_sending",
          [](UcQueuePair& queue_pair, uint32_t initial_psn) {
            PythonGuard guard(MadeByPython::engine_of(queue_pair));
            queue_pair.begin_sending(initial_psn);
          },
          py::kw_only(), "initial_psn"_a, "Set the PSN of the first packet, before anything is posted.")
      .def(
          "uc_stats",
          [](const UcQueuePair& queue_pair) {
            PythonGuard guard(MadeByPython::engine_of(queue_pair));
            return Record<"UcCounters">(statistics_dict(queue_pair.uc_counters()));
          },
          "What it counts beyond RcStats.");
}

void bind_ud(py::module_& m) {
  declare_record<UdCounters>("UdCounters",
                             {{"error", "str", "why requests fail; \"success\" as long as they do not"}});
  py::class_<PythonUdGroups, std::shared_ptr<PythonUdGroups>>(
      m, "UdGroups", "The multicast groups of UD queue pairs at a port of a NIC.")
      .def(py::init<std::shared_ptr<Nic>, int>(), "nic"_a.none(false), "port"_a, py::keep_alive<1, 2>());
  py::class_<UdQueuePair, QueuePair, std::shared_ptr<UdQueuePair>>(
      m, "UdQueuePair",
      R"doc(A UD queue pair on a port of a NIC: SENDs of one packet to any queue pair, or to a multicast group.

queue_pair None allocates a number; 1, with q_key 0x80010000, is that of connection managers. groups: of the port,
for one that joins some. shared_receives: where its receives are posted, None: here. Raises ValueError naming the
parameter that is out of range.)doc")
      .def(py::init(&make_ud_queue_pair), "nic"_a, "port"_a, "completions"_a, py::kw_only(), "q_key"_a,
           "queue_pair"_a = py::none(), "path_mtu_bytes"_a = UdConfig().path_mtu_bytes,
           "data_class"_a = UdConfig().data_class, "initial_psn"_a = 0, "groups"_a = py::none(),
           "shared_receives"_a = py::none(), py::keep_alive<1, 2>(), py::keep_alive<1, 4>())
      .def_property_readonly(
          "queue_pair", [](const UdQueuePair& queue_pair) { return queue_pair.config().queue_pair; },
          "Its number.")
      .def("post_send", &post_datagram, "memory"_a.none(true), "offset_bytes"_a, "length_bytes"_a,
           py::kw_only(), "destination_mac"_a, "destination_ip"_a, "remote_queue_pair"_a, "q_key"_a,
           "immediate"_a = py::none(), "solicited"_a = py::none(), "dscp"_a = py::none(), "hop_limit"_a = AddressHandle().hop_limit,
           "flow_label"_a = 0, "work_id"_a = 0,
           R"doc(Send a datagram from memory (None: zeros); completes as "send" when it has left.

q_key with its highest bit set stands for the queue pair's own. dscp None: that of its data_class. flow_label
0: path and source port are drawn for the two ends. Raises ValueError for one that is longer than the path
MTU, that the port has no address for, or that a NIC would take for in-network aggregation.)doc")
      .def(
          "post_receive",
          [](UdQueuePair& queue_pair, const RegisteredMemory* memory, uint64_t offset_bytes,
             uint64_t length_bytes, uint64_t work_id) {
            PostedReceive receive = receive_in(memory, offset_bytes, length_bytes, work_id);
            Engine& engine = MadeByPython::engine_of(queue_pair);
            PythonGuard guard(engine);
            queue_pair.post_receive(engine.now(), std::move(receive));
          },
          "memory"_a.none(true), "offset_bytes"_a, "length_bytes"_a, py::kw_only(), "work_id"_a = 0,
          R"doc(A place (None: bytes are discarded) for a datagram and the 40 bytes before it.

length_bytes of its completion counts both.)doc")
      .def(
          "join",
          [](UdQueuePair& queue_pair, const std::string& group) {
            PythonGuard guard(MadeByPython::engine_of(queue_pair));
            queue_pair.join(parse_ip(group));
          },
          "group"_a, "Receive what comes for this group. Raises ValueError if it does, or without groups.")
      .def(
          "leave",
          [](UdQueuePair& queue_pair, const std::string& group) {
            PythonGuard guard(MadeByPython::engine_of(queue_pair));
            queue_pair.leave(parse_ip(group));
          },
          "group"_a, "The opposite. Raises ValueError if it is no member.")
      .def(
          "set_q_key",
          [](UdQueuePair& queue_pair, uint32_t q_key) {
            PythonGuard guard(MadeByPython::engine_of(queue_pair));
            queue_pair.set_q_key(q_key);
          },
          "q_key"_a)
      .def(
          "block_own_copies",
          [](UdQueuePair& queue_pair, bool block) {
            PythonGuard guard(MadeByPython::engine_of(queue_pair));
            queue_pair.block_own_copies(block);
          },
          "block"_a, "Whether what it sends to a group of its own leaves it out.")
      .def(
          "flush",
          [](UdQueuePair& queue_pair) {
            Engine& engine = MadeByPython::engine_of(queue_pair);
            PythonGuard guard(engine);
            queue_pair.flush(engine.now());
          },
          "What is posted completes as \"flushed\", and nothing more is sent or received.")
      .def("stats", [](const UdQueuePair& queue_pair) {
        PythonGuard guard(MadeByPython::engine_of(queue_pair));
        py::dict stats = statistics_dict(queue_pair.counters());
        stats[shared_key("error")] = completion_status_name(queue_pair.error());
        return Record<"UdCounters">(std::move(stats));
      });
}

}  // namespace

void bind_unreliable(py::module_& m) {
  bind_uc(m);
  bind_ud(m);
  m.attr("GRH_BYTES") = kGrhBytes;
}

}  // namespace weft
