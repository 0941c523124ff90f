"""Makes sample-decoder: a small decoder of the Llama family with random weights, in the files that Hugging Face models have.

    python3 crates/tectum-transformer/models/make_sample_decoder.py

It runs wherever `tectum generate` does and means nothing. Its tokens are bytes and pairs of tokens that are frequent in a list of
words. The same bytes come out every time.
"""

import collections
import json
import pathlib

from make_sample_encoder import WORDS
from tensor_file import safetensors

WIDTH, LAYERS, HEADS, KV_HEADS, MIDDLE, CONTEXT, TOKENS = 64, 2, 4, 2, 160, 512, 512
END = "<|end|>"


def byte_characters():
    """The printable character that stands for each byte, as GPT-2's tokenizer has it."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {byte: chr(256 + index) for index, byte in enumerate(others)}


def merges(count):
    """The pairs that join, the most frequent first: byte pair encoding of the words, each with and without a blank before it."""
    blank = byte_characters()[ord(" ")]
    words = [list(start + word) for word in WORDS for start in (blank, "")]
    found = []
    while len(found) < count:
        pairs = collections.Counter(pair for word in words for pair in zip(word, word[1:]))
        # Of pairs that are as frequent the first by characters, so that the order is fixed.
        pair = min(pairs, key=lambda pair: (-pairs[pair], pair))
        found.append(pair)
        words = [join(word, pair) for word in words]
    return found


def join(word, pair):
    joined, index = [], 0
    while index < len(word):
        is_pair = tuple(word[index : index + 2]) == pair
        joined.append("".join(pair) if is_pair else word[index])
        index += 2 if is_pair else 1
    return joined


def tokenizer():
    letters = sorted(byte_characters().values())
    pairs = merges(TOKENS - 1 - len(letters))
    vocabulary = {END: 0} | {token: index + 1 for index, token in enumerate(letters + ["".join(pair) for pair in pairs])}
    assert len(vocabulary) == TOKENS, "a pair makes a token that is there"
    special = {"id": 0, "content": END, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [special], "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "vocab": vocabulary, "merges": [list(pair) for pair in pairs]},
    }


def tensors():
    """Name, shape and deviation of each; a deviation of None is a vector of ones."""
    yield "model.embed_tokens.weight", [TOKENS, WIDTH], 1.0
    head = WIDTH // HEADS
    for layer in range(LAYERS):
        name = f"model.layers.{layer}"
        yield f"{name}.input_layernorm.weight", [WIDTH], None
        for part, out in (("q", HEADS * head), ("k", KV_HEADS * head), ("v", KV_HEADS * head)):
            yield f"{name}.self_attn.{part}_proj.weight", [out, WIDTH], 2.0 * WIDTH**-0.5
        yield f"{name}.self_attn.o_proj.weight", [WIDTH, HEADS * head], 2.0 * WIDTH**-0.5
        yield f"{name}.post_attention_layernorm.weight", [WIDTH], None
        yield f"{name}.mlp.gate_proj.weight", [MIDDLE, WIDTH], 2.0 * WIDTH**-0.5
        yield f"{name}.mlp.up_proj.weight", [MIDDLE, WIDTH], 2.0 * WIDTH**-0.5
        yield f"{name}.mlp.down_proj.weight", [WIDTH, MIDDLE], 2.0 * MIDDLE**-0.5
    yield "model.norm.weight", [WIDTH], None


def main():
    folder = pathlib.Path(__file__).resolve().parent / "sample-decoder"
    folder.mkdir(exist_ok=True)
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": TOKENS, "hidden_size": WIDTH,
        "intermediate_size": MIDDLE, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
        "hidden_act": "silu", "max_position_embeddings": CONTEXT, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
        "tie_word_embeddings": True, "attention_bias": False, "mlp_bias": False, "bos_token_id": None, "eos_token_id": 0,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer(), ensure_ascii=False) + "\n")
    (folder / "model.safetensors").write_bytes(safetensors(tensors()))


if __name__ == "__main__":
    main()
