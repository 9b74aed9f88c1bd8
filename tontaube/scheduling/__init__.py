"""The one queue: who may speak, whose work is next, and the thread in which it is done."""
