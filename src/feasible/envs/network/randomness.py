"""Random numbers of the compiled simulator: xoshiro256++ words, exponential services, gaps between ticks.

Why not NumPy's generator: its state is a Python object, while here the complete state is four words beside
the rest of the simulator's arrays, and numbers are made in blocks inside compiled code. Both laws are exact
up to the rounding of doubles. Services are unit exponentials by the ziggurat of Marsaglia and Tsang with
53-bit uniforms (a table look-up in 99 of 100 cases, where inversion always pays a logarithm). Gaps 1/(N +
1), N Poisson, come from Walker's alias table of the whole Poisson law: one word and one comparison each.
The table leaves out values more than 12 standard deviations (and 30) from the mean, of total probability
below 1e-30.
"""

import math

import numpy as np
from jaxtyping import Float64
from numba import njit
from scipy.special import gammaln

# Rows of an alias table: column c gives VALUE with probability SHARE, else OTHER.
SHARE, VALUE, OTHER = 0, 1, 2

LAYERS = 256
# Right end of the lowest layer, and the area of each, for 256 layers under e^-x.
TAIL_START = 7.69711747013104972
LAYER_AREA = 0.0039496598225815571993


def poisson_gap_table(mean: float) -> Float64[np.ndarray, "3 c"]:
    """Walker's alias table of the gap 1/(N + 1), N Poisson with this mean; a power of two of columns."""
    reach = 12.0 * math.sqrt(mean) + 30.0
    lowest = max(0, int(mean - reach))
    columns = 1 << math.ceil(math.log2(mean + reach - lowest + 1.0))
    counts = lowest + np.arange(columns, dtype=np.float64)
    weight = np.exp(counts * math.log(mean) - mean - gammaln(counts + 1.0))
    scaled = weight / weight.sum() * columns
    share, other = np.ones(columns), np.arange(columns)
    small = [c for c in range(columns) if scaled[c] < 1.0]
    large = [c for c in range(columns) if scaled[c] >= 1.0]
    while small and large:
        poor, rich = small.pop(), large[-1]
        share[poor], other[poor] = scaled[poor], rich
        scaled[rich] -= 1.0 - scaled[poor]
        if scaled[rich] < 1.0:
            small.append(large.pop())
    gap = 1.0 / (counts + 1.0)
    return np.array([share, gap, gap[other]])


def _ziggurat_edges() -> Float64[np.ndarray, " layers_1"]:
    """x_0 > x_1 = TAIL_START > ... > x_256 = 0: layer i is x < x_i between the heights e^-x_i and e^-x_(i+1).

    x_0 is the width that a rectangle of the lowest layer's area and height would have; the tail is part of
    it.
    """
    edges = np.zeros(LAYERS + 1)
    edges[0], edges[1] = LAYER_AREA / math.exp(-TAIL_START), TAIL_START
    for i in range(2, LAYERS):
        edges[i] = -math.log(math.exp(-edges[i - 1]) + LAYER_AREA / edges[i - 1])
    return edges


_EDGES = _ziggurat_edges()
_HEIGHTS = np.exp(-_EDGES)


@njit(cache=True, nogil=True)
def next_word(a, b, c, d):
    """One step of xoshiro256++ (Blackman and Vigna) from the state (a, b, c, d): a 64-bit word and the next
    state.

        The state goes through as four numbers, so that it stays in registers while a block is filled.
    """
    total = a + d
    word = ((total << np.uint64(23)) | (total >> np.uint64(41))) + a
    c ^= a
    d ^= b
    return word, a ^ d, b ^ c, c ^ (b << np.uint64(17)), (d << np.uint64(45)) | (d >> np.uint64(19))


@njit(cache=True, nogil=True)
def uniform(word):
    """The 53 high bits as a multiple of 2^-53 in [0, 1)."""
    return np.float64(word >> np.uint64(11)) * 2.0**-53


@njit(cache=True, nogil=True)
def fill_exponential(words, block):
    """Fill a block with unit exponential numbers: mostly one word, two table reads and no logarithm each."""
    a, b, c, d = words[0], words[1], words[2], words[3]
    for i in range(block.size):
        while True:
            word, a, b, c, d = next_word(a, b, c, d)
            # The layer takes 8 low bits, which the uniform does not use.
            layer = word & np.uint64(LAYERS - 1)
            x = uniform(word) * _EDGES[layer]
            if x < _EDGES[layer + np.uint64(1)]:
                break
            word, a, b, c, d = next_word(a, b, c, d)
            if layer == 0:
                x = TAIL_START - math.log(1.0 - uniform(word))
                break
            low, high = _HEIGHTS[layer], _HEIGHTS[layer + np.uint64(1)]
            if low + uniform(word) * (high - low) < math.exp(-x):
                break
        block[i] = x
    words[0], words[1], words[2], words[3] = a, b, c, d


@njit(cache=True, nogil=True)
def fill_gaps(words, table, block):
    """Fill a block with gaps from an alias table."""
    a, b, c, d = words[0], words[1], words[2], words[3]
    columns = np.uint64(table.shape[1] - 1)
    for i in range(block.size):
        word, a, b, c, d = next_word(a, b, c, d)
        column = word & columns
        # The column takes low bits, the share the 51 high ones: up to 8192 columns they do not overlap.
        # The row is computed, not branched to: the outcome is a coin toss that no processor predicts.
        other = np.float64(word >> np.uint64(13)) * 2.0**-51 >= table[SHARE, column]
        block[i] = table[np.uint64(VALUE) + np.uint64(other), column]
    words[0], words[1], words[2], words[3] = a, b, c, d
