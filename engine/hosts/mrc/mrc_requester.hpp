// The sending half of an MRC queue pair: requests in, data packets and probes out, SACKs and NACKs in.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hosts/mrc/ev_table.hpp"
#include "hosts/mrc/mrc_config.hpp"
#include "hosts/mrc/mrc_counters.hpp"
#include "hosts/posted_requests.hpp"
#include "hosts/queue_pair.hpp"
#include "hosts/rc_config.hpp"
#include "hosts/rc_request.hpp"
#include "hosts/repeating_sender.hpp"
#include "hosts/request_completions.hpp"
#include "hosts/send_gate.hpp"
#include "hosts/sending_half.hpp"
#include "hosts/sent_stream.hpp"
#include "memory/ring_buffer.hpp"
#include "packets/mrc_formats.hpp"
#include "packets/psn.hpp"

namespace weft::mrc {

class Requester : public SendingHalf<Requester>, public RepeatingSender {
 public:
  Requester(const RcConfig& common, const MrcConfig& config, RcCounters& common_counters,
            MrcCounters& counters, PacketPool& pool, SendGate& gate, EvTable& evs,
            CompletionHandler* handler);

  void post(TimePs now, RcRequest request);
  // Whether something has been posted.
  bool has_begun() const { return end_sequence_ > 0; }
  // Begins with another PSN than the configuration's, before anything has been posted.
  void begin(uint32_t initial_psn) { psn_map_ = PsnMap(initial_psn); }
  // The next probe or data packet that goes over the plane, null if there is none or window or pacing forbid
  // it now.
  PacketPtr pull(TimePs now, uint32_t plane);
  bool may_have_data() const;
  void on_sack(TimePs now, const roce::ParsedPacket& packet, const Headers& mrc);
  void on_nack(TimePs now, const Headers& mrc);
  // The peer has refused a request.
  void on_refusal(TimePs now, const roce::ParsedPacket& packet);
  // A packet of the peer has arrived that is to be answered: EVs that are assumed bad are of use again.
  void on_inbound(TimePs now);
  // The peer sends nothing any more: paths back to it are of no use.
  void stop_probing();
  // Whether SACKs of its data tell of the paths: data is outstanding, or was sent since then.
  bool has_sent_since(TimePs since_ps) const {
    return has_outstanding() || (end_sequence_ > 0 && newest_sent_ps_ >= since_ps);
  }
  TimePs next_deadline() const;
  void on_deadline(TimePs now);
  uint64_t completed_requests() const { return requests_.completed(); }
  size_t outstanding_requests() const { return requests_.size(); }
  void observe(Probe* probe, ConnectionEnds ends) { completions_.observe(probe, ends); }

 private:
  friend SendingHalf<Requester>;

  struct Outstanding : RcRequest {
    uint64_t first_sequence = 0;
    uint64_t end_sequence = 0;  // one past its last packet
    uint16_t number = 0;        // of the message
    uint16_t immediate_number = 0;
    uint64_t retransmitted_packets = 0;
  };
  // Of an EV that is assumed bad.
  struct DueProbe {
    TimePs due_ps = 0;
    uint32_t ev = 0;
  };
  struct SentProbe {
    TimePs sent_ps = 0;
    uint32_t ev = 0;
  };
  // What the stream of packets tells of their paths.
  struct Losses final : LossObserver {
    explicit Losses(Requester& requester_) : requester(requester_) {}
    void on_lost(TimePs now, const SentPacket& packet) override { requester.on_lost(now, packet); }
    void on_found(TimePs, const SentPacket& packet) override { requester.on_found(packet); }
    Requester& requester;
  };

  // Whether max_wimm says more than the window of packets does.
  bool limits_immediates() const { return config_.max_wimm < kMaxOutstanding; }
  // Has requests be sent as far as max_wimm allows.
  void allow_requests();
  std::optional<uint64_t> sequence_to_send();
  Outstanding& request_of(uint64_t sequence) { return requests_.request_of(sequence, next_sequence_); }
  bool should_request_sack(const Outstanding& request, uint64_t sequence, uint64_t frame_bytes) const;
  void set_message_headers(roce::RoceHeaders& headers, Headers& mrc, const Outstanding& request,
                           uint64_t sequence, uint64_t offset) const;
  PacketPtr pull_probe(TimePs now, uint32_t plane);
  // Of a packet; null: zeros. Nothing if it is in foreign memory that is not there.
  std::optional<const uint8_t*> payload_of(const Outstanding& request, uint64_t offset, size_t bytes);
  // The request fails, once all before it has completed.
  void on_unreadable(TimePs now, const Outstanding& request);
  void on_lost(TimePs now, const SentPacket& packet);
  void on_found(const SentPacket& packet);
  void on_path_failure(TimePs now, size_t ev, TimePs sent_ps);
  void note_transmission(TimePs now, uint64_t answered, size_t ev);
  void take_marks(TimePs now, const Seth& seth, std::optional<size_t> ev, std::optional<uint64_t> answered);
  void probe(size_t ev);
  void make_due_probes(TimePs now);
  TimePs probe_deadline() const;
  bool has_outstanding() const { return error_ == CompletionStatus::kSuccess && is_waiting(); }
  void on_timeout(TimePs now);
  void fail(CompletionStatus status);
  std::vector<RcRequest> take_back() { return requests_.withdraw(); }
  void deliver_completions(TimePs now);

  const MrcConfig& config_;
  MrcCounters& counters_;
  PacketPool& pool_;
  EvTable& evs_;
  RequestCompletions completions_;
  Losses path_losses_;
  std::vector<roce::RoceHeaders> headers_;  // of each plane
  uint8_t data_ecn_;
  PsnMap psn_map_;
  PostedRequests<Outstanding> requests_;
  uint64_t end_sequence_ = 0;               // one past the last packet of the last request
  uint64_t allowed_end_ = 0;                // the same of the last request that max_wimm allows to be sent
  uint64_t refused_sequence_ = UINT64_MAX;  // of the request that the peer has refused
  uint16_t posted_messages_ = 0;
  uint16_t posted_immediates_ = 0;
  // Only with max_wimm: of the WRITEs with immediate that are under way, one past their last packets; and
  // requests that wait for one of these to be acknowledged.
  RingBuffer<uint64_t> immediates_under_way_;
  struct Held {
    uint64_t end_sequence = 0;
    bool immediate = false;
  };
  RingBuffer<Held> held_;
  size_t largest_frame_bytes_ = 0;
  std::vector<uint8_t> payload_;  // of the packet that is built, from foreign memory

  struct EvFlags {
    bool watched = false;       // in watched_
    bool to_be_probed = false;  // in probes_
    TimePs blamed_ps = 0;       // when the packet was sent that it was assumed bad for
  };
  std::vector<EvFlags> flags_;              // by EV
  RingBuffer<DueProbe> watched_;            // EVs assumed bad, in order of time
  RingBuffer<uint32_t> probes_;             // EVs to be probed now
  std::optional<SentProbe> silence_probe_;  // on its way, to ask what has arrived
  bool silent_ = false;                     // while on_timeout() is at work
};

}  // namespace weft::mrc
