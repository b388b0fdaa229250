"""State on disk: archives, pytrees, replay buffers."""
