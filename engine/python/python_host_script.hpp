// A program on a host that users write in Python: it sees every frame that is not RoCEv2's, and sends any.
#pragma once

#include <pybind11/pybind11.h>

#include "hosts/applications/application.hpp"
#include "python/python_extension.hpp"

namespace weft {

// Ends at a time, or by end(). What the methods raise ends the run.
class PythonHostScript final : public Application, FrameTap {
 public:
  struct Methods {
    PythonMethod on_start;
    PythonMethod on_frame;  // interface, bytes
    PythonMethod on_wake;   // the time of wake_at() has come
    PythonMethod on_end;
  };

  PythonHostScript(IpStack& stack, ScheduleExecutor& executor, TimePs duration_ps, Methods methods);
  ~PythonHostScript() override { close(); }

  // False: the queue at the NIC was full.
  bool send(int interface, std::span<const uint8_t> frame);
  // Calls on_wake() at a time, in place of the one asked for before.
  void wake_at(TimePs time_ps) { waking_.arm(time_ps); }
  void end();

 private:
  void begin(TimePs now) override;
  void on_timer(TimePs now) override;
  void release() override;
  void on_frame(TimePs now, int interface, Packet& frame) override;
  void on_wake();

  const TimePs duration_ps_;
  Methods methods_;
  Timer waking_;
};

}  // namespace weft
