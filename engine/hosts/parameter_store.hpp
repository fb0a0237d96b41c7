// A host that keeps versioned blocks: it answers pulls, and carries out each push once
// (docs/spec/services.md).
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "hosts/parameter_client.hpp"
#include "hosts/parameter_format.hpp"
#include "hosts/queue_pair.hpp"
#include "observe/statistics.hpp"
#include "packets/packet.hpp"
#include "packets/roce_codec.hpp"
#include "time/time.hpp"

namespace weft {

#define WEFT_PARAMETER_STORE_COUNTERS(STATISTIC)                     \
  STATISTIC(uint64_t, pulls, "answered, those asked again included") \
  STATISTIC(uint64_t, pushes, "carried out")                         \
  STATISTIC(uint64_t, repeated_pushes, "answered again")             \
  STATISTIC(uint64_t, refused_packets, "of another group, or out of range")

struct ParameterStoreCounters {
  WEFT_STATISTICS(ParameterStoreCounters, WEFT_PARAMETER_STORE_COUNTERS)
};

class ParameterStore : public QueuePair {
 public:
  // `clients` with `window` requests under way each, a power of two. `pool` outlives the store.
  ParameterStore(const ParameterPath& path, uint32_t blocks, uint32_t clients, uint32_t window,
                 PacketPool& pool);

  void on_packet(TimePs now, const roce::ParsedPacket& packet) override;
  PacketPtr pull(TimePs now) override;
  PulledPacket last_pulled() const override;
  TimePs next_deadline() const override { return kNever; }
  void on_deadline(TimePs) override {}

  const ParameterStoreCounters& counters() const { return counters_; }

 private:
  struct Block {
    uint32_t version = 1;
    parameter::Writer writer{parameter::kNobody, 0};
  };
  // The last push of a client among those of the same place in its window.
  struct Pushed {
    bool is_there = false;
    uint32_t sequence = 0;
    uint32_t block_version = 0;
  };
  struct Answer {
    roce::IpAddress to;
    parameter::Header header;
    parameter::Writer writer;
  };

  // Whether it is to be answered; sets the version.
  bool push(parameter::Header& header);

  const ParameterPath path_;
  const uint32_t clients_;
  const uint32_t window_;
  PacketPool& pool_;
  roce::RoceHeaders headers_;
  std::vector<Block> blocks_;
  std::vector<Pushed> pushed_;
  std::deque<Answer> answers_;
  size_t last_bytes_ = 0;
  ParameterStoreCounters counters_;
};

}  // namespace weft
