// The controller's interface: profiles of entropy values (EVs), their events, ports.
#include <cstddef>
#include <cstring>

#include "mrc_ctl.h"
#include "objects.hpp"

using namespace weft::mrc;
namespace request = weft::verbs::request;

namespace weft::mrc {
namespace {

// Format and congestion control are the lab's: one profile of each, always online.
constexpr uint64_t kOnlyProfile = 0;
constexpr int kFieldBits = 16;  // of both fields of an EV
constexpr int kFields = 2;
const char* const kNscc = "uet-1.0-nscc";
const char* kWithNscc[] = {kNscc, nullptr};
const char* kWithout[] = {nullptr};

constexpr int kProfileAttributes = MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MODE |
                                   MRC_CTL_EV_PROFILE_FMT_ID | MRC_CTL_EV_PROFILE_COUNT |
                                   MRC_CTL_EV_PROFILE_MIN_ACTIVE | MRC_CTL_EV_PROFILE_EVENT_MASK;
constexpr int kProfileAll = kProfileAttributes | MRC_CTL_EV_PROFILE_CUR_STATE | MRC_CTL_EV_PROFILE_EV_OP |
                            MRC_CTL_EV_PROFILE_EV_FIELDS_OP | MRC_CTL_EV_PROFILE_VENDOR_CFG;

// An EV as requests have it. False if it has more than 32 bits.
bool value_of(const mrc_ctl_ev& ev, uint64_t& value) {
  uint32_t number = 0;
  std::memcpy(&number, ev.val, sizeof number);
  for (size_t i = sizeof number; i < sizeof ev.val; ++i)
    if (ev.val[i] != 0) return false;
  value = number;
  return true;
}

mrc_ctl_ev ev_of(uint64_t value, uint64_t port) {
  mrc_ctl_ev ev{};
  const auto number = static_cast<uint32_t>(value);
  std::memcpy(ev.val, &number, sizeof number);
  ev.port = static_cast<uint8_t>(port);
  return ev;
}

mrc_ctl_ev_state state_of(uint64_t state) {
  return static_cast<mrc_ctl_ev_state>(static_cast<int32_t>(static_cast<uint32_t>(state)));
}

// The masks that modify_ev_profile and query_ev_profile have alike. Result: 0 or an errno.
int check_mask(const mrc_ctl_ev_profile_attr& attributes, int mask) {
  const bool has_entries = (mask & MRC_CTL_EV_PROFILE_EV_OP) != 0;
  const bool has_fields = (mask & MRC_CTL_EV_PROFILE_EV_FIELDS_OP) != 0;
  if ((mask & ~kProfileAll) != 0 || (has_entries && has_fields)) return EINVAL;
  if (has_fields) return EOPNOTSUPP;
  if (has_entries && (attributes.ev_op.entry_count < 0 ||
                      (attributes.ev_op.entry_count > 0 && attributes.ev_op.entries == nullptr)))
    return EINVAL;
  return 0;
}

int replace(mrc_context& context, uint64_t profile, const mrc_ctl_ev_op_entry& entry) {
  request::replace_ev::Question asked{};
  if (!value_of(entry.ev, asked.value) || !value_of(entry.ev_new, asked.new_value) ||
      (entry.flags & ~static_cast<uint32_t>(MRC_CTL_EV_OP_F_ALL_COPIES)) != 0)
    return EINVAL;
  // An EV is good until a queue pair that has it says otherwise. Programs leave the state out, too.
  if (entry.state != MRC_CTL_EV_GOOD && entry.state != 0) return EOPNOTSUPP;
  asked.profile = profile;
  asked.port = entry.ev.port;
  asked.new_port = entry.ev_new.port;
  asked.all_copies = (entry.flags & MRC_CTL_EV_OP_F_ALL_COPIES) != 0 ? 1 : 0;
  request::replace_ev::Answer answer{};
  return ask<request::replace_ev>(context, asked, answer);
}

int modify_state(mrc_context& context, uint64_t profile, const mrc_ctl_ev_op_entry& entry) {
  uint64_t value = 0;
  if (!value_of(entry.ev, value)) return ENOENT;
  request::modify_ev_state::Answer answer{};
  return ask<request::modify_ev_state>(
      context, {profile, value, entry.ev.port, static_cast<uint32_t>(entry.state)}, answer);
}

int query_state(mrc_context& context, uint64_t profile, mrc_ctl_ev_op_entry& entry) {
  uint64_t value = 0;
  if (!value_of(entry.ev, value)) return ENOENT;
  request::query_ev_state::Answer answer{};
  const int failure = ask<request::query_ev_state>(context, {profile, value, entry.ev.port}, answer);
  if (failure == 0) entry.state = state_of(answer.ev_state);
  return failure;
}

int query_array(mrc_context& context, uint64_t profile, uint64_t count, mrc_ctl_ev_profile_attr& attributes) {
  const auto given = static_cast<uint64_t>(attributes.ev_op.entry_count);
  attributes.ev_op.entry_count = static_cast<int>(count);
  if (given < count) return E2BIG;
  for (uint64_t index = 0; index < count; ++index) {
    request::query_ev::Answer answer{};
    if (const int failure = ask<request::query_ev>(context, {profile, index}, answer); failure != 0)
      return failure;
    mrc_ctl_ev_op_entry& entry = attributes.ev_op.entries[index];
    entry.ev = ev_of(answer.value, answer.port);
    entry.state = state_of(answer.ev_state);
  }
  return 0;
}

// What changes something: all entries, up to the first that fails.
int carry_out(mrc_context& context, uint64_t profile, const mrc_ctl_ev_profile_attr& attributes) {
  for (int i = 0; i < attributes.ev_op.entry_count; ++i) {
    const mrc_ctl_ev_op_entry& entry = attributes.ev_op.entries[i];
    const int failure = attributes.ev_op.op == MRC_CTL_EV_OP_REPLACE_EV
                            ? replace(context, profile, entry)
                            : modify_state(context, profile, entry);
    if (failure != 0) return failure;
  }
  return 0;
}

int modify_profile(mrc_context& context, uint64_t profile, const mrc_ctl_ev_profile_attr& attributes,
                   int mask) {
  if (const int failure = check_mask(attributes, mask); failure != 0) return failure;
  if ((mask & MRC_CTL_EV_PROFILE_VENDOR_CFG) != 0) return EOPNOTSUPP;
  const bool has_entries = (mask & MRC_CTL_EV_PROFILE_EV_OP) != 0;
  if (has_entries && attributes.ev_op.op != MRC_CTL_EV_OP_REPLACE_EV &&
      attributes.ev_op.op != MRC_CTL_EV_OP_MODIFY_EV_STATE)
    return EINVAL;
  if ((mask & MRC_CTL_EV_PROFILE_CUR_STATE) != 0) {
    request::query_ev_profile::Answer present{};
    const int failure = ask<request::query_ev_profile>(context, {profile}, present);
    if (failure != 0) return failure;
    if (present.profile_state != static_cast<uint64_t>(attributes.cur_profile_state)) return EINVAL;
  }
  if ((mask & kProfileAttributes) != 0) {
    request::modify_ev_profile::Question asked{};
    asked.profile = profile;
    asked.mask = static_cast<uint64_t>(mask & kProfileAttributes);
    asked.profile_state = static_cast<uint32_t>(attributes.profile_state);
    asked.ev_mode = static_cast<uint32_t>(attributes.ev_mode);
    asked.ev_format = attributes.ev_fmt_profile_id;
    asked.ev_count = attributes.ev_count;
    asked.ev_min_active = attributes.ev_min_active;
    asked.ev_event_mask = static_cast<uint32_t>(attributes.ev_event_mask);
    request::modify_ev_profile::Answer answer{};
    if (const int failure = ask<request::modify_ev_profile>(context, asked, answer); failure != 0)
      return failure;
  }
  return has_entries ? carry_out(context, profile, attributes) : 0;
}

int query_profile(mrc_context& context, uint64_t profile, mrc_ctl_ev_profile_attr& attributes, int mask) {
  if (const int failure = check_mask(attributes, mask); failure != 0) return failure;
  const bool has_entries = (mask & MRC_CTL_EV_PROFILE_EV_OP) != 0;
  if (has_entries && attributes.ev_op.op != MRC_CTL_EV_OP_QUERY_EV_STATE &&
      attributes.ev_op.op != MRC_CTL_EV_OP_QUERY_EV_ARRAY)
    return EINVAL;
  request::query_ev_profile::Answer answer{};
  if (const int failure = ask<request::query_ev_profile>(context, {profile}, answer); failure != 0)
    return failure;
  attributes.profile_state = attributes.cur_profile_state =
      static_cast<mrc_ctl_profile_state>(answer.profile_state);
  attributes.ev_mode = static_cast<mrc_ctl_ev_mode>(answer.ev_mode);
  attributes.ev_fmt_profile_id = answer.ev_format;
  attributes.ev_count = static_cast<uint32_t>(answer.ev_count);
  attributes.ev_min_active = static_cast<uint32_t>(answer.ev_min_active);
  attributes.ev_event_mask = static_cast<int>(answer.ev_event_mask);
  if ((mask & MRC_CTL_EV_PROFILE_VENDOR_CFG) != 0)
    std::memset(attributes.vendor_cfg, 0, sizeof attributes.vendor_cfg);
  if (!has_entries) return 0;
  if (attributes.ev_op.op == MRC_CTL_EV_OP_QUERY_EV_ARRAY)
    return query_array(context, profile, answer.entries, attributes);
  for (int i = 0; i < attributes.ev_op.entry_count; ++i)
    if (const int failure = query_state(context, profile, attributes.ev_op.entries[i]); failure != 0)
      return failure;
  return 0;
}

int query_device(ibv_context* verbs, mrc_ctl_device_attr& attributes, int& supported) {
  attributes = {};
  supported = 0;
  const weft::verbs::MrcProvider* provider = provider_of(verbs);
  if (provider == nullptr) return 0;
  request::query_mrc_device::Answer device{};
  request::query_ev_limits::Answer limits{};
  if (const int failure = ask<request::query_mrc_device>(verbs, *provider, {}, device); failure != 0)
    return failure;
  if (device.is_supported == 0) return 0;
  if (const int failure = ask<request::query_ev_limits>(verbs, *provider, {}, limits); failure != 0)
    return failure;
  supported = 1;
  attributes.mrc_ctl_protocol_version = MRC_CTL_PROTOCOL_VERSION_1;
  attributes.ev.ev_max_fmt_profiles = 1;
  attributes.ev.ev_max_profiles = static_cast<uint32_t>(limits.most_profiles);
  // Profiles share nothing.
  attributes.ev.ev_max_count = attributes.ev.ev_free_count =
      static_cast<uint32_t>(limits.most_profiles * limits.most_evs);
  attributes.ev.ev_max_count_profile = static_cast<uint32_t>(limits.most_evs);
  attributes.ev.ev_count_align = static_cast<uint32_t>(limits.ev_alignment);
  attributes.ev.ev_max_width = static_cast<uint32_t>(limits.ev_bits);
  attributes.ev.ev_fmt_mode_mask =
      limits.encapsulates != 0 ? MRC_CTL_EV_FMT_MODE_SRV6 : MRC_CTL_EV_FMT_MODE_STEV;
  attributes.ev.ev_mode_mask = MRC_CTL_EV_MODE_AUTO | MRC_CTL_EV_MODE_EXP;
  attributes.cc.cc_max_profiles = 1;
  attributes.cc.algorithms = limits.has_nscc != 0 ? kWithNscc : kWithout;
  attributes.phy_port_mask = static_cast<uint32_t>(((uint64_t{1} << device.planes) - 1) << 1);
  attributes.opt_attr = MRC_CTL_OPT_CAP_EV_EVENT | MRC_CTL_OPT_CAP_EV_EVENT_PRECISE_DROP_CNT;
  return 0;
}

// What a program's array of events has, which depends on the interface's version.
constexpr size_t kOldEventBytes = 48;
static_assert(offsetof(mrc_ctl_ev_event, state) == kOldEventBytes);

}  // namespace
}  // namespace weft::mrc

extern "C" {
#pragma GCC visibility push(default)

int mrc_ctl_query_device(ibv_context* context, mrc_ctl_device_attr* ctl_attr) {
  if (context == nullptr || ctl_attr == nullptr) return minus_one(EINVAL);
  int supported = 0;
  if (const int failure = query_device(context, *ctl_attr, supported); failure != 0)
    return minus_one(failure);
  return supported != 0 ? 0 : minus_one(EOPNOTSUPP);
}

int mrc_ctl_query_device_ex(ibv_context* context, mrc_context* mcontext, mrc_ctl_device_attr* ctl_attr,
                            int* supported) {
  if (context == nullptr || ctl_attr == nullptr || supported == nullptr ||
      (mcontext != nullptr && mcontext->verbs != context))
    return minus_one(EINVAL);
  return minus_one(query_device(context, *ctl_attr, *supported));
}

void mrc_ctl_query_version(uint32_t* current_version, uint32_t* last_supported_version,
                           uint32_t* vendor_version, uint32_t* last_supported_vendor_version) {
  if (current_version != nullptr) *current_version = MRC_CTL_API_CURRENT_VERSION;
  if (last_supported_version != nullptr) *last_supported_version = MRC_CTL_API_LAST_SUPPORTED_VERSION;
  if (vendor_version != nullptr) *vendor_version = MRC_CTL_VENDOR_API_CURRENT_VERSION;
  if (last_supported_vendor_version != nullptr)
    *last_supported_vendor_version = MRC_CTL_VENDOR_API_LAST_SUPPORTED_VERSION;
}

int mrc_ctl_query_port(mrc_context* context, uint8_t port_num, mrc_ctl_port_attr* attr, int attr_mask) {
  if (context == nullptr || attr == nullptr || (attr_mask & ~MRC_CTL_PORT_ADMIN_STATE) != 0)
    return minus_one(EINVAL);
  request::query_port_admin::Answer answer{};
  const int failure = ask<request::query_port_admin>(*context, {port_num}, answer);
  if (failure == 0)
    attr->port_admin_state =
        answer.is_enabled != 0 ? MRC_CTL_PORT_ADMIN_ENABLED : MRC_CTL_PORT_ADMIN_DISABLED;
  return minus_one(failure);
}

int mrc_ctl_modify_port(mrc_context* context, uint8_t port_num, mrc_ctl_port_attr* attr, int attr_mask) {
  if (context == nullptr || attr == nullptr || (attr_mask & ~MRC_CTL_PORT_ADMIN_STATE) != 0)
    return minus_one(EINVAL);
  if (attr_mask == 0) return 0;
  const auto state = static_cast<uint32_t>(attr->port_admin_state);
  request::modify_port_admin::Answer answer{};
  return minus_one(ask<request::modify_port_admin>(*context, {port_num, state}, answer));
}

int mrc_ctl_modify_ev_fmt_profile(mrc_context* mrc_ctx, uint64_t /*ev_fmt_profile_id*/,
                                  mrc_ctl_ev_fmt_profile_attr* attr, int /*attr_mask*/) {
  return minus_one(mrc_ctx == nullptr || attr == nullptr ? EINVAL : EOPNOTSUPP);
}

int mrc_ctl_query_ev_fmt_profile(mrc_context* mrc_ctx, uint64_t ev_fmt_profile_id,
                                 mrc_ctl_ev_fmt_profile_attr* attr, int attr_mask) {
  if (mrc_ctx == nullptr || attr == nullptr) return minus_one(EINVAL);
  mrc_ctl_device_attr device;
  int supported = 0;
  if (const int failure = query_device(mrc_ctx->verbs, device, supported); failure != 0)
    return minus_one(failure);
  const bool is_there = ev_fmt_profile_id == kOnlyProfile;
  attr->profile_state = attr->cur_profile_state = is_there ? MRC_CTL_PROFILE_ONLINE : MRC_CTL_PROFILE_INIT;
  attr->ev_fmt_mode = static_cast<mrc_ctl_ev_fmt_mode>(is_there ? device.ev.ev_fmt_mode_mask : 0);
  std::memset(attr->vendor_cfg, 0, sizeof attr->vendor_cfg);
  if ((attr_mask & MRC_CTL_EV_FMT_PROFILE_OP) == 0) return 0;
  if (attr->ev_fmt_op.op != MRC_CTL_EV_FMT_OP_QUERY_FIELDS) return minus_one(EINVAL);
  const int given = attr->ev_fmt_op.fmt_field_count;
  attr->ev_fmt_op.fmt_field_count = is_there ? kFields : 0;
  if (given < attr->ev_fmt_op.fmt_field_count) return minus_one(E2BIG);
  for (int i = 0; i < attr->ev_fmt_op.fmt_field_count; ++i) attr->ev_fmt_op.fmt_fields[i].width = kFieldBits;
  return 0;
}

int mrc_ctl_modify_ev_profile(mrc_context* mrc_ctx, uint64_t ev_profile_id, mrc_ctl_ev_profile_attr* attr,
                              int attr_mask) {
  if (mrc_ctx == nullptr || attr == nullptr) return minus_one(EINVAL);
  return minus_one(modify_profile(*mrc_ctx, ev_profile_id, *attr, attr_mask));
}

int mrc_ctl_query_ev_profile(mrc_context* mrc_ctx, uint64_t ev_profile_id, mrc_ctl_ev_profile_attr* attr,
                             int attr_mask) {
  if (mrc_ctx == nullptr || attr == nullptr) return minus_one(EINVAL);
  return minus_one(query_profile(*mrc_ctx, ev_profile_id, *attr, attr_mask));
}

int mrc_ctl_modify_cc_profile(mrc_context* mrc_ctx, uint64_t /*cc_profile_id*/, mrc_ctl_cc_profile_attr* attr,
                              int /*attr_mask*/) {
  return minus_one(mrc_ctx == nullptr || attr == nullptr ? EINVAL : EOPNOTSUPP);
}

int mrc_ctl_query_cc_profile(mrc_context* mrc_ctx, uint64_t cc_profile_id, mrc_ctl_cc_profile_attr* attr,
                             int attr_mask) {
  if (mrc_ctx == nullptr || attr == nullptr) return minus_one(EINVAL);
  if ((attr_mask & MRC_CTL_CC_PROFILE_CONFIG) != 0) return minus_one(EOPNOTSUPP);
  mrc_ctl_device_attr device;
  int supported = 0;
  if (const int failure = query_device(mrc_ctx->verbs, device, supported); failure != 0)
    return minus_one(failure);
  const bool is_there = cc_profile_id == kOnlyProfile;
  // The interface has no name for other algorithms.
  const bool named = !is_there || device.cc.algorithms[0] != nullptr;
  if ((attr_mask & MRC_CTL_CC_PROFILE_ALGORITHM) != 0 && !named) return minus_one(EOPNOTSUPP);
  attr->profile_state = attr->cur_profile_state = is_there ? MRC_CTL_PROFILE_ONLINE : MRC_CTL_PROFILE_INIT;
  attr->algorithm = is_there ? device.cc.algorithms[0] : nullptr;
  std::memset(attr->vendor_cfg, 0, sizeof attr->vendor_cfg);
  return 0;
}

mrc_cq* mrc_ctl_create_ev_event_cq(mrc_context* mrc_ctx, int cqe, void* cq_context, mrc_comp_channel* channel,
                                   int comp_vector) {
  if (mrc_ctx == nullptr || cqe <= 0 || comp_vector != 0) return null(EINVAL);
  // The NIC's queue wakes nobody.
  if (channel != nullptr) return null(EOPNOTSUPP);
  return add_queue(*mrc_ctx, nullptr, cq_context);
}

int mrc_ctl_poll_ev_event(mrc_cq* ev_cq, int num_entries, mrc_ctl_ev_event* ev_event) {
  if (ev_cq == nullptr || ev_cq->verbs != nullptr || num_entries < 0 || ev_event == nullptr) return -EINVAL;
  const bool has_state = ev_cq->context->has_event_states;
  const size_t size = has_state ? sizeof(mrc_ctl_ev_event) : kOldEventBytes;
  auto* place = reinterpret_cast<unsigned char*>(ev_event);
  int taken = 0;
  for (; taken < num_entries; ++taken) {
    request::take_ev_event::Answer answer{};
    if (const int failure = ask<request::take_ev_event>(*ev_cq->context, {}, answer); failure != 0)
      return taken > 0 ? taken : -failure;
    if (answer.is_there == 0) break;
    mrc_ctl_ev_event event{};
    event.profile_id = answer.profile;
    event.ev = ev_of(answer.value, answer.port);
    event.drop_count = static_cast<uint32_t>(answer.drop_count);
    event.state = state_of(answer.ev_state);
    std::memcpy(place + static_cast<size_t>(taken) * size, &event, size);
  }
  return taken;
}

int mrc_ctl_ep_batch_send_wait(mrc_context* mrc_ctx, uint8_t /*req_tc*/, mrc_ctl_ep_op_type /*op_type*/,
                               mrc_ctl_ep_req* /*req*/, int /*num_req*/, uint32_t /*rsp_timeout*/,
                               mrc_ctl_ep_rsp* /*rsp*/, int* num_rsp) {
  if (mrc_ctx == nullptr || num_rsp == nullptr) return minus_one(EINVAL);
  *num_rsp = 0;
  return minus_one(EOPNOTSUPP);
}

#pragma GCC visibility pop
}
