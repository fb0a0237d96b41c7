// A worker that pulls blocks from a parameter store and pushes others (docs/spec/services.md).
#pragma once

#include <cstdint>
#include <vector>

#include "hosts/parameter_format.hpp"
#include "hosts/request_client.hpp"
#include "packets/header_template.hpp"
#include "packets/packet.hpp"
#include "packets/roce_codec.hpp"
#include "time/time.hpp"

namespace weft {

// What both ends know of their group, and where the other end is.
struct ParameterPath {
  uint16_t group_id = 0;
  uint16_t epoch = 0;
  uint32_t q_key = 0;
  roce::MacAddress source_mac{};
  roce::MacAddress destination_mac{};
  roce::IpAddress source_ip;
  roce::IpAddress destination_ip;  // of a client: the store's; of the store: any of the IP version
  uint16_t source_udp_port = 0xC000;
};

struct ParameterRequest {
  uint32_t block = 0;
  bool is_push = false;
};

// A request and its answer: the block's version, who wrote it, and whether a switch has answered.
struct ParameterRecord {
  TimePs started_ps = 0;
  TimePs finished_ps = 0;
  uint32_t block_version = 0;
  uint32_t writer = 0;
  uint32_t writer_sequence = 0;
  bool cached = false;
};

class ParameterClient : public RequestClient {
 public:
  // `requests.requests` is ignored: it is the number of what is `asked`. `pool` and `executor` outlive the
  // client. Throws as check() of RequestConfig.
  ParameterClient(const ParameterPath& path, uint16_t client, RequestConfig requests,
                  std::vector<ParameterRequest> asked, PacketPool& pool, ScheduleExecutor& executor);

  void on_packet(TimePs now, const roce::ParsedPacket& packet) override;
  PulledPacket last_pulled() const override;

  // Of all requests, in their order; those without an answer are zeros.
  const std::vector<ParameterRecord>& records() const { return records_; }
  // Answers whose block is no contents that anybody writes.
  uint64_t spoilt_blocks() const { return spoilt_blocks_; }

 protected:
  void begin(TimePs now, uint32_t request) override { records_[request].started_ps = now; }
  PacketPtr compose(uint32_t sequence, uint32_t request) override;

 private:
  const ParameterPath path_;
  const uint16_t client_;
  const std::vector<ParameterRequest> asked_;
  PacketPool& pool_;
  roce::RoceHeaders headers_;
  roce::HeaderTemplate template_;
  std::vector<ParameterRecord> records_;
  size_t last_bytes_ = 0;
  uint64_t spoilt_blocks_ = 0;
};

// Headers of what travels between a client and the store.
roce::RoceHeaders parameter_headers(const ParameterPath& path, uint32_t from, uint32_t to);
// Whether a packet is of the group, and as long as its kind is.
bool is_of_group(const ParameterPath& path, const roce::ParsedPacket& packet, parameter::Header& header);

}  // namespace weft
