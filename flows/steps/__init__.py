"""Pure functions over frames that know schemas and nothing else.

Each folder imports only from folders below it in its list. For a batch:

fast       records that are clean beyond doubt, in compiled loops
validate   the verdict on every row
draft      how the cells of a foreign file are written, as far as the file tells

For a reconciliation:

reconcile  the one status of every record, from all sources
breaks     differences, each with a number, money, an age and a lifecycle
match      pairs of rows and their differences; match and breaks do not import each other
rules      the rules of a reconciliation
frames     the compared data and its statuses; frames and rules do not import each other
"""
