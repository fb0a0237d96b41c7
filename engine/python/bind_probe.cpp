// Probes in Python: columns are handed over as NumPy arrays, not copied.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <utility>
#include <vector>

#include "hosts/queue_pair.hpp"
#include "observe/probe.hpp"
#include "python/bindings.hpp"
#include "python/bindings_support.hpp"
#include "python/typed.hpp"
#include "switch/switch.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

namespace {

// A probe that its engine owns, and which knows the engine for its lock.
class PythonProbe final : public Probe, public std::enable_shared_from_this<PythonProbe> {
 public:
  PythonProbe(Engine& engine, size_t row_limit) : Probe(engine, row_limit), engine_(engine) {
    if (engine.probe() != nullptr) throw std::logic_error("the engine has a probe already");
    engine.set_probe(this);
  }
  ~PythonProbe() override { engine_.set_probe(nullptr); }
  Engine& engine() { return engine_; }

 private:
  Engine& engine_;
};

// The probe of the engine that a port belongs to, which is made if there is none.
std::shared_ptr<PythonProbe> probe_of(TransmitPort& port) {
  Engine& engine = port.engine();
  {
    PythonGuard guard(engine);
    if (auto* probe = dynamic_cast<PythonProbe*>(engine.probe())) return probe->shared_from_this();
  }
  return make_component<PythonProbe>(engine, engine, Probe::kRowLimit);
}

// The array owns the column.
py::array_t<int64_t> array_of(std::vector<int64_t>&& column) {
  auto* held = new std::vector<int64_t>(std::move(column));
  py::capsule owner(held, [](void* memory) { delete static_cast<std::vector<int64_t>*>(memory); });
  return py::array_t<int64_t>(static_cast<py::ssize_t>(held->size()), held->data(), owner);
}

Record<"dict[str, dict[str, numpy.typing.NDArray[numpy.int64]]]"> take_of_probe(PythonProbe& probe,
                                                                                TimePs until_ps) {
  std::vector<std::pair<Probe::NamedTable, ColumnTable::Columns>> taken;
  {
    PythonGuard guard(probe.engine());
    probe.catch_up(until_ps);
    for (const Probe::NamedTable& each : probe.tables()) taken.emplace_back(each, each.table->take());
  }
  py::dict tables;
  for (auto& [named, columns] : taken) {
    py::dict table;
    for (size_t i = 0; i < columns.size(); ++i)
      table[named.table->names()[i].c_str()] = array_of(std::move(columns[i]));
    tables[named.name] = table;
  }
  return tables;
}

Record<"dict[str, int]"> rows_lost(PythonProbe& probe) {
  PythonGuard guard(probe.engine());
  py::dict lost;
  for (const Probe::NamedTable& each : probe.tables()) lost[each.name] = each.table->rows_lost();
  return lost;
}

template <class Component>
void watch(PythonProbe& probe, const Component& component, int64_t place) {
  PythonGuard guard(probe.engine());
  probe.watch(&component, place);
}

}  // namespace

void bind_probe(py::module_& m) {
  py::class_<PythonProbe, std::shared_ptr<PythonProbe>>(
      m, "Probe",
      R"doc(Records what components of an engine report; one an engine, which owns it. Times in ps, sizes in bytes.

Rows beyond row_limit of a table are counted and not kept. Raises RuntimeError if the engine has a probe.)doc")
      .def(py::init([](Engine& engine, size_t row_limit) {
             return make_component<PythonProbe>(engine, engine, row_limit);
           }),
           "engine"_a, py::kw_only(), "row_limit"_a = Probe::kRowLimit, py::keep_alive<1, 2>())
      .def_static("of", &probe_of, "port"_a, py::keep_alive<0, 1>(),
                  "Return the probe of the port's engine; makes it if there is none.")
      .def("watch", &watch<TransmitPort>, "component"_a, "place"_a,
           "Record drops and pauses of the component, under this number for the place.")
      .def("watch", &watch<Link>, "component"_a, "place"_a)
      .def("watch", &watch<Switch>, "component"_a, "place"_a)
      .def(
          "start_sampling",
          [](PythonProbe& probe, TimePs interval_ps) {
            PythonGuard guard(probe.engine());
            probe.start_sampling(interval_ps);
          },
          "interval_ps"_a,
          "Sample ports at every multiple of the interval. ValueError below 1; RuntimeError if it has begun.")
      .def(
          "sample",
          [](PythonProbe& probe, const TransmitPort& port, int64_t place) {
            PythonGuard guard(probe.engine());
            probe.sample(port, place);
          },
          "port"_a, "place"_a,
          "Make a port's queues and what it has sent series of a place. RuntimeError before start_sampling.")
      .def("take", &take_of_probe, "until_ps"_a = 0,
           R"doc(Hand over all that was recorded since the last call: columns by name, by table.

Ports are sampled once more at until_ps (the engine's now, if that is later): all events up to it have been
served.

drops: time_ps, place, reason (a code of `drop_names`), priority_class, size_bytes (0: unknown; class -1:
none). pauses: place, priority_class, begin_ps, end_ps. flows, a message of a queue pair each: source,
destination, plane, run, step, size_bytes, start_ps (posted), end_ps (acknowledged), retransmitted_packets,
status (index in `completion_status_names`). telemetry, a row per hop: time_ps, source, destination, plane,
psn, path_id, hop, rate_code, queue_cells, tx_units, timestamp_ns. steps: rank, run, step, kind (0 write, 1
wait, 2 reduce, 3 copy, 4 aggregate, 5 delay), peer, plane, size_bytes, start_ps, end_ps. queues, a row
where a sample differs from the series' last: time_ps, place, priority_class, queue_bytes,
transmitted_bytes.)doc")
      .def("rows_lost", &rows_lost, "Rows beyond the limit, by table.");
  m.def(
      "drop_names",
      [] {
        Record<"dict[int, str]"> names;
        for (const auto& [code, name] : drop_names()) names[py::int_(code)] = name;
        return names;
      },
      "Return what the codes in the column `reason` of drops mean.");
  m.def(
      "counted_drops",
      [] {
        Record<"dict[str, dict[str, str]]"> types;
        for (const auto& [type, drops] : counted_drops()) {
          py::dict names;
          for (const auto& [statistic, name] : drops) names[py::str(statistic)] = name;
          types[py::str(type)] = names;
        }
        return types;
      },
      "Return which drops statistics count: names, as in `drop_names`, by statistic, by type of "
      "`record_types`.");
  m.def(
      "completion_status_names",
      [] {
        std::vector<std::string> names;
        for (size_t status = 0; status < static_cast<size_t>(CompletionStatus::kCount); ++status)
          names.emplace_back(completion_status_name(static_cast<CompletionStatus>(status)));
        return names;
      },
      "Return the names of a completion's status, in the order of their numbers.");
}

}  // namespace weft
