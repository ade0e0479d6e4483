"""gramian."""
