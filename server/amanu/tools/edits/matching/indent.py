"""Rungs 4 and 7: whole lines that say the same, but indented otherwise, each by the same rule.

Proof: the words of every line are equal (`equal`), and one rule turns the indentation of each line of `old` into
that of its line in the file: a blank string put before all of them or taken away, or one unit of indentation for
another (tabs for spaces, 2 for 4), the file's own. Rules that fit alike must give the same text. A single short line
is no proof; nor is a place at another depth, where a good part of `old` is elsewhere at its own.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from amanu.tools.edits.matching.place import LineMatch, Unproven, match_whole_lines
from amanu.tools.edits.matching.source import Fold, SourceLines, body_of, indent_of

Rule = Callable[[str], str | None]
"""Indentation as it was asked for → as the file has it; None: it has no such."""
_ENOUGH = 12  # characters of a single line that are worth a search at another indentation
_COMPARED = 20  # lines compared in all, for each line of the file and of `old`: what bounds the work
_RIVAL = 0.3  # share of `old` that is at its own depth elsewhere, and makes the place doubtful
_SPACES = (2, 4, 8, 3)


def match_reindented(
    source: SourceLines, old_lines: Sequence[str], new_lines: Sequence[str], fold: Fold, equal: Fold, *, apart: bool
) -> Iterator[LineMatch]:
    """Folded they are searched for, by `equal` each line is compared where they are found."""
    stripped = [line.strip() for line in old_lines if line.strip()]
    if not stripped or (len(stripped) == 1 and len(stripped[0]) < _ENOUGH):
        return
    budget = _COMPARED * (len(source.lines) + len(old_lines))
    for start in source.windows(old_lines, fold, apart=apart):
        actual = source.lines[start : start + len(old_lines)]
        budget -= _cost(actual, old_lines, equal)
        if budget < 0:
            raise Unproven("there are too many similar places to compare them all", start)
        if _cost(actual, old_lines, equal) <= len(old_lines):
            continue
        match = _fitted(source, start, actual, old_lines, new_lines)
        if match is None:
            continue
        shifted = any(
            placed.rstrip() != written.rstrip() for placed, written in zip(match.old_lines, old_lines, strict=True)
        )
        if shifted and not apart and (rival := _rival(source, start, old_lines)) is not None:
            raise Unproven(
                f"line {start + 1} has it at another indentation, line {rival + 1} something like it at this one", start
            )
        yield match


def _rival(source: SourceLines, start: int, old_lines: Sequence[str]) -> int | None:
    """Another place that has a good part of the lines of `old` as deep as `old` has them."""
    lines_of: dict[str, list[int]] = {line.rstrip(): [] for line in old_lines if line.strip()}
    for index, line in enumerate(source.lines):
        if (key := line.rstrip()) in lines_of:
            lines_of[key].append(index)
    votes: Counter[int] = Counter()
    for row, line in enumerate(old_lines):
        for index in lines_of.get(line.rstrip(), ())[:_COMPARED]:
            for shift in (-1, 0, 1):  # a line more or less
                votes[index - row + shift] += len(line.strip())
    enough = _RIVAL * sum(len(line.strip()) for line in old_lines)
    rivals = (
        candidate
        for candidate, weight in votes.items()
        if weight >= enough and abs(candidate - start) >= len(old_lines)
    )
    return next((max(0, start) for start in rivals), None)


def _cost(actual: Sequence[str], old_lines: Sequence[str], equal: Fold) -> int:
    """Lines compared until one differs; more than there are when none does."""
    for count, (present, written) in enumerate(zip(actual, old_lines, strict=True), 1):
        if equal(present.strip()) != equal(written.strip()):
            return count
    return len(old_lines) + 1


def _fitted(
    source: SourceLines, start: int, actual: Sequence[str], old_lines: Sequence[str], new_lines: Sequence[str]
) -> LineMatch | None:
    pairs = [(indent_of(o), indent_of(f)) for o, f in zip(old_lines, actual, strict=True) if o.strip()]
    if all(indent == has for indent, has in pairs):
        return match_whole_lines(source, start, old_lines, new_lines)
    first = next(row for row, line in enumerate(old_lines) if line.strip())
    rules = _rules(source, pairs, old_lines, new_lines)
    if not rules and len(pairs) > 1 and not pairs[0][0]:  # `old` begins behind the indentation of its first line
        others = pairs[1:]
        begun = not new_lines or not indent_of(next((line for line in new_lines if line.strip()), ""))
        rules = [str] if begun and all(indent == has for indent, has in others) else []
        if rules:
            lead = pairs[0][1]
            first_row = next((row for row, line in enumerate(new_lines) if line.strip()), -1)
            return match_whole_lines(
                source,
                start,
                [lead + line if row == first else line for row, line in enumerate(old_lines)],
                [lead + line if row == first_row else line for row, line in enumerate(new_lines)],
            )
    if not rules:
        return None
    if _is_indented_as_file(old_lines, new_lines, pairs):
        written = list(new_lines)
    else:
        results = {text for rule in rules if (text := _reindented(new_lines, rule)) is not None}
        if len(results) != 1:
            raise Unproven("the file indents it differently, and how to indent new_text is uncertain", start)
        written = list(results.pop())
    return match_whole_lines(source, start, list(_reindented(old_lines, rules[0]) or ()), written)


def _is_indented_as_file(old_lines: Sequence[str], new_lines: Sequence[str], pairs: Sequence[tuple[str, str]]) -> bool:
    """`new` has the file's indentation already, only `old` has not."""
    smallest = min((written for written, _ in pairs), key=len)
    has = min((present for _, present in pairs), key=len)
    lines = [indent_of(line) for line in new_lines if line.strip()]
    least = min(lines, key=len, default=smallest)
    if least == smallest:
        return False
    common = {body_of(line).rstrip() for line in old_lines if line.strip()}
    return least == has and not any(body_of(line).rstrip() in common for line in new_lines if line.strip())


def _rules(
    source: SourceLines, pairs: Sequence[tuple[str, str]], old_lines: Sequence[str], new_lines: Sequence[str]
) -> list[Rule]:
    """The rules that fit every pair: a shift if there is one, else units."""
    indent, has = pairs[0]
    rules: list[Rule] = []
    if has.endswith(indent):
        rules.append(_adding(has[: len(has) - len(indent)]))
    elif indent.endswith(has):
        rules.append(_removing(indent[: len(indent) - len(has)]))
    rules = [rule for rule in rules if _fits(rule, pairs)]
    if tabbed := _tabs_or_spaces(pairs):
        return [*rules, *(rule for written, present in tabbed if _fits(rule := _scaled(written, present), pairs))]
    file_unit, asked_unit = _unit(source.lines), _unit([*old_lines, *new_lines])
    if file_unit and asked_unit and asked_unit != file_unit and _fits(rule := _scaled(asked_unit, file_unit), pairs):
        rules.append(rule)
    return rules


def _tabs_or_spaces(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """(unit of `old`, unit of the file) that may be when one has tabs and the other spaces."""
    written, has = ({character for indent in side for character in indent} for side in zip(*pairs, strict=True))
    if written == {"\t"} and has == {" "}:
        return [("\t", " " * count) for count in _SPACES]
    if written == {" "} and has == {"\t"}:
        return [(" " * count, "\t") for count in _SPACES]
    return []


def _adding(blank: str) -> Rule:
    return lambda indent: blank + indent


def _removing(blank: str) -> Rule:
    return lambda indent: indent[len(blank) :] if indent.startswith(blank) else None


def _scaled(unit: str, to: str) -> Rule:
    def rule(indent: str) -> str:
        levels = 0
        while indent.startswith(unit, levels * len(unit)):
            levels += 1
        return to * levels + indent[levels * len(unit) :]

    return rule


def _fits(rule: Rule, pairs: Sequence[tuple[str, str]]) -> bool:
    return all(rule(indent) == has for indent, has in set(pairs))


def _reindented(lines: Sequence[str], rule: Rule) -> tuple[str, ...] | None:
    """Lines with their indentation by the rule; None when one cannot have it. Blank lines stay."""
    out: list[str] = []
    for line in lines:
        if line.strip():
            indent = rule(indent_of(line))
            if indent is None:
                return None
            line = indent + line[len(indent_of(line)) :]
        out.append(line)
    return tuple(out)


def _unit(lines: Sequence[str]) -> str | None:
    """What a level more mostly adds from one line to the next: a tab, or so many spaces; None: cannot be told."""
    counts: Counter[str] = Counter()
    previous = ""
    for line in lines:
        plain = line.lstrip()
        if not plain or (line[0] not in " \t" and not previous):
            previous = "" if plain else previous
            continue
        indent = line[: len(line) - len(plain)]
        if len(indent) > len(previous) and indent.startswith(previous):
            addition = indent[len(previous) :]
            if addition == "\t" or (2 <= len(addition) <= 8 and not addition.strip(" ")):
                counts[addition] += 1
        previous = indent
    return min((unit for unit in counts if counts[unit] == max(counts.values())), key=len, default=None)
