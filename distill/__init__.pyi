from distill.common.errors import UserError as UserError
from distill.datasets.packed import write_labels as write_labels
from distill.evaluation.grading import evaluate_players as evaluate_players
from distill.game.encoding import board as board
from distill.game.encoding import boards as boards
from distill.game.rules import Position as Position
from distill.game.rules import draw as draw
from distill.game.rules import from_moves as from_moves
from distill.game.rules import parse_board as parse_board
from distill.generate import generate_games as generate_games
from distill.mcts.labeller import Labeller as Labeller
from distill.mcts.labeller import Labels as Labels
from distill.networks.predict import load_keras as load_keras
from distill.networks.predict import load_pretrained as load_pretrained
from distill.players.player import Choices as Choices
from distill.players.player import Player as Player
from distill.train import train_network as train_network

PUBLIC: dict[str, str]
__version__: str
