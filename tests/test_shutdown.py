"""Signals to the real process: what is being spoken ends visibly cut, the engine and then the
process in good order."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from app import main
from tests.tiny import write_tiny_bundle
from tontaube.config import Settings

ROOT = Path(__file__).parents[1]
LONG = "On and on it goes. " * 2_000  # with readers that are slow it cannot be over by itself
HANGS = 60  # seconds after which something hangs


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_bundle(tmp_path_factory.mktemp("tiny")).root


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def looks(port: int, path: str) -> str:
    """The body of a 200; "" without one."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.read().decode() if answer.status == 200 else ""
    except OSError:
        return ""
    finally:
        connection.close()


def await_word(process: subprocess.Popen[str], port: int, path: str, word: str) -> None:
    while word not in looks(port, path):
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.05)


@contextmanager
def command(bundle: Path, data: Path, port: int, **more: str) -> Iterator[subprocess.Popen[str]]:
    """``python app.py``, killed at the end if need be."""
    settings = {
        "TONTAUBE_MODEL": str(bundle),
        "TONTAUBE_DATA_DIR": str(data),
        "TONTAUBE_PORT": str(port),
        "TONTAUBE_UI": "false",
        "TONTAUBE_AHEAD_SECONDS": "1",
        "TONTAUBE_MAX_STREAMS": "2",
        "OMP_NUM_THREADS": "1",
        **more,
    }
    with subprocess.Popen(
        [sys.executable, "app.py"],
        cwd=ROOT,
        env=os.environ | settings,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def speech(port: int, **wish: object) -> Iterator[http.client.HTTPConnection]:
    """A request that was sent."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HANGS)
    # A reader with hardly any buffer holds the server up wherever it is.
    with socket.socket() as connection.sock:
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.sock.settimeout(HANGS)
        connection.sock.connect(("127.0.0.1", port))
        body = {"model": "tts-1", "input": LONG, "response_format": "pcm"} | wish
        head = {"Content-Type": "application/json"}
        connection.request("POST", "/v1/audio/speech", json.dumps(body), head)
        yield connection


def test_sigterm_ends_streams_then_engine_then_process(bundle: Path, tmp_path: Path) -> None:
    port = free_port()
    with command(bundle, tmp_path, port) as process, ExitStack() as stack:
        await_word(process, port, "/ready", "ready")
        wishes = ({}, {"stream_format": "sse"})
        asked = [stack.enter_context(speech(port, **wish)) for wish in wishes]
        heard = [stack.enter_context(closing(speaking.getresponse())) for speaking in asked]
        assert all(answer.read(1_000) for answer in heard)
        waiting = stack.enter_context(speech(port))  # no place is free
        await_word(process, port, "/metrics", "tontaube_queue_depth 1.0")
        with connect(f"ws://127.0.0.1:{port}/v1/audio/speech/stream") as talk:
            talk.send('{"type":"start"}')
            assert "started" in str(talk.recv(HANGS))
            process.send_signal(signal.SIGTERM)
            with pytest.raises(ConnectionClosed) as closed:
                talk.recv(HANGS)
            assert closed.value.rcvd and closed.value.rcvd.code == 1012  # service restart
        refused = waiting.getresponse()
        assert (refused.status, refused.getheader("retry-after")) == (503, "5")
        assert json.loads(refused.read())["error"]["code"] == "server_busy"
        for cut in heard:
            with pytest.raises((http.client.IncompleteRead, ConnectionError)):
                cut.read()
        _, log = process.communicate(timeout=HANGS)
    assert process.returncode == 0, log
    # the lines of what was cut off may still follow
    assert "Finished server process" in log.split("tontaube: stopped")[0], log
    assert "tontaube: stopped" in log
    assert "Traceback" not in log
    assert "POST /v1/audio/speech HTTP" not in log  # uvicorn's own access log


def test_sigint_while_warming_up(bundle: Path, tmp_path: Path) -> None:
    port = free_port()
    with command(bundle, tmp_path, port) as process:
        await_word(process, port, "/health", "ok")
        process.send_signal(signal.SIGINT)
        _, log = process.communicate(timeout=HANGS)
    assert process.returncode == 0, log
    assert log.rstrip().endswith("stopped") and "Traceback" not in log, log


def test_help_names_every_setting(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert all(f"TONTAUBE_{name.upper()}=" in shown for name in Settings.model_fields)
    with pytest.raises(SystemExit) as ended:
        main(["--port", "1"])  # not silently ignored
    assert ended.value.code == 2


def test_a_port_that_is_taken_is_an_error_in_words(bundle: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        with command(bundle, tmp_path, taken.getsockname()[1]) as process:
            _, log = process.communicate(timeout=HANGS)
    assert process.returncode not in (0, None)
    assert "address already in use" in log and "Traceback" not in log, log
