"""Keys of `config.toml` that do not exist: they are named; what may forbid something stops everything."""

from pathlib import Path

import pytest

from amanu.cli import doctor, exits, policy, run, tool
from amanu.config import load_settings
from amanu.home import find_home
from amanu_protocol.errors import AmanuError
from support.cli_in_process import InProcessCli
from support.cli_process import script


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("modle = 'a:b'\n", "line 1: There is no setting modle. Did you mean mode or model?"),
        ("# mine\n\n[limits]\nsteps = 3\ncost_used = 1\n",
         "line 5: There is no setting limits.cost_used. Did you mean limits.cost_usd or limits.session_cost_usd?"),
        ("cost_usd = 1\n", "line 1: There is no setting cost_usd. Did you mean limits.cost_usd?"),
        ("[zebra]\nred = 1\n", "line 1: There is no setting zebra."),
        ("[web]\nallow_host = ['a:80']\n", "line 2: There is no setting web.allow_host. Did you mean web.allow_hosts?"),
        ("[endpoints.mine]\nbase_url = 'http://x'\nwires = 'chat'\n",
         "line 3: There is no setting endpoints.mine.wires. Did you mean endpoints.mine.wire?"),
        ("limits = { stepz = 3 }\n", "There is no setting limits.stepz. Did you mean limits.steps?"),
    ],
)  # fmt: skip
def test_a_key_that_does_not_exist_is_passed_over(text: str, said: str) -> None:
    home = find_home().make()
    home.settings.write_text(text + "[shell]\ntotal_seconds = 7\n")
    settings = load_settings(home, {})
    assert settings.warnings == (f"{home.settings}: {said} It is passed over.",)
    assert settings.shell.total_seconds == 7


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[rules]\ndney = ['@run']\n", "line 2: There is no setting rules.dney. Did you mean rules.deny?"),
        ("[rulse]\ndeny = ['@run']\n", "line 1: There is no setting rulse. Did you mean rule or rules?"),
        ("[Rules]\ndeny = ['@run']\n", "line 1: There is no setting Rules. Did you mean rules or rule?"),
        ("[permissions]\ndeny = ['@run']\n", "line 1: There is no setting permissions."),
        ("deny = ['@run']\n", "line 1: There is no setting deny. Did you mean rules.deny?"),
        ("[shell]\ndeny = ['@run']\n", "line 2: There is no setting shell.deny. Did you mean rules.deny?"),
        ("[safety]\nx = [{ must-ask = ['@run'] }]\n", "line 1: There is no setting safety."),
        ("[[rule]]\ndecision = 'deny'\ncommand = 'rm'\n[[rule]]\ndecision = 'deny'\ncomand = 'rm'\n",
         "line 6: There is no setting rule.comand. Did you mean rule.command?"),
        ("[[rules_extra]]\ndecision = 'deny'\n", "line 1: There is no setting rules_extra."),
        ("[sandbox]\nhidden = ['~/x']\n", "line 2: There is no setting sandbox.hidden."),
        ("[sandbx]\nwithout = 'ask'\n", "line 1: There is no setting sandbx. Did you mean sandbox?"),
        ("[web]\ndeny_hosts = ['x']\n", "line 2: There is no setting web.deny_hosts."),
        ("modle = 'a:b'\n[rules]\ndney = []\n", "line 3: There is no setting rules.dney. Did you mean rules.deny?"),
    ],
)  # fmt: skip
def test_one_that_may_forbid_something_stops_everything(text: str, said: str) -> None:
    home = find_home().make()
    home.settings.write_text(text)
    with pytest.raises(AmanuError) as caught:
        load_settings(home, {})
    assert said in str(caught.value) and "nothing runs until it is mended" in str(caught.value)
    assert str(home.settings) in str(caught.value)


def test_commands_say_so(tmp_path: Path, inside: InProcessCli) -> None:
    home = find_home().make()
    home.settings.write_text("modle = 'a:b'\n")
    said = "line 1: There is no setting modle."
    model = script(tmp_path, {"text": "Hello."})
    ran = inside.run(run.main, "hi", "--model", model, cwd=tmp_path)
    assert (ran.returncode, ran.stdout.strip()) == (exits.OK, "Hello.") and "nosettingmodle" in "".join(
        ran.stderr.split()
    )
    for main, arguments in (
        (tool.main, ["list_directory", "{}"]),
        (policy.main, ["explain", "ls", "--workspace", str(tmp_path)]),
    ):
        ran = inside.run(main, *arguments, cwd=tmp_path)
        assert ran.returncode == exits.OK and said in ran.stderr
    assert said in inside.run(doctor.main, cwd=tmp_path).stdout
    home.settings.write_text("[rules]\ndney = ['@run']\n")
    for main, arguments in ((run.main, ["hi", "--model", model]), (tool.main, ["list_directory", "{}"])):
        ran = inside.run(main, *arguments, cwd=tmp_path)
        printed = "".join(f"{ran.stdout}{ran.stderr}".split())  # it is wrapped
        assert ran.returncode == exits.USAGE and "Thereisnosettingrules.dney.Didyoumeanrules.deny?" in printed


def test_a_variable_is_blamed_for_its_own_value() -> None:
    with pytest.raises(AmanuError) as caught:
        load_settings(find_home().make(), {"AMANU_SANDBOX_LAYERS": "none"})
    assert str(caught.value).startswith("AMANU_SANDBOX_LAYERS: sandbox.layers: Input should be a valid boolean")
