"""The rules of the report that the first run of a scope is compared with.

The database looks at what is signed by now, like `flows.stages.reconcile.held_against`. It does not
rely on whoever made the run, and does not leave out what page one of the run could not know.
"""

from collections.abc import Mapping

from schemas.derived.sql_names import SAFE, SCHEMA
from schemas.guards.accounts import tenants_of
from schemas.life import RESTATED, Role

_READABLE = "^(everything|((^|; )(batches|feeds|tenants) [^;, ]+(, [^;, ]+)*)+)$"
"""Pattern of scopes to compare; the scope of a restatement never matches, of any version."""


def _named(part: str) -> str:
    """SQL for the batches or feeds that the scope of `r` names; null if it may be about any."""
    return f"string_to_array(substring(r.scope FROM '(?:^|; ){part} ([^;]+)'), ', ')"


def _covers(wide: str, other: str) -> str:
    """SQL for whether everything that `other` is about belongs to `wide`, going by their names."""
    parts = {"batches": "batches", "feeds": "of_feeds", "tenants": "tenants"}
    return " AND ".join(
        f"coalesce({other}.{theirs} <@ {wide}.{own}, {wide}.{own} IS NULL)"
        for own, theirs in parts.items()
    )


_OVERLAPS = " AND ".join(
    f"(own.{part} && o.{part}) IS NOT FALSE" for part in ("batches", "of_feeds", "tenants")
)

HELD_AGAINST_OF: Mapping[str, str] = {
    # Gives the hash of these rules; null if the run is the first of all, with nothing to compare.
    "rules_against(number integer)": f"""RETURNS text LANGUAGE sql STABLE {SAFE} AS $$
        WITH run AS (SELECT r.id, split_part(r.scope, '{RESTATED}', 1) AS scope
            FROM {SCHEMA}.reconciliation r WHERE r.id = number),
        approved AS (SELECT r.id, r.scope, r.rules_hash FROM {SCHEMA}.reconciliation r
            JOIN {SCHEMA}.signature s ON s.reconciliation_id = r.id AND s.role = '{Role.APPROVED}'),
        named AS (SELECT r.*, {_named("batches")} AS batches, {_named("feeds")} AS feeds,
                {tenants_of("r.scope")} AS tenants
            FROM (SELECT id, scope, NULL AS rules_hash FROM run UNION ALL
                -- Of every other scope what was approved last.
                (SELECT DISTINCT ON (a.scope) a.id, a.scope, a.rules_hash FROM approved a, run
                    WHERE a.scope <> run.scope ORDER BY a.scope, a.id DESC)) r
            WHERE r.scope ~ '{_READABLE}'),
        -- Scopes of feeds cover batches that are of these. All are looked up at once: the table of
        -- batches is not read for each scope.
        feeds_of AS (SELECT n.id, array_agg(DISTINCT b.feed) AS feeds FROM named n,
            unnest(n.batches) one JOIN {SCHEMA}.batch b ON b.id::text = one GROUP BY n.id),
        scopes AS (SELECT n.*, coalesce(n.feeds, f.feeds) AS of_feeds
            FROM named n LEFT JOIN feeds_of f ON f.id = n.id)
        SELECT coalesce(
            (SELECT a.rules_hash FROM approved a, run WHERE a.scope = run.scope AND a.id < run.id
                ORDER BY a.id DESC LIMIT 1),
            (SELECT o.rules_hash FROM scopes own JOIN scopes o ON o.rules_hash IS NOT NULL
                WHERE own.rules_hash IS NULL AND (({_covers("o", "own")})
                    OR ({_OVERLAPS} AND NOT ({_covers("own", "o")})))
                ORDER BY o.id DESC LIMIT 1),
            (SELECT r.rules_hash FROM {SCHEMA}.reconciliation r, run
                WHERE r.scope = run.scope AND r.id < run.id ORDER BY r.id LIMIT 1))
    $$"""
}
"""Definitions of the functions, by their heads."""
