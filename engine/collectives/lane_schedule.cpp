#include "collectives/lane_schedule.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "collectives/lane_progress.hpp"

namespace weft {
namespace {

constexpr uint32_t kMaxRunTag = (1u << (32 - LaneSchedule::kTransferBits)) - 1;
constexpr uint64_t kMaxTransfer = (1u << LaneSchedule::kTransferBits) - 1;

bool names_elements(LaneInstructionKind kind) {
  return kind != LaneInstructionKind::kDelay && kind != LaneInstructionKind::kAwaitAcknowledgement;
}

bool is_transfer(LaneInstructionKind kind) {
  return kind == LaneInstructionKind::kSend || kind == LaneInstructionKind::kReceive;
}

bool uses_marks(LaneInstructionKind kind) {
  return kind == LaneInstructionKind::kAwaitElements || kind == LaneInstructionKind::kMarkElements;
}

// The least and the largest value over all turns and lanes.
std::pair<int64_t, int64_t> bounds(const Affine& number, uint64_t turns, uint64_t lanes) {
  const int64_t over_turns = number.per_turn * static_cast<int64_t>(turns - 1);
  const int64_t over_lanes = number.per_lane * static_cast<int64_t>(lanes - 1);
  return {number.first + std::min<int64_t>(0, over_turns) + std::min<int64_t>(0, over_lanes),
          number.first + std::max<int64_t>(0, over_turns) + std::max<int64_t>(0, over_lanes)};
}

template <class T>
T& last_of(std::vector<T>& items, const char* what) {
  if (items.empty()) throw std::invalid_argument(std::string("no ") + what + " to add to");
  return items.back();
}

uint64_t slots_of(const StepGrid& grid, bool with_data) {
  const auto data_slots = static_cast<uint64_t>(std::ranges::count(grid.moves_data, true));
  return with_data ? grid.moves_data.size() : grid.moves_data.size() - data_slots;
}

}  // namespace

LaneSchedule::LaneSchedule(DataType dtype, ReduceOperation operation, uint32_t run_tag, uint32_t divisor)
    : dtype_(dtype), operation_(operation), run_tag_(run_tag), divisor_(divisor) {
  check_reduction(dtype, operation);
  if (divisor == 0) throw std::invalid_argument("divisor 0 (valid: 1 or more)");
  if (run_tag > kMaxRunTag) {
    throw std::invalid_argument("run tag " + std::to_string(run_tag) + " (valid: 0 to " +
                                std::to_string(kMaxRunTag) + ")");
  }
}

uint32_t LaneSchedule::add_table(std::shared_ptr<const ElementTable> table) {
  tables_.push_back(std::move(table));
  return static_cast<uint32_t>(tables_.size() - 1);
}

uint32_t LaneSchedule::add_stage(std::vector<uint32_t> after) {
  for (const uint32_t stage : after) {
    if (stage >= stages_.size()) {
      throw std::invalid_argument("stage " + std::to_string(stages_.size()) + " follows stage " +
                                  std::to_string(stage) + ", which is not before it");
    }
  }
  stages_.push_back({.after = std::move(after),
                     .first_block = static_cast<uint32_t>(blocks_.size()),
                     .block_count = 0,
                     .first_grid = static_cast<uint32_t>(grids_.size()),
                     .grid_count = 0});
  return static_cast<uint32_t>(stages_.size() - 1);
}

uint32_t LaneSchedule::add_grid(StepGrid grid) {
  ++last_of(stages_, "stage").grid_count;
  grids_.push_back(std::move(grid));
  return static_cast<uint32_t>(grids_.size() - 1);
}

void LaneSchedule::add_block(uint32_t lane_count) {
  if (lane_count == 0) throw std::invalid_argument("a block of 0 lanes (valid: 1 or more)");
  ++last_of(stages_, "stage").block_count;
  blocks_.push_back({.lane_count = lane_count, .loops = {}});
}

void LaneSchedule::add_loop(uint64_t turns, uint32_t grid, Affine cell) {
  if (turns == 0) throw std::invalid_argument("a loop of 0 turns (valid: 1 or more)");
  if (grid >= grids_.size()) throw std::invalid_argument("no grid " + std::to_string(grid));
  last_of(blocks_, "block").loops.push_back({.turns = turns, .grid = grid, .cell = cell, .instructions = {}});
}

void LaneSchedule::add_instruction(LaneInstruction instruction) {
  LaneLoop& loop = last_of(last_of(blocks_, "block").loops, "loop");
  if (names_elements(instruction.kind)) check_sizes(instruction);
  if (is_transfer(instruction.kind)) check_transfer(instruction);
  if (uses_marks(instruction.kind) && instruction.marks >= marks_count_) {
    throw std::invalid_argument("no marks " + std::to_string(instruction.marks));
  }
  if (instruction.kind == LaneInstructionKind::kAggregate) {
    plane_limit_ = std::max(plane_limit_, instruction.plane + 1);
  }
  if (instruction.duration_ps < 0) {
    throw std::invalid_argument("a delay of " + std::to_string(instruction.duration_ps) + " ps");
  }
  const StepGrid& grid = grids_[loop.grid];
  const bool is_step =
      !uses_marks(instruction.kind) && instruction.kind != LaneInstructionKind::kAwaitAcknowledgement;
  if (is_step && instruction.slot >= grid.moves_data.size()) {
    throw std::invalid_argument("slot " + std::to_string(instruction.slot) + " of a grid of " +
                                std::to_string(grid.moves_data.size()));
  }
  loop.instructions.push_back(std::move(instruction));
}

void LaneSchedule::check_operand(const ElementsOperand& operand) const {
  if (operand.table >= tables_.size()) {
    throw std::invalid_argument("no table " + std::to_string(operand.table));
  }
}

void LaneSchedule::check_sizes(const LaneInstruction& instruction) {
  check_operand(instruction.elements);
  const Elements& extent = tables_[instruction.elements.table]->extent();
  const LaneInstructionKind kind = instruction.kind;
  if (!uses_marks(kind) && kind != LaneInstructionKind::kReceive) {
    data_limit_ = std::max(data_limit_, instruction.data_offset + extent.stop);
  }
  if (kind == LaneInstructionKind::kReduce || kind == LaneInstructionKind::kCopy) {
    const int64_t start = static_cast<int64_t>(extent.start) + instruction.shift;
    if (start < 0) throw std::invalid_argument("elements from " + std::to_string(start) + " on");
    scratch_limit_ =
        std::max(scratch_limit_, instruction.scratch_offset + static_cast<uint64_t>(start) + extent.count());
  }
  if (instruction.landing) check_operand(*instruction.landing);
}

void LaneSchedule::check_transfer(const LaneInstruction& instruction) {
  const LaneBlock& block = blocks_.back();
  const LaneLoop& loop = block.loops.back();
  const auto [first_channel, last_channel] = bounds(instruction.channel, loop.turns, block.lane_count);
  if (first_channel < 0 || last_channel >= std::numeric_limits<uint32_t>::max()) {
    throw std::invalid_argument("channels " + std::to_string(first_channel) + " to " +
                                std::to_string(last_channel) + " (valid: from 0 on)");
  }
  channel_limit_ = std::max(channel_limit_, static_cast<uint32_t>(last_channel + 1));
  const auto [least, most] = bounds(loop.cell, loop.turns, block.lane_count);
  const int64_t last = most + instruction.transfer + instruction.ahead * loop.cell.per_turn;
  if (least < 0 || last > static_cast<int64_t>(kMaxTransfer)) {
    throw std::invalid_argument("transfer " + std::to_string(last) + " of a run (valid: 0 to " +
                                std::to_string(kMaxTransfer) + "; use larger pieces)");
  }
  transfer_limit_ = std::max(transfer_limit_, static_cast<uint32_t>(last + 1));
}

uint32_t LaneSchedule::append(const LaneSchedule& part, const StageOffsets& offsets,
                              std::vector<uint32_t> after) {
  if (part.stages_.size() != 1) {
    throw std::invalid_argument("a part of " + std::to_string(part.stages_.size()) + " stages (valid: 1)");
  }
  const uint32_t stage = add_stage(std::move(after));
  const auto first_grid = static_cast<uint32_t>(grids_.size());
  const auto first_table = static_cast<uint32_t>(tables_.size());
  const uint32_t first_marks = marks_count_;
  marks_count_ += part.marks_count_;
  tables_.insert(tables_.end(), part.tables_.begin(), part.tables_.end());
  for (const StepGrid& grid : part.grids_) add_grid(grid);
  for (const LaneBlock& block : part.blocks_) {
    add_block(block.lane_count);
    for (const LaneLoop& loop : block.loops) {
      add_loop(loop.turns, first_grid + loop.grid, loop.cell);
      for (LaneInstruction instruction : loop.instructions) {
        instruction.elements.table += first_table;
        if (instruction.landing) instruction.landing->table += first_table;
        instruction.marks += first_marks;
        instruction.transfer += offsets.first_transfer;
        instruction.channel.first += offsets.first_channel;
        instruction.data_offset += offsets.data_elements;
        instruction.scratch_offset += offsets.scratch_elements;
        add_instruction(std::move(instruction));
      }
    }
  }
  return stage;
}

uint64_t LaneSchedule::step_count(bool with_data) const {
  uint64_t count = 0;
  for (const StepGrid& grid : grids_) count += grid.cell_count * slots_of(grid, with_data);
  return count;
}

BoundLanes::BoundLanes(std::shared_ptr<const LaneSchedule> schedule, LaneBinding binding)
    : schedule_(std::move(schedule)), binding_(std::move(binding)) {
  const auto need = [](uint64_t has, uint64_t needed, const std::string& what) {
    if (has < needed) {
      throw std::invalid_argument("the schedule needs " + std::to_string(needed) + " " + what +
                                  ", there are " + std::to_string(has));
    }
  };
  need(binding_.channels.size(), schedule_->channel_limit(), "channels");
  need(binding_.aggregators.size(), schedule_->plane_limit(), "planes");
  if (has_data()) {
    const size_t bytes = element_bytes(schedule_->dtype());
    need(binding_.data_bytes / bytes, schedule_->data_limit_elements(), "elements of data");
    need(binding_.scratch_bytes / bytes, schedule_->scratch_limit_elements(), "elements of scratch");
  }
  const uint64_t steps = schedule_->step_count(has_data());
  if (steps > std::numeric_limits<uint32_t>::max()) {
    throw std::invalid_argument("a schedule of " + std::to_string(steps) + " steps (use larger pieces)");
  }
  step_count_ = static_cast<uint32_t>(steps);
  for (const BoundChannel& channel : binding_.channels) {
    channel_limit_ = std::max(channel_limit_, channel.channel + 1);
  }
  for (const std::optional<uint32_t>& aggregator : binding_.aggregators) {
    if (aggregator) aggregator_limit_ = std::max(aggregator_limit_, *aggregator + 1);
  }
}

std::vector<uint32_t> BoundLanes::channels() const {
  std::vector<uint32_t> numbers;
  for (const BoundChannel& channel : binding_.channels) numbers.push_back(channel.channel);
  std::ranges::sort(numbers);
  const auto again = std::ranges::unique(numbers);
  numbers.erase(again.begin(), again.end());
  return numbers;
}

std::unique_ptr<ScheduleProgress> BoundLanes::new_progress(std::optional<uint32_t> run_tag) const {
  return std::make_unique<LaneProgress>(*this, run_tag.value_or(schedule_->run_tag()));
}

}  // namespace weft
