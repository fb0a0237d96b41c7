// Devices, contexts, completions, hints and asynchronous events.
#include <dlfcn.h>

#include "objects.hpp"

using namespace weft::mrc;
namespace request = weft::verbs::request;

namespace weft::mrc {

const verbs::MrcProvider* provider_of(const ibv_context* context) {
  // By a function of its own, which libibverbs has put where its inline functions call it.
  Dl_info found{};
  if (dladdr(reinterpret_cast<void*>(context->ops.poll_cq), &found) == 0) return nullptr;
  void* library = dlopen(found.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  const auto* provider = static_cast<const verbs::MrcProvider*>(dlsym(library, verbs::kMrcProvider));
  dlclose(library);  // libibverbs keeps it
  return provider;
}

mrc_cq* add_queue(mrc_context& context, ibv_cq* verbs, void* user) {
  auto* queue = made<mrc_cq>(context);
  if (queue == nullptr) return nullptr;
  queue->verbs = verbs;
  queue->user = user;
  const Lock lock(context);
  queue->next = context.first_queue;
  context.first_queue = queue;
  return queue;
}

namespace {

constexpr uint32_t kMostHints = 1u << 16;

void remove_queue(mrc_cq* queue) {
  {
    const Lock lock(*queue->context);
    mrc_cq** place = &queue->context->first_queue;
    while (*place != queue) place = &(*place)->next;
    *place = queue->next;
  }
  destroy(queue);
}

bool has_queue(mrc_context& context, const void* queue) {
  const Lock lock(context);
  for (const mrc_cq* each = context.first_queue; each != nullptr; each = each->next)
    if (each == queue) return true;
  return false;
}

void copy(mrc_qp_hint_attr& to, const mrc_qp_hint_attr& from, int mask) {
  if ((mask & MRC_QP_HINT_NUM_QPS_PER_PEER) != 0) to.num_qps_per_peer = from.num_qps_per_peer;
  if ((mask & MRC_QP_HINT_NUM_SEND_PEERS) != 0) to.num_send_peers = from.num_send_peers;
  if ((mask & MRC_QP_HINT_NUM_REMOTE_RECV_PEERS) != 0) to.num_remote_recv_peers = from.num_remote_recv_peers;
  if ((mask & MRC_QP_HINT_VENDOR_CFG) != 0)
    __builtin_memcpy(to.vendor_cfg, from.vendor_cfg, sizeof to.vendor_cfg);
}

constexpr int kAllOfHint = MRC_QP_HINT_NUM_QPS_PER_PEER | MRC_QP_HINT_NUM_SEND_PEERS |
                           MRC_QP_HINT_NUM_REMOTE_RECV_PEERS | MRC_QP_HINT_VENDOR_CFG;

bool are_sensible(const mrc_qp_hint_attr& attributes, int mask) {
  mrc_qp_hint_attr given{};
  copy(given, attributes, mask);
  return (mask & ~kAllOfHint) == 0 && given.num_qps_per_peer >= 0 && given.num_send_peers >= 0 &&
         given.num_remote_recv_peers >= 0;
}

// What an event of libibverbs is about.
enum class About { kQueuePair, kQueue, kPort, kDevice, kOther };
About about(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_CQ_ERR:
      return About::kQueue;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return About::kQueuePair;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
      return About::kPort;
    case IBV_EVENT_DEVICE_FATAL:
      return About::kDevice;
    default:
      return About::kOther;
  }
}

// Puts an event of libibverbs into one of mrc.h. False if it is of none of the context's objects.
bool translate(mrc_context& context, const ibv_async_event& from, mrc_async_event& to) {
  to = {};
  to.event_type = from.event_type;
  switch (about(from.event_type)) {
    case About::kQueuePair: {
      // Only queue pairs of MRC are of this type.
      if (from.element.qp->qp_type != IBV_QPT_DRIVER) return false;
      auto* queue_pair = static_cast<mrc_qp*>(from.element.qp->qp_context);
      to.element.qp = queue_pair;
      return queue_pair->context == &context;
    }
    case About::kQueue:
      to.element.cq = static_cast<mrc_cq*>(from.element.cq->cq_context);
      return has_queue(context, to.element.cq);
    case About::kPort:
      to.element.port_num = from.element.port_num;
      return true;
    case About::kDevice:
      return true;
    case About::kOther:
      break;
  }
  return false;
}

int query_device(ibv_context* context, mrc_device_attr* attributes, int* supported) {
  if (context == nullptr || attributes == nullptr || supported == nullptr) return minus_one(EINVAL);
  *attributes = {};
  *supported = 0;
  const weft::verbs::MrcProvider* provider = provider_of(context);
  if (provider == nullptr) return 0;
  request::query_mrc_device::Answer answer{};
  if (const int failure = ask<request::query_mrc_device>(context, *provider, {}, answer); failure != 0)
    return minus_one(failure);
  if (answer.is_supported == 0) return 0;
  *supported = 1;
  attributes->mrc_protocol_version = MRC_PROTOCOL_VERSION_1;
  attributes->wimm_attr.max_wimm = attributes->wimm_attr.max_wimm_dest =
      static_cast<uint16_t>(answer.most_wimm);
  attributes->mpr_attr.max_mpr = static_cast<uint8_t>(answer.most_mpr);
  attributes->mpr_attr.mpr_resolution = 1;
  attributes->qp_attr.max_qp_hint = kMostHints;
  attributes->cap = MRC_DEVICE_CAP_TRIM_NACK;
  return 0;
}

}  // namespace
}  // namespace weft::mrc

extern "C" {
#pragma GCC visibility push(default)

int mrc_query_device(ibv_context* context, mrc_device_attr* attr, int* supported) {
  return query_device(context, attr, supported);
}

int mrc_query_device_ex(ibv_context* context, mrc_context* mcontext, mrc_device_attr* attr, int* supported) {
  if (mcontext != nullptr && mcontext->verbs != context) return minus_one(EINVAL);
  return query_device(context, attr, supported);
}

void mrc_query_version(uint32_t* current_version, uint32_t* last_supported_version, uint32_t* vendor_version,
                       uint32_t* last_supported_vendor_version) {
  if (current_version != nullptr) *current_version = MRC_API_CURRENT_VERSION;
  if (last_supported_version != nullptr) *last_supported_version = MRC_API_LAST_SUPPORTED_VERSION;
  if (vendor_version != nullptr) *vendor_version = MRC_VENDOR_API_CURRENT_VERSION;
  if (last_supported_vendor_version != nullptr)
    *last_supported_vendor_version = MRC_VENDOR_API_LAST_SUPPORTED_VERSION;
}

mrc_context* mrc_create_context(ibv_context* vcontext, mrc_context_attr* context_attr) {
  if (vcontext == nullptr) return null(EINVAL);
  const uint32_t version = context_attr == nullptr ? 0 : context_attr->mrc_api_version_used;
  const uint32_t of_vendor = context_attr == nullptr ? 0 : context_attr->mrc_vendor_api_version_used;
  if (version > MRC_API_CURRENT_VERSION || of_vendor > MRC_VENDOR_API_CURRENT_VERSION) return null(EINVAL);
  mrc_device_attr attributes;
  int supported = 0;
  if (query_device(vcontext, &attributes, &supported) != 0) return nullptr;
  if (supported == 0) return null(EOPNOTSUPP);
  auto* context = static_cast<mrc_context*>(calloc(1, sizeof(mrc_context)));
  if (context == nullptr) return null(ENOMEM);
  context->verbs = vcontext;
  context->provider = provider_of(vcontext);
  // A program does not say which version of the controller's interface it uses; both came together.
  context->has_event_states = version == 0 || version >= MRC_API_VER(1, 0, 1);
  pthread_mutex_init(&context->mutex, nullptr);
  return context;
}

int mrc_destroy_context(mrc_context* mrc_ctx) {
  if (mrc_ctx == nullptr) return minus_one(EINVAL);
  {
    const Lock lock(*mrc_ctx);
    if (mrc_ctx->objects > 0) return minus_one(EBUSY);
  }
  pthread_mutex_destroy(&mrc_ctx->mutex);
  free(mrc_ctx);
  return 0;
}

int mrc_create_comp_channel(mrc_context* mrc_ctx, mrc_comp_channel** channel) {
  if (mrc_ctx == nullptr || channel == nullptr) return error(EINVAL);
  auto* object = made<mrc_comp_channel>(*mrc_ctx);
  if (object == nullptr) return error(ENOMEM);
  object->verbs = ibv_create_comp_channel(mrc_ctx->verbs);
  if (object->verbs == nullptr) {
    const int failure = errno == 0 ? EIO : errno;
    destroy(object);
    return error(failure);
  }
  *channel = object;
  return 0;
}

int mrc_get_comp_channel_fd(mrc_comp_channel* channel, int* fd) {
  if (channel == nullptr || fd == nullptr) return minus_one(EINVAL);
  *fd = channel->verbs->fd;
  return 0;
}

int mrc_destroy_comp_channel(mrc_comp_channel* channel) {
  if (channel == nullptr) return error(EINVAL);
  if (const int failure = ibv_destroy_comp_channel(channel->verbs); failure != 0) return error(failure);
  destroy(channel);
  return 0;
}

mrc_cq* mrc_create_cq(mrc_context* mrc_ctx, int cqe, void* cq_context, mrc_comp_channel* channel,
                      int comp_vector) {
  if (mrc_ctx == nullptr || (channel != nullptr && channel->context != mrc_ctx)) return null(EINVAL);
  mrc_cq* queue = add_queue(*mrc_ctx, nullptr, cq_context);
  if (queue == nullptr) return nullptr;
  queue->verbs =
      ibv_create_cq(mrc_ctx->verbs, cqe, queue, channel == nullptr ? nullptr : channel->verbs, comp_vector);
  if (queue->verbs != nullptr) return queue;
  const int failure = errno;
  remove_queue(queue);
  return null(failure);
}

int mrc_poll_cq(mrc_cq* cq, int num_entries, ibv_wc* wc) {
  if (cq == nullptr || cq->verbs == nullptr || num_entries < 0) return minus_one(EINVAL);
  return ibv_poll_cq(cq->verbs, num_entries, wc);
}

int mrc_destroy_cq(mrc_cq* cq) {
  if (cq == nullptr) return error(EINVAL);
  if (cq->verbs != nullptr)
    if (const int failure = ibv_destroy_cq(cq->verbs); failure != 0) return error(failure);
  remove_queue(cq);
  return 0;
}

int mrc_req_notify_cq(mrc_cq* cq, int solicited_only) {
  if (cq == nullptr) return error(EINVAL);
  if (cq->verbs == nullptr) return error(EOPNOTSUPP);
  return ibv_req_notify_cq(cq->verbs, solicited_only);
}

int mrc_get_cq_event(mrc_comp_channel* channel, mrc_cq** cq, void** cq_context) {
  if (channel == nullptr || cq == nullptr || cq_context == nullptr) return minus_one(EINVAL);
  ibv_cq* verbs = nullptr;
  void* queue = nullptr;
  if (ibv_get_cq_event(channel->verbs, &verbs, &queue) != 0) return -1;
  *cq = static_cast<mrc_cq*>(queue);
  *cq_context = (*cq)->user;
  return 0;
}

void mrc_ack_cq_events(mrc_cq* cq, unsigned int nevents) {
  if (cq != nullptr && cq->verbs != nullptr) ibv_ack_cq_events(cq->verbs, nevents);
}

mrc_qp_hint* mrc_create_qp_hint(mrc_context* mrc_ctx, mrc_qp_hint_init_attr* init_attr) {
  if (mrc_ctx == nullptr || init_attr == nullptr || !are_sensible(init_attr->attr, kAllOfHint))
    return null(EINVAL);
  auto* hint = made<mrc_qp_hint>(*mrc_ctx);
  if (hint == nullptr) return nullptr;
  hint->attributes = init_attr->attr;
  bool has_room = false;
  {
    const Lock lock(*mrc_ctx);
    has_room = mrc_ctx->hints < kMostHints;
    if (has_room) ++mrc_ctx->hints;
  }
  if (has_room) return hint;
  destroy(hint);
  return null(ENOMEM);
}

int mrc_destroy_qp_hint(mrc_qp_hint* qp_hint) {
  if (qp_hint == nullptr) return minus_one(EINVAL);
  {
    const Lock lock(*qp_hint->context);
    if (qp_hint->users > 0) return minus_one(EBUSY);
    --qp_hint->context->hints;
  }
  destroy(qp_hint);
  return 0;
}

int mrc_query_qp_hint(mrc_qp_hint* qp_hint, mrc_qp_hint_attr* qp_hint_attr, int qp_hint_attr_mask) {
  if (qp_hint == nullptr || qp_hint_attr == nullptr || (qp_hint_attr_mask & ~kAllOfHint) != 0)
    return minus_one(EINVAL);
  const Lock lock(*qp_hint->context);
  copy(*qp_hint_attr, qp_hint->attributes, qp_hint_attr_mask);
  return 0;
}

int mrc_modify_qp_hint(mrc_qp_hint* qp_hint, mrc_qp_hint_attr* qp_hint_attr, int qp_hint_attr_mask) {
  if (qp_hint == nullptr || qp_hint_attr == nullptr || !are_sensible(*qp_hint_attr, qp_hint_attr_mask))
    return minus_one(EINVAL);
  const Lock lock(*qp_hint->context);
  copy(qp_hint->attributes, *qp_hint_attr, qp_hint_attr_mask);
  return 0;
}

int mrc_get_async_event(mrc_context* mrc_ctx, mrc_async_event* event) {
  if (mrc_ctx == nullptr || event == nullptr) return error(EINVAL);
  for (;;) {
    ibv_async_event verbs{};
    errno = 0;
    if (ibv_get_async_event(mrc_ctx->verbs, &verbs) != 0) return errno == 0 ? error(EIO) : errno;
    if (translate(*mrc_ctx, verbs, *event)) return 0;
    ibv_ack_async_event(&verbs);
  }
}

void mrc_ack_async_event(mrc_async_event* event) {
  if (event == nullptr) return;
  ibv_async_event verbs{};
  verbs.event_type = event->event_type;
  switch (about(event->event_type)) {
    case About::kQueuePair:
      verbs.element.qp = event->element.qp->verbs;
      break;
    case About::kQueue:
      verbs.element.cq = event->element.cq->verbs;
      break;
    default:
      verbs.element.port_num = event->element.port_num;
  }
  ibv_ack_async_event(&verbs);
}

#pragma GCC visibility pop
}
