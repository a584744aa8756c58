"""Networks: their layers, heads and mask, fast CPU kernels, loading a saved one, evaluating it.

A network is a functional Keras 3 model of `keras.ops` alone, so any backend trains it:

    planes float32 (B, 6, 7, C) or tokens int32 (B, 42)  →  {"logits": (B, 7)[, "value": (B,)]}

The logits are raw; `heads.played` puts the encoding before a network and the legal mask after it. A network of your own
is a function `build(value_head) -> keras.Model`, named as "module:build" wherever a command takes an arch.
"""

from distill.networks.backend import Precision, fast_precision, on_cpu, start_backend
from distill.networks.registry import ARCH_HELP, ARCH_RULE, ARCHS, Architecture, arch_of, build, is_arch, trust

__all__ = [
    "ARCHS", "ARCH_HELP", "ARCH_RULE", "Architecture", "Precision", "arch_of", "build", "fast_precision", "is_arch", 
    "on_cpu", "start_backend", "trust",
]  # fmt: skip
