#include "memory/cache_line.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <memory_resource>
#include <mutex>

#include "memory/huge_page_regions.hpp"

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

Pools& pools();

// A process that forks has no other thread's hold on the lock in its child.
Pools* make_pools() {
  pthread_atfork([] { pools().mutex.lock(); }, [] { pools().mutex.unlock(); },
                 [] { pools().mutex.unlock(); });
  return new Pools();
}

// Never destroyed: what lies there may outlive all static objects.
Pools& pools() {
  static Pools& made = *make_pools();
  return made;
}

constexpr size_t round_up(size_t bytes, size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// Memory of its own, in huge pages if it fills one.
std::align_val_t own_alignment(size_t bytes, size_t alignment) {
  return std::align_val_t{bytes < kHugePageBytes ? alignment : std::max(alignment, kHugePageBytes)};
}

void* take_own(size_t bytes, size_t alignment) {
  void* memory = ::operator new(round_up(bytes, alignment), own_alignment(bytes, alignment));
  // Advice only: without huge pages it is merely slower.
  if (bytes >= kHugePageBytes) madvise(memory, bytes, MADV_HUGEPAGE);
  return memory;
}

}  // namespace

void* take_cache_lines(size_t bytes, size_t alignment) {
  if (!kPooled || bytes > kMostPooledBytes) return take_own(bytes, alignment);
  const std::lock_guard lock(pools().mutex);
  return pools().memory.allocate(round_up(bytes, alignment), alignment);
}

void give_back_cache_lines(void* memory, size_t bytes, size_t alignment) noexcept {
  if (!kPooled || bytes > kMostPooledBytes) {
    ::operator delete(memory, own_alignment(bytes, alignment));
    return;
  }
  const std::lock_guard lock(pools().mutex);
  pools().memory.deallocate(memory, round_up(bytes, alignment), alignment);
}

}  // namespace weft
