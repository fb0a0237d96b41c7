#include "collectives/schedule_stepper.hpp"

#include <cstring>
#include <stdexcept>

namespace weft {

ScheduleStepper::ScheduleStepper(std::shared_ptr<const RunnableSchedule> schedule)
    : schedule_(std::move(schedule)), progress_(schedule_->new_progress(std::nullopt)) {}

void ScheduleStepper::begin() {
  progress_->begin(*this);
  advance();
}

void ScheduleStepper::arrived(uint32_t channel, uint32_t immediate) {
  const auto found = waiting_.find({channel, immediate});
  if (found == waiting_.end()) {
    early_.emplace(channel, immediate);
    return;
  }
  const uint32_t token = found->second;
  waiting_.erase(found);
  progress_->received(*this, token);
  advance();
}

void ScheduleStepper::completed(uint32_t step) {
  progress_->completed(*this, step);
  advance();
}

void ScheduleStepper::delay_over(uint32_t token) {
  progress_->delay_over(*this, token);
  advance();
}

std::optional<TimePs> ScheduleStepper::receive(uint32_t, uint32_t channel, uint32_t immediate,
                                               uint32_t token) {
  const auto found = early_.find({channel, immediate});
  if (found == early_.end()) {
    waiting_.emplace(Place{channel, immediate}, token);
    return std::nullopt;
  }
  early_.erase(found);
  return now();
}

void ScheduleStepper::reduce(uint32_t, const ReduceRequest& request) {
  weft::reduce(request.destination, request.source, request.length_bytes / element_bytes(request.dtype),
               request.dtype, request.operation);
}

void ScheduleStepper::copy(uint32_t, uint8_t* destination, const uint8_t* source, uint64_t length_bytes) {
  std::memmove(destination, source, length_bytes);
}

void ScheduleStepper::run_part(uint32_t, const std::shared_ptr<const RunnableSchedule>&, uint32_t, uint8_t,
                               uint32_t) {
  throw std::logic_error("a stepper runs no schedule of schedules");
}

void ScheduleStepper::advance() {
  while (!ready_.empty()) {
    const uint32_t token = ready_.front();
    ready_.pop_front();
    progress_->proceed(*this, token);
  }
}

}  // namespace weft
