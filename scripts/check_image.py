"""The Dockerfile's steps without Docker: a clean virtual environment and a folder take the image's
place, the start command is run there and its health check must succeed.

``python scripts/check_image.py [--model BUNDLE] [--reuse-environment]``. System packages and users
are not made: of packages it is asked whether they exist. ``--reuse-environment`` skips ``pip
install`` and runs with the Python that runs this, which takes seconds.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import venv
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from dockerfile import Step, parse

ROOT = Path(__file__).parent.parent
_WAIT = 1_200.0  # seconds for the health check


class Image:
    """A folder in the place of an image's file system."""

    def __init__(self, root: Path, reuse: bool) -> None:
        self._root = root
        self._reuse = reuse
        self._folder = root
        self._port = _free_port()
        kept = ("HOME", "LANG", "PATH", "PIP_INDEX_URL")
        self.environment = {name: os.environ[name] for name in kept if name in os.environ}

    def inside(self, path: str) -> Path:
        """Where an absolute path of the image, or one relative to its working folder, is here."""
        return self._root / path.lstrip("/") if path.startswith("/") else self._folder / path

    def take(self, step: Step) -> None:
        """Do what the step does. Raises CalledProcessError, FileNotFoundError."""
        print(f"{step.kind} {step.text}", flush=True)
        match step.kind:
            case "ENV":
                self._set(step.variables())
            case "WORKDIR":
                self._folder = self.inside(step.text)
                self._folder.mkdir(parents=True, exist_ok=True)
            case "COPY":
                self._copy(*step.words())
            case "VOLUME":
                for path in step.words():
                    self.inside(path).mkdir(parents=True, exist_ok=True)
            case "RUN":
                self._run(step.text)

    def _set(self, variables: dict[str, str]) -> None:
        for name, value in variables.items():
            value = value.replace("$PATH", self.environment["PATH"])
            if name == "PATH":
                value = value.replace("/opt/venv", str(self.inside("/opt/venv")))
            elif name == "TONTAUBE_PORT":
                value = str(self._port)  # the image's may be taken here
            elif value.startswith("/"):
                value = str(self.inside(value))
            self.environment[name] = value

    def _copy(self, *paths: str) -> None:
        *sources, target = paths
        for source in sources:
            origin = ROOT / source
            if origin.is_dir():
                ignore = shutil.ignore_patterns("__pycache__")
                shutil.copytree(origin, self.inside(target), ignore=ignore, dirs_exist_ok=True)
            else:
                shutil.copy(origin, self.inside(target))

    def _run(self, command: str) -> None:
        if command.startswith("apt-get"):
            for package in re.search(r"--yes ([\w. -]+?) (?:&&|$)", command)[1].split():  # type: ignore[index]
                subprocess.run(["apt-cache", "show", package], check=True, capture_output=True)
        elif command.startswith("userdel"):
            print("  (users are not made here)")
        elif self._reuse:
            print("  (left out: --reuse-environment)")
        elif "-m venv" in command:
            venv.create(self.inside("/opt/venv"), with_pip=True)
        else:
            self._shell(command)

    def _shell(self, command: str) -> None:
        subprocess.run(command, shell=True, check=True, cwd=self._folder, env=self.environment)

    def start(self, command: list[str], model: Path | None) -> subprocess.Popen[bytes]:
        """The image's process."""
        environment = dict(self.environment)
        if model is not None:
            environment["TONTAUBE_MODEL"] = str(model.resolve())
        if self._reuse:
            command = [sys.executable, *command[1:]]
        return subprocess.Popen(command, cwd=self._folder, env=environment)

    def healthy(self, command: list[str]) -> bool:
        """Run the health check once."""
        python = sys.executable if self._reuse else str(self.inside("/opt/venv/bin/python"))
        words = [word.replace(":8000", f":{self._port}") for word in command[1:]]
        done = subprocess.run([python, *words], env=self.environment, capture_output=True)
        return done.returncode == 0

    def fetch(self, path: str) -> int:
        """The HTTP status of a path."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=60) as answer:
            return int(answer.status)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def check(root: Path, model: Path | None, reuse: bool) -> None:
    """Build, start, ask, stop. Raises what goes wrong."""
    steps = parse((ROOT / "Dockerfile").read_text("utf-8"))
    image = Image(root, reuse)
    for step in steps:
        image.take(step)
    last = {step.kind: step for step in steps}
    process = image.start(last["CMD"].command(), model)
    try:
        end = time.monotonic() + _WAIT
        while not image.healthy(last["HEALTHCHECK"].command()):
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit("the health check never succeeded")
            time.sleep(1)
        print("healthy")
        for path in ("/ui/", "/docs", "/metrics"):
            print(path, image.fetch(path))
    finally:
        process.terminate()
        process.wait(30)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, help="a bundle instead of the one that is shipped")
    parser.add_argument("--reuse-environment", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        check(Path(folder), options.model, options.reuse_environment)


if __name__ == "__main__":
    main()
