"""A second, larger network: shapes of 0.7 to 1.5 million parameters, and their training on an accelerator."""
