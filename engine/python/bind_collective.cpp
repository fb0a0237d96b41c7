// Schedules and their executor, the aggregation client and block floating point in Python.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "collectives/block_floating_point.hpp"
#include "collectives/bound_job.hpp"
#include "collectives/schedule.hpp"
#include "collectives/schedule_executor.hpp"
#include "hosts/aggregation_client.hpp"
#include "hosts/nic.hpp"
#include "hosts/scale_up.hpp"
#include "hosts/writing_queue_pair.hpp"
#include "python/bind_codec.hpp"
#include "python/bind_columns.hpp"
#include "python/bind_schedules.hpp"
#include "python/bindings.hpp"
#include "python/bindings_support.hpp"
#include "python/python_buffer.hpp"
#include "python/run_status.hpp"
#include "python/statistics_dict.hpp"
#include "python/typed.hpp"
#include "time/event_fd.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

DataType parse_data_type(const std::string& text) {
  std::string valid;
  for (const DataType dtype : kDataTypes) {
    if (text == data_type_name(dtype)) return dtype;
    valid += std::string(valid.empty() ? "" : ", ") + data_type_name(dtype);
  }
  throw std::invalid_argument("data type '" + text + "' (valid: " + valid + ")");
}

LaneType parse_lane_type(const std::string& text) {
  if (text == "int32") return LaneType::kInt32;
  if (text == "int16") return LaneType::kInt16;
  if (text == "int8") return LaneType::kInt8;
  throw std::invalid_argument("data type '" + text + "' of lanes (valid: int32, int16, int8)");
}

ReduceOperation parse_operation(const std::string& text) {
  std::string valid;
  for (const ReduceOperation operation : kReduceOperations) {
    if (text == reduce_operation_name(operation)) return operation;
    valid += std::string(valid.empty() ? "" : ", ") + reduce_operation_name(operation);
  }
  throw std::invalid_argument("operation '" + text + "' (valid: " + valid + ")");
}
namespace {

// (buffer, offset_bytes, length_bytes)
using Range = std::tuple<uint32_t, uint64_t, uint64_t>;

BufferRange range_of(const Range& range) {
  return {std::get<0>(range), std::get<1>(range), std::get<2>(range)};
}

using Predecessors = std::vector<uint32_t>;

void bind_schedule(py::module_& m) {
  py::class_<RunnableSchedule, std::shared_ptr<RunnableSchedule>>(m, "RunnableSchedule",
                                                                  "What a `ScheduleExecutor` runs.");
  py::class_<Schedule, RunnableSchedule, std::shared_ptr<Schedule>>(
      m, "Schedule",
      R"doc(A dependency graph of one rank. Each add_... returns the number of the buffer or node it adds.

A node starts when all nodes of `after` are done. Raises ValueError, naming the node, for a range beyond
its buffer, ranges that do not fit each other or the data type, or a predecessor that does not exist.
`dtype` and `operation` are names; and, or and xor are of integers.)doc")
      .def(py::init())
      .def(
          "add_buffer",
          [](Schedule& schedule, const py::buffer& buffer) {
            auto held = std::make_shared<PythonBuffer>(buffer, true);
            uint8_t* data = held->data();
            const uint64_t length_bytes = held->size_bytes();
            return schedule.add_buffer(data, length_bytes, std::move(held));
          },
          "buffer"_a, "Add a writable C-contiguous array, kept alive while the schedule is.")
      .def(
          "add_zeros",
          [](Schedule& schedule, uint64_t length_bytes) {
            return schedule.add_buffer(nullptr, length_bytes, nullptr);
          },
          "length_bytes"_a,
          "Add a source of zeros without memory, or a target that discards, for writes and reads only.")
      .def(
          "add_lengths", &Schedule::add_lengths, "length_bytes"_a,
          "Add a source or target of zeros for writes and reads only, whose packets carry their payload as a "
          "length.")
      .def(
          "add_write",
          [](Schedule& schedule, uint32_t channel, const Range& source, uint64_t remote_address,
             uint32_t rkey, std::optional<uint32_t> immediate, const Predecessors& after) {
            return schedule.add_node(WriteNode{channel, range_of(source), remote_address, rkey, immediate},
                                     after);
          },
          "channel"_a, "source"_a, py::kw_only(), "remote_address"_a, "rkey"_a, "immediate"_a = py::none(),
          "after"_a = Predecessors())
      .def(
          "add_read",
          [](Schedule& schedule, uint32_t channel, const Range& target, uint64_t remote_address,
             uint32_t rkey, const Predecessors& after) {
            return schedule.add_node(ReadNode{channel, range_of(target), remote_address, rkey}, after);
          },
          "channel"_a, "target"_a, py::kw_only(), "remote_address"_a, "rkey"_a, "after"_a = Predecessors(),
          "RDMA READ into a range of a buffer (of zeros or lengths: what comes is discarded).")
      .def(
          "add_wait_receive",
          [](Schedule& schedule, uint32_t channel, uint32_t immediate, const Predecessors& after) {
            return schedule.add_node(WaitReceiveNode{channel, immediate}, after);
          },
          "channel"_a, "immediate"_a, py::kw_only(), "after"_a = Predecessors())
      .def(
          "add_reduce",
          [](Schedule& schedule, const Range& destination, const Range& source, const std::string& dtype,
             const std::string& operation, const Predecessors& after) {
            return schedule.add_node(ReduceNode{range_of(destination), range_of(source),
                                                parse_data_type(dtype), parse_operation(operation)},
                                     after);
          },
          "destination"_a, "source"_a, py::kw_only(), "dtype"_a, "operation"_a, "after"_a = Predecessors())
      .def(
          "add_copy",
          [](Schedule& schedule, const Range& destination, const Range& source, const Predecessors& after) {
            return schedule.add_node(CopyNode{range_of(destination), range_of(source)}, after);
          },
          "destination"_a, "source"_a, py::kw_only(), "after"_a = Predecessors())
      .def(
          "add_aggregate",
          [](Schedule& schedule, uint32_t aggregator, const Range& range, const std::string& dtype,
             const std::string& operation, const std::string& kind, uint32_t rank, uint32_t ranks,
             uint32_t root, const Predecessors& after) {
            const BufferRange bytes = range_of(range);
            const DataType type = parse_data_type(dtype);
            const ElementTable table({0, bytes.length_bytes / element_bytes(type)},
                                     is_parted(parse_aggregation_kind(kind)) ? ranks : 1);
            std::vector<Elements> ranges;
            for (uint64_t number = 0; number < table.size(); ++number) ranges.push_back(table.at(number));
            return schedule.add_node(
                AggregateNode{aggregator, bytes, type, parse_operation(operation),
                              aggregation_parts(parse_aggregation_kind(kind), ranges, rank, root)},
                after);
          },
          "aggregator"_a, "range"_a, py::kw_only(), "dtype"_a, "operation"_a, "kind"_a = "all_reduce",
          "rank"_a = 0, "ranks"_a = 1, "root"_a = 0, "after"_a = Predecessors(),
          R"doc(What `kind` says is done in the network with a range, in place: all_reduce, reduce, broadcast,
reduce_scatter, all_gather or barrier. `rank` is one of `ranks`, which share the range out evenly where each has
a part of its own.)doc")
      .def(
          "add_delay",
          [](Schedule& schedule, TimePs duration_ps, const Predecessors& after) {
            return schedule.add_node(DelayNode{duration_ps}, after);
          },
          "duration_ps"_a, py::kw_only(), "after"_a = Predecessors())
      .def_property_readonly("node_count", &Schedule::step_count);
}

// The executor, and a file descriptor that becomes readable when a run ends.
class PythonScheduleExecutor : public ScheduleExecutor {
 public:
  explicit PythonScheduleExecutor(Engine& engine)
      : ScheduleExecutor(engine), engine_(engine), event_fd_(open_event_fd()) {
    set_end_callback([this](uint64_t run) {
      ended_.push_back(run);
      make_readable(event_fd_);
      if (end_listener_) end_listener_();
    });
  }
  ~PythonScheduleExecutor() override { close(event_fd_); }

  Engine& engine() { return engine_; }
  int event_fd() const { return event_fd_; }
  std::vector<uint64_t> take_ended() {
    make_unreadable(event_fd_);
    return std::exchange(ended_, {});
  }
  void set_end_listener(std::function<void()> listener) { end_listener_ = std::move(listener); }

 private:
  Engine& engine_;
  int event_fd_;
  std::vector<uint64_t> ended_;
  std::function<void()> end_listener_;
};

// Calls a method of the executor under the engine's lock.
template <auto Method, class... Arguments>
auto locked_executor() {
  return [](PythonScheduleExecutor& executor, Arguments... arguments) {
    PythonGuard guard(executor.engine());
    return (executor.*Method)(arguments...);
  };
}

Record<"RunStatus"> status_of_run(PythonScheduleExecutor& executor, uint64_t run) {
  PythonGuard guard(executor.engine());
  return run_status(executor.status(run));
}

Record<"RunWrites"> run_writes(PythonScheduleExecutor& executor, uint64_t run) {
  PythonGuard guard(executor.engine());
  const std::vector<WriteRecord>& writes = executor.writes(run);
  return py::dict("node"_a = column_of(writes, &WriteRecord::node),
                  "posted_ps"_a = column_of(writes, &WriteRecord::posted_ps),
                  "completed_ps"_a = column_of(writes, &WriteRecord::completed_ps),
                  "retransmitted_packets"_a = column_of(writes, &WriteRecord::retransmitted_packets));
}

py::array_t<TimePs> times_array(const std::vector<TimePs>& times_ps) {
  return py::array_t<TimePs>(static_cast<py::ssize_t>(times_ps.size()), times_ps.data());
}

std::pair<py::array_t<TimePs>, py::array_t<TimePs>> operation_times(PythonScheduleExecutor& executor,
                                                                    const BoundJob& job) {
  PythonGuard guard(executor.engine());
  return {times_array(job.times().started_ps), times_array(job.times().finished_ps)};
}

void bind_executor(py::module_& m) {
  declare_record<ClearToSendCounters>("ClearToSendStats");
  using Executor = PythonScheduleExecutor;
  py::class_<ScheduleExecutor, CompletionHandler, std::shared_ptr<ScheduleExecutor>>(m, "_ScheduleExecutor");
  py::class_<Executor, ScheduleExecutor, std::shared_ptr<Executor>>(
      m, "ScheduleExecutor",
      R"doc(Runs schedules over the queue pairs that were made with it as their completion handler.

As a file (`fileno`) it becomes readable when a run ends.)doc")
      .def(py::init([](Engine& engine) { return make_component<Executor>(engine, engine); }), "engine"_a,
           py::keep_alive<1, 2>())
      .def("add_channel", locked_executor<&ScheduleExecutor::add_channel, WritingQueuePair&, TimePs>(),
           "queue_pair"_a, "step_latency_ps"_a = 0,
           R"doc(Make a queue pair known, and return the number by which schedules name it.

Steps learn of what arrives `step_latency_ps` later. Raises ValueError for a number in use, and a negative
latency.)doc")
      .def(
          "set_copies",
          [](Executor& executor, uint32_t channel, TimePs latency_ps, uint64_t chunk_bytes,
             uint64_t rate_bps) {
            PythonGuard guard(executor.engine());
            executor.set_copies(channel, {latency_ps, chunk_bytes, BitRate(rate_bps)});
          },
          "channel"_a, py::kw_only(), "latency_ps"_a, "chunk_bytes"_a, "rate_bps"_a,
          R"doc(Have steps learn of messages and data of READs later, by latency_ps and a chunk's time at rate_bps.

A shorter message takes its own time. Raises IndexError for a channel that is not there.)doc")
      .def("add_scale_up_channel",
           locked_executor<&ScheduleExecutor::add_scale_up_channel, ScaleUpChannel&, TimePs>(), "channel"_a,
           "step_latency_ps"_a = 0, py::keep_alive<1, 2>(), "The same of a channel between ranks of a host.")
      .def("receive_over", locked_executor<&ScheduleExecutor::receive_over, uint32_t, uint32_t>(),
           "channel"_a, "over"_a,
           "What arrives over one channel arrives over another; raises ValueError for channels that cannot.")
      .def("add_aggregator", locked_executor<&ScheduleExecutor::add_aggregator, AggregationClient&>(),
           "client"_a)
      .def("remove_channel", locked_executor<&ScheduleExecutor::remove_channel, uint32_t>(), "channel"_a)
      .def("remove_aggregator", locked_executor<&ScheduleExecutor::remove_aggregator, uint32_t>(),
           "aggregator"_a)
      .def(
          "replace_aggregator",
          locked_executor<&ScheduleExecutor::replace_aggregator, uint32_t, AggregationClient&>(),
          "aggregator"_a, "client"_a,
          "Have another client do what one did, under the same number. Raises ValueError for an unknown one.")
      .def(
          "suspend", locked_executor<&ScheduleExecutor::suspend, uint32_t>(), "channel"_a,
          R"doc(Stop a channel's queue pair, keep what is not acknowledged; returns how many messages have arrived.

Raises ValueError for a channel that has no queue pair.)doc")
      .def(
          "detour",
          locked_executor<&ScheduleExecutor::detour, uint32_t, const std::vector<uint32_t>&, uint64_t>(),
          "channel"_a, "over"_a, "peer_received"_a,
          R"doc(Have other channels carry, in turn, what a suspended one would, but for what its peer has received.

Raises ValueError if it is not suspended, or for channels or a number that cannot be.)doc")
      .def("resume", locked_executor<&ScheduleExecutor::resume, uint32_t, WritingQueuePair&>(), "channel"_a,
           "queue_pair"_a,
           R"doc(Have a new queue pair carry what is posted to a channel from now on.

Raises ValueError if the channel is on no detour.)doc")
      .def(
          "clear_to_send",
          [](Executor& executor, uint32_t channel, uint32_t clearances, uint32_t window,
             uint64_t chunk_bytes) {
            PythonGuard guard(executor.engine());
            executor.clear_to_send(channel, clearances, {.window = window, .chunk_bytes = chunk_bytes});
          },
          "channel"_a, "clearances"_a, py::kw_only(), "window"_a, "chunk_bytes"_a,
          R"doc(Have receivers clear a channel's messages, over the channel `clearances`; at both ends.

Raises ValueError for settings out of range, and for channels without queue pairs or that have it.)doc")
      .def(
          "clear_to_send_stats",
          [](Executor& executor) {
            PythonGuard guard(executor.engine());
            return Record<"ClearToSendStats">(statistics_dict(executor.clear_to_send_counters()));
          },
          "What was cleared and held.")
      .def(
          "start",
          [](Executor& executor, const std::shared_ptr<RunnableSchedule>& schedule, TimePs start_ps,
             uint64_t run, bool keep_writes) {
            PythonGuard guard(executor.engine());
            return executor.start(schedule, start_ps, {.number = run, .keep_writes = keep_writes});
          },
          "schedule"_a, "start_ps"_a = 0, py::kw_only(), "run"_a = 0, "keep_writes"_a = false,
          R"doc(Start at start_ps (now, if that is past); returns the number of the run, `run` or the next one.

Raises ValueError if the schedule names a channel or aggregator that does not exist, or if there is such a run.)doc")
      .def("status", &status_of_run, "run"_a)
      .def("writes", &run_writes, "run"_a,
           "Columns of the WRITEs acknowledged so far, of a run that was started to keep them; by their "
           "nodes.")
      .def("operation_times", &operation_times, "job"_a,
           "When each operation of a job's run has started and ended, in ps; the largest number where it has "
           "not.")
      .def("cancel", locked_executor<&ScheduleExecutor::cancel, uint64_t>(), "run"_a)
      .def("forget", locked_executor<&ScheduleExecutor::forget, uint64_t>(), "run"_a,
           "Release a run that has ended. Raises RuntimeError if it has not.")
      .def("take_ended", locked_executor<&Executor::take_ended>(), "Runs that ended since the last call.")
      .def(
          "set_end_listener",
          [](Executor& executor, std::optional<Callback> listener) {
            std::function<void()> held = listener_of(executor.engine(), std::move(listener));
            PythonGuard guard(executor.engine());
            executor.set_end_listener(std::move(held));
          },
          "listener"_a.none(true), "Call listener() from the engine whenever a run ends; None ends that.")
      .def(
          "observe",
          [](Executor& executor, int32_t rank) {
            PythonGuard guard(executor.engine());
            if (executor.engine().probe() == nullptr) throw std::logic_error("the engine has no probe");
            executor.observe(executor.engine().probe(), rank);
          },
          "rank"_a,
          R"doc(Have the engine's probe record every node of runs that start from now on, as a step of this rank.

Raises RuntimeError if the engine has no probe.)doc")
      .def("fileno", &Executor::event_fd);
}

template <class T>
using Array = py::array_t<T, py::array::c_style | py::array::forcecast>;

// What Python makes: knows the engine and keeps its handler alive.
class PythonAggregationClient final : public AggregationClient {
 public:
  PythonAggregationClient(Nic& nic, const AggregationConfig& config,
                          std::shared_ptr<CompletionHandler> handler)
      : AggregationClient(config, nic.engine().packets(), handler.get()),
        engine_(nic.engine()),
        handler_(std::move(handler)) {}
  Engine& engine() { return engine_; }

 private:
  Engine& engine_;
  std::shared_ptr<CompletionHandler> handler_;
};

std::shared_ptr<PythonAggregationClient> make_aggregation_client(
    Nic& nic, int port, std::shared_ptr<CompletionHandler> completions, const std::string& destination_mac,
    const std::string& destination_ip, const std::string& group_ip, AggregationConfig config) {
  Engine& engine = nic.engine();
  PythonGuard guard(engine);
  config.source_mac = nic.port_config(port).mac;
  config.destination_mac = parse_mac(destination_mac);
  config.destination_ip = parse_ip(destination_ip);
  config.source_ip = nic.own_address(port, config.destination_ip);
  const roce::IpAddress group = parse_ip(group_ip);
  if (group.is_ipv6 != config.destination_ip.is_ipv6) {
    throw std::invalid_argument("aggregation client: group_ip " + group_ip + " and destination_ip " +
                                destination_ip + " are of different IP versions");
  }
  auto client = std::make_shared<PythonAggregationClient>(nic, config, std::move(completions));
  nic.attach_group(*client, port, group);
  engine.adopt(client);
  return client;
}

Record<"AggregationStats"> aggregation_stats(PythonAggregationClient& client) {
  PythonGuard guard(client.engine());
  py::dict stats = statistics_dict(client.counters());
  stats["messages_in_flight"] = client.messages_in_flight();
  stats["outstanding_requests"] = client.outstanding_requests();
  stats["window_messages"] = client.window().messages();
  stats["error"] = completion_status_name(client.error());
  return stats;
}

void bind_aggregation(py::module_& m) {
  declare_record<AggregationCounters>(
      "AggregationStats", {{"messages_in_flight", "int", "sent, without their result yet"},
                           {"outstanding_requests", "int", "posted and not completed"},
                           {"window_messages", "float", "that may be in flight"},
                           {"error", "str", "why requests fail; \"success\" as long as they do not"}});
  const AggregationConfig defaults;
  py::class_<AggregationClient, QueuePair, std::shared_ptr<AggregationClient>>(m, "_AggregationClient");
  py::class_<PythonAggregationClient, AggregationClient, std::shared_ptr<PythonAggregationClient>>(
      m, "AggregationClient",
      R"doc(A worker of an in-network aggregation job. All workers must post the same reductions in the same order.

Contributions go to `destination_ip` by way of `destination_mac`; results come to `group_ip`. `slot_count` is
the window in messages, `lane_count` the lanes of a packet with data: 64, 128, 256 or 1024. `worker_numbers` are
the tree's numbers of all workers, by rank in the job; none if these are the ranks. `rate_bps` is what the job is
promised of the link, 0: nothing. Raises ValueError for
parameters out of range or a group that is taken.)doc")
      .def(py::init([](Nic& nic, int port, std::shared_ptr<CompletionHandler> completions, uint16_t job_id,
                       uint16_t epoch, uint32_t q_key, uint16_t rank, uint32_t rank_count,
                       uint16_t slot_count, uint16_t lane_count, const std::string& destination_mac,
                       const std::string& destination_ip, const std::string& group_ip,
                       TimePs retransmission_timeout_ps, uint16_t source_udp_port,
                       uint32_t timeout_backoff_limit, uint32_t retry_limit,
                       uint32_t early_retransmit_distance, uint32_t worker_rank,
                       std::vector<uint16_t> worker_numbers, uint8_t data_class, uint64_t rate_bps) {
             AggregationConfig config;
             config.job_id = job_id;
             config.epoch = epoch;
             config.q_key = q_key;
             config.rank = rank;
             config.rank_count = rank_count;
             config.slot_count = slot_count;
             config.lane_count = lane_count;
             config.retransmission_timeout_ps = retransmission_timeout_ps;
             config.source_udp_port = source_udp_port;
             config.timeout_backoff_limit = timeout_backoff_limit;
             config.retry_limit = retry_limit;
             config.early_retransmit_distance = early_retransmit_distance;
             config.worker_rank = worker_rank;
             config.data_class = data_class;
             config.rate_bps = rate_bps;
             config.worker_numbers = std::move(worker_numbers);
             return make_aggregation_client(nic, port, std::move(completions), destination_mac,
                                            destination_ip, group_ip, config);
           }),
           "nic"_a, "port"_a, "completions"_a, py::kw_only(), "job_id"_a, "epoch"_a, "q_key"_a, "rank"_a,
           "rank_count"_a, "slot_count"_a, "lane_count"_a = defaults.lane_count, "destination_mac"_a,
           "destination_ip"_a, "group_ip"_a, "retransmission_timeout_ps"_a,
           "source_udp_port"_a = defaults.source_udp_port,
           "timeout_backoff_limit"_a = defaults.timeout_backoff_limit, "retry_limit"_a = defaults.retry_limit,
           "early_retransmit_distance"_a = defaults.early_retransmit_distance,
           "worker_rank"_a = defaults.worker_rank, "worker_numbers"_a = defaults.worker_numbers,
           "data_class"_a = defaults.data_class, "rate_bps"_a = defaults.rate_bps, py::keep_alive<1, 2>(),
           py::keep_alive<1, 4>())
      .def("stats", &aggregation_stats)
      .def("reset_stats",
           [](PythonAggregationClient& client) {
             PythonGuard guard(client.engine());
             client.reset_counters();
           })
      .def(
          "position",
          [](PythonAggregationClient& client) {
            PythonGuard guard(client.engine());
            return std::tuple(client.first_unfinished(), client.end_of_sent(), client.end_of_stream());
          },
          "Numbers of the stream's first message without a result, and of those after the last sent and "
          "posted.")
      .def(
          "take_over",
          [](PythonAggregationClient& client, PythonAggregationClient& before, uint64_t first_message) {
            PythonGuard guard(client.engine());
            client.take_over(before, first_message);
          },
          "before"_a, "first_message"_a,
          R"doc(Go on with the stream of another client, which has been detached, at a message.

That is the first one that a worker of the job has no result of. Raises ValueError if that cannot be.)doc")
      .def(
          "contributions",
          [](PythonAggregationClient& client, uint64_t first, uint64_t end, const std::string& operation,
             const std::string& data_type) {
            PythonGuard guard(client.engine());
            const std::vector<int32_t> lanes =
                client.contributions(first, end, parse_operation(operation), parse_lane_type(data_type));
            return py::array_t<int32_t>(static_cast<py::ssize_t>(lanes.size()), lanes.data());
          },
          "first"_a, "end"_a, "operation"_a, "data_type"_a = "int32",
          R"doc(Return the lanes of messages from `first` to before `end`, in order: those of an operation and lane type.

Raises ValueError if one cannot be composed.)doc")
      .def(
          "take_results",
          [](PythonAggregationClient& client, uint64_t first, uint64_t end, const std::string& operation,
             const Array<int32_t>& lanes, const std::string& data_type) {
            PythonGuard guard(client.engine());
            client.take_results(first, end, parse_operation(operation), parse_lane_type(data_type),
                                std::vector<int32_t>(lanes.data(), lanes.data() + lanes.size()));
          },
          "first"_a, "end"_a, "operation"_a, "lanes"_a, "data_type"_a = "int32",
          "Take results of the same messages in the same order. Raises ValueError if they cannot be.")
      .def(
          "skip_to",
          [](PythonAggregationClient& client, uint64_t end) {
            PythonGuard guard(client.engine());
            client.skip_to(client.engine().now(), end);
          },
          "end"_a, "All results before message `end` have been taken: complete the requests that they end.");
}

void bind_block_floating_point(py::module_& m) {
  m.def(
      "block_exponent",
      [](const Array<float>& block) {
        return bfp::block_exponent(block.data(), static_cast<size_t>(block.size()), 0);
      },
      "block"_a,
      "Smallest e with |x| < 2^e for all elements, -149 for zeros. Raises ValueError for NaN and infinity.");
  m.def(
      "quantise_block",
      [](const Array<float>& block, int32_t exponent, uint32_t rank_count) {
        py::array_t<int32_t> integers(block.size());
        bfp::quantise(block.data(), static_cast<size_t>(block.size()), exponent,
                      bfp::magnitude_bits(32, bfp::headroom_bits(rank_count)), integers.mutable_data());
        return integers;
      },
      "block"_a, "exponent"_a, "rank_count"_a,
      "Integers that `rank_count` ranks can add without overflow. All |x| < 2^exponent.");
  m.def(
      "dequantise_block",
      [](const Array<int32_t>& sums, int32_t exponent, uint32_t rank_count) {
        py::array_t<float> block(sums.size());
        bfp::dequantise(sums.data(), static_cast<size_t>(sums.size()), exponent,
                        bfp::magnitude_bits(32, bfp::headroom_bits(rank_count)), block.mutable_data());
        return block;
      },
      "sums"_a, "exponent"_a, "rank_count"_a, "Floats that sums of quantised blocks stand for.");
}

}  // namespace

void bind_collective(py::module_& m) {
  bind_schedule(m);
  bind_elements(m);
  bind_lane_schedule(m);
  bind_jobs(m);
  bind_aggregation(m);
  bind_executor(m);
  bind_block_floating_point(m);
}

}  // namespace weft
