// Calls that events have made outside the partitions, by numbers that are the same in every process of a run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

namespace weft {

struct Listener {
  uint64_t number;  // of a partitioned run's, in the order in which they were made
  std::function<void()> call;
};

// Knows them by number as long as anyone keeps them.
class Listeners {
 public:
  std::shared_ptr<const Listener> add(std::function<void()> call) {
    if (known_.size() >= next_purge_) {
      std::erase_if(known_, [](const auto& each) { return each.second.expired(); });
      next_purge_ = 2 * known_.size() + kLeastPurge;
    }
    auto made = std::make_shared<const Listener>(Listener{next_number_++, std::move(call)});
    known_.emplace(made->number, made);
    return made;
  }
  // Throws std::logic_error for one that nobody keeps.
  std::shared_ptr<const Listener> at(uint64_t number) const {
    const auto found = known_.find(number);
    std::shared_ptr<const Listener> listener = found == known_.end() ? nullptr : found->second.lock();
    if (listener == nullptr)
      throw std::logic_error("another process calls listener " + std::to_string(number) +
                             ", which this one does not have: they no longer do the same");
    return listener;
  }

 private:
  static constexpr size_t kLeastPurge = 1024;
  uint64_t next_number_ = 1;
  size_t next_purge_ = kLeastPurge;
  std::unordered_map<uint64_t, std::weak_ptr<const Listener>> known_;
};

}  // namespace weft
