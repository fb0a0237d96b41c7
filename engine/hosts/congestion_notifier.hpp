// The notification point of DCQCN (Zhu et al., SIGCOMM 2015, section 3.1): a CNP at once for a marked packet,
// and one at the end of every interval in which something was marked.
#pragma once

#include "packets/roce_formats.hpp"
#include "time/time.hpp"

namespace weft {

class CongestionNotifier {
 public:
  explicit CongestionNotifier(TimePs interval_ps) : interval_ps_(interval_ps) {}

  // A marked packet has arrived.
  void on_mark(TimePs now) {
    if (now < next_ps_)
      due_ps_ = next_ps_;
    else
      notify(now);
  }
  // When on_deadline() is due; kNever: not at all.
  TimePs due_ps() const { return due_ps_; }
  void on_deadline(TimePs now) {
    if (now >= due_ps_) notify(now);
  }
  // What is marked up to now needs no CNP.
  void forget() {
    has_cnp_ = false;
    due_ps_ = kNever;
  }
  // Only a CNP that is pending is sent.
  void forget_later() { due_ps_ = kNever; }

  bool has_cnp() const { return has_cnp_; }
  // The CNP is about to be sent, with these headers.
  void take(roce::RoceHeaders& headers) {
    has_cnp_ = false;
    headers.bth.opcode = roce::kCnp;
    headers.bth.becn = true;
    headers.bth.psn = 0;
    headers.telemetry.reset();
  }

 private:
  void notify(TimePs now) {
    has_cnp_ = true;
    due_ps_ = kNever;
    next_ps_ = now + interval_ps_;
  }

  TimePs interval_ps_;
  TimePs next_ps_ = 0;
  TimePs due_ps_ = kNever;  // for what was marked within the interval
  bool has_cnp_ = false;
};

}  // namespace weft
