// A switch's packets for Python: replication, packets in and out, stream events, traces and logs.
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "python/bind_switch.hpp"

namespace py = pybind11;

namespace weft {

namespace {

py::bytes to_bytes(std::span<const uint8_t> data) {
  return py::bytes(reinterpret_cast<const char*>(data.data()), data.size());
}

}  // namespace

void bind_switch_packets(SwitchClass& cls) {
  using Replicas = std::vector<std::pair<uint32_t, uint32_t>>;
  const auto replicas_of = [](const Replicas& pairs) {
    std::vector<Replica> result;
    for (const auto& [port, instance] : pairs) result.push_back(Replica{port, instance});
    return result;
  };
  cls.def("multicast_group_set",
          [replicas_of](Switch& self, uint32_t id, const Replicas& replicas) {
            PythonGuard guard(self.engine());
            self.replication().multicast_groups[id] = replicas_of(replicas);
          })
      .def("multicast_group_delete",
           [](Switch& self, uint32_t id) {
             PythonGuard guard(self.engine());
             return self.replication().multicast_groups.erase(id) != 0;
           })
      .def("clone_session_set",
           [replicas_of](Switch& self, uint32_t id, const Replicas& replicas, uint32_t priority_class,
                         uint32_t packet_length_bytes) {
             PythonGuard guard(self.engine());
             self.replication().clone_sessions[id] = {replicas_of(replicas), priority_class,
                                                      packet_length_bytes};
           })
      .def("clone_session_delete",
           [](Switch& self, uint32_t id) {
             PythonGuard guard(self.engine());
             return self.replication().clone_sessions.erase(id) != 0;
           })
      .def(
          "packet_out",
          [](Switch& self, const py::bytes& data) {
            PythonGuard guard(self.engine());
            PacketPtr packet = self.engine().packets().copy_of(view_of(data));
            self.engine().ledger().enter(LedgerSource::kFromController, packet->wire_bytes());
            self.receive(static_cast<int>(self.options().cpu_port), std::move(packet));
          },
          "Let the switch receive a packet on its CPU port.")
      .def(
          "process",
          [](Switch& self, uint32_t port, const py::bytes& data) {
            PythonGuard guard(self.engine());
            py::list result;
            for (const Switch::Output& output : self.process(port, view_of(data)))
              result.append(py::make_tuple(output.port, to_bytes(output.bytes)));
            return result;
          },
          py::arg("port"), py::arg("data"))
      .def(
          "process_repeatedly",
          [](Switch& self, uint32_t port, const std::vector<py::bytes>& packets, uint64_t count) {
            if (packets.empty()) throw std::invalid_argument("no packets");
            PythonGuard guard(self.engine());
            std::vector<std::span<const uint8_t>> views;
            for (const py::bytes& packet : packets) views.push_back(view_of(packet));
            py::gil_scoped_release release;
            return self.process_repeatedly(port, views, count);
          },
          py::arg("port"), py::arg("packets"), py::arg("count"))
      .def(
          "wait_event",
          [](Switch& self, double timeout_s) -> py::object {
            std::optional<StreamEvent> event;
            {
              py::gil_scoped_release release;
              event = self.events().wait(timeout_s);
            }
            if (!event) return py::none();
            const bool digest = event->kind == StreamEvent::Kind::kDigest;
            return py::make_tuple(digest ? "digest" : "packet_in", event->learn_list, to_bytes(event->bytes),
                                  event->time_ps);
          },
          py::arg("timeout_s"))
      .def(
          "set_event_listener",
          [](Switch& self, std::optional<py::function> listener) {
            std::function<void()> held = listener_of(self.engine(), std::move(listener));
            PythonGuard guard(self.engine());
            self.events().set_listener(std::move(held));
          },
          py::arg("listener").none(true))
      .def("replace_code",
           [](Switch& self, std::shared_ptr<SwitchProgram> program) {
             PythonGuard guard(self.engine());
             self.replace_code(std::move(program));
           })
      .def(
          "start_trace",
          [](Switch& self, uint64_t packets, std::optional<uint32_t> port) {
            PythonGuard guard(self.engine());
            self.trace().start({port, packets});
          },
          py::arg("packets"), py::arg("port").none(true))
      .def("stop_trace",
           [](Switch& self) {
             PythonGuard guard(self.engine());
             self.trace().stop();
           })
      .def("take_trace",
           [](Switch& self) {
             PythonGuard guard(self.engine());
             return to_bytes(self.trace().take());
           })
      .def_property_readonly("trace_packets_missed",
                             [](Switch& self) {
                               PythonGuard guard(self.engine());
                               return self.trace().packets_missed();
                             })
      .def("set_logging",
           [](Switch& self, bool enabled) {
             PythonGuard guard(self.engine());
             self.set_logging(enabled);
           })
      .def("take_log", [](Switch& self) {
        PythonGuard guard(self.engine());
        return self.take_log();
      });
}

}  // namespace weft
