#include "collectives/fast_forward.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "collectives/schedule_executor.hpp"
#include "time/partition.hpp"

namespace weft {
namespace {

// Runs in a row that took as long as the one before them, until an operation is repeated.
constexpr uint32_t kAgreements = 2;
// Python and other partitions learn of an event a window later, and an end must not be due by then.
constexpr TimePs kLeastWindows = 2;
// With less than this part left, going on with packets would cost more than it shows.
constexpr double kLeastLeft = 0.02;
// Places in the group of a message.
constexpr uint32_t kSender = 0;
constexpr uint32_t kReceiver = 1;

}  // namespace

FastForward::FastForward(Partitions& partitions, double tolerance)
    : partitions_(partitions), tolerance_(tolerance) {
  if (!(tolerance > 0 && tolerance < 1)) {
    throw std::invalid_argument("a tolerance of " + std::to_string(tolerance) +
                                " (valid: above 0 and below 1)");
  }
}

void FastForward::set_rank(uint32_t rank, Engine& engine, ScheduleExecutor& executor) {
  if (engine.partition() == nullptr || &engine.partition()->owner() != &partitions_)
    throw std::invalid_argument("rank " + std::to_string(rank) + " is of another run's engine");
  std::unique_ptr<Log>& log = logs_[&engine];
  if (log == nullptr) {
    log = std::make_unique<Log>();
    log->listener = engine.listener([this, own = log.get()] { take(*own); });
  }
  if (rank >= ranks_.size()) ranks_.resize(rank + 1);
  ranks_[rank] = {.engine = &engine, .executor = &executor, .log = log.get()};
}

uint32_t FastForward::add_port(uint64_t rate_bps) {
  ports_.push_back({.rate_bps = rate_bps, .visits = {}});
  return static_cast<uint32_t>(ports_.size() - 1);
}

uint32_t FastForward::add_group(FastForwardGroup what) {
  if (what.ranks.empty() || (what.is_message && what.ranks.size() != 2)) {
    throw std::invalid_argument("a group of " + std::to_string(what.ranks.size()) +
                                " ranks (valid: 1 or more; 2 of messages)");
  }
  if (what.ports.size() != what.ranks.size()) {
    throw std::invalid_argument("ports of " + std::to_string(what.ports.size()) +
                                " places (valid: " + std::to_string(what.ranks.size()) + ")");
  }
  for (const std::vector<PortUse>& of_place : what.ports) {
    for (const PortUse& use : of_place) {
      if (use.port >= ports_.size()) throw std::invalid_argument("no port " + std::to_string(use.port));
    }
  }
  for (const uint32_t rank : what.ranks) {
    if (rank >= ranks_.size() || ranks_[rank].executor == nullptr)
      throw std::invalid_argument("no rank " + std::to_string(rank));
  }
  const auto number = static_cast<uint32_t>(groups_.size());
  alike_[what.alike].push_back(number);
  auto group = std::make_unique<Group>();
  group->next_numbers.resize(what.ranks.size());
  group->what = std::move(what);
  groups_.push_back(std::move(group));
  return number;
}

void FastForward::set_latency(uint32_t group, uint64_t variant, TimePs latency_ps) {
  if (group >= groups_.size()) throw std::invalid_argument("no group " + std::to_string(group));
  groups_[group]->latencies_ps[variant] = latency_ps;
}

void FastForward::forget() {
  instances_.clear();
  kinds_.clear();
  alike_.clear();
  groups_.clear();
  ports_.clear();
  for (auto& [_, log] : logs_) log->notes.clear();
}

bool FastForward::Group::is_repeated(uint64_t variant, uint32_t number) const {
  for (const Plan& plan : plans) {
    if (plan.variant != variant) continue;
    const auto after = std::ranges::upper_bound(plan.changes, number, {}, &std::pair<uint32_t, bool>::first);
    return after != plan.changes.begin() && std::prev(after)->second;
  }
  return false;
}

bool FastForward::Group::is_sampling(uint64_t variant) const {
  const auto plan = std::ranges::find(plans, variant, &Plan::variant);
  return plan != plans.end() && plan->is_sampling;
}

void FastForward::Group::change(uint64_t variant, bool repeats, bool is_sampling) {
  const uint32_t from = std::ranges::max(next_numbers);
  auto plan = std::ranges::find(plans, variant, &Plan::variant);
  if (plan == plans.end()) plan = plans.insert(plans.end(), Plan{.variant = variant, .changes = {}});
  plan->is_sampling = is_sampling;
  auto& changes = plan->changes;
  if (!changes.empty() && changes.back().first == from)
    changes.back().second = repeats;
  else
    changes.emplace_back(from, repeats);
}

// --- from events of the ranks

bool FastForward::begin(const OperationPlace& at, uint64_t run, uint32_t step) {
  Group& group = *groups_[at.group];
  Rank& rank = rank_of(group, at.place);
  uint32_t& next = group.next_numbers[at.place];
  next = std::max(next, at.number + 1);
  Note note{.what = What::kBegun,
            .at = at,
            .time_ps = rank.engine->now(),
            .is_repeated = group.is_repeated(at.variant, at.number),
            .run = run,
            .step = step,
            .traffic = nullptr};
  // Only its sender asks, so it may decide itself.
  if (note.is_repeated && group.what.is_message && is_busy(group)) note.is_repeated = false;
  if (!note.is_repeated && group.what.may_repeat)
    note.traffic = std::make_unique<OperationTraffic>(rank.executor->traffic_of(run, step));
  const bool is_repeated = note.is_repeated;
  add_note(rank, std::move(note));
  return is_repeated;
}

// Whether operations at one of its ports leave it too little, as of the last window.
bool FastForward::is_busy(const Group& group) const {
  return std::ranges::any_of(group.what.ports, [this](const std::vector<PortUse>& of_place) {
    return std::ranges::any_of(of_place, [this](const PortUse& use) {
      const Port& port = ports_[use.port];
      uint64_t rate_bps = use.rate_bps;
      for (const Visit& visit : port.visits) rate_bps += visit.rate_bps;
      return !port.visits.empty() && rate_bps > port.rate_bps;
    });
  });
}

void FastForward::ended(const OperationPlace& at) {
  // Its end is this object's doing, between windows.
  if (ending_ && *ending_ == std::pair{key_of(at.group, at.number), at.place}) return;
  Rank& rank = rank_of(*groups_[at.group], at.place);
  add_note(rank, {.what = What::kEnded, .at = at, .time_ps = rank.engine->now(), .traffic = nullptr});
}

void FastForward::arrived(const OperationPlace& at, TimePs time_ps) {
  add_note(rank_of(*groups_[at.group], at.place),
           {.what = What::kArrived, .at = at, .time_ps = time_ps, .traffic = nullptr});
}

void FastForward::add_note(Rank& rank, Note note) {
  Log& log = *rank.log;
  log.notes.push_back(std::move(note));
  if (std::exchange(log.is_due, true)) return;
  rank.engine->hand_over(log.listener);
}

// --- between windows

void FastForward::take(Log& log) {
  log.is_due = false;
  for (Note& note : std::exchange(log.notes, {})) {
    switch (note.what) {
      case What::kBegun:
        take_begun(note);
        break;
      case What::kEnded:
      case What::kArrived:
        take_ended(note);
        break;
    }
  }
}

FastForward::Kind& FastForward::kind_of(const Instance& instance) {
  return kinds_[{groups_[instance.group]->what.alike, instance.variant}];
}

void FastForward::take_begun(Note& note) {
  Group& group = *groups_[note.at.group];
  const InstanceKey key = key_of(note.at.group, note.at.number);
  const auto [found, is_new] = instances_.try_emplace(key);
  Instance& instance = found->second;
  if (is_new) {
    ++counts_.operations;
    instance.group = note.at.group;
    instance.number = note.at.number;
    instance.variant = note.at.variant;
    instance.mode = note.is_repeated ? Mode::kRepeated : Mode::kPackets;
    instance.parts.resize(group.what.ranks.size());
    // The next one may begin before this one has been compared.
    const bool is_sample =
        group.is_sampling(instance.variant) && !group.is_repeated(instance.variant, instance.number);
    if (is_sample && instance.mode == Mode::kPackets) group.change(instance.variant, true);
  }
  Part& part = instance.parts[note.at.place];
  part.begun_ps = note.time_ps;
  part.run = note.run;
  part.step = note.step;
  if (note.traffic != nullptr) part.before = *note.traffic;
  ++instance.begun;
  instance.last_begun_ps = std::max(instance.last_begun_ps, note.time_ps);
  if (group.what.is_message && note.traffic != nullptr) {
    // Nothing of it can have arrived yet: that takes more than a window.
    const auto messages = rank_of(group, kSender).executor->messages_of(note.run, note.step);
    instance.parts[kReceiver].before = rank_of(group, kReceiver).executor->traffic_of(messages);
  }
  const bool was_resumed = instance.mode == Mode::kResumed;
  occupy(instance, note.at.place);
  if (group.what.is_message) occupy(instance, kReceiver);
  if (was_resumed) return resume_at(instance, note.at.place);
  const size_t all = group.what.is_message ? 1 : instance.parts.size();
  if (instance.mode == Mode::kRepeated && instance.begun == all) schedule_ends(instance);
}

void FastForward::take_ended(Note& note) {
  const auto found = instances_.find(key_of(note.at.group, note.at.number));
  if (found == instances_.end()) return;
  Instance& instance = found->second;
  Part& part = instance.parts[note.at.place];
  if (part.is_over || instance.mode == Mode::kRepeated) return;
  const Group& group = *groups_[instance.group];
  part.ended_ps = note.time_ps;
  part.is_over = true;
  ++instance.ended;
  if (note.what == What::kEnded) {
    vacate(instance, note.at.place);
    if (group.what.is_message) {
      vacate(instance, kReceiver);
      if (part.before) {
        const auto messages = rank_of(group, kSender).executor->messages_of(part.run, part.step);
        instance.parts[kReceiver].traffic = rank_of(group, kReceiver).executor->traffic_of(messages);
      }
    }
    if (part.before) part.traffic = rank_of(group, note.at.place).executor->traffic_of(part.run, part.step);
  }
  // A receiver that got less notes no arrival of the message that was measured.
  const bool is_over =
      instance.ended == instance.parts.size() ||
      (instance.mode == Mode::kResumed && group.what.is_message && instance.parts[kSender].is_over);
  if (is_over) finish(instance);
}

// --- ports

bool FastForward::is_under_way(const Instance& instance, uint32_t place) {
  const Part& part = instance.parts[place];
  return part.begun_ps != kNever && !part.is_over;
}

void FastForward::occupy(Instance& instance, uint32_t place) {
  // The group's operation before this one may go on at other ranks only: that is no conflict but the usual
  // way from one to the next.
  const auto is_past = [&](const Instance& other) {
    return &other != &instance && other.group == instance.group && !is_under_way(other, place);
  };
  for (const PortUse& use : groups_[instance.group]->what.ports[place]) {
    Port& port = ports_[use.port];
    uint64_t rate_bps = use.rate_bps;
    for (const Visit& visit : port.visits) {
      if (!is_past(*visit.instance)) rate_bps += visit.rate_bps;
    }
    if (rate_bps > port.rate_bps) {
      for (const Visit& visit : port.visits) {
        if (visit.instance != &instance && !is_past(*visit.instance)) meet(*visit.instance, instance);
      }
    }
    port.visits.push_back({&instance, use.rate_bps});
  }
}

void FastForward::vacate(Instance& instance, uint32_t place) {
  for (const PortUse& use : groups_[instance.group]->what.ports[place]) {
    std::vector<Visit>& visits = ports_[use.port].visits;
    const auto found = std::ranges::find_if(visits, [&](const Visit& visit) {
      return visit.instance == &instance && visit.rate_bps == use.rate_bps;
    });
    if (found != visits.end()) visits.erase(found);
  }
}

void FastForward::meet(Instance& there, Instance& coming) {
  there.is_disturbed = coming.is_disturbed = true;
  if (there.mode == Mode::kRepeated) resume(there);
  if (coming.mode == Mode::kRepeated) resume(coming);
}

// --- repeated

void FastForward::schedule_ends(Instance& instance) {
  const Kind& kind = kind_of(instance);
  instance.epoch = ++last_epoch_;
  std::vector<TimePs> times_ps;
  for (size_t place = 0; place < instance.parts.size(); ++place) {
    instance.parts[place].ended_ps = instance.last_begun_ps + kind.took_ps[place];
    times_ps.push_back(instance.parts[place].ended_ps);
  }
  std::ranges::sort(times_ps);
  const auto repeated = std::ranges::unique(times_ps);
  times_ps.erase(repeated.begin(), repeated.end());
  const InstanceKey key = key_of(instance.group, instance.number);
  for (const TimePs time_ps : times_ps)
    partitions_.schedule_at(time_ps, [this, key, epoch = instance.epoch] { end_due(key, epoch); });
}

void FastForward::end_due(InstanceKey key, uint64_t epoch) {
  const auto found = instances_.find(key);
  if (found == instances_.end() || found->second.epoch != epoch) return;
  Instance& instance = found->second;
  const TimePs now = partitions_.now();
  for (uint32_t place = 0; place < instance.parts.size(); ++place) {
    Part& part = instance.parts[place];
    if (part.is_over || part.ended_ps > now) continue;
    part.is_over = true;
    ++instance.ended;
    vacate(instance, place);
    end_at(instance, place);
  }
  if (instance.ended == instance.parts.size()) finish(instance);
}

void FastForward::end_at(Instance& instance, uint32_t place) {
  const Group& group = *groups_[instance.group];
  Rank& rank = rank_of(group, place);
  const OperationTraffic& traffic = kind_of(instance).traffic[place];
  const Part& begun = instance.parts[group.what.is_message ? kSender : place];
  const Engine::Guard guard(*rank.engine);
  if (group.what.is_message && place == kReceiver) {
    const auto messages = rank_of(group, kSender).executor->messages_of(begun.run, begun.step);
    rank.executor->add_traffic(messages, traffic);
    for (const SentMessage& message : messages) rank.executor->deliver(message);
    return;
  }
  rank.executor->add_traffic(begun.run, begun.step, traffic);
  ending_ = {key_of(instance.group, instance.number), place};
  rank.executor->end_step(begun.run, begun.step);
  ending_.reset();
}

// Goes on with packets: what is left of it, if all have begun and it has been under way.
void FastForward::resume(Instance& instance) {
  Group& group = *groups_[instance.group];
  instance.share = kWholeShare;
  if (instance.epoch != 0) {
    if (instance.ended > 0) return;  // ranks that have done their part cannot go on with the others
    const Kind& kind = kind_of(instance);
    // What is left takes all latencies once more, so less time is left for its bytes.
    const auto known = group.latencies_ps.find(instance.variant);
    const TimePs latency_ps = known != group.latencies_ps.end() ? known->second : group.what.latency_ps;
    const TimePs whole_ps = std::max<TimePs>(1, std::ranges::max(kind.took_ps) - latency_ps);
    const TimePs left_ps = instance.last_begun_ps + whole_ps - partitions_.now();
    const double left = static_cast<double>(left_ps) / static_cast<double>(whole_ps);
    if (left < kLeastLeft || left_ps < kLeastWindows * partitions_.window_ps()) return;
    instance.share = std::max<uint32_t>(1, static_cast<uint32_t>(left * kWholeShare));
  }
  instance.epoch = 0;
  instance.mode = Mode::kResumed;
  ++counts_.resumed;
  // Where two begin together they probably will again: the next is repeated once one of the group has run
  // alone.
  if (partitions_.now() - instance.last_begun_ps <= kLeastWindows * partitions_.window_ps())
    group.change(instance.variant, false);
  for (uint32_t place = 0; place < instance.parts.size(); ++place) {
    if (instance.parts[place].begun_ps != kNever && !(group.what.is_message && place == kReceiver))
      resume_at(instance, place);
  }
}

void FastForward::resume_at(Instance& instance, uint32_t place) {
  Rank& rank = rank_of(*groups_[instance.group], place);
  const Part& part = instance.parts[place];
  const Engine::Guard guard(*rank.engine);
  rank.executor->resume_step(part.run, part.step, instance.share);
}

// --- done

void FastForward::finish(Instance& instance) {
  Group& group = *groups_[instance.group];
  if (instance.mode == Mode::kRepeated) {
    count_repeated(instance);
    Kind& kind = kind_of(instance);
    if (++kind.repeated >= kind.next_sample) {
      kind.next_sample *= 2;
      group.change(instance.variant, false, true);
    }
  } else if (instance.mode == Mode::kPackets) {
    if (instance.is_disturbed)
      ++counts_.disturbed;
    else if (group.what.may_repeat)
      compare(instance);
  }
  instances_.erase(key_of(instance.group, instance.number));
}

void FastForward::count_repeated(const Instance& instance) {
  ++counts_.repeated;
  for (const OperationTraffic& traffic : kind_of(instance).traffic) counts_.skipped += traffic;
}

void FastForward::compare(const Instance& instance) {
  const Group& group = *groups_[instance.group];
  Kind& kind = kind_of(instance);
  std::vector<TimePs> took_ps;
  std::vector<OperationTraffic> traffic;
  for (const Part& part : instance.parts) {
    took_ps.push_back(part.ended_ps - instance.last_begun_ps);
    traffic.push_back(part.traffic.value_or(OperationTraffic()));
    if (part.before) traffic.back() -= *part.before;
  }
  const KindKey key{group.what.alike, instance.variant};
  if (std::ranges::min(took_ps) < kLeastWindows * partitions_.window_ps()) {
    // A rank was done before the last one began, or so soon that Python cannot say so in time.
    if (kind.is_ready) set_ready(key, false);
    kind.is_too_short = true;
    return;
  }
  if (kind.is_known) {
    double deviation = 0;
    for (size_t place = 0; place < took_ps.size(); ++place) {
      const auto off_ps = static_cast<double>(std::abs(took_ps[place] - kind.took_ps[place]));
      deviation = std::max(deviation, off_ps);
    }
    deviation /= static_cast<double>(std::ranges::max(kind.took_ps));
    ++counts_.compared;
    const bool agrees = deviation <= tolerance_;
    if (!agrees) ++counts_.deviating;
    if (agrees || kind.repeated > 0)
      counts_.largest_deviation = std::max(counts_.largest_deviation, deviation);
    kind.agreeing = agrees ? kind.agreeing + 1 : 0;
  }
  kind.is_known = true;
  kind.took_ps = std::move(took_ps);
  kind.traffic = std::move(traffic);
  const bool is_ready = kind.agreeing >= kAgreements && !kind.is_too_short;
  if (is_ready != kind.is_ready)
    set_ready(key, is_ready);
  else if (is_ready)
    groups_[instance.group]->change(instance.variant, true);  // the one before had met another
}

void FastForward::set_ready(const KindKey& key, bool repeats) {
  kinds_[key].is_ready = repeats;
  for (const uint32_t group : alike_[key.first]) groups_[group]->change(key.second, repeats);
}

}  // namespace weft
