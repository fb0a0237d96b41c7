// What every bind_*.cpp needs: components owned by their engine, and the engine's lock taken without holding
// the GIL.
#pragma once

#include <pybind11/pybind11.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "memory/cache_line.hpp"
#include "packets/packet.hpp"
#include "python/typed.hpp"
#include "time/engine.hpp"

namespace weft {

// The lock of an engine, or of all partitions, for a Python thread. The GIL is released while waiting,
// because the thread that has the lock may be waiting for the GIL.
template <class Guarded>
class PythonGuardOf {
 public:
  explicit PythonGuardOf(Guarded& guarded) {
    pybind11::gil_scoped_release release;
    guard_.emplace(guarded);
  }

 private:
  std::optional<typename Guarded::Guard> guard_;
};
using PythonGuard = PythonGuardOf<Engine>;

// For components that packets pass by; see memory/cache_line.hpp.
template <class Component, class... Arguments>
std::shared_ptr<Component> make_in_cache_lines(Arguments&&... arguments) {
  return std::allocate_shared<Component>(CacheLineAllocator<Component>(),
                                         std::forward<Arguments>(arguments)...);
}

// Makes a component and hands it to the engine, which destroys it with itself (last made, first destroyed).
// To be used in py::init together with py::keep_alive<1, 2>(), the engine being the first argument:
//   py::class_<Switch, Node, std::shared_ptr<Switch>>(m, "Switch")
//       .def(py::init([](Engine& engine, int id) { return make_component<Switch>(engine, engine, id); }),
//            py::keep_alive<1, 2>())
template <class Component, class... Arguments>
std::shared_ptr<Component> make_component(Engine& engine, Arguments&&... arguments) {
  PythonGuard guard(engine);
  auto component = make_in_cache_lines<Component>(std::forward<Arguments>(arguments)...);
  engine.adopt(component);
  return component;
}

// A Python callable that engine threads may call, move and destroy.
class PythonCallback {
 public:
  explicit PythonCallback(pybind11::function function) : function_(std::move(function)) {}
  PythonCallback(PythonCallback&&) noexcept = default;
  PythonCallback(const PythonCallback&) = delete;
  ~PythonCallback() {
    if (!function_) return;
    pybind11::gil_scoped_acquire acquire;
    function_ = pybind11::function();
  }
  void operator()() {
    pybind11::gil_scoped_acquire acquire;
    function_();
  }

 private:
  pybind11::function function_;
};

// A Python callable as a listener to something of the engine's; an empty one for None. It is called when what
// events report may leave the engine: see Engine::hand_over().
inline std::function<void()> listener_of(Engine& engine, std::optional<pybind11::function> function) {
  if (!function) return {};
  auto callback = std::make_shared<PythonCallback>(std::move(*function));
  return [&engine, listener = engine.listener([callback] { (*callback)(); })] { engine.hand_over(listener); };
}

// For run() and the like: Ctrl-C ends them.
inline void check_python_signals() {
  pybind11::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
}

// `with engine.lock():` several calls at one moment of emulated time. Guard is made from Clock without the
// GIL.
template <class Clock, class Guard>
class PythonLock {
 public:
  explicit PythonLock(Clock& clock) : clock_(clock) {}
  void enter() {
    if (guard_ != nullptr) throw std::logic_error("this lock is already held; call lock() again to nest");
    pybind11::gil_scoped_release release;
    guard_ = std::make_unique<Guard>(clock_);
  }
  void exit() { guard_.reset(); }

 private:
  Clock& clock_;
  std::unique_ptr<Guard> guard_;
};
using EngineLock = PythonLock<Engine, Engine::Guard>;

inline Record<"Lateness"> lateness_dict(const LatenessHistogram& histogram) {
  using namespace pybind11::literals;
  return pybind11::dict("count"_a = histogram.count(), "max_ps"_a = histogram.max_ps(),
                        "p50_ps"_a = histogram.quantile_ps(0.5), "p99_ps"_a = histogram.quantile_ps(0.99));
}

// A dictionary's key, one object for all dictionaries: the counters of a fabric are hundreds of thousands of
// them.
inline pybind11::str shared_key(const char* name) {
  PyObject* key = PyUnicode_InternFromString(name);
  if (key == nullptr) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::str>(key);
}

inline Record<"TrafficCounter"> counter_dict(const TrafficCounter& counter) {
  pybind11::dict dict;
  dict[shared_key("packets")] = counter.packets;
  dict[shared_key("bytes")] = counter.bytes;
  return dict;
}

Record<"ConservationCounts"> conservation_dict(const ConservationBalance& balance);

inline pybind11::bytes to_bytes(std::span<const uint8_t> data) {
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

inline std::span<const uint8_t> view_of(const pybind11::bytes& data) {
  const auto text = static_cast<std::string_view>(data);
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// All bytes on the wire, virtual ones as zeros.
inline pybind11::bytes bytes_of(const Packet& packet) {
  std::string bytes(reinterpret_cast<const char*>(packet.data()), packet.size());
  bytes.resize(packet.wire_bytes());
  return bytes;
}

}  // namespace weft
