// What of Partitions a run over several processes needs.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "links/delay_line.hpp"
#include "packets/packet_store.hpp"
#include "time/partition.hpp"
#include "time/partitions.hpp"
#include "time/worker_pool.hpp"

namespace weft {

uint32_t Partitions::add_line(DelayLine& line) {
  lines_.push_back(&line);
  return static_cast<uint32_t>(lines_.size() - 1);
}

void Partitions::distribute(int process, int process_count, ProcessGroup::Exchange exchange) {
  if (group_ != nullptr || windows_served_ != 0)
    throw std::logic_error("a run is distributed once, before it begins");
  auto group = std::make_unique<ProcessGroup>(process, process_count, std::move(exchange));
  const auto workers = static_cast<size_t>(worker_count_);
  distribution_ = shares_of(workers * static_cast<size_t>(process_count));
  distribution_.resize(workers * static_cast<size_t>(process_count));
  processes_.resize(partitions_.size());
  for (size_t share = 0; share < distribution_.size(); ++share)
    for (const uint32_t partition : distribution_[share])
      processes_[partition] = static_cast<int>(share / workers);
  group_ = std::move(group);
  assigned_ = false;
  assign();
}

int Partitions::process_of(uint32_t partition) const {
  return group_ == nullptr ? 0 : processes_.at(partition);
}

std::vector<std::vector<uint32_t>> Partitions::own_shares() const {
  if (group_ == nullptr) return shares();
  const auto first = distribution_.begin() + std::ptrdiff_t{group_->process()} * worker_count_;
  return {first, first + worker_count_};
}

// Its storage is the first worker's, who releases what was sent.
void Partitions::set_absent() {
  const auto index = static_cast<int>(workers_.size());
  absent_ =
      std::make_unique<PartitionWorker>(index, index, PartitionWorker::kAbsent, workers_.front()->store());
  absent_->set_partition_count(partitions_.size());
  for (const auto& partition : partitions_)
    if (processes_[partition->index()] != group_->process()) absent_->take(*partition);
}

void Partitions::meet() {
  look_again();
  send_remote();
  std::vector<CollectedCall> own_calls = take_hand_overs();
  std::vector<RemoteHandOver> hand_overs;
  for (const CollectedCall& call : own_calls)
    hand_overs.push_back(
        {.time_ps = call.what.time_ps, .listener = call.what.listener->number, .partition = call.partition});
  TimePs earliest_ps = kNever;
  for (const auto& worker : workers_) earliest_ps = std::min(earliest_ps, worker->earliest_ps());
  ProcessReport own{
      .turn = 0, .next_control_ps = control_.next_time(), .now_ps = now_, .earliest_ps = earliest_ps};
  if (failure_ != nullptr) {
    own.failed_ps = failure_->time_ps;
    own.failed_partition = failure_->partition;
  }

  const ProcessGroup::Meeting meeting = group_->meet(own, hand_overs);
  now_ = meeting.latest.now_ps;
  earliest_of_all_ps_ = meeting.latest.earliest_ps;
  std::vector<CollectedCall> calls;
  for (const RemoteHandOver& each : meeting.hand_overs)
    calls.push_back({each.partition, {each.time_ps, listeners_.at(each.listener)}});
  schedule_calls(std::move(calls));
  drop_listeners();
  for (const std::string& message : meeting.packets) take_packets(message);
  rethrow_failure_of_any(meeting.latest);
}

void Partitions::rethrow_failure_of_any(const ProcessReport& latest) {
  const std::unique_ptr<PartitionFailure> own = std::exchange(failure_, nullptr);
  if (latest.failed_ps == kNever) return;
  const auto partition = static_cast<uint32_t>(latest.failed_partition);
  if (own != nullptr && own->partition == partition) std::rethrow_exception(own->exception);
  throw OtherProcessFailed("process " + std::to_string(processes_.at(partition)) + " has failed");
}

std::shared_ptr<const Listener> Partitions::add_listener(std::function<void()> call) {
  std::shared_ptr<const Listener> made = listeners_.add(std::move(call));
  if (group_ != nullptr) kept_listeners_.push_back(made);
  return made;
}

// When all have said what they have called.
void Partitions::drop_listeners() {
  constexpr size_t kLeast = 1024;
  if (kept_listeners_.size() < most_kept_listeners_) return;
  std::erase_if(kept_listeners_, [](const auto& listener) { return listener.use_count() == 1; });
  most_kept_listeners_ = kLeast + 2 * kept_listeners_.size();
}

void Partitions::send_remote() {
  for (const auto& worker : workers_)
    worker->take_remote(*absent_, [this](const Partition& target, OutboxBatch& batches) {
      const int process = processes_[target.index()];
      PacketPool& pool = batches.delay_line->engine().packets();
      while (!batches.chain.empty()) {
        const TimePs due_ps = batches.chain.first_due_ps();
        Packet* sent = batches.chain.pop();
        pool.claim(*sent);
        const PacketPtr packet(sent);
        group_->send(process, batches.line, due_ps, *packet);
      }
    });
}

void Partitions::take_packets(const std::string& message) {
  const auto line_at = [this](uint32_t number) {
    if (number >= lines_.size() ||
        processes_[lines_[number]->engine().partition()->index()] != group_->process())
      throw std::logic_error("another process sends packets to delay line " + std::to_string(number) +
                             ", which is not this one's");
    return lines_[number];
  };
  MessageReader reader(message);
  while (!reader.at_end()) {
    PacketMessage got = get_packet(
        reader, [&line_at](uint32_t number) -> PacketPool& { return line_at(number)->engine().packets(); });
    DelayLine& line = *lines_[got.line];
    Partition& partition = *line.engine().partition();
    if (line.push_from_other(partition.engine().packets().part_with(std::move(got.packet)), got.due_ps)) {
      line.wake();
      partition.worker_->look_at(partition);
    }
  }
}

ConservationBalance Partitions::balance_of_all(const ConservationBalance& own) {
  MessageWriter message;
  own.put(message);
  ConservationBalance balance;
  for (const std::string& each : group_->all_of(message.bytes())) {
    MessageReader reader(each);
    balance.add(reader);
  }
  return balance;
}

void Partitions::share(const Partition& partition, std::vector<uint64_t>& numbers) {
  if (group_ == nullptr) return;
  MessageWriter own;
  for (const uint64_t number : numbers) own.put(number);
  const std::string given =
      group_->all_of(own.bytes()).at(static_cast<size_t>(processes_.at(partition.index())));
  numbers.clear();
  for (MessageReader reader(given); !reader.at_end();) numbers.push_back(reader.get<uint64_t>());
}

void Partitions::agree_on_delay_lines() {
  if (group_ == nullptr) return;
  MessageWriter own;
  for (uint32_t number = 0; number < lines_.size(); ++number) {
    const TrafficCounter& damaged = lines_[number]->damaged();
    if (damaged.packets == 0 ||
        processes_[lines_[number]->engine().partition()->index()] != group_->process())
      continue;
    own.put(number);
    own.put(damaged);
  }
  for (const std::string& message : group_->all_of(own.bytes())) {
    MessageReader reader(message);
    while (!reader.at_end()) {
      const auto number = reader.get<uint32_t>();
      lines_.at(number)->set_damaged(reader.get<TrafficCounter>());
    }
  }
}

}  // namespace weft
