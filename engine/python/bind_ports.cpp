// Links, ports and packet sockets in Python; see python/bind_core.cpp about locks.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>

#include "links/link.hpp"
#include "links/packet_socket.hpp"
#include "links/pcap_writer.hpp"
#include "links/transmit_port.hpp"
#include "python/bindings.hpp"
#include "python/bindings_support.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

namespace {

void bind_link(py::module_& m) {
  py::class_<Link, std::shared_ptr<Link>>(m, "Link")
      .def(
          py::init([](Engine& engine, const std::string& name, TimePs delay_ps, double loss, double duplicate,
                      double delay_probability, TimePs extra_delay_ps, double bit_error_rate) {
            return make_component<Link>(
                engine, engine, delay_ps,
                FaultConfig{loss, duplicate, delay_probability, extra_delay_ps, bit_error_rate},
                engine.stream("link " + name));
          }),
          "engine"_a, py::kw_only(), "name"_a = "", "delay_ps"_a = 0, "loss"_a = 0.0, "duplicate"_a = 0.0,
          "delay_probability"_a = 0.0, "extra_delay_ps"_a = 0, "bit_error_rate"_a = 0.0,
          py::keep_alive<1, 2>())
      .def(
          "connect",
          [](Link& link, Node& node, int port) {
            PythonGuard guard(link.engine());
            link.connect(node, port);
          },
          "node"_a, "port"_a = 0)
      .def(
          "set_faults",
          [](Link& link, double loss, double duplicate, double delay_probability, TimePs extra_delay_ps,
             double bit_error_rate) {
            PythonGuard guard(link.engine());
            link.set_faults({loss, duplicate, delay_probability, extra_delay_ps, bit_error_rate});
          },
          py::kw_only(), "loss"_a = 0.0, "duplicate"_a = 0.0, "delay_probability"_a = 0.0,
          "extra_delay_ps"_a = 0, "bit_error_rate"_a = 0.0)
      .def(
          "draw_from",
          [](Link& link, const Rng& stream) {
            PythonGuard guard(link.engine());
            link.draw_from(stream);
          },
          "stream"_a)
      .def(
          "set_capture",
          [](Link& link, std::shared_ptr<PcapWriter> capture) {
            PythonGuard guard(link.engine());
            link.set_capture(std::move(capture));
          },
          "capture"_a.none(true))
      .def(
          "set_early",
          [](Link& link, bool early) {
            PythonGuard guard(link.engine());
            link.set_early(early);
          },
          "early"_a)
      .def("cut",
           [](Link& link) {
             PythonGuard guard(link.engine());
             return counter_dict(link.cut());
           })
      .def_property_readonly("delay_ps", &Link::delay_ps)
      .def("stats",
           [](Link& link) {
             PythonGuard guard(link.engine());
             const LinkCounters counters = link.counters();
             return py::dict(
                 "delivered_packets"_a = counters.delivered_packets,
                 "delivered_bytes"_a = counters.delivered_bytes, "lost_packets"_a = counters.lost_packets,
                 "lost_bytes"_a = counters.lost_bytes, "corrupted_packets"_a = counters.corrupted_packets,
                 "corrupted_bytes"_a = counters.corrupted_bytes, "cut"_a = counter_dict(counters.cut),
                 "duplicated_packets"_a = counters.duplicated_packets,
                 "delayed_packets"_a = counters.delayed_packets);
           })
      .def("reset_stats", [](Link& link) {
        PythonGuard guard(link.engine());
        link.reset_counters();
      });
}

py::dict port_stats(TransmitPort& port) {
  PythonGuard guard(port.engine());
  py::list classes;
  for (int priority_class = 0; priority_class < port.config().classes; ++priority_class)
    classes.append(py::dict("queue_depth_bytes"_a = port.queue_depth_bytes(priority_class),
                            "transmitted"_a = counter_dict(port.transmitted(priority_class)),
                            "tail_dropped"_a = counter_dict(port.tail_dropped(priority_class))));
  return py::dict(
      "queue_depth_bytes"_a = port.queue_depth_bytes(), "queue_depth_packets"_a = port.queue_depth_packets(),
      "max_queue_depth_bytes"_a = port.max_queue_depth_bytes(),
      "transmitted"_a = counter_dict(port.transmitted()),
      "control_transmitted"_a = counter_dict(port.control_transmitted()),
      "tail_dropped"_a = counter_dict(port.tail_dropped()),
      "headroom_dropped"_a = counter_dict(port.headroom_dropped()),
      "down_dropped"_a = counter_dict(port.down_dropped()), "last_down_drop_ps"_a = port.last_down_drop_ps(),
      "egress_dropped"_a = counter_dict(port.egress_dropped()), "classes"_a = classes);
}

void bind_transmit_port(py::module_& m) {
  py::class_<TransmitPort, Node, std::shared_ptr<TransmitPort>>(m, "TransmitPort")
      .def(
          py::init([](Engine& engine, Link& link, uint64_t rate_bps, uint64_t queue_capacity_bytes,
                      int classes, bool arrivals_serialised, const DeficitRoundRobin::Quanta& quantum_bytes) {
            const PortConfig config{rate_bps, queue_capacity_bytes, classes, arrivals_serialised,
                                    quantum_bytes};
            return make_component<TransmitPort>(engine, engine, config, link);
          }),
          "engine"_a, "link"_a, py::kw_only(), "rate_bps"_a = 0,
          "queue_capacity_bytes"_a = PortConfig().queue_capacity_bytes, "classes"_a = PortConfig().classes,
          "arrivals_serialised"_a = false, "quantum_bytes"_a = DeficitRoundRobin::Quanta{},
          py::keep_alive<1, 2>())
      .def(
          "enqueue",
          [](TransmitPort& port, const py::bytes& data, int priority_class, uint32_t ingress_port) {
            PythonGuard guard(port.engine());
            PacketPtr packet = port.engine().packets().copy_of(view_of(data));
            port.engine().ledger().enter(LedgerSource::kInjected, packet->wire_bytes());
            return port.enqueue(std::move(packet), priority_class, ingress_port);
          },
          "data"_a, "priority_class"_a = 0, "ingress_port"_a = TransmitPort::kNoIngress)
      .def(
          "set_buffer",
          [](TransmitPort& port, SharedBuffer& buffer, uint32_t number) {
            PythonGuard guard(port.engine());
            port.set_buffer(&buffer, number);
          },
          "buffer"_a, "number"_a, py::keep_alive<1, 2>())
      .def(
          "set_up",
          [](TransmitPort& port, bool up) {
            PythonGuard guard(port.engine());
            port.set_up(up);
          },
          "up"_a)
      .def_property_readonly("is_up", &TransmitPort::is_up)
      .def_property("rate_bps", &TransmitPort::rate_bps,
                    [](TransmitPort& port, uint64_t rate_bps) {
                      PythonGuard guard(port.engine());
                      port.set_rate_bps(rate_bps);
                    })
      .def_property_readonly("queue_depth_bytes",
                             [](TransmitPort& port) {
                               PythonGuard guard(port.engine());
                               return port.queue_depth_bytes();
                             })
      .def(
          "set_capture",
          [](TransmitPort& port, std::shared_ptr<PcapWriter> capture) {
            PythonGuard guard(port.engine());
            port.set_capture(std::move(capture));
          },
          "capture"_a.none(true))
      .def("stats", &port_stats)
      .def("reset_stats", [](TransmitPort& port) {
        PythonGuard guard(port.engine());
        port.reset_counters();
      });
}

py::dict socket_stats(PacketSocket& socket) {
  PythonGuard guard(socket.engine());
  const PacketSocketCounters& counters = socket.counters();
  return py::dict("received_packets"_a = counters.received_packets,
                  "received_bytes"_a = counters.received_bytes,
                  "ring_dropped_packets"_a = counters.ring_dropped_packets,
                  "truncated_packets"_a = counters.truncated_packets,
                  "transmitted_packets"_a = counters.transmitted_packets,
                  "transmitted_bytes"_a = counters.transmitted_bytes,
                  "oversize_packets"_a = counters.oversize_packets, "runt_packets"_a = counters.runt_packets,
                  "unfinished_checksum_packets"_a = counters.unfinished_checksum_packets,
                  "interface_down_packets"_a = counters.interface_down_packets,
                  "no_buffer_packets"_a = counters.no_buffer_packets,
                  "send_error_packets"_a = counters.send_error_packets);
}

void bind_packet_socket(py::module_& m) {
  py::class_<PacketSocket, Node, std::shared_ptr<PacketSocket>>(m, "PacketSocket")
      .def(py::init([](Engine& engine, const std::string& interface, bool promiscuous, uint64_t ring_bytes) {
             return make_component<PacketSocket>(engine, engine,
                                                 PacketSocketConfig{interface, promiscuous, ring_bytes});
           }),
           "engine"_a, "interface"_a, py::kw_only(), "promiscuous"_a = true,
           "ring_bytes"_a = PacketSocketConfig().ring_bytes, py::keep_alive<1, 2>())
      .def(
          "connect",
          [](PacketSocket& socket, Node& node, int port) {
            PythonGuard guard(socket.engine());
            socket.connect(node, port);
          },
          "node"_a, "port"_a = 0)
      .def("close",
           [](PacketSocket& socket) {
             PythonGuard guard(socket.engine());
             socket.close();
           })
      .def_property_readonly("interface", &PacketSocket::interface)
      .def_property_readonly("mtu_bytes", &PacketSocket::mtu_bytes)
      .def(
          "set_capture",
          [](PacketSocket& socket, std::shared_ptr<PcapWriter> received, std::shared_ptr<PcapWriter> sent) {
            PythonGuard guard(socket.engine());
            socket.set_capture(std::move(received), std::move(sent));
          },
          "received"_a.none(true), "sent"_a.none(true))
      .def("stats", &socket_stats)
      .def("reset_stats", [](PacketSocket& socket) {
        PythonGuard guard(socket.engine());
        socket.reset_counters();
      });
}

}  // namespace

void bind_ports(py::module_& m) {
  bind_link(m);
  bind_transmit_port(m);
  bind_packet_socket(m);
  m.def(
      "serialisation_ps",
      [](uint64_t bytes, uint64_t rate_bps) { return BitRate(rate_bps).serialisation_ps(bytes); },
      "size_bytes"_a, "rate_bps"_a);
}

}  // namespace weft
