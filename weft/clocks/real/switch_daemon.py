"""The process that runs all embedded switches of a lab."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from weft.clocks.switch_configs import links_between_switches
from weft.errors import EnvironmentLacksError
from weft.scenario.options import FabricOptions
from weft.switch.daemon.config import DaemonConfig, SwitchConfig
from weft.switch.daemon.process import EXIT_ENVIRONMENT
from weft.switch.daemon.stats import SwitchesStats
from weft.system.child_processes import ChildError, JsonLinesChild, python_environment, python_module
from weft.topologies import FabricSpec
from weft.traffic.endpoint_lines import START_TIMEOUT_S

# The engines' threads run under SCHED_FIFO: they sleep most of the time, and serve an event late by microseconds
# instead of milliseconds when something else keeps the cores busy.
REALTIME_PRIORITY = 10


def daemon_config(
    fabric: FabricSpec,
    options: FabricOptions,
    switches: Sequence[SwitchConfig],
    epoch_ns: int,
    grpc_address: str,
) -> DaemonConfig:
    """Return the configuration of `python -m weft.switch.daemon` for a fabric's switches."""
    return DaemonConfig(
        epoch_ns=epoch_ns,
        dilation=options.dilation,
        seed=options.seed,
        grpc_address=grpc_address,
        realtime_priority=REALTIME_PRIORITY,
        switches=tuple(switches),
        internal_links=tuple(links_between_switches(fabric)) if options.links == "internal" else (),
    )


class SwitchDaemon:
    """The daemon's process; every method raises ChildError when it is gone or refuses."""

    def __init__(self, config: DaemonConfig, directory: Path) -> None:
        """Start it and wait until it serves P4Runtime.

        Raises EnvironmentLacksError for what it needs and does not have, such as a TCP port that another program has.
        """
        config_path = directory / "switches.json"
        config_path.write_text(config.to_json(), encoding="utf-8")
        log = directory / "switches.log"
        with log.open("w", encoding="utf-8") as errors:
            process = subprocess.Popen(
                [*python_module("weft.switch.daemon"), "--config", str(config_path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
                env=python_environment(),
            )
        self.child = JsonLinesChild("the switch daemon", process, log)
        try:
            ready = self.child.read_answer(START_TIMEOUT_S)
        except BaseException as error:
            self.child.close()
            if isinstance(error, ChildError) and process.returncode == EXIT_ENVIRONMENT:
                raise EnvironmentLacksError(error) from None
            raise
        self.grpc_address = str(ready["grpc_address"])
        # A lab's metrics are read from another thread than its runner's.
        self._calling = threading.Lock()

    def stats(self) -> SwitchesStats:
        """Return counters of every switch and port, and the lateness."""
        stats = cast("SwitchesStats", self._call({"command": "stats"}))
        for switch in stats["switches"].values():
            if switch["buffer"] is not None:  # JSON has no numbers as keys
                ports = switch["buffer"]["ports"]
                switch["buffer"]["ports"] = {int(number): port for number, port in ports.items()}
        return stats

    def reset_stats(self) -> None:
        """Set counters, largest queues and lateness back to zero."""
        self._call({"command": "reset_stats"})

    def pcap(self, device_id: int, port: int, path: Path | None, without_shims: bool = False) -> None:
        """Start writing a port's frames to a file, maybe without Weft's shims, or stop (None)."""
        self._call(
            {
                "command": "pcap",
                "device_id": device_id,
                "port": port,
                "path": str(path) if path else None,
                "without_shims": without_shims,
            }
        )

    def pcap_by_direction(self, device_id: int, port: int, directory: Path, without_shims: bool = False) -> None:
        """Start writing what a port receives and sends to INTERFACE_in.pcap and INTERFACE_out.pcap in a directory.

        `without_shims` leaves Weft's shims out of IP frames.
        """
        self._call(
            {
                "command": "pcap_by_direction",
                "device_id": device_id,
                "port": port,
                "directory": str(directory),
                "without_shims": without_shims,
            }
        )

    def log_packets(self, device_id: int, path: Path) -> None:
        """Start writing what each packet of a switch meets to a file."""
        self._call({"command": "log_packets", "device_id": device_id, "path": str(path)})

    def finish_files(self) -> dict[str, int]:
        """Have captures and logs of packets written out before `close`.

        Returns those that are incomplete, each with the errno that says why (a full disk).
        """
        return cast("dict[str, int]", self._call({"command": "finish_files"})["incomplete"])

    def _call(self, command: dict[str, Any]) -> dict[str, Any]:
        with self._calling:
            return self.child.call(command)

    def close(self) -> None:
        """End it."""
        self.child.close()


def new_epoch_ns() -> int:
    """Return an epoch for a lab that starts now (CLOCK_MONOTONIC, nanoseconds)."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
