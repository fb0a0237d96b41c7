#include "switch/tables/index.hpp"

#include <algorithm>
#include <bit>

namespace weft {

template <size_t kWords>
void TableIndex<kWords>::build(std::span<Tuple* const> order) {
  std::vector<Probe> probes;
  size_t slots = 0;
  size_t filter_words = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const Tuple& tuple = *order[i];
    Probe probe;
    std::copy_n(tuple.mask().begin(), kWords, probe.mask.begin());
    probe.first_slot = static_cast<uint32_t>(slots);
    // At most half full, and never full.
    probe.last = static_cast<uint32_t>(std::bit_ceil(2 * tuple.key_count()) - 1);
    probe.highest_priority = tuple.highest_priority();
    probe.decides = i + 1 == order.size() || tuple.lowest_priority() >= order[i + 1]->highest_priority();
    slots += size_t{probe.last} + 1;
    if (i + 1 < order.size() && probe.last >= kSmallTupleSlots) {
      const size_t bits = kFilterBitsPerSlot * (size_t{probe.last} + 1);
      probe.first_filter_word = static_cast<uint32_t>(filter_words);
      probe.last_filter_bit = static_cast<uint32_t>(bits - 1);
      filter_words += bits / 64;
    }
    probes.push_back(probe);
  }
  slots_.assign(std::max<size_t>(slots, 1), Slot());
  filters_.assign(filter_words, 0);
  for (size_t i = 0; i < order.size(); ++i) {
    const Probe& probe = probes[i];
    order[i]->for_each_head([&](TableEntry& head) {
      Slot made;
      for (size_t word = 0; word < kWords; ++word) made.key[word] = head.key()[word] & probe.mask[word];
      made.entry = &head;
      const uint64_t hash = home(made.key);
      if (const uint64_t bit = filter_bit(probe, hash); probe.last_filter_bit != 0)
        filters_[probe.first_filter_word + bit / 64] |= uint64_t{1} << bit % 64;
      uint64_t at = hash & probe.last;
      while (slots_[probe.first_slot + at].entry != nullptr) at = (at + 1) & probe.last;
      slots_[probe.first_slot + at] = made;
    });
  }
  first_ = probes.empty() ? Probe() : probes.front();
  others_.assign(probes.begin() + (probes.empty() ? 0 : 1), probes.end());
  first_settles_ = {others_.empty(), first_.decides};
}

template <size_t kWords>
auto TableIndex<kWords>::find_in_others(const Slot& found, Key key) const -> const Slot& {
  const Slot* best = &found;
  for (const Probe& probe : others_) {
    if (best->entry != nullptr && best->entry->priority >= probe.highest_priority) break;
    const Slot& slot = find_in(probe, key);
    if (slot.entry == nullptr) continue;
    if (best->entry == nullptr || slot.entry->priority > best->entry->priority) best = &slot;
    if (probe.decides) break;
  }
  return *best;
}

template class TableIndex<1>;
template class TableIndex<2>;

}  // namespace weft
