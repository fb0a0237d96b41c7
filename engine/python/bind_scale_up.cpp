// Links between the ranks of a host in Python.
#include <pybind11/pybind11.h>

#include <memory>
#include <stdexcept>
#include <utility>

#include "hosts/nic.hpp"
#include "hosts/scale_up.hpp"
#include "python/bind_flows.hpp"
#include "python/bindings_support.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

namespace {

// Knows the engine and keeps its handler alive.
class PythonScaleUpChannel final : public ScaleUpChannel {
 public:
  PythonScaleUpChannel(ScaleUpDomain& domain, std::shared_ptr<CompletionHandler> handler, uint32_t port,
                       uint32_t number, uint32_t peer_port, uint32_t peer_number)
      : ScaleUpChannel(domain, port, number, peer_port, peer_number, handler.get()),
        engine(domain.engine()),
        handler_(std::move(handler)) {}

  Engine& engine;

 private:
  std::shared_ptr<CompletionHandler> handler_;
};

py::dict stats(ScaleUpDomain& domain, uint32_t port) {
  PythonGuard guard(domain.engine());
  const ScaleUpCounters& counters = domain.counters(port);
  return py::dict(
      "sent_messages"_a = counters.sent_messages, "sent_bytes"_a = counters.sent_bytes,
      "received_messages"_a = counters.received_messages, "received_bytes"_a = counters.received_bytes,
      "refused_messages"_a = counters.refused_messages, "abandoned_messages"_a = counters.abandoned_messages);
}

}  // namespace

void bind_scale_up(py::module_& m) {
  py::class_<ScaleUpDomain, std::shared_ptr<ScaleUpDomain>>(m, "ScaleUpDomain")
      .def(py::init([](Engine& engine, uint64_t rate_bps, TimePs latency_ps, uint32_t port_count) {
             return make_component<ScaleUpDomain>(engine, engine, rate_bps, latency_ps, port_count);
           }),
           "engine"_a, py::kw_only(), "rate_bps"_a, "latency_ps"_a, "port_count"_a, py::keep_alive<1, 2>())
      .def(
          "attach",
          [](ScaleUpDomain& domain, uint32_t port, Nic& nic) {
            if (&nic.engine() != &domain.engine()) {
              throw std::invalid_argument("NIC '" + nic.name() +
                                          "' is of another engine than its host's links");
            }
            PythonGuard guard(domain.engine());
            domain.attach(port, nic.memory());
          },
          "port"_a, "nic"_a, py::keep_alive<1, 3>())
      .def("stats", &stats, "port"_a)
      .def(
          "reset_stats",
          [](ScaleUpDomain& domain, uint32_t port) {
            PythonGuard guard(domain.engine());
            domain.reset_counters(port);
          },
          "port"_a);

  using Channel = PythonScaleUpChannel;
  py::class_<ScaleUpChannel, std::shared_ptr<ScaleUpChannel>>(m, "_ScaleUpChannel");
  py::class_<Channel, ScaleUpChannel, std::shared_ptr<Channel>>(m, "ScaleUpChannel")
      .def(py::init([](ScaleUpDomain& domain, std::shared_ptr<CompletionHandler> completions, uint32_t port,
                       uint32_t number, uint32_t peer_port, uint32_t peer_number) {
             return make_component<Channel>(domain.engine(), domain, std::move(completions), port, number,
                                            peer_port, peer_number);
           }),
           "domain"_a, "completions"_a, py::kw_only(), "port"_a, "number"_a, "peer_port"_a, "peer_number"_a,
           py::keep_alive<1, 2>())
      .def("close", [](Channel& channel) {
        PythonGuard guard(channel.engine);
        channel.close();
      });
}

}  // namespace weft
