"""What the server shows at /."""

from __future__ import annotations

import re

from tests.server.serving import Api, serving

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def test_a_browser_is_led_to_the_console(api: Api) -> None:
    page = api.get("/", headers=BROWSER)

    # Relative, so that it leads there behind a proxy that adds a prefix.
    assert (page.status_code, page.headers["location"]) == (303, "console/")
    assert api.get("/console/", headers=BROWSER).status_code == 200


def test_without_a_console_a_browser_gets_a_page_whose_links_lead_somewhere(url: str) -> None:
    with serving(url, console="off") as api:
        page = api.get("/", headers=BROWSER)
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert page.headers["content-security-policy"] == "default-src 'none'"
        links = re.findall('href="([^"]+)"', page.text)
        assert "/api/openapi.json" in links
        for link in links:
            assert api.get(link).status_code == 200, link
        assert api.get("/console/").status_code == 404


def test_a_program_gets_the_same_as_json(api: Api) -> None:
    listed = api.data("GET", "/")
    assert {"path": "/health", "about": "whether requests can be served"} in listed
    assert all(api.get(each["path"]).status_code == 200 for each in listed)
