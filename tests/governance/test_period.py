"""Periods reconciled, decided about, closed, signed, reopened and restated, in any order.

Every sequence has its own seed. After each run every figure of its report, of the lists and of the
desk is compared with a model in plain Python (`period_model.py`).
"""

from collections.abc import Callable
from datetime import timedelta

import pytest

from flows.stages.workspace import Workspace
from tests.desk.browser import Browser, desk_of
from tests.examples import seeds
from tests.governance.conftest import Ran
from tests.governance.period_places import Places


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(1, 4))
def test_every_figure_of_every_run(
    workspace: Workspace, recon: Callable[..., Ran], seed: int
) -> None:
    with desk_of(workspace) as url:
        page = Browser(url)
        story = Places(seed, workspace, recon, page)
        chance, chains = story.chance, story.world.chains
        story.deliver()
        story.deliver()
        story.reconcile()
        for _ in range(5):
            for _ in range(chance.randint(0, 5)):
                chance.choice((
                    story.deliver, story.deliver_again, story.correct, story.change, story.change,
                    story.insert, story.sweep, story.undo, story.undo, story.bring_back,
                    story.hold, story.settle,
                ))()  # fmt: skip
            story.decide()
            story.day += timedelta(chance.choice((0, 1, 3, 12)))
            if chance.random() < 0.5:
                story.other_rules()
            story.reconcile()
            if chance.random() < 0.4:
                story.close()
            main = chains[None]
            if chance.random() < 0.3 and main[-1].as_of > main[0].as_of:
                of = chance.choice([one.as_of for one in main if one.as_of < main[-1].as_of])
                if of in chains:
                    story.decide(of)
                story.reconcile(of)
                if chance.random() < 0.4:
                    story.close(of)
        story.end()
        page.client.close()
