// Memory registered with a NIC, as Python holds it.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "hosts/nic.hpp"
#include "python/bindings_support.hpp"
#include "python/python_buffer.hpp"

namespace weft {

// Memory registered with a NIC: what peers may write to and read by rkey, and what is sent from.
class RegisteredMemory {
 public:
  RegisteredMemory(std::shared_ptr<Nic> nic, std::shared_ptr<PythonBuffer> buffer, uint64_t length_bytes,
                   uint64_t virtual_address, uint8_t access, bool writable)
      : nic_(std::move(nic)), buffer_(std::move(buffer)), length_bytes_(length_bytes), writable_(writable) {
    PythonGuard guard(nic_->engine());
    rkey_ = nic_->memory().add(virtual_address, data(), length_bytes, access, buffer_);
    virtual_address_ = virtual_address;
  }

  uint32_t rkey() const { return rkey_; }
  uint64_t virtual_address() const { return virtual_address_; }
  uint64_t length_bytes() const { return length_bytes_; }
  bool writable() const { return writable_; }
  uint8_t* data() const { return buffer_ == nullptr ? nullptr : buffer_->data(); }
  const std::shared_ptr<PythonBuffer>& buffer() const { return buffer_; }

  void deregister() {
    PythonGuard guard(nic_->engine());
    nic_->memory().remove(rkey_);
  }

  // Where [offset, +length) starts, null for a sink. Throws std::invalid_argument if it is not inside.
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
  std::shared_ptr<PythonBuffer> buffer_;  // null: a sink
  uint64_t length_bytes_;
  bool writable_;
  uint64_t virtual_address_ = 0;
  uint32_t rkey_ = 0;
};

}  // namespace weft
