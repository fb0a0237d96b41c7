#include "hosts/scale_up.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

#include "memory/flat_map.hpp"

namespace weft {

struct ScaleUpDomain::Port {
  explicit Port(ScaleUpDomain& domain_)
      : domain(domain_),
        arrival_timer(domain.engine_.events(), member_action<&Port::on_first_bits>(this)),
        delivery_timer(domain.engine_.events(), member_action<&Port::on_last_bits>(this)) {}

  void on_first_bits() { domain.first_bits_arrive(*this); }
  void on_last_bits() { domain.last_bits_arrive(*this); }

  ScaleUpDomain& domain;
  const MemoryRegistry* memory = nullptr;
  TimePs out_free_ps = 0;
  TimePs in_free_ps = 0;
  // Of the WRITE sent last, for copies of it.
  TimePs last_posted_ps = kNever;
  TimePs last_begun_ps = 0;
  uint64_t last_wire_bytes = 0;
  std::deque<InFlight> on_the_way;  // by the arrival of first bits
  std::deque<InFlight> coming_in;   // by the arrival of last bits
  Timer arrival_timer;
  Timer delivery_timer;
  FlatMap<uint32_t, ScaleUpChannel*> channels;  // by number
  ScaleUpReductions reductions;
  ScaleUpCounters counters;
};

ScaleUpDomain::ScaleUpDomain(Engine& engine, uint64_t rate_bps, TimePs latency_ps, uint32_t port_count)
    : engine_(engine), rate_(rate_bps), latency_ps_(latency_ps) {
  if (rate_bps == 0) throw std::invalid_argument("scale-up rate of 0 b/s (valid: above 0)");
  if (latency_ps < 0) {
    throw std::invalid_argument("scale-up latency of " + std::to_string(latency_ps) +
                                " ps (valid: 0 or more)");
  }
  for (uint32_t port = 0; port < port_count; ++port) ports_.push_back(std::make_unique<Port>(*this));
}

ScaleUpDomain::~ScaleUpDomain() = default;

const ScaleUpDomain::Port& ScaleUpDomain::port_at(uint32_t port) const {
  if (port >= ports_.size()) {
    throw std::invalid_argument("scale-up port " + std::to_string(port) + " (valid: below " +
                                std::to_string(ports_.size()) + ")");
  }
  return *ports_[port];
}

ScaleUpDomain::Port& ScaleUpDomain::port_at(uint32_t port) {
  return const_cast<Port&>(std::as_const(*this).port_at(port));
}

void ScaleUpDomain::attach(uint32_t port, const MemoryRegistry& memory) { port_at(port).memory = &memory; }

const ScaleUpCounters& ScaleUpDomain::counters(uint32_t port) const { return port_at(port).counters; }

void ScaleUpDomain::reset_counters(uint32_t port) { port_at(port).counters = ScaleUpCounters(); }

void ScaleUpDomain::add_counters(uint32_t port, const ScaleUpCounters& more) {
  add_statistics(port_at(port).counters, more);
}

void ScaleUpDomain::set_wire(uint32_t own_port, ScaleUpWire& wire) {
  port_at(own_port);
  own_port_ = own_port;
  wire_ = &wire;
}

// --- on the way

// A message's data is the caller's, or in `bytes`.
void ScaleUpDomain::send(TimePs now, Message message, std::unique_ptr<uint8_t[]> bytes) {
  Port& source = *ports_[message.source];
  if (!message.switched.is_copy) {
    ++source.counters.sent_messages;
    source.counters.sent_bytes += message.wire_bytes;
    source.last_posted_ps = now;
    source.last_begun_ps = std::max(now, source.out_free_ps);
    source.last_wire_bytes = message.wire_bytes;
    source.out_free_ps = source.last_begun_ps + rate_.serialisation_ps(message.wire_bytes);
  } else if (source.last_posted_ps != now || source.last_wire_bytes != message.wire_bytes) {
    throw std::invalid_argument("a scale-up WRITE of " + std::to_string(message.wire_bytes) +
                                " bytes is no copy of the one before it");
  }
  const TimePs due_ps = source.last_begun_ps + latency_ps_;
  if (is_elsewhere(message.destination))
    wire_->carry(due_ps, message);
  else
    put_on_the_way({due_ps, std::move(message), std::move(bytes)});
}

void ScaleUpDomain::arrive(TimePs due_ps, Message message, std::unique_ptr<uint8_t[]> bytes) {
  message.data = bytes.get();
  engine_.note_arrival(due_ps);
  put_on_the_way({due_ps, std::move(message), std::move(bytes)});
}

void ScaleUpDomain::put_on_the_way(InFlight arriving) {
  if (arriving.message.switched.terms > 1)
    reduce_on_the_way(std::move(arriving));
  else
    queue_for(std::move(arriving));
}

// Data of terms are taken when the last one is in the switch: nobody changes them before the completions.
void ScaleUpDomain::reduce_on_the_way(InFlight term) {
  const Message message = term.message;
  Port& destination = *ports_[message.destination];
  ScaleUpChannel* const* const receiver = destination.channels.find(message.peer_channel);
  if (receiver == nullptr) return say(message, std::nullopt);
  std::optional<InFlight> result;
  try {
    if ((*receiver)->forwarder_ != nullptr)
      throw std::invalid_argument("a term of a reduction over a channel that is sent on");
    result = destination.reductions.add(engine_.now(), (*receiver)->group_, std::move(term), last_result_);
  } catch (const std::invalid_argument&) {
    if (!is_elsewhere(message.source)) throw;
    return say(message, CompletionStatus::kRemoteInvalidRequest);
  }
  if (result) queue_for(std::move(*result));
}

void ScaleUpDomain::forget_terms(uint32_t port, uint32_t channel) {
  for (const auto& destination : ports_) {
    for (const Message& term : destination->reductions.forget(port, channel)) {
      if (!is_elsewhere(term.source)) ++ports_[term.source]->counters.abandoned_messages;
    }
  }
}

void ScaleUpDomain::queue_for(InFlight arriving) {
  Port& destination = *ports_[arriving.message.destination];
  const TimePs due_ps = arriving.due_ps;
  // Senders' backlogs differ, so a later message may come first.
  auto place = destination.on_the_way.end();
  while (place != destination.on_the_way.begin() && std::prev(place)->due_ps > due_ps) --place;
  const bool first = place == destination.on_the_way.begin();
  destination.on_the_way.insert(place, std::move(arriving));
  if (first) destination.arrival_timer.arm(std::max(due_ps, engine_.now()));
}

// Dated by when they were due, so that the lateness of a real clock does not add up.
void ScaleUpDomain::first_bits_arrive(Port& port) {
  const TimePs now = engine_.now();
  while (!port.on_the_way.empty() && port.on_the_way.front().due_ps <= now) {
    InFlight arriving = std::move(port.on_the_way.front());
    port.on_the_way.pop_front();
    const TimePs begins_ps = std::max(arriving.due_ps, port.in_free_ps);
    port.in_free_ps = begins_ps + rate_.serialisation_ps(arriving.message.wire_bytes);
    arriving.due_ps = port.in_free_ps;
    port.coming_in.push_back(std::move(arriving));
  }
  if (!port.on_the_way.empty()) port.arrival_timer.arm(port.on_the_way.front().due_ps);
  if (!port.coming_in.empty() && !port.delivery_timer.armed()) {
    port.delivery_timer.arm(std::max(port.coming_in.front().due_ps, now));
  }
}

void ScaleUpDomain::last_bits_arrive(Port& port) {
  const InFlight arrived = std::move(port.coming_in.front());
  port.coming_in.pop_front();
  if (!port.coming_in.empty())
    port.delivery_timer.arm(std::max(port.coming_in.front().due_ps, engine_.now()));
  deliver(arrived);
}

// --- there

void ScaleUpDomain::deliver(const InFlight& arrived) {
  const Message& message = arrived.message;
  if (!arrived.terms.empty()) return deliver_result(arrived);
  switch (message.kind) {
    case ScaleUpKind::kWrite:
      if (message.source == message.destination) return deliver_to_itself(message);
      return is_elsewhere(message.source) ? deliver_from_elsewhere(message) : deliver_write(message);
    case ScaleUpKind::kReadRequest:
      return answer_read(arrived.due_ps, message);
    case ScaleUpKind::kReadResponse:
      return end_read(message);
    case ScaleUpKind::kCount:
      return;
  }
}

void ScaleUpDomain::deliver_write(const Message& message) {
  Port& source = *ports_[message.source];
  const Port& destination = *ports_[message.destination];
  ScaleUpChannel* const* const sender = source.channels.find(message.channel);
  ScaleUpChannel* const* const receiver = destination.channels.find(message.peer_channel);
  if (sender == nullptr || receiver == nullptr) {
    // Whose data it was may have taken it back.
    ++source.counters.abandoned_messages;
    return;
  }
  if (is_forwarded(**receiver, message)) return;
  // Either may be closed by what the first of two completions brings about.
  CompletionHandler* const to_sender = (*sender)->handler_;
  complete(to_sender, message, hand_to_receiver((*receiver)->handler_, message));
}

void ScaleUpDomain::deliver_from_elsewhere(const Message& message) {
  const Port& destination = *ports_[message.destination];
  ScaleUpChannel* const* const receiver = destination.channels.find(message.peer_channel);
  ScaleUpOutcome outcome;
  if (receiver != nullptr) {
    if (is_forwarded(**receiver, message)) return;
    outcome = hand_to_receiver((*receiver)->handler_, message);
  }
  wire_->answer(message, outcome);
}

// The data are there already.
void ScaleUpDomain::deliver_to_itself(const Message& message) {
  ScaleUpCounters& counters = ports_[message.destination]->counters;
  ++counters.received_messages;
  counters.received_bytes += message.wire_bytes;
  finish(message, CompletionStatus::kSuccess);
}

// Completions are looked up one by one, because each may close channels.
void ScaleUpDomain::deliver_result(const InFlight& arrived) {
  Port& destination = *ports_[arrived.message.destination];
  const CompletionStatus status = place(destination, arrived.message);
  for (const InFlight& term : arrived.terms) {
    const Message& message = term.message;
    ScaleUpChannel* const* const receiver = destination.channels.find(message.peer_channel);
    if (receiver == nullptr) {
      say(message, std::nullopt);
      continue;
    }
    const bool is_told = status == CompletionStatus::kSuccess && message.source != message.destination;
    if (is_told) tell_receiver((*receiver)->handler_, message);
    say(message, status);
  }
}

void ScaleUpDomain::say(const Message& message, ScaleUpOutcome outcome) {
  is_elsewhere(message.source) ? wire_->answer(message, outcome) : finish(message, outcome);
}

bool ScaleUpDomain::is_forwarded(const ScaleUpChannel& receiver, const Message& message) {
  if (receiver.forwarder_ == nullptr) return false;
  Port& port = *ports_[message.destination];
  ++port.counters.received_messages;
  port.counters.received_bytes += message.wire_bytes;
  receiver.forwarder_->forward(message);
  return true;
}

void ScaleUpDomain::forwarded(const ScaleUpMessage& message, ScaleUpOutcome outcome) {
  say(message, outcome);
}

void ScaleUpDomain::count_relayed(const ScaleUpMessage& message, TimePs arrived_ps) {
  ScaleUpCounters& counters = ports_[message.destination]->counters;
  ++counters.relayed_messages;
  counters.relayed_bytes += message.length_bytes;
  counters.relayed_inside_ps += static_cast<uint64_t>(arrived_ps - message.posted_ps);
  counters.relayed_between_ps += static_cast<uint64_t>(engine_.now() - arrived_ps);
}

// The response is dated by when the request was due, as all that arrives is.
void ScaleUpDomain::answer_read(TimePs due_ps, const Message& request) {
  Port& responder = *ports_[request.destination];
  const bool from_elsewhere = is_elsewhere(request.source);
  const auto refuse = [&](ScaleUpOutcome outcome) {
    from_elsewhere ? wire_->answer(request, outcome) : finish(request, outcome);
  };
  const bool asker_is_gone =
      !from_elsewhere && ports_[request.source]->channels.find(request.channel) == nullptr;
  ScaleUpChannel* const* const asked = responder.channels.find(request.peer_channel);
  if (asker_is_gone || asked == nullptr) return refuse(std::nullopt);
  if ((*asked)->forwarder_ != nullptr) return refuse(CompletionStatus::kRemoteInvalidRequest);
  const MemoryRegion* region = nullptr;
  // As a queue pair, it looks at no rkey for no bytes.
  if (request.length_bytes > 0) {
    if (responder.memory != nullptr)
      region =
          responder.memory->find(request.rkey, request.remote_address, request.length_bytes, kRemoteRead);
    if (region == nullptr || region->foreign != nullptr) {
      ++responder.counters.refused_messages;
      return refuse(CompletionStatus::kRemoteAccessError);
    }
  }
  ++responder.counters.received_messages;
  // The memory may be written to, or given back, before the last bit has left.
  std::unique_ptr<uint8_t[]> bytes;
  if (request.wants_data && region != nullptr && region->data != nullptr) {
    const uint8_t* const from = region->data + (request.remote_address - region->virtual_address);
    bytes = std::make_unique_for_overwrite<uint8_t[]>(request.length_bytes);
    std::memcpy(bytes.get(), from, request.length_bytes);
  }
  const uint8_t* const data = bytes.get();
  send(due_ps,
       {.kind = ScaleUpKind::kReadResponse,
        .source = request.destination,
        .destination = request.source,
        .channel = request.peer_channel,
        .peer_channel = request.channel,
        .read = request.read,
        .data = data,
        .length_bytes = request.length_bytes,
        .wire_bytes = request.length_bytes,
        .immediate = std::nullopt},
       std::move(bytes));
}

void ScaleUpDomain::end_read(const Message& response) {
  Port& requester = *ports_[response.destination];
  ScaleUpChannel* const* const found = requester.channels.find(response.peer_channel);
  const ScaleUpRead read = found == nullptr ? ScaleUpRead() : (*found)->take_read(response.read);
  if (!read || read.length_bytes != response.length_bytes) {
    ++requester.counters.abandoned_messages;
    return;
  }
  if (read.target != nullptr && read.length_bytes > 0) {
    if (response.data != nullptr) {
      std::memcpy(read.target, response.data, read.length_bytes);
    } else {
      std::memset(read.target, 0, read.length_bytes);
    }
  }
  ++requester.counters.received_messages;
  requester.counters.received_bytes += read.length_bytes;
  complete_read(**found, read, CompletionStatus::kSuccess);
}

void ScaleUpDomain::finish_read(Port& source, const Message& request, ScaleUpOutcome outcome) {
  ScaleUpChannel* const* const found = source.channels.find(request.channel);
  const ScaleUpRead read = found == nullptr ? ScaleUpRead() : (*found)->take_read(request.read);
  if (!outcome || !read) {
    ++source.counters.abandoned_messages;
    return;
  }
  complete_read(**found, read, *outcome);
}

void ScaleUpDomain::complete_read(const ScaleUpChannel& channel, const ScaleUpRead& read,
                                  CompletionStatus status) {
  if (channel.handler_ == nullptr) return;
  channel.handler_->on_completion({.work_id = read.work_id,
                                   .kind = CompletionKind::kRead,
                                   .status = status,
                                   .queue_pair = channel.number_,
                                   .length_bytes = read.length_bytes,
                                   .posted_ps = read.posted_ps,
                                   .completed_ps = engine_.now()});
}

void ScaleUpDomain::finish(const Message& message, ScaleUpOutcome outcome) {
  Port& source = *ports_[message.source];
  if (message.kind == ScaleUpKind::kReadRequest) return finish_read(source, message, outcome);
  ScaleUpChannel* const* const sender = source.channels.find(message.channel);
  if (!outcome || sender == nullptr) {
    ++source.counters.abandoned_messages;
    return;
  }
  complete((*sender)->handler_, message, *outcome);
}

CompletionStatus ScaleUpDomain::hand_to_receiver(CompletionHandler* handler, const Message& message) {
  const CompletionStatus status = place(*ports_[message.destination], message);
  if (status == CompletionStatus::kSuccess) tell_receiver(handler, message);
  return status;
}

void ScaleUpDomain::tell_receiver(CompletionHandler* handler, const Message& message) {
  if (!message.immediate || handler == nullptr) return;
  handler->on_completion({.work_id = 0,
                          .kind = CompletionKind::kWriteImmediate,
                          .status = CompletionStatus::kSuccess,
                          .queue_pair = message.peer_channel,
                          .length_bytes = message.length_bytes,
                          .has_immediate = true,
                          .immediate = *message.immediate,
                          .posted_ps = message.posted_ps,
                          .completed_ps = engine_.now()});
}

void ScaleUpDomain::complete(CompletionHandler* handler, const Message& message, CompletionStatus status) {
  if (handler == nullptr) return;
  handler->on_completion({.work_id = message.work_id,
                          .kind = CompletionKind::kWrite,
                          .status = status,
                          .queue_pair = message.channel,
                          .length_bytes = message.length_bytes,
                          .has_immediate = message.immediate.has_value(),
                          .immediate = message.immediate.value_or(0),
                          .posted_ps = message.posted_ps,
                          .completed_ps = engine_.now()});
}

CompletionStatus ScaleUpDomain::place(Port& destination, const Message& message) {
  const MemoryRegion* region = destination.memory == nullptr
                                   ? nullptr
                                   : destination.memory->find(message.rkey, message.remote_address,
                                                              message.length_bytes, kRemoteWrite);
  if (region == nullptr || region->foreign != nullptr) {
    ++destination.counters.refused_messages;
    return CompletionStatus::kRemoteAccessError;
  }
  if (region->data != nullptr && message.length_bytes > 0) {
    uint8_t* target = region->data + (message.remote_address - region->virtual_address);
    if (message.data != nullptr) {
      std::memcpy(target, message.data, message.length_bytes);
    } else {
      std::memset(target, 0, message.length_bytes);
    }
  }
  ++destination.counters.received_messages;
  destination.counters.received_bytes += message.wire_bytes;
  return CompletionStatus::kSuccess;
}

ScaleUpChannel::ScaleUpChannel(ScaleUpDomain& domain, uint32_t port, uint32_t number, uint32_t peer_port,
                               uint32_t peer_number, CompletionHandler* handler, LineFormat line_format,
                               uint32_t group)
    : domain_(domain),
      port_(port),
      number_(number),
      peer_port_(peer_port),
      peer_number_(peer_number),
      handler_(handler),
      line_format_(line_format),
      group_(group) {
  domain.port_at(peer_port);
  if (port == peer_port) {
    throw std::invalid_argument("scale-up channel from port " + std::to_string(port) + " to itself");
  }
  if (!domain.port_at(port).channels.emplace(number, this)) {
    throw std::invalid_argument("scale-up channel " + std::to_string(number) + " of port " +
                                std::to_string(port) + " is in use");
  }
}

ScaleUpChannel::~ScaleUpChannel() { close(); }

void ScaleUpChannel::close() {
  if (!std::exchange(open_, false)) return;
  domain_.forget_terms(port_, number_);
  domain_.port_at(port_).channels.erase(number_);
}

void ScaleUpChannel::post_write(TimePs now, const uint8_t* data, uint64_t length_bytes,
                                uint64_t remote_address, uint32_t rkey, std::optional<uint32_t> immediate,
                                uint64_t work_id, bool as_length, uint8_t traffic_kind,
                                const SwitchedWrite& switched) {
  if (switched.terms == 0 || switched.terms > domain_.port_count()) {
    throw std::invalid_argument("a reduction of " + std::to_string(switched.terms) + " terms (valid: 1 to " +
                                std::to_string(domain_.port_count()) + ")");
  }
  const bool is_own = switched.is_to_itself;
  domain_.send(now, {.source = port_,
                     .destination = is_own ? port_ : peer_port_,
                     .channel = number_,
                     .peer_channel = is_own ? number_ : peer_number_,
                     .data = data,
                     .length_bytes = length_bytes,
                     .wire_bytes = wire_bytes(line_format_, length_bytes),
                     .remote_address = remote_address,
                     .rkey = rkey,
                     .immediate = is_own ? std::nullopt : immediate,
                     .work_id = work_id,
                     .posted_ps = now,
                     .as_length = as_length,
                     .traffic_kind = traffic_kind,
                     .switched = switched});
}

void ScaleUpChannel::post_read(TimePs now, uint8_t* target, uint64_t length_bytes, uint64_t remote_address,
                               uint32_t rkey, uint64_t work_id) {
  const uint32_t number = next_read_++;
  reads_.emplace(number, {target, length_bytes, work_id, now});
  try {
    domain_.send(now, {.kind = ScaleUpKind::kReadRequest,
                       .wants_data = target != nullptr,
                       .source = port_,
                       .destination = peer_port_,
                       .channel = number_,
                       .peer_channel = peer_number_,
                       .read = number,
                       .length_bytes = length_bytes,
                       .remote_address = remote_address,
                       .rkey = rkey,
                       .immediate = std::nullopt});
  } catch (...) {
    reads_.erase(number);  // too long for the wire
    throw;
  }
}

ScaleUpRead ScaleUpChannel::take_read(uint32_t number) {
  const ScaleUpRead* const found = reads_.find(number);
  if (found == nullptr) return {};
  const ScaleUpRead read = *found;
  reads_.erase(number);
  return read;
}

}  // namespace weft
