// Memory shared between the C++ switch runtime and the code that switch/lowering generates for a P4 program.
// Generated code addresses these members by the offsets that `switch_abi_offsets()` publishes to Python, so
// the structs below are their only definition.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weft {

constexpr uint32_t kMaxPort = 511;  // 9 bits: PortId_t of v1model

// An action bound to its data, as a table entry, a default entry or an action profile member holds it. The
// data follows the struct: each parameter in native byte order at the offset that lowering assigned to it.
struct alignas(8) ActionData {
  uint32_t action;      // index of the action in the program, or kNoAction
  uint32_t size_bytes;  // of the data

  static constexpr uint32_t kNoAction = 0xffffffff;
  uint8_t* bytes() { return reinterpret_cast<uint8_t*>(this + 1); }
  const uint8_t* bytes() const { return reinterpret_cast<const uint8_t*>(this + 1); }
};

struct CounterCell {
  uint64_t packets;
  uint64_t bytes;
};

class ActionGroup;
class MatchTable;
class Meter;
class Switch;

// The part of a table entry that generated code reads after a lookup.
struct EntryView {
  CounterCell counter;
  Meter* meter;         // direct meter, null until configured
  int64_t last_hit_ps;  // kept only for tables with idle timeouts
  ActionGroup* group;   // non-null: the selector chooses a member
  ActionData* action;   // null if `group` is set; last, next to the key and the action's data behind it
};

// What generated code reads of a table before a lookup.
struct TableView {
  uint64_t entry_count;
  EntryView* default_entry;   // never null
  const MatchTable* matcher;  // null before the first entry
};

// Which packet and which copy of it the records of a SwitchTrace are about; 0 if it is not traced.
struct TraceNumbers {
  uint32_t packet;
  uint32_t copy;
};

// Head of a packet's state; the program's own state (validity, metadata, headers) follows at
// kProgramStateOffset.
struct PacketState {
  // The packet as it entered the parser, and how much of it the parser consumed.
  const uint8_t* data;
  uint32_t size_bytes;
  uint32_t payload_offset_bytes;
  uint32_t virtual_bytes;  // zeros behind these that are not written out
  uint32_t packets;        // that the packet stands for
  // Set by the runtime; generated code copies them into the program's metadata.
  uint64_t ingress_timestamp;
  uint64_t egress_timestamp;
  uint64_t enqueue_timestamp;
  uint32_t dequeue_time_delta;
  uint32_t enqueue_depth;
  uint32_t dequeue_depth;
  uint32_t ingress_port;
  uint32_t egress_port;
  uint32_t egress_rid;
  uint32_t queue_class;
  uint32_t packet_length_bytes;  // follows add_header and remove_header
  uint32_t instance_type;
  // Set by generated code for the runtime.
  uint32_t egress_spec;
  uint32_t priority;
  uint32_t parser_error;
  uint32_t checksum_error;
  // All 0 for most packets, which then go straight on; see asks_for_more().
  alignas(8) uint32_t multicast_group;
  uint32_t clone_session;  // kCloneRequested | session
  uint32_t clone_field_list;
  uint32_t digest_list;
  uint32_t resubmit_field_list;  // 0: no resubmission
  uint32_t recirculate_field_list;
  uint32_t exit_requested;
  uint32_t abort_reason;  // not 0: the packet is to be dropped, see kAssertionFailed and kLoopLimit
  uint32_t truncated_length_bytes;
  uint32_t loop_budget;            // jumps backward that actions may still make for this packet
  uint32_t pass_budget;            // passes through a pipeline that this packet and its copies may still make
  uint32_t large_headers_written;  // not 0: something has been written to a large header
  uint32_t drop_site;  // what last marked the packet to be dropped (weft/switch/drop_sites.py); 0: nothing
  TraceNumbers trace;
  uint8_t trimmed;       // 1: the queue has cut it
  uint8_t trimmed_dscp;  // that it gets as it leaves
  // For specialised code (SwitchProgram's arrive and send): which code has parsed the packet, whether headers
  // have come, gone or been extracted in another order than the deparser's, which have been written to (a bit
  // each), and where in the packet these begin.
  const void* arrived_by;
  uint32_t headers_moved;
  uint32_t headers_written;
  static constexpr size_t kPositions = 20;
  std::array<uint16_t, kPositions> positions;

  static constexpr uint32_t kCloneRequested = 1U << 31;
  static constexpr uint32_t kNotTruncated = 0xffffffff;
  static constexpr uint32_t kAssertionFailed = 1;
  static constexpr uint32_t kLoopLimit = 2;
  static constexpr uint32_t kLoopBudget = 16384;
  static constexpr uint32_t kPassBudget = 1024;

  // From multicast_group to abort_reason, two members each.
  static constexpr size_t kRequestWords = 4;
  // Whether a pipeline wants anything but that the packet goes on (or is dropped, by egress_spec). Two
  // members at a time, as every packet is asked twice; specialised code asks so, too.
  bool asks_for_more() const {
    uint64_t asked = 0;
    for (size_t word = 0; word < kRequestWords; ++word) {
      uint64_t both = 0;
      const auto* first = reinterpret_cast<const uint8_t*>(this) + offsetof(PacketState, multicast_group);
      std::memcpy(&both, first + word * sizeof both, sizeof both);
      asked |= both;
    }
    return asked != 0;
  }
};
static_assert(offsetof(PacketState, abort_reason) + sizeof(uint32_t) ==
                  offsetof(PacketState, multicast_group) + PacketState::kRequestWords * sizeof(uint64_t),
              "asks_for_more() reads all that a pipeline may ask for, and nothing else");

constexpr uint32_t kProgramStateOffset = (sizeof(PacketState) + 15) / 16 * 16;

// Per switch instance; generated code reaches all stateful objects through it.
struct SwitchContext {
  TableView* tables;
  uint8_t* registers;
  CounterCell* counters;
  Meter* meters;
  int64_t now_ps;
  uint32_t log_enabled;
  uint32_t drop_port;  // the egress_spec that drops
  Switch* owner;
};

// Entry points of a compiled program.
using ClearFunction = void (*)(PacketState*);
using PipelineFunction = void (*)(PacketState*, SwitchContext*);
// Writes to the end of the room; returns how many bytes, or kNoRoom.
using DeparseFunction = uint32_t (*)(const PacketState*, uint8_t* room, uint32_t room_bytes);
constexpr uint32_t kNoRoom = 0xffffffff;
// Entry point of specialised code: parses the packet and runs ingress. kWriteOut: it must be parsed again,
// written out.
using ArriveFunction = uint32_t (*)(PacketState*, SwitchContext*);
constexpr uint32_t kWriteOut = 1;
// Entry point of specialised code: runs egress and what precedes the headers' emission, then writes headers
// to where they were parsed. kAsks: egress has asked for more or dropped the packet. kMoved: the headers are
// still to be written.
using SendFunction = uint32_t (*)(PacketState*, SwitchContext*);
constexpr uint32_t kInPlace = 0;
constexpr uint32_t kAsks = 1;
constexpr uint32_t kMoved = 2;
using CopyFieldsFunction = void (*)(PacketState* to, const PacketState* from, uint32_t field_list);
using DigestFunction = uint32_t (*)(const PacketState*, uint32_t learn_list, uint8_t* out);

}  // namespace weft
