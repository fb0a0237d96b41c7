#include "hosts/uet/uet_queue_pair.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace weft {
UetQueuePair::UetQueuePair(const RcConfig& common, const UetConfig& config, PacketPool& pool,
                           const MemoryRegistry& memory, std::shared_ptr<uet::PdcTable> pdcs,
                           std::shared_ptr<uet::CreditPacer> pacer,
                           std::shared_ptr<CongestionControl> congestion_control,
                           std::shared_ptr<PathChoice> path_choice, CompletionHandler* handler)
    : ServiceQueuePair(common, config, has_pdcs(config.service),
                       "service is not rud or rod (valid for a queue pair with PDCs: rud, rod)",
                       std::move(pdcs), std::move(congestion_control), std::move(path_choice)),
      pacer_(std::move(pacer)),
      initiator_(config_, uet_config_, counters_, uet_counters_, pool, gate_, *pdcs_, path_choice_.get(),
                 handler),
      target_(config_, uet_config_, counters_, uet_counters_, pool, memory, *pdcs_, pacer_.get(), *this,
              gate_, path_choice_.get(), handler) {}

void UetQueuePair::fetch(PrefetchStep step) const {
  if (step == PrefetchStep::kObject)
    prefetch<CacheLevel::kSecond>(this, sizeof(UetQueuePair));
  else
    initiator_.fetch();
}

void UetQueuePair::post(TimePs now, RcRequest request) {
  initiator_.post(now, std::move(request));
  wake();
}

std::vector<RcRequest> UetQueuePair::withdraw(TimePs now) {
  std::vector<RcRequest> left = initiator_.withdraw();
  join_errors(now);
  return left;
}

void UetQueuePair::flush(TimePs now) {
  initiator_.flush(now);
  target_.flush(now);
  wake();
}

void UetQueuePair::observe(Probe* probe, ConnectionEnds ends, bool messages, bool /*telemetry*/) {
  ends_ = ends;
  initiator_.observe(messages ? probe : nullptr, ends);
}

void UetQueuePair::on_control(TimePs now, const roce::ParsedPacket& packet) {
  uet::Control control;
  wire::load_header(control, uet::first_header(packet));
  if (control.ctl_type == uet::kCreditGrant)
    initiator_.on_credit(now, control);
  else
    target_.on_control(now, packet, control);
}

void UetQueuePair::on_packet(TimePs now, const roce::ParsedPacket& packet) {
  if (!is_from_peer(packet)) return;
  const uint8_t* const header = uet::first_header(packet);
  const uint8_t type = uet::type_of(header);
  switch (type) {
    case uet::kAckCc:
    case uet::kNack:
      if (target_.has_sent_from(static_cast<uint16_t>(wire::load_field<uet::Ack, "dpdcid">(header))))
        target_.on_answer(now, packet);
      else if (type == uet::kNack)
        initiator_.on_nack(now, packet);
      else
        initiator_.on_ack(now, packet);
      break;
    case uet::kControl:
      on_control(now, packet);
      break;
    default:
      if (type == uet::response_type(uet_config_) && uet::is_response(header))
        initiator_.on_response(now, packet);
      else if (type == uet::request_type(uet_config_) && !uet::is_response(header))
        target_.on_request(now, packet);
      else
        ++counters_.unexpected_opcode;
  }
  join_errors(now);
}

PacketPtr UetQueuePair::pull_control(TimePs now) {
  PacketPtr packet = target_.pull_control(now);
  return packet != nullptr ? std::move(packet) : initiator_.pull_control(now);
}

// Requests and data of READs take turns.
PacketPtr UetQueuePair::pull(TimePs now) {
  if (!target_.may_have_data()) [[likely]]
    return pull_request(now);
  const bool request_first = response_pulled_;
  if (PacketPtr packet = request_first ? pull_request(now) : pull_response(now)) return packet;
  return request_first ? pull_response(now) : pull_request(now);
}

PacketPtr UetQueuePair::pull_request(TimePs now) {
  response_pulled_ = false;
  return initiator_.pull(now);
}

PacketPtr UetQueuePair::pull_response(TimePs now) {
  response_pulled_ = true;
  PacketPtr packet = target_.pull_data(now);
  if (target_.error() != CompletionStatus::kSuccess) [[unlikely]] {
    join_ps_ = now;  // not from within a pull
    wake();
  }
  return packet;
}

void UetQueuePair::on_deadline(TimePs now) {
  join_ps_ = kNever;
  initiator_.on_deadline(now);
  target_.on_deadline(now);
  join_errors(now);
}

// A queue pair fails as a whole, as RC's (InfiniBand specification, section 10.3.1).
void UetQueuePair::join_errors(TimePs now) {
  if (initiator_.error() != CompletionStatus::kSuccess) target_.flush(now);
  if (target_.error() != CompletionStatus::kSuccess) initiator_.flush(now);
}

}  // namespace weft
