// Multicast groups and clone sessions: where copies of a packet go.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace weft {

struct Replica {
  uint32_t port;
  uint32_t instance;  // standard_metadata.egress_rid
};

struct CloneSession {
  std::vector<Replica> replicas;
  uint32_t priority_class = 0;
  uint32_t packet_length_bytes = 0;  // copies are truncated to this; 0 keeps them whole
};

// Ids as P4Runtime's PacketReplicationEngineEntry has them.
struct ReplicationEngine {
  std::map<uint32_t, std::vector<Replica>> multicast_groups;
  std::map<uint32_t, CloneSession> clone_sessions;

  const std::vector<Replica>* multicast_group(uint32_t id) const {
    const auto found = multicast_groups.find(id);
    return found == multicast_groups.end() ? nullptr : &found->second;
  }
  const CloneSession* clone_session(uint32_t id) const {
    const auto found = clone_sessions.find(id);
    return found == clone_sessions.end() ? nullptr : &found->second;
  }
};

}  // namespace weft
