"""The store's folder: blobs, the schema, the journal, and folders that cannot be used."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import samples
from toprung.errors import HarnessError, UsageError
from toprung.store import Store, database, migrations
from toprung.store.blobs import Blobs
from toprung.store.journal import filesystem_of, journal_for

pytestmark = pytest.mark.unit


@given(content=st.binary(max_size=300))
@settings(max_examples=25, deadline=None)
def test_a_blob_comes_back_by_its_digest(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    blobs = Blobs(tmp_path_factory.mktemp("blobs"))
    digest = blobs.put(content)
    assert digest == hashlib.sha256(content).hexdigest() == blobs.put(content)
    assert blobs.get(digest) == content


def test_a_damaged_blob_is_told_and_mended_by_writing_it_again(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path)
    digest = blobs.put(b"SASS")
    (tmp_path / digest[:2] / digest[2:]).write_bytes(b"SASs")
    with pytest.raises(HarnessError, match="was changed"):
        blobs.get(digest)
    blobs.put(b"SASS")
    assert blobs.get(digest) == b"SASS"


@pytest.mark.parametrize("digest", ["../../etc/passwd", "", "ab", "G" * 64])
def test_only_digests_name_blobs(tmp_path: Path, digest: str) -> None:
    with pytest.raises(UsageError, match="not a digest"):
        Blobs(tmp_path).get(digest)


def test_a_missing_blob_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no file"):
        Blobs(tmp_path).get("0" * 64)


def test_what_a_killed_writer_began_is_swept_when_it_is_old(tmp_path: Path) -> None:
    Blobs(tmp_path)
    old, fresh = tmp_path / "begun" / "old", tmp_path / "begun" / "fresh"
    old.write_bytes(b"half")
    fresh.write_bytes(b"half")
    os.utime(old, times=(0, time.time() - 7200))
    Blobs(tmp_path)
    assert not old.exists() and fresh.exists()


def test_a_store_opens_again_and_hides_from_version_control(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a" / "b") as store:
        run_id = store.create_run(samples.a_creation())
        digest = store.put(b"kept")
    with Store.open(tmp_path / "a" / "b") as store:
        assert store.run(run_id).id == run_id and store.get(digest) == b"kept"
    assert (tmp_path / "a" / "b" / ".gitignore").read_text() == "*\n"


def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    path = tmp_path / "runs.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {len(migrations.MIGRATIONS) + 1}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(UsageError, match="newer toprung") as refused:
        Store.open(tmp_path)
    assert refused.value.hint and "upgrade" in refused.value.hint
    assert path.read_bytes() == before


def test_an_older_schema_is_brought_up_and_keeps_its_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(tmp_path) as store:
        run_id = store.create_run(samples.a_creation())
    later = (*migrations.MIGRATIONS, ("CREATE TABLE later (x)", "INSERT INTO later VALUES (7)"))
    monkeypatch.setattr(database, "MIGRATIONS", later)
    for _ in range(2):  # the second time there is nothing to do
        with Store.open(tmp_path) as store:
            assert store.run(run_id).id == run_id
    with sqlite3.connect(tmp_path / "runs.sqlite") as connection:
        assert connection.execute("SELECT x FROM later").fetchall() == [(7,)]
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
    connection.close()


def test_a_migration_that_fails_leaves_the_old_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store.open(tmp_path).close()
    broken = (*migrations.MIGRATIONS, ("CREATE TABLE later (x)", "CREATE TABEL oops (x)"))
    with monkeypatch.context() as patched:
        patched.setattr(database, "MIGRATIONS", broken)
        with pytest.raises(HarnessError, match="syntax error"):
            Store.open(tmp_path)
    with Store.open(tmp_path) as store:
        assert store.runs() == []


@pytest.mark.parametrize(
    "content", [b"not a database at all, but long enough to look like one" * 40, None]
)
def test_a_database_of_somebody_else_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "runs.sqlite"
    if content is None:
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE theirs (x)")
        connection.close()
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(UsageError, match="not a toprung store"):
        Store.open(tmp_path)
    assert path.read_bytes() == before


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    with pytest.raises(UsageError, match="cannot be used as a store"):
        Store.open(tmp_path / "state")


def test_a_store_that_another_process_holds_is_told(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    held = sqlite3.connect(tmp_path / "runs.sqlite", isolation_level=None)
    held.execute("BEGIN EXCLUSIVE")
    ours = database.Database(tmp_path / "runs.sqlite", patience_s=0.05)
    with pytest.raises(HarnessError, match="held by another process"), ours.transaction():
        pass
    held.execute("ROLLBACK")
    with ours.transaction() as connection:
        connection.execute("INSERT INTO memory VALUES ('kind', 'key', '', '1')")
    ours.close()
    held.close()


MOUNTS = """\
22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
30 22 0:40 / /home rw shared:2 - nfs4 server:/home rw,vers=4.2
31 30 254:2 / /home/me/local\\040disk rw shared:3 - xfs /dev/vdb rw
32 22 0:50 / /mnt/ssh rw - fuse.sshfs host: rw
33 22 0:51 / /tmp rw - tmpfs tmpfs rw
34 22 0:52 / /tmp rw - cifs //nas/tmp rw
broken line
"""


@pytest.mark.parametrize(
    ("folder", "kind", "mode"),
    [
        ("/var/lib", "ext4", "wal"),
        ("/home/me/work", "nfs4", "delete"),
        ("/home/me/local disk/.toprung", "xfs", "wal"),
        ("/homework", "ext4", "wal"),
        ("/mnt/ssh/x", "fuse.sshfs", "delete"),
        ("/tmp/x", "cifs", "delete"),
    ],
)
def test_network_file_systems_get_no_write_ahead_log(
    tmp_path: Path, folder: str, kind: str, mode: str
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    assert filesystem_of(Path(folder), mounts) == kind
    assert journal_for(Path(folder), mounts) == mode
    assert journal_for(Path(folder), tmp_path / "missing") == "wal"


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_both_journals_keep_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setattr(database, "journal_for", lambda folder: mode)
    with Store.open(tmp_path) as store:
        run_id = store.create_run(samples.a_creation())
        reader = sqlite3.connect(tmp_path / "runs.sqlite")
        assert reader.execute("PRAGMA journal_mode").fetchone() == (mode,)
        reader.close()
    with Store.open(tmp_path) as store:
        assert store.run(run_id).id == run_id
