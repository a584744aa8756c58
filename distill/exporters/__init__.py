"""Write a network for other programs: SavedModel, ONNX, LiteRT, 8 bits, a static page, and a model card."""
