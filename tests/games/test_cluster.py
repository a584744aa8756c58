"""One run on many machines: a Dask cluster of real processes, a real S3 server.

- a cluster and an object store hold byte for byte the shards of one process
- a worker killed while it works costs its shard, which is made again (`test_cluster_workers`: one that kills them all)
- no scheduler, a scheduler that dies, no worker, a worker of other versions: one line each, exit 1
- a run on an object store resumes; a half-uploaded shard is named, and valid ones are kept
- without the extras the missing one is named
"""

import functools
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers import die_once, same_record, shard_hashes, write_shards

from distill import generate, inspect
from distill.common import UserError, provenance, run_folder
from distill.common import cluster as cluster_module
from distill.common.cluster import Cluster
from distill.common.storage import Folder, Remote, storage_of
from distill.games import reader, shards
from distill.games.shards import RunSettings, identity
from distill.mcts.settings import UctSettings

distributed = pytest.importorskip("distributed")

SMALL = ["--games", "10", "--simulations", "60", "--shard-games", "2"]
RUN = RunSettings(search=UctSettings(simulations=60), shard_games=2)
TODO = [shards.Task(index=index, games=2) for index in range(5)]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The run of one process."""
    folder = tmp_path_factory.mktemp("alone")
    assert generate.main([*SMALL, "--workers", "1", "--out", str(folder)]) == 0
    return folder


# A cluster


@pytest.fixture(scope="module")
def cluster(bucket):
    """Two worker processes that know the bucket; their nannies replace dead ones, and a shard may kill two of them."""
    import dask

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1, "distributed.logging.distributed": "critical"}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as started,
    ):
        yield started


def test_a_cluster_writes_the_bytes_of_one_process(alone, tmp_path, cluster, capsys):
    command = [*SMALL, "--cluster", cluster.scheduler_address, "--out", str(tmp_path)]
    assert generate.main(command) == 0
    assert shard_hashes(tmp_path) == shard_hashes(alone)
    assert same_record(tmp_path, alone)
    assert generate.main(command) == 0
    assert "finished before: 10 games" in capsys.readouterr().out


def test_a_worker_that_dies_costs_its_shard_alone(alone, tmp_path, cluster):
    work = functools.partial(die_once, tmp_path / "died")
    with Cluster(cluster.scheduler_address, shards.versions_here) as workers:
        write_shards(tmp_path, shards.make(workers, RUN, identity(RUN), TODO, work))
    assert (tmp_path / "died").exists()
    assert shard_hashes(tmp_path) == shard_hashes(alone)


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    message = capsys.readouterr().err
    assert message.count("\n") == 1, message
    return message


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
        pytest.raises(UserError, match="no worker there"),
    ):
        Cluster(empty.scheduler_address, shards.versions_here)


def test_a_worker_of_other_versions_is_refused(tmp_path, cluster, monkeypatch):
    monkeypatch.setattr(shards.uct, "SEARCH_VERSION", shards.uct.SEARCH_VERSION + 1)
    with pytest.raises(UserError, match=r"would write other bytes \(search_version .* there, .* here"):
        Cluster(cluster.scheduler_address, shards.versions_here)


@pytest.mark.parametrize(("module", "flags"), [("distributed", ["--cluster", "tcp://x:1"]), ("fsspec", [])])
def test_a_missing_extra_is_named(module, flags, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, module, None)
    out = str(tmp_path) if flags else "s3://bucket/games"
    assert generate.main([*SMALL, *flags, "--out", out]) == 1
    extra = "cluster" if flags else "remote"
    assert f"the extra {extra}: {provenance.install_line(extra)}" in one_line(capsys)


# An object store


@pytest.fixture(scope="module")
def bucket():
    """The URL of an empty bucket on an S3 server in this process."""
    server_module = pytest.importorskip("moto.server")
    s3fs = pytest.importorskip("s3fs")
    server = server_module.ThreadedMotoServer(port=0, verbose=False)
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


def test_an_object_store_holds_the_bytes_of_a_folder(alone, bucket, capsys):
    url = f"{bucket}/whole/"
    assert generate.main([*SMALL, "--workers", "2", "--out", url]) == 0
    place = storage_of(url)
    assert place.names() == [run_folder.RECORD, *shard_hashes(alone)]
    for name in shard_hashes(alone):
        assert place.read(name) == (alone / name).read_bytes()
    assert inspect.main([url, "--labels", "0"]) == 0
    assert generate.main([*SMALL, "--workers", "2", "--out", url]) == 0
    assert "finished before: 10 games" in capsys.readouterr().out


def test_a_run_on_an_object_store_goes_on_where_it_was_stopped(alone, bucket, capsys):
    place = Remote(url=f"{bucket}/stopped")
    with shards.opened(place, RUN, 10, identity(RUN)) as folder:
        folder.begin()
    for name in ("shard-00000.parquet", "shard-00003.parquet"):
        place.write(name, (alone / name).read_bytes())
    place.write("shard-00001.parquet", (alone / "shard-00001.parquet").read_bytes()[:-50])
    assert inspect.main([place.url, "--labels", "0"]) == 1
    command = [*SMALL, "--workers", "1", "--out", place.url]
    assert generate.main(command) == 1
    assert f"{place.url}/shard-00001.parquet: damaged, or not a Parquet file" in capsys.readouterr().err
    place.delete("shard-00001.parquet")
    with shards.opened(place, RUN, 10, identity(RUN)) as folder:
        assert [task.index for task in shards.plan(folder, 10).todo] == [1, 2, 4]
    assert generate.main(command) == 0
    assert all(place.read(name) == (alone / name).read_bytes() for name in shard_hashes(alone))
    assert generate.main([*SMALL, "--seed", "8", "--out", place.url]) == 1
    assert "seed 0 there, 8 here" in capsys.readouterr().err
    assert generate.main([*SMALL, "--workers", "1", "--restart", "--games", "2", "--out", place.url]) == 0
    assert [name for name in place.names() if name.startswith("shard")] == ["shard-00000.parquet"]


def test_a_bucket_that_is_not_there_is_one_line(bucket, capsys):
    with pytest.raises(FileNotFoundError, match="bucket does not exist"):
        Remote(url="s3://nobodys-bucket-at-all/games").write("file", b"content")
    assert generate.main([*SMALL, "--workers", "1", "--out", "nosuchprotocol://x/y"]) == 1
    assert "nosuchprotocol://x/y: " in one_line(capsys)


def test_a_consoles_marker_of_the_folder_does_not_stop_a_run(bucket, capsys):
    import fsspec

    fsspec.url_to_fs(bucket)[0].pipe_file(f"{bucket}/marked/", b"")
    assert Remote(url=f"{bucket}/marked").names() == []
    assert generate.main([*SMALL, "--workers", "1", "--out", f"{bucket}/marked"]) == 0


@pytest.mark.parametrize("url", ["folder", "memory://place"])
def test_a_place_keeps_whole_files_by_name(url, tmp_path):
    assert storage_of("file:///data/games") == Folder(path=Path("/data/games"))
    assert storage_of("s3://bucket/games/") == Remote(url="s3://bucket/games")
    place = storage_of(tmp_path / "new" if url == "folder" else url)
    assert place.names() == []
    with pytest.raises(FileNotFoundError):
        place.read("a")
    place.delete("a")
    place.write("b", b"2")
    place.write("a", b"1")
    place.write("a", b"3")
    assert (place.names(), place.read("a")) == (["a", "b"], b"3")
    place.delete("a")
    assert place.names() == ["b"]
