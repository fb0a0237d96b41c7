// A process that uses a NIC by verbs: what it has made there, its rings, its memory.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hosts/memory_region.hpp"
#include "hosts/nic.hpp"
#include "hosts/ud_queue_pair.hpp"
#include "time/engine.hpp"
#include "verbs/client_memory.hpp"
#include "verbs/completion_ring.hpp"
#include "verbs/event_channel.hpp"
#include "verbs/protocol.hpp"
#include "verbs/shared_memory.hpp"
#include "verbs/timed_process.hpp"
#include "verbs/values.hpp"

namespace weft::verbs {

class ClientQueuePair;
class ClientSharedQueue;

// The engine's side of a client. Objects have handles of the client's own, from 1; requests that name another
// get std::system_error with EINVAL. Who destroys something that others still need gets EBUSY.
class Client final : public Pollable {
 public:
  static constexpr uint32_t kMaxDomains = 1024;
  static constexpr uint32_t kMaxRegions = 1u << 16;
  static constexpr uint32_t kMaxCompletionQueues = 4096;
  static constexpr uint32_t kMaxCompletions = 1u << 20;
  static constexpr uint32_t kMaxQueuePairs = 8192;
  static constexpr uint32_t kMaxSharedQueues = 1024;
  static constexpr uint32_t kMaxAddressHandles = 1u << 16;
  static constexpr uint32_t kMaxChannels = 1024;
  static constexpr uint32_t kMaxRequests = 1u << 15;
  static constexpr uint32_t kMaxPieces = 30;
  static constexpr uint32_t kMaxInlineBytes = 1024;
  static constexpr uint64_t kMaxRegionBytes = 1ull << 40;
  static_assert(2 * (kMaxQueuePairs + kMaxSharedQueues) < kMaxRings);

  // `memory_descriptor`: of /proc/PID/mem, which it closes. Throws std::system_error. Under the real clock
  // the engine takes what the client posts; of a virtual one take_posted() does, while time stands still.
  Client(Nic& nic, int memory_descriptor);
  ~Client() override;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  int page_descriptor() const { return page_.descriptor(); }
  int doorbell_descriptor() const { return doorbell_; }
  EventChannel& asynchronous_events() { return *events_; }

  // `registry`: where its queue pairs look keys up, the NIC's.
  uint32_t create_domain(std::shared_ptr<MemoryRegistry> registry);
  void destroy_domain(uint32_t domain);

  // Result: the key, local and remote, by which it is named from then on.
  uint32_t register_memory(uint32_t domain, uint64_t address, uint64_t length_bytes, uint64_t virtual_address,
                           uint32_t access);
  // Under the same key, in this domain. If it throws, the region is as it was.
  void register_again(uint32_t key, uint32_t domain, uint64_t address, uint64_t length_bytes,
                      uint64_t virtual_address, uint32_t access);
  void deregister_memory(uint32_t key);

  // Result: its number, by which completion queues name it.
  std::shared_ptr<EventChannel> create_channel();
  void destroy_channel(uint64_t channel);
  uint32_t create_completion_queue(uint32_t entries, uint64_t channel, uint64_t cookie);
  CompletionRing& completion_queue(uint32_t queue);
  void resize_completion_queue(uint32_t queue, uint32_t entries);
  // How many events of something that is gone the client has read, and still has to acknowledge. The others
  // are taken back.
  struct ReadEvents {
    uint32_t completion = 0;
    uint32_t asynchronous = 0;
  };
  ReadEvents destroy_completion_queue(uint32_t queue);

  struct QueuePairSize {
    uint32_t sends = 0;
    uint32_t receives = 0;
    uint32_t send_pieces = 0;
    uint32_t receive_pieces = 0;
    uint32_t inline_bytes = 0;
  };
  // `shared_queue` 0: receives of its own. Its number is allocated at once.
  uint32_t create_queue_pair(uint32_t domain, QueuePairType type, uint32_t send_queue, uint32_t receive_queue,
                             uint32_t shared_queue, const QueuePairSize& size, bool signals_all,
                             uint64_t cookie);
  std::shared_ptr<ClientQueuePair> queue_pair(uint32_t handle);
  // Result: as ReadEvents::asynchronous.
  uint32_t destroy_queue_pair(uint32_t handle);

  uint32_t create_shared_queue(uint32_t domain, uint32_t requests, uint32_t pieces, uint64_t cookie);
  ClientSharedQueue& shared_queue(uint32_t handle);
  // The number of its ring.
  uint32_t ring_of_shared_queue(uint32_t handle) const { return 2 * (handle - 1) + 1; }
  // Result: as ReadEvents::asynchronous.
  uint32_t destroy_shared_queue(uint32_t handle);

  // `port`: of the NIC, from 0.
  uint32_t create_address_handle(uint32_t domain, int port, const AddressHandle& address);
  void destroy_address_handle(uint32_t handle);

  // --- for its queue pairs

  // Null if there is none of this domain and port.
  const AddressHandle* address_handle(uint32_t handle, uint32_t domain, int port) const;

  Nic& nic() { return nic_; }
  TimePs now() { return nic_.engine().now(); }
  std::shared_ptr<const ClientProcess> process() const { return process_; }
  void complete(CompletionRing& ring, const CompletionEntry& entry, bool solicited);
  // Result: whether it was sent.
  bool raise(EventType type, uint64_t cookie);
  std::shared_ptr<ClientPieces> pieces(uint32_t domain, const Piece* pieces, uint32_t count,
                                       bool writes) const {
    return std::make_shared<ClientPieces>(process_, regions_, domain, pieces, count, writes);
  }

  // --- in virtual time

  // Sets the page's time and calls `listener` before the first completion or event since the last
  // take_news(). What happens in an event ends the run there.
  void set_news_listener(std::shared_ptr<VirtualClockPage> clock, std::function<void()> listener) {
    clock_ = std::move(clock);
    news_listener_ = std::move(listener);
  }
  // Whether there has been any.
  bool take_news() { return std::exchange(has_news_, false); }
  // Has what the NIC writes to its memory taken for news, too.
  void watch_memory(bool watch);
  void take_posted() { poll(); }
  // How many events it has been sent.
  uint64_t events_sent();

  int file_descriptor() const override { return doorbell_; }
  TimePs poll() override;
  void flush() override {}

 private:
  struct Domain {
    std::shared_ptr<MemoryRegistry> registry;
    uint32_t users = 0;
  };
  struct Destination {
    uint32_t domain = 0;
    int port = 0;
    AddressHandle address;
  };

  template <class T>
  static T& find(std::unordered_map<uint32_t, T>& objects, uint32_t handle, const char* what);
  template <class T>
  uint32_t new_handle(const std::unordered_map<uint32_t, T>& objects, uint32_t limit, const char* what);

  // Refuses a region that cannot be. Result: its memory.
  std::shared_ptr<ForeignMemory> checked(const ClientRegions::Region& region) const;
  void take_from(size_t ring);
  uint32_t read_of(uint32_t raised, uint64_t cookie) const;
  // A free place for rings. Result: its handle.
  uint32_t place_for_rings();

  void note_news();

  Nic& nic_;
  std::shared_ptr<ClientProcess> process_;
  std::shared_ptr<VirtualClockPage> clock_;  // null under the real clock
  std::function<void()> news_listener_;
  bool has_news_ = false;
  SharedMemory page_;
  int doorbell_ = -1;
  std::shared_ptr<EventChannel> events_;
  uint32_t last_handle_ = 0;
  std::unordered_map<uint32_t, Domain> domains_;
  std::shared_ptr<ClientRegions> regions_ = std::make_shared<ClientRegions>();
  std::unordered_map<uint64_t, std::shared_ptr<EventChannel>> channels_;
  std::unordered_map<uint32_t, std::unique_ptr<CompletionRing>> completion_queues_;
  std::unordered_map<uint32_t, Destination> address_handles_;
  // By handle less one: what has rings, a queue pair, a shared queue, or neither.
  struct Rings {
    std::shared_ptr<ClientQueuePair> queue_pair;
    std::unique_ptr<ClientSharedQueue> shared_queue;
    bool is_free() const { return queue_pair == nullptr && shared_queue == nullptr; }
  };
  std::vector<Rings> rings_;
  uint32_t queue_pairs_ = 0;
  uint32_t shared_queues_ = 0;
};

}  // namespace weft::verbs
