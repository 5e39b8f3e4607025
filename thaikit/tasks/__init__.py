"""Benchmarks: rows → items → prompts → scores, one file a benchmark."""
