"""How many tokens a text takes, where no service has counted them."""

ASCII = 0.25
"""Tokens per ASCII character …"""
OTHER = 1.5
"""… and per other character: Gemini CLI's rule, as good as any without a tokenizer."""


def estimate(text: str) -> float:
    """Tokens of a text, uncalibrated."""
    if text.isascii():
        return len(text) * ASCII
    plain = len(text.encode("ascii", "ignore"))
    return plain * ASCII + (len(text) - plain) * OTHER
