// How Python makes queue pairs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "hosts/nic.hpp"
#include "hosts/queue_pair.hpp"
#include "hosts/rc_config.hpp"
#include "python/bind_codec.hpp"
#include "python/bindings_support.hpp"
#include "python/registered_memory.hpp"

namespace weft {

// What queue pairs that Python makes have beyond those that native code makes: they know the engine, whose
// lock and time every call needs, and keep their handler and their domain alive.
class MadeByPython {
 public:
  MadeByPython(Nic& nic, std::shared_ptr<CompletionHandler> handler,
               std::shared_ptr<MemoryDomain> domain = nullptr)
      : engine_(nic.engine()), handler_(std::move(handler)), domain_(std::move(domain)) {}
  virtual ~MadeByPython() = default;

  static Engine& engine_of(const QueuePair& queue_pair) {
    const auto* made_here = dynamic_cast<const MadeByPython*>(&queue_pair);
    if (made_here == nullptr) throw std::logic_error("this queue pair belongs to native code");
    return made_here->engine_;
  }

 private:
  Engine& engine_;
  std::shared_ptr<CompletionHandler> handler_;
  std::shared_ptr<MemoryDomain> domain_;  // null: the NIC's first
};

// Numbers and addresses of a queue pair at a port of a NIC.
inline void set_ends(RcConfig& config, Nic& nic, int port, std::optional<uint32_t> queue_pair,
                     uint32_t remote_queue_pair, const std::string& destination_mac,
                     const std::string& destination_ip) {
  config.queue_pair = queue_pair ? *queue_pair : nic.allocate_queue_pair_number();
  config.remote_queue_pair = remote_queue_pair;
  config.source_mac = nic.port_config(port).mac;
  config.destination_mac = parse_mac(destination_mac);
  config.destination_ip = parse_ip(destination_ip);
  config.source_ip = nic.own_address(port, config.destination_ip);
  config.line_rate_bps = nic.line_rate_bps(port);
}

inline uint16_t source_udp_port_of(const Nic& nic, const RcConfig& config, std::optional<uint16_t> given) {
  return given.value_or(entropy_udp_port(nic.entropy_seed(), config.source_ip, config.destination_ip,
                                         config.queue_pair, config.remote_queue_pair));
}

// Python may have the last reference, while the engine's thread is at work.
template <class Base, class Made>
std::shared_ptr<Base> released_under_lock(std::shared_ptr<Made> made, Engine& engine) {
  Base* queue_pair_made = made.get();
  return {queue_pair_made, [made = std::move(made), &engine](Base*) mutable {
            PythonGuard last(engine);
            made.reset();
          }};
}

}  // namespace weft
