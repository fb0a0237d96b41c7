"""Where switches mark packets by default: it depends on the hosts' congestion controls."""

from __future__ import annotations

from collections.abc import Iterator

from weft.clocks.frame_sizes import int_md_bytes, write_frame_bytes
from weft.controller.features.ecn import DCQCN_SCALE, EcnScale, EcnSettings, SplitSettings
from weft.engine import congestion_control_kind
from weft.scenario import FabricOptions
from weft.topologies import FabricSpec
from weft.topologies.round_trips import loaded_round_trip_ps, slowest_configuration
from weft.traffic.extensions.native import engine_name
from weft.traffic.transport_settings import CongestionSettings


def ecn_settings(fabric: FabricSpec, options: FabricOptions) -> EcnSettings:
    """Return the thresholds of all data classes: those given, or those that fit the classes' congestion controls."""
    classes = options.scheduling.data_classes
    if (profile := options.ecn.profile) is not None:
        return EcnSettings(dict.fromkeys(classes, profile), options.ecn.at)
    transport = options.transport.settings()
    controls: dict[int, CongestionSettings] = {**dict.fromkeys(classes, transport), **transport.classes}
    scales = {each: _scale(fabric, options, control) for each, control in controls.items()}
    return EcnSettings(None, options.ecn.at, {each: scale for each, scale in scales.items() if scale != DCQCN_SCALE})


def marking_features(fabric: FabricSpec, options: FabricOptions) -> Iterator[object]:
    """Yield the controller's settings of ECN, and from which depth ports split segments."""
    marking = ecn_settings(fabric, options)
    yield marking
    yield SplitSettings(options.fidelity.has_segments, marking)


def _scale(fabric: FabricSpec, options: FabricOptions, control: CongestionSettings) -> EcnScale:
    native = engine_name(control.congestion_control)
    if native is None:
        return DCQCN_SCALE
    marks = congestion_control_kind(native).marks
    if marks.pmax == 0:
        return DCQCN_SCALE
    frame_bytes = write_frame_bytes(options, int_md_bytes(fabric, options))
    latency_ps = options.switching.latency
    slowest = slowest_configuration(fabric, frame_bytes, latency_ps)
    round_trip_ps = loaded_round_trip_ps(slowest, frame_bytes, latency_ps) + options.adapters_round_trip_ps(
        options.mtu_bytes
    )
    return EcnScale(
        kmin_ps=round(marks.kmin_round_trips * round_trip_ps),
        kmax_ps=round(marks.kmax_round_trips * round_trip_ps),
        pmax=marks.pmax,
        least_bytes=frame_bytes,
    )
