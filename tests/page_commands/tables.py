"""How tests run the commands of pages: small sizes, files in place of the reader's own, and other tests that run them.

A key of a table is a command as `CommandLine.text` has it, or its first words; the longest one counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Small:
    """Makes a command take seconds: parts to put in place of others, and options to put behind it."""

    added: str = ""
    instead: dict[str, str] = field(default_factory=dict)


_SHORT = "--set 'traffic=[{incast: h0, bytes_per_sender: 16KiB}]'"

SMALL = {
    "weft run SCENARIO --set fabric.host_rate=100Gb/s": Small(
        "--set 'traffic[0].bytes_per_sender=16KiB' --set 'traffic[1].sizes=[4KiB]'"
    ),
    "weft run SCENARIO --repeat 5": Small(_SHORT + " --clock virtual", {"--repeat 5": "--repeat 2"}),
    "weft sweep SCENARIO --grid": Small(_SHORT, {"=1,2,4": "=1,2", "1..5": "1..1"}),
    "weft sweep SCENARIO.yaml --out DIR --grid fabric.spines=1,2,4": Small(
        _SHORT,
        {"DIR": "grid", "=1,2,4": "=1,2", "1..5": "1..1"},
    ),
    "weft sweep SCENARIO.yaml --out DIR --zip": Small(
        _SHORT,
        {"DIR": "zip", "=4,8,16": "=2,4", "=2,4,8": "=1,2"},
    ),
    "weft sweep SCENARIO.yaml --out DIR --grid transport.congestion_control=dcqcn,hpcc,swift": Small(
        _SHORT,
        {"DIR": "workers", "dcqcn,hpcc,swift": "dcqcn,swift", "--workers 8": "--workers 2"},
    ),
    "weft sweep examples/timely.yaml": Small("--set 'traffic[0].bytes_per_sender=64KiB'"),
    "weft sweep examples/load_balancing.yaml": Small(
        "--set 'traffic[0].permutation=20KB'", {"examples/load_balancing.yaml": "two_modes.yaml"}
    ),
    "weft bench training examples/bench/two-tier.yaml": Small("--test 8.3"),
    "weft bench training examples/bench/two-tier.yaml --test 8.3 --test 11": Small(
        instead={"--test 8.3 --test 11": "--test 8.3 --test 11.1"}
    ),
    "weft goodput SCENARIO": Small("--set 'cluster.failures=[{part: host, mtbf: 20d}]'"),
    "weft schedule SCENARIO": Small("--seeds 1 --set schedule.jobs=20 --set 'schedule.sizes=[{accelerators: 1}]'"),
    "weft schedule examples/scheduling/policies.yaml": Small(
        "--seeds 1 --set schedule.jobs=40 --set 'schedule.slowdown.spread=[{leaves: 2, factor: 2}]'"
    ),
    "weft drill SCENARIO": Small(
        _SHORT + " --set drill.objective.slowdown=1000 --set drill.objective.recovery=1s", {"--count 100": "--count 1"}
    ),
    "weft drill examples/drills/two-tier.yaml": Small(
        "--set drill.objective.slowdown=1000 --set drill.objective.recovery=1s", {"--count 100": "--count 2"}
    ),
    "weft run labs/24-telemetry/scenario.yaml --metrics": Small(_SHORT, {"--metrics": "--metrics 0"}),
    # Ports that another program of the machine may have.
    "weft lab SCENARIO --web": Small(instead={"--web": "--web 0"}),
    "weft lab SCENARIO --metrics": Small(instead={"--metrics": "--metrics 0"}),
    "weft run SCENARIO --clock real --web": Small(instead={"--web": "--web 0"}),
    "weft run SCENARIO --metrics": Small(instead={"--metrics": "--metrics 0"}),
    "tcpdump": Small("-c 1"),
}
"""Commands that would run for more than a few seconds, or until they are interrupted, at the page's size."""

STATUS = {"weft check 20-topology-design": 1}
"""Exit codes of commands that do not end with 0: the copied exercise is not solved yet."""

LOSES = {
    "weft run labs/03-switch-memory/pfc.yaml --set 'events=[{host: h0, state: storming, at: 100us, until: 2ms}]'": (
        "queue storm"
    ),
    "weft run examples/datagrams.yaml": "link lost",
    "weft run examples/noisy_parts.yaml": "link lost",
    "weft run examples/storage_network.yaml": "link cut, queue down",
    "weft drill examples/drills/two-tier.yaml": "link lost",
    "weft drill SCENARIO": "link cut",
}
"""Causes for which runs lose packets, with commas between, because that is what the page shows."""


@dataclass(frozen=True)
class Block:
    """Stands in for the reader's own files in a block of commands.

    `words` maps the page's words for the reader's own names to the names that a test uses. `before` is a shell command
    that runs first, in the block's folder. `yaml` names the file for the page's first block of YAML.
    """

    words: dict[str, str] = field(default_factory=dict)
    before: str = ""
    yaml: str = ""


_OWN_NETWORK = "cp -r examples/own_network/. ."
_REAL = (
    "printf '%s\\n' 'fabric: {planes: 1, leaves: 2, spines: 1, hosts_per_leaf: 1}' 'clock: real' 'dilation: 1000' "
    "'traffic: [{incast: h0, bytes_per_sender: 16KiB}]' > real.yaml"
)

BLOCKS = {
    "weft labs": Block({"FOLDER": "notebooks"}),
    "pip install '.[demo,notebook]'": Block({"~/labs": "notebooks"}),
    "weft init": Block({"SCENARIO": "scenario.yaml", "DIR": "sweep"}),
    "weft topology show SCENARIO": Block(
        {"SCENARIO…": "SCENARIO", "SCENARIO": "examples/training.yaml", "FORMAT": "graphml"}
    ),
    "weft report DIR": Block(
        {"DIR": "one", "A B": "one two", "SCENARIO": "real.yaml"},
        f"weft init && weft run scenario.yaml {_SHORT} --out one && cp -r one two && {_REAL}",
    ),
    "weft lint SCENARIO": Block({"SCENARIO": "examples/training.yaml"}),
    "weft new my-switch": Block(
        {
            "mine.p4 ": "examples/debugging/router.p4 ",
            "FILE.p4 FILE.stf": "examples/debugging/router.p4 examples/debugging/router.stf",
            "switch-cli s1": "switch-cli p0l0",
        },
        _OWN_NETWORK,
    ),
    "weft controller link drain p0l0-p0s1": Block(before="weft controller plane drain 1"),
    "weft compare runs/bench-training-two-tier": Block(
        before="for each in two-tier ultra-ethernet; do weft bench training examples/bench/$each.yaml --test 8.3; done"
    ),
    "weft cost --table": Block({"SCENARIO": "labs/11-fabrics/rails.yaml"}),
    "weft power SCENARIO": Block(
        {"SCENARIO": "examples/training.yaml", "DIR": "one"}, "weft run examples/training.yaml --out one"
    ),
    "weft sweep examples/timely.yaml": Block({"DIR": "sweep"}),
    "weft sweep SCENARIO.yaml": Block({"SCENARIO.yaml": "scenario.yaml"}, "weft init"),
    "weft run topology.json --packet-logs logs": Block(before=_OWN_NETWORK),
    "weft stf router.p4 router.stf": Block(
        {"DIR": "cases"}, "mkdir cases && cp examples/debugging/router.* . && cp router.* cases"
    ),
    "weft trace p0l0 --port 3": Block(
        {
            "basic.p4": "examples/debugging/router.p4",
            "entries.stf": "examples/debugging/router.stf",
            "capture.pcap": "examples/ping.pcap",
            "0800…": "080045000014000000004011000000000000" + "0a000101",
        },
        "weft compile examples/debugging/router.p4 -o basic.json",
    ),
    "python benchmarks/bench_load_balancing.py --hosts 1024 --retransmission selective-repeat": Block(
        before="sed 's/: .flow, .*/: [flow, adaptive]/' examples/load_balancing.yaml > two_modes.yaml"
    ),
    "weft run scenario.yaml": Block(before="weft new my-switch && cp -r my-switch/. ."),
    "weft lab SCENARIO --web": Block({"SCENARIO": "real.yaml"}, _REAL),
    "weft lab SCENARIO --metrics": Block({"SCENARIO": "real.yaml"}, _REAL),
    "weft lab mpi.yaml": Block(yaml="mpi.yaml"),
    "vagrant/soft-roce.sh --install": Block(yaml="soft-roce.yaml"),
}
"""By the first command of a block."""

WHOLE_PAGES = {
    "docs/debugging.md": "tests/dropin/test_debugging_page.py::test_the_page_shows_what_the_command_prints",
    "docs/own-network.md": "tests/own_network/test_page.py::test_the_output_is_that_of_the_run",
}
"""Another test runs every command with a prompt on these pages."""

_TUTORIALS = "p4lang's tutorials are not part of Weft (WEFT_TUTORIALS names a clone for tests/own_network)"
_RUNNING_SWITCH = "tests/dropin/test_running_switch.py"
_LIVE_LAB = "tests/live/test_live_lab.py::test_congestion_a_failure_and_entries_are_seen_in_the_browser"
_VM = "tests/packaging/test_vm.py"
_NETWORK = "tests/p4utils/test_network_api.py::test_an_unmodified_network_and_its_controller_run"
_MAKE_RUN = "tests/shims/test_make_run.py::test_the_tutorials_basic_exercise_runs"
_CONFORMANCE = "tests/stf/test_conformance.py::test_v1model_cases_pass_or_are_refused_for_a_reason"

_LAB_21 = "tests/end_to_end/test_pyverbs_in_a_lab.py::test_lab_21s_parameter_server_adds_what_workers_push"
_LAB_25 = "tests/labs/test_incast_of_programs.py::test_programs_share_the_link_and_counters_say_why"
_RDMA_PROGRAMS = "tests/end_to_end/test_verbs_programs.py::test_a_pair_of_programs"
_MRC_LIBRARY = "tests/end_to_end/test_mrc_library.py::test_writes_arrive_over_both_planes"
_WITHOUT_ROOT = "tests/end_to_end/test_without_root.py::test_rdma_programs_run"

ELSEWHERE = {
    "mininet> h0 ibv_devices": "tests/end_to_end/test_verbs_devices.py::test_a_program_lists_its_hosts_device",
    "mininet> h0 ib_write_bw": _RDMA_PROGRAMS,
    "mininet> h1 ib_write_bw": _RDMA_PROGRAMS,
    "mininet> h2 ib_write_bw": _RDMA_PROGRAMS,
    "mininet> h3 ib_write_bw": _RDMA_PROGRAMS,
    "mininet> h0 rping": _RDMA_PROGRAMS,
    "mininet> h3 rping": _RDMA_PROGRAMS,
    "mininet> h0 /usr/bin/python3 labs/21-rdma-programming/pyverbs_server.py": _LAB_21,
    "mininet> h3 /usr/bin/python3 labs/21-rdma-programming/pyverbs_server.py": _LAB_21,
    "W=$(python": _MRC_LIBRARY,
    "cc -I$W/include": _MRC_LIBRARY,
    "unshare --user": _WITHOUT_ROOT,
    "mount -t tmpfs": _WITHOUT_ROOT,
    "weft controller ev": "tests/end_to_end/test_mrc_real_clock.py::test_the_pages_commands_about_evs_work",
    "weft completion bash --install": (
        "tests/weft/test_completion.py::test_a_script_is_installed_where_the_shell_looks"
    ),
    "curl -s http://127.0.0.1:9464/metrics": "tests/metrics/test_metrics_of_a_lab.py::test_a_run_is_scraped",
    "gnmic": "tests/switch/test_gnmi.py::test_gnmic_runs_the_pages_commands",
    "jupyter lab": f"{_VM}::test_jupyter_asks_for_a_token_that_only_its_user_reads",
    'eval "$(weft shims tools)"': "tests/shims/test_writing.py::test_the_line_puts_them_first_on_the_path",
    "make run": _MAKE_RUN,
    "tools/bin/python3 network.py": _NETWORK,
    "weft run weft-network.json": "tests/p4utils/test_network_api.py::test_the_network_runs_in_virtual_time",
    "mininet> h0 mpirun": "tests/end_to_end/test_mpi.py::test_mpi_reduces_between_hosts",
    "mininet> py": _LIVE_LAB,
    "mpirun -n 2 weft run": "tests/weft/test_mpi.py::test_processes_of_mpirun_write_what_one_writes",
    "prometheus": "tests/metrics/test_storm.py::test_the_alerts_of_a_storm_fire_and_resolve",
    "pytest": "tests/own_program/test_new.py::test_the_test_of_a_new_project_passes",
    "python labs/25-real-programs/programs.py": _LAB_25,
    "python labs/07-sweep/plot.py real.csv": "tests/labs/test_real_programs.py::test_a_table_is_what_lab_7_draws",
    "python labs/22-communication-analysis/real_programs.py": (
        "tests/labs/test_real_programs.py::test_sums_of_all_sizes_are_numpys"
    ),
    "tshark": "tests/traffic/test_wireshark.py::test_aggregation_fields_and_lanes_are_shown",
    "vagrant/soft-roce.sh --first-namespace --pyverbs": (f"{_VM}::test_soft_roce_runs_the_parameter_server_of_lab_21"),
    "vagrant/soft-roce.sh --first-namespace h0 h1": f"{_VM}::test_soft_roce_prints_its_commands",
    "vagrant/soft-roce.sh --install": f"{_VM}::test_soft_roce_installs_what_it_needs",
    "weft clean": (
        "tests/end_to_end/test_leftovers.py::test_weft_clean_removes_what_a_killed_run_leaves_and_nothing_else"
    ),
    "weft collective allreduce": "tests/end_to_end/test_commands.py::test_collective_prints_nccl_tests_columns",
    "weft controller --address": (
        "tests/controller/test_controller_cli.py::test_a_switch_by_address_needs_no_lab_and_no_p4info"
    ),
    "weft controller circuits show": "tests/controller/test_circuit_commands.py::test_configurations_are_shown",
    "weft job tolerance": (
        "tests/drills/test_latency_tolerance.py::test_a_step_tolerates_what_the_messages_of_its_path_and_what_hides_them_allow"
    ),
    "weft job-trace show": "tests/jobs/traces/test_page.py::test_the_example_prints_what_the_page_shows",
    "weft lab topology.json --web 8080": (
        "tests/live/test_live_lab.py::test_a_network_of_somebody_elses_program_is_shown_too"
    ),
    "weft run examples/tcp.yaml": "tests/tcp/test_page.py::test_the_page_shows_what_the_example_prints",
    "weft run examples/topologies/torus.yaml --clock real": (
        "tests/end_to_end/test_every_topology.py::test_all_reduces_are_right"
    ),
    "weft run labs/02-congestion-control/scenario.yaml --clock virtual --set transport.congestion_control=halving": (
        "tests/transport/test_congestion_registry.py::test_the_guides_control_is_one_file"
    ),
    "weft workbench": "tests/workbench/test_jobs.py::test_a_workbench_that_ends_leaves_no_run",
    "weft schema --markdown > docs/scenario.md": (
        "tests/weft/test_scenario_reference.py::test_the_committed_reference_is_current"
    ),
    "weft paper": "tests/papers/test_studies.py::test_a_reduced_run_keeps_the_shapes",
    "python benchmarks/decision_runs.py": (
        "tests/benchmarks/test_decision.py::test_small_runs_show_what_the_page_says_of_paths_and_of_switches_that_die"
    ),
    "python benchmarks/papers_page.py": "tests/papers/test_page.py::test_the_committed_page_is_current",
    "python benchmarks/fabric_reports.py": (
        "tests/bench/test_four_fabrics.py::test_the_committed_page_follows_from_the_reports"
    ),
    "weft bench training examples/bench/two-tier.yaml --profile standard": (
        "tests/bench/test_four_fabrics.py::test_tests_of_the_reports_run_at_their_smallest"
    ),
    "weft stf --all p4c/testdata/p4_16_samples": _CONFORMANCE,
    "weft switch -i": f"{_RUNNING_SWITCH}::test_a_launch_line_of_the_tutorials_works",
    "weft switch-cost --lanes 256": (
        "tests/controller/test_switch_cost.py::test_the_page_shows_what_the_command_prints"
    ),
    "weft trace 127.0.0.1:50051": (f"{_RUNNING_SWITCH}::test_a_running_switch_is_traced_without_losing_its_state"),
    "weft-switch": f"{_RUNNING_SWITCH}::test_a_launch_line_of_the_tutorials_works",
    "torchrun --nproc-per-node 4 examples/torch_ddp.py": (
        "tests/pytorch/test_backend.py::test_an_example_runs_on_the_default_fabric"
    ),
    "WEFT_SCENARIO=examples/torch_fabric.yaml": (
        "tests/pytorch/test_backend.py::test_unmodified_scripts_train_as_over_gloo"
    ),
    "WEFT_STF_DIR=p4c/testdata/p4_16_samples pytest": _CONFORMANCE,
}
"""Commands that another test runs, as they are or at another size."""

NO_TEST = {
    "apt install": "it installs packages of the machine",
    "cd tutorials/exercises/basic": _TUTORIALS,
    "cd vagrant": "it needs a hypervisor",
    "git clone": "it needs the Internet",
    "make demo": "it installs packages of the machine",
    "make test": "it installs packages of the machine and runs the tests",
    "mpirun --hostfile machines": "it needs two machines",
    "pip install": "it needs the Internet",
    "podman": "it builds and runs a container from the Internet's images",
    "python -m pytest tests/controller": "it runs the tests",
    "python setup.py build_ext": "it builds the engine with which the tests run, for minutes",
    "ssh": "it needs another machine",
    "vagrant": "it needs a hypervisor",
}
"""Commands that no test can run, with the reason."""
