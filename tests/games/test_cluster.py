"""One run on many machines: a Dask cluster of real processes, a real S3 server (workers: `test_cluster_workers`).

A cluster and an object store hold byte for byte the shards of one process, and a run on them resumes. No scheduler, one
that dies, no worker and a missing extra are one line each.
"""

import os
import re
import signal
import subprocess
import sys
import time

import distributed
import pytest
from helpers import die_always, same_record, shard_hashes

from distill import generate, inspect
from distill.common import cluster as cluster_module
from distill.common import provenance, run_folder
from distill.common.cluster import Cluster
from distill.common.storage import Remote
from distill.games import reader, shards
from distill.games.settings import RunSettings
from distill.mcts.settings import UctSettings

SMALL = ["--games", "10", "--simulations", "60", "--shard-games", "2"]
RUN = RunSettings(search=UctSettings(simulations=60), shard_games=2)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The run of one process."""
    folder = tmp_path_factory.mktemp("alone")
    assert generate.main([*SMALL, "--workers", "1", "--out", str(folder)]) == 0
    return folder


def test_a_cluster_writes_the_bytes_of_one_process(alone, tmp_path, cluster, capsys):
    command = [*SMALL, "--cluster", cluster.scheduler_address, "--out", str(tmp_path)]
    assert generate.main(command) == 0
    assert shard_hashes(tmp_path) == shard_hashes(alone)
    assert same_record(tmp_path, alone)
    assert generate.main(command) == 0
    assert "finished before: 10 games" in capsys.readouterr().out


def test_a_shard_that_kills_every_worker_is_named_and_all_others_are_made(
    alone, tmp_path, cluster, monkeypatch, capsys
):
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)  # to restart a worker takes seconds
    command = [*SMALL, "--cluster", cluster.scheduler_address, "--out", str(tmp_path)]
    with monkeypatch.context() as patch:
        patch.setattr(shards, "play_shards", die_always)
        assert generate.main(command) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert "shard-00001.parquet: worker processes died at every try of a task" in said
    others = {name: digest for name, digest in shard_hashes(alone).items() if name != "shard-00001.parquet"}
    assert shard_hashes(tmp_path) == others
    assert generate.main(command) == 0
    assert shard_hashes(tmp_path) == shard_hashes(alone)


def test_an_address_without_a_scheduler_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(cluster_module, "CONNECT_SECONDS", 1)
    assert generate.main([*SMALL, "--games", "2", "--workers", "1", "--out", str(tmp_path)]) == 0
    assert generate.main([*SMALL, "--cluster", "tcp://127.0.0.1:1", "--out", str(tmp_path)]) == 1
    assert reader.open_run(tmp_path).games == 2, "the finished games stay finished"
    assert "--cluster tcp://127.0.0.1:1: no scheduler answers there" in capsys.readouterr().err.splitlines()[-1]


def test_a_scheduler_that_dies_is_one_line(tmp_path):
    script = (
        "import distributed, time; c = distributed.LocalCluster(n_workers=1, threads_per_worker=1, silence_logs=50,"
    )
    script += " dashboard_address=':0'); print(c.scheduler_address, flush=True); time.sleep(99)"
    start = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert start.stdout
    flags = ["--games", "400", "--simulations", "2000", "--cluster", start.stdout.readline().strip()]
    command = [sys.executable, "-m", "distill.generate", *flags, "--shard-games", "2", "--out", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:
        while not any(tmp_path.glob("shard-*")):
            assert run.poll() is None
            time.sleep(0.1)
        os.killpg(start.pid, signal.SIGKILL)
        start.communicate()
        lines = [line for line in run.communicate(timeout=120)[1].splitlines() if " games [" not in line]
    assert run.returncode == 1
    assert len(lines) == 1, lines
    assert re.match(
        r"distill generate: --cluster tcp://\S+: gone before the work was done; start the command", lines[0]
    )


def test_a_cluster_without_workers_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster_module, "WORKERS_AWAITED", 0.5)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=50) as empty,
        pytest.raises(TimeoutError),
    ):
        Cluster(empty.scheduler_address, shards.versions_here)


@pytest.mark.parametrize(("module", "flags"), [("distributed", ["--cluster", "tcp://x:1"]), ("fsspec", [])])
def test_a_missing_extra_is_named(module, flags, tmp_path, monkeypatch, complaint):
    monkeypatch.setitem(sys.modules, module, None)
    extra, out = ("cluster", tmp_path) if flags else ("remote", "s3://bucket/games")
    line = complaint(generate, *SMALL, *flags, "--out", out)
    assert f"the extra {extra}: {provenance.install_line(extra)}" in line


@pytest.fixture(scope="module")
def bucket():
    """The URL of an empty bucket on an S3 server in this process."""
    import moto.server
    import s3fs

    server = moto.server.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "key")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        s3fs.S3FileSystem.clear_instance_cache()
        s3fs.S3FileSystem().mkdir("s3://games")
        yield "s3://games"
    server.stop()


def test_an_object_store_holds_the_bytes_of_a_folder_also_where_a_run_was_stopped(alone, bucket, capsys, complaint):
    place = Remote(url=f"{bucket}/stopped")
    with shards.opened(place, RUN, 10, RUN.games_identity()) as folder:
        folder.begin()
    for name in ("shard-00000.parquet", "shard-00003.parquet"):
        place.write(name, (alone / name).read_bytes())
    place.write("shard-00001.parquet", (alone / "shard-00001.parquet").read_bytes()[:-50])
    assert inspect.main([place.url, "--labels", "0"]) == 1
    command = [*SMALL, "--workers", "2", "--out", f"{place.url}/"]
    line = complaint(generate, *command)
    assert f"{place.url}/shard-00001.parquet: damaged, or not a Parquet file" in line
    place.delete("shard-00001.parquet")
    with shards.opened(place, RUN, 10, RUN.games_identity()) as folder:
        assert [task.index for task in shards.plan(folder, 10).todo] == [1, 2, 4]
    assert generate.main(command) == 0
    assert place.names() == [run_folder.RECORD, *shard_hashes(alone)]
    assert all(place.read(name) == (alone / name).read_bytes() for name in shard_hashes(alone))
    assert inspect.main([place.url, "--labels", "0"]) == 0
    assert generate.main(command) == 0
    assert "finished before: 10 games" in capsys.readouterr().out
    assert "seed 0 there, 8 here" in complaint(generate, *SMALL, "--seed", "8", "--out", place.url)
    place.write("mine", b"mine")
    assert generate.main([*SMALL, "--workers", "1", "--restart", "--games", "2", "--out", place.url]) == 0
    assert place.names() == [run_folder.RECORD, "mine", "shard-00000.parquet"]


def test_a_bucket_that_is_not_there_is_one_line(bucket, complaint):
    with pytest.raises(FileNotFoundError, match="bucket does not exist"):
        Remote(url="s3://nobodys-bucket-at-all/games").write("file", b"content")
    assert "nosuchprotocol://x/y: " in complaint(generate, *SMALL, "--out", "nosuchprotocol://x/y")
