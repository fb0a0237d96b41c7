// Clock, events and collectors in Python. Every call into an engine or its components takes the engine's
// lock; the GIL is free meanwhile.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "links/collector.hpp"
#include "links/pcap_writer.hpp"
#include "python/bindings.hpp"
#include "python/bindings_support.hpp"
#include "python/typed.hpp"
#include "time/engine.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

namespace {

// A timer that calls a Python function.
class PythonTimer {
 public:
  PythonTimer(Engine& engine, py::function function)
      : engine_(engine), callback_(std::move(function)), timer_(make_timer(engine, *this)) {}
  ~PythonTimer() {
    PythonGuard guard(engine_);
    timer_.reset();
  }
  Engine& engine() { return engine_; }
  Timer& timer() { return *timer_; }

 private:
  static std::unique_ptr<Timer> make_timer(Engine& engine, PythonTimer& self) {
    PythonGuard guard(engine);
    return std::make_unique<Timer>(engine.events(), member_action<&PythonTimer::fire>(&self));
  }
  void fire() { callback_(); }

  Engine& engine_;
  PythonCallback callback_;
  std::unique_ptr<Timer> timer_;
};

std::shared_ptr<Engine> own_engine(Engine* engine) {
  return {engine, [](Engine* dying) {
            try {
              py::gil_scoped_release release;  // the thread may be in a Python callback
              dying->stop();
            } catch (const std::exception&) {
              // Nobody is left to report to; failure() had it for as long as somebody could ask.
            }
            delete dying;
          }};
}

void inject(Engine& engine, Node& node, int port, const py::bytes& data, std::optional<TimePs> time_ps) {
  PythonGuard guard(engine);
  if (&node.engine() != &engine) throw std::invalid_argument("the node is not of this engine");
  PacketPtr packet = engine.packets().copy_of(view_of(data));
  engine.schedule_at(time_ps.value_or(engine.now()),
                     [&engine, &node, port, packet = std::move(packet)]() mutable {
                       packet->received_ps = engine.now();
                       engine.conservation().enter(PacketOrigin::kInjected, packet->traffic());
                       node.receive(port, std::move(packet));
                     });
}

Record<"Lateness"> lateness(Engine& engine) {
  PythonGuard guard(engine);
  return lateness_dict(engine.lateness());
}

template <auto Method>
auto locked() {
  return [](Engine& engine) {
    PythonGuard guard(engine);
    return (engine.*Method)();
  };
}

// std::system_error as OSError, so that Python sees the errno.
void translate_system_error(std::exception_ptr pointer) {
  if (pointer == nullptr) return;
  try {
    std::rethrow_exception(std::move(pointer));
  } catch (const std::system_error& error) {
    const py::object arguments = py::make_tuple(error.code().value(), error.what());
    PyErr_SetObject(PyExc_OSError, arguments.ptr());
  }
}

void bind_engine(py::module_& m) {
  py::class_<Rng>(m, "Rng", "A seeded random stream (xoshiro256++).")
      .def("next_u64", &Rng::next_u64)
      .def("uniform", &Rng::uniform, "Uniform in [0, 1).")
      .def(
          "below",
          [](Rng& rng, uint64_t bound) {
            if (bound == 0) throw std::invalid_argument("below(0): the bound is 1 or more");
            return rng.below(bound);
          },
          "bound"_a, "Uniform integer in [0, bound). Raises ValueError for 0.");

  py::class_<EngineLock>(m, "EngineLock", "Holds an engine still: `with engine.lock(): ...`.")
      .def("__enter__", &EngineLock::enter)
      .def("__exit__", [](EngineLock& lock, const py::Args<py::object>&) { lock.exit(); });

  py::class_<Engine, std::shared_ptr<Engine>>(
      m, "Engine",
      R"doc(A clock and its event queue; owns the components made for it, which live as long as it does.

`Engine(seed=1)` has a virtual clock and runs as fast as it can; `Engine.real_clock(...)` is paced by
CLOCK_MONOTONIC. All times are int picoseconds of emulated time. At equal times arrivals from links are served
first, in the order of the links' connecting, then events in the order in which they were scheduled. Every method
may be called from any thread. `Partitions.add()` makes an engine that is run together with others.)doc")
      .def(py::init([](uint64_t seed) { return own_engine(new Engine(seed)); }), py::kw_only(), "seed"_a = 0)
      .def_static(
          "real_clock",
          [](std::optional<int64_t> epoch_ns, double dilation, uint64_t seed) {
            return own_engine(new Engine(RealClock{epoch_ns.value_or(monotonic_now_ns()), dilation}, seed));
          },
          py::kw_only(), "epoch_ns"_a = py::none(), "dilation"_a = 1.0, "seed"_a = 0,
          R"doc(An engine whose time is (CLOCK_MONOTONIC - epoch_ns) / dilation; epoch_ns None means now.

Raises ValueError unless dilation is above 0.)doc")
      .def_property_readonly(
          "now_ps", locked<&Engine::now>(),
          "Time of the event being served; between events of a real clock, the clock's time.")
      .def_property_readonly("seed", &Engine::seed)
      .def_property_readonly("is_real", &Engine::is_real)
      .def_property_readonly("epoch_ns",
                             [](const Engine& engine) {
                               return engine.is_real() ? std::optional(engine.real_clock()->epoch_ns)
                                                       : std::nullopt;
                             })
      .def_property_readonly("dilation",
                             [](const Engine& engine) {
                               return engine.is_real() ? std::optional(engine.real_clock()->dilation)
                                                       : std::nullopt;
                             })
      .def_property_readonly("events_served", locked<&Engine::events_served>())
      .def_property_readonly(
          "live_packets",
          [](Engine& engine) {
            PythonGuard guard(engine);
            return engine.packets().live_packets();
          },
          R"doc(Packets that exist at this moment, in queues, on links, in nodes; for one of several partitions without those
that come from others and are still on links.)doc")
      .def(
          "schedule_at",
          [](Engine& engine, TimePs time_ps, Callback callback) {
            PythonCallback held(std::move(callback));
            PythonGuard guard(engine);
            engine.schedule_at(time_ps, std::move(held));
          },
          "time_ps"_a, "callback"_a,
          "Call callback() at time_ps (at once if that is past). What it raises, the run raises.")
      .def(
          "packet_conservation",
          [](Engine& engine) {
            PythonGuard guard(engine);
            return conservation_dict(engine.balance());
          },
          "What became of all packets so far. Raises RuntimeError on a real clock, and for one of several "
          "partitions.")
      .def("inject", &inject, "node"_a, "port"_a, "data"_a, "time_ps"_a = py::none(),
           "Have node receive a packet at its port at time_ps (None: now).")
      .def(
          "stream", [](const Engine& engine, const std::string& name) { return engine.stream(name); },
          "name"_a, "A random stream that depends on the engine's seed and the name only.")
      .def(
          "run", [](Engine& engine) { engine.run(&check_python_signals); },
          py::call_guard<py::gil_scoped_release>(),
          "Serve events until there are none. Raises RuntimeError on a real clock.")
      .def(
          "run_until",
          [](Engine& engine, TimePs time_ps) { engine.run_until(time_ps, &check_python_signals); },
          "time_ps"_a, py::call_guard<py::gil_scoped_release>(),
          "Serve all events up to and including time_ps; now_ps is then time_ps.")
      .def(
          "run_for",
          [](Engine& engine, TimePs duration_ps) {
            TimePs start_ps = 0;
            {
              Engine::Guard guard(engine);
              start_ps = engine.now();
            }
            engine.run_until(start_ps + duration_ps, &check_python_signals);
          },
          "duration_ps"_a, py::call_guard<py::gil_scoped_release>())
      .def("request_stop", &Engine::request_stop,
           "Make the run in progress return after the event being served (of partitions: its window).")
      .def("start", &Engine::start, py::kw_only(), "realtime_priority"_a = 0,
           py::call_guard<py::gil_scoped_release>(),
           R"doc(Serve events in a thread of the engine's own. Raises RuntimeError on a virtual clock.

With a realtime priority (1 to 99) the thread goes before all ordinary ones, so that it is late less
often. That takes CAP_SYS_NICE; raises PermissionError without.)doc")
      .def("stop", &Engine::stop, py::call_guard<py::gil_scoped_release>(),
           "End the thread. Raises what an event raised in it. Does nothing when there is none.")
      .def_property_readonly("running", &Engine::running, "start() was called and stop() not yet.")
      .def_property_readonly("failure", locked<&Engine::failure>(),
                             "Why the thread ended by itself, if it did.")
      .def_property_readonly(
          "failure_fd", &Engine::failure_fd,
          "A descriptor that is readable while there is a failure. Raises RuntimeError on a virtual clock.")
      .def(
          "lock", [](Engine& engine) { return EngineLock(engine); }, py::keep_alive<0, 1>())
      .def("lateness", &lateness,
           "How far behind its time each event of a real clock was served, in emulated picoseconds.")
      .def("reset_lateness", locked<&Engine::reset_lateness>());

  py::class_<PythonTimer>(m, "Timer", "Calls callback() when it fires; cancelled when it is garbage.")
      .def(py::init<Engine&, Callback>(), "engine"_a, "callback"_a, py::keep_alive<1, 2>())
      .def(
          "arm",
          [](PythonTimer& timer, TimePs time_ps) {
            PythonGuard guard(timer.engine());
            timer.timer().arm(time_ps);
          },
          "time_ps"_a,
          "Fire at time_ps, after all that was armed for that time before. An armed timer moves.")
      .def("cancel",
           [](PythonTimer& timer) {
             PythonGuard guard(timer.engine());
             timer.timer().cancel();
           })
      .def_property_readonly(
          "deadline_ps",
          [](PythonTimer& timer) -> std::optional<TimePs> {
            PythonGuard guard(timer.engine());
            return timer.timer().armed() ? std::optional(timer.timer().deadline()) : std::nullopt;
          },
          "None when not armed.");
}

void bind_nodes(py::module_& m) {
  py::class_<Node, std::shared_ptr<Node>>(m, "Node", "Whatever takes packets.");

  py::class_<Collector, Node, std::shared_ptr<Collector>>(m, "Collector", "Keeps what it receives.")
      .def(py::init([](Engine& engine) { return make_component<Collector>(engine, engine); }), "engine"_a,
           py::keep_alive<1, 2>())
      .def_property_readonly(
          "packets",
          [](Collector& collector) {
            PythonGuard guard(collector.engine());
            Typed<"list[tuple[int, int, bytes]]", py::list> packets;
            for (const Collector::Arrival& arrival : collector.arrivals())
              packets.append(py::make_tuple(arrival.time_ps, arrival.port, bytes_of(*arrival.packet)));
            return packets;
          },
          "(time_ps, port, bytes) of each packet since the start or clear().")
      .def_property_readonly(
          "received_packets",
          [](Collector& collector) {
            PythonGuard guard(collector.engine());
            return collector.received_packets();
          },
          "Total; clear() does not reset it.")
      .def_property_readonly("received_bytes",
                             [](Collector& collector) {
                               PythonGuard guard(collector.engine());
                               return collector.received_bytes();
                             })
      .def("clear", [](Collector& collector) {
        PythonGuard guard(collector.engine());
        collector.clear();
      });

  py::class_<PcapWriter, std::shared_ptr<PcapWriter>>(
      m, "PcapWriter",
      R"doc(A capture file with nanosecond stamps of emulated time. Raises OSError if it can't be written.

pcapng where `path` ends so, else pcap, which has no room for directions and for what the interface is. Frames of
time 0 are dated `origin_ns`. With `without_shims` IP frames are written as if they had been sent without Weft's
shims (docs/spec/frames.md).)doc")
      .def(py::init([](const std::string& path, uint32_t snap_length, int64_t origin_ns,
                       const std::string& interface, const std::string& description, uint64_t rate_bps,
                       bool without_shims) {
             return std::make_shared<PcapWriter>(
                 path, snap_length, origin_ns, CaptureInterface{interface, description, rate_bps},
                 without_shims ? CaptureShims::kRemoved : CaptureShims::kKept);
           }),
           "path"_a, "snap_length"_a = 262'144, "origin_ns"_a = 0, py::kw_only(), "interface"_a = "",
           "description"_a = "", "rate_bps"_a = 0, "without_shims"_a = false)
      .def_property_readonly("path", &PcapWriter::path)
      .def_property_readonly("packets_written", &PcapWriter::packets_written)
      .def_property_readonly("packets_failed", &PcapWriter::packets_failed)
      .def_property_readonly("error", &PcapWriter::error,
                             "Why the file is incomplete, as an errno; 0 as long as nothing has failed.")
      .def("flush", &PcapWriter::flush)
      .def("close", &PcapWriter::close, "Raises OSError, once, if what was written is not all in the file.");
}

}  // namespace

void bind_core(py::module_& m) {
  py::register_exception_translator(&translate_system_error);
  bind_engine(m);
  bind_nodes(m);
}

}  // namespace weft
