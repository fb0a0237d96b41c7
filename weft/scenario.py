"""Scenario files: what fabric to build, which faults to inject, which traffic to run.

A scenario is YAML; every key is checked, and an error says where it stands, what it holds and what would be valid.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
import ruamel.yaml
import ruamel.yaml.error
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from traffic.patterns import MAX_FLOW_BYTES
from weft.errors import BadInputError, did_you_mean
from weft.paths import FABRIC_P4
from weft.units import parse_rate_bps, parse_size_bytes, parse_time_ps

RateBps = Annotated[int, BeforeValidator(parse_rate_bps), Field(gt=0)]
TimePs = Annotated[int, BeforeValidator(parse_time_ps), Field(ge=0)]
SizeBytes = Annotated[int, BeforeValidator(parse_size_bytes), Field(gt=0)]
FlowBytes = Annotated[SizeBytes, Field(le=MAX_FLOW_BYTES)]
Probability = Annotated[float, Field(ge=0.0, lt=1.0)]

# Slots of a switch (SLOTS in p4/include/aggregation.p4).
MAX_SLOTS = 4096
ALGORITHMS = ("ring", "in-network")


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FabricSection(_Section):
    """A leaf/spine fabric of several planes; a host has one NIC on each plane.

    With `pods`, leaves and spines are those of a pod, and a third tier joins the pods: `cores_per_spine` cores above
    each spine of a pod.
    """

    planes: int = Field(2, ge=1, le=8)
    leaves: int = Field(4, ge=1, le=64)
    spines: int = Field(2, ge=0, le=64)
    pods: int | None = Field(None, ge=2, le=64)
    cores_per_spine: int | None = Field(None, ge=1, le=64)
    hosts_per_leaf: int = Field(2, ge=1, le=64)
    host_rate: RateBps = 10 * 10**9
    fabric_rate: RateBps | None = None
    core_rate: RateBps | None = None
    oversubscription: float | None = Field(None, gt=0)
    delay: TimePs = 10**6
    queue_capacity: SizeBytes = 512 * 1024

    @property
    def host_count(self) -> int:
        """Hosts of the whole fabric."""
        return (self.pods or 1) * self.leaves * self.hosts_per_leaf


class FaultsSection(_Section):
    """Faults on every link, drawn from the scenario's seed."""

    loss: Probability = 0.0
    duplicate: Probability = 0.0
    delay_probability: Probability = 0.0
    extra_delay: TimePs = 0

    @property
    def any(self) -> bool:
        """Return whether any fault is asked for."""
        return bool(self.loss or self.duplicate or self.delay_probability)


class EcnSection(_Section):
    """Marking thresholds at every port; by default HPCC's set-up (SIGCOMM 2019, section 5.1), scaled by rate."""

    kmin: SizeBytes | None = None
    kmax: SizeBytes | None = None
    pmax: float | None = Field(None, gt=0.0, le=1.0)


class ControlSection(_Section):
    """The way between controller and switches. `latency`: of a request and its answer, under the virtual clock."""

    latency: TimePs = Field(0, le=10**12)


class CollectiveTraffic(_Section):
    """A collective, run once per algorithm and size, each result checked against NumPy."""

    collective: Literal["allreduce"]
    algorithms: list[Literal["ring", "in-network"]] = Field(["ring", "in-network"], min_length=1)
    dtype: Literal["float32", "int32"] = "float32"
    operation: Literal["sum"] = "sum"
    data: Literal["random", "mlp-gradients"] = "random"
    sizes: list[SizeBytes] = Field(default=[])
    repetitions: int = Field(1, ge=1, le=1000)


class IncastTraffic(_Section):
    """Every other host writes to one host at the same time, on one plane."""

    incast: str
    bytes_per_sender: FlowBytes = 65536
    plane: int = Field(0, ge=0)


class PermutationTraffic(_Section):
    """Every host writes to one other, drawn from the seed, on all planes."""

    permutation: FlowBytes


Traffic = CollectiveTraffic | IncastTraffic | PermutationTraffic
_TRAFFIC_KINDS: dict[str, type[_Section]] = {
    "collective": CollectiveTraffic,
    "incast": IncastTraffic,
    "permutation": PermutationTraffic,
}


class Scenario(_Section):
    """All that a run depends on, except the machine."""

    name: str = Field("fabric", pattern=r"\A[a-z0-9][a-z0-9-]{0,40}\z")
    clock: Literal["real", "virtual"] | None = None
    target: Literal["embedded", "bmv2"] = "embedded"
    links: Literal["veth", "internal"] = "veth"
    ip_version: Literal[4, 6] = 4
    dilation: float = Field(1000.0, ge=1.0, le=1e6)
    seed: int = Field(1, ge=0, lt=2**63)
    p4: Path = FABRIC_P4
    compiler: Literal["embedded", "p4c"] = "embedded"
    mtu: Literal[256, 512, 1024, 2048, 4096] = 1024
    int_telemetry: bool = Field(True, alias="int")
    slots: int | None = Field(None, ge=1, le=MAX_SLOTS)
    fabric: FabricSection = FabricSection()
    faults: FaultsSection = FaultsSection()
    ecn: EcnSection = EcnSection()
    control: ControlSection = ControlSection()
    traffic: list[Traffic] = []

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


def load_scenario(path: Path) -> Scenario:
    """Read and check a scenario file.

    Raises:
        BadInputError: the file cannot be read, is no YAML, or a key or value is not valid; the message names
            the file, the line, the key, the value and what would be valid.
    """
    yaml = ruamel.yaml.YAML(typ="rt")
    try:
        tree = yaml.load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BadInputError(f"{path}: is not UTF-8 text: {error}") from None
    except ruamel.yaml.error.YAMLError as error:
        raise BadInputError(f"{path}: is not YAML: {error}") from None
    if tree is None:
        tree = {}
    if not isinstance(tree, dict):
        raise BadInputError(f"{path}: a scenario is a mapping of keys, not a {type(tree).__name__}")
    scenario = parse_scenario(tree, str(path))
    if not scenario.p4.is_absolute():
        scenario = scenario.model_copy(update={"p4": (path.parent / scenario.p4).resolve()})
    return scenario


def parse_scenario(tree: dict[str, Any], place: str = "scenario") -> Scenario:
    """Check a scenario given as plain data.

    Raises:
        BadInputError: as `load_scenario`.
    """
    try:
        plain = dict(tree)
        if "traffic" in plain:
            plain["traffic"] = [
                _parse_traffic(item, tree, index, place)
                for index, item in enumerate(_as_list(plain["traffic"], place))
            ]
        scenario = Scenario.model_validate(plain)
    except pydantic.ValidationError as error:
        raise BadInputError(
            "\n".join(_explain(problem, tree, place, Scenario) for problem in error.errors())
        ) from None
    _check_across(scenario, place)
    return scenario


def _as_list(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise BadInputError(f"{place}: traffic: must be a list, is '{value}'")
    return value


def _parse_traffic(item: Any, tree: dict[str, Any], index: int, place: str) -> _Section:
    if not isinstance(item, dict):
        raise BadInputError(f"{place}: traffic[{index}]: must be a mapping, is '{item}'")
    kinds = [kind for kind in _TRAFFIC_KINDS if kind in item]
    if len(kinds) != 1:
        raise BadInputError(
            f"{place}: traffic[{index}]: needs exactly one of {', '.join(_TRAFFIC_KINDS)}; "
            f"has keys {', '.join(map(str, item))}"
        )
    model = _TRAFFIC_KINDS[kinds[0]]
    try:
        return model.model_validate(dict(item))
    except pydantic.ValidationError as error:
        problems = [
            _explain({**problem, "loc": ("traffic", index, *problem["loc"])}, tree, place, model)
            for problem in error.errors()
        ]
        raise BadInputError("\n".join(problems)) from None


def _explain(problem: Any, tree: Any, place: str, model: type[BaseModel]) -> str:
    location = problem["loc"]
    line = _line_of(tree, location)
    where = f"{place}:{line}" if line is not None else place
    name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")
    if problem["type"] == "extra_forbidden":
        return f"{where}: unknown key '{name}'; {did_you_mean(str(location[-1]), _keys_at(model, location[:-1]))}"
    message = problem["msg"].removeprefix("Value error, ")
    return f"{where}: {name}: {message} (value: {problem['input']!r})"


def _keys_at(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    for part in location:
        field = model.model_fields.get(str(part))
        if (
            field is not None
            and isinstance(field.annotation, type)
            and issubclass(field.annotation, BaseModel)
        ):
            model = field.annotation
    return [field.alias or name for name, field in model.model_fields.items()]


def _line_of(tree: Any, location: tuple[int | str, ...]) -> int | None:
    line = None
    for part in location:
        marks = getattr(tree, "lc", None)
        try:
            if marks is not None:
                line = (marks.item(part) if isinstance(part, int) else marks.key(part))[0] + 1
            tree = tree[part]
        except (KeyError, IndexError, TypeError):
            break
    return line


def _check_across(scenario: Scenario, place: str) -> None:
    """Check what no single key shows."""
    fabric = scenario.fabric
    if fabric.leaves > 1 and fabric.spines == 0:
        raise BadInputError(
            f"{place}: fabric.spines: 0 cannot join {fabric.leaves} leaves; at least 1 is needed"
        )
    _check_tiers(fabric, f"{place}: fabric")
    ecn = scenario.ecn
    given = [value is not None for value in (ecn.kmin, ecn.kmax, ecn.pmax)]
    if any(given) and not all(given):
        raise BadInputError(f"{place}: ecn: kmin, kmax and pmax go together")
    if ecn.kmin is not None and ecn.kmax is not None and ecn.kmax <= ecn.kmin:
        raise BadInputError(f"{place}: ecn.kmax: {ecn.kmax} B must be above kmin, {ecn.kmin} B")
    faults = scenario.faults
    if bool(faults.delay_probability) != bool(faults.extra_delay):
        raise BadInputError(
            f"{place}: faults: delay_probability ({faults.delay_probability:g}) and extra_delay "
            f"({faults.extra_delay} ps) go together"
        )
    for index, traffic in enumerate(scenario.traffic):
        _check_traffic(traffic, fabric, f"{place}: traffic[{index}]")


def _check_tiers(fabric: FabricSection, place: str) -> None:
    if fabric.pods is None:
        for name in ("cores_per_spine", "core_rate"):
            if getattr(fabric, name) is not None:
                raise BadInputError(f"{place}.{name}: {getattr(fabric, name)} means nothing without pods")
        return
    if fabric.spines == 0:
        raise BadInputError(f"{place}.spines: 0 cannot join the leaves of a pod; at least 1 is needed")
    if fabric.oversubscription is not None:
        raise BadInputError(
            f"{place}.oversubscription: {fabric.oversubscription:g} is of two tiers; with pods give fabric_rate and "
            "core_rate"
        )


def _check_traffic(traffic: Traffic, fabric: FabricSection, place: str) -> None:
    if isinstance(traffic, CollectiveTraffic):
        if traffic.data == "mlp-gradients" and traffic.sizes:
            raise BadInputError(f"{place}.sizes: mlp-gradients have the size of their model, leave sizes out")
        for size in traffic.sizes:
            if size % 4:
                raise BadInputError(
                    f"{place}.sizes: {size} B is not a multiple of 4, the size of {traffic.dtype}"
                )
        return
    hosts = [f"h{index}" for index in range(fabric.host_count)]
    if len(hosts) < 2:
        raise BadInputError(f"{place}: flows need 2 hosts or more, the fabric has {len(hosts)}")
    if isinstance(traffic, IncastTraffic):
        if traffic.incast not in hosts:
            raise BadInputError(
                f"{place}.incast: no host '{traffic.incast}'; {did_you_mean(traffic.incast, hosts)}"
            )
        if traffic.plane >= fabric.planes:
            raise BadInputError(f"{place}.plane: {traffic.plane} is not one of 0 to {fabric.planes - 1}")
