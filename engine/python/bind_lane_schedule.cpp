// Schedules of lanes in Python, and runs of schedules without an engine.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "collectives/lane_schedule.hpp"
#include "collectives/schedule_stepper.hpp"
#include "python/bind_schedules.hpp"
#include "python/bindings.hpp"
#include "python/python_buffer.hpp"
#include "python/typed.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

namespace {

// first, per_turn, per_lane
using Formula = std::array<int64_t, 3>;
// table, first, per_turn, per_lane, is_cut
using Operand = std::tuple<uint32_t, int64_t, int64_t, int64_t, bool>;

Affine affine_of(const Formula& formula) { return {formula[0], formula[1], formula[2]}; }

ElementsOperand operand_of(const Operand& operand) {
  const auto& [table, first, per_turn, per_lane, is_cut] = operand;
  return {.table = table, .number = {first, per_turn, per_lane}, .is_cut = is_cut};
}

void add_send(LaneSchedule& schedule, const Operand& elements, const Formula& channel, uint32_t transfer,
              bool to_scratch, const std::optional<Operand>& landing, int64_t shift, uint32_t slot,
              uint32_t ahead, uint32_t terms, bool is_copy, bool is_to_itself) {
  LaneInstruction instruction;
  instruction.kind = LaneInstructionKind::kSend;
  instruction.elements = operand_of(elements);
  if (landing) instruction.landing = operand_of(*landing);
  instruction.landing_buffer = to_scratch ? LaneBuffer::kScratch : LaneBuffer::kData;
  instruction.shift = shift;
  instruction.channel = affine_of(channel);
  instruction.transfer = transfer;
  instruction.slot = slot;
  instruction.ahead = ahead;
  instruction.terms = terms;
  instruction.is_copy = is_copy;
  instruction.is_to_itself = is_to_itself;
  schedule.add_instruction(std::move(instruction));
}

void add_receive(LaneSchedule& schedule, const Operand& elements, const Formula& channel, uint32_t transfer,
                 bool in_turn, uint32_t slot) {
  LaneInstruction instruction;
  instruction.kind = LaneInstructionKind::kReceive;
  instruction.elements = operand_of(elements);
  instruction.channel = affine_of(channel);
  instruction.transfer = transfer;
  instruction.in_turn = in_turn;
  instruction.slot = slot;
  schedule.add_instruction(std::move(instruction));
}

template <LaneInstructionKind Kind>
void add_data_step(LaneSchedule& schedule, const Operand& elements, int64_t shift, uint32_t slot) {
  LaneInstruction instruction;
  instruction.kind = Kind;
  instruction.elements = operand_of(elements);
  instruction.shift = shift;
  instruction.slot = slot;
  schedule.add_instruction(std::move(instruction));
}

void add_aggregate(LaneSchedule& schedule, const Operand& elements, uint32_t plane, uint32_t slot,
                   const std::string& kind, uint32_t rank, uint32_t root) {
  LaneInstruction instruction;
  instruction.kind = LaneInstructionKind::kAggregate;
  instruction.elements = operand_of(elements);
  instruction.plane = plane;
  instruction.aggregation = parse_aggregation_kind(kind);
  instruction.rank = rank;
  instruction.root = root;
  instruction.slot = slot;
  schedule.add_instruction(std::move(instruction));
}

py::list parts_list(const std::vector<AggregationPart>& parts) {
  py::list list;
  for (const AggregationPart& part : parts) {
    py::object receiver = py::none();
    if (part.receiver != AggregationPart::kAll) receiver = py::int_(part.receiver);
    list.append(py::make_tuple(part.elements.start, part.elements.stop, receiver,
                               part.flow == AggregationFlow::kReduced, part.contributes));
  }
  return list;
}

void add_delay(LaneSchedule& schedule, TimePs duration_ps, uint32_t slot) {
  LaneInstruction instruction;
  instruction.kind = LaneInstructionKind::kDelay;
  instruction.duration_ps = duration_ps;
  instruction.slot = slot;
  schedule.add_instruction(std::move(instruction));
}

template <LaneInstructionKind Kind>
void add_marks_instruction(LaneSchedule& schedule, const Operand& elements, uint32_t marks) {
  LaneInstruction instruction;
  instruction.kind = Kind;
  instruction.elements = operand_of(elements);
  instruction.marks = marks;
  schedule.add_instruction(std::move(instruction));
}

void bind_description(py::module_& m) {
  using Kind = LaneInstructionKind;
  py::class_<ElementTable, std::shared_ptr<ElementTable>>(
      m, "ElementTable",
      "Ranges of elements by number, modulo how many there are. ValueError for none, and for descending "
      "ones.")
      .def_static(
          "evenly",
          [](uint64_t start, uint64_t stop, uint64_t parts) {
            return std::make_shared<ElementTable>(Elements{start, stop}, parts);
          },
          "start"_a, "stop"_a, "parts"_a,
          "Parts of a range, whose lengths differ by at most one, as a formula.")
      .def_static(
          "of",
          [](const std::vector<std::pair<uint64_t, uint64_t>>& ranges) {
            std::vector<Elements> elements;
            elements.reserve(ranges.size());
            for (const auto& [start, stop] : ranges) elements.push_back({start, stop});
            return std::make_shared<ElementTable>(std::move(elements));
          },
          "ranges"_a, "Starts and ends.")
      .def("__len__", &ElementTable::size)
      .def(
          "at",
          [](const ElementTable& table, int64_t number) {
            const Elements elements = table.at(number);
            return std::pair(elements.start, elements.stop);
          },
          "number"_a);
  py::class_<LaneSchedule, std::shared_ptr<LaneSchedule>>(
      m, "LaneSchedule",
      R"doc(What a rank does as lanes with loops; see weft.traffic.lane_schedule.LaneSchedule.

Raises ValueError for numbers that name nothing, and for more transfers than immediates.)doc")
      .def(py::init([](const std::string& dtype, const std::string& operation, uint32_t run_tag,
                       uint32_t divisor) {
             return std::make_shared<LaneSchedule>(parse_data_type(dtype), parse_operation(operation),
                                                   run_tag, divisor);
           }),
           "dtype"_a, "operation"_a, "run_tag"_a = 0, "divisor"_a = 1)
      .def(
          "add_table",
          [](LaneSchedule& schedule, std::shared_ptr<ElementTable> table) {
            return schedule.add_table(std::move(table));
          },
          "table"_a)
      .def("add_marks", &LaneSchedule::add_marks)
      .def("add_stage", &LaneSchedule::add_stage, "after"_a = std::vector<uint32_t>())
      .def(
          "add_grid",
          [](LaneSchedule& schedule, uint64_t cell_count, std::vector<bool> moves_data) {
            return schedule.add_grid({cell_count, std::move(moves_data)});
          },
          "cell_count"_a, "moves_data"_a)
      .def("add_block", &LaneSchedule::add_block, "lane_count"_a)
      .def(
          "add_loop",
          [](LaneSchedule& schedule, uint64_t turns, uint32_t grid, const Formula& cell) {
            schedule.add_loop(turns, grid, affine_of(cell));
          },
          "turns"_a, "grid"_a, "cell"_a)
      .def("send", &add_send, "elements"_a, "channel"_a, "transfer"_a, "to_scratch"_a, "landing"_a, "shift"_a,
           "slot"_a, "ahead"_a, "terms"_a = 1, "is_copy"_a = false, "is_to_itself"_a = false)
      .def("receive", &add_receive, "elements"_a, "channel"_a, "transfer"_a, "in_turn"_a, "slot"_a)
      .def("reduce", &add_data_step<Kind::kReduce>, "elements"_a, "shift"_a, "slot"_a)
      .def("copy", &add_data_step<Kind::kCopy>, "elements"_a, "shift"_a, "slot"_a)
      .def("aggregate", &add_aggregate, "elements"_a, "plane"_a, "slot"_a, "kind"_a, "rank"_a, "root"_a)
      .def("delay", &add_delay, "duration_ps"_a, "slot"_a)
      .def("await_elements", &add_marks_instruction<Kind::kAwaitElements>, "elements"_a, "marks"_a)
      .def("mark_elements", &add_marks_instruction<Kind::kMarkElements>, "elements"_a, "marks"_a)
      .def("await_acknowledgement",
           [](LaneSchedule& schedule) {
             LaneInstruction instruction;
             instruction.kind = Kind::kAwaitAcknowledgement;
             schedule.add_instruction(std::move(instruction));
           })
      .def(
          "append",
          [](LaneSchedule& schedule, const LaneSchedule& part, uint64_t data_elements,
             uint64_t scratch_elements, uint32_t first_transfer, uint32_t first_channel,
             std::vector<uint32_t> after) {
            return schedule.append(part,
                                   {.data_elements = data_elements,
                                    .scratch_elements = scratch_elements,
                                    .first_transfer = first_transfer,
                                    .first_channel = first_channel},
                                   std::move(after));
          },
          "part"_a, "data_elements"_a, "scratch_elements"_a, "first_transfer"_a, "first_channel"_a, "after"_a)
      .def_property_readonly("transfer_limit", &LaneSchedule::transfer_limit,
                             "Above the largest number of a transfer.")
      .def("step_count", &LaneSchedule::step_count, "with_data"_a);
}

LanePayload parse_payload(const std::string& text) {
  if (text == "data") return LanePayload::kData;
  if (text == "zeros") return LanePayload::kZeros;
  if (text == "lengths") return LanePayload::kLengths;
  throw std::invalid_argument("payload '" + text + "' (valid: data, zeros, lengths)");
}

// channel, address and key of the peer's data, address and key of its scratch buffer
using ChannelTuple = std::tuple<uint32_t, uint64_t, uint32_t, uint64_t, uint32_t>;

std::shared_ptr<BoundLanes> bind_lanes(std::shared_ptr<LaneSchedule> schedule, const std::string& payload,
                                       const std::optional<py::buffer>& data,
                                       const std::optional<py::buffer>& scratch,
                                       const std::vector<ChannelTuple>& channels,
                                       std::vector<std::optional<uint32_t>> aggregators) {
  LaneBinding binding;
  binding.payload = parse_payload(payload);
  if (data) {
    auto held = std::make_shared<PythonBuffer>(*data, true);
    binding.data = held->data();
    binding.data_bytes = held->size_bytes();
    binding.owners.push_back(std::move(held));
  }
  if (scratch) {
    auto held = std::make_shared<PythonBuffer>(*scratch, true);
    binding.scratch = held->data();
    binding.scratch_bytes = held->size_bytes();
    binding.owners.push_back(std::move(held));
  }
  binding.channels.reserve(channels.size());
  for (const auto& [channel, data_address, data_rkey, scratch_address, scratch_rkey] : channels) {
    binding.channels.push_back({channel, data_address, data_rkey, scratch_address, scratch_rkey});
  }
  binding.aggregators = std::move(aggregators);
  return std::make_shared<BoundLanes>(std::move(schedule), std::move(binding));
}

void bind_stepper(py::module_& m) {
  py::class_<ScheduleStepper>(
      m, "ScheduleStepper",
      R"doc(A run of a schedule without engine or network: it says what is to be transferred, and learns what arrives.

Reductions and copies are done as they come up. Each call goes as far as the schedule can without more arrivals.)doc")
      .def(py::init([](std::shared_ptr<RunnableSchedule> schedule) {
             return ScheduleStepper(std::move(schedule));
           }),
           "schedule"_a)
      .def("begin", &ScheduleStepper::begin)
      .def("arrived", &ScheduleStepper::arrived, "channel"_a, "immediate"_a)
      .def("completed", &ScheduleStepper::completed, "step"_a,
           "A write has been acknowledged, or an aggregation is done.")
      .def("delay_over", &ScheduleStepper::delay_over, "token"_a)
      .def(
          "take_writes",
          [](ScheduleStepper& stepper) {
            Typed<"list[tuple[int, int, int, int, int, int, int | None, tuple[int, bool, bool]]]", py::list>
                writes;
            for (const auto& [step, request] : stepper.take_writes()) {
              writes.append(py::make_tuple(step, request.channel, reinterpret_cast<uintptr_t>(request.source),
                                           request.length_bytes, request.remote_address, request.rkey,
                                           request.immediate,
                                           py::make_tuple(request.switched.terms, request.switched.is_copy,
                                                          request.switched.is_to_itself)));
            }
            return writes;
          },
          R"doc(Since the last call: step, channel, source (0: zeros), length, remote address, rkey, immediate, and what
the host's switch does: terms that it reduces, whether it is a copy, whether it goes back to the sender.)doc")
      .def(
          "take_aggregations",
          [](ScheduleStepper& stepper) {
            Typed<"list[tuple[int, int, int, int, list[tuple[int, int, int | None, bool, bool]]]]", py::list>
                aggregations;
            for (const auto& [step, request] : stepper.take_aggregations()) {
              aggregations.append(py::make_tuple(step, request.aggregator,
                                                 reinterpret_cast<uintptr_t>(request.data),
                                                 request.length_bytes, parts_list(request.parts)));
            }
            return aggregations;
          },
          R"doc(Since the last call: step, aggregator, address, length in bytes, parts.

Of a part: first element and the one after its last, the rank that gets the result (None: all), whether data are
reduced rather than moved, and whether this rank's count.)doc")
      .def(
          "take_delays",
          [](ScheduleStepper& stepper) {
            Typed<"list[tuple[int, int, int]]", py::list> delays;
            for (const auto& [step, duration_ps, token] : stepper.take_delays()) {
              delays.append(py::make_tuple(step, duration_ps, token));
            }
            return delays;
          },
          "Since the last call: step, duration in ps, token.")
      .def_property_readonly(
          "done", [](const ScheduleStepper& stepper) { return stepper.done(); },
          "Steps that are done, in that order.")
      .def_property_readonly("is_done", &ScheduleStepper::is_done)
      .def_property_readonly("unclaimed_arrivals", &ScheduleStepper::unclaimed_arrivals,
                             "Writes that have arrived and that nothing has waited for.");
}

}  // namespace

void bind_lane_schedule(py::module_& m) {
  bind_description(m);
  py::class_<BoundLanes, RunnableSchedule, std::shared_ptr<BoundLanes>>(
      m, "BoundLanes", R"doc(A rank's lanes over its buffers and channels.

`payload` is "data", "zeros" or "lengths". Channels, in the schedule's order: the executor's number, address and key
of the peer's data, address and key of its scratch buffer; aggregators, by plane: the executor's numbers. Raises
ValueError for what the schedule needs and lacks.)doc")
      .def(py::init(&bind_lanes), "schedule"_a, py::kw_only(), "payload"_a, "data"_a, "scratch"_a,
           "channels"_a, "aggregators"_a)
      .def_property_readonly("step_count", &BoundLanes::step_count);
  bind_stepper(m);
}

}  // namespace weft
