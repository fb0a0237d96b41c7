// Grants the credits of a NIC's port: to all initiators that ask, in turn, no faster than their packets can
// arrive over its link. Source: Ultra Ethernet Specification 1.0, section 3.6 (RCCC).
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "links/transmit_port.hpp"
#include "memory/ring_buffer.hpp"
#include "time/engine.hpp"
#include "time/event_queue.hpp"
#include "time/time.hpp"

namespace weft::uet {

// A target whose initiator asks for credit.
class CreditTaker {
 public:
  virtual ~CreditTaker() = default;
  // Bytes that it has been asked for and has not granted; none while its initiator uses no credit.
  virtual uint64_t credit_wanted_bytes(TimePs now) const = 0;
  virtual void grant_credit(uint64_t bytes) = 0;
  bool is_waiting_for_credit = false;  // the pacer's
};

class CreditPacer {
 public:
  CreditPacer(Engine& engine, const TransmitPort& port)
      : engine_(engine), port_(port), timer_(engine.events(), member_action<&CreditPacer::on_timer>(this)) {}
  CreditPacer(const CreditPacer&) = delete;
  CreditPacer& operator=(const CreditPacer&) = delete;

  // The taker may want credit; it is asked when its turn comes.
  void want(CreditTaker& taker) {
    if (taker.is_waiting_for_credit || taker.credit_wanted_bytes(engine_.now()) == 0) return;
    taker.is_waiting_for_credit = true;
    takers_.push(&taker);
    arm();
  }
  void forget(CreditTaker& taker) {
    if (std::exchange(taker.is_waiting_for_credit, false)) takers_.erase(&taker);
  }
  // Bytes that nobody had granted have arrived: their time on the link is gone.
  void arrived_in_advance(uint64_t bytes) { take_time(bytes); }

 private:
  // What else comes over the link, and what no credit covers, needs room, too (uet-htsim has the same share).
  static constexpr uint64_t kSharePercent = 99;
  static constexpr uint64_t kQuantumBytes = 4096;

  void take_time(uint64_t bytes) {
    next_ps_ = std::max(next_ps_, engine_.now()) +
               BitRate::serialisation_ps(bytes, port_.rate_bps() / 100 * kSharePercent);
  }
  void arm() {
    if (!takers_.empty() && !timer_.armed()) timer_.arm(std::max(next_ps_, engine_.now()));
  }
  void on_timer() {
    if (takers_.empty()) return;
    if (engine_.now() < next_ps_) return arm();
    CreditTaker& taker = *takers_.pop();
    taker.is_waiting_for_credit = false;
    const uint64_t bytes = std::min(taker.credit_wanted_bytes(engine_.now()), kQuantumBytes);
    if (bytes > 0) {
      take_time(bytes);
      taker.grant_credit(bytes);
    }
    want(taker);
    arm();
  }

  Engine& engine_;
  const TransmitPort& port_;
  TimePs next_ps_ = 0;
  RingBuffer<CreditTaker*> takers_;  // in order of their turns
  Timer timer_;
};

}  // namespace weft::uet
