"""Jobs in order: facts in, results out, questions answered. Session, clock and run id are arguments."""
