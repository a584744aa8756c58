"""Where compiled code is kept (`mcts/compiling.py`): in the first writable folder, another one for another Numba."""

from pathlib import Path

from distill.mcts import compiling


def test_the_first_writable_folder_keeps_the_compiled_code_and_another_numba_compiles_again(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setattr(compiling, "__file__", str(tmp_path / "file" / "compiling.py"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = compiling._folder()
    assert Path(folder).parent == tmp_path / "cache" / "distill"
    monkeypatch.setattr(compiling.provenance, "versions", lambda *_: {"numba": "99"})
    assert compiling._folder() != folder
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert compiling._folder() != compiling._folder(), "each process compiles for itself"
