#include "hosts/applications/tcp_flows.hpp"

#include <algorithm>
#include <utility>

#include "hosts/tcp/pattern_bytes.hpp"
#include "tcp/congestion/registry.hpp"

namespace weft {
namespace {

// What waits at the NIC for its turn is kept short, as Linux's TCP does (tcp_limit_output_bytes): what is not
// there yet is sent when there is room.
constexpr size_t kMostWaitingPackets = 16;
constexpr TimePs kLeastRetryPs = kPsPerUs;
constexpr TimePs kMostRetryPs = 1000 * kPsPerUs;
constexpr uint64_t kAheadSegments = 64;  // of a flow without a size, written and not sent
constexpr size_t kMostSamples = 1'000'000;

}  // namespace

// One end of a flow with its connection and timer.
class TcpFlows::End final : public TcpReceiver, tcp::DataSink {
 public:
  End(TcpFlows& owner, TcpFlowConfig config, bool sends)
      : config_(std::move(config)),
        owner_(owner),
        sends_(sends),
        connection_(connection_config(),
                    tcp::make_congestion_control(config_.congestion_control, config_.parameters)),
        timer_(owner.engine().events(), member_action<&End::on_time>(this)),
        random_(random("tcp sending ")) {}
  ~End() override { detach(); }

  const TcpFlowConfig& config() const { return config_; }
  bool sends() const { return sends_; }
  bool is_over() const { return finished_ps_ != 0; }
  const tcp::Connection& connection() const { return connection_; }

  // Of a sender, at the flow's start.
  void connect_at(TimePs time) {
    started_ps_ = time;
    timer_.arm(time);
  }
  // Of a receiver.
  bool takes(const IpAddress& peer, const tcp::Segment& syn) const {
    if (sends_ || is_attached_ || config_.port != syn.destination_port) return false;
    const bool from_anywhere = config_.peer == IpAddress{};
    return (from_anywhere || config_.peer == peer) &&
           (config_.source_port == 0 || config_.source_port == syn.source_port);
  }
  void take(const IpAddress& peer, const tcp::Segment& syn, TimePs now) {
    config_.peer = peer;
    config_.source_port = syn.source_port;
    started_ps_ = now;
    attach();
    connection_.listen();
  }
  void detach() {
    timer_.cancel();
    if (!is_attached_) return;
    is_attached_ = false;
    owner_.protocol_.remove(config_.peer, peer_port(), own_port());
  }

  void on_segment(TimePs now, const tcp::Segment& segment, std::span<const uint8_t> payload) override {
    payload_ = payload;
    connection_.on_segment(now, segment, *this);
    if (!sends_ || config_.send_jitter_ps == 0) return pump(now);
    // What further acknowledgements allow until then leaves with it, in order.
    if (held_until_ps_ == kNever) {
      const auto bound = static_cast<uint64_t>(config_.send_jitter_ps) + 1;
      held_until_ps_ = now + static_cast<TimePs>(random_.below(bound));
    }
    settle(now, false);
  }
  void on_bytes(uint64_t stream_offset, uint32_t payload_begin, uint32_t length) override {
    if (!PatternBytes::matches(stream_offset, payload_.subspan(payload_begin, length))) ++spoilt_segments_;
  }

  TcpFlowRecord record() const {
    return {.flow = config_.flow,
            .sends = sends_,
            .started_ps = started_ps_,
            .finished_ps = finished_ps_,
            .bytes = sends_ ? connection_.acknowledged_offset() : connection_.received_offset(),
            .spoilt_segments = spoilt_segments_,
            .smoothed_round_trip_ps = connection_.sender().timeout().smoothed_round_trip_ps(),
            .sender = connection_.sender().counters(),
            .receiver = connection_.receiver().counters()};
  }
  TimePs next_sample_ps = 0;

 private:
  uint16_t own_port() const { return sends_ ? config_.source_port : config_.port; }
  uint16_t peer_port() const { return sends_ ? config_.port : config_.source_port; }

  tcp::ConnectionConfig connection_config() const {
    tcp::ConnectionConfig made = config_.connection;
    made.source_port = own_port();
    made.destination_port = peer_port();
    made.initial_sequence = static_cast<uint32_t>(random("tcp ").next_u64());
    return made;
  }
  Rng random(const std::string& what) const {
    return owner_.engine().stream(what + owner_.stack().name() + " " + std::to_string(config_.flow));
  }

  void attach() {
    owner_.protocol_.add(config_.peer, peer_port(), own_port(), *this);
    is_attached_ = true;
  }

  void on_time() {
    const TimePs now = owner_.engine().now();
    if (sends_ && !is_attached_ && !is_over()) {
      attach();
      connection_.connect();
      if (config_.size_bytes > 0) {
        connection_.send(config_.size_bytes);
        connection_.close();
      }
    } else if (connection_.next_deadline() <= now) {
      connection_.on_timer(now);
    }
    pump(now);
  }

  // Whoever has no size writes ahead of what is sent, until its time is over.
  void write_ahead(TimePs now) {
    if (!sends_ || config_.size_bytes > 0 || connection_.sender().finished()) return;
    if (now >= started_ps_ + config_.duration_ps) return connection_.close();
    const uint64_t ahead = kAheadSegments * connection_.segment_bytes();
    const uint64_t unsent =
        connection_.sender().data_end() - std::max<uint64_t>(connection_.sender().next(), 1);
    if (unsent < ahead / 2) connection_.send(ahead - unsent);
  }

  void pump(TimePs now) {
    if (!is_attached_) return;
    held_until_ps_ = kNever;
    write_ahead(now);
    connection_.consume(connection_.readable_bytes());
    if (!sends_ && connection_.peer_finished()) connection_.close();
    bool waits = false;
    for (;;) {
      waits = owner_.stack().waiting_packets(config_.peer, config_.dscp) >= kMostWaitingPackets;
      if (waits) break;
      const std::optional<tcp::Segment> segment = connection_.take_segment(now);
      if (!segment) break;
      owner_.protocol_.send(config_.peer, config_.dscp, *segment,
                            PatternBytes::at(segment->payload_offset, segment->payload_bytes));
    }
    if (sends_) owner_.sample(now, *this);
    settle(now, waits);
  }

  void settle(TimePs now, bool waits) {
    const bool fails = connection_.end() != tcp::End::kNone && connection_.end() != tcp::End::kClosed;
    const bool over = sends_ ? connection_.sender().finished() && connection_.sender().all_acknowledged()
                             : connection_.peer_finished();
    if (!is_over() && (fails || over)) {
      finished_ps_ = now;
      owner_.ended(*this);
    }
    TimePs due = std::min(connection_.next_deadline(), held_until_ps_);
    if (waits) due = std::min(due, now + retry_ps());
    if (sends_ && config_.size_bytes == 0 && !connection_.sender().finished())
      due = std::min(due, started_ps_ + config_.duration_ps);
    if (due == kNever) {
      timer_.cancel();
    } else if (timer_.deadline() != due) {
      timer_.arm(due);
    }
  }

  TimePs retry_ps() const {
    return std::clamp(connection_.sender().timeout().smoothed_round_trip_ps() / 16, kLeastRetryPs,
                      kMostRetryPs);
  }

  TcpFlowConfig config_;
  TcpFlows& owner_;
  const bool sends_;
  tcp::Connection connection_;
  Timer timer_;
  Rng random_;
  TimePs held_until_ps_ = kNever;
  std::span<const uint8_t> payload_;
  TimePs started_ps_ = 0;
  TimePs finished_ps_ = 0;
  uint64_t spoilt_segments_ = 0;
  bool is_attached_ = false;
};

TcpFlows::TcpFlows(IpStack& stack, ScheduleExecutor& executor, TcpProtocol& protocol,
                   std::vector<TcpFlowConfig> outgoing, std::vector<TcpFlowConfig> incoming,
                   TimePs sample_interval_ps)
    : Application(stack, executor), protocol_(protocol), sample_interval_ps_(sample_interval_ps) {
  for (TcpFlowConfig& flow : outgoing) ends_.push_back(std::make_unique<End>(*this, std::move(flow), true));
  for (TcpFlowConfig& flow : incoming) {
    ends_.push_back(std::make_unique<End>(*this, std::move(flow), false));
    try {
      protocol_.listen(ends_.back()->config().port, *this);
    } catch (...) {
      ends_.pop_back();
      release();
      throw;
    }
  }
  progress().node_count = static_cast<uint32_t>(ends_.size());
}

TcpFlows::~TcpFlows() { close(); }

void TcpFlows::begin(TimePs now) {
  for (const auto& end : ends_)
    if (end->sends()) end->connect_at(now + end->config().start_ps);
  if (ends_.empty()) finish();
}

void TcpFlows::on_timer(TimePs /*now*/) {}

void TcpFlows::release() {
  for (const auto& end : ends_) {
    end->detach();
    if (!end->sends()) protocol_.stop_listening(end->config().port);
  }
}

TcpReceiver* TcpFlows::accept(const IpPacket& packet, const tcp::Segment& syn) {
  for (const auto& end : ends_) {
    if (!end->takes(packet.source, syn)) continue;
    end->take(packet.source, syn, now());
    return end.get();
  }
  return nullptr;
}

void TcpFlows::ended(const End& end) {
  ++progress().nodes_done;
  const tcp::End how = end.connection().end();
  if (how != tcp::End::kNone && how != tcp::End::kClosed) {
    fail("TCP flow " + std::to_string(end.config().flow) + ": connection " + std::string(tcp::end_name(how)));
  } else if (progress().nodes_done == progress().node_count) {
    finish();
  }
}

void TcpFlows::sample(TimePs now, End& end) {
  if (sample_interval_ps_ == 0 || now < end.next_sample_ps || samples_.size() >= kMostSamples) return;
  end.next_sample_ps = now + sample_interval_ps_;
  const tcp::Sender& sender = end.connection().sender();
  samples_.push_back({.flow = end.config().flow,
                      .time_ps = now,
                      .window_bytes = sender.window_bytes(),
                      .in_flight_bytes = sender.in_flight_bytes(),
                      .smoothed_round_trip_ps = sender.timeout().smoothed_round_trip_ps(),
                      .marked_share = sender.congestion_control().marked_share()});
}

std::vector<TcpFlowRecord> TcpFlows::records() const {
  std::vector<TcpFlowRecord> made;
  for (const auto& end : ends_) made.push_back(end->record());
  return made;
}

}  // namespace weft
