"""Every page in both themes and on a phone: no complaint, nothing outside, labels, headings, contrast."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

from tests.browser.conftest import Browser, Site
from tests.dashboard.test_pages import PLACES, fill

CHECK = Path(__file__).with_name("manners.js").read_text()


async def check(page: Any, place: str, wrong: dict[str, list[str]]) -> None:
    await page.goto(place)
    found = await page.evaluate(CHECK)
    if found:
        wrong[place] = found


@pytest.mark.parametrize(
    ("theme", "width"),
    [
        ("light", 1280),
        ("dark", 1280),
        ("light", 390),
        pytest.param("dark", 3840, marks=pytest.mark.long),
    ],
)
async def test_every_page_has_manners(
    site: Site, browser: Browser, theme: Literal["light", "dark"], width: int
) -> None:
    ids = await fill(site.manager)
    context = await browser.context(theme=theme, width=width)
    await context.add_init_script(
        "addEventListener('securitypolicyviolation', "
        "(e) => console.error(`policy: ${e.violatedDirective} ${e.blockedURI}`));"
    )
    page = await context.new_page()
    wrong: dict[str, list[str]] = {}
    for place in (*PLACES, *(f"/job?id={job_id}" for job_id in ids.values()), "/nowhere"):
        await check(page, site.url + place, wrong)
    assert wrong == {}


async def test_hostile_names_are_text_in_every_corner(site: Site, browser: Browser) -> None:
    hostile = "<img src=x onerror=alert(1)>\"'><script>alert(2)</script>"
    from headrace.schedules import Every
    from headrace.spec import JobSpec

    manager = site.manager
    job = (
        await manager.submit(
            JobSpec(
                type=hostile,
                queue=hostile,
                tags=[hostile],
                payload={hostile: hostile},
                max_attempts=1,
            )
        )
    ).job
    (running,) = await manager.claim(hostile)
    await manager.fail(running.id, running.token, hostile, code=hostile)
    await manager.schedule(hostile, Every(60), JobSpec(type=hostile))
    await manager.roll_up()
    page = await browser.page("/")
    for place in (
        "/",
        "/jobs",
        f"/job?id={job.id}",
        "/errors",
        "/queues",
        "/workers",
        "/schedules",
        "/history",
    ):
        await page.goto(site.url + place)
        assert await page.locator("img[src=x]").count() == 0
        assert hostile in await page.locator("main").inner_text()
    await page.keyboard.press("Control+k")
    await page.locator("#palette input").fill("onerror")
    await page.locator("#palette li").first.wait_for()
    assert hostile in await page.locator("#palette").inner_text()
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/queue?name=*")
    assert await page.locator("h1").inner_text() == hostile


async def test_a_cold_page_is_light(site: Site, browser: Browser) -> None:
    await fill(site.manager)
    sizes: dict[str, int] = {}
    context = await browser.context()
    page = await context.new_page()

    async def weigh(answer: Any) -> None:
        if "/changes" not in answer.url:
            sizes[answer.url.rsplit("/", 1)[-1]] = len(await answer.body())

    page.on("response", weigh)
    await page.goto(f"{site.url}/")
    await page.locator("#live.on").wait_for()
    await page.close()
    scripts = sum(size for name, size in sizes.items() if name.endswith(".js"))
    assert len(sizes) <= 14, sizes
    assert sizes[""] < 60_000, sizes
    assert scripts < 60_000, sizes
    assert sizes["dashboard.css"] < 32_000, sizes
