// The processes that serve a partitioned run together: what each tells the others between two windows.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "packets/packet_message.hpp"
#include "time/time.hpp"

namespace weft {

// Where a process is. All have the same turn and the same next control event.
struct ProcessReport {
  uint64_t turn;
  TimePs next_control_ps;
  TimePs now_ps;
  TimePs earliest_ps;         // of the next event of its partitions, or of what they have sent
  TimePs failed_ps = kNever;  // when an event of its partitions first threw, since the last meeting
  uint64_t failed_partition = 0;
};

// An event of another process's partition has thrown; that process has the exception.
struct OtherProcessFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// See HandOver.
struct RemoteHandOver {
  TimePs time_ps;
  uint64_t listener;
  uint32_t partition;
  uint32_t unused = 0;
};

class ProcessGroup {
 public:
  // Gives every process its message, by number (this one's is empty), and returns theirs.
  using Exchange = std::function<std::vector<std::string>(const std::vector<std::string>& messages)>;
  // Throws std::invalid_argument for a process that is not among the count.
  ProcessGroup(int process, int count, Exchange exchange);

  int process() const { return process_; }
  int count() const { return count_; }
  // Goes with the next meeting.
  void send(int process, uint32_t line, TimePs due_ps, const Packet& packet);

  struct Meeting {
    ProcessReport latest;                    // the latest now_ps, the first earliest_ps, the first failure
    std::vector<RemoteHandOver> hand_overs;  // process by process
    std::vector<std::string> packets;        // of each process, for get_packet()
  };
  // Waits for all processes. Throws std::logic_error if they do not do the same.
  Meeting meet(ProcessReport own, const std::vector<RemoteHandOver>& hand_overs);
  // Waits for all processes and returns what each gives, by number; this one's is among them.
  std::vector<std::string> all_of(const std::string& own);

 private:
  int process_;
  int count_;
  Exchange exchange_;
  uint64_t turn_ = 0;
  std::vector<MessageWriter> packets_;  // for each process
};

}  // namespace weft
