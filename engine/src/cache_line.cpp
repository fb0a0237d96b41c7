#include "cache_line.hpp"

#include <memory_resource>
#include <mutex>

#include "huge_page_regions.hpp"

namespace weft {

namespace {

constexpr size_t kMostPooledBytes = 16 * 1024;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kPooled = false;  // so that AddressSanitizer sees what is used after its end
#else
constexpr bool kPooled = true;
#endif

class Upstream final : public std::pmr::memory_resource {
  void* do_allocate(size_t bytes, size_t alignment) override { return regions_.take(bytes, alignment); }
  void do_deallocate(void* /*memory*/, size_t /*bytes*/, size_t /*alignment*/) override {}
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  HugePageRegions regions_;
};

struct Pools {
  std::mutex mutex;
  Upstream upstream;
  std::pmr::unsynchronized_pool_resource memory{
      {.max_blocks_per_chunk = 256, .largest_required_pool_block = kMostPooledBytes}, &upstream};
};

// Never destroyed: what lies there may outlive all static objects.
Pools& pools() {
  static auto& made = *new Pools();
  return made;
}

constexpr size_t whole_lines(size_t bytes) {
  return (bytes + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
}

}  // namespace

void* take_cache_lines(size_t bytes) {
  if (!kPooled || bytes > kMostPooledBytes)
    return ::operator new(whole_lines(bytes), std::align_val_t{kCacheLineBytes});
  const std::lock_guard lock(pools().mutex);
  return pools().memory.allocate(whole_lines(bytes), kCacheLineBytes);
}

void give_back_cache_lines(void* memory, size_t bytes) noexcept {
  if (!kPooled || bytes > kMostPooledBytes) {
    ::operator delete(memory, std::align_val_t{kCacheLineBytes});
    return;
  }
  const std::lock_guard lock(pools().mutex);
  pools().memory.deallocate(memory, whole_lines(bytes), kCacheLineBytes);
}

}  // namespace weft
