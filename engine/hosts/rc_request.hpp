// What is posted to an RC queue pair to be done at its peer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

#include "hosts/foreign_memory.hpp"
#include "hosts/queue_pair.hpp"
#include "packets/psn.hpp"
#include "packets/roce_formats.hpp"
#include "time/time.hpp"

namespace weft {

// Whether a SEND or a WRITE with immediate asks for a solicited event at the peer.
enum class Solicits : uint8_t { kWithImmediate, kNever, kAlways };

struct RcRequest {
  CompletionKind kind = CompletionKind::kWrite;  // kWrite, kSend or one that is_read()
  uint64_t work_id = 0;
  uint64_t record_id = 0;         // by which records name it; 0: the work id
  const uint8_t* data = nullptr;  // of a WRITE or SEND; null: zeros
  uint64_t length_bytes = 0;
  uint64_t remote_address = 0;
  uint32_t rkey = 0;
  std::optional<uint32_t> immediate{};
  std::shared_ptr<const void> owner{};  // of data, target or foreign
  uint8_t traffic_kind = 0;             // see Packet::traffic_kind
  Solicits solicits = Solicits::kWithImmediate;
  bool as_length = false;     // packets carry zeros as virtual bytes; data and target are null
  TimePs posted_ps = kNever;  // when it was posted first; kNever: now
  uint8_t* target = nullptr;  // of a READ or atomic; null: what comes back is discarded
  uint64_t swap_or_add = 0;   // operands of an atomic
  uint64_t compare = 0;
  ForeignMemory* foreign = nullptr;  // in place of data or target, which is null
};

// The longest message (InfiniBand specification, section 9.3.3), and the longest READ: its PSNs must leave
// their order known.
constexpr uint64_t kMaxMessageBytes = 1ull << 31;
constexpr uint64_t kMaxReadPackets = kMaxOutstandingPackets / 2;

constexpr uint64_t kAtomicBytes = 8;

constexpr bool is_atomic(CompletionKind kind) {
  return kind == CompletionKind::kCompareSwap || kind == CompletionKind::kFetchAdd;
}
// Whether the peer answers with data: a READ or an atomic.
constexpr bool is_read(CompletionKind kind) { return kind == CompletionKind::kRead || is_atomic(kind); }
// The same of a request's opcode.
constexpr bool is_read_request(uint8_t opcode) {
  return opcode == roce::kRcReadRequest || opcode == roce::kRcCompareSwap || opcode == roce::kRcFetchAdd;
}

// What Python says: None is kWithImmediate.
constexpr Solicits solicits(std::optional<bool> asked) {
  return !asked ? Solicits::kWithImmediate : *asked ? Solicits::kAlways : Solicits::kNever;
}

// Of the last packet of a SEND or WRITE: the BTH's bit. A WRITE without immediate causes no completion that
// an event could tell of (InfiniBand specification, section 9.2.3).
constexpr bool is_solicited(const RcRequest& request) {
  if (request.solicits == Solicits::kAlways)
    return request.kind == CompletionKind::kSend || request.immediate.has_value();
  return request.solicits == Solicits::kWithImmediate && request.immediate.has_value();
}

// Packets that carry so much payload; a message has one at least.
constexpr uint64_t packets_of_payload(uint64_t length_bytes, uint32_t path_mtu_bytes) {
  return std::max<uint64_t>(1, (length_bytes + path_mtu_bytes - 1) / path_mtu_bytes);
}

}  // namespace weft
