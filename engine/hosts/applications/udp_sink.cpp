#include "hosts/applications/udp_sink.hpp"

#include <utility>

namespace weft {

namespace {

constexpr uint8_t kCongestionExperienced = 3;

}  // namespace

UdpSink::UdpSink(IpStack& stack, ScheduleExecutor& executor, const IpAddress& source, uint16_t port)
    : Application(stack, executor), source_(source), port_(stack.bind_udp(port, *this)) {}

void UdpSink::on_datagram(TimePs now, const Datagram& datagram) {
  const std::optional<UdpDatagramHeader> header = UdpDatagramHeader::read(datagram.payload);
  if (!header || header->sequence >= kMostDatagrams || header->sent_ps < 0 || header->sent_ps > now ||
      datagram.packet.source != source_) {
    ++counters_.foreign_packets;
    return;
  }
  if (header->kind == UdpDatagramKind::kEnd) return answer_end(datagram, *header);
  if (header->kind != UdpDatagramKind::kData) return;
  const auto number = static_cast<size_t>(header->sequence);
  if (number < seen_.size() && seen_[number]) {
    ++counters_.duplicate_packets;
    return;
  }
  if (number < seen_.size())
    ++counters_.late_packets;
  else
    seen_.resize(number + 1);
  seen_[number] = true;
  ++counters_.packets;
  counters_.ip_bytes +=
      datagram.packet.payload_bytes + (datagram.packet.ip.size() - datagram.packet.payload.size());
  if (datagram.packet.ecn == kCongestionExperienced) ++counters_.marked_packets;
  delays_ps_.push_back(now - header->sent_ps);
  last_ps_ = now;
}

void UdpSink::answer_end(const Datagram& datagram, const UdpDatagramHeader& header) {
  PacketPtr payload = stack().allocate(UdpDatagramHeader::kBytes);
  UdpDatagramHeader{header.sequence, header.sent_ps, UdpDatagramKind::kEndHeard}.write(payload->data());
  IpHeader answer;
  answer.destination = datagram.packet.source;
  answer.dscp = datagram.packet.dscp;
  stack().send_udp(answer, port_, datagram.source_port, std::move(payload));
}

}  // namespace weft
