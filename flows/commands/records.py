"""Record kinds of your own: `recon records list`, `export` and `apply`."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from flows.commands.console import out, print_json, print_table
from flows.commands.deliver import Json

records_command = App(name="records", help="List, export and apply record kinds of your own.")


@records_command.command(name="list")
def list_command(*, json: Json = False) -> int:
    """List your own record kinds, and whether their definitions here and in the database agree.

    Example: `recon records list`
    """
    from connectors.postgres.database import kinds_there
    from connectors.postgres.schema.own_kinds import differences
    from connectors.settings import read_settings
    from schemas.tables import OWN

    there, lines = kinds_there(read_settings()), []
    for name in sorted(there.keys() | OWN.tables.keys()):
        title = (OWN.tables.get(name) or there[name]).title
        if name not in there:
            lines.append((name, title, "not in the database yet"))
        elif name not in OWN.tables:
            lines.append((name, title, "not defined here"))
        else:
            found = "; ".join(change.text for change in differences(there, name))
            lines.append((name, title, f"other in the database: {found}" if found else "the same"))
    if json:
        keys = ("record", "title", "state")
        print_json({"records": [dict(zip(keys, line, strict=True)) for line in lines]})
    elif lines:
        print_table(("Record", "Title", "Here and in the database"), lines)
    else:
        out().print("There are no record kinds but those of the service document.")
    return 0


@records_command.command(name="export")
def export_command(
    folder: Annotated[Path, Parameter(help="Folder to write to; created if missing.")],
) -> int:
    """Write the definitions that the database works with, one file each, for another machine.

    Existing files are not overwritten. Example: `recon records export definitions`
    """
    from connectors.errors import DeliveryError
    from connectors.files.disk.atomic import as_it_is, write_files
    from connectors.postgres.database import kinds_there
    from connectors.settings import read_settings
    from schemas.own_definition import toml_of

    files = {
        f"{name}.toml": as_it_is(toml_of(table).encode())
        for name, table in kinds_there(read_settings()).items()
    }
    if there := [folder / name for name in files if (folder / name).exists()]:
        raise DeliveryError(f"{there[0]} exists already. Nothing was written; name another folder.")
    if files:
        write_files(folder, files)
        out().print("\n".join(str(folder / name) for name in files))
    else:
        out().print("The database has no record kinds but those of the service document.")
    return 0


@records_command.command(name="apply")
def apply_command() -> int:
    """Make the database follow the definitions here, even if one was removed or is older.

    A change that would lose values of rows, or read them differently, is refused. New kinds and new
    fields do not need this command: the next command of the schema's owner adds them.

    Example: `recon records apply`
    """
    from connectors.postgres.database import apply_definitions
    from connectors.settings import read_settings
    from schemas.tables import OWN

    apply_definitions(read_settings())
    out().print(f"The database has: {', '.join(OWN.tables) or 'no record kinds of your own'}.")
    return 0
