// A receive that has been posted: where an incoming message goes.
#pragma once

#include <cstdint>
#include <memory>

#include "hosts/foreign_memory.hpp"

namespace weft {

struct PostedReceive {
  uint8_t* data = nullptr;  // null: the bytes are discarded
  uint64_t length_bytes = 0;
  uint64_t work_id = 0;
  std::shared_ptr<const void> owner{};  // of data or foreign
  ForeignMemory* foreign = nullptr;     // in place of data, which is null
};

}  // namespace weft
