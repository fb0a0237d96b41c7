#include "collectives/ready_elements.hpp"

#include <algorithm>
#include <iterator>

namespace weft {

std::vector<uint32_t> ReadyElements::mark(const Elements& elements) {
  if (elements.is_empty()) return {};
  Elements merged = elements;
  auto after = ready_.upper_bound(elements.start);
  if (after != ready_.begin()) {
    const auto before = std::prev(after);
    if (before->second == elements.start) {
      merged.start = before->first;
      ready_.erase(before);
    }
  }
  if (after != ready_.end() && after->first == elements.stop) {
    merged.stop = after->second;
    ready_.erase(after);
  }
  ready_.emplace(merged.start, merged.stop);

  std::vector<uint32_t> tokens;
  auto at = waiting_.lower_bound(elements.start < longest_ ? 0 : elements.start - longest_);
  while (at != waiting_.end() && at->first < elements.stop) {
    Waiting& waiting = at->second;
    waiting.left -= overlap(waiting.elements, elements);
    if (waiting.left == 0) {
      tokens.insert(tokens.end(), waiting.tokens.begin(), waiting.tokens.end());
      at = waiting_.erase(at);
    } else {
      ++at;
    }
  }
  std::ranges::sort(tokens);
  return tokens;
}

bool ReadyElements::await(const Elements& elements, uint32_t token) {
  const uint64_t left = elements.count() - ready_among(elements);
  if (left == 0) return true;
  const auto [first, last] = waiting_.equal_range(elements.start);
  for (auto at = first; at != last; ++at) {
    if (at->second.elements == elements) {
      at->second.tokens.push_back(token);
      return false;
    }
  }
  waiting_.emplace(elements.start, Waiting{elements, left, {token}});
  longest_ = std::max(longest_, elements.count());
  return false;
}

uint64_t ReadyElements::ready_among(const Elements& elements) const {
  uint64_t count = 0;
  auto at = ready_.upper_bound(elements.start);
  if (at != ready_.begin()) --at;
  for (; at != ready_.end() && at->first < elements.stop; ++at) {
    count += overlap({at->first, at->second}, elements);
  }
  return count;
}

}  // namespace weft
