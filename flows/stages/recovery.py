"""Recovery points of the stages; those of files and the archive are beside what they write."""

from connectors.recovery import reach

__all__ = ["reach"]
