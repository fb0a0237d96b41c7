// What is made and destroyed: domains, memory, queues, queue pairs, address handles.
#include "objects.hpp"

#include <endian.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace weft::verbs {
namespace {

// All objects begin as zeros: none has a constructor that does anything.
template <class Object>
Object* allocated() {
  auto* made = static_cast<Object*>(std::calloc(1, sizeof(Object)));
  if (made == nullptr) errno = ENOMEM;
  return made;
}

template <class Result, class Object>
Result* failed(Object* object, int error) {
  std::free(object);
  errno = error;
  return nullptr;
}

void wait_for_events(pthread_mutex_t& mutex, pthread_cond_t& cond, const uint32_t& completed, uint64_t sent) {
  pthread_mutex_lock(&mutex);
  while (completed != sent) pthread_cond_wait(&cond, &mutex);
  pthread_mutex_unlock(&mutex);
}

// A GID's halves as numbers.
struct Gid {
  uint64_t high;
  uint64_t low;
};
Gid halves(const ibv_gid& gid) {
  return {be64toh(gid.global.subnet_prefix), be64toh(gid.global.interface_id)};
}

template <class Fields>
void set_address(Fields& fields, const ibv_ah_attr& address) {
  const Gid gid = halves(address.grh.dgid);
  fields.is_global = address.is_global;
  fields.gid_high = gid.high;
  fields.gid_low = gid.low;
  fields.flow_label =
      address.grh.flow_label & 0xFFFFF;  // programs leave the others as they are; so does Linux
  fields.gid_index = address.grh.sgid_index;
  fields.hop_limit = address.grh.hop_limit;
  fields.traffic_class = address.grh.traffic_class;
  fields.address_port = address.port_num;
}

template <class Fields>
void get_address(const Fields& fields, ibv_ah_attr& address) {
  address = ibv_ah_attr{};
  address.is_global = static_cast<uint8_t>(fields.is_global);
  address.grh.dgid.global.subnet_prefix = htobe64(fields.gid_high);
  address.grh.dgid.global.interface_id = htobe64(fields.gid_low);
  address.grh.flow_label = static_cast<uint32_t>(fields.flow_label);
  address.grh.sgid_index = static_cast<uint8_t>(fields.gid_index);
  address.grh.hop_limit = static_cast<uint8_t>(fields.hop_limit);
  address.grh.traffic_class = static_cast<uint8_t>(fields.traffic_class);
  address.port_num = static_cast<uint8_t>(fields.address_port);
}

bool enter(Context& context, QueuePair& queue_pair) {
  const uint32_t number = queue_pair.verbs.qp.qp_num;
  pthread_mutex_lock(&context.mutex);
  QueuePair**& leaf = context.queue_pairs[number >> 12 & 0xFFF];
  if (leaf == nullptr) leaf = static_cast<QueuePair**>(std::calloc(4096, sizeof(QueuePair*)));
  if (leaf != nullptr) leaf[number & 0xFFF] = &queue_pair;
  pthread_mutex_unlock(&context.mutex);
  return leaf != nullptr;
}

void leave(Context& context, QueuePair& queue_pair) {
  const uint32_t number = queue_pair.verbs.qp.qp_num;
  pthread_mutex_lock(&context.mutex);
  context.queue_pairs[number >> 12 & 0xFFF][number & 0xFFF] = nullptr;
  pthread_mutex_unlock(&context.mutex);
}

}  // namespace

ibv_pd* alloc_pd(ibv_context* base) {
  auto* domain = allocated<Domain>();
  if (domain == nullptr) return nullptr;
  request::create_domain::Answer answer{};
  if (const int error = context_of(base).connection.ask<request::create_domain>({}, answer); error != 0)
    return failed<ibv_pd>(domain, error);
  domain->pd.handle = static_cast<uint32_t>(answer.domain);
  return &domain->pd;
}

int dealloc_pd(ibv_pd* pd) {
  request::destroy_domain::Answer answer{};
  const int error = context_of(pd->context).connection.ask<request::destroy_domain>({pd->handle}, answer);
  if (error == 0) std::free(pd);
  return error;
}

ibv_mr* reg_mr(ibv_pd* pd, void* address, size_t length, uint64_t virtual_address, int access) {
  constexpr int known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                        IBV_ACCESS_REMOTE_ATOMIC | static_cast<int>(IBV_ACCESS_OPTIONAL_RANGE);
  auto* region = allocated<verbs_mr>();
  if (region == nullptr) return nullptr;
  if ((access & ~known) != 0) return failed<ibv_mr>(region, EOPNOTSUPP);
  request::register_memory::Answer answer{};
  const int error =
      context_of(pd->context)
          .connection.ask<request::register_memory>({pd->handle, reinterpret_cast<uint64_t>(address), length,
                                                     virtual_address, static_cast<uint64_t>(access)},
                                                    answer);
  if (error != 0) return failed<ibv_mr>(region, error);
  region->access = access;
  region->ibv_mr.handle = region->ibv_mr.lkey = region->ibv_mr.rkey = static_cast<uint32_t>(answer.key);
  return &region->ibv_mr;
}

int rereg_mr(verbs_mr* region, int flags, ibv_pd* pd, void* address, size_t length, int access) {
  ibv_mr& mr = region->ibv_mr;
  request::register_again::Answer answer{};
  const int error = context_of(mr.context)
                        .connection.ask<request::register_again>(
                            {mr.handle, static_cast<uint64_t>(flags), pd == nullptr ? 0 : pd->handle,
                             reinterpret_cast<uint64_t>(address), length, static_cast<uint64_t>(access)},
                            answer);
  if (error == 0) mr.handle = mr.lkey = mr.rkey = static_cast<uint32_t>(answer.new_key);
  return error;
}

int dereg_mr(verbs_mr* region) {
  ibv_mr& mr = region->ibv_mr;
  request::deregister_memory::Answer answer{};
  const int error = context_of(mr.context).connection.ask<request::deregister_memory>({mr.handle}, answer);
  if (error == 0) std::free(region);
  return error;
}

namespace {

ibv_cq_ex* make_cq(ibv_context* base, uint64_t entries, ibv_comp_channel* channel) {
  auto* queue = allocated<CompletionQueue>();
  if (queue == nullptr) return nullptr;
  uint64_t channel_number = 0;
  if (channel != nullptr) {
    struct stat facts{};
    if (fstat(channel->fd, &facts) != 0) return failed<ibv_cq_ex>(queue, errno);
    channel_number = facts.st_ino;
  }
  request::create_completion_queue::Answer answer{};
  int descriptors[kMaxDescriptors] = {-1, -1, -1};
  int error = context_of(base).connection.ask<request::create_completion_queue>(
      {entries, channel_number, reinterpret_cast<uint64_t>(queue)}, answer, descriptors);
  if (error == 0) error = queue->memory.map(descriptors[0]);
  if (error != 0) return failed<ibv_cq_ex>(queue, error);
  pthread_spin_init(&queue->lock, PTHREAD_PROCESS_PRIVATE);
  queue->size = static_cast<uint32_t>(answer.actual_entries);
  queue->cq.cqe = static_cast<int>(answer.actual_entries);
  queue->cq.handle = static_cast<uint32_t>(answer.queue);
  return &queue->extended;
}

}  // namespace

ibv_cq* create_cq(ibv_context* base, int entries, ibv_comp_channel* channel, int vector) {
  if (entries <= 0 || vector < 0 || vector >= base->num_comp_vectors) {
    errno = EINVAL;
    return nullptr;
  }
  return reinterpret_cast<ibv_cq*>(make_cq(base, static_cast<uint64_t>(entries), channel));
}

ibv_cq_ex* create_cq_ex(ibv_context* base, ibv_cq_init_attr_ex* attributes) {
  constexpr uint64_t known = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM |
                             IBV_WC_EX_WITH_SRC_QP | IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL |
                             IBV_WC_EX_WITH_DLID_PATH_BITS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
  if ((attributes->wc_flags & ~known) != 0) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  const bool flags_known =
      (attributes->comp_mask & ~static_cast<uint32_t>(IBV_CQ_INIT_ATTR_MASK_FLAGS)) == 0 &&
      ((attributes->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) == 0 ||
       (attributes->flags & ~static_cast<uint32_t>(IBV_CREATE_CQ_ATTR_SINGLE_THREADED)) == 0);
  if (!flags_known || attributes->cqe == 0 ||
      attributes->comp_vector >= static_cast<uint32_t>(base->num_comp_vectors)) {
    errno = flags_known ? EINVAL : EOPNOTSUPP;
    return nullptr;
  }
  ibv_cq_ex* queue = make_cq(base, attributes->cqe, attributes->channel);
  if (queue != nullptr) extend(*queue, attributes->wc_flags);
  return queue;
}

int resize_cq(ibv_cq* cq, int entries) {
  auto& queue = object_of<CompletionQueue>(cq);
  if (entries <= 0) return EINVAL;
  pthread_spin_lock(&queue.lock);
  request::resize_completion_queue::Answer answer{};
  int descriptors[kMaxDescriptors] = {-1, -1, -1};
  int error = context_of(cq->context)
                  .connection.ask<request::resize_completion_queue>(
                      {cq->handle, static_cast<uint64_t>(entries)}, answer, descriptors);
  Mapping resized;
  if (error == 0) error = resized.map(descriptors[0]);
  if (error == 0) {
    queue.memory.unmap();
    queue.memory = resized;
    queue.size = static_cast<uint32_t>(answer.actual_entries);
    cq->cqe = static_cast<int>(answer.actual_entries);
  }
  pthread_spin_unlock(&queue.lock);
  return error;
}

int destroy_cq(ibv_cq* cq) {
  auto& queue = object_of<CompletionQueue>(cq);
  request::destroy_completion_queue::Answer answer{};
  const int error =
      context_of(cq->context).connection.ask<request::destroy_completion_queue>({cq->handle}, answer);
  if (error != 0) return error;
  wait_for_events(cq->mutex, cq->cond, cq->comp_events_completed, answer.completion_events);
  wait_for_events(cq->mutex, cq->cond, cq->async_events_completed, answer.asynchronous_events);
  queue.memory.unmap();
  pthread_spin_destroy(&queue.lock);
  std::free(&queue);
  return 0;
}

namespace {

// `type`: as the NIC has it.
QueuePair* make_qp(ibv_context* base, ibv_pd* pd, ibv_qp_init_attr& attributes, uint32_t create_flags,
                   uint64_t type) {
  auto* made = allocated<QueuePair>();
  if (made == nullptr) return nullptr;
  if (attributes.send_cq == nullptr || attributes.recv_cq == nullptr) return failed<QueuePair>(made, EINVAL);
  Context& context = context_of(base);
  ibv_qp_cap& cap = attributes.cap;
  if (attributes.srq != nullptr) cap.max_recv_wr = cap.max_recv_sge = 0;
  request::create_queue_pair::Answer answer{};
  int descriptors[kMaxDescriptors] = {-1, -1, -1};
  int error = context.connection.ask<request::create_queue_pair>(
      {pd->handle, type, attributes.send_cq->handle, attributes.recv_cq->handle,
       attributes.srq == nullptr ? 0 : attributes.srq->handle, cap.max_send_wr, cap.max_recv_wr,
       cap.max_send_sge, cap.max_recv_sge, cap.max_inline_data,
       static_cast<uint64_t>(attributes.sq_sig_all != 0), create_flags, reinterpret_cast<uint64_t>(made)},
      answer, descriptors);
  if (error == 0) error = made->memory.map(descriptors[0]);
  if (error != 0) return failed<QueuePair>(made, error);

  const auto sends = static_cast<uint32_t>(answer.actual_sends);
  const auto receives = static_cast<uint32_t>(answer.actual_receives);
  const auto entry_bytes = static_cast<uint32_t>(answer.send_entry_bytes);
  pthread_spin_init(&made->sends.lock, PTHREAD_PROCESS_PRIVATE);
  pthread_spin_init(&made->receives.lock, PTHREAD_PROCESS_PRIVATE);
  made->sends.place(made->memory.data, sends, entry_bytes);
  made->receives.place(made->memory.data + sizeof(WorkCounters) + static_cast<size_t>(sends) * entry_bytes,
                       receives, receive_entry_bytes(cap.max_recv_sge));
  made->sends.number = 2 * (static_cast<uint32_t>(answer.queue_pair) - 1);
  made->receives.number = made->sends.number + 1;
  made->sends.limit = cap.max_send_wr;
  made->receives.limit = cap.max_recv_wr;
  made->sends.max_pieces = made->max_send_pieces = cap.max_send_sge;
  made->receives.max_pieces = cap.max_recv_sge;
  made->max_inline_bytes = cap.max_inline_data;
  made->signals_all = attributes.sq_sig_all != 0;
  made->shared = attributes.srq == nullptr ? nullptr : &object_of<SharedQueue>(attributes.srq);

  ibv_qp& qp = made->verbs.qp;
  qp.context = base;
  qp.qp_context = attributes.qp_context;
  qp.pd = pd;
  qp.send_cq = attributes.send_cq;
  qp.recv_cq = attributes.recv_cq;
  qp.srq = attributes.srq;
  qp.qp_type = attributes.qp_type;
  qp.state = IBV_QPS_RESET;
  qp.handle = static_cast<uint32_t>(answer.queue_pair);
  qp.qp_num = static_cast<uint32_t>(answer.number);
  pthread_mutex_init(&qp.mutex, nullptr);
  pthread_cond_init(&qp.cond, nullptr);
  if (!enter(context, *made)) {
    destroy_qp(&qp);
    errno = ENOMEM;
    return nullptr;
  }
  return made;
}

}  // namespace

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) {
  QueuePair* made = make_qp(pd->context, pd, *attributes, 0, static_cast<uint64_t>(attributes->qp_type));
  return made == nullptr ? nullptr : &made->verbs.qp;
}

ibv_qp* create_mrc_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) {
  attributes->qp_type = IBV_QPT_DRIVER;
  QueuePair* made = make_qp(pd->context, pd, *attributes, 0, kMrcType);
  return made == nullptr ? nullptr : &made->verbs.qp;
}

ibv_qp* create_qp_ex(ibv_context* base, ibv_qp_init_attr_ex* attributes) {
  constexpr uint32_t known =
      IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_CREATE_FLAGS;
  constexpr uint64_t known_operations = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                        IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                                        IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                        IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
  const bool extended = (attributes->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  if ((attributes->comp_mask & ~known) != 0 ||
      (extended && (attributes->send_ops_flags & ~known_operations) != 0)) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  if ((attributes->comp_mask & IBV_QP_INIT_ATTR_PD) == 0) {
    errno = EINVAL;
    return nullptr;
  }
  ibv_qp_init_attr basic{.qp_context = attributes->qp_context,
                         .send_cq = attributes->send_cq,
                         .recv_cq = attributes->recv_cq,
                         .srq = attributes->srq,
                         .cap = attributes->cap,
                         .qp_type = attributes->qp_type,
                         .sq_sig_all = attributes->sq_sig_all};
  QueuePair* made =
      make_qp(base, attributes->pd, basic,
              (attributes->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 ? attributes->create_flags : 0,
              static_cast<uint64_t>(attributes->qp_type));
  if (made == nullptr) return nullptr;
  attributes->cap = basic.cap;
  if (extended) {
    extend(made->verbs.qp_ex);
    made->verbs.comp_mask |= kQueuePairExtended;
  }
  return &made->verbs.qp;
}

int modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  return modify_mrc_qp(qp, attributes, mask, {});
}

int modify_mrc_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask, const MrcFields& own) {
  auto& queue_pair = object_of<QueuePair>(qp);
  constexpr int refused = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE | IBV_QP_CAP | IBV_QP_RATE_LIMIT;
  if ((mask & refused & ~IBV_QP_PATH_MIG_STATE) != 0) return EOPNOTSUPP;
  request::modify_queue_pair::Question asked{};
  asked.queue_pair = qp->handle;
  asked.mask = static_cast<uint64_t>(mask);
  asked.state = static_cast<uint64_t>((mask & IBV_QP_STATE) != 0 ? attributes->qp_state : qp->state);
  asked.path_mtu = static_cast<uint64_t>(attributes->path_mtu);
  asked.qkey = attributes->qkey;
  asked.receive_psn = attributes->rq_psn;
  asked.send_psn = attributes->sq_psn;
  asked.remote_number = attributes->dest_qp_num;
  asked.access = attributes->qp_access_flags;
  asked.max_reads_sent = attributes->max_rd_atomic;
  asked.max_reads_answered = attributes->max_dest_rd_atomic;
  asked.rnr_timer = attributes->min_rnr_timer;
  asked.port = attributes->port_num;
  asked.timeout = attributes->timeout;
  asked.retry_count = attributes->retry_cnt;
  asked.rnr_retry = attributes->rnr_retry;
  asked.tells_drained = attributes->en_sqd_async_notify;
  set_address(asked, attributes->ah_attr);
  static_assert(offsetof(request::modify_queue_pair::Question, mrc_mask) == sizeof asked - sizeof own);
  std::memcpy(reinterpret_cast<char*>(&asked) + sizeof asked - sizeof own, &own, sizeof own);
  request::modify_queue_pair::Answer answer{};
  const int error = context_of(qp->context).connection.ask<request::modify_queue_pair>(asked, answer);
  if (error != 0) return error;
  if ((mask & IBV_QP_STATE) != 0 && attributes->qp_state == IBV_QPS_RESET) {
    forget(object_of<CompletionQueue>(qp->send_cq), qp->qp_num);
    if (qp->recv_cq != qp->send_cq) forget(object_of<CompletionQueue>(qp->recv_cq), qp->qp_num);
    queue_pair.sends.freed.store(queue_pair.sends.posted);
    queue_pair.receives.freed.store(queue_pair.receives.posted);
  }
  if ((mask & IBV_QP_STATE) != 0) qp->state = attributes->qp_state;
  return 0;
}

int query_qp(ibv_qp* qp, ibv_qp_attr* attributes, int /*mask*/, ibv_qp_init_attr* initial) {
  MrcFields own;
  return query_mrc_qp(qp, attributes, initial, own);
}

int query_mrc_qp(ibv_qp* qp, ibv_qp_attr* attributes, ibv_qp_init_attr* initial, MrcFields& own) {
  const auto& queue_pair = object_of<QueuePair>(qp);
  request::query_queue_pair::Answer answer{};
  if (const int error =
          context_of(qp->context).connection.ask<request::query_queue_pair>({qp->handle}, answer);
      error != 0)
    return error;
  *attributes = ibv_qp_attr{};
  attributes->qp_state = attributes->cur_qp_state = static_cast<ibv_qp_state>(answer.state);
  attributes->path_mtu = static_cast<ibv_mtu>(answer.path_mtu);
  attributes->path_mig_state = IBV_MIG_MIGRATED;
  attributes->qkey = static_cast<uint32_t>(answer.qkey);
  attributes->rq_psn = static_cast<uint32_t>(answer.receive_psn);
  attributes->sq_psn = static_cast<uint32_t>(answer.send_psn);
  attributes->dest_qp_num = static_cast<uint32_t>(answer.remote_number);
  attributes->qp_access_flags = static_cast<unsigned>(answer.access);
  attributes->sq_draining = static_cast<uint8_t>(answer.is_draining);
  attributes->max_rd_atomic = static_cast<uint8_t>(answer.max_reads_sent);
  attributes->max_dest_rd_atomic = static_cast<uint8_t>(answer.max_reads_answered);
  attributes->min_rnr_timer = static_cast<uint8_t>(answer.rnr_timer);
  attributes->port_num = static_cast<uint8_t>(answer.port);
  attributes->timeout = static_cast<uint8_t>(answer.timeout);
  attributes->retry_cnt = static_cast<uint8_t>(answer.retry_count);
  attributes->rnr_retry = static_cast<uint8_t>(answer.rnr_retry);
  get_address(answer, attributes->ah_attr);
  constexpr size_t own_bytes = sizeof own - offsetof(MrcFields, max_wimm);
  static_assert(offsetof(request::query_queue_pair::Answer, max_wimm) == sizeof answer - own_bytes);
  std::memcpy(reinterpret_cast<char*>(&own) + sizeof own - own_bytes,
              reinterpret_cast<char*>(&answer) + sizeof answer - own_bytes, own_bytes);
  attributes->cap = {.max_send_wr = queue_pair.sends.limit,
                     .max_recv_wr = queue_pair.receives.limit,
                     .max_send_sge = queue_pair.max_send_pieces,
                     .max_recv_sge = queue_pair.receives.max_pieces,
                     .max_inline_data = queue_pair.max_inline_bytes};
  *initial = ibv_qp_init_attr{.qp_context = qp->qp_context,
                              .send_cq = qp->send_cq,
                              .recv_cq = qp->recv_cq,
                              .srq = qp->srq,
                              .cap = attributes->cap,
                              .qp_type = qp->qp_type,
                              .sq_sig_all = queue_pair.signals_all};
  qp->state = attributes->qp_state;
  return 0;
}

int destroy_qp(ibv_qp* qp) {
  auto& queue_pair = object_of<QueuePair>(qp);
  Context& context = context_of(qp->context);
  request::destroy_queue_pair::Answer answer{};
  if (const int error = context.connection.ask<request::destroy_queue_pair>({qp->handle}, answer); error != 0)
    return error;
  forget(object_of<CompletionQueue>(qp->send_cq), qp->qp_num);
  if (qp->recv_cq != qp->send_cq) forget(object_of<CompletionQueue>(qp->recv_cq), qp->qp_num);
  leave(context, queue_pair);
  wait_for_events(qp->mutex, qp->cond, qp->events_completed, answer.asynchronous_events);
  queue_pair.memory.unmap();
  pthread_spin_destroy(&queue_pair.sends.lock);
  pthread_spin_destroy(&queue_pair.receives.lock);
  std::free(&queue_pair);
  return 0;
}

ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* initial) {
  auto* made = allocated<SharedQueue>();
  if (made == nullptr) return nullptr;
  ibv_srq_attr& size = initial->attr;
  request::create_shared_queue::Answer answer{};
  int descriptors[kMaxDescriptors] = {-1, -1, -1};
  int error = context_of(pd->context)
                  .connection.ask<request::create_shared_queue>(
                      {pd->handle, size.max_wr, size.max_sge, 0, reinterpret_cast<uint64_t>(made)}, answer,
                      descriptors);
  if (error == 0) error = made->memory.map(descriptors[0]);
  if (error != 0) return failed<ibv_srq>(made, error);
  pthread_spin_init(&made->receives.lock, PTHREAD_PROCESS_PRIVATE);
  made->receives.place(made->memory.data, static_cast<uint32_t>(answer.actual_requests),
                       receive_entry_bytes(static_cast<uint32_t>(answer.actual_pieces)));
  made->receives.limit = size.max_wr;
  made->receives.max_pieces = static_cast<uint32_t>(answer.actual_pieces);
  made->receives.number = static_cast<uint32_t>(answer.ring);
  made->verbs.srq.handle = static_cast<uint32_t>(answer.queue);
  return &made->verbs.srq;
}

int modify_srq(ibv_srq* srq, ibv_srq_attr* attributes, int mask) {
  if ((mask & IBV_SRQ_MAX_WR) != 0) return EOPNOTSUPP;
  request::modify_shared_queue::Answer answer{};
  return context_of(srq->context)
      .connection.ask<request::modify_shared_queue>({srq->handle, attributes->srq_limit}, answer);
}

int query_srq(ibv_srq* srq, ibv_srq_attr* attributes) {
  const auto& queue = object_of<SharedQueue>(srq);
  request::query_shared_queue::Answer answer{};
  const int error =
      context_of(srq->context).connection.ask<request::query_shared_queue>({srq->handle}, answer);
  if (error != 0) return error;
  *attributes = {.max_wr = queue.receives.limit,
                 .max_sge = queue.receives.max_pieces,
                 .srq_limit = static_cast<uint32_t>(answer.limit)};
  return 0;
}

int destroy_srq(ibv_srq* srq) {
  auto& queue = object_of<SharedQueue>(srq);
  request::destroy_shared_queue::Answer answer{};
  const int error =
      context_of(srq->context).connection.ask<request::destroy_shared_queue>({srq->handle}, answer);
  if (error != 0) return error;
  wait_for_events(srq->mutex, srq->cond, srq->events_completed, answer.asynchronous_events);
  queue.memory.unmap();
  pthread_spin_destroy(&queue.receives.lock);
  std::free(&queue);
  return 0;
}

ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attributes) {
  auto* made = allocated<AddressHandle>();
  if (made == nullptr) return nullptr;
  request::create_address_handle::Question asked{};
  asked.domain = pd->handle;
  set_address(asked, *attributes);
  request::create_address_handle::Answer answer{};
  const int error = context_of(pd->context).connection.ask<request::create_address_handle>(asked, answer);
  if (error != 0) return failed<ibv_ah>(made, error);
  made->handle = static_cast<uint32_t>(answer.handle);
  return &made->ah;
}

int destroy_ah(ibv_ah* ah) {
  auto& handle = object_of<AddressHandle>(ah);
  request::destroy_address_handle::Answer answer{};
  const int error =
      context_of(ah->context).connection.ask<request::destroy_address_handle>({handle.handle}, answer);
  if (error == 0) std::free(&handle);
  return error;
}

int attach_mcast(ibv_qp* qp, const union ibv_gid* gid, uint16_t /*lid*/) {
  const Gid group = halves(*gid);
  request::attach_group::Answer answer{};
  return context_of(qp->context)
      .connection.ask<request::attach_group>({qp->handle, group.high, group.low}, answer);
}

int detach_mcast(ibv_qp* qp, const union ibv_gid* gid, uint16_t /*lid*/) {
  const Gid group = halves(*gid);
  request::detach_group::Answer answer{};
  return context_of(qp->context)
      .connection.ask<request::detach_group>({qp->handle, group.high, group.low}, answer);
}

}  // namespace weft::verbs
