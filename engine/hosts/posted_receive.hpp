// A place for one incoming SEND.
#pragma once

#include <cstdint>
#include <memory>

namespace weft {

struct PostedReceive {
  uint8_t* data = nullptr;  // null: the bytes are discarded
  uint64_t length_bytes = 0;
  uint64_t work_id = 0;
  std::shared_ptr<const void> owner;  // of the data
};

}  // namespace weft
