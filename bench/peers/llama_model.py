"""Writes the random Llama that `tectum bench infer` and its peers run: 1,024 wide, 16 layers, 8 heads of queries and 2 of keys and values.

    bench/peers/.venv-llama_cpp/bin/python bench/peers/llama_model.py   # bench/models/llama-1024/{f16,q8_0}.gguf, which git ignores

Weights are normal with a deviation of 0.02, from one seed; norms are 1. There is no tokenizer: what is measured are numbers of tokens.
"""

import pathlib

import gguf
import numpy
from gguf import GGMLQuantizationType as Type

TO = pathlib.Path(__file__).resolve().parent.parent / "models" / "llama-1024"
WIDTH, LAYERS, HEADS, KV_HEADS, MIDDLE, TOKENS, CONTEXT = 1024, 16, 8, 2, 2816, 32000, 4096


def shapes():
    """Tensors by name: rows and columns as NumPy has them."""
    kv = WIDTH // HEADS * KV_HEADS
    yield "token_embd.weight", (TOKENS, WIDTH)
    for layer in range(LAYERS):
        yield f"blk.{layer}.attn_norm.weight", (WIDTH,)
        yield f"blk.{layer}.attn_q.weight", (WIDTH, WIDTH)
        yield f"blk.{layer}.attn_k.weight", (kv, WIDTH)
        yield f"blk.{layer}.attn_v.weight", (kv, WIDTH)
        yield f"blk.{layer}.attn_output.weight", (WIDTH, WIDTH)
        yield f"blk.{layer}.ffn_norm.weight", (WIDTH,)
        yield f"blk.{layer}.ffn_gate.weight", (MIDDLE, WIDTH)
        yield f"blk.{layer}.ffn_up.weight", (MIDDLE, WIDTH)
        yield f"blk.{layer}.ffn_down.weight", (WIDTH, MIDDLE)
    yield "output_norm.weight", (WIDTH,)
    yield "output.weight", (TOKENS, WIDTH)


def write(path, kind):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(MIDDLE)
    writer.add_block_count(LAYERS)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(TOKENS)
    writer.add_quantization_version(2)
    writer.add_tokenizer_model("no_vocab")
    random = numpy.random.default_rng(1)
    for name, shape in shapes():
        if len(shape) == 1:
            writer.add_tensor(name, numpy.ones(shape, numpy.float32))
            continue
        values = random.normal(0.0, 0.02, shape).astype(numpy.float32)
        writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    TO.mkdir(parents=True, exist_ok=True)
    for name, kind in [("f16", Type.F16), ("q8_0", Type.Q8_0)]:
        # Written whole under another name first.
        write(TO / f"{name}.part", kind)
        (TO / f"{name}.part").rename(TO / f"{name}.gguf")
        print(TO / f"{name}.gguf")
