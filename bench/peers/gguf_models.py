"""Writes the random decoders of decoders.py as GGUF files, and beside each the same weights as a folder of Hugging Face's.

    bench/peers/.venv-torch/bin/python bench/peers/decoders.py
    bench/peers/.venv-torch/bin/python bench/peers/gguf_models.py            # bench/models/gguf/FAMILY-TYPE{.gguf,/}, which git ignores
    bench/peers/.venv-torch/bin/python bench/peers/gguf_models.py --golden   # crates/tectum-transformer/tests/data/tiny_llama.gguf

Names, keys and the order of rows are those of llama.cpp's converter: a Llama's queries and keys have neighbouring rows where Hugging Face has
two halves, GPT-2's weights are transposed. Codes are by the Python package gguf; the folders hold the numbers that it makes of them, back
in Hugging Face's order. `crates/tectum-transformer/tests/gguf.rs` holds the two against one another, bit for bit. The tiny model carries in its
metadata what Hugging Face transformers makes of its weights: `tectum.prompt`, `tectum.greedy`, `tectum.scores` after the last of those.
"""

import argparse
import json
import pathlib
import re

import gguf
import numpy
from gguf import GGMLQuantizationType as Type
from safetensors.numpy import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FROM = ROOT / "bench" / "models" / "decoders"
TO = ROOT / "bench" / "models" / "gguf"
TINY = ROOT / "crates" / "tectum-transformer" / "tests" / "data" / "tiny_llama.gguf"
NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "transformer.wte": "token_embd", "transformer.wpe": "position_embd",
    "transformer.ln_f": "output_norm", "ln_1": "attn_norm", "ln_2": "ffn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output",
    "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down",
}


def renamed(name):
    stem, kind = name.rsplit(".", 1)
    layer = re.match(r"(?:model\.layers|transformer\.h)\.(\d+)\.(.*)", stem)
    return f"blk.{layer[1]}.{NAMES[layer[2]]}.{kind}" if layer else f"{NAMES[stem]}.{kind}"


def in_turns(tensor, heads):
    """Rows of each head's two halves, one of the first, one of the second."""
    halves = tensor.reshape(heads, 2, tensor.shape[0] // heads // 2, *tensor.shape[1:])
    return numpy.ascontiguousarray(halves.swapaxes(1, 2)).reshape(tensor.shape)


def apart(tensor, heads):
    turns = tensor.reshape(heads, tensor.shape[0] // heads // 2, 2, *tensor.shape[1:])
    return numpy.ascontiguousarray(turns.swapaxes(1, 2)).reshape(tensor.shape)


def ordered(name, tensor, config, turn):
    """To the file's order with `turn` in_turns, back with apart."""
    if config["model_type"] == "llama" and (part := re.search(r"self_attn\.([qk])_proj", name)):
        return turn(tensor, config["num_attention_heads" if part[1] == "q" else "num_key_value_heads"])
    if config["model_type"] == "gpt2" and ".c_" in name and name.endswith("weight"):
        return numpy.ascontiguousarray(tensor.T)
    return tensor


def described(writer, config):
    if config["model_type"] == "gpt2":
        writer.add_context_length(config["n_positions"])
        writer.add_embedding_length(config["n_embd"])
        writer.add_feed_forward_length(4 * config["n_embd"])
        writer.add_block_count(config["n_layer"])
        writer.add_head_count(config["n_head"])
        writer.add_layer_norm_eps(config["layer_norm_epsilon"])
    else:
        heads = config["num_attention_heads"]
        head_width = config.get("head_dim") or config["hidden_size"] // heads
        writer.add_context_length(config["max_position_embeddings"])
        writer.add_embedding_length(config["hidden_size"])
        writer.add_feed_forward_length(config["intermediate_size"])
        writer.add_block_count(config["num_hidden_layers"])
        writer.add_head_count(heads)
        writer.add_head_count_kv(config["num_key_value_heads"])
        writer.add_rope_freq_base((config.get("rope_parameters") or config).get("rope_theta", 10000.0))
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
        if config["model_type"] == "llama":
            writer.add_vocab_size(config["vocab_size"])
            writer.add_rope_dimension_count(head_width)
        if config["model_type"] == "qwen3":
            writer.add_key_length(head_width)
            writer.add_value_length(head_width)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_tokenizer_model("no_vocab")


def write(path, config, weights, kind_of, more=lambda writer: None):
    """Writes a file; gives the weights that it stands for, in Hugging Face's order."""
    writer = gguf.GGUFWriter(path, config["model_type"])
    described(writer, config)
    more(writer)
    widened = {}
    for name, tensor in weights.items():
        kind = Type.F32 if tensor.ndim == 1 else kind_of(name)
        rows = ordered(name, tensor.astype(numpy.float32), config, in_turns)
        codes = gguf.quants.quantize(rows, kind)
        writer.add_tensor(renamed(name), codes, raw_dtype=kind)
        widened[name] = ordered(name, gguf.quants.dequantize(codes, kind).reshape(rows.shape), config, apart)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return widened


def models():
    TO.mkdir(parents=True, exist_ok=True)
    for family in ("llama", "qwen2", "qwen3", "gpt2"):
        config = json.loads((FROM / family / "config.json").read_text())
        weights = {}
        for file in sorted((FROM / family).glob("*.safetensors")):
            weights |= load_file(file)
        if config.get("tie_word_embeddings", family == "gpt2"):
            weights.pop("lm_head.weight", None)
        for kind in (Type.F32, Type.F16, Type.Q8_0, Type.Q4_0):
            place = TO / f"{family}-{kind.name.lower()}"
            place.mkdir(exist_ok=True)
            widened = write(place.with_suffix(".gguf"), config, weights, lambda _: kind)
            save_file(widened, place / "model.safetensors")
            (place / "config.json").write_text(json.dumps(config))
            print(f"{place}.gguf: {place.with_suffix('.gguf').stat().st_size} bytes")


def golden():
    """A model of some kilobytes whose tensors are of four types, with what transformers makes of it."""
    import torch
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2, intermediate_size=64,
        max_position_embeddings=64, initializer_range=0.3, rms_norm_eps=1e-5, tie_word_embeddings=True, bos_token_id=None, eos_token_id=None,
        attn_implementation="eager")
    torch.manual_seed(3)
    model = transformers.LlamaForCausalLM(config).float().eval()
    weights = {name: tensor.detach().numpy() for name, tensor in model.state_dict().items() if name != "lm_head.weight"}
    plain = json.loads(config.to_json_string()) | {"model_type": "llama"}

    def kind_of(name):
        return Type.F16 if "embed" in name else Type.Q4_0 if "down_proj" in name else Type.Q8_0

    widened = write(TINY, plain, weights, kind_of)
    model.load_state_dict({name: torch.from_numpy(tensor) for name, tensor in widened.items()}, strict=False)
    model.tie_weights()
    prompt = [(7 * index + 5) % 64 for index in range(9)]
    ids = list(prompt)

    def scores():
        with torch.no_grad():
            return model(torch.tensor([ids]), use_cache=False).logits[0, -1].numpy()

    for _ in range(24):
        row = scores()
        second, first = numpy.partition(row, -2)[-2:]
        assert first - second > 1e-3, "another seed is needed"
        ids.append(int(row.argmax()))

    def more(writer):
        writer.add_eos_token_id(63)
        writer.add_array("tectum.prompt", prompt)
        writer.add_array("tectum.greedy", ids[len(prompt):])
        writer.add_array("tectum.scores", [float(score) for score in scores()])

    write(TINY, plain, weights, kind_of, more)
    print(f"{TINY}: {TINY.stat().st_size} bytes, {len(set(ids[len(prompt):]))} different tokens of {len(ids) - len(prompt)}: {ids[len(prompt):]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--golden", action="store_true", help="write the tiny model of the tests instead")
    golden() if parser.parse_args().golden else models()


main()
