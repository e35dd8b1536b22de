"""Backups, copies, and the commands for them and for tokens."""

import json
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from eccaht.cli.main import run
from eccaht.service.operations.copying import backup, copy, count, restore
from eccaht.service.security import guard
from eccaht.service.store import Store, schema
from eccaht.service.store.store import now
from tests.service import stores
from tests.service.filled import contents, fill


@pytest.fixture(scope="module", params=stores.KINDS)
def _second(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with stores.opened(request.param, tmp_path_factory.mktemp("second")) as made:
        yield made


@pytest.fixture
def target(_second: Store) -> Store:
    """A second empty store of each kind, beside `store`."""
    stores.emptied(_second)
    return _second


# -- copies --------------------------------------------------------------------------------------------


def test_a_copy_has_every_row_of_every_table_as_it_was(store: Store, target: Store) -> None:
    fill(store)
    was, advanced = contents(store), list[int]()
    copied = copy(store, target, advanced.append)
    assert contents(target) == was == contents(store)
    assert {table.table: table.rows for table in copied} == {name: len(rows) for name, rows in was.items()}
    assert sum(advanced) == count(store)


def test_new_rows_are_numbered_after_the_copied_ones(store: Store, target: Store) -> None:
    fill(store)
    copy(store, target)
    with target.begin() as connection:
        for table in (schema.comments, schema.tokens, schema.audit, schema.outbox):
            last = connection.execute(sa.select(sa.func.max(table.c.id))).scalar_one()
            row = dict(connection.execute(sa.select(table).where(table.c.id == last)).one()._mapping)
            del row["id"]
            row |= {"name": "new"} if "name" in row else {"plant": "new"}
            added = connection.execute(sa.insert(table).values(**row)).inserted_primary_key
            assert added is not None
            assert added[0] == last + 1


@pytest.mark.parametrize("table", [table.name for table in schema.COPIED if table.name != "meta"])
def test_a_target_that_is_not_empty_is_refused(table: str, tmp_path: Path) -> None:
    with stores.opened("sqlite", tmp_path) as one, stores.opened("sqlite", tmp_path) as other:
        fill(other, rows=2)
        with other.begin() as connection:
            connection.execute(sa.text("PRAGMA defer_foreign_keys=ON"))
            for each in reversed(schema.COPIED):
                if each.name not in (table, "meta") and not (table == "plants" and each is schema.models):
                    connection.execute(sa.delete(each))
        was = contents(other)
        with pytest.raises(ValueError, match="is not empty, its table"):
            copy(one, other)
        assert contents(other) == was


@pytest.mark.parametrize("after", [3, 60])
def test_an_interrupted_copy_leaves_nothing(store: Store, target: Store, after: int) -> None:
    fill(store)
    copied = 0

    def interrupt(rows: int) -> None:
        nonlocal copied
        copied += rows
        if copied > after:
            raise KeyboardInterrupt

    was = contents(target)
    with pytest.raises(KeyboardInterrupt):
        copy(store, target, interrupt)
    assert contents(target) == was


def test_a_store_of_another_version_is_refused(store: Store) -> None:
    with stores.pretended(store, 99):
        for work in (lambda: count(store), lambda: copy(store, store)):
            with pytest.raises(ValueError, match="has version 99, this eccaht copies"):
                work()


# -- backups -------------------------------------------------------------------------------------------


def test_a_backup_is_one_private_file_from_which_everything_comes_back(
    store: Store, target: Store, tmp_path: Path
) -> None:
    fill(store)
    was, file = contents(store), tmp_path / "kept.backup"
    backup(store, file)
    left = {path.name for path in tmp_path.iterdir() if "kept" in path.name}
    assert left == {"kept.backup"}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    data = file.read_bytes()
    restore(file, target)
    assert contents(target) == was
    assert file.read_bytes() == data


def test_a_backup_never_replaces_a_file(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "kept"
    file.write_text("mine")
    with pytest.raises(ValueError, match="is there already"):
        backup(store, file)
    assert file.read_text() == "mine"


def test_an_interrupted_backup_leaves_nothing(store: Store, tmp_path: Path) -> None:
    fill(store)
    folder = tmp_path / "alone"
    folder.mkdir()

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        backup(store, folder / "kept", interrupt)
    assert list(folder.iterdir()) == []


def test_a_service_may_write_while_it_is_backed_up(store: Store, tmp_path: Path) -> None:
    fill(store)
    was, once = contents(store), [True]

    def write(_: int) -> None:
        if once and once.pop():
            with store.begin() as connection:
                guard.create(connection, "late", ["read"], now=now())

    backup(store, tmp_path / "kept", write)
    with stores.opened("sqlite", tmp_path) as again:
        restore(tmp_path / "kept", again)
        assert contents(again) == was
    assert contents(store) != was


@pytest.mark.parametrize("how", ["text", "empty", "truncated", "other tables", "damaged"])
def test_files_that_are_no_backup_are_one_line(target: Store, tmp_path: Path, how: str) -> None:
    file = tmp_path / "kept"
    with stores.opened("sqlite", tmp_path) as store:
        fill(store, rows=40)
        backup(store, file)
    data = file.read_bytes()
    if how == "other tables":
        file.unlink()
        with sqlite3.connect(file) as connection:
            connection.execute("CREATE TABLE meta (a)")
        connection.close()
    else:
        damaged = data[:8192] + b"\x99" * (len(data) - 12288) + data[-4096:]
        choices = {"text": b"name,value\n", "empty": b"", "truncated": data[: len(data) // 2], "damaged": damaged}
        file.write_bytes(choices[how])
    was = contents(target)
    with pytest.raises(ValueError, match=r"is no backup|is damaged|has version") as caught:
        restore(file, target)
    assert "\n" not in str(caught.value)
    assert contents(target) == was


# -- the commands --------------------------------------------------------------------------------------


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """What a command prints, on standard error if it fails."""
    capsys.readouterr()
    assert run(arguments) == code
    out, err = capsys.readouterr()
    if code:
        assert (out, err.count("\n")) == ("", 1)
        return err
    return out


def test_tokens_are_made_listed_and_revoked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = ("--store", f"sqlite:///{tmp_path / 's.db'}")
    text = printed(capsys, "token", "create", "anna", "--scope", "operate", "--expires", "90d", *place).strip()
    made = json.loads(
        printed(capsys, "token", "create", "gate", "--scope", "ingest", "--scope", "read", "--json", *place)
    )
    assert made["scopes"] == ["read", "ingest"]
    printed(capsys, "token", "revoke", "gate", *place)
    listed = json.loads(printed(capsys, "token", "list", "--json", *place))["tokens"]
    assert [(known["name"], known["state"], known["expires"] is None) for known in listed] == [
        ("anna", "valid", False),
        ("gate", "revoked", True),
    ]
    lines = printed(capsys, "token", "list", *place).splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [
        ["anna", "operate", "valid"],
        ["gate", "read,ingest", "revoked"],
    ]
    store = Store(place[1])
    with store.read() as connection:
        found = guard.find(connection, text, now())
        assert found is not None
        assert found.name == "anna"
        assert guard.find(connection, made["token"], now()) is None
    store.close()
    assert text not in (tmp_path / "s.db").read_bytes().decode("latin-1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["create"], "which token"),
        (["create", "a"], "opens nothing"),
        (["create", "a", "--scope", "raed"], "did you mean 'read'"),
        (["create", "a/b", "--scope", "read"], "cannot name a token"),
        (["create", "a", "--scope", "read", "--expires", "soon"], "--expires 'soon' is not a length of time"),
        (["list", "a"], "leave out 'a'"),
        (["revoke", "a", "--scope", "read"], "are for 'token create'"),
        (["revoke", "a"], "there is no store"),
        (["list"], "there is no store"),
        (["make", "a"], "make"),
    ],
)
def test_wrong_token_commands_are_one_line_and_make_nothing(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    err = printed(capsys, "token", *arguments, "--store", f"sqlite:///{tmp_path / 's.db'}", code=2)
    assert message in err
    if "cannot name" not in message:
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["backup", "no/where"], "there is no directory"),
        (["restore", "nothing"], "no backup at nothing"),
        (["backup", "a", "--store", "mysql://x/y"], "is not supported"),
        (["backup", "a", "--store", "sqlite:///none.db"], "there is no store"),
        (["backup", "a", "--store", "postgresql://localhost:1/x"], "store postgresql://localhost:1/x: "),
    ],
)
def test_wrong_store_commands_are_one_line(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in printed(capsys, "store", *arguments, code=2)
    assert [path.name for path in tmp_path.iterdir() if path.name != "eccaht.db"] == []


def test_one_moves_from_sqlite_to_postgresql_and_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with stores.opened("sqlite", tmp_path) as small, stores.located("postgresql", tmp_path) as (url, name):
        fill(small)
        was = contents(small)
        monkeypatch.setenv("ECCAHT_STORE__SCHEMA", str(name))
        large = ("--store", url)
        there, back = str(tmp_path / "there"), str(tmp_path / "back")
        report = json.loads(printed(capsys, "store", "backup", there, "--store", str(small.url), "--json"))
        assert {table["table"]: table["rows"] for table in report["tables"]} == {k: len(v) for k, v in was.items()}
        assert printed(capsys, "store", "restore", there, *large).startswith("restore: ")
        assert "is not empty" in printed(capsys, "store", "restore", there, *large, code=2)
        printed(capsys, "store", "backup", back, *large)
        printed(capsys, "store", "restore", back, "--store", f"sqlite:///{tmp_path / 'back.db'}")
        found = Store(f"sqlite:///{tmp_path / 'back.db'}")
        assert contents(found) == was
        found.close()


def test_ctrl_c_while_restoring_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    with stores.opened("sqlite", tmp_path) as source:
        fill(source)
        backup(source, tmp_path / "kept")
        code = (
            "import os, signal, sys\n"
            "from eccaht.service.operations import copying\n"
            "from eccaht.__main__ import main\n"
            "table = copying._copy_table\n"
            "def slow(*a):\n"
            "    os.kill(os.getpid(), signal.SIGINT) if a[2].name == 'windows' else None\n"
            "    return table(*a)\n"
            "copying._copy_table = slow\n"
            f"sys.argv[1:] = ['store', 'restore', '{tmp_path / 'kept'}']\n"
            f"sys.argv += ['--store', 'sqlite:///{tmp_path / 'new.db'}']\n"
            "sys.exit(main())\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGINT, "", "eccaht: interrupted\n")
        new = Store(f"sqlite:///{tmp_path / 'new.db'}")
        assert [name for name, rows in contents(new).items() if rows] == ["meta"]
        new.close()
