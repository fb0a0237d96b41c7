// The READs of an initiator that are under way, and their data, which come over its PDC's return direction:
// packets in, ACKs and NACKs out.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "hosts/arrival_window.hpp"
#include "hosts/queue_pair.hpp"
#include "hosts/rc_config.hpp"
#include "hosts/uet/messages.hpp"
#include "hosts/uet/stream_answers.hpp"
#include "hosts/uet/uet_config.hpp"
#include "hosts/uet/uet_counters.hpp"
#include "memory/ring_buffer.hpp"
#include "packets/uet_frame.hpp"

namespace weft::uet {

class ReadArrivals {
 public:
  ReadArrivals(const RcConfig& common, const UetConfig& config, RcCounters& common_counters,
               UetCounters& counters, PacketPool& pool);

  // Whether the next packet of the READ may be sent for the first time: `first` says that the READ begins
  // with it.
  bool may_ask(const Message& read, bool first) const;
  // It has been sent for the first time.
  void note_asked(const Message& read, bool first);
  // Messages before this one are done, if all packets before `accepted` are acknowledged.
  uint64_t done_end(uint64_t accepted) const;
  // Whether data are still to come.
  bool is_waiting() const { return !reads_.empty(); }

  // A packet with data, over the initiator's PDC. Returns whether it is news.
  bool on_response(TimePs now, const roce::ParsedPacket& packet);
  bool has_answer() const { return !answers_.empty(); }
  // The next ACK or NACK, null if none is due; `pdc` is the initiator's.
  PacketPtr pull_control(TimePs now, uint16_t pdc);
  void stop();

 private:
  struct Read {
    uint64_t first_sequence = 0;
    uint16_t id = 0;
    uint8_t* target = nullptr;  // null: the data are discarded
    uint64_t length_bytes = 0;
    uint64_t asked_packets = 0;
    uint64_t missing_packets = 0;
    std::vector<bool> arrived{};  // by packet
    std::shared_ptr<const void> owner{};
  };
  struct Answer {
    uint64_t sequence = 0;
    TimePs arrived_ps = 0;
    uint16_t entropy = 0;
    uint16_t initiator_pdc = 0;  // of who sent the packet: the target
    uint8_t nack_code = 0;       // 0: an ACK
    bool marked = false;
    bool is_plain() const { return nack_code == 0 && !marked; }
  };

  void answer(TimePs now, const roce::ParsedPacket& packet, uint64_t sequence, uint16_t target_pdc,
              uint8_t nack_code = 0);
  bool place(const roce::ParsedPacket& packet, const ResponseData& response);
  PacketPtr build_ack(TimePs now, uint16_t pdc, const Answer& answer);

  const RcConfig& common_;
  const UetConfig& config_;
  RcCounters& common_counters_;
  UetCounters& counters_;
  PacketPool& pool_;
  const bool is_ordered_;
  roce::RoceHeaders headers_;
  WidePsnMap psn_map_;
  std::vector<Read> reads_;       // by sequence number of their requests
  uint64_t missing_packets_ = 0;  // that have been asked for
  ArrivalWindow arrivals_;
  GapNotices gaps_;  // ROD
  uint64_t waiting_packets_ = 0;
  uint64_t received_bytes_ = 0;
  RingBuffer<Answer> answers_;
};

}  // namespace weft::uet
