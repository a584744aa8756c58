"""The page on which people play, and its JSON API; `page/` is static and also works without a server."""
