"""what an earlier version had of POSTs in doubt is put right.

Revision 0027, after 0026.

With RECON_SERVICE_IDEMPOTENT a push had POSTs in doubt as unsent before it sent them once more. Those
that it did not come to stayed so, and would be sent a second time by a push without that setting.
They kept the reason of their doubt, which no row has that is rightly unsent: whoever decides that one
is to be sent again takes the reason away.

What is in doubt was sent under a key that did not follow from the content. Sent once more it would
have another one, and a host that knows keys would carry it out again: so it is not, by itself.
"""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None
derived = "ed5152a0f34d5c35253b787aa478ce418b9c743202c053405d18b884f16424e4"

POSTS = """('SaveCampaignActionClientForm', 'ClientRegister', 'AddPaymentGateway', 'AddMessageTone',
    'AddActionDocument')"""


def upgrade() -> None:
    """The tables are the same."""
    op.execute(
        sa.text(
            "UPDATE recon.send SET state = 'in_doubt', changed_at = now() "
            f"""WHERE state = 'unsent' AND operation IN {POSTS} AND error_data LIKE '%"InDoubt"%'"""
        )
    )
    op.execute(
        sa.text(
            "UPDATE recon.send SET own_key = FALSE "
            f"WHERE state IN ('in_doubt', 'sending') AND own_key AND operation IN {POSTS}"
        )
    )
