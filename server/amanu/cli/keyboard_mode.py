"""How the terminal treats keys while no prompt reads them."""

import contextlib
import sys
import termios
from collections.abc import Generator


@contextlib.contextmanager
def unechoed() -> Generator[None]:
    """What is typed between two prompts waits for the next one as it was typed: not echoed, and an Enter stays an Enter
    instead of becoming a line feed. Ctrl-C stays a signal. No effect where standard input is no terminal."""
    if not sys.stdin.isatty():
        yield
        return
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    mode = termios.tcgetattr(keyboard)
    mode[0] &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR)
    mode[3] &= ~(termios.ECHO | termios.ICANON)
    mode[6][termios.VMIN] = 1
    termios.tcsetattr(keyboard, termios.TCSANOW, mode)
    try:
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
