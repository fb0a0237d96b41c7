// Priority-based flow control of one port (IEEE 802.1Q-2018, clause 36): asks the far end to pause classes
// whose packets fill the memory here, and obeys when the far end asks.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "links/mac_control.hpp"
#include "links/pfc_watchdog.hpp"
#include "links/transmit_port.hpp"
#include "observe/statistics.hpp"
#include "switch/shared_buffer.hpp"
#include "time/engine.hpp"

namespace weft {

struct PfcConfig {
  roce::MacAddress source_mac{};
  // How long a pause lasts unless it is refreshed (after half of that) or ended.
  uint16_t pause_quanta = 0xffff;
};

#define WEFT_PFC_CLASS_COUNTERS(STATISTIC)                    \
  STATISTIC(uint64_t, pauses_sent, "refreshed ones included") \
  STATISTIC(uint64_t, resumes_sent, "to the far end")         \
  STATISTIC(uint64_t, pauses_received, "from the far end")    \
  STATISTIC(uint64_t, resumes_received, "from the far end")   \
  STATISTIC(TimePs, paused_ps, "for how long this port's class was held, up to the last change")

struct PfcClassCounters {
  WEFT_STATISTICS(PfcClassCounters, WEFT_PFC_CLASS_COUNTERS)
};

class PriorityFlowControl : public IngressListener {
 public:
  // Throws std::invalid_argument for quanta of 0 or a port without a rate, whose bits take no time.
  PriorityFlowControl(Engine& engine, TransmitPort& port, PfcConfig config);

  // From the memory behind this port: ask the far end.
  void on_pause_wanted(int priority_class, bool wanted) override;
  void on_credit_freed(int /*priority_class*/, uint64_t /*bytes*/) override {}
  // Asks for pauses of these classes (a bit each) from now on, whatever memory says, as a broken NIC does. It
  // says nothing when it ends: the last pause runs out.
  void storm(uint32_t classes);
  // From the far end: obey.
  void on_pause_frame(const mac_control::PriorityPause& pause);
  // From now on, pauses that do not end are no longer obeyed as `config` says. Throws as PfcWatchdog, and
  // std::logic_error for a second watchdog.
  void enable_watchdog(const PfcWatchdogConfig& config, Node*& receiver);
  const PfcWatchdog* watchdog() const { return watchdog_.get(); }
  // Holds the port's classes as the far end and the watchdog say.
  void apply();
  // The link is new: nothing is paused, and what must be is asked for again.
  void restart();

  // Counters, with the pauses that last counted until now.
  PfcClassCounters counters(int priority_class) const;
  // Classes (a bit each) held by the far end.
  uint32_t paused_classes() const { return paused_classes_; }
  void reset_counters();

 private:
  void send(uint32_t classes);
  void on_refresh();
  void on_expiry();
  void set_paused(int priority_class, bool paused);
  uint32_t asked_classes() const { return wanted_classes_ | storm_classes_; }
  void arm_refresh();
  TimePs duration_ps(uint16_t quanta) const;

  Engine& engine_;
  TransmitPort& port_;
  PfcConfig config_;
  uint32_t wanted_classes_ = 0;
  uint32_t storm_classes_ = 0;
  uint32_t paused_classes_ = 0;
  std::array<TimePs, mac_control::kClasses> paused_since_ps_{};
  std::array<TimePs, mac_control::kClasses> paused_until_ps_{};
  std::array<PfcClassCounters, mac_control::kClasses> counters_{};
  Timer refresh_;
  Timer expiry_;
  std::unique_ptr<PfcWatchdog> watchdog_;
};

}  // namespace weft
