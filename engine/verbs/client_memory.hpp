// The memory of a client process, as its NIC reads and writes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hosts/foreign_memory.hpp"
#include "verbs/protocol.hpp"

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

  // Called after each write, unless it is null.
  std::function<void()> on_write;

 private:
  int descriptor_;
};

// A range of it.
class ClientRange final : public ForeignMemory {
 public:
  ClientRange(std::shared_ptr<const ClientProcess> process, uint64_t address)
      : process_(std::move(process)), address_(address) {}

  bool read(uint64_t offset_bytes, uint8_t* to, size_t bytes) override {
    return process_->read(address_ + offset_bytes, to, bytes);
  }
  bool write(uint64_t offset_bytes, const uint8_t* from, size_t bytes) override {
    return process_->write(address_ + offset_bytes, from, bytes);
  }

 private:
  std::shared_ptr<const ClientProcess> process_;
  uint64_t address_;
};

// What a client has registered, by key.
struct ClientRegions {
  struct Region {
    uint32_t domain = 0;
    uint64_t address = 0;
    uint64_t virtual_address = 0;
    uint64_t length_bytes = 0;
    uint32_t access = 0;
  };
  std::unordered_map<uint32_t, Region> by_key;

  // A piece's address in the client. Nothing, if it is not inside a region of the domain, or if that may not
  // be written to and `writes`.
  std::optional<uint64_t> find(uint32_t domain, const Piece& piece, bool writes) const;
};

// The pieces of a work request. Each is looked up whenever it is used, as adapters do: what the client has
// deregistered is not touched any more, although the request is still under way.
class ClientPieces final : public ForeignMemory {
 public:
  // `writes`: whether the request's data go there.
  ClientPieces(std::shared_ptr<const ClientProcess> process, std::shared_ptr<const ClientRegions> regions,
               uint32_t domain, const Piece* pieces, uint32_t count, bool writes)
      : process_(std::move(process)),
        regions_(std::move(regions)),
        domain_(domain),
        pieces_(pieces, pieces + count),
        writes_(writes) {}

  uint64_t length_bytes() const;
  bool are_registered() const;

  bool read(uint64_t offset_bytes, uint8_t* to, size_t bytes) override;
  bool write(uint64_t offset_bytes, const uint8_t* from, size_t bytes) override;

 private:
  template <class Access>
  bool for_parts(uint64_t offset_bytes, size_t bytes, Access&& access) const;

  std::shared_ptr<const ClientProcess> process_;
  std::shared_ptr<const ClientRegions> regions_;
  uint32_t domain_;
  std::vector<Piece> pieces_;
  bool writes_;
};

}  // namespace weft::verbs
