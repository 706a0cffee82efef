"""A session's files that are not text: each content is stored once, as a whole or not at all, and its id leads to
nothing else."""

import errno
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from amanu.storage import file_store
from amanu.storage.file_store import Damaged, FileStore
from support.full_disk import full_from

PIXELS = b"\0\1\2" * 5
PIXELS_ID = hashlib.sha256(PIXELS).hexdigest()
LARGE = 4096
"""Bytes up to which files are hashed in these tests."""


def add(store: FileStore, path: Path) -> str:
    handle = os.open(path, os.O_RDONLY)
    try:
        return store.add(handle)
    finally:
        os.close(handle)


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "session" / "files")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """The folder of that store."""
    return tmp_path / "session" / "files"


@pytest.mark.parametrize("content", [b"", b"\0", PIXELS, bytes(range(256)) * 8192 + b"\0end"])
@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o444])
def test_a_file_is_copied_as_it_was_added(tmp_path: Path, store: FileStore, content: bytes, mode: int) -> None:
    source = written(tmp_path / "source", content)
    file_id = add(store, source)
    source.write_bytes(b"another")  # no hard link to it
    store.copy(file_id, tmp_path / "copy", mode)
    assert file_id == hashlib.sha256(content).hexdigest() and store.has(file_id)
    assert (tmp_path / "copy").read_bytes() == content
    assert (tmp_path / "copy").stat().st_mode & 0o777 == mode
    written(tmp_path / "other", b"").replace(tmp_path / "copy")
    assert store.path(file_id).read_bytes() == content


def test_the_same_content_is_kept_once(tmp_path: Path, store: FileStore, files: Path) -> None:
    store.sync()
    assert (store.size(), store.has(PIXELS_ID)) == (0, False), "before there is a folder"
    ids = [add(store, written(tmp_path / name, PIXELS)) for name in ("a", "b", "a")]
    other = add(store, written(tmp_path / "c", b"c\0"))
    assert ids == [PIXELS_ID] * 3
    assert names(files) == sorted([PIXELS_ID, other])
    assert store.size() == len(PIXELS) + 2
    assert files.stat().st_mode & 0o077 == 0, "only the user's"
    assert store.path(PIXELS_ID).stat().st_nlink == 1


def test_a_damaged_file_is_mended_by_the_same_content(tmp_path: Path, store: FileStore) -> None:
    source = written(tmp_path / "source", PIXELS)
    add(store, source)
    store.path(PIXELS_ID).write_bytes(b"damaged")
    add(store, source)
    store.copy(PIXELS_ID, tmp_path / "copy", 0o644)
    assert (tmp_path / "copy").read_bytes() == PIXELS


def as_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def as_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "cut off": lambda path: path.write_bytes(PIXELS[:-1]),
    "longer": lambda path: os.truncate(path, path.stat().st_size + 1),
    "another": lambda path: path.write_bytes(bytes(len(PIXELS))),
    "a link": as_link,
    "a pipe": as_pipe,
    "a folder": as_folder,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_not_as_it_was_is_damaged(tmp_path: Path, store: FileStore, damage: str) -> None:
    """No part of it is left at the new path."""
    add(store, written(tmp_path / "source", PIXELS))
    assert store.is_whole(PIXELS_ID)
    DAMAGES[damage](store.path(PIXELS_ID))
    assert not store.is_whole(PIXELS_ID)
    with pytest.raises(Damaged):
        store.copy(PIXELS_ID, tmp_path / "copy", 0o644)
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("damage", ["missing", "a folder"])
def test_what_is_no_file_any_more_is_not_there(tmp_path: Path, store: FileStore, damage: str) -> None:
    add(store, written(tmp_path / "source", PIXELS))
    DAMAGES[damage](store.path(PIXELS_ID))
    assert not store.has(PIXELS_ID)


@pytest.mark.parametrize(
    "file_id",
    [
        "",
        ".",
        "..",
        "../secret",
        "/etc/passwd",
        f"../files/{PIXELS_ID}",
        f"{PIXELS_ID}/..",
        f"{PIXELS_ID}\n",
        f"{PIXELS_ID}\0",
        PIXELS_ID.upper(),
        PIXELS_ID[:-1],
        "large-",
        "large-../../secret",
        f"large-{'g' * 16}",
        f"large-{'0' * 17}",
        f"large-{'0' * 16}-",
        f"large-{'0' * 16}-1x",
        ".tmp-x",
        "١" * 64,
    ],
)
def test_what_is_no_id_leads_nowhere(tmp_path: Path, store: FileStore, file_id: str) -> None:
    """Ids are read from records that others may have written."""
    add(store, written(tmp_path / "source", PIXELS))
    written(tmp_path / "session" / "secret", b"secret")
    assert not store.has(file_id)
    with pytest.raises(Damaged):
        store.path(file_id)
    with pytest.raises(Damaged):
        store.copy(file_id, tmp_path / "copy", 0o644)
    assert not (tmp_path / "copy").exists()


def test_an_existing_file_is_never_overwritten(tmp_path: Path, store: FileStore) -> None:
    file_id = add(store, written(tmp_path / "source", PIXELS))
    written(tmp_path / "there", b"there")
    (tmp_path / "link").symlink_to("there")
    (tmp_path / "dangling").symlink_to("nowhere")
    for name in ("there", "link", "dangling"):
        with pytest.raises(FileExistsError):
            store.copy(file_id, tmp_path / name, 0o644)
    assert (tmp_path / "there").read_bytes() == b"there" and not (tmp_path / "nowhere").exists()


def test_a_very_large_file_is_kept_with_its_holes(
    tmp_path: Path, store: FileStore, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has a random id, because it is not hashed."""
    monkeypatch.setattr(file_store, "MAX_HASHED", LARGE)
    source, size = tmp_path / "source", 1 << 32
    with source.open("wb") as file:
        file.write(b"start")
        file.seek(size // 2)
        file.write(b"middle")
        file.truncate(size)
    first, second = add(store, source), add(store, source)
    assert first.startswith("large-") and first != second and store.has(first)
    assert names(files) == sorted([first, second]) and store.size() == 2 * size
    store.copy(first, tmp_path / "copy", 0o755)
    for path in (store.path(first), tmp_path / "copy"):
        assert path.stat().st_size == size and path.stat().st_blocks * 512 < 1 << 20
        with path.open("rb") as file:
            assert file.read(6) == b"start\0"
            file.seek(size // 2)
            assert file.read(7) == b"middle\0"


@pytest.mark.parametrize("size", [LARGE, LARGE + 1])
def test_only_a_file_above_the_limit_is_not_hashed(
    tmp_path: Path, store: FileStore, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(file_store, "MAX_HASHED", LARGE)
    assert add(store, written(tmp_path / "source", bytes(size))).startswith("large-") == (size > LARGE)


@pytest.mark.parametrize("damage", ["missing", "cut off", "longer", "a folder"])
def test_a_damaged_large_file_is_damaged(
    tmp_path: Path, store: FileStore, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.setattr(file_store, "MAX_HASHED", LARGE)
    file_id = add(store, written(tmp_path / "source", bytes(LARGE + 1)))
    assert store.is_whole(file_id)
    DAMAGES[damage](store.path(file_id))
    assert not store.is_whole(file_id)
    with pytest.raises(Damaged):
        store.copy(file_id, tmp_path / "copy", 0o644)


def test_a_large_file_of_an_older_amanu_is_still_read(tmp_path: Path, store: FileStore, files: Path) -> None:
    files.mkdir(parents=True)
    file_id = written(files / f"large-{'0' * 16}", PIXELS).name
    store.copy(file_id, tmp_path / "copy", 0o644)
    assert store.is_whole(file_id) and (tmp_path / "copy").read_bytes() == PIXELS


FULL = 1 << 20
"""Bytes at which the disk is full."""


@pytest.mark.parametrize("hashed", [True, False])
def test_a_full_disk_keeps_nothing_unfinished(
    tmp_path: Path, store: FileStore, files: Path, monkeypatch: pytest.MonkeyPatch, hashed: bool
) -> None:
    kept = add(store, written(tmp_path / "kept", PIXELS))
    monkeypatch.setattr(file_store, "MAX_HASHED", FULL * 8 if hashed else LARGE)
    source = written(tmp_path / "source", b"\1" * (FULL + 1))
    with full_from(FULL), pytest.raises(OSError) as failed:
        add(store, source)
    assert failed.value.errno == errno.EFBIG
    assert names(files) == [kept]
    add(store, source)
    assert len(names(files)) == 2


@pytest.mark.parametrize("hashed", [True, False])
def test_a_full_disk_leaves_no_unfinished_copy(
    tmp_path: Path, store: FileStore, monkeypatch: pytest.MonkeyPatch, hashed: bool
) -> None:
    monkeypatch.setattr(file_store, "MAX_HASHED", FULL * 8 if hashed else LARGE)
    file_id = add(store, written(tmp_path / "source", b"\1" * (FULL + 1)))
    with full_from(FULL), pytest.raises(OSError):
        store.copy(file_id, tmp_path / "copy", 0o644)
    assert not (tmp_path / "copy").exists()


def test_no_descriptor_is_left_open(tmp_path: Path, store: FileStore) -> None:
    def opened() -> int:
        return len(os.listdir("/dev/fd"))  # noqa: PTH208 (names only)

    source = written(tmp_path / "source", PIXELS)
    file_id, before = add(store, source), opened()
    add(store, source)
    store.copy(file_id, tmp_path / "copy", 0o644)
    with pytest.raises(FileExistsError):
        store.copy(file_id, tmp_path / "copy", 0o644)
    store.path(file_id).write_bytes(b"another")
    with pytest.raises(Damaged):
        store.copy(file_id, tmp_path / "second", 0o644)
    assert opened() == before
