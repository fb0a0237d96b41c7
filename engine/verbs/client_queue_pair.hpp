// A queue pair of a client: takes work from its rings to a queue pair of the engine, and what has become of
// it to completion rings.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "hosts/posted_receives.hpp"
#include "hosts/queue_pair.hpp"
#include "hosts/rc_request.hpp"
#include "hosts/ud_queue_pair.hpp"
#include "hosts/writing_queue_pair.hpp"
#include "verbs/client.hpp"
#include "verbs/client_shared_queue.hpp"
#include "verbs/completion_ring.hpp"
#include "verbs/protocol.hpp"
#include "verbs/values.hpp"
#include "verbs/work_ring.hpp"

namespace weft::verbs {

class ClientQueuePair final : public CompletionHandler {
 public:
  // What it takes from its rings: nothing in RESET and INIT; receives in RTR and SQD; both in RTS; everything
  // at once, flushed, in ERR.
  enum class Stage : uint8_t { kIdle, kReceives, kBoth, kFlushes };

  // The rings outlive it. Throws std::system_error.
  ClientQueuePair(Client& client, uint32_t domain, QueuePairType type, uint32_t number,
                  const Client::QueuePairSize& size, CompletionRing& sends, CompletionRing& receives,
                  ClientSharedQueue* shared, bool signals_all, uint64_t cookie);
  ~ClientQueuePair() override;

  Client& client() { return client_; }
  QueuePairType type() const { return type_; }
  uint32_t number() const { return number_; }
  uint64_t cookie() const { return cookie_; }
  uint32_t domain() const { return domain_; }
  int descriptor() const { return memory_.descriptor(); }
  uint32_t send_entries() const { return send_ring_.size(); }
  uint32_t receive_entries() const { return receive_ring_.size(); }
  uint32_t send_entry_bytes() const { return send_ring_.entry_bytes(); }
  uint32_t asynchronous_events = 0;

  // Its counterpart in the engine, made for it, which reports to it.
  void connect(std::shared_ptr<WritingQueuePair> queue_pair) { connected_ = std::move(queue_pair); }
  // The same for datagrams, from a port of the NIC.
  void connect(std::shared_ptr<UdQueuePair> queue_pair, int port) {
    datagrams_ = std::move(queue_pair);
    port_ = port;
  }
  // It is destroyed for its client: nothing of the client is touched from now on.
  void close();
  // Back to RESET: forgets counterpart and rings, without completions.
  void reset();
  void set_stage(Stage stage);
  // To SQD: nothing more is begun. `notifies`: an event says once that nothing is under way any more.
  void drain(bool notifies);
  // To ERR: everything completes as flushed.
  void fail() { enter_error(); }
  // The same by itself, because its client's requests cannot be carried out.
  void fail_fatally() { on_refusal(CompletionStatus::kRemoteOperationError); }
  // Whether it is in ERR, by itself or by fail().
  bool has_failed() const { return stage_ == Stage::kFlushes; }
  // Whether sends have begun that have not completed.
  bool has_sends() const { return !sent_.empty(); }

  // Takes what the client has posted.
  void take_sends();
  void take_receives();

  void on_completion(const Completion& completion) override;
  void on_refusal(CompletionStatus status) override;

 private:
  struct Sent {
    uint64_t work_id = 0;
    CompletionOpcode opcode = kDoneSend;
    bool signaled = false;
    bool is_read = false;
  };

  static Sent done(const SendEntry& entry);
  void post(const SendEntry& entry);
  // Result: success, or how the request fails.
  WorkStatus fill(const SendEntry& entry, RcRequest& request) const;
  WorkStatus send_connected(RcRequest request, const Sent& sent);
  WorkStatus send_datagram(const SendEntry& entry, RcRequest request, const Sent& sent);
  void post_receive(const ReceiveEntry& entry);
  void refuse_send(const SendEntry& entry, WorkStatus status);
  void finish_send(const Completion& completion);
  void finish_receive(const Completion& completion);
  void complete_send(const Sent& sent, WorkStatus status, uint64_t length_bytes);
  void complete_receive(uint64_t work_id, WorkStatus status, CompletionOpcode opcode, const Completion& of);
  void complete(CompletionRing& ring, CompletionEntry& entry, bool solicited);
  void enter_error();
  void raise(EventType type);
  void tell_drained();

  Client& client_;
  uint32_t domain_;
  QueuePairType type_;
  uint32_t number_;
  uint64_t cookie_;
  bool signals_all_;
  WorkRing<SendEntry> send_ring_;
  WorkRing<ReceiveEntry> receive_ring_;
  SharedMemory memory_;  // sends, then receives
  CompletionRing* send_completions_;
  CompletionRing* receive_completions_;  // both null once it is closed
  ClientSharedQueue* shared_;            // null: receives of its own
  std::shared_ptr<WritingQueuePair> connected_;
  std::shared_ptr<UdQueuePair> datagrams_;  // instead, of type UD
  int port_ = 0;                            // of the NIC, of datagrams
  Stage stage_ = Stage::kIdle;

  std::deque<Sent> sent_;
  uint32_t unfreed_ = 0;  // sends that are done since the last completion
  uint32_t reads_ = 0;    // of sent_
  // A send that waits: for READs before it (a fence), or to fail in its turn.
  std::unique_ptr<SendEntry> fenced_;
  std::optional<WorkStatus> refused_;
  HeldReceives held_;
  bool taking_ = false;
  bool tells_drained_ = false;
};

}  // namespace weft::verbs
