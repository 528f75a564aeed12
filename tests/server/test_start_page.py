"""What the server shows at /."""

from __future__ import annotations

import re

from tests.server.serving import Api


def test_a_browser_gets_a_page_whose_links_lead_somewhere(api: Api) -> None:
    page = api.get("/", headers={"accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert page.headers["content-security-policy"] == "default-src 'none'"
    links = re.findall('href="([^"]+)"', page.text)
    assert "/api/openapi.json" in links
    for link in links:
        assert api.get(link).status_code == 200, link


def test_a_program_gets_the_same_as_json(api: Api) -> None:
    listed = api.data("GET", "/")
    assert {"path": "/health", "about": "whether requests can be served"} in listed
