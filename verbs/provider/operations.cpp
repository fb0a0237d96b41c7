#include "operations.hpp"

#include <cstdlib>
#include <cstring>

#include "private_abi.hpp"

namespace weft::verbs {
namespace {

// Names in the table's order, each with the table that has it first: 0 is that of rdma-core 39 to 58, 1 of
// 59 to 61, 2 of 62 and 63, 3 of 64.
struct Slot {
  const char* name;
  int since;
};
constexpr int kTables = 4;
constexpr Slot kSlots[] = {
    {"advise_mr", 0},
    {"alloc_buf", 3},
    {"alloc_dm", 0},
    {"alloc_dmah", 1},
    {"alloc_mw", 0},
    {"alloc_null_mr", 0},
    {"alloc_parent_domain", 0},
    {"alloc_pd", 0},
    {"alloc_td", 0},
    {"async_event", 0},
    {"attach_counters_point_flow", 0},
    {"attach_mcast", 0},
    {"bind_mw", 0},
    {"close_xrcd", 0},
    {"cq_event", 0},
    {"create_ah", 0},
    {"create_counters", 0},
    {"create_cq", 0},
    {"create_cq_ex", 0},
    {"create_flow", 0},
    {"create_flow_action_esp", 0},
    {"create_qp", 0},
    {"create_qp_ex", 0},
    {"create_rwq_ind_table", 0},
    {"create_srq", 0},
    {"create_srq_ex", 0},
    {"create_wq", 0},
    {"dealloc_dmah", 1},
    {"dealloc_mw", 0},
    {"dealloc_pd", 0},
    {"dealloc_td", 0},
    {"dereg_mr", 0},
    {"destroy_ah", 0},
    {"destroy_counters", 0},
    {"destroy_cq", 0},
    {"destroy_flow", 0},
    {"destroy_flow_action", 0},
    {"destroy_qp", 0},
    {"destroy_rwq_ind_table", 0},
    {"destroy_srq", 0},
    {"destroy_wq", 0},
    {"detach_mcast", 0},
    {"dm_export_dmabuf_fd", 2},
    {"free_buf", 3},
    {"free_context", 0},
    {"free_dm", 0},
    {"get_srq_num", 0},
    {"import_dm", 0},
    {"import_mr", 0},
    {"import_pd", 0},
    {"modify_cq", 0},
    {"modify_flow_action_esp", 0},
    {"modify_qp", 0},
    {"modify_qp_rate_limit", 0},
    {"modify_srq", 0},
    {"modify_wq", 0},
    {"open_qp", 0},
    {"open_xrcd", 0},
    {"poll_cq", 0},
    {"post_recv", 0},
    {"post_send", 0},
    {"post_srq_ops", 0},
    {"post_srq_recv", 0},
    {"query_device_ex", 0},
    {"query_ece", 0},
    {"query_port", 0},
    {"query_port_speed", 2},
    {"query_qp", 0},
    {"query_qp_data_in_order", 0},
    {"query_rt_values", 0},
    {"query_srq", 0},
    {"read_counters", 0},
    {"reg_dm_mr", 0},
    {"reg_dmabuf_mr", 0},
    {"reg_mr", 0},
    {"reg_mr_ex", 1},
    {"req_notify_cq", 0},
    {"rereg_mr", 0},
    {"resize_cq", 0},
    {"set_ece", 0},
    {"unimport_dm", 0},
    {"unimport_mr", 0},
    {"unimport_pd", 0},
};
constexpr int kRoom = 256;  // more than any library reads

// The place of a name in a table, -1 if it has none.
int place_of(const char* name, int table) {
  int place = 0;
  for (const Slot& slot : kSlots) {
    if (slot.since > table) continue;
    if (std::strcmp(slot.name, name) == 0) return place;
    ++place;
  }
  return -1;
}

// A table of addresses that tell their places. Where libibverbs copies them into structures that are public,
// these tell the places back.
char markers[kRoom];
int place_in(const void* copied) {
  const auto* marker = static_cast<const char*>(copied);
  return marker >= markers && marker < markers + kRoom ? static_cast<int>(marker - markers) : -1;
}

template <class Function>
const void* address(Function function) {
  return reinterpret_cast<const void*>(function);
}

struct Anchor {
  const char* name;
  int place;
};

// Which table a device's library has, -1 if none of these.
int table_of(ibv_device* device) {
  const Library& calls = library_of(device);
  auto* trial = static_cast<verbs_context*>(
      calls.init_and_alloc_context(device, -1, sizeof(verbs_context), nullptr, kDriverUnknown));
  if (trial == nullptr) return -1;
  const void* marked[kRoom];
  for (int place = 0; place < kRoom; ++place) marked[place] = &markers[place];
  calls.set_ops(trial, marked);
  const ibv_context_ops& ops = trial->context.ops;
  const Anchor anchors[] = {
      {"advise_mr", place_in(address(trial->advise_mr))},
      {"alloc_mw", place_in(address(ops.alloc_mw))},
      {"alloc_pd", place_in(address(ops._compat_alloc_pd))},
      {"async_event", place_in(address(ops._compat_async_event))},
      {"attach_mcast", place_in(address(ops._compat_attach_mcast))},
      {"bind_mw", place_in(address(ops.bind_mw))},
      {"cq_event", place_in(address(ops._compat_cq_event))},
      {"create_ah", place_in(address(ops._compat_create_ah))},
      {"create_cq", place_in(address(ops._compat_create_cq))},
      {"create_qp", place_in(address(ops._compat_create_qp))},
      {"create_srq", place_in(address(ops._compat_create_srq))},
      {"dealloc_pd", place_in(address(ops._compat_dealloc_pd))},
      {"dereg_mr", place_in(address(ops._compat_dereg_mr))},
      {"destroy_ah", place_in(address(ops._compat_destroy_ah))},
      {"destroy_cq", place_in(address(ops._compat_destroy_cq))},
      {"destroy_qp", place_in(address(ops._compat_destroy_qp))},
      {"destroy_srq", place_in(address(ops._compat_destroy_srq))},
      {"detach_mcast", place_in(address(ops._compat_detach_mcast))},
      {"free_dm", place_in(address(trial->free_dm))},
      {"modify_cq", place_in(address(trial->modify_cq))},
      {"modify_qp", place_in(address(ops._compat_modify_qp))},
      {"modify_srq", place_in(address(ops._compat_modify_srq))},
      {"poll_cq", place_in(address(ops.poll_cq))},
      {"post_recv", place_in(address(ops.post_recv))},
      {"post_send", place_in(address(ops.post_send))},
      {"post_srq_recv", place_in(address(ops.post_srq_recv))},
      {"query_device_ex", place_in(address(trial->query_device_ex))},
      {"query_qp", place_in(address(ops._compat_query_qp))},
      {"query_srq", place_in(address(ops._compat_query_srq))},
      {"reg_dm_mr", place_in(address(trial->reg_dm_mr))},
      {"reg_mr", place_in(address(ops._compat_reg_mr))},
      {"req_notify_cq", place_in(address(ops.req_notify_cq))},
      {"rereg_mr", place_in(address(ops._compat_rereg_mr))},
      {"resize_cq", place_in(address(ops._compat_resize_cq))},
  };
  int found = -1;
  for (int table = kTables - 1; table >= 0 && found < 0; --table) {
    found = table;
    for (const Anchor& anchor : anchors)
      if (anchor.place != place_of(anchor.name, table)) found = -1;
  }
  calls.uninit_context(trial);
  std::free(trial);
  return found;
}

}  // namespace

bool set_operations(verbs_context* context, const NamedOperation* operations, int count) {
  Library& library = library_of(context->context.device);
  if (library.table == kUnknownTable) library.table = table_of(context->context.device);
  if (library.table < 0) return false;
  const void* functions[kRoom] = {};
  for (int i = 0; i < count; ++i) {
    const int place = place_of(operations[i].name, library.table);
    if (place >= 0) functions[place] = operations[i].function;
  }
  library.set_ops(context, functions);
  return true;
}

}  // namespace weft::verbs
