"""A local server that answers as a model hub does: listings, redirects to content, ranges,
refusals, and what goes wrong on the way."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote, urlsplit


@dataclass
class HubStandIn:
    """Serves ``folder/owner/name`` at the revisions in ``revisions``; use it as a context."""

    folder: Path
    revisions: dict[str, str]  # repository → its one revision
    gated: set[str] = field(default_factory=set)
    forbidden: set[str] = field(default_factory=set)
    hidden: set[str] = field(default_factory=set)  # files that are not there
    cut: Counter[str] = field(default_factory=Counter)  # file → how often it breaks off
    damaged: Counter[str] = field(default_factory=Counter)  # file → how often it comes damaged
    requests: list[tuple[str, str, str]] = field(default_factory=list)  # method, path, range

    def __enter__(self) -> Self:
        handler = type("Handler", (_Handler,), {"hub": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def fetched(self) -> list[str]:
        """Paths whose content was asked for, in order."""
        return [path for method, path, _ in self.requests if method == "GET" and "/cdn/" in path]


def commit(repo: str, revision: str) -> str:
    """A revision's commit: itself if it is one."""
    if re.fullmatch("[0-9a-f]{40}", revision):
        return revision
    return hashlib.sha1(f"{repo}@{revision}".encode()).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: HubStandIn

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.requests.append((self.command, path, self.headers.get("Range", "")))
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/revision/(.+)", path):
            self.listing(*found.groups())
        elif found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            self.resolve(*found.groups())
        elif found := re.fullmatch(r"/cdn/([^/]+/[^/]+)/(.+)", path):
            self.content(*found.groups())
        else:
            self.refuse(404, "")

    def refused(self, repo: str, revision: str) -> bool:
        """Whether the repository cannot be read, which is then said."""
        known = self.hub.revisions.get(repo)
        if known is None:
            self.refuse(401, "RepoNotFound")
        elif repo in self.hub.gated:
            self.refuse(401, "GatedRepo")
        elif repo in self.hub.forbidden:
            self.refuse(403, "")
        elif revision not in (known, commit(repo, known)):
            self.refuse(404, "RevisionNotFound")
        else:
            return False
        return True

    def listing(self, repo: str, revision: str) -> None:
        if self.refused(repo, revision):
            return
        folder = self.hub.folder / repo
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        siblings = [
            {"rfilename": name, "size": path.stat().st_size}
            for path in files
            if (name := path.relative_to(folder).as_posix()) not in self.hub.hidden
        ]
        body = {"id": repo, "sha": commit(repo, revision), "siblings": siblings}
        content = json.dumps(body).encode()
        self.reply(200, {"Content-Type": "application/json"}, content)

    def resolve(self, repo: str, revision: str, name: str) -> None:
        """As for large files: a redirect that carries what is to be known of the content."""
        if self.refused(repo, revision):
            return
        path = self.hub.folder / repo / name
        if not path.is_file() or name in self.hub.hidden:
            return self.refuse(404, "EntryNotFound", {"X-Repo-Commit": commit(repo, revision)})
        headers = {
            "X-Repo-Commit": commit(repo, revision),
            "X-Linked-Etag": f'"{hashlib.sha256(path.read_bytes()).hexdigest()}"',
            "X-Linked-Size": str(path.stat().st_size),
            "Location": f"{self.hub.url.replace('127.0.0.1', 'localhost')}/cdn/{repo}/{name}",
        }
        self.reply(302, headers, b"")

    def content(self, repo: str, name: str) -> None:
        content = (self.hub.folder / repo / name).read_bytes()
        if self.hub.damaged[name] > 0:
            self.hub.damaged[name] -= 1
            content = b"\xff" * len(content)
        start = int(re.sub(r"\D", "", self.headers.get("Range", "0")))
        headers = {"Accept-Ranges": "bytes"}
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        cut = self.hub.cut[name] > 0
        self.hub.cut[name] -= cut
        self.reply(206 if start else 200, headers, content[start:], cut=cut)

    def refuse(self, status: int, code: str, headers: dict[str, str] | None = None) -> None:
        self.reply(status, {"X-Error-Code": code, **(headers or {})}, b"")

    def reply(
        self, status: int, headers: dict[str, str], content: bytes, *, cut: bool = False
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Connection", "close")  # none outlives the server
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content[: len(content) * 3 // 4] if cut else content)
