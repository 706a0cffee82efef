"""Ten things a user does all day, played in a real VS Code by pointer and by keyboard alone, each beside what it takes
in Copilot and Cursor by their documents: `make bench-tasks` writes `bench/tasks.md`."""
