// A run of a schedule without engine or network: says what is to be transferred, and learns what has
// arrived.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "collectives/schedule_progress.hpp"

namespace weft {

// For reading and checking schedules. Reductions and copies are done as they come up. Time stands
// still at 0.
class ScheduleStepper final : private StepActions {
 public:
  struct Write {
    uint32_t step = 0;
    WriteRequest request;
  };
  struct Read {
    uint32_t step = 0;
    ReadRequest request;
  };
  struct Aggregation {
    uint32_t step = 0;
    AggregateRequest request;
  };
  struct Delay {
    uint32_t step = 0;
    TimePs duration_ps = 0;
    uint32_t token = 0;
  };

  explicit ScheduleStepper(std::shared_ptr<const RunnableSchedule> schedule);

  // These go as far as the schedule can without more arrivals.
  void begin();
  void arrived(uint32_t channel, uint32_t immediate);
  void completed(uint32_t step);
  void delay_over(uint32_t token);

  // What has come up since the last call.
  std::vector<Write> take_writes() { return std::exchange(writes_, {}); }
  std::vector<Read> take_reads() { return std::exchange(reads_, {}); }
  std::vector<Aggregation> take_aggregations() { return std::exchange(aggregations_, {}); }
  std::vector<Delay> take_delays() { return std::exchange(delays_, {}); }

  // Steps done, in order.
  const std::vector<uint32_t>& done() const { return done_; }
  bool is_done() const { return progress_->is_done(); }
  // Writes that have arrived and that nothing has waited for.
  size_t unclaimed_arrivals() const { return early_.size(); }

 private:
  TimePs now() const override { return 0; }
  void make_ready(uint32_t token) override { ready_.push_back(token); }
  void write(uint32_t step, const WriteRequest& request) override { writes_.push_back({step, request}); }
  void read(uint32_t step, const ReadRequest& request) override { reads_.push_back({step, request}); }
  std::optional<TimePs> receive(uint32_t step, uint32_t channel, uint32_t immediate, uint32_t token) override;
  void reduce(uint32_t step, const ReduceRequest& request) override;
  void copy(uint32_t step, uint8_t* destination, const uint8_t* source, uint64_t length_bytes) override;
  void aggregate(uint32_t step, const AggregateRequest& request) override {
    aggregations_.push_back({step, request});
  }
  void delay(uint32_t step, TimePs duration_ps, uint32_t token) override {
    delays_.push_back({step, duration_ps, token});
  }
  // Throws std::logic_error: what runs others takes an executor.
  void run_part(uint32_t step, const std::shared_ptr<const RunnableSchedule>& schedule, uint32_t run_tag,
                uint8_t traffic_kind, uint32_t share) override;
  bool is_recording() const override { return false; }
  void begun(const StepNote&) override {}
  void done(uint32_t step, TimePs) override { done_.push_back(step); }
  void skipped(uint32_t step) override { done_.push_back(step); }
  void advance();

  using Place = std::pair<uint32_t, uint32_t>;  // channel, immediate
  std::shared_ptr<const RunnableSchedule> schedule_;
  std::unique_ptr<ScheduleProgress> progress_;
  std::deque<uint32_t> ready_;
  std::multimap<Place, uint32_t> waiting_;
  std::multiset<Place> early_;
  std::vector<Write> writes_;
  std::vector<Read> reads_;
  std::vector<Aggregation> aggregations_;
  std::vector<Delay> delays_;
  std::vector<uint32_t> done_;
};

}  // namespace weft
