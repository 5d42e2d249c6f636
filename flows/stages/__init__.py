"""The sequence of a batch, written once and without Prefect.

receive   delivered files, kept in the archive by their content; one batch
stage     every row verbatim with its position and verdict
check     rows compared with each other, references, the error budget
apply     clean rows into the database, each with its verdict
push      applied rows to the service, if the batch asks for it
finish    totals recounted and tied, the report written, the batch ended
"""

import logging

# Keep Python from printing warnings to the terminal where nobody has configured logging.
logging.getLogger("recon").addHandler(logging.NullHandler())
