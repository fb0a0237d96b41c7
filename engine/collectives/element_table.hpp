// Ranges of a collective's elements, as tables that all ranks can share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace weft {

// From start to before stop.
struct Elements {
  uint64_t start = 0;
  uint64_t stop = 0;
  uint64_t count() const { return stop - start; }
  bool is_empty() const { return start == stop; }
  bool operator==(const Elements&) const = default;
};

inline uint64_t overlap(const Elements& one, const Elements& other) {
  const uint64_t start = std::max(one.start, other.start);
  const uint64_t stop = std::min(one.stop, other.stop);
  return stop > start ? stop - start : 0;
}

// Part `number` of so many whose lengths differ by at most one.
inline Elements part_of(const Elements& whole, uint64_t number, uint64_t parts) {
  return {whole.start + whole.count() * number / parts, whole.start + whole.count() * (number + 1) / parts};
}

// Chunks by number, modulo how many there are: parts of a range, or ranges that are listed.
class ElementTable {
 public:
  // Throws std::invalid_argument for no parts, and for a range that ends before it starts or beyond what a
  // product with a number of parts may be.
  ElementTable(Elements whole, uint64_t parts) : whole_(whole), size_(parts) {
    check(whole);
    check_size();
    extent_ = whole;
  }
  explicit ElementTable(std::vector<Elements> ranges) : size_(ranges.size()), ranges_(std::move(ranges)) {
    check_size();
    extent_ = ranges_.front();
    for (const Elements& range : ranges_) {
      check(range);
      extent_ = {std::min(extent_.start, range.start), std::max(extent_.stop, range.stop)};
    }
  }

  uint64_t size() const { return size_; }
  // From the first element of any chunk to the last one of any.
  const Elements& extent() const { return extent_; }
  Elements at(int64_t number) const {
    const auto size = static_cast<int64_t>(size_);
    if (number < 0 || number >= size) {
      number %= size;
      if (number < 0) number += size;
    }
    const auto index = static_cast<uint64_t>(number);
    return ranges_.empty() ? part_of(whole_, index, size_) : ranges_[index];
  }

 private:
  static constexpr uint64_t kMaxElements = uint64_t{1} << 40;
  static constexpr uint64_t kMaxParts = uint64_t{1} << 20;

  static void check(const Elements& range) {
    if (range.stop < range.start || range.stop > kMaxElements) {
      throw std::invalid_argument("elements " + std::to_string(range.start) + " to " +
                                  std::to_string(range.stop) + " (valid: ascending, up to " +
                                  std::to_string(kMaxElements) + ")");
    }
  }
  void check_size() const {
    if (size_ < 1 || size_ > kMaxParts) {
      throw std::invalid_argument("a table of " + std::to_string(size_) + " ranges (valid: 1 to " +
                                  std::to_string(kMaxParts) + ")");
    }
  }

  Elements whole_;
  Elements extent_;
  uint64_t size_;
  std::vector<Elements> ranges_;
};

}  // namespace weft
