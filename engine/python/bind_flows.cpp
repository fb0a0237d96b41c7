// Traffic of many flows in Python.
#include "python/bind_flows.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "congestion/registry.hpp"
#include "hosts/flow_generator.hpp"
#include "hosts/mrc/mrc_queue_pair.hpp"
#include "python/bind_codec.hpp"
#include "python/bind_columns.hpp"
#include "python/bind_path_properties.hpp"
#include "python/bindings_support.hpp"
#include "python/ev_states.hpp"
#include "python/rc_options.hpp"
#include "python/run_status.hpp"
#include "python/statistics_dict.hpp"
#include "python/typed.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

namespace {

using MakesCongestionControl = Typed<"collections.abc.Callable[[int], CongestionControl]", py::function>;
using MakesPathChoice = Typed<"collections.abc.Callable[[int, int], PathChoice | None]", py::function>;

// Knows the engine and keeps the executor alive.
class PythonFlowGenerator final {
 public:
  PythonFlowGenerator(std::shared_ptr<Nic> nic, std::shared_ptr<ScheduleExecutor> executor)
      : engine(nic->engine()), executor_(std::move(executor)), generator(*nic, *executor_) {}

  Engine& engine;

 private:
  std::shared_ptr<ScheduleExecutor> executor_;

 public:
  FlowGenerator generator;
};

using CongestionControlMaker = std::function<std::shared_ptr<CongestionControl>(uint32_t)>;

// A Python callable that engine threads may call and destroy.
std::shared_ptr<py::function> held_by_engine(py::function function) {
  return {new py::function(std::move(function)), [](py::function* last) {
            py::gil_scoped_acquire acquire;
            delete last;
          }};
}

CongestionControlMaker maker_of(py::function function) {
  return [held = held_by_engine(std::move(function))](uint32_t frame_bytes) {
    py::gil_scoped_acquire acquire;
    return (*held)(frame_bytes).cast<std::shared_ptr<CongestionControl>>();
  };
}

CongestionControlMaker maker_of(const std::string& name, const PathProperties& path,
                                const CongestionParameters& parameters, const std::string& preset) {
  CongestionControlMaker maker = [=](uint32_t frame_bytes) {
    PathProperties of_flow = path;
    of_flow.frame_bytes = frame_bytes;
    return std::shared_ptr<CongestionControl>(make_congestion_control(name, of_flow, parameters, preset));
  };
  constexpr uint32_t kAnyFrameBytes = 1100;
  maker(kAnyFrameBytes);  // says now what would be wrong with it
  return maker;
}

using PathChoiceMaker = std::function<std::shared_ptr<PathChoice>(uint32_t, uint32_t)>;

PathChoiceMaker path_choice_maker_of(py::function function) {
  return [held = held_by_engine(std::move(function))](uint32_t queue_pair, uint32_t frame_bytes) {
    py::gil_scoped_acquire acquire;
    return (*held)(queue_pair, frame_bytes).cast<std::shared_ptr<PathChoice>>();
  };
}

uint32_t add_port(PythonFlowGenerator& flows, int port, const std::string& destination_mac,
                  const std::variant<std::string, MakesCongestionControl>& congestion_control,
                  const CongestionParameters& parameters, const std::string& preset,
                  std::optional<MakesPathChoice> path_choice, bool as_lengths,
                  const Record<"RcOptions">& options, std::optional<Record<"MrcOptions">> mrc_options,
                  std::shared_ptr<mrc::EvRoutes> mrc_routes,
                  const std::vector<std::pair<int, std::string>>& more_planes,
                  std::optional<Record<"UetOptions">> uet_options,
                  const py::KWArgs<Typed<"typing.Unpack[PathOptions]">>& path_given) {
  FlowPort added;
  added.port = port;
  added.config = options_of<RcConfig>(options, "FlowGenerator");
  added.config.destination_mac = parse_mac(destination_mac);
  if (mrc_options) {
    if (path_choice) throw std::invalid_argument("path_choice does not go with MRC, which chooses itself");
    added.mrc = options_of<MrcConfig>(*mrc_options, "FlowGenerator");
    added.mrc->routes = std::move(mrc_routes);
    if (!options.contains("retransmission")) added.config.retransmission = Retransmission::kSelectiveRepeat;
  }
  if (!added.mrc && !more_planes.empty())
    throw std::invalid_argument("more_planes go with mrc_options: other queue pairs have one plane");
  for (const auto& [other, mac] : more_planes) added.more_planes.emplace_back(other, parse_mac(mac));
  if (uet_options) {
    if (mrc_options) throw std::invalid_argument("uet_options do not go with mrc_options");
    added.uet = options_of<UetConfig>(*uet_options, "FlowGenerator");
    if (!options.contains("retransmission"))
      added.config.retransmission = retransmission_of(added.uet->service);
  }
  added.as_lengths = as_lengths;
  if (const auto* name = std::get_if<std::string>(&congestion_control)) {
    PathProperties path = path_properties_of(path_given, false);
    path.ack_interval_packets = added.config.ack_interval_packets;
    added.make_congestion_control = maker_of(*name, path, parameters, preset);
  } else {
    added.make_congestion_control = maker_of(std::get<MakesCongestionControl>(congestion_control));
  }
  if (path_choice) added.make_path_choice = path_choice_maker_of(std::move(*path_choice));
  PythonGuard guard(flows.engine);
  return flows.generator.add_port(std::move(added));
}

FlowEnd flow_end(uint32_t flow, TimePs start_ps, uint32_t place, const std::string& peer_ip,
                 uint32_t queue_pair, uint32_t remote_queue_pair, uint64_t size_bytes) {
  FlowEnd end;
  end.flow = flow;
  end.start_ps = start_ps;
  end.place = place;
  end.peer_ip = parse_ip(peer_ip);
  end.queue_pair = queue_pair;
  end.remote_queue_pair = remote_queue_pair;
  end.size_bytes = size_bytes;
  return end;
}

Record<"RunStatus"> status(PythonFlowGenerator& flows) {
  PythonGuard guard(flows.engine);
  return run_status(flows.generator.status());
}

Record<"FlowRecords"> records(PythonFlowGenerator& flows) {
  PythonGuard guard(flows.engine);
  const std::vector<FlowRecord>& records = flows.generator.records();
  return py::dict("flow"_a = column_of(records, &FlowRecord::flow),
                  "started_ps"_a = column_of(records, &FlowRecord::started_ps),
                  "finished_ps"_a = column_of(records, &FlowRecord::finished_ps),
                  "retransmitted_packets"_a = column_of(records, &FlowRecord::retransmitted_packets));
}

using Flows = PythonFlowGenerator;

// Which planes it has, each as the port of the NIC and the peer's address.
std::vector<std::pair<int, std::string>> planes_of(const MrcQueuePair& queue_pair) {
  std::vector<std::pair<int, std::string>> planes;
  for (size_t plane = 0; plane < queue_pair.planes(); ++plane)
    planes.emplace_back(queue_pair.port_of(plane), format_ip(queue_pair.path(plane).destination_ip));
  return planes;
}

void bind_flows_evs(py::class_<Flows, std::shared_ptr<Flows>>& flows_class) {
  flows_class
      .def(
          "mrc_queue_pairs",
          [](Flows& flows) {
            PythonGuard guard(flows.engine);
            std::map<uint32_t, std::vector<std::pair<int, std::string>>> planes;
            for (const MrcQueuePair* queue_pair : flows.generator.mrc_queue_pairs())
              planes[queue_pair->config().queue_pair] = planes_of(*queue_pair);
            return planes;
          },
          R"doc(The planes of its queue pairs of MRC that there are now, by number.

Each plane is the NIC's port and the peer's address there.)doc")
      .def(
          "ev_profile_ids",
          [](Flows& flows) {
            PythonGuard guard(flows.engine);
            std::vector<uint64_t> profiles;
            for (const MrcQueuePair* queue_pair : flows.generator.mrc_queue_pairs())
              profiles.push_back(queue_pair->mrc_config().ev_profile_id);
            return profiles;
          },
          "The ev_profile_id of each of its queue pairs of MRC that there are now.")
      .def(
          "evs",
          [](Flows& flows, uint32_t number) {
            PythonGuard guard(flows.engine);
            const MrcQueuePair* queue_pair = flows.generator.mrc_queue_pair(number);
            return queue_pair == nullptr ? std::vector<Record<"EntropyValue">>()
                                         : entropy_values(queue_pair->evs());
          },
          "queue_pair"_a, "See MrcQueuePair.evs; [] if the queue pair has gone.")
      .def(
          "deny_ev",
          [](Flows& flows, uint32_t number, size_t ev) {
            PythonGuard guard(flows.engine);
            if (MrcQueuePair* queue_pair = flows.generator.mrc_queue_pair(number)) queue_pair->deny_ev(ev);
          },
          "queue_pair"_a, "ev"_a, "See MrcQueuePair.deny_ev; nothing happens if the queue pair has gone.")
      .def(
          "allow_ev",
          [](Flows& flows, uint32_t number, size_t ev) {
            PythonGuard guard(flows.engine);
            if (MrcQueuePair* queue_pair = flows.generator.mrc_queue_pair(number)) queue_pair->allow_ev(ev);
          },
          "queue_pair"_a, "ev"_a, "See MrcQueuePair.allow_ev; nothing happens if the queue pair has gone.")
      .def(
          "probe_evs",
          [](Flows& flows, uint32_t number, const std::vector<size_t>& evs) {
            PythonGuard guard(flows.engine);
            if (MrcQueuePair* queue_pair = flows.generator.mrc_queue_pair(number)) queue_pair->probe_evs(evs);
          },
          "queue_pair"_a, "evs"_a, "See MrcQueuePair.probe_evs; nothing happens if the queue pair has gone.")
      .def(
          "probed_round_trips",
          [](Flows& flows, uint32_t number) {
            PythonGuard guard(flows.engine);
            const MrcQueuePair* queue_pair = flows.generator.mrc_queue_pair(number);
            return queue_pair == nullptr ? std::map<size_t, std::optional<TimePs>>()
                                         : queue_pair->probed_round_trips();
          },
          "queue_pair"_a, "See MrcQueuePair.probed_round_trips; {} if the queue pair has gone.")
      .def(
          "set_ev_event_mask",
          [](Flows& flows, uint64_t profile_id, uint8_t mask) {
            PythonGuard guard(flows.engine);
            flows.generator.set_ev_event_mask(profile_id, mask);
          },
          "profile_id"_a, "mask"_a,
          "Which states of EVs are EV events, of its queue pairs with this profile, those to come included.");
}

}  // namespace

void bind_flows(py::module_& m) {
  py::class_<ObservedFlow>(m, "ObservedFlow",
                           "What an engine's probe records of a flow that is sent, and under which names.")
      .def(py::init([](int32_t source, int32_t destination, int32_t plane, bool message, bool telemetry) {
             return ObservedFlow{{source, destination, plane}, message, telemetry};
           }),
           "source"_a, "destination"_a, "plane"_a, py::kw_only(), "message"_a = true, "telemetry"_a = false);
  py::class_<Flows, std::shared_ptr<Flows>> flows_class(
      m, "FlowGenerator",
      R"doc(WRITEs of a host that start at given times, each over a queue pair of its own that lives as long as the flow.

Both ends of a flow must know it, each its own generator: `place` is what add_port() returned, sizes are 1 byte
to 2 GiB, starts count from the run's. The executor's listener is notified of the end.)doc");
  flows_class
      .def(py::init([](std::shared_ptr<Nic> nic, std::shared_ptr<ScheduleExecutor> executor) {
             Engine& engine = nic->engine();
             return make_component<Flows>(engine, std::move(nic), std::move(executor));
           }),
           "nic"_a, "executor"_a, py::keep_alive<1, 2>())
      .def("add_port", &add_port, "port"_a, py::kw_only(), "destination_mac"_a, "congestion_control"_a,
           "parameters"_a = CongestionParameters(), "preset"_a = "", "path_choice"_a = py::none(),
           "as_lengths"_a = false, "options"_a, "mrc_options"_a = py::none(), "mrc_routes"_a = py::none(),
           "more_planes"_a = std::vector<std::pair<int, std::string>>(), "uet_options"_a = py::none(),
           R"doc(Say how queue pairs of a port are made; returns the place by which flows name it.

congestion_control: a name, with its parameters and the path's properties (make_congestion_control), or what
makes one for each flow, given the size of its full frames; path_choice makes one from the number of a flow's
queue pair and that size; as_lengths: packets carry their payload as a length; options: of RcQueuePair, less
first sequence numbers, which are the flow's; mrc_options: queue pairs are of MRC, over this port and
more_planes, ports with the destination MAC of what leaves by them; mrc_routes: the paths that their EVs name,
to all addresses of peers; uet_options: queue pairs are of UET.)doc")
      .def(
          "set_ev_denied",
          [](Flows& flows, uint32_t place, const std::string& peer, uint32_t value, bool denied) {
            PythonGuard guard(flows.engine);
            flows.generator.set_ev_denied(place, parse_ip(peer), value, denied);
          },
          "place"_a, "peer"_a, "value"_a, "denied"_a,
          R"doc(Exclude an entropy value of a port's queue pairs to a peer's address, or admit it again.

Raises ValueError if it does not name a path there.)doc")
      .def(
          "add_peer",
          [](Flows& flows, const std::string& first, const std::vector<std::string>& more) {
            std::vector<roce::IpAddress> addresses;
            for (const std::string& address : more) addresses.push_back(parse_ip(address));
            PythonGuard guard(flows.engine);
            flows.generator.add_peer(parse_ip(first), std::move(addresses));
          },
          "first"_a, "more"_a,
          R"doc(Say which addresses a peer has on the planes after the first, where flows name its first one.

Queue pairs of MRC then use all planes that both ends have.)doc")
      .def(
          "add_sent",
          [](Flows& flows, uint32_t flow, TimePs start_ps, uint32_t place, const std::string& peer_ip,
             uint32_t queue_pair, uint32_t remote_queue_pair, uint64_t size_bytes, uint64_t remote_address,
             uint32_t rkey, const ObservedFlow& observed) {
            FlowEnd end = flow_end(flow, start_ps, place, peer_ip, queue_pair, remote_queue_pair, size_bytes);
            end.remote_address = remote_address;
            end.rkey = rkey;
            end.observed = observed;
            PythonGuard guard(flows.engine);
            flows.generator.add_sent(end);
          },
          "flow"_a, "start_ps"_a, "place"_a, "peer_ip"_a, "queue_pair"_a, "remote_queue_pair"_a,
          "size_bytes"_a, "remote_address"_a, "rkey"_a, py::kw_only(), "observed"_a = ObservedFlow())
      .def(
          "add_received",
          [](Flows& flows, uint32_t flow, TimePs start_ps, uint32_t place, const std::string& peer_ip,
             uint32_t queue_pair, uint32_t remote_queue_pair, uint64_t size_bytes) {
            PythonGuard guard(flows.engine);
            flows.generator.add_received(
                flow_end(flow, start_ps, place, peer_ip, queue_pair, remote_queue_pair, size_bytes));
          },
          "flow"_a, "start_ps"_a, "place"_a, "peer_ip"_a, "queue_pair"_a, "remote_queue_pair"_a,
          "size_bytes"_a)
      .def(
          "start",
          [](Flows& flows, TimePs start_ps, uint32_t run) {
            PythonGuard guard(flows.engine);
            flows.generator.start(start_ps, run);
          },
          "start_ps"_a = 0, py::kw_only(), "run"_a = 0,
          R"doc(Start at start_ps (now, if that is past). Raises RuntimeError the second time.

What is recorded of its messages bears the number of the run, and as their step that of the flow.)doc")
      .def(
          "cancel",
          [](Flows& flows) {
            PythonGuard guard(flows.engine);
            flows.generator.cancel();
          },
          "End the run, if it has not ended; its queue pairs go.")
      .def("status", &status, "The run's state; nodes are flows, sent (and acknowledged) and received.")
      .def(
          "records", &records,
          "Columns of the flows sent and acknowledged so far, in that order; times are emulated picoseconds.")
      .def(
          "counters",
          [](Flows& flows) {
            PythonGuard guard(flows.engine);
            return Record<"RcCounters">(statistics_dict(flows.generator.counters()));
          },
          "Sums over all its queue pairs, those that are gone included.")
      .def(
          "mrc_counters",
          [](Flows& flows) {
            PythonGuard guard(flows.engine);
            return Record<"MrcCounters">(statistics_dict(flows.generator.mrc_counters()));
          },
          "What its queue pairs of MRC have counted, and those that are gone.")
      .def(
          "ev_states",
          [](const Flows& flows) {
            PythonGuard guard(flows.engine);
            return named_states(flows.generator.ev_states());
          },
          R"doc(Of each port of the NIC, how many entropy values of its queue pairs are in which state; no zeros.

Queue pairs that are gone count as they were then. [] without queue pairs of MRC.)doc")
      .def(
          "uet_counters",
          [](Flows& flows) {
            PythonGuard guard(flows.engine);
            return Record<"UetCounters">(statistics_dict(flows.generator.uet_counters()));
          },
          "The same of UET.")
      .def("reset_counters", [](Flows& flows) {
        PythonGuard guard(flows.engine);
        flows.generator.reset_counters();
      });
  bind_flows_evs(flows_class);
}

}  // namespace weft
