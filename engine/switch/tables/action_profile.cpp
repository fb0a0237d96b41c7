#include "switch/tables/action_profile.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "memory/prefetch.hpp"

namespace weft {

void write_action(ActionData& target, uint32_t action, std::span<const uint8_t> data) {
  target.action = action;
  target.size_bytes = static_cast<uint32_t>(data.size());
  if (!data.empty()) std::memcpy(target.bytes(), data.data(), data.size());
}

namespace {

// Before an action that is allocated apart: how much memory it has, this included.
using MemoryBytes = uint64_t;
static_assert(sizeof(MemoryBytes) % alignof(ActionData) == 0);

}  // namespace

ActionDataPtr make_action_data(uint32_t action, std::span<const uint8_t> data, uint32_t capacity_bytes) {
  const size_t capacity = std::max<size_t>(capacity_bytes, data.size());
  const MemoryBytes bytes = sizeof(MemoryBytes) + sizeof(ActionData) + capacity;
  auto* memory = new (take_cache_lines(bytes)) MemoryBytes(bytes);
  ActionDataPtr result(new (memory + 1) ActionData{});
  write_action(*result, action, data);
  return result;
}

void FreeActionData::operator()(ActionData* action) const noexcept {
  MemoryBytes* memory = reinterpret_cast<MemoryBytes*>(action) - 1;
  give_back_cache_lines(memory, *memory);
}

ActionMember* ActionProfile::member(uint32_t id) {
  const auto found = members_.find(id);
  return found == members_.end() ? nullptr : &found->second;
}

ActionGroup* ActionProfile::group(uint32_t id) {
  const auto found = groups_.find(id);
  return found == groups_.end() ? nullptr : &found->second;
}

ActionMember& ActionProfile::add_member(uint32_t id, uint32_t action, std::span<const uint8_t> data) {
  ActionMember& member = members_[id];
  member.id = id;
  member.action = make_action_data(action, data, data_capacity_bytes_);
  return member;
}

void ActionProfile::modify_member(ActionMember& member, uint32_t action, std::span<const uint8_t> data) {
  write_action(*member.action, action, data);
}

ActionGroup& ActionProfile::add_group(uint32_t id) {
  ActionGroup& group = groups_[id];
  group.id = id;
  return group;
}

void ActionProfile::set_group_members(ActionGroup& group, std::vector<GroupMember> members) {
  for (const GroupMember& old : group.members) --members_.at(old.member_id).references;
  std::sort(members.begin(), members.end(),
            [](const GroupMember& a, const GroupMember& b) { return a.member_id < b.member_id; });
  group.members = std::move(members);
  for (const GroupMember& added : group.members) ++members_.at(added.member_id).references;
  fill_buckets(group);
}

void ActionProfile::remove_group(uint32_t id) {
  ActionGroup* found = group(id);
  if (found == nullptr) return;
  set_group_members(*found, {});
  groups_.erase(id);
}

void ActionProfile::fetch(PrefetchStep step) const {
  if (step == PrefetchStep::kObject) prefetch<CacheLevel::kSecond>(this, sizeof(ActionProfile));
  if (step == PrefetchStep::kOneAway && fetched_stale_) find_fetched();
  if (step == PrefetchStep::kOneAway)
    prefetch<CacheLevel::kSecond>(fetched_.data(), fetched_.size() * sizeof(const void*));
  if (step != PrefetchStep::kTwoAway) return;
  for (const void* line : fetched_) prefetch<CacheLevel::kSecond>(line, kCacheLineBytes);
}

void ActionProfile::find_fetched() const {
  fetched_.clear();
  for (const auto& [id, group] : groups_) {
    if (fetched_.size() + group.buckets_.size() > kMostFetched) break;
    fetched_.push_back(&group.is_random);
    fetched_.push_back(&group.buckets_);
    for (size_t at = 0; at < group.buckets_.size(); at += kCacheLineBytes / sizeof(ActionData*))
      fetched_.push_back(&group.buckets_[at]);
    fetched_.insert(fetched_.end(), group.buckets_.begin(), group.buckets_.end());
  }
  // Groups share members.
  std::sort(fetched_.begin(), fetched_.end());
  fetched_.erase(std::unique(fetched_.begin(), fetched_.end()), fetched_.end());
  fetched_stale_ = false;
}

void ActionProfile::fill_buckets(ActionGroup& group) {
  fetched_stale_ = true;
  group.buckets_.clear();
  for (const GroupMember& entry : group.members) {
    if (std::find(down_ports_.begin(), down_ports_.end(), entry.watch_port) != down_ports_.end()) continue;
    group.buckets_.insert(group.buckets_.end(), static_cast<size_t>(entry.weight),
                          members_.at(entry.member_id).action.get());
  }
}

void ActionProfile::set_port_up(int32_t port, bool up) {
  std::erase(down_ports_, port);
  if (!up) down_ports_.push_back(port);
  for (auto& [id, group] : groups_) fill_buckets(group);
}

void ActionProfile::clear() {
  groups_.clear();
  members_.clear();
  fetched_stale_ = true;
}

}  // namespace weft
