"""The same networks, computed faster by TensorFlow on a CPU: same weights, same function up to the rounding of sums.

Saved and served are always the networks of Keras' own layers. Training steps, and a search's evaluations in float32,
go to a copy of the network (`copies.fast_copy`) with the kernels below in place of layers. One difference: the
optimizer Muon trains matrices and leaves other weights to AdamW, and some weights of three or four axes are matrices in
the copy.

    whole_board  3 × 3 convolutions of whole boards by Toom and Cook's method: 1.6–2.0 times as fast in float32
    separable    depthwise convolutions as matrix products: 1.3 times in float32, 3.5 in bfloat16
    batch_norm   batch normalization as one operation of TensorFlow: 1.1 times in float32, 1.7 in bfloat16
    encoder      the transformer's encoder layers, features first: 1.6 times

Each module says what it replaces and what it gains.
"""
