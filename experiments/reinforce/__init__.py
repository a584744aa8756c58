"""REINFORCE: a network learns from games against earlier copies of itself, without search.

`settings` has its settings, `games` plays the games and makes training batches of them, `run` trains, and evaluates the
network against built-in players.
"""

RIVALS = ("punisher", "random")
"""The players that a network is evaluated against."""
