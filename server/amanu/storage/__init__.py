"""What `journal.py` and `index.py` stand on: leases, blobs, SQLite files. Knows nothing of sessions' content."""
