// What each part of the engine adds to the Python module engine._core.
#pragma once

#include <pybind11/pybind11.h>

namespace weft {

void bind_core(pybind11::module_& m);           // clock, events, nodes, captures
void bind_partitions(pybind11::module_& m);     // engines of one clock
void bind_memory(pybind11::module_& m);         // a switch's shared buffer, flow control
void bind_ports(pybind11::module_& m);          // links, transmit ports, packet sockets
void bind_switch(pybind11::module_& m);         // the v1model switch runtime
void bind_transport(pybind11::module_& m);      // RoCEv2 codec, NIC, completions
void bind_queue_pair(pybind11::module_& m);     // queue pairs
void bind_unreliable(pybind11::module_& m);     // queue pairs of UC and UD
void bind_congestion(pybind11::module_& m);     // congestion controls
void bind_collective(pybind11::module_& m);     // schedules of collectives, aggregation client
void bind_lane_schedule(pybind11::module_& m);  // schedules of lanes
void bind_elements(pybind11::module_& m);       // elements of all types, as kernels and lanes
void bind_jobs(pybind11::module_& m);           // operations of jobs
void bind_fast_forward(pybind11::module_& m);   // operations that are repeated
void bind_probe(pybind11::module_& m);          // what a run is observed by
void bind_hop_latencies(pybind11::module_& m);  // what packets have met at each hop
void bind_tcp(pybind11::module_& m);            // TCP connections without I/O
void bind_verbs(pybind11::module_& m);          // clients of a NIC by verbs
void bind_virtual_time(pybind11::module_& m);   // processes that live in a run's time
void bind_packet_conservation(pybind11::module_& m);
void bind_record_types(pybind11::module_& m);  // of the dictionaries that the others return

}  // namespace weft
