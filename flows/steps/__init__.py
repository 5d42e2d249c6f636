"""Pure functions over frames that know schemas and nothing else.

Each room uses only rooms below it in its list. Of a batch:

fast       records that are clean beyond doubt, in compiled loops
validate   the verdict on every row
draft      how the cells of a foreign file are written, as far as they tell

Of a reconciliation:

reconcile  every record's one status, from all sources
breaks     differences with a number, money, an age and a life
match      which row is which, and where the two differ; neither it nor breaks knows the other
rules      what a reconciliation goes by
frames     what is compared, and what became of it; neither it nor rules knows the other
"""
