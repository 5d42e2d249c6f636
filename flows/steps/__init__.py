"""The judgements: pure functions over frames that know schemas and nothing else."""
