from dataclasses import dataclass

import pytest

from attakit.errors import StateError
from attakit.paper.validation.cell_file import CellFile, complete_cells


@dataclass(frozen=True)
class Square:
    side: float


def area(square):
    return {"area": square.side**2}


def test_finished_cells_are_not_worked_out_again(tmp_path):
    path = tmp_path / "cells.jsonl"
    complete_cells(CellFile(path, "squares", {}), [Square(2.0)], area, workers=0)
    asked, seen = [], []

    def count(square):
        asked.append(square)
        return area(square)

    found = complete_cells(
        CellFile(path, "squares", {}),
        [Square(3.0), Square(2.0)],
        count,
        workers=0,
        progress=lambda done, total: seen.append((done, total)),
    )

    assert asked == [Square(3.0)]
    assert found == {Square(3.0): {"area": 9.0}, Square(2.0): {"area": 4.0}}
    assert seen == [(1, 2), (2, 2)]


def test_what_was_finished_before_an_error_is_kept(tmp_path):
    path = tmp_path / "cells.jsonl"

    def fail_at_three(square):
        if square.side == 3:
            raise KeyboardInterrupt
        return area(square)

    cells = [Square(2.0), Square(3.0)]
    with pytest.raises(KeyboardInterrupt):
        complete_cells(CellFile(path, "squares", {}), cells, fail_at_three, workers=0)

    assert CellFile(path, "squares", {}).find({"side": 2.0}) == {"area": 4.0}


def test_a_torn_last_line_is_worked_out_again(tmp_path):
    path = tmp_path / "cells.jsonl"
    complete_cells(CellFile(path, "squares", {}), [Square(2.0), Square(3.0)], area, workers=0)
    path.write_bytes(path.read_bytes()[:-5])

    file = CellFile(path, "squares", {})
    assert file.find({"side": 3.0}) is None
    complete_cells(file, [Square(3.0)], area, workers=0)

    assert CellFile(path, "squares", {}).find({"side": 3.0}) == {"area": 9.0}


def test_results_with_other_settings_are_refused(tmp_path):
    path = tmp_path / "cells.jsonl"
    CellFile(path, "squares", {"lr": 0.1, "updates": 5})

    with pytest.raises(StateError, match=r"other settings: lr = 0\.1 \(now 0\.2\)\."):
        CellFile(path, "squares", {"lr": 0.2, "updates": 5})


def test_results_of_another_experiment_are_refused(tmp_path):
    path = tmp_path / "cells.jsonl"
    CellFile(path, "circles", {})

    with pytest.raises(StateError, match="'squares', got 'circles'"):
        CellFile(path, "squares", {})
