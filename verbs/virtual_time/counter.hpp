// The time-stamp counter, which programs read by instructions.
#pragma once

namespace weft::verbs {

// Has the instructions of this thread, and of those that it begins, come to the run's clock from now on.
void trap_counter();

// While one exists, the calling thread reads the processor's counter: another program, which it becomes or
// begins, reads it before there is anybody to come to.
class ProcessorsCounter {
 public:
  ProcessorsCounter();
  ~ProcessorsCounter();
  ProcessorsCounter(const ProcessorsCounter&) = delete;
  ProcessorsCounter& operator=(const ProcessorsCounter&) = delete;

 private:
  bool was_trapped_;
};

}  // namespace weft::verbs
