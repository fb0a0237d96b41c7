#include "python/python_congestion_control.hpp"

#include <memory>
#include <utility>

#include "python/bind_codec.hpp"
#include "python/typed.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

PythonCongestionControl::PythonCongestionControl(std::string name, Methods methods)
    : name_(std::move(name)), methods_(std::move(methods)) {
  ask();
}

void PythonCongestionControl::on_packet_sent(TimePs now, uint64_t frame_bytes, bool retransmission) {
  if (!methods_.on_packet_sent) return;
  methods_.on_packet_sent(now, frame_bytes, retransmission);
  ask();
}

void PythonCongestionControl::on_acknowledgement(const AcknowledgementEvent& event) {
  methods_.on_acknowledgement(PythonAcknowledgement(event));
  ask();
}

void PythonCongestionControl::on_congestion_notification(TimePs now) {
  if (!methods_.on_congestion_notification) return;
  methods_.on_congestion_notification(now);
  ask();
}

void PythonCongestionControl::on_loss(TimePs now, bool timeout) {
  if (!methods_.on_loss) return;
  methods_.on_loss(now, timeout);
  ask();
}

void PythonCongestionControl::on_deadline(TimePs now) {
  methods_.on_deadline(now);
  ask();
  // The queue pair would come back at once, and time would stand still.
  if (next_deadline_ <= now) {
    throw ExtensionError(name_ + ".next_deadline_ps() returned " + std::to_string(next_deadline_) +
                         " after on_deadline() at " + std::to_string(now) + " ps (valid: None, or later)");
  }
}

void PythonCongestionControl::ask() {
  py::gil_scoped_acquire gil;
  window_bytes_ = static_cast<uint64_t>(*methods_.window_bytes.whole_number(0, kMaxWindowBytes, false));
  if (methods_.pacing_rate_bps) {
    pacing_rate_bps_ =
        static_cast<uint64_t>(*methods_.pacing_rate_bps.whole_number(0, kMaxPacingRateBps, false));
  }
  if (methods_.next_deadline_ps) {
    next_deadline_ = methods_.next_deadline_ps.whole_number(0, kNever - 1, true).value_or(kNever);
  }
}

namespace {

std::shared_ptr<CongestionControl> make_congestion_control_of(
    const std::string& name, const Typed<"collections.abc.Callable[[], object]">& window_bytes,
    const Typed<"collections.abc.Callable[[], object] | None">& pacing_rate_bps,
    const Typed<"collections.abc.Callable[[], object] | None">& next_deadline_ps,
    const Typed<"collections.abc.Callable[[int, int, bool], object] | None">& on_packet_sent,
    const Typed<"collections.abc.Callable[[Acknowledgement], object]">& on_acknowledgement,
    const Typed<"collections.abc.Callable[[int], object] | None">& on_congestion_notification,
    const Typed<"collections.abc.Callable[[int, bool], object] | None">& on_loss,
    const Typed<"collections.abc.Callable[[int], object] | None">& on_deadline) {
  const auto method = [&name](const py::object& callable, const char* called) {
    return PythonMethod(callable, name + "." + called);
  };
  return std::make_shared<PythonCongestionControl>(
      name, PythonCongestionControl::Methods{
                method(window_bytes, "window_bytes"), method(pacing_rate_bps, "pacing_rate_bps"),
                method(next_deadline_ps, "next_deadline_ps"), method(on_packet_sent, "on_packet_sent"),
                method(on_acknowledgement, "on_acknowledgement"),
                method(on_congestion_notification, "on_congestion_notification"), method(on_loss, "on_loss"),
                method(on_deadline, "on_deadline")});
}

}  // namespace

void bind_python_congestion_control(py::module_& m) {
  using Event = PythonAcknowledgement;
  py::class_<Event>(m, "Acknowledgement", "What a sender learns from an acknowledgement.")
      .def_property_readonly("now_ps", [](const Event& self) { return self.event.now; })
      .def_property_readonly(
          "acknowledged_bytes", [](const Event& self) { return self.event.acknowledged_bytes; },
          "Frame bytes, from Ethernet to iCRC, that it newly covers.")
      .def_property_readonly("acknowledged_packets",
                             [](const Event& self) { return self.event.acknowledged_packets; })
      .def_property_readonly(
          "in_flight_bytes", [](const Event& self) { return self.event.in_flight_bytes; },
          "Frame bytes that are still not acknowledged.")
      .def_property_readonly(
          "round_trip_ps", [](const Event& self) { return self.event.round_trip_ps; },
          "Of the newest packet covered; 0 if that one was retransmitted.")
      .def_property_readonly(
          "sequence", [](const Event& self) { return self.event.sequence; },
          "The newest packet covered, counted from the queue pair's start.")
      .def_property_readonly(
          "next_sequence", [](const Event& self) { return self.event.next_sequence; },
          "The next packet that will be sent for the first time.")
      .def_property_readonly(
          "hops", [](const Event& self) { return self.event.hops; },
          "Routers that the acknowledgement itself passed.")
      .def_property_readonly(
          "congestion_experienced", [](const Event& self) { return self.event.congestion_experienced; },
          "Whether a switch marked (CE) the packets that it newly covers.")
      .def_property_readonly(
          "telemetry", [](const Event& self)->Typed<"TelemetryFields | None"> {
            if (!self.telemetry) return py::object(py::none());
            return py::object(telemetry_dict(*self.telemetry));
          },
          "The INT stack that the receiver echoed, None without INT.");
  m.def("python_congestion_control", &make_congestion_control_of, "name"_a, py::kw_only(), "window_bytes"_a,
        "pacing_rate_bps"_a, "next_deadline_ps"_a, "on_packet_sent"_a, "on_acknowledgement"_a,
        "on_congestion_notification"_a, "on_loss"_a, "on_deadline"_a,
        "A congestion control that calls these; None stands for a method that there is not.");
  py::register_exception<ExtensionError>(m, "ExtensionError", PyExc_ValueError).doc() =
      "A user's class cannot be used, or gave what cannot be used.";
}

}  // namespace weft
