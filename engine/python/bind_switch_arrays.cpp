// Registers, counters, meters and value sets of a switch for Python.
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "python/bind_switch.hpp"
#include "python/bind_switch_meters.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace weft {

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
  const std::span<const uint8_t> bytes = view_of(buckets);
  if (bytes.size() != sizeof state.buckets) throw std::invalid_argument("these are no meter's buckets");
  std::memcpy(&state.buckets, bytes.data(), bytes.size());
  return state;
}

namespace {

Meter& meter_at(Switch& self, uint64_t index) {
  if (index >= self.objects().meters().size()) throw py::index_error("outside the meters");
  return self.objects().meters()[index];
}

}  // namespace

void bind_switch_arrays(SwitchClass& cls) {
  cls.def(
         "registers_read",
         [](Switch& self, uint64_t offset, uint64_t stride, uint64_t cell_bytes, uint64_t count) {
           PythonGuard guard(self.engine());
           const std::span<uint8_t> memory = self.objects().registers();
           if (count != 0 && offset + (count - 1) * stride + cell_bytes > memory.size())
             throw py::index_error("outside the registers");
           std::string result(count * cell_bytes, '\0');
           for (uint64_t i = 0; i < count; ++i)
             std::memcpy(result.data() + i * cell_bytes, memory.data() + offset + i * stride, cell_bytes);
           return py::bytes(result);
         },
         "offset"_a, "stride"_a, "cell_bytes"_a, "count"_a)
      .def(
          "registers_fill",
          [](Switch& self, uint64_t offset, uint64_t stride, const py::bytes& cell, uint64_t count) {
            PythonGuard guard(self.engine());
            const std::span<uint8_t> memory = self.objects().registers();
            const std::span<const uint8_t> value = view_of(cell);
            if (count != 0 && offset + (count - 1) * stride + value.size() > memory.size())
              throw py::index_error("outside the registers");
            for (uint64_t i = 0; i < count; ++i)
              std::memcpy(memory.data() + offset + i * stride, value.data(), value.size());
          },
          "offset"_a, "stride"_a, "cell"_a, "count"_a)
      .def(
          "counters_read",
          [](Switch& self, uint64_t first, uint64_t count) {
            PythonGuard guard(self.engine());
            const std::span<CounterCell> cells = self.objects().counters();
            if (first + count > cells.size()) throw py::index_error("outside the counters");
            std::vector<std::pair<uint64_t, uint64_t>> result;
            for (const CounterCell& cell : cells.subspan(first, count))
              result.emplace_back(cell.packets, cell.bytes);
            return result;
          },
          "first"_a, "count"_a)
      .def(
          "counter_write",
          [](Switch& self, uint64_t index, uint64_t packets, uint64_t bytes) {
            PythonGuard guard(self.engine());
            const std::span<CounterCell> cells = self.objects().counters();
            if (index >= cells.size()) throw py::index_error("outside the counters");
            cells[index] = {packets, bytes};
          },
          "index"_a, "packets"_a, "bytes"_a)
      .def(
          "meter_read",
          [](Switch& self, uint64_t index) {
            PythonGuard guard(self.engine());
            return to_python(meter_at(self, index).state());
          },
          "index"_a)
      .def(
          "meter_write",
          [](Switch& self, uint64_t index, const std::optional<MeterConfigTuple>& config) {
            PythonGuard guard(self.engine());
            meter_at(self, index).configure(meter_config(config), self.engine().now());
          },
          "index"_a, "config"_a)
      .def(
          "meter_restore",
          [](Switch& self, uint64_t index, const MeterStateTuple& state) {
            PythonGuard guard(self.engine());
            meter_at(self, index).restore(meter_state(state));
          },
          "index"_a, "state"_a)
      .def(
          "value_set_write",
          [](Switch& self, uint32_t index, const std::vector<std::pair<py::bytes, py::bytes>>& members) {
            PythonGuard guard(self.engine());
            std::vector<ValueSetMember> target;
            for (const auto& [value, mask] : members) {
              const auto value_bytes = view_of(value), mask_bytes = view_of(mask);
              target.push_back(
                  {{value_bytes.begin(), value_bytes.end()}, {mask_bytes.begin(), mask_bytes.end()}});
            }
            self.objects().value_set(index) = std::move(target);
          },
          "index"_a, "members"_a);
}

}  // namespace weft
