// Memory that the engine cannot point to: a client process's, maybe of several pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace weft {

// Packets read and write it piece by piece, as they are made or arrive. An atomic reads and then writes,
// which is one step for the engine's packets alone (IBV_ATOMIC_HCA): the process's own processors may come
// between.
class ForeignMemory {
 public:
  virtual ~ForeignMemory() = default;
  // `bytes` bytes, `offset_bytes` from its beginning. Both return false where nothing is mapped, or its
  // process has gone; how much has been read or written then is not said.
  virtual bool read(uint64_t offset_bytes, uint8_t* to, size_t bytes) = 0;
  virtual bool write(uint64_t offset_bytes, const uint8_t* from, size_t bytes) = 0;
};

// What of some memory begins `offset_bytes` after its beginning, for a request or a receive.
class ForeignRange final : public ForeignMemory {
 public:
  ForeignRange(std::shared_ptr<ForeignMemory> whole, uint64_t offset_bytes)
      : whole_(std::move(whole)), offset_bytes_(offset_bytes) {}
  bool read(uint64_t offset_bytes, uint8_t* to, size_t bytes) override {
    return whole_->read(offset_bytes_ + offset_bytes, to, bytes);
  }
  bool write(uint64_t offset_bytes, const uint8_t* from, size_t bytes) override {
    return whole_->write(offset_bytes_ + offset_bytes, from, bytes);
  }

 private:
  std::shared_ptr<ForeignMemory> whole_;
  uint64_t offset_bytes_;
};

// For transports that have no use for it: throws std::invalid_argument if there is some.
inline void refuse_foreign(const ForeignMemory* memory, const char* transport) {
  if (memory != nullptr)
    throw std::invalid_argument(std::string("a queue pair of ") + transport +
                                " takes no foreign memory (valid: RC, UC, UD and MRC)");
}

// Leaves the building of a packet whose payload cannot be read. As an exception it costs packets that are
// built nothing.
struct UnreadableMemory : std::exception {
  const char* what() const noexcept override { return "foreign memory is not there"; }
};

}  // namespace weft
