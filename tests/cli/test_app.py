"""The commands, on a real table: what they print, and their exit codes."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from change_table import write_accounts
from plain_writer import commit_rows, open_target

import alluvium
from alluvium.cli.app import main
from alluvium.plan.changes import Replace
from alluvium.storage.open import open_store


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Versions 0 to 11 append two rows each, in turn to the partitions a and b; version 12 replaces them all by one."""
    root = tmp_path_factory.mktemp("cli") / "a table"
    store = open_store(str(root))
    for n in range(12):
        commit_rows(open_target(store, partitioned=True), [n, n + 100], "ab"[n % 2])
    commit_rows(open_target(store), [1000], "a", replace=Replace())
    return root


@pytest.fixture
def copy(table: Path, tmp_path: Path) -> Path:
    subprocess.run(["cp", "-r", str(table), str(tmp_path / "copy")], check=True)
    return tmp_path / "copy"


class Run:
    """One call: its exit code and what it printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: object) -> None:
        try:
            main([str(a) for a in arguments])
            self.code: object = 0
        except SystemExit as end:
            self.code = end.code or 0
        self.out, self.err = capsys.readouterr()

    def json(self) -> object:
        assert self.code == 0, self.err
        return json.loads(self.out)

    def csv(self) -> list[dict[str, str]]:
        assert self.code == 0, self.err
        return list(csv.DictReader(io.StringIO(self.out)))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *arguments: Run(capsys, *arguments)


def test_show(run, table: Path):
    found = run("show", table, "--format", "json").json()
    assert (found["version"], found["files"], found["rows"], found["columns"]) == (12, 1, 1, 2)
    assert (found["format"], found["partition_columns"], found["reader_version"]) == ("delta", ["p"], 1)
    for_people = run("show", table)
    assert for_people.code == 0
    assert "partition_columns  p" in for_people.out
    assert "txns" not in for_people.out
    assert {"property": "version", "value": "12"} in run("show", table, "-f", "csv").csv()


def test_show_an_earlier_version(run, table: Path):
    found = run("show", table, "--version", 3, "-f", "json").json()
    assert (found["version"], found["files"], found["rows"]) == (3, 4, 8)
    at = alluvium.open(str(table), version=11).timestamp.isoformat()
    assert run("show", table, "--timestamp", at, "-f", "json").json()["version"] == 11


def test_schema(run, table: Path):
    assert run("schema", table, "-f", "json").json() == [
        {"column": "id", "type": "bigint", "nullable": True, "partition": False, "metadata": None},
        {"column": "p", "type": "string", "nullable": True, "partition": True, "metadata": None},
    ]
    assert "metadata" not in run("schema", table).out


def test_history(run, table: Path):
    found = run("history", table, "--limit", 2, "-f", "json").json()
    assert [(row["version"], row["operation"], row["operationParameters"]["mode"]) for row in found] == [
        (12, "WRITE", "Overwrite"),
        (11, "WRITE", "Append"),
    ]
    assert len(run("history", table, "-f", "csv").csv()) == 13
    assert len(run("history", table, "--version", 4, "-f", "csv").csv()) == 5
    assert "mode=Overwrite" in run("history", table).out


def test_files(run, table: Path):
    found = run("files", table, "--version", 11, "--where", "p = 'a' and id = 2", "-f", "json").json()
    assert len(found) == 2  # ids 0 and 100, ids 2 and 102
    assert {row["partition"]["p"] for row in found} == {"a"}
    for_people = run("files", table, "--version", 11, "--where", "p = 'a'", "--limit", 1).out
    assert "6 files, " in for_people
    assert "6 skipped; 1 shown" in for_people
    assert for_people.count(".parquet") == 1


def test_cat(run, table: Path):
    rows = run("cat", table, "--version", 11, "-w", "id >= 100 and p = 'b'", "-c", "id", "-n", 3, "-f", "json").json()
    assert rows == [{"id": 101}, {"id": 103}, {"id": 105}]
    assert run("cat", table, "-n", 0, "-f", "csv").out == "id,p\n"
    assert "1000" in run("cat", table).out


@pytest.mark.parametrize(("limit", "count"), [(1, 1), (7, 7), (1000, 24)])
def test_cat_prints_no_more_than_asked(run, table: Path, limit: int, count: int):
    assert len(run("cat", table, "--version", 11, "-n", limit, "-f", "csv").csv()) == count


def test_diff(run, table: Path):
    found = run("diff", table, 11, 12, "-f", "json").json()
    assert (found["removed"]["files"], found["removed"]["rows"]) == (12, 24)
    assert (found["added"]["files"], found["added"]["rows"]) == (1, 1)
    assert found["schema"] == found["properties"] == found["protocol"] == []
    assert "12 files, 24 rows" in run("diff", table, 11, 12).out
    assert "hold the same" in run("diff", table, 5, 5).out


def test_diff_tells_columns_properties_and_protocol(run, copy: Path):
    log = copy / "_delta_log"
    lines = (log / f"{0:020}.json").read_text().splitlines()
    metadata = next(json.loads(line) for line in lines if "metaData" in line)
    schema = json.loads(metadata["metaData"]["schemaString"])
    schema["fields"][0]["type"] = "string"
    schema["fields"].append({"name": "new", "type": "date", "nullable": False, "metadata": {}})
    metadata["metaData"] |= {"schemaString": json.dumps(schema), "configuration": {"delta.appendOnly": "true"}}
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 3}}
    (log / f"{13:020}.json").write_text(f"{json.dumps(metadata)}\n{json.dumps(protocol)}\n")
    rows = run("diff", copy, 12, 13, "-f", "csv").csv()
    assert [tuple(row.values()) for row in rows] == [
        ("column", "id", "bigint", "string"),
        ("column", "new", "", "date not null"),
        ("property", "delta.appendOnly", "", "true"),
        ("protocol", "writer version", "2", "3"),
    ]


def test_doctor_finds_nothing_wrong_with_a_sound_table(run, table: Path):
    found = run("doctor", table)
    assert (found.code, found.out.startswith("sound")) == (0, True)
    assert run("doctor", table, "-f", "json").json() == []


def findings(run, table: Path) -> list[tuple[str, str, str]]:
    found = run("doctor", table, "-f", "json")
    assert found.code == 1
    return [(f["level"], f["check"], f["message"]) for f in json.loads(found.out)]


def test_doctor_finds_a_data_file_that_is_gone_or_cut_short(run, copy: Path):
    (file,) = [copy / row["path"] for row in alluvium.open(str(copy)).files().to_pylist()]
    size = file.stat().st_size
    file.write_bytes(file.read_bytes()[:-10])
    assert findings(run, copy) == [("error", "files", f"the data file has {size - 10} bytes, the log says {size}")]
    file.unlink()
    assert findings(run, copy) == [("error", "files", "the data file is gone")]


def test_doctor_finds_a_gap(run, copy: Path):
    (copy / "_delta_log" / f"{4:020}.json").unlink()
    (copy / "_delta_log" / f"{5:020}.json").unlink()
    assert findings(run, copy) == [("error", "log", "commits are missing: 4 to 5")]


def test_doctor_finds_a_log_that_cannot_be_read(run, copy: Path):
    (copy / "_delta_log" / f"{12:020}.json").write_text("{")
    assert [(level, check) for level, check, _ in findings(run, copy)] == [("error", "log")]


def test_doctor_finds_damaged_and_missing_checkpoints(run, copy: Path):
    checkpoint = copy / "_delta_log" / f"{10:020}.checkpoint.parquet"
    whole = checkpoint.read_bytes()
    checkpoint.write_bytes(whole[: len(whole) // 2])
    ((level, check, message),) = findings(run, copy)
    assert (level, check, "checkpoint of version 10" in message) == ("error", "checkpoint", True)
    checkpoint.unlink()
    assert findings(run, copy) == [("warning", "checkpoint", "it names a checkpoint of version 10, which is not there")]
    (copy / "_delta_log" / "_last_checkpoint").write_text("{")
    (copy / "_delta_log" / f"{9:020}.checkpoint.{1:010}.{2:010}.parquet").write_bytes(whole)
    assert findings(run, copy) == [
        ("warning", "checkpoint", "the hint does not parse"),
        ("warning", "checkpoint", "parts of the checkpoint are missing, or it is empty"),
    ]


@pytest.mark.parametrize("stats", ["{", '{"numRecords":"x"}', '{"numRecords":-1}', "[]"])
def test_doctor_finds_statistics_that_do_not_parse(run, copy: Path, stats: str):
    (file,) = alluvium.open(str(copy)).files().to_pylist()
    add = {"path": file["path"], "partitionValues": {"p": "a"}, "size": file["size"], "modificationTime": 0}
    entry = {"add": {**add, "dataChange": False, "stats": stats}}
    (copy / "_delta_log" / f"{13:020}.json").write_text(json.dumps(entry) + "\n")
    assert [(level, check) for level, check, _ in findings(run, copy)] == [("warning", "statistics")]


def test_checkpoint(run, copy: Path):
    assert run("checkpoint", copy, "-f", "json").json() == {"version": 12}
    assert (copy / "_delta_log" / f"{12:020}.checkpoint.parquet").exists()
    assert run("show", copy, "-f", "json").json()["rows"] == 1
    assert run("doctor", copy).code == 0


@pytest.mark.parametrize(
    ("arguments", "text", "hint"),
    [
        (["show", "{}/nothing"], "[not-a-table]", "_delta_log"),
        (["show", "{}", "--version", "99"], "[missing-version]", "0 to 12"),
        (["show", "{}", "--version", "1", "--timestamp", "2024-01-01"], "[version-and-timestamp]", ""),
        (["cat", "{}", "--where", "idd = 1"], "[unknown-column]", "did you mean 'id'?"),
        (["cat", "{}", "--columns", "nope"], "[unknown-column]", ""),
        (["show", "{}", "--storage-option", "x"], "[invalid-option]", "--storage-option"),
        (["show", "what://is/this"], "[unknown-scheme]", ""),
        (["history", "{}", "--limit", "-1"], "[invalid-limit]", ""),
        (["files", "{}", "--limit", "-1"], "[invalid-limit]", ""),
    ],
)
def test_an_error_is_one_line_with_its_hint(run, table: Path, arguments: list[str], text: str, hint: str):
    found = run(*(a.format(table) for a in arguments))
    assert (found.code, found.out) == (2, "")
    assert found.err.startswith("error ")
    assert text in found.err
    assert hint in found.err
    assert "Traceback" not in found.err


def test_changes(run, tmp_path: Path):
    root = tmp_path / "accounts"
    write_accounts(str(root))
    rows = run("changes", root, 2, "-f", "json").json()
    assert [(row["id"], row["_change_type"], row["_commit_version"]) for row in rows] == [
        (2, "update_preimage", 2), (2, "update_postimage", 2), (3, "delete", 3),
    ]  # fmt: skip
    assert rows[2]["_commit_timestamp"].startswith("2023-11-14T22:16:20")
    chosen = run("changes", root, 0, "2023-11-14T22:14:20Z", "-c", "id,v", "-w", "id > 1", "-n", 1, "-f", "csv")
    assert chosen.csv() == [{"id": "2", "v": "v2"}]
    assert "update_postimage" in run("changes", root, 0).out
    failed = run("changes", root, 7)
    assert (failed.code, "missing-version" in failed.err) == (2, True)


@pytest.mark.parametrize(
    "arguments", [["frob"], ["show"], ["show", "x", "--frob"], ["diff", "x", "1"], ["show", "x", "-v", "y"]]
)
def test_a_call_that_cannot_be_understood_is_explained(run, arguments: list[str]):
    found = run(*arguments)
    assert found.code == 2
    assert "--help" in found.err


def test_help_and_version(run):
    assert run("--version").out == f"alluvium {alluvium.__version__}\n"
    help_text = run("--help").out
    for command in ("show", "schema", "history", "files", "cat", "changes", "diff", "doctor", "checkpoint"):
        assert f"\n  {command} " in help_text
        assert "URL" in run(command, "--help").out


@pytest.mark.long
def test_a_reader_that_has_seen_enough_gets_no_traceback(table: Path):
    code = f"from alluvium.cli.app import main; main(['files', {str(table)!r}, '--version', '11', '-f', 'json'])"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate()
    assert err == b""


@pytest.mark.long
def test_no_spark_is_loaded(table: Path):
    code = (
        f"import sys; from alluvium.cli.start import main; sys.argv = ['alluvium', 'show', {str(table)!r}]\ntry: main()\n"
        # pyarrow loads pandas where it is installed, unless the command is begun in its own way.
        "except SystemExit: print(sorted({'pyspark', 'py4j', 'pandas'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.splitlines()[-1] == "[]"


def test_pyarrow_is_loaded_before_what_slows_the_making_of_types(table: Path):
    code = (
        f"import sys; from alluvium.cli.start import main; sys.argv = ['alluvium', 'show', {str(table)!r}]\ntry: main()\n"
        # Modules stand in the order in which they were loaded.
        "except SystemExit: print([n for n in sys.modules if n in ('pyarrow', 'typing_extensions')])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    order = out.splitlines()[-1]
    assert order.index("'pyarrow'") < order.index("'typing_extensions'")


def loaded(code: str) -> set[str]:
    """The packages that a new interpreter has loaded after the code, the standard library's left out."""
    told = f"import sys\n{code}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    out = subprocess.run([sys.executable, "-c", told], check=True, capture_output=True, text=True).stdout
    return {name for name in out.splitlines()[-1].split() if name not in sys.stdlib_module_names}


@pytest.mark.long
def test_starting_loads_few_libraries():
    ours = loaded("from alluvium.cli.app import main\ntry: main(['--version'])\nexcept SystemExit: pass")
    libraries = loaded("import msgspec, obstore, pyarrow.compute, pyarrow.parquet, rich.table, sqlglot, click")
    assert "alluvium" in ours
    assert ours - libraries <= {"alluvium", "fastavro", "pyroaring"}
