"""reladiff's comparison of two tables: a join in one database, hashes by segment across two."""

import sys
from collections import Counter
from urllib.parse import urlsplit

from clock import Clock
from reladiff import connect_to_table, diff_tables
from reladiff.diff_tables import Algorithm

VALUES = ("ActionsId", "DebtsId", "PaymentDate", "PaidAmount", "DiscountAmount", "CurrenciesId",
          "CurrencyRatesId")  # fmt: skip


def main(server: str, left: str, right: str) -> None:
    clock = Clock(int(server))
    tables = [table(address) for address in (left, right)]
    way = Algorithm.JOINDIFF if tables[0].database is tables[1].database else Algorithm.HASHDIFF
    found = Counter()
    for sign, row in diff_tables(*tables, extra_columns=VALUES, algorithm=way):
        found[row[:2]] += 1 if sign == "-" else 2
    clock.lap("compare")
    kinds = Counter(found.values())
    clock.report(different=kinds[3], only_left=kinds[1], only_right=kinds[2], method=str(way))


_databases = {}


def table(address: str):
    parts = urlsplit(address)
    query = dict(pair.split("=", 1) for pair in parts.query.split("&"))
    url = f"postgresql://{parts.netloc}{parts.path}"
    if url not in _databases:
        info = {
            "driver": "postgresql",
            "host": query.get("host") or parts.hostname,
            "port": query.get("port") or parts.port,
            "dbname": parts.path.lstrip("/"),
            "user": query.get("user") or parts.username,
            "password": parts.password or "",
        }
        first = connect_to_table(info, query["table"], ("Id", "TenantsId"))
        _databases[url] = first.database
        return first
    return connect_to_table(_databases[url], query["table"], ("Id", "TenantsId"))


if __name__ == "__main__":
    main(*sys.argv[1:4])
