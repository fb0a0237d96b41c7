// What the parts of Python's view of a switch share (bind_switch*.cpp).
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>

#include "python/bindings_support.hpp"
#include "switch/switch.hpp"

namespace weft {

using SwitchClass = pybind11::class_<Switch, Node, std::shared_ptr<Switch>>;

void bind_switch_tables(SwitchClass& cls);           // entries, their counters and meters
void bind_switch_action_profiles(SwitchClass& cls);  // members and groups
void bind_switch_arrays(SwitchClass& cls);           // registers, counters, meters, value sets
void bind_switch_packets(SwitchClass& cls);          // replication, packets, stream events, traces

}  // namespace weft
