"""Which changes of a batch the database allows, by whom, and what must be said before.

Roles that load write the table of batches themselves. So a trigger checks each change of a state: a
batch that was held goes on, ends or begins again only after the event that says who decided so. And
only roles that may apply rows may say that rows were applied or taken back, or that a batch that
was once held is checked.

The identity of a batch and its profile stay as received. So does its service, once that may have
carried out, or has judged, one of its rows. The database numbers a batch and says when it came. Why
it is held, and when it ended, is set together with the state and stays so.
"""

from collections.abc import Mapping, Sequence

from schemas.derived.sql_names import MERGER, SAFE, SCHEMA, listed
from schemas.derived.views import ENDS, LISTING_FEED

PREFIX = "batch "
"""Events named by this prefix and a state say that the batch came to that state."""
FIRST = "received"
HELD = "held"
ASKED_FOR = "push asked for"
"""The event by which a batch goes to its first service, or to another before anything was sent."""
INSTEAD_OF = "instead_of"
"""Key in its detail: the service that the batch went to before."""
UNDO = "undo"
REOPENED = "sends reopened"
"""The event of another batch whose rows an undo lets be sent again: people who see the undone batch
may know nothing of that one."""
BY_UNDO = "undo"
"""Key in its detail: the event of the undo."""
RESOLVE = "resolve"
"""The event of a decision about sends."""
RESTORED = "restored"
"""The event that declares a restore."""
MERGED_STATES = ("merged", "complete", "complete_with_errors", "failed")
APPLIED_STATES = (*MERGED_STATES, "undone")
"""States to which only roles that apply rows may bring a batch, except a listing of the service,
which has no rows to apply."""
DECIDED_BY: Mapping[tuple[str, str], str] = {
    (HELD, "checked"): "released",
    (HELD, "discarded"): "discarded",
    ("*", FIRST): "rewound",
    ("*", "undone"): UNDO,
}
"""The event that must come first, by state before and after; `*` is any state."""
COMES_AFTER: Mapping[str, Sequence[str]] = {
    FIRST: ("staged", "checked", HELD),
    "staged": (FIRST,),
    "checked": ("staged", HELD),
    HELD: ("staged",),
    "discarded": (HELD,),
    "merged": ("checked", "failed", "complete", "complete_with_errors"),
    "failed": MERGED_STATES,
    "complete": ("merged", "failed"),
    "complete_with_errors": ("merged", "failed"),
}
"""The states that a state may follow, so that no way leads around a decision."""
STATE_EVENTS = tuple(PREFIX + state for state in {**COMES_AFTER, **dict.fromkeys(ENDS)})
"""Events that are written only about a batch in just that state."""
KEPT = ("id", "feed", "content_id", "profile", "corrects", "opened_at")
"""Columns of a batch that stay as they were when it was received."""
OF_MERGER: Sequence[str] = (
    "released", UNDO, REOPENED, RESOLVE, RESTORED, ASKED_FOR,
    *(PREFIX + state for state in APPLIED_STATES),
)  # fmt: skip
"""Events that only roles that apply rows may write."""
OPERATED: Mapping[str, str] = {
    "released": "releasing a batch",
    "discarded": "discarding a batch",
    "rewound": "reading a batch from the start",
    UNDO: "undoing a batch",
    RESOLVE: "settling rows of a batch",
    RESTORED: "letting pushes go on after a restore",
}
"""Events of an operator's decisions about a batch, with what is done, for refusals."""


LACKS_MERGER = (
    f"(to_regrole('{MERGER}') IS NOT NULL "
    f"AND NOT pg_has_role(session_user, to_regrole('{MERGER}'), 'MEMBER') "
    "AND NOT pg_has_role(session_user, current_user, 'MEMBER'))"
)
"""SQL for whether the database account signed in may not apply rows.

The owner of the schema may be everybody; if there are no roles, nobody else can write anyway.
"""
IS_LISTED = (
    f"(what IN ({listed([PREFIX + state for state in MERGED_STATES])}) AND EXISTS (SELECT "
    f"FROM {SCHEMA}.batch b WHERE b.id = batch_id AND b.feed = '{LISTING_FEED}'))"
)
"""SQL for whether an event `what` of a batch `batch_id` says that a listing was all read."""


def is_bound(batch: str) -> str:
    """SQL for whether a batch must stay with its service, which has, may have or has judged a row.

    Failed connections and answers that prove that nothing was carried out do not bind it. Nor do
    states that a row took over from others, even with a decision to send it all the same. Other
    decisions count as sent, and so does what a restored database may not know. Earlier states of a
    row count like its present one.
    """
    return f"""(EXISTS (SELECT FROM {SCHEMA}.send x WHERE x.batch_id = {batch}
            AND ({_binds("x")} OR x.earlier > 0 AND EXISTS (SELECT FROM {SCHEMA}.earlier_send e
                WHERE {_same_row("e", "x")} AND {_binds("e")})))
        OR EXISTS (SELECT FROM {SCHEMA}.push_restore r WHERE r.unsent = 'in_doubt'
            AND (r.last_batch >= {batch} OR EXISTS (SELECT FROM {SCHEMA}.extract e
                WHERE e.batch_id = {batch} AND r.lost::jsonb ? e.sha256))))"""


def _binds(row: str) -> str:
    """SQL for whether a send, or an earlier state of it, shows that it may be at the service.

    A decision to resend relies on what other rows told, and binds nothing until the row is tried.
    If the tries prove nothing, a doubt taken over from other rows, which was the first thing known
    of this row, is not its own; one of its own shows in its present or another earlier state.
    """
    reported = f"""EXISTS (SELECT FROM {SCHEMA}.earlier_send f WHERE {_same_row("f", row)}
        AND f.number = 1 AND f.state = 'in_doubt' AND f.attempts = 0)"""
    decided = f"""EXISTS (SELECT FROM {SCHEMA}.event v
        WHERE v.batch_id = {row}.batch_id AND v.what = '{RESOLVE}')"""
    return f"""({row}.attempts > 0 AND ({row}.state NOT IN ('unsent', 'superseded')
            OR {row}.decision IS NOT NULL OR {row}.carried_out IS NOT NULL AND NOT {reported})
        OR {row}.decision <> 'resend' AND {decided})"""


def _same_row(one: str, other: str) -> str:
    return f"({one}.extract_id, {one}.record_number) = ({other}.extract_id, {other}.record_number)"


def _kept(row: str) -> str:
    return ", ".join(f"{row}.{column}" for column in KEPT)


_DECIDED = " ".join(
    f"WHEN NEW.state = '{after}' AND '{before}' IN (OLD.state, '*') THEN '{event}'"
    for (before, after), event in DECIDED_BY.items()
)
_OUT_OF_TURN = " OR ".join(
    f"NEW.state = '{after}' AND OLD.state NOT IN ({listed([*before, after])})"
    for after, before in COMES_AFTER.items()
)


def not_numbered(table: str) -> str:
    """SQL for whether a new row's number is not the one that the database has just drawn for it."""
    return f"NOT {SCHEMA}.is_drawn('{SCHEMA}.{table}', NEW.id)"


STATES: tuple[str, ...] = (
    f"""CREATE OR REPLACE FUNCTION {SCHEMA}.is_drawn(named text, number bigint) RETURNS boolean
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
    BEGIN
        RETURN currval(pg_get_serial_sequence(named, 'id')) = number;
    EXCEPTION WHEN object_not_in_prerequisite_state THEN
        RETURN false;  -- This session has drawn none.
    END $$""",
    f"REVOKE ALL ON FUNCTION {SCHEMA}.is_drawn(text, bigint) FROM PUBLIC",
    f"""CREATE OR REPLACE FUNCTION {SCHEMA}.batch_state_checked() RETURNS trigger
    LANGUAGE plpgsql {SAFE} AS $$
    DECLARE
        needed text;
    BEGIN
        IF pg_has_role(session_user, current_user, 'MEMBER') THEN
            RETURN NEW;
        END IF;
        IF TG_OP = 'INSERT' THEN
            IF NEW.state <> '{FIRST}' THEN
                RAISE EXCEPTION 'a batch begins as {FIRST}, not as %', NEW.state;
            END IF;
            IF {not_numbered("batch")} THEN
                RAISE EXCEPTION 'a batch has the number that the database gives it, not %', NEW.id;
            END IF;
            -- Whose rows an account of some tenants sees is read from all profiles at once.
            IF json_typeof(NEW.profile::json) <> 'object'
                OR coalesce(json_typeof(NEW.profile::json -> 'tenant'), 'null')
                    NOT IN ('null', 'number')
                OR NEW.profile::json ->> 'tenant' !~ '^-?[0-9]{{1,10}}$'
            THEN
                RAISE EXCEPTION
                    'the profile of a batch is a JSON object, and its tenant a whole number';
            END IF;
            NEW.opened_at := now();
            NEW.held_because := NULL;
            NEW.ended_at := NULL;
            RETURN NEW;
        END IF;
        IF ({_kept("NEW")}) IS DISTINCT FROM ({_kept("OLD")}) THEN
            RAISE EXCEPTION 'batch % of feed % stays as it was received', OLD.id, OLD.feed;
        END IF;
        IF NEW.held_because IS DISTINCT FROM OLD.held_because
            AND (NEW.state = OLD.state OR NEW.state <> '{HELD}' AND NEW.held_because IS NOT NULL)
        THEN
            RAISE EXCEPTION 'batch % is %: why a batch is held is said when it becomes that',
                OLD.id, OLD.state;
        END IF;
        IF NEW.ended_at IS DISTINCT FROM OLD.ended_at
            AND (NEW.state = OLD.state OR NEW.ended_at IS NOT NULL AND NEW.ended_at <> now())
        THEN
            RAISE EXCEPTION 'batch % is %: when it ended is the time at which its state changed',
                OLD.id, OLD.state;
        END IF;
        IF NEW.service IS DISTINCT FROM OLD.service AND NOT EXISTS (
            SELECT FROM {SCHEMA}.event e WHERE e.batch_id = OLD.id AND e.what = '{ASKED_FOR}'
            AND e.detail::jsonb ->> 'service' = NEW.service
            AND e.detail::jsonb ->> '{INSTEAD_OF}' IS NOT DISTINCT FROM OLD.service)
        THEN
            RAISE EXCEPTION 'batch % goes to %, and no event % says otherwise', OLD.id,
                coalesce('service ' || OLD.service, 'no service'), quote_literal('{ASKED_FOR}');
        END IF;
        IF NEW.service <> OLD.service AND {is_bound("OLD.id")} THEN
            RAISE EXCEPTION 'batch % stays with service %, which has rows of it or may have them',
                OLD.id, OLD.service;
        END IF;
        IF OLD.state IN ({listed(ENDS)}) THEN
            RAISE EXCEPTION 'batch % is %, which is an end', OLD.id, OLD.state;
        END IF;
        IF {_OUT_OF_TURN} THEN
            RAISE EXCEPTION 'batch % is %, and does not become %', OLD.id, OLD.state, NEW.state;
        END IF;
        IF NEW.state IN ({listed(APPLIED_STATES)}) AND {LACKS_MERGER}
            AND NOT (NEW.feed = '{LISTING_FEED}' AND NEW.state IN ({listed(MERGED_STATES)}))
        THEN
            RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE =
                'permission denied for event ' || quote_literal('{PREFIX}' || NEW.state)
                || ': the account ' || session_user || ' applies no rows';
        END IF;
        -- Read again from the start, it is judged by those who may decide about it.
        IF NEW.state = 'checked' AND {LACKS_MERGER} AND EXISTS (SELECT FROM {SCHEMA}.event e
            WHERE e.batch_id = OLD.id AND e.what = '{PREFIX}{HELD}')
        THEN
            RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE =
                'permission denied for event ''released'': batch ' || OLD.id
                || ' was held, and the account ' || session_user || ' applies no rows';
        END IF;
        needed := CASE {_DECIDED} END;
        IF needed IS NOT NULL AND NOT EXISTS (
            SELECT FROM {SCHEMA}.event e WHERE e.batch_id = OLD.id AND e.what = needed
            AND e.id > coalesce((SELECT max(b.id) FROM {SCHEMA}.event b WHERE b.batch_id = OLD.id
                AND b.what = '{PREFIX}' || OLD.state), 0))
        THEN
            RAISE EXCEPTION 'batch % is %, and no event % says who lets it become %',
                OLD.id, OLD.state, quote_literal(needed), NEW.state;
        END IF;
        RETURN NEW;
    END $$""",
    f"REVOKE ALL ON FUNCTION {SCHEMA}.batch_state_checked() FROM PUBLIC",
    f"CREATE OR REPLACE TRIGGER batch_state_checked BEFORE INSERT OR UPDATE OF "
    f"state, service, held_because, ended_at, {', '.join(KEPT)} ON {SCHEMA}.batch FOR EACH ROW "
    f"EXECUTE FUNCTION {SCHEMA}.batch_state_checked()",
)
"""Statements that put the rule in place; repeating them changes nothing."""
