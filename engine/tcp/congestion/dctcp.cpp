// DCTCP: the window falls by the share of bytes that switches have marked. Source: RFC 8257, sections 3.3
// to 3.5.
#include <memory>

#include "tcp/congestion/registry.hpp"

namespace weft::tcp {
namespace {

constexpr CongestionParameter kParameters[] = {
    {"g", 1.0 / 16, 1e-6, 1, "weight of the newest window in the share of marked bytes",
     "RFC 8257, section 4.2"},
    {"initial_alpha", 1, 0, 1, "share of marked bytes before the first window", "RFC 8257, section 3.3"},
};

class Dctcp final : public CongestionControl {
 public:
  Dctcp(double g, double initial_alpha) : g_(g), alpha_(initial_alpha) {}

  std::string_view name() const override { return "dctcp"; }
  bool needs_exact_echo() const override { return true; }
  double marked_share() const override { return alpha_; }

  // Section 3.3: alpha follows the share of marked bytes, once for each window of data.
  void observe(const WindowAcknowledgement& acknowledgement) override {
    acknowledged_bytes_ += acknowledgement.acknowledged_bytes;
    if (acknowledgement.ecn_echo) marked_bytes_ += acknowledgement.acknowledged_bytes;
    if (acknowledgement.acknowledged <= window_end_) return;
    const double share = static_cast<double>(marked_bytes_) / static_cast<double>(acknowledged_bytes_);
    alpha_ = alpha_ * (1 - g_) + g_ * share;
    acknowledged_bytes_ = marked_bytes_ = 0;
    window_end_ = acknowledgement.next;
  }

 protected:
  // Section 3.3 for marks; section 3.5: for losses as any other TCP.
  uint64_t reduced_bytes(TimePs, CongestionSign sign, uint64_t flight_bytes) override {
    if (sign == CongestionSign::kLoss) return flight_bytes / 2;
    return static_cast<uint64_t>(static_cast<double>(window_bytes()) * (1 - alpha_ / 2));
  }

 private:
  double g_;
  double alpha_;
  uint64_t acknowledged_bytes_ = 0;
  uint64_t marked_bytes_ = 0;
  uint64_t window_end_ = 0;
};

constexpr CongestionKind kDctcp = {
    .name = "dctcp",
    .summary = "the window falls by the share of bytes that switches have marked",
    .source = "RFC 8257",
    .parameters = kParameters,
    .make = [](ParameterReader& reader) -> std::unique_ptr<CongestionControl> {
      double g = 0;
      double initial_alpha = 0;
      reader.read("g", g);
      reader.read("initial_alpha", initial_alpha);
      return std::make_unique<Dctcp>(g, initial_alpha);
    },
};
const CongestionRegistration kRegistration(kDctcp);

}  // namespace
}  // namespace weft::tcp
