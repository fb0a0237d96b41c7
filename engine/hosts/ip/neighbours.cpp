#include "hosts/ip/neighbours.hpp"

#include <utility>

namespace weft {
namespace {

constexpr int kMostQuestions = 3;
constexpr TimePs kQuestionInterval = 1'000'000'000'000;
constexpr size_t kMostWaiting = 101;  // Linux's unres_qlen_bytes, in full frames

}  // namespace

Neighbours::Entry::Entry(Neighbours& neighbours_, const IpAddress& address_)
    : neighbours(neighbours_),
      address(address_),
      timer(neighbours.engine_.events(), member_action<&Entry::on_timer>(this)) {}

Neighbours::Entry& Neighbours::entry_of(const IpAddress& address) {
  if (const auto found = entries_.find(address); found != entries_.end()) return *found->second;
  make_room();
  Entry& entry = *entries_.emplace(address, std::make_unique<Entry>(*this, address)).first->second;
  entry.place = heard_.insert(heard_.end(), &entry);
  return entry;
}

void Neighbours::make_room() {
  if (heard_.size() < limit_) return;
  // Bounded, so that a flood of forged ARP costs no memory; the neighbour that was silent for longest goes.
  remove(*heard_.front());
  owner_.evicted();
}

// Nothing waits for it any more; the next packet to it asks again.
void Neighbours::remove(Entry& entry) {
  std::vector<PacketPtr> waiting = std::exchange(entry.waiting, {});
  heard_.erase(entry.place);
  entries_.erase(IpAddress(entry.address));
  for (PacketPtr& packet : waiting) owner_.give_up(std::move(packet));
}

void Neighbours::send(const IpAddress& neighbour, PacketPtr packet) {
  Entry& entry = entry_of(neighbour);
  if (entry.is_known) return owner_.send_to(entry.mac, std::move(packet), neighbour.is_ipv6);
  if (entry.waiting.size() == kMostWaiting) return owner_.give_up(std::move(packet));
  entry.waiting.push_back(std::move(packet));
  if (entry.asked == 0) ask(entry);
}

void Neighbours::ask(Entry& entry) {
  ++entry.asked;
  entry.timer.arm(engine_.now() + kQuestionInterval);
  owner_.ask_for(entry.address);
}

void Neighbours::on_timeout(Entry& entry) {
  if (entry.is_known) return;
  if (entry.asked < kMostQuestions) return ask(entry);
  remove(entry);
}

void Neighbours::set(Entry& entry, const MacAddress& mac) {
  entry.mac = mac;
  entry.is_known = true;
  entry.timer.cancel();
  for (PacketPtr& packet : std::exchange(entry.waiting, {}))
    owner_.send_to(mac, std::move(packet), entry.address.is_ipv6);
}

void Neighbours::learn(const IpAddress& neighbour, const MacAddress& mac, bool create) {
  // Messages that are not for this host teach it nothing new (RFC 826), or every host would know all.
  if (!create && !entries_.contains(neighbour)) return;
  Entry& entry = entry_of(neighbour);
  if (entry.is_static) {
    if (entry.mac != mac) owner_.refused();
    return;
  }
  heard_.splice(heard_.end(), heard_, entry.place);
  if (entry.is_known && entry.mac != mac) owner_.changed();
  set(entry, mac);
}

void Neighbours::set_static(const IpAddress& neighbour, const MacAddress& mac) {
  Entry& entry = entry_of(neighbour);
  if (!entry.is_static) heard_.erase(entry.place);
  entry.is_static = true;
  set(entry, mac);
}

void Neighbours::forget() {
  for (auto next = heard_.begin(); next != heard_.end();) {
    Entry& entry = **next++;
    if (entry.is_known) remove(entry);
  }
}

void Neighbours::withdraw(const std::function<bool(const Packet&)>& is_meant) {
  // Nobody is told before all are out: whoever is told may send or withdraw.
  std::vector<PacketPtr> withdrawn;
  for (Entry* entry : heard_)
    std::erase_if(entry->waiting, [&](PacketPtr& packet) {
      if (!is_meant(*packet)) return false;
      withdrawn.push_back(std::move(packet));
      return true;
    });
  for (PacketPtr& packet : withdrawn) owner_.give_up(std::move(packet));
}

}  // namespace weft
