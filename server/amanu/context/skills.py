"""Skills: folders with a `SKILL.md` (agentskills.io) that tell the model how to do one kind of task. Of each the model
is told name and description; the rest is read when it is needed.

Reading is lenient, as the specification asks of clients: what is odd is a warning, and only a skill without a
description is left out. `allowed-tools` and scripts change nothing: a skill may do what the user's rules allow.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from amanu.context.extension_files import MAX_BYTES
from amanu.context.extension_folders import ExtensionFolder
from amanu.text.display import one_line, visible
from amanu.text.fences import block
from amanu.text.front_matter import MarkdownFile, parse_markdown

FILE = "SKILL.md"
MAX_NAME = 64
MAX_DESCRIPTION = 1024
"""Characters (both: agentskills.io, specification)."""
MAX_RESOURCES = 100
"""File names told of one skill."""
CATALOGUE_SHARE = 0.01
"""Of a window, for the catalogue."""
CHARACTERS_PER_TOKEN = 4
SHORTER = (400, 200, 100, 50)
"""Characters that descriptions are cut to, in turn, while the catalogue is too long."""
KIND = "available_skills"
CONTENT = "skill_content"
"""Kinds of the blocks."""
NONE_LEFT = "There are no skills any more."

_CALLABLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*\Z")
_STANDARD = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\Z")


@dataclass(frozen=True)
class Skill:
    """One skill, as it was read."""

    name: str
    """What the model and the user call it; of a plug-in `plugin:name`."""
    description: str
    body: str
    place: ExtensionFolder
    path: str
    """Of its `SKILL.md`, relative to the place."""
    argument_hint: str = ""
    for_model: bool = True
    """The model may activate it (no `disable-model-invocation`)."""
    for_user: bool = True
    """The user may call it (`user-invocable`)."""

    @property
    def folder(self) -> Path:
        return (self.place.folder / self.path).parent


@dataclass(frozen=True)
class SkillScan:
    """The skills there are, sorted by name, and what is wrong with some: sentences for the user."""

    skills: Sequence[Skill] = ()
    warnings: Sequence[str] = ()

    def named(self, name: str) -> Skill | None:
        return next((skill for skill in self.skills if skill.name == name), None)


def scan(folders: Sequence[ExtensionFolder]) -> SkillScan:
    """The skills in those folders; of two with the same name the first folder's counts. Blocks: it reads the disk."""
    skills: dict[str, Skill] = {}
    warnings: list[str] = []
    for folder in folders:
        for path in _outermost(folder.names()):
            shown = one_line(str(folder.folder / path))
            skill, faults = _read(folder, path)
            warnings += [f"{shown}: {fault}" for fault in faults]
            if skill is None:
                continue
            if (first := skills.get(skill.name)) is not None:
                if first.folder.resolve() != skill.folder.resolve():
                    warnings.append(f"{shown}: not used, because {one_line(str(first.folder))} has the same name.")
                continue
            skills[skill.name] = skill
    return SkillScan(sorted(skills.values(), key=lambda skill: skill.name), list(dict.fromkeys(warnings)))


def catalogue(skills: Sequence[Skill], window: int) -> str:
    """What a model with a window of so many tokens is told of the skills it may activate: a block, or "" for none."""
    listed = [skill for skill in skills if skill.for_model]
    if not listed:
        return ""
    characters_left = int(window * CATALOGUE_SHARE * CHARACTERS_PER_TOKEN)
    lines: list[str] = []
    for limit in (MAX_DESCRIPTION, *SHORTER):
        lines = [f"- {skill.name}: {_cut(skill.description, limit)}" for skill in listed]
        if sum(len(line) + 1 for line in lines) <= characters_left:
            return block(KIND, "\n".join(lines))
    fitting: list[str] = []
    for line in lines:
        characters_left -= len(line) + 1
        if characters_left < 0:
            break
        fitting.append(line)
    more = len(lines) - len(fitting)
    fitting.append(f"[{more} more, left out for lack of room; the user can call them]")
    return block(KIND, "\n".join(fitting))


def left_out(skills: Sequence[Skill], window: int) -> int:
    """How many skills the catalogue for that window leaves out."""
    listed = [skill for skill in skills if skill.for_model]
    text = catalogue(skills, window)
    return sum(f"- {skill.name}: " not in text for skill in listed)


def content(skill: Skill) -> str:
    """The block that an activated skill is told in: instructions, folder, resources. Blocks: it reads the disk."""
    names = skill.place.files_in(PurePosixPath(skill.path).parent.as_posix(), MAX_RESOURCES + 2)
    resources = [one_line(name) for name in names if name != FILE]
    more = "\n[and more]" if len(resources) > MAX_RESOURCES else ""
    parts = [skill.body, f"The skill's folder: {one_line(str(skill.folder))}"]
    if resources:
        listed = "\n".join(f"- {name}" for name in resources[:MAX_RESOURCES])
        parts.append(f"Files in it, to be read with read_file when they are needed:\n{listed}{more}")
    return block(CONTENT, "\n\n".join(parts), skill.name, attribute="name")


def beginning(skill: Skill) -> str:
    """The part of `content` that stays the same whatever files lie beside it."""
    return block(CONTENT, skill.body, skill.name, attribute="name").rpartition("\n</")[0]


def _read(folder: ExtensionFolder, path: str) -> tuple[Skill | None, list[str]]:
    data = folder.read(path)
    if data is None:
        if folder.owner == "workspace":
            return None, []  # not trusted: the question about that is asked elsewhere
        return None, [f"not used: it cannot be read, or is longer than {MAX_BYTES:,} bytes."]
    text = data.decode("utf-8", "replace")
    file = parse_markdown(text)
    faults: list[str] = [f"{file.fault}; it was read line by line."] if file.fault else []
    own = PurePosixPath(path).parent.name or folder.folder.name
    name, more = _name(file, own)
    faults += more
    description = file.text("description")
    if not name:
        return None, [*faults, "not used: neither its name nor its folder's is valid."]
    if not description:
        return None, [*faults, "not used: it has no description."]
    if len(description) > MAX_DESCRIPTION:
        faults.append(f"its description is cut at {MAX_DESCRIPTION:,} characters.")
    body = visible(file.body)
    if body != file.body or visible(description) != description:
        faults.append("it holds hidden characters; they are shown as their code points.")
    skill = Skill(
        name=name,
        description=visible(_cut(description, MAX_DESCRIPTION)),
        body=body,
        place=folder,
        path=path,
        argument_hint=one_line(file.text("argument-hint")),
        for_model=not _is_set(file, "disable-model-invocation", default=False),
        for_user=_is_set(file, "user-invocable", default=True),
    )
    return replace(skill, name=f"{folder.plugin}:{name}") if folder.plugin else skill, faults


def _name(file: MarkdownFile, folder: str) -> tuple[str, list[str]]:
    """(the name it is called by, what is wrong with it); "" when none can be."""
    name = file.text("name")
    if not _CALLABLE.match(name):
        faults = [f"its name {one_line(name)!r} is not valid; its folder's name is used."] if name else []
        return (folder if _CALLABLE.match(folder) else ""), faults
    faults: list[str] = []
    if name != folder:
        faults.append(f"its name {name!r} differs from its folder's.")
    if not _STANDARD.match(name) or len(name) > MAX_NAME:
        faults.append(
            f"its name does not follow the standard: lower-case letters, digits and hyphens, at most {MAX_NAME}."
        )
    return name[:MAX_NAME], faults


def _is_set(file: MarkdownFile, name: str, *, default: bool) -> bool:
    value = file.text(name).lower()
    return default if not value else value in ("true", "yes", "1")


def _outermost(paths: Sequence[str]) -> list[str]:
    """Those that lie in no other one's folder: a skill may carry examples of skills."""
    kept: list[str] = []
    for path in sorted(paths, key=lambda path: path.count("/")):
        folders = {str(parent) for parent in PurePosixPath(path).parents}
        if not any(str(PurePosixPath(other).parent) in folders - {str(PurePosixPath(path).parent)} for other in kept):
            kept.append(path)
    return sorted(kept)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
