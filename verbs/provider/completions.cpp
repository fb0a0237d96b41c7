// Completions: polling, both interfaces, and arming for events.
#include <errno.h>

#include "objects.hpp"

namespace weft::verbs {
namespace {

constexpr uint32_t kForgotten = ~0u;  // a queue pair's number in an entry that nobody gets

bool is_empty(CompletionQueue& queue) {
  return queue.counters().produced.load(std::memory_order_acquire) == queue.consumed;
}

CompletionEntry& next_of(CompletionQueue& queue) {
  return queue.entries()[queue.consumed & (queue.size - 1)];
}

void pass_forgotten(CompletionQueue& queue) {
  while (!is_empty(queue) && next_of(queue).queue_pair == kForgotten) ++queue.consumed;
}

// Takes out the next one that is somebody's, and gives its ring the places back. False if there is none.
bool take(CompletionQueue& queue, CompletionEntry& entry) {
  pass_forgotten(queue);
  if (is_empty(queue)) return false;
  entry = next_of(queue);
  ++queue.consumed;
  QueuePair* queue_pair = context_of(queue.cq.context).find(entry.queue_pair);
  if (queue_pair != nullptr) {
    WorkRing& ring = entry.is_receive == 0           ? queue_pair->sends
                     : queue_pair->shared != nullptr ? queue_pair->shared->receives
                                                     : queue_pair->receives;
    ring.freed.fetch_add(entry.freed, std::memory_order_release);
  }
  return true;
}

// A program that polls in vain leaves the cache line alone that the NIC reads.
void publish(CompletionQueue& queue) {
  std::atomic<uint32_t>& consumed = queue.counters().consumed;
  if (consumed.load(std::memory_order_relaxed) != queue.consumed)
    consumed.store(queue.consumed, std::memory_order_release);
}

CompletionQueue& queue_of(ibv_cq_ex* cq) { return object_of<CompletionQueue>(cq); }

void load(ibv_cq_ex* cq) {
  cq->wr_id = queue_of(cq).current.work_id;
  cq->status = static_cast<ibv_wc_status>(queue_of(cq).current.status);
}

// A program that finds nothing in virtual time waits before it looks again.
void note_look(CompletionQueue& queue, bool found) {
  if (virtual_time == nullptr) return;
  if (found)
    virtual_time->did_something();
  else
    virtual_time->was_empty(&queue);
}

int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attributes) {
  if (attributes->comp_mask != 0) return EINVAL;
  CompletionQueue& queue = queue_of(cq);
  note_look(queue, !is_empty(queue));
  pthread_spin_lock(&queue.lock);
  if (take(queue, queue.current)) {
    load(cq);
    return 0;
  }
  publish(queue);  // entries that nobody gets have been passed, and end_poll() does not follow
  pthread_spin_unlock(&queue.lock);
  return ENOENT;
}

int next_poll(ibv_cq_ex* cq) {
  if (!take(queue_of(cq), queue_of(cq).current)) return ENOENT;
  load(cq);
  return 0;
}

void end_poll(ibv_cq_ex* cq) {
  publish(queue_of(cq));
  pthread_spin_unlock(&queue_of(cq).lock);
}

ibv_wc_opcode read_opcode(ibv_cq_ex* cq) { return static_cast<ibv_wc_opcode>(queue_of(cq).current.opcode); }
uint32_t read_vendor_err(ibv_cq_ex* cq) { return queue_of(cq).current.syndrome; }
uint32_t read_byte_len(ibv_cq_ex* cq) { return queue_of(cq).current.length_bytes; }
__be32 read_imm_data(ibv_cq_ex* cq) { return queue_of(cq).current.immediate; }
uint32_t read_qp_num(ibv_cq_ex* cq) { return queue_of(cq).current.queue_pair; }
uint32_t read_src_qp(ibv_cq_ex* cq) { return queue_of(cq).current.source_queue_pair; }
unsigned read_wc_flags(ibv_cq_ex* cq) { return queue_of(cq).current.flags; }
uint32_t read_slid(ibv_cq_ex* /*cq*/) { return 0; }
uint8_t read_sl(ibv_cq_ex* cq) { return static_cast<uint8_t>(queue_of(cq).current.service_level); }
uint8_t read_dlid_path_bits(ibv_cq_ex* /*cq*/) { return 0; }
// In periods of the clock that the device says it has, nanoseconds.
uint64_t read_completion_ts(ibv_cq_ex* cq) { return queue_of(cq).current.time_ps / 1000; }

}  // namespace

int poll_cq(ibv_cq* cq, int entries, ibv_wc* completions) {
  auto& queue = object_of<CompletionQueue>(cq);
  note_look(queue, !is_empty(queue));
  pthread_spin_lock(&queue.lock);
  int taken = 0;
  CompletionEntry entry;
  while (taken < entries && take(queue, entry)) {
    ibv_wc& done = completions[taken++];
    done.wr_id = entry.work_id;
    done.status = static_cast<ibv_wc_status>(entry.status);
    done.opcode = static_cast<ibv_wc_opcode>(entry.opcode);
    done.vendor_err = entry.syndrome;
    done.byte_len = entry.length_bytes;
    done.imm_data = entry.immediate;
    done.qp_num = entry.queue_pair;
    done.src_qp = entry.source_queue_pair;
    done.wc_flags = entry.flags;
    done.pkey_index = 0;
    done.slid = 0;
    done.sl = static_cast<uint8_t>(entry.service_level);
    done.dlid_path_bits = 0;
  }
  publish(queue);
  pthread_spin_unlock(&queue.lock);
  return taken;
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  auto& queue = object_of<CompletionQueue>(cq);
  pthread_spin_lock(&queue.lock);
  // A request for the next completion stays one, whatever comes after it.
  Armed none = Armed::kNo;
  if (solicited_only != 0)
    queue.counters().armed.compare_exchange_strong(none, Armed::kSolicited);
  else
    queue.counters().armed.store(Armed::kNext);
  pthread_spin_unlock(&queue.lock);
  return 0;
}

void cq_event(ibv_cq* /*cq*/) {}

void extend(ibv_cq_ex& cq, uint64_t wc_flags) {
  cq.start_poll = start_poll;
  cq.next_poll = next_poll;
  cq.end_poll = end_poll;
  cq.read_opcode = read_opcode;
  cq.read_vendor_err = read_vendor_err;
  cq.read_wc_flags = read_wc_flags;
  if ((wc_flags & IBV_WC_EX_WITH_BYTE_LEN) != 0) cq.read_byte_len = read_byte_len;
  if ((wc_flags & IBV_WC_EX_WITH_IMM) != 0) cq.read_imm_data = read_imm_data;
  if ((wc_flags & IBV_WC_EX_WITH_QP_NUM) != 0) cq.read_qp_num = read_qp_num;
  if ((wc_flags & IBV_WC_EX_WITH_SRC_QP) != 0) cq.read_src_qp = read_src_qp;
  if ((wc_flags & IBV_WC_EX_WITH_SLID) != 0) cq.read_slid = read_slid;
  if ((wc_flags & IBV_WC_EX_WITH_SL) != 0) cq.read_sl = read_sl;
  if ((wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS) != 0) cq.read_dlid_path_bits = read_dlid_path_bits;
  if ((wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP) != 0) cq.read_completion_ts = read_completion_ts;
}

void forget(CompletionQueue& queue, uint32_t queue_pair) {
  pthread_spin_lock(&queue.lock);
  const uint32_t produced = queue.counters().produced.load(std::memory_order_acquire);
  for (uint32_t number = queue.consumed; number != produced; ++number) {
    CompletionEntry& entry = queue.entries()[number & (queue.size - 1)];
    if (entry.queue_pair != queue_pair) continue;
    // Receives of a shared queue have been taken from it.
    QueuePair* owner = context_of(queue.cq.context).find(queue_pair);
    if (entry.is_receive != 0 && owner != nullptr && owner->shared != nullptr)
      owner->shared->receives.freed.fetch_add(entry.freed, std::memory_order_release);
    entry.queue_pair = kForgotten;
  }
  pass_forgotten(queue);
  publish(queue);
  pthread_spin_unlock(&queue.lock);
}

}  // namespace weft::verbs
