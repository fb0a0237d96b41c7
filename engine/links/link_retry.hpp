// Link-level retry of one direction of a link: what gets lost on it is sent again by the port at its near
// end, in order, from the lost frame on. As Ultra Ethernet's LLR (UE specification 1.0, link layer; SAI's
// proposal of link layer retry has the same mechanism): frames are numbered in their preambles, so they get
// no longer; the far end's ACK and NACK are control ordered sets, which its port puts between or into its
// frames.
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/ring_buffer.hpp"
#include "observe/packet_conservation.hpp"
#include "observe/statistics.hpp"
#include "observe/traffic_counter.hpp"
#include "packets/packet.hpp"
#include "time/engine.hpp"

namespace weft {

class Link;
class TransmitPort;

struct LinkRetryConfig {
  // That are sent and not acknowledged, at most: then the port waits.
  uint64_t buffer_bytes = 0;
  // After the last frame, the frames in the buffer are sent again unless the far end has answered.
  TimePs timeout_ps = 0;
  // How often in a row without one frame more; then the link gives up what is in the buffer.
  uint32_t attempts = 16;
  // What the far end takes to answer.
  TimePs response_ps = 0;
  // The largest frame: the buffer has room for one before it is sent.
  uint64_t largest_frame_bytes = 0;
};

#define WEFT_LINK_RETRY_COUNTERS(STATISTIC)                                                  \
  STATISTIC(uint64_t, lost_packets, "did not arrive, or with a wrong bit, and were kept")    \
  STATISTIC(uint64_t, lost_messages, "ACK or NACK of the far end that did not arrive whole") \
  STATISTIC(uint64_t, nacks, "of the far end")                                               \
  STATISTIC(uint64_t, timeouts, "the replay timer ran out")                                  \
  STATISTIC(uint64_t, replays, "times that the port began to send again")                    \
  STATISTIC(TrafficCounter, replayed, "frames sent again, each time that they were")         \
  STATISTIC(TimePs, replaying_ps, "time for which the port sent frames again")               \
  STATISTIC(TimePs, waiting_ps, "time for which the port waited, as the buffer was full")    \
  STATISTIC(uint64_t, largest_buffer_bytes, "most that waited for an acknowledgement")       \
  STATISTIC(TrafficCounter, given_up, "frames that the link has given up, and counts as lost")

struct LinkRetryCounters {
  WEFT_STATISTICS(LinkRetryCounters, WEFT_LINK_RETRY_COUNTERS)
};

class LinkRetry {
 public:
  // An ACK or NACK is one block of 64 bits with its two of synchronisation.
  static constexpr uint64_t kMessageBytes = 8;

  // `port` sends into `link`. Throws std::invalid_argument for a port without a rate, a buffer below the
  // largest frame, a timeout or a number of attempts below 1, or a timeout below the time of an answer.
  LinkRetry(Link& link, TransmitPort& port, const LinkRetryConfig& config);

  // The port has sent a frame whose last bit leaves at `sent_ps`.
  void send(PacketPtr packet, TimePs sent_ps);
  // Takes away what is in the buffer: the link has failed.
  TrafficCounter take_all();

  const LinkRetryConfig& config() const { return config_; }
  LinkRetryCounters counters() const { return counters_; }
  void reset_counters();

 private:
  // Of a frame that has arrived: when the far end's ACK is here.
  struct Acknowledged {
    TimePs due_ps = 0;
    uint64_t bytes = 0;
  };

  // Sends a frame, and whether it arrives. It is delivered if so and if the far end waits for it.
  bool arrives(const Packet& packet, TimePs sent_ps);
  void deliver(PacketPtr packet, TimePs sent_ps);
  void on_lost(TimePs sent_ps);
  void note_nack(TimePs arrival_ps);
  TimePs answer_ps(TimePs arrival_ps) const;
  void on_due();
  void replay();
  void give_up();
  void on_full();
  void hold_if_full(TimePs sent_ps);
  void forget_acknowledged(TimePs now);
  uint64_t held_bytes() const { return waiting_bytes_ + unacknowledged_bytes_; }
  void rest();
  static void count_held(const void* retry, HeldPackets& held);

  Engine& engine_;
  Link& link_;
  TransmitPort& port_;
  LinkRetryConfig config_;
  // The lost frame and all after it: the far end discards them, for it waits for the first.
  RingBuffer<PacketPtr> waiting_;
  uint64_t waiting_bytes_ = 0;
  TrafficCounter waiting_now_;
  RingBuffer<Acknowledged> unacknowledged_;
  uint64_t unacknowledged_bytes_ = 0;
  bool nacked_ = false;  // the far end has said that it waits
  TimePs nack_due_ps_ = kNever;
  uint32_t attempts_ = 0;
  Timer due_;   // a NACK is here, or the replay timer runs out
  Timer full_;  // the frame is sent with which the buffer is full
  LinkRetryCounters counters_;
};

}  // namespace weft
