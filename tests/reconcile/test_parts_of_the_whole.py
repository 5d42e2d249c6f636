"""What a narrow scope says of its records is what is said of them where the scope is everything."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from connectors.files.profiles.profile import DEFAULT
from flows.stages.reconcile.scope import Scope
from flows.stages.reconcile.sources import gather_sources
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from flows.steps.reconcile.cut_off import cut_off
from flows.steps.reconcile.joins import JoinResult, reconcile_sources
from flows.steps.rules.rules import Exclusion, Rules
from tests.conftest import Once
from tests.reconcile.test_narrow_scope import DETAILS, FILES, RATES, detail, payment
from tests.stages.payments import HEADER

AS_OF = date(2026, 1, 31)
DETAIL = "payment_plan_detail"
USERS = "Id,UserName,Email"


def user(number: int, name: str = "a") -> str:
    return f"{number},user{number},{name}{number}@example.com"


FEEDS: dict[str, tuple[int | None, list[tuple[str, ...]]]] = {
    # By feed, the tenant it is bound to, and its files.
    "own": (
        7,
        [
            (HEADER, payment(1, 2, "30"), payment(3, 3, "10"), payment(11, 11, "10")),
            (USERS, user(5), user(6)),
        ],
    ),
    "plan": (7, [(DETAILS, detail(1, "10", 1), detail(3, "15", 3), detail(3, "1", ""))]),
    "free": (
        None,
        [
            (DETAILS, detail(1, "20", 1, day=3), detail(4, "5", 11), detail(4, "5", "")),
            (USERS, user(5, "b"), user(8)),
        ],
    ),
    "late": (7, [(USERS, user(8), user(9))]),
    "first": (
        None,
        [
            # The rate of payment 301 and the file of its debt are of tenant 8.
            (HEADER, *(payment(number, number + 10, "10") for number in (101, 110, 201, 701)),
             payment(301, 311, "10", rate=50)),
            (RATES, "9,7,1,2,1.1,2026-01-02T00:00:00", "50,8,1,2,1.1,2026-01-02T00:00:00"),
            (FILES, "1,7,2,https://i/1", "2,7,3,https://i/2", "4,7,211,https://i/4",
             "7,7,11,https://i/7", "8,8,311,https://i/8"),
        ],
    ),
    "second": (
        None,
        [
            (HEADER, payment(101, 111, "20"), payment(111, 120, "10", day=3), payment(202, 9, "30"),
             payment(702, 711, "10")),
            (RATES, "10,7,1,2,1.2,2026-01-02T00:00:00"),
            (FILES, "3,7,2,https://i/1", "5,7,9,https://i/5", "6,7,99,https://i/6"),
        ],
    ),
    "detail": (
        None,
        [
            (DETAILS, detail(70, "10", 110), detail(70, "10", 111, day=3),
             detail(81, "10", 201), detail(81, "9", 202), detail(90, "10", 701),
             detail(90, "10", 702)),
        ],
    ),
    "other": (None, [(DETAILS, detail(82, "20", 202))]),
}  # fmt: skip
BEHIND_OUR_BACKS = """
    DELETE FROM payment WHERE "Id" = 101;
    UPDATE payment SET "PaymentDate" = '2026-02-20T10:00:00+01' WHERE "Id" = 111;
    UPDATE payment SET "ActionsId" = 99 WHERE "Id" = 702;
"""
LEFT_OUT = Rules(
    exclusions=(
        Exclusion("a", "payment", "ActionsId", ("99",), "b"),
        Exclusion("c", "invoice_file", "Id", ("7",), "d"),
    )
)
Told = dict[tuple[str, str, str], tuple[object, ...]]


@pytest.fixture
def place(workspace: Workspace, tmp_path: Path, once: Once) -> Workspace:
    def build() -> None:
        for feed, (tenant, files) in FEEDS.items():
            paths = []
            for number, rows in enumerate(files):
                path = tmp_path / f"{feed}-{number}.csv"
                path.write_text("\n".join(rows) + "\n")
                paths.append(str(path))
            import_delivery(workspace, paths, replace(DEFAULT, feed=feed, tenant=tenant))
        with workspace.database.connect() as connection:
            connection.execute(BEHIND_OUR_BACKS)

    return once(build)


def joined(place: Workspace, scope: Scope, rules: Rules | None = None) -> JoinResult:
    with place.database.connect() as connection:
        sources = gather_sources(place, connection, scope, {}).sources
    cut = cut_off(sources, AS_OF)
    return reconcile_sources(cut.kept, rules or Rules(), AS_OF, service=False, cut=cut)


def told(done: JoinResult) -> Told:
    names = ("code", "record", "key", "tenant", "expected", "found", "amount")
    rows = done.breaks.select(names).iter_rows()
    return {(code, record, key): tuple(facts) for code, record, key, *facts in rows}


PLANS = {
    "feeds plan": {"1", "3"},
    "feeds free": {"1", "4"},
    "feeds detail": {"70", "81", "90"},
    "feeds other": {"82"},
    "tenants 7": {"1", "3"},
}
"""Plans of which a scope brought details."""
OF_FEEDS = [Scope(feeds=(feed,)) for feed in FEEDS]


def lines_are_of(whole: JoinResult, scope: Scope, some: JoinResult) -> None:
    """The plans and debts of a scope are shown with the figures of the whole."""
    codes = {*some.breaks["code"]}
    for lines, every in ((some.plans, whole.plans), (some.debts, whole.debts)):
        figures = {replace(one, flags=()) for one in lines}
        assert figures <= {replace(one, flags=()) for one in every}, scope.text
        # What a line is flagged for stands in the report.
        assert {flag for one in lines for flag in one.flags} <= codes, scope.text
    assert {one.plan for one in some.plans} == PLANS.get(scope.text, set())


@pytest.mark.long
@pytest.mark.parametrize("rules", [Rules(), LEFT_OUT], ids=["plain", "left out"])
def test_what_all_feeds_say_is_the_whole(place: Workspace, rules: Rules) -> None:
    whole = joined(place, Scope(), rules)
    every = told(whole)
    found: Told = {}
    for scope in OF_FEEDS:
        some = joined(place, scope, rules)
        assert told(some).items() <= every.items(), scope.text
        lines_are_of(whole, scope, some)
        found |= told(some)
    assert found == every
    codes = {code for code, *_ in every}
    assert codes >= {"MISSING_IN_TARGET", "RATE_DUPLICATE", "INV_DUPLICATE", "PLAN_UNDER"}


@pytest.mark.long
def test_what_is_said_of_a_tenant_is_what_the_whole_says_of_it(place: Workspace) -> None:
    # Of details it says what was delivered bound to it, and of payments all that was planned.
    whole, scope = joined(place, Scope()), Scope(tenants=(7,))
    theirs, every = joined(place, scope), told(whole)
    others = {about: every.pop(about) for about, facts in [*every.items()] if facts[0] == 8}
    assert told(joined(place, Scope(tenants=(8,)))) == others
    assert {code for code, *_ in others} == {"INV_TENANT", "TENANT_CROSS"}
    assert {code for code, *_ in every} > {"RATE_TENANT", "TENANT_CROSS"}
    unbound = {about for about in every if about[1] == DETAIL and about[2][0] != "3"}
    assert {code for code, *_ in unbound} == {"PLAN_UNPAID"}
    assert told(theirs) == {about: every[about] for about in every.keys() - unbound}
    lines_are_of(whole, scope, theirs)


@pytest.mark.long(but=("plan",))
@pytest.mark.parametrize("feed", ["own", "plan", "late"])
def test_a_feed_that_is_bound_to_a_tenant_is_the_same_of_that_tenant(
    place: Workspace, feed: str
) -> None:
    assert told(joined(place, Scope(feeds=(feed,), tenants=(7,)))) == told(
        joined(place, Scope(feeds=(feed,)))
    )
