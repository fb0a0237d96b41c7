"""A key of a scenario's section `transport` is declared once, and reaches the queue pairs of hosts by its name."""

import json
from dataclasses import fields
from typing import Any, get_args

import pytest

from tests.refusals import refused
from weft.engine import record_types
from weft.errors import BadInputError
from weft.quantities.definitions import Quantity, without_unit
from weft.scenario import TransportSection, parse_scenario
from weft.traffic.messages import MessageError, as_message, read_message
from weft.traffic.transport_settings import PathTraits, TransportSettings

OPTIONS = {without_unit(option): option for option in record_types()["RcOptions"]}
KEYS = [each.name for each in fields(TransportSettings) if each.name in OPTIONS]
# Texts of scenarios; numbers take their highest value.
TEXTS = {"retransmission": "selective-repeat"}


def quantity_of(annotation: Any, metadata: Any = ()) -> Quantity | None:
    """Return the quantity that a key is, if it is one."""
    own = next((each for each in metadata if isinstance(each, Quantity)), None)
    found = (quantity_of(each, getattr(each, "__metadata__", ())) for each in get_args(annotation))
    return own or next((each for each in found if each), None)


def given(key: str) -> Any:
    field = TransportSection.model_fields[key]
    quantity = quantity_of(field.annotation, field.metadata)
    return TEXTS[key] if quantity is None else quantity.write(quantity.highest)


def read(**section: Any) -> TransportSettings:
    """Return the settings that a host's process reads where a scenario has this section."""
    settings = parse_scenario({"transport": section}).transport.settings()
    return read_message(TransportSettings, json.loads(json.dumps(as_message(settings))))


def test_a_section_has_the_keys_that_hosts_take() -> None:
    assert list(TransportSection.model_fields) == [each.name for each in fields(TransportSettings)]


@pytest.mark.parametrize("key", KEYS)
def test_a_key_reaches_queue_pairs_by_its_name(key: str) -> None:
    value = given(key)
    settings = read(**{key: int(value.replace(",", "")) if value[0].isdigit() and value[-1].isdigit() else value})
    options = settings.queue_pair_options(10, 1000, PathTraits())
    assert options[OPTIONS[key]] == getattr(settings, key)
    assert options != TransportSettings().queue_pair_options(10, 1000, PathTraits())


def test_hosts_check_what_scenarios_check() -> None:
    with refused(BadInputError, place="scenario: transport.max_outstanding_reads", valid="1 to 128"):
        read(max_outstanding_reads=129)
    with refused(MessageError, problem="field 'max_outstanding_reads'"):
        read_message(TransportSettings, {"max_outstanding_reads": 129})
