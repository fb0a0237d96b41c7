// Links between the ranks of a host in Python.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "hosts/host_links.hpp"
#include "hosts/nic.hpp"
#include "hosts/scale_up.hpp"
#include "hosts/scale_up_relay.hpp"
#include "hosts/scale_up_sockets.hpp"
#include "hosts/writing_queue_pair.hpp"
#include "python/bind_flows.hpp"
#include "python/bindings_support.hpp"
#include "python/rc_options.hpp"
#include "python/statistics_dict.hpp"
#include "python/typed.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

namespace {

// Knows the engine and keeps its handler alive.
class PythonScaleUpChannel final : public ScaleUpChannel {
 public:
  PythonScaleUpChannel(ScaleUpDomain& domain, std::shared_ptr<CompletionHandler> handler, uint32_t port,
                       uint32_t number, uint32_t peer_port, uint32_t peer_number, LineFormat line_format,
                       uint32_t group)
      : ScaleUpChannel(domain, port, number, peer_port, peer_number, handler.get(), line_format, group),
        engine(domain.engine()),
        handler_(std::move(handler)) {}

  Engine& engine;

 private:
  std::shared_ptr<CompletionHandler> handler_;
};

Record<"ScaleUpStats"> stats(ScaleUpDomain& domain, uint32_t port) {
  PythonGuard guard(domain.engine());
  return statistics_dict(domain.counters(port));
}

Record<"HostLinkStats"> link_stats(HostLinks& links, uint32_t link) {
  PythonGuard guard(links.engine());
  return statistics_dict(links.counters(link));
}

}  // namespace

void bind_host_links(py::module_& m) {
  declare_record<HostLinkCounters>("HostLinkStats");
  py::class_<HostLinks, std::shared_ptr<HostLinks>>(
      m, "HostLinks",
      R"doc(The links inside a host that payload crosses between its memories and its NICs, one direction each.

A link carries one packet at a time, of all NICs whose ports name it, in the order in which they ask. Raises
ValueError for a rate of 0.)doc")
      .def(py::init([](Engine& engine, const std::vector<uint64_t>& rates_bps) {
             return make_component<HostLinks>(engine, engine, rates_bps);
           }),
           "engine"_a, "rates_bps"_a, py::keep_alive<1, 2>())
      .def("stats", &link_stats, "link"_a, "What crossed a link.")
      .def(
          "reset_stats",
          [](HostLinks& links) {
            PythonGuard guard(links.engine());
            links.reset_counters();
          },
          "Set these counters to zero.");
}

void bind_scale_up(py::module_& m) {
  declare_record<ScaleUpCounters>("ScaleUpStats");
  py::class_<ScaleUpDomain, std::shared_ptr<ScaleUpDomain>>(
      m, "ScaleUpDomain",
      R"doc(The links between the ranks of a host: a crossbar with a port for each, which blocks nothing and loses nothing.

A message takes its bytes at the rate out of the sender's port, the latency, and its bytes in through the
receiver's port; out and in overlap, so n bytes on idle ports take n/rate + latency. A READ sends a request without
bytes first. Raises ValueError for a rate of 0 or a negative latency.)doc")
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
          "port"_a, "nic"_a, py::keep_alive<1, 3>(),
          "Let peers of a port write and read memory that is registered with a NIC of the same engine.")
      .def("stats", &stats, "port"_a)
      .def(
          "reset_stats",
          [](ScaleUpDomain& domain, uint32_t port) {
            PythonGuard guard(domain.engine());
            domain.reset_counters(port);
          },
          "port"_a);

  py::class_<ScaleUpSockets, std::shared_ptr<ScaleUpSockets>>(
      m, "ScaleUpSockets",
      R"doc(Join a domain to those of the other ranks of its host, each in a process of its own (real clock).

`sockets`: connected stream sockets by the port at their far end, one to each other port. Their descriptors are
closed with the engine. Raises ValueError for other ports and other sockets, RuntimeError without a real clock,
OSError for descriptors that are none.)doc")
      .def(py::init([](ScaleUpDomain& domain, uint32_t own_port, const std::map<uint32_t, int>& sockets) {
             return make_component<ScaleUpSockets>(domain.engine(), domain, own_port, sockets);
           }),
           "domain"_a, "own_port"_a, "sockets"_a, py::keep_alive<1, 2>());

  using Channel = PythonScaleUpChannel;
  py::class_<ScaleUpChannel, std::shared_ptr<ScaleUpChannel>>(m, "_ScaleUpChannel");
  py::class_<Channel, ScaleUpChannel, std::shared_ptr<Channel>>(
      m, "ScaleUpChannel",
      R"doc(One end of a connection between two ports of a domain; numbers are unique at a port, as queue pairs' are.

Completions are those of RDMA: of a WRITE at both ends, of a READ at the end that reads, when the last bit is in.
With the line format "ll" or "ll128" the links carry flags, too. Channels of a port over which terms of the same
reductions come have the same `group`. Raises ValueError for ports there are not, a number
in use and another format.)doc")
      .def(py::init([](ScaleUpDomain& domain, std::shared_ptr<CompletionHandler> completions, uint32_t port,
                       uint32_t number, uint32_t peer_port, uint32_t peer_number,
                       const std::string& line_format, uint32_t group) {
             return make_component<Channel>(domain.engine(), domain, std::move(completions), port, number,
                                            peer_port, peer_number,
                                            PythonOption<LineFormat>::of(py::str(line_format)), group);
           }),
           "domain"_a, "completions"_a, py::kw_only(), "port"_a, "number"_a, "peer_port"_a, "peer_number"_a,
           "line_format"_a = "none", "group"_a = 0, py::keep_alive<1, 2>())
      .def(
          "close",
          [](Channel& channel) {
            PythonGuard guard(channel.engine);
            channel.close();
          },
          "Forget what is under way; its data is neither read nor written any more.");

  py::class_<ScaleUpRelay, CompletionHandler, std::shared_ptr<ScaleUpRelay>>(
      m, "ScaleUpRelay",
      R"doc(A rank that sends on what another rank of its host writes to it: whole messages, by a queue pair of its NIC.

It is the handler of that queue pair. Senders' completions are the queue pair's; READs are refused. Raises
ValueError as ScaleUpChannel does.)doc")
      .def(py::init([](ScaleUpDomain& domain, uint32_t port, uint32_t number, uint32_t source_port,
                       uint32_t source_number, TimePs step_latency_ps) {
             return make_component<ScaleUpRelay>(domain.engine(), domain, port, number, source_port,
                                                 source_number, step_latency_ps);
           }),
           "domain"_a, py::kw_only(), "port"_a, "number"_a, "source_port"_a, "source_number"_a,
           "step_latency_ps"_a = 0, py::keep_alive<1, 2>())
      .def(
          "send_by",
          [](ScaleUpRelay& relay, WritingQueuePair& queue_pair) {
            PythonGuard guard(relay.engine());
            relay.send_by(queue_pair);
          },
          "queue_pair"_a, "Name the queue pair; keep it until the relay is closed.")
      .def(
          "close",
          [](ScaleUpRelay& relay) {
            PythonGuard guard(relay.engine());
            relay.close();
          },
          "Relay nothing any more; messages under way are abandoned.");
}

}  // namespace weft
