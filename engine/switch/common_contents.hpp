// What the tables of switches that run one program have in common. Machine code may take it for granted (see
// SwitchObjects::specialise): a table without entries needs no lookup, an action that nothing names no code,
// and a parameter that has one value everywhere is a constant.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "switch/abi.hpp"

namespace weft {

struct CommonContents {
  struct Table {
    bool has_entries = false;
    // Own action of all default entries, or kNoAction: it differs, or is a member's or a group's.
    uint32_t default_action = ActionData::kNoAction;
  };
  struct Action {
    bool used = false;
    std::vector<uint8_t> data;   // as in ActionData, of one that uses it
    std::vector<uint8_t> fixed;  // 0xff for each byte of it that is the same in all
  };

  // Takes one more switch's table, or an action that an entry, a default entry or a member names, into
  // account.
  void add_table(size_t table, bool has_entries, uint32_t default_action);
  void add_action(const ActionData& action);

  bool allows_entry(size_t table) const { return tables[table].has_entries; }
  bool allows_default(size_t table, uint32_t action) const {
    return tables[table].has_entries || tables[table].default_action == action;
  }
  bool allows_action(uint32_t number, std::span<const uint8_t> data) const;

  std::vector<Table> tables;    // by number; none before the first switch
  std::vector<Action> actions;  // by number
};

}  // namespace weft
