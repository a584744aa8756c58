"""Curves that cannot be drawn are one line, once; older ones are removed, and the run goes on."""

from distill.training import history


def test_curves_that_cannot_be_drawn_are_one_line_once(tmp_path, monkeypatch, capsys):
    def fail(*_):
        raise RuntimeError("no fonts\nin many lines")

    file, rows = tmp_path / history.CURVES, [{"step": 1, "training_loss": 2.0}, {"step": 2, "training_loss": 1.0}]
    history.write(tmp_path, rows)
    assert file.read_bytes().startswith(b"\x89PNG")
    monkeypatch.setattr(history, "_draw", fail)
    for _ in range(2):
        history.write(tmp_path, rows)
    assert not file.exists()
    assert (tmp_path / history.CSV).exists()
    assert capsys.readouterr().err == f"{file}: not drawn (RuntimeError: no fonts); the run continues\n"
