"""The terminal beside Codex and Gemini CLI, all three really run: how quick they draw, and the keys of ten tasks."""
