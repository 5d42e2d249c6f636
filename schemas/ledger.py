"""Our own tables in the grammar of the field tables: what arrived, what became of it, and why.

Nothing here is ever edited except the state of a batch or a send and the leases: rows, outcomes,
receipts, images and events are only added. The one exception: that a row was corrected is taken
back when the repair that corrected it is undone.
"""

from schemas.field import Field, Kind, Table

INTEGER, INTEGER64, STRING, INSTANT = Kind.INTEGER, Kind.INTEGER64, Kind.STRING, Kind.INSTANT

BATCH = Table(
    name="batch",
    title="One delivery taken through together",
    extract=False,
    key=("id",),
    fields=(
        Field("id", INTEGER, required=True),
        Field("content_id", STRING, required=True, note="hash of feed and extract hashes"),
        Field("feed", STRING, required=True),
        Field("profile", STRING, required=True, note="the feed profile and the budget, JSON"),
        Field("state", STRING, required=True),
        Field("corrects", INTEGER, note="the batch whose rejects this delivery repairs"),
        Field("held_because", STRING),
        Field("opened_at", INSTANT, required=True),
        Field("ended_at", INSTANT),
        Field("lease_owner", STRING, note="host, process and since when"),
        Field("lease_epoch", INTEGER, required=True, note="grows with every take-over"),
        Field("service", STRING, note="base URL of the service it goes to; null: database only"),
    ),
)

EXTRACT = Table(
    name="extract",
    title="One file as delivered",
    extract=False,
    key=("id",),
    fields=(
        Field("id", INTEGER, required=True),
        Field("batch_id", INTEGER, required=True),
        Field("name", STRING, required=True),
        Field("sha256", STRING, note="of the decompressed bytes"),
        Field("bytes", INTEGER64),
        Field("record", STRING, note="record kind"),
        Field("header", STRING, note="column names as delivered, JSON"),
        Field("manifest", STRING, note="what a control manifest says of the file, JSON"),
        Field("refused", STRING, note="refusal code"),
        Field("message", STRING),
        Field("pieces", STRING, note="sha256 of every MiB of the content, hex, end to end"),
        Field("cleared_at", INSTANT, note="when housekeeping removed the kept content"),
    ),
)

RECEIPT = Table(
    name="receipt",
    title="Proof that one chunk of one stage is in the database",
    extract=False,
    key=("extract_id", "stage", "chunk"),
    fields=(
        Field("batch_id", INTEGER, required=True),
        Field("extract_id", INTEGER, required=True),
        Field("stage", STRING, required=True),
        Field("chunk", INTEGER, required=True),
        Field("first_record", INTEGER64, required=True),
        Field("last_record", INTEGER64, required=True),
        Field("byte_start", INTEGER64),
        Field("byte_end", INTEGER64),
        Field("last_line", INTEGER64),
        Field("inside", Kind.BOOLEAN, note="the chunk ends within an oversized line"),
        Field("sha256", STRING, note="of the chunk's bytes"),
        Field("verdict", STRING, note="of every row of the range without an outcome of its own"),
        Field("counts", STRING, required=True, note="rows by verdict, JSON"),
        Field("totals", STRING, required=True, note="control totals by verdict, JSON"),
        Field("epoch", INTEGER, required=True),
        Field("written_at", INSTANT, required=True),
        Field("clues", STRING, note="where later stages need to look, JSON"),
    ),
)

OUTCOME = Table(
    name="outcome",
    title="What became of one staged row, where it is not what its range's receipt says",
    extract=False,
    fields=(
        Field("batch_id", INTEGER, required=True),
        Field("extract_id", INTEGER, required=True),
        Field("record_number", INTEGER64, required=True),
        Field("verdict", STRING, required=True),
        Field("error_data", STRING),
    ),
)

BEFORE_IMAGE = Table(
    name="before_image",
    title="A database row as it was before a batch changed it",
    extract=False,
    fields=(
        Field("batch_id", INTEGER, required=True),
        Field("extract_id", INTEGER, required=True),
        Field("record_number", INTEGER64, required=True),
        Field("record", STRING, required=True),
        Field("image", STRING, required=True, note="the whole row, JSON"),
    ),
)

NOTE = Table(
    name="note",
    title="A finding that rejects no row: a value, how many rows carry it, and the first of them",
    extract=False,
    fields=(
        Field("batch_id", INTEGER, required=True),
        Field("extract_id", INTEGER, required=True, note="of the first row"),
        Field("record_number", INTEGER64, required=True, note="of the first row"),
        Field("record", STRING, required=True),
        Field("code", STRING, required=True),
        Field("field", STRING, required=True),
        Field("value", STRING, required=True),
        Field("rows", INTEGER64, required=True),
        Field("message", STRING, required=True),
    ),
)

EVENT = Table(
    name="event",
    title="Audit trail: who did what, when and why",
    extract=False,
    key=("id",),
    fields=(
        Field("id", INTEGER64, required=True),
        Field("batch_id", INTEGER),
        Field("at", INSTANT, required=True),
        Field("what", STRING, required=True),
        Field("by", STRING, required=True),
        Field("reason", STRING),
        Field("detail", STRING, note="JSON"),
        Field("account", STRING, note="of the database that wrote it; none: before it was kept"),
        Field("person", STRING, note="account that was logged in; none: what is said of by is all"),
    ),
)

ACCOUNT = Table(
    name="account",
    title="Somebody who logs in: what they are called and what they may do",
    extract=False,
    key=("name",),
    fields=(
        Field("name", STRING, required=True),
        Field("full_name", STRING, required=True, note="as reports show it"),
        Field("roles", STRING, required=True, note="words with a blank between them"),
        Field("tenants", STRING, note="ids with a blank between them; none: all"),
        Field("subject", STRING, note="what a provider or proxy calls them; none: a password"),
        Field("salt", STRING, note="how the key is made of the password"),
        Field("verifier", STRING, note="sha256 of the key"),
        Field("pepper", STRING, note="keeps the password from being guessed by what events say"),
        Field("disabled", Kind.BOOLEAN, required=True),
        Field("failed", INTEGER, required=True, note="logins refused since the last one"),
        Field("failed_at", INSTANT, note="the last of them"),
        Field("event_id", INTEGER64, required=True, note="the last that changed it"),
        Field("show_as", STRING, note="how figures are shown to them; none: as to everybody"),
    ),
)

ACCEPTANCE_LIMIT = Table(
    name="acceptance_limit",
    title="Above which amount an acceptance takes two people",
    extract=False,
    key=("currency",),
    fields=(
        Field("currency", STRING, required=True, note="CurrenciesId; *: all that have none"),
        Field("above", STRING, required=True, note="exact decimal"),
        Field("event_id", INTEGER64, required=True, note="the last that changed it"),
    ),
)

LOGIN = Table(
    name="login",
    title="One login of an account: from when, until when, and how they showed who they are",
    extract=False,
    key=("token_hash",),
    fields=(
        Field("token_hash", STRING, required=True, note="sha256 of what only they have"),
        Field("account", STRING, required=True),
        Field("how", STRING, required=True),
        Field("opened_at", INSTANT, required=True),
        Field("expires_at", INSTANT, required=True),
        Field("ended_at", INSTANT, note="logged out, or ended with the account"),
    ),
)

JOB = Table(
    name="job",
    title="Work that somebody asked for at the desk, and what became of it",
    extract=False,
    key=("id",),
    fields=(
        Field("id", INTEGER, required=True),
        Field("kind", STRING, required=True),
        Field("arguments", STRING, required=True, note="JSON"),
        Field("asked_by", STRING, required=True),
        Field("person", STRING, note="account that was logged in; none: what was said is all"),
        Field("asked_at", INSTANT, required=True),
        Field("state", STRING, required=True),
        Field("account", STRING, note="of the database that took it last"),
        Field("flow_run", STRING, note="id of the flow run that took it last, where one did"),
        Field("started_at", INSTANT, note="when it was taken last"),
        Field("ended_at", INSTANT),
        Field("exit_code", INTEGER, note="as of the command that does the same"),
        Field("said", STRING),
        Field("batches", STRING, required=True, note="worked on; ids with a blank between them"),
        Field("reconciliation_id", INTEGER, note="the run that it made"),
        Field("event_id", INTEGER64, required=True, note="with which it was ordered"),
    ),
)

LOOK = Table(
    name="look",
    title="What an account has opened of a run at the desk, and when first",
    extract=False,
    key=("account", "reconciliation_id", "what"),
    fields=(
        Field("account", STRING, required=True),
        Field("reconciliation_id", INTEGER, required=True),
        Field("what", STRING, required=True, note="report, accepted, or the id of a break"),
        Field("at", INSTANT, required=True),
    ),
)

SUBSCRIPTION = Table(
    name="subscription",
    title="Where an account is sent the reports of a scope",
    extract=False,
    key=("account", "scope_hash"),
    fields=(
        Field("account", STRING, required=True),
        Field("scope_hash", STRING, required=True, note="as of its reconciliations"),
        Field("scope", STRING, required=True),
        Field("address", STRING, required=True, note="of e-mail"),
        Field("event_id", INTEGER64, required=True, note="the last that changed it"),
    ),
)

REPORT_MAIL = Table(
    name="report_mail",
    title="A report that a subscriber is sent by e-mail, and when that was done",
    extract=False,
    key=("reconciliation_id", "account"),
    fields=(
        Field("reconciliation_id", INTEGER, required=True),
        Field("account", STRING, required=True),
        Field("sent_at", INSTANT, note="when the mail server took it; none: it waits"),
    ),
)

SEND = Table(
    name="send",
    title="One staged row on its way to the service, and what became of it there",
    extract=False,
    key=("extract_id", "record_number"),
    fields=(
        Field("batch_id", INTEGER, required=True),
        Field("extract_id", INTEGER, required=True),
        Field("record_number", INTEGER64, required=True),
        Field("operation", STRING, required=True, note="default name"),
        Field("number", INTEGER64, required=True, note="order within batch and operation, from 1"),
        Field("state", STRING, required=True),
        Field("twin", Kind.BOOLEAN, required=True, note="another row sends the same content"),
        Field("writer_extract_id", INTEGER, required=True, note="row that wrote the target record"),
        Field("writer_record_number", INTEGER64, required=True, note="the same"),
        Field("attempts", INTEGER, required=True, note="0: never on the wire for this row"),
        Field("status", INTEGER, note="HTTP status of the last answer"),
        Field("error_data", STRING, note="why it was refused, differs or is in doubt, JSON"),
        Field("echo", STRING, note="what the service says it stored, where that differs"),
        Field("service_id", STRING, note="key the service gave"),
        Field("epoch", INTEGER, required=True, note="of the batch's lease"),
        Field("changed_at", INSTANT, required=True),
        Field("own_key", Kind.BOOLEAN, note="never sent but alone, under its own push key"),
    ),
)

PUSH_LANE = Table(
    name="push_lane",
    title="Who sends to an operation: one run at a time, over all batches",
    extract=False,
    key=("operation",),
    fields=(
        Field("operation", STRING, required=True),
        Field("batch_id", INTEGER, required=True),
        Field("owner", STRING, required=True, note="host, process and since when"),
        Field("epoch", INTEGER, required=True, note="grows with every take-over"),
        Field("held", Kind.BOOLEAN, note="ask the service before the next POST"),
        Field("windows", INTEGER, note="claimed POST windows; RECON_HOME counts them too"),
    ),
)

PUSH_EPOCH = Table(
    name="push_epoch",
    title="One run that was about to send: which database and which home it was",
    extract=False,
    key=("number",),
    fields=(
        Field("number", INTEGER64, required=True, note="0: the first batch; nothing was sent"),
        Field("token", STRING, required=True, note="the home's marker has it too"),
        Field("home", STRING, required=True, note="token of the RECON_HOME"),
        Field("system", STRING, required=True, note="system identifier of the server"),
        Field("timeline", STRING, required=True, note="of the server's log"),
        Field("database_oid", INTEGER64, required=True),
        Field(
            "xid", INTEGER64, required=True, note="transaction that wrote it; a copy has another"
        ),
        Field("at", INSTANT, required=True),
    ),
)

PUSH_SEAL = Table(
    name="push_seal",
    title="The marker of an epoch was written to its home, and sending may begin",
    extract=False,
    key=("number",),
    fields=(
        Field("number", INTEGER64, required=True),
        Field("inode", STRING, required=True, note="of the marker"),
        Field("changed_ns", INTEGER64, required=True, note="of its inode; a copy has another"),
    ),
)

PUSH_RESTORE = Table(
    name="push_restore",
    title="Somebody said from where pushes go on after a restore",
    extract=False,
    key=("event_id",),
    fields=(
        Field("event_id", INTEGER64, required=True),
        Field("unsent", STRING, required=True, note="in_doubt or unsent: what unsent rows are"),
        Field("last_batch", INTEGER, required=True, note="the last batch there was"),
        Field("lost", STRING, required=True, note="contents the database did not know, JSON"),
        Field("at", INSTANT, required=True),
    ),
)

LEASE = Table(
    name="lease",
    title="Who holds what, and until when unless it is renewed",
    extract=False,
    key=("name",),
    fields=(
        Field("name", STRING, required=True, note="what is held"),
        Field("owner", STRING, required=True, note="user, host and process"),
        Field("account", STRING, required=True, note="of the database"),
        Field("pid", INTEGER, required=True, note="of the session"),
        Field("started", INSTANT, required=True, note="of the session"),
        Field("expires_at", INSTANT, required=True, note="by the server's clock"),
        Field("since", INSTANT, note="when it was taken; none: by an earlier version"),
        Field("mark", INTEGER64, note="number of the lock that shows that its session lives"),
    ),
)

EVENT_CHAIN = Table(
    name="event_chain",
    title="The audit trail as a chain: the hash of every event over its content and the one before",
    extract=False,
    key=("position",),
    fields=(
        Field("position", INTEGER64, required=True, note="from 1, without gaps"),
        Field("event_id", INTEGER64, required=True),
        Field("previous_hash", STRING, required=True),
        Field("hash", STRING, required=True, note="sha256, hex"),
    ),
)

CHAIN_TURN = Table(
    name="chain_turn",
    title="Whose turn it is to link events: row 0, locked; the others are events that wait",
    extract=False,
    key=("event_id",),
    fields=(Field("event_id", INTEGER64, required=True),),
)

RECONCILIATION = Table(
    name="reconciliation",
    title="One run that compared the two sides of a scope, and what it reported",
    extract=False,
    key=("id",),
    fields=(
        Field("id", INTEGER, required=True),
        Field("scope", STRING, required=True, note="what was compared, canonical text"),
        Field("scope_hash", STRING, required=True),
        Field("as_of", STRING, required=True, note="ISO date"),
        Field("rules_hash", STRING, required=True),
        Field("verdict", STRING, required=True),
        Field("report_hash", STRING, required=True),
        Field("chain_hash", STRING, required=True, note="over the run before and this report"),
        Field("previous_id", INTEGER, note="the run of the same scope before this one"),
        Field("decided_through", INTEGER64, required=True, note="last decision it knew; 0: none"),
        Field("opened_at", INSTANT, required=True),
        Field("folder", STRING, required=True, note="of its files, under the reports folder"),
        Field("event_id", INTEGER64, required=True),
        Field("rules_text", STRING, note="canonical TOML; empty: of an earlier version"),
        Field("version", STRING, note="of recon; empty: of an earlier version"),
    ),
)

BREAK_STATE = Table(
    name="break_state",
    title="One break as a run left it: what the next run of the scope carries forward",
    extract=False,
    key=("reconciliation_id", "break_id"),
    fields=(
        Field("reconciliation_id", INTEGER, required=True),
        Field("break_id", STRING, required=True),
        Field("state", STRING, required=True),
        Field("first_seen", STRING, required=True, note="ISO date"),
        Field("accepted_until", STRING, note="ISO date, the last day it holds"),
        Field("accepted_by", STRING),
        Field("accepted_reason", STRING),
        Field("owner", STRING),
        Field("code", STRING, required=True),
        Field("record", STRING, required=True),
        Field("tenant", INTEGER),
        Field("key", STRING),
        Field("currency", INTEGER),
        Field("amount", Kind.DOUBLE, note="money the break is about"),
        Field("facts", STRING, required=True, note="everything else the judgement said, JSON"),
    ),
)

DECISION = Table(
    name="decision",
    title="What somebody decided about a break; the next run of the scope acts on it",
    extract=False,
    key=("id",),
    fields=(
        Field("id", INTEGER64, required=True),
        Field("reconciliation_id", INTEGER, required=True, note="the run it was decided on"),
        Field("break_id", STRING, required=True),
        Field("what", STRING, required=True),
        Field("by", STRING, required=True),
        Field("reason", STRING, required=True),
        Field(
            "until",
            STRING,
            note="last day of an acceptance, proposed or taken, or when an owner is due; ISO date",
        ),
        Field("side", STRING, note="of a resolution: source or service"),
        Field("owner", STRING, note="of an assignment"),
        Field("at", INSTANT, required=True),
        Field("event_id", INTEGER64, required=True),
        Field("up_to", STRING, note="ceiling of an acceptance, exact decimal; empty: as it was"),
    ),
)

SIGNATURE = Table(
    name="signature",
    title="Who prepared and who approved the report of a run",
    extract=False,
    key=("reconciliation_id", "role"),
    fields=(
        Field("reconciliation_id", INTEGER, required=True),
        Field("role", STRING, required=True),
        Field("by", STRING, required=True),
        Field("comment", STRING, required=True),
        Field("at", INSTANT, required=True),
        Field("report_hash", STRING, required=True),
        Field("event_id", INTEGER64, required=True),
    ),
)

SECRET_CONSTANT = Table(
    name="secret_constant",
    title="A secret constant of a batch's profile, which only says that there is one",
    extract=False,
    key=("batch_id", "field"),
    fields=(
        Field("batch_id", INTEGER, required=True),
        Field("field", STRING, required=True),
        Field("value", STRING, required=True),
    ),
)

LEDGER: dict[str, Table] = {
    table.name: table
    for table in (
        BATCH,
        EXTRACT,
        RECEIPT,
        OUTCOME,
        BEFORE_IMAGE,
        NOTE,
        EVENT,
        SEND,
        PUSH_LANE,
        PUSH_EPOCH,
        PUSH_SEAL,
        PUSH_RESTORE,
        EVENT_CHAIN,
        CHAIN_TURN,
        LEASE,
        RECONCILIATION,
        BREAK_STATE,
        DECISION,
        SIGNATURE,
        SECRET_CONSTANT,
        ACCOUNT,
        ACCEPTANCE_LIMIT,
        LOGIN,
        LOOK,
        SUBSCRIPTION,
        REPORT_MAIL,
        JOB,
    )
}
"""Our own tables by name."""

POSITION = Table(
    name="position",
    title="Where a staged row comes from; the first columns of every staged table",
    extract=False,
    fields=(
        Field("batch_id", INTEGER, required=True),
        Field("extract_id", INTEGER, required=True),
        Field("record_number", INTEGER64, required=True, note="from 1 after the header"),
        Field("first_line", INTEGER64, note="empty: record_number + 1"),
        Field("last_line", INTEGER64, note="empty: first_line"),
        Field("byte_start", INTEGER64, required=True),
        Field("byte_end", INTEGER64, note="empty: byte_start + the bytes of data in UTF-8"),
        Field("source_batch_id", INTEGER, note="BatchId inside insert-batch data"),
        Field("parent", STRING, note="extract:record of the rejected row this one repairs"),
        Field("data", STRING, note="the record's text as delivered; null: by reference"),
        Field("raw", STRING, note="the record's bytes in hex, where they are no text"),
        Field("error_data", STRING, note="why the row was rejected, JSON"),
        Field("identity", STRING, note="hash of the business key where it is not all integers"),
    ),
)

LINEAGE = Table(
    name="lineage",
    title="Which staged row last wrote a database row",
    extract=False,
    fields=(
        Field("batch_id", INTEGER, required=True),
        Field("extract_id", INTEGER, required=True),
        Field("record_number", INTEGER64, required=True),
    ),
)
