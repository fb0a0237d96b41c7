// NIC, queue pairs, registered memory and completions in Python.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bind_codec.hpp"
#include "bindings.hpp"
#include "bindings_support.hpp"
#include "completion_queue.hpp"
#include "fixed_window.hpp"
#include "nic.hpp"
#include "pcap_writer.hpp"
#include "python_buffer.hpp"
#include "rc_queue_pair.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

namespace {

// Memory registered with a NIC: what peers may write to by rkey, and what is sent from.
class RegisteredMemory {
 public:
  RegisteredMemory(std::shared_ptr<Nic> nic, std::shared_ptr<PythonBuffer> buffer, uint64_t length_bytes,
                   uint64_t virtual_address, bool remote_write)
      : nic_(std::move(nic)),
        buffer_(std::move(buffer)),
        length_bytes_(length_bytes),
        writable_(remote_write) {
    PythonGuard guard(nic_->engine());
    rkey_ = nic_->memory().add(virtual_address, data(), length_bytes, remote_write, buffer_);
    virtual_address_ = virtual_address;
  }

  uint32_t rkey() const { return rkey_; }
  uint64_t virtual_address() const { return virtual_address_; }
  uint64_t length_bytes() const { return length_bytes_; }
  bool writable() const { return writable_; }
  uint8_t* data() const { return buffer_ == nullptr ? nullptr : buffer_->data(); }
  const std::shared_ptr<PythonBuffer>& buffer() const { return buffer_; }

  void deregister() {
    PythonGuard guard(nic_->engine());
    nic_->memory().remove(rkey_);
  }

  // Where [offset, +length) starts, null for a sink. Throws std::invalid_argument if it is not inside.
  uint8_t* range(uint64_t offset_bytes, uint64_t length_bytes) const {
    if (offset_bytes > length_bytes_ || length_bytes > length_bytes_ - offset_bytes) {
      throw std::invalid_argument("bytes " + std::to_string(offset_bytes) + " to " +
                                  std::to_string(offset_bytes + length_bytes) + " of a memory region of " +
                                  std::to_string(length_bytes_));
    }
    return data() == nullptr ? nullptr : data() + offset_bytes;
  }

 private:
  std::shared_ptr<Nic> nic_;
  std::shared_ptr<PythonBuffer> buffer_;  // null: a sink
  uint64_t length_bytes_;
  bool writable_;
  uint64_t virtual_address_ = 0;
  uint32_t rkey_ = 0;
};

// Source or target of a posted request; no memory stands for zeros, or for bytes to be discarded.
struct LocalRange {
  LocalRange(const RegisteredMemory* memory, uint64_t offset_bytes, uint64_t length_bytes)
      : data(memory == nullptr ? nullptr : memory->range(offset_bytes, length_bytes)),
        owner(memory == nullptr ? nullptr : memory->buffer()) {}
  uint8_t* data;
  std::shared_ptr<const void> owner;
};

py::dict completion_dict(const Completion& completion) {
  return py::dict(
      "work_id"_a = completion.work_id, "kind"_a = completion_kind_name(completion.kind),
      "status"_a = completion_status_name(completion.status),
      "fault"_a = fault_name(completion_fault(completion.status)), "queue_pair"_a = completion.queue_pair,
      "length_bytes"_a = completion.length_bytes,
      "immediate"_a = completion.has_immediate ? std::optional(completion.immediate) : std::nullopt,
      "posted_ps"_a = completion.posted_ps, "completed_ps"_a = completion.completed_ps);
}

void bind_completions(py::module_& m) {
  py::class_<CompletionHandler, std::shared_ptr<CompletionHandler>>(m, "CompletionHandler");

  py::class_<CompletionQueue, CompletionHandler, std::shared_ptr<CompletionQueue>>(m, "CompletionQueue")
      .def(py::init([](Engine& engine) { return make_component<CompletionQueue>(engine); }), "engine"_a,
           py::keep_alive<1, 2>())
      .def(
          "poll",
          [](CompletionQueue& queue, std::optional<size_t> limit) {
            py::list result;
            for (const Completion& completion :
                 queue.poll(limit.value_or(std::numeric_limits<size_t>::max())))
              result.append(completion_dict(completion));
            return result;
          },
          "limit"_a = py::none())
      .def(
          "wait",
          [](CompletionQueue& queue, size_t count, double timeout_seconds) {
            py::gil_scoped_release release;
            return queue.wait(count, std::chrono::duration<double>(timeout_seconds));
          },
          "count"_a, "timeout_seconds"_a);
}

std::vector<roce::IpAddress> parse_addresses(const std::vector<std::string>& texts) {
  std::vector<roce::IpAddress> addresses;
  for (const std::string& text : texts) addresses.push_back(parse_ip(text));
  return addresses;
}

py::dict nic_stats(Nic& nic, int port) {
  PythonGuard guard(nic.engine());
  const NicPortCounters& counters = nic.counters(port);
  py::dict dropped;
  for (size_t error = 1; error < counters.parse_errors.size(); ++error) {
    if (const auto kind = static_cast<roce::ParseError>(error); kind != roce::ParseError::kNotRoce)
      dropped[roce::parse_error_name(kind)] = counters.parse_errors[error];
  }
  for (size_t reason = 0; reason < counters.drops.size(); ++reason)
    dropped[nic_drop_name(static_cast<NicDrop>(reason))] = counters.drops[reason];
  return py::dict("received_packets"_a = counters.received_packets,
                  "received_bytes"_a = counters.received_bytes,
                  "not_roce_packets"_a = counters.not_roce_packets, "dropped"_a = dropped);
}

void bind_nic(py::module_& m) {
  py::class_<RegisteredMemory, std::shared_ptr<RegisteredMemory>>(m, "MemoryRegion")
      .def_property_readonly("rkey", &RegisteredMemory::rkey)
      .def_property_readonly("virtual_address", &RegisteredMemory::virtual_address)
      .def_property_readonly("length_bytes", &RegisteredMemory::length_bytes)
      .def("deregister", &RegisteredMemory::deregister);

  py::class_<Nic, Node, std::shared_ptr<Nic>>(m, "Nic")
      .def(py::init([](Engine& engine, const std::string& name) {
             return make_component<Nic>(engine, engine, name);
           }),
           "engine"_a, "name"_a, py::keep_alive<1, 2>())
      .def_property_readonly("name", &Nic::name)
      .def(
          "add_port",
          [](Nic& nic, TransmitPort& line, const std::string& mac,
             const std::vector<std::string>& addresses) {
            PythonGuard guard(nic.engine());
            return nic.add_port({parse_mac(mac), parse_addresses(addresses)}, line);
          },
          "line"_a, py::kw_only(), "mac"_a, "addresses"_a)
      .def("allocate_queue_pair_number",
           [](Nic& nic) {
             PythonGuard guard(nic.engine());
             return nic.allocate_queue_pair_number();
           })
      .def(
          "register_memory",
          [](std::shared_ptr<Nic> nic, const py::buffer& buffer, uint64_t virtual_address,
             bool remote_write) {
            auto held = std::make_shared<PythonBuffer>(buffer, remote_write);
            const uint64_t length_bytes = held->size_bytes();
            return std::make_shared<RegisteredMemory>(std::move(nic), std::move(held), length_bytes,
                                                      virtual_address, remote_write);
          },
          "buffer"_a, py::kw_only(), "virtual_address"_a = 0, "remote_write"_a = true, py::keep_alive<0, 1>())
      .def(
          "register_sink",
          [](std::shared_ptr<Nic> nic, uint64_t length_bytes, uint64_t virtual_address) {
            return std::make_shared<RegisteredMemory>(std::move(nic), nullptr, length_bytes, virtual_address,
                                                      true);
          },
          "length_bytes"_a, py::kw_only(), "virtual_address"_a = 0, py::keep_alive<0, 1>())
      .def(
          "detach",
          [](Nic& nic, QueuePair& queue_pair) {
            PythonGuard guard(nic.engine());
            nic.detach(queue_pair);
          },
          "queue_pair"_a)
      .def(
          "set_capture",
          [](Nic& nic, int port, std::shared_ptr<PcapWriter> capture) {
            PythonGuard guard(nic.engine());
            nic.set_capture(port, std::move(capture));
          },
          "port"_a, "capture"_a.none(true))
      .def("stats", &nic_stats, "port"_a)
      .def("reset_stats", [](Nic& nic) {
        PythonGuard guard(nic.engine());
        nic.reset_counters();
      });
}

// What Python makes: it knows the engine, whose lock and time every call needs, and keeps its handler alive.
class PythonRcQueuePair final : public RcQueuePair {
 public:
  PythonRcQueuePair(Nic& nic, const RcConfig& config, std::unique_ptr<CongestionControl> congestion_control,
                    std::shared_ptr<CompletionHandler> handler)
      : RcQueuePair(config, nic.engine().packets(), nic.memory(), std::move(congestion_control),
                    handler.get()),
        engine_(nic.engine()),
        handler_(std::move(handler)) {}

  static Engine& engine_of(const RcQueuePair& queue_pair) {
    const auto* made_here = dynamic_cast<const PythonRcQueuePair*>(&queue_pair);
    if (made_here == nullptr) throw std::logic_error("this queue pair belongs to native code");
    return made_here->engine_;
  }

 private:
  Engine& engine_;
  std::shared_ptr<CompletionHandler> handler_;
};

std::shared_ptr<RcQueuePair> make_rc_queue_pair(
    Nic& nic, int port, std::shared_ptr<CompletionHandler> completions, uint32_t remote_queue_pair,
    const std::string& destination_mac, const std::string& destination_ip, uint64_t window_bytes,
    TimePs retransmission_timeout, std::optional<uint32_t> queue_pair,
    std::optional<uint16_t> source_udp_port, uint64_t pacing_rate_bps, RcConfig config) {
  Engine& engine = nic.engine();
  PythonGuard guard(engine);
  config.queue_pair = queue_pair ? *queue_pair : nic.allocate_queue_pair_number();
  config.remote_queue_pair = remote_queue_pair;
  config.source_mac = nic.port_config(port).mac;
  config.destination_mac = parse_mac(destination_mac);
  config.destination_ip = parse_ip(destination_ip);
  config.source_ip = nic.own_address(port, config.destination_ip);
  config.source_udp_port = source_udp_port.value_or(
      entropy_udp_port(config.source_ip, config.destination_ip, config.queue_pair, config.remote_queue_pair));
  config.retransmission_timeout_ps = retransmission_timeout;
  auto made = std::make_shared<PythonRcQueuePair>(
      nic, config, std::make_unique<FixedWindow>(window_bytes, pacing_rate_bps), std::move(completions));
  nic.attach(*made, port, config.queue_pair);
  engine.adopt(made);
  return made;
}

py::dict rc_stats(const RcQueuePair& queue_pair) {
  PythonGuard guard(PythonRcQueuePair::engine_of(queue_pair));
  const RcCounters& counters = queue_pair.counters();
  return py::dict(
      "data_packets_sent"_a = counters.data_packets_sent, "data_bytes_sent"_a = counters.data_bytes_sent,
      "retransmitted_packets"_a = counters.retransmitted_packets, "timeouts"_a = counters.timeouts,
      "sequence_naks_received"_a = counters.sequence_naks_received,
      "rnr_naks_received"_a = counters.rnr_naks_received,
      "fatal_naks_received"_a = counters.fatal_naks_received,
      "acknowledgements_received"_a = counters.acknowledgements_received,
      "stale_acknowledgements"_a = counters.stale_acknowledgements,
      "invalid_acknowledgements"_a = counters.invalid_acknowledgements,
      "cnps_received"_a = counters.cnps_received, "data_packets_received"_a = counters.data_packets_received,
      "data_bytes_received"_a = counters.data_bytes_received,
      "duplicate_packets"_a = counters.duplicate_packets,
      "out_of_sequence_packets"_a = counters.out_of_sequence_packets,
      "ce_marked_packets"_a = counters.ce_marked_packets,
      "acknowledgements_sent"_a = counters.acknowledgements_sent,
      "sequence_naks_sent"_a = counters.sequence_naks_sent, "rnr_naks_sent"_a = counters.rnr_naks_sent,
      "fatal_naks_sent"_a = counters.fatal_naks_sent, "cnps_sent"_a = counters.cnps_sent,
      "wrong_source"_a = counters.wrong_source, "wrong_partition_key"_a = counters.wrong_partition_key,
      "unexpected_opcode"_a = counters.unexpected_opcode, "dropped_in_error"_a = counters.dropped_in_error,
      "in_flight_bytes"_a = queue_pair.in_flight_bytes(),
      "outstanding_requests"_a = queue_pair.outstanding_requests(),
      "error"_a = completion_status_name(queue_pair.error()),
      "responder_error"_a = completion_status_name(queue_pair.responder_error()));
}

void post_write(RcQueuePair& queue_pair, const RegisteredMemory* memory, uint64_t offset_bytes,
                uint64_t length_bytes, uint64_t remote_address, uint32_t rkey,
                std::optional<uint32_t> immediate, uint64_t work_id) {
  LocalRange local(memory, offset_bytes, length_bytes);
  Engine& engine = PythonRcQueuePair::engine_of(queue_pair);
  PythonGuard guard(engine);
  queue_pair.post_write(engine.now(), local.data, length_bytes, remote_address, rkey, immediate, work_id,
                        std::move(local.owner));
}

void post_send(RcQueuePair& queue_pair, const RegisteredMemory* memory, uint64_t offset_bytes,
               uint64_t length_bytes, std::optional<uint32_t> immediate, uint64_t work_id) {
  LocalRange local(memory, offset_bytes, length_bytes);
  Engine& engine = PythonRcQueuePair::engine_of(queue_pair);
  PythonGuard guard(engine);
  queue_pair.post_send(engine.now(), local.data, length_bytes, immediate, work_id, std::move(local.owner));
}

void post_receive(RcQueuePair& queue_pair, const RegisteredMemory* memory, uint64_t offset_bytes,
                  uint64_t length_bytes, uint64_t work_id) {
  if (memory != nullptr && !memory->writable()) {
    throw std::invalid_argument("the memory region of a receive was registered with remote_write=False");
  }
  LocalRange local(memory, offset_bytes, length_bytes);
  Engine& engine = PythonRcQueuePair::engine_of(queue_pair);
  PythonGuard guard(engine);
  queue_pair.post_receive(engine.now(), local.data, length_bytes, work_id, std::move(local.owner));
}

std::optional<py::dict> last_telemetry(const RcQueuePair& queue_pair) {
  PythonGuard guard(PythonRcQueuePair::engine_of(queue_pair));
  if (!queue_pair.last_telemetry()) return std::nullopt;
  return telemetry_dict(*queue_pair.last_telemetry());
}

void bind_queue_pairs(py::module_& m) {
  py::class_<QueuePair, std::shared_ptr<QueuePair>>(m, "QueuePair");
  const RcConfig defaults;
  py::class_<RcQueuePair, QueuePair, std::shared_ptr<RcQueuePair>>(m, "RcQueuePair")
      .def(
          py::init([](Nic& nic, int port, std::shared_ptr<CompletionHandler> completions,
                      uint32_t remote_queue_pair, const std::string& destination_mac,
                      const std::string& destination_ip, uint64_t window_bytes, TimePs retransmission_timeout,
                      std::optional<uint32_t> queue_pair, std::optional<uint16_t> source_udp_port,
                      uint64_t pacing_rate_bps, uint32_t initial_psn, uint32_t remote_initial_psn,
                      uint32_t path_mtu_bytes, bool telemetry, uint32_t ack_interval_packets,
                      uint32_t timeout_backoff_limit, uint32_t retry_limit, uint32_t rnr_retry_limit,
                      uint8_t rnr_timer_code, bool receive_for_immediate, TimePs cnp_interval_ps) {
            RcConfig config;
            config.initial_psn = initial_psn;
            config.remote_initial_psn = remote_initial_psn;
            config.path_mtu_bytes = path_mtu_bytes;
            config.telemetry = telemetry;
            config.ack_interval_packets = ack_interval_packets;
            config.timeout_backoff_limit = timeout_backoff_limit;
            config.retry_limit = retry_limit;
            config.rnr_retry_limit = rnr_retry_limit;
            config.rnr_timer_code = rnr_timer_code;
            config.receive_for_immediate = receive_for_immediate;
            config.cnp_interval_ps = cnp_interval_ps;
            return make_rc_queue_pair(nic, port, std::move(completions), remote_queue_pair, destination_mac,
                                      destination_ip, window_bytes, retransmission_timeout, queue_pair,
                                      source_udp_port, pacing_rate_bps, config);
          }),
          "nic"_a, "port"_a, "completions"_a, py::kw_only(), "remote_queue_pair"_a, "destination_mac"_a,
          "destination_ip"_a, "window_bytes"_a, "retransmission_timeout_ps"_a, "queue_pair"_a = py::none(),
          "source_udp_port"_a = py::none(), "pacing_rate_bps"_a = 0, "initial_psn"_a = defaults.initial_psn,
          "remote_initial_psn"_a = defaults.remote_initial_psn, "path_mtu_bytes"_a = defaults.path_mtu_bytes,
          "telemetry"_a = defaults.telemetry, "ack_interval_packets"_a = defaults.ack_interval_packets,
          "timeout_backoff_limit"_a = defaults.timeout_backoff_limit, "retry_limit"_a = defaults.retry_limit,
          "rnr_retry_limit"_a = defaults.rnr_retry_limit, "rnr_timer_code"_a = defaults.rnr_timer_code,
          "receive_for_immediate"_a = defaults.receive_for_immediate,
          "cnp_interval_ps"_a = defaults.cnp_interval_ps, py::keep_alive<1, 2>(), py::keep_alive<1, 4>())
      .def_property_readonly("queue_pair",
                             [](const RcQueuePair& queue_pair) { return queue_pair.config().queue_pair; })
      .def_property_readonly(
          "source_udp_port",
          [](const RcQueuePair& queue_pair) { return queue_pair.config().source_udp_port; })
      .def("post_write", &post_write, "memory"_a.none(true), "offset_bytes"_a, "length_bytes"_a,
           "remote_address"_a, "rkey"_a, py::kw_only(), "immediate"_a = py::none(), "work_id"_a = 0)
      .def("post_send", &post_send, "memory"_a.none(true), "offset_bytes"_a, "length_bytes"_a, py::kw_only(),
           "immediate"_a = py::none(), "work_id"_a = 0)
      .def("post_receive", &post_receive, "memory"_a.none(true), "offset_bytes"_a, "length_bytes"_a,
           py::kw_only(), "work_id"_a = 0)
      .def_property_readonly("last_telemetry", &last_telemetry)
      .def("stats", &rc_stats)
      .def(
          "observe",
          [](RcQueuePair& queue_pair, int32_t source, int32_t destination, int32_t plane, bool messages,
             bool telemetry) {
            Engine& engine = PythonRcQueuePair::engine_of(queue_pair);
            PythonGuard guard(engine);
            if (engine.probe() == nullptr) throw std::logic_error("the engine has no probe");
            queue_pair.observe(engine.probe(), {source, destination, plane}, messages, telemetry);
          },
          "source"_a, "destination"_a, "plane"_a, py::kw_only(), "messages"_a = true, "telemetry"_a = false)
      .def("reset_stats", [](RcQueuePair& queue_pair) {
        PythonGuard guard(PythonRcQueuePair::engine_of(queue_pair));
        queue_pair.reset_counters();
      });

  m.def("retransmission_timeout_ps", &retransmission_timeout_ps, "base_round_trip_ps"_a, py::kw_only(),
        "round_trips"_a = 4.0, "wall_clock_floor_ns"_a = 0, "dilation"_a = 1.0);
  m.def("bandwidth_delay_product_bytes", &bandwidth_delay_product_bytes, "rate_bps"_a, "round_trip_ps"_a);
}

}  // namespace

void bind_transport(py::module_& m) {
  bind_codec(m);
  bind_completions(m);
  bind_nic(m);
  bind_queue_pairs(m);
}

}  // namespace weft
