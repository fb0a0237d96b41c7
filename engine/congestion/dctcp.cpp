// DCTCP: the window shrinks in proportion to the share of packets that switches marked.
// Source: Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, section 3.1; RFC 8257, section 3.3, whose
// window grows as in RFC 5681, section 3.1 (slow start, congestion avoidance).
#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "congestion/registry.hpp"
#include "congestion/window_defaults.hpp"

namespace weft {
namespace {

constexpr double kMaxPackets = 1e9;

constexpr CongestionParameter kParameters[] = {
    {"gain", 1.0 / 16, 0, 1, "g: weight of the newest window's marks in alpha",
     "DCTCP, SIGCOMM 2010, equation 1; RFC 8257, section 4.2"},
    {"initial_alpha", 1.0, 0, 1, "alpha of a new connection", "RFC 8257, section 3.3"},
    {"additive_increase_packets", "1 for each 100 Gb/s of the port, at least 1", 0, kMaxPackets,
     "growth of the window in a round trip", "1 in RFC 5681, section 3.1; more at higher rates as in Swift"},
    {"initial_window_packets", "10, at most the path's bandwidth-delay product, at least 1", 1, kMaxPackets,
     "window of a new connection", "RFC 6928"},
    {"max_window_packets", "twice the bandwidth-delay product", 1, kMaxPackets, "largest window", "Weft"},
};

struct DctcpParameters {
  uint32_t frame_bytes = 0;
  double gain = 0;
  double initial_alpha = 0;
  double additive_increase_packets = 0;
  double initial_window_packets = 0;
  double max_window_packets = 0;

  // Throws std::invalid_argument for a value out of range.
  static DctcpParameters read(const PathProperties& path, ParameterReader& reader);
};

class Dctcp final : public CongestionControl {
 public:
  explicit Dctcp(const DctcpParameters& parameters)
      : parameters_(parameters), alpha_(parameters.initial_alpha) {
    set_window(parameters.initial_window_packets);
  }

  std::string_view name() const override;
  uint64_t window_bytes() const override { return window_bytes_; }
  uint64_t pacing_rate_bps() const override { return 0; }

  void on_acknowledgement(const AcknowledgementEvent& event) override;
  void on_loss(TimePs now, bool timeout) override;

 private:
  void end_window(uint64_t next_sequence);
  void grow(double acknowledged_packets);
  void set_window(double packets);

  DctcpParameters parameters_;
  double alpha_;
  double window_packets_ = 0;
  double threshold_packets_ = kMaxPackets;  // below it the window doubles each round trip (ssthresh)
  uint64_t window_bytes_ = 0;
  uint64_t acknowledged_bytes_ = 0;  // of this window of data
  uint64_t marked_bytes_ = 0;
  uint64_t window_end_ = 0;       // the first packet after it
  uint64_t recovery_end_ = 0;     // packets before it were sent when the newest loss was known
  uint64_t newest_sequence_ = 0;  // acknowledged
  uint64_t next_sequence_ = 0;
};

DctcpParameters DctcpParameters::read(const PathProperties& path, ParameterReader& reader) {
  DctcpParameters parameters;
  parameters.frame_bytes = path.frame_bytes;
  if (parameters.frame_bytes == 0) throw std::invalid_argument("dctcp needs the path's frame size");
  const double product_packets = bandwidth_delay_product_packets(path);
  parameters.additive_increase_packets = window_growth_packets(path);
  parameters.initial_window_packets = std::min(kInitialWindowPackets, product_packets);
  parameters.max_window_packets = 2 * product_packets;
  reader.read("gain", parameters.gain);
  reader.read("initial_alpha", parameters.initial_alpha);
  reader.read("additive_increase_packets", parameters.additive_increase_packets);
  reader.read("initial_window_packets", parameters.initial_window_packets);
  reader.read("max_window_packets", parameters.max_window_packets);
  return parameters;
}

void Dctcp::on_acknowledgement(const AcknowledgementEvent& event) {
  newest_sequence_ = event.sequence;
  next_sequence_ = event.next_sequence;
  acknowledged_bytes_ += event.acknowledged_bytes;
  if (event.congestion_experienced) marked_bytes_ += event.acknowledged_bytes;
  // RFC 8257, section 3.4: a marked packet ends slow start as a loss does.
  if (!event.congestion_experienced) grow(static_cast<double>(event.acknowledged_packets));
  if (event.sequence >= window_end_) end_window(event.next_sequence);
}

// RFC 8257, section 3.3: once a window of data, alpha follows the share of marked bytes, and the window falls
// by half of alpha if there were any.
void Dctcp::end_window(uint64_t next_sequence) {
  const double share = acknowledged_bytes_ == 0
                           ? 0
                           : static_cast<double>(marked_bytes_) / static_cast<double>(acknowledged_bytes_);
  alpha_ += parameters_.gain * (share - alpha_);
  if (marked_bytes_ > 0) {
    set_window(window_packets_ * (1 - alpha_ / 2));
    threshold_packets_ = window_packets_;
  }
  acknowledged_bytes_ = marked_bytes_ = 0;
  window_end_ = next_sequence;
}

void Dctcp::grow(double acknowledged_packets) {
  const bool slow_start = window_packets_ < threshold_packets_;
  set_window(window_packets_ +
             (slow_start ? acknowledged_packets
                         : parameters_.additive_increase_packets * acknowledged_packets / window_packets_));
}

// RFC 5681, sections 3.1 and 3.2: half the window, once for the losses of one window of data; a timeout
// leaves one packet.
void Dctcp::on_loss(TimePs /*now*/, bool timeout) {
  if (!timeout && newest_sequence_ < recovery_end_) return;
  recovery_end_ = next_sequence_;
  threshold_packets_ = std::max(2.0, window_packets_ / 2);
  set_window(timeout ? 1 : threshold_packets_);
}

void Dctcp::set_window(double packets) {
  window_packets_ = std::clamp(packets, 1.0, std::max(1.0, parameters_.max_window_packets));
  window_bytes_ = static_cast<uint64_t>(window_packets_ * parameters_.frame_bytes);
}

constexpr CongestionControlKind kDctcp = {
    .name = "dctcp",
    .summary = "the window shrinks by the share of packets that switches marked",
    .source = "Alizadeh et al., SIGCOMM 2010; RFC 8257",
    .needs = {.marks = true},
    .parameters = kParameters,
    .presets = {},
    .make = &make_from_parameters<Dctcp, DctcpParameters>,
};
const CongestionRegistration kRegistration(kDctcp);

std::string_view Dctcp::name() const { return kDctcp.name; }

}  // namespace
}  // namespace weft
