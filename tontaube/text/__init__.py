"""Text as people write it → segments that the model reads, with ranges in the original."""
