#include "hosts/nic.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "hosts/class_turns.hpp"
#include "hosts/ip/ip_formats.hpp"
#include "hosts/notified_senders.hpp"
#include "hosts/uet/credit_pacer.hpp"
#include "hosts/uet/pdc_table.hpp"
#include "links/pcap_writer.hpp"
#include "memory/prefetch.hpp"
#include "memory/ring_buffer.hpp"
#include "observe/probe.hpp"
#include "packets/psn.hpp"
#include "packets/uet_frame.hpp"
#include "time/partition.hpp"

namespace weft {
namespace {

bool is_group_mac(const roce::MacAddress& mac) { return (mac[0] & 1) != 0; }

}  // namespace

const char* nic_drop_name(NicDrop drop) {
  switch (drop) {
    case NicDrop::kForeignMac:
      return "foreign_mac";
    case NicDrop::kForeignAddress:
      return "foreign_address";
    case NicDrop::kUnknownQueuePair:
      return "unknown_queue_pair";
    case NicDrop::kCount:
      break;
  }
  return "unknown";
}

// A queue pair and its place in its port's turns.
struct Nic::Attachment final : InCacheLines, Waker {
  Attachment(Nic& nic_, QueuePair& queue_pair_, Port& port_)
      : nic(nic_),
        queue_pair(queue_pair_),
        port(port_),
        data_class(queue_pair.data_class()),
        goes_first(queue_pair.goes_first()),
        timer(nic.engine_.events(), member_action<&Attachment::on_timer>(this)) {
    queue_pair.set_waker(this);
    queue_pair.set_recovery_times(&nic.recovery_times_);
  }
  // Before what it keeps is destroyed.
  ~Attachment() override {
    queue_pair.set_waker(nullptr);
    queue_pair.set_recovery_times(nullptr);
  }

  void wake() override;
  void forget() override { nic.detach(queue_pair); }
  void on_timer();
  void arm_timer();

  Nic& nic;
  QueuePair& queue_pair;
  Port& port;
  const int data_class;
  const bool goes_first;
  Timer timer;
  std::vector<uint32_t> numbers;
  std::optional<uint32_t> leg_of;  // by the number of the whole queue pair
  std::shared_ptr<QueuePair> kept;
  size_t place = 0;  // in attached_
  bool in_control_turns = false;
  bool in_data_turns = false;
};

struct Nic::Port final : InCacheLines, PacketSource, NicDma::Client {
  Port(Nic& nic_, NicPortConfig config_, TransmitPort& transmit_)
      : nic(nic_),
        engine(nic_.engine_),
        config(std::move(config_)),
        addresses(config.addresses.begin(), config.addresses.end()),
        transmit(transmit_),
        sending(transmit.config().quantum_bytes),
        fetching(transmit.config().quantum_bytes) {
    if (config.ways.any()) own_dma = std::make_unique<NicDma>(nic.engine_, nic.config_, config.ways);
    dma = own_dma != nullptr ? own_dma.get() : nic.dma_.get();
    if (dma != nullptr) dma_port = dma->add_port(*this, transmit.rate_bps());
  }

  PacketPtr pull(TimePs now, int& priority_class) override;
  PacketPtr pull_before(int sending_class, TimePs now, int& priority_class) override;
  PacketPtr pull_control(TimePs now);
  bool may_have_packets() const override {
    return !control_turns.empty() || classes_with_data != 0 || dma != nullptr;
  }
  PacketPtr next_data(TimePs now, uint32_t classes, int& priority_class, PulledPacket& pulled) override {
    return next_data(fetching, now, classes, priority_class, pulled);
  }
  void on_fetched() override { transmit.kick(); }
  void on_placed(const roce::ParsedPacket& packet) override;
  // Queue pairs may have something to send.
  void start() {
    if (dma != nullptr) dma->fetch();
    transmit.kick();
  }
  void on_blocked_classes(uint32_t blocked_classes_) override { blocked_classes = blocked_classes_; }
  bool is_blocked(int priority_class) const { return (blocked_classes >> priority_class & 1u) != 0; }
  PacketPtr next_data(ClassTurns& turns, TimePs now, uint32_t classes, int& priority_class,
                      PulledPacket& pulled);
  PacketPtr next_of_class(TimePs now, int priority_class, PulledPacket& pulled);
  PacketPtr next_fetched(TimePs now, int& priority_class);
  void want_turns(Attachment& attachment);
  void queue_data_turn(Attachment& attachment);
  void forget(Attachment& attachment);
  bool owns(const roce::IpAddress& address) const {
    return std::find(addresses.begin(), addresses.end(), address) != addresses.end();
  }
  void drop(NicDrop reason, const Packet& packet) {
    counters.drops[static_cast<size_t>(reason)] += packet.packets();
    report_dropped(static_cast<size_t>(reason), packet);
  }
  void drop(roce::ParseError error, const Packet& packet) {
    counters.parse_errors[static_cast<size_t>(error)] += packet.packets();
    report_dropped(kFirstParseErrorDrop + static_cast<size_t>(error), packet);
  }
  void report_dropped(size_t reason, const Packet& packet) {
    engine.conservation().drop(DropPlace::kNic, reason, packet.traffic());
    if (Probe* probe = engine.probe())
      probe->dropped(&transmit, DropPlace::kNic, reason, packet.wire_bytes(), -1);
  }

  Nic& nic;
  Engine& engine;
  std::unique_ptr<NicDma> own_dma;
  NicDma* dma = nullptr;
  size_t dma_port = 0;
  NicPortConfig config;
  const CacheLineVector<roce::IpAddress> addresses;  // the configuration's, where packets pass
  TransmitPort& transmit;
  NicPortCounters counters;
  RingBuffer<Attachment*> control_turns;
  uint32_t classes_with_data = 0;  // bit per class in which queue pairs take turns
  // The control class's have clearances to send (ScheduleExecutor::clear_to_send).
  std::array<RingBuffer<Attachment*>, roce::kControlClass + 1> data_turns;
  ClassTurns sending;
  ClassTurns fetching;  // from memory
  std::vector<std::pair<roce::IpAddress, Attachment*>> groups;
  std::unordered_map<uint32_t, Attachment*> legs;  // by number of their queue pairs
  std::shared_ptr<PcapWriter> capture;
  std::shared_ptr<uet::CreditPacer> pacer;
  uint32_t blocked_classes = 0;
  bool dispatching = false;  // a queue pair is at work; the transmit is kicked when it is done
};

void Nic::Attachment::wake() {
  port.want_turns(*this);
  if (!port.dispatching) {
    port.start();
    arm_timer();
  }
}

void Nic::Attachment::on_timer() {
  const TimePs now = port.engine.now();
  if (now >= queue_pair.next_deadline()) {
    const bool outer = std::exchange(port.dispatching, true);
    queue_pair.on_deadline(now);
    port.dispatching = outer;
    port.want_turns(*this);
    port.start();
  }
  arm_timer();
}

// Deadlines mostly move away (each acknowledgement postpones the timeout), so an armed timer is left alone
// unless it would be late; on_timer() finds out how much is left.
void Nic::Attachment::arm_timer() {
  const TimePs deadline = queue_pair.next_deadline();
  if (deadline == kNever) return;
  if (!timer.armed() || deadline < timer.deadline()) timer.arm(deadline);
}

void Nic::Port::want_turns(Attachment& attachment) {
  if (!attachment.in_control_turns && attachment.queue_pair.may_have_control()) {
    attachment.in_control_turns = true;
    control_turns.push(&attachment);
  }
  if (!attachment.in_data_turns && attachment.queue_pair.may_have_data()) {
    attachment.in_data_turns = true;
    queue_data_turn(attachment);
    classes_with_data |= 1u << attachment.data_class;
  }
}

void Nic::Port::queue_data_turn(Attachment& attachment) {
  RingBuffer<Attachment*>& turns = data_turns[static_cast<size_t>(attachment.data_class)];
  attachment.goes_first ? turns.push_front(&attachment) : turns.push(&attachment);
}

void Nic::Port::forget(Attachment& attachment) {
  control_turns.erase(&attachment);
  RingBuffer<Attachment*>& turns = data_turns[static_cast<size_t>(attachment.data_class)];
  turns.erase(&attachment);
  if (turns.empty()) classes_with_data &= ~(1u << attachment.data_class);
  std::erase_if(groups, [&](const auto& group) { return group.second == &attachment; });
  if (attachment.leg_of) legs.erase(*attachment.leg_of);
}

// Acknowledgements and CNPs first, then data, class by class as at any port, and in a class one packet of
// each queue pair in turn, but for those that keep to a rate they have been promised, which go first. Who has
// nothing to send leaves the turns until it wakes.
PacketPtr Nic::Port::pull(TimePs now, int& priority_class) {
  priority_class = roce::kControlClass;
  if (PacketPtr packet = pull_control(now)) return packet;
  if (dma != nullptr) return next_fetched(now, priority_class);
  PulledPacket pulled;
  return next_data(sending, now, ~blocked_classes, priority_class, pulled);
}

PacketPtr Nic::Port::pull_before(int sending_class, TimePs now, int& priority_class) {
  priority_class = roce::kControlClass;
  return sending_class < roce::kControlClass ? pull_control(now) : nullptr;
}

PacketPtr Nic::Port::pull_control(TimePs now) {
  while (!control_turns.empty() && !is_blocked(roce::kControlClass)) {
    Attachment& attachment = *control_turns.front();
    PacketPtr packet = attachment.queue_pair.pull_control(now);
    if (packet == nullptr || !attachment.queue_pair.may_have_control()) {
      control_turns.pop();
      attachment.in_control_turns = false;
    }
    if (packet != nullptr) return packet;
  }
  return nullptr;
}

PacketPtr Nic::Port::next_fetched(TimePs now, int& priority_class) {
  const uint32_t ready = dma->ready_classes(dma_port, now) & ~blocked_classes;
  if (ready == 0) return nullptr;
  priority_class = sending.next(ready);
  PacketPtr packet = dma->take(dma_port, priority_class);
  const bool has_more = (dma->ready_classes(dma_port, now) >> priority_class & 1u) != 0;
  sending.sent(priority_class, packet->wire_bytes(), has_more);
  return packet;
}

PacketPtr Nic::Port::next_data(ClassTurns& turns, TimePs now, uint32_t classes, int& priority_class,
                               PulledPacket& pulled) {
  while (const uint32_t ready = classes_with_data & classes) {
    priority_class = turns.next(ready);
    PacketPtr packet = next_of_class(now, priority_class, pulled);
    const bool has_more = (classes_with_data >> priority_class & 1u) != 0;
    turns.sent(priority_class, packet == nullptr ? 0 : packet->wire_bytes(), has_more);
    if (packet != nullptr) return packet;
  }
  return nullptr;
}

PacketPtr Nic::Port::next_of_class(TimePs now, int priority_class, PulledPacket& pulled) {
  RingBuffer<Attachment*>& turns = data_turns[static_cast<size_t>(priority_class)];
  PacketPtr packet;
  while (packet == nullptr && !turns.empty()) {
    Attachment& attachment = *turns.pop();
    packet = attachment.queue_pair.pull(now);
    attachment.arm_timer();
    attachment.in_data_turns = packet != nullptr && attachment.queue_pair.may_have_data();
    if (attachment.in_data_turns) queue_data_turn(attachment);
    if (packet != nullptr) pulled = attachment.queue_pair.last_pulled();
  }
  if (turns.empty()) classes_with_data &= ~(1u << priority_class);
  return packet;
}

Nic::Nic(Engine& engine, std::string name, const NicConfig& config)
    : engine_(engine), name_(std::move(name)), entropy_seed_(config.entropy_seed), config_(config) {
  if (config.takes_time()) dma_ = std::make_unique<NicDma>(engine, config);
  if (engine.partition() != nullptr) engine.partition()->add_visited({this, &Nic::fetch});
}

void Nic::fetch(const void* nic, PrefetchStep step) {
  // More than that are not all at work at once.
  constexpr size_t kFew = 32;
  const auto& self = *static_cast<const Nic*>(nic);
  const bool few = self.attached_.size() <= kFew;
  if (step == PrefetchStep::kObject) prefetch<CacheLevel::kSecond>(nic, sizeof(Nic));
  if (step == PrefetchStep::kOneAway) {
    prefetch<CacheLevel::kSecond>(self.ports_.data(), self.ports_.size() * sizeof(self.ports_[0]));
    self.by_number_.fetch();
    if (few)
      prefetch<CacheLevel::kSecond>(self.attached_.data(), self.attached_.size() * sizeof(Attachment*));
  }
  if (step == PrefetchStep::kTwoAway)
    for (const auto& port : self.ports_) prefetch<CacheLevel::kSecond>(port.get(), sizeof(Port));
  if (step == PrefetchStep::kThreeAway)
    for (const auto& port : self.ports_)
      prefetch<CacheLevel::kSecond>(port->addresses.data(), port->addresses.size() * sizeof(roce::IpAddress));
  if (step < PrefetchStep::kTwoAway || !few) return;
  for (const Attachment* attachment : self.attached_) {
    if (step == PrefetchStep::kTwoAway) prefetch<CacheLevel::kSecond>(attachment, sizeof(Attachment));
    if (step == PrefetchStep::kThreeAway)
      prefetch<CacheLevel::kSecond>(&attachment->queue_pair, sizeof(QueuePair));
    if (step >= PrefetchStep::kFourAway) attachment->queue_pair.fetch(step - PrefetchStep::kFourAway);
  }
}

// One after the other: a queue pair that the NIC keeps goes with its attachment, and has legs.
Nic::~Nic() {
  port_watchers_.clear();
  while (!attached_.empty()) detach(attached_.back()->queue_pair);
}

QueuePair* Nic::find(uint32_t number) const {
  const Attachment* found = by_number_.find(number);
  return found == nullptr ? nullptr : &found->queue_pair;
}

bool Nic::is_port_up(int port) const { return port_at(port).transmit.is_up(); }

void Nic::set_port_up(int port, bool up) {
  TransmitPort& transmit = port_at(port).transmit;
  if (transmit.is_up() == up) return;
  transmit.set_up(up);
  for (PortWatcher* watcher : port_watchers_) watcher->on_port(port, up);
}

int Nic::add_port(NicPortConfig config, TransmitPort& transmit) {
  if (&transmit.engine() != &engine_)
    throw std::invalid_argument("NIC '" + name_ + "': the transmit port is of another engine");
  ports_.push_back(std::make_unique<Port>(*this, std::move(config), transmit));
  transmit.set_source(ports_.back().get());
  return static_cast<int>(ports_.size()) - 1;
}

Nic::Port& Nic::port_at(int port) { return const_cast<Port&>(std::as_const(*this).port_at(port)); }

const Nic::Port& Nic::port_at(int port) const {
  if (port < 0 || static_cast<size_t>(port) >= ports_.size()) {
    throw std::invalid_argument("NIC '" + name_ + "' has no port " + std::to_string(port) + " (it has " +
                                std::to_string(ports_.size()) + ", from 0)");
  }
  return *ports_[static_cast<size_t>(port)];
}

const NicPortConfig& Nic::port_config(int port) const { return port_at(port).config; }

uint64_t Nic::line_rate_bps(int port) const { return port_at(port).transmit.rate_bps(); }

const roce::IpAddress& Nic::own_address(int port, const roce::IpAddress& peer) const {
  const std::vector<roce::IpAddress>& addresses = port_at(port).config.addresses;
  const auto found = std::find_if(addresses.begin(), addresses.end(),
                                  [&](const auto& address) { return address.is_ipv6 == peer.is_ipv6; });
  if (found == addresses.end()) {
    throw std::invalid_argument("NIC '" + name_ + "': port " + std::to_string(port) + " has no " +
                                (peer.is_ipv6 ? "IPv6" : "IPv4") + " address, which its peer has");
  }
  return *found;
}

uint32_t Nic::allocate_queue_pair_number() {
  while (by_number_.find(next_number_) != nullptr) ++next_number_;
  if (next_number_ >= roce::kAggregationQueuePair) {
    throw std::invalid_argument("NIC '" + name_ + "' has no queue pair numbers left");
  }
  return next_number_++;
}

Nic::Attachment& Nic::attachment_for(QueuePair& queue_pair, int port) {
  Port& at = port_at(port);
  auto& attachment = attachments_[&queue_pair];
  if (attachment == nullptr) {
    attachment = std::make_unique<Attachment>(*this, queue_pair, at);
    attachment->place = attached_.size();
    attached_.push_back(attachment.get());
    if (notified_ != nullptr) notified_->add(*attachment);
  }
  if (&attachment->port != &at) {
    throw std::invalid_argument("NIC '" + name_ + "': the queue pair is attached to another port than " +
                                std::to_string(port));
  }
  return *attachment;
}

void Nic::attach(QueuePair& queue_pair, int port, uint32_t number) {
  if (number > kPsnMask || by_number_.find(number) != nullptr) {
    throw std::invalid_argument("NIC '" + name_ + "': queue pair number " + std::to_string(number) +
                                (number > kPsnMask ? " has more than 24 bits" : " is in use"));
  }
  Attachment& attachment = attachment_for(queue_pair, port);
  by_number_.insert(number, &attachment);
  attachment.numbers.push_back(number);
  attachment.wake();
}

void Nic::attach_leg(QueuePair& leg, int port, uint32_t number) {
  Port& at = port_at(port);
  const Attachment* first = by_number_.find(number);
  const bool taken = at.legs.contains(number);
  if (first == nullptr || &first->port == &at || taken) {
    throw std::invalid_argument("NIC '" + name_ + "': port " + std::to_string(port) +
                                " cannot have a leg of queue pair " + std::to_string(number) +
                                (first == nullptr ? ", which is attached nowhere" : ", which it has"));
  }
  Attachment& attachment = attachment_for(leg, port);
  at.legs.emplace(number, &attachment);
  attachment.leg_of = number;
  attachment.wake();
}

void Nic::attach_group(QueuePair& queue_pair, int port, const roce::IpAddress& group) {
  auto& groups = port_at(port).groups;
  if (std::any_of(groups.begin(), groups.end(), [&](const auto& other) { return other.first == group; })) {
    throw std::invalid_argument("NIC '" + name_ + "': port " + std::to_string(port) +
                                " already delivers this group to a queue pair");
  }
  Attachment& attachment = attachment_for(queue_pair, port);
  groups.emplace_back(group, &attachment);
  attachment.wake();
}

void Nic::attach_sender(QueuePair& sender, int port) { attachment_for(sender, port).wake(); }

void Nic::keep(std::shared_ptr<QueuePair> queue_pair) {
  const auto found = attachments_.find(queue_pair.get());
  if (found == attachments_.end()) {
    throw std::invalid_argument("NIC '" + name_ + "': the queue pair is not attached");
  }
  found->second->kept = std::move(queue_pair);
}

void Nic::detach(QueuePair& queue_pair) {
  const auto found = attachments_.find(&queue_pair);
  if (found == attachments_.end()) {
    throw std::invalid_argument("NIC '" + name_ + "': the queue pair is not attached");
  }
  Attachment* attachment = found->second.get();
  attachment->port.forget(*attachment);
  for (const uint32_t number : attachment->numbers) {
    by_number_.erase(number);
    for (const auto& port : ports_) {
      const auto leg = port->legs.find(number);
      if (leg != port->legs.end()) detach(leg->second->queue_pair);
    }
  }
  if (notified_ != nullptr) notified_->remove(*attachment);
  attached_.back()->place = attachment->place;
  attached_[attachment->place] = attached_.back();
  attached_.pop_back();
  attachments_.erase(found);
}

Nic::Attachment* Nic::find_receiver(Port& port, const roce::ParsedPacket& packet, NicDrop& reason) {
  reason = NicDrop::kForeignAddress;
  if (packet.bth.destination_qp == roce::kMulticastQueuePair) {
    for (const auto& [group, attachment] : port.groups) {
      if (group == packet.destination_ip) return attachment;
    }
    return nullptr;
  }
  if (!port.owns(packet.destination_ip)) return nullptr;
  reason = NicDrop::kUnknownQueuePair;
  Attachment* attachment = by_number_.find(packet.bth.destination_qp);
  if (attachment != nullptr && &attachment->port == &port) [[likely]]
    return attachment;
  const auto leg = port.legs.find(packet.bth.destination_qp);
  return leg == port.legs.end() ? nullptr : leg->second;
}

// Inlined where RoCEv2's packets pass.
[[gnu::always_inline]] inline void Nic::deliver(Port& port, PacketPtr& packet,
                                                const roce::ParsedPacket& parsed) {
  if (parsed.destination_mac != port.config.mac && !is_group_mac(parsed.destination_mac)) {
    port.drop(NicDrop::kForeignMac, *packet);
    return;
  }
  NicDrop reason{};
  Attachment* attachment = find_receiver(port, parsed, reason);
  if (attachment == nullptr) {
    port.drop(reason, *packet);
    return;
  }
  const TrafficCounter traffic = packet->traffic();
  port.counters.received_packets += traffic.packets;
  port.counters.received_bytes += traffic.bytes;
  engine_.conservation().leave(PacketEnd::kDelivered, traffic);
  if (port.dma != nullptr && parsed.payload_bytes > 0) {
    port.dma->deliver(port.dma_port, std::move(packet), parsed);
  } else {
    hand_over(port, *attachment, parsed);
  }
}

void Nic::receive(int port_number, PacketPtr packet) {
  Port& port = port_at(port_number);
  if (port.capture != nullptr) port.capture->write(engine_.now(), *packet, CaptureDirection::kInbound);
  roce::ParsedPacket parsed;
  const roce::ParseError error = roce::parse_packet(*packet, parsed);
  if (error != roce::ParseError::kNone) {
    receive_other(port, port_number, std::move(packet), error);
    return;
  }
  deliver(port, packet, parsed);
}

void Nic::receive_other(Port& port, int number, PacketPtr packet, roce::ParseError error) {
  if (pdcs_ != nullptr && receive_uet(port, packet)) return;
  // The codec refuses some frames before it sees that they are not RoCEv2's: with IPv4 options, for one.
  if (error == roce::ParseError::kNotRoce ||
      (non_roce_receiver_ != nullptr && !ip::is_meant_for_roce(packet->bytes())))
    receive_non_roce(port, number, std::move(packet));
  else
    port.drop(error, *packet);
}

// Takes a packet that is UET's, and returns whether it is.
bool Nic::receive_uet(Port& port, PacketPtr& packet) {
  roce::ParsedPacket parsed;
  uet::Destination to;
  const roce::ParseError error = uet::parse_frame(*packet, parsed, to);
  if (error == roce::ParseError::kNotRoce) return false;
  if (error != roce::ParseError::kNone) {
    port.drop(error, *packet);
    return true;
  }
  parsed.bth.destination_qp = pdcs_->queue_pair_of(to);
  // Queue pairs of other transports would take it for one of theirs.
  if (!pdcs_->has_queue_pair(parsed.bth.destination_qp))
    port.drop(NicDrop::kUnknownQueuePair, *packet);
  else
    deliver(port, packet, parsed);
  return true;
}

const std::shared_ptr<uet::PdcTable>& Nic::pdcs() {
  if (pdcs_ == nullptr) pdcs_ = std::make_shared<uet::PdcTable>();
  return pdcs_;
}

void Nic::receive_non_roce(Port& port, int number, PacketPtr packet) {
  port.counters.not_roce_packets += packet->packets();
  if (non_roce_receiver_ != nullptr) {
    non_roce_receiver_->receive_non_roce(number, std::move(packet));
    return;
  }
  const auto reason = static_cast<size_t>(roce::ParseError::kNotRoce);
  engine_.conservation().drop(DropPlace::kNic, kFirstParseErrorDrop + reason, packet->traffic());
}

template <class Work>
inline void Nic::let_work(Port& port, Attachment& attachment, Work&& work) {
  const bool outer = std::exchange(port.dispatching, true);
  work(attachment.queue_pair);
  port.dispatching = outer;
  port.want_turns(attachment);
  if (!outer) port.start();
  attachment.arm_timer();
}

void Nic::hand_over(Port& port, Attachment& attachment, const roce::ParsedPacket& packet) {
  let_work(port, attachment, [&](QueuePair& queue_pair) { queue_pair.on_packet(engine_.now(), packet); });
}

bool Nic::notify(int number, const roce::IpAddress& peer, const switch_notification::Header& header) {
  Port& port = port_at(number);
  if (notified_ == nullptr) {
    notified_ = std::make_unique<NotifiedSenders<Attachment>>();
    for (Attachment* each : attached_) notified_->add(*each);
  }
  Attachment* const found = notified_->find({peer, header.queue_pair}, port);
  if (found == nullptr) return false;
  let_work(port, *found,
           [&](QueuePair& queue_pair) { queue_pair.on_switch_notification(engine_.now(), header); });
  return true;
}

std::shared_ptr<uet::CreditPacer> Nic::credit_pacer(int number) {
  Port& port = port_at(number);
  if (port.pacer == nullptr) port.pacer = std::make_shared<uet::CreditPacer>(engine_, port.transmit);
  return port.pacer;
}

// Meanwhile its queue pair may have gone; the packet has been delivered all the same.
void Nic::Port::on_placed(const roce::ParsedPacket& packet) {
  NicDrop reason{};
  if (Attachment* attachment = nic.find_receiver(*this, packet, reason))
    nic.hand_over(*this, *attachment, packet);
  else
    counters.drops[static_cast<size_t>(reason)] += packet.packets;
}

const NicPortCounters& Nic::counters(int port) const { return port_at(port).counters; }

uint64_t Nic::most_waiting_bytes(int port) const {
  const NicDma* dma = port_at(port).dma;
  return dma == nullptr ? 0 : dma->most_waiting_bytes();
}

void Nic::reset_counters() {
  for (const auto& port : ports_) {
    port->counters = NicPortCounters();
    if (port->dma != nullptr) port->dma->reset_most_waiting();
  }
}

void Nic::set_capture(int port_number, std::shared_ptr<PcapWriter> capture) {
  Port& port = port_at(port_number);
  port.transmit.set_capture(capture);
  port.capture = std::move(capture);
}

}  // namespace weft
