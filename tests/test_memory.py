"""Pack and batch sizes from free memory and the model's shape."""

from __future__ import annotations

from thaikit import memory
from thaikit.models import LocalModel

LLAMA_8B = memory.Shape(layers=32, hidden=4096, intermediate=14_336, kv=1024, width=2)
GIB = 2**30


def test_a_token_of_llama_8b() -> None:
    assert LLAMA_8B.kv_bytes == 131_072  # 2 x 32 layers x 1,024 x 2 bytes


def test_a_large_gpu_takes_the_largest_pack_and_a_small_one_a_smaller() -> None:
    sizes = [memory.pack_size(LLAMA_8B, free * GIB, longest=2500) for free in (120, 24, 8, 4, 1)]
    assert sizes[0] == memory.LARGEST_PACK
    assert sizes == sorted(sizes, reverse=True) and sizes[-1] == memory.CPU_PACK
    assert all(size & (size - 1) == 0 for size in sizes)


def test_a_cpu_has_its_own_sizes(tiny: LocalModel) -> None:
    assert memory.free_bytes(tiny.model) == 0
    assert memory.pack_size(LLAMA_8B, 0, longest=9999) == memory.CPU_PACK
    assert memory.row_count(LLAMA_8B, 0, longest=9999) == memory.CPU_ROWS


def test_rows_shrink_with_their_length_and_never_below_one() -> None:
    rows = [memory.row_count(LLAMA_8B, 80 * GIB, longest=length) for length in (500, 3000, 30_000, 3_000_000)]
    assert rows[0] == memory.LARGEST_ROWS and rows == sorted(rows, reverse=True) and rows[-1] == 1


def test_the_shape_of_a_model_is_read_off_its_config(tiny: LocalModel) -> None:
    shape, config = memory.shape_of(tiny.model), tiny.model.config
    assert (shape.layers, shape.hidden) == (config.num_hidden_layers, config.hidden_size)
    assert shape.width == 4
