// Queue pairs of MRC.
#include "objects.hpp"

using namespace weft::mrc;
using weft::verbs::MrcFields;

namespace weft::mrc {
namespace {

// Attributes of libibverbs that MRC has no use for. Those that it has its own of are left out by the NIC.
constexpr int kRefused =
    IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;
constexpr int kOfNic = MRC_QP_MAX_WIMM | MRC_QP_MAX_WIMM_DEST | MRC_QP_MPR | MRC_QP_MPR_DEST |
                       MRC_QP_TIMEOUT | MRC_QP_EV_PROFILE_ID | MRC_QP_CC_PROFILE_ID | MRC_QP_RETRY_CNT |
                       MRC_QP_CAP;
constexpr int kKnown = kOfNic | MRC_QP_HINT | MRC_QP_VENDOR_CFG;

bool is_of(const mrc_cq* queue, const mrc_context* context) {
  return queue != nullptr && queue->context == context && queue->verbs != nullptr;
}

MrcFields fields_of(const mrc_qp_attr& attributes, int mask) {
  MrcFields fields{};
  fields.mrc_mask = static_cast<uint64_t>(mask & kOfNic);
  fields.max_wimm = attributes.wimm.max_wimm;
  fields.max_wimm_dest = attributes.wimm.max_wimm_dest;
  fields.mpr = attributes.mpr.mpr;
  fields.mpr_dest = attributes.mpr.mpr_dest;
  fields.mrc_timeout = attributes.timeout;
  fields.ev_profile = attributes.profile.ev_profile_id;
  fields.cc_profile = attributes.profile.cc_profile_id;
  fields.linear_retries = attributes.retry.linear_cnt;
  fields.exponential_retries = attributes.retry.exp_cnt;
  fields.mrc_capabilities = attributes.cap;
  return fields;
}

void fill(mrc_qp_attr& attributes, const MrcFields& fields, mrc_qp_hint* hint) {
  attributes = {};
  attributes.wimm.max_wimm = static_cast<uint16_t>(fields.max_wimm);
  attributes.wimm.max_wimm_dest = static_cast<uint16_t>(fields.max_wimm_dest);
  attributes.mpr.mpr = static_cast<uint8_t>(fields.mpr);
  attributes.mpr.mpr_dest = static_cast<uint8_t>(fields.mpr_dest);
  attributes.timeout = static_cast<uint8_t>(fields.mrc_timeout);
  attributes.profile.ev_profile_id = fields.ev_profile;
  attributes.profile.cc_profile_id = fields.cc_profile;
  attributes.retry.linear_cnt = static_cast<uint8_t>(fields.linear_retries);
  attributes.retry.exp_cnt = static_cast<uint8_t>(fields.exponential_retries);
  attributes.cap = static_cast<uint32_t>(fields.mrc_capabilities);
  attributes.qp_hint = hint;
}

void set_hint(mrc_qp& queue_pair, mrc_qp_hint* hint) {
  const Lock lock(*queue_pair.context);
  if (hint != nullptr) ++hint->users;
  if (queue_pair.hint != nullptr) --queue_pair.hint->users;
  queue_pair.hint = hint;
}

}  // namespace
}  // namespace weft::mrc

extern "C" {
#pragma GCC visibility push(default)

mrc_qp* mrc_create_qp(mrc_context* mrc_ctx, mrc_qp_init_attr* mrc_qp_attr) {
  if (mrc_ctx == nullptr || mrc_qp_attr == nullptr || mrc_qp_attr->pd == nullptr ||
      mrc_qp_attr->pd->context != mrc_ctx->verbs || !is_of(mrc_qp_attr->send_cq, mrc_ctx) ||
      !is_of(mrc_qp_attr->recv_cq, mrc_ctx))
    return null(EINVAL);
  constexpr uint64_t operations = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
  const int version = mrc_qp_attr->protocol_version;
  if ((mrc_qp_attr->send_ops_flags & ~operations) != 0 ||
      (version != MRC_PROTOCOL_VERSION_0 && version != MRC_PROTOCOL_VERSION_1))
    return null(EOPNOTSUPP);
  auto* queue_pair = made<mrc_qp>(*mrc_ctx);
  if (queue_pair == nullptr) return nullptr;
  ibv_qp_init_attr initial{};
  initial.qp_context = queue_pair;
  initial.send_cq = mrc_qp_attr->send_cq->verbs;
  initial.recv_cq = mrc_qp_attr->recv_cq->verbs;
  initial.cap = mrc_qp_attr->cap;
  initial.sq_sig_all = mrc_qp_attr->sq_sig_all;
  queue_pair->verbs = mrc_ctx->provider->create_qp(mrc_qp_attr->pd, &initial);
  if (queue_pair->verbs == nullptr) {
    const int failure = errno;
    destroy(queue_pair);
    return null(failure);
  }
  mrc_qp_attr->cap = initial.cap;
  queue_pair->initial = *mrc_qp_attr;
  queue_pair->initial.protocol_version = MRC_PROTOCOL_VERSION_1;
  return queue_pair;
}

int mrc_destroy_qp(mrc_qp* qp) {
  if (qp == nullptr) return error(EINVAL);
  if (const int failure = ibv_destroy_qp(qp->verbs); failure != 0) return error(failure);
  set_hint(*qp, nullptr);
  destroy(qp);
  return 0;
}

int mrc_get_qpn(mrc_qp* qp, uint32_t* qpn) {
  if (qp == nullptr || qpn == nullptr) return minus_one(EINVAL);
  *qpn = qp->verbs->qp_num;
  return 0;
}

int mrc_modify_qp(mrc_qp* qp, ibv_qp_attr* vattr, int vattr_mask, mrc_qp_attr* mrc_attr, int mrc_attr_mask) {
  if (qp == nullptr || (vattr == nullptr && vattr_mask != 0) || (mrc_attr == nullptr && mrc_attr_mask != 0) ||
      (mrc_attr_mask & ~kKnown) != 0)
    return error(EINVAL);
  if ((vattr_mask & kRefused) != 0 || (mrc_attr_mask & MRC_QP_VENDOR_CFG) != 0) return error(EOPNOTSUPP);
  const bool hints = (mrc_attr_mask & MRC_QP_HINT) != 0;
  const bool to_init = (vattr_mask & IBV_QP_STATE) != 0 && vattr->qp_state == IBV_QPS_INIT;
  if (hints && (!to_init || (mrc_attr->qp_hint != nullptr && mrc_attr->qp_hint->context != qp->context)))
    return error(EINVAL);
  ibv_qp_attr none{};
  const MrcFields fields = mrc_attr_mask == 0 ? MrcFields{} : fields_of(*mrc_attr, mrc_attr_mask);
  const int failure =
      qp->context->provider->modify_qp(qp->verbs, vattr == nullptr ? &none : vattr, vattr_mask, fields);
  if (failure != 0) return error(failure);
  if (hints)
    set_hint(*qp, mrc_attr->qp_hint);
  else if (qp->verbs->state == IBV_QPS_RESET)
    set_hint(*qp, nullptr);
  return 0;
}

int mrc_query_qp(mrc_qp* qp, ibv_qp_attr* vattr, int vattr_mask, mrc_qp_attr* mrc_attr, int mrc_attr_mask,
                 mrc_qp_init_attr* init_attr) {
  if (qp == nullptr || (vattr == nullptr && vattr_mask != 0) || (mrc_attr == nullptr && mrc_attr_mask != 0) ||
      (mrc_attr_mask & ~kKnown) != 0)
    return error(EINVAL);
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  MrcFields fields{};
  const int failure = qp->context->provider->query_qp(qp->verbs, &attributes, &initial, fields);
  if (failure != 0) return error(failure);
  if (vattr != nullptr) *vattr = attributes;
  if (mrc_attr != nullptr) fill(*mrc_attr, fields, qp->hint);
  if (init_attr != nullptr) *init_attr = qp->initial;
  return 0;
}

int mrc_post_send(mrc_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  if (qp == nullptr || bad_wr == nullptr) return error(EINVAL);
  const int failure = ibv_post_send(qp->verbs, wr, bad_wr);
  return failure == 0 ? 0 : error(failure);
}

int mrc_post_recv(mrc_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  if (qp == nullptr || bad_wr == nullptr) return minus_one(EINVAL);
  return minus_one(ibv_post_recv(qp->verbs, wr, bad_wr));
}

#pragma GCC visibility pop
}
