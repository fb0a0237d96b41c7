"""The list of what a controller saw and did."""

from weft.controller.event_log import ControllerEvent, EventLog


def test_it_keeps_the_latest_events_in_order_and_counts_the_others() -> None:
    log = EventLog(most=3)
    for time_ps in range(5):
        log.add(ControllerEvent(time_ps, "link down", "p0l0<->p0s0"))
    assert [event.time_ps for event in log] == [2, 3, 4]
    assert (len(log), log.dropped) == (3, 2)


def test_an_event_is_plain_data() -> None:
    event = ControllerEvent(7, "programmed", detail="link down", duration_ps=5, entries=3, switches=("p0l0",))
    assert event.as_dict() == {
        "time_ps": 7,
        "kind": "programmed",
        "element": "",
        "detail": "link down",
        "duration_ps": 5,
        "entries": 3,
        "switches": ["p0l0"],
    }
