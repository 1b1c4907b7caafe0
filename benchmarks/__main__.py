"""``python -m benchmarks``: run every benchmark and write its table."""

from benchmarks import scale, speed

if __name__ == "__main__":
    speed.main()
    scale.main()
