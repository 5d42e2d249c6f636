"""Why a row was rejected or a file refused: stable codes, titles, templates and next steps.

Only the words are here. `docs/architecture.md`, "Where a row is rejected", says where each is
decided. After a change run `make fields`: `docs/fields.md` shows all of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass

OF_ROW = (
    "NulCharacter",
    "TooFewFields",
    "TooManyFields",
    "StrayQuote",
    "UnterminatedQuote",
    "StrayEscape",
    "Encoding",
    "FieldTooLarge",
    "RecordTooLarge",
)
"""Codes of a row whose fields could not be told apart, so that none was read."""
UNREAD_CELL = "UnreadCell"
NOT_READ = (
    "NotNull",
    "KeyPart",
    "Integer",
    "IntegerRange",
    "Number",
    "NotFinite",
    "Boolean",
    "Text",
    "DateTime",
    "OffsetMissing",
    "Map",
    "List",
    "Record",
    UNREAD_CELL,
)
"""Codes of an amount without a value, because there is none or it was not read. An amount that was
read is in every sum, whatever other errors its row has."""
NOT_SHOWN = "(not shown)"
"""Stands in place of a value that is, or may be, a secret."""


@dataclass(frozen=True, slots=True)
class Reason:
    code: str
    title: str
    template: str
    """Filled with `field`, `value` and what the reason needs; never shows a secret's value."""
    remedy: str

    def message(self, **facts: object) -> str:
        """The sentence a reader sees."""
        return self.template.format(**facts)


def _by_code(*reasons: Reason) -> dict[str, Reason]:
    return {reason.code: reason for reason in reasons}


REASONS = _by_code(
    Reason(
        "NotNull", "required value missing", "'{field}' must not be empty.", "Deliver the value."
    ),
    Reason(
        "KeyPart",
        "part of a key missing",
        "'{field}' must not be empty: '{number}' is made of it.",
        "Deliver the value, or state a default for it in the feed profile, or a key without it.",
    ),
    Reason(
        "NotEmpty", "required text empty", "'{field}' should not be empty.", "Deliver the text."
    ),
    Reason(
        "Email",
        "not an e-mail address",
        "'{field}' is not a valid email address.",
        "Correct the address.",
    ),
    Reason(
        "Integer",
        "not an integer",
        "'{field}' is not an integer: {value}.",
        "Deliver digits only, with an optional sign, or state in the profile: thousands, "
        "negative, null, part, map, width.",
    ),
    Reason(
        "IntegerRange",
        "integer out of range",
        "'{field}' does not fit {limit}: {value}.",
        "Check the number at its source; it cannot be stored.",
    ),
    Reason(
        "Number",
        "not a number",
        "'{field}' is not a number: {value}.",
        "Deliver digits and a decimal point only, or state in the profile: decimal, thousands, "
        "negative, currency, null, width.",
    ),
    Reason(
        "NotFinite",
        "number without a value",
        "'{field}' is not a finite number: {value}.",
        "Deliver a number a double can hold.",
    ),
    Reason(
        "Precision",
        "more digits than can be kept",
        "'{field}' would change when stored: {value} becomes {kept}.",
        "Deliver no more digits than the type keeps, or correct the source.",
    ),
    Reason(
        "Boolean",
        "not a boolean",
        "'{field}' is neither True nor False: {value}.",
        "Deliver True or False, or state the words in the profile: true, false, null.",
    ),
    Reason(
        "Text",
        "text unknown to the feed profile",
        "'{field}' does not match the feed profile: {value}.",
        "Deliver a text that its pattern or map knows, or add it to the feed profile.",
    ),
    Reason(
        "DateTime",
        "not a date and time",
        "'{field}' is not a date and time that can be read: {value}.",
        "Deliver YYYY-MM-DDTHH:MM:SS with the offset, or state in the profile: date_format, "
        "offset, zone, null, width.",
    ),
    Reason(
        "OffsetMissing",
        "time without offset",
        "'{field}' has no offset, so its instant is unknown: {value}.",
        "Deliver the offset (+02:00, Z), or state in the profile: offset, zone.",
    ),
    Reason(
        "Map",
        "not a map of texts",
        "'{field}' is not a map of texts: {value}.",
        "Deliver a JSON object or the JSV form {key:value}.",
    ),
    Reason(
        "List",
        "not a list",
        "'{field}' is not a list of {of}: {value}.",
        "Deliver a JSON array or the JSV form [a,b].",
    ),
    Reason(
        "Record",
        "not a nested record",
        "'{field}' is not a {of} record: {value}.",
        "Deliver a JSON object or the JSV form with the record's fields.",
    ),
    Reason(
        UNREAD_CELL,
        "workbook cell that is not read",
        "'{field}' is in a cell that is not read: {value}.",
        "Store the value in the workbook as a text, or deliver CSV.",
    ),
    Reason(
        "TooFewFields",
        "fields missing in the record",
        "The record has fewer fields than there are columns, or its line is too short for them.",
        "Deliver every column, even if empty. With columns of a fixed width, deliver the whole "
        "line, or state short_lines in the feed profile.",
    ),
    Reason(
        "TooManyFields",
        "more fields than the header",
        "The record has more fields than there are columns, or its line extends beyond the last "
        "one.",
        "Quote values that contain the delimiter; if all records end with empty cells, state "
        "unnamed_columns in the feed profile. With columns of a fixed width, state in positions "
        "what stands behind the last one.",
    ),
    Reason(
        "StrayQuote",
        "quote out of place",
        "A quote stands inside a field or text follows a closing quote.",
        "Quote the whole field and double the quotes inside it.",
    ),
    Reason(
        "UnterminatedQuote",
        "quote never closed",
        "A quoted field is not closed within the reader's look-ahead.",
        "Close the quote. If it is closed, raise RECON_LIMIT_LOOK_AHEAD_BYTES before it is "
        "delivered again.",
    ),
    Reason(
        "StrayEscape",
        "escape that means nothing",
        "A backslash stands before a character that it cannot escape, or at the end of a line.",
        "Write a backslash as two backslashes, and a line break within quotes or as a backslash "
        "and n.",
    ),
    Reason(
        "Encoding",
        "bytes that are no text",
        "The record has bytes that are not valid in the file's encoding.",
        "Deliver the file in its declared encoding, or declare the right one in the feed profile.",
    ),
    Reason("NulCharacter", "NUL in the text", "The record contains a NUL character.", "Remove it."),
    Reason(
        "FieldTooLarge",
        "field over the limit",
        "A field is longer than the limit.",
        "Shorten it, or raise RECON_LIMIT_FIELD_BYTES before it is delivered again.",
    ),
    Reason(
        "RecordTooLarge",
        "record over the limit",
        "The record is longer than the limit.",
        "Shorten it, or raise RECON_LIMIT_RECORD_BYTES before it is delivered again.",
    ),
    Reason(
        "ConflictingKey",
        "same key, different content",
        "Another row of this delivery has the same key ({value}) with other content.",
        "Deliver the right one of them.",
    ),
    Reason(
        "EqualRows",
        "equal rows with one key",
        "Another row of this delivery says the same ({value}), and the feed profile does not take "
        "such rows for one record.",
        "Deliver what tells them apart in a field of the key. If they are one record, deliver "
        'them with a feed profile that says repeats = "superseded".',
    ),
    Reason(
        "KeyCollision",
        "number of another key",
        "'{field}' {value} is made of a key, but a record with another key has the same number.",
        "Deliver it with a feed profile whose key has one more field.",
    ),
    Reason(
        "RepairsNothing",
        "repairs no row",
        "'{field}' {value} names no row of its kind in the batch that the delivery corrects.",
        "Keep it as `recon rejects` wrote it, or leave it empty if the row repairs none.",
    ),
    Reason(
        "RepairedTwice",
        "one of several keys for one repaired row",
        "{row} repairs the same row ('{field}' {value}) with another key.",
        "Deliver one of them: a row is one record. Leave that column empty for a record of its "
        "own.",
    ),
    Reason(
        "AppliedOtherwise",
        "names an applied row of another key",
        "{row}, which this one names ('{field}' {value}), is applied with another key: this one "
        "would be a second record beside it.",
        "Deliver it with the key of that row. Where that key is wrong, undo its batch (recon undo) "
        "and import its files again, corrected. Leave ReconRow empty for a record of its own.",
    ),
    Reason(
        "KeyOfAnother",
        "key of another row of the corrected delivery",
        "{row} has the same key ({value}), and is not the row that this one repairs.",
        "Deliver it with its own key. To change the other record, deliver that change separately.",
    ),
    Reason(
        "RecordOfAnother",
        "key of a record of another delivery",
        "{row} has the same key ({value}) with other content. It is of another delivery, and "
        "{repaired}, which this one repairs, does not have this key.",
        "Deliver it with its own key. If that record is meant to change, write out the rejects of "
        "this batch, and deliver them with "
        "`recon import FOLDER --corrects BATCH --change-records`.",
    ),
    Reason(
        "OtherCurrency",
        "cell in another currency than its record",
        "'{field}' is in {found} by the format of its cell, and the record is in {of_record}: "
        "{value}.",
        "Deliver the amount in the currency of its record, or correct the currency of the record "
        "or the format of the cell.",
    ),
    Reason(
        "LeftOut",
        "left out by the feed profile",
        "'{field}' is {value!r}: the feed profile leaves such rows out.",
        "If these rows are wanted, change `leave_out` or `keep_only`, and deliver them in a file "
        "of their own.",
    ),
    Reason(
        "NoValue",
        "line without a value",
        "The line has no value in any column whose cells become records, so it becomes no record.",
        "Nothing, where such lines are expected: `recon row BATCH FILE --line LINE` shows each.",
    ),
    Reason(
        "Comment",
        "line that is no record",
        "The feed profile says that this line is no record (comment, skip_lines).",
        "Nothing, where such lines are expected: `recon row BATCH FILE --line LINE` shows each.",
    ),
    Reason(
        "OtherFeed",
        "updated record of another feed",
        "Updated what feed {value} delivered before.",
        "Nothing, if both feeds come from one sender. Otherwise undo the batch, and state a "
        "`namespace` for each sender beside the `key` in the feed profiles.",
    ),
    Reason(
        "LaterBatch",
        "updated record of a later batch",
        "Updated what batch {value} delivered, which was received after this one.",
        "Nothing, if the values of this batch are to count. Otherwise undo the batch: its "
        "records are then as they were before it.",
    ),
    Reason(
        "SecondRecord",
        "second record of a repaired row",
        "Repairs what batch {value} had repaired with another key: both are records.",
        "Nothing, if both are right. Otherwise undo the batch whose record is wrong, and deliver "
        "its other repairs again.",
    ),
    Reason(
        "ReferenceMissing",
        "reference to an unknown record",
        "'{field}' refers to {of} {value}, which is neither delivered nor known.",
        "Deliver the record it refers to, or correct the reference.",
    ),
    Reason(
        "ReferenceTenant",
        "reference across tenants",
        "'{field}' refers to {of} {value} of another tenant.",
        "Correct the reference or the tenant.",
    ),
    Reason(
        "TenantNotBound",
        "another tenant's row",
        "The batch is bound to tenant {limit}; this row is of tenant {value}.",
        "Deliver it with its own tenant's batch.",
    ),
    Reason(
        "InnerRecord",
        "no record inside",
        "No record could be read from Jsondata or Data: {value}.",
        "Deliver the record as a JSON object, or name its kind in the feed profile.",
    ),
    Reason(
        "SecretLeftOut",
        "secret left out",
        "'{field}' is empty, and its value cannot be taken from the row that this one repairs.",
        "Deliver the value. `recon rejects BATCH --with-secrets` writes it where it can be read.",
    ),
    Reason(
        "Constraint",
        "refused by the database",
        "The database refused the row: {value}.",
        "Correct the row; the code is PostgreSQL's.",
    ),
    Reason(
        "Refused",
        "refused by the service",
        "The service refused the record ({value}).",
        "Correct the record and deliver it again, or settle it with recon resolve.",
    ),
    Reason(
        "EchoDiffers",
        "stored otherwise by the service",
        "The service answered with other values than were sent ({value}).",
        "Compare what the service holds, then settle the row with recon resolve.",
    ),
    Reason(
        "InDoubt",
        "sent, and the answer is lost",
        "Nothing proves whether the service carried the record out ({value}).",
        "Look it up at the service, then settle the row with recon resolve.",
    ),
)
"""Reasons about one row, by the ErrorCode in its ErrorData; the rest of the file goes on."""


def remedies(codes: Iterable[str]) -> list[str]:
    """What to do about errors, each step once; the service's own codes have no remedy here."""
    return list(dict.fromkeys(REASONS[code].remedy for code in codes if code in REASONS))


REFUSALS = _by_code(
    Reason("empty_file", "empty file", "nothing but blank space", "Deliver the file again."),
    Reason(
        "missing_header",
        "no header",
        "the first record is data, not field names",
        "Put the field names in the first record, or say header_line or names in a feed profile.",
    ),
    Reason(
        "text_before_header",
        "text before the header",
        "this is no header, and line {header} looks like one ({of})",
        "Remove the lines above the header, or say header_line in a feed profile.",
    ),
    Reason(
        "commented_header",
        "header is a comment",
        "this is the header, and begins with {comment}, as comments do",
        "State names in the feed profile, as for files without a header; or take comment out of "
        "it, and map the column by its name in the file.",
    ),
    Reason(
        "missing_column",
        "required column missing",
        "required columns are missing: {columns}",
        "Add the columns, or map them in a feed profile.",
    ),
    Reason(
        "ambiguous_record",
        "header of several record kinds",
        "the header is that of several record kinds: {kinds}",
        "Say which it is, with --record or with record in a feed profile.",
    ),
    Reason(
        "duplicate_column",
        "column named twice",
        "columns are named more than once: {columns}",
        "Name every column once, or say names and first_line in a feed profile.",
    ),
    Reason(
        "changed_columns",
        "another header with other columns",
        "this is another header, with other columns: {detail}",
        "Split the file above this line, and deliver each part as a file of its own.",
    ),
    Reason(
        "reordered_columns",
        "columns in another order than stated",
        "this is a header, and the feed profile states another order of columns: {detail}",
        "State names, or positions, in the order of this line; if it is no header, give the "
        "columns other names in the profile.",
    ),
    Reason(
        "untitled_columns",
        "title above too many columns",
        "the title {title} is the last one, and nothing says whether it stands above {columns} as "
        "well: it would have more columns than any other",
        "State how many columns a title has in the feed profile: header_titles = 2. Those behind "
        "them have no title.",
    ),
    Reason(
        "records_above",
        "record above the first one",
        "this is a record, and records are read from line {first} on: it would be lost",
        "Deliver the file with its header, or the text that belongs there, above all records; or "
        "state header_line, or first_line, as the file has it. If the line is no record, say so in "
        "the feed profile, by skip_lines or leave_out.",
    ),
    Reason(
        "malformed_header",
        "header not readable",
        "the header cannot be divided into names: {detail}",
        "Check delimiter and quoting, or state them in a feed profile.",
    ),
    Reason(
        "bad_encoding",
        "wrong encoding",
        "bytes are not valid in the encoding {encoding}",
        "State the file's own encoding in a feed profile.",
    ),
    Reason(
        "corrupt_archive",
        "broken archive",
        "the archive is broken or cut short: {detail}",
        "Deliver the archive again.",
    ),
    Reason(
        "unsupported_format",
        "not CSV text",
        "not CSV text: {detail}",
        "Deliver CSV, plain or packed (.gz, .zst, .xz, .bz2, .zip), or a workbook (.xlsx, .xlsm, "
        ".ods).",
    ),
    Reason(
        "too_large",
        "over a limit",
        "over the limit: {detail}",
        "Divide it, or raise the setting if the message names one.",
    ),
    Reason(
        "incomplete_file",
        "not what is stated about it",
        "not what is stated about it: {detail}",
        "Deliver the whole file, or correct what is stated about it.",
    ),
    Reason(
        "inconsistent_columns",
        "unknown columns",
        "columns that the record does not have: {columns}",
        'Remove them, map them, or say unknown_columns = "ignore" in a feed profile.',
    ),
)
"""Reasons about a whole file, by code; none of its rows is kept: see `content.refused`."""
