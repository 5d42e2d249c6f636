"""Views of the staged rows: every row with its state, and the document's insert-batch data.

HasError, Merged and Jsondata are derived here from stored data, so they cannot disagree with it. A
row is merged when it reached every target its batch asks for: the database, and also the service if
the batch names one and an operation takes the record.
"""

from collections.abc import Iterable, Iterator

from schemas.derived.sql_names import SCHEMA, content_columns, key_columns, listed, staged_name
from schemas.field import Field, Kind, Table
from schemas.kinds import OFFSET
from schemas.ledger import POSITION
from schemas.operations import PUSHES
from schemas.reasons import OF_ROW
from schemas.tables import DOCUMENTED, EXTRACTS, INSERT_BATCH_DATA

APPLIED = ("inserted", "updated", "unchanged")
"""Verdicts of a row whose record is in the database as delivered."""
WRITTEN = ("inserted", "updated")
"""Verdicts of a row that its batch wrote into the database."""
FOUND = ("unchanged", "stale")
"""Verdicts of a row that its batch did not write because of what the database had."""
ERRORS = ("rejected", "conflict")
"""States that set HasError."""
PENDING = "pending"
"""State of a row that no stage has decided about."""
CORRECTED = "corrected"
"""State of a row in error whose repair a later batch took in."""
AGAIN = "delivered again"
"""The word in lists and reconciliations for a row in error that counts with another attempt."""
BY_KEY = "corrected, matched by key"
"""The same for a row that no repair names, if a row with its key was taken in."""
COUNTS_NOT = (*ERRORS, CORRECTED, "superseded", "excluded")
"""States of a row that contributes nothing to its record."""
SEND_ERRORS = ("refused", "differs", "in_doubt")
"""States at the service that set HasError."""
ENDS = ("discarded", "undone")
"""Final states of a batch, which all its rows share."""
LISTED = "listed"
"""State of a row that was read from the service for comparison, and is never applied."""
LISTING_FEED = "service-listing"
"""Feed of what was read from the service, none of which is data of ours."""
SETTLING = (*APPLIED, "superseded", "stale", CORRECTED)
"""States of a row that leave nothing to do about its key: it counts, or a newer row does."""
REPAIRING = (*SETTLING, "excluded")
"""The same for a repair that names its row; the feed may also leave it out."""
FOR_NONE = "superseded by a row in error"
"""State of a superseded repair if the row that should count in its place does not."""


def quoted(name: str) -> str:
    """An identifier as SQL writes it; only names from field tables are allowed."""
    assert '"' not in name
    return f'"{name}"'


def of_batch(alias: str) -> str:
    """SQL that keeps the rows of one batch, with the parameters of `ledger.batch_span`.

    The range of extracts is redundant, but block range indexes need it: without it every batch
    would read the rows of all batches before it.
    """
    return f"{alias}.batch_id = %(batch)s AND {alias}.extract_id BETWEEN %(low)s AND %(high)s"


def in_batches(table: str, batches: str) -> str:
    """SQL that keeps the rows of several batches, an array, by the range of their extracts."""
    ends = (
        f"(SELECT {end}(id) FROM extract WHERE batch_id = ANY({batches}))" for end in ("min", "max")
    )
    return f"{table}.batch_id = ANY({batches}) AND {table}.extract_id BETWEEN {' AND '.join(ends)}"


IS_UNDIVIDED = f"""EXISTS (SELECT FROM json_array_elements(coalesce(s.error_data, '[]')::json) e
    WHERE e ->> 'ErrorCode' IN ({listed(OF_ROW)}))"""
"""SQL for whether a staged row `s` is a line without cells, which may be several records.

No cell of such a line could be read, so the error of its check is stored in the row.
"""


AT_PLACES = """JOIN unnest(%(extracts)s::int[], %(numbers)s::bigint[])
    WITH ORDINALITY AS w (extract_id, number, at)
    ON s.extract_id = w.extract_id AND s.record_number = w.number"""
"""SQL that keeps those staged rows `s` that are at these places.

As arrays, the planner sees how many places there are. Of a table it would expect one where there
are thousands, and would search the rows of the batch for each.
"""


def at_places(places: Iterable[tuple[int, int]]) -> dict[str, list[int]]:
    """The parameters of `AT_PLACES`: extract and record number of each row."""
    extracts, numbers = list[int](), list[int]()
    for extract, number in places:
        extracts.append(extract)
        numbers.append(number)
    return {"extracts": extracts, "numbers": numbers}


def joined(table: Table, alias: str = "s") -> str:
    """SQL that joins the target's row `t` by the key of a staged row with this alias."""
    return " AND ".join(f"t.{quoted(name)} = {alias}.{quoted(name)}" for name in key_columns(table))


def same_content(table: Table) -> str:
    """SQL for whether a staged row `s` has the same content as the target's row `t`."""
    content = content_columns(table)
    if not content:
        return "TRUE"
    mine, theirs = (", ".join(f"{of}.{quoted(name)}" for name in content) for of in "st")
    return f"({mine}) IS NOT DISTINCT FROM ({theirs})"


def moment(field: Field, alias: str) -> str:
    """SQL for the instant of a time kept as a wall clock; null without an offset."""
    of = f"{alias}.{quoted(field.name)}"
    return f"({of} - make_interval(mins => {alias}.{quoted(field.name + OFFSET)}))"


def is_older(field: Field) -> str:
    """SQL for whether a staged row `s` is older than the target's row `t`, by their version.

    Times are compared as instants if both have an offset.
    """
    older = f"s.{quoted(field.name)} < t.{quoted(field.name)}"
    if field.kind is not Kind.DATETIME:
        return older
    return f"coalesce({moment(field, 's')} < {moment(field, 't')}, {older})"


def outcome_joins(table: Table, *, batch: bool = True, among: str = "") -> str:
    """SQL that joins the outcomes of staged rows `s`: an outcome of their own, or the receipt.

    `batch` keeps to one batch, with the parameters of `of_batch`. `among` is a condition known to
    hold for all outcomes of these rows: SQL in which `{0}` stands for them.
    """
    only, corrected = (
        (f"AND {of_batch(alias)}" if batch else "")
        + (f" AND {among.format(alias)}" if among else "")
        for alias in "oc"
    )
    return f"""
        LEFT JOIN {SCHEMA}.outcome o
            ON o.extract_id = s.extract_id AND o.record_number = s.record_number {only}
            AND o.verdict <> '{CORRECTED}'
        LEFT JOIN {SCHEMA}.outcome c
            ON c.extract_id = s.extract_id AND c.record_number = s.record_number {corrected}
            AND c.verdict = '{CORRECTED}'
        LEFT JOIN {SCHEMA}.receipt r
            ON r.extract_id = s.extract_id AND r.stage = '{apply_stage(table)}'
            AND s.record_number BETWEEN r.first_record AND r.last_record"""


_FIRST_LINE = "coalesce({0}.first_line, {0}.record_number + 1)"
_POSITIONS = {
    "first_line": _FIRST_LINE,
    "last_line": f"coalesce({{0}}.last_line, {_FIRST_LINE})",
    "byte_end": "coalesce({0}.byte_end, "
    "{0}.byte_start + octet_length(convert_to({0}.data, 'UTF8')))",
}


def position(name: str, alias: str = "s") -> str:
    """SQL for a column of a staged row's position; redundant columns are not stored."""
    return _POSITIONS[name].format(alias) if name in _POSITIONS else f"{alias}.{name}"


STATE = f"""CASE WHEN c.verdict IS NOT NULL THEN c.verdict
    WHEN s.error_data IS NOT NULL THEN 'rejected'
    ELSE coalesce(o.verdict, r.verdict, '{PENDING}') END"""
"""SQL for the state of a staged row, after `outcome_joins`."""


def repair_joins(table: Table) -> str:
    """`outcome_joins` of a batch, and whether the row that supersedes another one stands.

    It stands if it is applied, was found stale, was corrected since, or is still to be applied.
    """
    if table is INSERT_BATCH_DATA:
        return outcome_joins(table)
    keys = [quoted(name) for name in key_columns(table)]
    stands = f"{STATE} NOT IN ({listed((*ERRORS, 'superseded', 'excluded'))})"
    return f"""{outcome_joins(table)}
        LEFT JOIN (SELECT {", ".join(f"s.{key}" for key in keys)}
            FROM {staged_name(table)} s {outcome_joins(table)}
            WHERE {of_batch("s")} AND s.error_data IS NULL
                -- Of all rows of a batch, but only where there is one.
                AND EXISTS (SELECT FROM {SCHEMA}.outcome d
                    WHERE {of_batch("d")} AND d.verdict = 'superseded')
            GROUP BY {", ".join(f"s.{key}" for key in keys)}
            HAVING bool_or({STATE} = 'superseded') AND bool_or({stands})) stood
            ON {" AND ".join(f"stood.{key} = s.{key}" for key in keys)}"""


def repair_state(table: Table) -> str:
    """SQL for the state of a staged row `s` as a repair, after `repair_joins`.

    A row without a record inside says of itself that it was merged before, so none replaces it.
    """
    if table is INSERT_BATCH_DATA:
        return STATE
    stands = f"stood.{quoted(key_columns(table)[0])} IS NOT NULL"
    return f"""CASE WHEN {STATE} = 'superseded' AND NOT {stands} THEN '{FOR_NONE}'
        ELSE {STATE} END"""


def row_state(state: str = STATE) -> str:
    """SQL for the state of a staged row of a batch `b` as reported."""
    return f"CASE WHEN b.state IN ({listed(ENDS)}) THEN b.state ELSE {state} END"


MOST_MEMBERS = 90
"""The most members of one call; PostgreSQL allows a hundred arguments."""
_NOTHING = "''"


def apply_stage(table: Table) -> str:
    """Name of the stage whose receipts say what became of a record kind's rows."""
    return f"apply {table.name}"


def json_expression(table: Table, alias: str) -> str:
    """SQL for the canonical JSON of a row, byte for byte what `json_text.canonical_json` writes."""
    members = [f"""'"{field.name}":' || {_json_value(field, alias)}""" for field in table.delivered]
    parts = [members[at : at + MOST_MEMBERS] for at in range(0, len(members), MOST_MEMBERS)]
    texts = [f"concat_ws(',', {', '.join(part)})" for part in parts]
    if len(texts) > 1:
        # A part whose fields are all empty is left out, as each empty field is.
        texts = [f"concat_ws(',', {', '.join(f'nullif({text}, {_NOTHING})' for text in texts)})"]
    return f"'{{' || {texts[0]} || '}}'"


def _json_value(field: Field, alias: str) -> str:
    column = f"{alias}.{quoted(field.name)}"
    match field.kind:
        case Kind.STRING:
            return f"to_json({column})::text"
        case Kind.DOUBLE:
            return f"trim_scale({column})::text"
        case Kind.DATETIME | Kind.DATETIME_OFFSET:
            offset = f"{alias}.{quoted(field.name + OFFSET)}"
            wall = (
                column
                if field.kind is Kind.DATETIME
                else f"(({column} AT TIME ZONE 'UTC') + {offset} * interval '1 minute')"
            )
            return (
                f"'\"' || to_char({wall}, 'YYYY-MM-DD\"T\"HH24:MI:SS')"
                f" || rtrim(rtrim(to_char({wall}, '.US'), '0'), '.')"
                f" || coalesce(CASE WHEN {offset} < 0 THEN '-' ELSE '+' END"
                f" || lpad((abs({offset}) / 60)::text, 2, '0')"
                f" || ':' || lpad(mod(abs({offset}), 60)::text, 2, '0'), '') || '\"'"
            )
        case _:
            return f"{column}::text"


_ERROR_DATA = f"""coalesce(CASE WHEN x.state IN ({listed(SEND_ERRORS)}) THEN x.error_data END,
    s.error_data, o.error_data)"""


def staged_rows(tables: Iterable[Table]) -> str:
    """SQL for the rows of some record kinds, in the form of the view of all; empty for no kind.

    A statement about a few rows should name the kinds they may have: the server searches every kind
    it is asked for, and there may be hundreds.
    """
    return " UNION ALL ".join(_staged_selects(tables))


def _staged_selects(tables: Iterable[Table]) -> Iterator[str]:
    columns = ", ".join(
        f"{position(field.name)} AS {field.name}"
        for field in POSITION
        if field.name != "error_data"
    )
    for table in tables:
        yield f"""
            SELECT '{table.name}' AS record, {columns},
                {_ERROR_DATA} AS error_data,
                {row_state()} AS state,
                CASE WHEN s.error_data IS NULL THEN {json_expression(table, "s")} END AS jsondata,
                {"b.service IS NOT NULL" if table.name in PUSHES else "FALSE"} AS to_push,
                b.feed, x.state AS sent, x.status AS http_status, x.service_id
            FROM {SCHEMA}.{staged_name(table)} s
            JOIN {SCHEMA}.batch b ON b.id = s.batch_id
            LEFT JOIN {SCHEMA}.send x
                ON x.extract_id = s.extract_id AND x.record_number = s.record_number
            {outcome_joins(table, batch=False)}"""


SHOWN = "shown_row"
"""The staged rows for accounts that may not see secrets."""


def bare_errors(column: str) -> str:
    """SQL for the errors of a row with a secret, which an earlier version may have quoted."""
    return f"""(SELECT json_agg(json_build_object('ErrorCode', e -> 'ErrorCode',
        'FieldName', e -> 'FieldName', 'Message', '(not shown)'))::text
        FROM json_array_elements({column}::json) e)"""


_HAS_ERROR = f"""(state IN ({listed(ERRORS)})
    OR state NOT IN ({listed(ENDS)}) AND coalesce(sent IN ({listed(SEND_ERRORS)}), FALSE))"""


def _shown_select(hidden: str) -> str:
    """SQL for the rows that may be shown; rows of `hidden` kinds without texts and values."""
    return f"""
        SELECT record, batch_id, extract_id, record_number, first_line, last_line,
            source_batch_id, parent, state, sent, http_status, service_id,
            CASE WHEN NOT {hidden} THEN data END AS data,
            CASE WHEN NOT {hidden} THEN jsondata END AS jsondata,
            CASE WHEN {hidden} THEN {bare_errors("error_data")} ELSE error_data END AS error_data
        FROM {SCHEMA}.staged_row"""


_WITHOUT_SECRETS = listed(of.name for of in EXTRACTS.values() if not of.unquotable)
VIEWS: dict[str, str] = {
    "staged_row": staged_rows(EXTRACTS.values()),
    "insert_batch_data": f"""
        SELECT data AS "Data",
            {_HAS_ERROR} AS "HasError",
            state IN ({listed(APPLIED)})
                AND (NOT to_push OR coalesce(sent = 'acknowledged', FALSE)) AS "Merged",
            batch_id AS "BatchId", jsondata AS "Jsondata",
            CASE WHEN {_HAS_ERROR} THEN error_data END AS "ErrorData",
            extract_id, record_number, state, record, source_batch_id, sent, byte_start, byte_end
        FROM {SCHEMA}.staged_row WHERE feed <> '{LISTING_FEED}'""",
    # The account that grants the roles may lack a definition; kinds unknown to it are hidden.
    SHOWN: _shown_select(f"record NOT IN ({_WITHOUT_SECRETS})"),
}
"""Views by name, in the order they are created."""
_DOCUMENTED = [table for table in EXTRACTS.values() if table.name in DOCUMENTED]
DOCUMENTED_VIEWS = VIEWS | {
    "staged_row": staged_rows(_DOCUMENTED),
    SHOWN: _shown_select(f"record IN ({listed(of.name for of in _DOCUMENTED if of.unquotable)})"),
}
"""The same for documented records only, as migrations leave it whatever a machine defines."""
