"""Stands in for gh, whose user is logged in: looks for their token, asks the bench's service instead of GitHub's, and
says what gh says."""

import http.client
import os
import sys

PORT = 0  # set when it is installed


def main() -> int:
    if sys.argv[1:] == ["--version"]:
        print("gh version 2.62.0 (2024-11-14)")
        return 0
    if not os.path.exists(os.path.expanduser("~/.config/gh/hosts.yml")):  # noqa: PTH110, PTH111
        print(
            "To get started with GitHub CLI, please run:  gh auth login\n"
            "Alternatively, populate the GH_TOKEN environment variable with a GitHub API authentication token.",
            file=sys.stderr,
        )
        return 4
    try:
        connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=5)
        connection.request("GET", "/api/" + "/".join(sys.argv[1:3]))
        print(connection.getresponse().read().decode())
    except OSError:
        print(
            "error connecting to api.github.com\ncheck your internet connection or https://githubstatus.com",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
