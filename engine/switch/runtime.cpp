#include "switch/runtime.hpp"

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "switch/hash.hpp"
#include "switch/meter.hpp"
#include "switch/switch.hpp"

// Compiler support routines that 128-bit division in generated code calls.
extern "C" {
unsigned __int128 __udivti3(unsigned __int128, unsigned __int128);
unsigned __int128 __umodti3(unsigned __int128, unsigned __int128);
__int128 __divti3(__int128, __int128);
__int128 __modti3(__int128, __int128);
}

namespace weft {

namespace {

EntryView* table_lookup(const TableView* view, const uint64_t* key) { return view->matcher->lookup(key); }

EntryView* table_lookup_1(const TableView* view, uint64_t key) {
  return view->matcher->lookup(std::array{key});
}

EntryView* table_lookup_2(const TableView* view, uint64_t first, uint64_t second) {
  return view->matcher->lookup(std::array{first, second});
}

ActionData* group_select(SwitchContext* context, const ActionGroup* group, uint64_t hash) {
  if (!group->is_random || group->bucket_count() == 0) return group->select(hash);
  return group->select(context->owner->random_between(0, group->bucket_count() - 1));
}

uint32_t meter_execute(Meter* meter, uint64_t units, uint64_t bytes, int64_t now_ps) {
  return meter == nullptr ? Meter::kGreen : meter->execute(units, bytes, now_ps);
}

Meter* meter_at(SwitchContext* context, uint64_t index) { return &context->meters[index]; }

uint64_t random_between(SwitchContext* context, uint64_t low, uint64_t high) {
  return context->owner->random_between(low, high);
}

void log_message(SwitchContext* context, uint32_t format, const uint64_t* values, uint32_t count,
                 uint32_t value_words) {
  context->owner->log_message(format, {values, size_t{count} * value_words}, value_words);
}

// `mask` is that of the parser's transition, on top of each member's own.
bool value_set_contains(SwitchContext* context, uint32_t index, const uint8_t* key, const uint8_t* mask,
                        uint32_t key_bytes) {
  for (const ValueSetMember& member : context->owner->objects().value_set(index)) {
    uint8_t difference = 0;
    for (uint32_t i = 0; i < key_bytes; ++i)
      difference = static_cast<uint8_t>(difference | ((key[i] ^ member.value[i]) & member.mask[i] & mask[i]));
    if (difference == 0) return true;
  }
  return false;
}

// Appends `count` bits, the first being the most significant bit of `source[0]`, to a zeroed bit string.
void append_bits(uint8_t* bits, uint64_t position, const uint8_t* source, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i, ++position)
    if ((source[i / 8] >> (7 - i % 8) & 1) != 0)
      bits[position / 8] = static_cast<uint8_t>(bits[position / 8] | 0x80 >> position % 8);
}

// ---- instrumented programs only

void trace(const PacketState* state, SwitchContext* context, uint32_t site, const uint8_t* values,
           uint32_t values_bytes, const uint8_t* data, uint32_t data_bytes) {
  Switch& owner = *context->owner;
  owner.trace().record(state->trace, site, {values, values_bytes}, {data, data_bytes}, owner.engine().now());
}

// What a table found: the key, then 1 and the entry's match, or 0.
void trace_lookup(const PacketState* state, SwitchContext* context, uint32_t site, const TableView* view,
                  const uint8_t* key, uint32_t key_bytes, const EntryView* found) {
  if (state->trace.packet == 0 || !context->owner->trace().wants(site)) return;
  std::vector<uint8_t> data(key, key + key_bytes);
  data.push_back(found != nullptr ? 1 : 0);
  if (found != nullptr) view->matcher->describe(*found, data);
  trace(state, context, site, data.data(), static_cast<uint32_t>(data.size()), nullptr, 0);
}

// Of programs lowered with bounds checks: generated code is about to access `size` bytes at `offset` of an
// object.
void check_bounds(uint64_t offset, uint64_t size, uint64_t limit, const char* place) {
  if (size <= limit && offset <= limit - size) return;
  std::fprintf(stderr, "%s: %llu bytes at %llu of %llu\n", place, static_cast<unsigned long long>(size),
               static_cast<unsigned long long>(offset), static_cast<unsigned long long>(limit));
  std::abort();
}

using HashFunction = uint64_t (*)(const uint8_t*, size_t);

// The hash of `size_bytes` at `data` followed by what the parser left of the packet.
uint64_t hash_with_payload(HashFunction hash, const uint8_t* data, uint64_t size_bytes,
                           const PacketState* state) {
  static thread_local std::vector<uint8_t> buffer;
  buffer.assign(data, data + size_bytes);
  buffer.insert(buffer.end(), state->data + state->payload_offset_bytes, state->data + state->size_bytes);
  buffer.resize(buffer.size() + state->virtual_bytes);
  return hash(buffer.data(), buffer.size());
}

template <typename Function>
uintptr_t address(Function* function) {
  return reinterpret_cast<uintptr_t>(function);
}

}  // namespace

std::map<std::string, uintptr_t> switch_runtime_symbols() {
  return {
      {"weft_table_lookup", address(table_lookup)},
      {"weft_table_lookup_1", address(table_lookup_1)},
      {"weft_table_lookup_2", address(table_lookup_2)},
      {"weft_group_select", address(group_select)},
      {"weft_meter_execute", address(meter_execute)},
      {"weft_meter_at", address(meter_at)},
      {"weft_random_between", address(random_between)},
      {"weft_log_message", address(log_message)},
      {"weft_value_set_contains", address(value_set_contains)},
      {"weft_append_bits", address(append_bits)},
      {"weft_check_bounds", address(check_bounds)},
      {"weft_trace", address(trace)},
      {"weft_trace_lookup", address(trace_lookup)},
      {"weft_hash_with_payload", address(hash_with_payload)},
      {"weft_hash_crc16", address(hash_crc16)},
      {"weft_hash_crc32", address(hash_crc32)},
      {"weft_hash_crc_ccitt", address(hash_crc_ccitt)},
      {"weft_hash_csum16", address(hash_csum16)},
      {"weft_hash_xor16", address(hash_xor16)},
      {"weft_hash_identity", address(hash_identity)},
      {"weft_hash_xor32", address(hash_xor32)},
      {"weft_hash_crc8", address(hash_crc8)},
      {"weft_hash_crc64", address(hash_crc64)},
      {"weft_hash_xxh64", address(hash_xxh64)},
      {"__udivti3", address(__udivti3)},
      {"__umodti3", address(__umodti3)},
      {"__divti3", address(__divti3)},
      {"__modti3", address(__modti3)},
      {"memcpy", address(static_cast<void* (*)(void*, const void*, size_t)>(std::memcpy))},
      {"memset", address(static_cast<void* (*)(void*, int, size_t)>(std::memset))},
      {"memmove", address(static_cast<void* (*)(void*, const void*, size_t)>(std::memmove))},
  };
}

std::map<std::string, uint64_t> switch_abi() {
  const auto site = [](TraceSite number) { return static_cast<uint64_t>(number); };
#define WEFT_MEMBER(type, member)             \
  {                                           \
    #type "." #member, offsetof(type, member) \
  }
  return {
      WEFT_MEMBER(ActionData, action),
      {"sizeof(ActionData)", sizeof(ActionData)},
      {"sizeof(EntryView)", sizeof(EntryView)},
      {"sizeof(SwitchContext)", sizeof(SwitchContext)},
      WEFT_MEMBER(EntryView, action),
      WEFT_MEMBER(EntryView, group),
      WEFT_MEMBER(EntryView, counter),
      WEFT_MEMBER(EntryView, meter),
      WEFT_MEMBER(EntryView, last_hit_ps),
      WEFT_MEMBER(CounterCell, packets),
      WEFT_MEMBER(CounterCell, bytes),
      {"sizeof(CounterCell)", sizeof(CounterCell)},
      WEFT_MEMBER(TableView, entry_count),
      WEFT_MEMBER(TableView, default_entry),
      {"sizeof(TableView)", sizeof(TableView)},
      WEFT_MEMBER(PacketState, data),
      WEFT_MEMBER(PacketState, size_bytes),
      WEFT_MEMBER(PacketState, virtual_bytes),
      WEFT_MEMBER(PacketState, packets),
      WEFT_MEMBER(PacketState, payload_offset_bytes),
      WEFT_MEMBER(PacketState, ingress_timestamp),
      WEFT_MEMBER(PacketState, egress_timestamp),
      WEFT_MEMBER(PacketState, enqueue_timestamp),
      WEFT_MEMBER(PacketState, dequeue_time_delta),
      WEFT_MEMBER(PacketState, enqueue_depth),
      WEFT_MEMBER(PacketState, dequeue_depth),
      WEFT_MEMBER(PacketState, ingress_port),
      WEFT_MEMBER(PacketState, egress_port),
      WEFT_MEMBER(PacketState, egress_rid),
      WEFT_MEMBER(PacketState, queue_class),
      WEFT_MEMBER(PacketState, packet_length_bytes),
      WEFT_MEMBER(PacketState, instance_type),
      WEFT_MEMBER(PacketState, egress_spec),
      WEFT_MEMBER(PacketState, multicast_group),
      WEFT_MEMBER(PacketState, priority),
      WEFT_MEMBER(PacketState, parser_error),
      WEFT_MEMBER(PacketState, checksum_error),
      WEFT_MEMBER(PacketState, clone_session),
      WEFT_MEMBER(PacketState, clone_field_list),
      WEFT_MEMBER(PacketState, digest_list),
      WEFT_MEMBER(PacketState, resubmit_field_list),
      WEFT_MEMBER(PacketState, recirculate_field_list),
      WEFT_MEMBER(PacketState, truncated_length_bytes),
      WEFT_MEMBER(PacketState, trimmed),
      WEFT_MEMBER(PacketState, exit_requested),
      WEFT_MEMBER(PacketState, abort_reason),
      WEFT_MEMBER(PacketState, loop_budget),
      WEFT_MEMBER(PacketState, large_headers_written),
      WEFT_MEMBER(PacketState, drop_site),
      WEFT_MEMBER(PacketState, headers_moved),
      WEFT_MEMBER(PacketState, headers_written),
      WEFT_MEMBER(PacketState, positions),
      WEFT_MEMBER(SwitchContext, tables),
      WEFT_MEMBER(SwitchContext, registers),
      WEFT_MEMBER(SwitchContext, counters),
      WEFT_MEMBER(SwitchContext, meters),
      WEFT_MEMBER(SwitchContext, now_ps),
      WEFT_MEMBER(SwitchContext, log_enabled),
      WEFT_MEMBER(SwitchContext, drop_port),
      {"kProgramStateOffset", kProgramStateOffset},
      {"kCloneRequested", PacketState::kCloneRequested},
      {"kAssertionFailed", PacketState::kAssertionFailed},
      {"kLoopLimit", PacketState::kLoopLimit},
      {"kLoopBudget", PacketState::kLoopBudget},
      {"kPassBudget", PacketState::kPassBudget},
      {"kNoAction", ActionData::kNoAction},
      {"kNoRoom", kNoRoom},
      {"kPositions", PacketState::kPositions},
      {"kRequestWords", PacketState::kRequestWords},
      {"kWriteOut", kWriteOut},
      {"kInPlace", kInPlace},
      {"kAsks", kAsks},
      {"kMoved", kMoved},
      {"kFirstProgramSite", kFirstProgramSite},
      {"TraceSite.received", site(TraceSite::kReceived)},
      {"TraceSite.copied", site(TraceSite::kCopied)},
      {"TraceSite.multicast", site(TraceSite::kMulticast)},
      {"TraceSite.no_clone_session", site(TraceSite::kNoCloneSession)},
      {"TraceSite.digest", site(TraceSite::kDigest)},
      {"TraceSite.enqueued", site(TraceSite::kEnqueued)},
      {"TraceSite.egress", site(TraceSite::kEgress)},
      {"TraceSite.sent", site(TraceSite::kSent)},
      {"TraceSite.dropped", site(TraceSite::kDropped)},
      {"TraceSite.trimmed", site(TraceSite::kTrimmed)},
  };
#undef WEFT_MEMBER
}

}  // namespace weft
