// What the switch between the ranks of a host does with WRITEs that cross it.
#pragma once

#include <cstdint>

#include "collectives/reduction.hpp"

namespace weft {

// By default the switch passes a WRITE on. One with several terms waits in the switch for the others of its
// reduction, and the receiver gets one result in place of all of them. A copy goes to a further receiver by
// multicast.
struct SwitchedWrite {
  uint32_t terms = 1;         // of the reduction, the receiver's own among them
  uint32_t reduction = 0;     // its number among those under way to the receiver
  bool is_copy = false;       // of the sender's last WRITE, which has carried its bits to the switch
  bool is_to_itself = false;  // to the sender's own memory: up to the switch and down again
  DataType dtype = DataType::kInt32;
  ReduceOperation operation = ReduceOperation::kSum;

  bool needs_switch() const { return terms > 1 || is_copy || is_to_itself; }
};

}  // namespace weft
