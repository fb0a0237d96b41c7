#include "hosts/applications/application.hpp"

#include <algorithm>
#include <stdexcept>

namespace weft {

Application::Application(IpStack& stack, ScheduleExecutor& executor)
    : stack_(stack),
      executor_(executor),
      timer_(stack.engine().events(), member_action<&Application::on_time>(this)) {}

void Application::start(TimePs start_ps) {
  if (was_started_) throw std::logic_error("the application has been started already");
  was_started_ = true;
  timer_.arm(std::max(start_ps, now()));
}

void Application::on_time() {
  if (status_.state == RunState::kWaiting) {
    status_.state = RunState::kRunning;
    status_.started_ps = now();
    begin(now());
  } else if (is_running()) {
    on_timer(now());
  }
}

void Application::end(RunState state, const std::string& reason) {
  if (status_.state != RunState::kWaiting && !is_running()) return;
  status_.state = state;
  status_.finished_ps = now();
  status_.error = reason;
  timer_.cancel();
  executor_.report_end(0);
}

void Application::close() {
  if (is_closed_) return;
  is_closed_ = true;
  end(RunState::kCancelled, "");
  release();
}

}  // namespace weft
