#include "hosts/uet/sender.hpp"

namespace weft::uet {

Sender::Sender(const RcConfig& common, const UetConfig& config, RcCounters& common_counters,
               UetCounters& counters, PacketPool& pool, SendGate& gate, PathChoice* path_choice)
    : RepeatingSender(common, common_counters, gate, path_choice),
      config_(config),
      counters_(counters),
      pool_(pool),
      path_choice_(path_choice),
      is_ordered_(config.service == UetService::kRod),
      headers_(headers_to_peer(common)) {}

// At its last hop a packet meets those of other senders, which no other path avoids.
void Sender::note_trimming(TimePs now, uint8_t nack_code, uint16_t entropy) {
  ++counters_.trim_nacks_received;
  if (nack_code == kNackTrimmed && path_choice_ != nullptr) path_choice_->on_delivered(now, entropy, 0, true);
}

void Sender::restart(TimePs now) {
  sent_.go_back(now, sent_.accepted(), next_sequence_);
  next_sequence_ = sent_.accepted();
  on_restart();
}

void Sender::go_back(TimePs now) {
  note_news(now);
  const uint64_t lost_bytes = oldest_frame_bytes();
  restart(now);
  report_loss(now, lost_bytes);
}

bool Sender::take_timeout(TimePs now) {
  if (!may_retry()) return false;
  if (path_choice_ != nullptr) path_choice_->on_timeout(now);
  if (!is_ordered_) {
    retry_overdue(now);
    return true;
  }
  note_retry(now);
  const uint64_t lost_bytes = oldest_frame_bytes();
  restart(now);
  gate_.congestion_control().on_lost_bytes(now, true, lost_bytes);
  return true;
}

uint64_t Sender::repeat_oldest(TimePs now) {
  ++repetitions_;
  const uint64_t oldest = sent_.accepted();
  if (sent_.take_refused_for_lost(oldest, std::nullopt)) report_loss(now, sent_.packet(oldest).frame_bytes);
  return oldest;
}

}  // namespace weft::uet
