#include "switch/objects.hpp"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <string>
#include <tuple>

#include "memory/prefetch.hpp"

namespace weft {

namespace {

// Zeroed by the kernel page by page as the program touches it: large register arrays cost nothing until used.
void* allocate_zeroed(size_t size_bytes) {
  void* memory = std::calloc(std::max<size_t>(size_bytes, 1), 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

SwitchObjects::SwitchObjects(std::shared_ptr<const SwitchProgram> program, Switch* owner)
    : program_(std::move(program)),
      loaded_(program_),
      tables_(program_->tables.size()),
      views_(program_->tables.size()),
      registers_(static_cast<uint8_t*>(allocate_zeroed(program_->registers_bytes))),
      counters_(static_cast<CounterCell*>(allocate_zeroed(program_->counter_count * sizeof(CounterCell)))),
      meters_(program_->meter_count),
      value_sets_(program_->value_set_count) {
  for (uint32_t i = 0; i < program_->action_profile_count; ++i)
    action_profiles_.push_back(std::make_unique<ActionProfile>(program_->max_action_data_bytes));
  for (size_t i = 0; i < program_->tables.size(); ++i) {
    default_entries_.push_back(std::make_unique<TableEntry>());
    default_entries_[i]->set_own_action(ActionData::kNoAction, {});
    views_[i] = TableView{0, default_entries_[i].get(), nullptr};
  }
  context_.tables = views_.data();
  context_.registers = registers_.get();
  context_.counters = counters_.get();
  context_.meters = meters_.data();
  context_.owner = owner;
}

MatchTable& SwitchObjects::table(uint32_t index) {
  std::unique_ptr<MatchTable>& table = tables_.at(index);
  if (table == nullptr) {
    const TableShape& shape = program_->tables[index];
    table = std::make_unique<MatchTable>(shape.key_bytes, shape.ranges, shape.action_data_bytes);
    views_[index].matcher = table.get();
  }
  return *table;
}

void SwitchObjects::fetch(PrefetchStep step, uint32_t port_count) const {
  if (step == PrefetchStep::kObject) {
    if (fetched_stale_) find_fetched();
    for (const void* line : fetched_.views) prefetch<CacheLevel::kSecond>(line, kCacheLineBytes);
    const auto* counters = reinterpret_cast<const uint8_t*>(counters_.get());
    for (const auto& [first_byte, stride_bytes] : program_->port_counters)
      prefetch<CacheLevel::kSecond>(counters + first_byte, port_count * stride_bytes);
    for (const auto& [first_byte, stride_bytes] : program_->port_registers)
      prefetch<CacheLevel::kSecond>(registers_.get() + first_byte, port_count * stride_bytes);
    return;
  }
  if (step == PrefetchStep::kOneAway)
    for (const TableEntry* entry : fetched_.default_entries)
      prefetch<CacheLevel::kSecond>(static_cast<const EntryView*>(entry), sizeof(EntryView));
  if (step == PrefetchStep::kTwoAway)
    for (const TableEntry* entry : fetched_.default_actions)
      prefetch<CacheLevel::kSecond>(entry->action, sizeof(ActionData));
  for (const MatchTable* table : fetched_.tables) table->fetch(step - PrefetchStep::kOneAway);
  for (const auto& profile : action_profiles_) profile->fetch(step - PrefetchStep::kOneAway);
}

// A switch uses few of a program's many tables, so they are listed.
void SwitchObjects::find_fetched() const {
  fetched_ = {};
  for (const uint32_t number : program_->looked_up) {
    const TableView& view = views_[number];
    const TableShape& shape = program_->tables[number];
    const auto* line =
        reinterpret_cast<const uint8_t*>(&view) - reinterpret_cast<uintptr_t>(&view) % kCacheLineBytes;
    if (fetched_.views.empty() || fetched_.views.back() != line) fetched_.views.push_back(line);
    if (shape.reads_default_entry) fetched_.default_entries.push_back(default_entries_[number].get());
    if (shape.reads_default_action) fetched_.default_actions.push_back(default_entries_[number].get());
    if (view.entry_count != 0) fetched_.tables.push_back(view.matcher);
  }
  fetched_stale_ = false;
}

void SwitchObjects::replace_code(std::shared_ptr<const SwitchProgram> program) {
  const auto shape = [](const SwitchProgram& of) {
    return std::tuple(of.cleared_bytes, of.large_apart_bytes, of.large_parts_bytes, of.metadata_offset_bytes,
                      of.metadata_bytes, of.max_headers_bytes, of.max_digest_bytes, of.max_action_data_bytes,
                      of.tables.size(), of.action_profile_count, of.registers_bytes, of.counter_count,
                      of.meter_count, of.value_set_count, of.log_formats);
  };
  if (shape(*program) != shape(*program_)) throw std::invalid_argument("the code is of another program");
  program_ = std::move(program);
  fetched_stale_ = true;
}

// Calls visit(const ActionData&) for what entries, default entries and members do.
template <typename Visit>
void SwitchObjects::for_each_action(const Visit& visit) const {
  for_each_entry([&visit](const TableEntry& entry) {
    if (entry.action != nullptr) visit(*entry.action);
  });
  for (const auto& profile : action_profiles_)
    for (const auto& [id, member] : profile->members()) visit(*member.action);
}

// kNoAction: it has none, or a member's or a group's.
uint32_t SwitchObjects::own_default_action(size_t table) const {
  const TableEntry& entry = *default_entries_[table];
  return entry.action != nullptr && entry.member == nullptr ? entry.action->action : ActionData::kNoAction;
}

void SwitchObjects::add_to(CommonContents& common) const {
  for (size_t i = 0; i < tables_.size(); ++i)
    common.add_table(i, views_[i].entry_count != 0, own_default_action(i));
  for_each_action([&common](const ActionData& action) { common.add_action(action); });
}

bool SwitchObjects::holds(const CommonContents& assumed) const {
  if (assumed.tables.size() != tables_.size()) return false;
  for (size_t i = 0; i < tables_.size(); ++i) {
    if (views_[i].entry_count != 0 && !assumed.allows_entry(i)) return false;
    if (!assumed.allows_default(i, own_default_action(i))) return false;
  }
  bool allowed = true;
  for_each_action([&](const ActionData& action) {
    allowed = allowed && assumed.allows_action(action.action, {action.bytes(), action.size_bytes});
  });
  return allowed;
}

bool SwitchObjects::specialise(std::shared_ptr<const SwitchProgram> program) {
  if (program_ != loaded_ && !is_specialised()) return false;
  if (!program->assumed || !holds(*program->assumed)) return false;
  const std::shared_ptr<const SwitchProgram> loaded = loaded_;
  replace_code(std::move(program));
  loaded_ = loaded;
  return true;
}

void SwitchObjects::generalise() {
  program_ = loaded_;
  fetched_stale_ = true;
  ++generalisations_;
}

// Before an entry, a default entry or a member does this.
void SwitchObjects::expect_action(uint32_t action, std::span<const uint8_t> data) {
  if (assumed() != nullptr && !assumed()->allows_action(action, data)) generalise();
}

ActionMember& SwitchObjects::add_member(uint32_t profile, uint32_t id, uint32_t action,
                                        std::span<const uint8_t> data) {
  ++writes_;
  expect_action(action, data);
  return action_profile(profile).add_member(id, action, data);
}

void SwitchObjects::modify_member(uint32_t profile, ActionMember& member, uint32_t action,
                                  std::span<const uint8_t> data) {
  ++writes_;
  expect_action(action, data);
  action_profile(profile).modify_member(member, action, data);
}

void SwitchObjects::bind(TableEntry& entry, uint32_t table, const ActionBinding& binding) {
  ++writes_;
  if (binding.kind == ActionBinding::Kind::kAction) {
    expect_action(binding.id, binding.data);
    unbind(entry, table);
    entry.set_own_action(binding.id, binding.data);
    return;
  }
  const int32_t profile_index = program_->tables.at(table).action_profile;
  if (profile_index < 0)
    throw std::invalid_argument("table '" + program_->tables[table].name + "' has no action profile");
  ActionProfile& profile = *action_profiles_[static_cast<size_t>(profile_index)];
  if (binding.kind == ActionBinding::Kind::kMember) {
    ActionMember* member = profile.member(binding.id);
    if (member == nullptr)
      throw std::invalid_argument("table '" + program_->tables[table].name + "': no member " +
                                  std::to_string(binding.id) + " in its action profile");
    ++member->references;
    unbind(entry, table);
    entry.member = member;
    entry.action = member->action.get();
  } else {
    ActionGroup* group = profile.group(binding.id);
    if (group == nullptr)
      throw std::invalid_argument("table '" + program_->tables[table].name + "': no group " +
                                  std::to_string(binding.id) + " in its action profile");
    ++group->references;
    unbind(entry, table);
    entry.group = group;
  }
  entry.action_handle = binding.id;
}

void SwitchObjects::unbind(TableEntry& entry, uint32_t /*table*/) {
  if (entry.member != nullptr) --entry.member->references;
  if (entry.group != nullptr) --entry.group->references;
  entry.member = nullptr;
  entry.group = nullptr;
  entry.action = nullptr;
  entry.own_action.reset();
}

bool SwitchObjects::insert(uint32_t table, const EntryMatch& match, const ActionBinding& binding,
                           int64_t idle_timeout_ns) {
  MatchTable& matcher = this->table(table);
  if (matcher.find(match) != nullptr) return false;
  if (assumed() != nullptr && !assumed()->allows_entry(table)) generalise();
  TableEntry* entry = matcher.insert(match);
  try {
    bind(*entry, table, binding);
  } catch (...) {
    matcher.erase(entry);
    throw;
  }
  entry->idle_timeout_ns = idle_timeout_ns;
  entry->last_hit_ps = context_.now_ps;
  views_[table].entry_count = matcher.size();
  fetched_stale_ = true;
  return true;
}

bool SwitchObjects::modify(uint32_t table, const EntryMatch& match, const ActionBinding& binding,
                           int64_t idle_timeout_ns) {
  TableEntry* entry = this->table(table).find(match);
  if (entry == nullptr) return false;
  bind(*entry, table, binding);
  entry->idle_timeout_ns = idle_timeout_ns;
  entry->last_hit_ps = context_.now_ps;
  return true;
}

bool SwitchObjects::erase(uint32_t table, const EntryMatch& match) {
  MatchTable& matcher = this->table(table);
  TableEntry* entry = matcher.find(match);
  if (entry == nullptr) return false;
  ++writes_;
  unbind(*entry, table);
  matcher.erase(entry);
  views_[table].entry_count = matcher.size();
  fetched_stale_ = true;
  return true;
}

void SwitchObjects::set_default(uint32_t table, const ActionBinding& binding) {
  TableEntry& entry = *default_entries_.at(table);
  const uint32_t own = binding.kind == ActionBinding::Kind::kAction ? binding.id : ActionData::kNoAction;
  if (assumed() != nullptr && !assumed()->allows_default(table, own)) generalise();
  bind(entry, table, binding);
}

}  // namespace weft
