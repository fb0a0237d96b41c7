// What clients of services have in common in Python: one run of requests.
#pragma once

#include <pybind11/pybind11.h>

#include <algorithm>

#include "python/bindings_support.hpp"
#include "python/run_status.hpp"

namespace weft {

// `Client` is a RequestClient that knows its engine.
template <class Client, class... Bases>
void define_request_client(pybind11::class_<Client, Bases...>& bound) {
  using namespace pybind11::literals;
  bound
      .def(
          "start",
          [](Client& client, TimePs start_ps) {
            PythonGuard guard(client.engine);
            client.start(std::max(start_ps, client.engine.now()));
          },
          "start_ps"_a = 0,
          "Send the first request at start_ps (now, if that is past). RuntimeError the second time.")
      .def(
          "cancel",
          [](Client& client) {
            PythonGuard guard(client.engine);
            client.cancel(client.engine.now());
          },
          "End the run, if it has not ended.")
      .def(
          "status",
          [](Client& client) {
            PythonGuard guard(client.engine);
            return run_status(client.status());
          },
          "The run's state; nodes are requests.")
      .def(
          "retransmitted_packets",
          [](Client& client) {
            PythonGuard guard(client.engine);
            return client.retransmitted_packets();
          },
          "Requests sent again.");
}

}  // namespace weft
