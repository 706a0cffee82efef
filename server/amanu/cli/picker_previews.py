"""The facts below a picker about its marked row: enough to choose by, and never more than a screen has room for."""

import time
from collections.abc import Iterator, Sequence

from amanu.cli.diff import relative
from amanu.cli.edit_slash_commands import effect_of_undo
from amanu.cli.header import price
from amanu.cli.models import notes
from amanu.cli.session_lookup import SHORT
from amanu.cli.status_line import short_name
from amanu.cli.text import one_line
from amanu.text.amounts import plural, token_count
from amanu_protocol import requests as r
from amanu_protocol.items import Line, ModelInfo, Tone

_SIGNS: dict[str, Tone] = {"+": "good", "-": "bad"}
_DIFF_LINES = 100
"""The limit for all files together."""


def of_session(summary: r.SessionSummary) -> Sequence[Line]:
    """Its state, the questions that wait in it, and the last words."""
    changed = f"{plural(summary.files, 'file')} +{summary.added} −{summary.removed}" if summary.files else ""
    waiting = f"{plural(summary.changes, 'change')} to review" if summary.changes else ""
    model = short_name(summary.model_id)
    facts = [status(summary), changed, waiting, summary.cost, model, summary.session_id[:SHORT]]
    lines = [_plain(" · ".join(filter(None, facts)))]
    lines += [Line(tone="warning", text=f"? {one_line(question.title)}") for question in summary.questions]
    if summary.last_prompt:
        lines.append(Line(tone="good", text=f"› {one_line(summary.last_prompt, 400)}"))
    lines += [_plain(text) for text in summary.last_answer.splitlines() if text.strip()]
    return lines


def status(summary: r.SessionSummary) -> str:
    """Its state, or nothing where nobody needs to know."""
    return "" if summary.status in ("idle", "closed") else summary.status


def moment(milliseconds: int) -> str:
    """The moment as precisely as one remembers it: "14:05" today, else the day."""
    then, now = time.localtime(milliseconds / 1000), time.localtime()
    return time.strftime("%H:%M" if then[:3] == now[:3] else "%Y-%m-%d", then)


def of_rewind(preview: r.CheckpointPreviewResult, roots: Sequence[str]) -> Sequence[Line]:
    """All that going back takes back, file by file, and what it cannot."""
    if not preview.files and not preview.commands:
        lines = [_plain("No change of that turn or a later one is applied.")]
    else:
        lines = [_plain(f"{relative(each.path, roots)}: {effect_of_undo(each, roots)}") for each in preview.files]
    lines += [
        Line(tone="warning", text=f"a change of {relative(each.path, roots)} stays: {one_line(hunk.reason)}")
        for each in preview.files
        for hunk in each.skipped
    ]
    lines += [Line(tone="warning", text=f"not undone: {one_line(title)}") for title in preview.commands]
    lines.append(_plain(f"With the conversation: {plural(preview.turns, 'turn')} less."))
    return [*lines, *_diffs(preview.files, roots)]


def _diffs(files: Sequence[r.UndoneFile], roots: Sequence[str]) -> Sequence[Line]:
    texts: list[str] = []
    for file in files:
        if file.diff.startswith("--- "):  # of a row it is its title
            texts += [f"── {relative(file.path, roots)}", *file.diff.splitlines()[2:]]
    return [Line(tone=_SIGNS.get(text[:1], "plain"), text=text) for text in texts[:_DIFF_LINES]]


def of_model(model: ModelInfo) -> Sequence[Line]:
    """The id, what it costs and what it can."""
    return [*_model_lines(model)]


def _model_lines(model: ModelInfo) -> Iterator[Line]:
    if not model.available:
        yield Line(tone="warning", text=one_line(model.unavailable or "Not available."))
    for note in notes(model):
        yield Line(tone="warning", text=note)
    if model.context_window:
        yield _plain(f"window {token_count(model.context_window)}, answers to {token_count(model.max_output)} tokens")
    cached = f", cached ${model.cache_read_price:g} in" if model.cache_read_price else ""
    yield _plain(f"{price(model)}{cached}")
    efforts = f"effort {', '.join(model.efforts)}" if model.efforts else "thinks" if model.thinking else ""
    default = f" (default {model.default_effort})" if model.efforts and model.default_effort else ""
    tiers = [f"{tier} at {factor:g} times the price" for tier, factor in model.service_tiers.items()]
    abilities = [f"{efforts}{default}", "sees pictures" if model.images else "", *tiers]
    if any(abilities):
        yield _plain(" · ".join(filter(None, abilities)))
    if model.facts_from:
        yield _plain(f"facts: {one_line(model.facts_from)}")


def _plain(text: str) -> Line:
    return Line(tone="plain", text=text)
