// Goes through the lanes of a schedule.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "collectives/lane_schedule.hpp"
#include "collectives/ready_elements.hpp"
#include "collectives/schedule_progress.hpp"

namespace weft {

// Keeps where each lane is, and nothing of what it has done or will do. Tokens are numbers of lanes.
class LaneProgress final : public ScheduleProgress {
 public:
  LaneProgress(const BoundLanes& lanes, uint32_t run_tag);

  void begin(StepActions& actions) override;
  bool is_done() const override { return stages_left_ == 0; }
  void proceed(StepActions& actions, uint32_t lane) override;
  void received(StepActions& actions, uint32_t lane) override;
  void delay_over(StepActions& actions, uint32_t lane) override;
  void completed(StepActions& actions, uint32_t step) override;
  void each_receive(const std::function<void(const ExpectedMessage&)>& visit) const override;
  bool has_lengths() const override { return true; }

 private:
  struct Lane {
    uint32_t block = 0;
    uint32_t loop = 0;
    uint32_t instruction = 0;
    uint32_t turn = 0;
    uint32_t unacknowledged = 0;  // in a block that waits for acknowledgements
    bool awaits_acknowledgement = false;
  };
  struct Stage {
    uint32_t predecessors_left = 0;
    uint64_t left = 0;  // lanes that have not ended, and transfers under way
    TimePs begun_ps = 0;
    std::vector<uint32_t> successors;
  };
  struct Block {
    uint32_t stage = 0;
    uint32_t first_lane = 0;
    bool awaits_acknowledgements = false;
  };
  struct Grid {
    uint64_t first_step = 0;
    uint32_t slots = 0;
    uint32_t stage = 0;
    std::vector<uint32_t> slot_numbers;
  };
  // What a lane is at.
  struct Place {
    const LaneInstruction& instruction;
    const LaneLoop& loop;
    uint32_t number;  // of the lane in its block
    uint32_t lanes;
    uint32_t turn;
    uint32_t stage;
  };
  enum class Outcome : uint8_t { kGoOn, kQueued, kBlocked };

  bool has_data() const { return lanes_.has_data(); }
  Place place_of(uint32_t lane) const;
  Elements elements_of(const Place& place, const ElementsOperand& operand) const;
  uint64_t cell_of(const Place& place) const;
  uint32_t step_of(const Place& place) const;
  uint32_t immediate_of(const Place& place) const;
  const BoundChannel& channel_of(const Place& place) const;

  void begin_stage(StepActions& actions, uint32_t stage);
  void one_less(StepActions& actions, uint32_t stage);
  void divide_data();
  bool move_on(Lane& lane) const;
  void instruction_done(StepActions& actions, uint32_t lane);
  Outcome run(StepActions& actions, uint32_t lane, const Place& place);
  Outcome skip(StepActions& actions, const Place& place);
  void send(StepActions& actions, uint32_t lane, const Place& place, const Elements& elements);
  Outcome receive(StepActions& actions, uint32_t lane, const Place& place);
  void move_data(StepActions& actions, const Place& place, const Elements& elements);
  void aggregate(StepActions& actions, uint32_t number, const Place& place, const Elements& elements);
  std::vector<AggregationPart> parts_of(const LaneInstruction& instruction, const Elements& extent) const;
  void mark(StepActions& actions, const Place& place, const Elements& elements);
  void note(StepActions& actions, const Place& place, StepKind kind, uint64_t length_bytes, TimePs start_ps);

  const BoundLanes& lanes_;
  const LaneSchedule& schedule_;
  std::vector<Stage> stages_;
  std::vector<Block> blocks_;
  std::vector<Grid> grids_;
  std::vector<Lane> states_;
  std::vector<ReadyElements> marks_;
  std::unordered_map<uint32_t, uint32_t> lane_of_step_;  // sent, and awaited by the lane
  size_t stages_left_;
  uint32_t run_tag_;
};

}  // namespace weft
