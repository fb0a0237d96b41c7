// Messages between the ranks of a host.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "hosts/switched_write.hpp"
#include "time/time.hpp"

namespace weft {

enum class ScaleUpKind : uint8_t { kWrite, kReadRequest, kReadResponse, kCount };

// A WRITE, a READ's request or its response from one port to another, and what completions say of it.
struct ScaleUpMessage {
  ScaleUpKind kind = ScaleUpKind::kWrite;
  bool wants_data = false;  // of a request: else the response is a length, and what it reads is discarded
  uint32_t source = 0;      // port
  uint32_t destination = 0;
  uint32_t channel = 0;       // number at the source
  uint32_t peer_channel = 0;  // number at the destination
  uint32_t read = 0;          // of a request and its response: the READ's number at its channel
  const uint8_t* data = nullptr;
  uint64_t length_bytes = 0;  // of a request: to be read
  uint64_t wire_bytes = 0;    // on the links; of a request: none
  uint64_t remote_address = 0;
  uint32_t rkey = 0;
  std::optional<uint32_t> immediate;
  uint64_t work_id = 0;
  TimePs posted_ps = 0;
  // Of a WRITE that goes on by a queue pair; see RcRequest.
  bool as_length = false;
  uint8_t traffic_kind = 0;
  SwitchedWrite switched{};
};

// A message on its way, with its data if these are nobody's memory: those of another process, those read from
// memory, and results of reductions, which consist of several terms.
struct ScaleUpInFlight {
  TimePs due_ps = 0;  // its first bit, then its last one
  ScaleUpMessage message{};
  std::shared_ptr<const uint8_t[]> bytes{};
  std::vector<ScaleUpInFlight> terms{};
};

}  // namespace weft
