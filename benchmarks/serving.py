"""Measure what answering over HTTP costs, alone and while the learner trains.

    python benchmarks/serving.py                    # ResNet-18 at 128 pixels, random weights
    python benchmarks/serving.py --model small_cnn --size 28

Starts `attakit serve` in its own process and prints

- the time per image at full load, as a multiple of the bare forward pass at batch 32, one thread
  each; the target is at most 1.3;
- the 99th percentile of the latency of single images while the learner trains, as a multiple of
  that while it is paused; the target is at most 2.5.

Needs a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from attakit.client import Client
from attakit.nn import Classifier
from attakit.nn.devices import prepare
from attakit.nn.named import OWN_MODELS, named_model
from attakit.nn.weights import save_weights

CLASSES = 10
BATCH = 32
CLIENTS, IMAGES = 8, 8  # at full load: clients at once, images per request
COST_TARGET, LATENCY_TARGET = 1.3, 2.5
SERVICE = """
folder = "live"
classes = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]
[model]
name = "{model}"
weights = "source.safetensors"
[input]
size = {size}
channels = {channels}
[method]
name = "simatta"
high_entropy_bound = 0.0
[labels]
budget = "unlimited"
settle_seconds = 0.0
[learning]
batch_size = 20
batch_seconds = 1.0
backlog = 200
[server]
batch_size = {batch}
requests_per_minute = 1000000
open = true
"""


def make_model(name: str) -> Classifier:
    channels = 1 if name in OWN_MODELS else 3
    return Classifier(named_model(name, classes=CLASSES, channels=channels)).eval()


def make_files(size: int, channels: int, count: int = 64) -> list[bytes]:
    """JPEG files of noise over a smooth picture."""
    draw = np.random.default_rng(0)
    files = []
    for _ in range(count):
        coarse = draw.integers(0, 256, size=(8, 8, 3), dtype=np.uint8)
        image = Image.fromarray(coarse).resize((size, size), Image.Resampling.BICUBIC)
        file = io.BytesIO()
        (image.convert("L") if channels == 1 else image).save(file, format="JPEG", quality=90)
        files.append(file.getvalue())
    return files


def bare_seconds(model: Classifier, size: int, channels: int, seconds: float) -> float:
    """Seconds per image of a forward pass with one thread."""
    torch.set_num_threads(1)
    model = prepare(model, torch.device("cpu"))
    inputs = torch.randn(BATCH, channels, size, size)
    inputs = inputs.contiguous(memory_format=torch.channels_last)
    with torch.inference_mode():
        model(inputs)
        passes, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            model(inputs)
            passes += 1
    return (time.perf_counter() - began) / (passes * BATCH)


@contextmanager
def in_threads(*works: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run functions in threads inside the block; at the end their event asks them to stop."""
    stop = threading.Event()
    threads = [threading.Thread(target=work, args=(stop,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Run a service in its own process inside the block, and yield its address."""
    command = [sys.executable, "-m", "attakit", "serve", "service.toml", "--port", "0"]
    with (folder / "log.txt").open("w") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ}
        )
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        sys.exit((folder / "log.txt").read_text()[-2000:])
    try:
        yield line.removeprefix("Serving on ").strip()
    finally:
        process.terminate()
        process.wait()


def full_load(address: str, files: list[bytes], seconds: float) -> float:
    """Seconds per image with many clients at once."""
    done = [0] * CLIENTS

    def send(number: int, stop: threading.Event) -> None:
        with Client(address) as client:
            while not stop.is_set():
                client.predict(files[:IMAGES])
                done[number] += IMAGES

    works = [lambda stop, number=number: send(number, stop) for number in range(CLIENTS)]
    with in_threads(*works):
        time.sleep(seconds / 4)  # until all are under way
        before, began = sum(done), time.perf_counter()
        time.sleep(seconds)
        images, took = sum(done) - before, time.perf_counter() - began
    return took / images


def latencies(address: str, files: list[bytes], count: int) -> np.ndarray:
    """Seconds of requests of one image, one after the other with pauses."""
    taken = []
    with Client(address) as client:
        for number in range(count):
            began = time.perf_counter()
            client.predict(files[number % len(files)])
            taken.append(time.perf_counter() - began)
            time.sleep(0.02)
    return np.array(taken)


def answer_all(address: str, stop: threading.Event) -> None:
    """Answer every question, so that the learner never idles."""
    with Client(address, annotator="benchmark") as client:
        while not stop.wait(0.1):
            while (lease := client.lease()) is not None and not stop.is_set():
                client.answer(lease.question, label=lease.question % CLASSES)


def learner_seconds(folder: Path) -> float:
    """CPU time that the learner has used."""
    number = (folder / "live" / "learner.lock").read_text()
    fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--requests", type=int, default=500)
    options = parser.parse_args()
    model = make_model(options.model)
    channels = 1 if options.model in OWN_MODELS else 3
    files = make_files(options.size, channels)
    bare = bare_seconds(model, options.size, channels, options.seconds / 4)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        save_weights(model, folder / "source.safetensors")
        text = SERVICE.format(
            model=options.model, size=options.size, channels=channels, batch=BATCH
        )
        if channels == 1:
            text = text.replace("[method]", "mean = [0.5]\nstd = [0.5]\n[method]")
        (folder / "service.toml").write_text(text)
        with serving(folder) as address, Client(address) as client:
            client.pause()
            loaded = full_load(address, files, options.seconds)
            idle = latencies(address, files, options.requests)
            client.resume()
            with in_threads(lambda stop: answer_all(address, stop)):
                before, began = learner_seconds(folder), time.perf_counter()
                training = latencies(address, files, options.requests)
                busy = (learner_seconds(folder) - before) / (time.perf_counter() - began)
            status = client.status()
    idle99, training99 = np.quantile(idle, 0.99), np.quantile(training, 0.99)
    print(f"{options.model} at {options.size} pixels")
    print(f"bare forward pass at batch {BATCH}: {1000 * bare:.2f} ms per image")
    print(f"over HTTP at full load: {1000 * loaded:.2f} ms per image")
    print(f"ratio {loaded / bare:.2f} (target: at most {COST_TARGET})")
    print(f"latency of one image, learner paused: p50 {1000 * np.median(idle):.1f}, ", end="")
    print(f"p99 {1000 * idle99:.1f} ms")
    print(f"latency of one image, learner at work: p50 {1000 * np.median(training):.1f}, ", end="")
    print(f"p99 {1000 * training99:.1f} ms")
    print(f"ratio of p99 {training99 / idle99:.2f} (target: at most {LATENCY_TARGET})")
    print(f"the learner used {100 * busy:.0f} % of a core; {status.labels.answered} labels")


if __name__ == "__main__":
    main()
