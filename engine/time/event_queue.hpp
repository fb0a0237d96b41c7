// The event queue: a calendar of what is due soon, and a 4-ary heap of what is due later, over cancellable
// timers.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
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

// A timer in four bytes, for an object that knows its queue and has no room: as Timer, but that its owner
// gives it back.
class TimerSlot {
 public:
  TimerSlot(EventQueue& queue, TimerAction action);
  // Afterwards it is no timer any more.
  void give_back(EventQueue& queue);
  void arm(EventQueue& queue, TimePs time, uint64_t rank);
  void cancel(EventQueue& queue);
  // kNever when not armed.
  TimePs deadline(const EventQueue& queue) const;

 private:
  uint32_t slot_;
};

// Events of the next few microseconds, nearly all of a fabric's, go into the calendar: a ring of buckets,
// each for an equal share of that time, with a bit for each that is not empty. A bucket holds a sorted list
// of hardly more than one timer, so neither arming nor taking out costs a walk through all timers. What is
// due later, or finds its bucket long, goes into the heap. Whichever of the two has the earlier timer gives
// it, so the order is that of (time, sequence) wherever a timer lies.
class EventQueue {
 public:
  static constexpr int kSlotBits = 22;
  static constexpr uint32_t kMaxTimers = (1u << kSlotBits) - 1;
  static constexpr uint64_t kMaxSequence = (1ull << (64 - kSlotBits)) - 2;
  static constexpr uint64_t kRanks = 1ull << 24;

  EventQueue();
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  // The earliest timer, and where it lies. It holds until a timer is armed, cancelled or taken out.
  struct First {
    TimePs time;
    uint32_t slot;
    uint32_t bucket;  // of the calendar, or kInHeap
    bool exists() const { return slot != kNoSlot; }
  };
  // If there is none, its time is kNever.
  First first() const {
    if (occupied_words_ != 0) [[likely]] {
      const uint32_t bucket = first_bucket();
      const uint32_t slot = heads_[bucket];
      const Entry& near = slots_[slot].entry;
      if (near.before(first_far_)) [[likely]]
        return {near.time, slot, bucket};
    }
    return {first_far_.time, first_far_.slot(), kInHeap};
  }
  TimePs next_time() const { return first().time; }
  // Takes out what first() has found; there must be one. Result: its action.
  TimerAction take(const First& first) {
    base_ = std::max(base_, number_of(first.time));
    Slot& slot = slots_[first.slot];
    if (first.bucket != kInHeap) [[likely]]
      set_head(first.bucket, slot.entry.slot());
    else
      erase_far(0);
    slot.entry.sequence_and_slot = kIdle;
    return slot.action;
  }
  // A place in the order of equal times: before everything that is armed without one, and after the ranks
  // reserved earlier. Throws std::length_error after 2^24 of them.
  uint64_t reserve_rank();
  // Timers that exist, armed or not: how much may happen here.
  size_t timer_count() const { return slots_.size() - free_slots_.size(); }
  // Prefetches the timers, unless there are very many.
  void fetch() const;

 private:
  friend class Timer;
  friend class TimerSlot;
  static constexpr uint32_t kInHeap = ~0u;     // instead of a bucket
  static constexpr uint32_t kNotInHeap = ~0u;  // instead of an index of the heap
  static constexpr uint32_t kNoSlot = kMaxTimers;
  static constexpr uint64_t kIdle = ~0ull;  // instead of a sequence and slot: not armed
  // The calendar covers 2^21 ps (2.1 us), about the time that a packet takes on a link, with a bucket for
  // each timer that exists: 64 at first, which are four cache lines.
  static constexpr int kSpanBits = 21;
  static constexpr uint32_t kFewestBuckets = 64;
  static constexpr uint32_t kMostBuckets = 1024;
  static constexpr int kMostSteps = 8;  // along a bucket's list, before a timer goes to the heap

  // Of the heap, with the timer's own slot; of a slot, with the next one in its bucket.
  struct Entry {
    TimePs time;
    uint64_t sequence_and_slot;
    uint32_t slot() const { return static_cast<uint32_t>(sequence_and_slot) & kMaxTimers; }
    void set_slot(uint32_t slot) {
      sequence_and_slot = (sequence_and_slot & ~static_cast<uint64_t>(kMaxTimers)) | slot;
    }
    // No two have the same time and sequence, so the slot never decides. One comparison of 128 bits: two of
    // 64 would be branches, and which way they go cannot be foretold.
    bool before(const Entry& other) const { return order() < other.order(); }
    __int128 order() const { return static_cast<__int128>(time) << 64 | sequence_and_slot; }
  };
  // What arming and firing need, in half a cache line.
  struct Slot {
    Entry entry{kNever, kIdle};
    TimerAction action;
  };
  static_assert(sizeof(Slot) == 32, "a timer that fires touches one cache line of its slot");

  uint64_t next_sequence() {
    if (next_sequence_ > kMaxSequence) [[unlikely]]
      throw_sequence_overflow();
    return next_sequence_++;
  }
  uint32_t add_timer(TimerAction action);
  void remove_timer(uint32_t slot);
  // What few timers need is left to functions that end it, so that it saves no registers for them.
  void arm(uint32_t slot, TimePs time, uint64_t sequence) {
    if (is_armed(slot)) [[unlikely]]
      return move(slot, time, sequence);
    const Entry entry{time, sequence << kSlotBits | kNoSlot};
    const int64_t ahead = number_of(time) - base_;
    if (ahead >= int64_t{bucket_count_}) [[unlikely]]
      return add_far(slot, entry);
    const uint32_t bucket = bucket_at(ahead);
    const uint32_t head = heads_[bucket];
    if (head != kNoSlot && !entry.before(slots_[head].entry)) return add_behind(head, slot, entry);
    add_first(slot, entry, bucket, head);
  }
  void move(uint32_t slot, TimePs time, uint64_t sequence);
  bool is_armed(uint32_t slot) const { return slots_[slot].entry.sequence_and_slot != kIdle; }
  void cancel(uint32_t slot);
  TimePs deadline(uint32_t slot) const { return is_armed(slot) ? slots_[slot].entry.time : kNever; }

  // --- the calendar

  int64_t number_of(TimePs time) const { return time >> width_bits_; }
  // What is overdue is first, in the bucket that time has come to.
  uint32_t bucket_at(int64_t ahead) const {
    return static_cast<uint32_t>(base_ + std::max<int64_t>(ahead, 0)) & (bucket_count_ - 1);
  }
  // bits are not 0, for which std::countr_zero() would have an instruction or three.
  static uint32_t lowest_bit(uint64_t bits) { return static_cast<uint32_t>(__builtin_ctzll(bits)); }
  // From the bucket that time has come to, around the ring.
  uint32_t first_bucket() const {
    const uint32_t begin = static_cast<uint32_t>(base_) & (bucket_count_ - 1);
    uint32_t word = begin / 64;
    uint64_t bits = occupied_[word] & ~0ull << begin % 64;
    if (bits == 0) {
      const uint64_t behind = occupied_words_ & ~1ull << word;
      word = lowest_bit(behind != 0 ? behind : occupied_words_);
      bits = occupied_[word];
    }
    return word * 64 + lowest_bit(bits);
  }
  void set_head(uint32_t bucket, uint32_t slot) {
    heads_[bucket] = slot;
    if (slot == kNoSlot) [[likely]]
      clear_bit(bucket);
  }
  void clear_bit(uint32_t bucket) {
    const uint64_t left = occupied_[bucket / 64] &= ~(1ull << bucket % 64);
    if (left == 0) occupied_words_ &= ~(1ull << bucket / 64);
  }
  void add_first(uint32_t slot, const Entry& entry, uint32_t bucket, uint32_t head) {
    slots_[slot].entry = {entry.time, entry.sequence_and_slot ^ kNoSlot ^ head};
    heads_[bucket] = slot;
    occupied_[bucket / 64] |= 1ull << bucket % 64;
    occupied_words_ |= 1ull << bucket / 64;
  }
  // To its place in a bucket's list, if that is not far from the head, or to the heap.
  [[gnu::noinline]] void add_behind(uint32_t head, uint32_t slot, Entry entry);
  void remove_near(uint32_t slot);
  void add_buckets();

  // --- the heap

  void add_far(uint32_t slot, Entry entry);
  void erase_far(uint32_t index);
  void place(uint32_t index, Entry entry) {
    heap_[index] = entry;
    places_[entry.slot()] = index;
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

  // The share of time that has come, counted in buckets: of the latest timer taken out. Timers in the
  // calendar are due in it (or overdue) or in one of the bucket_count_ - 1 shares after it.
  int64_t base_ = 0;
  int width_bits_;  // of a bucket, which has 2^width_bits_ ps
  uint32_t bucket_count_ = kFewestBuckets;
  uint64_t occupied_words_ = 0;  // bit per word of occupied_ with a bit set
  static constexpr Entry kNone{kNever, kIdle};
  Entry first_far_ = kNone;          // a copy of the heap's top
  CacheLineVector<uint32_t> heads_;  // by bucket: the slot that is first in it, or kNoSlot
  CacheLineVector<Slot> slots_;
  std::array<uint64_t, kMostBuckets / 64> occupied_{};  // bit per bucket
  CacheLineVector<uint32_t> places_;                    // by slot: an index of the heap, or kNotInHeap
  CacheLineVector<Entry> heap_;
  std::vector<uint32_t> free_slots_;
  uint64_t next_rank_ = 0;
  uint64_t next_sequence_ = kRanks;
};

[[gnu::always_inline]] inline void Timer::arm(TimePs time) {
  queue_.arm(slot_, time, queue_.next_sequence());
}
inline void Timer::arm(TimePs time, uint64_t rank) { queue_.arm(slot_, time, rank); }
inline void Timer::cancel() { queue_.cancel(slot_); }
inline bool Timer::armed() const { return queue_.is_armed(slot_); }
inline TimePs Timer::deadline() const { return queue_.deadline(slot_); }

inline void TimerSlot::arm(EventQueue& queue, TimePs time, uint64_t rank) { queue.arm(slot_, time, rank); }
inline void TimerSlot::cancel(EventQueue& queue) { queue.cancel(slot_); }
inline TimePs TimerSlot::deadline(const EventQueue& queue) const { return queue.deadline(slot_); }

}  // namespace weft
