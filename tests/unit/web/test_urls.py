"""What a URL becomes, and which of them only the user can allow. What is refused: `test_traps.py`."""

import pytest

from amanu.web.addresses import is_public
from amanu.web.errors import WebError
from amanu.web.urls import parse_url

ALLOWED = ("localhost:80", "10.0.0.5:8080", "wiki.corp", "[fd00::1]:8080")


@pytest.mark.parametrize(
    ("text", "url", "authority", "local"),
    [
        ("http://Example.COM", "https://example.com/", "example.com", False),
        ("https://example.com:443/a?b=c#d", "https://example.com/a?b=c", "example.com", False),
        ("http://example.com:8080/", "http://example.com:8080/", "example.com:8080", False),
        ("https://example.com:8443/", "https://example.com:8443/", "example.com:8443", False),
        ("https://münchen.de/ä?ö", "https://xn--mnchen-3ya.de/%C3%A4?%C3%B6", "xn--mnchen-3ya.de", False),
        ("https://example.com/a%20b/(c)", "https://example.com/a%20b/(c)", "example.com", False),
        ("https://1.1.1.1/", "https://1.1.1.1/", "1.1.1.1", False),
        ("https://[2606:4700::1111]/", "https://[2606:4700::1111]/", "[2606:4700::1111]", False),
        # of the user's own
        ("http://localhost:3000/x", "http://localhost:3000/x", "localhost:3000", True),
        ("http://[::1]:3000/", "http://[::1]:3000/", "[::1]:3000", True),
        ("http://localhost/", "http://localhost:80/", "localhost:80", True),
        ("http://10.0.0.5:8080/", "http://10.0.0.5:8080/", "10.0.0.5:8080", True),
        ("https://wiki.corp/", "https://wiki.corp:443/", "wiki.corp:443", True),
        ("http://[fd00::1]:8080/", "http://[fd00::1]:8080/", "[fd00::1]:8080", True),
    ],
)
def test_urls(text: str, url: str, authority: str, local: bool) -> None:
    parsed = parse_url(text, ALLOWED)
    assert (str(parsed), parsed.authority, parsed.local) == (url, authority, local)


@pytest.mark.parametrize("text", ["http://localhost:81/", "http://10.0.0.5:8081/", "http://wiki.corp:8080/"])
def test_only_the_port_that_was_named_is_allowed(text: str) -> None:
    with pytest.raises(WebError, match="allow_hosts") as caught:
        parse_url(text, ALLOWED)
    assert caught.value.kind == "denied"


@pytest.mark.parametrize("text", ["http://169.254.169.254/", "http://metadata.google.internal/"])
def test_nobody_is_asked_to_open_what_gives_out_keys(text: str) -> None:
    with pytest.raises(WebError) as caught:
        parse_url(text, ALLOWED)
    assert "allow_hosts" not in str(caught.value)


@pytest.mark.parametrize(
    ("place", "carries"),
    [
        ("example.com/", False),
        ("example.com/search?q=how+to+read+a+file", False),
        ("example.com/commit/" + "a" * 64, False),
        ("example.com/?q=" + "a" * 200, True),
        ("example.com/" + "a" * 100, True),
        ("example.com/" + "a" * 50 + "/" + "b" * 50, False),
        ("example.com" + "/aaaaaaaaaa" * 30, True),
        ("docs-git-main-acme.pages.example.com/", False),
        ("a" * 50 + ".example.com/", True),
        ("aaaaaaaaaa." * 8 + "example.com/", True),
    ],
)
def test_long_urls_carry_data(place: str, carries: bool) -> None:
    assert parse_url(f"https://{place}").carries_data == carries


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:4700::1111", True),
        ("::ffff:93.184.216.34", True),
        ("64:ff9b::5db8:d822", True),
        *(
            (address, False)
            for address in (
                *(
                    "127.0.0.1",
                    "10.1.2.3",
                    "172.16.0.1",
                    "192.168.1.1",
                    "169.254.169.254",
                    "0.0.0.0",
                    "255.255.255.255",
                ),
                *("100.64.0.1", "100.100.100.200", "192.0.0.8", "192.0.2.1", "192.88.99.1", "198.18.0.1", "224.0.0.1"),
                *("240.0.0.1", "::", "::1", "fe80::1", "fc00::1", "fec0::1", "ff02::1", "2001:db8::1", "2001::1"),
                *("::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "::127.0.0.1", "64:ff9b:1::1", "fe80::1%lo"),
                *("localhost", "", "127.1", "1.2.3"),
            )
        ),
    ],
)
def test_addresses(address: str, public: bool) -> None:
    assert is_public(address) == public
