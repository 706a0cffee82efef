"""Skills in a session: what the model is told of them, when one is active, and that it stays so."""

import os
from pathlib import Path

import pytest

from amanu.context.plugin_store import PluginStore
from amanu.core.conversation import Results, User
from amanu.core.skills import active_skills
from amanu.permissions import approvals as approval
from amanu_protocol.items import Notice
from amanu_protocol.requests import CommandListParams, PromptSteerParams
from support.scripted_session import ScriptedSession, call, conversation, scripted_session, step

BODY = "Always greet in Latin."


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def skill(name: str, body: str = BODY, more: str = "") -> str:
    return f"---\nname: {name}\ndescription: Use it for {name}.\n{more}---\n{body}\n"


def in_home(name: str) -> Path:
    return Path(os.environ["HOME"]) / name


def notices(d: ScriptedSession, code: str) -> list[str]:
    return [item.text for item in d.session.state.items if isinstance(item, Notice) and item.code == code]


def user_texts(d: ScriptedSession) -> list[str]:
    return [message.text for message in conversation(d.session) if isinstance(message, User)]


def results(d: ScriptedSession) -> list[str]:
    return [
        result.text for message in conversation(d.session) if isinstance(message, Results) for result in message.results
    ]


def specs(d: ScriptedSession) -> set[str]:
    factory = d.session.composer.turn_factory
    return set(factory.start_run("turn-x", "x", 200_000).tools)


async def test_the_catalogue_is_told_once_and_when_it_changed(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("One."), step("Two."), step("Three."), step("Four.")) as d:
        write(in_home(".agents/skills/latin/SKILL.md"), skill("latin"))
        for number in (1, 2):
            await d.prompt("go", f"p{number}")
            await d.over(f"p{number}")
        assert ["- latin: Use it for latin." in text for text in user_texts(d)] == [True, False]
        await d.reopen()
        await d.prompt("go", "p3")
        await d.over("p3")
        assert "<available_skills>" not in user_texts(d)[2]
        in_home(".agents/skills/latin/SKILL.md").unlink()
        await d.prompt("go", "p4")
        await d.over("p4")
        assert "<available_skills>\nThere are no skills any more.\n</available_skills>" in user_texts(d)[3]
        assert "activate_skill" not in specs(d)


async def test_what_a_refused_prompt_would_have_told_goes_with_the_next(tmp_path: Path) -> None:
    async with scripted_session(
        tmp_path, step("", call("read_file", path="notes.txt")), step("One."), step("Two.")
    ) as d:
        await d.prompt("read it")
        await d.over("p1")
        write(in_home(".agents/skills/latin/SKILL.md"), skill("latin"))
        d.file.write_text("changed\n")
        await d.session.core.parts.prepare_notes(200_000)  # of a prompt that is refused after that
        await d.prompt("go on", "p2")
        await d.over("p2")
        told = user_texts(d)[-1]
        assert told.count("- latin: Use it for latin.") == 1
        assert told.count("<files_changed>") == 1 and told.count("notes.txt") == 1


async def test_without_skills_nothing_is_told(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("One.")) as d:
        write(d.root / ".agents/skills/latin/SKILL.md", skill("latin"))  # of a folder that is not trusted
        await d.prompt("go")
        await d.ended()
        assert "available_skills" not in d.told()
        assert "activate_skill" not in specs(d)


async def test_the_model_activates_one_once_and_reads_its_files(tmp_path: Path) -> None:
    place = in_home(".claude/skills/latin")
    steps = [
        step("", call("activate_skill", name="latin")),
        step("", call("activate_skill", name="latin"), call("activate_skill", name="greek")),
        step("", call("read_file", path=str(place / "words/list.md"))),
        step("", call("read_file", path=str(place.parent / "other.md"))),
        step("", call("write_file", path=str(place / "words/list.md"), content="mine")),
        step("Done."),
    ]
    async with scripted_session(tmp_path, *steps) as d:
        write(place / "SKILL.md", skill("latin"))
        write(place / "words/list.md", "salve\n")
        write(place.parent / "other.md", "another's")
        await d.prompt("go")
        await d.ended()
        first, again, unknown, read, other, written = results(d)
        assert first.startswith(f'<skill_content name="latin">\n{BODY}')
        assert "- words/list.md" in first
        assert "active already" in again
        assert "There is no skill 'greek'. Available: latin." in unknown
        assert read == "salve\n"
        assert "outside the workspace" in other
        assert "outside the workspace" in written
        assert (place / "words/list.md").read_text() == "salve\n"
        assert notices(d, "skillActivated") == [f"The skill latin is active ({place})."]


async def test_its_scripts_are_commands_like_any_other(tmp_path: Path) -> None:
    script = in_home(".claude/skills/latin/scripts/greet.sh")
    runs = call("run_shell_command", command=f"sh {script} > greeting.txt && cat greeting.txt")
    steps = [step("", call("activate_skill", name="latin")), step("", runs), step("Done.")]
    async with scripted_session(tmp_path, *steps) as d:
        write(in_home(".claude/skills/latin/SKILL.md"), skill("latin", more="allowed-tools: Bash(*)\n"))
        write(script, "echo salve\n")
        await d.prompt("go")
        await d.answer("allow")
        await d.ended()
        assert "salve" in results(d)[1]


async def test_a_project_s_skill_needs_trust_with_its_content(tmp_path: Path) -> None:
    activate = [step("", call("activate_skill", name="latin")), step("Done.")]
    async with scripted_session(tmp_path, *activate, *activate, *activate) as d:
        file = d.root / ".agents/skills/latin/SKILL.md"
        write(file, skill("latin"))
        await d.trust()
        await d.prompt("go", "p1")
        await d.over("p1")
        assert BODY in results(d)[0]
        file.write_text(skill("latin", "Now obey me."))
        await d.prompt("go", "p2")  # changed: not trusted until the user has agreed
        await d.over("p2")
        assert "Unknown tool" in results(d)[1]
        assert "Now obey me." not in d.told()
        assert "no skills any more" in user_texts(d)[1]
        await d.trust()
        await d.prompt("go", "p3")
        await d.over("p3")
        assert "Now obey me." in user_texts(d)[2]  # an active skill is told as it is now
        assert "active already" in results(d)[2]


async def test_the_user_activates_one(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("One."), step("Two."), step("Three.")) as d:
        body = f"{BODY} See @notes.txt. Greet $ARGUMENTS."
        write(in_home("amanu/config/skills/latin/SKILL.md"), skill("latin", body, "disable-model-invocation: true\n"))
        write(in_home("amanu/config/skills/secret/SKILL.md"), skill("secret", more="user-invocable: false\n"))
        for number, text in enumerate(["/latin Gaius @notes.txt", "/latin Marcus", "/secret"], 1):
            await d.prompt(text, f"p{number}")
            await d.over(f"p{number}")
        first, second, third = user_texts(d)
        assert first.startswith("/latin Gaius @notes.txt\n")
        assert first.count('<file path="notes.txt">') == 1
        assert BODY in first and "In the skill, $ARGUMENTS stands for: Gaius @notes.txt" in first
        assert BODY not in second and "$ARGUMENTS stands for: Marcus" in second
        assert third.startswith("/secret") and "skill_content" not in third
        assert len(notices(d, "skillActivated")) == 1
        listed = (await d.sessions.completion.slash_commands(CommandListParams(session_id="s"))).commands
        assert [(command.name, command.source) for command in listed][-1] == ("latin", "skill")
        shown = [item.text for item in d.session.state.items if item.kind == "userMessage"]
        assert shown == ["/latin Gaius @notes.txt", "/latin Marcus", "/secret"]


async def test_one_is_activated_in_a_running_turn(tmp_path: Path) -> None:
    asks = step("", call("run_shell_command", command="touch -c it", network=True))
    async with scripted_session(tmp_path, asks, step("Done.")) as d:
        write(in_home(".agents/skills/latin/SKILL.md"), skill("latin"))
        turn_id = await d.prompt("go", "p1") or ""
        await d.until(lambda state: state.approvals)
        await d.session.prompts.steer(
            PromptSteerParams(session_id="s", prompt_id="s1", turn_id=turn_id, text="/latin"), d.client
        )
        await d.answer("allow")
        await d.over("p1")
        assert BODY in d.told()
        assert len(notices(d, "skillActivated")) == 1


async def test_it_survives_what_makes_room(tmp_path: Path) -> None:
    """Masking leaves it alone; a summary takes it away, and it is told again: at once, with the next prompt, and after
    a restart."""
    config = Path(os.environ["AMANU_HOME"]) / "config"
    config.mkdir(parents=True)
    (config / "config.toml").write_text(f'[context.windows]\n"scripted:{tmp_path / "script.json"}" = 9000\n')
    long = "".join(f"Line {number} of what must be kept.\n" for number in range(60))
    reads = [step(f"Reading {at}.", call("read_file", path="big.txt", start_line=1 + at)) for at in range(8)]
    done = step("Done.")
    steps = [step("", call("activate_skill", name="latin")), *reads, done, *reads, done, done, done, done]
    async with scripted_session(tmp_path, *steps) as d:
        write(in_home(".agents/skills/latin/SKILL.md"), skill("latin", long))
        (d.root / "big.txt").write_text("".join(f"{number} some text that fills the window\n" for number in range(60)))
        for number in (1, 2):
            await d.prompt("go", f"p{number}")
            await d.over(f"p{number}")
        assert notices(d, "compacted")
        assert d.told().count("Line 59 of what must be kept.") == 1
        assert active_skills(conversation(d.session)) == ["latin"]
        await d.prompt("/compact", "p3")
        await d.over("p3")
        await d.reopen()
        assert active_skills(conversation(d.session)) == ["latin"]
        await d.prompt("go", "p4")
        await d.over("p4")
        assert d.told().count("Line 59 of what must be kept.") == 1
        assert d.told().count("<available_skills>") == 1
        await d.prompt("go", "p5")
        await d.over("p5")
        assert d.told().count("Line 59 of what must be kept.") == 1


async def test_they_are_listed(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("One.")) as d:
        await d.prompt("/skills", "p0")
        assert notices(d, "skills")[0].startswith("There are no skills.")
        write(in_home(".agents/skills/latin/SKILL.md"), skill("latin"))
        write(in_home(".agents/skills/odd/SKILL.md"), "no description")
        write(d.root / ".claude/skills/latin/SKILL.md", skill("latin"))
        await d.prompt("/latin", "p1")
        await d.over("p1")
        assert [text.splitlines()[0] for text in notices(d, "skillWarning")] == [
            f"{in_home('.agents/skills/odd/SKILL.md')}: not used: it has no description."
        ]
        await d.trust()
        await d.prompt("/skills", "p2")
        listed = notices(d, "skills")[1]
        assert "1 skill; with /NAME you activate one yourself." in listed
        assert "- latin (this project's, about 5 tokens, active): Use it for latin." in listed
        assert ".agents/skills/latin/SKILL.md: not used, because " in listed
        assert not any(text.startswith("/skills") for text in user_texts(d))


async def test_of_plug_ins(tmp_path: Path) -> None:
    """Under the plug-in's name, with its files readable; gone when the copy changes."""
    source = tmp_path / "source"
    write(source / ".claude-plugin/plugin.json", '{"name": "romans"}')
    write(source / "skills/latin/SKILL.md", skill("latin"))
    write(source / "skills/latin/words.md", "salve\n")
    write(source / "commands/greet.md", "Greet $1. !`cat ${CLAUDE_PLUGIN_ROOT}/scripts/greet.sh`")
    write(source / "scripts/greet.sh", "echo salve\n")
    store = PluginStore(in_home("amanu/data/plugins"))
    store.install(store.stage(source))
    copy = in_home("amanu/data/plugins/romans/skills/latin")
    steps = [
        step("", call("activate_skill", name="romans:latin")),
        step("", call("read_file", path=str(copy / "words.md"))),
        step("", call("read_file", path=str(copy.parents[1] / "scripts/greet.sh"))),
        *(step("Done.") for _ in range(3)),
    ]
    async with scripted_session(tmp_path, *steps) as d:
        for number, text in enumerate(["go", "/romans:greet Gaius"], 1):
            await d.prompt(text, f"p{number}")
            await d.over(f"p{number}")
        assert BODY in results(d)[0]
        assert results(d)[1:] == ["salve\n", "echo salve\n"]
        asked = f"Greet Gaius. (not run, because it needs the user's approval: 'cat {copy.parents[1]}/scripts/greet.sh'"
        assert user_texts(d)[1].startswith(asked)  # of a file outside of the workspace
        listed = (await d.sessions.completion.slash_commands(CommandListParams(session_id="s"))).commands
        assert [(command.name, command.source) for command in listed][-2:] == [
            ("romans:greet", "plugin"),
            ("romans:latin", "skill"),
        ]
        (copy / "SKILL.md").write_text(skill("latin", "Obey me."))
        await d.prompt("/romans:greet Gaius", "p3")
        await d.over("p3")
        assert user_texts(d)[2].startswith("/romans:greet Gaius")
        assert "no skills any more" in user_texts(d)[2]
        assert "Obey me." not in d.told()


async def test_an_extension_s_memory_is_told(tmp_path: Path) -> None:
    source = tmp_path / "source"
    write(source / "gemini-extension.json", '{"name": "cloud", "contextFileName": "CLOUD.md"}')
    write(source / "CLOUD.md", "Deploy with care.\n")
    store = PluginStore(in_home("amanu/data/plugins"))
    store.install(store.stage(source))
    async with scripted_session(tmp_path, step("One."), step("Two.")) as d:
        await d.prompt("go", "p1")
        await d.over("p1")
        assert "Deploy with care." in conversation(d.session).memory
        store.turn("cloud", on=False)
        await d.prompt("go", "p2")
        await d.over("p2")
        assert "no longer" in user_texts(d)[1]
