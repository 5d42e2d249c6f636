"""secret constants: what a profile states for a secret field is kept apart from the profile.

Revision 0012, after 0011.
"""

import json

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

KEPT = "(kept in secret_constant)"
SECRETS = {
    *("ServiceKey", "Password", "ConfirmPassword", "Salt", "PasswordHash"),
    *("DigestHa1Hash", "RecoveryToken"),
}


def upgrade() -> None:
    op.create_table(
        "secret_constant",
        sa.Column("batch_id", sa.INTEGER(), nullable=False),
        sa.Column("field", sa.TEXT(), nullable=False),
        sa.Column("value", sa.TEXT(), nullable=False),
        sa.PrimaryKeyConstraint("batch_id", "field"),
        schema="recon",
        comment="A secret constant of a batch's profile, which only says that there is one",
    )
    for batch_id, profile in _profiles():
        found = {name: profile["constants"][name] for name in SECRETS & set(profile["constants"])}
        for name, value in found.items():
            op.get_bind().execute(
                sa.text("INSERT INTO recon.secret_constant VALUES (:batch, :field, :value)"),
                {"batch": batch_id, "field": name, "value": value},
            )
        _store(batch_id, profile, dict.fromkeys(found, KEPT))


def downgrade() -> None:
    rows = op.get_bind().execute(sa.text("SELECT * FROM recon.secret_constant")).all()
    kept = {(batch_id, field): value for batch_id, field, value in rows}
    for batch_id, profile in _profiles():
        mine = {field: value for (batch, field), value in kept.items() if batch == batch_id}
        _store(batch_id, profile, mine)
    op.drop_table("secret_constant", schema="recon")


def _profiles() -> list[tuple[int, dict[str, dict[str, str]]]]:
    """Profiles with a constant; few have one."""
    rows = op.get_bind().execute(
        sa.text("SELECT id, profile FROM recon.batch WHERE profile::json ->> 'constants' <> '{}'")
    )
    return [(batch_id, json.loads(profile)) for batch_id, profile in rows.all()]


def _store(batch_id: int, profile: dict[str, dict[str, str]], changed: dict[str, str]) -> None:
    if changed:
        text = json.dumps(profile | {"constants": profile["constants"] | changed}, sort_keys=True)
        op.get_bind().execute(
            sa.text("UPDATE recon.batch SET profile = :profile WHERE id = :batch"),
            {"profile": text, "batch": batch_id},
        )
