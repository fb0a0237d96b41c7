#include "tcp/receiver.hpp"

#include <algorithm>

namespace weft::tcp {
namespace {

constexpr uint64_t kMostWindowField = 0xFFFF;
// Of received bytes, with a gap before each: as many as if every second segment of the least usual size were
// missing from a full buffer, whatever a peer sends.
constexpr uint64_t kLeastBytesOfRange = 512;
constexpr uint64_t kLeastRanges = 64;

}  // namespace

void Receiver::establish(uint32_t segment_bytes, uint8_t window_scale, EcnEcho echo) {
  segment_bytes_ = segment_bytes;
  window_scale_ = window_scale;
  echo_ = echo;
}

void Receiver::on_data(const ArrivedData& arrived, std::vector<SequenceRange>& fresh) {
  const bool had_gaps = has_gaps();
  const Sequence before = next_;
  if (arrived.end > arrived.begin) {
    ++counters_.received_segments;
    note_marks(arrived);
  }
  if (arrived.fin) fin_ = arrived.end;
  const size_t known = fresh.size();
  if (arrived.begin < std::min(arrived.end, before))
    duplicate_ = SequenceRange{arrived.begin, std::min(arrived.end, before)};
  const SequenceRange ahead{std::max(arrived.begin, next_), arrived.end};
  const bool kept = has_room_for(ahead);
  if (ahead.end > ahead.begin && kept) add_range(ahead, fresh);
  if (fin_ && next_ == *fin_) ++next_;
  if (arrived.end > arrived.begin) {
    if (!kept) ++counters_.discarded_segments;
    if (kept && fresh.size() == known) ++counters_.duplicate_segments;
    if (arrived.begin > before) ++counters_.out_of_order_segments;
  }
  for (size_t each = known; each < fresh.size(); ++each)
    counters_.received_bytes += fresh[each].end - fresh[each].begin;
  decide_acknowledgement(arrived, next_ > before, had_gaps);
}

// What is next, or touches what has arrived, adds no range.
bool Receiver::has_room_for(SequenceRange range) const {
  if (ranges_.size() < std::max(kLeastRanges, config_.buffer_bytes / kLeastBytesOfRange)) return true;
  return range.begin <= next_ || std::ranges::any_of(ranges_, [&](const SequenceRange& other) {
           return other.begin <= range.end && other.end >= range.begin;
         });
}

// Joins the range with those that it touches, at the head of the list. What no range had covered is new.
void Receiver::add_range(SequenceRange range, std::vector<SequenceRange>& fresh) {
  covered_.clear();
  SequenceRange joined = range;
  std::erase_if(ranges_, [&](const SequenceRange& other) {
    if (other.begin > range.end || other.end < range.begin) return false;
    covered_.push_back(other);
    joined = {std::min(joined.begin, other.begin), std::max(joined.end, other.end)};
    return true;
  });
  std::ranges::sort(covered_, {}, &SequenceRange::begin);
  for (const SequenceRange& other : covered_) {
    const SequenceRange twice{std::max(range.begin, other.begin), std::min(range.end, other.end)};
    if (!duplicate_ && twice.begin < twice.end) duplicate_ = twice;
  }
  Sequence from = range.begin;
  for (const SequenceRange& other : covered_) {
    if (from < other.begin) fresh.push_back({from, std::min(other.begin, range.end)});
    from = std::max(from, other.end);
  }
  if (from < range.end) fresh.push_back({from, range.end});
  if (joined.begin <= next_) {
    next_ = joined.end;
  } else {
    ranges_.insert(ranges_.begin(), joined);
  }
}

void Receiver::note_marks(const ArrivedData& arrived) {
  if (arrived.congestion_experienced) {
    ++counters_.marked_segments;
    counters_.marked_bytes += arrived.end - arrived.begin;
  }
  if (echo_ == EcnEcho::kPerWindow) {
    if (arrived.window_reduced) echoes_ = false;
    if (arrived.congestion_experienced) echoes_ = true;
  } else if (echo_ == EcnEcho::kExact && arrived.congestion_experienced != echoes_) {
    if (unacknowledged_bytes_ > 0) earlier_ = {next_, echoes_};
    echoes_ = arrived.congestion_experienced;
  }
}

// RFC 5681, section 4.2: every second full-sized segment at once, whatever arrives out of order or fills a
// gap too.
void Receiver::decide_acknowledgement(const ArrivedData& arrived, bool in_order, bool had_gaps) {
  if (!in_order || had_gaps || arrived.fin) {
    acknowledge_now();
    return;
  }
  if (earlier_) unacknowledged_bytes_ = 0;
  unacknowledged_bytes_ += arrived.end - arrived.begin;
  if (unacknowledged_bytes_ >= uint64_t{config_.acknowledge_every_segments} * segment_bytes_) {
    acknowledge_now();
  } else if (delayed_until_ == kNever || earlier_) {
    delayed_until_ = arrived.now + config_.delayed_acknowledgement_ps;
  }
}

Receiver::Acknowledgement Receiver::take_acknowledgement(bool with_data) {
  if (!with_data) ++counters_.sent_acknowledgements;
  if (earlier_) {
    const Acknowledgement earlier = *earlier_;
    earlier_.reset();
    return earlier;
  }
  due_ = false;
  unacknowledged_bytes_ = 0;
  delayed_until_ = kNever;
  return {next_, echoes_};
}

uint64_t Receiver::free_bytes() const {
  const uint64_t unread = readable_bytes();
  return unread < config_.buffer_bytes ? config_.buffer_bytes - unread : 0;
}

// The receiver's part against silly windows (RFC 9293, section 3.8.6.2.2): the window's end moves by a
// segment or half the buffer, or not at all.
uint16_t Receiver::window_field() {
  const uint64_t unit = uint64_t{1} << window_scale_;
  const Sequence possible = next_ + std::min(free_bytes(), kMostWindowField << window_scale_) / unit * unit;
  const uint64_t step = std::min<uint64_t>(segment_bytes_, config_.buffer_bytes / 2);
  Sequence end = std::max(window_end_, next_);
  if (possible >= end + step) end = possible;
  const uint64_t field = std::min((end - next_ + unit - 1) / unit, kMostWindowField);
  window_end_ = std::max(window_end_, next_ + field * unit);
  return static_cast<uint16_t>(field);
}

void Receiver::consume(uint64_t bytes) {
  consumed_ += std::min(bytes, readable_bytes());
  // The sender is told once the window has opened by as much as is worth a segment of its own.
  const uint64_t step = std::min<uint64_t>(2ull * segment_bytes_, config_.buffer_bytes / 2);
  const uint64_t offered = window_end_ - std::min(window_end_, next_);
  if (offered < step && free_bytes() >= offered + step) acknowledge_now();
}

std::span<const SequenceRange> Receiver::sack_ranges() const {
  return std::span(ranges_).first(std::min<size_t>(ranges_.size(), kMostSackBlocks));
}

}  // namespace weft::tcp
