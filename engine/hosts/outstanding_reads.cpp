#include "hosts/outstanding_reads.hpp"

#include <algorithm>
#include <utility>

namespace weft {
namespace {

// Returns false if the request's target is foreign memory that is not there.
bool place_at(const RcRequest& request, uint64_t offset_bytes, const uint8_t* from, size_t bytes) {
  if (request.target != nullptr)
    std::copy_n(from, bytes, request.target + offset_bytes);
  else if (request.foreign != nullptr && bytes > 0)
    return request.foreign->write(offset_bytes, from, bytes);
  return true;
}

}  // namespace

OutstandingReads::OutstandingReads(const RcConfig& config, RcCounters& counters, PacketPool& pool,
                                   const PsnMap& psn_map)
    : config_(config),
      counters_(counters),
      pool_(pool),
      psn_map_(psn_map),
      selective_repeat_(config.retransmission == Retransmission::kSelectiveRepeat),
      headers_(control_headers(config)),
      template_(headers_) {
  headers_.bth.opcode = roce::kReadAcknowledge;
}

void OutstandingReads::add(const RcRequest& request, uint64_t sequence, uint64_t first_psn) {
  if (!reads_.empty() && reads_.back().sequence >= sequence) return;
  reads_.push_back({.request = request,
                    .sequence = sequence,
                    .first_psn = first_psn,
                    .packets = packets_of_payload(request.length_bytes, config_.path_mtu_bytes)});
  ++incomplete_;
}

uint64_t OutstandingReads::psn_of(uint64_t sequence) const {
  uint64_t psn = sequence + skipped_;
  for (const Read& read : reads_) {
    if (read.sequence >= sequence) break;
    psn += read.packets - 1;
  }
  return psn;
}

uint64_t OutstandingReads::oldest_psn(uint64_t accepted) const {
  return reads_.empty() ? accepted + skipped_ : std::min(reads_.front().first_psn, psn_of(accepted));
}

int64_t OutstandingReads::packet_of(uint32_t psn_value, uint64_t accepted) const {
  const int64_t psn = psn_map_.sequence(psn_value, psn_of(accepted));
  auto skipped = static_cast<int64_t>(skipped_);
  for (const Read& read : reads_) {
    if (psn < static_cast<int64_t>(read.first_psn)) break;
    if (psn < static_cast<int64_t>(read.end_psn())) return static_cast<int64_t>(read.sequence);
    skipped += static_cast<int64_t>(read.packets - 1);
  }
  return psn - skipped;
}

uint64_t OutstandingReads::done_end(uint64_t accepted) const {
  for (const Read& read : reads_) {
    if (!read.is_complete()) return std::min(accepted, read.sequence);
  }
  return accepted;
}

OutstandingReads::Read* OutstandingReads::read_of(uint64_t psn) {
  for (Read& read : reads_) {
    if (psn >= read.first_psn && psn < read.end_psn()) return &read;
  }
  return nullptr;
}

// Of the first response of a READ that is missing, or else one past the last of all. Results of atomics are
// no data and come on their own.
uint64_t OutstandingReads::expected_psn() const {
  for (const Read& read : reads_) {
    if (!read.is_complete() && !read.is_atomic()) return read.first_psn + read.in_order;
  }
  return reads_.empty() ? newest_psn_ + 1 : reads_.back().end_psn();
}

OutstandingReads::Taken OutstandingReads::take(const roce::ParsedPacket& packet) {
  const uint64_t expected = expected_psn();
  const int64_t psn = psn_map_.sequence(packet.bth.psn, expected);
  if (psn < 0) return {};
  Read* read = read_of(static_cast<uint64_t>(psn));
  Taken taken;
  const bool is_result = packet.bth.opcode == roce::kRcAtomicAcknowledge;
  if (read == nullptr) {
    // All of a READ that has been forgotten had arrived.
    if (psn < static_cast<int64_t>(expected)) taken.arrival = Arrival::kDuplicate;
  } else if (read->is_atomic() == is_result) {
    taken.sequence = read->sequence;
    taken.arrival =
        is_result ? place_result(*read, packet) : place(*read, static_cast<uint64_t>(psn), packet);
  }
  if (taken.arrival >= Arrival::kInvalid || is_result) return taken;
  as_length_ = packet.as_length;
  if (packet.telemetry && !packet.telemetry->echo) echo_ = packet.telemetry;
  if (taken.arrival == Arrival::kBehindGap) {
    note_gap(static_cast<uint64_t>(psn));
  } else {
    answer(static_cast<uint64_t>(psn), expected, packet);
  }
  return taken;
}

OutstandingReads::Arrival OutstandingReads::place_result(Read& read, const roce::ParsedPacket& packet) {
  if (read.is_complete()) return Arrival::kDuplicate;
  const auto* const result = reinterpret_cast<const uint8_t*>(&packet.atomic_ack_original);
  if (!place_at(read.request, 0, result, kAtomicBytes)) return Arrival::kUnplaced;
  ++read.in_order;
  --incomplete_;
  return Arrival::kNew;
}

OutstandingReads::Arrival OutstandingReads::place(Read& read, uint64_t psn,
                                                  const roce::ParsedPacket& packet) {
  const uint64_t index = psn - read.first_psn;
  const uint64_t offset = index * config_.path_mtu_bytes;
  if (packet.payload_bytes != std::min<uint64_t>(config_.path_mtu_bytes, read.request.length_bytes - offset))
    return Arrival::kInvalid;
  const bool came_before =
      index < read.in_order || (index < read.behind_gap.size() && read.behind_gap[index]);
  if (came_before) return Arrival::kDuplicate;
  if (!selective_repeat_ && psn != expected_psn()) return Arrival::kBehindGap;
  if (!packet.as_length && !place_at(read.request, offset, packet.payload, packet.payload_bytes))
    return Arrival::kUnplaced;
  note_arrival(read, index);
  return Arrival::kNew;
}

void OutstandingReads::note_arrival(Read& read, uint64_t index) {
  gap_noted_ = false;
  newest_behind_gap_ = 0;
  if (index != read.in_order) {
    if (read.behind_gap.empty()) read.behind_gap.resize(read.packets);
    read.behind_gap[index] = true;
    return;
  }
  do {
    ++read.in_order;
  } while (read.in_order < read.behind_gap.size() && read.behind_gap[read.in_order]);
  if (read.is_complete()) {
    --incomplete_;
    read.behind_gap = {};
  }
}

// Go-back-N: asks again once for a gap, and again each time the responses have started over and the missing
// one was lost again, as a responder does with NAKs.
void OutstandingReads::note_gap(uint64_t psn) {
  const bool started_over = psn < newest_behind_gap_;
  newest_behind_gap_ = psn;
  if (gap_noted_ && !started_over) return;
  gap_noted_ = true;
  ask_again(reads_.back().sequence + 1);
}

// A response behind a gap, one that closes a gap, and a duplicate are answered at once.
void OutstandingReads::answer(uint64_t psn, uint64_t expected, const roce::ParsedPacket& packet) {
  const bool marked = packet.ecn == roce::kCe;
  const bool at_once = psn != expected || newest_psn_ > psn || packet.bth.acknowledge_request;
  newest_psn_ = std::max(newest_psn_, psn);
  if (at_once) {
    answers_.answer(psn, marked);
  } else {
    answers_.leave(psn, marked);
  }
}

void OutstandingReads::forget_done(uint64_t accepted) {
  while (!reads_.empty() && reads_.front().is_complete() && reads_.front().sequence < accepted) {
    skipped_ += reads_.front().packets - 1;
    reads_.pop_front();
  }
}

void OutstandingReads::ask_again(uint64_t accepted) {
  repeats_ = {};
  bool asked = false;
  for (const Read& read : reads_) {
    if (read.sequence >= accepted) return;
    if (read.is_complete()) continue;
    // With go-back-N the responder goes on from the first response that is missing.
    const bool follows = !selective_repeat_ && !read.is_atomic();
    if (!follows || !asked) repeats_.push(read.sequence);
    asked = asked || follows;
  }
}

std::optional<OutstandingReads::Repeat> OutstandingReads::next_repeat() {
  while (!repeats_.empty()) {
    const uint64_t sequence = repeats_.pop();
    const auto read = std::find_if(reads_.begin(), reads_.end(),
                                   [&](const Read& each) { return each.sequence == sequence; });
    if (read == reads_.end() || read->is_complete()) continue;
    const uint64_t offset = read->in_order * config_.path_mtu_bytes;
    return Repeat{&read->request, sequence, read->first_psn + read->in_order, offset,
                  read->request.length_bytes - offset};
  }
  return std::nullopt;
}

PacketPtr OutstandingReads::pull_answer() {
  const SelectiveAnswers::Answer answer = answers_.take(expected_psn());
  headers_.bth.psn = psn_map_.psn(answer.end - 1);
  headers_.bth.becn = answer.marked;
  headers_.aeth = {roce::kSyndromeAckNoCredits, psn_map_.psn(answer.answered)};
  headers_.telemetry = std::exchange(echo_, std::nullopt);
  if (headers_.telemetry) headers_.telemetry->echo = true;
  ++counters_.acknowledgements_sent;
  return as_length_ ? template_.build_as_length(pool_, headers_, 0) : template_.build(pool_, headers_);
}

}  // namespace weft
