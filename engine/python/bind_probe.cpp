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

py::dict take(PythonProbe& probe, TimePs until_ps) {
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

py::dict rows_lost(PythonProbe& probe) {
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
  py::class_<PythonProbe, std::shared_ptr<PythonProbe>>(m, "Probe")
      .def(py::init([](Engine& engine, size_t row_limit) {
             return make_component<PythonProbe>(engine, engine, row_limit);
           }),
           "engine"_a, py::kw_only(), "row_limit"_a = Probe::kRowLimit, py::keep_alive<1, 2>())
      .def_static("of", &probe_of, "port"_a, py::keep_alive<0, 1>())
      .def("watch", &watch<TransmitPort>, "component"_a, "place"_a)
      .def("watch", &watch<Link>, "component"_a, "place"_a)
      .def("watch", &watch<Switch>, "component"_a, "place"_a)
      .def(
          "start_sampling",
          [](PythonProbe& probe, TimePs interval_ps) {
            PythonGuard guard(probe.engine());
            probe.start_sampling(interval_ps);
          },
          "interval_ps"_a)
      .def(
          "sample",
          [](PythonProbe& probe, const TransmitPort& port, int64_t place) {
            PythonGuard guard(probe.engine());
            probe.sample(port, place);
          },
          "port"_a, "place"_a)
      .def("take", &take, "until_ps"_a = 0)
      .def("rows_lost", &rows_lost);
  m.def("drop_names", [] {
    py::dict names;
    for (const auto& [code, name] : drop_names()) names[py::int_(code)] = name;
    return names;
  });
  m.def("completion_status_names", [] {
    std::vector<std::string> names;
    for (size_t status = 0; status < static_cast<size_t>(CompletionStatus::kCount); ++status)
      names.emplace_back(completion_status_name(static_cast<CompletionStatus>(status)));
    return names;
  });
}

}  // namespace weft
