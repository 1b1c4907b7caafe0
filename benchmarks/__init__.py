"""Speed and memory, each figure with its command."""
