#include "time/process_group.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace weft {

ProcessGroup::ProcessGroup(int process, int count, Exchange exchange)
    : process_(process), count_(count), exchange_(std::move(exchange)) {
  if (count < 1 || process < 0 || process >= count)
    throw std::invalid_argument("process " + std::to_string(process) + " of " + std::to_string(count));
  packets_.resize(static_cast<size_t>(count));
}

void ProcessGroup::send(int process, uint32_t line, TimePs due_ps, const Packet& packet) {
  put_packet(packets_[static_cast<size_t>(process)], line, due_ps, packet);
}

ProcessGroup::Meeting ProcessGroup::meet(ProcessReport own, const std::vector<RemoteHandOver>& hand_overs) {
  own.turn = ++turn_;
  MessageWriter head;
  head.put(own);
  head.put(static_cast<uint64_t>(hand_overs.size()));
  for (const RemoteHandOver& each : hand_overs) head.put(each);
  std::vector<std::string> messages;
  for (int process = 0; process < count_; ++process) {
    MessageWriter& packets = packets_[static_cast<size_t>(process)];
    messages.push_back(process == process_ ? std::string() : head.bytes() + packets.bytes());
    packets.clear();
  }
  std::vector<std::string> received = exchange_(messages);
  received.at(static_cast<size_t>(process_)) = head.bytes();

  Meeting meeting{own, {}, {}};
  for (const std::string& message : received) {
    MessageReader reader(message);
    const auto report = reader.get<ProcessReport>();
    if (report.turn != own.turn || report.next_control_ps != own.next_control_ps)
      throw std::logic_error(
          "the processes of this run no longer do the same: process " +
          std::to_string(meeting.packets.size()) + " is at turn " + std::to_string(report.turn) +
          " with a control event at " + std::to_string(report.next_control_ps) + " ps, this one at turn " +
          std::to_string(own.turn) + " with one at " + std::to_string(own.next_control_ps));
    meeting.latest.now_ps = std::max(meeting.latest.now_ps, report.now_ps);
    meeting.latest.earliest_ps = std::min(meeting.latest.earliest_ps, report.earliest_ps);
    if (std::tie(report.failed_ps, report.failed_partition) <
        std::tie(meeting.latest.failed_ps, meeting.latest.failed_partition)) {
      meeting.latest.failed_ps = report.failed_ps;
      meeting.latest.failed_partition = report.failed_partition;
    }
    const auto count = reader.get<uint64_t>();
    for (uint64_t each = 0; each < count; ++each) meeting.hand_overs.push_back(reader.get<RemoteHandOver>());
    std::string_view packets = reader.rest();
    meeting.packets.emplace_back(packets);
  }
  return meeting;
}

std::vector<std::string> ProcessGroup::all_of(const std::string& own) {
  std::vector<std::string> messages(static_cast<size_t>(count_), own);
  messages[static_cast<size_t>(process_)].clear();
  std::vector<std::string> received = exchange_(messages);
  received.at(static_cast<size_t>(process_)) = own;
  return received;
}

}  // namespace weft
