#include "hosts/uet/rudi_queue_pair.hpp"

#include <stdexcept>
#include <utility>

namespace weft {
namespace {

const RcConfig& checked_with_rudi(const RcConfig& common, const UetConfig& config) {
  if (config.service != UetService::kRudi)
    throw std::invalid_argument("service is not rudi (valid for a queue pair of RUDI: rudi)");
  check(config, common);
  return common;
}

}  // namespace

RudiQueuePair::RudiQueuePair(const RcConfig& common, const UetConfig& config, PacketPool& pool,
                             const MemoryRegistry& memory, std::shared_ptr<uet::PdcTable> pdcs,
                             std::shared_ptr<CongestionControl> congestion_control,
                             std::shared_ptr<PathChoice> path_choice, CompletionHandler* handler)
    : WritingQueuePair(checked_with_rudi(common, config), std::move(congestion_control)),
      uet_config_(config),
      pdcs_(std::move(pdcs)),
      path_choice_(std::move(path_choice)),
      initiator_(config_, uet_config_, counters_, uet_counters_, pool, gate_, pdcs_->packet_ids(),
                 path_choice_.get(), handler),
      target_(config_, uet_config_, counters_, uet_counters_, pool, memory) {
  pdcs_->add(config_.queue_pair, this);
}

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

void RudiQueuePair::reset_counters() {
  WritingQueuePair::reset_counters();
  uet_counters_ = UetCounters();
}

std::vector<uint8_t> RudiQueuePair::data_frame() const {
  roce::RoceHeaders headers = headers_to_peer(config_);
  headers.dscp = uet_config_.data_dscp;
  std::vector<uint8_t> frame(uet::frame_bytes<uet::Rudi, uet::Standard>(headers.source_ip.is_ipv6, 0));
  uet::write_frame(headers, uet::Body(), frame.data(), uet::Rudi{.next_header = uet::kRequestStandard},
                   uet::Standard{.opcode = uet::kWrite});
  return frame;
}

void RudiQueuePair::on_packet(TimePs now, const roce::ParsedPacket& packet) {
  if (packet.bth.opcode != uet::kNoOpcode) {  // a packet of RoCEv2 with our number
    ++counters_.unexpected_opcode;
    return;
  }
  if (packet.source_ip != config_.destination_ip) {
    ++counters_.wrong_source;
    return;
  }
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
