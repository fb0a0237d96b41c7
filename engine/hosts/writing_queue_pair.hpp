// A connected queue pair that takes WRITEs, and SENDs and READs if its transport has them: what schedules,
// flows and programs need of a transport, whichever it is. RcQueuePair, MrcQueuePair and UetQueuePair are the
// implementations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "congestion/congestion_control.hpp"
#include "hosts/posted_receives.hpp"
#include "hosts/queue_pair.hpp"
#include "hosts/rc_config.hpp"
#include "hosts/rc_request.hpp"
#include "hosts/send_gate.hpp"
#include "observe/probe.hpp"

namespace weft {

class HopLatencies;

class WritingQueuePair : public QueuePair {
 public:
  // Throws std::invalid_argument if there is no congestion control, or if it serves another queue pair.
  WritingQueuePair(const RcConfig& config, std::shared_ptr<CongestionControl> congestion_control)
      : config_(config),
        congestion_control_(std::move(congestion_control)),
        gate_(required(congestion_control_)) {}

  // Of RemoteAccess: the peer's requests for another are invalid from now on.
  void set_remote_access(uint8_t access) { config_.remote_access = access; }

  // Posts an RDMA WRITE of `length_bytes` (0 to 2^31) bytes at `data` to the peer's `remote_address`. `data`
  // must stay as it is until the completion, and alive by `owner` or the caller; null sends zeros. Completes
  // with kWrite and `work_id` when acknowledged; with an immediate, the peer gets a kWriteImmediate. On a
  // failed queue pair it completes at once with kFlushed. Throws std::invalid_argument if it is too long.
  void post_write(TimePs now, const uint8_t* data, uint64_t length_bytes, uint64_t remote_address,
                  uint32_t rkey, std::optional<uint32_t> immediate, uint64_t work_id,
                  std::shared_ptr<const void> owner = nullptr) {
    post(now, {.kind = CompletionKind::kWrite,
               .work_id = work_id,
               .data = data,
               .length_bytes = length_bytes,
               .remote_address = remote_address,
               .rkey = rkey,
               .immediate = immediate,
               .owner = std::move(owner)});
  }
  // Posts a WRITE whose packets carry their payload as a length: zeros that take no memory, which nothing
  // checks and the peer writes nowhere. Otherwise as post_write.
  void post_write_as_length(TimePs now, uint64_t length_bytes, uint64_t remote_address, uint32_t rkey,
                            std::optional<uint32_t> immediate, uint64_t work_id) {
    post(now, {.kind = CompletionKind::kWrite,
               .work_id = work_id,
               .data = nullptr,
               .length_bytes = length_bytes,
               .remote_address = remote_address,
               .rkey = rkey,
               .immediate = immediate,
               .owner = nullptr,
               .as_length = true});
  }
  // Posts a request, maybe one that another queue pair has withdrawn. Throws std::invalid_argument for one
  // that the transport does not carry. A SEND completes with kSend, a READ with kRead when all is in its
  // target (null: discarded); an atomic on the 8 bytes at remote_address, a number in the peer's byte order,
  // puts what it found into its target in this host's and completes with kCompareSwap or kFetchAdd.
  virtual void post(TimePs now, RcRequest request) = 0;
  // Posts a buffer for one incoming SEND, which completes with kReceive. With config().receive_for_immediate
  // a WRITE with immediate takes one, too, and leaves its memory alone.
  virtual void post_receive(TimePs now, PostedReceive receive) = 0;
  // Takes back what has not completed, in order, without completions. The queue pair has failed, as a whole,
  // when it returns.
  virtual std::vector<RcRequest> withdraw(TimePs now) = 0;
  // Requests other than READs that have completed as successful.
  virtual uint64_t completed_requests() const = 0;
  // Requests posted and not yet completed.
  virtual size_t outstanding_requests() const = 0;
  // Puts the queue pair into the error state (section 10.3.1): what is posted completes as flushed.
  virtual void flush(TimePs now) = 0;
  // The peer has sent all that it will: what its packets have met needs neither notifications nor probes.
  virtual void forget_marks() {}

  // Every message that completes is recorded, and every INT stack that comes back if `telemetry`. Whose
  // records they are: `ends` names the sender as source.
  virtual void observe(Probe* probe, ConnectionEnds ends, bool messages, bool telemetry) = 0;
  // Has every INT stack that comes back counted there, as of packets to a peer over a plane.
  virtual void count_hops(std::shared_ptr<HopLatencies> latencies, int32_t peer, int32_t plane) = 0;
  // The INT stack of the newest acknowledgement, if any came with one.
  virtual const std::optional<roce::IntStack>& last_telemetry() const = 0;
  // A frame that goes the way of its data, without a payload.
  virtual std::vector<uint8_t> data_frame() const = 0;

  // Why the queue pair failed, kSuccess while it works: error() is kFlushed and responder_error() says more
  // if it was the peer that asked for what it may not have (Fault::kPeer).
  virtual CompletionStatus error() const = 0;
  virtual CompletionStatus responder_error() const = 0;

  int data_class() const override { return config_.data_class; }

  const ConnectionEnds& ends() const { return ends_; }
  const RcConfig& config() const { return config_; }
  const RcCounters& counters() const { return counters_; }
  virtual void reset_counters() { counters_ = RcCounters(); }
  // Counts what fast-forward has not sent as if it had been sent (see FastForward).
  void add_counters(const RcCounters& more) { counters_ += more; }
  const CongestionControl& congestion_control() const { return *congestion_control_; }
  uint64_t in_flight_bytes() const { return gate_.in_flight_bytes(); }

 protected:
  RcConfig config_;
  RcCounters counters_;
  std::shared_ptr<CongestionControl> congestion_control_;
  SendGate gate_;
  ConnectionEnds ends_;

 private:
  static CongestionControl& required(const std::shared_ptr<CongestionControl>& congestion_control) {
    if (congestion_control == nullptr) throw std::invalid_argument("congestion_control is null");
    congestion_control->attach();
    return *congestion_control;
  }
};

}  // namespace weft
