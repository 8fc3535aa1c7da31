"""The wheel in an environment of its own: `python wheel.py NEWER_WHEEL`. Called by run.sh, in an empty home."""

import concurrent.futures
import pathlib
import subprocess
import sys
import time

import fsspec

import carrack


def serve() -> subprocess.Popen[str]:
    words = ["carrack", "serve", "--root", "data", "--listen", "127.0.0.1:0", "--json"]
    service = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert service.stdout and "serving" in service.stdout.readline()
    return service


def main() -> None:
    data = pathlib.Path("data")
    data.mkdir()
    (data / "large").write_bytes(bytes(range(256)) * 400_000)
    report = carrack.copy("data", "copied/", verify="disk")
    assert (report.files, report.bytes, report.durable) == (1, 102_400_000, True), report
    assert (pathlib.Path("copied/data/large")).read_bytes() == (data / "large").read_bytes()

    service = serve()
    client = carrack.Client()
    client.add_endpoint(name="lab", location={"kind": "local", "root": str(data.resolve())}, uploads=True)
    with fsspec.open("carrack://lab/table", "wb") as file:
        file.write(b"a,b\n1,2\n")
    assert (data / "table").read_bytes() == b"a,b\n1,2\n"
    with fsspec.open("carrack://lab/large", "rb") as file:
        file.seek(256 * 300_000 + 7)
        assert file.read(3) == b"\x07\x08\x09"

    task = client.submit("@lab:/large", "@lab:/upgrade/", options={"rate_limit": 10_000_000})
    while client.task(task.id).progress.bytes_moved == 0:
        time.sleep(0.1)
    other = concurrent.futures.ThreadPoolExecutor(1)
    waited = other.submit(client.wait, task.id, timeout=120)
    newer = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*newer, "--force-reinstall", sys.argv[1]], check=True)
    service.terminate()
    assert service.wait() == 0
    service = serve()
    task = waited.result()
    assert (task.state, task.fence) == ("SUCCEEDED", 1), task
    assert (data / "upgrade/large").read_bytes() == (data / "large").read_bytes()
    print(f"{task.id}: attempt {task.fence}, {task.state}")
    service.terminate()
    assert service.wait() == 0


main()
