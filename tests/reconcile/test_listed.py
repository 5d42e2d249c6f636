"""Our rows and the service's insert-batch data: the same record, whatever it came wrapped in."""

from typing import Any

import pytest

from flows.steps.reconcile.listed import compare_rows


def row(data: str | None, **values: Any) -> dict[str, Any]:
    return {
        "Data": data, "HasError": False, "BatchId": 4101, "Jsondata": None,
        "source_batch_id": None, **values,
    }  # fmt: skip


WRAPPED = [
    # Data as it is here, whether it is the row that the service lists with Data "a"
    ("a", True),
    ("b", False),
    ("a,false,true,4101,,", True),
    ("a,,,,,", True),
    ("a,TRUE,False,1,,why", True),
    ('{"Data":"a","BatchId":4101}', True),
    # Records of as many cells, with no flags where flags would be.
    ("a,2,true,4101,,", False),
    ("a,true,2,4101,,", False),
    ("a,2,,4101,,", False),
    ("a,,2,4101,,", False),
    ("a,false,true,4101,", False),
    ("a,false,true,4101,,,", False),
    ('{"Data":"a"}', False),
]


@pytest.mark.parametrize(("data", "same"), WRAPPED)
def test_a_record_is_the_same_in_its_wrapper(data: str, same: bool) -> None:
    (compared,) = compare_rows([row(data, BatchId=2)], [row("a")])
    assert (compared.theirs, compared.same, compared.here) == (
        (1, 1, ((2, 1),)) if same else (1, 0, ())
    )
    (back,) = compare_rows([row("a", BatchId=2)], [row(data)])
    assert back.same == int(same)


def test_the_row_of_its_own_batch_goes_first() -> None:
    """Of equal rows the one that came under the BatchId, whatever the order they were read in."""
    ours = [
        row("a", BatchId=1, source_batch_id=4102, HasError=True),
        row("a", BatchId=2, source_batch_id=4101),
    ]
    (compared,) = compare_rows(ours, [row("a", BatchId=4101)])
    assert (compared.here, compared.otherwise, compared.missing) == (((2, 1),), 0, 0)


def test_what_the_service_lists_nowhere_is_told_under_the_batch_it_came_with() -> None:
    ours = [
        row("a", BatchId=1, source_batch_id=4101),
        row("a,false,true,4101,,", BatchId=1, source_batch_id=4101),  # The same record once more.
        row("b", BatchId=1, source_batch_id=4102),
        row(None, Jsondata='{"Id": 3}', BatchId=1, source_batch_id=4103),
        row("c", BatchId=2),
    ]
    told = [(one.batch_id, one.theirs, one.missing, one.differs) for one in compare_rows(ours, [])]
    assert told == [(number, 0, 1, True) for number in (4101, 4102, 4103)]
    # Another number of the service for the same record changes nothing about it.
    told = [
        (one.batch_id, one.same, one.missing) for one in compare_rows(ours, [row("a", BatchId=5)])
    ]
    assert told == [(5, 1, 0), (4102, 0, 1), (4103, 0, 1)]


@pytest.mark.parametrize("number", [0, 1])
def test_rows_without_a_batch_miss_nothing_of_another_one(number: int) -> None:
    ours = [row("a", BatchId=1, source_batch_id=number)]
    told = compare_rows(ours, [row("b", BatchId=None), row("b", BatchId=number)])
    assert [(one.batch_id, one.missing) for one in told] == [(None, 0), (number, 1)]


class Counted(int):
    """A BatchId that counts how often it is held against another one."""

    compared = 0
    __hash__ = int.__hash__

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return int.__eq__(self, other) is True

    def __ne__(self, other: object) -> bool:
        return not self == other


@pytest.mark.parametrize("contents", [1, 2, 300])
@pytest.mark.parametrize("batches", [1, 2, 300])
def test_work_grows_with_rows_alone(batches: int, contents: int) -> None:
    """However many BatchIds they are under, and however many of them are alike."""
    Counted.compared = 0
    told = compare_rows(
        [
            row(f"d{n % contents}", BatchId=1, source_batch_id=Counted(n % batches))
            for n in range(300)
        ],
        [row(f"d{n % contents}", BatchId=Counted(n % batches)) for n in range(300)],
    )
    assert [(one.theirs, one.same, one.missing) for one in told] == [
        (300 // batches, 300 // batches, 0)
    ] * batches
    assert Counted.compared < 10 * 300
