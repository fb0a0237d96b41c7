// The device: how libibverbs finds it and opens it, and what it says of itself.
#include <endian.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "common/channels.hpp"
#include "common/loaded_libibverbs.hpp"
#include "objects.hpp"
#include "operations.hpp"

#define WEFT_TEXT_OF(value) #value
#define WEFT_TEXT(value) WEFT_TEXT_OF(value)

namespace weft::verbs {
namespace {

constexpr size_t kSlackBytes = 256;  // later fields of structures that libibverbs fills

template <class Function>
void find(void* libibverbs, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(libibverbs, name));
}

bool is_complete(const Library& calls) {
  return calls.register_driver != nullptr && calls.init_and_alloc_context != nullptr &&
         calls.uninit_context != nullptr && calls.set_ops != nullptr;
}

template <class Function>
NamedOperation operation(const char* name, Function* function) {
  return {name, reinterpret_cast<void*>(function)};
}

bool set_all(verbs_context* context) {
  const NamedOperation all[] = {
      operation("alloc_pd", alloc_pd),           operation("attach_mcast", attach_mcast),
      operation("cq_event", cq_event),           operation("create_ah", create_ah),
      operation("create_cq", create_cq),         operation("create_cq_ex", create_cq_ex),
      operation("create_qp", create_qp),         operation("create_qp_ex", create_qp_ex),
      operation("create_srq", create_srq),       operation("dealloc_pd", dealloc_pd),
      operation("dereg_mr", dereg_mr),           operation("destroy_ah", destroy_ah),
      operation("destroy_cq", destroy_cq),       operation("destroy_qp", destroy_qp),
      operation("destroy_srq", destroy_srq),     operation("detach_mcast", detach_mcast),
      operation("free_context", free_context),   operation("modify_qp", modify_qp),
      operation("modify_srq", modify_srq),       operation("poll_cq", poll_cq),
      operation("post_recv", post_recv),         operation("post_send", post_send),
      operation("post_srq_recv", post_srq_recv), operation("query_device_ex", query_device_ex),
      operation("query_port", query_port),       operation("query_qp", query_qp),
      operation("query_srq", query_srq),         operation("reg_mr", reg_mr),
      operation("req_notify_cq", req_notify_cq), operation("rereg_mr", rereg_mr),
      operation("resize_cq", resize_cq),
  };
  return set_operations(context, all, static_cast<int>(sizeof all / sizeof all[0]));
}

verbs_device* alloc_device(verbs_sysfs_dev* /*sysfs*/) {
  return static_cast<verbs_device*>(std::calloc(1, sizeof(verbs_device) + kSlackBytes));
}
void uninit_device(verbs_device* device) { std::free(device); }

int open_all(Context& context) {
  if (const int error = context.connection.open(); error != 0) return error;
  // Where the kernel lets only parents read a process's memory (Yama), the NIC must be let, too.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  int descriptors[kMaxDescriptors] = {-1, -1, -1};
  request::open::Answer opened{};
  if (const int error = context.connection.ask<request::open>({kMagic, kVersion}, opened, descriptors);
      error != 0)
    return error;
  prctl(PR_SET_PTRACER, 0);  // its memory has been opened
  context.doorbell = descriptors[1];
  context.verbs.context.async_fd = descriptors[2];
  if (const int error = context.page.map(descriptors[0]); error != 0) return error;
  return context.connection.ask<request::query_device>({}, context.device);
}

verbs_context* alloc_context(ibv_device* device, int command_descriptor, void* /*private_data*/) {
  const Library& calls = library_of(device);
  auto* context = static_cast<Context*>(calls.init_and_alloc_context(
      device, command_descriptor, sizeof(Context) + kSlackBytes,
      reinterpret_cast<verbs_context*>(offsetof(Context, verbs)), kDriverUnknown));
  if (context == nullptr) return nullptr;
  context->connection = Connection();
  context->doorbell = -1;
  pthread_mutex_init(&context->mutex, nullptr);
  int error = open_all(*context);
  if (error == 0 && !set_all(&context->verbs)) {
    std::fprintf(stderr, "weft: this version of libibverbs is not known to the provider\n");
    error = ENOTSUP;
  }
  if (error == 0) {
    context->verbs.context.num_comp_vectors = 1;
    if (virtual_time != nullptr) virtual_time->began();
    return &context->verbs;
  }
  free_context(&context->verbs.context);
  errno = error;
  return nullptr;
}

const verbs_match_ent kMatches[] = {
    {nullptr, {.modalias = "rdma_device:*Nweft*"}, 0, 0, kMatchModalias},
    {},
};
// Found by the operations of its devices, which are the same but for their address.
Library libraries[kMostCopies];

Library library_at(void* libibverbs) {
  Library found{};
  // Named by the version of the private part for which this file is built (setup.py).
  find(libibverbs, "verbs_register_driver_" WEFT_TEXT(WEFT_PRIVATE_ABI), found.register_driver);
  find(libibverbs, "_verbs_init_and_alloc_context", found.init_and_alloc_context);
  find(libibverbs, "verbs_uninit_context", found.uninit_context);
  find(libibverbs, "verbs_set_ops", found.set_ops);
  found.device = {
      .name = "weft",
      .match_min_abi_version = 1,
      .match_max_abi_version = 1,
      .match_table = kMatches,
      .static_providers = nullptr,
      .match_device = nullptr,
      .alloc_context = alloc_context,
      .import_context = nullptr,
      .alloc_device = alloc_device,
      .uninit_device = uninit_device,
  };
  found.table = kUnknownTable;
  return found;
}

int create_channel(ibv_context* base) {
  request::create_channel::Answer answer{};
  int descriptors[kMaxDescriptors] = {-1, -1, -1};
  if (const int error = context_of(base).connection.ask<request::create_channel>({}, answer, descriptors);
      error != 0) {
    errno = error;
    return -1;
  }
  return descriptors[0];
}

void destroy_channel(ibv_context* base, int descriptor) {
  struct stat facts{};
  request::destroy_channel::Answer answer{};
  if (fstat(descriptor, &facts) == 0)
    context_of(base).connection.ask<request::destroy_channel>({facts.st_ino}, answer);
}

const ChannelMaker kChannels = {poll_cq, create_channel, destroy_channel};

int ask(ibv_context* base, uint32_t operation, const void* question, size_t question_bytes, void* answer,
        size_t answer_bytes) {
  return context_of(base).connection.ask(operation, question, question_bytes, answer, answer_bytes, nullptr);
}

[[gnu::constructor]] void register_device() {
  const LoadedLibibverbs loaded = loaded_libibverbs();
  for (int i = 0; i < loaded.count; ++i) {
    libraries[i] = library_at(loaded.handles[i]);
    if (is_complete(libraries[i])) libraries[i].register_driver(&libraries[i].device);
  }
  // Without the preloaded library programs cannot wait for completions; all else works.
  using SetMaker = void (*)(const ChannelMaker*);
  if (const auto set = reinterpret_cast<SetMaker>(dlsym(RTLD_DEFAULT, kSetChannelMaker)); set != nullptr)
    set(&kChannels);
  using TimeCalls = const VirtualTimeCalls* (*)();
  if (const auto calls = reinterpret_cast<TimeCalls>(dlsym(RTLD_DEFAULT, kVirtualTimeCalls));
      calls != nullptr)
    virtual_time = calls();
}

}  // namespace

const VirtualTimeCalls* virtual_time = nullptr;

// By the name of kMrcProvider.
extern "C" [[gnu::visibility("default")]] const MrcProvider weft_mrc_provider;
const MrcProvider weft_mrc_provider = {create_mrc_qp, modify_mrc_qp, query_mrc_qp, ask};

Library& library_of(const ibv_device* device) {
  const verbs_device_ops* operations = reinterpret_cast<const verbs_device*>(device)->ops;
  Library* found = libraries;
  while (&found->device != operations) ++found;
  return *found;
}

int Mapping::map(int descriptor) {
  struct stat facts{};
  const bool known = fstat(descriptor, &facts) == 0;
  void* mapped = known ? mmap(nullptr, static_cast<size_t>(facts.st_size), PROT_READ | PROT_WRITE, MAP_SHARED,
                              descriptor, 0)
                       : MAP_FAILED;
  const int error = errno;
  close(descriptor);
  if (mapped == MAP_FAILED) return error;
  // A child of fork() must not move its parent's counters.
  madvise(mapped, static_cast<size_t>(facts.st_size), MADV_DONTFORK);
  data = static_cast<unsigned char*>(mapped);
  bytes = static_cast<size_t>(facts.st_size);
  return 0;
}

void Mapping::unmap() {
  if (data != nullptr) munmap(data, bytes);
  data = nullptr;
}

void Context::ring(uint32_t number) {
  if (virtual_time != nullptr) virtual_time->did_something();
  DoorbellPage& page_of_bells = bells();
  page_of_bells.waiting[number / 64].fetch_or(1ull << (number % 64));
  if (page_of_bells.is_rung.exchange(1) != 0) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(doorbell, &one, sizeof one);
}

void free_context(ibv_context* base) {
  Context& context = context_of(base);
  context.connection.close();
  context.page.unmap();
  if (context.doorbell >= 0) close(context.doorbell);
  for (QueuePair** leaf : context.queue_pairs) std::free(leaf);
  pthread_mutex_destroy(&context.mutex);
  library_of(base->device).uninit_context(&context.verbs);
  std::free(&context);
}

int query_device_ex(ibv_context* base, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attributes,
                    size_t size) {
  if (input != nullptr && input->comp_mask != 0) return EINVAL;
  const request::query_device::Answer& facts = context_of(base).device;
  ibv_device_attr_ex all{};
  ibv_device_attr& basic = all.orig_attr;
  std::snprintf(basic.fw_ver, sizeof basic.fw_ver, "1.0.0");
  basic.node_guid = basic.sys_image_guid = htobe64(facts.node_guid);
  basic.max_mr_size = facts.max_memory_bytes;
  basic.page_size_cap = ~0xFFFull;
  basic.vendor_id = 0xFFFFFF;  // nobody's, as the kernel's software devices have it
  basic.max_qp = static_cast<int>(facts.max_queue_pairs);
  basic.max_qp_wr = static_cast<int>(facts.max_work_requests);
  basic.device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SYS_IMAGE_GUID;
  basic.max_sge = static_cast<int>(facts.max_pieces);
  basic.max_sge_rd = static_cast<int>(facts.max_read_pieces);
  basic.max_cq = static_cast<int>(facts.max_completion_queues);
  basic.max_cqe = static_cast<int>(facts.max_completions);
  basic.max_mr = static_cast<int>(facts.max_memory_regions);
  basic.max_pd = static_cast<int>(facts.max_domains);
  basic.max_qp_rd_atom = static_cast<int>(facts.max_reads_answered);
  basic.max_res_rd_atom = static_cast<int>(facts.max_reads_answered * facts.max_queue_pairs);
  basic.max_qp_init_rd_atom = static_cast<int>(facts.max_reads_sent);
  basic.atomic_cap = IBV_ATOMIC_HCA;
  basic.max_mcast_grp = static_cast<int>(facts.max_groups);
  basic.max_mcast_qp_attach = static_cast<int>(facts.max_group_members);
  basic.max_total_mcast_qp_attach = static_cast<int>(facts.max_groups * facts.max_group_members);
  basic.max_ah = static_cast<int>(facts.max_address_handles);
  basic.max_srq = static_cast<int>(facts.max_shared_queues);
  basic.max_srq_wr = static_cast<int>(facts.max_shared_requests);
  basic.max_srq_sge = static_cast<int>(facts.max_shared_pieces);
  basic.max_pkeys = 1;
  basic.phys_port_cnt = static_cast<uint8_t>(facts.port_count);
  all.completion_timestamp_mask = ~0ull;
  all.hca_core_clock = facts.clock_khz;
  all.device_cap_flags_ex = basic.device_cap_flags;
  all.phys_port_cnt_ex = static_cast<uint32_t>(facts.port_count);
  std::memset(attributes, 0, size);
  std::memcpy(attributes, &all, size < sizeof all ? size : sizeof all);
  return 0;
}

int query_port(ibv_context* base, uint8_t port, ibv_port_attr* attributes) {
  request::query_port::Answer answer{};
  if (const int error = context_of(base).connection.ask<request::query_port>({port}, answer); error != 0)
    return error;
  *attributes = ibv_port_attr{};
  attributes->state = static_cast<ibv_port_state>(answer.state);
  attributes->max_mtu = IBV_MTU_4096;
  attributes->active_mtu = static_cast<ibv_mtu>(answer.active_mtu);
  attributes->gid_tbl_len = static_cast<int>(answer.gid_count);
  attributes->port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
  attributes->max_msg_sz = static_cast<uint32_t>(answer.max_message_bytes);
  attributes->pkey_tbl_len = 1;
  attributes->max_vl_num = 1;
  attributes->active_width = static_cast<uint8_t>(answer.width);
  attributes->active_speed = static_cast<uint8_t>(answer.speed);
  attributes->phys_state = static_cast<uint8_t>(answer.physical_state);
  attributes->link_layer = IBV_LINK_LAYER_ETHERNET;
  return 0;
}

}  // namespace weft::verbs
