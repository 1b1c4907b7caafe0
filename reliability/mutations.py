"""Ways to make a hostile file of a valid one: byte by byte, or inside its format, behind the checksums."""

import gzip
import io
import json
import random
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from safetensors.torch import load
from torch import Tensor

from nli_common.tensors import packed

Mutation = Callable[[random.Random, bytes], bytes]
LARGEST_FILE = 200_000
NASTY = [
    *(b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n\n", b"\t", b'"', b"\\ud800", b"\\u0000", b"\xc0\x80"),
    *(b"[/b]", b"../../x", b"%s%n", b"\x1b[2J", "\u2028\u0085\u202e".encode(), b"-", b" ", b"#", b"1_0", b"NaN"),
    *(b"1e999", b"-1", b"9" * 5000, b"18446744073709551616", b"[" * 3000, b'{"a":' * 1200, b"(" * 2000, b"null", b"{}"),
    *(b"x" * 3000, b"a " * 3000, b"__class__", b"PK\x05\x06", b"\x1f\x8b\x08", b"\x93NUMPY", b"\x80\x04."),
]
JSON_VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1, 3, 2**31, 10**30, 10**400, 1.5, -0.0, float("nan"), float("inf"), 1e300),
    *("", "-", "x", "\ud800", "[/b]", "../../x", "neutral", "\n", "null", "9" * 50),
    *([], {}, [[]], [None], {"a": 1}, ["a", "a"], [1, 2]),
]


def mutated(rng: random.Random, content: bytes, others: Sequence[bytes]) -> bytes:
    """A file with one to four random changes, of those that need no knowledge of its format."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        content = _changed(rng, content, rng.choice(others))[:LARGEST_FILE]
    return content


def _changed(rng: random.Random, content: bytes, other: bytes) -> bytes:
    start, end = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    head, part, tail = content[:start], content[start:end], content[end:]
    changes = (
        lambda: head,
        lambda: _flipped(rng, content),
        lambda: head + tail,
        lambda: head + part * rng.choice((2, 5)) + tail,
        lambda: head + rng.choice(NASTY) + part + tail,
        lambda: head + rng.choice(NASTY) + tail,
        lambda: head + other[rng.randrange(len(other) + 1) :],
        lambda: _recoded(rng, content),
        lambda: head + rng.randbytes(len(part)) + tail,
    )
    return rng.choice(changes)()


def _flipped(rng: random.Random, content: bytes) -> bytes:
    flipped = bytearray(content)
    for _ in range(rng.choice((1, 1, 3, 30)) if content else 0):
        flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
    return bytes(flipped)


def _recoded(rng: random.Random, content: bytes) -> bytes:
    encoding = rng.choice(("utf-16", "utf-16-le", "utf-32", "latin-1", "utf-8-sig", "utf-7"))
    return content.decode("utf-8", "replace").encode(encoding, "replace")


def mutated_json(rng: random.Random, value: Any) -> Any:
    """JSON with one of its values replaced, removed, renamed or nested."""
    if isinstance(value, dict | list) and value and rng.random() < 0.8:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key, kind = rng.choice(keys), rng.randrange(8)
        changed = value.copy()
        if kind == 0:
            del changed[key]
        elif kind == 1 and isinstance(value, dict):
            changed[rng.choice((*map(str, keys), "x", "__init__"))] = changed.pop(key)
        else:
            changed[key] = mutated_json(rng, changed[key])
        return changed
    if rng.random() < 0.1:
        nested: Any = value
        for _ in range(rng.choice((3, 60, 300))):
            nested = [nested] if rng.random() < 0.5 else {"a": nested}
        return nested
    return rng.choice(JSON_VALUES)


def json_file(rng: random.Random, content: bytes) -> bytes:
    """One value of a JSON file."""
    return json.dumps(mutated_json(rng, json.loads(content))).encode()


def json_lines(rng: random.Random, content: bytes) -> bytes:
    """One value in a line of JSON."""
    lines = content.splitlines()
    place = rng.randrange(len(lines))
    lines[place] = json_file(rng, lines[place])
    return b"\n".join(lines)


def table(rng: random.Random, content: bytes) -> bytes:
    """One or two fields of a table."""
    lines = [line.split(b"\t") for line in content.split(b"\n")]
    for _ in range(rng.choice((1, 2))):
        fields = rng.choice(lines)
        place, kind = rng.randrange(len(fields)), rng.randrange(4)
        if kind == 0 and len(fields) > 1:
            del fields[place]
        elif kind == 1:
            fields.insert(place, rng.choice(NASTY))
        else:
            fields[place] = rng.choice((*NASTY, *rng.choice(lines)))
    if rng.random() < 0.2:
        rng.shuffle(lines)
    return b"\n".join(b"\t".join(fields) for fields in lines)


def words(rng: random.Random, content: bytes) -> bytes:
    """One word or number of a line."""
    lines = [line.split(b" ") for line in content.split(b"\n")]
    fields = rng.choice(lines)
    fields[rng.randrange(len(fields))] = rng.choice((*NASTY, b"", b"1e38", b"1e39", b"0x1", b"inf", b"1,5"))
    return b"\n".join(b" ".join(fields) for fields in lines)


def in_gzip(change: Mutation) -> Mutation:
    """What the file holds, compressed again."""
    return lambda rng, content: gzip.compress(change(rng, gzip.decompress(content)), 1)


def zipped(content: bytes, name: str = "vectors.txt", method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An archive of one file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr(name, content)
    return file.getvalue()


def in_zip(rng: random.Random, content: bytes) -> bytes:
    """What the archive holds, its name, its method, or a byte of the archive's directory."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        inner = archive.read(archive.infolist()[0])
    method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2))
    name = rng.choice(("vectors.txt", "../../x", "/etc/x", "folder/", "__MACOSX/x", "a\0b"))
    rebuilt = bytearray(zipped(words(rng, inner), name, method))
    if rng.random() < 0.5:
        rebuilt[rebuilt.rfind(b"PK\x01\x02") + rng.randrange(4, 46)] = rng.randrange(256)
    return bytes(rebuilt)


def npz(arrays: dict[str, Any], *, pickled: bool = False) -> bytes:
    """Arrays as ``.npz``."""
    file = io.BytesIO()
    np.savez(file, allow_pickle=pickled, **arrays)
    return file.getvalue()


def in_npz(rng: random.Random, content: bytes) -> bytes:
    """One array, its name, or what its header declares."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    name, kind = rng.choice(list(members)), rng.randrange(5)
    if kind == 0:
        others = [np.ones(3), np.array("x"), np.array([["a"]]), np.ones((6, 3), dtype=complex), np.ones((2, 0))]
        file = io.BytesIO()
        np.save(file, rng.choice(others))
        members[name] = file.getvalue()
    elif kind == 1:
        members[rng.choice(("words.npy", "vectors.npy", "x.npy", "words", "../../x.npy"))] = members.pop(name)
    else:
        members[name] = _other_header(rng, members[name])
        if rng.random() < 0.2:
            members[name] = mutated(rng, members[name], list(members.values()))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    return file.getvalue()


def _other_header(rng: random.Random, array: bytes) -> bytes:
    """An ``.npy`` file that declares something else, the length of its header put right."""
    header, _, data = array.partition(b"\n")
    old, new = rng.choice(
        (
            (b"(6,", b"(%d," % rng.choice((0, 5, 7, 10**10, 2**63, -6))),
            (b"<f4", rng.choice((b"<f8", b"|O", b"<i4"))),
            (b"<U", rng.choice((b">U", b"<U9", b"|S"))),
            (b"False", b"True"),
            (b", 3)", b", " + rng.choice(NASTY)[:100]),
        )
    )
    text = header[10:].replace(old, new)
    text += b" " * (-(len(text) + 11) % 64)
    return header[:8] + (len(text) + 1).to_bytes(2, "little") + text + b"\n" + data


def in_safetensors(rng: random.Random, content: bytes) -> bytes:
    """A tensor or what lies beside the tensors, under a checksum that fits; or what the header declares."""
    if rng.random() < 0.3:
        return _other_declaration(rng, content)
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    tensors, note = load(content), json.loads(header["__metadata__"]["note"])
    del note["checksum"]
    kind = rng.randrange(3)
    if kind == 0 and note:
        changed = mutated_json(rng, note)
        note = changed if isinstance(changed, dict) else {"x": changed}
    elif kind <= 1 and "strings" in tensors:
        strings = json.dumps(mutated_json(rng, json.loads(tensors["strings"].numpy().tobytes()))).encode()
        tensors["strings"] = torch.frombuffer(bytearray(strings), dtype=torch.uint8)
    else:
        name = rng.choice(list(tensors))
        tensor = tensors.pop(name)
        if rng.random() < 0.9:
            tensors[name if rng.random() < 0.9 else rng.choice(("x", "../../x", "model.x"))] = _other_tensor(
                rng, tensor
            )
    return packed(tensors, note)


def _other_tensor(rng: random.Random, tensor: Tensor) -> Tensor:
    """Another type, another shape, or a number that should not be there."""
    kind = rng.randrange(4)
    if kind == 0:
        types = (
            torch.float64,
            torch.float16,
            torch.bfloat16,
            torch.float8_e4m3fn,
            torch.int32,
            torch.uint8,
            torch.bool,
        )
        return tensor.to(rng.choice((*types, torch.complex64)))
    if kind == 1:
        return rng.choice((tensor[None], tensor.reshape(-1), tensor.T if tensor.ndim == 2 else tensor[..., None]))
    if kind == 2 and tensor.ndim:
        return rng.choice((tensor[:-1], tensor[:0], torch.cat([tensor, tensor])))
    changed = tensor.clone().reshape(-1)
    wrong = (float("nan"), float("inf"), 1e38, -1.0) if tensor.is_floating_point() else (-1, 100, 2**31 - 1)
    changed[rng.randrange(len(changed))] = torch.tensor(rng.choice(wrong), dtype=torch.float64).to(tensor.dtype)
    return changed.reshape(tensor.shape)


def _other_declaration(rng: random.Random, content: bytes) -> bytes:
    """A header that declares something else, its length put right, or nearly."""
    size = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + size]), content[8 + size :]
    if rng.random() < 0.5:
        entry = header[rng.choice([name for name in header if name != "__metadata__"])]
        if rng.random() < 0.5:
            entry["dtype"] = rng.choice(("I32", "F16", "BF16", "F64", "U8", "F8_E4M3", "C64", "X"))
        else:
            entry["shape"] = rng.choice(([], [2**62, 4], [0], [-1], [1, *entry["shape"]], entry["shape"][::-1]))
    else:
        header = mutated_json(rng, header)
    text = json.dumps(header).encode()
    size = len(text) if rng.random() < 0.9 else rng.choice((2**63, 10**9, 0, len(text) - 1))
    return size.to_bytes(8, "little") + text + data
