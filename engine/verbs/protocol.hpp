// What a verbs provider in a client process and the NIC's process say to each other: requests over a Unix
// socket (SOCK_SEQPACKET), and rings in shared memory for work and completions. Both are of the same build
// and machine, so everything is in native layout. Constants of libibverbs have its values.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weft::verbs {

constexpr uint64_t kMagic = 0x5765'6674'5665'7262;  // "WeftVerb"
constexpr uint64_t kVersion = 2;
constexpr uint64_t kMrcType = 0x100;  // of a queue pair of MRC, which enum ibv_qp_type does not have

// --- Requests: a header, then the fields of one of these, all 64 bits wide. The answer is a header with 0 or
// an errno, then the fields of the second list; descriptors travel beside it. An empty list has one field,
// `none`.
//
// open: descriptors of the doorbell page, the doorbell and the asynchronous events.
// create_channel: a descriptor for completion events, by whose inode number create_completion_queue names it.
// create_…_queue, create_queue_pair, resize_…: a descriptor of the ring.
#define WEFT_VERBS_ADDRESS \
  is_global, gid_high, gid_low, flow_label, gid_index, hop_limit, traffic_class, address_port
#define WEFT_VERBS_QUEUE_PAIR_ATTRIBUTES                                                                   \
  state, path_mtu, qkey, receive_psn, send_psn, remote_number, access, max_reads_sent, max_reads_answered, \
      rnr_timer, port, timeout, retry_count, rnr_retry, tells_drained, WEFT_VERBS_ADDRESS
// Of an EV profile; the mask is of enum mrc_ctl_ev_profile_attr_mask (mrc_ctl.h), as are states and modes.
#define WEFT_VERBS_EV_PROFILE profile_state, ev_mode, ev_format, ev_count, ev_min_active, ev_event_mask
// What a queue pair of MRC has besides, with mrc_mask of enum mrc_qp_attr_mask (mrc.h); 0 of the others.
#define WEFT_VERBS_MRC_ATTRIBUTES                                                              \
  max_wimm, max_wimm_dest, mpr, mpr_dest, mrc_timeout, ev_profile, cc_profile, linear_retries, \
      exponential_retries, mrc_capabilities
#define WEFT_VERBS_REQUESTS(REQUEST)                                                                         \
  REQUEST(open, (magic, version), (port_count))                                                              \
  REQUEST(query_device, (none),                                                                              \
          (node_guid, port_count, max_memory_bytes, max_queue_pairs, max_work_requests, max_pieces,          \
           max_read_pieces, max_completion_queues, max_completions, max_memory_regions, max_domains,         \
           max_reads_answered, max_reads_sent, max_address_handles, max_shared_queues, max_shared_requests,  \
           max_shared_pieces, max_inline_bytes, max_groups, max_group_members, clock_khz))                   \
  REQUEST(query_port, (port),                                                                                \
          (state, physical_state, active_mtu, max_message_bytes, gid_count, width, speed))                   \
  REQUEST(create_domain, (none), (domain))                                                                   \
  REQUEST(destroy_domain, (domain), (none))                                                                  \
  REQUEST(register_memory, (domain, address, length_bytes, virtual_address, access), (key))                  \
  REQUEST(register_again, (key, changes, domain, address, length_bytes, access), (new_key))                  \
  REQUEST(deregister_memory, (key), (none))                                                                  \
  REQUEST(create_channel, (none), (none))                                                                    \
  REQUEST(destroy_channel, (channel), (none))                                                                \
  REQUEST(create_completion_queue, (entries, channel, cookie), (queue, actual_entries))                      \
  REQUEST(resize_completion_queue, (queue, entries), (actual_entries))                                       \
  REQUEST(destroy_completion_queue, (queue), (completion_events, asynchronous_events))                       \
  REQUEST(create_shared_queue, (domain, max_requests, max_pieces, limit, cookie),                            \
          (queue, ring, actual_requests, actual_pieces))                                                     \
  REQUEST(modify_shared_queue, (queue, limit), (none))                                                       \
  REQUEST(query_shared_queue, (queue), (limit))                                                              \
  REQUEST(destroy_shared_queue, (queue), (asynchronous_events))                                              \
  REQUEST(create_queue_pair,                                                                                 \
          (domain, type, send_queue, receive_queue, shared_queue, max_sends, max_receives, max_send_pieces,  \
           max_receive_pieces, max_inline_bytes, signals_all, create_flags, cookie),                         \
          (queue_pair, number, actual_sends, actual_receives, send_entry_bytes))                             \
  REQUEST(modify_queue_pair,                                                                                 \
          (queue_pair, mask, WEFT_VERBS_QUEUE_PAIR_ATTRIBUTES, mrc_mask, WEFT_VERBS_MRC_ATTRIBUTES),         \
          (new_state))                                                                                       \
  REQUEST(query_queue_pair, (queue_pair),                                                                    \
          (is_draining, WEFT_VERBS_QUEUE_PAIR_ATTRIBUTES, WEFT_VERBS_MRC_ATTRIBUTES))                        \
  REQUEST(destroy_queue_pair, (queue_pair), (asynchronous_events))                                           \
  REQUEST(create_address_handle, (domain, WEFT_VERBS_ADDRESS), (handle))                                     \
  REQUEST(destroy_address_handle, (handle), (none))                                                          \
  REQUEST(attach_group, (queue_pair, gid_high, gid_low), (none))                                             \
  REQUEST(detach_group, (queue_pair, gid_high, gid_low), (none))                                             \
  REQUEST(query_mrc_device, (none), (is_supported, most_wimm, most_mpr, planes))                             \
  REQUEST(query_ev_limits, (none), (most_profiles, most_evs, ev_alignment, ev_bits, encapsulates, has_nscc)) \
  REQUEST(query_port_admin, (port), (is_enabled))                                                            \
  REQUEST(modify_port_admin, (port, is_enabled), (none))                                                     \
  REQUEST(query_ev_profile, (profile), (WEFT_VERBS_EV_PROFILE, entries))                                     \
  REQUEST(modify_ev_profile, (profile, mask, WEFT_VERBS_EV_PROFILE), (none))                                 \
  REQUEST(replace_ev, (profile, value, port, new_value, new_port, all_copies), (none))                       \
  REQUEST(query_ev, (profile, index), (value, port, ev_state))                                               \
  REQUEST(modify_ev_state, (profile, value, port, ev_state), (none))                                         \
  REQUEST(query_ev_state, (profile, value, port), (ev_state))                                                \
  REQUEST(take_ev_event, (none), (is_there, profile, value, port, ev_state, drop_count))

#define WEFT_VERBS_FIELDS(...) __VA_ARGS__
#define WEFT_VERBS_NUMBER(name, question, answer) name,
enum class Operation : uint32_t { WEFT_VERBS_REQUESTS(WEFT_VERBS_NUMBER) kCount };
#undef WEFT_VERBS_NUMBER

#define WEFT_VERBS_STRUCTS(name, question, answer)           \
  struct name {                                              \
    static constexpr Operation kOperation = Operation::name; \
    struct Question {                                        \
      uint64_t WEFT_VERBS_FIELDS question;                   \
    };                                                       \
    struct Answer {                                          \
      uint64_t WEFT_VERBS_FIELDS answer;                     \
    };                                                       \
  };
namespace request {
WEFT_VERBS_REQUESTS(WEFT_VERBS_STRUCTS)
}  // namespace request
#undef WEFT_VERBS_STRUCTS

struct QuestionHeader {
  uint32_t operation;
  uint32_t length_bytes;  // of the whole message
};
struct AnswerHeader {
  int32_t error;  // an errno, 0: done
  uint32_t descriptors;
};
constexpr size_t kMaxRequestBytes = 512;
constexpr size_t kMaxDescriptors = 3;

// --- Descriptors of events: what libibverbs reads from them.

struct CompletionEvent {
  uint64_t cookie;  // of the completion queue
};
struct AsynchronousEvent {
  uint64_t cookie;  // of the queue pair or queue, or the port's number
  uint32_t type;    // enum ibv_event_type
  uint32_t reserved;
};

// --- The doorbell page. A client that has put something into a ring sets the ring's bit, then writes to the
// doorbell unless `is_rung`; the NIC clears `is_rung`, then takes the bits.

constexpr uint32_t kMaxRings = 1u << 15;  // of work, of a client
struct DoorbellPage {
  std::atomic<uint32_t> is_rung;
  uint32_t padding[15];
  std::atomic<uint64_t> waiting[kMaxRings / 64];
};

// --- Rings. Counters run on without end, modulo 2^32; the place of an entry is its number modulo the ring's
// size, a power of 2.

// A ring of work: sends, then receives, of a queue pair; receives of a shared queue.
struct WorkCounters {
  std::atomic<uint32_t> posted;  // by the client
  uint32_t padding0[15];
  std::atomic<uint32_t> taken;  // by the NIC
  uint32_t padding1[15];
};

struct Piece {
  uint64_t address;
  uint32_t length_bytes;
  uint32_t key;
};

struct SendEntry {
  uint64_t work_id;
  uint32_t opcode;  // enum ibv_wr_opcode
  uint32_t flags;   // enum ibv_send_flags
  uint32_t immediate;
  uint32_t remote_key;
  uint64_t remote_address;
  uint64_t compare_or_add;
  uint64_t swap;
  uint32_t pieces;        // that follow, unless `inline_bytes`
  uint32_t inline_bytes;  // data that follow
  uint32_t address_handle;
  uint32_t remote_number;
  uint32_t remote_qkey;
  uint32_t is_inline;
};
static_assert(sizeof(SendEntry) == 72);

struct ReceiveEntry {
  uint64_t work_id;
  uint32_t pieces;  // that follow
  uint32_t reserved;
};

constexpr uint32_t rounded_up(uint32_t bytes, uint32_t unit) { return (bytes + unit - 1) / unit * unit; }
constexpr uint32_t send_entry_bytes(uint32_t max_pieces, uint32_t max_inline_bytes) {
  const auto pieces_bytes = static_cast<uint32_t>(max_pieces * sizeof(Piece));
  return rounded_up(static_cast<uint32_t>(sizeof(SendEntry)) +
                        (pieces_bytes > max_inline_bytes ? pieces_bytes : max_inline_bytes),
                    64);
}
constexpr uint32_t receive_entry_bytes(uint32_t max_pieces) {
  return rounded_up(static_cast<uint32_t>(sizeof(ReceiveEntry) + max_pieces * sizeof(Piece)), 16);
}

// In front of a ring of completions.
enum class Armed : uint32_t { kNo, kNext, kSolicited };
struct CompletionCounters {
  std::atomic<uint32_t> produced;  // by the NIC
  uint32_t padding0[15];
  std::atomic<uint32_t> consumed;  // by the client
  std::atomic<Armed> armed;        // by the client; the NIC takes it back with the event
  uint32_t padding1[14];
};

// What adapters of NVIDIA report as the service level of a datagram that RoCEv2 brought: UDP, and the type of
// the header that stands before the data. UCX 1.13 takes it from there.
constexpr uint32_t kIpv6Header = 0x9;
constexpr uint32_t kIpv4Header = 0xA;

struct CompletionEntry {
  uint64_t work_id;
  uint64_t time_ps;  // when it was done
  uint32_t status;   // enum ibv_wc_status
  uint32_t opcode;   // enum ibv_wc_opcode
  uint32_t length_bytes;
  uint32_t immediate;
  uint32_t queue_pair;  // its number
  uint32_t source_queue_pair;
  uint32_t flags;  // enum ibv_wc_flags
  uint32_t freed;  // sends, this one and the unsignaled ones before it; receives: 1
  uint32_t is_receive;
  uint32_t syndrome;
  uint32_t service_level;  // of a datagram, kIpv4Header or kIpv6Header
  uint32_t reserved;
};
static_assert(sizeof(CompletionEntry) == 64);

}  // namespace weft::verbs
