"""How far a stage is, as whoever watches is told."""

from dataclasses import replace
from pathlib import Path

from connectors.files.profiles.profile import DEFAULT
from connectors.settings import Limits
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from tests.stages.payments import line, write


def test_staging_goes_on_from_extract_to_extract_up_to_the_bytes_of_all(
    workspace: Workspace, tmp_path: Path
) -> None:
    told: list[tuple[int, int | None]] = []

    def watch(stage: str, done: int, total: int | None) -> None:
        if stage == "stage":
            told.append((done, total))

    limits = Limits(block_bytes=16 * 1024, strict_bytes=0)
    watched = replace(
        workspace, settings=replace(workspace.settings, limits=limits), progress=watch
    )
    first = write(tmp_path / "a.csv", *map(line, range(1, 601)))
    second = write(tmp_path / "b.csv", *map(line, range(601, 1001)))
    import_delivery(watched, [first, second], DEFAULT)
    before = Path(first).stat().st_size
    both = before + Path(second).stat().st_size
    done = [bytes_ for bytes_, _ in told]
    assert {total for _, total in told} == {both}
    assert done == sorted(done)
    assert before in done[1:]  # It has several chunks.
    assert 0 < done[0] < before < done[-3] < done[-2] == done[-1] == both
