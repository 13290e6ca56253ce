"""What a manager asks of a store of anybody's: whatever comes back, its caller gets a result."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from headrace import error_text
from headrace.contracts.job_store.result import ErrorCode, MethodResult, Refused

T = TypeVar("T")


async def answer_of(asked: Coroutine[Any, Any, MethodResult[T]]) -> MethodResult[T]:
    """The store's answer; one that raises instead is told apart from one that refuses."""
    try:
        answer = await asked
    except Exception as defect:  # a store of the user's own may have any defect
        raise Refused(
            ErrorCode.STORE_FAILED,
            f"the store raised {error_text.told(defect)}; what it has written is not known",
        ) from defect
    if not isinstance(answer, MethodResult):
        raise Refused(
            ErrorCode.STORE_FAILED,
            f"the store answered {type(answer).__name__}, not a MethodResult; what it has written is "
            "not known",
        )
    return answer


async def data_of(asked: Coroutine[Any, Any, MethodResult[T]]) -> T | None:
    """What the answer brings; its error is raised, for `answers` to pass on."""
    return (await answer_of(asked)).unwrap()


async def one_of(asked: Coroutine[Any, Any, MethodResult[T]]) -> T:
    """The data of an answer that must bring some."""
    data = await data_of(asked)
    if data is None:
        raise Refused(ErrorCode.STORE_FAILED, "the store's success brings nothing to return")
    return data


async def list_of(asked: Coroutine[Any, Any, MethodResult[list[T]]]) -> list[T]:
    """The data of an answer that brings a list; none is an empty one."""
    return await data_of(asked) or []
