#include "verbs/client.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "time/event_fd.hpp"
#include "time/run_end.hpp"
#include "verbs/client_queue_pair.hpp"
#include "verbs/client_shared_queue.hpp"

namespace weft::verbs {
namespace {

[[noreturn]] void refuse(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

uint64_t inode_of(int descriptor) {
  struct stat facts{};
  if (fstat(descriptor, &facts) != 0) refuse(errno, "fstat");
  return facts.st_ino;
}

uint8_t remote_access(uint32_t access) {
  return static_cast<uint8_t>(((access & kAccessRemoteWrite) != 0 ? kRemoteWrite : 0) |
                              ((access & kAccessRemoteRead) != 0 ? kRemoteRead : 0) |
                              ((access & kAccessRemoteAtomic) != 0 ? kRemoteAtomic : 0));
}

}  // namespace

Client::Client(Nic& nic, int memory_descriptor)
    : nic_(nic),
      process_(std::make_shared<ClientProcess>(memory_descriptor)),
      page_(sizeof(DoorbellPage)),
      events_(std::make_shared<EventChannel>()) {
  doorbell_ = open_event_fd();
  try {
    if (nic_.engine().is_real()) nic_.engine().add_pollable(this);
  } catch (...) {
    close(doorbell_);
    throw;
  }
}

Client::~Client() {
  for (const Rings& each : rings_)
    if (each.queue_pair != nullptr) each.queue_pair->close();
  for (const auto& [key, region] : regions_->by_key) domains_[region.domain].registry->remove(key);
  regions_->by_key.clear();  // requests that are still under way find nothing any more
  if (nic_.engine().is_real()) nic_.engine().remove_pollable(this);
  close(doorbell_);
}

void Client::watch_memory(bool watch) {
  process_->on_write = nullptr;
  if (watch) process_->on_write = [this] { note_news(); };
}

uint64_t Client::events_sent() {
  uint64_t sent = events_->sent();
  for (const auto& [number, channel] : channels_) sent += channel->sent();
  return sent;
}

void Client::note_news() {
  if (clock_ == nullptr || std::exchange(has_news_, true)) return;
  clock_->set(now());
  if (Engine::served_here() != nullptr) end_run_here(nic_.engine());
  news_listener_();
}

template <class T>
T& Client::find(std::unordered_map<uint32_t, T>& objects, uint32_t handle, const char* what) {
  const auto found = objects.find(handle);
  if (found == objects.end()) refuse(EINVAL, std::string("no ") + what + " " + std::to_string(handle));
  return found->second;
}

template <class T>
uint32_t Client::new_handle(const std::unordered_map<uint32_t, T>& objects, uint32_t limit,
                            const char* what) {
  if (objects.size() >= limit)
    refuse(ENOMEM, std::string("no more than ") + std::to_string(limit) + " " + what);
  do ++last_handle_;
  while (last_handle_ == 0 || objects.contains(last_handle_));
  return last_handle_;
}

uint32_t Client::create_domain(std::shared_ptr<MemoryRegistry> registry) {
  const uint32_t handle = new_handle(domains_, kMaxDomains, "protection domains");
  domains_[handle].registry = std::move(registry);
  return handle;
}

void Client::destroy_domain(uint32_t domain) {
  if (find(domains_, domain, "protection domain").users > 0) refuse(EBUSY, "the protection domain is in use");
  domains_.erase(domain);
}

std::shared_ptr<ForeignMemory> Client::checked(const ClientRegions::Region& region) const {
  // As the specification has it: who lets others write may write (10.6.3.1).
  const bool remote_writes = (region.access & (kAccessRemoteWrite | kAccessRemoteAtomic)) != 0;
  if (remote_writes && (region.access & kLocalWrite) == 0) refuse(EINVAL, "remote writes need local ones");
  const uint64_t length_bytes = region.length_bytes;
  if (length_bytes > kMaxRegionBytes || length_bytes > UINT64_MAX - region.address ||
      length_bytes > UINT64_MAX - region.virtual_address)
    refuse(EINVAL, "the region's length");
  uint8_t byte = 0;
  const bool mapped = length_bytes == 0 || (process_->read(region.address, &byte, 1) &&
                                            process_->read(region.address + length_bytes - 1, &byte, 1));
  if (!mapped) refuse(EFAULT, "the region is not mapped");
  return std::make_shared<ClientRange>(process_, region.address);
}

uint32_t Client::register_memory(uint32_t domain, uint64_t address, uint64_t length_bytes,
                                 uint64_t virtual_address, uint32_t access) {
  Domain& of = find(domains_, domain, "protection domain");
  if (regions_->by_key.size() >= kMaxRegions) refuse(ENOMEM, "too many memory regions");
  const ClientRegions::Region region{domain, address, virtual_address, length_bytes, access};
  const uint32_t key =
      of.registry->add_foreign(virtual_address, checked(region), length_bytes, remote_access(access));
  regions_->by_key[key] = region;
  ++of.users;
  return key;
}

void Client::register_again(uint32_t key, uint32_t domain, uint64_t address, uint64_t length_bytes,
                            uint64_t virtual_address, uint32_t access) {
  ClientRegions::Region& region = find(regions_->by_key, key, "memory region");
  Domain& to = find(domains_, domain, "protection domain");
  Domain& before = domains_[region.domain];
  const ClientRegions::Region changed{domain, address, virtual_address, length_bytes, access};
  to.registry->add_foreign_again(*before.registry, key, virtual_address, checked(changed), length_bytes,
                                 remote_access(access));
  region = changed;
  --before.users;
  ++to.users;
}

void Client::deregister_memory(uint32_t key) {
  const uint32_t domain = find(regions_->by_key, key, "memory region").domain;
  domains_[domain].registry->remove(key);
  regions_->by_key.erase(key);
  --domains_[domain].users;
}

std::shared_ptr<EventChannel> Client::create_channel() {
  if (channels_.size() >= kMaxChannels) refuse(EMFILE, "too many completion channels");
  auto channel = std::make_shared<EventChannel>();
  channels_[inode_of(channel->clients_end())] = channel;
  return channel;
}

void Client::destroy_channel(uint64_t channel) {
  if (channels_.erase(channel) == 0) refuse(EINVAL, "no such completion channel");
}

uint32_t Client::create_completion_queue(uint32_t entries, uint64_t channel, uint64_t cookie) {
  const uint32_t handle = new_handle(completion_queues_, kMaxCompletionQueues, "completion queues");
  if (entries == 0 || entries > kMaxCompletions) refuse(EINVAL, "entries of a completion queue");
  std::shared_ptr<EventChannel> found;
  if (channel != 0) {
    const auto named = channels_.find(channel);
    if (named != channels_.end()) found = named->second;
    if (found == nullptr) refuse(EINVAL, "no such completion channel");
  }
  completion_queues_[handle] = std::make_unique<CompletionRing>(entries, std::move(found), cookie);
  return handle;
}

CompletionRing& Client::completion_queue(uint32_t queue) {
  return *find(completion_queues_, queue, "completion queue");
}

void Client::resize_completion_queue(uint32_t queue, uint32_t entries) {
  if (entries == 0 || entries > kMaxCompletions) refuse(EINVAL, "entries of a completion queue");
  if (!completion_queue(queue).resize(entries)) refuse(EINVAL, "what waits would not find room");
}

Client::ReadEvents Client::destroy_completion_queue(uint32_t queue) {
  CompletionRing& ring = completion_queue(queue);
  if (ring.users > 0) refuse(EBUSY, "the completion queue is in use");
  const ReadEvents read{ring.take_back_events(), read_of(ring.asynchronous_events, ring.cookie())};
  completion_queues_.erase(queue);
  return read;
}

uint32_t Client::read_of(uint32_t raised, uint64_t cookie) const {
  return raised - events_->take_back<AsynchronousEvent>(cookie);
}

uint32_t Client::place_for_rings() {
  auto place = std::find_if(rings_.begin(), rings_.end(), [](const Rings& each) { return each.is_free(); });
  if (place == rings_.end()) place = rings_.emplace(place);
  return static_cast<uint32_t>(place - rings_.begin()) + 1;
}

uint32_t Client::create_queue_pair(uint32_t domain, QueuePairType type, uint32_t send_queue,
                                   uint32_t receive_queue, uint32_t shared_queue_handle,
                                   const QueuePairSize& size, bool signals_all, uint64_t cookie) {
  Domain& of = find(domains_, domain, "protection domain");
  CompletionRing& sends = completion_queue(send_queue);
  CompletionRing& receives = completion_queue(receive_queue);
  ClientSharedQueue* shared = shared_queue_handle == 0 ? nullptr : &shared_queue(shared_queue_handle);
  if (size.sends > kMaxRequests || size.receives > kMaxRequests || size.send_pieces > kMaxPieces ||
      size.receive_pieces > kMaxPieces || size.inline_bytes > kMaxInlineBytes)
    refuse(EINVAL, "the queue pair's size");
  if (queue_pairs_ >= kMaxQueuePairs) refuse(ENOMEM, "too many queue pairs");
  const uint32_t handle = place_for_rings();
  rings_[handle - 1].queue_pair =
      std::make_shared<ClientQueuePair>(*this, domain, type, nic_.allocate_queue_pair_number(), size, sends,
                                        receives, shared, signals_all, cookie);
  ++queue_pairs_;
  ++of.users;
  return handle;
}

std::shared_ptr<ClientQueuePair> Client::queue_pair(uint32_t handle) {
  if (handle == 0 || handle > rings_.size() || rings_[handle - 1].queue_pair == nullptr)
    refuse(EINVAL, "no queue pair " + std::to_string(handle));
  return rings_[handle - 1].queue_pair;
}

uint32_t Client::destroy_queue_pair(uint32_t handle) {
  const std::shared_ptr<ClientQueuePair> found = queue_pair(handle);
  found->close();
  --domains_[found->domain()].users;
  rings_[handle - 1].queue_pair = nullptr;
  --queue_pairs_;
  return read_of(found->asynchronous_events, found->cookie());
}

uint32_t Client::create_shared_queue(uint32_t domain, uint32_t requests, uint32_t pieces, uint64_t cookie) {
  Domain& of = find(domains_, domain, "protection domain");
  if (requests == 0 || requests > kMaxRequests || pieces > kMaxPieces)
    refuse(EINVAL, "the shared receive queue's size");
  if (shared_queues_ >= kMaxSharedQueues) refuse(ENOMEM, "too many shared receive queues");
  const uint32_t handle = place_for_rings();
  rings_[handle - 1].shared_queue =
      std::make_unique<ClientSharedQueue>(*this, domain, requests, std::max<uint32_t>(pieces, 1), cookie);
  ++shared_queues_;
  ++of.users;
  return handle;
}

ClientSharedQueue& Client::shared_queue(uint32_t handle) {
  if (handle == 0 || handle > rings_.size() || rings_[handle - 1].shared_queue == nullptr)
    refuse(EINVAL, "no shared receive queue " + std::to_string(handle));
  return *rings_[handle - 1].shared_queue;
}

uint32_t Client::destroy_shared_queue(uint32_t handle) {
  const ClientSharedQueue& found = shared_queue(handle);
  if (found.users > 0) refuse(EBUSY, "the shared receive queue is in use");
  const uint32_t read = read_of(found.asynchronous_events, found.cookie());
  --domains_[found.domain()].users;
  rings_[handle - 1].shared_queue = nullptr;
  --shared_queues_;
  return read;
}

uint32_t Client::create_address_handle(uint32_t domain, int port, const AddressHandle& address) {
  Domain& of = find(domains_, domain, "protection domain");
  const uint32_t handle = new_handle(address_handles_, kMaxAddressHandles, "address handles");
  address_handles_[handle] = {domain, port, address};
  ++of.users;
  return handle;
}

void Client::destroy_address_handle(uint32_t handle) {
  --domains_[find(address_handles_, handle, "address handle").domain].users;
  address_handles_.erase(handle);
}

const AddressHandle* Client::address_handle(uint32_t handle, uint32_t domain, int port) const {
  const auto found = address_handles_.find(handle);
  const bool fits =
      found != address_handles_.end() && found->second.domain == domain && found->second.port == port;
  return fits ? &found->second.address : nullptr;
}

void Client::complete(CompletionRing& ring, const CompletionEntry& entry, bool solicited) {
  note_news();
  const bool had_overrun = ring.has_overrun();
  if (ring.push(entry, solicited) || had_overrun) return;
  if (raise(kEventCompletionQueueError, ring.cookie())) ++ring.asynchronous_events;
}

bool Client::raise(EventType type, uint64_t cookie) {
  note_news();
  return events_->send(AsynchronousEvent{cookie, type, 0});
}

TimePs Client::poll() {
  // The client shares this open file and may have cleared its O_NONBLOCK.
  uint64_t rings = 0;
  const iovec into{&rings, sizeof rings};
  [[maybe_unused]] const ssize_t got = preadv2(doorbell_, &into, 1, -1, RWF_NOWAIT);
  DoorbellPage& page = *page_.at<DoorbellPage>(0);
  page.is_rung.store(0);
  const size_t words = (2 * rings_.size() + 63) / 64;
  for (size_t word = 0; word < words; ++word) {
    if (page.waiting[word].load() == 0) continue;
    for (uint64_t bits = page.waiting[word].exchange(0); bits != 0; bits &= bits - 1)
      take_from(word * 64 + static_cast<size_t>(std::countr_zero(bits)));
  }
  return kNever;
}

void Client::take_from(size_t ring) {
  if (ring / 2 >= rings_.size()) return;
  const Rings& rings = rings_[ring / 2];
  if (rings.shared_queue != nullptr) return rings.shared_queue->take_receives();
  const std::shared_ptr<ClientQueuePair> held = rings.queue_pair;
  if (held == nullptr) return;
  try {
    ring % 2 == 0 ? held->take_sends() : held->take_receives();
  } catch (const std::invalid_argument&) {
    // Whatever a client posts ends its own queue pair at most, not the NIC.
    held->fail_fatally();
  }
}

}  // namespace weft::verbs
