#include "hosts/scale_up_reductions.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>

namespace weft {
namespace {

bool is_own(const ScaleUpMessage& message) { return message.source == message.destination; }

bool is_over(const ScaleUpMessage& message, uint32_t port, uint32_t channel) {
  return (message.source == port && message.channel == channel) ||
         (message.destination == port && message.peer_channel == channel);
}

bool same_reduction(const SwitchedWrite& one, const SwitchedWrite& other) {
  return one.terms == other.terms && one.dtype == other.dtype && one.operation == other.operation;
}

// The receiver's own term does not say where the result goes.
bool goes_with(const ScaleUpMessage& term, const ScaleUpMessage& other) {
  return same_reduction(term.switched, other.switched) && term.source != other.source &&
         term.length_bytes == other.length_bytes &&
         (is_own(term) || is_own(other) ||
          (term.remote_address == other.remote_address && term.rkey == other.rkey));
}

}  // namespace

std::shared_ptr<const uint8_t[]> ScaleUpResult::of(TimePs now, const std::vector<ScaleUpInFlight>& terms) {
  const ScaleUpMessage& first = terms.front().message;
  std::vector<const uint8_t*> sources;
  sources.reserve(terms.size());
  for (const ScaleUpInFlight& term : terms) sources.push_back(term.message.data);
  // Nobody writes to data that wait, so that the same data at the same moment have the same result.
  if (now == made_ps_ && sources == sources_ && first.length_bytes == length_bytes_ &&
      same_reduction(first.switched, reduction_))
    return result_;
  const uint64_t length_bytes = first.length_bytes;
  std::shared_ptr<uint8_t[]> result(new uint8_t[length_bytes]);
  std::memcpy(result.get(), sources.front(), length_bytes);
  const size_t count = length_bytes / element_bytes(first.switched.dtype);
  for (auto source = std::next(sources.begin()); source != sources.end(); ++source)
    reduce(result.get(), *source, count, first.switched.dtype, first.switched.operation);
  made_ps_ = now;
  sources_ = std::move(sources);
  length_bytes_ = length_bytes;
  reduction_ = first.switched;
  result_ = std::move(result);
  return result_;
}

std::optional<ScaleUpInFlight> ScaleUpReductions::add(TimePs now, uint32_t group, ScaleUpInFlight term,
                                                      ScaleUpResult& last) {
  const SwitchedWrite& switched = term.message.switched;
  const std::pair<uint32_t, uint32_t> key{group, switched.reduction};
  std::vector<ScaleUpInFlight>& terms = waiting_[key];
  for (const ScaleUpInFlight& other : terms) {
    if (goes_with(term.message, other.message)) continue;
    throw std::invalid_argument("a term of port " + std::to_string(term.message.source) +
                                " that does not go with that of port " +
                                std::to_string(other.message.source));
  }
  // In order of ports, so that all ranks round sums alike.
  const auto place = std::ranges::find_if(
      terms, [&](const auto& other) { return other.message.source > term.message.source; });
  const uint32_t count = switched.terms;
  terms.insert(place, std::move(term));
  if (terms.size() < count) return std::nullopt;

  const auto receives = std::ranges::find_if(terms, [](const auto& each) { return !is_own(each.message); });
  ScaleUpInFlight result{.due_ps = 0, .message = receives->message, .bytes = nullptr, .terms = {}};
  for (const ScaleUpInFlight& each : terms) result.due_ps = std::max(result.due_ps, each.due_ps);
  const bool has_data = result.message.length_bytes > 0 && std::ranges::all_of(terms, [](const auto& each) {
                          return each.message.data != nullptr;
                        });
  if (has_data) result.bytes = last.of(now, terms);
  result.message.data = result.bytes.get();
  result.terms = std::move(terms);
  for (ScaleUpInFlight& each : result.terms) {
    each.bytes = nullptr;
    each.message.data = nullptr;
  }
  waiting_.erase(key);
  return result;
}

std::vector<ScaleUpMessage> ScaleUpReductions::forget(uint32_t port, uint32_t channel) {
  std::vector<ScaleUpMessage> forgotten;
  std::erase_if(waiting_, [&](const auto& entry) {
    const std::vector<ScaleUpInFlight>& terms = entry.second;
    const bool ends = std::ranges::any_of(
        terms, [&](const ScaleUpInFlight& each) { return is_over(each.message, port, channel); });
    if (ends) std::ranges::transform(terms, std::back_inserter(forgotten), &ScaleUpInFlight::message);
    return ends;
  });
  return forgotten;
}

}  // namespace weft
