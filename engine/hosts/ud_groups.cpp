#include "hosts/ud_groups.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "hosts/nic.hpp"
#include "hosts/ud_queue_pair.hpp"

namespace weft {

// What the NIC delivers a group's packets to.
class UdGroups::Group final : public QueuePair {
 public:
  void on_packet(TimePs now, const roce::ParsedPacket& packet) override { deliver(now, packet, nullptr); }
  PacketPtr pull(TimePs /*now*/) override { return nullptr; }
  PulledPacket last_pulled() const override { return {}; }
  bool may_have_control() const override { return false; }
  bool may_have_data() const override { return false; }
  TimePs next_deadline() const override { return kNever; }
  void on_deadline(TimePs /*now*/) override {}

  // Handlers of completions may make members come and go.
  void deliver(TimePs now, const roce::ParsedPacket& packet, const UdQueuePair* without) {
    const std::vector<UdQueuePair*> members = members_;
    for (UdQueuePair* member : members)
      if (member != without && has(member)) member->on_packet(now, packet);
  }
  bool has(const UdQueuePair* queue_pair) const {
    return std::ranges::find(members_, queue_pair) != members_.end();
  }
  void add(UdQueuePair& queue_pair) { members_.push_back(&queue_pair); }
  void remove(const UdQueuePair& queue_pair) { std::erase(members_, &queue_pair); }
  bool empty() const { return members_.empty(); }

 private:
  std::vector<UdQueuePair*> members_;
};

UdGroups::UdGroups(Nic& nic, int port) : nic_(nic), port_(port) { nic_.port_config(port); }
UdGroups::~UdGroups() = default;

void UdGroups::join(UdQueuePair& queue_pair, const roce::IpAddress& group) {
  const auto found = groups_.find(group);
  if (found != groups_.end()) {
    if (found->second->has(&queue_pair))
      throw std::invalid_argument("the queue pair is a member of the group");
    found->second->add(queue_pair);
    return;
  }
  auto made = std::make_unique<Group>();
  nic_.attach_group(*made, port_, group);
  made->add(queue_pair);
  groups_.emplace(group, std::move(made));
}

void UdGroups::leave(UdQueuePair& queue_pair, const roce::IpAddress& group) {
  const auto found = groups_.find(group);
  if (found == groups_.end() || !found->second->has(&queue_pair))
    throw std::invalid_argument("the queue pair is no member of the group");
  found->second->remove(queue_pair);
  if (found->second->empty()) groups_.erase(found);
}

// A group without members stays, because this may happen while it delivers a packet.
void UdGroups::forget(UdQueuePair& queue_pair) {
  for (const auto& [address, group] : groups_) group->remove(queue_pair);
}

UdQueuePair* UdGroups::find(uint32_t number) const {
  auto* found = dynamic_cast<UdQueuePair*>(nic_.find(number));
  const bool is_here =
      found != nullptr && found->config().source_ips == nic_.port_config(port_).addresses;
  return is_here ? found : nullptr;
}

void UdGroups::deliver(TimePs now, const roce::ParsedPacket& packet, const UdQueuePair* without) {
  const auto found = groups_.find(packet.destination_ip);
  if (found != groups_.end())
    found->second->deliver(now, packet, without);
  else if (UdQueuePair* receiver = find(packet.bth.destination_qp); receiver != nullptr)
    receiver->on_packet(now, packet);
}

}  // namespace weft
