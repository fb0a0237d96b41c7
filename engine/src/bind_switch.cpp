// Python's view of the switch runtime. Everything that touches a switch holds its engine's lock.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "bindings.hpp"
#include "bindings_support.hpp"
#include "switch_node.hpp"
#include "switch_runtime.hpp"

namespace py = pybind11;

namespace weft {

namespace {

std::span<const uint8_t> as_bytes(const py::bytes& data) {
  const std::string_view view = data;
  return {reinterpret_cast<const uint8_t*>(view.data()), view.size()};
}

py::bytes to_bytes(std::span<const uint8_t> data) {
  return py::bytes(reinterpret_cast<const char*>(data.data()), data.size());
}

// ---- program

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

std::shared_ptr<SwitchProgram> make_program(const std::map<std::string, uintptr_t>& functions,
                                            py::object code, uint32_t state_bytes,
                                            uint32_t metadata_offset_bytes, uint32_t metadata_bytes,
                                            uint32_t max_headers_bytes, uint32_t max_digest_bytes,
                                            uint32_t max_action_data_bytes, const py::list& tables,
                                            uint32_t action_profile_count, uint64_t registers_bytes,
                                            uint64_t counter_count, uint64_t meter_count,
                                            uint32_t value_set_count, std::vector<std::string> log_formats) {
  auto program = std::make_shared<SwitchProgram>();
  program->parse = entry_point<PipelineFunction>(functions, "parse");
  program->ingress = entry_point<PipelineFunction>(functions, "ingress");
  program->egress = entry_point<PipelineFunction>(functions, "egress");
  program->deparse = entry_point<DeparseFunction>(functions, "deparse");
  program->set_metadata_again = entry_point<PipelineFunction>(functions, "set_metadata_again");
  program->copy_fields = entry_point<CopyFieldsFunction>(functions, "copy_fields");
  program->pack_digest = entry_point<DigestFunction>(functions, "pack_digest");
  program->state_bytes = state_bytes;
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
    program->tables.push_back(std::move(shape));
  }
  program->action_profile_count = action_profile_count;
  program->registers_bytes = registers_bytes;
  program->counter_count = counter_count;
  program->meter_count = meter_count;
  program->value_set_count = value_set_count;
  program->log_formats = std::move(log_formats);
  program->code = keep(std::move(code));
  return program;
}

// ---- tables

// A match as Python gives it: value, mask, low and high as the key's bytes (low and high empty without range
// fields).
class MatchArgument {
 public:
  MatchArgument(const MatchTable& table, const py::bytes& value, const py::bytes& mask, const py::bytes& low,
                const py::bytes& high, int32_t priority)
      : words_(4 * table.key_words()) {
    const size_t words = table.key_words();
    fill(0, value, table, words);
    fill(1, mask, table, words);
    if (table.has_ranges()) {
      fill(2, low, table, words);
      fill(3, high, table, words);
    }
    const uint64_t* start = words_.data();
    match_.value = {start, words};
    match_.mask = {start + words, words};
    if (table.has_ranges()) {
      match_.low = {start + 2 * words, words};
      match_.high = {start + 3 * words, words};
    }
    match_.priority = priority;
  }
  const EntryMatch& operator*() const { return match_; }

 private:
  void fill(size_t part, const py::bytes& data, const MatchTable& table, size_t words) {
    const std::span<const uint8_t> bytes = as_bytes(data);
    if (bytes.size() != table.key_bytes())
      throw std::invalid_argument("a key of " + std::to_string(bytes.size()) +
                                  " bytes (valid: " + std::to_string(table.key_bytes()) + ")");
    if (!bytes.empty()) std::memcpy(words_.data() + part * words, bytes.data(), bytes.size());
  }

  std::vector<uint64_t> words_;
  EntryMatch match_;
};

ActionBinding binding(int kind, uint32_t id, const py::bytes& data) {
  return ActionBinding{static_cast<ActionBinding::Kind>(kind), id, as_bytes(data)};
}

TableEntry& entry_of(Switch& self, uint32_t table, const MatchArgument& match) {
  TableEntry* entry = self.objects().table(table).find(*match);
  if (entry == nullptr) throw py::key_error("no such entry");
  return *entry;
}

// Calls use(entry) with the entry, or with the default entry where `key` is none.
template <typename Use>
auto with_entry(Switch& self, uint32_t table, const py::object& key, Use&& use) {
  if (key.is_none()) return use(self.objects().default_entry(table));
  const auto [value, mask, low, high, priority] =
      key.cast<std::tuple<py::bytes, py::bytes, py::bytes, py::bytes, int32_t>>();
  const MatchArgument match(self.objects().table(table), value, mask, low, high, priority);
  return use(entry_of(self, table, match));
}

// What an entry holds, copied so that Python objects can be made of it without the engine's lock.
struct EntryRecord {
  explicit EntryRecord(const TableEntry& entry) {
    using Kind = ActionBinding::Kind;
    kind = entry.member != nullptr ? Kind::kMember : entry.group != nullptr ? Kind::kGroup : Kind::kAction;
    id = entry.action_handle;
    if (kind != Kind::kAction) return;
    id = entry.action->action;
    data.assign(reinterpret_cast<const char*>(entry.action->bytes()), entry.action->size_bytes);
  }

  ActionBinding::Kind kind;
  uint32_t id;
  std::string data;
};

py::tuple to_python(const EntryRecord& record, int64_t idle_timeout_ns) {
  return py::make_tuple(static_cast<int>(record.kind), record.id, py::bytes(record.data), idle_timeout_ns);
}

py::list table_entries(Switch& self, uint32_t table) {
  struct Copy {
    std::string value, mask, low, high;
    int32_t priority;
    EntryRecord record;
    int64_t idle_timeout_ns;
  };
  std::vector<Copy> copies;
  {
    PythonGuard guard(self.engine());
    const MatchTable& matcher = self.objects().table(table);
    const auto text = [&](const uint64_t* words) {
      return std::string(reinterpret_cast<const char*>(words), matcher.key_bytes());
    };
    copies.reserve(matcher.size());
    matcher.for_each([&](const TableEntry& entry) {
      Copy copy{text(entry.key()),  text(entry.mask),     {}, {}, entry.priority,
                EntryRecord(entry), entry.idle_timeout_ns};
      if (matcher.has_ranges()) {
        copy.low = text(entry.ranges.get());
        copy.high = text(entry.ranges.get() + matcher.key_words());
      }
      copies.push_back(std::move(copy));
    });
  }
  py::list result;
  for (const Copy& copy : copies)
    result.append(py::make_tuple(py::bytes(copy.value), py::bytes(copy.mask), py::bytes(copy.low),
                                 py::bytes(copy.high), copy.priority, static_cast<int>(copy.record.kind),
                                 copy.record.id, py::bytes(copy.record.data), copy.idle_timeout_ns));
  return result;
}

// Rates and bursts as in MeterConfig.
using MeterConfigTuple = std::tuple<uint64_t, uint64_t, uint64_t, uint64_t, std::optional<uint64_t>>;
// Configuration, (packets, bytes) of green, yellow and red, and the buckets as opaque bytes.
using MeterStateTuple =
    std::tuple<std::optional<MeterConfigTuple>, std::array<std::pair<uint64_t, uint64_t>, 3>, py::bytes>;

std::optional<MeterConfig> meter_config(const std::optional<MeterConfigTuple>& values) {
  if (!values) return std::nullopt;
  return std::make_from_tuple<MeterConfig>(*values);
}

MeterStateTuple to_python(const MeterState& state) {
  MeterStateTuple result{
      std::nullopt, {}, py::bytes(reinterpret_cast<const char*>(&state.buckets), sizeof state.buckets)};
  auto& [config, counters, buckets] = result;
  if (state.config)
    config = {state.config->committed_rate, state.config->committed_burst, state.config->peak_rate,
              state.config->peak_burst, state.config->excess_burst};
  for (size_t colour = 0; colour < counters.size(); ++colour)
    counters[colour] = {state.counters[colour].packets, state.counters[colour].bytes};
  return result;
}

MeterState meter_state(const MeterStateTuple& values) {
  const auto& [config, counters, buckets] = values;
  MeterState state{meter_config(config), {}, {}};
  for (size_t colour = 0; colour < counters.size(); ++colour)
    state.counters[colour] = {counters[colour].first, counters[colour].second};
  const std::span<const uint8_t> bytes = as_bytes(buckets);
  if (bytes.size() != sizeof state.buckets) throw std::invalid_argument("these are no meter's buckets");
  std::memcpy(&state.buckets, bytes.data(), bytes.size());
  return state;
}

Meter& meter_at(Switch& self, uint64_t index) {
  if (index >= self.objects().meters().size()) throw py::index_error("outside the meters");
  return self.objects().meters()[index];
}

Meter& meter_of(TableEntry& entry) {
  if (entry.meter == nullptr) entry.meter = new Meter();
  return *entry.meter;
}

// The objects at the engine's present time: an entry that is written counts as hit now, not when the last
// packet came.
SwitchObjects& present_objects(Switch& self) {
  self.objects().context().now_ps = self.engine().now();
  return self.objects();
}

void bind_tables(py::class_<Switch, Node, std::shared_ptr<Switch>>& cls) {
  cls.def(
         "table_insert",
         [](Switch& self, uint32_t table, const py::bytes& value, const py::bytes& mask, const py::bytes& low,
            const py::bytes& high, int32_t priority, int kind, uint32_t id, const py::bytes& data,
            int64_t idle_timeout_ns, uint64_t max_size) {
           PythonGuard guard(self.engine());
           MatchTable& matcher = self.objects().table(table);
           const MatchArgument match(matcher, value, mask, low, high, priority);
           if (matcher.size() >= max_size) {
             if (matcher.find(*match) != nullptr) return false;
             throw std::overflow_error("the table is full");
           }
           return present_objects(self).insert(table, *match, binding(kind, id, data), idle_timeout_ns);
         },
         py::arg("table"), py::arg("value"), py::arg("mask"), py::arg("low"), py::arg("high"),
         py::arg("priority"), py::arg("kind"), py::arg("id"), py::arg("data"), py::arg("idle_timeout_ns"),
         py::arg("max_size") = std::numeric_limits<uint64_t>::max(),
         "False: such an entry exists. OverflowError: the table has max_size entries.")
      .def("table_modify",
           [](Switch& self, uint32_t table, const py::bytes& value, const py::bytes& mask,
              const py::bytes& low, const py::bytes& high, int32_t priority, int kind, uint32_t id,
              const py::bytes& data, int64_t idle_timeout_ns) {
             PythonGuard guard(self.engine());
             const MatchArgument match(self.objects().table(table), value, mask, low, high, priority);
             return present_objects(self).modify(table, *match, binding(kind, id, data), idle_timeout_ns);
           })
      .def("table_delete",
           [](Switch& self, uint32_t table, const py::bytes& value, const py::bytes& mask,
              const py::bytes& low, const py::bytes& high, int32_t priority) {
             PythonGuard guard(self.engine());
             const MatchArgument match(self.objects().table(table), value, mask, low, high, priority);
             return self.objects().erase(table, *match);
           })
      .def("table_set_default",
           [](Switch& self, uint32_t table, int kind, uint32_t id, const py::bytes& data) {
             PythonGuard guard(self.engine());
             self.objects().set_default(table, binding(kind, id, data));
           })
      .def("table_size",
           [](Switch& self, uint32_t table) {
             PythonGuard guard(self.engine());
             return self.objects().table(table).size();
           })
      .def(
          "entry_action",
          [](Switch& self, uint32_t table, const py::object& key) -> py::object {
            PythonGuard guard(self.engine());
            return with_entry(self, table, key, [](const TableEntry& entry) {
              return to_python(EntryRecord(entry), entry.idle_timeout_ns);
            });
          },
          "Kind, number and data of an entry's action, and its idle timeout.")
      .def("table_entries", &table_entries,
           "All entries: value, mask, low, high and priority, then as entry_action.")
      .def("entry_idle_ns",
           [](Switch& self, uint32_t table, const py::object& key) {
             PythonGuard guard(self.engine());
             const TimePs now = self.engine().now();
             return with_entry(self, table, key, [now](const TableEntry& entry) {
               return (now - entry.last_hit_ps) / kPsPerNs;
             });
           })
      .def("entry_counter",
           [](Switch& self, uint32_t table, const py::object& key) {
             PythonGuard guard(self.engine());
             return with_entry(self, table, key, [](const TableEntry& entry) {
               return std::pair(entry.counter.packets, entry.counter.bytes);
             });
           })
      .def("set_entry_counter",
           [](Switch& self, uint32_t table, const py::object& key, uint64_t packets, uint64_t bytes) {
             PythonGuard guard(self.engine());
             with_entry(self, table, key, [&](TableEntry& entry) { entry.counter = {packets, bytes}; });
           })
      .def("entry_meter",
           [](Switch& self, uint32_t table, const py::object& key) {
             PythonGuard guard(self.engine());
             return with_entry(self, table, key, [](const TableEntry& entry) {
               return to_python(entry.meter == nullptr ? MeterState() : entry.meter->state());
             });
           })
      .def("set_entry_meter",
           [](Switch& self, uint32_t table, const py::object& key,
              const std::optional<MeterConfigTuple>& config) {
             PythonGuard guard(self.engine());
             const TimePs now = self.engine().now();
             with_entry(self, table, key,
                        [&](TableEntry& entry) { meter_of(entry).configure(meter_config(config), now); });
           })
      .def("restore_entry_meter", [](Switch& self, uint32_t table, const py::object& key,
                                     const MeterStateTuple& state) {
        PythonGuard guard(self.engine());
        with_entry(self, table, key, [&](TableEntry& entry) { meter_of(entry).restore(meter_state(state)); });
      });
}

// ---- action profiles

ActionMember& member_of(Switch& self, uint32_t profile, uint32_t id) {
  ActionMember* member = self.objects().action_profile(profile).member(id);
  if (member == nullptr) throw py::key_error("no member " + std::to_string(id));
  return *member;
}

ActionGroup& group_of(Switch& self, uint32_t profile, uint32_t id) {
  ActionGroup* group = self.objects().action_profile(profile).group(id);
  if (group == nullptr) throw py::key_error("no group " + std::to_string(id));
  return *group;
}

std::vector<GroupMember> group_members(Switch& self, uint32_t profile,
                                       const std::vector<std::tuple<uint32_t, int32_t, int32_t>>& members) {
  std::vector<GroupMember> result;
  for (const auto& [id, weight, watch_port] : members) {
    member_of(self, profile, id);
    result.push_back(GroupMember{id, weight, watch_port});
  }
  return result;
}

void bind_action_profiles(py::class_<Switch, Node, std::shared_ptr<Switch>>& cls) {
  using Members = std::vector<std::tuple<uint32_t, int32_t, int32_t>>;
  cls.def("member_insert",
          [](Switch& self, uint32_t profile, uint32_t id, uint32_t action, const py::bytes& data) {
            PythonGuard guard(self.engine());
            ActionProfile& target = self.objects().action_profile(profile);
            if (target.member(id) != nullptr) return false;
            target.add_member(id, action, as_bytes(data));
            return true;
          })
      .def("member_modify",
           [](Switch& self, uint32_t profile, uint32_t id, uint32_t action, const py::bytes& data) {
             PythonGuard guard(self.engine());
             self.objects().action_profile(profile).modify_member(member_of(self, profile, id), action,
                                                                  as_bytes(data));
           })
      .def("member_delete",
           [](Switch& self, uint32_t profile, uint32_t id) {
             PythonGuard guard(self.engine());
             if (member_of(self, profile, id).references != 0) return false;
             self.objects().action_profile(profile).remove_member(id);
             return true;
           })
      .def("group_insert",
           [](Switch& self, uint32_t profile, uint32_t id, const Members& members, bool is_random) {
             PythonGuard guard(self.engine());
             ActionProfile& target = self.objects().action_profile(profile);
             if (target.group(id) != nullptr) return false;
             auto checked = group_members(self, profile, members);
             ActionGroup& group = target.add_group(id);
             group.is_random = is_random;
             target.set_group_members(group, std::move(checked));
             return true;
           })
      .def("group_modify",
           [](Switch& self, uint32_t profile, uint32_t id, const Members& members) {
             PythonGuard guard(self.engine());
             ActionGroup& group = group_of(self, profile, id);
             self.objects().action_profile(profile).set_group_members(group,
                                                                      group_members(self, profile, members));
           })
      .def("group_delete",
           [](Switch& self, uint32_t profile, uint32_t id) {
             PythonGuard guard(self.engine());
             if (group_of(self, profile, id).references != 0) return false;
             self.objects().action_profile(profile).remove_group(id);
             return true;
           })
      .def("profile_sizes",
           [](Switch& self, uint32_t profile) {
             PythonGuard guard(self.engine());
             ActionProfile& target = self.objects().action_profile(profile);
             return std::pair(target.members().size(), target.groups().size());
           })
      .def("set_watch_port_up", [](Switch& self, uint32_t profile, int32_t port, bool up) {
        PythonGuard guard(self.engine());
        self.objects().action_profile(profile).set_port_up(port, up);
      });
}

// ---- registers, counters, meters, value sets

void bind_arrays(py::class_<Switch, Node, std::shared_ptr<Switch>>& cls) {
  cls.def("registers_read",
          [](Switch& self, uint64_t offset, uint64_t stride, uint64_t cell_bytes, uint64_t count) {
            PythonGuard guard(self.engine());
            const std::span<uint8_t> memory = self.objects().registers();
            if (count != 0 && offset + (count - 1) * stride + cell_bytes > memory.size())
              throw py::index_error("outside the registers");
            std::string result(count * cell_bytes, '\0');
            for (uint64_t i = 0; i < count; ++i)
              std::memcpy(result.data() + i * cell_bytes, memory.data() + offset + i * stride, cell_bytes);
            return py::bytes(result);
          })
      .def("registers_fill",
           [](Switch& self, uint64_t offset, uint64_t stride, const py::bytes& cell, uint64_t count) {
             PythonGuard guard(self.engine());
             const std::span<uint8_t> memory = self.objects().registers();
             const std::span<const uint8_t> value = as_bytes(cell);
             if (count != 0 && offset + (count - 1) * stride + value.size() > memory.size())
               throw py::index_error("outside the registers");
             for (uint64_t i = 0; i < count; ++i)
               std::memcpy(memory.data() + offset + i * stride, value.data(), value.size());
           })
      .def("counters_read",
           [](Switch& self, uint64_t first, uint64_t count) {
             PythonGuard guard(self.engine());
             const std::span<CounterCell> cells = self.objects().counters();
             if (first + count > cells.size()) throw py::index_error("outside the counters");
             std::vector<std::pair<uint64_t, uint64_t>> result;
             for (const CounterCell& cell : cells.subspan(first, count))
               result.emplace_back(cell.packets, cell.bytes);
             return result;
           })
      .def("counter_write",
           [](Switch& self, uint64_t index, uint64_t packets, uint64_t bytes) {
             PythonGuard guard(self.engine());
             const std::span<CounterCell> cells = self.objects().counters();
             if (index >= cells.size()) throw py::index_error("outside the counters");
             cells[index] = {packets, bytes};
           })
      .def("meter_read",
           [](Switch& self, uint64_t index) {
             PythonGuard guard(self.engine());
             return to_python(meter_at(self, index).state());
           })
      .def("meter_write",
           [](Switch& self, uint64_t index, const std::optional<MeterConfigTuple>& config) {
             PythonGuard guard(self.engine());
             meter_at(self, index).configure(meter_config(config), self.engine().now());
           })
      .def("meter_restore",
           [](Switch& self, uint64_t index, const MeterStateTuple& state) {
             PythonGuard guard(self.engine());
             meter_at(self, index).restore(meter_state(state));
           })
      .def("value_set_write",
           [](Switch& self, uint32_t index, const std::vector<std::pair<py::bytes, py::bytes>>& members) {
             PythonGuard guard(self.engine());
             std::vector<ValueSetMember> target;
             for (const auto& [value, mask] : members) {
               const auto value_bytes = as_bytes(value), mask_bytes = as_bytes(mask);
               target.push_back(
                   {{value_bytes.begin(), value_bytes.end()}, {mask_bytes.begin(), mask_bytes.end()}});
             }
             self.objects().value_set(index) = std::move(target);
           });
}

// ---- packets

void bind_packets(py::class_<Switch, Node, std::shared_ptr<Switch>>& cls) {
  using Replicas = std::vector<std::pair<uint32_t, uint32_t>>;
  const auto replicas_of = [](const Replicas& pairs) {
    std::vector<Replica> result;
    for (const auto& [port, instance] : pairs) result.push_back(Replica{port, instance});
    return result;
  };
  cls.def("multicast_group_set",
          [replicas_of](Switch& self, uint32_t id, const Replicas& replicas) {
            PythonGuard guard(self.engine());
            self.replication().multicast_groups[id] = replicas_of(replicas);
          })
      .def("multicast_group_delete",
           [](Switch& self, uint32_t id) {
             PythonGuard guard(self.engine());
             return self.replication().multicast_groups.erase(id) != 0;
           })
      .def("clone_session_set",
           [replicas_of](Switch& self, uint32_t id, const Replicas& replicas, uint32_t priority_class,
                         uint32_t packet_length_bytes) {
             PythonGuard guard(self.engine());
             self.replication().clone_sessions[id] = {replicas_of(replicas), priority_class,
                                                      packet_length_bytes};
           })
      .def("clone_session_delete",
           [](Switch& self, uint32_t id) {
             PythonGuard guard(self.engine());
             return self.replication().clone_sessions.erase(id) != 0;
           })
      .def(
          "packet_out",
          [](Switch& self, const py::bytes& data) {
            PythonGuard guard(self.engine());
            self.receive(static_cast<int>(self.options().cpu_port),
                         self.engine().packets().copy_of(as_bytes(data)));
          },
          "Let the switch receive a packet on its CPU port.")
      .def(
          "process",
          [](Switch& self, uint32_t port, const py::bytes& data) {
            PythonGuard guard(self.engine());
            py::list result;
            for (const Switch::Output& output : self.process(port, as_bytes(data)))
              result.append(py::make_tuple(output.port, to_bytes(output.bytes)));
            return result;
          },
          py::arg("port"), py::arg("data"))
      .def(
          "process_repeatedly",
          [](Switch& self, uint32_t port, const std::vector<py::bytes>& packets, uint64_t count) {
            if (packets.empty()) throw std::invalid_argument("no packets");
            PythonGuard guard(self.engine());
            std::vector<std::span<const uint8_t>> views;
            for (const py::bytes& packet : packets) views.push_back(as_bytes(packet));
            py::gil_scoped_release release;
            return self.process_repeatedly(port, views, count);
          },
          py::arg("port"), py::arg("packets"), py::arg("count"))
      .def(
          "wait_event",
          [](Switch& self, double timeout_s) -> py::object {
            std::optional<StreamEvent> event;
            {
              py::gil_scoped_release release;
              event = self.events().wait(timeout_s);
            }
            if (!event) return py::none();
            const bool digest = event->kind == StreamEvent::Kind::kDigest;
            return py::make_tuple(digest ? "digest" : "packet_in", event->learn_list, to_bytes(event->bytes),
                                  event->time_ps);
          },
          py::arg("timeout_s"))
      .def(
          "set_event_listener",
          [](Switch& self, std::optional<py::function> listener) {
            std::function<void()> held = listener_of(std::move(listener));
            PythonGuard guard(self.engine());
            self.events().set_listener(std::move(held));
          },
          py::arg("listener").none(true))
      .def("replace_code",
           [](Switch& self, std::shared_ptr<SwitchProgram> program) {
             PythonGuard guard(self.engine());
             self.replace_code(std::move(program));
           })
      .def(
          "start_trace",
          [](Switch& self, uint64_t packets, std::optional<uint32_t> port) {
            PythonGuard guard(self.engine());
            self.trace().start({port, packets});
          },
          py::arg("packets"), py::arg("port").none(true))
      .def("stop_trace",
           [](Switch& self) {
             PythonGuard guard(self.engine());
             self.trace().stop();
           })
      .def("take_trace",
           [](Switch& self) {
             PythonGuard guard(self.engine());
             return to_bytes(self.trace().take());
           })
      .def_property_readonly("trace_packets_missed",
                             [](Switch& self) {
                               PythonGuard guard(self.engine());
                               return self.trace().packets_missed();
                             })
      .def("set_logging",
           [](Switch& self, bool enabled) {
             PythonGuard guard(self.engine());
             self.set_logging(enabled);
           })
      .def("take_log", [](Switch& self) {
        PythonGuard guard(self.engine());
        return self.take_log();
      });
}

SwitchOptions make_options(std::string name, uint32_t cpu_port, uint32_t drop_port,
                           const std::string& depth_unit, const std::string& time_unit) {
  SwitchOptions options;
  options.name = std::move(name);
  options.cpu_port = cpu_port;
  options.drop_port = drop_port;
  if (depth_unit == "packets")
    options.depth_unit = SwitchOptions::DepthUnit::kPackets;
  else if (depth_unit != "cells")
    throw std::invalid_argument("depth_unit '" + depth_unit + "' (valid: 'cells', 'packets')");
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

  py::class_<SwitchProgram, std::shared_ptr<SwitchProgram>>(m, "SwitchProgram")
      .def(py::init(&make_program), py::kw_only(), py::arg("functions"), py::arg("code"),
           py::arg("state_bytes"), py::arg("metadata_offset_bytes"), py::arg("metadata_bytes"),
           py::arg("max_headers_bytes"), py::arg("max_digest_bytes"), py::arg("max_action_data_bytes"),
           py::arg("tables"), py::arg("action_profile_count"), py::arg("registers_bytes"),
           py::arg("counter_count"), py::arg("meter_count"), py::arg("value_set_count"),
           py::arg("log_formats"));

  py::class_<Switch, Node, std::shared_ptr<Switch>> cls(m, "Switch");
  cls.def(py::init([](Engine& engine, std::string name, uint32_t cpu_port, uint32_t drop_port,
                      const std::string& depth_unit, const std::string& time_unit) {
            return make_component<Switch>(
                engine, engine, make_options(std::move(name), cpu_port, drop_port, depth_unit, time_unit));
          }),
          py::keep_alive<1, 2>(), py::arg("engine"), py::kw_only(), py::arg("name"),
          py::arg("cpu_port") = 510, py::arg("drop_port") = 511, py::arg("depth_unit") = "cells",
          py::arg("time_unit") = "ns")
      .def("load",
           [](Switch& self, std::shared_ptr<SwitchProgram> program) {
             PythonGuard guard(self.engine());
             self.load(std::move(program));
           })
      .def(
          "attach_port",
          [](Switch& self, uint32_t port, TransmitPort& transmit_port) {
            PythonGuard guard(self.engine());
            self.attach_port(port, transmit_port);
          },
          py::arg("port"), py::arg("transmit_port"))
      .def(
          "receive",
          [](Switch& self, int port, const py::bytes& data) {
            PythonGuard guard(self.engine());
            self.receive(port, self.engine().packets().copy_of(as_bytes(data)));
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
  bind_tables(cls);
  bind_action_profiles(cls);
  bind_arrays(cls);
  bind_packets(cls);
}

}  // namespace weft
