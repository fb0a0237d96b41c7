// The receiving half of a queue pair of RUDI: it writes what arrives, as often as it arrives, answers each
// packet, with data if it asks for some, and remembers nothing that has been answered. docs/uet.md describes
// it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hosts/memory_region.hpp"
#include "hosts/queue_pair.hpp"
#include "hosts/rc_config.hpp"
#include "hosts/uet/placing.hpp"
#include "hosts/uet/uet_config.hpp"
#include "hosts/uet/uet_counters.hpp"
#include "memory/ring_buffer.hpp"
#include "packets/uet_frame.hpp"

namespace weft::uet {

class RudiTarget {
 public:
  RudiTarget(const RcConfig& common, const UetConfig& config, RcCounters& common_counters,
             UetCounters& counters, PacketPool& pool, const MemoryRegistry& memory);
  RudiTarget(const RudiTarget&) = delete;
  RudiTarget& operator=(const RudiTarget&) = delete;

  // A request, maybe trimmed.
  void on_request(const roce::ParsedPacket& packet);
  // The next answer, null if none is due.
  PacketPtr pull_control();
  bool has_answer() const { return !answers_.empty(); }
  // The next answer with data of a READ, null if none is due.
  PacketPtr pull_data();
  bool has_data() const { return !reads_.empty(); }
  PulledPacket last_pulled() const { return last_pulled_; }
  // It answers no more.
  void stop();

 private:
  struct Answer {
    uint32_t packet_id = 0;
    uint16_t entropy = 0;
    uint16_t message_id = 0;
    uint8_t code = 0;  // of the NACK, or of the response
    bool is_nack = false;
    bool marked = false;
    bool retransmitted = false;
  };

  struct Read {
    Answer answer;
    ReadPart part;
  };

  // `part` is what a READ is granted.
  uint8_t place(const roce::ParsedPacket& packet, const WriteHeader& request, ReadPart& part) const;
  void push(const Answer& answer);
  static Rudi header_of(const Answer& answer, uint8_t next_header);

  const RcConfig& common_;
  const UetConfig& config_;
  RcCounters& common_counters_;
  UetCounters& counters_;
  PacketPool& pool_;
  const MemoryRegistry& memory_;
  roce::RoceHeaders headers_;
  RingBuffer<Answer> answers_;
  RingBuffer<Read> reads_;
  PulledPacket last_pulled_;
  bool is_stopped_ = false;
};

}  // namespace weft::uet
