#include "hosts/mrc/mrc_queue_pair.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "packets/mrc_codec.hpp"

namespace weft {
namespace {

const RcConfig& checked_with_mrc(const RcConfig& common, const MrcConfig& config) {
  check(config, common);
  return common;
}

mrc::EvTable made_evs(const RcConfig& common, const MrcConfig& config, MrcCounters& counters) {
  if (config.routes == nullptr) {
    return {static_cast<uint32_t>(config.more_paths.size() + 1), config.ev_count, config.ev_backups,
            config.ev_seed, counters};
  }
  return {{&config.routes->to(common.destination_ip)},
          config.encapsulates(),
          config.ev_count,
          config.ev_backups,
          config.ev_seed,
          counters};
}

}  // namespace

// What the NIC's other ports send and receive for.
class MrcQueuePair::Leg final : public QueuePair {
 public:
  Leg(MrcQueuePair& owner, uint32_t plane) : owner_(owner), plane_(plane) {}

  void on_packet(TimePs now, const roce::ParsedPacket& packet) override {
    owner_.receive(now, packet);
    owner_.wake();
    owner_.wake_legs(this);
  }
  PacketPtr pull_control(TimePs) override { return owner_.responder_.pull_control(plane_); }
  PacketPtr pull(TimePs now) override { return owner_.requester_.pull(now, plane_); }
  PulledPacket last_pulled() const override { return owner_.requester_.last_pulled(); }
  int data_class() const override { return owner_.data_class(); }
  bool may_have_control() const override { return owner_.may_have_control(); }
  bool may_have_data() const override { return owner_.may_have_data(); }
  // The owner has them all.
  TimePs next_deadline() const override { return kNever; }
  void on_deadline(TimePs) override {}
  void wake_up() { wake(); }

 private:
  MrcQueuePair& owner_;
  uint32_t plane_;
};

MrcQueuePair::MrcQueuePair(const RcConfig& common, const MrcConfig& config, PacketPool& pool,
                           const MemoryRegistry& memory,
                           std::shared_ptr<CongestionControl> congestion_control, CompletionHandler* handler)
    : WritingQueuePair(checked_with_mrc(common, config), std::move(congestion_control)),
      mrc_config_(config),
      evs_(made_evs(common, config, mrc_counters_)),
      requester_(config_, mrc_config_, counters_, mrc_counters_, pool, gate_, evs_, handler),
      responder_(config_, mrc_config_, counters_, mrc_counters_, pool, memory, evs_, handler) {
  for (uint32_t plane = 1; plane < evs_.planes(); ++plane)
    legs_.push_back(std::make_unique<Leg>(*this, plane));
  if (config.routes == nullptr) return;
  for (const uint32_t value : config.routes->denied(common.destination_ip)) set_denied(value, true);
}

MrcQueuePair::~MrcQueuePair() = default;

QueuePair& MrcQueuePair::leg(size_t plane) {
  if (plane == 0 || plane > legs_.size()) {
    throw std::invalid_argument("no leg for plane " + std::to_string(plane) + " (valid: 1 to " +
                                std::to_string(legs_.size()) + ")");
  }
  return *legs_[plane - 1];
}

void MrcQueuePair::fetch(PrefetchStep step) const {
  if (step == PrefetchStep::kObject)
    prefetch<CacheLevel::kSecond>(this, sizeof(MrcQueuePair));
  else
    requester_.fetch();
}

void MrcQueuePair::wake_legs(const QueuePair* but) {
  for (const auto& leg : legs_) {
    if (leg.get() != but) leg->wake_up();
  }
}

void MrcQueuePair::wake_all() {
  wake();
  wake_legs(nullptr);
}

void MrcQueuePair::post(TimePs now, RcRequest request) {
  requester_.post(now, std::move(request));
  wake_all();
}

std::vector<RcRequest> MrcQueuePair::withdraw(TimePs now) {
  std::vector<RcRequest> left = requester_.withdraw();
  join_errors(now);
  return left;
}

void MrcQueuePair::flush(TimePs now) {
  requester_.flush(now);
  responder_.flush();
  wake_all();
}

void MrcQueuePair::observe(Probe* probe, ConnectionEnds ends, bool messages, bool /*telemetry*/) {
  ends_ = ends;
  requester_.observe(messages ? probe : nullptr, ends);
}

void MrcQueuePair::reset_counters() {
  WritingQueuePair::reset_counters();
  mrc_counters_ = MrcCounters();
}

std::vector<uint8_t> MrcQueuePair::data_frame() const {
  roce::RoceHeaders headers = headers_to_peer(config_);
  headers.dscp = mrc_config_.data_dscp;
  headers.bth.opcode = mrc::kWriteMiddle;
  mrc::set_entropy(headers, evs_.value(0));
  mrc::Headers mrc;
  mrc.outer_destination = evs_.outer_destination(0);
  std::vector<uint8_t> frame(mrc::frame_bytes(headers, mrc, 0));
  mrc::write_frame(headers, mrc, nullptr, 0, frame.data());
  return frame;
}

bool MrcQueuePair::is_peer(const roce::IpAddress& address) const {
  return address == config_.destination_ip ||
         std::ranges::any_of(mrc_config_.more_paths,
                             [&](const MrcPath& path) { return path.destination_ip == address; });
}

void MrcQueuePair::receive(TimePs now, const roce::ParsedPacket& packet) {
  const uint8_t opcode = packet.bth.opcode;
  if (!is_peer(packet.source_ip)) {
    ++counters_.wrong_source;
  } else if (packet.bth.partition_key != roce::kDefaultPartitionKey) {
    ++counters_.wrong_partition_key;
  } else if (mrc::is_write(opcode)) {
    responder_.on_write(now, packet);
    requester_.on_inbound(now);
  } else if (opcode == mrc::kSack) {
    requester_.on_sack(now, packet, mrc::load_headers(packet));
  } else if (opcode == mrc::kNack) {
    requester_.on_nack(now, mrc::load_headers(packet));
  } else if (opcode == mrc::kReliabilityProbe) {
    responder_.on_probe(packet, mrc::load_headers(packet));
  } else if (opcode == mrc::kAcknowledge) {
    requester_.on_refusal(now, packet);
  } else {
    ++counters_.unexpected_opcode;
  }
  join_errors(now);
}

void MrcQueuePair::on_packet(TimePs now, const roce::ParsedPacket& packet) {
  receive(now, packet);
  wake_legs(nullptr);
}

PacketPtr MrcQueuePair::pull_control(TimePs /*now*/) { return responder_.pull_control(0); }

void MrcQueuePair::on_deadline(TimePs now) {
  requester_.on_deadline(now);
  join_errors(now);
  wake_legs(nullptr);
}

void MrcQueuePair::require_ev(size_t ev) const {
  if (ev < evs_.size()) return;
  throw std::invalid_argument("no entropy value " + std::to_string(ev) + " (valid: 0 to " +
                              std::to_string(evs_.size() - 1) + ")");
}

void MrcQueuePair::set_denied(uint32_t value, bool denied) {
  const std::optional<size_t> ev = evs_.find(value);
  if (!ev || (denied && !evs_.has_other_than(*ev))) return;
  denied ? evs_.deny(*ev) : evs_.allow(*ev);
  wake_all();
}

void MrcQueuePair::deny_ev(size_t ev) {
  require_ev(ev);
  evs_.deny(ev);
}

void MrcQueuePair::allow_ev(size_t ev) {
  require_ev(ev);
  evs_.allow(ev);
  wake_all();
}

// A queue pair fails as a whole, as RC's (InfiniBand specification, section 10.3.1).
void MrcQueuePair::join_errors(TimePs now) {
  if (requester_.error() != CompletionStatus::kSuccess) responder_.flush();
  if (responder_.error() != CompletionStatus::kSuccess) requester_.flush(now);
}

}  // namespace weft
