#include "verbs/client_queue_pair.hpp"

#include <arpa/inet.h>

#include <stdexcept>
#include <utility>
#include <vector>

namespace weft::verbs {
namespace {

constexpr bool has_immediate(uint32_t opcode) {
  return opcode == kWorkWriteImmediate || opcode == kWorkSendImmediate;
}
constexpr bool is_receive(CompletionKind kind) {
  return kind == CompletionKind::kReceive || kind == CompletionKind::kWriteImmediate;
}

}  // namespace

ClientQueuePair::ClientQueuePair(Client& client, uint32_t domain, QueuePairType type, uint32_t number,
                                 const Client::QueuePairSize& size, CompletionRing& sends,
                                 CompletionRing& receives, ClientSharedQueue* shared, bool signals_all,
                                 uint64_t cookie)
    : client_(client),
      domain_(domain),
      type_(type),
      number_(number),
      cookie_(cookie),
      signals_all_(signals_all),
      send_ring_(size.sends, verbs::send_entry_bytes(size.send_pieces, size.inline_bytes), size.send_pieces),
      receive_ring_(size.receives, receive_entry_bytes(size.receive_pieces), size.receive_pieces),
      memory_(send_ring_.size_bytes() + receive_ring_.size_bytes()),
      send_completions_(&sends),
      receive_completions_(&receives),
      shared_(shared) {
  send_ring_.place(memory_, 0);
  receive_ring_.place(memory_, send_ring_.size_bytes());
  ++sends.users;
  ++receives.users;
  if (shared != nullptr) ++shared->users;
}

ClientQueuePair::~ClientQueuePair() { close(); }

void ClientQueuePair::close() {
  if (send_completions_ == nullptr) return;
  reset();
  --std::exchange(send_completions_, nullptr)->users;
  --std::exchange(receive_completions_, nullptr)->users;
  if (shared_ != nullptr) --shared_->users;
}

void ClientQueuePair::reset() {
  stage_ = Stage::kIdle;
  if (connected_ != nullptr) client_.nic().detach(*connected_);
  if (datagrams_ != nullptr) client_.nic().detach(*datagrams_);
  connected_.reset();
  datagrams_.reset();
  send_ring_.drop();
  receive_ring_.drop();
  sent_.clear();
  unfreed_ = reads_ = 0;
  fenced_.reset();
  refused_.reset();
  held_ = HeldReceives();
  tells_drained_ = false;
}

void ClientQueuePair::set_stage(Stage stage) {
  // It may have failed since its client's request was read; only reset() leads out of that.
  if (stage_ == Stage::kFlushes) return;
  stage_ = stage;
  tells_drained_ = false;
  take_receives();
  take_sends();
}

void ClientQueuePair::drain(bool notifies) {
  set_stage(Stage::kReceives);
  tells_drained_ = notifies && stage_ == Stage::kReceives;
  tell_drained();
}

void ClientQueuePair::tell_drained() {
  if (!tells_drained_ || has_sends()) return;
  tells_drained_ = false;
  raise(kEventDrained);
}

void ClientQueuePair::raise(EventType type) {
  if (client_.raise(type, cookie_)) ++asynchronous_events;
}

void ClientQueuePair::take_receives() {
  if (shared_ != nullptr) return receive_ring_.drop();  // it has none of its own
  // Clients that count their receives never hold more than the ring has places.
  const uint32_t places = receive_ring_.size();
  for (uint32_t left = receive_ring_.waiting(); left > 0 && held_.count() < places; --left) {
    // What the engine still holds completes first.
    if (stage_ == Stage::kIdle || (stage_ == Stage::kFlushes && held_.count() > 0)) return;
    const ReceiveEntry* entry = receive_ring_.take();
    if (entry == nullptr) return;
    if (stage_ == Stage::kFlushes)
      complete_receive(entry->work_id, kStatusFlushed, kDoneReceive, {});
    else
      post_receive(*entry);
  }
}

void ClientQueuePair::post_receive(const ReceiveEntry& entry) {
  if (entry.pieces > receive_ring_.max_pieces()) {
    complete_receive(entry.work_id, kStatusLocalProtection, kDoneReceive, {});
    enter_error();
    return;
  }
  const auto pieces = client_.pieces(domain_, reinterpret_cast<const Piece*>(receive_ring_.after_entry()),
                                     entry.pieces, true);
  PostedReceive receive{.length_bytes = pieces->length_bytes(),
                        .work_id = held_.put(entry.work_id),
                        .owner = pieces,
                        .foreign = pieces.get()};
  if (datagrams_ != nullptr)
    datagrams_->post_receive(client_.now(), std::move(receive));
  else
    connected_->post_receive(client_.now(), std::move(receive));
}

void ClientQueuePair::take_sends() {
  if (taking_) return;  // a completion within post()
  taking_ = true;
  uint32_t left = send_ring_.waiting();
  while (stage_ == Stage::kBoth || stage_ == Stage::kFlushes) {
    const bool flushes = stage_ == Stage::kFlushes;
    if (flushes ? !sent_.empty() : refused_ || (fenced_ != nullptr && reads_ > 0)) break;
    if (fenced_ != nullptr) {
      SendEntry entry = *std::exchange(fenced_, nullptr);
      entry.flags &= ~static_cast<uint32_t>(kFence);
      if (flushes)
        complete_send(done(entry), kStatusFlushed, 0);
      else
        post(entry);
      continue;
    }
    // A client that counts what it posts has no more under way than the ring has places.
    if (left-- == 0 || sent_.size() >= send_ring_.size()) break;
    const SendEntry* entry = send_ring_.take();
    if (entry == nullptr) break;
    if (flushes)
      complete_send(done(*entry), kStatusFlushed, 0);
    else
      post(*entry);
  }
  taking_ = false;
}

ClientQueuePair::Sent ClientQueuePair::done(const SendEntry& entry) {
  return {entry.work_id, opcode_of(kind_of(entry.opcode)), true, false};
}

void ClientQueuePair::post(const SendEntry& entry) {
  const bool reads = is_read(kind_of(entry.opcode));
  if ((entry.flags & kFence) != 0 && reads_ > 0) {
    // Its pieces stay where the ring has copied them: nothing is taken before this one has gone.
    fenced_ = std::make_unique<SendEntry>(entry);
    return;
  }
  RcRequest request;
  WorkStatus status = fill(entry, request);
  if (status == kStatusSuccess) {
    Sent sent = done(entry);
    sent.signaled = signals_all_ || (entry.flags & kSignaled) != 0;
    sent.is_read = reads;
    if (datagrams_ != nullptr) {
      status = send_datagram(entry, std::move(request), sent);
    } else {
      status = send_connected(std::move(request), sent);
    }
  }
  if (status != kStatusSuccess) refuse_send(entry, status);
}

WorkStatus ClientQueuePair::fill(const SendEntry& entry, RcRequest& request) const {
  const CompletionKind kind = kind_of(entry.opcode);
  const bool reads = is_read(kind);
  const bool sends = kind == CompletionKind::kSend;
  if (entry.opcode > kWorkFetchAdd || (type_ != QueuePairType::kTypeRc && reads) ||
      (type_ == QueuePairType::kTypeUd && !sends) || (type_ == QueuePairType::kTypeMrc && sends))
    return kStatusLocalOperation;
  request.kind = kind;
  request.remote_address = entry.remote_address;
  request.rkey = entry.remote_key;
  request.solicits = (entry.flags & kSolicited) != 0 ? Solicits::kAlways : Solicits::kNever;
  if (has_immediate(entry.opcode)) request.immediate = ntohl(entry.immediate);
  request.swap_or_add = kind == CompletionKind::kCompareSwap ? entry.swap : entry.compare_or_add;
  request.compare = entry.compare_or_add;
  if (entry.is_inline != 0) {
    if (reads || entry.inline_bytes > send_ring_.room_bytes()) return kStatusLocalLength;
    const uint8_t* data = send_ring_.after_entry();
    auto copy = std::make_shared<std::vector<uint8_t>>(data, data + entry.inline_bytes);
    request.length_bytes = entry.inline_bytes;
    request.data = copy->data();
    request.owner = std::move(copy);
    return kStatusSuccess;
  }
  if (entry.pieces > send_ring_.max_pieces()) return kStatusLocalProtection;
  const auto pieces =
      client_.pieces(domain_, reinterpret_cast<const Piece*>(send_ring_.after_entry()), entry.pieces, reads);
  if (!pieces->are_registered()) return kStatusLocalProtection;
  request.length_bytes = pieces->length_bytes();
  if (request.length_bytes > kMaxMessageBytes || (is_atomic(kind) && request.length_bytes != kAtomicBytes))
    return kStatusLocalLength;
  request.foreign = pieces.get();
  request.owner = pieces;
  return kStatusSuccess;
}

WorkStatus ClientQueuePair::send_connected(RcRequest request, const Sent& sent) {
  sent_.push_back(sent);
  reads_ += sent.is_read ? 1 : 0;
  try {
    connected_->post(client_.now(), std::move(request));
  } catch (const std::invalid_argument&) {
    // Nothing has been posted: a READ with more packets than PSNs can tell apart.
    sent_.pop_back();
    reads_ -= sent.is_read ? 1 : 0;
    return kStatusLocalLength;
  }
  return kStatusSuccess;
}

WorkStatus ClientQueuePair::send_datagram(const SendEntry& entry, RcRequest request, const Sent& sent) {
  const AddressHandle* to = client_.address_handle(entry.address_handle, domain_, port_);
  if (to == nullptr) return kStatusLocalOperation;
  if (request.length_bytes > datagrams_->config().path_mtu_bytes) return kStatusLocalLength;
  UdRequest datagram;
  static_cast<RcRequest&>(datagram) = std::move(request);
  datagram.to = *to;
  datagram.remote_queue_pair = entry.remote_number & 0xFFFFFF;
  datagram.remote_q_key = entry.remote_qkey;
  sent_.push_back(sent);
  try {
    datagrams_->post(client_.now(), std::move(datagram));
  } catch (const std::invalid_argument&) {
    // What a port cannot send, such as to another IP version.
    sent_.pop_back();
    return kStatusLocalOperation;
  }
  return kStatusSuccess;
}

// It fails in its turn, after those before it.
void ClientQueuePair::refuse_send(const SendEntry& entry, WorkStatus status) {
  const Sent refused = done(entry);
  if (!sent_.empty()) {
    sent_.push_back(refused);
    refused_ = status;
    return;
  }
  complete_send(refused, status, 0);
  enter_error();
}

void ClientQueuePair::enter_error() {
  if (stage_ == Stage::kFlushes) return;
  stage_ = Stage::kFlushes;
  tells_drained_ = false;
  if (connected_ != nullptr) connected_->flush(client_.now());
  if (datagrams_ != nullptr) datagrams_->flush(client_.now());
  if (shared_ != nullptr) raise(kEventLastTaken);
  take_receives();
  take_sends();
}

// Affiliated asynchronous errors: InfiniBand specification, 11.6.3.
void ClientQueuePair::on_refusal(CompletionStatus status) {
  if (stage_ == Stage::kFlushes) return;
  raise(status == CompletionStatus::kRemoteInvalidRequest ? kEventRequestError
        : status == CompletionStatus::kRemoteAccessError  ? kEventAccessError
                                                          : kEventQueuePairFatal);
  enter_error();
}

void ClientQueuePair::on_completion(const Completion& completion) {
  if (is_receive(completion.kind)) {
    finish_receive(completion);
  } else {
    finish_send(completion);
  }
}

void ClientQueuePair::finish_send(const Completion& completion) {
  if (sent_.empty()) return;
  const Sent sent = sent_.front();
  sent_.pop_front();
  reads_ -= sent.is_read ? 1 : 0;
  const WorkStatus status = status_of(completion.status);
  if (status == kStatusSuccess && !sent.signaled) {
    ++unfreed_;
  } else {
    complete_send(sent, status, completion.length_bytes);
  }
  if (status != kStatusSuccess && stage_ != Stage::kFlushes) enter_error();
  if (refused_ && sent_.size() == 1) {
    const Sent refused = sent_.front();
    sent_.pop_front();
    complete_send(refused, stage_ == Stage::kFlushes ? kStatusFlushed : *refused_, 0);
    refused_.reset();
    enter_error();
  }
  take_sends();
  tell_drained();
}

void ClientQueuePair::finish_receive(const Completion& completion) {
  const bool was_full = shared_ == nullptr && held_.count() == receive_ring_.size();
  const uint64_t work_id =
      shared_ == nullptr ? held_.take(completion.work_id) : shared_->finish(completion.work_id);
  const WorkStatus status = status_of(completion.status);
  complete_receive(work_id, status, opcode_of(completion.kind), completion);
  if (status != kStatusSuccess) enter_error();
  if (stage_ == Stage::kFlushes || was_full) take_receives();
}

void ClientQueuePair::complete_send(const Sent& sent, WorkStatus status, uint64_t length_bytes) {
  CompletionEntry entry{};
  entry.work_id = sent.work_id;
  entry.status = status;
  entry.opcode = sent.opcode;
  entry.length_bytes = static_cast<uint32_t>(length_bytes);
  entry.freed = std::exchange(unfreed_, 0) + 1;
  complete(*send_completions_, entry, status != kStatusSuccess);
}

void ClientQueuePair::complete_receive(uint64_t work_id, WorkStatus status, CompletionOpcode opcode,
                                       const Completion& of) {
  CompletionEntry entry{};
  entry.work_id = work_id;
  entry.status = status;
  entry.opcode = opcode;
  entry.length_bytes = static_cast<uint32_t>(of.length_bytes);
  entry.immediate = htonl(of.immediate);
  entry.source_queue_pair = of.source_queue_pair;
  entry.flags = (of.has_immediate ? static_cast<uint32_t>(kHasImmediate) : 0u) |
                (of.has_grh ? static_cast<uint32_t>(kHasGrh) : 0u);
  if (of.has_grh) entry.service_level = datagrams_->is_newest_ipv6() ? kIpv6Header : kIpv4Header;
  entry.freed = 1;
  entry.is_receive = 1;
  complete(*receive_completions_, entry, of.solicited || status != kStatusSuccess);
}

void ClientQueuePair::complete(CompletionRing& ring, CompletionEntry& entry, bool solicited) {
  entry.queue_pair = number_;
  entry.time_ps = static_cast<uint64_t>(client_.now());
  client_.complete(ring, entry, solicited);
}

}  // namespace weft::verbs
