// The steps in which an object's surroundings are prefetched.
#pragma once

namespace weft {

// How many pointers away from an object lies what a step prefetches. Each step may read what the steps before
// it have fetched; kObject, the object itself, reads nothing. It changes nothing that anybody could see.
enum class PrefetchStep : int { kObject, kOneAway, kTwoAway, kThreeAway, kFourAway, kFiveAway, kSixAway };

inline constexpr int kPrefetchSteps = static_cast<int>(PrefetchStep::kSixAway) + 1;

// The step of an object that lies `distance` away from the one that is asked.
constexpr PrefetchStep operator-(PrefetchStep step, PrefetchStep distance) {
  return static_cast<PrefetchStep>(static_cast<int>(step) - static_cast<int>(distance));
}

}  // namespace weft
