// Python's view of the switch runtime. Everything that touches a switch holds its engine's lock.

#include "python/bind_switch.hpp"

#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings.hpp"
#include "python/typed.hpp"
#include "switch/runtime.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace weft {

namespace {

// A Python object kept alive from C++; released under the GIL, by whichever thread comes last.
std::shared_ptr<void> keep(py::object object) {
  return std::shared_ptr<void>(object.release().ptr(), [](void* pointer) {
    py::gil_scoped_acquire gil;
    Py_DECREF(static_cast<PyObject*>(pointer));
  });
}

template <typename Function>
Function entry_point(const std::map<std::string, uintptr_t>& functions, const char* name) {
  return reinterpret_cast<Function>(functions.at(name));
}

using PlacesAndStrides = std::vector<std::pair<uint64_t, uint64_t>>;

using ContentsOfTables = std::vector<std::pair<bool, std::optional<uint32_t>>>;
using ContentsOfActions = Typed<"dict[int, tuple[bytes, bytes]]", py::dict>;

CommonContents make_contents(const ContentsOfTables& tables, const ContentsOfActions& actions) {
  CommonContents contents;
  for (const auto& [has_entries, default_action] : tables)
    contents.tables.push_back({has_entries, default_action.value_or(ActionData::kNoAction)});
  for (const auto& [number, found] : actions) {
    const auto at = number.cast<size_t>();
    const auto [data, fixed] = found.cast<std::pair<py::bytes, py::bytes>>();
    const std::span<const uint8_t> bytes = view_of(data);
    const std::span<const uint8_t> mask = view_of(fixed);
    if (bytes.size() != mask.size()) throw std::invalid_argument("data and mask of different sizes");
    if (at >= contents.actions.size()) contents.actions.resize(at + 1);
    contents.actions[at] = {true, {bytes.begin(), bytes.end()}, {mask.begin(), mask.end()}};
  }
  return contents;
}

ContentsOfTables tables_of(const CommonContents& contents) {
  ContentsOfTables tables;
  for (const CommonContents::Table& table : contents.tables) {
    std::optional<uint32_t> action = table.default_action;
    if (table.default_action == ActionData::kNoAction) action.reset();
    tables.emplace_back(table.has_entries, action);
  }
  return tables;
}

ContentsOfActions actions_of(const CommonContents& contents) {
  ContentsOfActions actions;
  for (size_t number = 0; number < contents.actions.size(); ++number)
    if (const CommonContents::Action& action = contents.actions[number]; action.used)
      actions[py::int_(number)] = py::make_tuple(to_bytes(action.data), to_bytes(action.fixed));
  return actions;
}

std::shared_ptr<SwitchProgram> make_program(
    const std::map<std::string, uintptr_t>& functions, py::object code, uint32_t cleared_bytes,
    uint32_t large_apart_bytes, std::vector<uint32_t> large_parts_bytes, uint32_t metadata_offset_bytes,
    uint32_t metadata_bytes, uint32_t max_headers_bytes, uint32_t max_digest_bytes,
    uint32_t max_action_data_bytes, const Typed<"list[dict[str, object]]", py::list>& tables,
    uint32_t action_profile_count, uint64_t registers_bytes, uint64_t counter_count,
    const PlacesAndStrides& port_counters, const PlacesAndStrides& port_registers, uint64_t meter_count,
    uint32_t value_set_count, std::vector<std::string> log_formats, std::optional<CommonContents> assumed) {
  auto program = std::make_shared<SwitchProgram>();
  program->clear = entry_point<ClearFunction>(functions, "clear");
  program->parse = entry_point<PipelineFunction>(functions, "parse");
  program->ingress = entry_point<PipelineFunction>(functions, "ingress");
  program->egress = entry_point<PipelineFunction>(functions, "egress");
  program->finish = entry_point<PipelineFunction>(functions, "finish");
  program->deparse = entry_point<DeparseFunction>(functions, "deparse");
  program->set_metadata_again = entry_point<PipelineFunction>(functions, "set_metadata_again");
  program->copy_fields = entry_point<CopyFieldsFunction>(functions, "copy_fields");
  program->pack_digest = entry_point<DigestFunction>(functions, "pack_digest");
  if (assumed) {
    program->arrive = entry_point<ArriveFunction>(functions, "arrive");
    program->send = entry_point<SendFunction>(functions, "send");
  }
  program->cleared_bytes = cleared_bytes;
  program->large_apart_bytes = large_apart_bytes;
  program->large_parts_bytes = std::move(large_parts_bytes);
  program->metadata_offset_bytes = metadata_offset_bytes;
  program->metadata_bytes = metadata_bytes;
  program->max_headers_bytes = max_headers_bytes;
  program->max_digest_bytes = max_digest_bytes;
  program->max_action_data_bytes = max_action_data_bytes;
  for (const py::handle& item : tables) {
    TableShape shape;
    shape.name = item["name"].cast<std::string>();
    shape.key_bytes = item["key_bytes"].cast<uint32_t>();
    for (const auto& [offset, size] : item["ranges"].cast<std::vector<std::pair<uint32_t, uint32_t>>>())
      shape.ranges.push_back(RangeField{offset, size});
    shape.action_profile = item["action_profile"].cast<int32_t>();
    shape.action_data_bytes = item["action_data_bytes"].cast<uint32_t>();
    shape.reads_default_entry = item["reads_default_entry"].cast<bool>();
    shape.reads_default_action = item["reads_default_action"].cast<bool>();
    if (item["looked_up"].cast<bool>())
      program->looked_up.push_back(static_cast<uint32_t>(program->tables.size()));
    program->tables.push_back(std::move(shape));
  }
  program->assumed = std::move(assumed);
  program->action_profile_count = action_profile_count;
  program->registers_bytes = registers_bytes;
  program->counter_count = counter_count;
  for (const auto& [first_byte, stride_bytes] : port_counters)
    program->port_counters.push_back({first_byte, stride_bytes});
  for (const auto& [first_byte, stride_bytes] : port_registers)
    program->port_registers.push_back({first_byte, stride_bytes});
  program->meter_count = meter_count;
  program->value_set_count = value_set_count;
  program->log_formats = std::move(log_formats);
  program->code = keep(std::move(code));
  return program;
}

SwitchOptions make_options(std::string name, uint32_t cpu_port, uint32_t drop_port,
                           const std::string& depth_unit, uint32_t cell_bytes, const std::string& time_unit) {
  SwitchOptions options;
  options.name = std::move(name);
  options.cpu_port = cpu_port;
  options.drop_port = drop_port;
  if (depth_unit == "packets")
    options.depth_unit = SwitchOptions::DepthUnit::kPackets;
  else if (depth_unit != "cells")
    throw std::invalid_argument("depth_unit '" + depth_unit + "' (valid: 'cells', 'packets')");
  options.cell_bytes = cell_bytes;
  if (time_unit == "us")
    options.time_unit = SwitchOptions::TimeUnit::kMicroseconds;
  else if (time_unit != "ns")
    throw std::invalid_argument("time_unit '" + time_unit + "' (valid: 'ns', 'us')");
  return options;
}

}  // namespace

void bind_switch(py::module_& m) {
  m.def("switch_abi", &switch_abi,
        "Offsets and constants that generated code shares with the switch runtime.");
  m.def("switch_runtime_symbols", &switch_runtime_symbols,
        "Functions that generated code may call, by name.");

  py::class_<CommonContents>(m, "CommonContents",
                             R"doc(What tables of switches that run one program have in common.

`tables` has by number whether there are entries, and the number of all default entries' own action (None: it
differs); `actions` by number the data of those in use, and 0xff for each byte of it that is the same everywhere.)doc")
      .def(py::init(&make_contents), "tables"_a, "actions"_a)
      .def_property_readonly("tables", &tables_of)
      .def_property_readonly("actions", &actions_of);
  py::class_<SwitchProgram, std::shared_ptr<SwitchProgram>>(
      m, "SwitchProgram",
      "A compiled program; `functions` are addresses of its entry points, `code` is kept alive with it.")
      .def(py::init(&make_program), py::kw_only(), py::arg("functions"), py::arg("code"),
           py::arg("cleared_bytes"), py::arg("large_apart_bytes"), py::arg("large_parts_bytes"),
           py::arg("metadata_offset_bytes"), py::arg("metadata_bytes"), py::arg("max_headers_bytes"),
           py::arg("max_digest_bytes"), py::arg("max_action_data_bytes"), py::arg("tables"),
           py::arg("action_profile_count"), py::arg("registers_bytes"), py::arg("counter_count"),
           py::arg("port_counters"), py::arg("port_registers"), py::arg("meter_count"),
           py::arg("value_set_count"), py::arg("log_formats"), py::arg("assumed") = py::none());

  SwitchClass cls(m, "Switch");
  cls.def(py::init([](Engine& engine, std::string name, uint32_t cpu_port, uint32_t drop_port,
                      const std::string& depth_unit, uint32_t cell_bytes, const std::string& time_unit) {
            return make_component<Switch>(
                engine, engine,
                make_options(std::move(name), cpu_port, drop_port, depth_unit, cell_bytes, time_unit));
          }),
          py::keep_alive<1, 2>(), py::arg("engine"), py::kw_only(), py::arg("name"),
          py::arg("cpu_port") = 510, py::arg("drop_port") = 511, py::arg("depth_unit") = "cells",
          py::arg("cell_bytes") = kCellBytes, py::arg("time_unit") = "ns")
      .def(
          "load",
          [](Switch& self, std::shared_ptr<SwitchProgram> program) {
            PythonGuard guard(self.engine());
            self.load(std::move(program));
          },
          "program"_a)
      .def(
          "draw_from",
          [](Switch& self, const Rng& stream) {
            PythonGuard guard(self.engine());
            self.draw_from(stream);
          },
          py::arg("stream"), "Draw the program's random numbers from a stream from now on.")
      .def(
          "attach_port",
          [](Switch& self, uint32_t port, TransmitPort& transmit_port) {
            PythonGuard guard(self.engine());
            self.attach_port(port, transmit_port);
          },
          py::arg("port"), py::arg("transmit_port"),
          "Packets for `port` go to `transmit_port`; the egress pipeline runs as they leave its queue.")
      .def(
          "receive",
          [](Switch& self, int port, const py::bytes& data) {
            PythonGuard guard(self.engine());
            PacketPtr packet = self.engine().packets().copy_of(view_of(data));
            self.engine().conservation().enter(PacketOrigin::kInjected, packet->traffic());
            self.receive(port, std::move(packet));
          },
          py::arg("port"), py::arg("data"))
      .def(
          "drops",
          [](Switch& self) {
            PythonGuard guard(self.engine());
            std::map<std::string, uint64_t> result;
            for (size_t i = 0; i < static_cast<size_t>(DropReason::kCount); ++i)
              result[drop_reason_name(static_cast<DropReason>(i))] = self.dropped(static_cast<DropReason>(i));
            return result;
          },
          "Packets dropped, by reason.")
      .def(
          "losses",
          [](Switch& self) {
            PythonGuard guard(self.engine());
            py::list found;
            for (const Switch::Loss& loss : self.losses())
              found.append(py::make_tuple(drop_reason_name(loss.reason), loss.site, loss.port, loss.is_copy,
                                          loss.packets));
            return py::typing::List<py::typing::Tuple<py::str, py::int_, py::int_, py::bool_, py::int_>>(
                found);
          },
          "Packets that ended here: reason, drop site (0: none), port they came by, whether copies, how "
          "many.")
      .def_static(
          "drop_reasons",
          [] {
            std::vector<std::string> names;
            for (size_t i = 0; i < static_cast<size_t>(DropReason::kCount); ++i)
              names.emplace_back(drop_reason_name(static_cast<DropReason>(i)));
            return names;
          },
          "Names of the reasons by number.")
      .def("reset_drops",
           [](Switch& self) {
             PythonGuard guard(self.engine());
             self.reset_drop_counters();
           })
      .def_property_readonly("received_packets", [](Switch& self) {
        PythonGuard guard(self.engine());
        return self.received_packets();
      });
  bind_switch_tables(cls);
  bind_switch_action_profiles(cls);
  bind_switch_arrays(cls);
  bind_switch_packets(cls);
}

}  // namespace weft
