// A queue pair of Multipath Reliable Connection (MRC): WRITEs, with or without immediate, each packet over a
// path of its own choice, placed as they arrive. Pure state: no clock, no I/O. Source: OCP MRC 1.0, as
// docs/spec/mrc.md and docs/mrc.md describe it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "hosts/mrc/ev_table.hpp"
#include "hosts/mrc/mrc_config.hpp"
#include "hosts/mrc/mrc_requester.hpp"
#include "hosts/mrc/mrc_responder.hpp"
#include "hosts/mrc/reverse_probes.hpp"
#include "hosts/writing_queue_pair.hpp"

namespace weft {
namespace mrc {
class Endpoint;
}

// It is attached to the port of its first plane, and a leg of it to the port of each other. All share one
// state; a packet leaves by whichever port is free, with an entropy value of that port's plane.
class MrcQueuePair : public WritingQueuePair, private mrc::EvObserver {
 public:
  // As RcQueuePair's; config.more_paths has the planes after the first. Throws std::invalid_argument as
  // check() does.
  MrcQueuePair(const RcConfig& common, const MrcConfig& config, PacketPool& pool,
               const MemoryRegistry& memory, std::shared_ptr<CongestionControl> congestion_control,
               CompletionHandler* handler);
  ~MrcQueuePair() override;

  // As RcQueuePair's.
  struct Sending {
    uint32_t initial_psn = 0;
    TimePs retransmission_timeout_ps = 0;
    uint32_t retry_limit = 0;   // timeouts in a row
    uint32_t even_retries = 0;  // of them, before the timeout begins to double
    uint32_t max_wimm = 0;
    uint32_t mpr = 0;
  };
  void begin_sending(const Sending& sending);

  size_t planes() const { return evs_.planes(); }
  MrcPath path(size_t plane) const;
  // Whether that is the peer's address on one of the planes.
  bool is_peer(const roce::IpAddress& address) const;
  // The NIC's endpoint, and the number of each plane's port.
  void join(std::weak_ptr<mrc::Endpoint> endpoint, std::vector<int> ports);
  std::optional<size_t> plane_at(int port) const;
  // A bit for each port that is up here and at the peer, and for each that an operator has withdrawn. Those
  // are used all the same if no other is up.
  void follow_ports(uint32_t ports_up, uint32_t withdrawn);
  bool may_use(size_t plane) const { return evs_.may_use(static_cast<uint32_t>(plane)); }
  int port_of(size_t plane) const { return ports_[plane]; }
  // For the next packet over the plane that is no connection's; nothing if all EVs are denied. Not the
  // reverse EV: that may be out of date while the queue pair is idle, and what is repeated is to take another
  // path.
  std::optional<size_t> next_ev(size_t plane) { return evs_.next(static_cast<uint32_t>(plane)); }
  // The peer has answered an EV probe of the endpoint's.
  void on_ev_probe_answer(uint16_t id, size_t ev, TimePs round_trip_ps);
  // The peer has not answered it in time.
  void on_ev_probe_expired(uint16_t id, size_t ev);
  // Of a plane after the first.
  QueuePair& leg(size_t plane);

  void post(TimePs now, RcRequest request) override;
  void post_receive(TimePs now, PostedReceive receive) override {
    responder_.post_receive(now, std::move(receive));
  }
  std::vector<RcRequest> withdraw(TimePs now) override;
  uint64_t completed_requests() const override { return requester_.completed_requests(); }
  size_t outstanding_requests() const override { return requester_.outstanding_requests(); }
  void flush(TimePs now) override;
  void forget_marks() override {
    requester_.stop_probing();
    reverse_probes_.stop();
  }
  void observe(Probe* probe, ConnectionEnds ends, bool messages, bool telemetry) override;
  // Its data carry no INT.
  void count_hops(std::shared_ptr<HopLatencies>, int32_t, int32_t) override {}
  const std::optional<roce::IntStack>& last_telemetry() const override { return no_telemetry_; }
  std::vector<uint8_t> data_frame() const override;
  CompletionStatus error() const override { return requester_.error(); }
  CompletionStatus responder_error() const override { return responder_.error(); }
  void reset_counters() override;

  void on_packet(TimePs now, const roce::ParsedPacket& packet) override;
  PacketPtr pull_control(TimePs now) override;
  PacketPtr pull(TimePs now) override { return requester_.pull(now, 0); }
  PulledPacket last_pulled() const override { return requester_.last_pulled(); }
  bool may_have_control() const override { return responder_.has_answer(0); }
  bool may_have_data() const override { return requester_.may_have_data(); }
  TimePs next_deadline() const override { return requester_.next_deadline(); }
  void on_deadline(TimePs now) override;
  void fetch(PrefetchStep step) const override;
  void set_recovery_times(RecoveryTimes* times) override { requester_.set_recovery_times(times); }

  const MrcConfig& mrc_config() const { return mrc_config_; }
  const MrcCounters& mrc_counters() const { return mrc_counters_; }
  const mrc::EvTable& evs() const { return evs_; }
  // By the administrator. Throw std::invalid_argument for an EV that there is not; deny_ev() also for the
  // last one that is not denied.
  void deny_ev(size_t ev);
  void allow_ev(size_t ev);
  // By the administrator: sends an EV probe over each of these, whatever their states. Those of an earlier
  // call that are unanswered are given up. Throws std::invalid_argument for an EV that there is not, or if
  // the NIC has too many probes on their way; then none is sent.
  void probe_evs(const std::vector<size_t>& evs);
  // Of the last probe_evs(): by EV the round trip, nothing as long as there is no answer.
  std::map<size_t, std::optional<TimePs>> probed_round_trips() const;
  // Which states of EVs are events from now on (MrcConfig::ev_event_mask).
  void set_ev_event_mask(uint8_t mask);
  // deny_ev() or allow_ev() by value; nothing happens if none has it, or if it is the last one that is not
  // excluded.
  void set_denied(uint32_t value, bool denied);
  // Whether the address is the peer's on one of the planes.
  bool leads_to(const roce::IpAddress& address) const;

 private:
  class Leg;

  void on_ev_state(size_t ev, mrc::EvState state) override;
  void receive(TimePs now, uint32_t plane, const roce::ParsedPacket& packet);
  // All ports but one, which asks anyway; null: all.
  void wake_others(const QueuePair* but);
  void wake_all() { wake_others(nullptr); }
  // The same after a packet, which mostly makes work for its own port alone.
  void wake_others_for_work(const QueuePair* but) {
    if (requester_.may_have_data() || !evs_.may_use_all()) wake_others(but);
  }
  void join_errors(TimePs now);
  void require_ev(size_t ev) const;
  // A packet of the peer has arrived that is to be answered.
  void on_inbound(TimePs now) {
    requester_.on_inbound(now);
    if (reverse_probes_.is_due(now)) probe_reverse_path(now);
  }
  void probe_reverse_path(TimePs now);
  void give_up_probes();

  struct Probed {
    std::optional<uint16_t> id;  // as long as it is waited for
    std::optional<TimePs> round_trip_ps;
  };

  MrcConfig mrc_config_;
  MrcCounters mrc_counters_;
  mrc::EvTable evs_;
  mrc::Requester requester_;
  mrc::Responder responder_;
  std::vector<std::unique_ptr<Leg>> legs_;
  size_t first_to_wake_ = 0;  // so that single packets take all planes in turn
  std::weak_ptr<mrc::Endpoint> endpoint_;
  std::vector<int> ports_;  // by plane; empty without an endpoint
  mrc::ReverseProbes reverse_probes_;
  std::map<size_t, Probed> probed_;  // by probe_evs()
  std::optional<roce::IntStack> no_telemetry_;
};

}  // namespace weft
