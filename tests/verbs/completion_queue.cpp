// A provider's completion queue without a device: the far end of its ring is the caller's.
#include <cerrno>
#include <cstdlib>

#include "objects.hpp"

const weft::verbs::VirtualTimeCalls* weft::verbs::virtual_time = nullptr;

namespace {

using namespace weft::verbs;

Context context;
CompletionQueue queue;

}  // namespace

extern "C" {

void make_queue(uint32_t size) {
  std::free(queue.memory.data);
  queue = CompletionQueue{};
  queue.cq.context = &context.verbs.context;
  queue.memory.data = static_cast<unsigned char*>(
      std::calloc(1, sizeof(CompletionCounters) + size * sizeof(CompletionEntry)));
  queue.size = size;
  pthread_spin_init(&queue.lock, PTHREAD_PROCESS_PRIVATE);
  extend(queue.extended, 0);
}

// Whether the ring had room, as a NIC sees it.
int complete(uint32_t queue_pair, uint64_t work_id) {
  CompletionCounters& counters = queue.counters();
  const uint32_t produced = counters.produced.load();
  if (produced - counters.consumed.load() >= queue.size) return 0;
  CompletionEntry& entry = queue.entries()[produced & (queue.size - 1)];
  entry = CompletionEntry{};
  entry.queue_pair = queue_pair;
  entry.work_id = work_id;
  counters.produced.store(produced + 1);
  return 1;
}

void forget_queue_pair(uint32_t queue_pair) { forget(queue, queue_pair); }

// -1: there is none.
int64_t polled() {
  ibv_wc completion;
  return poll_cq(&queue.cq, 1, &completion) == 1 ? static_cast<int64_t>(completion.wr_id) : -1;
}

// The same by the extended interface.
int64_t polled_extended() {
  ibv_poll_cq_attr attributes{};
  if (ibv_start_poll(&queue.extended, &attributes) != 0) return -1;
  const auto work_id = static_cast<int64_t>(queue.extended.wr_id);
  ibv_end_poll(&queue.extended);
  return work_id;
}
}
