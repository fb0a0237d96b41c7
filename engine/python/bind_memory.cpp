// A switch's shared buffer and a port's flow control in Python; see python/bind_core.cpp about locks.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "links/pfc_headroom.hpp"
#include "links/port_mac.hpp"
#include "python/bind_codec.hpp"
#include "python/bindings.hpp"
#include "python/bindings_support.hpp"
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

py::dict group_stats(const SharedBuffer::Group& group) {
  return py::dict("held_bytes"_a = group.held_bytes, "max_held_bytes"_a = group.max_held_bytes,
                  "own_used_bytes"_a = group.own_used_bytes,
                  "max_own_used_bytes"_a = group.max_own_used_bytes, "is_paused"_a = group.paused,
                  "dropped_packets"_a = group.dropped_packets, "dropped_bytes"_a = group.dropped_bytes);
}

py::dict buffer_stats(SharedBuffer& buffer) {
  PythonGuard guard(buffer.engine());
  py::dict ports;
  for (const uint32_t number : buffer.ports()) {
    py::list queues;
    py::list ingress;
    for (int each = 0; each < kClasses; ++each) {
      queues.append(buffer.queue_bytes(number, each));
      ingress.append(group_stats(buffer.group(number, each)));
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
  py::class_<SharedBuffer, std::shared_ptr<SharedBuffer>>(m, "SharedBuffer")
      .def(py::init(&make_buffer), "engine"_a, py::kw_only(), "capacity_bytes"_a,
           "reserved_bytes"_a = std::array<uint64_t, kClasses>{}, "alpha"_a = alpha_of_one(),
           py::keep_alive<1, 2>())
      .def(
          "add_port",
          [](SharedBuffer& buffer, uint32_t number) {
            PythonGuard guard(buffer.engine());
            buffer.add_port(number);
          },
          "number"_a)
      .def(
          "threshold_bytes",
          [](SharedBuffer& buffer, int priority_class) {
            PythonGuard guard(buffer.engine());
            return buffer.threshold_bytes(priority_class);
          },
          "priority_class"_a)
      .def("stats", &buffer_stats)
      .def("reset_stats", [](SharedBuffer& buffer) {
        PythonGuard guard(buffer.engine());
        buffer.reset_counters();
      });
}

py::list pfc_stats(const PriorityFlowControl& pfc) {
  py::list classes;
  for (int each = 0; each < kClasses; ++each) {
    const PfcClassCounters counters = pfc.counters(each);
    classes.append(py::dict(
        "pauses_sent"_a = counters.pauses_sent, "resumes_sent"_a = counters.resumes_sent,
        "pauses_received"_a = counters.pauses_received, "resumes_received"_a = counters.resumes_received,
        "paused_ps"_a = counters.paused_ps, "is_paused"_a = (pfc.paused_classes() >> each & 1u) != 0));
  }
  return classes;
}

py::object credit_stats(const CreditFlowControl* credits) {
  if (credits == nullptr) return py::none();
  py::list lanes;
  for (int each = 0; each < kClasses; ++each) {
    if (!credits->is_lane(each)) continue;
    const CreditLaneCounters counters = credits->lane_counters(each);
    lanes.append(py::dict("priority_class"_a = each, "stalls"_a = counters.stalls,
                          "stalled_ps"_a = counters.stalled_ps, "is_stalled"_a = credits->is_stalled(each),
                          "available_blocks"_a = credits->available_blocks(each)));
  }
  return py::dict("updates_sent"_a = credits->counters().updates_sent,
                  "updates_received"_a = credits->counters().updates_received, "lanes"_a = lanes);
}

py::dict mac_stats(PortMac& mac) {
  PythonGuard guard(mac.engine());
  const PortMacCounters& counters = mac.counters();
  py::dict stats("received"_a = counter_dict(counters.received),
                 "control_taken"_a = counter_dict(counters.control_taken),
                 "unknown_control_packets"_a = counters.unknown_control_packets,
                 "passing"_a = counter_dict(mac.passing()));
  stats["credits"] = credit_stats(mac.credits());
  stats["pfc"] = mac.pfc() == nullptr ? py::object(py::none()) : py::object(pfc_stats(*mac.pfc()));
  return stats;
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

void enable_credits(PortMac& mac, const std::string& source_mac, const std::vector<int>& classes,
                    uint64_t buffer_bytes, std::optional<uint64_t> peer_buffer_bytes,
                    uint64_t largest_frame_bytes, TimePs update_interval_ps) {
  CreditConfig config;
  config.source_mac = parse_mac(source_mac);
  for (const int each : classes) {
    if (each < 0 || each >= kClasses)
      throw std::invalid_argument("credits for class " + std::to_string(each) + " (0 to 7)");
    config.lanes |= 1u << each;
  }
  config.buffer_bytes = buffer_bytes;
  config.peer_buffer_bytes = peer_buffer_bytes.value_or(buffer_bytes);
  config.largest_frame_bytes = largest_frame_bytes;
  config.update_interval_ps = update_interval_ps;
  PythonGuard guard(mac.engine());
  mac.enable_credits(config);
}

void bind_mac(py::module_& m) {
  py::class_<PortMac, Node, std::shared_ptr<PortMac>>(m, "PortMac")
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
          py::kw_only(), "source_mac"_a, "pause_quanta"_a = PfcConfig().pause_quanta)
      .def("set_pause_limits", &set_pause_limits, "buffer"_a, "number"_a, "priority_class"_a, py::kw_only(),
           "headroom_bytes"_a, "xoff_bytes"_a = 0, "alpha"_a = 0.0, "hysteresis_bytes"_a = 0)
      .def("enable_credits", &enable_credits, py::kw_only(), "source_mac"_a, "classes"_a, "buffer_bytes"_a,
           "peer_buffer_bytes"_a = py::none(), "largest_frame_bytes"_a,
           "update_interval_ps"_a = CreditConfig().update_interval_ps)
      .def(
          "set_credit_memory",
          [](PortMac& mac, SharedBuffer& buffer, uint32_t number, int priority_class) {
            PythonGuard guard(mac.engine());
            mac.set_credit_memory(buffer, number, priority_class);
          },
          "buffer"_a, "number"_a, "priority_class"_a)
      .def(
          "set_switching",
          [](PortMac& mac, TimePs latency_ps, bool cut_through, uint64_t header_limit_bytes,
             Switch* parsed_by) {
            PythonGuard guard(mac.engine());
            mac.set_switching({latency_ps, cut_through, header_limit_bytes}, parsed_by);
          },
          py::kw_only(), "latency_ps"_a = 0, "cut_through"_a = false,
          "header_limit_bytes"_a = SwitchingConfig().header_limit_bytes, "parsed_by"_a = py::none())
      .def("restart",
           [](PortMac& mac) {
             PythonGuard guard(mac.engine());
             mac.restart();
           })
      .def("stats", &mac_stats)
      .def("reset_stats", [](PortMac& mac) {
        PythonGuard guard(mac.engine());
        mac.reset_counters();
      });
}

}  // namespace

void bind_memory(py::module_& m) {
  bind_buffer(m);
  bind_mac(m);
  m.attr("CREDIT_BLOCK_BYTES") = uint64_t{SharedBuffer::kCreditBlockBytes};
  m.attr("MOST_CREDIT_BUFFER_BYTES") = uint64_t{CreditConfig::kMaxBufferBytes};
  m.def("pfc_headroom_bytes", &pfc_headroom_bytes, py::kw_only(), "rate_bps"_a, "delay_ps"_a, "frame_bytes"_a,
        "response_ps"_a = 0);
}

}  // namespace weft
