// TCP flows of hosts in Python.
#include <pybind11/stl.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "hosts/applications/tcp_flows.hpp"
#include "python/bind_codec.hpp"
#include "python/bind_columns.hpp"
#include "python/bind_ip.hpp"
#include "python/bindings_support.hpp"
#include "python/statistics_dict.hpp"
#include "python/typed.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

namespace {

TcpFlowConfig flow_config(uint32_t flow, const std::string& peer, uint16_t port, uint16_t source_port,
                          TimePs start_ps, uint64_t size_bytes, TimePs duration_ps, uint8_t dscp,
                          const std::string& congestion_control, const CongestionParameters& parameters,
                          uint16_t maximum_segment_bytes, bool ecn, bool sack, uint64_t receive_buffer_bytes,
                          uint32_t initial_window_segments, TimePs least_timeout_ps,
                          TimePs delayed_acknowledgement_ps, uint32_t acknowledge_every_segments,
                          TimePs send_jitter_ps) {
  if (send_jitter_ps < 0) throw std::invalid_argument("send_jitter_ps is negative");
  TcpFlowConfig config;
  config.flow = flow;
  if (!peer.empty()) config.peer = parse_ip(peer);
  config.port = port;
  config.source_port = source_port;
  config.start_ps = start_ps;
  config.size_bytes = size_bytes;
  config.duration_ps = duration_ps;
  config.dscp = dscp;
  config.send_jitter_ps = send_jitter_ps;
  config.congestion_control = congestion_control;
  config.parameters = parameters;
  config.connection.maximum_segment_bytes = maximum_segment_bytes;
  config.connection.ecn = ecn;
  config.connection.sack = sack;
  config.connection.receiver.buffer_bytes = receive_buffer_bytes;
  config.connection.receiver.delayed_acknowledgement_ps = delayed_acknowledgement_ps;
  config.connection.receiver.acknowledge_every_segments = acknowledge_every_segments;
  config.connection.sender.initial_window_segments = initial_window_segments;
  config.connection.sender.timeout.least_ps = least_timeout_ps;
  return config;
}

py::list flow_records(TcpFlows& flows) {
  PythonGuard guard(flows.engine());
  py::list made;
  for (const TcpFlowRecord& record : flows.records()) {
    made.append(py::dict("flow"_a = record.flow, "sends"_a = record.sends, "started_ps"_a = record.started_ps,
                         "finished_ps"_a = record.finished_ps, "bytes"_a = record.bytes,
                         "spoilt_segments"_a = record.spoilt_segments,
                         "smoothed_round_trip_ps"_a = record.smoothed_round_trip_ps,
                         "sender"_a = statistics_dict(record.sender),
                         "receiver"_a = statistics_dict(record.receiver)));
  }
  return made;
}

Record<"TcpWindowSamples"> window_samples(TcpFlows& flows) {
  PythonGuard guard(flows.engine());
  const std::vector<TcpWindowSample>& samples = flows.samples();
  py::array_t<double> share(static_cast<py::ssize_t>(samples.size()));
  for (size_t each = 0; each < samples.size(); ++each)
    share.mutable_data()[each] = samples[each].marked_share;
  return py::dict("flow"_a = column_of(samples, &TcpWindowSample::flow),
                  "time_ps"_a = column_of(samples, &TcpWindowSample::time_ps),
                  "window_bytes"_a = column_of(samples, &TcpWindowSample::window_bytes),
                  "in_flight_bytes"_a = column_of(samples, &TcpWindowSample::in_flight_bytes),
                  "smoothed_round_trip_ps"_a = column_of(samples, &TcpWindowSample::smoothed_round_trip_ps),
                  "marked_share"_a = share);
}

void declare_flow_records() {
  declare_record("TcpFlowRecord",
                 {{"flow", "int", ""},
                  {"sends", "bool", "this end sent it"},
                  {"started_ps", "int", ""},
                  {"finished_ps", "int", "the last acknowledgement, or the last byte; 0: not yet"},
                  {"bytes", "int", "acknowledged, or received in order"},
                  {"spoilt_segments", "int", "received with other bytes than were sent"},
                  {"smoothed_round_trip_ps", "int", ""},
                  {"sender", "TcpSenderCounters", ""},
                  {"receiver", "TcpReceiverCounters", ""}});
  const std::string column = "numpy.typing.NDArray[numpy.int64]";
  declare_record("TcpWindowSamples",
                 {{"flow", column, ""},
                  {"time_ps", column, ""},
                  {"window_bytes", column, ""},
                  {"in_flight_bytes", column, ""},
                  {"smoothed_round_trip_ps", column, ""},
                  {"marked_share", "numpy.typing.NDArray[numpy.float64]", "DCTCP's alpha"}});
}

}  // namespace

void bind_tcp_flows(py::module_& m) {
  declare_record<TcpCounters>("TcpCounters");
  declare_flow_records();
  py::class_<TcpProtocol, std::shared_ptr<TcpProtocol>>(m, "TcpProtocol", "TCP on a host's IP stack.")
      .def(py::init([](IpStack& stack) { return make_component<TcpProtocol>(stack.engine(), stack); }),
           "stack"_a, py::keep_alive<1, 2>())
      .def(
          "stats",
          [](TcpProtocol& protocol) {
            PythonGuard guard(protocol.stack().engine());
            return Record<"TcpCounters">(statistics_dict(protocol.counters()));
          },
          "Segments that no connection has taken, by reason.");
  const tcp::ConnectionConfig defaults;
  py::class_<TcpFlowConfig>(m, "TcpFlowConfig",
                            R"doc(A TCP flow, seen from one of its ends.

size_bytes 0: as much as goes in duration_ps. What acknowledgements allow to be sent leaves up to send_jitter_ps
later. peer and source_port of an end that receives are of whom it takes, by default of anyone.)doc")
      .def(py::init(&flow_config), "flow"_a, py::kw_only(), "peer"_a = "", "port"_a, "source_port"_a = 0,
           "start_ps"_a = 0, "size_bytes"_a = 0, "duration_ps"_a = 0, "dscp"_a = 0,
           "congestion_control"_a = "cubic", "parameters"_a = CongestionParameters(),
           "maximum_segment_bytes"_a = defaults.maximum_segment_bytes, "ecn"_a = false, "sack"_a = true,
           "receive_buffer_bytes"_a = defaults.receiver.buffer_bytes,
           "initial_window_segments"_a = defaults.sender.initial_window_segments,
           "least_timeout_ps"_a = defaults.sender.timeout.least_ps,
           "delayed_acknowledgement_ps"_a = defaults.receiver.delayed_acknowledgement_ps,
           "acknowledge_every_segments"_a = defaults.receiver.acknowledge_every_segments,
           "send_jitter_ps"_a = 0);
  py::class_<TcpFlows, Application, std::shared_ptr<TcpFlows>>(
      m, "TcpFlows", R"doc(A host's part in TCP flows: those that it sends, and those that it receives.

sample_interval_ps: senders' windows are sampled no more often; 0: not at all. Raises ValueError for a port that is
taken or values out of range.)doc")
      .def(py::init([](IpStack& stack, ScheduleExecutor& executor, TcpProtocol& protocol,
                       std::vector<TcpFlowConfig> outgoing, std::vector<TcpFlowConfig> incoming,
                       TimePs sample_interval_ps) {
             return make_component<TcpFlows>(stack.engine(), stack, executor, protocol, std::move(outgoing),
                                             std::move(incoming), sample_interval_ps);
           }),
           "stack"_a, "executor"_a, "protocol"_a, py::kw_only(), "outgoing"_a, "incoming"_a,
           "sample_interval_ps"_a = 0, py::keep_alive<1, 2>(), py::keep_alive<1, 3>(), py::keep_alive<1, 4>())
      .def(
          "records",
          [](TcpFlows& flows) { return Typed<"list[TcpFlowRecord]", py::list>(flow_records(flows)); },
          "Of each flow, the outgoing ones first.")
      .def("samples", &window_samples, "Columns of senders' windows over time.");
}

}  // namespace weft
