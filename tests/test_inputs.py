"""What tells a run's inputs from others: every file, every number, and nothing of where they lie."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from nli_common.inputs import Data, fingerprint
from runs import write_corpora

MEGABYTE = 1 << 20


def identity(data: Data) -> dict[str, Any]:
    return data.identity(data.corpora())


@pytest.mark.parametrize("change", [{"vector_size": 7}, {"unit_vectors": True}, {"unit_unknown": True}, {"pairs": 208}])
def test_every_number_of_the_data_tells_its_inputs_from_others(change: dict[str, Any], tmp_path: Path) -> None:
    data = Data(pairs=200, cache=tmp_path)
    assert identity(dataclasses.replace(data, **change)) != identity(data)
    assert identity(dataclasses.replace(data, cache=tmp_path / "elsewhere")) == identity(data)


def test_every_file_of_the_data_tells_its_inputs_from_others(tmp_path: Path) -> None:
    options = write_corpora(tmp_path, train=60)
    data = Data(**{name.removeprefix("--"): Path(path) for name, path in zip(options[::2], options[1::2], strict=True)})
    vectors = [tmp_path / "one.txt", tmp_path / "two.txt", tmp_path / "one again.txt"]
    for path in vectors:
        path.write_text(path.name[:3])
    one, two, again = (dataclasses.replace(data, vectors=path) for path in vectors)
    others = [data, one, two, *(dataclasses.replace(data, **{name: data.dev}) for name in ("train", "test"))]
    others.append(dataclasses.replace(data, dev=data.test))
    held = [identity(other) for other in others]
    assert all(held[i] != held[k] for i in range(len(held)) for k in range(i))
    assert identity(again) == identity(one), "the same vectors"


@pytest.mark.parametrize("place", [0, MEGABYTE - 1, 2 * MEGABYTE + 5, -1])
def test_large_files_are_told_apart_by_their_beginning_and_end(place: int, tmp_path: Path) -> None:
    content = bytearray(3 * MEGABYTE)
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(content)
    content[place] = 1
    two.write_bytes(content)
    assert fingerprint(one) != fingerprint(two)
    one.write_bytes(content)
    assert fingerprint(one) == fingerprint(two)


def test_files_of_zeros_are_told_apart_by_their_size(tmp_path: Path) -> None:
    for count in (2, 3):
        (tmp_path / f"{count}").write_bytes(bytes(count * MEGABYTE))
    assert fingerprint(tmp_path / "2") != fingerprint(tmp_path / "3")
