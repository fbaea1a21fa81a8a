"""Object stores of other makers, each a process of its own on this machine: moto's S3, Microsoft's Azurite, HDFS.

`scripts/install.sh stores` installs them, outside the project; tests that need one skip where it is missing.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

SERVERS = Path(os.environ.get("STORES_DIR", Path.home() / ".cache/alluvium-stores"))
PYTHON, AZURITE = SERVERS / "bin/python", SERVERS / "azurite/node_modules/.bin/azurite-blob"
#: Microsoft's own key of the emulator, the same everywhere.
_AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_AZURE_ACCOUNT = "devstoreaccount1"
_STARTS_WITHIN_S = 180


@dataclass(frozen=True)
class Served:
    """A bucket that is served.

    Attributes:
        url: Of the bucket.
        options: With which it lets us in.
        wrong: Options that it refuses; the last one's value is the secret that nobody may print.
    """

    url: str
    options: Mapping[str, str]
    wrong: Mapping[str, str] = field(default_factory=dict)


def missing(kind: str) -> str | None:
    """Why a kind of server cannot be started here; None: it can."""
    needed = {"s3": SERVERS / "bin/moto_server", "azure": AZURITE, "hdfs": SERVERS / "hdfs/.done"}[kind]
    if needed.exists():
        return None
    return f"no server of {kind}: scripts/install.sh stores installs one"


@contextmanager
def serve(kind: str, folder: Path) -> Iterator[Served]:
    """A server with an empty bucket, which ends with the block."""
    with {"s3": _serve_moto, "azure": _serve_azurite}[kind](folder) as served:
        yield served


@contextmanager
def _serve_moto(folder: Path) -> Iterator[Served]:
    port = _free_port()
    command = [str(PYTHON), "-c", _ONE_AT_A_TIME, str(port)]
    with _process(command, folder / "moto.log", port):
        endpoint = f"http://127.0.0.1:{port}"
        key, secret = _ask(_MAKE_BUCKET, endpoint).split()
        # From here on it checks signatures and rights.
        urllib.request.urlopen(
            urllib.request.Request(f"{endpoint}/moto-api/reset-auth", b"0", {"Content-Type": "text/plain"})
        ).close()
        options = {
            "fs.s3a.endpoint": endpoint, "fs.s3a.path.style.access": "true", "region": "us-east-1", "max_retries": "2",
            "fs.s3a.access.key": key, "fs.s3a.secret.key": secret,
        }  # fmt: skip
        yield Served("s3://bucket", options, {**options, "fs.s3a.secret.key": "wrong-and-secret"})


# moto looks whether an object is there and then puts it, so that of two conditional puts at once both may win, which
# S3 rules out ("strong consistency", "conditional writes").
_ONE_AT_A_TIME = """
import sys, threading
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple
application, turn = DomainDispatcherApplication(create_backend_app), threading.Lock()
def one_at_a_time(environ, start_response):
    with turn:
        return list(application(environ, start_response))
run_simple("127.0.0.1", int(sys.argv[1]), one_at_a_time, threaded=True)
"""

_MAKE_BUCKET = """
import boto3, json, sys
make = lambda service: boto3.client(
    service, endpoint_url=sys.argv[1], aws_access_key_id="a", aws_secret_access_key="b", region_name="us-east-1"
)
make("s3").create_bucket(Bucket="bucket")
iam = make("iam")
iam.create_user(UserName="u")
all_of_s3 = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
iam.put_user_policy(UserName="u", PolicyName="p", PolicyDocument=json.dumps(all_of_s3))
key = iam.create_access_key(UserName="u")["AccessKey"]
print(key["AccessKeyId"], key["SecretAccessKey"])
"""


@contextmanager
def _serve_azurite(folder: Path) -> Iterator[Served]:
    port = _free_port()
    command = [
        str(AZURITE), "--silent", "--skipApiVersionCheck", "--disableTelemetry", "--blobHost", "127.0.0.1",
        "--blobPort", str(port), "--location", str(folder / "azurite"),
    ]  # fmt: skip
    with _process(command, folder / "azurite.log", port):
        endpoint = f"http://127.0.0.1:{port}/{_AZURE_ACCOUNT}"
        _ask(_MAKE_CONTAINER, endpoint, _AZURE_KEY)
        options = {
            "account_name": _AZURE_ACCOUNT, "endpoint": endpoint, "allow_http": "true", "max_retries": "2",
            "account_key": _AZURE_KEY,
        }  # fmt: skip
        yield Served("az://bucket", options, {**options, "account_key": "d3JvbmctYW5kLXNlY3JldA=="})


_MAKE_CONTAINER = """
import sys
from azure.storage.blob import BlobServiceClient
BlobServiceClient(sys.argv[1], credential=sys.argv[2]).create_container("bucket")
"""


@contextmanager
def serve_hdfs(folder: Path, hadoop_jars: Path) -> Iterator[str]:
    """The address of a name node with one data node, by the Hadoop classes of a PySpark."""
    port, details = _free_port(), folder / "details.json"
    home = os.environ.get("JAVA_HOME")
    command = [
        f"{home}/bin/java" if home else "java", "-Xmx512m", "-cp", f"{SERVERS}/hdfs/*:{hadoop_jars}/*",
        "org.apache.hadoop.mapreduce.MiniHadoopClusterManager",
        "-nomr", "-format", "-nnport", str(port), "-writeDetails", str(details),
    ]  # fmt: skip
    with _process(command, folder / "hdfs.log", port, cwd=folder):
        # It is there before it is whole.
        _wait(lambda: details.exists() and details.read_text().rstrip().endswith("}"), folder / "hdfs.log")
        yield f"hdfs://localhost:{json.loads(details.read_text())['namenode_port']}"


def _ask(code: str, *arguments: str) -> str:
    run = subprocess.run([str(PYTHON), "-c", code, *arguments], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr[-2000:]
    return run.stdout


@contextmanager
def _process(command: list[str], log: Path, port: int, cwd: Path | None = None) -> Iterator[None]:
    """A server that listens by now."""
    with log.open("wb") as sink:
        server = subprocess.Popen(command, stdout=sink, stderr=sink, stdin=subprocess.DEVNULL, cwd=cwd)
    try:
        _wait(lambda: server.poll() is not None or _listens(port), log)
        assert server.poll() is None, log.read_text(errors="replace")[-2000:]
        yield
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait(is_there: Callable[[], bool], log: Path) -> None:
    end = time.monotonic() + _STARTS_WITHIN_S
    while not is_there():
        assert time.monotonic() < end, log.read_text(errors="replace")[-2000:]
        time.sleep(0.1)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
