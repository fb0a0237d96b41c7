#include <string>
#include <utility>
#include <vector>

#include "hosts/nic.hpp"
#include "links/link.hpp"
#include "links/transmit_port.hpp"
#include "observe/probe.hpp"
#include "packets/roce_codec.hpp"
#include "switch/switch.hpp"

namespace weft {

std::vector<std::pair<int64_t, std::string>> drop_names() {
  std::vector<std::pair<int64_t, std::string>> names;
  for (size_t reason = 0; reason < static_cast<size_t>(QueueDrop::kCount); ++reason)
    names.emplace_back(drop_code(DropPlace::kQueue, reason),
                       std::string("queue ") + queue_drop_name(static_cast<QueueDrop>(reason)));
  for (size_t reason = 0; reason < static_cast<size_t>(LinkDrop::kCount); ++reason)
    names.emplace_back(drop_code(DropPlace::kLink, reason),
                       std::string("link ") + link_drop_name(static_cast<LinkDrop>(reason)));
  for (size_t reason = 0; reason < static_cast<size_t>(DropReason::kCount); ++reason)
    names.emplace_back(drop_code(DropPlace::kSwitch, reason),
                       std::string("switch ") + drop_reason_name(static_cast<DropReason>(reason)));
  for (size_t reason = 0; reason < static_cast<size_t>(NicDrop::kCount); ++reason)
    names.emplace_back(drop_code(DropPlace::kNic, reason),
                       std::string("nic ") + nic_drop_name(static_cast<NicDrop>(reason)));
  for (size_t error = 1; error < static_cast<size_t>(roce::ParseError::kCount); ++error)
    names.emplace_back(drop_code(DropPlace::kNic, kFirstParseErrorDrop + error),
                       std::string("nic ") + roce::parse_error_name(static_cast<roce::ParseError>(error)));
  return names;
}

}  // namespace weft
