"""Commands as messages and files advise them, quoted so that each can be pasted into a shell."""

import shlex
from collections.abc import Iterable, Mapping


def advised(command: str, names: Iterable[object], options: Mapping[str, object]) -> str:
    """`recon COMMAND` with arguments, quoted for a shell; an option that is True stands alone."""
    words = [str(name) for name in names]
    option_words = [_option(name, value) for name, value in options.items()]
    quoted = [shlex.quote(word) for word in words]
    if any(word.startswith("-") for word in words):
        # After two dashes nothing is taken for an option.
        return " ".join(("recon", command, *option_words, "--", *quoted))
    return " ".join(("recon", command, *quoted, *option_words))


def _option(name: str, value: object) -> str:
    if value is True:
        return f"--{name}"
    sign = "=" if str(value).startswith("-") else " "
    return f"--{name}{sign}{shlex.quote(str(value))}"
