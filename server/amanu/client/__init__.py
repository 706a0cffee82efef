"""A client of the daemon: the connection, and sessions as they are followed over it."""
