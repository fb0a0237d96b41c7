#include "hosts/mrc/mrc_queue_pair.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "hosts/code_points.hpp"
#include "hosts/mrc/mrc_endpoint.hpp"
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
  std::vector<const std::vector<mrc::EvRoute>*> by_plane{&config.routes->to(common.destination_ip)};
  for (const MrcPath& path : config.more_paths) by_plane.push_back(&config.routes->to(path.destination_ip));
  return {by_plane, config.encapsulates(), config.ev_count, config.ev_backups, config.ev_seed, counters};
}

}  // namespace

// What the NIC's other ports send and receive for.
class MrcQueuePair::Leg final : public QueuePair {
 public:
  Leg(MrcQueuePair& owner, uint32_t plane) : owner_(owner), plane_(plane) {}

  void on_packet(TimePs now, const roce::ParsedPacket& packet) override {
    owner_.receive(now, plane_, packet);
    owner_.wake_others_for_work(this);
  }
  PacketPtr pull_control(TimePs) override { return owner_.responder_.pull_control(plane_); }
  PacketPtr pull(TimePs now) override { return owner_.requester_.pull(now, plane_); }
  PulledPacket last_pulled() const override { return owner_.requester_.last_pulled(); }
  int data_class() const override { return owner_.data_class(); }
  bool may_have_control() const override { return owner_.responder_.has_answer(plane_); }
  bool may_have_data() const override { return owner_.may_have_data(); }
  // Any port may be the one that is up.
  TimePs next_deadline() const override { return owner_.next_deadline(); }
  void on_deadline(TimePs now) override {
    owner_.on_deadline(now);
    owner_.wake();
  }
  void wake_up() { wake(); }

 private:
  MrcQueuePair& owner_;
  uint32_t plane_;
};

MrcQueuePair::MrcQueuePair(const RcConfig& common, const MrcConfig& config, PacketPool& pool,
                           const MemoryRegistry& memory,
                           std::shared_ptr<CongestionControl> congestion_control, CompletionHandler* handler)
    : WritingQueuePair(checked_with_mrc(common, config), std::move(congestion_control)),
      mrc_config_(in_class_of(common, config)),
      evs_(made_evs(common, config, mrc_counters_)),
      requester_(config_, mrc_config_, counters_, mrc_counters_, pool, gate_, evs_, handler),
      responder_(config_, mrc_config_, counters_, mrc_counters_, pool, memory, evs_, handler),
      reverse_probes_(common.retransmission_timeout_ps) {
  for (uint32_t plane = 1; plane < evs_.planes(); ++plane)
    legs_.push_back(std::make_unique<Leg>(*this, plane));
  first_to_wake_ = config.ev_seed % evs_.planes();
  evs_.set_min_active(config.ev_min_active);
  set_ev_event_mask(config.ev_event_mask);
  if (config.routes == nullptr) return;
  for (size_t plane = 0; plane < evs_.planes(); ++plane) {
    for (const uint32_t value : config.routes->denied(path(plane).destination_ip)) set_denied(value, true);
  }
}

MrcQueuePair::~MrcQueuePair() {
  if (const auto endpoint = endpoint_.lock()) endpoint->forget(*this);
}

MrcPath MrcQueuePair::path(size_t plane) const {
  if (plane > 0) return mrc_config_.more_paths.at(plane - 1);
  return {config_.source_mac, config_.destination_mac, config_.source_ip, config_.destination_ip};
}

void MrcQueuePair::join(std::weak_ptr<mrc::Endpoint> endpoint, std::vector<int> ports) {
  endpoint_ = std::move(endpoint);
  ports_ = std::move(ports);
}

std::optional<size_t> MrcQueuePair::plane_at(int port) const {
  const auto found = std::ranges::find(ports_, port);
  if (found == ports_.end()) return std::nullopt;
  return static_cast<size_t>(found - ports_.begin());
}

void MrcQueuePair::follow_ports(uint32_t ports_up, uint32_t withdrawn) {
  const bool any_left =
      std::ranges::any_of(ports_, [=](int port) { return (ports_up & ~withdrawn) >> port & 1u; });
  if (any_left) ports_up &= ~withdrawn;
  bool changed = false;
  for (uint32_t plane = 0; plane < ports_.size(); ++plane) {
    const bool up = (ports_up >> ports_[plane] & 1u) != 0;
    if (up == evs_.is_up(plane)) continue;
    evs_.set_up(plane, up);
    changed = true;
  }
  if (changed) wake_all();
}

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

// Another port begins each time: whichever is asked first sends what there is, so a sender of single packets,
// or one that its window holds back, would load one plane alone.
void MrcQueuePair::wake_others(const QueuePair* but) {
  const size_t count = legs_.size() + 1;
  first_to_wake_ = first_to_wake_ + 1 < count ? first_to_wake_ + 1 : 0;
  for (size_t number = 0; number < count; ++number) {
    const size_t place = (first_to_wake_ + number) % count;
    if (place == legs_.size()) {
      if (but != this) wake();
    } else if (legs_[place].get() != but) {
      legs_[place]->wake_up();
    }
  }
}

void MrcQueuePair::begin_sending(const Sending& sending) {
  if (requester_.has_begun()) throw std::logic_error("requests have been posted before");
  RcConfig changed = config_;
  changed.initial_psn = sending.initial_psn;
  changed.retransmission_timeout_ps = sending.retransmission_timeout_ps;
  changed.retry_limit = sending.retry_limit;
  changed.even_retries = sending.even_retries;
  MrcConfig changed_mrc = mrc_config_;
  changed_mrc.max_wimm = sending.max_wimm;
  changed_mrc.mpr = sending.mpr;
  check(changed_mrc, changed);
  config_ = changed;
  mrc_config_ = std::move(changed_mrc);
  requester_.begin(changed.initial_psn);
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
  responder_.flush(now);
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

void MrcQueuePair::receive(TimePs now, uint32_t plane, const roce::ParsedPacket& packet) {
  const uint8_t opcode = packet.bth.opcode;
  if (!is_peer(packet.source_ip)) {
    ++counters_.wrong_source;
  } else if (packet.bth.partition_key != roce::kDefaultPartitionKey) {
    ++counters_.wrong_partition_key;
  } else if (mrc::is_write(opcode)) {
    responder_.on_write(now, plane, packet);
    on_inbound(now);
  } else if (opcode == mrc::kSack) {
    requester_.on_sack(now, packet, mrc::load_headers(packet));
  } else if (opcode == mrc::kNack) {
    requester_.on_nack(now, mrc::load_headers(packet));
  } else if (opcode == mrc::kReliabilityProbe) {
    responder_.on_probe(plane, packet, mrc::load_headers(packet));
    on_inbound(now);
  } else if (opcode == mrc::kAcknowledge) {
    requester_.on_refusal(now, packet);
  } else {
    ++counters_.unexpected_opcode;
  }
  join_errors(now);
}

void MrcQueuePair::on_packet(TimePs now, const roce::ParsedPacket& packet) {
  receive(now, 0, packet);
  wake_others_for_work(this);
}

PacketPtr MrcQueuePair::pull_control(TimePs /*now*/) { return responder_.pull_control(0); }

void MrcQueuePair::on_deadline(TimePs now) {
  requester_.on_deadline(now);
  join_errors(now);
  wake_others(this);
}

void MrcQueuePair::require_ev(size_t ev) const {
  if (ev < evs_.size()) return;
  throw std::invalid_argument("no entropy value " + std::to_string(ev) + " (valid: 0 to " +
                              std::to_string(evs_.size() - 1) + ")");
}

bool MrcQueuePair::leads_to(const roce::IpAddress& address) const {
  for (size_t plane = 0; plane < planes(); ++plane) {
    if (path(plane).destination_ip == address) return true;
  }
  return false;
}

void MrcQueuePair::set_denied(uint32_t value, bool denied) {
  const std::optional<size_t> found = evs_.find(value);
  if (!found) return;
  const size_t ev = *found;
  if (denied && !evs_.has_other_than(ev)) return;
  denied ? evs_.deny(ev) : evs_.allow(ev);
  wake_all();
}

void MrcQueuePair::deny_ev(size_t ev) {
  require_ev(ev);
  if (!evs_.has_other_than(ev))
    throw std::invalid_argument("entropy value " + std::to_string(ev) + " is the last that is not denied");
  evs_.deny(ev);
}

void MrcQueuePair::allow_ev(size_t ev) {
  require_ev(ev);
  evs_.allow(ev);
  wake_all();
}

// Once a round trip, unless SACKs of our own data tell of the paths.
void MrcQueuePair::probe_reverse_path(TimePs now) {
  const bool is_needless =
      reverse_probes_.is_first() || requester_.has_sent_since(now - reverse_probes_.interval_ps());
  reverse_probes_.wait(now);
  const auto endpoint = endpoint_.lock();
  if (is_needless || endpoint == nullptr || responder_.error() != CompletionStatus::kSuccess) return;
  endpoint->expire_probes();
  if (!reverse_probes_.has_room()) return;
  const std::optional<size_t> ev = evs_.drawn();
  if (!ev) return;
  if (const std::optional<uint16_t> id = endpoint->probe(*this, *ev)) reverse_probes_.on_sent(*id);
}

void MrcQueuePair::on_ev_probe_answer(uint16_t id, size_t ev, TimePs round_trip_ps) {
  if (reverse_probes_.take_answer(id, round_trip_ps)) return evs_.on_proof(ev);
  const auto found = probed_.find(ev);
  if (found != probed_.end() && found->second.id == id) found->second = {std::nullopt, round_trip_ps};
}

void MrcQueuePair::on_ev_probe_expired(uint16_t id, size_t ev) {
  if (reverse_probes_.forget(id)) return;
  const auto found = probed_.find(ev);
  if (found != probed_.end() && found->second.id == id) found->second.id.reset();
}

void MrcQueuePair::set_ev_event_mask(uint8_t mask) {
  mrc_config_.ev_event_mask = mask;
  evs_.observe(mask == 0 ? nullptr : this);
}

void MrcQueuePair::on_ev_state(size_t ev, mrc::EvState state) {
  const uint8_t bit = state == mrc::EvState::kGood ? mrc::kEventGood : mrc::kEventAssumedBad;
  const auto endpoint = endpoint_.lock();
  if ((mrc_config_.ev_event_mask & bit) == 0 || endpoint == nullptr) return;
  const size_t plane = evs_.plane_of(ev);
  endpoint->note({.profile_id = mrc_config_.ev_profile_id,
                  .queue_pair = config_.queue_pair,
                  .peer = path(plane).destination_ip,
                  .port = port_of(plane),
                  .value = evs_.value(ev),
                  .state = state});
}

void MrcQueuePair::give_up_probes() {
  const auto endpoint = endpoint_.lock();
  for (const auto& [ev, probed] : probed_) {
    if (probed.id && endpoint != nullptr) endpoint->give_up(*probed.id);
  }
  probed_.clear();
}

void MrcQueuePair::probe_evs(const std::vector<size_t>& evs) {
  for (const size_t ev : evs) require_ev(ev);
  const auto endpoint = endpoint_.lock();
  if (endpoint == nullptr) throw std::invalid_argument("the queue pair is not attached to a NIC");
  give_up_probes();
  for (const size_t ev : evs) {
    if (probed_.contains(ev)) continue;
    const std::optional<uint16_t> id = endpoint->probe(*this, ev);
    if (!id) {
      give_up_probes();
      throw std::invalid_argument("too many EV probes of the NIC are unanswered (valid: at most " +
                                  std::to_string(mrc::Endpoint::kMostProbes) + ")");
    }
    probed_[ev].id = id;
  }
}

std::map<size_t, std::optional<TimePs>> MrcQueuePair::probed_round_trips() const {
  std::map<size_t, std::optional<TimePs>> round_trips;
  for (const auto& [ev, probed] : probed_) round_trips[ev] = probed.round_trip_ps;
  return round_trips;
}

// A queue pair fails as a whole, as RC's (InfiniBand specification, section 10.3.1).
void MrcQueuePair::join_errors(TimePs now) {
  if (requester_.error() != CompletionStatus::kSuccess) responder_.flush(now);
  if (responder_.error() != CompletionStatus::kSuccess) requester_.flush(now);
}

}  // namespace weft
