#include "time/event_queue.hpp"

#include <stdexcept>

#include "memory/prefetch.hpp"

namespace weft {

namespace {
constexpr uint32_t kArity = 4;
}

Timer::Timer(EventQueue& queue, TimerAction action) : queue_(queue), slot_(queue.add_timer(action)) {}

Timer::~Timer() { queue_.remove_timer(slot_); }

uint64_t EventQueue::reserve_rank() {
  if (next_rank_ >= kRanks) throw std::length_error("an event queue has at most 2^24 ranks");
  return next_rank_++;
}

uint32_t EventQueue::add_timer(TimerAction action) {
  if (!free_slots_.empty()) {
    const uint32_t slot = free_slots_.back();
    free_slots_.pop_back();
    actions_[slot] = action;
    return slot;
  }
  if (actions_.size() >= kMaxTimers) throw std::length_error("an event queue holds at most 2^22 timers");
  actions_.push_back(action);
  heap_index_.push_back(kNotQueued);
  free_slots_.reserve(actions_.size());  // so that remove_timer(), called by destructors, never allocates
  return static_cast<uint32_t>(actions_.size() - 1);
}

void EventQueue::remove_timer(uint32_t slot) {
  cancel(slot);
  free_slots_.push_back(slot);
}

void EventQueue::fetch() const {
  // Of so many most stay as they are from one visit to the next.
  constexpr size_t kMostTimers = 512;
  if (actions_.size() > kMostTimers) return;
  prefetch<CacheLevel::kSecond>(heap_.data(), heap_.size() * sizeof(Entry));
  prefetch<CacheLevel::kSecond>(heap_index_.data(), heap_index_.size() * sizeof(uint32_t));
  prefetch<CacheLevel::kSecond>(actions_.data(), actions_.size() * sizeof(TimerAction));
}

void EventQueue::move(uint32_t slot, Entry entry) {
  if (vacant_) fill_top();
  const uint32_t index = heap_index_[slot];
  if (entry.before(heap_[index]))
    sift_up(index, entry);
  else
    sift_down(index, entry);
}

void EventQueue::cancel(uint32_t slot) {
  if (heap_index_[slot] == kNotQueued) return;
  if (vacant_) fill_top();
  erase_at(heap_index_[slot]);
}

void EventQueue::fill_top() {
  vacant_ = false;
  const Entry last = heap_.back();
  heap_.pop_back();
  if (!heap_.empty()) sift_down(0, last);
}

void EventQueue::erase_at(uint32_t index) {
  const Entry removed = heap_[index];
  heap_index_[removed.slot()] = kNotQueued;
  const Entry last = heap_.back();
  heap_.pop_back();
  if (index == heap_.size()) return;
  if (last.before(removed))
    sift_up(index, last);
  else
    sift_down(index, last);
}

void EventQueue::sift_up(uint32_t index, Entry entry) {
  while (index > 0) {
    const uint32_t parent = (index - 1) / kArity;
    if (!entry.before(heap_[parent])) break;
    place(index, heap_[parent]);
    index = parent;
  }
  place(index, entry);
}

uint32_t EventQueue::first_of(uint32_t begin, uint32_t end) const {
  uint32_t best = begin;
  for (uint32_t index = begin + 1; index < end; ++index)
    if (heap_[index].before(heap_[best])) best = index;
  return best;
}

void EventQueue::sift_down(uint32_t index, Entry entry) {
  const auto size = static_cast<uint32_t>(heap_.size());
  for (;;) {
    const uint32_t first_child = index * kArity + 1;
    if (first_child >= size) break;
    const uint32_t best =
        first_child + kArity <= size ? first_of_four(first_child) : first_of(first_child, size);
    if (!heap_[best].before(entry)) break;
    place(index, heap_[best]);
    index = best;
  }
  place(index, entry);
}

void EventQueue::throw_sequence_overflow() {
  throw std::overflow_error("the event queue has numbered 2^42 events");
}

}  // namespace weft
