#include "hosts/uet/rudi_queue_pair.hpp"

#include <stdexcept>
#include <utility>

namespace weft {
RudiQueuePair::RudiQueuePair(const RcConfig& common, const UetConfig& config, PacketPool& pool,
                             const MemoryRegistry& memory, std::shared_ptr<uet::PdcTable> pdcs,
                             std::shared_ptr<CongestionControl> congestion_control,
                             std::shared_ptr<PathChoice> path_choice, CompletionHandler* handler)
    : ServiceQueuePair(common, config, config.service == UetService::kRudi,
                       "service is not rudi (valid for a queue pair of RUDI: rudi)", std::move(pdcs),
                       std::move(congestion_control), std::move(path_choice)),
      initiator_(config_, uet_config_, counters_, uet_counters_, pool, gate_, pdcs_->packet_ids(),
                 path_choice_.get(), handler),
      target_(config_, uet_config_, counters_, uet_counters_, pool, memory) {}

void RudiQueuePair::fetch(PrefetchStep step) const {
  if (step == PrefetchStep::kObject)
    prefetch<CacheLevel::kSecond>(this, sizeof(RudiQueuePair));
  else
    initiator_.fetch();
}

void RudiQueuePair::post(TimePs now, RcRequest request) {
  initiator_.post(now, std::move(request));
  wake();
}

void RudiQueuePair::post_receive(TimePs /*now*/, PostedReceive /*receive*/) {
  throw std::invalid_argument(
      "a queue pair of RUDI takes no receives: it carries WRITEs without immediate and READs");
}

std::vector<RcRequest> RudiQueuePair::withdraw(TimePs /*now*/) {
  target_.stop();
  return initiator_.withdraw();
}

void RudiQueuePair::flush(TimePs now) {
  initiator_.flush(now);
  target_.stop();
  wake();
}

// Requests and data of READs take turns.
PacketPtr RudiQueuePair::pull(TimePs now) {
  const bool response_first = !response_pulled_;
  response_pulled_ = false;
  if (!response_first) {
    if (PacketPtr packet = initiator_.pull(now)) return packet;
  }
  if (PacketPtr packet = target_.pull_data()) {
    response_pulled_ = true;
    return packet;
  }
  if (target_.has_answer()) wake();  // memory of a READ is there no more
  return response_first ? initiator_.pull(now) : nullptr;
}

void RudiQueuePair::observe(Probe* probe, ConnectionEnds ends, bool messages, bool /*telemetry*/) {
  ends_ = ends;
  initiator_.observe(messages ? probe : nullptr, ends);
}

void RudiQueuePair::on_packet(TimePs now, const roce::ParsedPacket& packet) {
  if (!is_from_peer(packet)) return;
  switch (uet::type_of(uet::first_header(packet))) {
    case uet::kRudiRequest:
      return target_.on_request(packet);
    case uet::kRudiResponse:
      return initiator_.on_response(now, packet);
    case uet::kNack:
      return initiator_.on_nack(now, packet);
    default:
      ++counters_.unexpected_opcode;
  }
}

}  // namespace weft
