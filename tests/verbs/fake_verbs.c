/* A device for librdmacm where no NIC process serves verbs: what it needs of libibverbs, without packets. In LD_PRELOAD before libibverbs.

   FAKE_NODE_GUID: of the device, hexadecimal. FAKE_VERBS_LOG: a file to which each change of a queue pair is written. */
#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#undef ibv_query_port
#undef ibv_reg_mr

#define EXPORTED __attribute__((visibility("default")))

static struct ibv_device device = {.node_type = IBV_NODE_CA, .transport_type = IBV_TRANSPORT_IB, .name = "fake0", .dev_name = "uverbs0"};

EXPORTED struct ibv_device **ibv_get_device_list(int *count) {
  struct ibv_device **list = calloc(2, sizeof *list);
  list[0] = &device;
  if (count) *count = 1;
  return list;
}
EXPORTED void ibv_free_device_list(struct ibv_device **list) { free(list); }
EXPORTED const char *ibv_get_device_name(struct ibv_device *unused) { return unused->name; }
EXPORTED int ibv_get_device_index(struct ibv_device *unused) { (void)unused; return 0; }
EXPORTED __be64 ibv_get_device_guid(struct ibv_device *unused) {
  (void)unused;
  const char *guid = getenv("FAKE_NODE_GUID");
  return htobe64(strtoull(guid ? guid : "0", NULL, 16));
}


static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) { (void)qp; (void)wr; (void)bad; return 0; }
static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad) { (void)qp; (void)wr; (void)bad; return 0; }
static int poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc) { (void)cq; (void)count; (void)wc; return 0; }
static int req_notify_cq(struct ibv_cq *cq, int solicited) { (void)cq; (void)solicited; return 0; }

EXPORTED struct ibv_context *ibv_open_device(struct ibv_device *of) {
  struct ibv_context *context = calloc(1, sizeof *context);
  context->device = of;
  context->cmd_fd = context->async_fd = -1;
  context->num_comp_vectors = 1;
  context->ops.post_recv = post_recv;
  context->ops.post_send = post_send;
  context->ops.poll_cq = poll_cq;
  context->ops.req_notify_cq = req_notify_cq;
  return context;
}
EXPORTED int ibv_close_device(struct ibv_context *context) { free(context); return 0; }
EXPORTED int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr) {
  (void)context;
  memset(attr, 0, sizeof *attr);
  attr->phys_port_cnt = 1;
  attr->max_qp_wr = 4096;
  attr->max_qp_rd_atom = attr->max_qp_init_rd_atom = 16;
  return 0;
}
EXPORTED int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr) {
  (void)context;
  (void)port;
  struct ibv_port_attr *whole = (struct ibv_port_attr *)attr;
  whole->state = IBV_PORT_ACTIVE;
  whole->active_mtu = whole->max_mtu = IBV_MTU_1024;
  whole->link_layer = IBV_LINK_LAYER_ETHERNET;
  return 0;
}
EXPORTED struct ibv_pd *ibv_alloc_pd(struct ibv_context *context) {
  struct ibv_pd *pd = calloc(1, sizeof *pd);
  pd->context = context;
  return pd;
}
EXPORTED int ibv_dealloc_pd(struct ibv_pd *pd) { free(pd); return 0; }
EXPORTED struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context) {
  struct ibv_comp_channel *channel = calloc(1, sizeof *channel);
  channel->context = context;
  channel->fd = -1;
  return channel;
}
EXPORTED int ibv_destroy_comp_channel(struct ibv_comp_channel *channel) { free(channel); return 0; }
EXPORTED struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *of, struct ibv_comp_channel *channel, int vector) {
  (void)vector;
  struct ibv_cq *cq = calloc(1, sizeof *cq);
  cq->context = context;
  cq->cq_context = of;
  cq->channel = channel;
  cq->cqe = cqe;
  return cq;
}
EXPORTED int ibv_destroy_cq(struct ibv_cq *cq) { free(cq); return 0; }
EXPORTED struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t bytes, int access) {
  (void)access;
  struct ibv_mr *mr = calloc(1, sizeof *mr);
  mr->context = pd->context;
  mr->pd = pd;
  mr->addr = address;
  mr->length = bytes;
  return mr;
}
EXPORTED struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t bytes, uint64_t iova, unsigned int access) {
  (void)iova;
  return ibv_reg_mr(pd, address, bytes, (int)access);
}
EXPORTED int ibv_dereg_mr(struct ibv_mr *mr) { free(mr); return 0; }
EXPORTED struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr) {
  static uint32_t made;
  struct ibv_qp *qp = calloc(1, sizeof *qp);
  qp->context = pd->context;
  qp->pd = pd;
  qp->qp_context = attr->qp_context;
  qp->send_cq = attr->send_cq;
  qp->recv_cq = attr->recv_cq;
  qp->qp_type = attr->qp_type;
  qp->qp_num = ((uint32_t)getpid() & 0xFFFF) << 8 | (++made & 0xFF);
  return qp;
}
EXPORTED int ibv_destroy_qp(struct ibv_qp *qp) { free(qp); return 0; }
EXPORTED int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask) {
  const char *path = getenv("FAKE_VERBS_LOG");
  FILE *log = path ? fopen(path, "a") : NULL;
  if (log) {
    fprintf(log, "qp=%u state=%d mask=%#x dest=%u rq_psn=%u sq_psn=%u mtu=%d access=%d gid=", qp->qp_num, attr->qp_state, mask,
            mask & IBV_QP_DEST_QPN ? attr->dest_qp_num : 0, mask & IBV_QP_RQ_PSN ? attr->rq_psn : 0,
            mask & IBV_QP_SQ_PSN ? attr->sq_psn : 0, mask & IBV_QP_PATH_MTU ? (int)attr->path_mtu : 0,
            mask & IBV_QP_ACCESS_FLAGS ? (int)attr->qp_access_flags : 0);
    for (int at = 0; at < 16; ++at) fprintf(log, "%02x", mask & IBV_QP_AV ? attr->ah_attr.grh.dgid.raw[at] : 0);
    fprintf(log, "\n");
    fclose(log);
  }
  qp->state = attr->qp_state;
  return 0;
}
EXPORTED int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init) {
  (void)mask;
  memset(attr, 0, sizeof *attr);
  memset(init, 0, sizeof *init);
  attr->qp_state = qp->state;
  return 0;
}
EXPORTED int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece) { (void)qp; (void)ece; return EOPNOTSUPP; }
EXPORTED int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece) { (void)qp; (void)ece; return EOPNOTSUPP; }
EXPORTED struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr) {
  (void)attr;
  struct ibv_ah *ah = calloc(1, sizeof *ah);
  ah->context = pd->context;
  ah->pd = pd;
  return ah;
}
EXPORTED int ibv_destroy_ah(struct ibv_ah *ah) { free(ah); return 0; }
EXPORTED int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid) { (void)qp; (void)gid; (void)lid; return 0; }
EXPORTED int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid) { (void)qp; (void)gid; (void)lid; return 0; }
