"""The work of jobs, which people order at the desk."""
