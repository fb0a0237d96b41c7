#include "hosts/uet/send_arrivals.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "hosts/rc_request.hpp"

namespace weft::uet {

// Messages that take the same packets would never be whole.
bool SendArrivals::overlaps(uint64_t first, uint64_t packets) const {
  const auto next = arriving_.lower_bound(first);
  if (next != arriving_.end() && next->first < first + packets) return true;
  if (next == arriving_.begin()) return false;
  const auto before = std::prev(next);
  return before->first + before->second.packets > first;
}

// Packets of a message follow each other, so each says which one its message begins with.
std::optional<uint8_t> SendArrivals::place(const roce::ParsedPacket& packet, const WriteHeader& send,
                                           uint64_t sequence, const ArrivalWindow& arrivals) {
  const uint64_t before = send.message_offset / common_.path_mtu_bytes;
  const bool is_placed = send.message_offset % common_.path_mtu_bytes == 0;
  if (!is_placed || send.starts_message != (before == 0) || before > sequence)
    return kReturnOperationViolation;
  const uint64_t first = sequence - before;
  auto found = arriving_.find(first);
  if (found == arriving_.end()) {
    const uint64_t packets = packets_of_payload(send.request_length, common_.path_mtu_bytes);
    // Its first packet has been one of another message.
    const bool is_late = first < sequence && (first < arrivals.expected() || arrivals.contains(first));
    if (is_late || overlaps(first, packets)) return kReturnOperationViolation;
    if (posted_.empty()) return std::nullopt;
    if (send.request_length > posted_.front().receive.length_bytes) {
      overflowed_ = posted_.front().number;
      return kReturnTooLong;
    }
    found = arriving_
                .emplace(first, Arriving{.taken = std::move(posted_.front()),
                                         .message_id = send.message_id,
                                         .length_bytes = send.request_length,
                                         .packets = packets,
                                         .missing_packets = packets})
                .first;
    posted_.pop_front();
  }
  Arriving& arriving = found->second;
  if (arriving.message_id != send.message_id || arriving.length_bytes != send.request_length)
    return kReturnOperationViolation;
  uint8_t* const data = arriving.taken.receive.data;
  if (data != nullptr && !packet.as_length && packet.payload_bytes > 0)
    std::copy_n(packet.payload, packet.payload_bytes, data + send.message_offset);
  if (send.starts_message && send.has_header_data)
    arriving.immediate = static_cast<uint32_t>(send.header_data);
  --arriving.missing_packets;
  newest_ = first;
  return kReturnOk;
}

void SendArrivals::finish(TimePs now) {
  if (!newest_) return;
  const auto found = arriving_.find(*std::exchange(newest_, std::nullopt));
  if (found == arriving_.end() || found->second.missing_packets > 0) return;
  const Arriving whole = std::move(found->second);
  arriving_.erase(found);
  complete(now, whole.taken.receive, CompletionStatus::kSuccess, whole.length_bytes, whole.immediate);
}

void SendArrivals::flush(TimePs now) {
  std::vector<Numbered> left;
  for (auto& [first, arriving] : std::exchange(arriving_, {})) left.push_back(std::move(arriving.taken));
  std::ranges::sort(left, {}, &Numbered::number);
  for (Numbered& posted : std::exchange(posted_, {})) left.push_back(std::move(posted));
  for (const Numbered& each : left) {
    const bool overflowed = overflowed_ == each.number;
    complete(now, each.receive, overflowed ? CompletionStatus::kLocalLengthError : CompletionStatus::kFlushed,
             0, std::nullopt);
  }
}

void SendArrivals::complete(TimePs now, const PostedReceive& receive, CompletionStatus status,
                            uint64_t length_bytes, std::optional<uint32_t> immediate) {
  if (handler_ == nullptr) return;
  handler_->on_completion({.work_id = receive.work_id,
                           .kind = CompletionKind::kReceive,
                           .status = status,
                           .queue_pair = common_.queue_pair,
                           .length_bytes = length_bytes,
                           .has_immediate = immediate.has_value(),
                           .immediate = immediate.value_or(0),
                           .posted_ps = 0,
                           .completed_ps = now});
}

}  // namespace weft::uet
