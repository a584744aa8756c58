"""The tests; a package, because some libraries install a package of this name."""
