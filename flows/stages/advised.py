"""Commands as messages and files advise them: each runs as it stands there, whatever it names."""

import shlex
from collections.abc import Iterable, Mapping


def advised(command: str, names: Iterable[object], options: Mapping[str, object]) -> str:
    """`recon COMMAND` with these arguments, to be pasted into a shell; True: an option alone."""
    words = [str(name) for name in names]
    option_words = [_option(name, value) for name, value in options.items()]
    quoted = [shlex.quote(word) for word in words]
    if any(word.startswith("-") for word in words):
        # Behind two dashes nothing is an option any more.
        return " ".join(("recon", command, *option_words, "--", *quoted))
    return " ".join(("recon", command, *quoted, *option_words))


def _option(name: str, value: object) -> str:
    if value is True:
        return f"--{name}"
    sign = "=" if str(value).startswith("-") else " "
    return f"--{name}{sign}{shlex.quote(str(value))}"
