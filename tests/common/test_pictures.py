"""A picture that cannot be drawn is one line, once; an older one of that name is removed, and the run goes on."""

from distill.common.pictures import drawing


def test_a_picture_that_cannot_be_drawn_is_one_line_once(tmp_path, capsys):
    file = tmp_path / "curves.png"
    with drawing(file):
        file.write_bytes(b"drawn")
    assert file.read_bytes() == b"drawn"
    for _ in range(2):
        with drawing(file):
            raise RuntimeError("no fonts\nin many lines")
    assert not file.exists()
    assert capsys.readouterr().err == f"{file}: not drawn (RuntimeError: no fonts); the run continues\n"
