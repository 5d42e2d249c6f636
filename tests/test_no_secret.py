"""What cannot be read may hold a secret: it is told why, and never shown."""

from pathlib import Path

import pytest

from connectors.files.profiles.profile import DEFAULT
from flows.__main__ import main
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace

HEADER = "Data,HasError,Merged,BatchId,Jsondata,ErrorData\n"
UNREADABLE = {
    "no object": "EMail=a@example.com;Password=canary-7",
    "no known record": '{"Password":"canary-7","Colour":"red"}',
    "cut short": '{"EMail":"a@example.com","Password":"canary-7"',
    "a field twice": '{"Password":"canary-7","Password":"canary-7"}',
}


@pytest.mark.long(but=("no object",))
@pytest.mark.parametrize("data", UNREADABLE.values(), ids=UNREADABLE)
def test_unreadable_insert_batch_data_is_not_quoted(
    workspace: Workspace, tmp_path: Path, data: str
) -> None:
    path = tmp_path / "batch.csv"
    quoted = data.replace('"', '""')
    path.write_text(f'{HEADER}"{quoted}",False,False,1,,\n')
    ended = import_delivery(workspace, [str(path)], DEFAULT)
    assert ended.report.errors == 1
    folder = workspace.settings.reports / f"batch-{ended.batch.id}"
    for file in folder.iterdir():
        assert "canary-7" not in file.read_text(), file.name
    with workspace.database.connect() as connection:
        told = connection.execute("SELECT error_data FROM staged_row").fetchall()
    assert "canary-7" not in str(told)
    assert "InnerRecord" in str(told)


HEADERS = {
    "client_registration": "EMail,FirstName,LastName,Password,ConfirmPassword,Company",
    "payment_gateway": "TenantsId,PaymentActionsId,Name,ServiceKey",
}
RECORDS = {
    "a rejected password": ("client_registration", "bad,a,b,canary-7,canary-7,c"),
    "a clean password": ("client_registration", "a@example.com,a,b,canary-7,canary-7,c"),
    "a broken record": ("client_registration", 'a@example.com,"a,b,canary-7,canary-7,c'),
    "bytes that are no text": ("client_registration", "bad,\udcff,b,canary-7,canary-7,c"),
    "a service key": ("payment_gateway", "7,x,n,canary-7"),
    "a record inside": ("insert", UNREADABLE["cut short"]),
}


@pytest.mark.long
@pytest.mark.parametrize(("record", "line"), RECORDS.values(), ids=RECORDS)
def test_commands_show_no_record_that_has_secrets(
    workspace: Workspace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    record: str,
    line: str,
) -> None:
    assert workspace.settings.database_url is not None
    monkeypatch.setenv("RECON_DATABASE_URL", workspace.settings.database_url)
    monkeypatch.setenv("RECON_HOME", str(workspace.settings.home))
    path = tmp_path / "a.csv"
    quoted = '"' + line.replace('"', '""') + '"'
    text = f"{HEADER}{quoted},,,,,\n" if record == "insert" else f"{HEADERS[record]}\n{line}\n"
    path.write_bytes(text.encode(errors="surrogateescape"))
    batch = import_delivery(workspace, [str(path)], DEFAULT).batch.id
    for command in (
        ["check", str(path)],
        ["check", str(path), "--json"],
        ["row", str(batch), "a.csv", "--record", "1"],
        ["row", str(batch), "a.csv", "--record", "1", "--json"],
    ):
        with pytest.raises(SystemExit):
            main(command)
        told = capsys.readouterr()
        assert told.out
        assert "canary-7" not in told.out + told.err, command
        assert b"canary-7".hex() not in told.out, command
