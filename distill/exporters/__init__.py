"""A file for others: SavedModel, ONNX, LiteRT, static page, compared in a clean process, with a card."""
