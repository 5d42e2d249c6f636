"""Run the import flow once over a file and print what it took, without the start of Prefect."""

import json
import os
import sys
import time

from prefect.events.worker import EventsWorker
from prefect.logging.handlers import APILogWorker
from prefect.server.api.server import SubprocessASGIServer
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.import_batch import Delivery, run_import


def main(path: str) -> None:
    server = SubprocessASGIServer()
    server.start(timeout=120)
    try:
        # The workers are told like those of a pool; otherwise each starts a server of its own.
        os.environ["PREFECT_API_URL"] = server.api_url
        with temporary_settings({PREFECT_API_URL: server.api_url}):
            begin = time.time()
            state = run_import(Delivery(paths=[path]))
            ended = {"begin": begin, "wall": time.time() - begin, "state": state.name}
    finally:
        # What Prefect's threads have not sent yet would be tried again and again without a server.
        EventsWorker.drain_all()
        APILogWorker.drain_all()
        server.stop()
    print(json.dumps(ended))


if __name__ == "__main__":
    main(sys.argv[1])
