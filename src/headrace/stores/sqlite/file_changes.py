"""Hearing from the kernel that a file was written to, by whatever process: inotify, where there is one."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from pathlib import Path

_IN_MODIFY = 0x2
_BUFFER_BYTES = 4096


class FileChanges:
    """`descriptor` is readable once the file was written to, and until `forget`.

    The file is watched by its name and never opened: closing a handle of one's own would drop the locks
    that this process holds on it.
    """

    def __init__(self, path: Path) -> None:
        """Raises OSError where the kernel has no such thing, or no more of them for this user."""
        if sys.platform != "linux":
            raise OSError("there is no inotify")
        libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor = _checked(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        try:
            _checked(libc.inotify_add_watch(self.descriptor, os.fsencode(path), _IN_MODIFY))
        except OSError:
            self.close()
            raise

    def forget(self) -> None:
        """What was written so far is no news any more."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.descriptor, _BUFFER_BYTES):
                pass

    def close(self) -> None:
        os.close(self.descriptor)


def _checked(answer: int) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return answer
