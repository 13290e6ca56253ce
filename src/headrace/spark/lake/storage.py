"""Where a lake lies: a folder of this machine, or any url that pyarrow and delta-rs know.

`s3://bucket/lake`, `gs://…`, `abfss://…`, `hdfs://…`: credentials come from the environment, as those two
look for them there (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`, …), or as storage options. Travels to tasks.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow.fs as pafs
from deltalake import DeltaTable

from headrace import address
from headrace.errors import InvalidInput

SCHEMES = ("s3", "s3a", "gs", "abfss", "hdfs")
_URL = re.compile(r"^[a-z][a-z0-9+.-]+:/", re.IGNORECASE)
_TROUBLE = re.compile(r"[%\\\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Storage:
    """A place, and what it takes to get there. `repr` keeps the options to itself: they may be secrets."""

    url: str = field(repr=False)
    """A url, or the absolute path of a folder."""
    options: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        return f"Storage({address.scrubbed(self.url)!r})"

    def __str__(self) -> str:
        return self.url

    @property
    def is_local(self) -> bool:
        return not _URL.match(self.url)

    @property
    def path(self) -> Path:
        """Of a local one."""
        assert self.is_local
        return Path(self.url)

    @property
    def delta_options(self) -> dict[str, str] | None:
        """As delta-rs takes them."""
        return dict(self.options) or None

    @property
    def delta_url(self) -> str:
        return self.url.replace("s3a://", "s3://", 1)

    def within(self, name: str) -> Storage:
        """A folder of it."""
        return Storage(f"{self.url.rstrip('/')}/{name}", self.options)

    def delta(self, version: int | None = None) -> DeltaTable:
        """The table that lies here."""
        return DeltaTable(self.delta_url, version=version, storage_options=self.delta_options)

    def holds_table(self) -> bool:
        return DeltaTable.is_deltatable(self.delta_url, storage_options=self.delta_options)

    # --- files -----------------------------------------------------------------------------------

    def filesystem(self) -> tuple[pafs.FileSystem, str]:
        """A file system of pyarrow, and the place's path in it."""
        return _filesystem(self.url, self.options)

    def place(self, name: str) -> str:
        """The path of a file in `filesystem`."""
        return f"{self.filesystem()[1]}/{name}"

    def open_input(self, name: str) -> Any:
        return self.filesystem()[0].open_input_file(self.place(name))

    def write(self, name: str, content: Any) -> int:
        """A file with these bytes, on the disk when this returns; its size."""
        filesystem, _ = self.filesystem()
        if not self.is_local:
            with filesystem.open_output_stream(self.place(name)) as stream:
                stream.write(content)
            return len(content)
        full = self.path / name
        full.parent.mkdir(parents=True, exist_ok=True)
        with full.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        return len(content)

    def read(self, name: str) -> bytes:
        """Raises FileNotFoundError."""
        with self.open_input(name) as file:
            return bytes(file.read())

    def missing(self, names: Sequence[str]) -> list[str]:
        """Those of the files that are not there, as seen from here."""
        filesystem, _ = self.filesystem()
        found = filesystem.get_file_info([self.place(name) for name in names])
        return [
            name
            for name, info in zip(names, found, strict=True)
            if info.type == pafs.FileType.NotFound
        ]

    def folders(self) -> list[str]:
        """The names of the folders in it."""
        filesystem, root = self.filesystem()
        found = filesystem.get_file_info(pafs.FileSelector(root, allow_not_found=True))
        return sorted(info.base_name for info in found if info.type == pafs.FileType.Directory)

    # --- after a power cut -------------------------------------------------------------------------

    def flush(self, names: Sequence[str]) -> None:
        """Files and the folders that name them are there after a power cut, too; at a url they are anyway."""
        if not self.is_local:
            return
        folders = {self.path}
        for name in names:
            full = self.path / name
            if full.exists():
                with full.open("rb") as file:
                    os.fsync(file.fileno())
            folders.update(full.parents[: len(Path(name).parts)])
        for folder in folders:
            flush_folder(folder)


def storage_of(lake: str | Path, options: Mapping[str, str] | None = None) -> Storage:
    """Where the lake of this path or url lies. Raises InvalidInput for one where no lake can be."""
    text = str(lake)
    if isinstance(lake, Path) or not _URL.match(text):
        full = os.path.normpath(Path(text).absolute())
        if _URL.search(text) or re.search(r"(^|/)[a-z0-9]+:/", text):
            raise InvalidInput(
                f"{text} looks like a url that was taken for a path; nothing was changed: give it as text, "
                "such as s3://bucket/lake"
            )
        _check_words(full)
        return Storage(full)
    scheme = urlsplit(text).scheme
    if scheme == "file":
        return storage_of(Path(urlsplit(text).path), options)
    if scheme not in SCHEMES:
        raise InvalidInput(
            f"{text} is a url of a kind where no lake can be; nothing was changed: give a path, or a url "
            f"with one of {', '.join(SCHEMES)}"
        )
    _check_words(text)
    return Storage(text.rstrip("/"), tuple(sorted((options or {}).items())))


def _check_words(text: str) -> None:
    if _TROUBLE.search(text):
        raise InvalidInput(
            f"the path {text!r} has a %, a backslash or a control character in it, which those who read "
            "Delta tables take for something else; nothing was changed: give another path"
        )


def flush_folder(path: Path) -> None:
    """The names in it are there after a power cut, too."""
    number = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


@functools.lru_cache(maxsize=64)
def _filesystem(url: str, options: tuple[tuple[str, str], ...]) -> tuple[pafs.FileSystem, str]:
    if not _URL.match(url):
        return pafs.LocalFileSystem(), url
    if urlsplit(url).scheme in ("s3", "s3a"):
        parts = urlsplit(url)
        return _s3(dict(options)), f"{parts.netloc}{parts.path}"
    found: tuple[pafs.FileSystem, str] = pafs.FileSystem.from_uri(url)
    return found


def _s3(options: Mapping[str, str]) -> pafs.FileSystem:
    """As delta-rs reads its options and the environment, so that one set of names does for both."""
    told = {name.upper(): value for name, value in options.items()}

    def setting(*names: str) -> str | None:
        return next(
            (value for name in names if (value := told.get(name) or os.environ.get(name))), None
        )

    endpoint = setting("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT")
    given: dict[str, Any] = {
        "access_key": setting("AWS_ACCESS_KEY_ID"),
        "secret_key": setting("AWS_SECRET_ACCESS_KEY"),
        "session_token": setting("AWS_SESSION_TOKEN"),
        "region": setting("AWS_REGION", "AWS_DEFAULT_REGION"),
    }
    if endpoint:
        given["endpoint_override"] = endpoint
        given["scheme"] = urlsplit(endpoint).scheme or "https"
    return pafs.S3FileSystem(**{name: value for name, value in given.items() if value})
