"""A record inside another has fields that are read there, or there are no tables."""

import pytest

from schemas.field import Field, Kind, Table, named
from schemas.tables import TABLES

READ = {Kind.STRING, Kind.MAP, Kind.LIST, Kind.RECORD}


@pytest.mark.parametrize("kind", Kind)
def test_a_field_that_nobody_reads_is_refused_where_it_is_written(kind: Kind) -> None:
    inner = Table("page", "A page", (Field("Size", kind),), extract=False)
    outer = Table("book", "A book", (Field("Pages", Kind.LIST, of="page"),))
    if kind in READ:
        assert named(inner, outer) == {"page": inner, "book": outer}
        return
    with pytest.raises(ValueError, match=r"page\.Size is of kind .*mend schemas/tables\.py"):
        named(inner, outer)


def test_the_document_has_no_others() -> None:
    assert named(*TABLES.values()) == TABLES
