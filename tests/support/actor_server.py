"""A server of hosted actors on this machine, over real HTTP. It counts starts and misbehaves when a test says so."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

HOST = "127.0.0.1"


def posts(count: int, first: int = 1) -> list[dict[str, Any]]:
    """Rows as an actor writes them."""
    return [{"id": f"p{number}", "text": f"post {number}"} for number in range(first, first + count)]


class ActorServer:
    """Runs of it end at once, or after `polls` looks, with the rows that `rows` had when they started.

    Attributes:
        rows: what the next run returns.
        status: the last status of the next run.
        polls: how often the next run says that it is still running.
        start_answer: a status with which the next start is answered, although the run starts.
        dataset_answer: a body with which datasets are answered once.
        starts: how many runs were started.
    """

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.status = "SUCCEEDED"
        self.polls = 0
        self.start_answer = 201
        self.dataset_answer: bytes | None = None
        self.starts = 0
        self._runs: list[dict[str, Any]] = []
        actors = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self._answer(actors.start_answer, {"data": actors.start()})

            def do_GET(self) -> None:
                self._answer(200, actors.answer(self.path))

            def _answer(self, status: int, body: Any) -> None:
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_) -> None:
                """Tests print enough."""

        self._server = ThreadingHTTPServer((HOST, 0), Handler)
        self.url = f"http://{HOST}:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="actor-server", daemon=True)

    def start(self) -> dict[str, Any]:
        number = self.starts
        self.starts += 1
        self._runs.append({"rows": list(self.rows), "status": self.status, "polls": self.polls})
        return {"id": f"run{number}", "defaultDatasetId": f"data{number}", "status": "READY"}

    def answer(self, address: str) -> Any:
        parts = urlsplit(address)
        kind, name = parts.path.split("/")[2:4]
        run = self._runs[int(name.lstrip("rundat"))]
        if kind == "actor-runs":
            run["polls"] -= 1
            return {"data": {"id": name, "status": "RUNNING" if run["polls"] >= 0 else run["status"]}}
        if self.dataset_answer is not None:
            answer, self.dataset_answer = self.dataset_answer, None
            return answer
        asked = {key: int(values[0]) for key, values in parse_qs(parts.query).items()}
        return run["rows"][asked["offset"] : asked["offset"] + asked["limit"]]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)
