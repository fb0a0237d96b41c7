// The stateful objects of one switch instance running one program: tables, action profiles, registers,
// counters, meters, value sets. Generated code reaches them through the SwitchContext.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "memory/prefetch_step.hpp"
#include "switch/meter.hpp"
#include "switch/program.hpp"
#include "switch/tables/match_table.hpp"

namespace weft {

struct ValueSetMember {
  std::vector<uint8_t> value;  // key fields padded to whole bytes, concatenated
  std::vector<uint8_t> mask;
};

// How an entry, member or default names its action.
struct ActionBinding {
  enum class Kind : uint8_t { kAction, kMember, kGroup };
  Kind kind = Kind::kAction;
  uint32_t id = 0;                  // action index, member id or group id
  std::span<const uint8_t> data{};  // of a direct action
};

class SwitchObjects : public InCacheLines {
 public:
  SwitchObjects(std::shared_ptr<const SwitchProgram> program, Switch* owner);
  SwitchObjects(const SwitchObjects&) = delete;

  const SwitchProgram& program() const { return *program_; }
  SwitchContext& context() { return context_; }
  // Goes on with other code for the same program, which must have the same shape: std::invalid_argument if it
  // obviously has not. State and tables stay as they are.
  void replace_code(std::shared_ptr<const SwitchProgram> program);

  // Calls visit(TableEntry&) for every entry of every table, and for each table's default entry.
  template <typename Visit>
  void for_each_entry(const Visit& visit) const {
    for (size_t i = 0; i < tables_.size(); ++i) {
      visit(*default_entries_[i]);
      if (tables_[i] != nullptr) tables_[i]->for_each(visit);
    }
  }

  // Takes what is in the tables into account.
  void add_to(CommonContents& common) const;
  // Goes on with code that takes contents for granted, for the same program; the general code comes back with
  // the first write to a table or a member that breaks what it assumes, before that write has an effect.
  // False, and nothing done: the contents break it already, or the code in use is not the program's own (a
  // trace's).
  bool specialise(std::shared_ptr<const SwitchProgram> program);
  bool is_specialised() const { return program_->assumed.has_value(); }
  uint64_t generalisations() const { return generalisations_; }
  // Writes that have gone to tables and members since the start.
  uint64_t writes() const { return writes_; }

  // False: an entry like it exists already.
  bool insert(uint32_t table, const EntryMatch& match, const ActionBinding& binding, int64_t idle_timeout_ns);
  // False: there is no such entry.
  bool modify(uint32_t table, const EntryMatch& match, const ActionBinding& binding, int64_t idle_timeout_ns);
  bool erase(uint32_t table, const EntryMatch& match);
  void set_default(uint32_t table, const ActionBinding& binding);
  TableEntry& default_entry(uint32_t table) { return *default_entries_.at(table); }
  // Made when it is first asked for: of a program's many tables most stay empty on a switch.
  MatchTable& table(uint32_t index);
  ActionProfile& action_profile(uint32_t index) { return *action_profiles_.at(index); }
  ActionMember& add_member(uint32_t profile, uint32_t id, uint32_t action, std::span<const uint8_t> data);
  void modify_member(uint32_t profile, ActionMember& member, uint32_t action, std::span<const uint8_t> data);

  // Prefetches what most packets pass by, `step` pointers away from this; of the ports below `port_count`.
  void fetch(PrefetchStep step, uint32_t port_count) const;

  std::span<uint8_t> registers() { return {registers_.get(), program_->registers_bytes}; }
  std::span<CounterCell> counters() { return {counters_.get(), program_->counter_count}; }
  std::span<Meter> meters() { return meters_; }
  std::vector<ValueSetMember>& value_set(uint32_t index) { return value_sets_.at(index); }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  void bind(TableEntry& entry, uint32_t table, const ActionBinding& binding);
  void unbind(TableEntry& entry, uint32_t table);
  const CommonContents* assumed() const { return program_->assumed ? &*program_->assumed : nullptr; }
  void expect_action(uint32_t action, std::span<const uint8_t> data);
  void generalise();
  bool holds(const CommonContents& assumed) const;
  uint32_t own_default_action(size_t table) const;
  template <typename Visit>
  void for_each_action(const Visit& visit) const;

  std::shared_ptr<const SwitchProgram> program_;
  std::shared_ptr<const SwitchProgram> loaded_;  // the program's own code, which assumes nothing
  // What fetch() prefetches, found anew once a table has got its first entry or lost its last, or the code
  // another.
  struct Fetched {
    CacheLineVector<const void*> views;
    CacheLineVector<const TableEntry*> default_entries;
    CacheLineVector<const TableEntry*> default_actions;
    CacheLineVector<const MatchTable*> tables;
  };
  void find_fetched() const;
  mutable Fetched fetched_;
  mutable bool fetched_stale_ = true;
  uint64_t generalisations_ = 0;
  uint64_t writes_ = 0;
  SwitchContext context_{};
  std::vector<std::unique_ptr<ActionProfile>> action_profiles_;  // outlive the tables that refer to them
  std::vector<std::unique_ptr<MatchTable>> tables_;              // null: has never been asked for
  std::vector<std::unique_ptr<TableEntry>> default_entries_;
  CacheLineVector<TableView> views_;
  std::unique_ptr<uint8_t[], Free> registers_;
  std::unique_ptr<CounterCell[], Free> counters_;
  std::vector<Meter> meters_;
  std::vector<std::vector<ValueSetMember>> value_sets_;
};

}  // namespace weft
