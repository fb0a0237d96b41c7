#include "time/event_queue.hpp"

#include <stdexcept>
#include <string>

#include "memory/prefetch.hpp"

namespace weft {

namespace {
constexpr uint32_t kArity = 4;
}  // namespace

EventQueue::EventQueue()
    : width_bits_(kSpanBits - std::countr_zero(kFewestBuckets)), heads_(kFewestBuckets, kNoSlot) {}

Timer::Timer(EventQueue& queue, TimerAction action) : queue_(queue), slot_(queue.add_timer(action)) {}

Timer::~Timer() { queue_.remove_timer(slot_); }

TimerSlot::TimerSlot(EventQueue& queue, TimerAction action) : slot_(queue.add_timer(action)) {}

void TimerSlot::give_back(EventQueue& queue) { queue.remove_timer(slot_); }

uint64_t EventQueue::reserve_rank() {
  if (next_rank_ >= kRanks) throw std::length_error("an event queue has at most 2^24 ranks");
  return next_rank_++;
}

uint32_t EventQueue::add_timer(TimerAction action) {
  if (!free_slots_.empty()) {
    const uint32_t slot = free_slots_.back();
    free_slots_.pop_back();
    slots_[slot].action = action;
    return slot;
  }
  if (slots_.size() >= kMaxTimers)
    throw std::length_error("an event queue holds at most " + std::to_string(kMaxTimers) + " timers");
  slots_.push_back({.action = action});
  places_.push_back(kNotInHeap);
  free_slots_.reserve(slots_.size());  // so that remove_timer(), called by destructors, never allocates
  if (slots_.size() > bucket_count_ && bucket_count_ < kMostBuckets) add_buckets();
  return static_cast<uint32_t>(slots_.size() - 1);
}

void EventQueue::remove_timer(uint32_t slot) {
  cancel(slot);
  free_slots_.push_back(slot);
}

void EventQueue::fetch() const {
  // Of so many most stay as they are from one visit to the next.
  constexpr size_t kMostTimers = 512;
  // What is due later waits; its first entries are compared with.
  constexpr size_t kFirstEntries = 1 + kArity;
  if (slots_.size() > kMostTimers) return;
  prefetch<CacheLevel::kSecond>(heads_.data(), heads_.size() * sizeof(uint32_t));
  prefetch<CacheLevel::kSecond>(slots_.data(), slots_.size() * sizeof(Slot));
  prefetch<CacheLevel::kSecond>(places_.data(), places_.size() * sizeof(uint32_t));
  prefetch<CacheLevel::kSecond>(heap_.data(), std::min(heap_.size(), kFirstEntries) * sizeof(Entry));
}

void EventQueue::cancel(uint32_t slot) {
  if (!is_armed(slot)) return;
  if (const uint32_t index = places_[slot]; index == kNotInHeap)
    remove_near(slot);
  else
    erase_far(index);
  slots_[slot].entry.sequence_and_slot = kIdle;
}

void EventQueue::move(uint32_t slot, TimePs time, uint64_t sequence) {
  cancel(slot);
  arm(slot, time, sequence);
}

// --- the calendar

void EventQueue::add_behind(uint32_t head, uint32_t slot, Entry entry) {
  uint32_t before = head;
  for (int steps = 0; steps < kMostSteps; ++steps) {
    Entry& other = slots_[before].entry;
    const uint32_t next = other.slot();
    if (next == kNoSlot || entry.before(slots_[next].entry)) {
      other.set_slot(slot);
      entry.set_slot(next);
      slots_[slot].entry = entry;
      return;
    }
    before = next;
  }
  add_far(slot, entry);
}

void EventQueue::remove_near(uint32_t slot) {
  const Entry& removed = slots_[slot].entry;
  const uint32_t bucket = bucket_at(number_of(removed.time) - base_);
  if (heads_[bucket] == slot) {
    set_head(bucket, removed.slot());
    return;
  }
  uint32_t before = heads_[bucket];
  while (slots_[before].entry.slot() != slot) before = slots_[before].entry.slot();
  slots_[before].entry.set_slot(removed.slot());
}

// Twice as many, half as wide.
void EventQueue::add_buckets() {
  std::vector<uint32_t> near;
  for (uint32_t slot = 0; slot < slots_.size(); ++slot)
    if (is_armed(slot) && places_[slot] == kNotInHeap) near.push_back(slot);
  bucket_count_ *= 2;
  --width_bits_;
  base_ *= 2;
  heads_.assign(bucket_count_, kNoSlot);
  occupied_.fill(0);
  occupied_words_ = 0;
  for (const uint32_t slot : near) {
    const Entry entry = slots_[slot].entry;
    slots_[slot].entry.sequence_and_slot = kIdle;
    arm(slot, entry.time, entry.sequence_and_slot >> kSlotBits);
  }
}

// --- the heap

void EventQueue::add_far(uint32_t slot, Entry entry) {
  slots_[slot].entry = entry;
  entry.set_slot(slot);
  heap_.push_back(entry);
  sift_up(static_cast<uint32_t>(heap_.size() - 1), entry);
  first_far_ = heap_.front();
}

void EventQueue::erase_far(uint32_t index) {
  const Entry removed = heap_[index];
  places_[removed.slot()] = kNotInHeap;
  const Entry last = heap_.back();
  heap_.pop_back();
  if (index < heap_.size()) {
    if (last.before(removed))
      sift_up(index, last);
    else
      sift_down(index, last);
  }
  first_far_ = heap_.empty() ? kNone : heap_.front();
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
