#include "hosts/parameter_client.hpp"

#include <array>
#include <utility>

#include "hosts/rc_config.hpp"

namespace weft {
namespace {

RequestConfig of_count(RequestConfig requests, size_t count) {
  requests.requests = static_cast<uint32_t>(count);
  return requests;
}

}  // namespace

roce::RoceHeaders parameter_headers(const ParameterPath& path, uint32_t from, uint32_t to) {
  roce::RoceHeaders headers = headers_on_path(path);
  headers.bth.opcode = roce::kUdSendOnly;
  headers.bth.destination_qp = to;
  headers.deth = {path.q_key, from};
  return headers;
}

bool is_of_group(const ParameterPath& path, const roce::ParsedPacket& packet, parameter::Header& header) {
  if (packet.payload == nullptr || packet.payload_bytes < parameter::kHeaderBytes) return false;
  header = parameter::decode(packet.payload);
  return header.version == parameter::kVersion && header.kind <= parameter::kDone &&
         packet.payload_bytes == parameter::bytes_of(header.kind) && header.reserved == 0 &&
         header.group_id == path.group_id && header.epoch == path.epoch && packet.deth.q_key == path.q_key;
}

ParameterClient::ParameterClient(const ParameterPath& path, uint16_t client, RequestConfig requests,
                                 std::vector<ParameterRequest> asked, PacketPool& pool,
                                 ScheduleExecutor& executor)
    : RequestClient(of_count(requests, asked.size()), executor),
      path_(path),
      client_(client),
      asked_(std::move(asked)),
      pool_(pool),
      headers_(parameter_headers(path, parameter::kClientQueuePair, parameter::kStoreQueuePair)),
      template_(headers_),
      records_(asked_.size()) {}

PulledPacket ParameterClient::last_pulled() const {
  return {.payload_bytes = last_bytes_, .starts_message = true};
}

PacketPtr ParameterClient::compose(uint32_t sequence, uint32_t request) {
  const ParameterRequest& asked = asked_[request];
  const parameter::Header header{.kind = asked.is_push ? parameter::kPush : parameter::kPull,
                                 .group_id = path_.group_id,
                                 .epoch = path_.epoch,
                                 .client = client_,
                                 .block = asked.block,
                                 .sequence = sequence};
  const parameter::Words words = parameter::contents(asked.block, {client_, sequence});
  std::array<uint8_t, parameter::kLargestBytes> payload;
  parameter::encode(header, &words, payload.data());
  headers_.bth.psn = sequence & 0xFFFFFF;
  last_bytes_ = parameter::bytes_of(header.kind);
  return template_.build(pool_, headers_, payload.data(), last_bytes_);
}

void ParameterClient::on_packet(TimePs now, const roce::ParsedPacket& packet) {
  parameter::Header header;
  if (!is_of_group(path_, packet, header) || header.client != client_) return;
  const auto request = awaited(header.sequence);
  if (!request || header.block != asked_[*request].block) return;
  const bool is_push = asked_[*request].is_push;
  if (header.kind != (is_push ? parameter::kDone : parameter::kValue)) return;
  parameter::Writer writer{client_, header.sequence};
  if (!is_push) {
    const parameter::Words words = parameter::decode_block(packet.payload);
    writer = parameter::writer_of(words);
    if (words != parameter::contents(header.block, writer)) ++spoilt_blocks_;
  }
  ParameterRecord& record = records_[*request];
  record.finished_ps = now;
  record.block_version = header.block_version;
  record.writer = writer.client;
  record.writer_sequence = writer.sequence;
  record.cached = (header.flags & parameter::kCached) != 0;
  answered(now, header.sequence);
}

}  // namespace weft
