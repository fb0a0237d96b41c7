// Congestion controls and path choices in Python.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "congestion/congestion_controls.hpp"
#include "hosts/path_choices.hpp"
#include "python/bind_codec.hpp"
#include "python/bind_path_properties.hpp"
#include "python/bindings.hpp"
#include "python/python_congestion_control.hpp"
#include "python/python_path_choice.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

namespace {

void acknowledge(CongestionControl& control, TimePs now_ps, uint64_t acknowledged_bytes,
                 uint64_t acknowledged_packets, uint64_t in_flight_bytes, TimePs round_trip_ps,
                 uint64_t sequence, uint64_t next_sequence, uint8_t hops, bool congestion_experienced,
                 const std::optional<py::dict>& telemetry) {
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

void bind_path_choices(py::module_& m) {
  py::class_<PathChoice, std::shared_ptr<PathChoice>>(m, "PathChoice")
      .def_property_readonly("name", &PathChoice::name)
      .def("entropy", &PathChoice::entropy, "now_ps"_a, "sequence"_a = 0, "retransmission"_a = false)
      .def("on_delivered", &PathChoice::on_delivered, "now_ps"_a, "entropy"_a, "round_trip_ps"_a,
           "congestion_experienced"_a = false)
      .def("on_lost", &PathChoice::on_lost, "now_ps"_a, "entropy"_a)
      .def("on_congestion_notification", &PathChoice::on_congestion_notification, "now_ps"_a);
  m.def(
      "spray",
      [](uint64_t seed, uint32_t path_count) -> std::shared_ptr<PathChoice> {
        return std::make_shared<Spray>(seed, path_count);
      },
      "seed"_a, "path_count"_a);
  m.def(
      "flowlet",
      [](uint64_t seed, TimePs gap_ps) -> std::shared_ptr<PathChoice> {
        return std::make_shared<Flowlet>(seed, gap_ps);
      },
      "seed"_a, "gap_ps"_a);
}

PathProperties path_of(const py::kwargs& given, uint32_t ack_interval_packets) {
  PathProperties path = path_properties_of(given, true);
  path.ack_interval_packets = std::max(1u, ack_interval_packets);
  return path;
}

}  // namespace

void bind_congestion(py::module_& m) {
  bind_path_choices(m);
  py::class_<CongestionControl, std::shared_ptr<CongestionControl>>(m, "CongestionControl")
      .def_property_readonly("name", &CongestionControl::name)
      .def_property_readonly("window_bytes", &CongestionControl::window_bytes)
      .def_property_readonly("pacing_rate_bps", &CongestionControl::pacing_rate_bps)
      .def_property_readonly("next_deadline_ps", &deadline_of)
      .def("on_packet_sent", &CongestionControl::on_packet_sent, "now_ps"_a, "frame_bytes"_a,
           "retransmission"_a = false)
      .def("on_acknowledgement", &acknowledge, "now_ps"_a, py::kw_only(), "acknowledged_bytes"_a = 0,
           "acknowledged_packets"_a = 1, "in_flight_bytes"_a = 0, "round_trip_ps"_a = 0, "sequence"_a = 0,
           "next_sequence"_a = 0, "hops"_a = 0, "congestion_experienced"_a = false,
           "telemetry"_a = py::none())
      .def("on_congestion_notification", &CongestionControl::on_congestion_notification, "now_ps"_a)
      .def("on_loss", &CongestionControl::on_loss, "now_ps"_a, "timeout"_a)
      .def("on_deadline", &CongestionControl::on_deadline, "now_ps"_a);

  py::class_<CongestionPreset>(m, "CongestionPreset")
      .def_readonly("name", &CongestionPreset::name)
      .def_readonly("source", &CongestionPreset::source)
      .def_readonly("cnp_interval_ps", &CongestionPreset::cnp_interval_ps);
  m.def("congestion_control_names", &congestion_control_names);
  m.def(
      "congestion_presets",
      [](const std::string& name) {
        const std::span<const CongestionPreset> presets = congestion_presets(name);
        return std::vector<CongestionPreset>(presets.begin(), presets.end());
      },
      "name"_a);
  m.def("congestion_parameter_names", &congestion_parameter_names, "name"_a);
  m.def(
      "make_congestion_control",
      [](const std::string& name, uint32_t ack_interval_packets, const CongestionParameters& parameters,
         const std::string& preset, const py::kwargs& given) {
        return std::shared_ptr<CongestionControl>(
            make_congestion_control(name, path_of(given, ack_interval_packets), parameters, preset));
      },
      "name"_a, py::kw_only(), "ack_interval_packets"_a = 1, "parameters"_a = CongestionParameters(),
      "preset"_a = "");
  m.def(
      "congestion_parameters_in_force",
      [](const std::string& name, uint32_t ack_interval_packets, const CongestionParameters& parameters,
         const std::string& preset, const py::kwargs& given) {
        return congestion_parameters_in_force(name, path_of(given, ack_interval_packets), parameters, preset);
      },
      "name"_a, py::kw_only(), "ack_interval_packets"_a = 1, "parameters"_a = CongestionParameters(),
      "preset"_a = "");
  bind_python_congestion_control(m);
  bind_python_path_choice(m);
}

}  // namespace weft
