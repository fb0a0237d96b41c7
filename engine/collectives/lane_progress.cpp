#include "collectives/lane_progress.hpp"

#include <algorithm>
#include <iterator>

namespace weft {
namespace {

bool is_step(LaneInstructionKind kind) {
  return kind != LaneInstructionKind::kAwaitElements && kind != LaneInstructionKind::kMarkElements &&
         kind != LaneInstructionKind::kAwaitAcknowledgement;
}

bool moves_data(LaneInstructionKind kind) {
  return kind == LaneInstructionKind::kReduce || kind == LaneInstructionKind::kCopy;
}

bool awaits_acknowledgements(const LaneBlock& block) {
  return std::ranges::any_of(block.loops, [](const LaneLoop& loop) {
    return std::ranges::any_of(loop.instructions, [](const LaneInstruction& instruction) {
      return instruction.kind == LaneInstructionKind::kAwaitAcknowledgement;
    });
  });
}

}  // namespace

LaneProgress::LaneProgress(const BoundLanes& lanes, uint32_t run_tag)
    : lanes_(lanes),
      schedule_(lanes.schedule()),
      marks_(schedule_.marks_count()),
      stages_left_(schedule_.stages().size()),
      run_tag_(run_tag) {
  uint64_t step = 0;
  stages_.resize(stages_left_);
  for (uint32_t number = 0; number < stages_left_; ++number) {
    const LaneStage& stage = schedule_.stages()[number];
    stages_[number].predecessors_left = static_cast<uint32_t>(stage.after.size());
    for (const uint32_t before : stage.after) stages_[before].successors.push_back(number);
    for (uint32_t each = stage.first_block; each < stage.first_block + stage.block_count; ++each) {
      const LaneBlock& block = schedule_.blocks()[each];
      blocks_.push_back({.stage = number,
                         .first_lane = static_cast<uint32_t>(states_.size()),
                         .awaits_acknowledgements = awaits_acknowledgements(block)});
      states_.insert(states_.end(), block.lane_count, Lane{.block = each});
      stages_[number].left += block.lane_count;
    }
    for (uint32_t each = stage.first_grid; each < stage.first_grid + stage.grid_count; ++each) {
      const StepGrid& grid = schedule_.grids()[each];
      Grid& own = grids_.emplace_back();
      own.first_step = step;
      own.stage = number;
      for (const bool is_of_data : grid.moves_data) {
        own.slot_numbers.push_back(own.slots);
        if (has_data() || !is_of_data) ++own.slots;
      }
      step += grid.cell_count * own.slots;
    }
  }
}

void LaneProgress::begin(StepActions& actions) {
  // A stage without lanes is done as it begins, and what follows it begins then.
  for (uint32_t stage = 0; stage < stages_.size(); ++stage) {
    if (schedule_.stages()[stage].after.empty()) begin_stage(actions, stage);
  }
}

void LaneProgress::begin_stage(StepActions& actions, uint32_t number) {
  Stage& stage = stages_[number];
  stage.begun_ps = actions.now();
  const LaneStage& described = schedule_.stages()[number];
  for (uint32_t each = 0; each < described.block_count; ++each) {
    const uint32_t block = described.first_block + each;
    for (uint32_t lane = 0; lane < schedule_.blocks()[block].lane_count; ++lane) {
      actions.make_ready(blocks_[block].first_lane + lane);
    }
  }
  if (stage.left == 0) {
    stage.left = 1;
    one_less(actions, number);
  }
}

void LaneProgress::one_less(StepActions& actions, uint32_t number) {
  Stage& stage = stages_[number];
  if (--stage.left > 0) return;
  if (--stages_left_ == 0) divide_data();
  for (const uint32_t successor : stage.successors) {
    if (--stages_[successor].predecessors_left == 0) begin_stage(actions, successor);
  }
}

void LaneProgress::divide_data() {
  if (schedule_.divisor() == 1 || !has_data()) return;
  const LaneBinding& binding = lanes_.binding();
  divide(binding.data, binding.data_bytes / element_bytes(schedule_.dtype()), schedule_.dtype(),
         schedule_.divisor());
}

LaneProgress::Place LaneProgress::place_of(uint32_t number) const {
  const Lane& lane = states_[number];
  const LaneBlock& block = schedule_.blocks()[lane.block];
  const Block& own = blocks_[lane.block];
  const LaneLoop& loop = block.loops[lane.loop];
  return {loop.instructions[lane.instruction],
          loop,
          number - own.first_lane,
          block.lane_count,
          lane.turn,
          own.stage};
}

Elements LaneProgress::elements_of(const Place& place, const ElementsOperand& operand) const {
  const Elements chunk = schedule_.table(operand.table).at(operand.number.at(place.turn, place.number));
  return operand.is_cut ? part_of(chunk, place.number, place.lanes) : chunk;
}

uint64_t LaneProgress::cell_of(const Place& place) const {
  return static_cast<uint64_t>(place.loop.cell.at(place.turn + place.instruction.ahead, place.number));
}

uint32_t LaneProgress::step_of(const Place& place) const {
  const Grid& grid = grids_[place.loop.grid];
  return static_cast<uint32_t>(grid.first_step + cell_of(place) * grid.slots +
                               grid.slot_numbers[place.instruction.slot]);
}

uint32_t LaneProgress::immediate_of(const Place& place) const {
  const uint64_t transfer = cell_of(place) + place.instruction.transfer;
  return run_tag_ << LaneSchedule::kTransferBits | static_cast<uint32_t>(transfer);
}

const BoundChannel& LaneProgress::channel_of(const Place& place) const {
  const int64_t number = place.instruction.channel.at(place.turn, place.number);
  return lanes_.binding().channels[static_cast<size_t>(number)];
}

// Returns whether there is more to do.
bool LaneProgress::move_on(Lane& lane) const {
  const std::vector<LaneLoop>& loops = schedule_.blocks()[lane.block].loops;
  const LaneLoop& loop = loops[lane.loop];
  if (++lane.instruction < loop.instructions.size()) return true;
  lane.instruction = 0;
  if (++lane.turn < loop.turns) return true;
  lane.turn = 0;
  return ++lane.loop < loops.size();
}

void LaneProgress::proceed(StepActions& actions, uint32_t number) {
  Lane& lane = states_[number];
  const std::vector<LaneLoop>& loops = schedule_.blocks()[lane.block].loops;
  while (lane.loop < loops.size()) {
    if (!loops[lane.loop].instructions.empty()) {
      const Outcome outcome = run(actions, number, place_of(number));
      if (outcome == Outcome::kBlocked) return;
      if (outcome == Outcome::kQueued) return instruction_done(actions, number);
    }
    move_on(lane);
  }
  one_less(actions, blocks_[lane.block].stage);
}

// The lane goes on when all that was ready before has. What it marks by this is marked now, so that others
// follow it at once.
void LaneProgress::instruction_done(StepActions& actions, uint32_t number) {
  actions.make_ready(number);
  Lane& lane = states_[number];
  while (move_on(lane)) {
    const Place place = place_of(number);
    const LaneInstructionKind kind = place.instruction.kind;
    if (kind != LaneInstructionKind::kMarkElements && (has_data() || !moves_data(kind))) return;
    run(actions, number, place);
  }
}

LaneProgress::Outcome LaneProgress::run(StepActions& actions, uint32_t number, const Place& place) {
  const LaneInstruction& instruction = place.instruction;
  switch (instruction.kind) {
    case LaneInstructionKind::kAwaitAcknowledgement:
      if (states_[number].unacknowledged == 0) return Outcome::kGoOn;
      states_[number].awaits_acknowledgement = true;
      return Outcome::kBlocked;
    case LaneInstructionKind::kDelay:
      note(actions, place, StepKind::kDelay, 0, actions.now());
      actions.delay(step_of(place), instruction.duration_ps, number);
      return Outcome::kBlocked;
    default:
      break;
  }
  const Elements elements = elements_of(place, instruction.elements);
  // Ranks without data of their own take part in what the others' are for.
  const bool is_common = instruction.kind == LaneInstructionKind::kAggregate &&
                         instruction.aggregation != AggregationKind::kAllReduce;
  if (elements.is_empty() && !is_common) return skip(actions, place);
  switch (instruction.kind) {
    case LaneInstructionKind::kSend:
      send(actions, number, place, elements);
      return Outcome::kGoOn;
    case LaneInstructionKind::kReceive:
      return receive(actions, number, place);
    case LaneInstructionKind::kReduce:
    case LaneInstructionKind::kCopy:
      if (!has_data()) return Outcome::kGoOn;
      move_data(actions, place, elements);
      return Outcome::kQueued;
    case LaneInstructionKind::kAggregate:
      aggregate(actions, number, place, elements);
      return Outcome::kGoOn;
    case LaneInstructionKind::kMarkElements:
      mark(actions, place, elements);
      return Outcome::kGoOn;
    case LaneInstructionKind::kAwaitElements:
      return marks_[instruction.marks].await(elements, number) ? Outcome::kGoOn : Outcome::kBlocked;
    case LaneInstructionKind::kAwaitAcknowledgement:
    case LaneInstructionKind::kDelay:
      break;  // above
  }
  return Outcome::kGoOn;
}

LaneProgress::Outcome LaneProgress::skip(StepActions& actions, const Place& place) {
  const LaneInstructionKind kind = place.instruction.kind;
  if (is_step(kind) && (has_data() || !moves_data(kind))) actions.skipped(step_of(place));
  return Outcome::kGoOn;
}

void LaneProgress::send(StepActions& actions, uint32_t number, const Place& place, const Elements& elements) {
  const LaneInstruction& instruction = place.instruction;
  const BoundChannel& channel = channel_of(place);
  const bool to_data = instruction.landing_buffer == LaneBuffer::kData;
  WriteRequest request{.channel = channel.channel,
                       .length_bytes = elements.count() * element_bytes(schedule_.dtype()),
                       .as_length = lanes_.binding().payload == LanePayload::kLengths,
                       .remote_address = to_data ? channel.data_address : channel.scratch_address,
                       .rkey = to_data ? channel.data_rkey : channel.scratch_rkey,
                       .immediate = immediate_of(place),
                       .switched = {.terms = instruction.terms,
                                    .reduction = immediate_of(place),
                                    .is_copy = instruction.is_copy,
                                    .is_to_itself = instruction.is_to_itself,
                                    .dtype = schedule_.dtype(),
                                    .operation = schedule_.operation()}};
  if (has_data()) {
    request.source =
        lanes_.binding().data + (instruction.data_offset + elements.start) * element_bytes(schedule_.dtype());
    const Elements landing = instruction.landing ? elements_of(place, *instruction.landing) : elements;
    const uint64_t offset = to_data ? instruction.data_offset : instruction.scratch_offset;
    request.remote_address += (offset + landing.start + static_cast<uint64_t>(instruction.shift)) *
                              element_bytes(schedule_.dtype());
  }
  const uint32_t step = step_of(place);
  note(actions, place, StepKind::kWrite, request.length_bytes, actions.now());
  ++stages_[place.stage].left;
  if (blocks_[states_[number].block].awaits_acknowledgements) {
    ++states_[number].unacknowledged;
    lane_of_step_.emplace(step, number);
  }
  actions.write(step, request);
}

LaneProgress::Outcome LaneProgress::receive(StepActions& actions, uint32_t number, const Place& place) {
  const TimePs begun = place.instruction.in_turn ? actions.now() : stages_[place.stage].begun_ps;
  note(actions, place, StepKind::kWait, 0, begun);
  const uint32_t step = step_of(place);
  const std::optional<TimePs> arrived =
      actions.receive(step, channel_of(place).channel, immediate_of(place), number);
  if (!arrived) return Outcome::kBlocked;
  actions.done(step, std::max(begun, *arrived));
  return Outcome::kQueued;
}

void LaneProgress::received(StepActions& actions, uint32_t number) {
  actions.done(step_of(place_of(number)), actions.now());
  instruction_done(actions, number);
}

void LaneProgress::delay_over(StepActions& actions, uint32_t number) { received(actions, number); }

void LaneProgress::move_data(StepActions& actions, const Place& place, const Elements& elements) {
  const LaneInstruction& instruction = place.instruction;
  uint8_t* target =
      lanes_.binding().data + (instruction.data_offset + elements.start) * element_bytes(schedule_.dtype());
  const uint64_t from =
      instruction.scratch_offset + elements.start + static_cast<uint64_t>(instruction.shift);
  const uint8_t* source = lanes_.binding().scratch + from * element_bytes(schedule_.dtype());
  const uint64_t length_bytes = elements.count() * element_bytes(schedule_.dtype());
  const uint32_t step = step_of(place);
  const bool reduces = instruction.kind == LaneInstructionKind::kReduce;
  note(actions, place, reduces ? StepKind::kReduce : StepKind::kCopy, length_bytes, actions.now());
  if (reduces) {
    actions.reduce(step, {.destination = target,
                          .source = source,
                          .length_bytes = length_bytes,
                          .dtype = schedule_.dtype(),
                          .operation = schedule_.operation()});
  } else {
    actions.copy(step, target, source, length_bytes);
  }
  actions.done(step, actions.now());
}

void LaneProgress::aggregate(StepActions& actions, uint32_t number, const Place& place,
                             const Elements& elements) {
  const LaneInstruction& instruction = place.instruction;
  const Elements extent =
      is_parted(instruction.aggregation) ? schedule_.table(instruction.elements.table).extent() : elements;
  const uint64_t length_bytes = extent.count() * element_bytes(schedule_.dtype());
  note(actions, place, StepKind::kAggregate, length_bytes, actions.now());
  ++stages_[place.stage].left;
  const uint64_t offset = instruction.data_offset + extent.start;
  const uint32_t step = step_of(place);
  if (blocks_[states_[number].block].awaits_acknowledgements) {
    ++states_[number].unacknowledged;
    lane_of_step_.emplace(step, number);
  }
  actions.aggregate(step, {.aggregator = *lanes_.binding().aggregators[instruction.plane],
                           .data = lanes_.binding().data + offset * element_bytes(schedule_.dtype()),
                           .length_bytes = length_bytes,
                           .dtype = schedule_.dtype(),
                           .operation = schedule_.operation(),
                           .parts = parts_of(instruction, extent)});
}

std::vector<AggregationPart> LaneProgress::parts_of(const LaneInstruction& instruction,
                                                    const Elements& extent) const {
  const ElementTable& table = schedule_.table(instruction.elements.table);
  std::vector<Elements> ranges{{0, extent.count()}};
  if (is_parted(instruction.aggregation)) {
    ranges.resize(table.size());
    for (size_t number = 0; number < ranges.size(); ++number) {
      const Elements range = table.at(static_cast<int64_t>(number));
      ranges[number] = {range.start - extent.start, range.stop - extent.start};
    }
  }
  return aggregation_parts(instruction.aggregation, ranges, instruction.rank, instruction.root);
}

void LaneProgress::mark(StepActions& actions, const Place& place, const Elements& elements) {
  for (const uint32_t lane : marks_[place.instruction.marks].mark(elements)) {
    instruction_done(actions, lane);
  }
}

void LaneProgress::completed(StepActions& actions, uint32_t step) {
  actions.done(step, actions.now());
  if (const auto found = lane_of_step_.find(step); found != lane_of_step_.end()) {
    const uint32_t number = found->second;
    lane_of_step_.erase(found);
    Lane& lane = states_[number];
    if (--lane.unacknowledged == 0 && lane.awaits_acknowledgement) {
      lane.awaits_acknowledgement = false;
      instruction_done(actions, number);
    }
  }
  const auto above = std::ranges::upper_bound(grids_, uint64_t{step}, {}, &Grid::first_step);
  one_less(actions, std::prev(above)->stage);
}

void LaneProgress::note(StepActions& actions, const Place& place, StepKind kind, uint64_t length_bytes,
                        TimePs start_ps) {
  if (!actions.is_recording()) return;
  StepNote note{.step = step_of(place),
                .kind = kind,
                .channel = {},
                .length_bytes = length_bytes,
                .start_ps = start_ps};
  if (kind == StepKind::kWrite || kind == StepKind::kWait) note.channel = channel_of(place).channel;
  actions.begun(note);
}

void LaneProgress::each_receive(const std::function<void(const ExpectedMessage&)>& visit) const {
  for (size_t number = 0; number < blocks_.size(); ++number) {
    const LaneBlock& block = schedule_.blocks()[number];
    for (const LaneLoop& loop : block.loops) {
      for (const LaneInstruction& instruction : loop.instructions) {
        if (instruction.kind != LaneInstructionKind::kReceive) continue;
        for (uint32_t turn = 0; turn < loop.turns; ++turn) {
          for (uint32_t lane = 0; lane < block.lane_count; ++lane) {
            const Place place{instruction, loop, lane, block.lane_count, turn, blocks_[number].stage};
            const Elements elements = elements_of(place, instruction.elements);
            if (elements.is_empty()) continue;
            visit({.channel = channel_of(place).channel,
                   .immediate = immediate_of(place),
                   .length_bytes = elements.count() * element_bytes(schedule_.dtype())});
          }
        }
      }
    }
  }
}

}  // namespace weft
