from __future__ import annotations

import base64
import gzip
import hashlib
import io
import os
import random
import resource
import socket
import struct
import sys
import unicodedata
import zlib

import pytest
import trio
from PIL import Image

from pi_trio.messages import ImageContent, text_of
from pi_trio.tools import LocalEnvironment, ToolError, read_tool


@pytest.fixture
def read(tmp_path):
    tool = read_tool(LocalEnvironment(tmp_path))

    async def call(path, **args):
        with trio.fail_after(10):
            return await tool.execute("c1", {"path": str(path), **args}, None)

    return call


def text(result):
    return text_of(result.content)


async def test_a_whole_file(read, tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    result = await read("a.txt")
    assert text(result) == "one\ntwo\n"
    digest = hashlib.sha256(b"one\ntwo\n").hexdigest()
    assert result.details == {"files": [{"path": str(tmp_path / "a.txt"), "before": digest, "after": digest}]}


async def test_a_window(read, tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 101)))
    result = await read("a.txt", offset=50, limit=2)
    assert text(result) == "line 50\nline 51\n\n[49 more lines in file. Use offset=52 to continue.]"
    assert text(await read("a.txt", offset=100)) == "line 100\n"
    with pytest.raises(ToolError, match=r"^Offset 101 is beyond end of file \(100 lines total\)$"):
        await read("a.txt", offset=101)


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("lines", [2000, 2001])
async def test_stated_ranges_are_those_sent(read, tmp_path, lines, end):
    """RD-07, BA-09"""
    (tmp_path / "a").write_text("\n".join(map(str, range(1, lines + 1))) + end)
    result = await read("a")
    shown, _, note = text(result).partition("\n\n")
    assert shown.split("\n")[1999] == "2000"
    assert note == ("" if lines == 2000 else "[Showing lines 1-2000 of 2001. Use offset=2001 to continue.]")


async def test_cut_by_bytes(read, tmp_path):
    (tmp_path / "a").write_text("".join(f"{n:04} {'x' * 94}\n" for n in range(1, 1001)))
    result = await read("a", offset=101)
    shown, _, note = text(result).rpartition("\n\n")
    assert shown.split("\n")[-1].startswith("0612 ")
    assert note == "[Showing lines 101-612 of 1000 (50.0KB limit). Use offset=613 to continue.]"
    details = result.details["truncation"]
    assert (details["totalLines"], details["outputLines"]) == (900, 512)
    assert details["totalBytes"] == 90_000


async def test_a_line_that_is_too_long(read, tmp_path):
    """RD-02: nothing of it is shown, so no letter is split."""
    (tmp_path / "a b").write_text("short\n" + "a" * 51_199 + "😀tail\nend\n")
    result = await read("a b", offset=2)
    assert text(result) == (
        "[Line 2 is 50.0KB, exceeds 50.0KB limit. Use bash: sed -n '2p' 'a b' | head -c 51200]"
    )


@pytest.mark.parametrize("shift", [0, 1, 2])
async def test_no_boundary_makes_text_binary(read, tmp_path, shift):
    """RD-03"""
    content = "x" * shift + "漢" * 40_000 + "\n" + "end"
    (tmp_path / "a").write_text(content + "\n" + "漢\n" * 400_000)
    assert text(await read("a", offset=2, limit=2)).startswith("end\n漢\n\n[")


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/tty", "/proc/self/mem", "pipe", "socket", ".", "loop"])
async def test_what_is_no_plain_file_is_refused(read, tmp_path, name):
    """RD-04"""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        with pytest.raises(ToolError):
            await read(name)


async def test_huge_files_stay_out_of_memory(read, tmp_path):
    """RD-05"""
    with (tmp_path / "one-line").open("wb") as file:
        for _ in range(100):
            file.write(b"a" * 1_000_000)
    with (tmp_path / "lines").open("wb") as file:
        for _ in range(50):
            file.write(b"0123456789\n" * 100_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await read("one-line")
    assert text(result).startswith("[Line 1 is more than 1.0MB, exceeds 50.0KB limit.")
    assert result.details["files"][0]["after"] is None  # it was not read to its end
    assert text(await read("lines")).endswith(
        "[Showing lines 1-2000 of a file of 52.5MB. Use offset=2001 to continue.]"
    )
    assert text(await read("lines", limit=1)) == (
        "0123456789\n\n[More lines in this file of 52.5MB. Use offset=2 to continue.]"
    )
    assert text(await read("lines", offset=4_999_990, limit=10)).endswith(
        "0123456789\n\n[1 more lines in file. Use offset=5000000 to continue.]"
    )
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024


@pytest.mark.parametrize(
    ("real", "asked"),
    [
        (unicodedata.normalize("NFD", "café.txt"), "café.txt"),
        ("it\u2019s.md", "it's.md"),
        ("Shot 9.41\u202fPM.png", "Shot 9.41 PM.png"),
    ],
)
async def test_names_that_look_the_same(read, tmp_path, real, asked):
    """RD-06"""
    (tmp_path / real).write_text("found\n")
    assert text(await read(asked)) == f"found\n\n[The file is named {real!r}.]"


async def test_two_candidates_match_nothing(read, tmp_path):
    """RD-06"""
    (tmp_path / "it\u2019s").touch()
    (tmp_path / "it\u2018s").touch()
    with pytest.raises(ToolError, match="no such file"):
        await read("it's")


async def test_paths_as_models_write_them(read, tmp_path, monkeypatch):
    (tmp_path / "a").write_text("A")
    (tmp_path / "@types").mkdir()
    (tmp_path / "@types" / "b").write_text("B")
    monkeypatch.setenv("HOME", str(tmp_path))
    for path, content in [("@a", "A"), ("@types/b", "B"), ("~/a", "A"), (tmp_path / "a", "A")]:
        assert text(await read(path)) == content


@pytest.mark.parametrize("path", ["a\0b", "\ud83d", "n" * 300, "d/" * 2500, "", "a\nb"])
async def test_impossible_paths(read, path):
    """SE-15"""
    with pytest.raises(ToolError):
        await read(path)


async def test_other_encodings(read, tmp_path):
    (tmp_path / "latin").write_bytes(b"caf\xe9\n")
    (tmp_path / "utf16").write_bytes("one\nzwö\n".encode("utf-16"))
    (tmp_path / "bom").write_bytes(b"\xef\xbb\xbfa\r\nb")
    assert text(await read("latin")) == "café\n\n[Not UTF-8: shown as Latin-1.]"
    assert text(await read("utf16", offset=2)) == "zwö\n\n[Not UTF-8: shown as UTF-16.]"
    assert text(await read("bom")) == "a\r\nb"


async def test_binary_and_empty_files(read, tmp_path):
    (tmp_path / "bin").write_bytes(bytes(range(256)) * 100)
    (tmp_path / "late").write_bytes(b"x\n" * 10_000 + b"\0\n")
    (tmp_path / "packed").write_bytes(b"PK\x03\x04\0\0")
    (tmp_path / "empty").touch()
    assert "binary" in text(await read("bin"))
    assert "binary" in text(await read("late", offset=9_999))
    assert text(await read("packed")) == "packed is a binary file (a ZIP archive) of 6B, which is not shown."
    assert text(await read("empty")) == "(empty file)"


def png(width: int, height: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height)).save(file, "PNG")
    return file.getvalue()


async def test_images_by_content(read, tmp_path):
    data = png(30, 20)
    (tmp_path / "picture.txt").write_bytes(data)
    first, image = (await read("picture.txt")).content
    assert first.text == "Read image file [image/png]"
    assert image == ImageContent(base64.b64encode(data).decode(), "image/png")


def bomb() -> bytes:
    header = struct.pack(">IIBBBBB", 30_000, 30_000, 1, 0, 0, 0, 0)
    chunk = b"IHDR" + header
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))


@pytest.mark.parametrize(
    "data",
    [png(30, 30)[:-4], png(30, 30)[:-12] + b"\0" * 6_000_000, bomb()],
    ids=["cut", "large", "bomb"],
)
async def test_images_that_a_provider_would_refuse(read, tmp_path, data):
    """RD-01, RD-08"""
    (tmp_path / "i.png").write_bytes(data)
    with pytest.raises(ToolError, match=r"image"):
        await read("i.png")


def noise(size: tuple[int, int], kind: str) -> bytes:
    """Colours without any order, which no encoding makes small."""
    file = io.BytesIO()
    pixels = random.Random(1).randbytes(size[0] * size[1] * 3)
    Image.frombytes("RGB", size, pixels).save(file, kind)
    return file.getvalue()


def bitmap() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (400, 200), "teal").save(file, "BMP")
    return file.getvalue()


def opened(image: ImageContent) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(image.data)))


@pytest.mark.parametrize(
    ("data", "kind", "lines"),
    [
        (
            png(9000, 10),
            "PNG",
            [
                "[Original 9000x10, shown as 2000x2. "
                "Multiply coordinates by 4.50 to get those of the original.]"
            ],
        ),
        (bitmap(), "PNG", ["[Converted from image/bmp.]"]),
        (noise((1500, 1200), "PNG"), "JPEG", ["[Converted from image/png.]"]),
    ],
    ids=["wide", "bitmap", "large"],
)
async def test_images_are_made_to_fit(read, tmp_path, data, kind, lines):
    """RD-01"""
    (tmp_path / "i").write_bytes(data)
    note, image = (await read("i")).content
    assert note.text.split("\n") == [f"Read image file [image/{kind.lower()}]", *lines]
    assert opened(image).format == kind
    assert max(opened(image).size) <= 2000
    assert len(image.data) <= 4_718_592
    assert len(image.data) % 4 == 0


async def test_photos_are_turned_upright_and_transparent_pictures_stay_readable(read, tmp_path):
    photo = Image.new("RGB", (3000, 1000), "teal")
    photo.getexif()[0x0112] = 6  # taken with the camera on its side
    photo.save(tmp_path / "photo", "JPEG", exif=photo.getexif())
    Image.new("RGBA", (3000, 1000), (255, 0, 0, 128)).save(tmp_path / "glass", "PNG")
    _, upright = (await read("photo")).content
    assert opened(upright).size == (667, 2000)
    _, glass = (await read("glass")).content
    assert opened(glass).mode == "RGBA"


async def test_without_pillow_images_that_fit_are_shown_and_others_name_the_extra(
    read, tmp_path, monkeypatch
):
    (tmp_path / "small").write_bytes(png(20, 20))
    (tmp_path / "wide").write_bytes(png(3000, 10))
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert len((await read("small")).content) == 2
    with pytest.raises(ToolError, match=r"wide: The image of 3000×10 must be made.*pi-trio\[images\]"):
        await read("wide")


async def test_damage_inside_an_image_that_must_be_made_smaller_is_an_error(read, tmp_path):
    """RD-01"""
    data = bytearray(png(3000, 3000))
    data[41:60] = bytes(19)
    (tmp_path / "i").write_bytes(data)
    with pytest.raises(ToolError, match="cannot be decoded"):
        await read("i")


async def test_packed_and_nested_things_are_not_unpacked(read, tmp_path):
    """RD-08"""
    (tmp_path / "zeros.gz").write_bytes(gzip.compress(bytes(50_000_000)))
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    svg = f'<!DOCTYPE svg [<!ENTITY e0 "x">{entities}]><svg>&e9;</svg>'
    (tmp_path / "i.svg").write_text(svg)
    frames = [Image.new("P", (20, 20), n % 256) for n in range(2000)]
    frames[0].save(tmp_path / "i.gif", save_all=True, append_images=frames[1:])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "(gzip)" in text(await read("zeros.gz"))
    assert text(await read("i.svg")) == svg
    assert text(await read("i.gif")) == "Read image file [image/gif]"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024
