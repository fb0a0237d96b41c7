// Segments: packets in the middle of a long message that travel as one, so that a steady transfer costs less.
// A segment has the bytes of its first packet, and the time on links of all; its packets have numbers,
// acknowledgements and losses of their own.
#include <algorithm>

#include "hosts/arrival_window.hpp"
#include "hosts/rc_requester.hpp"

namespace weft {
namespace {

// At least so many segments are in flight, so that congestion control hears as often of the path.
constexpr uint64_t kSegmentsInFlight = 8;

}  // namespace

bool RcRequester::has_segments(const Outstanding& request) const {
  return config_.segment_packets > 1 && request.as_length && !is_read(request.kind) &&
         request.length_bytes >= config_.segment_message_bytes;
}

// A part of the window, and of what the rate sends in a round trip.
uint64_t RcRequester::segment_limit() const {
  uint64_t limit = config_.segment_packets;
  limit = std::min(limit, gate_.window_bytes() / (kSegmentsInFlight * smallest_full_frame_bytes_));
  const auto gap_ps = static_cast<uint64_t>(gate_.gap_ps());
  const auto round_trip_ps = static_cast<uint64_t>(sent_.round_trips().smoothed_ps());
  if (gap_ps > 0 && round_trip_ps > 0) limit = std::min(limit, round_trip_ps / (kSegmentsInFlight * gap_ps));
  return std::max<uint64_t>(1, limit);
}

// What a segment's last packet is acknowledged with, its first would have been acknowledged with before: that
// much more is in flight than with packets.
uint64_t RcRequester::more_window_bytes(const Outstanding& request) const {
  return has_segments(request) ? (segment_limit() - 1) * smallest_full_frame_bytes_ : 0;
}

// What is sent again one by one is no steady transfer, and all packets of a segment are full.
uint32_t RcRequester::packets_to_send(const Outstanding& request, uint64_t sequence) const {
  if (!has_segments(request) || sequence != next_sequence_) return 1;
  const uint64_t limit = segment_limit();
  const bool ends_full = request.wire_bytes % config_.path_mtu_bytes == 0;
  const uint64_t full_packets = request.end_sequence - sequence - (ends_full ? 0 : 1);
  const uint64_t outstanding = sequence - sent_.accepted();
  const uint64_t room_packets =
      (selective_repeat_ ? ArrivalWindow::kMaxPackets : kMaxOutstandingPackets - 1) - outstanding;
  uint64_t packets = std::min({limit, full_packets, room_packets});
  const uint64_t more_bytes = (limit - 1) * smallest_full_frame_bytes_;
  while (packets > 1 && !gate_.has_room(packets * largest_frame_bytes_, more_bytes)) --packets;
  return static_cast<uint32_t>(std::max<uint64_t>(1, packets));
}

size_t RcRequester::once_bytes() const {
  const uint16_t own = roce::opcode_extensions(headers_.bth.opcode).value_or(0);
  // With selective repeat every packet has a RETH.
  const size_t reth_bytes = (own & roce::kHasReth) != 0 && !selective_repeat_ ? roce::kRethBytes : 0;
  return reth_bytes + ((own & roce::kHasImmediate) != 0 ? roce::kImmediateBytes : 0);
}

void RcRequester::record_segment(TimePs now, Outstanding& request, uint64_t sequence, uint32_t packets,
                                 uint16_t frame_bytes, size_t once_bytes) {
  ++counters_.segments_sent;
  counters_.packets_sent_in_segments += packets;
  const auto each_bytes = static_cast<uint16_t>(frame_bytes - once_bytes);
  for (uint32_t i = 0; i < packets; ++i) {
    const TimePs later_ps = BitRate::serialisation_ps(uint64_t{i} * each_bytes, config_.line_rate_bps);
    record_sent(now, request, sequence + i, i == 0 ? frame_bytes : each_bytes, later_ps);
  }
}

}  // namespace weft
