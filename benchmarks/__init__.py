"""Side by side with peers: each module is a script that prints one table."""
