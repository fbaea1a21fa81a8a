"""The one optimistic-concurrency loop and its retry policy. Knows no format."""
