#include "verbs/client_memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "verbs/values.hpp"

namespace weft::verbs {
namespace {

// What system calls that may do a part leave to do; `call` is given the bytes done so far.
template <class Call>
bool whole(size_t bytes, Call&& call) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got = call(done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

// Addresses that lseek() cannot have are the kernel's.
bool is_of_users(uint64_t address, size_t bytes) {
  return address <= INT64_MAX && bytes <= INT64_MAX - address;
}

}  // namespace

ClientProcess::~ClientProcess() { close(descriptor_); }

bool ClientProcess::read(uint64_t address, uint8_t* to, size_t bytes) const {
  return is_of_users(address, bytes) && whole(bytes, [&](size_t done) {
           return pread(descriptor_, to + done, bytes - done, static_cast<off_t>(address + done));
         });
}

bool ClientProcess::write(uint64_t address, const uint8_t* from, size_t bytes) const {
  const bool is_whole =
      is_of_users(address, bytes) && whole(bytes, [&](size_t done) {
        return pwrite(descriptor_, from + done, bytes - done, static_cast<off_t>(address + done));
      });
  if (on_write != nullptr) on_write();
  return is_whole;
}

std::optional<uint64_t> ClientRegions::find(uint32_t domain, const Piece& piece, bool writes) const {
  const auto found = by_key.find(piece.key);
  if (found == by_key.end() || found->second.domain != domain) return std::nullopt;
  const Region& region = found->second;
  const uint64_t offset_bytes = piece.address - region.virtual_address;
  if (piece.address < region.virtual_address || offset_bytes > region.length_bytes ||
      piece.length_bytes > region.length_bytes - offset_bytes ||
      (writes && (region.access & kLocalWrite) == 0))
    return std::nullopt;
  return region.address + offset_bytes;
}

uint64_t ClientPieces::length_bytes() const {
  uint64_t bytes = 0;
  for (const Piece& piece : pieces_) bytes += piece.length_bytes;
  return bytes;
}

bool ClientPieces::are_registered() const {
  return std::ranges::all_of(pieces_, [&](const Piece& piece) {
    return piece.length_bytes == 0 || regions_->find(domain_, piece, writes_);
  });
}

template <class Access>
bool ClientPieces::for_parts(uint64_t offset_bytes, size_t bytes, Access&& access) const {
  size_t done = 0;
  for (const Piece& piece : pieces_) {
    if (done == bytes) break;
    if (offset_bytes >= piece.length_bytes) {
      offset_bytes -= piece.length_bytes;
      continue;
    }
    const std::optional<uint64_t> address = regions_->find(domain_, piece, writes_);
    const size_t count = std::min<uint64_t>(bytes - done, piece.length_bytes - offset_bytes);
    if (!address || !access(*address + offset_bytes, done, count)) return false;
    done += count;
    offset_bytes = 0;
  }
  return done == bytes;
}

bool ClientPieces::read(uint64_t offset_bytes, uint8_t* to, size_t bytes) {
  return for_parts(offset_bytes, bytes, [&](uint64_t address, size_t done, size_t count) {
    return process_->read(address, to + done, count);
  });
}

bool ClientPieces::write(uint64_t offset_bytes, const uint8_t* from, size_t bytes) {
  return for_parts(offset_bytes, bytes, [&](uint64_t address, size_t done, size_t count) {
    return process_->write(address, from + done, count);
  });
}

}  // namespace weft::verbs
