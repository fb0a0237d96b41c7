// The links between the ranks of a host under the real clock, where each rank is a process: a stream socket
// to each other one.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "hosts/scale_up.hpp"
#include "time/engine.hpp"

namespace weft {

// A message travels at once, dated with when it is due; the receiving domain lets it arrive then. Both ends
// are of the same build and machine, so records are in their native layout.
class ScaleUpSockets final : public ScaleUpWire, public Pollable {
 public:
  static constexpr uint64_t kMaxMessageBytes = 1ull << 31;

  // `sockets`: connected stream sockets by the port at their far end, which are closed with this. Throws
  // std::logic_error without a real clock, std::invalid_argument for ports there are not, the own one or
  // missing ones, std::system_error for descriptors that are no sockets.
  ScaleUpSockets(ScaleUpDomain& domain, uint32_t own_port, const std::map<uint32_t, int>& sockets);
  ~ScaleUpSockets() override;
  ScaleUpSockets(const ScaleUpSockets&) = delete;
  ScaleUpSockets& operator=(const ScaleUpSockets&) = delete;

  void carry(TimePs due_ps, const ScaleUpMessage& message) override;
  void answer(const ScaleUpMessage& message, ScaleUpOutcome outcome) override;

  int file_descriptor() const override { return epoll_fd_; }
  TimePs poll() override;
  void flush() override {}

 private:
  enum class Kind : uint8_t { kMessage, kAnswer };
  // In front of a message's data, and an answer as a whole.
  struct Record {
    Kind kind = Kind::kMessage;
    bool has_data = false;
    bool is_answered = false;
    CompletionStatus status = CompletionStatus::kSuccess;
    TimePs due_ps = 0;
    ScaleUpMessage message;  // whose pointer means nothing to the far end
  };
  struct Peer {
    uint32_t port = 0;
    int descriptor = -1;
    std::deque<std::vector<uint8_t>> unsent;
    size_t sent_of_first = 0;
    // What has come of the present record, and of its data.
    Record record;
    size_t record_bytes = 0;
    std::unique_ptr<uint8_t[]> data;
    size_t data_bytes = 0;
  };

  void open(uint32_t port_count, const std::map<uint32_t, int>& sockets);
  void watch(int operation, Peer& peer, uint32_t events);
  void send(uint32_t port, const Record& record, const uint8_t* data, size_t size_bytes);
  void send_waiting(Peer& peer);
  bool receive(Peer& peer);
  bool receive_into(Peer& peer, uint8_t* target, size_t wanted, size_t& have);
  void take_record(Peer& peer);
  void lose(Peer& peer);
  void release();

  ScaleUpDomain& domain_;
  uint32_t own_port_;
  int epoll_fd_ = -1;
  std::map<uint32_t, Peer> peers_;
};

}  // namespace weft
