// TCP as a state machine in Python, for tests and models.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings.hpp"
#include "python/statistics_dict.hpp"
#include "python/typed.hpp"
#include "tcp/byte_streams.hpp"
#include "tcp/congestion/registry.hpp"
#include "tcp/connection.hpp"
#include "tcp/segment_format.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

namespace {

using tcp::Connection;
using tcp::ConnectionConfig;
using tcp::Segment;

std::optional<TimePs> some_time(TimePs time) { return time == kNever ? std::nullopt : std::optional(time); }

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

Segment read_segment(std::string_view bytes) {
  Segment segment;
  if (const char* problem = tcp::read_header(bytes_of(bytes), segment)) {
    throw std::invalid_argument(std::string("TCP segment: ") + problem);
  }
  return segment;
}

Record<"TcpSegmentFields"> segment_fields(const Segment& segment) {
  py::list sack;
  for (uint32_t each = 0; each < segment.options.sack_block_count; ++each) {
    sack.append(
        py::make_tuple(segment.options.sack_blocks[each].begin, segment.options.sack_blocks[each].end));
  }
  const auto& stamps = segment.options.timestamps;
  py::object timestamps = py::none();
  if (stamps) timestamps = py::make_tuple(stamps->value, stamps->echo);
  return py::dict(
      "source_port"_a = segment.source_port, "destination_port"_a = segment.destination_port,
      "sequence"_a = segment.sequence, "acknowledgement"_a = segment.acknowledgement,
      "window"_a = segment.window, "flags"_a = segment.flags, "payload_bytes"_a = segment.payload_bytes,
      "maximum_segment_bytes"_a = segment.options.maximum_segment_bytes,
      "window_scale"_a = segment.options.window_scale, "sack_permitted"_a = segment.options.sack_permitted,
      "timestamps"_a = timestamps, "sack_blocks"_a = sack);
}

void declare_segment_fields() {
  declare_record("TcpSegmentFields",
                 {{"source_port", "int", ""},
                  {"destination_port", "int", ""},
                  {"sequence", "int", ""},
                  {"acknowledgement", "int", ""},
                  {"window", "int", "as on the wire, not scaled"},
                  {"flags", "int", "FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128"},
                  {"payload_bytes", "int", "the segment's last bytes"},
                  {"maximum_segment_bytes", "int | None", ""},
                  {"window_scale", "int | None", ""},
                  {"sack_permitted", "bool", ""},
                  {"timestamps", "tuple[int, int] | None", "TSval and TSecr"},
                  {"sack_blocks", "list[tuple[int, int]]", "begin and end"}});
}

// A connection with its bytes.
class PythonTcpConnection {
 public:
  PythonTcpConnection(const ConnectionConfig& config, std::unique_ptr<tcp::CongestionControl> control)
      : connection(config, std::move(control)) {}

  void write(std::string_view bytes) {
    connection.send(bytes.size());
    sent_.append(bytes);
  }
  py::bytes read(uint64_t most) {
    const std::string taken = received_.take(std::min(most, connection.readable_bytes()));
    connection.consume(taken.size());
    return taken;
  }
  void on_segment(TimePs now, std::string_view bytes, uint8_t ecn) {
    Segment segment = read_segment(bytes);
    segment.ecn = static_cast<tcp::Ecn>(ecn & 3);
    received_.set_payload(bytes_of(bytes).last(segment.payload_bytes));
    connection.on_segment(now, segment, received_);
    sent_.release(connection.acknowledged_offset());
  }
  std::optional<std::pair<py::bytes, int>> take_segment(TimePs now) {
    const std::optional<Segment> segment = connection.take_segment(now);
    if (!segment) return std::nullopt;
    std::array<uint8_t, tcp::kMostHeaderBytes> header;
    const size_t header_bytes = tcp::write_header(*segment, header.data());
    std::string bytes(reinterpret_cast<const char*>(header.data()), header_bytes);
    bytes += sent_.at(segment->payload_offset, segment->payload_bytes);
    return std::pair(py::bytes(bytes), static_cast<int>(segment->ecn));
  }

  Connection connection;

 private:
  tcp::SentBytes sent_;
  tcp::ReceivedBytes received_;
};

std::unique_ptr<PythonTcpConnection> make_connection(
    const std::string& congestion_control, const CongestionParameters& parameters, uint16_t source_port,
    uint16_t destination_port, uint32_t initial_sequence, uint16_t maximum_segment_bytes, bool sack,
    bool timestamps, bool window_scaling, bool ecn, bool nagle, bool rack_tlp, uint64_t receive_buffer_bytes,
    uint32_t initial_window_segments, TimePs delayed_acknowledgement_ps, uint32_t acknowledge_every_segments,
    TimePs initial_timeout_ps, TimePs least_timeout_ps, TimePs most_timeout_ps, uint32_t most_retransmissions,
    TimePs time_wait_ps) {
  ConnectionConfig config;
  config.source_port = source_port;
  config.destination_port = destination_port;
  config.initial_sequence = initial_sequence;
  config.maximum_segment_bytes = maximum_segment_bytes;
  config.sack = sack;
  config.timestamps = timestamps;
  config.window_scaling = window_scaling;
  config.ecn = ecn;
  config.time_wait_ps = time_wait_ps;
  config.sender.nagle = nagle;
  config.sender.rack_tlp = rack_tlp;
  config.sender.initial_window_segments = initial_window_segments;
  config.sender.most_retransmissions = most_retransmissions;
  config.sender.timeout = {initial_timeout_ps, least_timeout_ps, most_timeout_ps};
  config.receiver.buffer_bytes = receive_buffer_bytes;
  config.receiver.delayed_acknowledgement_ps = delayed_acknowledgement_ps;
  config.receiver.acknowledge_every_segments = acknowledge_every_segments;
  return std::make_unique<PythonTcpConnection>(config,
                                               tcp::make_congestion_control(congestion_control, parameters));
}

void bind_connection(py::module_& m) {
  declare_record<tcp::SenderCounters>("TcpSenderCounters");
  declare_record<tcp::ReceiverCounters>("TcpReceiverCounters");
  using Self = PythonTcpConnection;
  py::class_<Self>(
      m, "TcpConnection",
      R"doc(A TCP connection without I/O: segments and times go in, segments and a deadline come out.

Segments are bytes from TCP's header on, with a checksum of 0. After each call take_segment() is to be called
until it returns None. Raises ValueError for parameters out of range, naming the valid ones.)doc")
      .def(py::init(&make_connection), py::kw_only(), "congestion_control"_a = "newreno",
           "parameters"_a = CongestionParameters(), "source_port"_a = 1, "destination_port"_a = 2,
           "initial_sequence"_a = 0, "maximum_segment_bytes"_a = 1460, "sack"_a = true, "timestamps"_a = true,
           "window_scaling"_a = true, "ecn"_a = false, "nagle"_a = true, "rack_tlp"_a = true,
           "receive_buffer_bytes"_a = 4 << 20, "initial_window_segments"_a = 10,
           "delayed_acknowledgement_ps"_a = 40 * kPsPerSecond / 1000, "acknowledge_every_segments"_a = 2,
           "initial_timeout_ps"_a = kPsPerSecond, "least_timeout_ps"_a = kPsPerSecond / 5,
           "most_timeout_ps"_a = 120 * kPsPerSecond, "most_retransmissions"_a = 15,
           "time_wait_ps"_a = 60 * kPsPerSecond)
      .def("connect", [](Self& self) { self.connection.connect(); })
      .def("listen", [](Self& self) { self.connection.listen(); })
      .def("write", &Self::write, "data"_a)
      .def("read", &Self::read, "most"_a = ~0ull, "Bytes that have arrived in order.")
      .def(
          "close", [](Self& self) { self.connection.close(); }, "FIN goes after all that was written.")
      .def(
          "abort", [](Self& self) { self.connection.abort(); }, "RST.")
      .def(
          "on_segment", &Self::on_segment, "now_ps"_a, "segment"_a, "ecn"_a = 0,
          "ecn: the two ECN bits of the IP header, 3: marked (CE). Raises ValueError for what is no segment.")
      .def(
          "on_timer", [](Self& self, TimePs now) { self.connection.on_timer(now); }, "now_ps"_a)
      .def("take_segment", &Self::take_segment, "now_ps"_a, "The next segment and its ECN bits.")
      .def_property_readonly("next_deadline_ps",
                             [](const Self& self) { return some_time(self.connection.next_deadline()); })
      .def_property_readonly("state",
                             [](const Self& self) { return tcp::state_name(self.connection.state()); })
      .def_property_readonly(
          "end", [](const Self& self) { return tcp::end_name(self.connection.end()); },
          "Why it is closed: closed, reset, refused, timed_out, aborted; none while it is not.")
      .def_property_readonly("peer_finished",
                             [](const Self& self) { return self.connection.peer_finished(); })
      .def_property_readonly(
          "segment_bytes", [](const Self& self) { return self.connection.segment_bytes(); },
          "Of a full segment's data.")
      .def_property_readonly("ecn_in_use", [](const Self& self) { return self.connection.ecn_in_use(); })
      .def_property_readonly("window_bytes",
                             [](const Self& self) { return self.connection.sender().window_bytes(); })
      .def_property_readonly(
          "slow_start_threshold_bytes",
          [](const Self& self) {
            return self.connection.sender().congestion_control().slow_start_threshold_bytes();
          })
      .def_property_readonly(
          "marked_share",
          [](const Self& self) { return self.connection.sender().congestion_control().marked_share(); },
          "DCTCP's alpha.")
      .def_property_readonly("in_flight_bytes",
                             [](const Self& self) { return self.connection.sender().in_flight_bytes(); })
      .def_property_readonly(
          "pipe_bytes", [](const Self& self) { return self.connection.sender().pipe_bytes(); },
          "What is believed to be under way (RFC 6675, section 4).")
      .def_property_readonly("in_recovery",
                             [](const Self& self) { return self.connection.sender().in_recovery(); })
      .def_property_readonly(
          "room_in_receiver_bytes",
          [](const Self& self) {
            return static_cast<int64_t>(self.connection.sender().window_end() -
                                        self.connection.sender().next());
          },
          "Of the window that the receiver has offered; negative if it has shrunk.")
      .def_property_readonly("timeout_ps",
                             [](const Self& self) { return self.connection.sender().timeout().timeout_ps(); })
      .def_property_readonly(
          "smoothed_round_trip_ps",
          [](const Self& self) { return self.connection.sender().timeout().smoothed_round_trip_ps(); })
      .def_property_readonly(
          "sender_counters",
          [](const Self& self) {
            return Record<"TcpSenderCounters">(statistics_dict(self.connection.sender().counters()));
          })
      .def_property_readonly("receiver_counters", [](const Self& self) {
        return Record<"TcpReceiverCounters">(statistics_dict(self.connection.receiver().counters()));
      });
}

void bind_congestion_control(py::module_& m) {
  using Self = tcp::CongestionControl;
  py::class_<Self>(m, "TcpCongestionControl",
                   "Decides a TCP connection's window; its events, for tests and models.")
      .def(py::init([](const std::string& name, uint32_t segment_bytes, uint32_t window_segments,
                       const CongestionParameters& parameters) {
             auto made = tcp::make_congestion_control(name, parameters);
             made->start(segment_bytes, window_segments);
             return made;
           }),
           "name"_a, py::kw_only(), "segment_bytes"_a, "window_segments"_a = 10,
           "parameters"_a = CongestionParameters())
      .def_property_readonly("name", &Self::name)
      .def_property_readonly("window_bytes", &Self::window_bytes)
      .def_property_readonly("slow_start_threshold_bytes", &Self::slow_start_threshold_bytes)
      .def_property_readonly("marked_share", &Self::marked_share, "DCTCP's alpha.")
      .def(
          "on_acknowledgement",
          [](Self& self, TimePs now, uint64_t bytes, uint64_t acknowledged, uint64_t next, TimePs smoothed_ps,
             TimePs round_trip_ps, bool ecn_echo, bool window_limited, bool grows) {
            const tcp::WindowAcknowledgement seen{.now = now,
                                                  .acknowledged_bytes = bytes,
                                                  .acknowledged = acknowledged,
                                                  .next = next,
                                                  .smoothed_round_trip_ps = smoothed_ps,
                                                  .round_trip_ps = round_trip_ps,
                                                  .ecn_echo = ecn_echo,
                                                  .window_limited = window_limited};
            self.observe(seen);
            if (grows) self.grow(seen);
          },
          "now_ps"_a, "acknowledged_bytes"_a, py::kw_only(), "acknowledged"_a = 0, "next"_a = 0,
          "smoothed_round_trip_ps"_a = 0, "round_trip_ps"_a = 0, "ecn_echo"_a = false,
          "window_limited"_a = true, "grows"_a = true)
      .def(
          "on_loss",
          [](Self& self, TimePs now, uint64_t flight) {
            self.on_congestion(now, tcp::CongestionSign::kLoss, flight);
          },
          "now_ps"_a, "flight_bytes"_a)
      .def(
          "on_ecn_echo",
          [](Self& self, TimePs now, uint64_t flight) {
            self.on_congestion(now, tcp::CongestionSign::kEcnEcho, flight);
          },
          "now_ps"_a, "flight_bytes"_a)
      .def("on_timeout", &Self::on_timeout, "now_ps"_a, "flight_bytes"_a, "again"_a = false);
  m.def("tcp_congestion_control_names", [] {
    std::vector<std::string_view> names;
    for (const tcp::CongestionKind* kind : tcp::congestion_kinds()) names.push_back(kind->name);
    return names;
  });
}

}  // namespace

void bind_tcp(py::module_& m) {
  declare_segment_fields();
  bind_congestion_control(m);
  bind_connection(m);
  py::class_<tcp::RetransmissionTimeout>(m, "TcpRetransmissionTimeout", "RFC 6298, section 2.")
      .def(py::init([](TimePs initial_ps, TimePs least_ps, TimePs most_ps) {
             return tcp::RetransmissionTimeout({initial_ps, least_ps, most_ps});
           }),
           py::kw_only(), "initial_ps"_a = kPsPerSecond, "least_ps"_a = kPsPerSecond / 5,
           "most_ps"_a = 120 * kPsPerSecond)
      .def("add_round_trip", &tcp::RetransmissionTimeout::add_round_trip, "round_trip_ps"_a)
      .def("back_off", &tcp::RetransmissionTimeout::back_off)
      .def_property_readonly("timeout_ps", &tcp::RetransmissionTimeout::timeout_ps)
      .def_property_readonly("smoothed_round_trip_ps", &tcp::RetransmissionTimeout::smoothed_round_trip_ps)
      .def_property_readonly("round_trip_variation_ps", &tcp::RetransmissionTimeout::round_trip_variation_ps);
  m.def(
      "read_tcp_segment", [](std::string_view bytes) { return segment_fields(read_segment(bytes)); },
      "segment"_a, "The header's fields. Raises ValueError for what is no segment.");
}

}  // namespace weft
