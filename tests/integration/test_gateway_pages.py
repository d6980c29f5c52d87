"""The dashboard as files, the documents of the interface, and the headers of both."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from shared.runtime.settings import Settings
from tests.integration.arena import Arena
from tests.integration.gateway import assert_problem, serving

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
def dashboard(tmp_path: Path) -> Path:
    folder = tmp_path / "dist"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>Arena</title>")
    (folder / "assets" / "index-4f2a.js").write_text("console.log(1)")
    (folder / "icon.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (tmp_path / "secret.txt").write_text("secret")
    return folder


@pytest.fixture
def built(arena: Arena, dashboard: Path) -> Settings:
    return arena.settings.model_copy(update={"dashboard_dir": dashboard})


@pytest.fixture
async def http(built: Settings) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(built) as client:
        yield client


async def test_the_dashboard_is_served_at_the_root_and_asked_for_again(
    http: httpx.AsyncClient,
) -> None:
    answer = await http.get("/")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["cache-control"] == "no-cache"
    assert "<title>Arena</title>" in answer.text
    again = await http.get("/", headers={"if-none-match": answer.headers["etag"]})
    assert again.headers["etag"] == answer.headers["etag"]


async def test_assets_are_kept_for_ever(http: httpx.AsyncClient) -> None:
    answer = await http.get("/assets/index-4f2a.js")
    assert (answer.status_code, answer.text) == (200, "console.log(1)")
    assert "javascript" in answer.headers["content-type"]
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert_problem(await http.get("/assets/index-0000.js", headers=BROWSER), 404)
    icon = await http.get("/icon.svg", headers=BROWSER)
    assert icon.headers["content-type"].startswith("image/svg")


@pytest.mark.parametrize("path", ["/scheduler/greedy", "/history", "/a/b/c?run=x", "/apia"])
async def test_a_view_of_the_dashboard_may_be_loaded_by_its_address(
    http: httpx.AsyncClient, path: str
) -> None:
    answer = await http.get(path, headers=BROWSER)
    assert (answer.status_code, "<title>Arena</title>" in answer.text) == (200, True)
    assert_problem(await http.get(path, headers={"accept": "application/json"}), 404)


@pytest.mark.parametrize("path", ["/api/nothing", "/api", "/ws", "/docs/more", "/metrics/x"])
async def test_unknown_paths_of_the_api_are_not_views(http: httpx.AsyncClient, path: str) -> None:
    assert_problem(await http.get(path, headers=BROWSER), 404)


@pytest.mark.parametrize(
    "path",
    [
        "/..%2fsecret.txt",
        "/assets/..%2f..%2fsecret.txt",
        "/assets/%2e%2e/%2e%2e/secret.txt",
        "/%2fetc%2fpasswd",
        "/assets//etc/passwd",
        "/%00",
        "/assets/" + "x" * 5000,
    ],
)
async def test_no_address_leads_out_of_the_folder(http: httpx.AsyncClient, path: str) -> None:
    assert_problem(await http.get(path), 404)
    page = await http.get(path, headers=BROWSER)
    assert page.status_code == 404 or "<title>Arena</title>" in page.text


async def test_every_response_has_the_security_headers(http: httpx.AsyncClient) -> None:
    host = f"{http.base_url.host}:{http.base_url.port}"
    for path in ("/", "/api/runs", "/api/nothing", "/docs"):
        headers = (await http.get(path)).headers
        parts = headers["content-security-policy"].split("; ")
        policy = {name: rest for name, _, rest in (part.partition(" ") for part in parts)}
        assert policy["default-src"] == "'self'"
        assert policy["frame-ancestors"] == "'none'"
        assert policy["style-src"] == "'self' 'unsafe-inline'"
        assert policy["connect-src"] == f"'self' ws://{host} wss://{host}"
        assert ("unsafe-inline" in policy["script-src"]) == (path == "/docs")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


async def test_a_strange_host_does_not_get_into_the_policy(http: httpx.AsyncClient) -> None:
    answer = await http.get("/", headers={"host": "evil; script-src *"})
    assert "evil" not in answer.headers["content-security-policy"]


async def test_without_a_dashboard_the_root_says_what_is_here(arena: Arena) -> None:
    async with serving(arena.settings) as http:
        answer = await http.get("/", headers=BROWSER)
        assert answer.json()["status"] == "online"
        assert_problem(await http.get("/history", headers=BROWSER), 404)


@pytest.mark.parametrize("page", ["/docs", "/redoc"])
async def test_the_documents_of_the_interface_need_no_internet(
    http: httpx.AsyncClient, page: str
) -> None:
    text = (await http.get(page)).text
    scripts = re.findall(r"(?:src|href)=\"([^\"]+)\"", text)
    assert scripts
    for address in scripts:
        assert address.startswith("/"), address
        answer = await http.get(address)
        assert answer.status_code == 200, address


async def test_the_bus_is_described(http: httpx.AsyncClient) -> None:
    described = (await http.get("/asyncapi.json")).json()
    assert described == (await http.get("/asyncapi")).json()
    assert described["asyncapi"].startswith("3.")
    addresses = {channel["address"] for channel in described["channels"].values()}
    assert {"tasks.{run}", "decisions.{run}.{scheduler}", "results.{run}.{scheduler}"} <= addresses
