// A congestion control that a user writes in Python.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>
#include <string>

#include "congestion/congestion_control.hpp"
#include "packets/roce_formats.hpp"
#include "python/python_extension.hpp"
#include "time/time.hpp"

namespace weft {

// An acknowledgement that Python may keep.
struct PythonAcknowledgement {
  explicit PythonAcknowledgement(const AcknowledgementEvent& from) : event(from) {
    if (from.telemetry != nullptr) telemetry = *from.telemetry;
    event.telemetry = nullptr;
  }
  AcknowledgementEvent event;
  std::optional<roce::IntStack> telemetry;
};

// Window, rate and deadline are asked for once after each event and kept: the queue pair looks at them far
// more often than they change. What Python raises, and values out of range (ExtensionError), end the run.
class PythonCongestionControl final : public CongestionControl {
 public:
  static constexpr int64_t kMaxWindowBytes = int64_t{1} << 50;
  static constexpr int64_t kMaxPacingRateBps = 1'000'000'000'000'000;

  // The user's object; methods that its class does not define are None.
  struct Methods {
    PythonMethod window_bytes;
    PythonMethod pacing_rate_bps;
    PythonMethod next_deadline_ps;
    PythonMethod on_packet_sent;
    PythonMethod on_acknowledgement;
    PythonMethod on_congestion_notification;
    PythonMethod on_loss;
    PythonMethod on_deadline;
  };

  PythonCongestionControl(std::string name, Methods methods);

  std::string_view name() const override { return name_; }
  uint64_t window_bytes() const override { return window_bytes_; }
  uint64_t pacing_rate_bps() const override { return pacing_rate_bps_; }
  TimePs next_deadline() const override { return next_deadline_; }

  void on_packet_sent(TimePs now, uint64_t frame_bytes, bool retransmission) override;
  void on_acknowledgement(const AcknowledgementEvent& event) override;
  void on_congestion_notification(TimePs now) override;
  void on_loss(TimePs now, bool timeout) override;
  void on_deadline(TimePs now) override;

 private:
  void ask();

  std::string name_;
  Methods methods_;
  uint64_t window_bytes_ = 0;
  uint64_t pacing_rate_bps_ = 0;
  TimePs next_deadline_ = kNever;
};

void bind_python_congestion_control(pybind11::module_& m);

}  // namespace weft
