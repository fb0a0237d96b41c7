#include "hosts/flow_generator.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>

#include "hosts/mrc/mrc_endpoint.hpp"
#include "hosts/mrc/mrc_queue_pair.hpp"
#include "hosts/rc_queue_pair.hpp"
#include "hosts/uet/rudi_queue_pair.hpp"
#include "hosts/uet/uet_queue_pair.hpp"
#include "packets/psn.hpp"

namespace weft {
namespace {

constexpr uint64_t kMaxFlowBytes = 1ull << 31;

// Sequence numbers start apart, so that a packet of another flow is not mistaken for one of this.
uint32_t first_psn(uint32_t queue_pair, uint32_t remote_queue_pair) {
  constexpr uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;
  return static_cast<uint32_t>((uint64_t{queue_pair} << 24 | remote_queue_pair) * kGoldenRatio >> 40) &
         kPsnMask;
}

// From a flow's last byte on, for as long as its sender may send again before it gives up.
TimePs linger_ps(const RcConfig& config) {
  TimePs total = 0;
  for (uint32_t retry = 0; retry <= config.retry_limit; ++retry) {
    total += config.retransmission_timeout_ps << std::min(retry, config.timeout_backoff_limit);
  }
  return total;
}

// Whether receivers learn that a flow is there: packets of RUDI may come twice, which no immediate may.
bool tells_receivers(const FlowPort& port) { return !port.uet || has_pdcs(port.uet->service); }

// Null for a queue pair of another transport, and for none.
const UetCounters* uet_counters_of(const WritingQueuePair* queue_pair) {
  if (const auto* uet = dynamic_cast<const UetQueuePair*>(queue_pair)) return &uet->uet_counters();
  if (const auto* rudi = dynamic_cast<const RudiQueuePair*>(queue_pair)) return &rudi->uet_counters();
  return nullptr;
}

}  // namespace

FlowGenerator::FlowGenerator(Nic& nic, ScheduleExecutor& executor)
    : nic_(nic),
      engine_(nic.engine()),
      executor_(executor),
      timer_(engine_.events(), member_action<&FlowGenerator::on_timer>(this)) {}

FlowGenerator::~FlowGenerator() = default;

uint32_t FlowGenerator::add_port(FlowPort port) {
  if (port.uet && port.uet->service == UetService::kUud)
    throw std::invalid_argument("flows over service uud may be lost (valid: rud, rod, rudi)");
  port.config.source_mac = nic_.port_config(port.port).mac;
  ports_.push_back(std::move(port));
  return static_cast<uint32_t>(ports_.size() - 1);
}

void FlowGenerator::add_peer(const roce::IpAddress& first, std::vector<roce::IpAddress> more) {
  peers_.insert_or_assign(first, std::move(more));
}

void FlowGenerator::add(Flows& flows, const FlowEnd& end) {
  const std::string name = "flow " + std::to_string(end.flow);
  if (end.place >= ports_.size()) {
    throw std::invalid_argument(name + ": port " + std::to_string(end.place) + " (valid: below " +
                                std::to_string(ports_.size()) + ")");
  }
  if (end.size_bytes == 0 || end.size_bytes > kMaxFlowBytes) {
    throw std::invalid_argument(name + " of " + std::to_string(end.size_bytes) + " bytes (valid: 1 to " +
                                std::to_string(kMaxFlowBytes) + ")");
  }
  if (end.start_ps < 0) {
    throw std::invalid_argument(name + " starts at " + std::to_string(end.start_ps) +
                                " ps (valid: 0 or later)");
  }
  nic_.own_address(ports_[end.place].port, end.peer_ip);
  if (const auto& mrc = ports_[end.place].mrc; mrc && mrc->routes) mrc->routes->to(end.peer_ip);
  flows.items.push_back({end, nullptr});
}

void FlowGenerator::start(TimePs start_ps, uint32_t run) {
  if (started_) throw std::logic_error("the flows have been started already");
  started_ = true;
  run_ = run;
  start_ps_ = std::max(start_ps, engine_.now());
  const auto earlier = [](const Flow& one, const Flow& other) {
    return std::pair(one.end.start_ps, one.end.flow) < std::pair(other.end.start_ps, other.end.flow);
  };
  std::sort(sent_.items.begin(), sent_.items.end(), earlier);
  std::sort(received_.items.begin(), received_.items.end(), earlier);
  for (uint32_t index = 0; index < received_.items.size(); ++index) {
    received_by_number_.emplace_back(received_.items[index].end.queue_pair, index);
  }
  std::sort(received_by_number_.begin(), received_by_number_.end());
  for (uint32_t index = 0; index < sent_.items.size(); ++index) {
    sent_by_flow_.emplace_back(sent_.items[index].end.flow, index);
  }
  std::sort(sent_by_flow_.begin(), sent_by_flow_.end());
  records_.reserve(sent_.items.size());
  const auto is_awaited = [this](const Flow& flow) { return tells_receivers(ports_[flow.end.place]); };
  status_.node_count = static_cast<uint32_t>(sent_.items.size()) +
                       static_cast<uint32_t>(std::ranges::count_if(received_.items, is_awaited));
  timer_.arm(start_ps_);
}

void FlowGenerator::begin() {
  status_.state = RunState::kRunning;
  status_.started_ps = engine_.now();
  if (status_.node_count == 0) end(RunState::kFinished, "");
}

void FlowGenerator::on_timer() {
  if (status_.state == RunState::kWaiting) begin();
  const TimePs now = engine_.now();
  close_finished();
  // Receivers first, so that they are there whatever the link's delay.
  for (; received_.next < received_.items.size(); ++received_.next) {
    Flow& flow = received_.items[received_.next];
    if (start_ps_ + flow.end.start_ps > now) break;
    open(flow);
  }
  for (; sent_.next < sent_.items.size() && status_.state == RunState::kRunning; ++sent_.next) {
    Flow& flow = sent_.items[sent_.next];
    if (start_ps_ + flow.end.start_ps > now) break;
    open(flow);
    post(flow);
  }
  arm();
}

void FlowGenerator::post(Flow& flow) {
  const FlowEnd& end = flow.end;
  const FlowPort& port = ports_[end.place];
  const uint64_t work_id = uint64_t{run_} << 32 | end.flow;
  const std::optional<uint32_t> immediate = tells_receivers(port) ? std::optional(end.flow) : std::nullopt;
  if (port.as_lengths) {
    flow.queue_pair->post_write_as_length(engine_.now(), end.size_bytes, end.remote_address, end.rkey,
                                          immediate, work_id);
  } else {
    flow.queue_pair->post_write(engine_.now(), nullptr, end.size_bytes, end.remote_address, end.rkey,
                                immediate, work_id);
  }
}

void FlowGenerator::close_finished() {
  for (const uint32_t index : acknowledged_) close(sent_.items[index]);
  acknowledged_.clear();
  for (; !farewells_.empty() && farewells_.front().due_ps <= engine_.now(); farewells_.pop_front()) {
    close(received_.items[farewells_.front().index]);
  }
  for (; !sent_farewells_.empty() && sent_farewells_.front().due_ps <= engine_.now();
       sent_farewells_.pop_front()) {
    close(sent_.items[sent_farewells_.front().index]);
  }
}

void FlowGenerator::arm() {
  TimePs next = farewells_.empty() ? kNever : farewells_.front().due_ps;
  if (!sent_farewells_.empty()) next = std::min(next, sent_farewells_.front().due_ps);
  for (const Flows* flows : {&sent_, &received_}) {
    // A host that is told of no flow has finished before it has opened all that it receives.
    const bool goes_on =
        status_.state == RunState::kRunning || (status_.state == RunState::kFinished && flows == &received_);
    if (goes_on && flows->next < flows->items.size())
      next = std::min(next, start_ps_ + flows->items[flows->next].end.start_ps);
  }
  if (next != kNever) timer_.arm(next);
}

void FlowGenerator::open(Flow& flow) {
  const FlowPort& port = ports_[flow.end.place];
  RcConfig config = port.config;
  config.queue_pair = flow.end.queue_pair;
  config.remote_queue_pair = flow.end.remote_queue_pair;
  config.initial_psn = first_psn(flow.end.queue_pair, flow.end.remote_queue_pair);
  config.remote_initial_psn = first_psn(flow.end.remote_queue_pair, flow.end.queue_pair);
  config.destination_ip = flow.end.peer_ip;
  config.source_ip = nic_.own_address(port.port, flow.end.peer_ip);
  config.line_rate_bps = nic_.line_rate_bps(port.port);
  config.source_udp_port = entropy_udp_port(nic_.entropy_seed(), config.source_ip, config.destination_ip,
                                            config.queue_pair, config.remote_queue_pair);
  flow.queue_pair = make_queue_pair(port, config);
  if (const ObservedFlow& observed = flow.end.observed; observed.message || observed.telemetry) {
    flow.queue_pair->observe(engine_.probe(), observed.ends, observed.message, observed.telemetry);
  }
  if (port.mrc) {
    auto& mrc = static_cast<MrcQueuePair&>(*flow.queue_pair);
    std::vector<int> ports{port.port};
    for (size_t plane = 1; plane < mrc.planes(); ++plane) ports.push_back(port.more_planes[plane - 1].first);
    mrc::Endpoint::of(nic_).attach(mrc, ports, config.queue_pair);
  } else {
    nic_.attach(*flow.queue_pair, port.port, config.queue_pair);
  }
}

// Those that both ends have.
void FlowGenerator::add_planes(MrcConfig& mrc, const FlowPort& port, const RcConfig& config) const {
  const auto peer = peers_.find(config.destination_ip);
  if (peer == peers_.end()) return;
  const size_t planes = std::min(port.more_planes.size(), peer->second.size());
  for (size_t plane = 0; plane < planes; ++plane) {
    const auto& [number, mac] = port.more_planes[plane];
    const roce::IpAddress& peer_ip = peer->second[plane];
    mrc.more_paths.push_back({nic_.port_config(number).mac, mac, nic_.own_address(number, peer_ip), peer_ip});
  }
}

std::unique_ptr<WritingQueuePair> FlowGenerator::make_mrc_queue_pair(const FlowPort& port, RcConfig config) {
  MrcConfig mrc = *port.mrc;
  mrc.ev_seed = mrc_seed(nic_.entropy_seed(), config.queue_pair, config.remote_queue_pair);
  add_planes(mrc, port, config);
  for (size_t plane = 0; plane < mrc.more_paths.size(); ++plane)
    config.line_rate_bps += nic_.line_rate_bps(port.more_planes[plane].first);
  const auto frame_bytes = static_cast<uint32_t>(mrc::full_frame_bytes(config, mrc.encapsulates()));
  return std::make_unique<MrcQueuePair>(config, mrc, engine_.packets(), nic_.memory(),
                                        port.make_congestion_control(frame_bytes), this);
}

std::unique_ptr<WritingQueuePair> FlowGenerator::make_queue_pair(const FlowPort& port,
                                                                 const RcConfig& config) {
  if (port.mrc) return make_mrc_queue_pair(port, config);
  if (port.uet) {
    const auto frame_bytes = static_cast<uint32_t>(uet::full_frame_bytes(config, *port.uet));
    auto congestion_control = port.make_congestion_control(frame_bytes);
    auto path_choice =
        port.make_path_choice ? port.make_path_choice(config.queue_pair, frame_bytes) : nullptr;
    if (port.uet->service == UetService::kRudi) {
      return std::make_unique<RudiQueuePair>(config, *port.uet, engine_.packets(), nic_.memory(), nic_.pdcs(),
                                             std::move(congestion_control), std::move(path_choice), this);
    }
    return std::make_unique<UetQueuePair>(config, *port.uet, engine_.packets(), nic_.memory(), nic_.pdcs(),
                                          port.uet->receiver_credits ? nic_.credit_pacer(port.port) : nullptr,
                                          std::move(congestion_control), std::move(path_choice), this);
  }
  const auto frame_bytes = static_cast<uint32_t>(full_frame_bytes(config));
  return std::make_unique<RcQueuePair>(
      config, engine_.packets(), nic_.memory(), port.make_congestion_control(frame_bytes),
      port.make_path_choice ? port.make_path_choice(config.queue_pair, frame_bytes) : nullptr, this);
}

void FlowGenerator::close(Flow& flow) {
  if (flow.queue_pair == nullptr) return;
  closed_ += flow.queue_pair->counters();
  if (const auto* mrc = dynamic_cast<const MrcQueuePair*>(flow.queue_pair.get()))
    mrc_closed_ += mrc->mrc_counters();
  add_ev_states(flow, closed_evs_);
  if (const UetCounters* uet = uet_counters_of(flow.queue_pair.get())) uet_closed_ += *uet;
  flow.queue_pair.reset();
}

RcCounters FlowGenerator::counters() const {
  RcCounters sums = closed_;
  for (const Flows* flows : {&sent_, &received_}) {
    for (const Flow& flow : flows->items) {
      if (flow.queue_pair != nullptr) sums += flow.queue_pair->counters();
    }
  }
  return sums;
}

void FlowGenerator::set_ev_denied(uint32_t place, const roce::IpAddress& peer, uint32_t value, bool denied) {
  if (place >= ports_.size() || !ports_[place].mrc || ports_[place].mrc->routes == nullptr)
    throw std::invalid_argument("port " + std::to_string(place) + " has no EVs that name paths");
  ports_[place].mrc->routes->set_denied(peer, value, denied);
  for (const Flows* flows : {&sent_, &received_}) {
    for (const Flow& flow : flows->items) {
      if (flow.end.place != place) continue;
      auto* mrc = dynamic_cast<MrcQueuePair*>(flow.queue_pair.get());
      if (mrc != nullptr && mrc->leads_to(peer)) mrc->set_denied(value, denied);
    }
  }
}

std::vector<MrcQueuePair*> FlowGenerator::mrc_queue_pairs() const {
  std::vector<MrcQueuePair*> found;
  for (const Flows* flows : {&sent_, &received_}) {
    for (const Flow& flow : flows->items) {
      if (auto* mrc = dynamic_cast<MrcQueuePair*>(flow.queue_pair.get())) found.push_back(mrc);
    }
  }
  return found;
}

MrcQueuePair* FlowGenerator::mrc_queue_pair(uint32_t number) const {
  return dynamic_cast<MrcQueuePair*>(nic_.find(number));
}

void FlowGenerator::set_ev_event_mask(uint64_t profile_id, uint8_t mask) {
  for (FlowPort& port : ports_) {
    if (port.mrc && port.mrc->ev_profile_id == profile_id) port.mrc->ev_event_mask = mask;
  }
  for (MrcQueuePair* queue_pair : mrc_queue_pairs()) {
    if (queue_pair->mrc_config().ev_profile_id == profile_id) queue_pair->set_ev_event_mask(mask);
  }
}

MrcCounters FlowGenerator::mrc_counters() const {
  MrcCounters sums = mrc_closed_;
  for (const MrcQueuePair* mrc : mrc_queue_pairs()) sums += mrc->mrc_counters();
  return sums;
}

void FlowGenerator::add_ev_states(const Flow& flow, std::vector<mrc::EvStateCounts>& by_port) const {
  const auto* mrc = dynamic_cast<const MrcQueuePair*>(flow.queue_pair.get());
  if (mrc == nullptr) return;
  const std::vector<mrc::EvStateCounts> states = mrc->evs().states();
  by_port.resize(nic_.port_count());
  for (size_t plane = 0; plane < states.size(); ++plane) {
    mrc::EvStateCounts& own = by_port[static_cast<size_t>(mrc->port_of(plane))];
    std::ranges::transform(own, states[plane], own.begin(), std::plus());
  }
}

std::vector<mrc::EvStateCounts> FlowGenerator::ev_states() const {
  std::vector<mrc::EvStateCounts> sums = closed_evs_;
  for (const Flows* flows : {&sent_, &received_}) {
    for (const Flow& flow : flows->items) add_ev_states(flow, sums);
  }
  return sums;
}

UetCounters FlowGenerator::uet_counters() const {
  UetCounters sums = uet_closed_;
  for (const Flows* flows : {&sent_, &received_}) {
    for (const Flow& flow : flows->items) {
      if (const UetCounters* uet = uet_counters_of(flow.queue_pair.get())) sums += *uet;
    }
  }
  return sums;
}

void FlowGenerator::reset_counters() {
  closed_ = RcCounters();
  mrc_closed_ = MrcCounters();
  closed_evs_.clear();
  uet_closed_ = UetCounters();
  for (Flows* flows : {&sent_, &received_}) {
    for (Flow& flow : flows->items) {
      if (flow.queue_pair != nullptr) flow.queue_pair->reset_counters();
    }
  }
}

void FlowGenerator::on_completion(const Completion& completion) {
  if (status_.state != RunState::kRunning) return;
  if (completion.kind == CompletionKind::kWrite) {
    sent(completion);
  } else if (completion.kind == CompletionKind::kWriteImmediate) {
    received(completion);
  }
}

void FlowGenerator::sent(const Completion& completion) {
  const auto number = static_cast<uint32_t>(completion.work_id);
  const auto found =
      std::lower_bound(sent_by_flow_.begin(), sent_by_flow_.end(), std::pair(number, uint32_t{0}));
  Flow& flow = sent_.items[found->second];
  if (completion.status != CompletionStatus::kSuccess) {
    return end(RunState::kFailed, "flow " + std::to_string(flow.end.flow) + ": " +
                                      completion_status_name(completion.status) +
                                      " (fault: " + fault_name(completion_fault(completion.status)) + ")");
  }
  records_.push_back(
      {flow.end.flow, start_ps_ + flow.end.start_ps, engine_.now(), completion.retransmitted_packets});
  const FlowPort& port = ports_[flow.end.place];
  if (port.mrc || port.uet) {
    // SACKs of packets before the last may come later, by other paths; and PDCs are closed first.
    const TimePs closing_ps = port.uet && has_pdcs(port.uet->service) ? port.uet->pdc_idle_ps : 0;
    sent_farewells_.push_back(
        {engine_.now() + closing_ps + port.config.retransmission_timeout_ps, found->second});
    if (!timer_.armed()) arm();
  } else {
    // Its queue pair is still at work on this completion.
    acknowledged_.push_back(found->second);
    timer_.arm(engine_.now());
  }
  flow_done();
}

void FlowGenerator::received(const Completion& completion) {
  auto found = std::lower_bound(received_by_number_.begin(), received_by_number_.end(),
                                std::pair(completion.queue_pair, 0u));
  // A flow that is over may have had the number before.
  while (found != received_by_number_.end() && received_.items[found->second].queue_pair == nullptr) ++found;
  if (found == received_by_number_.end() || found->first != completion.queue_pair) return;
  const Flow& flow = received_.items[found->second];
  // Its sender's queue pair goes with the last acknowledgement.
  flow.queue_pair->forget_marks();
  farewells_.push_back({engine_.now() + linger_ps(ports_[flow.end.place].config), found->second});
  if (!timer_.armed()) arm();
  flow_done();
}

void FlowGenerator::flow_done() {
  if (++status_.nodes_done == status_.node_count) end(RunState::kFinished, "");
}

void FlowGenerator::cancel() {
  if (status_.state == RunState::kWaiting || status_.state == RunState::kRunning) {
    end(RunState::kCancelled, "");
  }
  timer_.cancel();
  farewells_.clear();
  sent_farewells_.clear();
  destroy_queue_pairs();
}

void FlowGenerator::destroy_queue_pairs() {
  for (Flows* flows : {&sent_, &received_}) {
    for (Flow& flow : flows->items) close(flow);
  }
}

void FlowGenerator::end(RunState state, const std::string& reason) {
  status_.state = state;
  status_.finished_ps = engine_.now();
  status_.error = reason;
  executor_.report_end(0);
}

}  // namespace weft
