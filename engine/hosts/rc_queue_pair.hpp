// A reliable-connection (RC) queue pair: RDMA WRITE and SEND, each with or without immediate,
// acknowledgements, go-back-N and retransmission timeouts, receiver-not-ready, CNP and INT echo. Pure state:
// no clock, no I/O. Source: InfiniBand Architecture Specification volume 1, section 9.7; annex A17 (RoCEv2).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "congestion/congestion_control.hpp"
#include "hosts/memory_region.hpp"
#include "hosts/queue_pair.hpp"
#include "hosts/rc_config.hpp"
#include "hosts/rc_requester.hpp"
#include "hosts/rc_responder.hpp"
#include "hosts/send_gate.hpp"
#include "memory/prefetch_step.hpp"

namespace weft {

class RcQueuePair : public QueuePair {
 public:
  // `pool`, `memory` and `handler` outlive the queue pair; `handler` may be null, as may `path_choice`: then
  // all packets have config.source_udp_port. Throws std::invalid_argument for parameters out of range (see
  // check(RcConfig)).
  RcQueuePair(const RcConfig& config, PacketPool& pool, const MemoryRegistry& memory,
              std::shared_ptr<CongestionControl> congestion_control, std::shared_ptr<PathChoice> path_choice,
              CompletionHandler* handler);

  // Posts an RDMA WRITE of `length_bytes` (0 to 2^31) bytes at `data` to the peer's `remote_address`. `data`
  // must stay as it is until the completion, and alive by `owner` or the caller; null sends zeros. Completes
  // with kWrite and `work_id` when acknowledged; with an immediate, the peer gets a kWriteImmediate. On a
  // failed queue pair it completes at once with kFlushed. Throws std::invalid_argument if it is too long.
  void post_write(TimePs now, const uint8_t* data, uint64_t length_bytes, uint64_t remote_address,
                  uint32_t rkey, std::optional<uint32_t> immediate, uint64_t work_id,
                  std::shared_ptr<const void> owner = nullptr);
  // Posts a WRITE whose packets carry their payload as a length: zeros that take no memory, which nothing
  // checks and the peer writes nowhere. Otherwise as post_write.
  void post_write_as_length(TimePs now, uint64_t length_bytes, uint64_t remote_address, uint32_t rkey,
                            std::optional<uint32_t> immediate, uint64_t work_id);
  // Posts a SEND; completes with kSend. Otherwise as post_write.
  void post_send(TimePs now, const uint8_t* data, uint64_t length_bytes, std::optional<uint32_t> immediate,
                 uint64_t work_id, std::shared_ptr<const void> owner = nullptr);
  // Posts an RDMA READ of `length_bytes` bytes at the peer's `remote_address` into `target` (null: they are
  // discarded). Completes with kRead when all are there. Throws std::invalid_argument if it is too long for
  // the PSNs. Otherwise as post_write.
  void post_read(TimePs now, uint8_t* target, uint64_t length_bytes, uint64_t remote_address, uint32_t rkey,
                 uint64_t work_id, std::shared_ptr<const void> owner = nullptr);
  // Posts a READ whose responses carry their payload as a length, see post_write_as_length.
  void post_read_as_length(TimePs now, uint64_t length_bytes, uint64_t remote_address, uint32_t rkey,
                           uint64_t work_id);
  // Posts an atomic on the 8 bytes at the peer's `remote_address`, a number in the peer's byte order. Puts
  // what it found, in this host's byte order, into the 8 bytes at `target` (null: nowhere). Completes with
  // kCompareSwap or kFetchAdd. Otherwise as post_read.
  void post_compare_swap(TimePs now, uint8_t* target, uint64_t remote_address, uint32_t rkey,
                         uint64_t compare, uint64_t swap, uint64_t work_id,
                         std::shared_ptr<const void> owner = nullptr);
  void post_fetch_add(TimePs now, uint8_t* target, uint64_t remote_address, uint32_t rkey, uint64_t add,
                      uint64_t work_id, std::shared_ptr<const void> owner = nullptr);
  // Posts a request that another queue pair has withdrawn.
  void post(TimePs now, RcRequester::Request request) {
    requester_.post(now, std::move(request));
    wake();
  }
  // See RcRequester::withdraw. The queue pair has failed, as a whole, when it returns.
  std::vector<RcRequester::Request> withdraw(TimePs now);
  uint64_t completed_requests() const { return requester_.completed_requests(); }
  // Posts a buffer for one incoming SEND (null: its bytes are discarded); completes with kReceive.
  void post_receive(TimePs now, uint8_t* data, uint64_t length_bytes, uint64_t work_id,
                    std::shared_ptr<const void> owner = nullptr);

  // Puts the queue pair into the error state (section 10.3.1): what is posted completes as flushed.
  void flush(TimePs now);

  void on_packet(TimePs now, const roce::ParsedPacket& packet) override;
  PacketPtr pull_control(TimePs now) override;
  PacketPtr pull(TimePs now) override;
  PulledPacket last_pulled() const override {
    return response_pulled_ ? responder_.reads()->last_pulled() : requester_.last_pulled();
  }
  int data_class() const override { return config_.data_class; }
  bool may_have_control() const override { return responder_.has_answer() || requester_.has_answer(); }
  bool may_have_data() const override { return requester_.may_have_data() || may_have_responses(); }
  TimePs next_deadline() const override;
  void on_deadline(TimePs now) override;
  void fetch(PrefetchStep step) const override;

  void set_recovery_times(RecoveryTimes* times) override { requester_.set_recovery_times(times); }

  // See RcResponder::forget_marks.
  void forget_marks() { responder_.forget_marks(); }

  // See RcRequester::observe. Whose records they are: `ends` names the sender as source.
  void observe(Probe* probe, ConnectionEnds ends, bool messages, bool telemetry) {
    ends_ = ends;
    requester_.observe(probe, ends, messages, telemetry);
  }
  const ConnectionEnds& ends() const { return ends_; }
  // See RcRequester::count_hops.
  void count_hops(std::shared_ptr<HopLatencies> latencies, int32_t peer, int32_t plane) {
    requester_.count_hops(std::move(latencies), peer, plane);
  }

  const RcConfig& config() const { return config_; }
  const RcCounters& counters() const { return counters_; }
  void reset_counters() { counters_ = RcCounters(); }
  // Counts what fast-forward has not sent as if it had been sent (see FastForward).
  void add_counters(const RcCounters& more) { counters_ += more; }
  const CongestionControl& congestion_control() const { return *congestion_control_; }
  // The INT stack of the newest acknowledgement, if any came with one.
  const std::optional<roce::IntStack>& last_telemetry() const { return requester_.last_telemetry(); }
  uint64_t in_flight_bytes() const { return gate_.in_flight_bytes(); }
  // Requests posted and not yet completed.
  size_t outstanding_requests() const { return requester_.outstanding_requests(); }
  // Why the queue pair failed, kSuccess while it works: error() is kFlushed and responder_error() says more
  // if it was the peer that asked for what it may not have (Fault::kPeer).
  CompletionStatus error() const { return requester_.error(); }
  CompletionStatus responder_error() const { return responder_.error(); }

 private:
  bool may_have_responses() const {
    return responder_.reads() != nullptr && responder_.reads()->may_have_data();
  }
  PacketPtr pull_request(TimePs now);
  PacketPtr pull_response(TimePs now);
  void follow_rate(TimePs now);
  void join_errors(TimePs now);

  RcConfig config_;
  RcCounters counters_;
  std::shared_ptr<CongestionControl> congestion_control_;
  std::shared_ptr<PathChoice> path_choice_;
  SendGate gate_;
  RcRequester requester_;
  RcResponder responder_;
  ConnectionEnds ends_;
  bool response_pulled_ = false;  // what was pulled last; the other goes first then
};

}  // namespace weft
