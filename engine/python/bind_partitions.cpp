// Partitions of a virtual run in Python; see python/bind_core.cpp about locks.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "packets/packet_message.hpp"
#include "packets/packet_store.hpp"
#include "python/bindings.hpp"
#include "python/bindings_support.hpp"
#include "python/typed.hpp"
#include "time/partition.hpp"
#include "time/partitions.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

namespace {

using PartitionsLock = PythonLock<Partitions, Partitions::Guard>;

using PythonPartitionsGuard = PythonGuardOf<Partitions>;

template <auto Method>
auto locked_partitions() {
  return [](Partitions& partitions) {
    PythonPartitionsGuard guard(partitions);
    return (partitions.*Method)();
  };
}

// Python's function as an exchange of messages between processes.
using PythonExchange = Typed<"collections.abc.Callable[[list[bytes]], list[bytes]]", py::function>;
ProcessGroup::Exchange exchange_of(PythonExchange function) {
  const std::shared_ptr<py::function> callback(new py::function(std::move(function)), [](py::function* held) {
    const py::gil_scoped_acquire acquire;
    delete held;
  });
  return [callback](const std::vector<std::string>& messages) {
    const py::gil_scoped_acquire acquire;
    py::list outgoing;
    for (const std::string& message : messages) outgoing.append(py::bytes(message));
    return (*callback)(outgoing).cast<std::vector<std::string>>();
  };
}

uint32_t partition_of(const Partitions& partitions, Engine& engine) {
  if (engine.partition() == nullptr || &engine.partition()->owner() != &partitions)
    throw std::invalid_argument("an engine of another run");
  return engine.partition()->index();
}

// A packet of a message between processes, as Python has it.
using PythonPacket = std::tuple<uint32_t, TimePs, py::bytes, uint32_t, bool, bool, uint8_t, uint8_t>;
using PythonPackets = Typed<"list[tuple[int, int, bytes, int, bool, bool, int, int]]", py::list>;

py::bytes packet_message(const PythonPacket& given) {
  const auto& [line, due_ps, bytes, virtual_bytes, as_length, damaged, virtual_lane, traffic_kind] = given;
  PacketPool pool(std::make_shared<PacketStore>());
  const PacketPtr packet = pool.copy_of(view_of(bytes));
  if (as_length) packet->append_virtual(virtual_bytes);
  if (damaged) packet->set_damaged();
  packet->set_virtual_lane(virtual_lane);
  packet->set_traffic_kind(traffic_kind);
  MessageWriter writer;
  put_packet(writer, line, due_ps, *packet);
  return writer.bytes();
}

PythonPackets packets_of_message(const py::bytes& message) {
  PacketPool pool(std::make_shared<PacketStore>());
  PythonPackets packets;
  MessageReader reader{std::string_view(message)};
  while (!reader.at_end()) {
    const PacketMessage got = get_packet(reader, [&pool](uint32_t) -> PacketPool& { return pool; });
    const Packet& packet = *got.packet;
    packets.append(py::make_tuple(got.line, got.due_ps,
                                  py::bytes(reinterpret_cast<const char*>(packet.data()), packet.size()),
                                  packet.virtual_bytes(), packet.as_length(), packet.damaged(),
                                  packet.virtual_lane(), packet.traffic_kind()));
  }
  return packets;
}

}  // namespace

void bind_partitions(py::module_& m) {
  py::register_exception<OtherProcessFailed>(m, "OtherProcessFailed", PyExc_RuntimeError).doc() =
      "An event of another process's partition has raised; that process has the exception.";
  py::class_<PartitionsLock>(m, "PartitionsLock",
                             "Holds all partitions still: `with partitions.lock(): ...`.")
      .def("__enter__", &PartitionsLock::enter)
      .def("__exit__", [](PartitionsLock& lock, const py::Args<py::object>&) { lock.exit(); });

  py::class_<Partitions, std::shared_ptr<Partitions>>(
      m, "Partitions",
      R"doc(Engines of one virtual clock that meet only through links, run by one thread or several.

In windows of the shortest delay of a link between two of them, each is served alone; the outcome is the same for
every number of workers. Components of one partition must not be touched by events of another. All times are int
picoseconds. Every method may be called from any thread, but not from events of the partitions.)doc")
      .def(py::init<uint64_t, int>(), py::kw_only(), "seed"_a = 0, "workers"_a = 1,
           "Raises ValueError for a number of workers outside 1 to 256.")
      .def(
          "add",
          [](const std::shared_ptr<Partitions>& partitions, std::optional<int> group) {
            PythonPartitionsGuard guard(*partitions);
            // A reference to one engine keeps all: links lead from one to another.
            return std::shared_ptr<Engine>(partitions,
                                           &partitions->add(group.value_or(Partitions::kNoGroup)));
          },
          py::kw_only(), "group"_a = py::none(), R"doc(A new partition's engine, which is not run by itself.

Partitions of one `group` (0 or more) have their traffic with each other, as the switches of a plane do: one
worker serves them all, where groups can be shared out evenly.)doc")
      .def("__len__", locked_partitions<&Partitions::count>())
      .def_property_readonly("seed", &Partitions::seed)
      .def_property(
          "workers", &Partitions::workers,
          [](Partitions& partitions, int workers) {
            PythonPartitionsGuard guard(partitions);
            partitions.set_workers(workers);
          },
          "Threads that serve a run, the caller's included; may be set between runs.")
      .def("shares", locked_partitions<&Partitions::shares>(),
           "Which partitions each worker serves, by number in the order in which they were added.")
      .def(
          "distribute",
          [](Partitions& partitions, int process, int process_count, PythonExchange exchange) {
            ProcessGroup::Exchange held = exchange_of(std::move(exchange));
            PythonPartitionsGuard guard(partitions);
            partitions.distribute(process, process_count, std::move(held));
          },
          "process"_a, "process_count"_a, "exchange"_a,
          R"doc(Have this process serve its share of the partitions.

Every process builds the same run and drives it alike. `exchange(messages)` is called between windows: it
gives every process its message (bytes, by number; this process's own is empty) and returns theirs.
Raises ValueError for a process that is not among the count, RuntimeError after the first run.)doc")
      .def(
          "process_of",
          [](const Partitions& partitions, Engine& engine) {
            return partitions.process_of(partition_of(partitions, engine));
          },
          "engine"_a, "Which process serves a partition's engine; 0 in a run that is not distributed.")
      .def("agree_on_links", locked_partitions<&Partitions::agree_on_delay_lines>(),
           "Let links count what has arrived damaged in other processes. All processes must call it.")
      .def_property_readonly("now_ps", locked_partitions<&Partitions::now>(),
                             "Up to when everything has been served.")
      .def_property_readonly(
          "window_ps", locked_partitions<&Partitions::window_ps>(),
          R"doc(How long windows are: the shortest delay of a link between partitions, at most a microsecond.

What an event reports to Python (a listener's call) arrives that much later.)doc")
      .def_property_readonly("windows_served", locked_partitions<&Partitions::windows_served>())
      .def_property_readonly("events_served", locked_partitions<&Partitions::events_served>())
      .def_property_readonly("live_packets", locked_partitions<&Partitions::live_packets>(),
                             "Packets that exist at this moment, in queues, on links, in nodes.")
      .def(
          "packet_conservation",
          [](Partitions& partitions) {
            PythonPartitionsGuard guard(partitions);
            return conservation_dict(partitions.balance());
          },
          "What became of all packets of all partitions so far. All processes of a distributed run must call "
          "it.")
      .def(
          "schedule_at",
          [](Partitions& partitions, TimePs time_ps, Callback callback) {
            PythonCallback held(std::move(callback));
            PythonPartitionsGuard guard(partitions);
            partitions.schedule_at(time_ps, std::move(held));
          },
          "time_ps"_a, "callback"_a,
          "Call callback() at time_ps (at once if that is past), after all events of that time; it may touch "
          "all.")
      .def(
          "after_events",
          [](Partitions& partitions, uint64_t events, Callback callback) {
            const auto held = std::make_shared<PythonCallback>(std::move(callback));
            PythonPartitionsGuard guard(partitions);
            partitions.after_events(events, [held] { (*held)(); });
          },
          "events"_a, "callback"_a,
          R"doc(Call callback() between windows, once so many more events have been served.

There is one such call at a time; a new one replaces it. The moment depends on windows, so it must not change
any outcome.)doc")
      .def(
          "forget_scheduled",
          [](Partitions& partitions) {
            PythonPartitionsGuard guard(partitions);
            partitions.forget_scheduled();
          },
          "Drop all calls that have not been made, and what they keep alive. RuntimeError: within a run.")
      .def(
          "run", [](Partitions& partitions) { partitions.run(&check_python_signals); },
          py::call_guard<py::gil_scoped_release>(),
          "Serve events until there are none. Raises what an event raised, when its window has been served.")
      .def(
          "run_until",
          [](Partitions& partitions, TimePs time_ps) {
            partitions.run_until(time_ps, &check_python_signals);
          },
          "time_ps"_a, py::call_guard<py::gil_scoped_release>(),
          "Serve all events up to and including time_ps; now_ps is then time_ps.")
      .def(
          "run_for",
          [](Partitions& partitions, TimePs duration_ps) {
            TimePs start_ps = 0;
            {
              Partitions::Guard guard(partitions);
              start_ps = partitions.now();
            }
            partitions.run_until(start_ps + duration_ps, &check_python_signals);
          },
          "duration_ps"_a, py::call_guard<py::gil_scoped_release>())
      .def(
          "next_event_ps",
          [](Partitions& self) -> std::optional<TimePs> {
            const py::gil_scoped_release release;
            const TimePs next_ps = self.next_event_ps();
            return next_ps == kNever ? std::nullopt : std::optional(next_ps);
          },
          "Time of the next event or call; None without one. Not within a run.")
      .def("request_stop", &Partitions::request_stop,
           "Make the run in progress return after the present window or callback.")
      .def(
          "lateness", [](const Partitions&) { return lateness_dict(LatenessHistogram()); },
          "Nothing: a virtual clock is never late.")
      .def("reset_lateness", [](const Partitions&) {})
      .def("lock", [](Partitions& partitions) { return PartitionsLock(partitions); }, py::keep_alive<0, 1>());

  m.def("packet_message", &packet_message, "packet"_a,
        R"doc(Return how processes pass on a packet.

It is (delay line, due in ps, bytes, virtual bytes, whether it was made with a length, damaged, virtual lane,
kind of traffic).)doc");
  m.def("packets_of_message", &packets_of_message, "message"_a,
        "Return the packets of a message, as packet_message() takes them. Raises ValueError for any other "
        "bytes.");
}

}  // namespace weft
