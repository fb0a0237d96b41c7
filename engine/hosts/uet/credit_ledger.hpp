// What an initiator of receiver-credit congestion control (RCCC) may send over its PDC: what the target has
// granted, and some bytes in advance. Source: Ultra Ethernet Specification 1.0, section 3.6 (RCCC).
#pragma once

#include <algorithm>
#include <cstdint>

#include "packets/uet_frame.hpp"

namespace weft::uet {

// Counters of credit on the wire are 24 bits of so many bytes, and wrap. Assumed: docs/uet.md.
constexpr uint32_t kCreditUnitBytes = 256;
constexpr uint32_t kCreditMask = 0xFFFFFF;

constexpr uint32_t credit_units(uint64_t bytes) {
  return static_cast<uint32_t>((bytes + kCreditUnitBytes - 1) / kCreditUnitBytes) & kCreditMask;
}
// The number of bytes nearest to `near` that has these units.
constexpr uint64_t credit_bytes(uint32_t units, uint64_t near) {
  const uint64_t near_units = near / kCreditUnitBytes;
  const uint32_t ahead = (units - static_cast<uint32_t>(near_units)) & kCreditMask;
  const uint32_t behind = kCreditMask + 1 - ahead;
  if (ahead <= kCreditMask / 2) return (near_units + ahead) * kCreditUnitBytes;
  return behind > near_units ? 0 : (near_units - behind) * kCreditUnitBytes;
}

class CreditLedger {
 public:
  explicit CreditLedger(uint64_t advance_bytes) : advance_bytes_(advance_bytes) {}

  // A new PDC.
  void start() {
    granted_bytes_ = spent_bytes_ = 0;
    allowed_bytes_ = advance_bytes_;
  }
  bool covers(uint64_t frame_bytes) const {
    return spent_bytes_ + frame_bytes <= granted_bytes_ + allowed_bytes_;
  }
  void spend(uint64_t frame_bytes) { spent_bytes_ += frame_bytes; }
  // All credit ever granted to this PDC, as on the wire. Returns whether that is more than was known.
  bool grant(uint32_t units) {
    const uint64_t bytes = credit_bytes(units, granted_bytes_);
    if (bytes <= granted_bytes_) return false;
    granted_bytes_ = bytes;
    return true;
  }
  // Something has been lost, maybe a grant: one frame goes without, and what the target then says counts.
  void forgive(uint64_t frame_bytes) {
    if (!covers(frame_bytes)) allowed_bytes_ = spent_bytes_ + frame_bytes - granted_bytes_;
  }
  // The credit that is to be asked for if so much is still to be sent. What is left in the end lets the next
  // message begin at once. No more beyond what is granted than the target can tell from less.
  uint64_t wanted_bytes(uint64_t left_bytes) const {
    return std::min(spent_bytes_ + left_bytes, granted_bytes_ + uint64_t{kCreditMask / 2} * kCreditUnitBytes);
  }

 private:
  uint64_t advance_bytes_;
  uint64_t granted_bytes_ = 0;
  uint64_t spent_bytes_ = 0;
  uint64_t allowed_bytes_ = 0;  // beyond what is granted
};

}  // namespace weft::uet
