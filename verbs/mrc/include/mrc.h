/* The application interface of Multipath Reliable Connection (MRC), for programs on the device of a Weft
 * host.
 *
 * Names, values and layouts are those of the interface that OCP publishes beside its specification of MRC 1.0
 * (version 1.0.1 of the interface), so that programs written for it compile and run; docs/verbs.md says which
 * of it Weft carries out. A program opens the device, registers memory and reads addresses with libibverbs.
 *
 * Functions that return an int return 0 if they have succeeded. Those marked [errno] return the errno
 * otherwise, as libibverbs does, and set it, too; the others return -1 and set errno. Functions that return a
 * pointer return NULL and set errno.
 */
#ifndef _MRC_API_H_
#define _MRC_API_H_

#include <infiniband/verbs.h>
#include <mrc_api_ver.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MRC_MAX_VENDOR_CFG_SIZE 128

struct mrc_context;
struct mrc_comp_channel;
struct mrc_cq;
struct mrc_qp;
struct mrc_qp_hint;

/* --- Device */

/* Of what travels; a device has a bitmap of them, 0 leaves the choice to the library. */
enum mrc_protocol_version {
  MRC_PROTOCOL_VERSION_0 = 0,
  MRC_PROTOCOL_VERSION_1 = 1 << 0,
};

enum mrc_device_cap {
  MRC_DEVICE_CAP_TRIM_NACK = 1 << 0,
  MRC_DEVICE_CAP_DYNAMIC_MPR = 1 << 1,
  MRC_DEVICE_CAP_SVC_TIME = 1 << 2,
};

struct mrc_device_attr {
  uint32_t mrc_protocol_version;
  /* WRITEs with immediate (WIMM) that a queue pair may have under way, and its peer. */
  struct {
    uint16_t max_wimm;
    uint16_t max_wimm_dest;
  } wimm_attr;
  /* The range of packets under way (MPR), in units of 128. */
  struct {
    uint8_t max_mpr;
    uint8_t mpr_resolution;
  } mpr_attr;
  struct {
    uint32_t max_qp_hint;
  } qp_attr;
  uint32_t cap; /* enum mrc_device_cap */
};

/* `supported` is 0 where the device has no MRC: that of a lab with another transport, or somebody else's. */
int mrc_query_device(struct ibv_context* context, struct mrc_device_attr* attr, int* supported);
#if MRC_API_VER_USED >= MRC_API_VER(1, 0, 1)
int mrc_query_device_ex(struct ibv_context* context, struct mrc_context* mcontext,
                        struct mrc_device_attr* attr, int* supported);
#endif

/* As MRC_API_VER() makes them. */
void mrc_query_version(uint32_t* current_version, uint32_t* last_supported_version, uint32_t* vendor_version,
                       uint32_t* last_supported_vendor_version);

/* --- Contexts: what all other objects are made of. One that has objects left is not destroyed (EBUSY). */

struct mrc_context_attr {
  uint32_t mrc_api_version_used;        /* 0: the newest */
  uint32_t mrc_vendor_api_version_used; /* the same */
};

/* The attributes may be NULL. */
struct mrc_context* mrc_create_context(struct ibv_context* vcontext, struct mrc_context_attr* context_attr);
int mrc_destroy_context(struct mrc_context* mrc_ctx);

/* --- Completions, as libibverbs has them */

/* [errno] */
int mrc_create_comp_channel(struct mrc_context* mrc_ctx, struct mrc_comp_channel** channel);
int mrc_get_comp_channel_fd(struct mrc_comp_channel* channel, int* fd);
/* [errno] */
int mrc_destroy_comp_channel(struct mrc_comp_channel* channel);

struct mrc_cq* mrc_create_cq(struct mrc_context* mrc_ctx, int cqe, void* cq_context,
                             struct mrc_comp_channel* channel, int comp_vector);
/* Result: how many completions there were, at most num_entries. */
int mrc_poll_cq(struct mrc_cq* cq, int num_entries, struct ibv_wc* wc);
/* [errno] */
int mrc_destroy_cq(struct mrc_cq* cq);
/* [errno] */
int mrc_req_notify_cq(struct mrc_cq* cq, int solicited_only);
int mrc_get_cq_event(struct mrc_comp_channel* channel, struct mrc_cq** cq, void** cq_context);
void mrc_ack_cq_events(struct mrc_cq* cq, unsigned int nevents);

/* --- Hints: what a program expects of its traffic. Weft's NIC keeps them and makes nothing of them. */

struct mrc_qp_hint_attr {
  int num_qps_per_peer;      /* that send to the same peer at once */
  int num_send_peers;        /* that are sent to at once */
  int num_remote_recv_peers; /* queue pairs that send to the same peer meanwhile */
  uint8_t vendor_cfg[MRC_MAX_VENDOR_CFG_SIZE];
};

enum mrc_qp_hint_attr_mask {
  MRC_QP_HINT_NUM_QPS_PER_PEER = 1 << 0,
  MRC_QP_HINT_NUM_SEND_PEERS = 1 << 1,
  MRC_QP_HINT_NUM_REMOTE_RECV_PEERS = 1 << 2,
  MRC_QP_HINT_VENDOR_CFG = -2147483647 - 1, /* the highest bit */
};

struct mrc_qp_hint_init_attr {
  struct mrc_qp_hint_attr attr;
};

struct mrc_qp_hint* mrc_create_qp_hint(struct mrc_context* mrc_ctx, struct mrc_qp_hint_init_attr* init_attr);
/* EBUSY while a queue pair has it. */
int mrc_destroy_qp_hint(struct mrc_qp_hint* qp_hint);
int mrc_query_qp_hint(struct mrc_qp_hint* qp_hint, struct mrc_qp_hint_attr* qp_hint_attr,
                      int qp_hint_attr_mask);
int mrc_modify_qp_hint(struct mrc_qp_hint* qp_hint, struct mrc_qp_hint_attr* qp_hint_attr,
                       int qp_hint_attr_mask);

/* --- Queue pairs. They carry WRITEs, with or without immediate, and use all planes of their hosts. */

struct mrc_qp_init_attr {
  void* qp_context;
  struct mrc_cq* send_cq;
  struct mrc_cq* recv_cq;
  struct ibv_qp_cap cap;
  int sq_sig_all;
  struct ibv_pd* pd;
  uint64_t send_ops_flags; /* enum ibv_qp_create_send_ops_flags */
  enum mrc_protocol_version protocol_version;
};

struct mrc_qp* mrc_create_qp(struct mrc_context* mrc_ctx, struct mrc_qp_init_attr* mrc_qp_attr);
/* [errno] */
int mrc_destroy_qp(struct mrc_qp* qp);
int mrc_get_qpn(struct mrc_qp* qp, uint32_t* qpn);

/* What a transition may change, besides CAP: to INIT hint and profiles; to RTR what the peer may have under
 * way (…_DEST); to RTS what this end has, timeout and retries. */
enum mrc_qp_attr_mask {
  MRC_QP_MAX_WIMM = 1 << 0,
  MRC_QP_MAX_WIMM_DEST = 1 << 1,
  MRC_QP_MPR = 1 << 2,
  MRC_QP_MPR_DEST = 1 << 3,
  MRC_QP_TIMEOUT = 1 << 4,
  MRC_QP_EV_PROFILE_ID = 1 << 5,
  MRC_QP_CC_PROFILE_ID = 1 << 6,
  MRC_QP_HINT = 1 << 7,
  MRC_QP_RETRY_CNT = 1 << 8,
  MRC_QP_CAP = 1 << 9,
  MRC_QP_VENDOR_CFG = -2147483647 - 1, /* the highest bit */
};

enum mrc_qp_cap {
  MRC_QP_CAP_TRIM_NACK_DEST_UNSUPPORTED = 1 << 0,
  MRC_QP_CAP_DYNAMIC_MPR = 1 << 1,
  MRC_QP_CAP_SVC_TIME_DEST_UNSUPPORTED = 1 << 2,
};

struct mrc_qp_attr {
  struct {
    uint8_t mpr; /* in units of 128 packets */
    uint8_t mpr_dest;
  } mpr;
  struct {
    uint16_t max_wimm;
    uint16_t max_wimm_dest;
  } wimm;
  uint8_t timeout; /* 1.024 us * 2^timeout, 0 to 24 */
  /* Of profiles that a controller has configured (mrc_ctl.h). */
  struct {
    uint64_t ev_profile_id;
    uint64_t cc_profile_id;
  } profile;
  struct {
    uint8_t linear_cnt; /* 0 to 7, at the same interval */
    uint8_t exp_cnt;    /* then 0 to 24 at intervals that double; 25: for ever */
  } retry;
  struct mrc_qp_hint* qp_hint;
  uint32_t cap; /* enum mrc_qp_cap */
  uint8_t vendor_cfg[MRC_MAX_VENDOR_CFG_SIZE];
};

/* [errno] */
int mrc_query_qp(struct mrc_qp* qp, struct ibv_qp_attr* vattr, int vattr_mask, struct mrc_qp_attr* mrc_attr,
                 int mrc_attr_mask, struct mrc_qp_init_attr* init_attr);
/* [errno] Both structures in one step; one whose mask is 0 may be NULL. */
int mrc_modify_qp(struct mrc_qp* qp, struct ibv_qp_attr* vattr, int vattr_mask, struct mrc_qp_attr* mrc_attr,
                  int mrc_attr_mask);

/* [errno] */
int mrc_post_send(struct mrc_qp* qp, struct ibv_send_wr* wr, struct ibv_send_wr** bad_wr);
/* For a WRITE with immediate, which must find one: there is no receiver-not-ready. */
int mrc_post_recv(struct mrc_qp* qp, struct ibv_recv_wr* wr, struct ibv_recv_wr** bad_wr);

/* --- Asynchronous events. Those of the ibv_context's other objects are acknowledged and left out. */

struct mrc_async_event {
  union {
    struct mrc_cq* cq;
    struct mrc_qp* qp;
    int port_num;
  } element;
  enum ibv_event_type event_type;
};

/* Waits, unless the context's async_fd does not block. */
int mrc_get_async_event(struct mrc_context* mrc_ctx, struct mrc_async_event* event);
void mrc_ack_async_event(struct mrc_async_event* event);

#ifdef __cplusplus
}
#endif

#endif
