"""No secret is shown in part, wherever the output of a background command is cut."""

import pytest

from amanu.text.redaction import MASK, Secrets
from amanu.tools.shell.job_output import HEAD, TAIL, JobOutput

SECRETS = Secrets()
KNOWN = "0123456789abcdefXYZW-mykey"
SECRETS.learn([KNOWN])
SHAPED = "sk-ant-api03-" + "aB3dE5gH7j" * 6
BODY = "\n".join("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8c" + f"{line:02}" for line in range(60))
SECRET_TEXTS = {
    "shaped": SHAPED,
    "known": KNOWN,
    "named": "x7Tq9LmK2pR4vW8zB1cD",
    "private key": f"-----BEGIN PRIVATE KEY-----\n{BODY}\n-----END PRIVATE KEY-----",
}
NAMES = {"named": "DB_PASSWORD="}


def parts(secret: str) -> list[str]:
    """Six characters from everywhere in it, but for those that say what it is."""
    return [secret[at : at + 6] for at in range(13, len(secret) - 30, 3)] or [secret[8:]]


@pytest.mark.parametrize(
    "before", ["", "one\ntwo: ", "." * 9000 + " ", "1%\r2%\r"], ids=["", "line", "long", "progress"]
)
@pytest.mark.parametrize("secret", SECRET_TEXTS)
def test_an_offset_within_a_secret_shows_no_part_of_it(secret: str, before: str) -> None:
    output, text = JobOutput(SECRETS.mask_output), SECRET_TEXTS[secret]
    lead = f"{before}{NAMES.get(secret, '')}"
    output.add(f"{lead}{text}\nafter\n".encode())
    starts = [len(lead) + at for at in range(0, len(text) + 1, max(1, len(text) // 50))]
    shown = {start: output.text(output.snapshot(start)) for start in starts}
    shown |= {-start: output.readable_piece(start, 1 << 20)[0] for start in starts}
    assert [start for start, shown_text in shown.items() if any(part in shown_text for part in parts(text))] == []
    assert all(shown_text.endswith("\nafter\n") for shown_text in shown.values())
    assert output.text(output.snapshot(len(lead) + len(text) + 1)) == "after\n"


@pytest.mark.parametrize("secret", ["shaped", "known", "private key"])
@pytest.mark.parametrize("ends", ["\n", " "])
def test_a_secret_at_either_side_of_the_gap_is_masked(secret: str, ends: str) -> None:
    output, text = JobOutput(SECRETS.mask_output), SECRET_TEXTS[secret] + ends
    some = text.encode() * 7
    while output.size < 2 * (HEAD + TAIL):
        output.add(some)
    kept = output.kept().decode()
    assert "bytes left out …]" in kept and not any(part in kept for part in parts(SECRET_TEXTS[secret]))
    assert set(kept.partition("\n[…")[0].split()) == {MASK}


def test_a_line_that_overwrites_itself_is_shown_as_it_is_now() -> None:
    output = JobOutput(SECRETS.mask_output)
    output.add(b"".join(b"\rfetched %4d of 2000" % count for count in range(2001)))
    assert output.text(output.snapshot(output.line_start())) == "fetched 2000 of 2000"
