// Events that own a move-only callable and fire once; recycled, so that the usual small lambda costs no
// allocation.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "time/event_queue.hpp"

namespace weft {

class OneShotPool {
 public:
  explicit OneShotPool(EventQueue& queue) : queue_(queue) {}

  template <class Callable>
  void schedule(TimePs time, Callable&& callable) {
    OneShot* shot = take();
    shot->emplace(std::forward<Callable>(callable));
    shot->timer.arm(time);
  }

 private:
  struct OneShot {
    static constexpr size_t kInlineBytes = 48;

    OneShot(OneShotPool& owner, EventQueue& queue)
        : pool(owner), timer(queue, member_action<&OneShot::fire>(this)) {}
    ~OneShot() {
      if (destroy != nullptr) destroy(*this);
    }

    template <class Callable>
    void emplace(Callable&& callable) {
      using Stored = std::decay_t<Callable>;
      if constexpr (sizeof(Stored) <= kInlineBytes && alignof(Stored) <= alignof(std::max_align_t)) {
        new (storage) Stored(std::forward<Callable>(callable));
        invoke = [](OneShot& shot) { (*std::launder(reinterpret_cast<Stored*>(shot.storage)))(); };
        destroy = [](OneShot& shot) { std::launder(reinterpret_cast<Stored*>(shot.storage))->~Stored(); };
      } else {
        auto boxed = [box = std::make_unique<Stored>(std::forward<Callable>(callable))] { (*box)(); };
        emplace(std::move(boxed));
      }
    }

    void fire() {
      // Given back also when the callable throws; it may schedule another while it still occupies this one.
      struct GiveBack {
        OneShot& shot;
        ~GiveBack() {
          shot.destroy(shot);
          shot.destroy = nullptr;
          shot.pool.free_.push_back(&shot);
        }
      } give_back{*this};
      invoke(*this);
    }

    OneShotPool& pool;
    Timer timer;
    void (*invoke)(OneShot&) = nullptr;
    void (*destroy)(OneShot&) = nullptr;
    alignas(std::max_align_t) std::byte storage[kInlineBytes];
  };

  OneShot* take() {
    if (free_.empty()) {
      all_.push_back(std::make_unique<OneShot>(*this, queue_));
      free_.reserve(all_.size());
      return all_.back().get();
    }
    OneShot* shot = free_.back();
    free_.pop_back();
    return shot;
  }

  EventQueue& queue_;
  std::vector<std::unique_ptr<OneShot>> all_;
  std::vector<OneShot*> free_;
};

}  // namespace weft
