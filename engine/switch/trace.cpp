#include "switch/trace.hpp"

#include <utility>

namespace weft {

void SwitchTrace::mark(TraceNumbers& numbers, uint32_t port, TimePs now) {
  if (now < filter_.from_ps || now >= filter_.until_ps) return;
  if (filter_.port.has_value() && *filter_.port != port) return;
  ++arrivals_;
  if (search_ == nullptr && records_.size() >= kCapacityBytes) {
    ++packets_missed_;
    return;
  }
  // A number does not depend on which packets are traced.
  ++last_packet_;
  if (!filter_.only.empty()) {
    while (next_only_ < filter_.only.size() && filter_.only[next_only_] < arrivals_) ++next_only_;
    if (next_only_ == filter_.only.size() || filter_.only[next_only_] != arrivals_) return;
  }
  if (search_ != nullptr && !search_->begin(last_packet_, now)) {
    filter_.packets = 0;
    return;
  }
  --filter_.packets;
  numbers = {last_packet_, ++last_copy_};
}

void SwitchTrace::copied(TraceNumbers original, TraceNumbers& copy, uint32_t instance_type, TimePs now) {
  if (original.packet == 0) return;
  copy = {original.packet, ++last_copy_};
  record(original, TraceSite::kCopied, {copy.copy, instance_type}, now);
}

void SwitchTrace::append(const void* data, size_t size_bytes) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  records_.insert(records_.end(), bytes, bytes + size_bytes);
}

void SwitchTrace::record(TraceNumbers of, TraceSite site, std::initializer_list<uint32_t> values, TimePs now,
                         std::span<const uint8_t> bytes) {
  if (of.packet == 0) return;
  const size_t values_bytes = values.size() * sizeof(uint32_t);
  if (search_ != nullptr) {
    const std::span<const uint8_t> written(reinterpret_cast<const uint8_t*>(values.begin()), values_bytes);
    search_->see(of, static_cast<uint32_t>(site), written, bytes);
    return;
  }
  const Head head{of.packet, of.copy, static_cast<uint32_t>(site),
                  static_cast<uint32_t>(values_bytes + bytes.size()), now};
  append(&head, sizeof head);
  append(values.begin(), values_bytes);
  append(bytes.data(), bytes.size());
  if (ended_ && (site == TraceSite::kSent || site == TraceSite::kDropped)) ended_();
}

void SwitchTrace::record(TraceNumbers of, uint32_t site, std::span<const uint8_t> values,
                         std::span<const uint8_t> data, TimePs now) {
  if (of.packet == 0) return;
  if (search_ != nullptr) {
    search_->see(of, site, values, data);
    return;
  }
  const Head head{of.packet, of.copy, site, static_cast<uint32_t>(values.size() + data.size()), now};
  append(&head, sizeof head);
  append(values.data(), values.size());
  append(data.data(), data.size());
}

std::vector<uint8_t> SwitchTrace::take() { return std::exchange(records_, {}); }

}  // namespace weft
