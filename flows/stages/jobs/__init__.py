"""What is done for a job: work that somebody asked for at the desk."""
