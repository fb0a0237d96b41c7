#include "hosts/uet/stream_answers.hpp"

#include <algorithm>

#include "hosts/uet/uet_config.hpp"

namespace weft::uet {

int64_t sack_offset(const ArrivalWindow& arrivals, uint64_t sequence) {
  if (sequence < arrivals.expected()) return 1;
  return static_cast<int64_t>((sequence - arrivals.expected()) / kSackBits * kSackBits) + 1;
}

void set_arrivals(Ack& ack, AckCc& cc, const ArrivalWindow& arrivals, const WidePsnMap& psns,
                  uint64_t sequence) {
  const uint64_t expected = arrivals.expected();
  const int64_t offset = sack_offset(arrivals, sequence);
  const auto behind = static_cast<int64_t>(sequence) - (static_cast<int64_t>(expected) - 1);
  // Too old for its field: the newest in order stands for it.
  if (!ack.probe) ack.ack_psn_offset = static_cast<int16_t>(behind < -0x8000 ? 0 : behind);
  ack.cack_psn = psns.psn(expected - 1);
  cc.mpr = kMaxOutstanding / kMprUnitPsns;
  cc.sack_psn_offset = static_cast<int16_t>(offset);
  cc.sack_bitmap = 0;
  if (!arrivals.has_gap()) return;
  for (uint64_t bit = 0; bit < kSackBits; ++bit)
    cc.sack_bitmap |= uint64_t{arrivals.contains(expected + static_cast<uint64_t>(offset - 1) + bit)} << bit;
}

std::optional<SentStream::Arrivals> read_arrivals(const AckPacket& ack, const WidePsnMap& psns,
                                                  const SentStream& sent, uint8_t hop_limit) {
  std::optional<SentStream::Arrivals> arrivals = sent.arrivals_at(
      psns.sequence(ack.pds.cack_psn, sent.accepted()), ack.cc.sack_psn_offset, ack.cc.sack_bitmap,
      ack.pds.probe ? std::nullopt : std::optional<int64_t>(ack.pds.ack_psn_offset));
  if (!arrivals) return std::nullopt;
  arrivals->marked = ack.pds.m;
  arrivals->hop_limit = hop_limit;
  arrivals->service_ps = ack.nscc.service_time * kServiceUnitPs;
  return arrivals;
}

}  // namespace weft::uet
