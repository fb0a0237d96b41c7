// PFC watchdog of a switch's port: finds classes that the far end has paused for too long, drops or sends
// what is queued for them, and restores them when the pauses have ended. As SONiC's (sonic-swss, PfcWdOrch),
// but it notices a storm at the moment at which it has lasted for the detection time, and not at the next
// poll.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "links/mac_control.hpp"
#include "links/node.hpp"
#include "links/transmit_port.hpp"
#include "observe/statistics.hpp"
#include "time/engine.hpp"

namespace weft {

class PriorityFlowControl;

struct PfcWatchdogConfig {
  enum class Action : uint8_t { kDrop, kForward, kAlert };

  TimePs detection_ps = 0;
  TimePs restoration_ps = 0;
  Action action = Action::kDrop;
  uint32_t classes = 0;  // watched ones, a bit each
};

#define WEFT_PFC_WATCHDOG_COUNTERS(STATISTIC)                                                            \
  STATISTIC(uint64_t, storms_detected, "a class was paused for the detection time while packets waited") \
  STATISTIC(uint64_t, storms_restored, "a stormed class was not paused for the restoration time")        \
  STATISTIC(uint64_t, tx_ok_packets, "sent while their class was stormed")                               \
  STATISTIC(uint64_t, tx_dropped_packets,                                                                \
            "dropped from the queue, or for it, while their class was stormed")                          \
  STATISTIC(uint64_t, rx_ok_packets, "arrived by the port while their class was stormed, and handed on") \
  STATISTIC(uint64_t, rx_dropped_packets, "arrived by the port while their class was stormed, and dropped")

struct PfcWatchdogCounters {
  WEFT_STATISTICS(PfcWatchdogCounters, WEFT_PFC_WATCHDOG_COUNTERS)
};

struct PfcStormEvent {
  TimePs time_ps = 0;
  uint8_t priority_class = 0;
  bool is_restored = false;  // else detected
};

class PfcWatchdog : public Node {
 public:
  static constexpr size_t kMostEvents = 4096;  // that are kept; later ones are counted only

  // While a class is stormed, what arrives by the port comes here first: `receiver` is where its MAC hands
  // packets on to. Throws std::invalid_argument for times below 1 ps or no class.
  PfcWatchdog(Engine& engine, TransmitPort& transmit, PriorityFlowControl& pfc, Node*& receiver,
              const PfcWatchdogConfig& config);

  // The far end has paused a class, or let it go on.
  void on_pause_changed(int priority_class, bool paused);
  // Classes (a bit each) whose pauses the port does not obey now.
  uint32_t ignored_classes() const;
  uint32_t stormed_classes() const { return stormed_classes_; }

  void receive(int port, PacketPtr packet) override;
  Engine& engine() override { return engine_; }

  const PfcWatchdogConfig& config() const { return config_; }
  PfcWatchdogCounters counters(int priority_class) const;
  const std::vector<PfcStormEvent>& events() const { return events_; }
  void reset_counters();

 private:
  struct ClassState {
    TimePs changed_ps = 0;     // when its pause began or ended
    uint64_t sent_before = 0;  // packets of the class, when the storm was noticed
    PfcWatchdogCounters counters;
  };

  void look();
  // When a class is due for a change if nothing else happens; kNever: never.
  TimePs due_ps(int priority_class) const;
  bool is_paused(int priority_class) const { return (paused_classes_ >> priority_class & 1u) != 0; }
  bool is_stormed(int priority_class) const { return (stormed_classes_ >> priority_class & 1u) != 0; }
  void set_stormed(int priority_class, bool stormed);
  void apply();

  Engine& engine_;
  TransmitPort& transmit_;
  PriorityFlowControl& pfc_;
  Node*& receiver_;
  Node* node_;  // who takes packets of classes without a storm
  PfcWatchdogConfig config_;
  uint32_t paused_classes_ = 0;
  uint32_t stormed_classes_ = 0;
  std::array<ClassState, mac_control::kClasses> classes_{};
  std::vector<PfcStormEvent> events_;
  Timer look_;
};

}  // namespace weft
