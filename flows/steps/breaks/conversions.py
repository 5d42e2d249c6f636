"""Converted amounts: the found amount is the delivered one times a rate or a ratio of two rates.

Converted amounts are rounded, so this is not a proof: it is reported only if one factor explains
several breaks to half a cent each.
"""

import numpy as np
import numpy.typing as npt
import polars as pl

from flows.steps.breaks.patterns import AT, FEWEST, Candidates, candidates
from flows.steps.frames.rate_series import same_series, series

Floats = npt.NDArray[np.float64]

NEAREST = 10
"""The ratio of two rates is tried if they are at most this many rates of a series apart."""
PROBES = 50
"""How many breaks, the largest first, propose factors."""
RULE = "converted"
HALF_A_CENT = 0.00501
LARGE = 50.0
"""Smaller amounts prove little: many factors explain them to half a cent."""


def conversions(amounts: pl.DataFrame, rates: pl.DataFrame | None) -> Candidates:
    """Candidate causes: amounts `e` that a rate turned into `f`."""
    frames = [pl.DataFrame(schema={AT: pl.UInt32, "about": pl.String, "title": pl.String})]
    if rates is not None and rates.height and amounts.height >= FEWEST[RULE]:
        names, values = _factors(rates)
        for _, rows in amounts.filter(pl.col("e") != 0).group_by("record", "field"):
            frames += _of_field(rows, names, values)
    return candidates(pl.concat(frames), RULE, pl.col("about"), pl.col("title"))


def _factors(rates: pl.DataFrame) -> tuple[list[str], Floats]:
    """Names and values of every rate, its inverse, and the ratios of near rates of a series."""
    sound = series(rates).with_columns(pl.format("{}/{}", "Id", "TenantsId").alias("name"))
    rate = pl.col("ExchangeRate")
    parts = [
        sound.select(pl.format("rate {}", "name").alias("name"), rate.alias("factor")),
        sound.select(pl.format("1 / rate {}", "name").alias("name"), (1 / rate).alias("factor")),
    ]
    for distance in range(1, NEAREST + 1):
        # Without rechunk() the shift leaves an empty chunk, on which concat_str fails.
        near = (
            sound.with_columns(
                pl.col("name").shift(distance).alias("earlier"),
                rate.shift(distance).alias("before"),
            )
            .filter(same_series(distance))
            .rechunk()
        )
        for one, other, ratio in (
            ("name", "earlier", rate / pl.col("before")),
            ("earlier", "name", pl.col("before") / rate),
        ):
            label = pl.format("rate {} in place of rate {}", one, other)
            parts.append(near.select(label.alias("name"), ratio.alias("factor")))
    every = (
        pl.concat(parts)
        .filter(pl.col("factor") != 1)
        .unique("factor", keep="first", maintain_order=True)
        .sort("factor", maintain_order=True)
    )
    return every["name"].to_list(), every["factor"].to_numpy()


def _of_field(rows: pl.DataFrame, names: list[str], values: Floats) -> list[pl.DataFrame]:
    ordered = rows.sort(pl.col("e").abs(), "id", descending=[True, False])
    expected, found = (ordered[side].cast(pl.Float64).to_numpy() for side in ("e", "f"))
    telling = np.abs(expected) >= LARGE
    explained: dict[int, npt.NDArray[np.bool_]] = {}
    for place in _proposed(expected[:PROBES], found[:PROBES], values):
        fits = np.abs(found - expected * values[place]) <= HALF_A_CENT
        # A single difference for all is another cause, and small amounts prove nothing.
        differences = np.round(found - expected, 2)[fits & telling]
        if len(np.unique(differences)) >= FEWEST[RULE]:
            explained[place] = fits
    frames = []
    free = np.ones(len(expected), dtype=bool)
    for place, fits in sorted(explained.items(), key=lambda one: (-int(one[1].sum()), one[0])):
        mine = fits & free
        if int((mine & telling).sum()) >= FEWEST[RULE]:
            free &= ~mine
            frames.append(_cause_rows(ordered.filter(pl.Series(mine)), names[place]))
    return frames


def _proposed(expected: Floats, found: Floats, values: Floats) -> list[int]:
    """Indexes of the factors that explain at least one of the probes."""
    places: set[int] = set()
    for one, other in zip(expected, found, strict=True):
        if abs(one) < LARGE:
            continue
        factor, slack = other / one, HALF_A_CENT / abs(one)
        first = int(np.searchsorted(values, factor - slack, side="left"))
        last = int(np.searchsorted(values, factor + slack, side="right"))
        # If very many factors fit, a probe cannot tell them apart.
        places.update(range(first, min(last, first + PROBES)))
    return sorted(places)


def _cause_rows(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    return rows.select(
        AT,
        pl.concat_str("record", "field", pl.lit(name), separator="/").alias("about"),
        pl.concat_str("field", pl.lit(f" was converted: {name}")).alias("title"),
    )
