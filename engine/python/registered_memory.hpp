// Memory registered with a NIC, as Python holds it.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "hosts/foreign_memory.hpp"
#include "hosts/memory_region.hpp"
#include "hosts/nic.hpp"
#include "hosts/posted_receive.hpp"
#include "python/bindings_support.hpp"
#include "python/python_buffer.hpp"

namespace weft {

// A protection domain of a NIC's that Python has made.
struct MemoryDomain {
  explicit MemoryDomain(std::shared_ptr<Nic> nic_)
      : nic(std::move(nic_)), registry(MemoryRegistry::beside(nic->memory())) {}
  std::shared_ptr<Nic> nic;
  MemoryRegistry registry;
};

inline MemoryRegistry& registry_of(Nic& nic, const std::shared_ptr<MemoryDomain>& domain) {
  if (domain == nullptr) return nic.memory();
  if (domain->nic.get() != &nic) throw std::invalid_argument("the memory domain is another NIC's");
  return domain->registry;
}

// Memory registered with a NIC: what peers may write to and read by rkey, and what is sent from.
class RegisteredMemory {
 public:
  RegisteredMemory(std::shared_ptr<Nic> nic, std::shared_ptr<MemoryDomain> domain,
                   std::shared_ptr<PythonBuffer> buffer, std::shared_ptr<ForeignMemory> foreign,
                   uint64_t length_bytes, uint64_t virtual_address, uint8_t access, bool writable)
      : nic_(std::move(nic)),
        domain_(std::move(domain)),
        buffer_(std::move(buffer)),
        foreign_(std::move(foreign)),
        length_bytes_(length_bytes),
        writable_(writable),
        virtual_address_(virtual_address) {
    PythonGuard guard(nic_->engine());
    MemoryRegistry& registry = registry_of(*nic_, domain_);
    rkey_ = foreign_ != nullptr ? registry.add_foreign(virtual_address, foreign_, length_bytes, access)
                                : registry.add(virtual_address, data(), length_bytes, access, buffer_);
  }

  uint32_t rkey() const { return rkey_; }
  uint64_t virtual_address() const { return virtual_address_; }
  uint64_t length_bytes() const { return length_bytes_; }
  bool writable() const { return writable_; }
  uint8_t* data() const { return buffer_ == nullptr ? nullptr : buffer_->data(); }
  const std::shared_ptr<PythonBuffer>& buffer() const { return buffer_; }
  const std::shared_ptr<ForeignMemory>& foreign() const { return foreign_; }

  void deregister() {
    PythonGuard guard(nic_->engine());
    registry_of(*nic_, domain_).remove(rkey_);
  }

  // Where [offset, +length) starts, null for a sink or foreign memory. Throws std::invalid_argument if it is
  // not inside.
  uint8_t* range(uint64_t offset_bytes, uint64_t length_bytes) const {
    if (offset_bytes > length_bytes_ || length_bytes > length_bytes_ - offset_bytes) {
      throw std::invalid_argument("bytes " + std::to_string(offset_bytes) + " to " +
                                  std::to_string(offset_bytes + length_bytes) + " of a memory region of " +
                                  std::to_string(length_bytes_));
    }
    return data() == nullptr ? nullptr : data() + offset_bytes;
  }

 private:
  std::shared_ptr<Nic> nic_;
  std::shared_ptr<MemoryDomain> domain_;  // null: the NIC's first
  std::shared_ptr<PythonBuffer> buffer_;  // null, and no foreign memory either: a sink
  std::shared_ptr<ForeignMemory> foreign_;
  uint64_t length_bytes_;
  bool writable_;
  uint64_t virtual_address_;
  uint32_t rkey_ = 0;
};

// Source or target of a posted request; no memory stands for zeros, or for bytes to be discarded.
struct LocalRange {
  LocalRange(const RegisteredMemory* memory, uint64_t offset_bytes, uint64_t length_bytes) {
    if (memory == nullptr) return;
    data = memory->range(offset_bytes, length_bytes);
    owner = memory->buffer();
    if (memory->foreign() == nullptr) return;
    auto part = std::make_shared<ForeignRange>(memory->foreign(), offset_bytes);
    foreign = part.get();
    owner = std::move(part);
  }
  uint8_t* data = nullptr;
  std::shared_ptr<const void> owner;
  ForeignMemory* foreign = nullptr;
};

inline void require_writable(const RegisteredMemory* memory, const char* purpose) {
  if (memory == nullptr || memory->writable()) return;
  throw std::invalid_argument(std::string("the memory region of a ") + purpose +
                              " was registered without local_write");
}

// Throws std::invalid_argument for a range that is not inside, or memory that was registered as read-only.
inline PostedReceive receive_in(const RegisteredMemory* memory, uint64_t offset_bytes, uint64_t length_bytes,
                                uint64_t work_id) {
  require_writable(memory, "receive");
  LocalRange local(memory, offset_bytes, length_bytes);
  return {local.data, length_bytes, work_id, std::move(local.owner), local.foreign};
}

}  // namespace weft
