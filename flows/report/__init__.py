"""Reports: one frozen value first, its renderings second; every rendering reads the value."""
