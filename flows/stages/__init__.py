"""The sequence of a batch, written once and without Prefect.

receive   what was delivered: files by content, kept in the archive; one batch
stage     every row verbatim with its position and verdict
check     what rows mean to each other, references, the error budget
apply     clean rows into the database, each with its verdict
push      what was applied to the service, where the batch asks for it
finish    totals recounted and tied, the report written, the batch ended
"""

import logging

# Who watches says so; a terminal that nobody configured is not written to.
logging.getLogger("recon").addHandler(logging.NullHandler())
