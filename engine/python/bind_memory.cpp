// A switch's shared buffer and a port's flow control in Python; see python/bind_core.cpp about locks.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "links/pfc_headroom.hpp"
#include "links/port_mac.hpp"
#include "python/bind_codec.hpp"
#include "python/bindings.hpp"
#include "python/bindings_support.hpp"
#include "python/statistics_dict.hpp"
#include "python/typed.hpp"
#include "switch/shared_buffer.hpp"
#include "switch/switch.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

namespace {

constexpr int kClasses = SharedBuffer::kClasses;

std::shared_ptr<SharedBuffer> make_buffer(Engine& engine, uint64_t capacity_bytes,
                                          const std::array<uint64_t, kClasses>& reserved_bytes,
                                          const std::array<double, kClasses>& alpha) {
  SharedBufferConfig config;
  config.capacity_bytes = capacity_bytes;
  for (size_t i = 0; i < kClasses; ++i) config.classes[i] = {reserved_bytes[i], alpha[i]};
  return make_component<SharedBuffer>(engine, engine, config);
}

std::array<double, kClasses> alpha_of_one() {
  std::array<double, kClasses> alpha{};
  alpha.fill(1.0);
  return alpha;
}

Record<"BufferStats"> buffer_stats(SharedBuffer& buffer) {
  PythonGuard guard(buffer.engine());
  py::dict ports;
  for (const uint32_t number : buffer.ports()) {
    py::list queues;
    py::list ingress;
    for (int each = 0; each < kClasses; ++each) {
      queues.append(buffer.queue_bytes(number, each));
      ingress.append(statistics_dict<IngressStatistics>(buffer.group(number, each)));
    }
    ports[py::int_(number)] = py::dict("queue_bytes"_a = queues, "ingress"_a = ingress);
  }
  py::list class_bytes;
  for (int each = 0; each < kClasses; ++each) class_bytes.append(buffer.class_bytes(each));
  return py::dict("capacity_bytes"_a = buffer.config().capacity_bytes,
                  "shared_capacity_bytes"_a = buffer.shared_capacity_bytes(),
                  "used_bytes"_a = buffer.used_bytes(), "max_used_bytes"_a = buffer.max_used_bytes(),
                  "shared_used_bytes"_a = buffer.shared_used_bytes(), "class_bytes"_a = class_bytes,
                  "ports"_a = ports);
}

void bind_buffer(py::module_& m) {
  py::class_<SharedBuffer, std::shared_ptr<SharedBuffer>>(
      m, "SharedBuffer",
      R"doc(A switch's packet memory. reserved_bytes and alpha are by class (eight of each).

Raises ValueError for a capacity of 0 or an alpha that is not above 0.)doc")
      .def(py::init(&make_buffer), "engine"_a, py::kw_only(), "capacity_bytes"_a,
           "reserved_bytes"_a = std::array<uint64_t, kClasses>{}, "alpha"_a = alpha_of_one(),
           py::keep_alive<1, 2>())
      .def(
          "add_port",
          [](SharedBuffer& buffer, uint32_t number) {
            PythonGuard guard(buffer.engine());
            buffer.add_port(number);
          },
          "number"_a, "Add a port and its queues' reservations. Raises ValueError when they do not fit.")
      .def(
          "threshold_bytes",
          [](SharedBuffer& buffer, int priority_class) {
            PythonGuard guard(buffer.engine());
            return buffer.threshold_bytes(priority_class);
          },
          "priority_class"_a, "What a queue of the class may take of the shared memory now.")
      .def("stats", &buffer_stats)
      .def("reset_stats", [](SharedBuffer& buffer) {
        PythonGuard guard(buffer.engine());
        buffer.reset_counters();
      });
}

py::list pfc_stats(const PriorityFlowControl& pfc) {
  py::list classes;
  for (int each = 0; each < kClasses; ++each) {
    py::dict stats = statistics_dict(pfc.counters(each));
    stats["is_paused"] = (pfc.paused_classes() >> each & 1u) != 0;
    classes.append(stats);
  }
  return classes;
}

py::object watchdog_stats(const PriorityFlowControl* pfc) {
  if (pfc == nullptr || pfc->watchdog() == nullptr) return py::none();
  const PfcWatchdog& watchdog = *pfc->watchdog();
  py::list classes;
  for (int each = 0; each < kClasses; ++each) {
    if ((watchdog.config().classes >> each & 1u) == 0) continue;
    py::dict stats("priority_class"_a = each);
    stats.attr("update")(statistics_dict(watchdog.counters(each)));
    stats["is_stormed"] = (watchdog.stormed_classes() >> each & 1u) != 0;
    classes.append(stats);
  }
  py::list events;
  for (const PfcStormEvent& event : watchdog.events())
    events.append(py::dict("time_ps"_a = event.time_ps, "priority_class"_a = int{event.priority_class},
                           "is_restored"_a = event.is_restored));
  return py::dict("classes"_a = classes, "events"_a = events);
}

py::object credit_stats(const CreditFlowControl* credits) {
  if (credits == nullptr) return py::none();
  py::list lanes;
  for (int each = 0; each < kClasses; ++each) {
    if (!credits->is_lane(each)) continue;
    py::dict stats("priority_class"_a = each);
    stats.attr("update")(statistics_dict(credits->lane_counters(each)));
    stats["is_stalled"] = credits->is_stalled(each);
    stats["available_blocks"] = credits->available_blocks(each);
    lanes.append(stats);
  }
  py::dict stats = statistics_dict(credits->counters());
  stats["lanes"] = lanes;
  return stats;
}

Record<"PortMacStats"> mac_stats(PortMac& mac) {
  PythonGuard guard(mac.engine());
  py::dict stats = statistics_dict(mac.counters());
  stats["passing"] = counter_dict(mac.passing());
  stats["credits"] = credit_stats(mac.credits());
  stats["pfc"] = mac.pfc() == nullptr ? py::object(py::none()) : py::object(pfc_stats(*mac.pfc()));
  stats["watchdog"] = watchdog_stats(mac.pfc());
  return stats;
}

uint32_t bits_of(const std::vector<int>& classes) {
  uint32_t bits = 0;
  for (const int each : classes) {
    if (each < 0 || each >= kClasses)
      throw std::invalid_argument("class " + std::to_string(each) + " (0 to 7)");
    bits |= 1u << each;
  }
  return bits;
}

void enable_watchdog(PortMac& mac, const std::vector<int>& classes, TimePs detection_ps,
                     TimePs restoration_ps, const std::string& action) {
  PfcWatchdogConfig config{detection_ps, restoration_ps, PfcWatchdogConfig::Action::kDrop, bits_of(classes)};
  if (action == "forward")
    config.action = PfcWatchdogConfig::Action::kForward;
  else if (action == "alert")
    config.action = PfcWatchdogConfig::Action::kAlert;
  else if (action != "drop")
    throw std::invalid_argument("action '" + action + "' of a PFC watchdog (drop, forward, alert)");
  PythonGuard guard(mac.engine());
  mac.enable_watchdog(config);
}

void set_pause_limits(PortMac& mac, SharedBuffer& buffer, uint32_t number, int priority_class,
                      uint64_t headroom_bytes, uint64_t xoff_bytes, double alpha, uint64_t hysteresis_bytes) {
  PythonGuard guard(mac.engine());
  mac.set_ingress_limits(buffer, number, priority_class,
                         {.kind = IngressLimits::Kind::kPause,
                          .own_bytes = headroom_bytes,
                          .xoff_bytes = xoff_bytes,
                          .alpha = alpha,
                          .hysteresis_bytes = hysteresis_bytes});
}

void classify_by_dscp(PortMac& mac, const std::map<int, int>& classes) {
  ClassByDscp by_dscp;
  by_dscp.fill(Packet::kNoLane);
  for (const auto& [dscp, priority_class] : classes) {
    if (dscp < 0 || dscp >= kDscpCount)
      throw std::invalid_argument("DSCP " + std::to_string(dscp) + " (0 to 63)");
    if (priority_class < 0 || priority_class >= kClasses)
      throw std::invalid_argument("class " + std::to_string(priority_class) + " for DSCP " +
                                  std::to_string(dscp) + " (0 to 7)");
    by_dscp[static_cast<size_t>(dscp)] = static_cast<uint8_t>(priority_class);
  }
  PythonGuard guard(mac.engine());
  mac.classify_by_dscp(by_dscp);
}

void enable_credits(PortMac& mac, const std::string& source_mac, const std::vector<int>& classes,
                    uint64_t buffer_bytes, std::optional<uint64_t> peer_buffer_bytes,
                    uint64_t largest_frame_bytes, TimePs update_interval_ps) {
  CreditConfig config;
  config.source_mac = parse_mac(source_mac);
  config.lanes = bits_of(classes);
  config.buffer_bytes = buffer_bytes;
  config.peer_buffer_bytes = peer_buffer_bytes.value_or(buffer_bytes);
  config.largest_frame_bytes = largest_frame_bytes;
  config.update_interval_ps = update_interval_ps;
  PythonGuard guard(mac.engine());
  mac.enable_credits(config);
}

void bind_mac(py::module_& m) {
  py::class_<PortMac, Node, std::shared_ptr<PortMac>>(
      m, "PortMac",
      "The receiving half of a port with flow control, in front of `node`; `transmit` is its sending half.")
      .def(py::init([](Engine& engine, TransmitPort& transmit, Node& node, int port) {
             return make_component<PortMac>(engine, engine, transmit, node, port);
           }),
           "engine"_a, "transmit"_a, "node"_a, "port"_a = 0, py::keep_alive<1, 2>())
      .def(
          "enable_pfc",
          [](PortMac& mac, const std::string& source_mac, uint16_t pause_quanta) {
            PythonGuard guard(mac.engine());
            mac.enable_pfc({parse_mac(source_mac), pause_quanta});
          },
          py::kw_only(), "source_mac"_a, "pause_quanta"_a = PfcConfig().pause_quanta,
          "Obey PFC frames. Raises ValueError for an unpaced port or quanta of 0.")
      .def("enable_watchdog", &enable_watchdog, py::kw_only(), "classes"_a, "detection_ps"_a,
           "restoration_ps"_a, "action"_a = "drop",
           R"doc(Stop obeying pauses of these classes that do not end, as SONiC's PFC watchdog.

A class that has been paused for detection_ps while a packet waited is stormed, until it has not been paused for
restoration_ps: its packets are dropped (action drop), sent nevertheless (forward), or left as they are (alert).
Raises ValueError for a time below 1 ps, no class, or another action; RuntimeError without PFC.)doc")
      .def(
          "storm",
          [](PortMac& mac, const std::vector<int>& classes) {
            PythonGuard guard(mac.engine());
            mac.storm(bits_of(classes));
          },
          "classes"_a,
          R"doc(Ask for pauses of these classes without end, as a broken NIC does; none: stop, and let the last run out.

Raises ValueError for a class that there is not, RuntimeError without PFC.)doc")
      .def(
          "set_pause_limits", &set_pause_limits, "buffer"_a, "number"_a, "priority_class"_a, py::kw_only(),
          "headroom_bytes"_a, "xoff_bytes"_a = 0, "alpha"_a = 0.0, "hysteresis_bytes"_a = 0,
          R"doc(Pause the far end when what came in here holds more than xoff_bytes, or alpha times the free memory.

It goes on below the threshold less hysteresis_bytes. Raises ValueError for a class or port that is not there,
without a threshold, or when the headroom does not fit; RuntimeError without PFC.)doc")
      .def("enable_credits", &enable_credits, py::kw_only(), "source_mac"_a, "classes"_a, "buffer_bytes"_a,
           "peer_buffer_bytes"_a = py::none(), "largest_frame_bytes"_a,
           "update_interval_ps"_a = CreditConfig().update_interval_ps,
           R"doc(Send each class within the far end's credits, and give it credits for buffer_bytes.

`peer_buffer_bytes`: what the far end has, by default as much. The sender waits until it has credit for a frame
of largest_frame_bytes. Raises ValueError for no class, or a buffer below such a frame or above 128 KiB;
RuntimeError at a port with PFC.)doc")
      .def(
          "set_credit_memory",
          [](PortMac& mac, SharedBuffer& buffer, uint32_t number, int priority_class) {
            PythonGuard guard(mac.engine());
            mac.set_credit_memory(buffer, number, priority_class);
          },
          "buffer"_a, "number"_a, "priority_class"_a,
          R"doc(Take the memory of a class from a buffer, in which this is port `number`.

Without it everything is taken at once. Raises ValueError when it does not fit, RuntimeError where the class has
no credits.)doc")
      .def(
          "classify_by_dscp", &classify_by_dscp, "classes"_a,
          R"doc(Take frames for what their sender queued in the class of their DSCP, as those from an interface are.

Those of other DSCPs belong to no lane, and so to the class in which they are queued here. Raises ValueError for
a DSCP or class that there is not.)doc")
      .def(
          "set_switching",
          [](PortMac& mac, TimePs latency_ps, bool cut_through, uint64_t header_limit_bytes,
             Switch* parsed_by) {
            PythonGuard guard(mac.engine());
            mac.set_switching({latency_ps, cut_through, header_limit_bytes}, parsed_by);
          },
          py::kw_only(), "latency_ps"_a = 0, "cut_through"_a = false,
          "header_limit_bytes"_a = SwitchingConfig().header_limit_bytes, "parsed_by"_a = py::none(),
          R"doc(Hand a packet to the node `latency_ps` after it has come whole, or with cut_through after its headers have.

What the program of `parsed_by` parses is header; a packet with more than `header_limit_bytes` of it is stored
first. Cut-through needs a link that is early. Raises ValueError for a negative latency, or cut-through at an
unpaced port or without a switch.)doc")
      .def(
          "restart",
          [](PortMac& mac) {
            PythonGuard guard(mac.engine());
            mac.restart();
          },
          "Forget what the far end had asked for, and ask it anew: the link has come up again.")
      .def("stats", &mac_stats)
      .def("reset_stats", [](PortMac& mac) {
        PythonGuard guard(mac.engine());
        mac.reset_counters();
      });
}

}  // namespace

void bind_memory(py::module_& m) {
  declare_record<IngressStatistics>("IngressStats");
  declare_record("BufferPortStats", {{"queue_bytes", "list[int]", "in its queues, by class"},
                                     {"ingress", "list[IngressStats]", "of what came in by it, by class"}});
  declare_record("BufferStats", {{"capacity_bytes", "int", "all of it"},
                                 {"shared_capacity_bytes", "int", "what no queue or class has for itself"},
                                 {"used_bytes", "int", ""},
                                 {"max_used_bytes", "int", ""},
                                 {"shared_used_bytes", "int", ""},
                                 {"class_bytes", "list[int]", "by class"},
                                 {"ports", "dict[int, BufferPortStats]", "by number"}});
  declare_record<PfcClassCounters>("PfcClassStats", {{"is_paused", "bool", "held by the far end"}});
  declare_record<PfcWatchdogCounters>("PfcWatchdogClassStats",
                                      {{"priority_class", "int", ""}, {"is_stormed", "bool", "now"}});
  declare_record("PfcStormEvent", {{"time_ps", "int", ""},
                                   {"priority_class", "int", ""},
                                   {"is_restored", "bool", "the storm was over; else it was detected"}});
  declare_record("PfcWatchdogStats", {{"classes", "list[PfcWatchdogClassStats]", "watched ones"},
                                      {"events", "list[PfcStormEvent]", "the first 4096, in order of time"}});
  declare_record<CreditLaneCounters>("CreditLaneStats",
                                     {{"priority_class", "int", ""},
                                      {"is_stalled", "bool", "waits for credit"},
                                      {"available_blocks", "int", "credit left, in blocks of 64 bytes"}});
  declare_record<CreditCounters>("CreditStats",
                                 {{"lanes", "list[CreditLaneStats]", "of the classes with credits"}});
  declare_record<PortMacCounters>("PortMacStats",
                                  {{"passing", "TrafficCounter", "received, and not yet at the node"},
                                   {"credits", "CreditStats | None", ""},
                                   {"pfc", "list[PfcClassStats] | None", "by class"},
                                   {"watchdog", "PfcWatchdogStats | None", "of PFC"}});
  bind_buffer(m);
  bind_mac(m);
  m.attr("CREDIT_BLOCK_BYTES") = uint64_t{SharedBuffer::kCreditBlockBytes};
  m.attr("MOST_CREDIT_BUFFER_BYTES") = uint64_t{CreditConfig::kMaxBufferBytes};
  m.def(
      "pfc_headroom_bytes", &pfc_headroom_bytes, py::kw_only(), "rate_bps"_a, "delay_ps"_a, "frame_bytes"_a,
      "response_ps"_a = 0,
      "Return the bytes that may still come after a port has decided to pause a class (802.1Qbb, annex O).");
}

}  // namespace weft
