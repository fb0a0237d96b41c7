// What a responder does with requests: their shape, their bytes in memory, READs and atomics.
#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "hosts/rc_request.hpp"
#include "hosts/rc_responder.hpp"

namespace weft {

uint8_t RcResponder::place_alone(const Shape& shape, const roce::ParsedPacket& packet) {
  const bool whole_write = shape.message == Message::kWrite && shape.first && shape.last;
  if (!whole_write || packet.payload_bytes > config_.path_mtu_bytes ||
      packet.reth.length_bytes != packet.payload_bytes) {
    return roce::kSyndromeNakInvalidRequest;
  }
  return write_to_memory(packet.reth.rkey, packet.reth.virtual_address, packet);
}

uint8_t RcResponder::check_shape(const Shape& shape, const roce::ParsedPacket& packet) const {
  const bool continues = message_ != Message::kNone;
  if (shape.message == Message::kNone || shape.first == continues) return roce::kSyndromeNakInvalidRequest;
  if (continues && shape.message != message_) return roce::kSyndromeNakInvalidRequest;
  const size_t mtu = config_.path_mtu_bytes;
  const bool right_size = shape.last
                              ? packet.payload_bytes <= mtu && (shape.first || packet.payload_bytes > 0)
                              : packet.payload_bytes == mtu;
  return right_size ? roce::kSyndromeAck : roce::kSyndromeNakInvalidRequest;
}

uint8_t RcResponder::begin_message(const Shape& shape, const roce::ParsedPacket& packet) {
  message_ = shape.message;
  message_bytes_ = 0;
  if (shape.message == Message::kSend) {
    message_limit_bytes_ = receives_.front().length_bytes;
    return roce::kSyndromeAck;
  }
  if ((config_.remote_access & kRemoteWrite) == 0) return roce::kSyndromeNakInvalidRequest;
  message_limit_bytes_ = packet.reth.length_bytes;
  write_address_ = packet.reth.virtual_address;
  write_rkey_ = packet.reth.rkey;
  if (message_limit_bytes_ > kMaxMessageBytes) return roce::kSyndromeNakInvalidRequest;
  // A WRITE of no bytes touches no memory, so its rkey is not looked at (section 9.7.4.1.5).
  if (message_limit_bytes_ == 0) return roce::kSyndromeAck;
  const uint64_t least_bytes = least_data_bytes(config_.line_format, message_limit_bytes_);
  return memory_.find(write_rkey_, write_address_, least_bytes, kRemoteWrite) != nullptr
             ? roce::kSyndromeAck
             : roce::kSyndromeNakRemoteAccess;
}

uint8_t RcResponder::place_payload(const Shape& shape, const roce::ParsedPacket& packet) {
  const uint64_t end_bytes = message_bytes_ + packet.payload_bytes;
  if (end_bytes > message_limit_bytes_) return roce::kSyndromeNakInvalidRequest;
  if (shape.message == Message::kSend) {
    if (!place_in_receive(packet)) return roce::kSyndromeNakRemoteOperation;
  } else {
    if (shape.last && end_bytes != message_limit_bytes_) return roce::kSyndromeNakInvalidRequest;
    const uint64_t offset = data_offset(config_.line_format, message_bytes_);
    const uint8_t syndrome = write_to_memory(write_rkey_, write_address_ + offset, packet);
    if (syndrome != roce::kSyndromeAck) return syndrome;
  }
  message_bytes_ = end_bytes;
  return roce::kSyndromeAck;
}

bool RcResponder::place_in_receive(const roce::ParsedPacket& packet) const {
  return packet.as_length || receives_.front().store(message_bytes_, packet.payload, packet.payload_bytes);
}

// The region is looked up for each packet, because it may have been deregistered meanwhile.
uint8_t RcResponder::write_to_memory(uint32_t rkey, uint64_t address, const roce::ParsedPacket& packet) {
  if (packet.payload_bytes == 0) return roce::kSyndromeAck;
  if (config_.line_format != LineFormat::kNone) [[unlikely]]
    return write_lines_to_memory(rkey, address, packet);
  const MemoryRegion* region = memory_.find(rkey, address, packet.payload_bytes, kRemoteWrite);
  if (region == nullptr) return roce::kSyndromeNakRemoteAccess;
  if (packet.as_length) return roce::kSyndromeAck;
  if (region->data != nullptr)
    std::copy_n(packet.payload, packet.payload_bytes, region->data + (address - region->virtual_address));
  else if (!store(*region, address, packet.payload, packet.payload_bytes))
    return roce::kSyndromeNakRemoteOperation;
  return roce::kSyndromeAck;
}

// Lines that carry lengths have no flags, so nobody knows where their data end; nothing is written.
uint8_t RcResponder::write_lines_to_memory(uint32_t rkey, uint64_t address,
                                           const roce::ParsedPacket& packet) {
  if (packet.as_length) {
    const MemoryRegion* region = memory_.find(rkey);
    const bool writable = region != nullptr && (region->access & kRemoteWrite) != 0;
    return writable ? roce::kSyndromeAck : roce::kSyndromeNakRemoteAccess;
  }
  const std::optional<size_t> data_bytes =
      data_in_lines(config_.line_format, packet.payload, packet.payload_bytes);
  if (!data_bytes) return roce::kSyndromeNakInvalidRequest;
  if (*data_bytes == 0) return roce::kSyndromeAck;  // padding
  const MemoryRegion* region = memory_.find(rkey, address, *data_bytes, kRemoteWrite);
  if (region == nullptr) return roce::kSyndromeNakRemoteAccess;
  if (region->data != nullptr) {
    read_lines(config_.line_format, packet.payload, *data_bytes,
               region->data + (address - region->virtual_address));
  } else if (region->foreign != nullptr) {
    std::vector<uint8_t> bytes(*data_bytes);
    read_lines(config_.line_format, packet.payload, *data_bytes, bytes.data());
    if (!store(*region, address, bytes.data(), bytes.size())) return roce::kSyndromeNakRemoteOperation;
  }
  return roce::kSyndromeAck;
}

void RcResponder::accept_read(TimePs now, const roce::ParsedPacket& packet) {
  uint8_t syndrome = roce::kSyndromeNakInvalidRequest;
  if (message_ == Message::kNone) syndrome = execute_read(now, packet);
  if (syndrome != roce::kSyndromeAck) return refuse(now, syndrome);
  note_accepted(packet);
  expected_sequence_ += reads_->packets_of(packet);
  // The response is the answer; a NAK not yet sent was about this very packet.
  if (pending_answer_ == Answer::kNak) pending_answer_ = Answer::kNone;
}

// Of the READ that is next in order.
uint8_t RcResponder::execute_read(TimePs now, const roce::ParsedPacket& packet) {
  if (reads_ == nullptr) {
    reads_ =
        std::make_unique<ReadResponder>(config_, counters_, pool_, memory_, gate_, path_choice_, psn_map_);
  }
  const uint32_t msn = (msn_ + 1) & kPsnMask;
  const uint8_t syndrome = reads_->accept(now, expected_sequence_, packet, msn);
  if (syndrome == roce::kSyndromeAck) msn_ = msn;
  return syndrome;
}

void RcResponder::repeat(TimePs now, int64_t sequence, const roce::ParsedPacket& packet) {
  if (reads_ != nullptr && sequence >= 0) reads_->repeat(now, static_cast<uint64_t>(sequence), packet);
}

PacketPtr RcResponder::pull_response(TimePs now) {
  PacketPtr packet = reads_->pull(now);
  if (reads_->failed_psn() && error_ == CompletionStatus::kSuccess) refuse(now, reads_->failed_syndrome());
  return packet;
}

void RcResponder::finish_message(TimePs now, const Shape& shape, const roce::ParsedPacket& packet) {
  message_ = Message::kNone;
  msn_ = (msn_ + 1) & kPsnMask;
  const bool is_send = shape.message == Message::kSend;
  if (!is_send && !shape.immediate) return;
  receives_.finish(now, is_send ? CompletionKind::kReceive : CompletionKind::kWriteImmediate,
                   is_send || config_.receive_for_immediate, message_bytes_,
                   shape.immediate ? std::optional(packet.immediate) : std::nullopt, packet.bth.solicited);
}

}  // namespace weft
