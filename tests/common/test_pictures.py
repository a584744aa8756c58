"""A picture that cannot be drawn is one line, once; an older one of that name is removed, and the run goes on."""

from pathlib import Path

from distill.common.pictures import picture


def test_a_picture_that_cannot_be_drawn_is_one_line_once(tmp_path, capsys):
    @picture
    def draw(path: Path, fail: bool) -> None:
        if fail:
            raise RuntimeError("no fonts\nin many lines")
        path.write_bytes(b"drawn")

    file = tmp_path / "curves.png"
    draw(file, False)
    assert file.read_bytes() == b"drawn"
    for _ in range(2):
        draw(file, True)
    assert not file.exists()
    assert capsys.readouterr().err == f"{file}: not drawn (RuntimeError: no fonts); the run continues\n"
