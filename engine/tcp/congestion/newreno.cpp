// NewReno: half the flight at a loss, a segment more in each round trip. Source: RFC 5681, section 3.1; its
// fast recovery (RFC 6582) is the sender's, as it decides what is sent again.
#include "tcp/congestion/registry.hpp"

namespace weft::tcp {
namespace {

class NewReno final : public CongestionControl {
 public:
  std::string_view name() const override { return "newreno"; }

 protected:
  // Equation 4. For marks as for losses (RFC 3168, section 6.1.2).
  uint64_t reduced_bytes(TimePs, CongestionSign, uint64_t flight_bytes) override { return flight_bytes / 2; }
};

constexpr CongestionKind kNewReno = {
    .name = "newreno",
    .summary = "half the flight at a loss, a segment more in each round trip",
    .source = "RFC 5681, RFC 6582",
    .parameters = {},
    .make = [](ParameterReader&) -> std::unique_ptr<CongestionControl> {
      return std::make_unique<NewReno>();
    },
};
const CongestionRegistration kRegistration(kNewReno);

}  // namespace
}  // namespace weft::tcp
