"""How well edits find their place: real text, edits like those of commits, search texts that are not quite right."""
