"""Choices of path: one file each in engine/paths/, fed by hand."""

import os
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from weft.engine import PathChoice, make_path_choice, path_choice_kind, path_choice_names, path_parameters_in_force
from weft.errors import BadInputError
from weft.scenario import parse_scenario

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "engine" / "paths"
HOWTO = ROOT / "docs" / "howto" / "path-choice.md"
US = 1_000_000
ROUND_TRIP_PS = 10 * US
SELECTIVE = {"retransmission": "selective-repeat"}

MAIN = """
#include <cstdio>

#include "paths/registry.hpp"

int main() {
  for (const weft::PathChoiceKind* kind : weft::path_choices()) {
    const weft::PathProperties path{1'000'000'000, 8'000'000, 100};
    const auto choice = weft::make_path_choice(std::string(kind->name), 7, path, {{"paths", 2}});
    const auto first = choice->entropy(0, 0, false), second = choice->entropy(0, 1, false);
    std::printf("%s %d %d\\n", std::string(choice->name()).c_str(), first == second,
                first == choice->entropy(0, 2, false) && second == choice->entropy(0, 3, false));
  }
}
"""


def choice(name: str, seed: int = 1, **parameters: float) -> PathChoice:
    return make_path_choice(
        name, seed, parameters, line_rate_bps=10**11, base_round_trip_ps=ROUND_TRIP_PS, frame_bytes=1100
    )


def test_every_file_with_a_choice_registers_it_once() -> None:
    registered = []
    for file in sorted(FOLDER.glob("*.cpp")):
        text = file.read_text(encoding="utf-8")
        kinds = re.findall(r'PathChoiceKind (\w+) = \{\s+\.name = "([^"]+)"', text)
        registrations = re.findall(r"^const PathChoiceRegistration \w+\((\w+)\);", text, re.MULTILINE)
        assert registrations == [variable for variable, _ in kinds], file.name
        assert len(kinds) == ("public PathChoice {" in text), file.name
        registered += [name for _, name in kinds]
    assert sorted(registered) == path_choice_names()
    assert {"flowlet", "plb", "reps", "spray", "srd"} <= set(registered)


@pytest.mark.parametrize("name", path_choice_names())
def test_what_a_choice_declares_is_complete_and_checked(name: str) -> None:
    kind = path_choice_kind(name)
    assert kind.name == name == choice(name).name
    assert kind.summary
    assert kind.source
    assert kind.parameters
    for parameter in kind.parameters:
        assert parameter.meaning, parameter.name
        assert parameter.source, parameter.name
        with pytest.raises(ValueError, match=rf"{name}: {parameter.name} is -1 \(valid: "):
            choice(name, **{parameter.name: -1})
    with pytest.raises(ValueError, match=rf"{name}: unknown parameter 'colour' \(valid: '"):
        choice(name, colour=1)
    in_force = path_parameters_in_force(name, line_rate_bps=10**11, base_round_trip_ps=ROUND_TRIP_PS, frame_bytes=1100)
    assert set(in_force) == {parameter.name for parameter in kind.parameters}


def test_the_guides_choice_is_one_file(tmp_path: Path) -> None:
    (code,) = re.findall(r"```cpp\n(.*?)```", HOWTO.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "turns.cpp").write_text(code, encoding="utf-8")
    (tmp_path / "main.cpp").write_text(MAIN, encoding="utf-8")
    sources = [*tmp_path.glob("*.cpp"), FOLDER / "registry.cpp", ROOT / "engine" / "congestion" / "parameters.cpp"]
    program = tmp_path / "program"
    command = ["g++", "-std=c++20", f"-I{ROOT / 'engine'}", "-o", program, *sources]
    # Without the sanitizers that this process may run under: a compiler's leaks are its own.
    subprocess.run(command, check=True, env={**os.environ, "LD_PRELOAD": ""})
    ran = subprocess.run([program], check=True, capture_output=True, text=True)
    assert ran.stdout == "turns 0 1\n"


def test_scenarios_name_choices_with_their_parameters() -> None:
    section = parse_scenario(
        {"transport": {"path": "reps", "path_parameters": {"freezing": "1ms", "buffer_entropies": 16}, **SELECTIVE}}
    ).transport
    assert section.settings().path_parameters == {"freezing_ps": 10**9, "buffer_entropies": 16}
    with refused(BadInputError, place="scenario: transport", problem="reps has no parameter 'freezin'"):
        parse_scenario({"transport": {"path": "reps", "path_parameters": {"freezin": "1ms"}, **SELECTIVE}})
    with refused(BadInputError, place="scenario: transport", problem="reps: buffer_entropies is 0"):
        parse_scenario({"transport": {"path": "reps", "path_parameters": {"buffer_entropies": 0}, **SELECTIVE}})
    with refused(BadInputError, place="scenario: transport", problem="flow has none"):
        parse_scenario({"transport": {"path_parameters": {"paths": 3}}})
    for name in path_choice_names():
        if path_choice_kind(name).reorders:
            with refused(BadInputError, place="scenario: transport", problem="needs retransmission: selective-repeat"):
                parse_scenario({"transport": {"path": name}})
            with refused(BadInputError, place="scenario: transport", problem="does not go with powertcp"):
                parse_scenario(
                    {"int": True, "transport": {"path": name, "congestion_control": "powertcp", **SELECTIVE}}
                )


@pytest.mark.parametrize("name", path_choice_names())
def test_the_seed_decides_what_is_drawn(name: str) -> None:
    def drawn(seed: int) -> list[int]:
        one = choice(name, seed)
        return [one.entropy(packet * 20 * US, packet) for packet in range(20)]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


# --- PLB


class PlbModel:
    """Section 3: a round trip is congested if more than `threshold` of its packets are marked."""

    def __init__(self, threshold: float, rounds: int) -> None:
        self.threshold, self.rounds = threshold, rounds
        self.congested = self.delivered = self.marked = self.end = self.moves = 0

    def deliver(self, now: int, marked: bool) -> None:
        self.delivered += 1
        self.marked += marked
        if now < self.end:
            return
        self.congested = self.congested + 1 if self.marked > self.threshold * self.delivered else 0
        if self.congested >= self.rounds:
            self.moves, self.congested = self.moves + 1, 0
        self.delivered = self.marked = 0
        self.end = now + ROUND_TRIP_PS


@given(
    packets=st.lists(st.tuples(st.integers(0, 12), st.booleans()), max_size=200),
    threshold=st.sampled_from([0.25, 0.5, 0.9]),
    rounds=st.integers(1, 4),
)
@settings(max_examples=60, deadline=None)
def test_plb_leaves_a_path_after_congested_rounds(
    packets: list[tuple[int, bool]], threshold: float, rounds: int
) -> None:
    plb, model = choice("plb", threshold=threshold, rounds=rounds), PlbModel(threshold, rounds)
    now, moves, entropy = 0, 0, plb.entropy(0)
    for gap_us, marked in packets:
        now += gap_us * US
        plb.on_delivered(now, entropy, ROUND_TRIP_PS, marked)
        model.deliver(now, marked)
        plb.on_delivered(now, entropy ^ 1, ROUND_TRIP_PS, True)  # on a path left before: of no concern
        assert (plb.entropy(now) != entropy) == (model.moves > moves)
        moves, entropy = model.moves, plb.entropy(now)


# --- REPS


class RepsModel:
    """Algorithms 1 and 2, without a ring: `fresh` first in first out, `all` the newest that were remembered."""

    def __init__(self, size: int, freezing: int, random: Callable[[], int]) -> None:
        self.size, self.freezing, self.random = size, freezing, random
        self.slots: list[int | None] = [None] * size
        self.fresh: list[int] = []  # slots
        self.head = self.turn = 0
        self.thaws: int | None = None
        self.exploring = 0

    def entropy(self) -> int:
        known = [value for value in self.slots if value is not None]
        if self.exploring:
            self.exploring -= 1
            return self.random()
        if self.thaws is not None and known:
            value = known[self.turn % len(known)]
            self.turn = (self.turn + 1) % len(known)
            return value
        if self.fresh:
            found = self.slots[self.fresh.pop(0)]
            assert found is not None
            return found
        return self.random()

    def _thaw(self, now: int) -> None:
        if self.thaws is not None and now > self.thaws:
            self.__init__(self.size, self.freezing, self.random)  # type: ignore[misc]
            self.exploring = 16

    def deliver(self, now: int, entropy: int, marked: bool) -> None:
        self._thaw(now)
        if marked:
            return
        if self.head in self.fresh:
            self.fresh.remove(self.head)
        self.slots[self.head] = entropy
        self.fresh.append(self.head)
        self.head = (self.head + 1) % self.size

    def lose(self, now: int) -> None:
        if self.thaws is None and not self.exploring:
            self.thaws = now + self.freezing
        self._thaw(now)


@given(
    events=st.lists(st.sampled_from(["send", "send", "ack", "ack", "mark", "lose", "wait"]), max_size=200),
    size=st.integers(1, 8),
)
@settings(max_examples=100, deadline=None)
def test_reps_recycles_what_came_back_unmarked(events: list[str], size: int) -> None:
    reps = choice("reps", buffer_entropies=size, exploring_packets=0, freezing_ps=100 * US)
    twin = choice("spray")  # draws as REPS does
    model = RepsModel(size, 100 * US, lambda: twin.entropy(0))
    now, sent = 0, [5]
    for number, event in enumerate(events):
        now += US if event != "wait" else 60 * US
        if event == "send":
            sent.append(reps.entropy(now, number))
            assert sent[-1] == model.entropy()
        elif event in ("ack", "mark"):
            entropy = sent[number % len(sent)]
            reps.on_delivered(now, entropy, ROUND_TRIP_PS, event == "mark")
            model.deliver(now, entropy, event == "mark")
        elif event == "lose":
            reps.on_timeout(now)
            model.lose(now)


def test_reps_goes_on_after_a_loss_that_other_packets_reveal() -> None:
    """Congestion loses packets: with marks on all paths it draws new ones."""
    reps = choice("reps", exploring_packets=0)
    for packet in range(100):
        reps.on_delivered(packet, reps.entropy(packet), ROUND_TRIP_PS, False)
    reps.on_lost(100, 1)
    seen = set()
    for packet in range(1000):
        seen.add(reps.entropy(200 + packet))
        reps.on_delivered(200 + packet, 1, ROUND_TRIP_PS, True)
    assert len(seen) > 500


def test_reps_explores_before_it_recycles() -> None:
    reps = choice("reps")
    product_packets = 10**11 * ROUND_TRIP_PS // 8 // 10**12 // 1100
    for _ in range(product_packets):
        reps.on_delivered(0, 77, ROUND_TRIP_PS, False)
        assert reps.entropy(0) != 77
    assert [reps.entropy(0) for _ in range(8)] == [77] * 8


# --- SRD


def test_srd_prefers_fast_paths_and_avoids_those_that_lose() -> None:
    srd = choice("srd", paths=16)
    paths = sorted({srd.entropy(0) for _ in range(2000)})
    assert len(paths) == 16
    slow, lossy = paths[3], paths[7]
    for entropy in paths:
        srd.on_delivered(0, entropy, (3 if entropy == slow else 1) * ROUND_TRIP_PS)
    srd.on_lost(0, lossy)
    taken = Counter(srd.entropy(US) for _ in range(16_000))
    # Both draws fall on it once in 256 times.
    assert taken[lossy] < 200
    assert taken[slow] < 350
    assert min(taken[entropy] for entropy in paths if entropy not in (slow, lossy)) > 700
    # Ten round trips later the lossy path is tried again.
    later = Counter(srd.entropy(101 * US) for _ in range(16_000))
    assert later[lossy] > 700
