#include "hosts/repeating_sender.hpp"

namespace weft {

bool RepeatingSender::lose_refused(TimePs now, uint64_t sequence, std::optional<uint16_t> entropy) {
  if (!sent_.take_refused_for_lost(sequence, entropy)) return false;
  note_news(now);
  report_loss(now, sent_.packet(sequence).frame_bytes);
  return true;
}

void RepeatingSender::retry_overdue(TimePs now) {
  const TimePs overdue_ps = now - retransmission_timeout_ps();
  note_retry(now);
  const uint64_t lost_bytes = sent_.take_overdue_for_lost(now, sent_.accepted(), sent_.highest(), overdue_ps);
  gate_.congestion_control().on_lost_bytes(now, true, lost_bytes);
}

}  // namespace weft
