"""What reading costs where a feed profile changes the files: CPU per byte, beside plain payments.

    python benchmarks/feeds/run.py --rows 300000

For each feed of payments in `docs/feeds` that is a text its clean rows are repeated between its
header and its footer, with an Id of their own where a cell is one, and a time where directives say
how it is written. Reading is from the bytes to rows that are ready to be sent to PostgreSQL,
without a database: split, checked, written out. The plain file has the fields' own names and needs
no profile.
"""

import argparse
import csv
import io
import itertools
import re
import resource
import statistics
import sys
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])

from connectors.files.chunks.reader import first_place, read_chunks  # noqa: E402
from connectors.files.layout.header import Header, read_header  # noqa: E402
from connectors.files.profiles.profile import DEFAULT, Profile, date_forms, written_of  # noqa: E402
from connectors.files.profiles.profile_file import load_profile  # noqa: E402
from connectors.files.text.content import open_content  # noqa: E402
from connectors.postgres.batches.ledger import Extract  # noqa: E402
from connectors.settings import Limits  # noqa: E402
from flows.stages.chunks.write_out import write_out  # noqa: E402
from flows.steps.validate.states import EXCLUDED, READY  # noqa: E402
from schemas.cells.counted_times import EPOCHS  # noqa: E402
from tests.stages.payments import HEADER, line  # noqa: E402

GALLERY = Path(__file__).resolve().parents[2] / "docs" / "feeds"
PLAIN = "plain"
FIRST = datetime(2026, 1, 1)  # noqa: DTZ001
EXTRACT = Extract(
    id=1, batch_id=1, name="a.csv", sha256=None, bytes=None, record="payment", header=None,
    manifest=None, refused=None, message=None, pieces=None,
)  # fmt: skip


def main() -> int:
    """Measure every feed in turn, that many rounds; print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    feeds = [
        PLAIN,
        *sorted(one.parent.name for one in GALLERY.glob("*/profile.toml") if _is_of(one)),
    ]
    took: dict[str, list[float]] = {feed: [] for feed in feeds}
    sizes: dict[str, int] = {}
    records: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        paths = {feed: _file(feed, Path(folder), asked.rows) for feed in feeds}
        for _ in range(asked.rounds + 1):  # The first compiles and warms, and does not count.
            for feed in feeds:
                path, profile = paths[feed]
                sizes[feed] = path.stat().st_size
                cpu, records[feed] = _read(path, profile)
                took[feed].append(cpu)
    print(
        "CPU seconds from the bytes to rows that are ready for COPY, without a database, medians "
        f"of {asked.rounds} rounds. `times plain` is that CPU over the CPU of plain payments."
    )
    print(
        "\n| feed | records | MiB | CPU s | times plain, for a byte | for a record |\n|"
        + "---|" * 6
    )
    for feed in feeds:
        cpu, plain = (statistics.median(took[one][1:]) for one in (feed, PLAIN))
        by = (cpu / of[feed] / (plain / of[PLAIN]) for of in (sizes, records))
        print(
            f"| {feed} | {records[feed]:,} | {sizes[feed] / 2**20:.1f} | {cpu:.2f} | "
            f"{' | '.join(f'{times:.1f}' for times in by)} |"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\npeak memory {peak:.0f} MiB")
    return 0


def _is_of(profile: Path) -> bool:
    read = load_profile(profile)
    if read.unpivots:
        return profile.parent.name != "ecb-daily"  # It is one line.
    return not read.sheet and read.record == "payment"


def _file(feed: str, folder: Path, rows: int) -> tuple[Path, Profile]:
    path = folder / f"{feed}.csv"
    if feed == PLAIN:
        path.write_text("\n".join([HEADER, *(line(number) for number in range(rows))]) + "\n")
        return path, DEFAULT
    profile = load_profile(GALLERY / feed / "profile.toml")
    (clean,) = (GALLERY / feed).glob("clean.*")
    content = open_content(clean, profile.encoding)
    header = read_header(content, None, profile, Limits())
    text = clean.read_bytes()
    if content.transcoded:
        text = text.decode(content.delivered_encoding).encode(content.encoding)
    end = header.footer.start if header.footer else len(text)
    body = text[header.body_start : end].decode(content.encoding)
    if header.positions:
        body = _fixed_width(
            body.splitlines(), *header.positions.ranges[header.fields.index("Id")], rows
        )
        path.write_bytes(text[: header.body_start] + body.encode(content.encoding) + text[end:])
        return path, profile
    reader = csv.reader(io.StringIO(body), **header.dialect.signs)
    numbered = [(header.body_line + reader.line_num - 1, row) for row in reader if row]
    records = [row for _, row in numbered]
    if header.unpivot:
        height = rows // len(header.unpivot.labels)
        days = (FIRST + timedelta(days=number) for number in range(height))
        form, sign = profile.date_format, header.dialect.delimiter.decode()
        assert isinstance(form, str)
        lines = (sign.join([day.strftime(form), *records[0][1:]]) for day in days)
        path.write_bytes(text[: header.body_start] + "\n".join(lines).encode())
        return path, profile
    chunks = read_chunks(content, header, first_place(header), Limits().block_bytes)
    found = {number for chunk in chunks for number in chunk.records.first_line.tolist()}
    is_record = [number in found for number, _ in numbered]
    # A number that is made of more than its cell stays as it is: reading does not ask for others.
    own = "Id" in header.fields and "Id" not in profile.fields
    place = header.fields.index("Id") if own else None
    times = _times(profile, header)
    with path.open("wb") as file:
        file.write(text[: header.body_start])
        wrapped = io.TextIOWrapper(file, content.encoding, newline="", write_through=True)
        writer = csv.writer(wrapped, **header.dialect.signs, lineterminator="\n")
        for number in range(rows):
            row = records[number % len(records)]
            row = row.copy()
            changed = is_record[number % len(records)]
            if changed and place is not None:
                row[place] = str(10_000_000 + number)
            if changed and times:
                at, form = times
                row[at] = (FIRST + timedelta(seconds=7 * number)).strftime(form)
            writer.writerow(row)
        wrapped.detach()
        file.write(text[end:])
    if content.transcoded:
        path.write_bytes(
            path.read_bytes().decode(content.encoding).encode(content.delivered_encoding)
        )
    return path, profile


def _fixed_width(lines: list[str], first: int, end: int, rows: int) -> str:
    """That many of the lines, with numbers of their own from `first` to `end`."""
    numbers = (str(10_000_000 + number).zfill(end - first) for number in range(rows))
    return "".join(
        f"{one[:first]}{number}{one[end:]}\n"
        for one, number in zip(itertools.cycle(lines), numbers, strict=False)
    )


def _times(profile: Profile, header: Header) -> tuple[int, str] | None:
    """Place of the column with times, and how they are written; None: not by directives alone."""
    written = written_of(profile, "PaymentDate")
    form = next(iter(date_forms(written).texts), None)
    if "PaymentDate" in header.sources or "PaymentDate" not in header.fields:
        return None
    fits = form and form not in EPOCHS and not written["months"] and not re.search("%[abAB]", form)
    return (header.fields.index("PaymentDate"), form) if fits else None


def _read(path: Path, profile: Profile) -> tuple[float, int]:
    """CPU seconds, and how many records they were for."""
    content = open_content(path, profile.encoding)
    begun = time.process_time()
    header = read_header(content, None, profile, Limits())
    limits, records = Limits(), 0
    for chunk in read_chunks(content, header, first_place(header), limits.block_bytes):
        written = write_out(chunk, header, profile, EXTRACT, strict_bytes=limits.strict_bytes)
        totals = written.validated.totals[header.table.name]
        assert totals.keys() <= {READY, EXCLUDED}, path.name
        records += sum(one.rows for one in totals.values())
    return time.process_time() - begun, records


if __name__ == "__main__":
    sys.exit(main())
