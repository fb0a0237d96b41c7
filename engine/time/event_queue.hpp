// The event queue: a 4-ary heap of 16-byte keys (time, sequence, slot) over cancellable timers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/cache_line.hpp"
#include "time/time.hpp"

namespace weft {

class EventQueue;

// What a timer does when it fires: a plain function and its object, so that firing costs one indirect call.
struct TimerAction {
  void (*function)(void*) = nullptr;
  void* object = nullptr;
};

// TimerAction that calls a member function: member_action<&Port::on_idle>(this).
template <auto Method, class T>
TimerAction member_action(T* object) {
  return {[](void* self) { (static_cast<T*>(self)->*Method)(); }, object};
}

// A timer is a member of the object that waits. It is armed or not; arming an armed timer moves it, and takes
// a new place in the order of equal times. Destruction cancels. It must not outlive its queue.
class Timer {
 public:
  Timer(EventQueue& queue, TimerAction action);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Fires at time (or, if that is past, as soon as events are served), after everything armed before for the
  // same time.
  void arm(TimePs time);
  // As arm(), with a place of its own among equal times, from EventQueue::reserve_rank().
  void arm(TimePs time, uint64_t rank);
  void cancel();
  bool armed() const;
  // kNever when not armed.
  TimePs deadline() const;

 private:
  friend class EventQueue;
  EventQueue& queue_;
  uint32_t slot_;
};

class EventQueue {
 public:
  static constexpr int kSlotBits = 22;
  static constexpr uint32_t kMaxTimers = 1u << kSlotBits;
  static constexpr uint64_t kMaxSequence = (1ull << (64 - kSlotBits)) - 1;
  static constexpr uint64_t kRanks = 1ull << 24;

  EventQueue() = default;
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  bool empty() const { return size() == 0; }
  size_t size() const { return heap_.size() - (vacant_ ? 1 : 0); }
  TimePs next_time() {
    if (vacant_) fill_top();
    return heap_.empty() ? kNever : heap_.front().time;
  }
  // A place in the order of equal times: before everything that is armed without one, and after the ranks
  // reserved earlier. Throws std::length_error after 2^24 of them.
  uint64_t reserve_rank();
  // Timers that exist, armed or not: how much may happen here.
  size_t timer_count() const { return actions_.size() - free_slots_.size(); }
  // Prefetches the timers, unless there are very many.
  void fetch() const;
  // Takes the earliest timer out and returns its action. The queue must not be empty.
  TimerAction pop() {
    if (vacant_) fill_top();
    const uint32_t slot = heap_.front().slot();
    heap_index_[slot] = kNotQueued;
    vacant_ = true;
    return actions_[slot];
  }

 private:
  friend class Timer;
  static constexpr uint32_t kNotQueued = ~0u;

  struct Entry {
    TimePs time;
    uint64_t sequence_and_slot;
    uint32_t slot() const { return static_cast<uint32_t>(sequence_and_slot) & (kMaxTimers - 1); }
    // One comparison of 128 bits: two of 64 would be branches, and which way they go cannot be foretold.
    bool before(const Entry& other) const { return order() < other.order(); }
    __int128 order() const { return static_cast<__int128>(time) << 64 | sequence_and_slot; }
  };

  uint64_t next_sequence() {
    if (next_sequence_ > kMaxSequence) [[unlikely]]
      throw_sequence_overflow();
    return next_sequence_++;
  }
  uint32_t add_timer(TimerAction action);
  void remove_timer(uint32_t slot);
  void arm(uint32_t slot, TimePs time, uint64_t sequence) {
    const Entry entry{time, (sequence << kSlotBits) | slot};
    if (heap_index_[slot] != kNotQueued) [[unlikely]] {
      move(slot, entry);
    } else if (vacant_) {
      vacant_ = false;
      sift_down(0, entry);
    } else {
      heap_.push_back(entry);
      sift_up(static_cast<uint32_t>(heap_.size() - 1), entry);
    }
  }
  void move(uint32_t slot, Entry entry);
  void cancel(uint32_t slot);
  void erase_at(uint32_t index);
  void fill_top();
  void place(uint32_t index, Entry entry) {
    heap_[index] = entry;
    heap_index_[entry.slot()] = index;
  }
  // The earliest of the entries from begin to before end.
  uint32_t first_of(uint32_t begin, uint32_t end) const;
  // A tournament whose results are numbers: as branches, they would be wrong half of the time.
  uint32_t first_of_four(uint32_t begin) const {
    const Entry* entries = heap_.data() + begin;
    const auto left = static_cast<uint32_t>(entries[1].before(entries[0]));
    const uint32_t right = 2 + static_cast<uint32_t>(entries[3].before(entries[2]));
    const uint32_t right_wins = 0u - static_cast<uint32_t>(entries[right].before(entries[left]));
    return begin + (left ^ ((left ^ right) & right_wins));
  }
  void sift_up(uint32_t index, Entry entry);
  void sift_down(uint32_t index, Entry entry);
  [[noreturn]] static void throw_sequence_overflow();

  CacheLineVector<Entry> heap_;
  // The top has been taken out and nothing is in its place yet: the next timer armed goes there, usually the
  // same one for its next time, and so an event costs one walk through the heap and not two.
  bool vacant_ = false;
  CacheLineVector<uint32_t> heap_index_;  // by slot
  CacheLineVector<TimerAction> actions_;  // by slot
  std::vector<uint32_t> free_slots_;
  uint64_t next_rank_ = 0;
  uint64_t next_sequence_ = kRanks;
};

inline void Timer::arm(TimePs time) { queue_.arm(slot_, time, queue_.next_sequence()); }
inline void Timer::arm(TimePs time, uint64_t rank) { queue_.arm(slot_, time, rank); }
inline void Timer::cancel() { queue_.cancel(slot_); }
inline bool Timer::armed() const { return queue_.heap_index_[slot_] != EventQueue::kNotQueued; }
inline TimePs Timer::deadline() const {
  const uint32_t index = queue_.heap_index_[slot_];
  return index == EventQueue::kNotQueued ? kNever : queue_.heap_[index].time;
}

}  // namespace weft
