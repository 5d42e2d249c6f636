"""Where data comes from and goes to. All input and output, no Prefect.

files     a delivery becomes records; content is kept by its hash
postgres  the ledger, staged rows, targets, sends, the audit trail
witness   what is signed of the audit trail, and the places it is given to
compare   two tables, wherever they are
service   the documented service, called
sandbox   the documented service, played
"""
