#include <map>
#include <string>
#include <utility>
#include <vector>

#include "hosts/ip/ip_stack.hpp"
#include "hosts/nic.hpp"
#include "links/link.hpp"
#include "links/transmit_port.hpp"
#include "observe/probe.hpp"
#include "packets/roce_codec.hpp"
#include "switch/switch.hpp"

namespace weft {

namespace {

std::string name_of_queue_drop(const CountedDrop& drop) { return std::string("queue ") + drop.name; }

std::string name_of_link_drop(const CountedDrop& drop) { return std::string("link ") + drop.name; }

std::string name_of_ip_drop(const CountedDrop& drop) { return std::string("ip ") + drop.name; }

}  // namespace

std::map<std::string, std::map<std::string, std::string>> counted_drops() {
  std::map<std::string, std::map<std::string, std::string>> counted;
  for (const CountedDrop& drop : kQueueDrops) counted["PortStats"][drop.statistic] = name_of_queue_drop(drop);
  for (const CountedDrop& drop : kLinkDrops) counted["LinkStats"][drop.statistic] = name_of_link_drop(drop);
  for (const CountedDrop& drop : kIpDrops) counted["IpStats"][drop.statistic] = name_of_ip_drop(drop);
  return counted;
}

std::vector<std::pair<int64_t, std::string>> drop_names() {
  std::vector<std::pair<int64_t, std::string>> names;
  for (size_t reason = 0; reason < kQueueDrops.size(); ++reason)
    names.emplace_back(drop_code(DropPlace::kQueue, reason), name_of_queue_drop(kQueueDrops[reason]));
  for (size_t reason = 0; reason < kLinkDrops.size(); ++reason)
    names.emplace_back(drop_code(DropPlace::kLink, reason), name_of_link_drop(kLinkDrops[reason]));
  for (size_t reason = 0; reason < static_cast<size_t>(DropReason::kCount); ++reason)
    names.emplace_back(drop_code(DropPlace::kSwitch, reason),
                       std::string("switch ") + drop_reason_name(static_cast<DropReason>(reason)));
  for (size_t reason = 0; reason < static_cast<size_t>(NicDrop::kCount); ++reason)
    names.emplace_back(drop_code(DropPlace::kNic, reason),
                       std::string("nic ") + nic_drop_name(static_cast<NicDrop>(reason)));
  for (size_t error = 1; error < static_cast<size_t>(roce::ParseError::kCount); ++error)
    names.emplace_back(drop_code(DropPlace::kNic, kFirstParseErrorDrop + error),
                       std::string("nic ") + roce::parse_error_name(static_cast<roce::ParseError>(error)));
  for (size_t reason = 0; reason < kIpDrops.size(); ++reason)
    names.emplace_back(drop_code(DropPlace::kIp, reason), name_of_ip_drop(kIpDrops[reason]));
  return names;
}

}  // namespace weft
