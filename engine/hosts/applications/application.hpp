// A program on a host's IP stack: one run, from start() to its end, driven by packets and one timer.
#pragma once

#include <string>

#include "collectives/schedule_executor.hpp"
#include "hosts/ip/ip_stack.hpp"
#include "time/engine.hpp"
#include "time/time.hpp"

namespace weft {

// Its end is in the executor's list of ends, as run 0.
class Application {
 public:
  // Stack and executor outlive it.
  Application(IpStack& stack, ScheduleExecutor& executor);
  virtual ~Application() = default;
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  // Begins at `start_ps`. Throws std::logic_error the second time.
  void start(TimePs start_ps);
  // Ends the run, if it has not ended, and gives back what it has of the stack's. Nothing reaches it any
  // more.
  void close();
  const RunStatus& status() const { return status_; }
  Engine& engine() { return stack_.engine(); }

 protected:
  virtual void begin(TimePs now) = 0;
  virtual void on_timer(TimePs now) = 0;
  virtual void release() = 0;

  IpStack& stack() { return stack_; }
  TimePs now() { return stack_.engine().now(); }
  bool is_running() const { return status_.state == RunState::kRunning; }
  RunStatus& progress() { return status_; }
  void arm(TimePs time) { timer_.arm(time); }
  void disarm() { timer_.cancel(); }
  void finish() { end(RunState::kFinished, ""); }
  void fail(const std::string& reason) { end(RunState::kFailed, reason); }

 private:
  void on_time();
  void end(RunState state, const std::string& reason);

  IpStack& stack_;
  ScheduleExecutor& executor_;
  RunStatus status_;
  bool was_started_ = false;
  bool is_closed_ = false;
  Timer timer_;
};

}  // namespace weft
