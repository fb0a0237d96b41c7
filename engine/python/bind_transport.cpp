// NIC, queue pairs, registered memory and completions in Python.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "hosts/completion_queue.hpp"
#include "hosts/host_links.hpp"
#include "hosts/nic.hpp"
#include "hosts/notification_receiver.hpp"
#include "links/pcap_writer.hpp"
#include "python/bind_codec.hpp"
#include "python/bindings.hpp"
#include "python/bindings_support.hpp"
#include "python/python_buffer.hpp"
#include "python/registered_memory.hpp"
#include "python/shared_receives.hpp"
#include "python/statistics_dict.hpp"
#include "python/typed.hpp"
#include "time/event_fd.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

namespace {

uint8_t remote_access(bool write, bool read, bool atomic) {
  return static_cast<uint8_t>((write ? kRemoteWrite : 0) | (read ? kRemoteRead : 0) |
                              (atomic ? kRemoteAtomic : 0));
}

py::dict completion_dict(const Completion& completion) {
  return py::dict(
      "work_id"_a = completion.work_id, "kind"_a = completion_kind_name(completion.kind),
      "status"_a = completion_status_name(completion.status),
      "fault"_a = fault_name(completion_fault(completion.status)), "queue_pair"_a = completion.queue_pair,
      "length_bytes"_a = completion.length_bytes,
      "immediate"_a = completion.has_immediate ? std::optional(completion.immediate) : std::nullopt,
      "solicited"_a = completion.solicited,
      "source_queue_pair"_a = completion.has_grh ? std::optional(completion.source_queue_pair) : std::nullopt,
      "posted_ps"_a = completion.posted_ps, "completed_ps"_a = completion.completed_ps);
}

// The queue, a file descriptor that is readable while completions wait, and a listener to the first of them.
class PythonCompletionQueue final : public CompletionQueue {
 public:
  explicit PythonCompletionQueue(Engine& engine) : engine_(engine) {}
  ~PythonCompletionQueue() override {
    if (event_fd_ >= 0) close(event_fd_);
  }

  Engine& engine() { return engine_; }
  int event_fd() {
    if (event_fd_ < 0) event_fd_ = open_event_fd();
    return event_fd_;
  }
  void set_listener(std::function<void()> listener) { listener_ = std::move(listener); }

  // Under the engine's lock, as is poll_all().
  void on_completion(const Completion& completion) override {
    CompletionQueue::on_completion(completion);
    if (std::exchange(announced_, true)) return;
    if (event_fd_ >= 0) make_readable(event_fd_);
    if (listener_) listener_();
  }
  std::vector<Completion> poll(size_t limit) {
    std::vector<Completion> taken = CompletionQueue::poll(limit);
    if (taken.size() < limit) {
      announced_ = false;
      if (event_fd_ >= 0) make_unreadable(event_fd_);
    }
    return taken;
  }

 private:
  Engine& engine_;
  int event_fd_ = -1;
  bool announced_ = false;  // since poll() last took all
  std::function<void()> listener_;
};

Typed<"list[Completion]", py::list> poll_completions(PythonCompletionQueue& queue,
                                                     std::optional<size_t> limit) {
  std::vector<Completion> taken;
  {
    PythonGuard guard(queue.engine());
    taken = queue.poll(limit.value_or(std::numeric_limits<size_t>::max()));
  }
  Typed<"list[Completion]", py::list> result;
  for (const Completion& completion : taken) result.append(completion_dict(completion));
  return result;
}

void bind_completions(py::module_& m) {
  py::class_<CompletionHandler, std::shared_ptr<CompletionHandler>>(
      m, "CompletionHandler", "Takes the completions of queue pairs, on the engine's thread.");

  py::class_<PythonCompletionQueue, CompletionHandler, std::shared_ptr<PythonCompletionQueue>>(
      m, "CompletionQueue",
      R"doc(Keeps completions until they are polled.

As a file (`fileno`, from its first call on) it is readable while completions wait.)doc")
      .def(py::init([](Engine& engine) { return make_component<PythonCompletionQueue>(engine, engine); }),
           "engine"_a, py::keep_alive<1, 2>())
      .def("poll", &poll_completions, "limit"_a = py::none(), R"doc(Take out completions, oldest first.

kind: write, send (ours, acknowledged), receive, write_immediate (the peer's, arrived), aggregate.
status: success, local_length_error, local_protection_error, remote_invalid_request, remote_access_error,
remote_operation_error, retry_exceeded, rnr_retry_exceeded, flushed. fault: none, local, peer,
network: whose doing the error is.)doc")
      .def("fileno",
           [](PythonCompletionQueue& queue) {
             PythonGuard guard(queue.engine());
             return queue.event_fd();
           })
      .def(
          "set_listener",
          [](PythonCompletionQueue& queue, std::optional<Callback> listener) {
            std::function<void()> held = listener_of(queue.engine(), std::move(listener));
            PythonGuard guard(queue.engine());
            queue.set_listener(std::move(held));
          },
          "listener"_a.none(true),
          "Call listener() from the engine when a completion comes and none was waiting; None ends that.")
      .def(
          "wait",
          [](PythonCompletionQueue& queue, size_t count, double timeout_seconds) {
            py::gil_scoped_release release;
            return queue.wait(count, std::chrono::duration<double>(timeout_seconds));
          },
          "count"_a, "timeout_seconds"_a,
          "True once count completions wait to be polled, False after that much real time.");
}

std::vector<roce::IpAddress> parse_addresses(const std::vector<std::string>& texts) {
  std::vector<roce::IpAddress> addresses;
  for (const std::string& text : texts) addresses.push_back(parse_ip(text));
  return addresses;
}

Record<"NicStats"> nic_stats(Nic& nic, int port) {
  PythonGuard guard(nic.engine());
  const NicPortCounters& counters = nic.counters(port);
  py::dict dropped;
  for (size_t error = 1; error < counters.parse_errors.size(); ++error) {
    if (const auto kind = static_cast<roce::ParseError>(error); kind != roce::ParseError::kNotRoce)
      dropped[shared_key(roce::parse_error_name(kind))] = counters.parse_errors[error];
  }
  for (size_t reason = 0; reason < counters.drops.size(); ++reason)
    dropped[shared_key(nic_drop_name(static_cast<NicDrop>(reason)))] = counters.drops[reason];
  py::dict stats = statistics_dict(counters);
  stats[shared_key("dropped")] = dropped;
  return stats;
}

// A buffer that native code reaches as it does the memory of other processes: by copies, which fail once it
// is unmapped.
class PythonForeignMemory final : public ForeignMemory {
 public:
  explicit PythonForeignMemory(const py::buffer& buffer) : buffer_(buffer, true) {}

  uint64_t length_bytes() const { return buffer_.size_bytes(); }
  void unmap(uint64_t from_bytes) { mapped_bytes_ = std::min(mapped_bytes_, from_bytes); }
  bool read(uint64_t offset_bytes, uint8_t* to, size_t bytes) override {
    if (!has(offset_bytes, bytes)) return false;
    std::copy_n(buffer_.data() + offset_bytes, bytes, to);
    return true;
  }
  bool write(uint64_t offset_bytes, const uint8_t* from, size_t bytes) override {
    if (!has(offset_bytes, bytes)) return false;
    std::copy_n(from, bytes, buffer_.data() + offset_bytes);
    return true;
  }

 private:
  bool has(uint64_t offset_bytes, size_t bytes) const {
    return offset_bytes <= mapped_bytes_ && bytes <= mapped_bytes_ - offset_bytes;
  }

  PythonBuffer buffer_;
  uint64_t mapped_bytes_ = buffer_.size_bytes();
};

void bind_shared(py::module_& m) {
  py::class_<PythonForeignMemory, std::shared_ptr<PythonForeignMemory>>(
      m, "ForeignMemory",
      R"doc(A writable C-contiguous buffer that the engine reaches as it does the memory of other processes.

Raises ValueError if it is not contiguous, BufferError if it is read-only.)doc")
      .def(py::init<const py::buffer&>(), "buffer"_a)
      .def("unmap", &PythonForeignMemory::unmap, "from_bytes"_a = 0,
           "From that byte on, reads and writes fail from now on, for ever. Call it between runs of the "
           "engine.");
  py::class_<MemoryDomain, std::shared_ptr<MemoryDomain>>(m, "MemoryDomain",
                                                          R"doc(A protection domain of a NIC beyond its first.

Peers reach what is registered in it over queue pairs of this domain alone. Its rkeys are no other domain's.)doc")
      .def(py::init<std::shared_ptr<Nic>>(), "nic"_a.none(false), py::keep_alive<1, 2>());
  py::class_<PythonSharedReceives, std::shared_ptr<PythonSharedReceives>>(
      m, "SharedReceives",
      "A shared receive queue: receives that several queue pairs of a NIC take theirs from.")
      .def(py::init<Nic&>(), "nic"_a, py::keep_alive<1, 2>())
      .def(
          "post_receive",
          [](PythonSharedReceives& shared, const RegisteredMemory* memory, uint64_t offset_bytes,
             uint64_t length_bytes, uint64_t work_id) {
            PostedReceive receive = receive_in(memory, offset_bytes, length_bytes, work_id);
            PythonGuard guard(shared.engine);
            shared.receives->post(std::move(receive));
          },
          "memory"_a.none(true), "offset_bytes"_a, "length_bytes"_a, py::kw_only(), "work_id"_a = 0,
          "A place (None: bytes are discarded) for one incoming SEND of any of the queue pairs.")
      .def(
          "arm",
          [](PythonSharedReceives& shared, size_t limit, std::optional<Callback> listener) {
            std::function<void()> held = listener_of(shared.engine, std::move(listener));
            PythonGuard guard(shared.engine);
            shared.receives->arm(limit, std::move(held));
          },
          "limit"_a, "listener"_a.none(true),
          "Call listener() from the engine, once, when a receive is taken and fewer than limit are left.")
      .def("__len__", [](PythonSharedReceives& shared) {
        PythonGuard guard(shared.engine);
        return shared.receives->size();
      });
}

void bind_nic(py::module_& m) {
  declare_record<NicPortCounters>("NicStats", {{"dropped", "dict[str, int]", "packets, by reason"}});
  py::class_<RegisteredMemory, std::shared_ptr<RegisteredMemory>>(
      m, "MemoryRegion", "Memory registered with a NIC, by Nic.register_memory() or Nic.register_sink().")
      .def_property_readonly("rkey", &RegisteredMemory::rkey)
      .def_property_readonly("virtual_address", &RegisteredMemory::virtual_address)
      .def_property_readonly("length_bytes", &RegisteredMemory::length_bytes)
      .def("deregister", &RegisteredMemory::deregister,
           "Refuse the rkey from now on, for ever. Requests in progress keep the buffer alive.");

  py::class_<Nic, Node, std::shared_ptr<Nic>> nic_class(
      m, "Nic",
      "A RoCEv2 adapter: validates what arrives, hands it to queue pairs, lets them take turns in sending.");
  bind_shared(m);  // its signatures name the NIC, and the NIC's methods name these
  nic_class
      .def(
          py::init([](Engine& engine, const std::string& name, uint64_t pcie_rate_bps, TimePs dma_latency_ps,
                      TimePs per_message_overhead_ps, TimePs per_packet_overhead_ps, uint64_t entropy_seed) {
            const NicConfig config{pcie_rate_bps, dma_latency_ps, per_message_overhead_ps,
                                   per_packet_overhead_ps, entropy_seed};
            return make_component<Nic>(engine, engine, name, config);
          }),
          "engine"_a, "name"_a, py::kw_only(), "pcie_rate_bps"_a = 0, "dma_latency_ps"_a = 0,
          "per_message_overhead_ps"_a = 0, "per_packet_overhead_ps"_a = 0, "entropy_seed"_a = 0,
          py::keep_alive<1, 2>(),
          R"doc(A NIC whose payload crosses PCIe, at pcie_rate_bps (0: unlimited) in each direction for all ports.

dma_latency_ps passes from the end of a transfer until its bytes are there, per_message_overhead_ps
before the first packet of each message sent, per_packet_overhead_ps before each data packet sent or
received. entropy_seed draws the source ports that queue pairs and the IP stack choose. Raises ValueError for
negative times.)doc")
      .def_property_readonly("name", &Nic::name)
      .def(
          "add_port",
          [](Nic& nic, TransmitPort& transmit_port, const std::string& mac,
             const std::vector<std::string>& addresses, std::shared_ptr<HostLinks> host_links,
             const std::vector<uint32_t>& fetched_over, const std::vector<uint32_t>& placed_over) {
            if (host_links != nullptr && &host_links->engine() != &nic.engine()) {
              throw std::invalid_argument("NIC '" + nic.name() +
                                          "' is of another engine than its host's links");
            }
            PythonGuard guard(nic.engine());
            return nic.add_port({parse_mac(mac),
                                 parse_addresses(addresses),
                                 {{host_links, fetched_over}, {host_links, placed_over}}},
                                transmit_port);
          },
          "transmit_port"_a, py::kw_only(), "mac"_a, "addresses"_a, "host_links"_a = py::none(),
          "fetched_over"_a = std::vector<uint32_t>(), "placed_over"_a = std::vector<uint32_t>(),
          R"doc(Send through transmit_port, at its rate; returns the port's number, from 0, for Link.connect().

Payload crosses the named links of host_links in order, to be sent and when received, in place of the NIC's
PCIe. Raises ValueError for links there are not and those of another engine.)doc")
      .def(
          "allocate_queue_pair_number",
          [](Nic& nic) {
            PythonGuard guard(nic.engine());
            return nic.allocate_queue_pair_number();
          },
          "A number not in use, for a queue pair to be made later.")
      .def(
          "register_memory",
          [](std::shared_ptr<Nic> nic, const py::buffer& buffer, uint64_t virtual_address, bool remote_write,
             bool remote_read, bool remote_atomic, std::optional<bool> local_write,
             std::shared_ptr<MemoryDomain> domain) {
            const bool is_writable = local_write.value_or(remote_write);
            auto held = std::make_shared<PythonBuffer>(buffer, is_writable || remote_write || remote_atomic);
            const uint64_t length_bytes = held->size_bytes();
            return std::make_shared<RegisteredMemory>(
                std::move(nic), std::move(domain), std::move(held), nullptr, length_bytes, virtual_address,
                remote_access(remote_write, remote_read, remote_atomic), is_writable);
          },
          "buffer"_a, py::kw_only(), "virtual_address"_a = 0, "remote_write"_a = true,
          "remote_read"_a = false, "remote_atomic"_a = false, "local_write"_a = py::none(),
          "memory_domain"_a = py::none(), py::keep_alive<0, 1>(),
          R"doc(Register a C-contiguous buffer without copying it.

remote_write, remote_read, remote_atomic: what peers may do. local_write (None: as remote_write): it takes
what READs, atomics and receives of this host bring. If nobody may write, the buffer may be read-only.
memory_domain: whose queue pairs let peers reach it, None: the NIC's first.
Raises ValueError if it is not contiguous, BufferError if it is read-only.)doc")
      .def(
          "register_sink",
          [](std::shared_ptr<Nic> nic, uint64_t length_bytes, uint64_t virtual_address) {
            return std::make_shared<RegisteredMemory>(std::move(nic), nullptr, nullptr, nullptr, length_bytes,
                                                      virtual_address, kAnyRemoteAccess, true);
          },
          "length_bytes"_a, py::kw_only(), "virtual_address"_a = 0, py::keep_alive<0, 1>(),
          "A region whose bytes are checked and counted, but kept nowhere (load generators); zeros are read.")
      .def(
          "register_foreign",
          [](std::shared_ptr<Nic> nic, std::shared_ptr<PythonForeignMemory> memory, uint64_t virtual_address,
             std::shared_ptr<MemoryDomain> domain) {
            const uint64_t length_bytes = memory->length_bytes();
            return std::make_shared<RegisteredMemory>(std::move(nic), std::move(domain), nullptr,
                                                      std::move(memory), length_bytes, virtual_address,
                                                      kAnyRemoteAccess, true);
          },
          "foreign"_a.none(false), py::kw_only(), "virtual_address"_a = 0, "memory_domain"_a = py::none(),
          py::keep_alive<0, 1>(),
          "Register memory that the engine reads and writes by copies alone; peers may do everything with "
          "it.")
      .def(
          "detach",
          [](Nic& nic, QueuePair& queue_pair) {
            PythonGuard guard(nic.engine());
            nic.detach(queue_pair);
          },
          "queue_pair"_a, "Packets for it are dropped and counted from now on.")
      .def(
          "set_capture",
          [](Nic& nic, int port, std::shared_ptr<PcapWriter> capture) {
            PythonGuard guard(nic.engine());
            nic.set_capture(port, std::move(capture));
          },
          "port"_a, "capture"_a.none(true), "Record what the port receives and sends.")
      .def(
          "take_recovery_times",
          [](Nic& nic) {
            PythonGuard guard(nic.engine());
            const RecoveryTimes times = nic.take_recovery_times();
            return std::pair(times.first_ps, times.last_ps);
          },
          "When the first and the last packet sent again was acknowledged since the last call; -1: there was "
          "none.")
      .def(
          "is_port_up",
          [](Nic& nic, int port) {
            PythonGuard guard(nic.engine());
            return nic.is_port_up(port);
          },
          "port"_a)
      .def(
          "set_port_up",
          [](Nic& nic, int port, bool up) {
            PythonGuard guard(nic.engine());
            nic.set_port_up(port, up);
          },
          "port"_a, "up"_a,
          R"doc(A port's link is there, or not: it then sends nothing, and MRC's queue pairs use the other ports.

Otherwise as TransmitPort.set_up. Raises ValueError for a port that there is not.)doc")
      .def(
          "most_waiting_bytes",
          [](Nic& nic, int port) {
            PythonGuard guard(nic.engine());
            return nic.most_waiting_bytes(port);
          },
          "port"_a, "Most payload received at a port that has waited at once for the host's links.")
      .def("stats", &nic_stats, "port"_a, R"doc(What arrived at a port; `dropped` by reason.

Reasons: parse_error()'s names and foreign_mac, foreign_address, unknown_queue_pair.)doc")
      .def("reset_stats", [](Nic& nic) {
        PythonGuard guard(nic.engine());
        nic.reset_counters();
      });

  py::class_<NotificationReceiver, std::shared_ptr<NotificationReceiver>>(
      m, "NotificationReceiver",
      "Gives switches' notifications of queues to the NIC's queue pairs; other packets go where they went.")
      .def(py::init([](Nic& nic) { return make_component<NotificationReceiver>(nic.engine(), nic); }),
           "nic"_a, py::keep_alive<1, 2>());
}

}  // namespace

void bind_transport(py::module_& m) {
  bind_codec(m);
  bind_completions(m);
  bind_nic(m);
}

}  // namespace weft
