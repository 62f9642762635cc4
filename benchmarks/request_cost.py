"""CPU time of a request, as a multiple of that of a minimal FastAPI endpoint with the model.

    python benchmarks/request_cost.py                # small_cnn at 28 pixels, one client and 64
    python benchmarks/request_cost.py --profile 1    # where the time of a server goes

Both servers run on uvicorn with one thread of torch, in their own processes. They get the same JPEG
files in turns, so that other work on the machine affects both. The targets are 1.5 at one client
and 1.1 at 64.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from scaling_costs import processor_seconds
from serving import SERVICE, make_files, make_model

from attakit.nn.weights import save_weights

SIZE = 28
TARGETS = {1: 1.5, 64: 1.1}
MINIMAL = """
import io, sys
import numpy as np, torch, uvicorn
from fastapi import FastAPI, UploadFile
from PIL import Image
from attakit.nn.named import named_model
from attakit.nn.weights import load_weights

torch.set_num_threads(1)
model = named_model("small_cnn", classes=10, channels=1).eval()
load_weights(model, "source.safetensors")
app = FastAPI()

@app.post("/v1/predict")
def predict(files: list[UploadFile]):
    opened = [Image.open(io.BytesIO(one.file.read())).convert("L") for one in files]
    images = [np.asarray(one.resize((SIZE, SIZE)), dtype=np.float32) for one in opened]
    pixels = torch.from_numpy(np.stack(images))
    with torch.inference_mode():
        logits = model((pixels[:, None] / 255 - 0.5) / 0.5)
    return {"predictions": [{"probabilities": row} for row in logits.softmax(1).tolist()]}

uvicorn.run(app, port=int(sys.argv[1]), access_log=False, log_level="error")
""".replace("SIZE", str(SIZE))


@contextmanager
def running(folder: Path, *words: str, port: int) -> Iterator[int]:
    """Run a server in its own process inside the block; yield its process id once it listens."""
    with (folder / "log.txt").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, *words],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=log,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    sys.exit((folder / "log.txt").read_text()[-2000:])
                time.sleep(0.2)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def request_bytes(file: bytes) -> bytes:
    """Return a whole request with one file, as curl sends it."""
    border = "------------------------d74496d66958873e"
    head = f'--{border}\r\nContent-Disposition: form-data; name="files"; filename="a.jpg"\r\n'
    body = f"{head}Content-Type: image/jpeg\r\n\r\n".encode() + file
    body += f"\r\n--{border}--\r\n".encode()
    start = (
        "POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n"
        f"Content-Length: {len(body)}\r\n"
        f"Content-Type: multipart/form-data; boundary={border}\r\n\r\n"
    )
    return start.encode() + body


def send(port: int, requests: list[bytes], count: int) -> None:
    """Send requests over one connection, each after the answer to the last."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number in range(count):
            connection.sendall(requests[number % len(requests)])
            answer = b""
            while b"\r\n\r\n" not in answer:
                answer += connection.recv(65_536)
            head, _, body = answer.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), answer[:400]
            length = int(head.lower().partition(b"content-length:")[2].split()[0])
            while len(body) < length:
                body += connection.recv(65_536)


def cost(pid: int, port: int, requests: list[bytes], clients: int, count: int) -> float:
    """Return a server's CPU time per request, with several clients at the same time."""
    before = processor_seconds(pid)
    threads = [
        threading.Thread(target=send, args=(port, requests, count // clients))
        for _ in range(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return (processor_seconds(pid) - before) / (count // clients * clients)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def both(folder: Path) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Run the service and the minimal endpoint; yield process id and port of each."""
    save_weights(make_model("small_cnn"), folder / "source.safetensors")
    tables = SERVICE.format(model="small_cnn", size=SIZE, channels=1, batch=32)
    tables = tables.replace("[method]", "mean = [0.5]\nstd = [0.5]\n[method]")
    (folder / "service.toml").write_text(tables)
    (folder / "minimal.py").write_text(MINIMAL)
    ports = free_port(), free_port()
    serve = ("-m", "attakit", "serve", "service.toml", "--open", "--port", str(ports[0]))
    with ExitStack() as stack:
        ours = stack.enter_context(running(folder, *serve, port=ports[0]))
        other = stack.enter_context(running(folder, "minimal.py", str(ports[1]), port=ports[1]))
        yield (ours, ports[0]), (other, ports[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=640)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clients", type=int, nargs="+", default=list(TARGETS))
    parser.add_argument("--profile", type=int, metavar="CLIENTS", help="Record with py-spy instead")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, both(Path(place)) as (ours, other):
        requests = [request_bytes(file) for file in make_files(SIZE, 1)]
        for server in (ours, other):
            send(server[1], requests, 100)  # the first ones are slower
        if options.profile:
            profile(ours, requests, options.profile)
            return
        for clients in options.clients:
            rounds = [
                [cost(*one, requests, clients, options.requests) for one in (ours, other)]
                for _ in range(options.rounds)
            ]
            ratio = statistics.median(mine / theirs for mine, theirs in rounds)
            mine, theirs = (
                1000 * statistics.median(column) for column in zip(*rounds, strict=True)
            )
            print(f"{clients:3} clients: {mine:.2f} ms, minimal endpoint {theirs:.2f} ms, ", end="")
            print(f"ratio {ratio:.2f} (target: at most {TARGETS.get(clients, 1.5)})")


def profile(server: tuple[int, int], requests: list[bytes], clients: int) -> None:
    """Print where the server's time goes, by the function at the top of each stack."""
    out = Path(tempfile.mkstemp(suffix=".txt")[1])
    seconds = "15"
    spy = [str(Path(sys.executable).with_name("py-spy")), "record", "--pid", str(server[0])]
    recording = subprocess.Popen([*spy, "-d", seconds, "-f", "raw", "-o", str(out), "-r", "200"])
    while recording.poll() is None:
        cost(*server, requests, clients, 64 * clients)
    print(out)


if __name__ == "__main__":
    main()
