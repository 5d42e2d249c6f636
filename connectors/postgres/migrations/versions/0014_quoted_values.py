"""quoted values: reasons that earlier versions wrote quote no value of a kind with secrets any more.

A lost cell moves a secret into the column of another field, whose reason then quoted it. Codes,
fields and places stay; the row itself has its text. Batches whose rows were hashed were judged by a
version that quotes nothing, and are left as they are. Nothing brings the values back.

Revision 0014, after 0013.
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

KINDS = ("payment_gateway", "insert_batch_data", "client_registration", "user_account")
NOT_SHOWN = "(not shown)"
MESSAGE = (
    "What was wrong quoted a value, which an upgrade removed: a row of this record kind can hold "
    "a secret. Read the field it names in the file that was delivered."
)
_QUOTES = f"""(coalesce(e -> 'Meta' ->> 'value', '{NOT_SHOWN}') <> '{NOT_SHOWN}'
    OR e ->> 'Message' ~ '[''"]' AND strpos(e ->> 'Message', '{NOT_SHOWN}') = 0)"""
_BARE = f"""(SELECT json_agg(CASE WHEN {_QUOTES} THEN json_build_object(
    'ErrorCode', e -> 'ErrorCode', 'FieldName', e -> 'FieldName', 'Message', CAST(:message AS text),
    'Meta', coalesce((e -> 'Meta')::jsonb, '{{}}') - 'value' - 'kept') ELSE e END ORDER BY place)::text
    FROM json_array_elements(x.error_data::json) WITH ORDINALITY AS each (e, place))"""
_QUOTED = f"""x.error_data IS NOT NULL AND EXISTS (
    SELECT FROM json_array_elements(x.error_data::json) e WHERE {_QUOTES})
    AND NOT EXISTS (SELECT FROM recon.receipt r
        WHERE r.extract_id = x.extract_id AND r.stage LIKE 'keep %')"""


def upgrade() -> None:
    connection = op.get_bind()
    for kind in KINDS:
        # Its own reasons last: those of other tables are found by the rows of this one.
        for table in ("outcome", "send", f"staged_{kind}"):
            mine = (
                ""
                if table == f"staged_{kind}"
                else f"AND EXISTS (SELECT FROM recon.staged_{kind} s WHERE "
                "s.extract_id = x.extract_id AND s.record_number = x.record_number)"
            )
            connection.execute(
                sa.text(f"UPDATE recon.{table} x SET error_data = {_BARE} WHERE {_QUOTED} {mine}"),
                {"message": MESSAGE},
            )
        connection.execute(
            sa.text(
                "UPDATE recon.note x SET value = '', message = :message WHERE record = :kind "
                "AND value NOT IN ('', :hidden) AND NOT EXISTS (SELECT FROM recon.receipt r "
                "WHERE r.extract_id = x.extract_id AND r.stage LIKE 'keep %')"
            ),
            {"message": MESSAGE, "kind": kind, "hidden": NOT_SHOWN},
        )


def downgrade() -> None:
    """The columns are as they were; what was removed is in nobody's hands."""
