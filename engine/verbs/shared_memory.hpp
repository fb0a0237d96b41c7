// Memory that the NIC's process shares with a client, which can neither shrink nor grow it.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <system_error>

namespace weft::verbs {

class SharedMemory {
 public:
  enum class Others : uint8_t { kReadAndWrite, kRead };

  // Zeros. Throws std::system_error.
  explicit SharedMemory(size_t size_bytes, Others others = Others::kReadAndWrite) : size_bytes_(size_bytes) {
    descriptor_ = memfd_create("weft-verbs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
    if (ftruncate(descriptor_, static_cast<off_t>(size_bytes)) != 0) fail("memfd");
    void* mapped = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    if (mapped == MAP_FAILED) fail("mmap");
    data_ = static_cast<uint8_t*>(mapped);
    // A client that shrank it would have this process killed at the next access.
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    if (fcntl(descriptor_, F_ADD_SEALS, others == Others::kRead ? seals | kSealFutureWrite : seals) != 0) {
      munmap(data_, size_bytes_);
      fail("memfd");
    }
  }
  ~SharedMemory() {
    munmap(data_, size_bytes_);
    close(descriptor_);
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  int descriptor() const { return descriptor_; }
  size_t size_bytes() const { return size_bytes_; }
  template <class T>
  T* at(size_t offset_bytes) const {
    return reinterpret_cast<T*>(data_ + offset_bytes);
  }

 private:
  static constexpr int kSealFutureWrite = 0x10;  // F_SEAL_FUTURE_WRITE, which C libraries may not declare

  [[noreturn]] void fail(const char* what) {
    const int error = errno;
    close(descriptor_);
    throw std::system_error(error, std::generic_category(), what);
  }

  size_t size_bytes_;
  int descriptor_ = -1;
  uint8_t* data_ = nullptr;
};

}  // namespace weft::verbs
