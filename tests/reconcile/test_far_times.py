"""Times that the database has of no year that a delivery can say: they are differences."""

from datetime import date
from pathlib import Path

from connectors.files.profiles.profile import DEFAULT
from flows.stages.reconcile.run import Asked, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from flows.steps.rules.rules import Rates, Rules
from tests.stages.payments import line, write

AS_OF = date(2026, 1, 10)
RULES = Rules(references=frozenset({"rates", "plans"}), rates=Rates(daily=True, stale_days=None))
RATES = """Id,TenantsId,FromCurrenciesId,ToCurrenciesId,ExchangeRate,EffectiveDate
9,7,1,2,1.1,2026-01-09
5,7,1,2,1.1,2025-12-30
6,7,3,4,1.1,2025-12-31
"""
DETAILS = """PaymentPlansId,PlannedDate,PlannedAmount,PlannedCurrenciesId,PaymentsId,StatusCodesId
1,2026-01-01,10.5,1,,1
2,2026-01-02,10.5,1,,1
3,,10.5,1,,1
"""
CHANGED = """
UPDATE payment SET "PaymentDate" = 'infinity' WHERE "Id" = 1;
UPDATE payment SET "PaymentDate" = '-infinity', "PaymentDate_offset" = -90 WHERE "Id" = 2;
UPDATE payment SET "PaymentDate" = '9999-12-31 23:30Z' WHERE "Id" = 3;
UPDATE currency_rate SET "EffectiveDate" = '0044-03-15 BC' WHERE "Id" = 5;
UPDATE currency_rate SET "EffectiveDate" = '12000-01-01' WHERE "Id" = 6;
UPDATE payment_plan_detail SET "PlannedDate" = '-infinity' WHERE "PaymentPlansId" = 1;
UPDATE payment_plan_detail SET "PlannedDate" = 'infinity' WHERE "PaymentPlansId" = 2;
"""
FIRST, LAST = "0001-01-01T00:00:00", "9999-12-31T23:59:59.999999"


def test_a_time_of_no_year_is_the_first_or_the_last_moment(
    workspace: Workspace, tmp_path: Path
) -> None:
    paths = [write(tmp_path / "payments.csv", *(line(number) for number in range(1, 5)))]
    for name, text in (("rates.csv", RATES), ("details.csv", DETAILS)):
        (tmp_path / name).write_text(text)
        paths.append(str(tmp_path / name))
    import_delivery(workspace, paths, DEFAULT)
    with workspace.database.connect() as connection:
        for statement in CHANGED.strip().splitlines():
            assert connection.execute(statement).rowcount == 1
    report = reconcile(workspace, Asked(Scope(), AS_OF, RULES)).report
    assert {(one.key, one.found) for one in report.breaks if one.code == "INSTANT"} == {
        ("1/7", f"{LAST}+01:00"),
        ("2/7", f"{FIRST}-01:30"),
        ("3/7", f"{LAST}+01:00"),
        ("5/7", FIRST),
        ("6/7", LAST),
    }
    alone = [one for one in report.breaks if one.record == "payment_plan_detail"]
    assert {(one.code, one.key) for one in alone} >= {
        ("MISSING_IN_TARGET", "1/2026-01-01/10.5/1//1"),
        ("MISSING_IN_EXTRACT", "1/0001-01-01/10.5/1//1"),
        ("MISSING_IN_TARGET", "2/2026-01-02/10.5/1//1"),
    }
    after = [(one.record, one.side, one.rows, one.last) for one in report.cover.after]
    assert after == [("payment_plan_detail", "D", 1, date.max)]
    assert report.cover.period[0] == date.min
