// Congestion controls and path choices in Python.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "congestion/registry.hpp"
#include "paths/registry.hpp"
#include "python/bind_codec.hpp"
#include "python/bind_path_properties.hpp"
#include "python/bindings.hpp"
#include "python/python_congestion_control.hpp"
#include "python/python_path_choice.hpp"
#include "python/typed.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

namespace {

void acknowledge(CongestionControl& control, TimePs now_ps, uint64_t acknowledged_bytes,
                 uint64_t acknowledged_packets, uint64_t in_flight_bytes, TimePs round_trip_ps,
                 uint64_t sequence, uint64_t next_sequence, uint8_t hops, bool congestion_experienced,
                 const std::optional<Record<"TelemetryFields">>& telemetry) {
  std::optional<roce::IntStack> stack;
  if (telemetry) stack = int_stack_of(*telemetry);
  control.on_acknowledgement({.now = now_ps,
                              .acknowledged_bytes = acknowledged_bytes,
                              .acknowledged_packets = acknowledged_packets,
                              .in_flight_bytes = in_flight_bytes,
                              .round_trip_ps = round_trip_ps,
                              .sequence = sequence,
                              .next_sequence = next_sequence,
                              .hops = hops,
                              .congestion_experienced = congestion_experienced,
                              .telemetry = stack ? &*stack : nullptr});
}

std::optional<TimePs> deadline_of(const CongestionControl& control) {
  const TimePs deadline = control.next_deadline();
  return deadline == kNever ? std::nullopt : std::optional(deadline);
}

PathProperties path_of(const py::kwargs& given, uint32_t ack_interval_packets) {
  PathProperties path = path_properties_of(given, true);
  path.ack_interval_packets = std::max(1u, ack_interval_packets);
  return path;
}

void bind_path_choices(py::module_& m) {
  py::class_<PathChoice, std::shared_ptr<PathChoice>>(
      m, "PathChoice",
      "Decides the entropy (14 bits) of every packet of a queue pair, made by make_path_choice().")
      .def_property_readonly("name", &PathChoice::name)
      .def("entropy", &PathChoice::entropy, "now_ps"_a, "sequence"_a = 0, "retransmission"_a = false,
           "The entropy of the packet that is about to be sent: of its UDP source port and IPv6 flow label.")
      .def("on_delivered", &PathChoice::on_delivered, "now_ps"_a, "entropy"_a, "round_trip_ps"_a,
           "congestion_experienced"_a = false,
           R"doc(A packet has arrived; round_trip_ps 0: it had been sent twice.

congestion_experienced: a switch had marked it (CE).)doc")
      .def("on_lost", &PathChoice::on_lost, "now_ps"_a, "entropy"_a, "A packet counts as lost.")
      .def("on_timeout", &PathChoice::on_timeout, "now_ps"_a, "A retransmission has timed out.")
      .def("on_congestion_notification", &PathChoice::on_congestion_notification, "now_ps"_a);
  using Kind = PathChoiceKind;
  py::class_<Kind, std::unique_ptr<Kind, py::nodelete>>(m, "PathChoiceKind",
                                                        "A choice of path as its file declares it.")
      .def_readonly("name", &Kind::name)
      .def_readonly("summary", &Kind::summary)
      .def_readonly("source", &Kind::source)
      .def_readonly("reorders", &Kind::reorders,
                    "Packets of a flow overtake each other even if nothing is congested or lost.")
      .def_readonly("marks", &Kind::marks, "It reads CE marks of switches.")
      .def_property_readonly(
          "parameters",
          [](const Kind& self) {
            return std::vector<CongestionParameter>(self.parameters.begin(), self.parameters.end());
          },
          "In the order of their declaration.");
  m.def("path_choices", &path_choices, py::return_value_policy::reference,
        "All choices of path, in alphabetical order.");
  m.def("path_choice_names", [] {
    std::vector<std::string_view> names;
    for (const Kind* kind : path_choices()) names.push_back(kind->name);
    return names;
  });
  m.def("path_choice_kind", &path_choice_kind, py::return_value_policy::reference, "name"_a,
        "A choice of path by its name. Raises ValueError for an unknown one, naming the valid ones.");
  m.def(
      "make_path_choice",
      [](const std::string& name, uint64_t seed, const CongestionParameters& parameters,
         const py::KWArgs<Typed<"typing.Unpack[PathArguments]">>& path) -> std::shared_ptr<PathChoice> {
        return make_path_choice(name, seed, path_of(path, 1), parameters);
      },
      "name"_a, "seed"_a, "parameters"_a = CongestionParameters{},
      R"doc(A choice of path for one queue pair on a path with these properties (see make_congestion_control()).

What it draws repeats with the seed. Raises ValueError for an unknown name or parameter, or a value out of
range, naming the valid ones.)doc");
  m.def(
      "path_parameters_in_force",
      [](const std::string& name, const CongestionParameters& parameters,
         const py::KWArgs<Typed<"typing.Unpack[PathArguments]">>& path) {
        return path_parameters_in_force(name, path_of(path, 1), parameters);
      },
      "name"_a, "parameters"_a = CongestionParameters{},
      "All parameters of what make_path_choice() would make, by name.");
}

void bind_registry(py::module_& m) {
  py::class_<CongestionPreset>(
      m, "CongestionPreset",
      "A named set of an algorithm's parameters, and what goes with it at the receiver.")
      .def_readonly("name", &CongestionPreset::name)
      .def_readonly("source", &CongestionPreset::source, "Where its values come from.")
      .def_readonly("cnp_interval_ps", &CongestionPreset::cnp_interval_ps,
                    "A receiver's CNPs for a flow come at most so often.");
  py::class_<CongestionParameter>(m, "CongestionParameter", "A parameter as its algorithm declares it.")
      .def_readonly("name", &CongestionParameter::name,
                    "It ends in its unit (_ps, _bps, _bytes, _packets) if it has one.")
      .def_property_readonly(
          "default", [](const CongestionParameter& self) { return self.default_value.value; },
          "None where it follows from `default_rule`.")
      .def_property_readonly(
          "default_rule", [](const CongestionParameter& self) { return self.default_value.rule; },
          "What the default follows from; empty where it is a number.")
      .def_readonly("least", &CongestionParameter::least)
      .def_readonly("most", &CongestionParameter::most)
      .def_readonly("meaning", &CongestionParameter::meaning)
      .def_readonly("source", &CongestionParameter::source,
                    "Paper and section, or where else it comes from.");
  py::class_<CongestionNeeds>(m, "CongestionNeeds", "What an algorithm needs of the fabric and of receivers.")
      .def(py::init(
               [](bool telemetry, bool marks, bool every_acknowledgement, bool one_path, bool notifications) {
                 return CongestionNeeds{telemetry, marks, every_acknowledgement, one_path, notifications};
               }),
           py::kw_only(), "telemetry"_a = false, "marks"_a = false, "every_acknowledgement"_a = false,
           "one_path"_a = false, "notifications"_a = false)
      .def_readonly("telemetry", &CongestionNeeds::telemetry,
                    "INT in data packets, echoed by acknowledgements.")
      .def_readonly("marks", &CongestionNeeds::marks,
                    "CE marks of switches: as CNPs, or echoed by acknowledgements.")
      .def_readonly("every_acknowledgement", &CongestionNeeds::every_acknowledgement,
                    "An acknowledgement of each packet, not one for several.")
      .def_readonly("one_path", &CongestionNeeds::one_path, "All packets of a flow on one path.")
      .def_readonly("notifications", &CongestionNeeds::notifications,
                    "Switches that notify senders of queues, and mark what exceeds the supply.");
  py::class_<CongestionMarks>(m, "CongestionMarks",
                              "Where switches are to mark for an algorithm, as times to drain a queue.")
      .def_readonly("kmin_round_trips", &CongestionMarks::kmin_round_trips,
                    "Of the farthest pair's idle round trip; 0: as for DCQCN.")
      .def_readonly("kmax_round_trips", &CongestionMarks::kmax_round_trips)
      .def_readonly("pmax", &CongestionMarks::pmax, "Probability of a mark just below kmax.");
  using Kind = CongestionControlKind;
  py::class_<Kind, std::unique_ptr<Kind, py::nodelete>>(m, "CongestionControlKind",
                                                        "A congestion control as its file declares it.")
      .def_readonly("name", &Kind::name)
      .def_readonly("summary", &Kind::summary)
      .def_readonly("source", &Kind::source)
      .def_readonly("needs", &Kind::needs)
      .def_readonly("marks", &Kind::marks)
      .def_property_readonly(
          "parameters",
          [](const Kind& self) {
            return std::vector<CongestionParameter>(self.parameters.begin(), self.parameters.end());
          },
          "In the order of their declaration.")
      .def_property_readonly(
          "presets",
          [](const Kind& self) {
            return std::vector<CongestionPreset>(self.presets.begin(), self.presets.end());
          },
          "The default first; none where it has none.");
  m.def("congestion_controls", &congestion_controls, py::return_value_policy::reference,
        "All congestion controls, in alphabetical order.");
  m.def("congestion_control_names", [] {
    std::vector<std::string_view> names;
    for (const Kind* kind : congestion_controls()) names.push_back(kind->name);
    return names;
  });
  m.def("load_congestion_controls", &load_congestion_controls, "library"_a, "prefix"_a,
        R"doc(Load a library with users' congestion controls, for good, and return their names.

Other functions know each by prefix and its name. Raises ValueError if it cannot be loaded.)doc");
  m.def("congestion_control_kind", &congestion_control_kind, py::return_value_policy::reference, "name"_a,
        "A congestion control by its name. Raises ValueError for an unknown one, naming the valid ones.");
}

}  // namespace

void bind_congestion(py::module_& m) {
  bind_path_choices(m);
  py::class_<CongestionControl, std::shared_ptr<CongestionControl>>(
      m, "CongestionControl",
      R"doc(Decides a queue pair's window and rate from acknowledgements, CNPs, losses and timers.

Made by make_congestion_control() and given to one queue pair, which calls it. Direct calls are for
tests and models. Times are emulated picoseconds, window_bytes counts frame bytes (Ethernet to iCRC),
pacing_rate_bps 0 means as fast as the port takes frames, next_deadline_ps None that no timer runs.)doc")
      .def_property_readonly("name", &CongestionControl::name)
      .def_property_readonly("window_bytes", &CongestionControl::window_bytes)
      .def_property_readonly("pacing_rate_bps", &CongestionControl::pacing_rate_bps)
      .def_property_readonly("next_deadline_ps", &deadline_of)
      .def("on_packet_sent", &CongestionControl::on_packet_sent, "now_ps"_a, "frame_bytes"_a,
           "retransmission"_a = false)
      .def("on_acknowledgement", &acknowledge, "now_ps"_a, py::kw_only(), "acknowledged_bytes"_a = 0,
           "acknowledged_packets"_a = 1, "in_flight_bytes"_a = 0, "round_trip_ps"_a = 0, "sequence"_a = 0,
           "next_sequence"_a = 0, "hops"_a = 0, "congestion_experienced"_a = false,
           "telemetry"_a = py::none(), R"doc(An acknowledgement has come.

sequence: of the newest packet covered, counted from the queue pair's start; next_sequence: of the
next packet never sent before; round_trip_ps 0: that packet had been sent twice; hops: routers that
the acknowledgement passed; congestion_experienced: a switch marked (CE) what it newly covers; telemetry:
the INT stack that it echoes.)doc")
      .def("on_congestion_notification", &CongestionControl::on_congestion_notification, "now_ps"_a,
           "A CNP has come.")
      .def(
          "on_switch_notification",
          [](CongestionControl& control, TimePs now_ps, TimePs sent_ps, uint64_t queue_bytes,
             uint64_t link_rate_bps) {
            control.on_switch_notification({now_ps, sent_ps, queue_bytes, link_rate_bps});
          },
          "now_ps"_a, py::kw_only(), "sent_ps"_a, "queue_bytes"_a, "link_rate_bps"_a,
          "A switch tells of the queue that a packet sent at sent_ps has left behind.")
      .def(
          "on_loss",
          [](CongestionControl& control, TimePs now_ps, bool timeout, uint64_t lost_bytes) {
            control.on_lost_bytes(now_ps, timeout, lost_bytes);
          },
          "now_ps"_a, "timeout"_a, "lost_bytes"_a = 0,
          "A sequence NAK has come, or a retransmission has timed out; so many frame bytes are lost.")
      .def("on_deadline", &CongestionControl::on_deadline, "now_ps"_a, "The time next_deadline_ps has come.");

  bind_registry(m);
  m.def(
      "make_congestion_control",
      [](const std::string& name, uint32_t ack_interval_packets, const CongestionParameters& parameters,
         const std::string& preset, const py::KWArgs<Typed<"typing.Unpack[PathArguments]">>& given) {
        return std::shared_ptr<CongestionControl>(
            make_congestion_control(name, path_of(given, ack_interval_packets), parameters, preset));
      },
      "name"_a, py::kw_only(), "ack_interval_packets"_a = 1, "parameters"_a = CongestionParameters(),
      "preset"_a = "",
      R"doc(A congestion control for a path: rate of the sender's port, idle round trip, frame of a full packet.

ack_interval_packets: how many packets are acknowledged together; nearest_round_trip_ps and nearest_hops: of the
nearest peer's path, and the routers on it; hop_round_trip_ps: what each router more adds; int_rates_bps: what the
16 rate codes of the fabric's INT stand for, by default the standard ones.

Parameters left out are the preset's (empty: the default one), and fit the path; their names are those that the
control declares (congestion_control_kind). Raises ValueError for unknown names and values
out of range, naming the valid ones.)doc");
  m.def(
      "congestion_parameters_in_force",
      [](const std::string& name, uint32_t ack_interval_packets, const CongestionParameters& parameters,
         const std::string& preset, const py::KWArgs<Typed<"typing.Unpack[PathArguments]">>& given) {
        return congestion_parameters_in_force(name, path_of(given, ack_interval_packets), parameters, preset);
      },
      "name"_a, py::kw_only(), "ack_interval_packets"_a = 1, "parameters"_a = CongestionParameters(),
      "preset"_a = "",
      "All parameters of what make_congestion_control() would make, those left out by their defaults. Raises "
      "as it.");
  bind_python_congestion_control(m);
  bind_python_path_choice(m);
}

}  // namespace weft
