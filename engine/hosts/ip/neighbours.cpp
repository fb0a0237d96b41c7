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
  auto& entry = entries_[address];
  if (entry == nullptr) entry = std::make_unique<Entry>(*this, address);
  return *entry;
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
  std::vector<PacketPtr> waiting = std::exchange(entry.waiting, {});
  const IpAddress address = entry.address;
  entries_.erase(address);  // the next packet asks again
  for (PacketPtr& packet : waiting) owner_.give_up(std::move(packet));
}

void Neighbours::set(Entry& entry, const MacAddress& mac) {
  entry.mac = mac;
  entry.is_known = true;
  entry.timer.cancel();
  for (PacketPtr& packet : std::exchange(entry.waiting, {}))
    owner_.send_to(mac, std::move(packet), entry.address.is_ipv6);
}

void Neighbours::learn(const IpAddress& neighbour, const MacAddress& mac, bool create) {
  if (!create && !entries_.contains(neighbour)) return;
  if (Entry& entry = entry_of(neighbour); !entry.is_static) set(entry, mac);
}

void Neighbours::set_static(const IpAddress& neighbour, const MacAddress& mac) {
  Entry& entry = entry_of(neighbour);
  entry.is_static = true;
  set(entry, mac);
}

void Neighbours::forget() {
  std::erase_if(entries_,
                [](const auto& entry) { return entry.second->is_known && !entry.second->is_static; });
}

}  // namespace weft
