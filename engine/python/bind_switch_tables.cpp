// Tables of a switch for Python: entries, their counters and meters.
#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "python/bind_switch.hpp"
#include "python/bind_switch_meters.hpp"
#include "python/typed.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace weft {

namespace {

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
  // The match refers to the words, which stay where they are when this moves.
  MatchArgument(MatchArgument&&) noexcept = default;
  MatchArgument(const MatchArgument&) = delete;
  const EntryMatch& operator*() const { return match_; }

 private:
  void fill(size_t part, const py::bytes& data, const MatchTable& table, size_t words) {
    const std::span<const uint8_t> bytes = view_of(data);
    if (bytes.size() != table.key_bytes())
      throw std::invalid_argument("a key of " + std::to_string(bytes.size()) +
                                  " bytes (valid: " + std::to_string(table.key_bytes()) + ")");
    if (!bytes.empty()) std::memcpy(words_.data() + part * words, bytes.data(), bytes.size());
  }

  std::vector<uint64_t> words_;
  EntryMatch match_;
};

ActionBinding binding(int kind, uint32_t id, const py::bytes& data) {
  return ActionBinding{static_cast<ActionBinding::Kind>(kind), id, view_of(data)};
}

// The objects at the engine's present time: an entry that is written counts as hit now, not when the last
// packet came.
SwitchObjects& present_objects(Switch& self) {
  self.objects().context().now_ps = self.engine().now();
  return self.objects();
}

// A table and a match in it, for any switch that runs the program they were prepared for.
class PreparedKey {
 public:
  PreparedKey(const MatchTable& table, uint32_t index, MatchArgument match, uint64_t max_size)
      : index_(index),
        key_bytes_(table.key_bytes()),
        has_ranges_(table.has_ranges()),
        match_(std::move(match)),
        max_size_(max_size) {}

  // Inserts an entry. False: such an entry exists, or the table is full.
  bool insert(SwitchObjects& objects, const ActionBinding& binding) const {
    MatchTable& table = objects.table(index_);
    if (table.key_bytes() != key_bytes_ || table.has_ranges() != has_ranges_)
      throw std::invalid_argument("the key was prepared for another program");
    return table.size() < max_size_ && objects.insert(index_, *match_, binding, 0);
  }

 private:
  uint32_t index_;
  uint32_t key_bytes_;
  bool has_ranges_;
  MatchArgument match_;
  uint64_t max_size_;
};

// An action with its data.
struct PreparedAction {
  uint32_t number;
  std::vector<uint8_t> data;
};

// How many entries were inserted before one that the switch refuses. In portions: packets of a real clock
// must not wait until a large batch is done.
size_t insert_prepared(Switch& self, const Typed<"collections.abc.Sequence[object]", py::list>& entries) {
  constexpr size_t kPortion = 64;
  size_t done = 0;
  while (done < entries.size()) {
    PythonGuard guard(self.engine());
    SwitchObjects& objects = present_objects(self);
    const size_t end = std::min(entries.size(), done + kPortion);
    for (; done < end; ++done) {
      const py::tuple entry = entries[done];
      const auto& key = entry[0].cast<const PreparedKey&>();
      const auto& action = entry[1].cast<const PreparedAction&>();
      if (!key.insert(objects, {ActionBinding::Kind::kAction, action.number, action.data})) return done;
    }
  }
  return done;
}

using PreparedDefaults = Typed<"collections.abc.Sequence[tuple[int, object]]", py::list>;

void set_prepared_defaults(Switch& self, const PreparedDefaults& defaults) {
  PythonGuard guard(self.engine());
  for (const py::handle each : defaults) {
    const auto pair = py::cast<py::tuple>(each);
    const auto& action = pair[1].cast<const PreparedAction&>();
    self.objects().set_default(pair[0].cast<uint32_t>(),
                               {ActionBinding::Kind::kAction, action.number, action.data});
  }
}

TableEntry& entry_of(Switch& self, uint32_t table, const MatchArgument& match) {
  TableEntry* entry = self.objects().table(table).find(*match);
  if (entry == nullptr) throw py::key_error("no such entry");
  return *entry;
}

// Calls use(entry) with the entry, or with the default entry where `key` is none.
// None stands for the default entry.
using EntryKey = Typed<"tuple[bytes, bytes, bytes, bytes, int] | None">;

template <typename Use>
auto with_entry(Switch& self, uint32_t table, const EntryKey& key, Use&& use) {
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

Typed<"list[tuple[bytes, bytes, bytes, bytes, int, int, int, bytes, int]]", py::list> table_entries(
    Switch& self, uint32_t table) {
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

Meter& meter_of(TableEntry& entry) {
  if (entry.meter == nullptr) entry.meter = new Meter();
  return *entry.meter;
}

}  // namespace

void bind_switch_tables(SwitchClass& cls) {
  py::class_<PreparedKey>(cls, "PreparedKey");
  py::class_<PreparedAction>(cls, "PreparedAction");
  cls.def(
         "prepare_key",
         [](Switch& self, uint32_t table, const py::bytes& value, const py::bytes& mask, const py::bytes& low,
            const py::bytes& high, int32_t priority, uint64_t max_size) {
           PythonGuard guard(self.engine());
           const MatchTable& matcher = self.objects().table(table);
           return PreparedKey(matcher, table, {matcher, value, mask, low, high, priority}, max_size);
         },
         "table"_a, "value"_a, "mask"_a, "low"_a, "high"_a, "priority"_a, "max_size"_a)
      .def(
          "prepare_action",
          [](Switch&, uint32_t number, const py::bytes& data) {
            const std::span<const uint8_t> bytes = view_of(data);
            return PreparedAction{number, {bytes.begin(), bytes.end()}};
          },
          "number"_a, "data"_a)
      .def("insert_prepared", &insert_prepared,
           "Inserts entries, each a tuple of a prepared key and action; how many until one that is refused.",
           "entries"_a)
      .def("set_prepared_defaults", &set_prepared_defaults,
           "Sets default actions, each a tuple of a table and a prepared action.", "defaults"_a);
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
      .def(
          "table_modify",
          [](Switch& self, uint32_t table, const py::bytes& value, const py::bytes& mask,
             const py::bytes& low, const py::bytes& high, int32_t priority, int kind, uint32_t id,
             const py::bytes& data, int64_t idle_timeout_ns) {
            PythonGuard guard(self.engine());
            const MatchArgument match(self.objects().table(table), value, mask, low, high, priority);
            return present_objects(self).modify(table, *match, binding(kind, id, data), idle_timeout_ns);
          },
          "table"_a, "value"_a, "mask"_a, "low"_a, "high"_a, "priority"_a, "kind"_a, "id"_a, "data"_a,
          "idle_timeout_ns"_a)
      .def(
          "table_delete",
          [](Switch& self, uint32_t table, const py::bytes& value, const py::bytes& mask,
             const py::bytes& low, const py::bytes& high, int32_t priority) {
            PythonGuard guard(self.engine());
            const MatchArgument match(self.objects().table(table), value, mask, low, high, priority);
            return self.objects().erase(table, *match);
          },
          "table"_a, "value"_a, "mask"_a, "low"_a, "high"_a, "priority"_a)
      .def(
          "table_set_default",
          [](Switch& self, uint32_t table, int kind, uint32_t id, const py::bytes& data) {
            PythonGuard guard(self.engine());
            self.objects().set_default(table, binding(kind, id, data));
          },
          "table"_a, "kind"_a, "id"_a, "data"_a)
      .def(
          "table_size",
          [](Switch& self, uint32_t table) {
            PythonGuard guard(self.engine());
            return self.objects().table(table).size();
          },
          "table"_a)
      .def(
          "entry_action",
          [](Switch& self, uint32_t table, const EntryKey& key)->Typed<"tuple[int, int, bytes, int]"> {
            PythonGuard guard(self.engine());
            return with_entry(self, table, key, [](const TableEntry& entry) {
              return to_python(EntryRecord(entry), entry.idle_timeout_ns);
            });
          },
          "Kind, number and data of an entry's action, and its idle timeout.", "table"_a, "key"_a)
      .def("table_entries", &table_entries,
           "All entries: value, mask, low, high and priority, then as entry_action.", "table"_a)
      .def(
          "entry_idle_ns",
          [](Switch& self, uint32_t table, const EntryKey& key) {
            PythonGuard guard(self.engine());
            const TimePs now = self.engine().now();
            return with_entry(self, table, key, [now](const TableEntry& entry) {
              return (now - entry.last_hit_ps) / kPsPerNs;
            });
          },
          "table"_a, "key"_a)
      .def(
          "entry_counter",
          [](Switch& self, uint32_t table, const EntryKey& key) {
            PythonGuard guard(self.engine());
            return with_entry(self, table, key, [](const TableEntry& entry) {
              return std::pair(entry.counter.packets, entry.counter.bytes);
            });
          },
          "table"_a, "key"_a)
      .def(
          "set_entry_counter",
          [](Switch& self, uint32_t table, const EntryKey& key, uint64_t packets, uint64_t bytes) {
            PythonGuard guard(self.engine());
            with_entry(self, table, key, [&](TableEntry& entry) { entry.counter = {packets, bytes}; });
          },
          "table"_a, "key"_a, "packets"_a, "bytes"_a)
      .def(
          "entry_meter",
          [](Switch& self, uint32_t table, const EntryKey& key) {
            PythonGuard guard(self.engine());
            return with_entry(self, table, key, [](const TableEntry& entry) {
              return to_python(entry.meter == nullptr ? MeterState() : entry.meter->state());
            });
          },
          "table"_a, "key"_a)
      .def(
          "set_entry_meter",
          [](Switch& self, uint32_t table, const EntryKey& key,
             const std::optional<MeterConfigTuple>& config) {
            PythonGuard guard(self.engine());
            const TimePs now = self.engine().now();
            with_entry(self, table, key,
                       [&](TableEntry& entry) { meter_of(entry).configure(meter_config(config), now); });
          },
          "table"_a, "key"_a, "config"_a)
      .def(
          "restore_entry_meter",
          [](Switch& self, uint32_t table, const EntryKey& key, const MeterStateTuple& state) {
            PythonGuard guard(self.engine());
            with_entry(self, table, key,
                       [&](TableEntry& entry) { meter_of(entry).restore(meter_state(state)); });
          },
          "table"_a, "key"_a, "state"_a);
}

}  // namespace weft
