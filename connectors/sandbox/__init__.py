"""The documented service itself, runnable on a laptop: real sockets, real wire, PostgreSQL."""

from connectors.sandbox.faults import Fault, FaultKind, Faults
from connectors.sandbox.options import SandboxOptions, User
from connectors.sandbox.server import Sandbox

__all__ = ["Fault", "FaultKind", "Faults", "Sandbox", "SandboxOptions", "User"]
