"""The contract between the daemon and its clients. Imports pydantic and nothing of ours."""
