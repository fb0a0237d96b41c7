// The two byte streams of a connection in memory: what is sent until it is acknowledged, what has arrived
// until it is read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "tcp/connection.hpp"

namespace weft::tcp {

class SentBytes {
 public:
  void append(std::string_view bytes) { kept_.append(bytes); }
  // Of bytes that are not acknowledged.
  std::string_view at(uint64_t offset, uint32_t length) const {
    if (length == 0) return {};
    return std::string_view(kept_).substr(static_cast<size_t>(offset - first_), length);
  }
  void release(uint64_t acknowledged_offset) {
    if (acknowledged_offset - first_ < kept_.size() / 2 + 1)
      return;  // so that each byte moves but a few times
    kept_.erase(0, static_cast<size_t>(acknowledged_offset - first_));
    first_ = acknowledged_offset;
  }

 private:
  std::string kept_;
  uint64_t first_ = 0;  // offset of the first that is kept
};

class ReceivedBytes final : public DataSink {
 public:
  // Of the segment that is about to be passed to the connection.
  void set_payload(std::span<const uint8_t> payload) { payload_ = payload; }
  void on_bytes(uint64_t stream_offset, uint32_t payload_begin, uint32_t length) override {
    const size_t begin = static_cast<size_t>(stream_offset - first_);
    if (kept_.size() < begin + length) kept_.resize(begin + length);
    std::memcpy(kept_.data() + begin, payload_.data() + payload_begin, length);
  }
  // Of those that are in order.
  std::string take(uint64_t length) {
    std::string taken = kept_.substr(0, static_cast<size_t>(length));
    kept_.erase(0, taken.size());
    first_ += taken.size();
    return taken;
  }

 private:
  std::span<const uint8_t> payload_;
  std::string kept_;
  uint64_t first_ = 0;
};

}  // namespace weft::tcp
