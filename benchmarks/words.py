"""Words that no language has, as many as are asked for."""

import torch


def random_words(count: int) -> list[str]:
    """Words of 4 to 9 letters; a few of them occur twice."""
    generator = torch.Generator().manual_seed(0)
    letters = torch.randint(97, 123, (count, 9), generator=generator).tolist()
    return ["".join(map(chr, row[: 4 + row[8] % 6])) for row in letters]
