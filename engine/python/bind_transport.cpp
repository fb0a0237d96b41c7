// NIC, queue pairs, registered memory and completions in Python.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "hosts/completion_queue.hpp"
#include "hosts/nic.hpp"
#include "links/pcap_writer.hpp"
#include "python/bind_codec.hpp"
#include "python/bindings.hpp"
#include "python/bindings_support.hpp"
#include "python/python_buffer.hpp"
#include "python/registered_memory.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

namespace {

py::dict completion_dict(const Completion& completion) {
  return py::dict(
      "work_id"_a = completion.work_id, "kind"_a = completion_kind_name(completion.kind),
      "status"_a = completion_status_name(completion.status),
      "fault"_a = fault_name(completion_fault(completion.status)), "queue_pair"_a = completion.queue_pair,
      "length_bytes"_a = completion.length_bytes,
      "immediate"_a = completion.has_immediate ? std::optional(completion.immediate) : std::nullopt,
      "posted_ps"_a = completion.posted_ps, "completed_ps"_a = completion.completed_ps);
}

void bind_completions(py::module_& m) {
  py::class_<CompletionHandler, std::shared_ptr<CompletionHandler>>(m, "CompletionHandler");

  py::class_<CompletionQueue, CompletionHandler, std::shared_ptr<CompletionQueue>>(m, "CompletionQueue")
      .def(py::init([](Engine& engine) { return make_component<CompletionQueue>(engine); }), "engine"_a,
           py::keep_alive<1, 2>())
      .def(
          "poll",
          [](CompletionQueue& queue, std::optional<size_t> limit) {
            py::list result;
            for (const Completion& completion :
                 queue.poll(limit.value_or(std::numeric_limits<size_t>::max())))
              result.append(completion_dict(completion));
            return result;
          },
          "limit"_a = py::none())
      .def(
          "wait",
          [](CompletionQueue& queue, size_t count, double timeout_seconds) {
            py::gil_scoped_release release;
            return queue.wait(count, std::chrono::duration<double>(timeout_seconds));
          },
          "count"_a, "timeout_seconds"_a);
}

std::vector<roce::IpAddress> parse_addresses(const std::vector<std::string>& texts) {
  std::vector<roce::IpAddress> addresses;
  for (const std::string& text : texts) addresses.push_back(parse_ip(text));
  return addresses;
}

py::dict nic_stats(Nic& nic, int port) {
  PythonGuard guard(nic.engine());
  const NicPortCounters& counters = nic.counters(port);
  py::dict dropped;
  for (size_t error = 1; error < counters.parse_errors.size(); ++error) {
    if (const auto kind = static_cast<roce::ParseError>(error); kind != roce::ParseError::kNotRoce)
      dropped[roce::parse_error_name(kind)] = counters.parse_errors[error];
  }
  for (size_t reason = 0; reason < counters.drops.size(); ++reason)
    dropped[nic_drop_name(static_cast<NicDrop>(reason))] = counters.drops[reason];
  return py::dict("received_packets"_a = counters.received_packets,
                  "received_bytes"_a = counters.received_bytes,
                  "not_roce_packets"_a = counters.not_roce_packets, "dropped"_a = dropped);
}

void bind_nic(py::module_& m) {
  py::class_<RegisteredMemory, std::shared_ptr<RegisteredMemory>>(m, "MemoryRegion")
      .def_property_readonly("rkey", &RegisteredMemory::rkey)
      .def_property_readonly("virtual_address", &RegisteredMemory::virtual_address)
      .def_property_readonly("length_bytes", &RegisteredMemory::length_bytes)
      .def("deregister", &RegisteredMemory::deregister);

  py::class_<Nic, Node, std::shared_ptr<Nic>>(m, "Nic")
      .def(py::init([](Engine& engine, const std::string& name, uint64_t pcie_rate_bps, TimePs dma_latency_ps,
                       TimePs per_message_overhead_ps, TimePs per_packet_overhead_ps) {
             const NicConfig config{pcie_rate_bps, dma_latency_ps, per_message_overhead_ps,
                                    per_packet_overhead_ps};
             return make_component<Nic>(engine, engine, name, config);
           }),
           "engine"_a, "name"_a, py::kw_only(), "pcie_rate_bps"_a = 0, "dma_latency_ps"_a = 0,
           "per_message_overhead_ps"_a = 0, "per_packet_overhead_ps"_a = 0, py::keep_alive<1, 2>())
      .def_property_readonly("name", &Nic::name)
      .def(
          "add_port",
          [](Nic& nic, TransmitPort& line, const std::string& mac,
             const std::vector<std::string>& addresses) {
            PythonGuard guard(nic.engine());
            return nic.add_port({parse_mac(mac), parse_addresses(addresses)}, line);
          },
          "line"_a, py::kw_only(), "mac"_a, "addresses"_a)
      .def("allocate_queue_pair_number",
           [](Nic& nic) {
             PythonGuard guard(nic.engine());
             return nic.allocate_queue_pair_number();
           })
      .def(
          "register_memory",
          [](std::shared_ptr<Nic> nic, const py::buffer& buffer, uint64_t virtual_address,
             bool remote_write) {
            auto held = std::make_shared<PythonBuffer>(buffer, remote_write);
            const uint64_t length_bytes = held->size_bytes();
            return std::make_shared<RegisteredMemory>(std::move(nic), std::move(held), length_bytes,
                                                      virtual_address, remote_write);
          },
          "buffer"_a, py::kw_only(), "virtual_address"_a = 0, "remote_write"_a = true, py::keep_alive<0, 1>())
      .def(
          "register_sink",
          [](std::shared_ptr<Nic> nic, uint64_t length_bytes, uint64_t virtual_address) {
            return std::make_shared<RegisteredMemory>(std::move(nic), nullptr, length_bytes, virtual_address,
                                                      true);
          },
          "length_bytes"_a, py::kw_only(), "virtual_address"_a = 0, py::keep_alive<0, 1>())
      .def(
          "detach",
          [](Nic& nic, QueuePair& queue_pair) {
            PythonGuard guard(nic.engine());
            nic.detach(queue_pair);
          },
          "queue_pair"_a)
      .def(
          "set_capture",
          [](Nic& nic, int port, std::shared_ptr<PcapWriter> capture) {
            PythonGuard guard(nic.engine());
            nic.set_capture(port, std::move(capture));
          },
          "port"_a, "capture"_a.none(true))
      .def("stats", &nic_stats, "port"_a)
      .def("reset_stats", [](Nic& nic) {
        PythonGuard guard(nic.engine());
        nic.reset_counters();
      });
}

}  // namespace

void bind_transport(py::module_& m) {
  bind_codec(m);
  bind_completions(m);
  bind_nic(m);
}

}  // namespace weft
