"""Feed profiles: properties of one sender's files, read from TOML and checked for sense."""
