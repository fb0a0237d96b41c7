#include "switch/packet_search.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "switch/switch.hpp"
#include "switch/trace.hpp"

namespace weft {
namespace {

constexpr uint64_t bit(uint32_t part) { return uint64_t{1} << part; }

uint32_t word(std::span<const uint8_t> bytes, size_t offset) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

SearchValue shifted(SearchValue value, uint32_t right) {
  if (right == 0) return value;
  if (right >= 64) return {0, value.high >> (right - 64)};
  return {value.high >> right, value.low >> right | value.high << (64 - right)};
}

bool compare(SearchTest::Sign sign, const SearchValue& left, const SearchValue& right) {
  switch (sign) {
    case SearchTest::Sign::kEqual:
      return left == right;
    case SearchTest::Sign::kNotEqual:
      return left != right;
    case SearchTest::Sign::kLess:
      return left < right;
    case SearchTest::Sign::kLessOrEqual:
      return left <= right;
    case SearchTest::Sign::kGreater:
      return left > right;
    case SearchTest::Sign::kGreaterOrEqual:
      return left >= right;
  }
  return false;
}

// The values of a record, then its data, as one.
class RecordBytes {
 public:
  RecordBytes(std::span<const uint8_t> values, std::span<const uint8_t> data)
      : values_(values), data_(data) {}
  size_t size() const { return values_.size() + data_.size(); }
  uint8_t operator[](size_t i) const { return i < values_.size() ? values_[i] : data_[i - values_.size()]; }

 private:
  std::span<const uint8_t> values_;
  std::span<const uint8_t> data_;
};

SearchValue number(const RecordBytes& bytes, const SearchTest& test) {
  SearchValue value;
  for (uint32_t i = 0; i < test.size_bytes; ++i) {
    const uint8_t byte = bytes[test.offset + (test.little_endian ? test.size_bytes - 1 - i : i)];
    value = {value.high << 8 | value.low >> 56, value.low << 8 | byte};
  }
  value = shifted(value, test.shift);
  return {value.high & test.mask.high, value.low & test.mask.low};
}

// Whether a condition certainly holds; sets whether it holds perhaps.
bool evaluate(const std::vector<int32_t>& rule, uint64_t certain, uint64_t perhaps, bool& holds_perhaps) {
  struct Outcome {
    bool certain;
    bool perhaps;
  };
  std::vector<Outcome> stack;
  for (const int32_t each : rule) {
    if (each >= 0) {
      const uint64_t mask = bit(static_cast<uint32_t>(each));
      stack.push_back({(certain & mask) != 0, (perhaps & mask) != 0});
      continue;
    }
    Outcome& last = stack.back();
    if (each == PacketSearch::kNot) {
      last = {!last.perhaps, !last.certain};
      continue;
    }
    Outcome& before = stack[stack.size() - 2];
    before = each == PacketSearch::kAnd
                 ? Outcome{before.certain && last.certain, before.perhaps && last.perhaps}
                 : Outcome{before.certain || last.certain, before.perhaps || last.perhaps};
    stack.pop_back();
  }
  holds_perhaps = stack.back().perhaps;
  return stack.back().certain;
}

void check(const std::vector<int32_t>& rule) {
  size_t depth = 0;
  for (const int32_t each : rule) {
    const bool known = each >= PacketSearch::kOr && each < static_cast<int32_t>(PacketSearch::kMaxParts);
    const size_t needs = each >= 0 ? 0 : each == PacketSearch::kNot ? 1 : 2;
    if (!known || depth < needs) throw std::invalid_argument("no condition in postfix notation");
    depth += each >= 0 ? 1 : 0;
    depth -= needs == 2 ? 1 : 0;
  }
  if (depth != 1) throw std::invalid_argument("no condition in postfix notation");
}

}  // namespace

PacketSearch::PacketSearch(Request request) : request_(std::move(request)) {
  check(request_.rule);
  std::vector<SearchTest>& tests = request_.tests;
  for (const SearchTest& each : tests) {
    if (each.part >= kMaxParts) throw std::invalid_argument("a condition has at most 64 parts");
    if (each.size_bytes > 16 || each.shift >= 128)
      throw std::invalid_argument("a number has at most 128 bits");
  }
  if (!std::ranges::is_sorted(tests, {}, &SearchTest::site))
    throw std::invalid_argument("tests are not in the order of sites");
  const uint32_t sites = tests.empty() ? 0 : tests.back().site + 1;
  for (uint32_t site = 0, index = 0; site <= sites; ++site) {
    while (index < tests.size() && tests[index].site < site) ++index;
    first_.push_back(index);
  }
}

bool PacketSearch::begin(uint32_t packet, TimePs now) {
  if (closed_) return false;
  UnderWay& begun = under_way_[packet];
  begun.arrival = ++arrivals_;
  begun.received_ps = now;
  last_packet_ = packet;
  last_ = &begun;
  return true;
}

void PacketSearch::see(TraceNumbers of, uint32_t site, std::span<const uint8_t> values,
                       std::span<const uint8_t> data) {
  const bool is_switchs_own = site < kFirstProgramSite;
  if (!is_switchs_own && !wants(site)) return;
  if (last_ == nullptr || last_packet_ != of.packet) {
    const auto found = under_way_.find(of.packet);
    if (found == under_way_.end()) return;
    last_packet_ = of.packet;
    last_ = &found->second;
  }
  UnderWay& packet = *last_;
  if (wants(site))
    for (size_t index = first_[site]; index < first_[site + 1]; ++index) test(packet, index, values, data);
  if (!is_switchs_own || !follow(packet, of, site, values)) return;
  decide(packet);
  under_way_.erase(of.packet);
  last_ = nullptr;
  if (is_over() && request_.changed) request_.changed();
}

void PacketSearch::test(UnderWay& packet, size_t index, std::span<const uint8_t> values,
                        std::span<const uint8_t> data) {
  const SearchTest& test = request_.tests[index];
  for (uint32_t i = test.zero_at; i < test.zero_at + test.zero_bytes && i < values.size(); ++i)
    if (values[i] != 0) return;
  const uint64_t part = bit(test.part);
  if (test.assigns) (test.is_certain ? packet.assigned : packet.perhaps_assigned) |= part;
  if ((packet.certain & part) != 0 || (!test.is_certain && (packet.perhaps & part) != 0)) return;
  if (!holds(index, values, data)) return;
  packet.perhaps |= part;
  if (test.is_certain) packet.certain |= part;
}

bool PacketSearch::holds(size_t index, std::span<const uint8_t> values, std::span<const uint8_t> data) {
  const SearchTest& test = request_.tests[index];
  const RecordBytes bytes(values, data);
  switch (test.kind) {
    case SearchTest::Kind::kAlways:
      return true;
    case SearchTest::Kind::kNever:
      return false;
    case SearchTest::Kind::kCompareSize:
      return compare(test.sign, {0, data.size() & test.mask.low}, test.constant);
    case SearchTest::Kind::kCompare:
      return test.offset + test.size_bytes <= bytes.size() &&
             compare(test.sign, number(bytes, test), test.constant);
    case SearchTest::Kind::kAsk: {
      std::string asked;
      for (size_t i = test.offset; i < bytes.size(); ++i) asked.push_back(static_cast<char>(bytes[i]));
      const auto known = answers_.find({index, asked});
      if (known != answers_.end()) return known->second;
      const bool answer = request_.ask(index, {reinterpret_cast<const uint8_t*>(asked.data()), asked.size()});
      answers_.emplace(std::pair(index, std::move(asked)), answer);
      return answer;
    }
  }
  return false;
}

bool PacketSearch::follow(UnderWay& packet, TraceNumbers of, uint32_t site, std::span<const uint8_t> values) {
  switch (static_cast<TraceSite>(site)) {
    case TraceSite::kCopied: {
      const uint32_t type = word(values, sizeof(uint32_t));
      if (type == Switch::kRecirculated || type == Switch::kResubmitted)
        return false;  // it goes on as the copy
      ++packet.copies;
      // Replicas are made of a copy all at once, and it ends with them.
      if (type == Switch::kReplicated && packet.replicating != of.copy) {
        packet.replicating = of.copy;
        --packet.copies;
      }
      return false;
    }
    case TraceSite::kDropped:
      // Also recorded for a packet that goes on without a clone: it is decided at the end of the run.
      if (word(values, 0) == static_cast<uint32_t>(DropReason::kPassLimit)) return false;
      return --packet.copies == 0;
    case TraceSite::kSent:
      return --packet.copies == 0;
    default:
      return false;
  }
}

void PacketSearch::decide(UnderWay& packet) {
  const uint64_t unassigned = request_.holds_for_zero & ~packet.assigned;
  packet.certain |= unassigned & ~packet.perhaps_assigned;
  packet.perhaps |= unassigned | request_.undecidable;
  bool perhaps = false;
  const bool certain = evaluate(request_.rule, packet.certain, packet.perhaps, perhaps);
  if (!certain && !perhaps) return;
  if (!certain && found_.size() - certain_found_ >= request_.most_perhaps) {
    ++not_kept_;
    return;
  }
  found_.push_back({packet.arrival, packet.received_ps, certain});
  if (certain && ++certain_found_ >= request_.most_found) closed_ = true;
  if (request_.changed) request_.changed();
}

void PacketSearch::finish() {
  closed_ = true;
  std::vector<UnderWay> left;
  for (const auto& [_, packet] : under_way_) left.push_back(packet);
  under_way_.clear();
  last_ = nullptr;
  std::ranges::sort(left, {}, &UnderWay::arrival);
  for (UnderWay& packet : left) decide(packet);
}

}  // namespace weft
