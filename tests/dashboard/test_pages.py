"""Every page: that it is there, under any prefix and without scripts; what it says; who may see it."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from headrace.clock import ManualClock
from headrace.connect import connect
from headrace.dashboard import pages, rendering
from headrace.dashboard.rendering import POLICY
from headrace.errors import StaleToken
from headrace.limits import QueueLimits
from headrace.manager import Completed, JobManager
from headrace.model import Job, State
from headrace.schedules import Every
from headrace.server import create_app
from headrace.spec import JobSpec
from headrace.tokens import Scope
from tests.dashboard.conftest import Dashboard, Markup

HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>'",
    "a/b?c#d%2F..",
    "שלום مرحبا",
    "x" * 128,
)
LONG = "y" * 1_000_000


async def fill(manager: JobManager) -> dict[str, str]:
    """A job in most of its states; their ids by what they are."""
    ids: dict[str, str] = {}

    async def one(name: str, **how: Any) -> Any:
        job = (await manager.submit(JobSpec(type=name, **how))).job
        ids[name] = job.id
        return job

    await one("waits", queue="mail", payload={"n": 12345678901234567890123})
    await one("later", delay_seconds=3600)
    await one("fails", queue="bad", max_attempts=1)
    await one("works", queue="busy")
    await one("done", queue="quick")
    await one("child", after=[ids["waits"]])
    (fails,) = await manager.claim("worker-1", queues=["bad"])
    await manager.fail(fails.id, fails.token, ValueError("no customer 'x' in 17"))
    (works,) = await manager.claim("worker-1", queues=["busy"])
    await manager.progress(works.id, works.token or "", 0.5, "half way")
    (done,) = await manager.claim("worker-1", queues=["quick"])
    await manager.complete(done.id, done.token, {"ok": True})
    await manager.submit_batch(
        [JobSpec(type="member") for _ in range(8)], JobSpec(type="last"), batch_id="gallery"
    )
    await manager.schedule("every-hour", Every(3600), JobSpec(type="hourly"))
    await manager.set_limits("busy", QueueLimits(concurrency=3))
    await manager.pause("mail")
    await manager.roll_up()
    return ids


PLACES = (
    *("/", "/jobs", "/jobs?state=dead&state=failed", "/errors", "/queues", "/queue?name=busy"),
    *("/queue?name=mail", "/workers", "/worker?name=worker-1", "/schedules", "/batches"),
    *("/batch?id=gallery", "/limits", "/limits?queue=busy", "/history", "/history?range=30d"),
    *("/bulk", "/bulk/new?act=redrive&state=dead", "/bulk/new?act=cancel&queue=mail", "/audit"),
    *("/system", "/tokens", "/search?q=nothing-like-it", "/sign-in"),
)


@pytest.mark.parametrize("place", PLACES)
async def test_it_is_there_and_keeps_the_strictest_policy(dashboard: Dashboard, place: str) -> None:
    await fill(dashboard.manager)
    answer = await dashboard.open_to_all().get(place)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-security-policy"] == POLICY
    page = Markup(answer.text)
    assert [one for one in page.all("script") if "src" not in one] == []
    assert not [one for _, one in page.elements if "style" in one]
    assert not [name for _, one in page.elements for name in one if name.startswith("on")]
    outside = re.findall(r'(?:src|href|action)="(?:https?:)?//', answer.text)
    assert outside == []
    assert len(page.all("h1")) == 1
    assert all(one.get("aria-label") for one in page.all("svg") if one.get("role") == "img")


@pytest.mark.parametrize("place", PLACES)
async def test_the_same_question_twice_is_answered_by_not_modified(
    dashboard: Dashboard, place: str
) -> None:
    await fill(dashboard.manager)
    browser = dashboard.open_to_all()
    first = await browser.get(place, headers={"Headrace-Fragment": "main"})
    assert first.text.lstrip().startswith("<main")
    assert "<html" not in first.text
    same = {"If-None-Match": first.headers["etag"], "Headrace-Fragment": "main"}
    assert (await browser.get(place, headers=same)).status_code in (200, 304)


async def test_a_list_that_did_not_change_costs_no_bytes(dashboard: Dashboard) -> None:
    await fill(dashboard.manager)
    browser = dashboard.open_to_all()
    ask = {"Headrace-Fragment": "main"}
    tag = (await browser.get("/limits", headers=ask)).headers["etag"]
    again = await browser.get("/limits", headers={**ask, "If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")


async def test_every_state_of_a_job_has_its_page(dashboard: Dashboard) -> None:
    ids = await fill(dashboard.manager)
    browser = dashboard.open_to_all()
    expected = {
        "waits": "queue mail is paused",
        "later": "it is due at",
        "fails": "no customer 'x' in 17",
        "works": "half way",
        "done": '"ok": true',
        "child": "Dependencies",
    }
    for name, said in expected.items():
        answer = await browser.get("/job", params={"id": ids[name]})
        assert answer.status_code == 200
        assert said in Markup(answer.text).text, name


async def test_numbers_are_never_rounded(dashboard: Dashboard) -> None:
    ids = await fill(dashboard.manager)
    answer = await dashboard.open_to_all().get("/job", params={"id": ids["waits"]})
    assert "12345678901234567890123" in answer.text


async def test_a_job_can_be_seen_as_it_was(dashboard: Dashboard) -> None:
    ids = await fill(dashboard.manager)
    browser = dashboard.open_to_all()
    events = await dashboard.manager.events(job_id=ids["done"])
    states = []
    for event in events:
        answer = await browser.get("/job", params={"id": ids["done"], "at": event.seq})
        found = re.search(r'<h1>.*?<span class="state (\w+)"', answer.text)
        assert found is not None
        states.append(found[1])
        if event is not events[-1]:
            assert "As it was after event" in answer.text
            assert "/acts/" not in Markup(answer.text).text
            assert not [
                one for one in Markup(answer.text).all("form") if "/acts/" in (one["action"] or "")
            ]
    assert states == ["pending", "running", "completed"]


@pytest.mark.parametrize("hostile", HOSTILE)
async def test_whatever_a_name_is_made_of_it_is_text(dashboard: Dashboard, hostile: str) -> None:
    manager = dashboard.manager
    name = hostile[:200]
    job = (
        await manager.submit(
            JobSpec(
                type=name,
                queue=name,
                tags=[f"{name}=1"],
                payload={name: [name, LONG]},
                max_attempts=1,
            )
        )
    ).job
    (claimed,) = await manager.claim(name, queues=[name])
    await manager.keep_log(
        claimed.id, claimed.token or "", [{"at": name, "level": name, "text": name}]
    )
    await manager.progress(claimed.id, claimed.token or "", 0.5, name)
    await manager.fail(claimed.id, claimed.token, name, code=name)
    await manager.schedule(name, Every(3600), JobSpec(type=name, queue=name))
    await manager.set_limits(name, QueueLimits(concurrency=3, fair=True, weights={name: 2.0}))
    await manager.pause(name)
    await manager.roll_up()
    browser = dashboard.open_to_all()
    places = [
        ("/", {}),
        ("/jobs", {"queue": name}),
        ("/job", {"id": job.id}),
        ("/queue", {"name": name}),
        ("/worker", {"name": name}),
        ("/limits", {"queue": name}),
        ("/search", {"q": name + "?"}),
        *(
            (path, {})
            for path in ("/errors", "/queues", "/workers", "/schedules", "/system", "/history")
        ),
    ]
    for path, query in places:
        answer = await browser.get(path, params=query, follow_redirects=True)
        assert answer.status_code == 200, (path, answer.text[:500])
        page = Markup(answer.text)
        assert [one for one in page.all("script") if "src" not in one] == []
        assert not [one for one in page.all("img") if one.get("src") == "x"]
        assert not [n for _, one in page.elements for n in one if n.startswith("on")]
        assert name in answer.text or name in "".join(page.words) or path in ("/system", "/history")
        assert len(answer.content) < 200_000, path
        for href in page.links():
            if href.startswith("/job?"):
                assert (await browser.get(href)).status_code == 200
                break
    queue_links = [
        one
        for one in Markup((await browser.get("/queues")).text).links()
        if one.startswith("/queue?")
    ]
    shown = Markup((await browser.get(queue_links[0])).text)
    assert name in "".join(shown.words)


async def test_the_beginning_of_a_large_payload_and_a_link_to_all_of_it(
    dashboard: Dashboard,
) -> None:
    job = (await dashboard.manager.submit(JobSpec(type="large", payload=LONG[:900_000]))).job
    browser = dashboard.open_to_all()
    page = Markup((await browser.get("/job", params={"id": job.id})).text)
    (href,) = (one for one in page.links() if one.startswith("/content?"))
    whole = await browser.get(href)
    assert whole.headers["content-type"].startswith("text/plain")
    assert json.loads(whole.text) == LONG[:900_000]


async def test_it_stands_under_any_prefix(dashboard: Dashboard) -> None:
    await fill(dashboard.manager)
    inner = create_app(dashboard.manager, open_to_all=True, pages=pages)
    outer = Starlette(routes=[Mount("/ops/jobs", app=inner)])
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(outer), base_url="http://localhost"
    ) as browser:
        first = await browser.get("/ops/jobs/")
        assert first.status_code == 200
        page = Markup(first.text)
        ours = [*page.links(), *(one["src"] or "" for one in page.all("script"))]
        assert ours
        assert all(one.startswith(("/ops/jobs/", "#")) for one in ours), ours
        for asset in (one["src"] or "" for one in page.all("script")):
            assert (await browser.get(asset)).status_code == 200
        done = await browser.post("/ops/jobs/acts/pause", data={"queue": "busy"})
        assert done.headers["location"].startswith("/ops/jobs/queue?name=busy")


async def test_scripts_and_styles_are_kept_for_good_under_their_hash(dashboard: Dashboard) -> None:
    browser = dashboard.open_to_all()
    page = Markup((await browser.get("/")).text)
    (sheet,) = (one["href"] or "" for one in page.all("link") if one["rel"] == "stylesheet")
    answer = await browser.get(sheet)
    assert "immutable" in answer.headers["cache-control"]
    version = sheet.split("/")[-2]
    old = await browser.get(sheet.replace(version, "0" * len(version)))
    assert (old.status_code, old.headers["cache-control"]) == (200, "no-store")
    assert (await browser.get(sheet.replace("dashboard.css", "../charts.py"))).status_code == 404


async def test_a_page_that_is_not_there_says_so(dashboard: Dashboard) -> None:
    browser = dashboard.open_to_all()
    for place in ("/nowhere", "/job?id=unknown", "/batch?id=unknown", "/acts/nothing"):
        assert (await browser.get(place)).status_code == 404
    wrong = await browser.get("/jobs?since=yesterday")
    assert (wrong.status_code, "neither a time" in wrong.text) == (400, True)
    assert (await browser.get("/jobs?cursor=wrong")).status_code == 400


async def test_a_store_that_is_away_has_a_page_of_its_own(dashboard: Dashboard) -> None:
    browser = dashboard.open_to_all()
    await dashboard.manager.store.close()
    answer = await browser.get("/jobs")
    assert answer.status_code == 503
    assert answer.headers["content-security-policy"] == POLICY
    assert "The store is away" in answer.text
    assert 'http-equiv="refresh"' in answer.text


# --- rights ---------------------------------------------------------------------------------------


async def test_without_a_token_there_is_only_the_way_in(dashboard: Dashboard) -> None:
    await fill(dashboard.manager)
    browser = dashboard.unknown()
    for place in (*PLACES, "/find?q=x", "/changes", "/content?id=x&part=result"):
        answer = await browser.get(place)
        if place == "/sign-in":
            assert answer.status_code == 200
        else:
            assert answer.status_code == 303
            assert answer.headers["location"].startswith("/sign-in")
            assert not answer.content
    assert (await browser.post("/acts/pause", data={"queue": "busy"})).status_code == 303
    assert [one.queue for one in await dashboard.manager.pauses()] == ["mail"]


async def test_signing_in_leads_back_and_nowhere_else(dashboard: Dashboard) -> None:
    token = await dashboard.manager.create_token("me", [Scope.READ])
    browser = dashboard.unknown()
    for back, place in (
        ("/queues", "/queues"),
        ("//evil.example/", "/"),
        ("https://evil.example/", "/"),
        ("/\\evil.example/", "/"),
    ):
        answer = await browser.post("/sign-in", params={"back": back}, data={"token": token.secret})
        assert (answer.status_code, answer.headers["location"]) == (303, place)
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert (await browser.get("/queues")).status_code == 200
    left = await browser.post("/sign-out")
    assert left.status_code == 303
    assert (await browser.get("/queues")).status_code == 303


async def test_whoever_guesses_tokens_has_to_wait(dashboard: Dashboard) -> None:
    browser = dashboard.unknown()
    codes = [
        (await browser.post("/sign-in", data={"token": f"hdr_{number}"})).status_code
        for number in range(40)
    ]
    assert codes[0] == 401
    assert codes[-1] == 429
    elsewhere = {"Sec-Fetch-Site": "cross-site"}
    assert (await browser.post("/sign-out", headers=elsewhere)).status_code == 403


async def test_a_reader_sees_no_contents_and_no_acts(dashboard: Dashboard) -> None:
    ids = await fill(dashboard.manager)
    browser = await dashboard.signed_in(Scope.READ)
    for place in (
        "/",
        "/errors",
        "/jobs?state=dead",
        f"/job?id={ids['fails']}",
        f"/job?id={ids['waits']}",
    ):
        answer = await browser.get(place)
        assert answer.status_code == 200
        assert "no customer" not in answer.text
        assert "12345678901234567890123" not in answer.text
        posts = [one for one in Markup(answer.text).all("form") if one.get("method") == "post"]
        assert [one["action"] for one in posts] == ["/sign-out"]
    for name in ("pause", "cancel", "redrive", "delete", "limits", "revoke-token", "selected"):
        refused = await browser.post(f"/acts/{name}", data={"queue": "busy", "id": ids["waits"]})
        assert refused.status_code == 403, name
    assert (await browser.get(f"/content?id={ids['waits']}&part=arguments")).status_code == 403
    assert (await browser.get("/tokens")).status_code == 403


async def test_one_tenant_sees_nothing_of_another(dashboard: Dashboard) -> None:
    manager = dashboard.manager
    theirs = (
        await manager.submit(JobSpec(type="secret-type", queue="secret-queue", tenant="b"))
    ).job
    await manager.submit(JobSpec(type="own", tenant="a"))
    await manager.scoped("b").schedule("secret-schedule", Every(60), JobSpec(type="secret-type"))
    await manager.announce("secret-worker")
    await manager.roll_up()
    browser = await dashboard.signed_in(tenant="a")
    for place in PLACES:
        if place in ("/tokens", "/batch?id=gallery"):
            continue
        answer = await browser.get(place)
        assert answer.status_code == 200, place
        assert "secret" not in answer.text.replace("&", ""), place
        assert (await browser.get(place, params={"tenant": "b"})).text.count("secret-") == 0
    for place in (f"/job?id={theirs.id}", f"/content?id={theirs.id}&part=arguments"):
        assert (await browser.get(place)).status_code == 404
    for name in ("cancel", "redrive", "delete", "reschedule", "update"):
        answer = await browser.post(f"/acts/{name}", data={"id": theirs.id, "priority": "high"})
        assert answer.status_code == 404, name
    assert (await manager.get(theirs.id)).version == theirs.version


async def test_an_operator_looks_at_one_tenant(dashboard: Dashboard) -> None:
    for tenant in ("a", "b"):
        await dashboard.manager.submit(JobSpec(type=f"of-{tenant}", tenant=tenant))
    browser = dashboard.open_to_all()
    page = Markup((await browser.get("/jobs", params={"tenant": "a"})).text)
    assert "of-a" in page.text
    assert "of-b" not in page.text
    assert all("tenant=a" in one for one in page.links() if one.startswith("/job?"))


async def test_a_form_of_another_site_is_refused(dashboard: Dashboard) -> None:
    await fill(dashboard.manager)
    browser = await dashboard.signed_in()
    for headers in (
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
    ):
        answer = await browser.post("/acts/pause", data={"queue": "busy"}, headers=headers)
        assert answer.status_code == 403
    assert [one.queue for one in await dashboard.manager.pauses()] == ["mail"]
    own = {"Sec-Fetch-Site": "same-origin"}
    assert (
        await browser.post("/acts/pause", data={"queue": "busy"}, headers=own)
    ).status_code == 303


async def test_what_is_read_only_offers_no_act_and_refuses_each(dashboard: Dashboard) -> None:
    ids = await fill(dashboard.manager)
    browser = dashboard.open_to_all(read_only=True)
    page = Markup((await browser.get(f"/job?id={ids['waits']}")).text)
    assert not [one for one in page.all("form") if "/acts/" in (one["action"] or "")]
    assert (await browser.post("/acts/cancel", data={"id": ids["waits"]})).status_code == 403


# --- acts -----------------------------------------------------------------------------------------


async def test_every_act_can_be_done_by_a_plain_form(dashboard: Dashboard) -> None:
    ids = await fill(dashboard.manager)
    manager = dashboard.manager
    browser = dashboard.open_to_all()

    async def act(to: str, **fields: Any) -> str:
        answer = await browser.post(f"/acts/{to}", data=fields)
        assert answer.status_code == 303, answer.text
        shown = await browser.get(answer.headers["location"])
        assert shown.status_code == 200
        said = re.search(r'id="notice">(.*?)</p>', shown.text)
        assert said is not None
        return said[1]

    assert await act("resume", queue="mail") == "Queue mail goes on."
    assert (
        await act("pause", queue="busy")
        == "Queue busy is paused: what runs goes on, nobody claims from it."
    )
    await act("update", id=ids["waits"], priority="critical", add_tag="urgent")
    assert (await manager.get(ids["waits"])).priority == 0
    await act("reschedule", id=ids["later"])
    assert (await manager.get(ids["later"])).is_due(manager.clock.now())
    await act("cancel", id=ids["later"], reason="not wanted")
    assert (await manager.get(ids["later"])).state is State.CANCELLED
    await act("redrive", id=ids["fails"])
    assert (await manager.redriven_as([ids["fails"]]))[ids["fails"]].previous_id == ids["fails"]
    await act("delete", id=ids["done"])
    assert ids["done"] not in await manager.look_up([ids["done"]])
    await act("limits", queue="busy", concurrency=5, rate="10/s", fair="yes", weights="a=2\nb=0.5")
    limits = (await manager.limits())["busy"]
    assert (limits.concurrency, str(limits.rate), dict(limits.weights)) == (
        5,
        "10/s",
        {"a": 2.0, "b": 0.5},
    )
    await act("limits", queue="busy")
    assert "busy" not in await manager.limits()
    await act("schedule", name="every-hour", of="default", what="pause")
    assert (await manager.schedules())[0].paused
    await act("schedule", name="every-hour", of="default", what="resume")
    await act("schedule", name="every-hour", of="default", what="run")
    assert len((await manager.find(types=["hourly"])).jobs) == 1
    await act("schedule", name="every-hour", of="default", what="remove")
    assert await manager.schedules() == ()
    await act("expire-worker", worker="worker-1")
    assert (await manager.get(ids["works"])).state is State.LOST
    made = await manager.create_token("old", [Scope.READ])
    await act("revoke-token", id=made.token.id)
    assert await manager.token_of(made.secret) is None


async def test_what_is_ticked_is_done_to_all_or_to_none(dashboard: Dashboard) -> None:
    manager = dashboard.manager
    jobs = [(await manager.submit(JobSpec(type="one"))).job for _ in range(3)]
    browser = dashboard.open_to_all()
    ids = [job.id for job in jobs]
    answer = await browser.post(
        "/acts/selected", data={"what": "cancel", "id": ids, "back": "/jobs?type=one"}
    )
    assert answer.headers["location"] == "/jobs?type=one&notice=cancelled&about=3+jobs"
    assert {(await manager.get(one)).state for one in ids} == {State.CANCELLED}
    waits = (await manager.submit(JobSpec(type="one"))).job
    refused = await browser.post("/acts/selected", data={"what": "delete", "id": [*ids, waits.id]})
    assert refused.status_code == 409
    assert len(await manager.look_up(ids)) == 3
    none = await browser.post("/acts/selected", data={"what": "delete", "back": "//evil.example"})
    assert none.headers["location"].startswith("/jobs?notice=nothing")


async def test_no_address_puts_words_onto_a_page(dashboard: Dashboard) -> None:
    browser = dashboard.open_to_all()
    shown = await browser.get("/", params={"notice": "Call us at 555", "about": "now"})
    assert "555" not in shown.text
    shown = await browser.get("/", params={"notice": "paused", "about": "<b>x</b>"})
    assert "&lt;b&gt;x&lt;/b&gt;" in shown.text


async def test_a_redrive_takes_changed_arguments_and_leaves_equal_ones(
    dashboard: Dashboard,
) -> None:
    manager = dashboard.manager
    browser = dashboard.open_to_all()
    made = []
    for text in ('{\r\n  "n": 12345678901234567890123\r\n}', '{"n": 98765432109876543210987}'):
        job = (
            await manager.submit(
                JobSpec(type="one", payload={"n": 12345678901234567890123}, max_attempts=1)
            )
        ).job
        (claimed,) = await manager.claim("w", types=["one"])
        await manager.fail(claimed.id, claimed.token, "no")
        answer = await browser.post("/acts/redrive", data={"id": job.id, "payload": text})
        assert answer.status_code == 303, answer.text
        heir = (await manager.redriven_as([job.id]))[job.id]
        made.append(heir.payload)
        await manager.cancel([heir.id])
    assert made == [{"n": 12345678901234567890123}, {"n": 98765432109876543210987}]
    wrong = await browser.post("/acts/redrive", data={"id": job.id, "payload": "{"})
    assert (wrong.status_code, "no JSON" in wrong.text) == (400, True)


async def test_a_group_of_errors_is_redriven_after_a_dry_run(dashboard: Dashboard) -> None:
    manager = dashboard.manager
    for number in range(30):
        await manager.submit(JobSpec(type="feed", max_attempts=1, payload=number))
    claimed = await manager.claim("w", limit=30)
    for number, job in enumerate(claimed):
        await manager.fail(job.id, job.token, f"answered {500 + number}" if number < 20 else "gone")
    browser = await dashboard.signed_in()
    page = Markup((await browser.get("/errors")).text)
    hrefs = [one for one in page.links() if one.startswith("/bulk/new?")]
    assert len(hrefs) == 2
    plan = await browser.get(hrefs[0])
    assert "20 jobs" in Markup(plan.text).text
    assert (await manager.stats()).total == 30
    fields: dict[str, Any] = {
        str(one["name"]): one["value"]
        for one in Markup(plan.text).all("input")
        if one.get("type") == "hidden" and one["name"] != "id"
    }
    answer = await browser.post("/acts/bulk", data={**fields, "rate": "1000/s"})
    assert answer.status_code == 303, answer.text
    place = answer.headers["location"]
    assert "0 done" in (await browser.get(place)).text
    while (await manager.run_bulk_acts()).next_at is not None:
        pass
    page = Markup((await browser.get(place)).text)
    assert "20 done" in page.text
    assert "20 were expected" in page.text
    assert (await manager.stats()).total == 50
    rows = Markup((await browser.get("/audit")).text).text
    assert "start_bulk" in rows
    assert "somebody" in rows


async def test_a_bulk_act_is_stopped(dashboard: Dashboard) -> None:
    manager = dashboard.manager
    for _ in range(5):
        await manager.submit(JobSpec(type="one"))
    browser = dashboard.open_to_all()
    answer = await browser.post(
        "/acts/bulk", data={"act": "cancel", "type": "one", "expected": "5"}
    )
    (begun,) = await manager.bulk_acts()
    stopped = await browser.post("/acts/stop-bulk", data={"id": begun.id})
    assert stopped.status_code == 303
    await manager.run_bulk_acts()
    assert (await manager.bulk_act(begun.id)).has_ended
    nothing = await browser.post("/acts/bulk", data={"act": "cancel"})
    assert (nothing.status_code, answer.status_code) == (400, 303)


async def test_writes_that_came_too_late_stand_with_their_attempt(dashboard: Dashboard) -> None:
    manager = dashboard.manager
    job = (await manager.submit(JobSpec(type="one"))).job
    (first,) = await manager.claim("zombie")
    await manager.expire_worker("zombie")
    (second,) = await manager.claim("second")
    with pytest.raises(StaleToken):
        await manager.complete(first.id, first.token, "too late")
    await manager.complete(second.id, second.token, "in time")
    await manager.settle([Completed(job_id=first.id, token=first.token, known=first)])
    text = Markup((await dashboard.open_to_all().get("/job", params={"id": job.id})).text).text
    assert re.search(r"zombie tried to complete, too late ?: second had it, attempt 2", text), text
    assert re.search(r"a worker tried to complete, too late ?: second had it, attempt 2", text)
    assert "STALE_TOKEN" in text


async def test_a_search_says_how_far_it_looked(dashboard: Dashboard) -> None:
    ids = await fill(dashboard.manager)
    browser = dashboard.open_to_all()
    for query, name in (
        ({"text": "12345678901234567890123"}, "waits"),
        ({"code": "ValueError"}, "fails"),
        ({"id_prefix": ids["done"][:30], "state": "completed"}, "done"),
        ({"ended_since": "1h", "state": "dead"}, "fails"),
    ):
        page = Markup((await browser.get("/jobs", params=query)).text)
        rows = [one["data-key"] for one in page.all("tr") if "data-row" in one]
        assert rows == [ids[name]], query
        assert "all there are" in page.text
    nothing = Markup((await browser.get("/jobs", params={"text": "not to be found"})).text)
    assert "No job matches." in nothing.text
    assert "Looked at" in nothing.text
    reader = await dashboard.signed_in(Scope.READ)
    assert (await reader.get("/jobs", params={"text": "1234"})).status_code == 403


async def test_the_overview_goes_back_through_the_last_hour() -> None:
    """What waited and ran at each minute, told afterwards, is what there was."""
    clock = ManualClock(datetime(2026, 11, 19, 12, 0, tzinfo=UTC))
    manager = await connect("memory:", clock=clock)
    dashboard = Dashboard(manager)
    known: list[tuple[int, int]] = []
    held: list[Job] = []
    for minute in range(8):
        await manager.submit_many(
            [JobSpec(type="one", queue="q", max_attempts=1)] * (minute % 3 + 1)
        )
        held += await manager.claim("w", limit=2, lease_seconds=3600)
        clock.advance(30)
        if minute % 2:
            job = held.pop(0)
            await manager.complete(job.id, job.token)
        if minute == 4:
            job = held.pop(0)
            await manager.fail(job.id, job.token, "no")
        clock.advance(29)
        stats = await manager.stats()
        known.append((stats.ready, stats.states[State.RUNNING]))
        clock.advance(1)
    await manager.roll_up()
    browser = dashboard.open_to_all()
    for minute, (waiting, running) in enumerate(known):
        at = f"2026-11-19T12:0{minute}:10Z"
        text = Markup((await browser.get("/", params={"at": at})).text).text
        assert f"{waiting} waiting, {running} running" in re.sub(r" ,", ",", text), minute
    assert "Queues then" not in (await browser.get("/")).text
    await dashboard.close()


async def test_those_who_were_told_of_the_same_change_share_a_rendering(
    dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But never with somebody who may see more, or less, or was told of something later."""
    made: list[str] = []
    whole = rendering._render

    def counted(*given: Any, **named: Any) -> str:
        made.append("one")
        return whole(*given, **named)

    monkeypatch.setattr(rendering, "_render", counted)
    ids = await fill(dashboard.manager)
    operator = await dashboard.signed_in()
    application = operator._transport.app  # type: ignore[attr-defined]
    token = await dashboard.manager.create_token("reader", [Scope.READ])
    reader = httpx.AsyncClient(
        transport=httpx.ASGITransport(application),
        base_url="http://localhost",
        headers={"Authorization": f"Bearer {token.secret}"},
    )
    made.clear()

    async def look(browser: httpx.AsyncClient, seen: str | None) -> str:
        headers = {"Headrace-Fragment": "main"} | ({} if seen is None else {"Headrace-Seen": seen})
        return (await browser.get("/job", params={"id": ids["fails"]}, headers=headers)).text

    first = await look(operator, "7")
    assert await look(operator, "7") == first
    assert len(made) == 1
    assert "no customer" in first
    assert "no customer" not in await look(reader, "7")
    await dashboard.manager.delete([ids["fails"]])
    assert "no customer" not in await look(operator, "8")
    assert "no customer" not in await look(operator, None)
    assert len(made) == 4
    await reader.aclose()
