// Which packets fulfil a condition, decided as they pass: nothing is recorded. weft/switch/debug/searches.py
// makes the tests from a condition and a program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "switch/abi.hpp"
#include "time/time.hpp"

namespace weft {

// Wide enough for an IPv6 address.
struct SearchValue {
  uint64_t high = 0;
  uint64_t low = 0;
  auto operator<=>(const SearchValue&) const = default;
};

// One record of a traced packet (TraceSite, or a place of the program) that may make a part of the condition
// true.
struct SearchTest {
  enum class Kind : uint8_t {
    kAlways,       // the record is enough
    kNever,        // the record only assigns
    kCompare,      // a number in the record has to be compared
    kCompareSize,  // the number of bytes of the packet in the record has to be compared
    kAsk,          // Python knows, for the bytes behind `offset`; asked once for the same bytes
  };
  enum class Sign : uint8_t { kEqual, kNotEqual, kLess, kLessOrEqual, kGreater, kGreaterOrEqual };

  uint32_t site = 0;
  uint32_t part = 0;  // of the condition
  Kind kind = Kind::kAlways;
  bool is_certain = true;  // false: the part holds perhaps, and only a replay of the packet can tell
  bool assigns = false;    // the record assigns the metadata that the part compares
  uint32_t offset = 0;     // of the number in the record's data
  uint32_t size_bytes = 0;
  bool little_endian = false;
  uint32_t shift = 0;
  SearchValue mask;
  Sign sign = Sign::kEqual;
  SearchValue constant;
  // The record counts only if this part of it is 0.
  uint32_t zero_at = 0;
  uint32_t zero_bytes = 0;
};

class PacketSearch {
 public:
  static constexpr size_t kMaxParts = 64;
  enum Rule : int32_t { kNot = -1, kAnd = -2, kOr = -3 };  // other numbers are parts

  struct Request {
    std::vector<SearchTest> tests;
    std::vector<int32_t> rule;    // the condition, in postfix notation
    uint64_t holds_for_zero = 0;  // parts that hold for metadata that nothing assigns
    uint64_t undecidable = 0;     // parts that hold perhaps for any packet
    uint64_t most_found = 0;      // then packets that come are not looked at
    uint64_t most_perhaps = 0;    // so many are kept that only a replay decides
    std::function<bool(size_t test, std::span<const uint8_t> bytes)> ask;
    std::function<void()> changed;  // called as something is found, and as the last packet has been decided
  };
  struct Found {
    uint64_t arrival;  // the number of the packet among those that were looked at, from 1
    TimePs received_ps;
    bool is_certain;
  };

  explicit PacketSearch(Request request);

  bool wants(uint32_t site) const { return site + 1 < first_.size() && first_[site] != first_[site + 1]; }
  // False: enough has been found.
  bool begin(uint32_t packet, TimePs now);
  void see(TraceNumbers of, uint32_t site, std::span<const uint8_t> values, std::span<const uint8_t> data);
  void close() { closed_ = true; }
  // Decides packets that are still in the switch.
  void finish();

  const std::vector<Found>& found() const { return found_; }
  uint64_t looked_at() const { return arrivals_; }
  uint64_t not_kept() const { return not_kept_; }  // packets that hold perhaps, beyond most_perhaps
  bool is_over() const { return closed_ && under_way_.empty(); }

 private:
  struct UnderWay {
    uint64_t arrival = 0;
    TimePs received_ps = 0;
    uint64_t certain = 0;  // a bit for each part of the condition
    uint64_t perhaps = 0;
    uint64_t assigned = 0;
    uint64_t perhaps_assigned = 0;
    uint32_t copies = 1;       // that have neither left nor been dropped
    uint32_t replicating = 0;  // the copy that replicas were made of last
  };

  void test(UnderWay& packet, size_t index, std::span<const uint8_t> values, std::span<const uint8_t> data);
  bool holds(size_t index, std::span<const uint8_t> values, std::span<const uint8_t> data);
  // Counts copies; true: the packet has ended.
  static bool follow(UnderWay& packet, TraceNumbers of, uint32_t site, std::span<const uint8_t> values);
  void decide(UnderWay& packet);

  Request request_;
  std::vector<uint32_t> first_;  // by site, the first of its tests
  std::map<std::pair<size_t, std::string>, bool> answers_;
  std::unordered_map<uint32_t, UnderWay> under_way_;
  uint32_t last_packet_ = 0;  // the one looked up last, as records of a packet follow each other
  UnderWay* last_ = nullptr;
  std::vector<Found> found_;
  uint64_t certain_found_ = 0;
  uint64_t arrivals_ = 0;
  uint64_t not_kept_ = 0;
  bool closed_ = false;
};

}  // namespace weft
