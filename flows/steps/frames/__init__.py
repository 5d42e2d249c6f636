"""What matching, breaks and reconciliation hand each other, as frames.

sources      the sources of one run (rate_series: of the rates, one usable for each day)
statuses     what became of every record, one line each
beyond       amounts in either that no exact column holds
"""
