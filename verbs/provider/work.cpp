// Work requests: both interfaces for sends, and receives.
#include <cerrno>
#include <cstring>

#include "objects.hpp"

namespace weft::verbs {
namespace {

constexpr unsigned kKnownFlags = IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE;

Piece* pieces_of(SendEntry& entry) { return reinterpret_cast<Piece*>(&entry + 1); }
unsigned char* inline_data_of(SendEntry& entry) { return reinterpret_cast<unsigned char*>(&entry + 1); }

// Whether the type of queue pair has such requests (InfiniBand specification, table 59). MRC's,
// IBV_QPT_DRIVER to libibverbs, has WRITEs alone.
bool carries(ibv_qp_type type, ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
      return type != IBV_QPT_DRIVER;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return type != IBV_QPT_UD;
    case IBV_WR_RDMA_READ:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return type == IBV_QPT_RC;
    default:
      return false;
  }
}

bool may_send(const ibv_qp& qp) {
  return qp.state == IBV_QPS_RTS || qp.state == IBV_QPS_SQD || qp.state == IBV_QPS_SQE ||
         qp.state == IBV_QPS_ERR;
}

bool copy_inline(QueuePair& queue_pair, SendEntry& entry, const void* data, size_t bytes) {
  if (bytes > queue_pair.max_inline_bytes - entry.inline_bytes) return false;
  std::memcpy(inline_data_of(entry) + entry.inline_bytes, data, bytes);
  entry.inline_bytes += static_cast<uint32_t>(bytes);
  return true;
}

// Result: 0 or an errno.
int fill(QueuePair& queue_pair, SendEntry& entry, const ibv_send_wr& request) {
  const ibv_qp& qp = queue_pair.verbs.qp;
  if (!carries(qp.qp_type, request.opcode)) return EOPNOTSUPP;
  if ((request.send_flags & ~kKnownFlags) != 0 || request.num_sge < 0) return EINVAL;
  entry = SendEntry{};
  entry.work_id = request.wr_id;
  entry.opcode = request.opcode;
  entry.flags = request.send_flags;
  entry.immediate = request.imm_data;
  switch (request.opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_RDMA_READ:
      entry.remote_address = request.wr.rdma.remote_addr;
      entry.remote_key = request.wr.rdma.rkey;
      break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      entry.remote_address = request.wr.atomic.remote_addr;
      entry.remote_key = request.wr.atomic.rkey;
      entry.compare_or_add = request.wr.atomic.compare_add;
      entry.swap = request.wr.atomic.swap;
      break;
    default:
      if (qp.qp_type != IBV_QPT_UD) break;
      if (request.wr.ud.ah == nullptr) return EINVAL;
      entry.address_handle = object_of<AddressHandle>(request.wr.ud.ah).handle;
      entry.remote_number = request.wr.ud.remote_qpn;
      entry.remote_qkey = request.wr.ud.remote_qkey;
  }
  if ((request.send_flags & IBV_SEND_INLINE) != 0) {
    if (request.opcode == IBV_WR_RDMA_READ) return EINVAL;
    entry.is_inline = 1;
    for (int i = 0; i < request.num_sge; ++i) {
      const ibv_sge& piece = request.sg_list[i];
      if (!copy_inline(queue_pair, entry, reinterpret_cast<const void*>(piece.addr), piece.length))
        return EINVAL;
    }
    return 0;
  }
  if (static_cast<uint32_t>(request.num_sge) > queue_pair.max_send_pieces) return EINVAL;
  for (int i = 0; i < request.num_sge; ++i) {
    const ibv_sge& piece = request.sg_list[i];
    pieces_of(entry)[i] = {piece.addr, piece.length, piece.lkey};
  }
  entry.pieces = static_cast<uint32_t>(request.num_sge);
  return 0;
}

int post_receives(Context& context, WorkRing& ring, ibv_recv_wr* requests, ibv_recv_wr** bad) {
  int error = 0;
  pthread_spin_lock(&ring.lock);
  uint32_t next = ring.posted;
  for (; requests != nullptr; requests = requests->next) {
    if (!ring.has_room(next)) error = ENOMEM;
    if (requests->num_sge < 0 || static_cast<uint32_t>(requests->num_sge) > ring.max_pieces) error = EINVAL;
    if (error != 0) {
      *bad = requests;
      break;
    }
    auto* entry = ring.entry<ReceiveEntry>(next);
    *entry = {requests->wr_id, static_cast<uint32_t>(requests->num_sge), 0};
    auto* pieces = reinterpret_cast<Piece*>(entry + 1);
    for (int i = 0; i < requests->num_sge; ++i) {
      const ibv_sge& piece = requests->sg_list[i];
      pieces[i] = {piece.addr, piece.length, piece.lkey};
    }
    ++next;
  }
  const bool rings = next != ring.posted;
  ring.publish(next);
  pthread_spin_unlock(&ring.lock);
  if (rings) context.ring(ring.number);
  return error;
}

// --- the extended interface: wr_start() takes the ring's lock, wr_complete() and wr_abort() give it back.

QueuePair& queue_pair_of(ibv_qp_ex* qp) { return object_of<QueuePair>(qp); }

void begin(ibv_qp_ex* qp, ibv_wr_opcode opcode) {
  QueuePair& queue_pair = queue_pair_of(qp);
  queue_pair.building = nullptr;
  if (queue_pair.error != 0) return;
  if (!queue_pair.sends.has_room(queue_pair.next)) {
    queue_pair.error = ENOMEM;
    return;
  }
  if (!carries(qp->qp_base.qp_type, opcode)) {
    queue_pair.error = EOPNOTSUPP;
    return;
  }
  queue_pair.building = queue_pair.sends.entry<SendEntry>(queue_pair.next++);
  *queue_pair.building = SendEntry{};
  queue_pair.building->work_id = qp->wr_id;
  queue_pair.building->opcode = opcode;
  queue_pair.building->flags = qp->wr_flags & ~static_cast<unsigned>(IBV_SEND_INLINE);
}

void begin_remote(ibv_qp_ex* qp, ibv_wr_opcode opcode, uint32_t rkey, uint64_t remote_address) {
  begin(qp, opcode);
  SendEntry* entry = queue_pair_of(qp).building;
  if (entry == nullptr) return;
  entry->remote_key = rkey;
  entry->remote_address = remote_address;
}

void wr_atomic_cmp_swp(ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_address, uint64_t compare,
                       uint64_t swap) {
  begin_remote(qp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, remote_address);
  SendEntry* entry = queue_pair_of(qp).building;
  if (entry == nullptr) return;
  entry->compare_or_add = compare;
  entry->swap = swap;
}

void wr_atomic_fetch_add(ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_address, uint64_t add) {
  begin_remote(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_address);
  SendEntry* entry = queue_pair_of(qp).building;
  if (entry != nullptr) entry->compare_or_add = add;
}

void wr_rdma_read(ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_address) {
  begin_remote(qp, IBV_WR_RDMA_READ, rkey, remote_address);
}

void wr_rdma_write(ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_address) {
  begin_remote(qp, IBV_WR_RDMA_WRITE, rkey, remote_address);
}

void wr_rdma_write_imm(ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_address, __be32 immediate) {
  begin_remote(qp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_address);
  SendEntry* entry = queue_pair_of(qp).building;
  if (entry != nullptr) entry->immediate = immediate;
}

void wr_send(ibv_qp_ex* qp) { begin(qp, IBV_WR_SEND); }

void wr_send_imm(ibv_qp_ex* qp, __be32 immediate) {
  begin(qp, IBV_WR_SEND_WITH_IMM);
  SendEntry* entry = queue_pair_of(qp).building;
  if (entry != nullptr) entry->immediate = immediate;
}

void wr_set_ud_addr(ibv_qp_ex* qp, ibv_ah* ah, uint32_t remote_number, uint32_t remote_qkey) {
  QueuePair& queue_pair = queue_pair_of(qp);
  if (queue_pair.building == nullptr) return;
  queue_pair.building->address_handle = object_of<AddressHandle>(ah).handle;
  queue_pair.building->remote_number = remote_number;
  queue_pair.building->remote_qkey = remote_qkey;
}

void wr_set_inline_data_list(ibv_qp_ex* qp, size_t count, const ibv_data_buf* buffers) {
  QueuePair& queue_pair = queue_pair_of(qp);
  if (queue_pair.building == nullptr) return;
  queue_pair.building->is_inline = 1;
  for (size_t i = 0; i < count; ++i)
    if (!copy_inline(queue_pair, *queue_pair.building, buffers[i].addr, buffers[i].length))
      queue_pair.error = ENOMEM;
}

void wr_set_inline_data(ibv_qp_ex* qp, void* data, size_t bytes) {
  const ibv_data_buf buffer{data, bytes};
  wr_set_inline_data_list(qp, 1, &buffer);
}

void wr_set_sge_list(ibv_qp_ex* qp, size_t count, const ibv_sge* pieces) {
  QueuePair& queue_pair = queue_pair_of(qp);
  if (queue_pair.building == nullptr) return;
  if (count > queue_pair.max_send_pieces) {
    queue_pair.error = EINVAL;
    return;
  }
  for (size_t i = 0; i < count; ++i)
    pieces_of(*queue_pair.building)[i] = {pieces[i].addr, pieces[i].length, pieces[i].lkey};
  queue_pair.building->pieces = static_cast<uint32_t>(count);
}

void wr_set_sge(ibv_qp_ex* qp, uint32_t lkey, uint64_t address, uint32_t length) {
  const ibv_sge piece{address, length, lkey};
  wr_set_sge_list(qp, 1, &piece);
}

void wr_start(ibv_qp_ex* qp) {
  QueuePair& queue_pair = queue_pair_of(qp);
  pthread_spin_lock(&queue_pair.sends.lock);
  queue_pair.next = queue_pair.sends.posted;
  queue_pair.building = nullptr;
  queue_pair.error = may_send(qp->qp_base) ? 0 : EINVAL;
}

int wr_complete(ibv_qp_ex* qp) {
  QueuePair& queue_pair = queue_pair_of(qp);
  const int error = queue_pair.error;
  const bool rings = error == 0 && queue_pair.next != queue_pair.sends.posted;
  if (rings) queue_pair.sends.publish(queue_pair.next);
  pthread_spin_unlock(&queue_pair.sends.lock);
  if (rings) context_of(qp->qp_base.context).ring(queue_pair.sends.number);
  return error;
}

void wr_abort(ibv_qp_ex* qp) { pthread_spin_unlock(&queue_pair_of(qp).sends.lock); }

}  // namespace

int post_send(ibv_qp* qp, ibv_send_wr* requests, ibv_send_wr** bad) {
  auto& queue_pair = object_of<QueuePair>(qp);
  WorkRing& ring = queue_pair.sends;
  if (!may_send(*qp)) {
    *bad = requests;
    return EINVAL;
  }
  int error = 0;
  pthread_spin_lock(&ring.lock);
  uint32_t next = ring.posted;
  for (; requests != nullptr; requests = requests->next) {
    error = ring.has_room(next) ? fill(queue_pair, *ring.entry<SendEntry>(next), *requests) : ENOMEM;
    if (error != 0) {
      *bad = requests;
      break;
    }
    ++next;
  }
  const bool rings = next != ring.posted;
  ring.publish(next);
  pthread_spin_unlock(&ring.lock);
  if (rings) context_of(qp->context).ring(ring.number);
  return error;
}

int post_recv(ibv_qp* qp, ibv_recv_wr* requests, ibv_recv_wr** bad) {
  auto& queue_pair = object_of<QueuePair>(qp);
  if (qp->state == IBV_QPS_RESET || queue_pair.shared != nullptr) {
    *bad = requests;
    return EINVAL;
  }
  return post_receives(context_of(qp->context), queue_pair.receives, requests, bad);
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* requests, ibv_recv_wr** bad) {
  return post_receives(context_of(srq->context), object_of<SharedQueue>(srq).receives, requests, bad);
}

void extend(ibv_qp_ex& qp) {
  qp.wr_atomic_cmp_swp = wr_atomic_cmp_swp;
  qp.wr_atomic_fetch_add = wr_atomic_fetch_add;
  qp.wr_rdma_read = wr_rdma_read;
  qp.wr_rdma_write = wr_rdma_write;
  qp.wr_rdma_write_imm = wr_rdma_write_imm;
  qp.wr_send = wr_send;
  qp.wr_send_imm = wr_send_imm;
  qp.wr_set_ud_addr = wr_set_ud_addr;
  qp.wr_set_inline_data = wr_set_inline_data;
  qp.wr_set_inline_data_list = wr_set_inline_data_list;
  qp.wr_set_sge = wr_set_sge;
  qp.wr_set_sge_list = wr_set_sge_list;
  qp.wr_start = wr_start;
  qp.wr_complete = wr_complete;
  qp.wr_abort = wr_abort;
}

}  // namespace weft::verbs
