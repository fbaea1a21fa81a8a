"""Work on a table that changes none of its rows: checkpoints, later vacuum and log clean-up."""
