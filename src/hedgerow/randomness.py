"""A seed or operating-system entropy, turned into named and independent random streams.

One construction serves both: 32 root bytes, expanded by SHAKE-256 under the name of the stream. The
output is as unpredictable as its root, so a release made from operating-system entropy rests on a
cryptographic generator rather than on a simulation one, and a seeded run repeats byte for byte.

A seed is as confidential as the data: with a known seed a release is a function of the table.
"""

import hashlib
import secrets
from dataclasses import dataclass, field

import numpy as np
from scipy.special import gammaincinv, ndtri

from hedgerow.arrays import Array
from hedgerow.errors import SettingError

_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class Key:
    """A node in a tree of keys. Siblings are independent; the same path gives the same stream."""

    _root: bytes = field(repr=False)

    @classmethod
    def from_seed(cls, seed: int | None) -> "Key":
        """A root key: from the seed, or from the operating system if there is none."""
        if seed is None:
            return cls(secrets.token_bytes(32))
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise SettingError(
                f"seed must be a whole number from 0 up, got {type(seed).__name__}. "
                "Leave it out for a release."
            )
        return cls(hashlib.sha256(b"hedgerow seed " + str(int(seed)).encode()).digest())

    def child(self, name: str | int) -> "Key":
        """The key of a named purpose below this one."""
        tag = b"name " + name.encode() if isinstance(name, str) else b"number " + str(name).encode()
        return Key(hashlib.sha256(self._root + b"/" + tag).digest())

    def stream(self) -> "Stream":
        """A fresh stream of random numbers; asking twice gives the same numbers twice."""
        return Stream(self)

    def integer(self) -> int:
        """A 63-bit number for generators that want an integer seed."""
        return int.from_bytes(hashlib.sha256(self._root + b"integer").digest()[:8], "little") >> 1


class Stream:
    """Random numbers by inverse distribution functions, in the order they are asked for."""

    def __init__(self, key: Key) -> None:
        self._key = key._root
        self._counter = 0

    def _bytes(self, count: int) -> bytes:
        parts = []
        while count > 0:
            size = min(count, _BLOCK_BYTES)
            parts.append(self._block(self._counter, size))
            self._counter += 1
            count -= size
        return b"".join(parts)

    def _block(self, counter: int, size: int) -> bytes:
        return hashlib.shake_256(self._key + counter.to_bytes(8, "little")).digest(size)

    def uniform(self, size: int | tuple[int, ...]) -> Array:
        """Uniform on the open interval (0, 1): odd multiples of 2⁻⁵³, so that neither end occurs."""
        count = int(np.prod(size))
        return _as_uniform(self._bytes(8 * count)).reshape(size)

    def part(self, numbers: slice, of: int) -> Array:
        """Those numbers of `uniform(of)`, without the others: what comes next is what would come after it.

        >>> key = Key.from_seed(1)
        >>> bool((key.stream().part(slice(3, 5), 9) == key.stream().uniform(9)[3:5]).all())
        True
        """
        first, last = 8 * numbers.start, 8 * numbers.stop
        parts = []
        for block in range(first // _BLOCK_BYTES, -(-last // _BLOCK_BYTES)):
            start = block * _BLOCK_BYTES  # of the block; what it gives depends on no other
            made = self._block(self._counter + block, min(last - start, _BLOCK_BYTES))
            parts.append(made[max(first - start, 0) :])
        self._counter += -(-8 * of // _BLOCK_BYTES)
        return _as_uniform(b"".join(parts))

    def normal(self, size: int | tuple[int, ...]) -> Array:
        """Standard normal."""
        return np.asarray(ndtri(self.uniform(size)), dtype=np.float64)

    def gamma(self, shape: float, size: int) -> Array:
        """Gamma with the given shape and rate 1."""
        return np.asarray(gammaincinv(shape, self.uniform(size)), dtype=np.float64)

    def below(self, bound: int) -> int:
        """One of the whole numbers 0 … bound − 1, each with exactly the same probability: bits, no floats."""
        bits = (bound - 1).bit_length()
        size = -(-bits // 8)
        while True:
            number = int.from_bytes(self._bytes(size), "little") >> (8 * size - bits)
            if number < bound:
                return number

    def __repr__(self) -> str:
        return "Stream(confidential)"


def _as_uniform(numbers: bytes) -> Array:
    bits = np.frombuffer(numbers, dtype="<u8") >> np.uint64(12)
    return np.asarray((bits + 0.5) * 2.0**-52, dtype=np.float64)
