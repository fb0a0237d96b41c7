// Links, ports and packet sockets in Python; see python/bind_core.cpp about locks.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "links/link.hpp"
#include "links/link_retry.hpp"
#include "links/packet_socket.hpp"
#include "links/pcap_writer.hpp"
#include "links/transmit_port.hpp"
#include "python/bindings.hpp"
#include "python/bindings_support.hpp"
#include "python/statistics_dict.hpp"
#include "python/typed.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

namespace {

void bind_link(py::module_& m) {
  declare_record<LinkCounters>("LinkStats");
  declare_record<LinkRetryCounters>("LinkRetryStats");
  py::class_<Link, std::shared_ptr<Link>>(
      m, "Link", R"doc(One direction of a link: delay, seeded faults, and the node at its far end.

Probabilities are per packet. `extra_delay_ps` is what a delayed packet takes longer. `bit_error_rate` is that of
each bit: a packet of n bytes arrives whole with probability (1 - bit_error_rate)^(8n), and is dropped on arrival
otherwise. The faults' random stream is the engine's stream "link <name>". Raises ValueError for a probability
outside 0 to 1 or a negative delay.)doc")
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
          "add_far_end",
          [](Link& link, Node& node, int port) {
            PythonGuard guard(link.engine());
            return link.add_far_end(node, port);
          },
          "node"_a, "port"_a = 0,
          "Another far end, which the link may be joined to later; returns its number. `connect`'s is 0.")
      .def(
          "join",
          [](Link& link, size_t far_end) {
            PythonGuard guard(link.engine());
            link.join(far_end);
          },
          "far_end"_a,
          R"doc(Send to the far end of this number from now on; captures of what arrives end.

Raises IndexError if there is none, RuntimeError within an event of a partition or if packets are on the link
(`cut` takes them off).)doc")
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
          "stream"_a, "Draw faults from a stream from now on.")
      .def(
          "set_capture",
          [](Link& link, std::shared_ptr<PcapWriter> capture) {
            PythonGuard guard(link.engine());
            link.set_capture(std::move(capture));
          },
          "capture"_a.none(true), "Record every packet as it arrives at the far end.")
      .def(
          "set_early",
          [](Link& link, bool early) {
            PythonGuard guard(link.engine());
            link.set_early(early);
          },
          "early"_a,
          "Let packets arrive with their first bit, for a far end that cuts through; by default with their "
          "last.")
      .def(
          "enable_retry",
          [](Link& link, TransmitPort& port, uint64_t buffer_bytes, TimePs timeout_ps, uint32_t attempts,
             TimePs response_ps, uint64_t largest_frame_bytes) {
            PythonGuard guard(link.engine());
            link.enable_retry(port, {buffer_bytes, timeout_ps, attempts, response_ps, largest_frame_bytes});
          },
          "port"_a, py::kw_only(), "buffer_bytes"_a, "timeout_ps"_a,
          "attempts"_a = LinkRetryConfig().attempts, "response_ps"_a = 0, "largest_frame_bytes"_a,
          R"doc(Have `port`, which sends into the link, send again what gets lost on it, from the lost frame on (LLR).

The port waits while frames of more than buffer_bytes wait for an acknowledgement. A frame that has not arrived
after `attempts` replays is lost, with all that wait behind it. Raises ValueError for a port without a rate, a
buffer below the largest frame, or a timeout below the time of an answer; RuntimeError where packets arrive with
their first bit, or where faults duplicate or delay them.)doc")
      .def(
          "retry_stats",
          [](Link& link) {
            PythonGuard guard(link.engine());
            return Typed<"LinkRetryStats | None">(
                link.retry() == nullptr ? py::object(py::none())
                                        : py::object(statistics_dict(link.retry()->counters())));
          },
          "Counters of retry; None without it.")
      .def(
          "cut",
          [](Link& link) {
            PythonGuard guard(link.engine());
            return counter_dict(link.cut());
          },
          R"doc(Lose what is on the link, serialisation included, as a failure does; returns how much.

The sending port is taken down apart (`TransmitPort.set_up`). Raises RuntimeError within an event of a
partition.)doc")
      .def_property_readonly("delay_ps", &Link::delay_ps)
      .def("stats",
           [](Link& link) {
             PythonGuard guard(link.engine());
             return Record<"LinkStats">(statistics_dict(link.counters()));
           })
      .def("reset_stats", [](Link& link) {
        PythonGuard guard(link.engine());
        link.reset_counters();
      });
}

Record<"PortStats"> port_stats(TransmitPort& port) {
  PythonGuard guard(port.engine());
  // Most classes of a fabric's ports are idle, and most counters zero: those of a port are one object.
  const Record<"TrafficCounter"> nothing = counter_dict({});
  const auto is_zero = [](const TrafficCounter& counter) {
    return counter.packets == 0 && counter.bytes == 0;
  };
  const auto counted = [&](const TrafficCounter& counter) {
    return is_zero(counter) ? nothing : counter_dict(counter);
  };
  const auto class_stats = [&](uint64_t depth_bytes, const TrafficCounter& transmitted,
                               const TrafficCounter& tail_dropped, const TrafficCounter& trimmed) {
    py::dict stats;
    stats[shared_key("queue_depth_bytes")] = depth_bytes;
    stats[shared_key("transmitted")] = counted(transmitted);
    stats[shared_key("tail_dropped")] = counted(tail_dropped);
    stats[shared_key("trimmed")] = counted(trimmed);
    return stats;
  };
  const py::dict idle = class_stats(0, {}, {}, {});
  py::list classes;
  for (int priority_class = 0; priority_class < port.config().classes; ++priority_class) {
    const uint64_t depth_bytes = port.queue_depth_bytes(priority_class);
    const TrafficCounter& transmitted = port.transmitted(priority_class);
    const TrafficCounter& tail_dropped = port.tail_dropped(priority_class);
    const TrafficCounter trimmed = port.trimmed(priority_class);
    const bool is_idle =
        depth_bytes == 0 && is_zero(transmitted) && is_zero(tail_dropped) && is_zero(trimmed);
    classes.append(is_idle ? idle : class_stats(depth_bytes, transmitted, tail_dropped, trimmed));
  }
  py::dict stats;
  stats[shared_key("queue_depth_bytes")] = port.queue_depth_bytes();
  stats[shared_key("queue_depth_packets")] = port.queue_depth_packets();
  stats[shared_key("max_queue_depth_bytes")] = port.max_queue_depth_bytes();
  stats[shared_key("transmitted")] = counted(port.transmitted());
  PortCounters::each_statistic([&](const char* name, auto member, const char*) {
    const auto& statistic = port.counters().*member;
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(statistic)>, TrafficCounter>)
      stats[shared_key(name)] = counted(statistic);
    else
      stats[shared_key(name)] = python_statistic(statistic);
  });
  stats[shared_key("last_down_drop_ps")] = port.last_down_drop_ps();
  stats[shared_key("last_down_data_drop_ps")] = port.last_down_data_drop_ps();
  stats[shared_key("classes")] = classes;
  return stats;
}

py::typing::List<Record<"WaitingFrom">> waiting_by_arrival(TransmitPort& port) {
  PythonGuard guard(port.engine());
  py::typing::List<Record<"WaitingFrom">> found;
  for (const WaitingFrom& each : port.waiting_by_arrival())
    found.append(Record<"WaitingFrom">(py::dict("priority_class"_a = each.priority_class,
                                                "ingress_port"_a = each.ingress_port, "lane"_a = each.lane,
                                                "waiting"_a = counter_dict(each.waiting))));
  return found;
}

std::map<int, uint64_t> transmitted_by_kind(TransmitPort& port) {
  PythonGuard guard(port.engine());
  std::map<int, uint64_t> found;
  if (port.by_kind() == nullptr) return found;
  const TrafficByKind::Counts& counts = port.by_kind()->counts();
  for (size_t kind = 0; kind < counts.size(); ++kind)
    if (counts[kind].packets != 0) found.emplace(static_cast<int>(kind), counts[kind].bytes);
  return found;
}

void set_trimming(TransmitPort& port, uint32_t size_bytes, uint8_t dscp, uint8_t priority_class,
                  const std::vector<int>& classes, const std::vector<int>& trimmable_dscps,
                  uint64_t reserved_bytes) {
  // A bit for each.
  const auto mask = [](const std::vector<int>& numbers, int count, const char* name) {
    uint64_t bits = 0;
    for (const int number : numbers) {
      if (number < 0 || number >= count)
        throw std::invalid_argument(std::string("port trimming: ") + name + " has " + std::to_string(number) +
                                    " (0 to " + std::to_string(count - 1) + ")");
      bits |= uint64_t{1} << number;
    }
    return bits;
  };
  PythonGuard guard(port.engine());
  port.set_trimming({size_bytes, dscp, priority_class,
                     static_cast<uint8_t>(mask(classes, port.config().classes, "classes")),
                     mask(trimmable_dscps, TrimmingConfig::kDscps, "trimmable_dscps"), reserved_bytes});
}

void bind_transmit_port(py::module_& m) {
  declare_record("WaitingFrom", {{"priority_class", "int", "it is queued in"},
                                 {"ingress_port", "int", "of the switch, 65535 for none"},
                                 {"lane", "int", "it came in; 255 where that is not known"},
                                 {"waiting", "TrafficCounter", ""}});
  declare_record("ClassStats",
                 {{"queue_depth_bytes", "int", "waiting"},
                  {"transmitted", "TrafficCounter", ""},
                  {"tail_dropped", "TrafficCounter", "found no memory in the queue"},
                  {"trimmed", "TrafficCounter", "trimmed as they found none, and the bytes cut off them"}});
  declare_record<PortCounters>(
      "PortStats",
      {{"queue_depth_bytes", "int", "waiting in all classes"},
       {"queue_depth_packets", "int", "waiting in all classes"},
       {"max_queue_depth_bytes", "int", "the most that was left waiting"},
       {"transmitted", "TrafficCounter", "all frames, those of the MAC included"},
       {"last_down_drop_ps", "int", "when a packet was last dropped at the port that was down, or -1"},
       {"last_down_data_drop_ps", "int", "the same of one that carried data, not only an answer or a probe"},
       {"classes", "list[ClassStats]", "by class"}});
  py::class_<TransmitPort, Node, std::shared_ptr<TransmitPort>>(
      m, "TransmitPort",
      R"doc(Byte-accounted queues (strict priority, the highest class first) in front of a serialiser.

rate_bps 0 is unpaced. queue_capacity_bytes bounds all classes together. Classes with quantum_bytes share what the
strict ones leave, by deficit weighted round robin. As a Node it queues what it
receives in class 0. With arrivals_serialised a packet that finds the serialiser idle leaves as it comes (its sender
has paced it), and only what comes faster than the rate is held back. While more than split_depth_bytes waits in a
class, its segments leave packet by packet. Raises ValueError for classes outside
1 to 8, a capacity of 0, or a quantum of 1 to 63.)doc")
      .def(py::init([](Engine& engine, Link& link, uint64_t rate_bps, uint64_t queue_capacity_bytes,
                       int classes, bool arrivals_serialised, const DeficitRoundRobin::Quanta& quantum_bytes,
                       uint64_t split_depth_bytes) {
             const PortConfig config{rate_bps,      queue_capacity_bytes, classes, arrivals_serialised,
                                     quantum_bytes, split_depth_bytes};
             return make_component<TransmitPort>(engine, engine, config, link);
           }),
           "engine"_a, "link"_a, py::kw_only(), "rate_bps"_a = 0,
           "queue_capacity_bytes"_a = PortConfig().queue_capacity_bytes, "classes"_a = PortConfig().classes,
           "arrivals_serialised"_a = false, "quantum_bytes"_a = DeficitRoundRobin::Quanta{},
           "split_depth_bytes"_a = PortConfig().split_depth_bytes, py::keep_alive<1, 2>())
      .def(
          "enqueue",
          [](TransmitPort& port, const py::bytes& data, int priority_class, uint16_t ingress_port) {
            PythonGuard guard(port.engine());
            PacketPtr packet = port.engine().packets().copy_of(view_of(data));
            port.engine().conservation().enter(PacketOrigin::kInjected, packet->traffic());
            return port.enqueue(std::move(packet), priority_class, {ingress_port, Packet::kNoLane});
          },
          "data"_a, "priority_class"_a = 0, "ingress_port"_a = SharedBuffer::kNoIngress,
          "Queue a frame now. False: dropped, and counted. ingress_port is where a switch took it in.")
      .def(
          "set_buffer",
          [](TransmitPort& port, SharedBuffer& buffer, uint32_t number) {
            PythonGuard guard(port.engine());
            port.set_buffer(&buffer, number);
          },
          "buffer"_a, "number"_a, py::keep_alive<1, 2>(),
          "Take memory of a buffer, as its port `number`. Raises RuntimeError when packets wait already.")
      .def(
          "set_trimming", &set_trimming, py::kw_only(), "size_bytes"_a, "dscp"_a, "priority_class"_a,
          "classes"_a, "trimmable_dscps"_a, "reserved_bytes"_a = 0,
          R"doc(Trim what `classes` have no room for, if it carries one of `trimmable_dscps`, instead of dropping it.

A switch's port cuts such a packet to size_bytes (of its frame; all that the program parses stays), gives it
`dscp` and sends it in the queue priority_class. reserved_bytes are for this queue alone, beyond
queue_capacity_bytes; with a shared buffer the class's thresholds hold instead. Raises ValueError for a size
below 64, numbers that are no class or DSCP, and trimmed packets that could be trimmed again.)doc")
      .def(
          "set_up",
          [](TransmitPort& port, bool up) {
            PythonGuard guard(port.engine());
            port.set_up(up);
          },
          "up"_a, "Down: drop what waits and what comes, and ask no source.")
      .def_property_readonly("is_up", &TransmitPort::is_up)
      .def_property("rate_bps", &TransmitPort::rate_bps,
                    [](TransmitPort& port, uint64_t rate_bps) {
                      PythonGuard guard(port.engine());
                      port.set_rate_bps(rate_bps);
                    })
      .def_property(
          "queue_capacity_bytes", [](TransmitPort& port) { return port.config().queue_capacity_bytes; },
          [](TransmitPort& port, uint64_t queue_capacity_bytes) {
            PythonGuard guard(port.engine());
            port.set_queue_capacity_bytes(queue_capacity_bytes);
          })
      .def_property("packet_rate_pps", &TransmitPort::packet_rate_pps,
                    [](TransmitPort& port, uint64_t packet_rate_pps) {
                      PythonGuard guard(port.engine());
                      port.set_packet_rate_pps(packet_rate_pps);
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
          "capture"_a.none(true), "Record every frame as its serialisation starts.")
      .def("waiting_by_arrival", &waiting_by_arrival,
           "What waits, by class, port and lane by which it came; without a shared buffer nobody has kept "
           "that.")
      .def(
          "count_by_kind",
          [](TransmitPort& port) {
            PythonGuard guard(port.engine());
            port.count_by_kind();
          },
          "Count from now on what is sent of each kind of traffic, but for the MAC's own frames.")
      .def("transmitted_by_kind", &transmitted_by_kind,
           R"doc(Bytes sent of each kind of traffic that there was any of; none where they are not counted.

0 is the kind of what nobody has given one, 255 that of acknowledgements and CNPs.)doc")
      .def("stats", &port_stats)
      .def("reset_stats", [](TransmitPort& port) {
        PythonGuard guard(port.engine());
        port.reset_counters();
      });
}

Record<"PacketSocketStats"> socket_stats(PacketSocket& socket) {
  PythonGuard guard(socket.engine());
  return statistics_dict(socket.counters());
}

void bind_packet_socket(py::module_& m) {
  declare_record<PacketSocketCounters>("PacketSocketStats");
  py::class_<PacketSocket, Node, std::shared_ptr<PacketSocket>>(
      m, "PacketSocket",
      R"doc(An AF_PACKET socket on an interface of this process's network namespace; real clock only.

What it receives as a Node is sent out of the interface; what arrives there goes to the connected node.
To open and to close one takes the kernel tens of milliseconds; several threads may do so at once.
Raises OSError if it can't be opened, RuntimeError on a virtual clock.)doc")
      .def(py::init([](Engine& engine, const std::string& interface, bool promiscuous, uint64_t ring_bytes) {
             const PacketSocketConfig config{interface, promiscuous, ring_bytes};
             std::unique_ptr<BoundSocket> socket;
             {
               const py::gil_scoped_release release;  // the kernel takes its time
               socket = PacketSocket::open(engine, config);
             }
             return make_component<PacketSocket>(engine, engine, config, std::move(socket));
           }),
           "engine"_a, "interface"_a, py::kw_only(), "promiscuous"_a = true,
           "ring_bytes"_a = PacketSocketConfig().ring_bytes, py::keep_alive<1, 2>())
      .def(
          "connect",
          [](PacketSocket& socket, Node& node, int port) {
            PythonGuard guard(socket.engine());
            socket.connect(node, port);
          },
          "node"_a, "port"_a = 0, "Where received frames go. Until then they wait in the ring.")
      .def("close",
           [](PacketSocket& socket) {
             std::unique_ptr<BoundSocket> closing;
             {
               PythonGuard guard(socket.engine());
               closing = socket.detach();
             }
             const py::gil_scoped_release release;  // the kernel takes its time
             closing.reset();
           })
      .def_property_readonly("interface", &PacketSocket::interface)
      .def_property_readonly("mtu_bytes", &PacketSocket::mtu_bytes)
      .def(
          "set_capture",
          [](PacketSocket& socket, std::shared_ptr<PcapWriter> received, std::shared_ptr<PcapWriter> sent) {
            PythonGuard guard(socket.engine());
            socket.set_capture(std::move(received), std::move(sent));
          },
          "received"_a.none(true), "sent"_a.none(true),
          "Record frames received from and sent to the interface, in one file or two.")
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
      "size_bytes"_a, "rate_bps"_a,
      "Picoseconds that size_bytes occupy a link of rate_bps (0: none), rounded to the nearest.");
}

}  // namespace weft
