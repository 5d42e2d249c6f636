"""Stages as Prefect tasks, and the terms they run on."""
