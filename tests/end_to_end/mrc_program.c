/* A program on mrc.h and mrc_ctl.h: WRITEs with and without immediate from one host to another, over all
 * planes.
 *
 *     mrc_program [-e PROFILE] [-d] [SERVER]
 *
 * Without a server's address it is the one that is written to. Both first try what MRC refuses. The writer
 * then writes on and on, printing "running", until a line comes from its standard input, and ends with one
 * WRITE with immediate for each size. -e: it configures an explicit EV profile of its NIC first and takes it.
 * -d: instead of waiting for a line it disables port 1 itself.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <mrc_ctl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHECK(condition)                                                                   \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, strerror(errno)); \
      exit(1);                                                                             \
    }                                                                                      \
  } while (0)

enum {
  TCP_PORT = 18515,
  BEFORE = 24,
  AFTER = 64,
  SLOT_BYTES = 1 << 12,
  SLOTS = 16,
  WINDOW = 8,
  EVS = 8,
  MOST_SIZE = 20000
};
static const uint32_t kSizes[] = {0, 1, 1023, 1024, 1025, 4097, MOST_SIZE};
enum {
  SIZES = sizeof kSizes / sizeof kSizes[0],
  ENDS = SLOTS * SLOT_BYTES,
  BUFFER_BYTES = ENDS + SIZES * (1 << 15)
};

struct end {
  union ibv_gid gid;
  uint32_t number, psn, rkey;
  uint64_t address;
};

static struct ibv_context* device;
static struct mrc_context* context;
static struct ibv_pd* domain;
static struct ibv_mr* region;
static struct mrc_cq *sends, *receives;
static struct mrc_comp_channel* channel;
static struct mrc_qp* queue_pair;
static unsigned char* buffer;

static unsigned char pattern(uint64_t place) { return (unsigned char)(place * 7 + place / 251); }
static uint64_t place_of(int size) { return ENDS + (uint64_t)size * (1 << 15); }

static void open_all(void) {
  struct ibv_device** all = ibv_get_device_list(NULL);
  CHECK(all != NULL && all[0] != NULL);
  device = ibv_open_device(all[0]);
  CHECK(device != NULL);
  ibv_free_device_list(all);
  struct mrc_device_attr attributes;
  int supported = 0;
  CHECK(mrc_query_device_ex(device, NULL, &attributes, &supported) == 0 && supported != 0);
  CHECK(attributes.mrc_protocol_version == MRC_PROTOCOL_VERSION_1 && attributes.mpr_attr.max_mpr > 0);
  uint32_t newest = 0, oldest = 0, of_vendor = 0, oldest_of_vendor = 0;
  mrc_query_version(&newest, &oldest, &of_vendor, &oldest_of_vendor);
  CHECK(newest == MRC_API_CURRENT_VERSION && oldest <= newest);
  struct mrc_context_attr version = {.mrc_api_version_used = MRC_API_VER_USED};
  context = mrc_create_context(device, &version);
  CHECK(context != NULL);
  domain = ibv_alloc_pd(device);
  buffer = calloc(1, BUFFER_BYTES);
  region = ibv_reg_mr(domain, buffer, BUFFER_BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  CHECK(region != NULL);
  CHECK(mrc_create_comp_channel(context, &channel) == 0);
  sends = mrc_create_cq(context, 64, NULL, NULL, 0);
  receives = mrc_create_cq(context, 64, buffer, channel, 0);
  CHECK(sends != NULL && receives != NULL);
  CHECK(mrc_destroy_context(context) == -1 && errno == EBUSY);
}

static void make_queue_pair(struct mrc_qp_hint* hint) {
  struct mrc_qp_init_attr initial = {
      .send_cq = sends,
      .recv_cq = receives,
      .cap = {.max_send_wr = 2 * WINDOW, .max_recv_wr = SIZES, .max_send_sge = 2, .max_recv_sge = 1},
      .pd = domain,
      .send_ops_flags = IBV_QP_EX_WITH_SEND};
  CHECK(mrc_create_qp(context, &initial) == NULL && errno == EOPNOTSUPP);
  initial.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
  initial.protocol_version = 2;
  CHECK(mrc_create_qp(context, &initial) == NULL && errno == EOPNOTSUPP);
  initial.protocol_version = MRC_PROTOCOL_VERSION_1;
  queue_pair = mrc_create_qp(context, &initial);
  CHECK(queue_pair != NULL);

  struct ibv_qp_attr verbs = {.qp_state = IBV_QPS_INIT, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
  const int mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  struct mrc_qp_attr own = {.profile = {.ev_profile_id = 77}};
  CHECK(mrc_modify_qp(queue_pair, &verbs, mask, &own, MRC_QP_EV_PROFILE_ID) == EINVAL); /* there is none */
  CHECK(mrc_modify_qp(queue_pair, &verbs, mask, &own, MRC_QP_MPR) == EINVAL);           /* to RTS */
  CHECK(mrc_modify_qp(queue_pair, &verbs, mask, &own, MRC_QP_VENDOR_CFG) == EOPNOTSUPP);
  own.cap = MRC_QP_CAP_DYNAMIC_MPR;
  CHECK(mrc_modify_qp(queue_pair, &verbs, mask, &own, MRC_QP_CAP) == EOPNOTSUPP);
  own.cap = 0;
  own.profile.cc_profile_id = 1;
  CHECK(mrc_modify_qp(queue_pair, &verbs, mask, &own, MRC_QP_CC_PROFILE_ID) == EINVAL);
  CHECK(mrc_modify_qp(queue_pair, &verbs, mask | IBV_QP_ALT_PATH, NULL, 0) == EOPNOTSUPP);
  own = (struct mrc_qp_attr){.qp_hint = hint};
  CHECK(mrc_modify_qp(queue_pair, &verbs, mask, &own, MRC_QP_HINT | MRC_QP_CC_PROFILE_ID) == 0);
  CHECK(mrc_destroy_qp_hint(hint) == -1 && errno == EBUSY);
}

/* To RTR and RTS. */
static void connect_to(const struct end* peer, uint32_t psn) {
  struct ibv_qp_attr verbs = {.qp_state = IBV_QPS_RTR,
                              .path_mtu = IBV_MTU_1024,
                              .dest_qp_num = peer->number,
                              .rq_psn = peer->psn,
                              .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = peer->gid}}};
  struct mrc_qp_attr own = {.mpr = {.mpr_dest = 64}, .wimm = {.max_wimm_dest = 0}};
  const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_PATH_MTU;
  CHECK(mrc_modify_qp(queue_pair, &verbs, mask, &own, MRC_QP_MPR_DEST | MRC_QP_MAX_WIMM_DEST) == EINVAL);
  own.wimm.max_wimm_dest = 16;
  verbs.ah_attr.grh.dgid.raw[15] ^= 0xF0; /* nobody's */
  CHECK(mrc_modify_qp(queue_pair, &verbs, mask, &own, MRC_QP_MPR_DEST | MRC_QP_MAX_WIMM_DEST) == EINVAL);
  verbs.ah_attr.grh.dgid = peer->gid;
  CHECK(mrc_modify_qp(queue_pair, &verbs, mask, &own, MRC_QP_MPR_DEST | MRC_QP_MAX_WIMM_DEST) == 0);
  verbs = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = psn};
  own = (struct mrc_qp_attr){
      .mpr = {.mpr = 64}, .wimm = {.max_wimm = 16}, .timeout = 15, .retry = {.linear_cnt = 3, .exp_cnt = 25}};
  const int sending = MRC_QP_MPR | MRC_QP_MAX_WIMM | MRC_QP_TIMEOUT | MRC_QP_RETRY_CNT;
  /* Those of libibverbs that MRC has its own of change nothing. */
  const int ignored = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
  CHECK(mrc_modify_qp(queue_pair, &verbs, IBV_QP_STATE | IBV_QP_SQ_PSN | ignored, &own, sending) == 0);
  struct mrc_qp_init_attr initial;
  memset(&own, 0xFF, sizeof own);
  CHECK(mrc_query_qp(queue_pair, &verbs, IBV_QP_STATE, &own, sending | MRC_QP_HINT, &initial) == 0);
  CHECK(verbs.qp_state == IBV_QPS_RTS && own.mpr.mpr == 64 && own.mpr.mpr_dest == 64 &&
        own.wimm.max_wimm == 16);
  CHECK(own.timeout == 15 && own.retry.linear_cnt == 3 && own.retry.exp_cnt == 25 && own.qp_hint != NULL);
  CHECK(initial.send_cq == sends && initial.pd == domain && initial.cap.max_recv_wr == SIZES);
}

static int post(enum ibv_wr_opcode opcode, uint64_t from, uint64_t to, uint32_t rkey, uint32_t bytes,
                uint32_t immediate) {
  /* Of two pieces, so that packets cross from one into the other. */
  const uint32_t first = bytes / 3;
  struct ibv_sge pieces[2] = {{(uint64_t)(buffer + from), first, region->lkey},
                              {(uint64_t)(buffer + from + first), bytes - first, region->lkey}};
  struct ibv_send_wr request = {.wr_id = bytes,
                                .sg_list = pieces,
                                .num_sge = 2,
                                .opcode = opcode,
                                .send_flags = IBV_SEND_SIGNALED,
                                .imm_data = htonl(immediate)};
  request.wr.rdma.remote_addr = to;
  request.wr.rdma.rkey = rkey;
  struct ibv_send_wr* bad = NULL;
  const int error = mrc_post_send(queue_pair, &request, &bad);
  CHECK(error == 0 || bad == &request);
  return error;
}

static void refuse_others(void) {
  static const enum ibv_wr_opcode others[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_READ,
                                              IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD};
  for (unsigned i = 0; i < sizeof others / sizeof others[0]; ++i)
    CHECK(post(others[i], 0, 0, 0, 8, 0) == EOPNOTSUPP);
}

static struct ibv_wc next_done(struct mrc_cq* queue) {
  struct ibv_wc done;
  int count = 0;
  while (count == 0) count = mrc_poll_cq(queue, 1, &done);
  CHECK(count == 1);
  if (done.status != IBV_WC_SUCCESS) {
    fprintf(stderr, "a request ended with %s\n", ibv_wc_status_str(done.status));
    exit(1);
  }
  return done;
}

static void exchange(int connection, const struct end* own, struct end* peer) {
  CHECK(write(connection, own, sizeof *own) == sizeof *own);
  CHECK(recv(connection, peer, sizeof *peer, MSG_WAITALL) == sizeof *peer);
}

static void wait_for_peer(int connection) {
  char byte = 'x';
  CHECK(write(connection, &byte, 1) == 1 && recv(connection, &byte, 1, MSG_WAITALL) == 1);
}

static int connected(const char* server) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(TCP_PORT)};
  const int one = 1, made = socket(AF_INET, SOCK_STREAM, 0);
  if (server != NULL) {
    CHECK(inet_pton(AF_INET, server, &address.sin_addr) == 1);
    CHECK(connect(made, (struct sockaddr*)&address, sizeof address) == 0);
    return made;
  }
  CHECK(setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0);
  CHECK(bind(made, (struct sockaddr*)&address, sizeof address) == 0 && listen(made, 1) == 0);
  printf("listening\n");
  fflush(stdout);
  const int connection = accept(made, NULL, NULL);
  CHECK(connection >= 0);
  close(made);
  return connection;
}

static void disable_first_port(void) {
  struct mrc_ctl_port_attr state = {MRC_CTL_PORT_ADMIN_DISABLED};
  CHECK(mrc_ctl_modify_port(context, 1, &state, MRC_CTL_PORT_ADMIN_STATE) == 0);
  state.port_admin_state = MRC_CTL_PORT_ADMIN_ENABLED;
  CHECK(mrc_ctl_query_port(context, 1, &state, MRC_CTL_PORT_ADMIN_STATE) == 0);
  CHECK(state.port_admin_state == MRC_CTL_PORT_ADMIN_DISABLED);
  struct ibv_port_attr port;
  CHECK(ibv_query_port(device, 1, &port) == 0 && port.state == IBV_PORT_DOWN);
}

static void enable_first_port(void) {
  struct mrc_ctl_port_attr state = {MRC_CTL_PORT_ADMIN_ENABLED};
  CHECK(mrc_ctl_modify_port(context, 1, &state, MRC_CTL_PORT_ADMIN_STATE) == 0);
}

static void write_all(const struct end* peer, int disables) {
  struct pollfd input = {.fd = 0, .events = POLLIN};
  uint64_t posted = 0, finished = 0, after = 0;
  /* Some more after what happens in the middle. */
  while (after < AFTER) {
    for (; posted < finished + WINDOW; ++posted) {
      const uint64_t slot = posted % SLOTS * SLOT_BYTES;
      CHECK(post(IBV_WR_RDMA_WRITE, slot, peer->address + slot, peer->rkey, SLOT_BYTES, 0) == 0);
    }
    CHECK(next_done(sends).opcode == IBV_WC_RDMA_WRITE);
    ++finished;
    if (after > 0) {
      ++after;
    } else if (finished == BEFORE && disables) {
      disable_first_port();
      after = 1;
    } else if (finished == BEFORE) {
      printf("running\n");
      fflush(stdout);
    } else if (finished > BEFORE && poll(&input, 1, 0) == 1) {
      after = 1;
    }
  }
  for (; finished < posted; ++finished) next_done(sends);
  for (int i = 0; i < SIZES; ++i)
    CHECK(post(IBV_WR_RDMA_WRITE_WITH_IMM, place_of(i), peer->address + place_of(i), peer->rkey, kSizes[i],
               (uint32_t)(1000 + i)) == 0);
  for (int i = 0; i < SIZES; ++i) CHECK(next_done(sends).wr_id == kSizes[i]);
}

static void post_receives(void) {
  for (int i = 0; i < SIZES; ++i) {
    struct ibv_recv_wr request = {.wr_id = (uint64_t)i}, *bad = NULL;
    CHECK(mrc_post_recv(queue_pair, &request, &bad) == 0);
  }
  CHECK(mrc_req_notify_cq(receives, 0) == 0);
}

static void check_all(void) {
  struct mrc_cq* woken = NULL;
  void* of_program = NULL;
  CHECK(mrc_get_cq_event(channel, &woken, &of_program) == 0 && woken == receives && of_program == buffer);
  mrc_ack_cq_events(woken, 1);
  for (int i = 0; i < SIZES; ++i) {
    const struct ibv_wc done = next_done(receives);
    CHECK(done.opcode == IBV_WC_RECV_RDMA_WITH_IMM && ntohl(done.imm_data) == (uint32_t)(1000 + i));
    CHECK(done.wr_id == (uint64_t)i && done.byte_len == kSizes[i]);
    for (uint32_t at = 0; at < kSizes[i]; ++at) CHECK(buffer[place_of(i) + at] == pattern(place_of(i) + at));
    CHECK(buffer[place_of(i) + kSizes[i]] == 0);
  }
  for (uint64_t at = 0; at < ENDS; ++at) CHECK(buffer[at] == pattern(at));
}

/* An explicit profile: half of its EVs in either plane. */
static void configure(uint64_t profile) {
  struct mrc_ctl_device_attr facts;
  int supported = 0;
  CHECK(mrc_ctl_query_device_ex(device, context, &facts, &supported) == 0 && supported != 0);
  CHECK((facts.ev.ev_mode_mask & MRC_CTL_EV_MODE_EXP) != 0 && EVS % facts.ev.ev_count_align == 0);
  CHECK(facts.phy_port_mask == 6 && facts.ev.ev_fmt_mode_mask == MRC_CTL_EV_FMT_MODE_STEV);
  struct mrc_ctl_ev_profile_attr attributes = {.profile_state = MRC_CTL_PROFILE_OFFLINE,
                                               .ev_mode = MRC_CTL_EV_MODE_GEN,
                                               .ev_count = EVS,
                                               .ev_min_active = 2,
                                               .ev_event_mask = MRC_CTL_EV_GOOD | MRC_CTL_EV_ASSUMED_BAD};
  const int offline = MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MODE | MRC_CTL_EV_PROFILE_FMT_ID |
                      MRC_CTL_EV_PROFILE_COUNT | MRC_CTL_EV_PROFILE_MIN_ACTIVE |
                      MRC_CTL_EV_PROFILE_EVENT_MASK;
  CHECK(mrc_ctl_modify_ev_profile(context, profile, &attributes, offline) == -1 && errno == EOPNOTSUPP);
  attributes.ev_mode = MRC_CTL_EV_MODE_EXP;
  CHECK(mrc_ctl_modify_ev_profile(context, profile, &attributes, offline) == 0);
  attributes.profile_state = MRC_CTL_PROFILE_ONLINE;
  CHECK(mrc_ctl_modify_ev_profile(context, profile, &attributes, MRC_CTL_EV_PROFILE_STATE) == -1 &&
        errno == EINVAL);
  struct mrc_ctl_ev_op_entry entries[EVS] = {{.ev = MRC_CTL_EV_UNPOPULATED}};
  for (int i = 0; i < EVS; ++i) {
    const uint32_t value = (uint32_t)(0x9000 + i) << 16 | 0x17;
    memcpy(entries[i].ev_new.val, &value, sizeof value);
    entries[i].ev_new.port = (uint8_t)(1 + i % 2);
    entries[i].state = MRC_CTL_EV_GOOD;
  }
  attributes.ev_op.op = MRC_CTL_EV_OP_REPLACE_EV;
  attributes.ev_op.entries = entries;
  attributes.ev_op.entry_count = EVS;
  CHECK(mrc_ctl_modify_ev_profile(context, profile, &attributes, MRC_CTL_EV_PROFILE_EV_OP) == 0);
  CHECK(mrc_ctl_modify_ev_profile(context, profile, &attributes, MRC_CTL_EV_PROFILE_EV_OP) == -1 &&
        errno == ENOENT);
  attributes.cur_profile_state = MRC_CTL_PROFILE_OFFLINE;
  CHECK(mrc_ctl_modify_ev_profile(context, profile, &attributes,
                                  MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_CUR_STATE) == 0);
}

static struct mrc_ctl_ev_op_entry entries[EVS];
static void query_evs(uint64_t profile, enum mrc_ctl_ev_op op, int count) {
  struct mrc_ctl_ev_profile_attr attributes = {.ev_op = {.op = op, .entries = entries, .entry_count = count}};
  CHECK(mrc_ctl_query_ev_profile(context, profile, &attributes, MRC_CTL_EV_PROFILE_EV_OP) == 0);
  CHECK(attributes.ev_op.entry_count == count && attributes.profile_state == MRC_CTL_PROFILE_ONLINE);
}

static void control_evs(uint64_t profile) {
  struct mrc_ctl_ev_profile_attr attributes = {
      .ev_op = {.op = MRC_CTL_EV_OP_QUERY_EV_ARRAY, .entries = entries}};
  CHECK(mrc_ctl_query_ev_profile(context, profile, &attributes, MRC_CTL_EV_PROFILE_EV_OP) == -1 &&
        errno == E2BIG);
  CHECK(attributes.ev_op.entry_count == EVS);
  query_evs(profile, MRC_CTL_EV_OP_QUERY_EV_ARRAY, EVS);
  for (int i = 0; i < EVS; ++i)
    CHECK(entries[i].ev.port == 1 + i % 2 && entries[i].state != MRC_CTL_EV_UNKNOWN);
  for (int denied = 1; denied >= 0; --denied) {
    entries[0].state = denied ? MRC_CTL_EV_DENIED : MRC_CTL_EV_GOOD;
    attributes.ev_op.op = MRC_CTL_EV_OP_MODIFY_EV_STATE;
    attributes.ev_op.entry_count = 1;
    CHECK(mrc_ctl_modify_ev_profile(context, profile, &attributes, MRC_CTL_EV_PROFILE_EV_OP) == 0);
    query_evs(profile, MRC_CTL_EV_OP_QUERY_EV_STATE, 1);
    CHECK((entries[0].state == MRC_CTL_EV_DENIED) == (denied != 0));
  }
  /* It is in use. */
  attributes.profile_state = MRC_CTL_PROFILE_OFFLINE;
  CHECK(mrc_ctl_modify_ev_profile(context, profile, &attributes, MRC_CTL_EV_PROFILE_STATE) == -1 &&
        errno == EBUSY);
  struct mrc_cq* events = mrc_ctl_create_ev_event_cq(context, 16, NULL, NULL, 0);
  struct mrc_ctl_ev_event some[16];
  const int count = mrc_ctl_poll_ev_event(events, 16, some);
  CHECK(count >= 0);
  for (int i = 0; i < count; ++i)
    CHECK(some[i].profile_id == profile &&
          (some[i].state == MRC_CTL_EV_GOOD || some[i].state == MRC_CTL_EV_ASSUMED_BAD));
  CHECK(mrc_poll_cq(events, 1, NULL) == -1 && errno == EINVAL);
  CHECK(mrc_destroy_cq(events) == 0);
}

static void give_back(uint64_t profile) {
  struct mrc_ctl_ev_profile_attr attributes = {.profile_state = MRC_CTL_PROFILE_OFFLINE};
  CHECK(mrc_ctl_modify_ev_profile(context, profile, &attributes, MRC_CTL_EV_PROFILE_STATE) == 0);
  attributes.profile_state = MRC_CTL_PROFILE_INIT;
  CHECK(mrc_ctl_modify_ev_profile(context, profile, &attributes, MRC_CTL_EV_PROFILE_STATE) == 0);
}

static void use_profile(uint64_t profile) {
  struct ibv_qp_attr verbs = {.qp_state = IBV_QPS_INIT};
  struct mrc_qp_attr own = {.profile = {.ev_profile_id = profile}};
  CHECK(mrc_modify_qp(queue_pair, &verbs, IBV_QP_STATE, &own, MRC_QP_EV_PROFILE_ID) == 0);
}

int main(int argc, char** argv) {
  uint64_t profile = 0;
  int disables = 0, option;
  while ((option = getopt(argc, argv, "e:d")) != -1) {
    if (option == 'e') profile = strtoull(optarg, NULL, 10);
    if (option == 'd') disables = 1;
  }
  const char* server = argv[optind];
  open_all();
  struct mrc_qp_hint_init_attr expected = {.attr = {.num_send_peers = 3}};
  struct mrc_qp_hint* hint = mrc_create_qp_hint(context, &expected);
  struct mrc_qp_hint_attr read = {.num_qps_per_peer = 5};
  CHECK(hint != NULL && mrc_query_qp_hint(hint, &read, MRC_QP_HINT_NUM_SEND_PEERS) == 0);
  CHECK(read.num_send_peers == 3 && read.num_qps_per_peer == 5);
  make_queue_pair(hint);
  if (profile != 0) {
    configure(profile);
    use_profile(profile);
  }
  struct end own = {.psn = server != NULL ? 0xFFFFF0 : 5, .rkey = region->rkey, .address = (uint64_t)buffer},
             peer;
  CHECK(mrc_get_qpn(queue_pair, &own.number) == 0 && ibv_query_gid(device, 1, 0, &own.gid) == 0);
  const int connection = connected(server);
  exchange(connection, &own, &peer);
  connect_to(&peer, own.psn);
  refuse_others();
  if (server == NULL)
    post_receives();
  else
    for (uint64_t at = 0; at < BUFFER_BYTES; ++at) buffer[at] = pattern(at);
  wait_for_peer(connection);
  if (server == NULL)
    check_all();
  else
    write_all(&peer, disables);
  if (profile != 0) control_evs(profile);
  wait_for_peer(connection);
  if (disables) enable_first_port();
  CHECK(mrc_destroy_qp(queue_pair) == 0 && mrc_destroy_qp_hint(hint) == 0);
  if (profile != 0) give_back(profile);
  CHECK(mrc_destroy_cq(sends) == 0 && mrc_destroy_cq(receives) == 0 &&
        mrc_destroy_comp_channel(channel) == 0);
  CHECK(mrc_destroy_context(context) == 0 && ibv_dereg_mr(region) == 0 && ibv_dealloc_pd(domain) == 0);
  CHECK(ibv_close_device(device) == 0);
  printf("done\n");
  return 0;
}
