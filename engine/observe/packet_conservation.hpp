// Packet conservation of an engine under the virtual clock: every packet that came into being, where it
// ended, and what is under way in between. At every instant between two events
//
//   entered + resized = left + dropped + queued + in flight + in switches
//
// in packets and in bytes on the wire, where `resized` is of bytes only. A host's packets enter as its port
// takes them and leave as its NIC accepts them; what a NIC has fetched ahead, or has not yet put into memory,
// is the host's. Messages over scale-up links are no packets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "memory/message.hpp"
#include "observe/traffic_counter.hpp"

namespace weft {

// Reasons of drops have one numbering over all components that drop, so that one column holds them.
enum class DropPlace : uint8_t { kQueue, kLink, kSwitch, kNic, kIp, kCount };
constexpr int64_t drop_code(DropPlace place, size_t reason) {
  return static_cast<int64_t>(place) << 8 | static_cast<int64_t>(reason);
}

// Where packets come from: enumerator, name, and what is said of them after "packets".
#define WEFT_PACKET_ORIGINS(ORIGIN)                                 \
  ORIGIN(kSent, "sent", "sent by hosts")                            \
  ORIGIN(kFromController, "from_controller", "from the controller") \
  ORIGIN(kMulticast, "multicast", "multicast copies")               \
  ORIGIN(kCloned, "cloned", "clones")                               \
  ORIGIN(kDuplicated, "duplicated", "duplicated by links")          \
  ORIGIN(kFlowControl, "flow_control", "of flow control")           \
  ORIGIN(kInjected, "injected", "injected")

// Where packets end that were not dropped.
#define WEFT_PACKET_ENDS(END)                              \
  END(kDelivered, "delivered", "delivered to hosts")       \
  END(kToController, "to_controller", "to the controller") \
  END(kFlowControl, "flow_control", "of flow control")     \
  END(kCollected, "collected", "collected")

#define WEFT_ENUMERATOR(enumerator, name, meaning) enumerator,
enum class PacketOrigin : uint8_t { WEFT_PACKET_ORIGINS(WEFT_ENUMERATOR) kCount };
enum class PacketEnd : uint8_t { WEFT_PACKET_ENDS(WEFT_ENUMERATOR) kCount };

struct NameAndMeaning {
  const char* name;
  const char* meaning;
};
// By number.
std::span<const NameAndMeaning> packet_origins();
std::span<const NameAndMeaning> packet_ends();

// Packets that exist: in the queues of ports, on links (serialisation included), and in switches that take
// their time before they queue them.
struct HeldPackets {
  TrafficCounter queued;
  TrafficCounter in_flight;
  TrafficCounter in_switches;
};

class PacketConservation {
 public:
  void enter(PacketOrigin source, const TrafficCounter& traffic) {
    entered_[static_cast<size_t>(source)].add(traffic);
  }
  void leave(PacketEnd sink, const TrafficCounter& traffic) { left_[static_cast<size_t>(sink)].add(traffic); }
  void drop(DropPlace place, size_t reason, const TrafficCounter& traffic) {
    std::vector<TrafficCounter>& reasons = dropped_[static_cast<size_t>(place)];
    if (reason >= reasons.size()) [[unlikely]]
      reasons.resize(reason + 1);
    reasons[reason].add(traffic);
  }
  // A switch has made a packet longer or shorter.
  void resize(int64_t by_bytes) { resized_bytes_ += by_bytes; }

  // Adds to `held` what a component holds now. The component is not destroyed before the engine.
  using CountHeld = void (*)(const void* component, HeldPackets& held);
  void add_holder(const void* component, CountHeld count_held) {
    holders_.push_back({component, count_held});
  }

 private:
  friend class ConservationBalance;
  struct Holder {
    const void* component;
    CountHeld count_held;
  };

  std::array<TrafficCounter, static_cast<size_t>(PacketOrigin::kCount)> entered_{};
  std::array<TrafficCounter, static_cast<size_t>(PacketEnd::kCount)> left_{};
  int64_t resized_bytes_ = 0;
  std::array<std::vector<TrafficCounter>, static_cast<size_t>(DropPlace::kCount)> dropped_;
  std::vector<Holder> holders_;
};

// The sum over several engines at one instant.
class ConservationBalance {
 public:
  void add(const PacketConservation& one);
  // Of another process, as it has put it.
  void add(MessageReader& message);
  void put(MessageWriter& message) const;

  const TrafficCounter& entered(PacketOrigin source) const { return entered_[static_cast<size_t>(source)]; }
  const TrafficCounter& left(PacketEnd sink) const { return left_[static_cast<size_t>(sink)]; }
  // By drop_code().
  const std::map<int64_t, TrafficCounter>& dropped() const { return dropped_; }
  int64_t resized_bytes() const { return resized_bytes_; }
  const HeldPackets& held() const { return held_; }
  // What has entered and is nowhere: 0, unless packets were lost or made unnoticed.
  int64_t missing_packets() const;
  int64_t missing_bytes() const;

 private:
  TrafficCounter total_entered() const;
  TrafficCounter total_accounted() const;

  std::array<TrafficCounter, static_cast<size_t>(PacketOrigin::kCount)> entered_{};
  std::array<TrafficCounter, static_cast<size_t>(PacketEnd::kCount)> left_{};
  std::map<int64_t, TrafficCounter> dropped_;
  int64_t resized_bytes_ = 0;
  HeldPackets held_;
};

}  // namespace weft
