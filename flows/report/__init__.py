"""Reports: first one frozen value, then its renderings, which read nothing but the value."""
