"""What this process is called."""

import os
import subprocess
import sys

import pytest

UNKNOWN = 54_321
"""A user that the machine has no name for."""
NAMES = ("LOGNAME", "USER", "LNAME", "USERNAME")


@pytest.mark.skipif(os.geteuid() != 0, reason="takes the right to become another user")
def test_a_user_without_a_name_is_called_by_number() -> None:
    environment = {name: value for name, value in os.environ.items() if name not in NAMES}
    code = (
        # Read before: the place of the program may be closed to others.
        f"import os; from connectors.process import whoami; os.setuid({UNKNOWN}); print(whoami())"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert said.stdout.startswith(f"uid {UNKNOWN}@")
