"""Everything PostgreSQL knows about our schema, to hold two databases against each other."""

import psycopg
from psycopg import sql

_OURS = "relnamespace = 'recon'::regnamespace"
_QUERIES = {
    "schema": "SELECT nspacl, nspowner::regrole, obj_description(oid, 'pg_namespace') "
    "FROM pg_namespace WHERE nspname = 'recon'",
    "relations": "SELECT relname, relkind, relpersistence, relowner::regrole, relacl, reloptions, "
    f"relrowsecurity, obj_description(oid, 'pg_class') FROM pg_class WHERE {_OURS}",
    "columns": "SELECT c.relname, c.relkind, a.attnum, a.attname, format_type(atttypid, atttypmod),"
    " attnotnull, attidentity, attgenerated, attcollation, attstorage, attcompression, attoptions,"
    " attacl, pg_get_expr(d.adbin, d.adrelid), col_description(c.oid, a.attnum) "
    "FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
    "LEFT JOIN pg_attrdef d ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum) "
    f"WHERE c.{_OURS} AND a.attnum > 0 AND NOT a.attisdropped",
    "constraints": "SELECT conrelid::regclass, conname, contype, pg_get_constraintdef(oid), "
    "obj_description(oid, 'pg_constraint') "
    "FROM pg_constraint WHERE connamespace = 'recon'::regnamespace",
    "indexes": "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'recon'",
    "functions": "SELECT proname, pg_get_functiondef(oid), proowner::regrole, proacl, "
    "obj_description(oid, 'pg_proc') FROM pg_proc WHERE pronamespace = 'recon'::regnamespace",
    "triggers": "SELECT c.relname, tgname, tgenabled, pg_get_triggerdef(t.oid) "
    f"FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE c.{_OURS}",
    "views": f"SELECT relname, pg_get_viewdef(oid) FROM pg_class WHERE {_OURS} AND relkind = 'v'",
    "sequences": "SELECT sequencename, sequenceowner, data_type, start_value, min_value, max_value,"
    " increment_by, cycle, cache_size FROM pg_sequences WHERE schemaname = 'recon'",
    "types": "SELECT typname, typtype FROM pg_type WHERE typnamespace = 'recon'::regnamespace",
    "policies and rules": "SELECT tablename, rulename, definition FROM pg_rules "
    "WHERE schemaname = 'recon'",
    "revision": "SELECT version_num FROM recon.alembic_version",
}


def catalogue(url: str) -> dict[str, list[str]]:
    """What there is, kind by kind, as sorted text."""
    with psycopg.connect(url) as connection:
        return {
            kind: sorted(str(row) for row in connection.execute(query).fetchall())  # type: ignore[call-overload]
            for kind, query in _QUERIES.items()
        }


def columns(url: str) -> dict[str, list[str]]:
    """The columns of every table of ours, in their order."""
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT table_name, array_agg(column_name::text ORDER BY ordinal_position) "
            "FROM information_schema.columns JOIN pg_tables ON tablename = table_name "
            "AND schemaname = table_schema WHERE table_schema = 'recon' "
            "AND table_name <> 'alembic_version' GROUP BY 1"
        )
        return dict(found.fetchall())


def content(url: str, of: dict[str, list[str]]) -> dict[str, list[str]]:
    """The rows of tables, of these columns: where each lies, who wrote it, and what it says."""
    with psycopg.connect(url) as connection:
        return {
            name: sorted(
                row
                for (row,) in connection.execute(
                    sql.SQL(
                        "SELECT t.ctid::text || ' ' || t.xmin::text || ROW({})::text FROM {} t"
                    ).format(
                        sql.SQL(", ").join(map(sql.Identifier, names)),
                        sql.Identifier("recon", name),
                    )
                )
            )
            for name, names in of.items()
        }
