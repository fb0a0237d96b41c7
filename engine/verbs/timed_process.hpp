// A process that lives in a run's virtual time, as the run sees it; see verbs/virtual_time.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "time/time.hpp"
#include "verbs/shared_memory.hpp"
#include "verbs/virtual_time.hpp"

namespace weft::verbs {

// The page with the run's time, for all processes.
class VirtualClockPage {
 public:
  // Throws std::system_error.
  VirtualClockPage();
  ~VirtualClockPage();
  VirtualClockPage(const VirtualClockPage&) = delete;
  VirtualClockPage& operator=(const VirtualClockPage&) = delete;

  // Of another open file, by which nobody can write.
  int descriptor() const { return read_only_; }
  TimePs now() const { return static_cast<TimePs>(page().now_ps.load()); }
  void set(TimePs now_ps) { page().now_ps.store(static_cast<uint64_t>(now_ps)); }

 private:
  ClockPage& page() const { return *memory_.at<ClockPage>(0); }

  SharedMemory memory_;
  int read_only_ = -1;
};

class TimedProcess {
 public:
  // A thread that waits.
  struct Waiting {
    uint32_t place = 0;
    int32_t thread = 0;
    Wait wait = Wait::kNone;
    uint64_t until_ps = 0;  // kForEver: no time ends it
    uint64_t loop = 0;
  };

  // `process`: its identifier. Throws std::system_error.
  explicit TimedProcess(int process);
  ~TimedProcess();
  TimedProcess(const TimedProcess&) = delete;
  TimedProcess& operator=(const TimedProcess&) = delete;

  int page_descriptor() const { return memory_.descriptor(); }
  int doorbell_descriptor() const { return doorbell_; }
  // Takes what has been rung, so that the doorbell is not readable any more.
  void take_rings() const;

  uint32_t begun() const { return page().begun.load(); }
  uint64_t acts() const { return page().acts.load(); }
  // Lets it go ahead up to this time; 0: not at all.
  void let_ahead(TimePs until_ps) { page().free_until_ps.store(static_cast<uint64_t>(until_ps)); }
  // How far it has gone; what is past, not.
  uint64_t ahead_ps() const { return page().ahead_ps.load(); }
  uint64_t sent() const { return page().sent.load(); }
  uint32_t uses() const { return page().uses.load(); }
  uint64_t alarm_ps() const { return page().alarm_ps.load(); }
  // Sets the next alarm, of which the present one has come due.
  void pass_alarm();

  // In the order of places. What a process writes into its page harms itself only.
  std::vector<Waiting> waiting() const;
  // Ends a wait.
  void wake(uint32_t place);
  // Asks a thread that computes whether it only looks at memory. False if there is no such thread.
  bool ask(int32_t thread) const;
  // How often a thread has answered that it does not.
  uint32_t computes(int32_t thread) const;

 private:
  ProcessPage& page() const { return *memory_.at<ProcessPage>(0); }

  int process_;
  SharedMemory memory_;
  int doorbell_ = -1;
};

}  // namespace weft::verbs
