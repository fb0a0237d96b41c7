// Partitions of a virtual run in Python; see python/bind_core.cpp about locks.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <utility>

#include "python/bindings.hpp"
#include "python/bindings_support.hpp"
#include "time/partitions.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

namespace {

using PartitionsLock = PythonLock<Partitions, Partitions::Guard>;

using PythonPartitionsGuard = PythonGuardOf<Partitions>;

template <auto Method>
auto locked() {
  return [](Partitions& partitions) {
    PythonPartitionsGuard guard(partitions);
    return (partitions.*Method)();
  };
}

}  // namespace

void bind_partitions(py::module_& m) {
  py::class_<PartitionsLock>(m, "PartitionsLock")
      .def("__enter__", &PartitionsLock::enter)
      .def("__exit__", [](PartitionsLock& lock, const py::args&) { lock.exit(); });

  py::class_<Partitions, std::shared_ptr<Partitions>>(m, "Partitions")
      .def(py::init<uint64_t, int>(), py::kw_only(), "seed"_a = 0, "workers"_a = 1)
      .def(
          "add",
          [](const std::shared_ptr<Partitions>& partitions, std::optional<int> group) {
            PythonPartitionsGuard guard(*partitions);
            // Whoever holds one engine keeps all: links lead from one to another.
            return std::shared_ptr<Engine>(partitions,
                                           &partitions->add(group.value_or(Partitions::kNoGroup)));
          },
          py::kw_only(), "group"_a = py::none())
      .def("__len__", locked<&Partitions::count>())
      .def_property_readonly("seed", &Partitions::seed)
      .def_property("workers", &Partitions::workers,
                    [](Partitions& partitions, int workers) {
                      PythonPartitionsGuard guard(partitions);
                      partitions.set_workers(workers);
                    })
      .def("shares", locked<&Partitions::shares>())
      .def_property_readonly("now_ps", locked<&Partitions::now>())
      .def_property_readonly("window_ps", locked<&Partitions::window_ps>())
      .def_property_readonly("windows_served", locked<&Partitions::windows_served>())
      .def_property_readonly("events_served", locked<&Partitions::events_served>())
      .def_property_readonly("live_packets", locked<&Partitions::live_packets>())
      .def("ledger",
           [](Partitions& partitions) {
             PythonPartitionsGuard guard(partitions);
             return ledger_dict(partitions.balance());
           })
      .def(
          "schedule_at",
          [](Partitions& partitions, TimePs time_ps, py::function callback) {
            PythonCallback held(std::move(callback));
            PythonPartitionsGuard guard(partitions);
            partitions.schedule_at(time_ps, std::move(held));
          },
          "time_ps"_a, "callback"_a)
      .def("forget_scheduled",
           [](Partitions& partitions) {
             PythonPartitionsGuard guard(partitions);
             partitions.forget_scheduled();
           })
      .def(
          "run", [](Partitions& partitions) { partitions.run(&check_python_signals); },
          py::call_guard<py::gil_scoped_release>())
      .def(
          "run_until",
          [](Partitions& partitions, TimePs time_ps) {
            partitions.run_until(time_ps, &check_python_signals);
          },
          "time_ps"_a, py::call_guard<py::gil_scoped_release>())
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
      .def("request_stop", &Partitions::request_stop)
      .def("lateness", [](const Partitions&) { return lateness_dict(LatenessHistogram()); })
      .def("reset_lateness", [](const Partitions&) {})
      .def("lock", [](Partitions& partitions) { return PartitionsLock(partitions); }, py::keep_alive<0, 1>());
}

}  // namespace weft
