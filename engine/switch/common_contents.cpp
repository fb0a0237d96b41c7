#include "switch/common_contents.hpp"

#include <algorithm>

namespace weft {

void CommonContents::add_table(size_t table, bool has_entries, uint32_t default_action) {
  if (table >= tables.size()) {
    tables.resize(table + 1);
    tables[table].default_action = default_action;
  }
  Table& common = tables[table];
  common.has_entries = common.has_entries || has_entries;
  if (common.default_action != default_action) common.default_action = ActionData::kNoAction;
}

void CommonContents::add_action(const ActionData& action) {
  if (action.action == ActionData::kNoAction) return;
  if (action.action >= actions.size()) actions.resize(action.action + 1);
  Action& common = actions[action.action];
  const uint8_t* data = action.bytes();
  if (!common.used) {
    common.used = true;
    common.data.assign(data, data + action.size_bytes);
    common.fixed.assign(action.size_bytes, 0xff);
    return;
  }
  const size_t shared_bytes = std::min<size_t>(common.data.size(), action.size_bytes);
  common.data.resize(shared_bytes);
  common.fixed.resize(shared_bytes);
  for (size_t i = 0; i < shared_bytes; ++i)
    if (common.data[i] != data[i]) common.fixed[i] = 0;
}

bool CommonContents::allows_action(uint32_t number, std::span<const uint8_t> data) const {
  if (number == ActionData::kNoAction) return true;
  if (number >= actions.size() || !actions[number].used) return false;
  const Action& common = actions[number];
  for (size_t i = 0; i < common.fixed.size(); ++i)
    if (common.fixed[i] != 0 && (i >= data.size() || common.data[i] != data[i])) return false;
  return true;
}

}  // namespace weft
