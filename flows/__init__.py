"""When things happen: the stages of a batch, the flows that run them, reports, the command line."""
