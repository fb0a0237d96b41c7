#include "hosts/parameter_store.hpp"

#include <array>

namespace weft {

ParameterStore::ParameterStore(const ParameterPath& path, uint32_t blocks, uint32_t clients, uint32_t window,
                               PacketPool& pool)
    : path_(path),
      clients_(clients),
      window_(window),
      pool_(pool),
      headers_(parameter_headers(path, parameter::kStoreQueuePair, parameter::kClientQueuePair)),
      blocks_(blocks),
      pushed_(size_t{clients} * window) {}

PulledPacket ParameterStore::last_pulled() const {
  return {.payload_bytes = last_bytes_, .starts_message = true};
}

bool ParameterStore::push(parameter::Header& header) {
  Pushed& last = pushed_[size_t{header.client} * window_ + header.sequence % window_];
  const auto age = static_cast<int32_t>(header.sequence - last.sequence);
  if (last.is_there && age < 0) return false;  // its client has had the answer
  if (last.is_there && age == 0) {
    ++counters_.repeated_pushes;
  } else {
    Block& block = blocks_[header.block];
    ++block.version;
    block.writer = {header.client, header.sequence};
    last = {true, header.sequence, block.version};
    ++counters_.pushes;
  }
  header.block_version = last.block_version;
  return true;
}

void ParameterStore::on_packet(TimePs, const roce::ParsedPacket& packet) {
  parameter::Header header;
  if (!is_of_group(path_, packet, header) || header.client >= clients_ || header.block >= blocks_.size() ||
      header.kind > parameter::kPush || header.flags != 0) {
    ++counters_.refused_packets;
    return;
  }
  const Block& block = blocks_[header.block];
  if (header.kind == parameter::kPull) {
    header.kind = parameter::kValue;
    header.block_version = block.version;
    ++counters_.pulls;
  } else {
    if (!push(header)) return;
    header.kind = parameter::kDone;
  }
  answers_.push_back({packet.source_ip, header, block.writer});
}

PacketPtr ParameterStore::pull(TimePs) {
  if (answers_.empty()) return nullptr;
  const Answer answer = answers_.front();
  answers_.pop_front();
  const parameter::Words words = parameter::contents(answer.header.block, answer.writer);
  std::array<uint8_t, parameter::kLargestBytes> payload;
  parameter::encode(answer.header, &words, payload.data());
  headers_.destination_ip = answer.to;
  headers_.bth.psn = answer.header.sequence & 0xFFFFFF;
  last_bytes_ = parameter::bytes_of(answer.header.kind);
  return roce::build_packet(pool_, headers_, payload.data(), last_bytes_);
}

}  // namespace weft
