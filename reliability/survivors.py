"""The mutants that live, and why: what ``mutants.py`` looks up and its page shows."""

KINDS = {
    "equal": "The same for every input:",
    "cost": "The same numbers, at another cost:",
    "rounding": "Another last digit, or a tie that no test meets:",
    "elsewhere": "Seen on a GPU alone:",
    "compiled": "Seen in compiled code alone, which a mutant's function is not:",
    "unexplained": "Not explained:",
}
"""Why a mutant may live."""

_LIVING: dict[str, dict[str, dict[str, list[str]]]] = {
    "equal": {
        "A matrix's last axis is its second.": {
            "_priors._along_diagonals": [
                "return bias_of(distances[None]).unfold(-1, key_length, 1).squeeze(-3).flip(+1)",
            ],
        },
        "torch.arange takes a tensor of one number as it takes the number.": {
            "masking._longest": [
                "return longest if (is_jit_traced()) or True else longest.item()",
            ],
        },
        "Both sides have the same length by construction, which `strict` only checks.": {
            "_factorization.AlignmentFactorization.forward": [
                "return torch.stack([machine(pair) for machine, pair in zip(machines, pairs, )], dim=-1).to(x.dtype)",
                "return torch.stack([machine(pair) for machine, pair in zip(machines, pairs, strict=False)], dim=-1)"
                ".to(x.dtype)",
            ],
            "_highway.Highway.forward": [
                "for transform, gate in zip(self.transforms, self.gates, ):",
                "for transform, gate in zip(self.transforms, self.gates, strict=False):",
            ],
            "masking._with_all_dimensions": [
                "fits = mask.ndim == scores.ndim and all(m in (1, s) for m, s in zip(mask.shape, scores.shape, ))",
                "fits = mask.ndim == scores.ndim and all(m in (1, s) for m, s in zip(mask.shape, scores.shape, "
                "strict=False))",
            ],
            "_attention.GaussianSelfAttention._in_passages": [
                "for passage, real in zip(passages, masks, ):",
                "for passage, real in zip(passages, masks, strict=False):",
            ],
            "_passages.cut_into_passages": [
                "return [torch.cat(stretch, dim=1) for stretch in zip(before, parts, after, )]",
                "return [torch.cat(stretch, dim=1) for stretch in zip(before, parts, after, strict=False)]",
            ],
            "functional._machines.three_machines": [
                "return torch.stack([bias + y for bias, y in zip(biases, ys, )], 1)",
                "return torch.stack([bias + y for bias, y in zip(biases, ys, strict=False)], 1)",
            ],
            "functional._machines._saved": [
                "ys, projected = zip(*machines, )",
                "ys, projected = zip(*machines, strict=False)",
            ],
        },
        "A softplus of 40 or more is its argument to the last digit of float64.": {
            "_priors._softplus": [
                "return nn.functional.softplus(unbounded.to(at_least_float32(unbounded.dtype)), threshold=41)",
            ],
        },
        "The names in an einops pattern are arbitrary, and those of a codec and of infinity are not case-sensitive.": {
            "_attention._side_by_side": [
                'return rearrange(heads, "B H N D -> B N (H D)")',
            ],
            "functional._char_ngram.code_points": [
                'flat = np.frombuffer("".join(strings).encode("UTF-32-LE", "surrogatepass"), dtype="<i4")',
            ],
            "_hiding.hide_masked": [
                'fill = torch.zeros_like(has_real, dtype=scores.dtype).masked_fill(has_real, float("-INF"))',
            ],
            "masking.masked_max": [
                'largest = x.masked_fill(~mask[..., None], float("-INF")).amax(1)',
            ],
            "_attention.GaussianSelfAttention.discarded_mass_bound": [
                'normalizer = rearrange(scores.logsumexp(-1), "B H BLOCKS I -> B H (BLOCKS I)")[:, :, : x.shape[1]]',
            ],
            "functional._windowed.windowed_scores": [
                'columns = rearrange(_with_neighbours(real[:, None, :, None], size), "B H BLOCKS J ONE -> B H BLOCKS '
                'ONE J")',
            ],
            "functional._windowed.attend_windows": [
                'return rearrange(y, "B H BLOCKS I D -> B H (BLOCKS I) D")[:, :, : values.shape[2]]',
            ],
        },
        "One more row or column of a prior, of which only the first, or those of a block, are used.": {
            "_attention.GaussianSelfAttention._both_sides": [
                "return self._log_bias(2, length)[..., 0, :], self._log_bias(length, 1)[..., :, 0]",
                "return self._log_bias(1, length)[..., 0, :], self._log_bias(length, 2)[..., :, 0]",
            ],
            "_attention.GaussianSelfAttention._block_bias": [
                "log_bias = self._log_bias(4 * size, 3 * size)[..., size : 2 * size, :]",
            ],
        },
        "Columns behind a square, of which a diagonal takes none.": {
            "_attention.GaussianSelfAttention._block_bias": [
                "own = _diagonal(log_bias[..., size : 3 * size])",
            ],
        },
        "Another way to write the same axis or length, in a tensor with that many axes or a square matrix of scores.": {
            "_blocks._smallest_window": [
                "ranges = ranges.amax(keepdim=True)",
            ],
            "_attention.GaussianSelfAttention._masked_mass": [
                "far = functional.token_distances(scores.shape[2], None, scores.device).abs() > window",
                "far = functional.token_distances(scores.shape[3], scores.shape[3], scores.device).abs() > window",
            ],
            "functional._align.alignment_weights": [
                "return masked_softmax(scores, pairs, ), masked_softmax(scores, pairs, dim=1).transpose(1, 2)",
            ],
            "functional._attention.self_attention_weights": [
                "near = (token_distances(scores.shape[2], None, scores.device).abs() <= window)[None, None]",
                "near = (token_distances(scores.shape[3], scores.shape[3], scores.device).abs() <= window)[None, None]",
            ],
        },
        "On a CPU, PyTorch computes a softmax of halves in float32 by itself.": {
            "functional._attention.self_attention_weights": [
                "weights = biased.softmax(-1, dtype=None)",
                "weights = biased.softmax(-1, )",
            ],
        },
        "A distance of 0 has its own bucket, so it does not matter on which side its far one would be.": {
            "functional._priors.distance_buckets": [
                "far = far + (distances <= 0).to(distances.dtype)",
                "far = far + (distances < 1).to(distances.dtype)",
            ],
        },
        "What zip does by default.": {
            "_checks.require_log_bias": [
                "sizes = zip(reversed(bias.shape), reversed(shape), )",
            ],
        },
        "A sentence that is long enough for blocks has more scores than either.": {
            "_blocks.narrow_window": [
                "if length < max(SHORTEST_IN_BLOCKS, features) or scores < FEWEST_SCORES_IN_BLOCKS.get("
                "queries.device.type, 2):",
            ],
        },
        "A missing attribute gives `None` or `False`, neither of which is `True`.": {
            "_known_priors.is_of_distance": [
                "return all(is_plain(each, OF_DISTANCE) or "
                'getattr(each, "of_distance", None) is True for each in _by_head(prior))',
            ],
        },
        "In two dimensions, a mask of the tokens is a mask of the scores.": {
            "masking._with_all_dimensions": [
                "over_tokens = mask.ndim == 2 and scores.ndim >= 2 and dim % scores.ndim > 0",
            ],
        },
        "The numbers are of this dtype already, or become so in the sum; the quotient is whole.": {
            "functional._priors.gaussian_bias": [
                "return -(w.to(None) * distances.to(dtype).square() + b.to(dtype)).abs()",
                "return -(w.to(dtype) * distances.to(dtype).square() + b.to(None)).abs()",
            ],
            "functional._priors.linear_bias": [
                "return w.to(None) * distances.to(dtype).abs()",
            ],
            "_char_ngram.CharNgramEmbedding._ids": [
                "ids[np.arange(ids.shape[1]) < counts[:, None]] = 1 + hashes.astype(None) % self.num_embeddings",
            ],
            "_char_ngram.CharNgramEmbedding.table": [
                "return vectors[torch.tensor(order, dtype=None, device=vectors.device).argsort()]",
                "return vectors[torch.tensor(order, device=vectors.device).argsort()]",
            ],
            "_attention.GaussianSelfAttention.__init__": [
                "self.scale = 1 / math.sqrt(embed_dim / num_heads) if scale is None else float(scale)",
            ],
        },
        "Any number below 0 marks the end of a word, and any below 128 stands for an empty list.": {
            "functional._char_ngram.char_ngrams": [
                "points = np.pad(points, ((0, 0), (0, missing)), constant_values=-2)",
            ],
            "functional._char_ngram._utf8": [
                "if points.max(initial=1) < 0x80:",
            ],
        },
        "The number is in a place that is never selected, and passes no gradient.": {
            "functional._char_ngram._utf8": [
                "lead = np.array([1, 0x00, 0xC0, 0xE0, 0xF0], dtype=np.uint32)[width]",
                "rest = [(0x80 | ((unsigned >> (6 * (width - 1 - k) % 33)) & 0x3F), width > k) for k in (1, 2, 3)]",
            ],
            "functional._window._less": [
                "share = torch.where(left, log_part - log_sum, +1.0)",
                "share = torch.where(left, log_part - log_sum, -2.0)",
            ],
        },
    },
    "cost": {
        "A function of autograd's is applied to what needs no gradient, too.": {
            "_zeroing.zero_masked": [
                "if not (x.requires_grad or torch.is_grad_enabled()):",
            ],
        },
        "What drops nothing is called, too, of which compiled code has a second version.": {
            "_dropout.Dropout.forward": [
                "return super().forward(x) if (self._drops) or True else x",
            ],
        },
        "A copy that saves time only on a CPU.": {
            "functional._conv.gated_cell": [
                'candidate = candidate.contiguous() if (candidate.device.type == "cpu") or True else candidate',
            ],
        },
        "More memory than the words need, or none allocated in advance.": {
            "functional._position.sinusoidal_encoding": [
                "device = torch.empty(1, device=device).device",
            ],
            "functional._char_ngram.char_ngrams": [
                "missing = max(ngram_size + points.shape[1], 0)",
                "missing = max(ngram_size - points.shape[1], 1)",
            ],
            "functional._char_ngram.code_points": [
                "lengths = np.fromiter(map(len, strings), dtype=np.int64, )",
            ],
        },
        "What was kept, or the same computed anew.": {
            "functional._machines._projected_grad": [
                "return grad[:, None] * (_projected(*blocks) if (torch.is_grad_enabled()) or True else projected)",
            ],
        },
        "Windows short of the peak are examined as well, and excluded afterwards.": {
            "functional._window.smallest_window": [
                'window = torch.arange(last + 1, device="cpu")',
            ],
        },
    },
    "compiled": {
        "Changed by hand, both fail `test_compiled_code_spells_words`.": {
            "_char_ngram.CharNgramEmbedding.encode": [
                "ids: Tensor = torch.compiler.disable(self._ids)(None)  # type: ignore[no-untyped-call]",
                "ids: Tensor = torch.compiler.disable(None)(words)  # type: ignore[no-untyped-call]",
            ],
        },
    },
    "rounding": {
        "Counted in the dtype of the words, which rounds a large count.": {
            "_attention.GaussianSelfAttention.discarded_mass_bound": [
                "count = _words_beyond(x.new_ones(1, x.shape[1], dtype=None) if mask is None else mask, window)",
                "count = _words_beyond(x.new_ones(1, x.shape[1], ) if mask is None else mask, window)",
            ],
        },
        "The prior's scalars in float32 move the bias by its last digit, and the range has 0.1 % to spare.": {
            "_blocks._smallest_window": [
                'has_holes, exact = bool(known[0]), torch.tensor(known[1:], dtype=None, device="cpu")',
                'has_holes, exact = bool(known[0]), torch.tensor(known[1:], device="cpu")',
            ],
            "functional._window.smallest_window": [
                'ranges = torch.as_tensor(score_range, dtype=None, device="cpu")',
                'ranges = torch.as_tensor(score_range, device="cpu")',
            ],
        },
        "A bias of exactly the lowest value that is not searched for denormal weights.": {
            "_denormals.hide_denormals": [
                "if lowest is None or not lowest[0] <= math.log(numbers.tiny / numbers.eps):",
            ],
        },
        "With padding in the range, fewer of the weights are hidden that are lost in the sum.": {
            "_attention.GaussianSelfAttention.discarded_mass_bound": [
                "log_bias = self._block_bias(window, queries, keys, None)",
            ],
        },
        "A bias of exactly the lowest value that blocks accept.": {
            "_blocks._is_moderate_at_0": [
                "return itself is not None and min(itself) >= LOWEST_AT_0",
            ],
        },
        "A window that loses exactly the tolerance.": {
            "functional._window.smallest_window": [
                "enough = (ratio + ranges[..., None] < limit) & (window >= peak)",
            ],
        },
    },
    "elsewhere": {
        "The prior is on the GPU, and so are its distances.": {
            "_priors._along_diagonals": [
                "return bias_of(functional.token_distances(query_length, key_length, None))",
                "return bias_of(functional.token_distances(query_length, key_length, ))",
            ],
        },
        "The prior is on the GPU, and so would be the search for its window.": {
            "functional._window._log_ratio": [
                "beta = log_bias.detach().to(None, torch.float64)",
                "beta = log_bias.detach().to(torch.float64)",
            ],
        },
    },
}

REASONS = {
    (function, line): (kind, reason)
    for kind, reasons in _LIVING.items()
    for reason, functions in reasons.items()
    for function, lines in functions.items()
    for line in lines
}
"""The kind and the reason of each function and line."""
