"""The Agent Client Protocol, version 1: sessions of the daemon for Zed, JetBrains, CodeCompanion and their like."""
