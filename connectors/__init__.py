"""Where data comes from and goes to. All input and output, no Prefect.

files     a delivery becomes records; content is kept by its hash
postgres  the ledger, staged rows, targets, sends, the audit trail
compare   two tables, wherever they are
service   the documented service, called
sandbox   the documented service, played
"""
