"""Makes sample-gguf/model.gguf: the weights of sample-decoder in one GGUF file, tables and products as Q4_0, vectors as F32.

    python3 crates/tectum-transformer/models/make_sample_gguf.py

Names, keys and the order of rows are those of llama.cpp's converter. The same bytes come out every time.
"""

import pathlib
import struct

from make_sample_decoder import CONTEXT, HEADS, KV_HEADS, LAYERS, MIDDLE, TOKENS, WIDTH, tensors
from tensor_file import values

NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}
U32, F32, TEXT, ALIGNMENT, BLOCK, Q4_0 = 4, 6, 8, 32, 32, 2


def text(string):
    return struct.pack("<Q", len(string)) + string.encode()


def renamed(name):
    stem = name.removesuffix(".weight")
    if not stem.startswith("model.layers."):
        return f"{NAMES[stem]}.weight"
    layer, part = stem.removeprefix("model.layers.").split(".", 1)
    return f"blk.{layer}.{NAMES[part]}.weight"


def rows_in_turns(rows, heads):
    """Rows of each head's two halves, one of the first, one of the second."""
    size = len(rows) // heads
    halves = [(head * size, head * size + size // 2) for head in range(heads)]
    return [rows[start + place] for first, second in halves for place in range(size // 2) for start in (first, second)]


def q4_0(numbers):
    """Blocks of 32: a scale as a half, then codes of 4 bits, those of the second half of the block in the upper bits."""
    packed = b""
    for start in range(0, len(numbers), BLOCK):
        block = numbers[start : start + BLOCK]
        scale = max(block, key=abs) / -8.0
        codes = [min(15, int(number / scale + 8.5)) if scale else 8 for number in block]
        packed += struct.pack("<e", scale) + bytes(low | high << 4 for low, high in zip(codes[:16], codes[16:]))
    return packed


def keys():
    yield "general.architecture", TEXT, text("llama")
    yield "general.name", TEXT, text("sample-gguf")
    sizes = {"context_length": CONTEXT, "embedding_length": WIDTH, "block_count": LAYERS, "feed_forward_length": MIDDLE, "vocab_size": TOKENS,
             "attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS, "rope.dimension_count": WIDTH // HEADS}
    for key, size in sizes.items():
        yield f"llama.{key}", U32, struct.pack("<I", size)
    yield "llama.rope.freq_base", F32, struct.pack("<f", 10000.0)
    yield "llama.attention.layer_norm_rms_epsilon", F32, struct.pack("<f", 1e-5)
    yield "general.quantization_version", U32, struct.pack("<I", 2)
    yield "tokenizer.ggml.model", TEXT, text("no_vocab")
    yield "tokenizer.ggml.eos_token_id", U32, struct.pack("<I", 0)


def main():
    entries, data = b"", b""
    listed = list(tensors())
    for (name, shape, _), numbers in zip(listed, values(listed)):
        if len(shape) == 1:
            kind, packed = 0, struct.pack(f"<{len(numbers)}f", *numbers)
        else:
            rows = [numbers[start : start + shape[1]] for start in range(0, len(numbers), shape[1])]
            if "q_proj" in name or "k_proj" in name:
                rows = rows_in_turns(rows, HEADS if "q_proj" in name else KV_HEADS)
            kind, packed = Q4_0, b"".join(q4_0(row) for row in rows)
        data += b"\0" * (-len(data) % ALIGNMENT)
        entries += text(renamed(name)) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), kind, len(data))
        data += packed
    metadata = [text(name) + struct.pack("<I", kind) + value for name, kind, value in keys()]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(listed), len(metadata)) + b"".join(metadata) + entries
    folder = pathlib.Path(__file__).resolve().parent / "sample-gguf"
    folder.mkdir(exist_ok=True)
    (folder / "model.gguf").write_bytes(head + b"\0" * (-len(head) % ALIGNMENT) + data)


if __name__ == "__main__":
    main()
