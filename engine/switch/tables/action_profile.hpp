// Action profiles and selectors: actions shared by table entries as members, and groups of members among
// which a hash of the packet chooses.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "memory/cache_line.hpp"
#include "memory/prefetch_step.hpp"
#include "switch/abi.hpp"

namespace weft {

struct FreeActionData {
  void operator()(ActionData* action) const noexcept;
};

using ActionDataPtr = std::unique_ptr<ActionData, FreeActionData>;

// `target` has room for the data.
void write_action(ActionData& target, uint32_t action, std::span<const uint8_t> data);

// `capacity_bytes` of data at least, so that a later action with more data can be written in place. Lies in
// cache lines of its own, with what else packets pass by.
ActionDataPtr make_action_data(uint32_t action, std::span<const uint8_t> data, uint32_t capacity_bytes);

struct ActionMember {
  uint32_t id = 0;
  ActionDataPtr action;  // written in place by a modification, so entries may point at it
  uint32_t references = 0;
};

struct GroupMember {
  uint32_t member_id = 0;
  int32_t weight = 1;  // share of the group's buckets
  int32_t watch_port = -1;
};

class ActionGroup {
 public:
  uint32_t id = 0;
  uint32_t references = 0;
  bool is_random = false;  // a random number takes the place of the hash
  std::vector<GroupMember> members;

  size_t bucket_count() const { return buckets_.size(); }

  // The member chosen by a hash of the packet, or null if the group has no usable member.
  ActionData* select(uint64_t hash) const {
    if (buckets_.empty()) return nullptr;
    // Dividing 64 bits takes the processor several times as long.
    const uint64_t bucket = hash <= UINT32_MAX
                                ? static_cast<uint32_t>(hash) % static_cast<uint32_t>(buckets_.size())
                                : hash % buckets_.size();
    return buckets_[bucket];
  }

 private:
  friend class ActionProfile;
  CacheLineVector<ActionData*> buckets_;  // of members in order of id, each `weight` times; fewer than 2^32
};

class ActionProfile : public InCacheLines {
 public:
  // A packet looks at its group, so each lies in cache lines of its own.
  using Groups = std::map<uint32_t, ActionGroup, std::less<>,
                          CacheLineAllocator<std::pair<const uint32_t, ActionGroup>>>;

  explicit ActionProfile(uint32_t data_capacity_bytes) : data_capacity_bytes_(data_capacity_bytes) {}

  // Members and groups by id; null if there is none.
  ActionMember* member(uint32_t id);
  ActionGroup* group(uint32_t id);
  const std::map<uint32_t, ActionMember>& members() const { return members_; }
  const Groups& groups() const { return groups_; }

  ActionMember& add_member(uint32_t id, uint32_t action, std::span<const uint8_t> data);
  void modify_member(ActionMember& member, uint32_t action, std::span<const uint8_t> data);
  void remove_member(uint32_t id) { members_.erase(id); }

  ActionGroup& add_group(uint32_t id);
  void set_group_members(ActionGroup& group, std::vector<GroupMember> members);  // all ids must exist
  void remove_group(uint32_t id);

  // Takes members that watch this port out of their groups (up false) or back in.
  void set_port_up(int32_t port, bool up);
  void clear();

  // Prefetches what select() goes through, `step` pointers away from this; of many groups some.
  void fetch(PrefetchStep step) const;

 private:
  // That of a spine with as many uplinks as switches have ports.
  static constexpr size_t kMostFetched = 256;

  void fill_buckets(ActionGroup& group);
  void find_fetched() const;

  uint32_t data_capacity_bytes_;
  std::map<uint32_t, ActionMember> members_;
  Groups groups_;
  std::vector<int32_t> down_ports_;
  // What fetch() prefetches, found anew after a change of groups.
  mutable CacheLineVector<const void*> fetched_;
  mutable bool fetched_stale_ = true;
};

}  // namespace weft
