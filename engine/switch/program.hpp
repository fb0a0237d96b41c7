// A compiled P4 program, shared by all switches that run it: entry points of its code and the shape of its
// objects.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "switch/abi.hpp"
#include "switch/common_contents.hpp"
#include "switch/tables/match_table.hpp"

namespace weft {

struct TableShape {
  std::string name;
  uint32_t key_bytes = 0;
  std::vector<RangeField> ranges;
  int32_t action_profile = -1;     // index, or -1 for a table whose entries hold their action
  uint32_t action_data_bytes = 0;  // the most that an entry's own action takes
  bool supports_timeout = false;
  bool reads_default_entry = true;   // packets that miss read it, at least to be counted
  bool reads_default_action = true;  // ... and its action
};

struct SwitchProgram {
  ClearFunction clear = nullptr;  // of the first cleared_bytes of a state
  // Sets the intrinsic metadata of ingress if the packet comes from a port, then parses.
  PipelineFunction parse = nullptr;
  PipelineFunction ingress = nullptr;  // verifies checksums first
  PipelineFunction egress = nullptr;
  PipelineFunction finish = nullptr;  // what precedes the headers' emission: checksums
  DeparseFunction deparse = nullptr;
  ArriveFunction arrive = nullptr;  // of specialised code only, as send
  SendFunction send = nullptr;
  PipelineFunction set_metadata_again = nullptr;  // of a packet that comes to the parser another time
  CopyFieldsFunction copy_fields = nullptr;
  DigestFunction pack_digest = nullptr;

  // PacketState and the program's state behind it: what is cleared for every packet, and large headers, all
  // of which are zero if the packet before wrote to none. These are in parts: the first lies
  // large_apart_bytes behind the state's beginning, the others as far behind each other (state_slab.hpp).
  uint32_t cleared_bytes = 0;
  uint32_t large_apart_bytes = 0;
  std::vector<uint32_t> large_parts_bytes;
  uint32_t metadata_offset_bytes = 0;
  uint32_t metadata_bytes = 0;
  uint32_t max_headers_bytes = 0;  // the most that deparse() writes
  uint32_t max_digest_bytes = 0;
  uint32_t max_action_data_bytes = 0;

  std::vector<TableShape> tables;
  std::vector<uint32_t> looked_up;        // numbers of the tables that code reads something of
  std::optional<CommonContents> assumed;  // what the code takes for granted; none: nothing
  uint32_t action_profile_count = 0;
  uint64_t registers_bytes = 0;
  uint64_t counter_count = 0;
  // Of the counters and registers that ports have one each of: where port 0's are, and how far apart.
  struct PortCells {
    uint64_t first_byte = 0;
    uint64_t stride_bytes = 0;
  };
  std::vector<PortCells> port_counters;
  std::vector<PortCells> port_registers;
  uint64_t meter_count = 0;
  uint32_t value_set_count = 0;
  std::vector<std::string> log_formats;

  std::shared_ptr<void> code;  // keeps the machine code alive
};

}  // namespace weft
