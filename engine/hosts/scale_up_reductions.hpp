// Reductions in the switch between the ranks of a host.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "hosts/scale_up_message.hpp"
#include "time/time.hpp"

namespace weft {

// The result that was made last. All ranks' results of an all-reduce are made at the same moment of the same
// terms, so it is computed once.
class ScaleUpResult {
 public:
  // Reduces the data of terms, in this order.
  std::shared_ptr<const uint8_t[]> of(TimePs now, const std::vector<ScaleUpInFlight>& terms);

 private:
  TimePs made_ps_ = kNever;
  std::vector<const uint8_t*> sources_;
  uint64_t length_bytes_ = 0;
  SwitchedWrite reduction_;
  std::shared_ptr<const uint8_t[]> result_;
};

// Terms that wait in the switch on their way to one port. A group is the ranks of a collective; each has
// numbers of reductions of its own.
class ScaleUpReductions {
 public:
  // Takes a term; with the last one returns the result as one message, due with the last term's first bit.
  // Throws std::invalid_argument for a term that does not go with those before it.
  std::optional<ScaleUpInFlight> add(TimePs now, uint32_t group, ScaleUpInFlight term, ScaleUpResult& last);
  // Forgets the reductions with a term over a channel, one end of which closes; returns their terms.
  std::vector<ScaleUpMessage> forget(uint32_t port, uint32_t channel);

 private:
  std::map<std::pair<uint32_t, uint32_t>, std::vector<ScaleUpInFlight>> waiting_;  // by source
};

}  // namespace weft
