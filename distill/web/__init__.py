"""The page on which people play, and the JSON API behind it; `page/` is static and also works without a server."""
