// A rank that sends on what another rank of its host has for ranks of its own rail.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "hosts/queue_pair.hpp"
#include "hosts/scale_up.hpp"
#include "time/time.hpp"

namespace weft {

class WritingQueuePair;

// Takes the messages of a channel inside the host whole, as NCCL's PXN does (2.12, "PCI x NVLink"), and has a
// queue pair of its port's NIC write them to the same place of that queue pair's peer, in order. The sender's
// completion is that of the queue pair, so that a message whose second half fails has failed. Only WRITEs are
// relayed.
class ScaleUpRelay final : public CompletionHandler, public ScaleUpForwarder {
 public:
  // From channel `source_number` of port `source_port` to the channel `number` of `port`. A message goes on
  // `step_latency_ps` after its last bit has come, as a step would (see ScheduleExecutor). `domain` outlives
  // the relay. Throws as ScaleUpChannel.
  ScaleUpRelay(ScaleUpDomain& domain, uint32_t port, uint32_t number, uint32_t source_port,
               uint32_t source_number, TimePs step_latency_ps = 0);
  ScaleUpRelay(const ScaleUpRelay&) = delete;
  ScaleUpRelay& operator=(const ScaleUpRelay&) = delete;

  // The queue pair, made with the relay as its handler; it outlives the relay, or the relay is closed before.
  void send_by(WritingQueuePair& queue_pair) { queue_pair_ = &queue_pair; }
  // Relays nothing any more; messages under way are abandoned.
  void close();
  Engine& engine() { return domain_.engine(); }

  void forward(const ScaleUpMessage& message) override;
  void on_completion(const Completion& completion) override;

 private:
  struct UnderWay {
    ScaleUpMessage message;  // without its data
    std::shared_ptr<const uint8_t[]> data;
    TimePs arrived_ps = 0;
  };

  void send(uint64_t work_id);
  void end(uint64_t work_id, CompletionStatus status);

  ScaleUpDomain& domain_;
  ScaleUpChannel channel_;
  TimePs step_latency_ps_;
  WritingQueuePair* queue_pair_ = nullptr;
  std::unordered_map<uint64_t, UnderWay> under_way_;  // by the queue pair's work id
  uint64_t next_work_id_ = 1;
};

}  // namespace weft
