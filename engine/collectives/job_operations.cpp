#include "collectives/job_operations.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

namespace weft {
namespace {

[[noreturn]] void refuse(size_t operation, const std::string& what, int64_t value, int64_t least,
                         int64_t most) {
  throw std::invalid_argument("operation " + std::to_string(operation) + ": " + what + " " +
                              std::to_string(value) + " (valid: " + std::to_string(least) + " to " +
                              std::to_string(most) + ")");
}

void check(size_t operation, const std::string& what, int64_t value, int64_t least, int64_t most) {
  if (value < least || value > most) refuse(operation, what, value, least, most);
}

void check_lengths(const OperationColumns& columns) {
  const size_t count = columns.kind.size();
  const bool alike = columns.stream.size() == count && columns.duration_ps.size() == count &&
                     columns.size_bytes.size() == count && columns.target.size() == count &&
                     columns.number.size() == count && columns.traffic_kind.size() == count &&
                     columns.after_offsets.size() == count + 1 &&
                     columns.after_start.size() == columns.after.size();
  if (!alike) throw std::invalid_argument("columns of operations of different lengths");
  if (count > JobOperations::kMaxOperations || columns.after.size() > std::numeric_limits<int32_t>::max()) {
    throw std::invalid_argument(std::to_string(count) + " operations (valid: up to " +
                                std::to_string(JobOperations::kMaxOperations) + ")");
  }
  const bool ordered = std::ranges::is_sorted(columns.after_offsets) && columns.after_offsets.front() == 0 &&
                       columns.after_offsets.back() == static_cast<int64_t>(columns.after.size());
  if (!ordered) throw std::invalid_argument("offsets of predecessors do not ascend to how many there are");
}

bool is_transfer(OperationKind kind) {
  return kind == OperationKind::kSend || kind == OperationKind::kReceive || kind == OperationKind::kRead;
}

// READs have no immediates, which limit the numbers of messages.
int64_t largest_number(OperationKind kind) {
  const bool is_message = is_transfer(kind) && kind != OperationKind::kRead;
  return is_message ? JobOperations::kMaxTransfer : JobOperations::kMaxOperations;
}

}  // namespace

JobOperations::JobOperations(OperationColumns columns) {
  check_lengths(columns);
  add_operations(columns);
  add_successors(columns);
  kind_ = std::move(columns.kind);
  stream_ = std::move(columns.stream);
  traffic_kind_ = std::move(columns.traffic_kind);
}

void JobOperations::add_operations(const OperationColumns& columns) {
  constexpr int64_t kMaxSlot = std::numeric_limits<int32_t>::max() - 1;
  const size_t count = columns.kind.size();
  amount_.reserve(count);
  target_.reserve(count);
  number_.reserve(count);
  for (size_t each = 0; each < count; ++each) {
    check(each, "kind", columns.kind[each], 0, static_cast<int64_t>(OperationKind::kRead));
    check(each, "stream", columns.stream[each], kNoStream, kMaxStreams - 1);
    const auto kind = static_cast<OperationKind>(columns.kind[each]);
    const int64_t amount = is_transfer(kind) ? columns.size_bytes[each] : columns.duration_ps[each];
    check(each, is_transfer(kind) ? "a size in bytes of" : "a duration in ps of", amount, 0,
          is_transfer(kind) ? int64_t{1} << 46 : int64_t{1} << 62);
    check(each, "slot", columns.target[each], 0, kMaxSlot);
    check(each, is_transfer(kind) ? "transfer" : "collective", columns.number[each], 0, largest_number(kind));
    amount_.push_back(amount);
    target_.push_back(static_cast<uint32_t>(columns.target[each]));
    number_.push_back(static_cast<uint32_t>(columns.number[each]));
    stream_limit_ = std::max(stream_limit_, static_cast<uint32_t>(columns.stream[each] + 1));
    if (is_transfer(kind)) peer_limit_ = std::max(peer_limit_, target_.back() + 1);
    if (kind == OperationKind::kReceive) {
      largest_received_bytes_ = std::max(largest_received_bytes_, static_cast<uint64_t>(amount));
    }
    if (kind == OperationKind::kCollective) call_limit_ = std::max(call_limit_, target_.back() + 1);
  }
}

void JobOperations::add_successors(const OperationColumns& columns) {
  const size_t count = columns.kind.size();
  predecessor_counts_.resize(count);
  successor_offsets_.resize(count + 1);
  start_successor_offsets_.resize(count + 1);
  for (size_t each = 0; each < count; ++each) {
    const int64_t first = columns.after_offsets[each], end = columns.after_offsets[each + 1];
    predecessor_counts_[each] = static_cast<uint32_t>(end - first);
    for (int64_t place = first; place < end; ++place) {
      const int64_t before = columns.after[static_cast<size_t>(place)];
      check(each, "follows operation", before, 0, static_cast<int64_t>(count) - 1);
      auto& offsets =
          columns.after_start[static_cast<size_t>(place)] ? start_successor_offsets_ : successor_offsets_;
      ++offsets[static_cast<size_t>(before) + 1];
    }
  }
  std::partial_sum(successor_offsets_.begin(), successor_offsets_.end(), successor_offsets_.begin());
  std::partial_sum(start_successor_offsets_.begin(), start_successor_offsets_.end(),
                   start_successor_offsets_.begin());
  successors_.resize(successor_offsets_.back());
  start_successors_.resize(start_successor_offsets_.back());
  std::vector<uint32_t> next = successor_offsets_, start_next = start_successor_offsets_;
  for (size_t each = 0; each < count; ++each) {
    for (int64_t place = columns.after_offsets[each]; place < columns.after_offsets[each + 1]; ++place) {
      const auto before = static_cast<size_t>(columns.after[static_cast<size_t>(place)]);
      if (columns.after_start[static_cast<size_t>(place)]) {
        start_successors_[start_next[before]++] = static_cast<uint32_t>(each);
      } else {
        successors_[next[before]++] = static_cast<uint32_t>(each);
      }
    }
  }
}

}  // namespace weft
