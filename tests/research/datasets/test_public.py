"""Files as their publishers lay them out become collections that `eccaht incidents` reads."""

import gzip
import hashlib
import json
import threading
from functools import partial
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest

from eccaht.cli.main import run
from eccaht.research.datasets import public
from eccaht.research.datasets.labelled import Segment, find_collections, read_entity, read_sheet, read_spans

RNG = np.random.default_rng(0)
SKAB = "datetime;Pressure;Voltage;anomaly;changepoint\n2020-03-09 10:14:33;0.05;220.1;0.0;0.0\n"
PUBLISHED: dict[str, dict[str, str]] = {
    "skab": {"SKAB-master/data/valve1/0.csv": SKAB, "SKAB-master/data/other/11.csv": SKAB, "SKAB-master/README.md": ""},
    "smd": {
        "O/ServerMachineDataset/train/machine-1-1.txt": "0.1,0.2,0.3\n0.4,0.5,0.6\n",
        "O/ServerMachineDataset/test/machine-1-1.txt": "0.1,0.2,0.3\n0.4,0.5,0.6\n",
        "O/ServerMachineDataset/interpretation_label/machine-1-1.txt": "0-1:1,3\n",
        "O/ServerMachineDataset/train/machine-9-9.txt": "0.1,0.2,0.3\n",
    },
    "sockshop": {
        f"rcd/sock-shop-data/carts-cpu/1/{part}.csv": "time,carts_cpu,user_mem\n"
        + "".join(f"{first + k},{value},{k}\n" for k in range(rows))
        for part, first, rows, value in (("normal", 1652565600, 100, 1), ("anomalous", 1652569999, 30, 9))
    },
}


def published(name: str, path: Path) -> Path:
    with ZipFile(path, "w") as archive:
        for place, content in PUBLISHED[name].items():
            archive.writestr(place, content)
    return path


def fetched(name: str, tmp_path: Path) -> Path:
    public.fetch(name, tmp_path / name, published(name, tmp_path / "archive.zip"))
    return tmp_path / name


def test_skab_keeps_its_groups(tmp_path: Path) -> None:
    found = find_collections(fetched("skab", tmp_path))
    assert [entity.label for entity in found.entities] == ["skab/other/11", "skab/valve1/0"]
    assert gzip.decompress(found.entities[0].history.read_bytes()).decode() == SKAB


def test_smd_has_segments_and_metrics_counted_from_0(tmp_path: Path) -> None:
    (entity,) = find_collections(fetched("smd", tmp_path)).entities
    assert entity.segments == (Segment(0, 1, (0, 2)),)
    train, test = read_entity(entity)
    np.testing.assert_array_equal(train.rows, test.rows)


def test_sock_shop_joins_the_run_with_the_fault_to_the_last_quiet_minute(tmp_path: Path) -> None:
    (entity,) = find_collections(fetched("sockshop", tmp_path)).entities
    history, incident = read_sheet(entity.history), read_sheet(entity.recordings[0])
    assert (len(history.rows), len(incident.rows)) == (40, 90)
    assert (incident.rows[:60, 0] == 1).all()
    assert (incident.rows[60:, 0] == 9).all()
    assert history.times is not None
    assert incident.times is not None
    times = np.concatenate([history.times, incident.times])
    assert (np.diff(times) == np.timedelta64(1, "s")).all()
    ((onset, _, sensors),) = read_spans(entity)
    assert (onset, sensors) == (incident.times[60], ("carts_cpu",))


def test_tennessee_eastman_is_turned_where_its_rows_are_columns(tmp_path: Path) -> None:
    rows = RNG.normal(10.0, 1.0, (70, 52)).round(3)
    (tmp_path / "TE").mkdir()
    for name, table in {"d00": rows.T, "d00_te": rows, "d01": rows, "d01_te": rows}.items():
        np.savetxt(tmp_path / "TE" / f"{name}.dat", table)
    public.fetch("tep", tmp_path / "tep", tmp_path / "TE")
    (entity,) = find_collections(tmp_path / "tep").entities
    assert [path.name for path in entity.recordings] == ["normal-test.csv.gz", "fault-01.csv.gz"]
    for path in (entity.history, *entity.recordings):
        sheet = read_sheet(path)
        np.testing.assert_allclose(sheet.rows, rows)
        assert (sheet.names[0], sheet.names[-1], len(sheet.names)) == ("XMEAS(1)", "XMV(11)", 52)


def test_what_was_written_is_said_with_its_checksums(tmp_path: Path) -> None:
    place, again = fetched("smd", tmp_path), tmp_path / "again"
    document = json.loads((place / "source.json").read_text())
    assert document["archive_sha256"] == hashlib.sha256((tmp_path / "archive.zip").read_bytes()).hexdigest()
    for name, digest in document["sha256"].items():
        assert hashlib.sha256((place / name).read_bytes()).hexdigest() == digest
    assert public.fetch("smd", again, tmp_path / "archive.zip")["sha256"] == document["sha256"]


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


def test_the_command_downloads_what_is_not_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    published("skab", tmp_path / "skab.zip")
    server = HTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        address = f"http://127.0.0.1:{server.server_port}"
        for name, file in (("skab", "skab.zip"), ("smd", "absent.zip")):
            changed = public.COLLECTIONS[name]._replace(address=f"{address}/{file}")
            monkeypatch.setitem(public.COLLECTIONS, name, changed)
        assert run(["data", "fetch", "skab", "--out", str(tmp_path / "pump"), "--json"]) == 0
        assert len(json.loads(capsys.readouterr().out)["sha256"]) == 2
        assert run(["data", "fetch", "smd", "--out", str(tmp_path / "smd")]) == 2
        assert "--from" in capsys.readouterr().err
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_what_is_no_such_archive_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    skab, text = published("skab", tmp_path / "skab.zip"), tmp_path / "text"
    text.write_text("no archive")
    for arguments, why in (
        (["fetch", "smd", "--from", str(skab)], "holds no file of smd"),
        (["fetch", "smd", "--from", str(text)], "no zip archive"),
        (["fetch", "smd", "--from", "nowhere"], "no file at nowhere"),
        (["fetch", "sockshp"], "did you mean 'sockshop'?"),
        (["fetch"], "give a NAME"),
    ):
        assert run(["data", *arguments, *(["--out", str(tmp_path / "out")] if "--from" in arguments else [])]) == 2
        assert why in capsys.readouterr().err
    assert run(["data", "list"]) == 0
    assert "GPL-3.0" in capsys.readouterr().out
