"""Decoded samples → what a listener gets: silence trimmed, tempo changed, cut into chunks."""
