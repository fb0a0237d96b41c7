// The memory of a client process, as its NIC reads and writes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "hosts/foreign_memory.hpp"

namespace weft::verbs {

// Reads and writes through /proc/PID/mem, opened when the client came: unlike a process identifier, the
// descriptor never means another process.
class ClientProcess {
 public:
  // Takes the descriptor.
  explicit ClientProcess(int memory_descriptor) : descriptor_(memory_descriptor) {}
  ~ClientProcess();
  ClientProcess(const ClientProcess&) = delete;
  ClientProcess& operator=(const ClientProcess&) = delete;

  // False where not all of it is mapped, or the process has gone.
  bool read(uint64_t address, uint8_t* to, size_t bytes) const;
  bool write(uint64_t address, const uint8_t* from, size_t bytes) const;

 private:
  int descriptor_;
};

// Some of it, of one piece or several.
class ClientRange final : public ForeignMemory {
 public:
  struct Part {
    uint64_t address;
    uint64_t length_bytes;
  };
  ClientRange(std::shared_ptr<const ClientProcess> process, std::vector<Part> parts)
      : process_(std::move(process)), parts_(std::move(parts)) {}

  bool read(uint64_t offset_bytes, uint8_t* to, size_t bytes) override;
  bool write(uint64_t offset_bytes, const uint8_t* from, size_t bytes) override;

 private:
  template <class Access>
  bool for_parts(uint64_t offset_bytes, size_t bytes, Access&& access) const;

  std::shared_ptr<const ClientProcess> process_;
  std::vector<Part> parts_;
};

}  // namespace weft::verbs
