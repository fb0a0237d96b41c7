// A TCP connection as pure state machine, without I/O and without a clock: segments and times go in, segments
// and a deadline come out. Source: RFC 9293, sections 3.3.2, 3.5, 3.6 and 3.10.
//
// The stream's bytes stay with whoever has them: a segment to send names the place of its payload in the
// stream, and what has arrived is passed on as places of the segment's payload (`DataSink`), each byte once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "tcp/receiver.hpp"
#include "tcp/segment.hpp"
#include "tcp/sender.hpp"
#include "tcp/sequence.hpp"

namespace weft::tcp {

enum class State {
  kClosed,
  kListen,
  kSynSent,
  kSynReceived,
  kEstablished,
  kFinWait1,
  kFinWait2,
  kCloseWait,
  kClosing,
  kLastAck,
  kTimeWait,
};
std::string_view state_name(State state);

// Why a connection is closed.
enum class End { kNone, kClosed, kReset, kRefused, kTimedOut, kAborted };
std::string_view end_name(End end);

struct ConnectionConfig {
  uint16_t source_port = 0;
  uint16_t destination_port = 0;
  uint32_t initial_sequence = 0;
  uint16_t maximum_segment_bytes = 1460;  // without options: what the path's MTU leaves
  bool sack = true;
  bool timestamps = true;
  bool window_scaling = true;
  bool ecn = false;  // RFC 3168; a control that needs exact echoes has it anyway
  TimePs timestamp_tick_ps = kPsPerSecond / 1000;  // RFC 7323, section 5.4: 1 ms to 1 s
  TimePs time_wait_ps = 60 * kPsPerSecond;         // twice the maximum lifetime of a segment, as Linux
  SenderConfig sender;
  ReceiverConfig receiver;
};

// Gets received bytes: `length` bytes from `payload_begin` of the segment's payload belong at
// `stream_offset`. Each byte comes once, in the order of its arrival.
class DataSink {
 public:
  virtual ~DataSink() = default;
  virtual void on_bytes(uint64_t stream_offset, uint32_t payload_begin, uint32_t length) = 0;
};

class Connection {
 public:
  Connection(const ConnectionConfig& config, std::unique_ptr<CongestionControl> congestion_control);

  // What the application calls (RFC 9293, section 3.10).
  void connect();
  void listen() { state_ = State::kListen; }
  // So many more bytes are to be sent. Throws std::logic_error after close().
  void send(uint64_t bytes);
  void consume(uint64_t bytes) { receiver_.consume(bytes); }
  void close();
  void abort();

  void on_segment(TimePs now, const Segment& segment, DataSink& sink);
  void on_timer(TimePs now);
  TimePs next_deadline() const;
  // The next segment to leave now, if any. To be called until there is none, after each of the other calls.
  std::optional<Segment> take_segment(TimePs now);

  State state() const { return state_; }
  End end() const { return end_; }
  bool established() const { return state_ >= State::kEstablished; }
  // The peer has sent all that it will send, and all has arrived.
  bool peer_finished() const { return receiver_.fin_received(); }
  uint64_t sent_offset() const { return offset_of(sender_.next()); }
  uint64_t acknowledged_offset() const { return offset_of(sender_.unacknowledged()); }
  uint64_t received_offset() const;  // bytes that have arrived in order
  uint64_t readable_bytes() const { return receiver_.readable_bytes(); }
  bool ecn_in_use() const { return ecn_; }
  uint32_t segment_bytes() const { return segment_bytes_; }
  const Sender& sender() const { return sender_; }
  const Receiver& receiver() const { return receiver_; }

 private:
  uint64_t offset_of(Sequence sequence) const;

  // connection_segments.cpp
  std::optional<Segment> next_segment(TimePs now);
  Segment segment_with(TimePs now, uint8_t flags);
  Segment data_segment(TimePs now, const Transmission& transmission);
  Segment acknowledgement_segment(TimePs now);
  void add_syn_options(Segment& segment) const;
  void add_acknowledgement(Segment& segment, bool with_data);
  void add_sack_blocks(Segment& segment);
  bool add_sack_block(Segment& segment, SequenceRange range) const;
  bool reports_duplicate(const Segment& segment, Sequence acknowledgement) const;
  uint32_t timestamp_value(TimePs now) const;

  // connection.cpp
  void on_segment_in_listen(const Segment& segment);
  void on_segment_in_syn_sent(TimePs now, const Segment& segment);
  void on_acceptable(TimePs now, const Segment& segment, Sequence sequence, DataSink& sink);
  bool is_acceptable(const Segment& segment, int64_t sequence) const;
  bool is_old_by_timestamp(const Segment& segment) const;
  bool on_acknowledgement(TimePs now, const Segment& segment, Sequence sequence);
  void take_data(TimePs now, const Segment& segment, Sequence sequence, DataSink& sink);
  void follow_acknowledged_fin(TimePs now);
  void follow_peer_fin(TimePs now);
  void adopt_options(const Segment& syn);
  void establish();
  void enter_time_wait(TimePs now);
  void finish(End end);
  void reset_answering(const Segment& segment);
  void challenge(TimePs now, const Segment& segment);

  ConnectionConfig config_;
  Sender sender_;
  Receiver receiver_;
  SequenceMap own_;
  SequenceMap peer_;
  State state_ = State::kClosed;
  End end_ = End::kNone;
  bool exact_echo_;
  bool ecn_;
  bool sack_;
  bool timestamps_;
  bool window_scaling_;
  uint8_t own_window_scale_;
  uint8_t peer_window_scale_ = 0;
  uint32_t segment_bytes_ = 536;                // RFC 9293, section 3.7.1, where the peer says nothing
  bool syn_again_ = false;                      // a SYN that was sent twice asks for no ECN
  Sequence window_update_sequence_ = 0;         // SND.WL1
  Sequence window_update_acknowledgement_ = 0;  // SND.WL2
  uint32_t recent_timestamp_ = 0;               // TS.Recent
  Sequence last_acknowledgement_sent_ = 0;      // Last.ACK.sent
  TimePs time_wait_until_ = kNever;
  TimePs next_challenge_ps_ = 0;
  std::optional<Segment> reset_;  // to be sent before all else
  std::vector<SequenceRange> fresh_;
};

// The RST that answers a segment to no connection (RFC 9293, section 3.10.7.1); none to an RST.
std::optional<Segment> reset_for(const Segment& segment);

}  // namespace weft::tcp
