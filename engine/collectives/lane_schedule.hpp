// A collective on one rank as lanes: short programs with loops, each of which is gone through in order,
// beside the others. What a loop does is given by formulas, so a schedule is as small for many chunks as for
// few.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/aggregation_parts.hpp"
#include "collectives/element_table.hpp"
#include "collectives/reduction.hpp"
#include "collectives/schedule_progress.hpp"
#include "time/time.hpp"

namespace weft {

// A number that a loop's turns and the lanes of a block change by as much each.
struct Affine {
  int64_t first = 0;
  int64_t per_turn = 0;
  int64_t per_lane = 0;
  int64_t at(uint64_t turn, uint64_t lane) const {
    return first + per_turn * static_cast<int64_t>(turn) + per_lane * static_cast<int64_t>(lane);
  }
};

// A chunk of a table, or of it the piece that is the lane's: there are as many as the block has lanes.
struct ElementsOperand {
  uint32_t table = 0;
  Affine number;
  bool is_cut = false;
};

enum class LaneInstructionKind : uint8_t {
  kSend,                  // write elements to the peer and go on
  kReceive,               // wait for the peer's write
  kReduce,                // elements of the scratch buffer into those of the data
  kCopy,                  // the same, copied
  kAggregate,             // have the network reduce or move elements; go on
  kDelay,                 // stands for computation
  kAwaitElements,         // wait until all elements are marked
  kMarkElements,          // say that elements are ready
  kAwaitAcknowledgement,  // wait until peers have acknowledged all that the lane has sent, and the network
                          // has reduced what it has given it
};

enum class LaneBuffer : uint8_t { kData, kScratch };

// Nothing is done where `elements` are none.
struct LaneInstruction {
  LaneInstructionKind kind = LaneInstructionKind::kSend;
  ElementsOperand elements;
  // Of a send: where they land, the same elements unless given. `shift` further on. A reduction's and a
  // copy's source is shifted so, too.
  std::optional<ElementsOperand> landing;
  LaneBuffer landing_buffer = LaneBuffer::kData;
  int64_t shift = 0;
  // Of a send: see SwitchedWrite. Its reduction's number is its transfer's.
  uint32_t terms = 1;
  bool is_copy = false;
  bool is_to_itself = false;
  Affine channel;         // of a send or receive: place among the schedule's channels
  uint32_t transfer = 0;  // of a send or receive: added to the loop's cell
  uint32_t plane = 0;     // of an aggregation
  // Of an aggregation: the ranks' own elements, where each has some, are all ranges of the table.
  AggregationKind aggregation = AggregationKind::kAllReduce;
  uint32_t rank = 0;
  uint32_t root = 0;
  uint64_t data_offset = 0;     // elements from a table's to the data's
  uint64_t scratch_offset = 0;  // and to those of the scratch buffer
  TimePs duration_ps = 0;
  uint32_t marks = 0;  // which set of marked elements
  bool in_turn =
      false;          // a receive that begins, for records, as the lane comes to it; others as the stage does
  uint32_t slot = 0;  // of the loop's grid; of what is a step
  uint32_t ahead = 0;  // the step's cell, and its transfer, are those of so many turns later
};

// Numbers of steps: cell after cell, each with as many slots.
struct StepGrid {
  uint64_t cell_count = 0;
  std::vector<bool> moves_data;  // by slot: it reduces or copies, which lengths need not
};

struct LaneLoop {
  uint64_t turns = 0;
  uint32_t grid = 0;
  Affine cell;  // of the grid; with the transfer of an instruction, the number of its transfer
  std::vector<LaneInstruction> instructions;
};

// Lanes of the same loops.
struct LaneBlock {
  uint32_t lane_count = 0;
  std::vector<LaneLoop> loops;
};

// Begins when the stages that it follows are done: all their lanes, and all transfers.
struct LaneStage {
  std::vector<uint32_t> after;
  uint32_t first_block = 0;
  uint32_t block_count = 0;
  uint32_t first_grid = 0;
  uint32_t grid_count = 0;
};

// Where a schedule that becomes a stage of another one stands in that.
struct StageOffsets {
  uint64_t data_elements = 0;
  uint64_t scratch_elements = 0;
  uint32_t first_transfer = 0;
  uint32_t first_channel = 0;
};

// What a rank does, with no queue pairs of its peers and no memory yet; see BoundLanes.
class LaneSchedule {
 public:
  // The upper 12 of an immediate's 32 bits are the run's, the lower ones number transfers.
  static constexpr int kTransferBits = 20;

  // When all is done, the data are divided by `divisor`. Throws std::invalid_argument for a tag of more than
  // 12 bits, a divisor of 0, and as check_reduction().
  LaneSchedule(DataType dtype, ReduceOperation operation, uint32_t run_tag, uint32_t divisor = 1);

  uint32_t add_table(std::shared_ptr<const ElementTable> table);
  uint32_t add_marks() { return marks_count_++; }
  // Each of these adds to what was added last. They throw std::invalid_argument for numbers that name
  // nothing, and for more transfers than immediates.
  uint32_t add_stage(std::vector<uint32_t> after);
  uint32_t add_grid(StepGrid grid);
  void add_block(uint32_t lane_count);
  void add_loop(uint64_t turns, uint32_t grid, Affine cell);
  void add_instruction(LaneInstruction instruction);
  // Adds another schedule's stage, of one, as a stage of this one.
  uint32_t append(const LaneSchedule& part, const StageOffsets& offsets, std::vector<uint32_t> after);

  DataType dtype() const { return dtype_; }
  ReduceOperation operation() const { return operation_; }
  uint32_t divisor() const { return divisor_; }
  const std::vector<LaneStage>& stages() const { return stages_; }
  const std::vector<LaneBlock>& blocks() const { return blocks_; }
  const std::vector<StepGrid>& grids() const { return grids_; }
  const ElementTable& table(uint32_t number) const { return *tables_[number]; }
  uint32_t marks_count() const { return marks_count_; }
  // Of the runs that are given none.
  uint32_t run_tag() const { return run_tag_; }
  // Above the last of what is named.
  uint32_t transfer_limit() const { return transfer_limit_; }
  uint32_t channel_limit() const { return channel_limit_; }
  uint32_t plane_limit() const { return plane_limit_; }
  uint64_t data_limit_elements() const { return data_limit_; }
  uint64_t scratch_limit_elements() const { return scratch_limit_; }
  uint64_t step_count(bool with_data) const;

 private:
  void check_operand(const ElementsOperand& operand) const;
  void check_sizes(const LaneInstruction& instruction);
  void check_transfer(const LaneInstruction& instruction);

  DataType dtype_;
  ReduceOperation operation_;
  uint32_t run_tag_;
  uint32_t divisor_;
  std::vector<std::shared_ptr<const ElementTable>> tables_;
  std::vector<LaneStage> stages_;
  std::vector<StepGrid> grids_;
  std::vector<LaneBlock> blocks_;
  uint32_t marks_count_ = 0;
  uint32_t transfer_limit_ = 0;
  uint32_t channel_limit_ = 0;
  uint32_t plane_limit_ = 0;
  uint64_t data_limit_ = 0;
  uint64_t scratch_limit_ = 0;
};

// A channel of a schedule: the executor's, and where the peer's buffers are.
struct BoundChannel {
  uint32_t channel = 0;
  uint64_t data_address = 0;
  uint32_t data_rkey = 0;
  uint64_t scratch_address = 0;
  uint32_t scratch_rkey = 0;
};

enum class LanePayload : uint8_t { kData, kZeros, kLengths };

// A rank's buffers and channels. Without data, zeros (or their number) go from nowhere to the start of the
// peer's buffers; there is data all the same for what the network aggregates.
struct LaneBinding {
  LanePayload payload = LanePayload::kData;
  uint8_t* data = nullptr;
  uint64_t data_bytes = 0;
  uint8_t* scratch = nullptr;
  uint64_t scratch_bytes = 0;
  std::vector<std::shared_ptr<void>> owners;
  std::vector<BoundChannel> channels;
  std::vector<std::optional<uint32_t>> aggregators;  // by plane
};

// A rank's schedule over its buffers and channels.
class BoundLanes final : public RunnableSchedule {
 public:
  // Throws std::invalid_argument for buffers, channels or aggregators that the schedule needs and lacks.
  BoundLanes(std::shared_ptr<const LaneSchedule> schedule, LaneBinding binding);

  const LaneSchedule& schedule() const { return *schedule_; }
  const LaneBinding& binding() const { return binding_; }
  bool has_data() const { return binding_.payload == LanePayload::kData; }

  uint32_t step_count() const override { return step_count_; }
  uint32_t channel_limit() const override { return channel_limit_; }
  uint32_t aggregator_limit() const override { return aggregator_limit_; }
  std::vector<uint32_t> channels() const override;
  std::unique_ptr<ScheduleProgress> new_progress(std::optional<uint32_t> run_tag) const override;

 private:
  std::shared_ptr<const LaneSchedule> schedule_;
  LaneBinding binding_;
  uint32_t step_count_ = 0;
  uint32_t channel_limit_ = 0;
  uint32_t aggregator_limit_ = 0;
};

}  // namespace weft
