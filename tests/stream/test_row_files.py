import json

import pytest

from attakit.errors import StreamError, UnknownName
from attakit.stream.row_files import read_row_file


def test_a_csv_file_has_a_column_for_each_name_in_its_first_line(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text('\ufeffage,name\n3,"Rex, the dog"\n\n4,Tom\n', encoding="utf-8")
    rows = read_row_file(file)
    assert len(rows) == 2
    assert rows.row(0) == {"age": "3", "name": "Rex, the dog"}


def test_tabs_and_json_lines_are_read_by_their_extension(tmp_path):
    (tmp_path / "rows.tsv").write_text("a\tb\n1\t2\n")
    (tmp_path / "rows.jsonl").write_text('{"a": 1}\n\n{"b": [2, 3]}\n')
    assert read_row_file(tmp_path / "rows.tsv").columns == {"a": ["1"], "b": ["2"]}
    assert read_row_file(tmp_path / "rows.jsonl").columns == {"a": [1, None], "b": [None, [2, 3]]}


def test_parquet_gives_the_same_rows_as_csv(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"age": [3, 4], "name": ["Rex", None]}), tmp_path / "a.parquet")
    rows = read_row_file(tmp_path / "a.parquet")
    assert rows.row(0) == {"age": "3", "name": "Rex"}
    assert rows.row(1) == {"age": "4", "name": ""}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "holds no rows"),
        ("a.csv", b"x,y\n", "holds no rows"),
        ("a.csv", b"x,x\n1,2\n", "names in its first line must differ"),
        ("a.csv", b"x,y\n1,2\n3\n", "line 3: there are 1 values for 2 columns"),
        ("a.csv", b"\xff\xfe", "cannot be read"),
        ("a.jsonl", b"{\n", "line 1 is not JSON"),
        ("a.jsonl", b"[1]\n", "line 1 must be a JSON object"),
        ("a.parquet", b"nothing", "is not a Parquet file"),
        ("a.xlsx", b"", "has the extension '.xlsx'. Convert it to a known one: .csv"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_one_line(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(StreamError, match=message):
        read_row_file(tmp_path / name)


def test_a_missing_file_and_an_unknown_column_are_named(tmp_path):
    with pytest.raises(StreamError, match="There is no file"):
        read_row_file(tmp_path / "rows.csv")
    (tmp_path / "rows.jsonl").write_text(json.dumps({"weight": 1}))
    with pytest.raises(UnknownName, match="Did you mean 'weight'"):
        read_row_file(tmp_path / "rows.jsonl").column("wieght")
