// A switch's packets for Python: replication, packets in and out, stream events, traces and logs.
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "python/bind_switch.hpp"
#include "python/typed.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace weft {

void bind_switch_packets(SwitchClass& cls) {
  using Replicas = std::vector<std::pair<uint32_t, uint32_t>>;
  const auto replicas_of = [](const Replicas& pairs) {
    std::vector<Replica> result;
    for (const auto& [port, instance] : pairs) result.push_back(Replica{port, instance});
    return result;
  };
  cls.def(
         "multicast_group_set",
         [replicas_of](Switch& self, uint32_t id, const Replicas& replicas) {
           PythonGuard guard(self.engine());
           self.replication().multicast_groups[id] = replicas_of(replicas);
         },
         "id"_a, "replicas"_a)
      .def(
          "multicast_group_delete",
          [](Switch& self, uint32_t id) {
            PythonGuard guard(self.engine());
            return self.replication().multicast_groups.erase(id) != 0;
          },
          "id"_a)
      .def(
          "clone_session_set",
          [replicas_of](Switch& self, uint32_t id, const Replicas& replicas, uint32_t priority_class,
                        uint32_t packet_length_bytes) {
            PythonGuard guard(self.engine());
            self.replication().clone_sessions[id] = {replicas_of(replicas), priority_class,
                                                     packet_length_bytes};
          },
          "id"_a, "replicas"_a, "priority_class"_a, "packet_length_bytes"_a)
      .def(
          "clone_session_delete",
          [](Switch& self, uint32_t id) {
            PythonGuard guard(self.engine());
            return self.replication().clone_sessions.erase(id) != 0;
          },
          "id"_a)
      .def(
          "packet_out",
          [](Switch& self, const py::bytes& data) {
            PythonGuard guard(self.engine());
            PacketPtr packet = self.engine().packets().copy_of(view_of(data));
            self.engine().conservation().enter(PacketOrigin::kFromController, packet->traffic());
            self.receive(static_cast<int>(self.options().cpu_port), std::move(packet));
          },
          "Let the switch receive a packet on its CPU port.", "data"_a)
      .def(
          "process",
          [](Switch& self, uint32_t port, const py::bytes& data) {
            PythonGuard guard(self.engine());
            Typed<"list[tuple[int, bytes]]", py::list> result;
            for (const Switch::Output& output : self.process(port, view_of(data)))
              result.append(py::make_tuple(output.port, to_bytes(output.bytes)));
            return result;
          },
          py::arg("port"), py::arg("data"), "Run a packet through both pipelines at once; what leaves.")
      .def(
          "would_send",
          [](Switch& self, const std::vector<std::pair<uint32_t, py::bytes>>& packets) {
            PythonGuard guard(self.engine());
            std::vector<Switch::Input> inputs;
            for (const auto& [port, bytes] : packets) inputs.push_back({port, view_of(bytes)});
            Typed<"list[list[tuple[int, bytes]]]", py::list> result;
            for (const std::vector<Switch::Output>& outputs : self.would_send(inputs)) {
              py::list of_packet;
              for (const Switch::Output& output : outputs)
                of_packet.append(py::make_tuple(output.port, to_bytes(output.bytes)));
              result.append(of_packet);
            }
            return result;
          },
          py::arg("packets"),
          "What would leave for each of the packets, each a port and bytes; they count nowhere.")
      .def(
          "process_repeatedly",
          [](Switch& self, const std::vector<std::pair<uint32_t, py::bytes>>& packets, uint64_t count) {
            if (packets.empty()) throw std::invalid_argument("no packets");
            PythonGuard guard(self.engine());
            std::vector<Switch::Input> inputs;
            for (const auto& [port, bytes] : packets) inputs.push_back({port, view_of(bytes)});
            py::gil_scoped_release release;
            return self.process_repeatedly(inputs, count);
          },
          py::arg("packets"), py::arg("count"),
          "`count` packets, each a port and bytes, the given ones over and over; how many left.")
      .def(
          "wait_event", [](Switch& self, double timeout_s)->Typed<"tuple[str, int, bytes, int] | None"> {
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
          py::arg("timeout_s"),
          "(\"packet_in\" or \"digest\", learn list, bytes, time in ps), or None when the time is over.")
      .def(
          "set_event_listener",
          [](Switch& self, std::optional<Callback> listener) {
            std::function<void()> held = listener_of(self.engine(), std::move(listener));
            PythonGuard guard(self.engine());
            self.events().set_listener(std::move(held));
          },
          py::arg("listener").none(true),
          "Call listener() from the engine whenever wait_event() has one more; None ends that.")
      .def(
          "replace_code",
          [](Switch& self, std::shared_ptr<SwitchProgram> program) {
            PythonGuard guard(self.engine());
            self.replace_code(std::move(program));
          },
          "program"_a, "Go on with other code for the same program. ValueError if its shape is another.")
      .def(
          "add_contents_to",
          [](Switch& self, CommonContents& common) {
            PythonGuard guard(self.engine());
            self.objects().add_to(common);
          },
          "common"_a, "Take the contents of its tables into account.")
      .def(
          "specialise",
          [](Switch& self, std::shared_ptr<SwitchProgram> program) {
            PythonGuard guard(self.engine());
            return self.objects().specialise(std::move(program));
          },
          "program"_a, R"doc(Go on with code that takes contents of tables for granted.

The first write that breaks it brings the general code back. False if the contents break it already, or if the
code in use is not the program's own.)doc")
      .def_property_readonly(
          "code", [](Switch& self)->Typed<"tuple[bool, int, int]"> {
            PythonGuard guard(self.engine());
            const SwitchObjects& objects = self.objects();
            return py::make_tuple(objects.is_specialised(), objects.generalisations(), objects.writes());
          },
          "Whether the code is specialised, how often writes have ended that, and writes to tables.")
      .def(
          "start_trace",
          [](Switch& self, uint64_t packets, std::optional<uint32_t> port, std::optional<Callback> ended,
             TimePs from_ps, TimePs until_ps) {
            std::function<void()> held = listener_of(self.engine(), std::move(ended));
            PythonGuard guard(self.engine());
            self.trace().start({port, packets, from_ps, until_ps}, std::move(held));
          },
          py::arg("packets"), py::arg("port").none(true), py::arg("ended").none(true) = py::none(),
          py::arg("from_ps") = 0, py::arg("until_ps") = std::numeric_limits<TimePs>::max(),
          "Trace the next packets of a port, in a time; ended() is called as one, or a copy, ends.")
      .def("stop_trace",
           [](Switch& self) {
             PythonGuard guard(self.engine());
             self.trace().stop();
           })
      .def(
          "take_trace",
          [](Switch& self) {
            PythonGuard guard(self.engine());
            return to_bytes(self.trace().take());
          },
          "All records so far, each a SwitchTrace::Head and its data.")
      .def_property_readonly("trace_packets_missed",
                             [](Switch& self) {
                               PythonGuard guard(self.engine());
                               return self.trace().packets_missed();
                             })
      .def(
          "set_logging",
          [](Switch& self, bool enabled) {
            PythonGuard guard(self.engine());
            self.set_logging(enabled);
          },
          "enabled"_a)
      .def("take_log", [](Switch& self) {
        PythonGuard guard(self.engine());
        return self.take_log();
      });
}

}  // namespace weft
