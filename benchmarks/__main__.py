"""``python -m benchmarks``: run every benchmark and write its table."""

from benchmarks import scale

if __name__ == "__main__":
    scale.main()
