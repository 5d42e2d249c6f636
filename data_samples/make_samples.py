"""Write the shipped sample deliveries: clean, dirty and the correction of the dirty one.

    python data_samples/make_samples.py [--out DIR]

The same source gives the same bytes. What is written: `clean/`, `dirty/`, `correction/` with an
`expected.json` each, `currencies.csv`, and the table of planted faults at the end of README.md.
"""

import argparse
import json
import random
from collections.abc import Sequence
from pathlib import Path

from sample_batches import Wrapped, insert_batch_data
from sample_delivery import DIALECTS, Delivered, Dialect, Placed, cleanly, dirtily, lay_out
from sample_expected import Json, expected, inner
from sample_people import (
    action_documents,
    avatars,
    campaign_actions_form_responses,
    client_registrations,
    form_replies,
    message_tones,
    payment_gateways,
)
from sample_records import (
    CODES,
    TENANTS,
    Books,
    currency_rates,
    invoice_files,
    payment_plan_details,
    payments,
    read_books,
)
from sample_text import COLUMNS, Extract, Row

HERE = Path(__file__).parent
SEED = 20261030
PLAIN = Dialect()
FAULTS_HEADING = "## Planted faults"


def records(books: Books) -> tuple[dict[str, Extract], list[Wrapped]]:
    """Every clean extract, and the records inside the insert-batch data."""
    draw = random.Random(SEED)
    made: dict[str, Sequence[Row]] = {"currency_rates": list(currency_rates(books))}
    made["payments"] = payments(books, draw)
    made["payment_plan_details"] = payment_plan_details(books)
    made["invoice_files"] = invoice_files(books, draw)
    made["avatars"] = avatars()
    made["payment_gateways"] = payment_gateways()
    made["message_tones"] = message_tones()
    made["action_documents"] = action_documents(made["payments"])
    made["client_registrations"] = client_registrations(draw)
    made["form_replies"] = form_replies(draw)
    made["campaign_actions_form_responses"] = campaign_actions_form_responses(draw)
    wrapped = insert_batch_data(books, draw)
    made["insert_batch_data"] = [each.row for each in wrapped]
    return {name: Extract(name, tuple(made[name])) for name in COLUMNS}, wrapped


def spare(
    extracts: dict[str, Extract], books: Books, wrapped: list[Wrapped]
) -> dict[str, list[int]]:
    """The records that may be spoiled: no other record of the delivery refers to them."""
    inside = [each.record for each in wrapped if each.extract == "payments"]
    used = {row[8] for row in (*extracts["payments"].rows, *inside)}
    free = {name: list(range(len(extract.rows))) for name, extract in extracts.items()}
    rates, paid = extracts["currency_rates"].rows, extracts["payments"].rows
    free["currency_rates"] = [place for place, row in enumerate(rates) if row[0] not in used]
    free["payments"] = [
        place for place, row in enumerate(paid) if row[0] not in books.planned_payments
    ]
    free["insert_batch_data"] = [
        place
        for place, each in enumerate(wrapped)
        if each.extract != "currency_rates" and each.row[1:3] == ("False", "False")
    ]
    return free


def rates_of_other_tenants(books: Books) -> dict[str, str]:
    """Id of a rate -> Id of the next tenant's rate for the same currency and day."""
    following = dict(zip(TENANTS, (*TENANTS[1:], TENANTS[0]), strict=True))
    return {
        str(number): str(books.rate_ids[following[tenant], currency, day])
        for (tenant, currency, day), number in books.rate_ids.items()
    }


def write_delivery(
    folder: Path,
    delivery: dict[str, list[Delivered]],
    dialects: dict[str, Dialect],
    wrapped: list[Wrapped],
) -> dict[str, list[Placed]]:
    """Write the extracts and their expected.json; extracts without records are left out."""
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, Json] = {}
    places: dict[str, list[Placed]] = {}
    for name, delivered in delivery.items():
        if not delivered:
            continue
        extract = Extract(name, tuple(each.row for each in delivered))
        content, placed = lay_out(extract, delivered, dialects.get(name, PLAIN))
        (folder / f"{name}.csv").write_bytes(content)
        files[f"{name}.csv"], places[name] = expected(name, placed), placed
        if name == "insert_batch_data":
            counted = [each for each in delivered if each.verdict == "accepted"]
            files[f"{name}.csv"]["inner"] = inner(wrapped[each.origin] for each in counted)
    write_json(folder / "expected.json", {"delivery": folder.name, "files": files})
    return places


def write_json(path: Path, content: Json) -> None:
    """Write readable JSON that is the same for the same content."""
    text = json.dumps(content, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


def corrected(
    dirty: dict[str, list[Delivered]], extracts: dict[str, Extract]
) -> dict[str, list[Delivered]]:
    """The right record for every one that was rejected or noted, each once."""
    return {
        name: [
            cleanly(extracts[name])[origin]
            for origin in sorted(
                {each.origin for each in delivered if each.verdict in {"rejected", "noted"}}
            )
        ]
        for name, delivered in dirty.items()
    }


def faults_table(places: dict[str, list[Placed]]) -> str:
    """The planted faults as a Markdown table."""
    rows = ["| file | record | lines | ErrorCode | FieldName | what |", "|---|---|---|---|---|---|"]
    for name, placed in places.items():
        for each in placed:
            record = each.record
            if record.verdict == "accepted":
                continue
            lines = str(each.first_line)
            if each.last_line > each.first_line:
                lines += f"-{each.last_line}"
            code = {"superseded": "(superseded)", "noted": f"{record.code} (note)"}.get(
                record.verdict, record.code
            )
            story = record.story
            rows.append(
                f"| {name}.csv | {each.number} | {lines} | {code} | {record.field} | {story} |"
            )
    return "\n".join(rows)


def make(target: Path) -> None:
    """Write all samples below the target folder."""
    books = read_books(HERE / "ecb_reference_rates.csv")
    extracts, wrapped = records(books)
    free, other_rates = spare(extracts, books, wrapped), rates_of_other_tenants(books)
    clean = {name: cleanly(extract) for name, extract in extracts.items()}
    dirty = {name: dirtily(each, free[name], other_rates) for name, each in extracts.items()}
    lost = {each.row[0] for each in dirty["currency_rates"] if each.verdict == "rejected"}
    if lost & {each.row[8] for each in dirty["payments"]}:
        raise ValueError("a payment refers to a spoiled rate, so it would get an unplanned note")
    write_delivery(target / "clean", clean, {}, wrapped)
    places = write_delivery(target / "dirty", dirty, DIALECTS, wrapped)
    write_delivery(target / "correction", corrected(dirty, extracts), {}, wrapped)
    currencies = "".join(f"{number},{code}\n" for number, code in enumerate(CODES, start=1))
    (target / "currencies.csv").write_text("CurrenciesId,Code\n" + currencies, encoding="ascii")
    above = (HERE / "README.md").read_text(encoding="utf-8").split(FAULTS_HEADING)[0]
    readme = f"{above}{FAULTS_HEADING}\n\n{faults_table(places)}\n"
    (target / "README.md").write_text(readme, encoding="utf-8", newline="\n")


def main() -> None:
    """Read the command line and write the samples."""
    parser = argparse.ArgumentParser(description="Write the sample deliveries.")
    parser.add_argument("--out", type=Path, default=HERE, metavar="DIR")
    make(parser.parse_args().out)


if __name__ == "__main__":
    main()
