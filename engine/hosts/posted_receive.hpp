// A receive that has been posted: where an incoming message goes.
#pragma once

#include <algorithm>
#include <cstddef>
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

  // Puts what has arrived where it belongs. Returns false if foreign memory is not there.
  bool store(uint64_t offset_bytes, const uint8_t* from, size_t bytes) const {
    if (data != nullptr)
      std::copy_n(from, bytes, data + offset_bytes);
    else if (foreign != nullptr && bytes > 0)
      return foreign->write(offset_bytes, from, bytes);
    return true;
  }
};

}  // namespace weft
