// The receives that a queue pair of UET has posted, and the SENDs that arrive in them, packet by packet in
// any order.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "hosts/arrival_window.hpp"
#include "hosts/posted_receive.hpp"
#include "hosts/queue_pair.hpp"
#include "hosts/rc_config.hpp"
#include "packets/uet_frame.hpp"

namespace weft::uet {

// A SEND takes the oldest receive when the first of its packets arrives, whichever that is, so it holds
// memory only where a receive has been posted for it. Messages of service rod begin in the order of their
// posting.
class SendArrivals {
 public:
  SendArrivals(const RcConfig& common, CompletionHandler* handler) : common_(common), handler_(handler) {}

  void post(PostedReceive receive) { posted_.push_back({std::move(receive), next_number_++}); }

  // Puts the payload of a packet of a SEND, which is not in `arrivals`, into the message's receive. Returns
  // the packet's return code; nothing if no receive is posted. The packet has the right size for its place.
  std::optional<uint8_t> place(const roce::ParsedPacket& packet, const WriteHeader& send, uint64_t sequence,
                               const ArrivalWindow& arrivals);
  // The packet placed last has been acknowledged: its message completes if all of it is there.
  void finish(TimePs now);
  // Completes all receives as flushed, but for that of a SEND that was too long.
  void flush(TimePs now);

 private:
  struct Numbered {
    PostedReceive receive;
    uint64_t number = 0;  // in order of posting
  };
  struct Arriving {
    Numbered taken;
    uint16_t message_id = 0;
    uint32_t length_bytes = 0;
    uint64_t packets = 0;
    uint64_t missing_packets = 0;
    std::optional<uint32_t> immediate{};
  };
  using ByFirst = std::map<uint64_t, Arriving>;

  bool overlaps(uint64_t first, uint64_t packets) const;
  void complete(TimePs now, const PostedReceive& receive, CompletionStatus status, uint64_t length_bytes,
                std::optional<uint32_t> immediate);

  const RcConfig& common_;
  CompletionHandler* handler_;
  std::deque<Numbered> posted_;
  uint64_t next_number_ = 0;
  ByFirst arriving_;                    // by the sequence number of the message's first packet
  std::optional<uint64_t> newest_;      // of the packet placed last, the message
  std::optional<uint64_t> overflowed_;  // number of the receive that a SEND was too long for
};

}  // namespace weft::uet
