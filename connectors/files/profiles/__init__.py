"""Feed profiles: what files of one sender are like, read from TOML and proven to make sense."""
