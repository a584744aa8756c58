"""Requests to the JSON API, for its tests."""

from distill.game import encoding, rules

URL = "http://127.0.0.1"
FULL_LEFT = "1111112"  # column 1 is full


def ask(client, path="/api/v1/analysis", **body):
    return client.post(path, json=body)


def refusal(client, status: int, **body) -> str:
    """The error line of a request that is refused with this status."""
    reply = ask(client, **body)
    assert reply.status_code == status, reply.text
    assert list(reply.json()) == ["error"]
    assert "\n" not in reply.json()["error"]
    return reply.json()["error"]


def board_of(moves: str) -> list[list[int]]:
    position = rules.from_moves(moves)
    return encoding.boards([position.current], [position.mask])[0].tolist()
