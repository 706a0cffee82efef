"""What survives: journals, the index of sessions, the audit log; and under them leases, blobs, SQLite files."""
