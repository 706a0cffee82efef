"""Waits for lines that match, as a process of its own (`python -I -S pattern_worker.py`): an expression that takes for
ever can then be killed, and the daemon's loop goes on meanwhile. Standard library only.

Input: the expression, then texts, one JSON string a line. Ends with `1` on stdout at the first text in which something
matches, and without a word when there are no more.
"""

import json
import re
import sys


def main() -> int:
    expression = re.compile(json.loads(sys.stdin.buffer.readline()), re.MULTILINE)
    for line in sys.stdin.buffer:
        if expression.search(json.loads(line)):
            print(1, flush=True)
            break
    return 0


if __name__ == "__main__":
    sys.exit(main())
