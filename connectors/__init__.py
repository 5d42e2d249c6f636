"""All input and output: where data comes from and goes to. No Prefect here.

files     a delivery becomes records; content is kept by its hash
postgres  the ledger, staged rows, targets, sends, the audit trail
witness   signed witnesses of the audit trail, and the places they are given to
compare   two tables, wherever they are
service   the client of the documented service
sandbox   the documented service itself, played
"""
