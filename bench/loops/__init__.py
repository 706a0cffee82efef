"""How well loops are seen: a corpus of turns, our detectors and the published rules of others."""
