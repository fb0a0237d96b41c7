// The Python module engine._core. Each part of the engine binds itself in its own bind_*.cpp.

#include <pybind11/pybind11.h>

#include "python/bind_cm.hpp"
#include "python/bind_flows.hpp"
#include "python/bind_ip.hpp"
#include "python/bind_services.hpp"
#include "python/bindings.hpp"

PYBIND11_MODULE(_core, m) {
  m.doc() = "Weft's native engine: clock, events, links, queues, packet I/O, switch runtime and transports.";
  weft::bind_core(m);
  weft::bind_partitions(m);
  weft::bind_memory(m);
  weft::bind_ports(m);
  weft::bind_switch(m);
  weft::bind_congestion(m);
  weft::bind_host_links(m);  // signatures of NICs name them
  weft::bind_transport(m);
  weft::bind_hop_latencies(m);
  weft::bind_queue_pair(m);
  weft::bind_unreliable(m);
  weft::bind_virtual_time(m);
  weft::bind_verbs(m);
  weft::bind_scale_up(m);
  weft::bind_fast_forward(m);
  weft::bind_collective(m);
  weft::bind_flows(m);
  weft::bind_services(m);
  weft::bind_ip(m);
  weft::bind_applications(m);
  weft::bind_parameters(m);
  weft::bind_cm(m);
  weft::bind_probe(m);
  weft::bind_tcp(m);
  weft::bind_tcp_flows(m);
  weft::bind_packet_conservation(m);
  weft::bind_record_types(m);
}
