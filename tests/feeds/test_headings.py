"""What headings of groups say of the records below them."""

from hypothesis import given
from hypothesis import strategies as st

from connectors.files.drafting.line_kinds import heading
from connectors.files.text.linear_patterns import groups_of

LABELS = ("Account", "Währung", "口座")
VALUES = st.text("Xé47.-", min_size=1, max_size=6)


def in_cells(pairs: list[tuple[str, str]], delimiter: str, quote: str) -> str:
    return delimiter.join(f"{quote}{text}{quote}" for pair in pairs for text in pair)


def behind_colons(pairs: list[tuple[str, str]], delimiter: str, quote: str) -> str:
    return f"{quote}{'  '.join(f'{label}: {value}' for label, value in pairs)}{quote}{delimiter}"


@given(
    st.sampled_from([in_cells, behind_colons]),
    st.integers(1, 3),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from(["", '"']),
    st.data(),
)
def test_each_value_is_in_the_group_that_its_label_names(
    write: object, count: int, delimiter: str, quote: str, data: st.DataObject
) -> None:
    assert callable(write)
    labels = LABELS[:count]
    said = [[*zip(labels, data.draw(st.tuples(*[VALUES] * count)), strict=True)] for _ in range(3)]
    lines = [write(pairs, delimiter, quote) for pairs in said]
    found = heading("Account", lines, delimiter, (), {})
    assert found is not None
    assert found.names == labels
    assert groups_of(lines, [found.pattern]) == [dict(pairs) for pairs in said]


def test_the_words_before_a_colon_are_no_part_of_the_value_in_front() -> None:
    lines = ["Account No.: 1  Account Name: Ann", "Account No.: 2  Account Name: Bob"]
    found = heading("Account No.:", lines, ";", (), {})
    assert found is None or groups_of(lines, [found.pattern])[0] == {"Name": "Ann"}


def test_a_name_is_spelled_as_in_the_lines_before() -> None:
    spelled: dict[str, str] = {}
    both = [heading(f"{one}:", [f"{one}: 1"], ";", (), spelled) for one in ("Konto", "KONTO")]
    assert [found and found.names for found in both] == [("Konto",), ("Konto",)]
