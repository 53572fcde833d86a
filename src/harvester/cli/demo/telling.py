"""How the story is told. Needs Django."""

from rich.console import RenderableType
from rich.text import Text

from harvester.cli.demo.acts import Act
from harvester.cli.demo.story import Story
from harvester.cli.job_views import progress_text
from harvester.cli.output import cell, span, table
from harvester.engine.states import JobState


def event_line(sentence: str, *, good: bool) -> RenderableType:
    return Text.assemble(("  ok     ", "green") if good else ("  WRONG  ", "bold red"), sentence)


def going_on(story: Story) -> str:
    """What runs at this moment, for the line that changes."""
    running = [job for act in story.acts.values() for job in act.jobs if job["state"] == JobState.RUNNING]
    told = [f"{job['kind']} {progress_text(job['progress'])}".strip() for job in running]
    if len(told) == 1 and story.killed:
        return f"job {running[0]['id']} has no worker any more; the others notice after 3 s of silence"
    return "running: " + ", ".join(told) if told else "waiting for the workers"


def summary(acts: list[Act]) -> RenderableType:
    rows = [
        (
            f"a job that {act.title}",
            act.shows,
            ", ".join(str(job_id) for job_id in act.job_ids),
            cell(str(act.wanted)),
            act.attempts or "",
            span(act.seconds) if act.seconds is not None else "",
        )
        for act in acts
    ]
    columns = ("what happened", "what it shows", "job", "state", "attempts", "took")
    return table(columns, rows, title="What was shown", right=("attempts", "took"))
