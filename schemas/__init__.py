"""What the data is: the field tables of the service and everything derived from them. Pure.

tables    every record, every field
cells     the text of one cell and the value it means
derived   what a field table becomes: pandera schemas, SQL, JSON, JSV, views, the reference page
guards    what the database itself holds everybody to: roles, leases, states, the audit trail
"""

import csv

# How large a cell may be is a setting of ours; the csv module has its own limit per process.
csv.field_size_limit(2**31 - 1)
