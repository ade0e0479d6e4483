"""Nothing but the page itself gets an answer: Host, Origin, token, paths, sizes, and how it ends."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from gramian.explore import server, wire
from tests.explore.conftest import Running
from tests.explore.test_wire import GOOD


def get(running: Running, path: str, method: str = "GET", **headers: str) -> tuple[int, str, dict[str, str]]:
    """As it is: http.client changes nothing about a path."""
    line = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
    line.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in {"Host": f"127.0.0.1:{running.port}", **headers}.items():
        line.putheader(name, value)
    line.endheaders()
    reply = line.getresponse()
    found = reply.status, reply.read().decode(errors="replace"), dict(reply.getheaders())
    line.close()
    return found


def page(running: Running, origin: str | None = "", token: str | None = None, **settings):
    """A websocket of the page, or of somebody else."""
    own = f"http://127.0.0.1:{running.port}" if origin == "" else origin
    address = f"ws://127.0.0.1:{running.port}/{running.token if token is None else token}/ws"
    return connect(address, origin=own, compression=None, max_size=None, open_timeout=30, **settings)


def test_the_page_is_served_with_its_policy(running):
    status, text, headers = get(running, f"/{running.token}/")
    assert status == 200
    assert 'data-library="here"' in text
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers
    status, text, headers = get(running, f"/{running.token}/math/kernels.mjs")
    assert (status, headers["content-type"].split(";")[0]) == (200, "text/javascript")
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost.evil.example:{port}",
        "127.0.0.1:{port}.evil",
        "[::1]:{port}",
        "0.0.0.0:{port}",
        "",
    ],
)
def test_another_host_is_refused(running, host):
    status, text, _ = get(running, f"/{running.token}/", Host=host.format(port=running.port))
    assert status in (400, 403)
    assert "<html" not in text


def test_localhost_is_this_host(running):
    assert get(running, f"/{running.token}/", Host=f"localhost:{running.port}")[0] == 200


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "https://127.0.0.1:{port}",
        "http://127.0.0.1",
        "http://127.0.0.1:1",
        "http://127.0.0.1:{port}.evil.example",
    ],
)
def test_another_origin_is_refused(running, origin):
    own = origin.format(port=running.port)
    assert get(running, f"/{running.token}/", Origin=own)[0] == 403
    with pytest.raises(InvalidStatus) as refused, page(running, origin=own):
        pass
    assert refused.value.response.status_code == 403


def test_a_websocket_without_an_origin_is_refused(running):
    with pytest.raises(InvalidStatus), page(running, origin=None):
        pass


def test_a_websocket_of_another_host_is_refused(running):
    with pytest.raises(InvalidStatus), page(running, additional_headers={"Host": "evil.example"}):
        pass


@pytest.mark.parametrize("token", ["", "x", "../", "%00", "A" * 43])
def test_without_the_token_nothing_is_told(running, token):
    for path in (f"/{token}", f"/{token}/", f"/{token}/index.html", f"/{token}/math/kernels.mjs"):
        status, text, _ = get(running, path)
        assert status == 403
        assert running.token not in text
        assert "<html" not in text
    with pytest.raises(InvalidStatus), page(running, token=token):
        pass


@pytest.mark.parametrize(
    "path",
    [
        "../server.py",
        "..%2fserver.py",
        "%2e%2e/server.py",
        "math/../../server.py",
        "/etc/passwd",
        "//etc/passwd",
        "....//server.py",
        "..\\server.py",
        "math",
        "math/",
        "server.py",
        "index.html%00.mjs",
        "style.css/",
        "__init__.py",
    ],
)
def test_no_path_leads_out(running, path):
    status, text, _ = get(running, f"/{running.token}/{path}")
    assert status in (403, 404)
    assert "import" not in text
    assert "root:" not in text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"])
def test_a_page_is_read_and_nothing_else(running, method):
    assert get(running, f"/{running.token}/", method=method)[0] in (400, 405)


def test_a_page_asks_and_is_answered(running):
    with page(running) as own:
        hello = json.loads(own.recv(30))["hello"]
        assert hello["table"] is None
        own.send(json.dumps(GOOD))
        said = json.loads(own.recv(60))
        assert said["id"] == GOOD["id"]
        assert said["answer"]["kind"] == "exact"
        for bad in (
            "no json",
            "[]",
            json.dumps({**GOOD, "ask": "__class__"}),
            json.dumps({**GOOD, "grid": [["a"]]}),
        ):
            own.send(bad)
            assert "The page has sent" in json.loads(own.recv(30))["error"]
        own.send(json.dumps(GOOD))  # it lives
        assert "answer" in json.loads(own.recv(60))


def test_a_message_that_is_too_long_ends_the_page(running):
    with page(running) as own:
        own.recv(30)
        own.send("x" * (wire.MOST_BYTES + 1))
        with pytest.raises(ConnectionClosed) as end:
            own.recv(30)
        assert end.value.rcvd.code == 1009
    with page(running) as own:
        assert "hello" in own.recv(30)


def test_bytes_end_the_page(running):
    with page(running) as own:
        own.recv(30)
        own.send(b"\x00\x01")
        with pytest.raises(ConnectionClosed):
            own.recv(30)


def test_so_many_pages_and_no_more(running):
    with contextlib.ExitStack() as pages:
        for _ in range(server.MOST_PAGES):
            pages.enter_context(page(running)).recv(30)
        one_more = pages.enter_context(page(running))
        with pytest.raises(ConnectionClosed) as end:
            one_more.recv(30)
        assert end.value.rcvd.code == server.TOO_MANY


def test_it_listens_on_loopback_alone():
    own = server.listening_socket(0)
    try:
        assert own.getsockname()[0] == "127.0.0.1"
        assert own.family == socket.AF_INET
        own.listen()
        with pytest.raises(server.InputError, match="cannot be used"):
            server.listening_socket(own.getsockname()[1])
    finally:
        own.close()


def test_ctrl_c_ends_it_with_a_page_open(running):
    explorer = Running("--port", "0")
    assert len(explorer.token) == 43  # 256 bits,
    assert explorer.token != running.token  # others each time
    with page(explorer) as own:
        own.recv(30)
        code, said = explorer.end()
    assert code == 0
    assert "has ended" in said
    assert "Traceback" not in said
