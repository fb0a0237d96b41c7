// SENDs that arrive in a queue pair of UET, packet by packet in any order, in the receives that it has
// posted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "hosts/arrival_window.hpp"
#include "hosts/posted_receives.hpp"
#include "hosts/queue_pair.hpp"
#include "hosts/rc_config.hpp"
#include "packets/uet_frame.hpp"

namespace weft::uet {

// A SEND takes the oldest receive when the first of its packets arrives, whichever that is, so it holds
// memory only where a receive has been posted for it. Messages of service rod begin in the order of their
// posting.
class SendArrivals {
 public:
  SendArrivals(const RcConfig& common, PostedReceives& receives) : common_(common), receives_(receives) {}

  // Puts the payload of a packet of a SEND, which is not in `arrivals`, into the message's receive. Returns
  // the packet's return code; nothing if no receive is posted. The packet has the right size for its place.
  std::optional<uint8_t> place(const roce::ParsedPacket& packet, const WriteHeader& send, uint64_t sequence,
                               const ArrivalWindow& arrivals);
  // The packet placed last has been acknowledged: its message completes if all of it is there.
  void finish(TimePs now);
  // Completes all receives as flushed, but for that of a SEND that was too long.
  void flush(TimePs now);

 private:
  struct Arriving {
    PostedReceive receive;
    uint64_t number = 0;  // of the receive, in order of posting
    uint16_t message_id = 0;
    uint32_t length_bytes = 0;
    uint64_t packets = 0;
    uint64_t missing_packets = 0;
    std::optional<uint32_t> immediate{};
  };
  using ByFirst = std::map<uint64_t, Arriving>;

  bool overlaps(uint64_t first, uint64_t packets) const;

  const RcConfig& common_;
  PostedReceives& receives_;
  uint64_t next_number_ = 0;
  ByFirst arriving_;                // by the sequence number of the message's first packet
  std::optional<uint64_t> newest_;  // of the packet placed last, the message
  bool overflowed_ = false;         // a SEND was too long for the oldest receive
};

}  // namespace weft::uet
