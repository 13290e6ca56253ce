"""Every index of a store, compared with what its rows say it must be."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from headrace.clock import to_us
from headrace.model import CLAIMABLE, LEASED, TERMINAL, Job
from headrace.stores.base import FIND_LIMIT_MAX, Query
from headrace.stores.redis import RedisStore
from headrace.stores.redis.codes import STATE_CODE
from headrace.stores.redis.lanes import pack_lane
from headrace.stores.redis.rows import handle_of, more_of

BLOCK_JOBS = 256  # as in blocks.lua
Index = dict[str, dict[str, float]]


async def check(store: RedisStore) -> None:
    """Raises AssertionError at the first index that differs. Nobody may write meanwhile."""
    jobs = await _all_jobs(store)
    lanes = {
        names.decode(): int(number)
        for names, number in _pairs(await store._server.read("HGETALL", _key(store, "lane_ids")))
    }
    names = await _names(store)
    expected = _indexes(jobs, lanes)
    prefixes = ("line:", "lines:", "queues:", "finished:", "tag:", "spawned:")
    listed = {name for name in names if name.startswith(prefixes)}
    listed |= names & {"leases", "expiry", "blocked", "jobs"}
    assert listed == expected.keys()
    for name, members in expected.items():
        assert await _sorted_set(store, name) == members, name
    tagged = {name for name in names if name.startswith("tagged:")}
    assert {name: await _set(store, name) for name in tagged} == _tagged(jobs, lanes)
    counts, failures = _counts(jobs, lanes)
    assert await _hash(store, "counts") == counts
    assert await _hash(store, "failures") == failures
    for name in ("rows", "bodies"):
        fields = await store._server.read("HKEYS", _key(store, name))
        assert {field.decode() for field in fields} == {handle_of(job.seq) for job in jobs}, name
    await _check_blocks(store, jobs, lanes)
    apart = {f"{handle_of(job.seq)}{letter}" for job in jobs for letter, _ in more_of(job)}
    fields = await store._server.read("HKEYS", _key(store, "more"))
    assert {field.decode() for field in fields} == apart, "more"


async def _check_blocks(store: RedisStore, jobs: list[Job], lanes: dict[str, int]) -> None:
    """Each block counts its jobs exactly, and names at least their lanes and workers."""
    flat = await store._server.read("HGETALL", _key(store, "blocks"))
    entries = {int(block): entry.decode() for block, entry in _pairs(flat)}
    unlisted = int(await store._server.read("HGET", _key(store, "sequences"), "unlisted") or 0)
    listed = [job for job in jobs if job.seq // BLOCK_JOBS >= unlisted]
    counted = Counter(job.seq // BLOCK_JOBS for job in listed)
    assert {block: int(entry.split(" ")[0]) for block, entry in entries.items()} == counted
    for job in listed:
        head, *workers = entries[job.seq // BLOCK_JOBS].split("\n")
        assert _line(job, lanes).partition(":")[0] in head.split(" ")[1:], job.id
        assert job.assignee is None or {job.assignee, "*"} & set(workers), job.id


def _indexes(jobs: list[Job], lanes: dict[str, int]) -> Index:
    found: Index = defaultdict(dict)
    for job in jobs:
        handle, line = handle_of(job.seq), _line(job, lanes)
        found["jobs"][job.id] = job.seq
        for tag in job.tags:
            found[f"tag:{tag}"][handle] = job.seq
        if job.parent_id is not None:
            found[f"spawned:{job.parent_id}"][handle] = job.seq
        if job.expires_at is not None and job.state not in TERMINAL:
            found["expiry"][handle] = to_us(job.expires_at)
        if job.state in CLAIMABLE:
            run_at = to_us(job.run_at)
            for name in (f"line:{line}", *(f"line:{line}:{tag}" for tag in job.tags)):
                found[name][handle] = run_at
        elif job.state in LEASED:
            until = job.lease_until
            found["leases"][handle] = float("inf") if until is None else to_us(until)
        elif job.state in TERMINAL:
            assert job.finalized_at is not None
            found[f"finished:{STATE_CODE[job.state]}"][handle] = to_us(job.finalized_at)
        else:
            found["blocked"][handle] = job.seq
    _list_lines(found, jobs, lanes)
    return dict(found)


def _list_lines(found: Index, jobs: list[Job], lanes: dict[str, int]) -> None:
    """Each line where lines are listed, by its first job; each queue where those are."""
    firsts: dict[str, Job] = {}
    for job in sorted(jobs, key=lambda job: (job.run_at, job.seq)):
        if job.state in CLAIMABLE:
            firsts.setdefault(_line(job, lanes), job)
    for line, job in firsts.items():
        run_at, member = to_us(job.run_at), f"{handle_of(job.seq)}:{line}"
        for scope in (f":q:{job.queue}", f":b:{job.tenant}\n{job.queue}"):
            found[f"lines:{job.priority}{scope}"][member] = run_at
        for scope in ("", f":t:{job.tenant}"):
            queues = found[f"queues:{job.priority}{scope}"]
            queues[job.queue] = min(run_at, queues.get(job.queue, run_at))


def _tagged(jobs: list[Job], lanes: dict[str, int]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for job in jobs:
        if job.state in CLAIMABLE:
            for tag in job.tags:
                found[f"tagged:{tag}"].add(_line(job, lanes))
    return dict(found)


def _counts(jobs: list[Job], lanes: dict[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    counts: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    for job in jobs:
        counts[_line(job, lanes)] += 1
        failures[_line(job, lanes)] += job.failures
    return dict(counts), {line: number for line, number in failures.items() if number}


def _line(job: Job, lanes: dict[str, int]) -> str:
    names = pack_lane(job.tenant, job.queue, job.type, job.priority, job.limit_key)
    return f"{lanes[names]}:{STATE_CODE[job.state]}"


async def _all_jobs(store: RedisStore) -> list[Job]:
    jobs: list[Job] = []
    while page := await store.find(
        Query(limit=FIND_LIMIT_MAX, after_seq=jobs[-1].seq if jobs else None)
    ):
        jobs += page
    return jobs


def _key(store: RedisStore, name: str) -> str:
    return store._server.keys.of(name)


async def _names(store: RedisStore) -> set[str]:
    """The names of all keys of the store, without the root."""
    start = f"{store._server.keys.root}:".encode()
    names: set[str] = set()
    cursor = b"0"
    while True:
        cursor, page = await store._server.read("SCAN", cursor, "COUNT", 1000)
        names |= {key.removeprefix(start).decode() for key in page if key.startswith(start)}
        if cursor == b"0":
            return names


async def _sorted_set(store: RedisStore, name: str) -> dict[str, float]:
    flat = await store._server.read("ZRANGE", _key(store, name), 0, -1, "WITHSCORES")
    return {member.decode(): float(score) for member, score in _pairs(flat)}


async def _set(store: RedisStore, name: str) -> set[str]:
    return {member.decode() for member in await store._server.read("SMEMBERS", _key(store, name))}


async def _hash(store: RedisStore, name: str) -> dict[str, int]:
    flat = await store._server.read("HGETALL", _key(store, name))
    return {field.decode(): int(value) for field, value in _pairs(flat)}


def _pairs(flat: list[Any]) -> list[tuple[Any, Any]]:
    return list(zip(flat[::2], flat[1::2], strict=True))
