// What a NIC needs of a queue pair. Queue pairs are state machines without I/O: packets and the time go in,
// packets and the next deadline come out. RcQueuePair, MrcQueuePair and the aggregation client are
// implementations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "hosts/recovery_times.hpp"
#include "hosts/switch_notification.hpp"
#include "memory/prefetch_step.hpp"
#include "packets/packet.hpp"
#include "packets/roce_codec.hpp"
#include "packets/roce_formats.hpp"
#include "time/time.hpp"

namespace weft {

// Whose doing an error was.
enum class Fault : uint8_t { kNone, kLocal, kPeer, kNetwork };

enum class CompletionStatus : uint8_t {
  kSuccess,
  kLocalLengthError,      // a SEND longer than the receive posted for it
  kLocalProtectionError,  // foreign memory, the request's or the receive's, is not there
  kRemoteInvalidRequest,  // the peer refused the request as malformed
  kRemoteAccessError,     // the peer refused rkey, bounds or access rights
  kRemoteOperationError,  // the peer failed on its own account
  kRetryExceeded,         // no acknowledgement after all retransmissions
  kRnrRetryExceeded,      // the peer never had a receive posted
  kFlushed,               // the queue pair had failed before this request was done
  kCount,
};
const char* completion_status_name(CompletionStatus status);
const char* fault_name(Fault fault);
// Whose doing it is when a request of ours ends so.
Fault completion_fault(CompletionStatus status);
// How the request ends that the peer answers with this NAK; kSuccess: the NAK ends none.
CompletionStatus status_of_nak(uint8_t syndrome);

enum class CompletionKind : uint8_t {
  kWrite,           // requester: a WRITE was acknowledged
  kSend,            // requester: a SEND was acknowledged
  kRead,            // requester: the data of a READ is all there
  kCompareSwap,     // requester: an atomic's result is there
  kFetchAdd,        // requester: an atomic's result is there
  kReceive,         // responder: a SEND arrived in a posted receive
  kWriteImmediate,  // responder: a WRITE with immediate arrived
  kAggregate,       // worker: an all-reduce in the network is done
};

const char* completion_kind_name(CompletionKind kind);

struct Completion {
  uint64_t work_id = 0;  // as posted; 0 for kWriteImmediate that took no posted receive
  CompletionKind kind = CompletionKind::kWrite;
  CompletionStatus status = CompletionStatus::kSuccess;
  uint32_t queue_pair = 0;  // own number
  uint64_t length_bytes = 0;
  bool has_immediate = false;
  uint32_t immediate = 0;
  TimePs posted_ps = 0;  // requester only: when it was posted
  TimePs completed_ps = 0;
  uint64_t retransmitted_packets = 0;  // requester only
  uint32_t source_queue_pair = 0;      // responder of UD only: that has sent it
  bool solicited = false;              // responder only: the sender asked for an event
  bool has_grh = false;                // 40 bytes with the IP header stand before what has arrived
};

// Receives completions on the engine's thread, in order per queue pair. It may post further work from within.
class CompletionHandler {
 public:
  virtual ~CompletionHandler() = default;
  virtual void on_completion(const Completion& completion) = 0;
  // The queue pair has failed because of what its peer has asked for, and no completion of its own will say
  // so: every one is kFlushed. `status` is how the peer's request ends.
  virtual void on_refusal(CompletionStatus /*status*/) {}
};

// A queue pair of another host.
struct FarEnd {
  roce::IpAddress address;
  uint32_t queue_pair = 0;
};

// How a queue pair notifies its NIC that pull() or next_deadline() may answer differently now.
class Waker {
 public:
  virtual ~Waker() = default;
  virtual void wake() = 0;
  // The queue pair is being destroyed.
  virtual void forget() = 0;
};

// What a NIC's DMA needs to know of the packet that pull() gave last.
struct PulledPacket {
  size_t payload_bytes = 0;
  bool starts_message = false;
};

class QueuePair {
 public:
  QueuePair() = default;
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;
  virtual ~QueuePair() {
    if (waker_ != nullptr) waker_->forget();
  }

  // A valid packet addressed to this queue pair arrived. `packet` is valid during the call only.
  virtual void on_packet(TimePs now, const roce::ParsedPacket& packet) = 0;
  // Next acknowledgement or congestion notification to send, null if there is none. Goes before all data of
  // the NIC.
  virtual PacketPtr pull_control(TimePs /*now*/) { return nullptr; }
  // Next data packet, null if there is none or window or pacing forbid it now.
  virtual PacketPtr pull(TimePs now) = 0;
  virtual PulledPacket last_pulled() const = 0;
  // The class in which its data travels.
  virtual int data_class() const { return roce::kDataClass; }
  // Whether it goes before others of its class, because it keeps to a rate that it has been promised.
  virtual bool goes_first() const { return false; }
  // Whether these two may give a packet. If not, the NIC asks again after on_packet(), on_deadline() and
  // wake() only.
  virtual bool may_have_control() const { return true; }
  virtual bool may_have_data() const { return true; }
  // When on_deadline() must be called at the latest (kNever: not at all): a retransmission timeout or a
  // pacing gap.
  virtual TimePs next_deadline() const = 0;
  // Time reached next_deadline(); spurious calls are harmless.
  virtual void on_deadline(TimePs now) = 0;

  // Where its data go, always the same, if switches may notify it of their queues; and such a notification.
  virtual std::optional<FarEnd> notified_for() const { return std::nullopt; }
  virtual void on_switch_notification(TimePs /*now*/, const switch_notification::Header& /*header*/) {}

  // Prefetches what packets in either direction pass by, `step` pointers away from this.
  virtual void fetch(PrefetchStep /*step*/) const {}

  // Where it notes when what it sent again arrives; null: nowhere.
  virtual void set_recovery_times(RecoveryTimes* /*times*/) {}

  // After every on_packet() and on_deadline() the NIC asks again by itself; anything else that makes work
  // (posting) ends with wake(). Null detaches.
  void set_waker(Waker* waker) { waker_ = waker; }

 protected:
  void wake() {
    if (waker_ != nullptr) waker_->wake();
  }

 private:
  Waker* waker_ = nullptr;
};

}  // namespace weft
