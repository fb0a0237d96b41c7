// The provider's objects, each around that of libibverbs.
#pragma once

#include <infiniband/verbs.h>
#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/mrc.hpp"
#include "common/virtual_time.hpp"
#include "connection.hpp"
#include "private_abi.hpp"
#include "verbs/protocol.hpp"

namespace weft::verbs {

struct Mapping {
  unsigned char* data = nullptr;
  size_t bytes = 0;

  // Maps all of it and closes the descriptor. Result: 0 or an errno.
  int map(int descriptor);
  void unmap();
};

struct QueuePair;

// Null outside of virtual time.
extern const VirtualTimeCalls* virtual_time;

struct Context {
  Connection connection;
  Mapping page;
  int doorbell;
  pthread_mutex_t mutex;
  // Queue pairs by number, in leaves of 4,096.
  QueuePair** queue_pairs[4096];
  request::query_device::Answer device;
  verbs_context verbs;

  DoorbellPage& bells() { return *reinterpret_cast<DoorbellPage*>(page.data); }
  void ring(uint32_t number);
  QueuePair* find(uint32_t number) {
    QueuePair** leaf = queue_pairs[number >> 12 & 0xFFF];
    return leaf == nullptr ? nullptr : leaf[number & 0xFFF];
  }
};

struct Domain {
  ibv_pd pd;
};

struct CompletionQueue {
  union {
    ibv_cq cq;
    ibv_cq_ex extended;
  };
  pthread_spinlock_t lock;
  Mapping memory;
  uint32_t size;
  uint32_t consumed;
  CompletionEntry current;  // of the extended interface

  CompletionCounters& counters() { return *reinterpret_cast<CompletionCounters*>(memory.data); }
  CompletionEntry* entries() {
    return reinterpret_cast<CompletionEntry*>(memory.data + sizeof(CompletionCounters));
  }
};

// A ring of work as its client fills it.
struct WorkRing {
  pthread_spinlock_t lock;
  WorkCounters* counters;
  unsigned char* entries;
  uint32_t size;
  uint32_t entry_bytes;
  uint32_t limit;  // requests that may be outstanding
  uint32_t max_pieces;
  uint32_t posted;
  std::atomic<uint32_t> freed;
  uint32_t number;  // of its bit in the doorbell page

  void place(unsigned char* at, uint32_t ring_size, uint32_t bytes_of_entry) {
    counters = reinterpret_cast<WorkCounters*>(at);
    entries = at + sizeof(WorkCounters);
    size = ring_size;
    entry_bytes = bytes_of_entry;
  }
  bool has_room(uint32_t next) const {
    return next - freed.load(std::memory_order_acquire) < limit &&
           next - counters->taken.load(std::memory_order_acquire) < size;
  }
  template <class Entry>
  Entry* entry(uint32_t at) const {
    return reinterpret_cast<Entry*>(entries + static_cast<size_t>(at & (size - 1)) * entry_bytes);
  }
  void publish(uint32_t until) {
    posted = until;
    counters->posted.store(until, std::memory_order_release);
  }
};

struct SharedQueue {
  verbs_srq verbs;
  Mapping memory;
  WorkRing receives;
};

struct QueuePair {
  verbs_qp verbs;
  Mapping memory;
  WorkRing sends;
  WorkRing receives;
  SharedQueue* shared;
  uint32_t max_inline_bytes;
  uint32_t max_send_pieces;
  bool signals_all;
  // Of the extended interface, between wr_start() and wr_complete().
  uint32_t next;
  SendEntry* building;
  int error;
};

struct AddressHandle {
  ibv_ah ah;
  uint32_t handle;
};

inline Context& context_of(ibv_context* context) {
  return *reinterpret_cast<Context*>(reinterpret_cast<char*>(context) - offsetof(Context, verbs) -
                                     offsetof(verbs_context, context));
}
template <class Object, class Handle>
Object& object_of(Handle* handle) {
  return *reinterpret_cast<Object*>(handle);
}

// Operations, in the order of libibverbs' table.
int query_device_ex(ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex*, size_t);
int query_port(ibv_context*, uint8_t port, ibv_port_attr*);
void free_context(ibv_context*);

ibv_pd* alloc_pd(ibv_context*);
int dealloc_pd(ibv_pd*);
ibv_mr* reg_mr(ibv_pd*, void* address, size_t length, uint64_t virtual_address, int access);
int rereg_mr(verbs_mr*, int flags, ibv_pd*, void* address, size_t length, int access);
int dereg_mr(verbs_mr*);
ibv_cq* create_cq(ibv_context*, int entries, ibv_comp_channel*, int vector);
ibv_cq_ex* create_cq_ex(ibv_context*, ibv_cq_init_attr_ex*);
int resize_cq(ibv_cq*, int entries);
int destroy_cq(ibv_cq*);
ibv_qp* create_qp(ibv_pd*, ibv_qp_init_attr*);
ibv_qp* create_qp_ex(ibv_context*, ibv_qp_init_attr_ex*);
int modify_qp(ibv_qp*, ibv_qp_attr*, int mask);
int query_qp(ibv_qp*, ibv_qp_attr*, int mask, ibv_qp_init_attr*);
int destroy_qp(ibv_qp*);
// Of MRC, for libmrc.
ibv_qp* create_mrc_qp(ibv_pd*, ibv_qp_init_attr*);
int modify_mrc_qp(ibv_qp*, ibv_qp_attr*, int mask, const MrcFields&);
int query_mrc_qp(ibv_qp*, ibv_qp_attr*, ibv_qp_init_attr*, MrcFields&);
ibv_srq* create_srq(ibv_pd*, ibv_srq_init_attr*);
int modify_srq(ibv_srq*, ibv_srq_attr*, int mask);
int query_srq(ibv_srq*, ibv_srq_attr*);
int destroy_srq(ibv_srq*);
ibv_ah* create_ah(ibv_pd*, ibv_ah_attr*);
int destroy_ah(ibv_ah*);
int attach_mcast(ibv_qp*, const union ibv_gid*, uint16_t lid);
int detach_mcast(ibv_qp*, const union ibv_gid*, uint16_t lid);

int post_send(ibv_qp*, ibv_send_wr*, ibv_send_wr** bad);
int post_recv(ibv_qp*, ibv_recv_wr*, ibv_recv_wr** bad);
int post_srq_recv(ibv_srq*, ibv_recv_wr*, ibv_recv_wr** bad);
// Fills in the functions of the extended interface.
void extend(ibv_qp_ex&);

int poll_cq(ibv_cq*, int entries, ibv_wc*);
int req_notify_cq(ibv_cq*, int solicited_only);
void cq_event(ibv_cq*);
void extend(ibv_cq_ex&, uint64_t wc_flags);
// What waits of a queue pair is not given to anybody any more.
void forget(CompletionQueue&, uint32_t queue_pair);

}  // namespace weft::verbs
