"""What finds things out. It uses the package `distill`; the package does not know it."""
