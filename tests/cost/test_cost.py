"""What fabrics cost: a bill by hand, its laws, where cables run, and what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from weft.cli import run_guarded, weft
from weft.cost import PriceTable, bill_of, cost_figures, read_prices, shipped_table_text
from weft.cost.chart import ticks
from weft.cost.figures import over_years
from weft.cost.layout import floor_of
from weft.cost.prices import Energy, FloorLayout
from weft.errors import BadInputError
from weft.paths import ROOT
from weft.scenario import Change
from weft.topologies import FabricSpec, fat_tree, leaf_spine, with_scale_up
from weft.topologies.kinds.dragonfly import dragonfly
from weft.topologies.kinds.optical_core import optical_core
from weft.topologies.kinds.rail_only import rail_only
from weft.topologies.metrics import fabric_bisection, fabric_metrics

GBPS = 10**9


def table(**changes: Any) -> PriceTable:
    """A table of few, simple prices."""
    tree: dict[str, Any] = {
        "date": "today",
        "source": "a test",
        "switches": [
            {"ports": 4, "rate": 100 * GBPS, "price": 1000, "watts": 100},
            {"ports": 8, "rate": 400 * GBPS, "split": 4, "price": 5000, "watts": 300},
        ],
        "nics": [{"rate": 100 * GBPS, "price": 200, "watts": 10}],
        "copper": [{"rate": 100 * GBPS, "reach_m": 3, "price": 20, "price_per_m": 5, "watts": 1}],
        "transceivers": [
            {"rate": 100 * GBPS, "reach_m": 100, "price": 60, "watts": 2},
            {"rate": 400 * GBPS, "reach_m": 100, "price": 90, "watts": 8},
        ],
        "fibre": {"price": 10, "price_per_m": 2},
        "circuit_switches": [{"ports": 16, "price": 7000, "watts": 50}],
        "accelerators": {"X": {"price": 10000, "watts": 1000}},
        "layout": {
            "accelerators_per_rack": 2, "racks_per_row": 2, "rack_pitch_m": 1, "row_pitch_m": 4,
            "in_rack_m": 2, "drop_m": 3, "slack_m": 0.5,
        },
        "energy": {"price_per_kwh": 0.2, "pue": 1.5, "years": 2},
    }  # fmt: skip
    return PriceTable.model_validate(tree | changes)


def small(planes: int = 1, rate_gbps: float = 100) -> FabricSpec:
    return leaf_spine(planes=planes, leaves=2, spines=1, hosts_per_leaf=2, host_rate_bps=rate_gbps * GBPS)


def test_the_bill_of_a_small_fabric_is_that_by_hand() -> None:
    # 2 leaves of 2 hosts, 1 spine, all links 100 Gb/s; a leaf's 2 hosts fill a rack, so rack 0 and rack 1 of row 0.
    # Switches: leaves need 3 ports, the spine 2: 3 boxes of 4 x 100 Gb/s: 3 x 1000 = 3000, 3 x 100 = 300 W.
    # NICs: 4 x 200 = 800, 4 x 10 = 40 W.
    # Hosts to leaves: 4 cables in a rack, 2 m of copper at 20 + 2 x 5 = 30 (optics 134): 120, 4 x 1 = 4 W.
    # The spine is at the lower median of its leaves' racks, rack 0: one uplink is 2 m of copper: 30, 1 W.
    # The other one goes 3 up + 1 along + 3 down + 0.5 slack = 7.5 m, where no copper reaches:
    # 2 transceivers 2 x 60 = 120, 2 x 2 = 4 W; fibre 10 + 7.5 x 2 = 25.
    bill = bill_of(small(), table())
    assert [(item.kind, item.count, item.price, item.watts, item.metres) for item in bill.items] == [
        ("switch", 3, 3000, 300, 0),
        ("nic", 4, 800, 40, 0),
        ("copper", 5, 150, 5, 10),
        ("transceiver", 2, 120, 4, 0),
        ("fibre", 1, 25, 0, 7.5),
    ]
    assert (bill.price, bill.watts, bill.longest_m, bill.host_racks) == (4095, 349, 7.5, 2)

    # Bisection: the one uplink of a leaf, 100 Gb/s. Two years: 349 W x 1.5 x 17520 h = 9171.72 kWh at 0.2 = 1834.344.
    cost = cost_figures("small", small(), table(), "X")
    assert (cost.bisection_bps, cost.bisection_is_exact) == (100 * GBPS, True)
    assert cost.price_per_accelerator == 4095 / 4
    assert cost.price_per_gbps == 40.95
    assert cost.watts_per_gbps == 3.49
    assert cost.over_years.energy_kwh == pytest.approx(9171.72)
    assert cost.over_years.electricity == pytest.approx(1834.344)
    assert cost.per_accelerator_hour == pytest.approx((4095 + 1834.344) / (4 * 17520))
    assert cost.network_price_share == pytest.approx(4095 / 44095)
    assert cost.network_watts_share == pytest.approx(349 / 4349)
    # 4 accelerators: 40,000 and 4 kW x 1.5 x 17520 h x 0.2 = 21,024.
    assert cost.whole_per_accelerator_hour == pytest.approx((4095 + 1834.344 + 40000 + 21024) / (4 * 17520))


@given(planes=st.integers(1, 4), leaves=st.integers(2, 5), spines=st.integers(1, 3), hosts=st.integers(1, 6))
@settings(max_examples=25, deadline=None)
def test_planes_add_up(planes: int, leaves: int, spines: int, hosts: int) -> None:
    def made(count: int) -> FabricSpec:
        return leaf_spine(count, leaves, spines, hosts, host_rate_bps=100 * GBPS)

    prices = read_prices()
    one, several = (cost_figures("", made(count), prices) for count in (1, planes))
    assert several.bill.price == pytest.approx(planes * one.bill.price)
    assert several.bill.watts == pytest.approx(planes * one.bill.watts)
    assert several.bisection_bps == planes * one.bisection_bps
    assert {item.name: item.count for item in several.bill.items} == {
        item.name: planes * item.count for item in one.bill.items
    }


@given(factor=st.floats(0.01, 100), which=st.sampled_from(["price", "watts"]))
@settings(max_examples=25, deadline=None)
def test_the_bill_scales_with_the_table(factor: float, which: str) -> None:
    scaled_keys = ("price", "price_per_m") if which == "price" else ("watts",)

    def scaled(tree: Any) -> Any:
        if isinstance(tree, dict):
            return {
                key: value * factor if key in scaled_keys else value if key == "energy" else scaled(value)
                for key, value in tree.items()
            }
        return [scaled(each) for each in tree] if isinstance(tree, list) else tree

    prices = table()
    fabric = small(planes=2)
    before = bill_of(fabric, prices)
    after = bill_of(fabric, PriceTable.model_validate(scaled(prices.model_dump())))
    assert getattr(after, which) == pytest.approx(factor * getattr(before, which))
    other = "watts" if which == "price" else "price"
    assert getattr(after, other) == pytest.approx(getattr(before, other))


def test_each_port_nic_and_link_is_counted_once() -> None:
    fabric = fat_tree(planes=2, k=4, host_rate_bps=100 * GBPS)
    bill = bill_of(fabric, read_prices())
    assert bill.count_of("switch") == len(fabric.switches)
    assert bill.count_of("nic") == 2 * len(fabric.hosts)
    assert bill.count_of("copper") + bill.count_of("fibre") == len(fabric.links)
    assert bill.count_of("transceiver") == 2 * bill.count_of("fibre")


def test_a_switch_has_the_ports_that_it_needs() -> None:
    # 6 hosts of 100 Gb/s and an uplink of 400: 4 of 100 share a port of 400, so 2 ports and 1 are enough of 8.
    mixed = leaf_spine(1, 2, 1, 6, host_rate_bps=100 * GBPS, fabric_rate_bps=400 * GBPS)
    bill = bill_of(mixed, table())
    assert [(item.name, item.count) for item in bill.items if item.kind == "switch"] == [("switch 8 x 400Gb/s", 3)]
    assert (bill.ports_in_use, bill.ports) == (3 + 3 + 2, 24)
    # Above what a port can be split into, a link takes a port: of 60 Gb/s one of 100, whose NIC and cable it has.
    slow = bill_of(small(rate_gbps=60), table())
    assert [item.name for item in slow.items if item.kind in ("switch", "nic")] == [
        "switch 4 x 100Gb/s",
        "NIC 100Gb/s",
    ]
    # 28 x 100 and 1 x 400 fill the 8 ports; 29 do not.
    assert bill_of(leaf_spine(1, 2, 1, 28, 100 * GBPS, 400 * GBPS), table()).count_of("switch") == 3
    with refused(BadInputError, valid="4 x 100Gb/s, 8 x 400Gb/s", problem="p0l0 needs 29 ports of 100Gb/s"):
        bill_of(leaf_spine(1, 2, 1, 29, 100 * GBPS, 400 * GBPS), table())


def test_what_the_table_lacks_is_refused_with_what_it_has() -> None:
    with refused(BadInputError, valid="up to 100Gb/s", problem="no NIC for 200Gb/s"):
        bill_of(small(rate_gbps=200), table())
    far = table(layout={"accelerators_per_rack": 2, "rack_pitch_m": 200})
    with refused(
        BadInputError,
        valid=(
            "copper of 100Gb/s up to 3 m, pluggable optics of 100Gb/s up to 100 m, "
            "pluggable optics of 400Gb/s up to 100 m"
        ),
        problem="p0l1:3-p0s0:2:",
    ):
        bill_of(small(), far)
    with refused(BadInputError, problem="no accelerator 'Y'"):
        cost_figures("", small(), table(), "Y")
    ranks = with_scale_up(leaf_spine(1, 2, 1, 4, host_rate_bps=100 * GBPS), ranks_per_host=4)
    with refused(BadInputError, place="layout.accelerators_per_rack", valid="at least 4"):
        bill_of(ranks, table())


def test_copper_is_taken_where_it_reaches_and_costs_less() -> None:
    def kinds(**cable: float) -> set[str]:
        copper = {"rate": 100 * GBPS, "reach_m": 3, "price": 20, **cable}
        return {item.kind for item in bill_of(small(), table(copper=[copper])).items} & {"copper", "fibre"}

    assert kinds(reach_m=100) == {"copper"}
    assert kinds(reach_m=1) == {"fibre"}
    # In a rack optics cost 2 x 60 + 10 + 2 x 2 = 134.
    assert kinds(price=134) == {"copper", "fibre"}
    assert kinds(price=134.01) == {"fibre"}
    assert bill_of(small(), table(copper=[])).count_of("fibre") == 6


@pytest.mark.parametrize(("optics", "of_switches", "of_nics"), [("lpo", "LPO", "LPO"), ("cpo", "CPO", "transceiver")])
def test_linear_optics_are_at_both_ends_and_engines_in_switches_alone(
    optics: str, of_switches: str, of_nics: str
) -> None:
    shipped = read_prices(changes=[Change("optics", optics, "--assume"), Change("copper", [], "--assume")])
    fabric = leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2, host_rate_bps=800 * GBPS)
    found = {item.name.split()[0]: item.count for item in bill_of(fabric, shipped).items if item.kind == "transceiver"}
    # 4 links of hosts and 2 between switches.
    ends = {of_switches: 4 + 2 * 2}
    ends[of_nics] = ends.get(of_nics, 0) + 4
    assert found == ends


def test_optics_that_the_table_lacks_are_refused() -> None:
    valid = "pluggable optics of 100Gb/s up to 100 m, pluggable optics of 400Gb/s up to 100 m"
    with refused(BadInputError, valid=valid, problem="with cpo optics"):
        bill_of(small(rate_gbps=100), table(copper=[], optics="cpo"))


def test_hosts_fill_racks_and_switches_stand_amid_their_cables() -> None:
    layout = FloorLayout(accelerators_per_rack=4, racks_per_row=2, rack_pitch_m=1, row_pitch_m=10, drop_m=2)
    fabric = fat_tree(planes=1, pods=2, leaves_per_pod=2, spines_per_pod=1, cores_per_spine=1, hosts_per_leaf=4)
    floor = floor_of(fabric, layout)
    assert floor.host_racks == 4
    assert [floor.racks[f"h{host}"] for host in (0, 4, 8, 15)] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    by_role = {
        role: [floor.racks[each.name] for each in fabric.switches_with_role(0, role)]
        for role in ("leaf", "spine", "core")
    }
    assert by_role["leaf"] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert by_role["spine"] == [(0, 0), (1, 0)]
    assert by_role["core"] == [(0, 0)]
    assert floor.length_m("h0", "h15") == 2 + 10 + 1 + 2 + 1
    assert floor.length_m("h15", "h0") == floor.length_m("h0", "h15")
    assert floor.length_m("h0", "h1") == layout.in_rack_m


def test_ranks_of_a_host_share_a_rack_on_rails_too() -> None:
    rails = with_scale_up(
        rail_only(planes=1, rails=4, blocks=1, hosts_per_leaf=4), ranks_per_host=4, rail_optimised=True
    )
    floor = floor_of(rails, FloorLayout(accelerators_per_rack=8))
    for ranks in rails.scale_up.hosts(len(rails.hosts)):  # type: ignore[union-attr]
        assert len({floor.racks[rails.hosts[rank].name] for rank in ranks}) == 1
    assert floor.host_racks == 2
    assert cost_figures("rails", rails, read_prices()).accelerators_per_host == 4
    assert cost_figures("small", small(), read_prices()).accelerators_per_host == 1


def test_networks_apart_are_halved_each() -> None:
    # Four rails of one switch and four hosts each: half of each switch's hosts send 2 x 100 Gb/s.
    rails = rail_only(planes=1, rails=4, blocks=1, hosts_per_leaf=4, host_rate_bps=100 * GBPS)
    assert fabric_bisection(rails) == (4 * 2 * 100 * GBPS, True)
    for joined in (small(planes=2), dragonfly(groups=3, routers_per_group=2, global_links_per_router=1)):
        planes = fabric_metrics(joined).planes
        expected = sum(len(each.planes) * each.bisection.bandwidth_bps for each in planes if each.bisection)
        assert fabric_bisection(joined)[0] == expected


def test_circuit_switches_and_their_fibres_are_priced_once() -> None:
    fabric = optical_core(leaves=4, matchings={"all": (0, 1), "twice": (0, 0)}, host_rate_bps=100 * GBPS)
    bills = [bill_of(each, table()) for each in fabric.configurations]
    assert bills[0] == bills[1]  # circuits change, the parts do not
    assert {item.kind: item.count for item in bills[0].items} == {
        "switch": 4, "nic": 4, "circuit switch": 2, "transceiver": 8, "fibre": 8, "copper": 4,
    }  # fmt: skip
    with refused(BadInputError, valid="none there", problem="optical circuit switch of 4"):
        bill_of(fabric, table(circuit_switches=[]))


def test_interest_is_that_of_an_annuity() -> None:
    def interest(rate: float, years: float = 2.0) -> float:
        return over_years(1000, 0, Energy(cost_of_capital=rate, years=years)).interest

    # 10 % over 2 years: 1000 x 0.1 / (1 - 1.1^-2) = 576.190 a year.
    assert interest(0.1) == pytest.approx(2 * 576.190476 - 1000)
    assert interest(0) == 0
    assert interest(1e-18) == pytest.approx(0, abs=1e-9)
    assert interest(0.1, years=1) == pytest.approx(100)


@given(st.floats(1e-3, 1e7))
def test_ticks_reach_what_they_are_for(largest: float) -> None:
    found = ticks(largest)
    assert found[0] == 0
    assert found[-1] >= largest * (1 - 1e-9)
    assert len(found) <= 7
    assert math.isclose(found[1] - found[0], found[-1] - found[-2])


def run(*arguments: str | Path) -> tuple[int, str]:
    runner = CliRunner()
    found: list[int] = []
    with runner.isolation() as (out, err, _):
        found.append(run_guarded(lambda: weft.main([str(each) for each in arguments], "weft", standalone_mode=False)))
        text = (out.getvalue() + err.getvalue()).decode()
    return found[0], text


def test_the_shipped_table_is_read_back_as_it_is_written(tmp_path: Path) -> None:
    code, text = run("cost", "--table")
    assert (code, text) == (0, shipped_table_text())
    copy = tmp_path / "mine.yaml"
    copy.write_text(text)
    assert read_prices(copy) == read_prices()


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("currency: $", "curency: $", ":5: unknown key 'curency'; did you mean 'currency'?"),
        ("price: 150, watts: 8}", "price: cheap, watts: 8}", "nics[0].price: 'cheap' is not a number"),
        ("price: 150, watts: 8}", "price: -1, watts: 8}", "nics[0].price: -1 is out of range (valid: 0 to "),
        ("pue: 1.3", "pue: 0.5", "energy.pue: 0.5 is out of range (valid: 1 to 10)"),
        (
            "{rate: 10Gb/s, price: 150",
            "{rate: 10, price: 150",
            "nics[0].rate: 10 has no unit; did you mean 10Gb/s?",
        ),
        ("fibre: {price: 30, price_per_m: 1}", "", "fibre: is missing"),
    ],
)
def test_a_wrong_table_is_refused_with_its_place(tmp_path: Path, old: str, new: str, problem: str) -> None:
    assert old in shipped_table_text()
    path = tmp_path / "mine.yaml"
    path.write_text(shipped_table_text().replace(old, new))
    code, text = run("cost", "--prices", path, ROOT / "labs/11-fabrics/rails.yaml")
    assert code == 3
    assert f"{path}" in text
    assert problem in text


def test_json_has_what_the_tables_have(tmp_path: Path) -> None:
    rails, torus = (ROOT / "labs/11-fabrics" / f"{name}.yaml" for name in ("rails", "torus"))
    plot = tmp_path / "plot.svg"
    code, text = run("cost", rails, torus, "--json", "--accelerator", "H100", "--assume", "energy.years=5")
    assert code == 0
    found = json.loads(text)
    assert found["assumptions"]["energy"]["years"] == 5
    assert [each["name"] for each in found["fabrics"]] == ["rails", "torus"]
    for each in found["fabrics"]:
        assert each["price"] == pytest.approx(sum(item["price"] for item in each["items"]))
        assert each["with_accelerators"]["price"] == 64 * 35000
    code, text = run("cost", rails, torus, "--plot", plot)
    assert code == 0
    assert "not a quotation" in text
    assert "≤ 3,200" in text
    picture = plot.read_text()
    assert picture.count("<circle") == 2 * 2 + 2
    assert "not a quotation" in picture


def test_options_change_scenario_and_table() -> None:
    rails = ROOT / "labs/11-fabrics/rails.yaml"
    _, text = run("cost", rails, "--set", "fabric.spines=8", "--json")
    spines = json.loads(text)["fabrics"][0]["items"][0]["count"]
    assert spines == 16
    code, text = run("cost", rails, "--assume", "energy.pue=0")
    assert (code, "--assume energy.pue: 0 is out of range" in text) == (3, True)
    code, text = run("cost", rails, "--assume", "pue")
    assert (code, "is not KEY=VALUE, such as energy.years=5" in text) == (3, True)
    code, text = run("cost", rails, "--plot", "x.pdf")
    assert (code, "unknown suffix '.pdf'" in text) == (3, True)
    assert run("cost")[0] == 2
    assert run("cost", "--table", rails)[0] == 2


def test_a_file_of_a_topology_and_several_of_one_name(tmp_path: Path) -> None:
    rails = ROOT / "labs/11-fabrics/rails.yaml"
    other = tmp_path / "wider.yaml"
    other.write_text(rails.read_text().replace("spines: 4", "spines: 8"))
    _, text = run("cost", rails, other, "--json")
    assert [each["name"] for each in json.loads(text)["fabrics"]] == ["rails", "wider"]
    exported = tmp_path / "graph.json"
    assert run("topology", "export", "node_link", rails, "-o", exported)[0] == 0
    code, text = run("cost", exported, "--json")
    assert code == 0
    assert json.loads(text)["fabrics"][0]["accelerators"] == 64
    network = ROOT / "examples/own_network/topology.json"
    code, text = run("cost", network, "--json")
    assert code == 0
    assert json.loads(text)["fabrics"][0]["accelerators"] == len(json.loads(network.read_text())["hosts"])


def test_a_network_file_needs_no_program_and_may_have_switches_without_links(tmp_path: Path) -> None:
    path = tmp_path / "topology.json"
    hosts = {f"h{n}": {"ip": f"10.0.{n}.{n}/24", "mac": f"08:00:00:00:0{n}:00"} for n in (1, 2)}
    links = [["h1", "s1-p1"], ["h2", "s1-p2"]]
    path.write_text(json.dumps({"hosts": hosts, "switches": {"s1": {}, "s2": {}}, "links": links}))
    done = CliRunner().invoke(weft, ["cost", str(path), "--json"], catch_exceptions=False)
    (found,) = json.loads(done.stdout)["fabrics"]
    assert [(item["kind"], item["count"]) for item in found["items"]] == [
        ("switch", 2),
        ("nic", 2),
        ("copper", 2),
    ]
    assert found["bisection_bps"] == GBPS


def test_a_host_may_have_accelerators_behind_all_of_its_nics(tmp_path: Path) -> None:
    path = tmp_path / "planes.yaml"
    path.write_text(
        "name: planes\nfabric: {planes: 8, leaves: 2, spines: 2, hosts_per_leaf: 4}\n"
        "cluster: {accelerators_per_host: 8}\n",
        encoding="utf-8",
    )
    fabric = cost_of(path)
    assert (fabric["accelerators"], fabric["accelerators_per_host"]) == (64, 8)
    assert fabric["price_per_accelerator"] == pytest.approx(fabric["price"] / 64)
    assert fabric["kept_share"] is None


def test_kept_work_costs_more_than_time(tmp_path: Path) -> None:
    path = tmp_path / "fails.yaml"
    path.write_text(
        "name: fails\nfabric: {planes: 1, leaves: 2, spines: 2, hosts_per_leaf: 4}\n"
        "cluster: {failures: [{part: host, mtbf: 20d, repair: 1h}]}\n",
        encoding="utf-8",
    )
    fabric = cost_of(path)
    assert 0 < fabric["kept_share"] < 1
    assert fabric["per_kept_accelerator_hour"] == pytest.approx(fabric["per_accelerator_hour"] / fabric["kept_share"])


def cost_of(path: Path) -> dict[str, Any]:
    done = CliRunner().invoke(weft, ["cost", str(path), "--json"], catch_exceptions=False, standalone_mode=False)
    found: dict[str, Any] = json.loads(done.stdout)["fabrics"][0]
    return found
