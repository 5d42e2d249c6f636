"""What `recon check` rejects is what the import rejects: the same files, lines and codes.

The only difference allowed is what the check says it could not settle: references that lead to
what the database knows. Here it knows nothing, so each of them is a row that the import tells of.
"""

import gzip
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connectors.files.profiles.profile import DEFAULT, Profile
from connectors.postgres.database import open_database
from connectors.settings import Settings
from flows.stages.examining.examine import FileVerdict, examine
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from tests.examples import examples
from tests.stages.payments import HEADER, line

HERE = Path(__file__).parent
RATES = "Id,TenantsId,FromCurrenciesId,ToCurrenciesId,ExchangeRate,EffectiveDate"
PLAN = "PaymentPlansId,PlannedDate,PlannedAmount,PlannedCurrenciesId,PaymentsId,StatusCodesId"
REGISTRATIONS = "EMail,FirstName,LastName,Password,ConfirmPassword,Company,PartnerUserID"
INNER = "Data,HasError,Merged,BatchId,Jsondata,ErrorData"
REFERENCES = ("ReferenceMissing", "ReferenceTenant")

Place = tuple[int, str, int, str]
"""Number and name of a file, line, code."""


def text(*lines: str, end: str = "\n") -> bytes:
    return (end.join(lines) + end).encode()


def rate(number: int, *, value: str = "1.5", tenant: int = 7) -> str:
    return f"{number},{tenant},1,2,{value},2026-01-01T00:00:00"


def planned(payment: int | str, *, amount: str = "1") -> str:
    return f"1,2026-01-05T00:00:00Z,{amount},1,{payment},1"


def inner(record: str) -> str:
    quoted = record.replace('"', '""')
    return f'"{quoted}",,,1,,'


def invoice(number: int, url: str = "u") -> str:
    return f'{{"Id":{number},"TenantsId":7,"DebtsId":3,"InvoiceUrl":"{url}"}}'


def of_check(verdicts: Sequence[FileVerdict]) -> set[Place]:
    return {
        (number, verdict.name, reject.line, error["ErrorCode"])
        for number, verdict in enumerate(verdicts)
        for reject in verdict.rejects
        for error in reject.errors
    } | {(number, one.name, 0, one.refused) for number, one in enumerate(verdicts) if one.refused}


def of_import(workspace: Workspace) -> set[Place]:
    with workspace.database.connect() as connection:
        rows = connection.execute(
            "SELECT e.number, e.name, s.first_line, error ->> 'ErrorCode' FROM staged_row s JOIN "
            "(SELECT *, row_number() OVER (ORDER BY id) - 1 AS number FROM extract) e "
            "ON e.id = s.extract_id, json_array_elements(s.error_data::json) error "
            "WHERE s.error_data IS NOT NULL AND s.state IN ('rejected', 'conflict') UNION ALL "
            "SELECT row_number() OVER (ORDER BY id) - 1, name, 0, refused FROM extract"
        ).fetchall()
    return {row for row in rows if row[3]}  # type: ignore[misc]


def superseded(workspace: Workspace) -> Counter[int]:
    """Rows by the number of their file for which another one counts, or that were merged before."""
    with workspace.database.connect() as connection:
        rows = connection.execute(
            "SELECT e.number, count(*) FROM staged_row s JOIN "
            "(SELECT *, row_number() OVER (ORDER BY id) - 1 AS number FROM extract) e "
            "ON e.id = s.extract_id WHERE s.state = 'superseded' GROUP BY 1"
        ).fetchall()
    return Counter(dict(rows))


def noted(workspace: Workspace) -> Counter[tuple[str, str]]:
    """Rows with a reference that leads nowhere, of a feed that only flags them."""
    with workspace.database.connect() as connection:
        rows = connection.execute(
            "SELECT e.number, n.field, n.rows FROM note n JOIN "
            "(SELECT *, row_number() OVER (ORDER BY id) - 1 AS number FROM extract) e "
            "ON e.id = n.extract_id"
        ).fetchall()
    return Counter({field: sum(n for _, f, n in rows if f == field) for _, field, _ in rows})


def assert_agree(url: str, home: Path, delivery: Sequence[str], profile: Profile) -> None:
    settings_ = Settings(home.resolve(), url)
    workspace = Workspace(settings_, open_database(settings_))
    verdicts = examine(settings_, delivery, profile)
    import_delivery(workspace, delivery, profile)
    told = {number: one.superseded + one.merged for number, one in enumerate(verdicts)}
    assert superseded(workspace) == Counter(told)
    check, imported = of_check(verdicts), of_import(workspace)
    assert not check - imported, "only the check rejects"
    more = imported - check
    assert {code for *_, code in more} <= {*REFERENCES}, "only the import rejects"
    unsettled = Counter[str]()
    for verdict in verdicts:
        for one in verdict.unsettled:
            unsettled[one.field] += one.rows
    if profile.complete:
        assert not more
        assert not unsettled
    elif profile.reference == "reject":
        assert len(more) == unsettled.total()
    else:
        assert not more
        assert noted(workspace) == unsettled


def files(folder: Path, contents: Mapping[str, bytes]) -> list[str]:
    folder.mkdir()
    for name, content in contents.items():
        path = folder / name
        if name.endswith(".zip"):
            with zipfile.ZipFile(path, "w") as packed:
                for number, member in enumerate(content.split(b"\0")):
                    packed.writestr(f"{number}/payments.csv", member)
        else:
            path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return [str(folder)]


PAYMENTS = [
    line(1),
    line(2, amount="x"),
    line(3),
    line(3, amount="10.5000"),  # The same amount.
    line(4),
    line(4, amount="2"),
    line(5, tenant=8),
    "6,7",
]
TWO = {
    "payments.csv": text(HEADER, *PAYMENTS),
    "rates.csv": text(RATES, rate(9), rate(10), rate(10, value="2")),
}
CHAIN = {
    # Payment 1 names no rate of the delivery, and the plan names payments 1, 2 and 4.
    "payments.csv": text(
        HEADER, line(1), line(2).replace(",9", ",5"), line(4), line(4, amount="1")
    ),
    "plan.csv": text(PLAN, planned(1), planned(2), planned(3), planned(4), planned("")),
    "rates.csv": text(RATES, rate(5)),
}
REPEATED = {
    "payments.csv": text(HEADER, line(1), line(1), line(2).replace(",9", ",5")),
    "plan.csv": text(PLAN, planned(1), planned(2)),
    "rates.csv": text(RATES, rate(5)),
}
"""Neither of the two equal payments has its rate, so no plan refers to one that is taken."""
REJECT, COMPLETE = replace(DEFAULT, reference="reject"), replace(DEFAULT, complete=True)
LAST = replace(REJECT, duplicate="last_wins")
APART = replace(REJECT, repeats="conflict")
NEWEST = {
    # Of payment 1 the second one is the newest, of 2 the first, of 3 the last of equally new ones,
    # of 4 the first, whose clock is behind.
    "a.csv": text(
        HEADER, line(1), line(1, day=3).replace(",9", ",5"), line(2, day=2), line(3), line(4)
    ),
    "b.csv": text(
        HEADER,
        line(1, day=2),
        line(2).replace(",9", ",5"),
        line(3, amount="2"),
        line(4).replace("10:00:00+01:00", "11:00:00+03:00"),
    ),
    # Of rate 5 the third one by the moment, of 6 the second by the clock, as it has no offset.
    **{
        f"rates-{at}.csv": text(RATES, *(f"{of},7,1,2,1,2026-01-01T{time}" for of, time in rates))
        for at, rates in enumerate(
            (
                ((5, "10:00:00+00:00"), (6, "10:00:00-05:00")),
                ((5, "11:00:00+02:00"), (6, "11:00:00")),
                ((5, "09:30:00-01:00"), (6, "09:30:00-01:00")),
            )
        )
    },
    "plan.csv": text(PLAN, planned(1), planned(2), planned(3)),
}
REFUSED_LATER = {
    "a.csv": text(HEADER, line(1), line(2)),
    "b.csv": text(HEADER, line(1, amount="9"), line(2)),
    "c.csv": text(RATES, rate(9)),
    "manifest.json": b'{"files": {"a.csv": {}, "b.csv": {"rows": 3}, "c.csv": {"rows": 9}}}',
}
"""Only once all of them are read it is known that `b.csv` and `c.csv` are not taken."""
TABLE: dict[str, tuple[Mapping[str, bytes], Profile]] = {
    "two files": (TWO, DEFAULT),
    "two files, rejected": (TWO, REJECT),
    "two files, complete": (TWO, COMPLETE),
    "two files, the last wins": (TWO, LAST),
    "one tenant": (TWO, replace(REJECT, tenant=7)),
    "by reference": (TWO, replace(REJECT, keep="reference")),
    "a chain": (CHAIN, DEFAULT),
    "a chain, rejected": (CHAIN, REJECT),
    "a chain, complete": (CHAIN, COMPLETE),
    "a chain, the last wins": (CHAIN, LAST),
    "a repeated payment, rejected": (REPEATED, REJECT),
    "a repeated payment, complete": (REPEATED, COMPLETE),
    "a repeated payment, the last wins": (REPEATED, LAST),
    "a repeated payment, equal rows in conflict": (REPEATED, APART),
    "the newest wins": (NEWEST, LAST),
    "the newest wins, complete": (NEWEST, replace(LAST, complete=True)),
    "two files, equal rows in conflict": (TWO, APART),
    "equal rows whose key is made": (
        {
            "a.csv": text(*(one.partition(",")[2] for one in (HEADER, line(1), line(1)))),
            "b.csv": text(*(one.partition(",")[2] for one in (HEADER, line(1, amount="1")))),
        },
        replace(DEFAULT, record="payment", fields={"Id": {"key": ("DebtsId", "PaidAmount")}}),
    ),
    "equal rows without a key in conflict": (
        {"plan.csv": text(PLAN, planned(""), planned(""), planned("", amount="2"))},
        APART,
    ),
    "refused when it was read": (REFUSED_LATER, DEFAULT),
    "refused when it was read, rejected": (REFUSED_LATER, REJECT),
    "refused when it was read, complete": (REFUSED_LATER, COMPLETE),
    "packed": (
        {
            "payments.csv.gz": text(HEADER, line(1), line(2), end="\r\n"),
            "more.zip": b"\0".join([text(HEADER, line(2, amount="3")), text(HEADER, line(1))]),
        },
        REJECT,
    ),
    "one content twice": (
        {"a.csv": text(HEADER, *PAYMENTS), "b.csv": text(HEADER, *PAYMENTS)},
        DEFAULT,
    ),
    "two headers": (
        {"a.csv": text(HEADER, line(1), HEADER, line(2), line(1, amount="3"))},
        DEFAULT,
    ),
    "one name, two spellings": (
        {
            "a.csv": text(REGISTRATIONS, "a@b.cc,A,B,p,p,C,1", "A@b.cc,A,B,p,p,C,1"),
            "b.csv": text(REGISTRATIONS, "a@b.cc,A,B,q,q,C,1", ",A,B,q,q,C,1", ",A,B,r,r,C,1"),
        },
        DEFAULT,
    ),
    "records inside": (
        {
            "rows.csv": text(
                INNER,
                inner(invoice(1)),
                inner(invoice(2)),
                inner(invoice(2, "v")),
                inner("some text"),
                inner('{"Id":"x"}'),
                f'"{invoice(4)}"',
            ),
            "invoices.csv": text("Id,TenantsId,DebtsId,InvoiceUrl", "1,7,3,w", "3,7,3,w"),
        },
        replace(DEFAULT, inner_record="invoice_file"),
    ),
}


@pytest.mark.long(but=("packed", "a repeated payment, equal rows in conflict"))
@pytest.mark.parametrize("name", TABLE)
def test_a_delivery_of_the_table(name: str, database_url: str, tmp_path: Path) -> None:
    contents, profile = TABLE[name]
    assert_agree(database_url, tmp_path / "home", files(tmp_path / "in", contents), profile)


@pytest.mark.long
@pytest.mark.parametrize("reference", ["flag", "reject"])
@pytest.mark.parametrize(
    "folder",
    ["torture/cases", "torture/ambiguous", *(f"../data_samples/{n}" for n in ("clean", "dirty"))],
)
def test_a_delivery_of_the_samples(
    folder: str, reference: str, database_url: str, tmp_path: Path
) -> None:
    delivery = [str((HERE / folder).resolve())]
    assert_agree(database_url, tmp_path / "home", delivery, replace(DEFAULT, reference=reference))


AMOUNTS = st.sampled_from(["1.5", "1.50", "15e-1", "2", "x", ""])
DATES = st.sampled_from(
    ["2026-01-01T10:00:00Z", "2026-01-01T10:00:00+00:00", "2026-01-01T11:00:00+01:00", "2026-01-02"]
)
IDS, TENANTS = st.integers(1, 3), st.sampled_from([7, 7, 7, 8])
PAYMENT_LINES = st.builds(
    lambda of, tenant, date, amount, rate_: f"{of},{tenant},1,2,{date},{amount},0,1,{rate_}",
    IDS, TENANTS, DATES, AMOUNTS, IDS,
)  # fmt: skip
RATE_LINES = st.builds(
    lambda of, tenant, amount: f"{of},{tenant},1,2,{amount},2026-01-01T00:00:00",
    IDS, TENANTS, AMOUNTS,
)  # fmt: skip
PLAN_LINES = st.builds(lambda of, amount: planned(of, amount=amount), IDS, AMOUNTS)
CONTENTS = st.one_of(
    st.lists(lines, max_size=6).map(lambda lines, header=header: text(header, *lines))
    for header, lines in ((HEADER, PAYMENT_LINES), (RATES, RATE_LINES), (PLAN, PLAN_LINES))
)
PROFILES = st.builds(
    lambda reference, repeated, tenant, complete, keep: replace(
        DEFAULT,
        reference=reference,
        duplicate=repeated[0],
        repeats=repeated[1],
        tenant=tenant,
        complete=complete,
        keep=keep,
    ),
    st.sampled_from(["flag", "reject"]),
    st.sampled_from(
        [("conflict", "superseded"), ("last_wins", "superseded"), ("conflict", "conflict")]
    ),
    st.sampled_from([None, 7]),
    st.booleans(),
    st.sampled_from(["text", "reference"]),
)


@pytest.mark.long
@settings(
    max_examples=examples(40, 4),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(contents=st.lists(CONTENTS, min_size=1, max_size=4, unique=True), profile=PROFILES)
def test_any_delivery(
    contents: list[bytes], profile: Profile, databases: Any, tmp_path_factory: Any
) -> None:
    folder = tmp_path_factory.mktemp("any")
    named = {f"{number}.csv": content for number, content in enumerate(contents)}
    with databases.new() as url:
        assert_agree(url, folder / "home", files(folder / "in", named), profile)
