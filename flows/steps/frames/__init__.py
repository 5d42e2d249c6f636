"""Frames that matching, breaks and reconciliation pass to each other.

sources      the sources of one run (rate_series: one usable exchange rate per day)
statuses     what became of every record, one line each
beyond       amounts that no exact column holds, in sources and statuses
"""
