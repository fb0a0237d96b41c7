"""gNMI paths select the leaves that the specification says: containers, wildcards, keys, prefixes, origins."""

from __future__ import annotations

import pytest
from finsy import GNMIPath
from finsy.proto import gnmi
from hypothesis import given
from hypothesis import strategies as st

from tests.refusals import refused
from weft.switch.gnmi.errors import GnmiError
from weft.switch.gnmi.leaves import LEAVES, OPENCONFIG, WEFT, Leaf
from weft.switch.gnmi.paths import MAX_ELEMENTS, select
from weft.switch.gnmi.subscriptions import MAX_SCHEDULES, MAX_SUBSCRIPTIONS, MIN_INTERVAL_NS, schedules

OF_OPENCONFIG = [leaf for leaf in LEAVES if leaf.origin == OPENCONFIG]


def selected(path: str, prefix: str = "", origin: str = "") -> list[tuple[str, tuple[str | None, ...]]]:
    found = select(GNMIPath(path, origin=origin).path, GNMIPath(prefix).path)
    return [(str(each.leaf), each.wanted) for each in found]


def test_paths_of_leaves_are_unique() -> None:
    assert len({(leaf.origin, str(leaf)) for leaf in LEAVES}) == len(LEAVES)


def test_a_leaf_is_selected_by_its_name_and_key() -> None:
    place = "/interfaces/interface[name]/state/oper-status"
    assert selected("interfaces/interface[name=eth1]/state/oper-status") == [(place, ("eth1",))]
    assert selected("interfaces/interface[name=*]/state/oper-status") == [(place, (None,))]
    assert selected("interfaces/interface/state/oper-status") == [(place, (None,))]
    assert selected("state/oper-status", prefix="interfaces/interface[name=eth1]") == [(place, ("eth1",))]


def test_a_container_selects_all_its_leaves() -> None:
    counters = selected("interfaces/interface[name=x]/state/counters")
    assert [name for name, _ in counters] == [
        f"/interfaces/interface[name]/state/counters/{name}"
        for name in (
            "in-octets",
            "in-pkts",
            "in-discards",
            "in-errors",
            "in-fcs-errors",
            "out-octets",
            "out-pkts",
            "out-discards",
            "out-errors",
        )
    ]
    assert {wanted for _, wanted in counters} == {("x",)}
    assert len(selected("")) == len(OF_OPENCONFIG)
    assert len(selected("", origin=OPENCONFIG)) == len(OF_OPENCONFIG)
    assert len(selected("", origin=WEFT)) == len(LEAVES) - len(OF_OPENCONFIG)


def test_wildcards_stand_for_one_element_or_for_any_number() -> None:
    every = [str(leaf) for leaf in OF_OPENCONFIG]
    assert {name for name, _ in selected("interfaces/*/state/oper-status")} == {
        "/interfaces/interface[name]/state/oper-status"
    }
    assert {name for name, _ in selected(".../in-octets")} == {name for name in every if name.endswith("/in-octets")}
    assert len(selected("...")) == len(every)
    assert selected("qos/.../queue[name=3]/state/transmit-pkts") == [
        ("/qos/interfaces/interface[interface-id]/output/queues/queue[name]/state/transmit-pkts", (None, "3"))
    ]


@pytest.mark.parametrize(
    ("path", "valid"),
    [
        ("interface", "interfaces, qos"),
        ("interfaces/interface[id=3]", "interface[name]"),
        ("interfaces[name=3]", "interfaces, qos"),
        ("interfaces/interface/state/oper-status/up", "none"),
        ("qos/interfaces/interface/input", "state, output"),
    ],
)
def test_a_wrong_element_is_named_with_the_valid_ones(path: str, valid: str) -> None:
    with refused(GnmiError, valid=valid, problem="element"):
        select(GNMIPath(path).path)


def test_malformed_paths_are_refused() -> None:
    with refused(GnmiError, valid="openconfig, weft", problem="origin 'cli'"):
        select(gnmi.Path(origin="cli"))
    with refused(GnmiError, problem="both the prefix"):
        select(gnmi.Path(origin=WEFT), gnmi.Path(origin=WEFT))
    with refused(GnmiError, problem="stands in the prefix"):
        select(gnmi.Path(target="s1"))
    with refused(GnmiError, problem="`element`"):
        select(gnmi.Path(element=["interfaces"]))
    with refused(GnmiError, valid=f"at most {MAX_ELEMENTS}", problem="33 elements"):
        select(gnmi.Path(elem=[gnmi.PathElem(name="*")] * (MAX_ELEMENTS + 1)))
    with refused(GnmiError, valid="at most one", problem="2 elements"):
        select(gnmi.Path(elem=[gnmi.PathElem(name="...")] * 2))
    with refused(GnmiError, problem="has keys"):
        select(gnmi.Path(elem=[gnmi.PathElem(name="...", key={"a": "b"})]))
    with refused(GnmiError, problem="no leaf"):
        select(GNMIPath(".../nothing").path)


@given(st.text(max_size=400))
def test_messages_stay_short_and_printable(text: str) -> None:
    with pytest.raises(GnmiError) as caught:
        select(gnmi.Path(elem=[gnmi.PathElem(name=text, key={text: text})]))
    assert len(str(caught.value)) < 1000
    assert str(caught.value).isprintable()


_NAMES = sorted({step.name for leaf in LEAVES for step in leaf.steps} | {"*", "...", "other"})
_KEYS = st.dictionaries(st.sampled_from(["name", "interface-id", "id"]), st.sampled_from(["*", "1", "a"]), max_size=2)
_ELEMENTS = st.lists(st.tuples(st.sampled_from(_NAMES), _KEYS), max_size=9)


def _selects(leaf: Leaf, elements: list[tuple[str, dict[str, str]]]) -> bool:
    """Match a leaf's path and a pattern from the left, by recursion: another way than the server's."""

    def rest(step: int, element: int) -> bool:
        if element == len(elements):
            return True  # the rest is below a container
        name, keys = elements[element]
        if name == "...":
            return any(rest(later, element + 1) for later in range(step, len(leaf.steps) + 1))
        if step == len(leaf.steps):
            return False
        here = leaf.steps[step]
        fits = name in ("*", here.name) and set(keys) <= {here.key}
        return fits and rest(step + 1, element + 1)

    return rest(0, 0)


@given(st.sampled_from([OPENCONFIG, WEFT]), _ELEMENTS)
def test_a_path_selects_the_same_leaves_as_a_recursive_match(
    origin: str, elements: list[tuple[str, dict[str, str]]]
) -> None:
    if sum(name == "..." for name, _ in elements) > 1 or any(name == "..." and keys for name, keys in elements):
        return
    path = gnmi.Path(origin=origin, elem=[gnmi.PathElem(name=name, key=keys) for name, keys in elements])
    expected = [leaf for leaf in LEAVES if leaf.origin == origin and _selects(leaf, elements)]
    try:
        found = list(dict.fromkeys(each.leaf for each in select(path)))
    except GnmiError:
        found = []
    assert found == expected


@given(st.sampled_from(LEAVES), st.data())
def test_a_prefix_may_end_anywhere(leaf: Leaf, data: st.DataObject) -> None:
    elements = [
        gnmi.PathElem(name=step.name, key={} if step.key is None else {step.key: data.draw(st.text(max_size=5))})
        for step in leaf.steps
    ]
    cut = data.draw(st.integers(0, len(elements)))
    whole = select(gnmi.Path(origin=leaf.origin, elem=elements))
    assert [each.leaf for each in whole] == [leaf]
    assert whole == select(gnmi.Path(elem=elements[cut:]), gnmi.Path(origin=leaf.origin, elem=elements[:cut]))


def _one(mode: int, path: str = "interfaces/interface/state/oper-status", **more: int) -> gnmi.Subscription:
    return gnmi.Subscription(path=GNMIPath(path).path, mode=mode, **more)  # type: ignore[arg-type]


def test_subscriptions_are_bounded() -> None:
    nowhere = gnmi.Path()
    with refused(GnmiError, problem="no subscriptions"):
        schedules([], nowhere, is_stream=True)
    many = [_one(gnmi.ON_CHANGE)] * (MAX_SUBSCRIPTIONS + 1)
    with refused(GnmiError, valid=f"at most {MAX_SUBSCRIPTIONS}; wildcards name many leaves at once", problem="1025"):
        schedules(many, nowhere, is_stream=True)
    assert len(schedules(many[1:], nowhere, is_stream=True)) == 1
    intervals = [_one(gnmi.SAMPLE, sample_interval=MIN_INTERVAL_NS + n) for n in range(MAX_SCHEDULES + 1)]
    with refused(GnmiError, problem="combinations"):
        schedules(intervals, nowhere, is_stream=True)
    assert len(schedules(intervals[1:], nowhere, is_stream=True)) == MAX_SCHEDULES
    assert len(schedules(intervals, nowhere, is_stream=False)) == 1
    short = [_one(gnmi.SAMPLE, sample_interval=MIN_INTERVAL_NS - 1)]
    with refused(GnmiError, valid=f"0, or at least {MIN_INTERVAL_NS} ns", problem="sample_interval"):
        schedules(short, nowhere, is_stream=True)
    endless = schedules([_one(gnmi.SAMPLE, sample_interval=2**64 - 1)], nowhere, is_stream=True)
    assert 0 < (endless[0].rule.interval_ns or 0) < 2**63


def test_counters_are_sampled_and_states_reported_on_change() -> None:
    nowhere = gnmi.Path()
    with refused(GnmiError, problem="in-octets changes with packets"):
        schedules([_one(gnmi.ON_CHANGE, "interfaces/interface/state/counters")], nowhere, is_stream=True)
    both = schedules([_one(gnmi.TARGET_DEFINED, "interfaces/interface/state")], nowhere, is_stream=True)
    assert {each.rule.interval_ns is None for each in both} == {True, False}
