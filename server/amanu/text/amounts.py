"""Durations, token counts, money and plurals as a user reads them."""


def seconds(value: float) -> str:
    """A duration in seconds: "350 ms", "2.4 s", "3 min 20 s"."""
    if value < 1:
        return f"{max(0, round(value * 1000))} ms"
    if value < 60:
        return f"{value:.1f} s"
    return f"{int(value // 60)} min {int(value % 60)} s"


def age(value: float) -> str:
    """An age in seconds, in words: "now", "3 min", "2 h", "4 d"."""
    minutes = int(max(0.0, value) // 60)
    if minutes < 60:
        return f"{minutes} min" if minutes else "now"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // (24 * 60)} d"


def token_count(value: int) -> str:
    """A number of tokens: "950", "1.2k", "400k", "1.05M"."""
    if value < 1000:
        return str(value)
    if value < 999_950:  # from here on it would be rounded to 1000k
        return f"{value / 1000:.1f}".removesuffix(".0") + "k"
    return f"{value / 1_000_000:.2f}".rstrip("0").removesuffix(".") + "M"


def byte_count(value: int) -> str:
    """A size: "812 bytes", "4.2 kB", "1.3 MB"."""
    if value < 1000:
        return plural(value, "byte")
    return f"{value / 1000:.1f} kB" if value < 999_950 else f"{value / 1_000_000:.1f} MB"


def money(value: float) -> str:
    """US dollars: "$1.25", "$0.0040"."""
    return f"${value:.4f}" if value < 0.1 else f"${value:.2f}"


def prices(read: float | None, written: float | None) -> str:
    """US dollars per million tokens: "$5 in / $25 out"; "price unknown"."""
    if read is None or written is None:
        return "price unknown"
    return f"${read:g} in / ${written:g} out"


def files_and_folders(files: int, folders: int) -> str:
    """Counts with their nouns: "1 file", "2 files and 1 folder"."""
    counts = [plural(count, noun) for count, noun in ((files, "file"), (folders, "folder")) if count]
    return " and ".join(counts) or plural(0, "file")


def plural(count: int, noun: str) -> str:
    """A count with its noun: "1 file", "3 files"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
