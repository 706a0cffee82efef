"""Times, tokens, money and counts as a user reads them."""


def seconds(value: float) -> str:
    if value < 1:
        return f"{max(0, round(value * 1000))} ms"
    if value < 60:
        return f"{value:.1f} s"
    return f"{int(value // 60)} min {int(value % 60)} s"


def token_count(value: int) -> str:
    if value < 1000:
        return str(value)
    return f"{value / 1000:.1f}k" if value < 1_000_000 else f"{value / 1_000_000:.2f}M"


def money(value: float) -> str:
    return f"${value:.4f}" if value < 0.1 else f"${value:.2f}"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
