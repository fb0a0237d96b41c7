#include "collectives/arrivals.hpp"

#include <vector>

namespace weft {

void Arrivals::hold(uint32_t immediate, Held held) {
  if (!held_.emplace(immediate, held)) more_[immediate].push_back(held);
}

Arrivals::Held Arrivals::take(uint32_t immediate, Held first) {
  held_.erase(immediate);
  if (more_.empty()) return first;
  if (const auto more = more_.find(immediate); more != more_.end()) {
    held_.emplace(immediate, more->second.front());
    more->second.pop_front();
    if (more->second.empty()) more_.erase(more);
  }
  return first;
}

void Arrivals::forget_waiters(uint32_t run) {
  for (auto more = more_.begin(); more != more_.end();) {
    std::erase_if(more->second, [&](const Held& held) { return held.run == run; });
    more = more->second.empty() ? more_.erase(more) : std::next(more);
  }
  std::vector<std::pair<uint32_t, Held>> forgotten;
  held_.for_each([&](uint32_t immediate, const Held& held) {
    if (held.run == run) forgotten.emplace_back(immediate, held);
  });
  for (const auto& [immediate, held] : forgotten) take(immediate, held);
}

}  // namespace weft
