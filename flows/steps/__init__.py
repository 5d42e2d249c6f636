"""Pure functions over frames that know schemas and nothing else.

validate   the verdict on every row
fast       records that are clean beyond doubt, in compiled loops
match      which row is which, and where the two differ
reconcile  every record's one status, from all sources
breaks     differences with a number, money, an age and a life
rules      what a reconciliation goes by
"""
