// What happens to single packets, step by step: records that the switch and instrumented programs write and
// that switch/trace turns into events. A program that is not instrumented has no code for it.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "switch/abi.hpp"
#include "switch/packet_search.hpp"
#include "time/time.hpp"

namespace weft {

// Sites of the switch itself; those of a program follow from kFirstProgramSite on, numbered by lowering.
// Behind each its data, 32-bit little-endian integers unless said otherwise.
enum class TraceSite : uint32_t {
  kReceived = 0,        // port, instance type, timestamp (64 bits), the packet's bytes: a pass begins
  kCopied = 1,          // number of the new copy, its instance type
  kMulticast = 2,       // group, number of replicas
  kNoCloneSession = 3,  // session
  kDigest = 4,          // learn list
  kEnqueued = 5,        // port, class
  kEgress = 6,          // port, replication id, instance type, the queue's depth as the packet came and as it
                        // left, its time there; timestamps (64 bits) of then and now
  kSent = 7,            // port, the packet's bytes
  kDropped = 8,         // DropReason
  kTrimmed = 9,         // bytes that are left of the packet, the class of the queue it goes to instead
};
constexpr uint32_t kFirstProgramSite = 64;

class SwitchTrace {
 public:
  struct Filter {
    std::optional<uint32_t> port;                          // packets received there; none: anywhere
    uint64_t packets = 0;                                  // so many, then no more
    TimePs from_ps = 0;                                    // packets received from then on,
    TimePs until_ps = std::numeric_limits<TimePs>::max();  // and before this
    std::vector<uint64_t> only =
        {};  // if not empty, of these only the ones with these numbers, from 1, ascending
  };
  // Each record: this head in native byte order, then `size_bytes` of data.
  struct Head {
    uint32_t packet;  // numbered from 1
    uint32_t copy;    // of the packet; the packet itself is 1
    uint32_t site;
    uint32_t size_bytes;
    int64_t time_ps;
  };

  // Records of packets that are under way keep coming after the filter is exhausted.
  // `ended` may be empty; otherwise it is called after each record of a traced packet, or a copy of one, that
  // has left or was dropped, up to stop().
  void start(Filter filter, std::function<void()> ended = {}) {
    filter_ = std::move(filter);
    arrivals_ = next_only_ = 0;
    ended_ = std::move(ended);
  }
  // Nothing is recorded; the filter's packets are only looked at.
  void search(Filter filter, std::unique_ptr<PacketSearch> search) {
    start(std::move(filter));
    search_ = std::move(search);
  }
  PacketSearch* packet_search() { return search_.get(); }
  void stop() {
    filter_ = Filter();
    ended_ = {};
    search_.reset();
  }
  // Packets that were not traced because nobody fetched the records of those before.
  uint64_t packets_missed() const { return packets_missed_; }

  // Whether packets that arrive may be traced.
  bool is_waiting() const { return filter_.packets != 0; }
  // Whether records of a site are of any use.
  bool wants(uint32_t site) const { return search_ == nullptr || search_->wants(site); }
  // Called as a packet arrives; numbers it if it is to be traced.
  void begin(TraceNumbers& numbers, uint32_t port, TimePs now) {
    if (filter_.packets != 0) mark(numbers, port, now);
  }
  // Gives a copy a number of its own and records it in those of the original.
  void copied(TraceNumbers original, TraceNumbers& copy, uint32_t instance_type, TimePs now);

  void record(TraceNumbers of, TraceSite site, std::initializer_list<uint32_t> values, TimePs now,
              std::span<const uint8_t> bytes = {});
  void record(TraceNumbers of, uint32_t site, std::span<const uint8_t> values, std::span<const uint8_t> data,
              TimePs now);

  // All records so far, in the order in which they were written.
  std::vector<uint8_t> take();

 private:
  static constexpr size_t kCapacityBytes = 16 * 1024 * 1024;

  void mark(TraceNumbers& numbers, uint32_t port, TimePs now);
  void append(const void* data, size_t size_bytes);

  Filter filter_;
  std::function<void()> ended_;
  std::unique_ptr<PacketSearch> search_;
  uint64_t arrivals_ = 0;  // packets that the filter lets pass, without its list and count
  size_t next_only_ = 0;
  uint32_t last_packet_ = 0;
  uint32_t last_copy_ = 0;
  uint64_t packets_missed_ = 0;
  std::vector<uint8_t> records_;
};

}  // namespace weft
