// Programs on a host's IP stack in Python.
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>

#include "hosts/applications/echo_client.hpp"
#include "python/bind_codec.hpp"
#include "python/bind_columns.hpp"
#include "python/bind_ip.hpp"
#include "python/bindings_support.hpp"
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
  for (const EchoRecord& record : client.records()) outcomes.append(echo_outcome_name(record.outcome));
  return py::dict("sent_ps"_a = column_of(client.records(), &EchoRecord::sent_ps),
                  "round_trip_ps"_a = column_of(client.records(), &EchoRecord::round_trip_ps),
                  "outcome"_a = outcomes,
                  "hop_limit"_a = column_of(client.records(), &EchoRecord::hop_limit));
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

}  // namespace

void bind_applications(py::module_& m) {
  bind_application(m);
  bind_echo_client(m);
}

}  // namespace weft
