// Programs on a host's IP stack in Python.
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>

#include "hosts/applications/echo_client.hpp"
#include "hosts/applications/frame_replay.hpp"
#include "hosts/applications/udp_sink.hpp"
#include "hosts/applications/udp_source.hpp"
#include "python/bind_codec.hpp"
#include "python/bind_columns.hpp"
#include "python/bind_ip.hpp"
#include "python/bindings_support.hpp"
#include "python/python_host_script.hpp"
#include "python/run_status.hpp"
#include "python/statistics_dict.hpp"
#include "python/typed.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

namespace {

template <class Client, class... Arguments>
std::shared_ptr<Client> make_application(IpStack& stack, ScheduleExecutor& executor,
                                         Arguments&&... arguments) {
  return make_component<Client>(stack.engine(), stack, executor, std::forward<Arguments>(arguments)...);
}

void bind_application(py::module_& m) {
  py::class_<Application, std::shared_ptr<Application>>(m, "Application",
                                                        "A program on a host's IP stack: one run.")
      .def(
          "start",
          [](Application& self, TimePs start_ps) {
            PythonGuard guard(self.engine());
            self.start(start_ps);
          },
          "start_ps"_a = 0, "Begin at start_ps (now, if that is past). RuntimeError the second time.")
      .def(
          "close",
          [](Application& self) {
            PythonGuard guard(self.engine());
            self.close();
          },
          "End the run, if it has not ended; nothing reaches the program any more.")
      .def(
          "status",
          [](Application& self) {
            PythonGuard guard(self.engine());
            return run_status(self.status());
          },
          "The run's state; nodes are what it has to do.");
}

const char* echo_outcome_name(EchoOutcome outcome) {
  switch (outcome) {
    case EchoOutcome::kLost:
      return "lost";
    case EchoOutcome::kAnswered:
      return "answered";
    case EchoOutcome::kTimeExceeded:
      return "time_exceeded";
    case EchoOutcome::kUnreachable:
      return "unreachable";
    case EchoOutcome::kNotSent:
      return "not_sent";
  }
  return "unknown";
}

Record<"EchoRecords"> echo_records(EchoClient& client) {
  PythonGuard guard(client.engine());
  py::list outcomes;
  py::list responders;
  for (const EchoRecord& record : client.records()) {
    outcomes.append(echo_outcome_name(record.outcome));
    responders.append(is_unset(record.responder) ? "" : format_ip(record.responder));
  }
  return py::dict("sent_ps"_a = column_of(client.records(), &EchoRecord::sent_ps),
                  "round_trip_ps"_a = column_of(client.records(), &EchoRecord::round_trip_ps),
                  "outcome"_a = outcomes, "hop_limit"_a = column_of(client.records(), &EchoRecord::hop_limit),
                  "responder"_a = responders);
}

void bind_echo_client(py::module_& m) {
  const EchoConfig defaults;
  py::class_<EchoClient, Application, std::shared_ptr<EchoClient>>(
      m, "EchoClient", R"doc(ICMP echo requests at an interval, as ping sends them.

A request that is not answered within `timeout_ps` is lost. Raises ValueError for values out of range.)doc")
      .def(py::init([](IpStack& stack, ScheduleExecutor& executor, const std::string& destination,
                       uint32_t count, TimePs interval_ps, TimePs timeout_ps, size_t data_bytes, uint8_t dscp,
                       uint8_t hop_limit) {
             return make_application<EchoClient>(stack, executor,
                                                 EchoConfig{.destination = parse_ip(destination),
                                                            .count = count,
                                                            .interval_ps = interval_ps,
                                                            .timeout_ps = timeout_ps,
                                                            .data_bytes = data_bytes,
                                                            .dscp = dscp,
                                                            .hop_limit = hop_limit});
           }),
           "stack"_a, "executor"_a, py::kw_only(), "destination"_a, "count"_a, "interval_ps"_a,
           "timeout_ps"_a, "data_bytes"_a = defaults.data_bytes, "dscp"_a = defaults.dscp,
           "hop_limit"_a = defaults.hop_limit, py::keep_alive<1, 2>(), py::keep_alive<1, 3>())
      .def("records", &echo_records,
           "Columns of all requests: `outcome` is lost, answered, time_exceeded, unreachable or not_sent.")
      .def("duplicates", [](EchoClient& client) {
        PythonGuard guard(client.engine());
        return client.duplicates();
      });
}

BurstDistribution bursts_of(const std::string& name) {
  if (name.empty()) return BurstDistribution::kNone;
  if (name == "exponential") return BurstDistribution::kExponential;
  if (name == "pareto") return BurstDistribution::kPareto;
  throw std::invalid_argument("bursts '" + name + "' (valid: '', 'exponential', 'pareto')");
}

void bind_udp_source(py::module_& m) {
  const UdpSourceConfig defaults;
  py::class_<UdpSource, Application, std::shared_ptr<UdpSource>>(
      m, "UdpSource", R"doc(Datagrams to a UdpSink at a constant rate, all the time or in bursts.

`rate_bps` is that of Ethernet frames while it sends, `packet_bytes` the size of the IP packet. `bursts` are
exponential or pareto; '' for none. `stream` names the random numbers. Ends when the sink has confirmed the end, or
does not. Raises ValueError for values out of range.)doc")
      .def(py::init([](IpStack& stack, ScheduleExecutor& executor, const std::string& destination,
                       uint16_t port, uint64_t rate_bps, size_t packet_bytes, TimePs duration_ps,
                       uint8_t dscp, uint8_t ecn, const std::string& bursts, TimePs mean_on_ps,
                       TimePs mean_off_ps, double pareto_shape, const std::string& stream) {
             return make_application<UdpSource>(stack, executor,
                                                UdpSourceConfig{.destination = parse_ip(destination),
                                                                .port = port,
                                                                .rate_bps = rate_bps,
                                                                .packet_bytes = packet_bytes,
                                                                .duration_ps = duration_ps,
                                                                .dscp = dscp,
                                                                .ecn = ecn,
                                                                .bursts = bursts_of(bursts),
                                                                .mean_on_ps = mean_on_ps,
                                                                .mean_off_ps = mean_off_ps,
                                                                .pareto_shape = pareto_shape,
                                                                .stream = stream});
           }),
           "stack"_a, "executor"_a, py::kw_only(), "destination"_a, "port"_a, "rate_bps"_a, "packet_bytes"_a,
           "duration_ps"_a, "dscp"_a = defaults.dscp, "ecn"_a = defaults.ecn, "bursts"_a = "",
           "mean_on_ps"_a = 0, "mean_off_ps"_a = 0, "pareto_shape"_a = defaults.pareto_shape, "stream"_a = "",
           py::keep_alive<1, 2>(), py::keep_alive<1, 3>())
      .def(
          "packets",
          [](UdpSource& self) {
            PythonGuard guard(self.engine());
            return self.packets();
          },
          "Datagrams with data that were to be sent.")
      .def(
          "not_sent_packets",
          [](UdpSource& self) {
            PythonGuard guard(self.engine());
            return self.not_sent_packets();
          },
          "Of those, what never left the host: no route, a full queue, or nobody had the next hop's MAC.")
      .def(
          "was_confirmed",
          [](UdpSource& self) {
            PythonGuard guard(self.engine());
            return self.was_confirmed();
          },
          "Whether the sink has heard of the end.");
}

void bind_udp_sink(py::module_& m) {
  declare_record<UdpSinkCounters>("UdpSinkStats");
  py::class_<UdpSink, Application, std::shared_ptr<UdpSink>>(
      m, "UdpSink",
      "Counts and times the datagrams of one UdpSource. Raises ValueError if the port is taken.")
      .def(py::init([](IpStack& stack, ScheduleExecutor& executor, const std::string& source, uint16_t port) {
             return make_application<UdpSink>(stack, executor, parse_ip(source), port);
           }),
           "stack"_a, "executor"_a, py::kw_only(), "source"_a, "port"_a, py::keep_alive<1, 2>(),
           py::keep_alive<1, 3>())
      .def("stats",
           [](UdpSink& self) {
             PythonGuard guard(self.engine());
             return Record<"UdpSinkStats">(statistics_dict(self.counters()));
           })
      .def("last_ps",
           [](UdpSink& self) {
             PythonGuard guard(self.engine());
             return self.last_ps();
           })
      .def(
          "delays_ps",
          [](UdpSink& self) {
            PythonGuard guard(self.engine());
            const auto& delays = self.delays_ps();
            return py::array_t<int64_t>(static_cast<py::ssize_t>(delays.size()), delays.data());
          },
          "One-way, of each datagram, in the order of their arrival.");
}

void bind_frame_replay(py::module_& m) {
  py::class_<FrameReplay, Application, std::shared_ptr<FrameReplay>>(
      m, "FrameReplay", R"doc(Sends frames, each so many picoseconds after the start.

Raises ValueError if there are none, or their times decrease.)doc")
      .def(py::init([](IpStack& stack, ScheduleExecutor& executor, int interface,
                       const std::vector<std::pair<TimePs, py::bytes>>& frames) {
             std::vector<ReplayedFrame> replayed;
             for (const auto& [after_ps, bytes] : frames) replayed.push_back({after_ps, bytes});
             return make_application<FrameReplay>(stack, executor, interface, std::move(replayed));
           }),
           "stack"_a, "executor"_a, "interface"_a, "frames"_a, py::keep_alive<1, 2>(), py::keep_alive<1, 3>())
      .def("sent_bytes",
           [](FrameReplay& self) {
             PythonGuard guard(self.engine());
             return self.sent_bytes();
           })
      .def(
          "not_sent_packets",
          [](FrameReplay& self) {
            PythonGuard guard(self.engine());
            return self.not_sent_packets();
          },
          "What found the queue at the NIC full.");
}

void bind_host_script(py::module_& m) {
  using Script = PythonHostScript;
  py::class_<Script, Application, std::shared_ptr<Script>>(
      m, "HostScript", R"doc(A program in Python that sees every frame that is not RoCEv2's, and sends any.

It ends after `duration_ps`, or by end().)doc")
      .def(py::init([](IpStack& stack, ScheduleExecutor& executor, TimePs duration_ps,
                       const Callback& on_start,
                       const Typed<"collections.abc.Callable[[int, bytes], object]", py::function>& on_frame,
                       const Callback& on_wake, const Callback& on_end) {
             return make_application<Script>(
                 stack, executor, duration_ps,
                 Script::Methods{PythonMethod(on_start, "on_start"), PythonMethod(on_frame, "on_frame"),
                                 PythonMethod(on_wake, "on_wake"), PythonMethod(on_end, "on_end")});
           }),
           "stack"_a, "executor"_a, py::kw_only(), "duration_ps"_a, "on_start"_a, "on_frame"_a, "on_wake"_a,
           "on_end"_a, py::keep_alive<1, 2>(), py::keep_alive<1, 3>())
      .def(
          "send",
          [](Script& self, int interface, const py::bytes& frame) {
            PythonGuard guard(self.engine());
            return self.send(interface, view_of(frame));
          },
          "interface"_a, "frame"_a, "False if the queue at the NIC was full.")
      .def(
          "wake_at",
          [](Script& self, TimePs time_ps) {
            PythonGuard guard(self.engine());
            self.wake_at(time_ps);
          },
          "time_ps"_a, "Call on_wake at a time, in place of the one asked for before.")
      .def("end", [](Script& self) {
        PythonGuard guard(self.engine());
        self.end();
      });
}

}  // namespace

void bind_applications(py::module_& m) {
  bind_application(m);
  bind_echo_client(m);
  bind_udp_source(m);
  bind_udp_sink(m);
  bind_frame_replay(m);
  bind_host_script(m);
}

}  // namespace weft
