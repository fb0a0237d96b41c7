#include "hosts/applications/udp_source.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "hosts/ip/ip_formats.hpp"

namespace weft {
namespace {

constexpr TimePs kFirstEndTimeout = 1'000'000'000;

[[noreturn]] void refuse(const std::string& problem) {
  throw std::invalid_argument("UDP source: " + problem);
}

const UdpSourceConfig& checked(const UdpSourceConfig& config) {
  const size_t least =
      ip::header_bytes(config.destination.is_ipv6) + ip::kUdpBytes + UdpDatagramHeader::kBytes;
  if (config.packet_bytes < least)
    refuse("packets of " + std::to_string(config.packet_bytes) + " B (valid: from " + std::to_string(least) +
           ")");
  if (config.rate_bps == 0 || config.duration_ps <= 0) refuse("rate_bps and duration_ps must be above 0");
  if (config.bursts != BurstDistribution::kNone && (config.mean_on_ps <= 0 || config.mean_off_ps <= 0))
    refuse("mean_on_ps and mean_off_ps must be above 0");
  if (config.bursts == BurstDistribution::kPareto && !(config.pareto_shape > 1))
    refuse("pareto_shape must be above 1");
  if (config.dscp > 63 || config.ecn > 3) refuse("dscp is 0 to 63, ecn 0 to 3");
  return config;
}

}  // namespace

UdpSource::UdpSource(IpStack& stack, ScheduleExecutor& executor, const UdpSourceConfig& config)
    : Application(stack, executor),
      config_(checked(config)),
      own_port_(stack.bind_udp(0, *this)),
      rate_(config.rate_bps),
      rng_(stack.engine().stream(config.stream)),
      payload_bytes_(config.packet_bytes - ip::header_bytes(config.destination.is_ipv6) - ip::kUdpBytes) {
  progress().node_count = 1;
}

// By inversion. A Pareto distribution of shape a and mean m begins at m (a - 1) / a.
TimePs UdpSource::draw(TimePs mean_ps) {
  const double mean = static_cast<double>(mean_ps);
  const double left = 1.0 - rng_.uniform();
  const double shape = config_.pareto_shape;
  const double drawn = config_.bursts == BurstDistribution::kPareto
                           ? mean * (shape - 1) / shape * std::pow(left, -1 / shape)
                           : -mean * std::log(left);
  return std::max<TimePs>(1, static_cast<TimePs>(std::min(drawn, static_cast<double>(config_.duration_ps))));
}

void UdpSource::begin(TimePs now) {
  stop_ps_ = now + config_.duration_ps;
  if (config_.bursts != BurstDistribution::kNone) on_until_ps_ = now + draw(config_.mean_on_ps);
  send_data(now);
}

void UdpSource::on_timer(TimePs now) {
  if (now < stop_ps_)
    send_data(now);
  else
    send_end(now);
}

void UdpSource::send_data(TimePs now) {
  if (!send(now, UdpDatagramKind::kData, payload_bytes_)) ++not_sent_packets_;
  ++sequence_;
  TimePs next_ps = now + rate_.serialisation_ps(config_.packet_bytes + ip::kEthernetBytes);
  // Silence takes nothing of the time between two datagrams, so that bursts have their share of the rate.
  while (next_ps >= on_until_ps_ && next_ps < stop_ps_) {
    const TimePs left_ps = next_ps - on_until_ps_;
    const TimePs next_on_ps = on_until_ps_ + draw(config_.mean_off_ps);
    on_until_ps_ = next_on_ps + draw(config_.mean_on_ps);
    next_ps = next_on_ps + left_ps;
  }
  arm(std::min(next_ps, stop_ps_));
}

void UdpSource::send_end(TimePs now) {
  if (ends_ == kMostEnds) {
    stack().withdraw_udp(own_port_);
    ++progress().nodes_done;
    return finish();
  }
  send(now, UdpDatagramKind::kEnd, UdpDatagramHeader::kBytes);
  arm(now + (kFirstEndTimeout << std::min(ends_, 10)));
  ++ends_;
}

bool UdpSource::send(TimePs now, UdpDatagramKind kind, size_t payload_bytes) {
  PacketPtr payload = stack().allocate(UdpDatagramHeader::kBytes);
  UdpDatagramHeader{sequence_, now, kind}.write(payload->data());
  if (payload_bytes > UdpDatagramHeader::kBytes)
    payload->append_virtual(payload_bytes - UdpDatagramHeader::kBytes);
  IpHeader header;
  header.destination = config_.destination;
  header.dscp = config_.dscp;
  header.ecn = config_.ecn;
  return stack().send_udp(header, own_port_, config_.port, std::move(payload));
}

void UdpSource::on_datagram(TimePs /*now*/, const Datagram& datagram) {
  const std::optional<UdpDatagramHeader> header = UdpDatagramHeader::read(datagram.payload);
  if (!is_running() || ends_ == 0 || !header || header->kind != UdpDatagramKind::kEndHeard ||
      datagram.packet.source != config_.destination)
    return;
  was_confirmed_ = true;
  ++progress().nodes_done;
  finish();
}

// A kernel's refusals are not looked at, as the datagram has left the host: only its own.
void UdpSource::on_error(TimePs /*now*/, const IcmpError& error) {
  if (!error.is_unsent || error.payload.size() < ip::kUdpBytes) return;
  const std::optional<UdpDatagramHeader> header =
      UdpDatagramHeader::read(error.payload.subspan(ip::kUdpBytes));
  if (header && header->kind == UdpDatagramKind::kData) ++not_sent_packets_;
}

}  // namespace weft
