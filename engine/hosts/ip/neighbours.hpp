// The neighbours that an interface knows: who has which MAC, and what waits for an answer.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "hosts/ip/ip_packet.hpp"
#include "packets/packet.hpp"
#include "time/engine.hpp"

namespace weft {

struct HashOfAddress {
  size_t operator()(const IpAddress& address) const {
    return std::hash<std::string_view>()(
        {reinterpret_cast<const char*>(address.bytes.data()), address.bytes.size()});
  }
};

// Asks as RFC 826 and RFC 4861 have it: up to three times, a second apart (RFC 4861, 10:
// MAX_MULTICAST_SOLICIT, RETRANS_TIMER). What is known stays known, until there are too many: then the one of
// which nothing was heard for longest is forgotten.
class Neighbours {
 public:
  struct Owner {
    virtual ~Owner() = default;
    virtual void ask_for(const IpAddress& address) = 0;
    // Who has the address is known: a packet without its Ethernet header.
    virtual void send_to(const MacAddress& mac, PacketPtr packet, bool is_ipv6) = 0;
    // Nobody has answered, or too many wait already.
    virtual void give_up(PacketPtr packet) = 0;
    virtual void evicted() = 0;
    virtual void changed() = 0;  // a known neighbour has another MAC
    virtual void refused() = 0;  // a static one does not
  };

  // At most `limit` entries, at least one, without static ones.
  Neighbours(Engine& engine, Owner& owner, size_t limit) : engine_(engine), owner_(owner), limit_(limit) {}

  // Sends at once, or when the neighbour's MAC is known.
  void send(const IpAddress& neighbour, PacketPtr packet);
  // From a message of a neighbour's. Unless `create`, only of those that are known or asked for.
  void learn(const IpAddress& neighbour, const MacAddress& mac, bool create);
  // Learns nothing else about it any more.
  void set_static(const IpAddress& neighbour, const MacAddress& mac);
  // All but static entries, and those that are being asked for.
  void forget();
  // Gives up packets that wait and are meant.
  void withdraw(const std::function<bool(const Packet&)>& is_meant);

 private:
  struct Entry {
    Entry(Neighbours& neighbours_, const IpAddress& address_);
    void on_timer() { neighbours.on_timeout(*this); }

    Neighbours& neighbours;
    const IpAddress address;
    MacAddress mac{};
    bool is_known = false;
    bool is_static = false;
    int asked = 0;
    std::vector<PacketPtr> waiting;
    std::list<Entry*>::iterator place;  // in the order of what was heard; not of static entries
    Timer timer;
  };

  Entry& entry_of(const IpAddress& address);
  void ask(Entry& entry);
  void on_timeout(Entry& entry);
  void set(Entry& entry, const MacAddress& mac);
  void make_room();
  void remove(Entry& entry);

  Engine& engine_;
  Owner& owner_;
  const size_t limit_;
  std::list<Entry*> heard_;  // the one that was heard of last at the end
  std::unordered_map<IpAddress, std::unique_ptr<Entry>, HashOfAddress> entries_;
};

}  // namespace weft
