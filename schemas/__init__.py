"""What the data is: the field tables of the service and everything derived from them. Pure.

tables    every record, every field
cells     the text of one cell and the value it means
derived   what a field table becomes: pandera schemas, SQL, JSON, JSV, views, the reference page
guards    what the database itself holds everybody to: roles, leases, states, the audit trail
"""
