#include "memory/cache_line.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include "memory/huge_page_regions.hpp"

namespace weft {

namespace {

constexpr size_t kMostPooledBytes = 16 * 1024;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kPooled = false;  // so that AddressSanitizer sees what is used after its end
#else
constexpr bool kPooled = true;
#endif

// Blocks that have been given back, by size and alignment, and memory for new ones. A block is cut off by
// itself when it is wanted, so an object lies next to those made with it, which packets pass by with it.
class Pools {
 public:
  // bytes: a multiple of the alignment, kMostPooledBytes at most; alignment: one cache line, or kApartBytes.
  void* take(size_t bytes, size_t alignment) {
    const std::lock_guard lock(mutex);
    Block*& first = list_of(bytes, alignment);
    if (first == nullptr) return regions_.take(bytes, alignment);
    return std::exchange(first, first->next);
  }
  void give_back(void* memory, size_t bytes, size_t alignment) noexcept {
    const std::lock_guard lock(mutex);
    Block*& first = list_of(bytes, alignment);
    first = new (memory) Block{first};
  }

  std::mutex mutex;

 private:
  struct Block {
    Block* next;
  };
  using Lists = std::array<Block*, kMostPooledBytes / kCacheLineBytes + 1>;

  Block*& list_of(size_t bytes, size_t alignment) {
    return (alignment == kCacheLineBytes ? in_lines_ : apart_)[bytes / kCacheLineBytes];
  }

  HugePageRegions regions_;
  Lists in_lines_{};
  Lists apart_{};
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

bool is_pooled(size_t bytes, size_t alignment) {
  return kPooled && bytes <= kMostPooledBytes && alignment <= kApartBytes;
}

}  // namespace

void* take_cache_lines(size_t bytes, size_t alignment) {
  if (!is_pooled(bytes, alignment)) return take_own(bytes, alignment);
  return pools().take(round_up(std::max(bytes, alignment), alignment), alignment);
}

void give_back_cache_lines(void* memory, size_t bytes, size_t alignment) noexcept {
  if (!is_pooled(bytes, alignment)) {
    ::operator delete(memory, own_alignment(bytes, alignment));
    return;
  }
  pools().give_back(memory, round_up(std::max(bytes, alignment), alignment), alignment);
}

}  // namespace weft
