"""Goals of the exercise: `weft check FOLDER` runs scenario.yaml with the folder's parameter_server.py."""

from pathlib import Path

from weft.exercises import Exercise, Goal, Missing, Work, kept
from weft.results.rdma import RDMA, RdmaResult

SCENARIO, MEASURING, PUSH = "scenario.yaml", "h3", "IBV_WR_RDMA_WRITE_WITH_IMM"
HOSTS = ["h0", "h1", "h2", "h3"]
MIB, SLOTS = 1 << 20, 16
SIZES = (64, 1024, 4096, 16384, 65536, 262144, MIB)
PUSHES_OF_A_SIZE, STEPS, STEP_BYTES, WORKERS = 65, 40, 65536, 3
SUM = (PUSHES_OF_A_SIZE * sum(SIZES) + WORKERS * STEPS * STEP_BYTES) // 4
# Bounds of times are for this network; where the programs are is up to the student.
SAME = kept(SCENARIO, Path(__file__).parent / SCENARIO, free=["traffic.*.rdma.*"])


def result(work: Work) -> RdmaResult:
    SAME.check(work)
    found = work.run(SCENARIO).of(RDMA)
    if len(found) != 1:
        raise Missing(f"{SCENARIO} has {len(found)} items 'rdma', where the exercise has one")
    hosts = [program.host for program in found[0].programs]
    if hosts != HOSTS:
        raise Missing(f"{SCENARIO} has programs on {', '.join(hosts)}, where the exercise has {', '.join(HOSTS)}")
    return found[0]


def measured(work: Work, series: str, size: int) -> float:
    programs = {program.host: program for program in result(work).programs}
    points = {int(x): y for x, y in programs[MEASURING].series.get(series, [])}
    if size not in points:
        raise Missing(f"{MEASURING} records no '{series}' of {size} B")
    return points[size]


def weights(work: Work) -> None:
    found = result(work).programs[0].values.get("sum of the weights")
    if found != SUM:
        raise Missing(f"the sum of the weights is {found}; all gradients add up to {SUM}")
    # The sum is what the program says; these bytes are what the adapters have carried.
    written = {each.opcode: each.bytes for each in result(work).operations}.get(PUSH, 0)
    if written != 4 * SUM:
        raise Missing(f"pushes have written {written:,} B of {4 * SUM:,}")


def requests(work: Work) -> None:
    done = {each.opcode: each for each in result(work).operations}
    for opcode in (PUSH, "IBV_WR_RDMA_READ", "IBV_WR_SEND_WITH_IMM"):
        if opcode not in done:
            raise Missing(f"no {opcode} was posted")
        if done[opcode].failed:
            raise Missing(f"{opcode} failed: {done[opcode].failed}")


def latency(work: Work) -> None:
    for name in ("push", "pull"):
        found = measured(work, f"{name}: latency (µs) by size (B)", 64)
        if not 4 < found < 4.2:
            raise Missing(f"a {name} of 64 B takes {found:g} µs; the round trip is 4 µs")


def bandwidth(work: Work) -> None:
    found = measured(work, f"push: Gb/s by size (B), {SLOTS} under way", MIB)
    if found < 90:
        raise Missing(f"pushes of 1 MiB have {found:.1f} Gb/s")


def small_messages(work: Work) -> None:
    alone = measured(work, "push: Gb/s by size (B), 1 under way", 64)
    together = measured(work, f"push: Gb/s by size (B), {SLOTS} under way", 64)
    if together < 10 * alone:
        raise Missing(f"16 pushes of 64 B under way have {together:.2g} Gb/s, one has {alone:.2g}")


EXERCISE = Exercise(
    [
        Goal(
            "pushes, pulls and credits are the requests that they should be, and none fails",
            "steps 1 to 3: push and pull of Worker, take of Server; docs/rdma.md says what each opcode needs",
            requests,
        ),
        Goal(
            "every gradient is in the weights once",
            "the immediate names the slot; byte_len of the completion says how much of it was written",
            weights,
        ),
        Goal(
            "a push and a pull of 64 B take one round trip",
            "one request each; the completion's latency_ps, not the program's clock",
            latency,
        ),
        Goal("pushes of 1 MiB fill the link", "step 4: more than one push under way", bandwidth),
        Goal(
            "16 small pushes at once have more than ten times the bandwidth of one",
            "step 4: post as long as fewer than under_way slots are taken, and only then wait",
            small_messages,
        ),
    ]
)
