"""How long to wait before trying again. Pure: randomness comes in as an argument.

Every backoff answers `delay(n, draw)`: n is the number of failures so far counting this one (1 for
the first), `draw` a number in [0, 1) used for jitter. Those that are data (all but Custom) are
stored with the job, so that any worker computes the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import force_setattr

from headrace import error_text, validation
from headrace.duration import Seconds
from headrace.errors import InvalidInput, InvalidLimit

JITTER = 0.1
"""Spread of ±10 %, so that jobs that failed together do not come back together."""

TABLE_DELAYS_MAX = 1000

_EXPONENT_MAX = 62  # with more the power would leave the floats; 2**62 seconds is past any cap


class _Backoff(msgspec.Struct, frozen=True, tag_field="kind"):
    def __post_init__(self) -> None:
        for name in ("initial", "cap"):
            if hasattr(self, name):
                what = f"{name} of a backoff"
                seconds = validation.check_seconds(getattr(self, name), what, zero=True)
                force_setattr(self, name, seconds)
        if not isinstance(getattr(self, "jitter", True), bool):
            raise InvalidInput(
                "jitter of a backoff is True or False; nothing was stored or changed"
            )

    def delay(self, failures: int, draw: float = 0.5) -> float:
        """Seconds to wait after the given number of failures."""
        raise NotImplementedError


class NoBackoff(_Backoff, frozen=True, tag="none"):
    """Retry at once."""

    def delay(self, failures: int, draw: float = 0.5) -> float:  # noqa: ARG002 - one signature for all
        return 0.0


class Constant(_Backoff, frozen=True, tag="constant"):
    """The same wait each time."""

    initial: float = 1.0
    jitter: bool = True

    if TYPE_CHECKING:

        def __init__(self, initial: Seconds = 1.0, *, jitter: bool = True) -> None: ...

    def delay(self, failures: int, draw: float = 0.5) -> float:  # noqa: ARG002 - one signature for all
        return _spread(self.initial, draw, jitter=self.jitter)


class Linear(_Backoff, frozen=True, tag="linear"):
    """initial × n, at most `cap`."""

    initial: float = 1.0
    cap: float = 3600.0
    jitter: bool = True

    if TYPE_CHECKING:

        def __init__(
            self, initial: Seconds = 1.0, cap: Seconds = 3600.0, *, jitter: bool = True
        ) -> None: ...

    def delay(self, failures: int, draw: float = 0.5) -> float:
        return min(_spread(self.initial * failures, draw, jitter=self.jitter), self.cap)


class Exponential(_Backoff, frozen=True, tag="exponential"):
    """initial × multiplier^(n - 1), at most `cap`."""

    initial: float = 1.0
    multiplier: float = 2.0
    cap: float = 3600.0
    jitter: bool = True

    if TYPE_CHECKING:

        def __init__(
            self,
            initial: Seconds = 1.0,
            multiplier: float = 2.0,
            cap: Seconds = 3600.0,
            *,
            jitter: bool = True,
        ) -> None: ...

    def __post_init__(self) -> None:
        super().__post_init__()
        given: Any = self.multiplier
        if isinstance(given, int) and not isinstance(given, bool):
            given = int.__index__(given)
            force_setattr(self, "multiplier", given)
        if isinstance(given, bool) or not isinstance(given, int | float) or not given >= 0:
            raise InvalidLimit(
                f"multiplier of a backoff is {validation.told(given)}; it must be a number of 0 or more; "
                f"{validation.UNCHANGED}"
            )

    def delay(self, failures: int, draw: float = 0.5) -> float:
        try:
            seconds = self.initial * float(self.multiplier) ** max(failures - 1, 0)
        except OverflowError:  # the power left the floats: past any cap
            seconds = float("inf") if self.initial else 0.0
        return min(_spread(seconds, draw, jitter=self.jitter), self.cap)


class FullJitter(_Backoff, frozen=True, tag="full_jitter"):
    """random(0, min(initial × 2^n, cap)) with n = failures before this one."""

    initial: float = 0.5
    cap: float = 30.0

    if TYPE_CHECKING:

        def __init__(self, initial: Seconds = 0.5, cap: Seconds = 30.0) -> None: ...

    def delay(self, failures: int, draw: float = 0.5) -> float:
        power = min(max(failures - 1, 0), _EXPONENT_MAX)
        return draw * min(self.initial * 2.0**power, self.cap)


class Table(_Backoff, frozen=True, tag="table"):
    """The delays themselves, the first failure's first. After the last of them, that again."""

    delays: tuple[float, ...]

    def __post_init__(self) -> None:
        delays = tuple(
            validation.check_seconds(seconds, "a delay of a table", zero=True)
            for seconds in validation.listed(self.delays, "delays")
        )
        validation.check_limit(
            len(delays), "the number of delays", minimum=0, maximum=TABLE_DELAYS_MAX
        )
        force_setattr(self, "delays", delays)

    def delay(self, failures: int, draw: float = 0.5) -> float:  # noqa: ARG002 - one signature for all
        return self.delays[min(failures, len(self.delays)) - 1] if self.delays else 0.0


class Custom:
    """The application's own function of (n, initial, cap). Lives in code, never in a store.

    A function that raises, or answers what is not a number of 0 or more, gets the cap.
    """

    def __init__(
        self,
        function: Callable[[int, float, float], float],
        *,
        initial: Seconds = 1.0,
        cap: Seconds = 3600.0,
    ) -> None:
        self._function = function
        self._initial = validation.check_seconds(initial, "initial of a backoff", zero=True)
        self._cap = validation.check_seconds(cap, "cap of a backoff", zero=True)

    def delay(self, failures: int, draw: float = 0.5) -> float:  # noqa: ARG002 - one signature for all
        try:
            seconds = float(self._function(failures, self._initial, self._cap))
        except Exception:  # noqa: BLE001 - the failure of a backoff must not lose the failure of the job
            return self._cap
        return min(seconds, self._cap) if seconds >= 0 else self._cap

    def table(self, max_attempts: int | None) -> Table:
        """What the function says of every retry that there may be, as data that any worker can use.

        Raises the InvalidInput that says why it cannot be written down.
        """
        if max_attempts is None or max_attempts > TABLE_DELAYS_MAX + 1:
            raise InvalidInput(
                "a custom backoff is code, and goes with the job as a table of its delays: give it "
                f"max_attempts of {TABLE_DELAYS_MAX + 1} or less, not {max_attempts or 'unlimited'}; "
                f"{validation.UNCHANGED}"
            )
        return Table(tuple(self._written(failures) for failures in range(1, max_attempts)))

    def _written(self, failures: int) -> float:
        call = f"the custom backoff for retry {failures}"
        try:
            seconds = float(self._function(failures, self._initial, self._cap))
        except Exception as error:
            raise InvalidInput(
                f"{call} raised {error_text.told(error)}; {validation.UNCHANGED}"
            ) from error
        if not seconds >= 0:
            raise InvalidInput(f"{call} is {seconds}, not 0 or more; {validation.UNCHANGED}")
        return min(seconds, self._cap)


StoredBackoff = NoBackoff | Constant | Linear | Exponential | FullJitter | Table
Backoff = StoredBackoff | Custom

_STORED = (NoBackoff, Constant, Linear, Exponential, FullJitter, Table)

_decoder: msgspec.json.Decoder[StoredBackoff] = msgspec.json.Decoder(StoredBackoff)


def doubling(first: float, longest: float) -> Iterator[float]:
    """Seconds to wait between one try and the next: each twice the one before, up to the longest.

    For whoever tries again within one call. Without jitter: whoever may come with many others adds it.
    """
    while True:
        yield min(first, longest)
        first *= 2


def check(backoff: object, what: str) -> StoredBackoff:
    """One that can be stored with a job, so that whoever runs it computes the same."""
    if isinstance(backoff, Custom):
        raise InvalidInput(
            "a custom backoff is code and cannot be stored with a job: "
            "put it into the queue's policy, or give the job what it says with `table(max_attempts)`; "
            f"{validation.UNCHANGED}"
        )
    if (
        type(backoff) not in _STORED
    ):  # also no class derived from one: it would come back as its base
        raise InvalidInput(
            f"{what} is {validation.told(backoff)}, not a backoff: write Exponential(initial=1, cap=3600) or "
            f"Constant(5) of headrace.retry; how often is for max_attempts to say; {validation.UNCHANGED}"
        )
    return backoff  # type: ignore[return-value]  # by its type


def encode(backoff: StoredBackoff) -> bytes:
    return msgspec.json.encode(backoff)


def decode(encoded: bytes) -> StoredBackoff:
    """Raises InvalidInput for what is no backoff that this version knows."""
    try:
        return _decoder.decode(encoded)
    except msgspec.DecodeError as error:
        raise InvalidInput(f"a stored backoff cannot be read: {error}") from error


def _spread(seconds: float, draw: float, *, jitter: bool) -> float:
    """draw 0 → -10 %, 0.5 → exact, just under 1 → +10 %."""
    return seconds * (1.0 + JITTER * (2.0 * draw - 1.0)) if jitter else seconds
