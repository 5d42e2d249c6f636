"""The results as Markdown: one line a case, and our import by stage."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from comparison import LOADING, READING, Case
from measure import Run

FIGURES = ("wall", "client", "server", "peak_mib", "others")
Runs = Mapping[str, Sequence[Run]]
Medians = Mapping[str, Mapping[str, float]]


def medians(runs: Runs) -> dict[str, dict[str, float]]:
    """Case -> figure -> median over its runs."""
    return {
        name: {figure: median(run[figure] for run in one) for figure in FIGURES}
        for name, one in runs.items()
        if one
    }


def parts(runs: Sequence[Run]) -> dict[str, dict[str, float]]:
    """Stage -> figure -> median over the runs of one case."""
    return {
        part: {figure: median(run["parts"][part][figure] for run in runs) for figure in FIGURES[:3]}
        for part in runs[0].get("parts", {})
    }


def markdown(rows: int, runs: Runs, machine: Mapping[str, Any]) -> str:
    """The whole report of one size."""
    middle = medians(runs)
    sections = [
        [f"# {rows:,} rows"],
        [f"- {key}: {value}" for key, value in machine.items()],
        list(_loading(rows, runs, middle)),
        list(_stages(runs)),
        list(_reading(rows, runs, middle)),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _loading(rows: int, runs: Runs, middle: Medians) -> Iterator[str]:
    measured = [case for case in LOADING if case.name in middle]
    if not measured:
        return
    yield (
        "`wall / X`: how many times longer than X a case takes. `dlt wall / wall`: how many times "
        "quicker than dlt it is. Rows that are there already are held against their own upsert."
    )
    yield ""
    yield (
        "| case | runs | wall s (least - most) | rows/s | client CPU s | server CPU s "
        r"| peak MiB | others' CPU s | wall / `\copy` keyed | wall / `\copy` + ON CONFLICT "
        "| dlt ADBC wall / wall | dlt default wall / wall |"
    )
    yield "|" + "---|" * 12
    for case in measured:
        mine = middle[case.name]
        yield _line(
            case.title,
            len(runs[case.name]),
            _walls(case, runs),
            f"{rows / mine['wall'] / 1e6:.2f} M",
            f"{mine['client']:.2f}",
            f"{mine['server']:.2f}",
            f"{mine['peak_mib']:.0f}",
            f"{mine['others']:.1f}",
            *(ratio_text(ratio) for ratio in loading_ratios(case, runs).values()),
        )


def _stages(runs: Runs) -> Iterator[str]:
    measured = [case for case in LOADING if runs.get(case.name) and "parts" in runs[case.name][0]]
    if not measured:
        return
    yield "The same by stage. `finish`, the recount and the report, is not in the wall above."
    yield "`load` of ours is the loading of compiled loops, of dlt the filling of the table."
    yield ""
    yield "| case | stage | wall s | client CPU s | server CPU s |"
    yield "|" + "---|" * 5
    for case in measured:
        found = parts(runs[case.name])
        for number, (name, cost) in enumerate(found.items()):
            title = "" if number else case.title
            yield _line(title, name, *(f"{cost[figure]:.2f}" for figure in FIGURES[:3]))
        total = [sum(cost[figure] for cost in found.values()) for figure in FIGURES[:3]]
        yield _line("", "all", *(f"{seconds:.2f}" for seconds in total))


def _reading(rows: int, runs: Runs, middle: Medians) -> Iterator[str]:
    measured = [case for case in READING if case.name in middle]
    if not measured:
        return
    yield "Reading without a database. The last two columns are the CPU over that of the two peers."
    yield ""
    yield (
        "| reading alone | runs | wall s (least - most) | CPU s | CPU s per million "
        "| peak MiB | others' CPU s | CPU / polars scan | CPU / DuckDB |"
    )
    yield "|" + "---|" * 9
    for case in measured:
        mine = middle[case.name]
        yield _line(
            case.title,
            len(runs[case.name]),
            _walls(case, runs),
            f"{mine['client']:.2f}",
            f"{mine['client'] / rows * 1e6:.2f}",
            f"{mine['peak_mib']:.0f}",
            f"{mine['others']:.1f}",
            *(ratio_text(ratio) for ratio in reading_ratios(case, runs).values()),
        )


def _walls(case: Case, runs: Runs) -> str:
    walls = [run["wall"] for run in runs[case.name]]
    return f"{median(walls):.2f} ({min(walls):.2f} - {max(walls):.2f})"


def ratio_text(ratio: float | None) -> str:
    """A ratio in a table."""
    return "-" if ratio is None else f"{ratio:.2f}"


def ratios(runs: Runs) -> dict[str, dict[str, float | None]]:
    """Case -> ratio to each of its peers."""
    loading = {one.name: loading_ratios(one, runs) for one in LOADING if runs.get(one.name)}
    reading = {one.name: reading_ratios(one, runs) for one in READING if runs.get(one.name)}
    return loading | reading


def loading_ratios(case: Case, runs: Runs) -> dict[str, float | None]:
    """How many times longer than psql, and how many times faster than dlt."""
    mine = runs[case.name]
    return {
        "wall / copy_keyed": _ratio(mine, runs.get("copy_keyed")),
        f"wall / {case.upsert}": _ratio(mine, runs.get(case.upsert)),
        "dlt_adbc wall / wall": _ratio(runs.get("dlt_adbc"), mine),
        "dlt_default wall / wall": _ratio(runs.get("dlt_default"), mine),
    }


def reading_ratios(case: Case, runs: Runs) -> dict[str, float | None]:
    """CPU relative to the other readers."""
    mine = runs[case.name]
    return {
        "CPU / read_polars": _ratio(mine, runs.get("read_polars"), "client"),
        "CPU / read_duckdb": _ratio(mine, runs.get("read_duckdb"), "client"),
    }


def _ratio(
    one: Sequence[Run] | None, other: Sequence[Run] | None, figure: str = "wall"
) -> float | None:
    """Of two cases in one round, the median over the rounds: a machine changes its pace between."""
    found = [
        mine[figure] / theirs[figure]
        for mine, theirs in zip(one or (), other or (), strict=False)
        if theirs[figure]
    ]
    return round(median(found), 3) if found else None


def _line(*cells: object) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"
