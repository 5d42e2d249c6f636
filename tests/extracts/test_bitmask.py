"""Sets of places as bit masks say what sets of numbers say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.files.text.bitmask import (
    NEVER,
    Tally,
    bits_at,
    next_set,
    pack,
    set_bit,
    set_positions,
    toggle,
)

SIZE = 200
PLACES = st.sets(st.integers(0, SIZE - 1), max_size=6)
ALL = np.arange(SIZE, dtype=np.int64)


def packed(places: set[int]) -> np.ndarray:
    flags = np.zeros(SIZE, np.bool_)
    flags[[*places]] = True
    return pack(flags)


@pytest.mark.long
@given(PLACES)
def test_a_mask_has_the_places_that_were_put_into_it(places: set[int]) -> None:
    words = packed(places)
    assert set_positions(words).tolist() == sorted(places)
    assert bits_at(words, ALL).tolist() == [at in places for at in ALL]
    assert Tally(words).before(ALL).tolist() == [sum(one < at for one in places) for at in ALL]
    one_by_one = packed(set())
    for place in places:
        set_bit(one_by_one, place)
    assert one_by_one.tolist() == words.tolist()


@given(PLACES)
def test_the_next_place_is_the_first_at_or_behind_one(places: set[int]) -> None:
    expected = [min((one for one in places if one >= at), default=NEVER) for at in ALL]
    assert next_set(packed(places), ALL).tolist() == expected


def test_a_place_alone_is_found_from_every_other() -> None:
    """The lowest bit of a word, and the highest one, are bits like the others."""
    for place in range(SIZE):
        expected = [place if at <= place else NEVER for at in ALL]
        assert next_set(packed({place}), ALL).tolist() == expected


@given(PLACES)
def test_every_other_stretch_is_inside(places: set[int]) -> None:
    expected = [sum(one <= at for one in places) % 2 == 1 for at in ALL]
    assert bits_at(toggle(packed(places)), ALL).tolist() == expected
