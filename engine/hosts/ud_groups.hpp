// The multicast groups that UD queue pairs at one port of a NIC are members of. A packet for a group goes to
// each of them. What one of them sends to a group goes to the others and to itself, too, before any switch
// has seen it: adapters do so unless the sender blocks its own copies (IBV_QP_CREATE_BLOCK_SELF_MCAST_LB). So
// they do with datagrams to the port's own addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "hosts/queue_pair.hpp"
#include "packets/roce_codec.hpp"

namespace weft {

class Nic;
class UdQueuePair;

class UdGroups {
 public:
  // `nic` outlives the groups.
  UdGroups(Nic& nic, int port);
  ~UdGroups();

  // For UdQueuePair's calls of these names. A queue pair that goes is forgotten.
  void join(UdQueuePair& queue_pair, const roce::IpAddress& group);
  void leave(UdQueuePair& queue_pair, const roce::IpAddress& group);
  void forget(UdQueuePair& queue_pair);

  bool has(const roce::IpAddress& group) const { return groups_.contains(group); }
  // The queue pair of this number at the port, null if there is none.
  UdQueuePair* find(uint32_t number) const;
  // Gives a copy to each member of the packet's group, or the packet to the queue pair that it names;
  // `without` may be null.
  void deliver(TimePs now, const roce::ParsedPacket& packet, const UdQueuePair* without);

 private:
  class Group;

  Nic& nic_;
  int port_;
  std::map<roce::IpAddress, std::unique_ptr<Group>, roce::AddressOrder> groups_;
};

}  // namespace weft
