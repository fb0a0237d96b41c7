#include "python/python_host_script.hpp"

#include <utility>

#include "python/bindings_support.hpp"

namespace weft {

namespace py = pybind11;

PythonHostScript::PythonHostScript(IpStack& stack, ScheduleExecutor& executor, TimePs duration_ps,
                                   Methods methods)
    : Application(stack, executor),
      duration_ps_(duration_ps),
      methods_(std::move(methods)),
      waking_(stack.engine().events(), member_action<&PythonHostScript::on_wake>(this)) {
  progress().node_count = 1;
}

void PythonHostScript::begin(TimePs now) {
  stack().add_tap(*this);
  arm(now + duration_ps_);
  methods_.on_start();
}

void PythonHostScript::on_timer(TimePs /*now*/) { end(); }

void PythonHostScript::end() {
  if (!is_running()) return;
  waking_.cancel();
  stack().remove_tap(*this);
  methods_.on_end();
  progress().nodes_done = 1;
  finish();
}

// The methods hold the user's object, which may hold this.
void PythonHostScript::release() {
  waking_.cancel();
  stack().remove_tap(*this);
  const Methods dropped = std::move(methods_);
}

void PythonHostScript::on_frame(TimePs /*now*/, int interface, Packet& frame) {
  frame.materialise();
  py::gil_scoped_acquire gil;
  methods_.on_frame(interface, bytes_of(frame));
}

void PythonHostScript::on_wake() {
  if (is_running()) methods_.on_wake();
}

bool PythonHostScript::send(int interface, std::span<const uint8_t> frame) {
  return stack().send_frame(interface, stack().packets().copy_of(frame));
}

}  // namespace weft
