// Runs a schedule that says of every node what it follows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collectives/schedule.hpp"
#include "collectives/schedule_progress.hpp"

namespace weft {

// Steps and tokens are numbers of nodes.
class GraphProgress final : public ScheduleProgress {
 public:
  GraphProgress(const Schedule& schedule, std::optional<uint32_t> run_tag);

  void begin(StepActions& actions) override;
  bool is_done() const override { return nodes_left_ == 0; }
  void proceed(StepActions& actions, uint32_t node) override;
  void received(StepActions& actions, uint32_t node) override { done(actions, node); }
  void delay_over(StepActions& actions, uint32_t node) override { done(actions, node); }
  void completed(StepActions& actions, uint32_t node) override { done(actions, node); }
  void each_receive(const std::function<void(const ExpectedMessage&)>& visit) const override;

 private:
  void start(StepActions& actions, uint32_t node, const WriteNode& write);
  void start(StepActions& actions, uint32_t node, const ReadNode& read);
  void start(StepActions& actions, uint32_t node, const WaitReceiveNode& wait);
  void start(StepActions& actions, uint32_t node, const ReduceNode& reduction);
  void start(StepActions& actions, uint32_t node, const CopyNode& copy);
  void start(StepActions& actions, uint32_t node, const AggregateNode& aggregate);
  void start(StepActions& actions, uint32_t node, const DelayNode& delay);
  void done(StepActions& actions, uint32_t node);
  uint32_t tagged(uint32_t immediate) const;

  const Schedule& schedule_;
  std::optional<uint32_t> run_tag_;
  std::vector<uint32_t> predecessors_left_;
  size_t nodes_left_;
};

}  // namespace weft
