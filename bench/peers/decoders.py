"""Makes decoders with random weights and what Hugging Face transformers computes with them.

    bench/peers/.venv-torch/bin/python bench/peers/decoders.py            # bench/models/decoders/FAMILY, which git ignores
    bench/peers/.venv-torch/bin/python bench/peers/decoders.py --golden   # crates/tectum-transformer/tests/decoders.json, which it does not

The test `crates/tectum-transformer/tests/decoders.rs` compares ours with both. The first are models as `save_pretrained` writes them, with
scores after each token of a prompt and 64 greedy tokens. The golden file describes smaller ones, whose weights are made by a formula,
here and in the test, and has those of `sample-decoder` too.
"""

import argparse
import json
import pathlib

import numpy
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GREEDY = 64
# The two greatest scores lie at least so far apart in every step, or a rounding would choose the token.
LEAST_MARGIN = 1e-3


def families(vocab, width, layers, heads, kv_heads, middle, context):
    """Name, class, configuration."""
    both = {"vocab_size": vocab, "attn_implementation": "eager", "bos_token_id": None, "eos_token_id": None}
    llama = both | {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv_heads,
                    "intermediate_size": middle, "max_position_embeddings": context, "initializer_range": 0.12}
    yield "gpt2", transformers.GPT2LMHeadModel, transformers.GPT2Config(
        **both, n_embd=width, n_layer=layers, n_head=heads, n_positions=context, initializer_range=0.12)
    yield "llama", transformers.LlamaForCausalLM, transformers.LlamaConfig(**llama, rms_norm_eps=1e-5)
    yield "qwen2", transformers.Qwen2ForCausalLM, transformers.Qwen2Config(
        **llama, tie_word_embeddings=True, rope_parameters={"rope_type": "default", "rope_theta": 1e6})
    yield "qwen3", transformers.Qwen3ForCausalLM, transformers.Qwen3Config(**llama, head_dim=2 * width // heads)


def scores(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=False).logits[0].numpy()


def greedy(model, ids):
    """The tokens, and the scores after the last of them."""
    ids, made = list(ids), []
    for _ in range(GREEDY):
        row = scores(model, ids)[-1]
        second, first = numpy.partition(row, -2)[-2:]
        assert first - second > LEAST_MARGIN, f"{first} and {second} after {len(made)} tokens: another seed is needed"
        made.append(int(row.argmax()))
        ids.append(made[-1])
    return made, scores(model, ids)[-1]


def prompt(count, vocab):
    return [(index * 7919 + 13) % vocab for index in range(count)]


def models():
    """Models of some size in the files of `save_pretrained`."""
    for name, kind, config in families(vocab=1000, width=256, layers=4, heads=8, kv_heads=2, middle=512, context=512):
        torch.manual_seed(1)
        model = kind(config).float().eval()
        with torch.no_grad():
            for parameter, tensor in model.named_parameters():
                # Biases and gains are constants at first, which would hide one that is left out.
                if tensor.dim() == 1:
                    tensor.add_(0.2 * torch.randn_like(tensor))
        folder = ROOT / "bench" / "models" / "decoders" / name
        # One of them in several files, so that both forms are read.
        model.save_pretrained(folder, max_shard_size="6MB" if name == "llama" else "1GB")
        ids = prompt(41, config.vocab_size)
        tokens, _ = greedy(model, ids)
        numpy.ascontiguousarray(scores(model, ids), dtype="<f4").tofile(folder / "scores.f32")
        (folder / "expected.json").write_text(json.dumps({"transformers": transformers.__version__, "prompt": ids, "greedy": tokens}))
        print(f"{folder}: {len(set(tokens))} different tokens of {GREEDY}")


def value(name, shape):
    """Weights by a formula: multiples of 1/64 below 1 by a hash of name and place, so that all types of floats hold them."""
    state = 0xCBF29CE484222325
    for byte in name.encode():
        state = (state ^ byte) * 0x100000001B3 % 2**64
    with numpy.errstate(over="ignore"):
        mixed = numpy.uint64(state) + numpy.arange(1, numpy.prod(shape) + 1, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        mixed = mixed ^ (mixed >> numpy.uint64(31))
    unit = (mixed >> numpy.uint64(57)).astype(numpy.float32) / 64 - 1
    if len(shape) == 1:
        return unit / 4 if name.endswith("bias") else 1 + unit / 2
    return (unit if "embed" in name else unit / 2).reshape(shape)


def golden():
    """Small models, described, and the sample."""
    rows = {}
    for name, kind, config in families(vocab=96, width=32, layers=2, heads=4, kv_heads=2, middle=48, context=128):
        model = kind(config).float().eval()
        weights = {key: tensor for key, tensor in model.state_dict().items() if key != "lm_head.weight" or not config.tie_word_embeddings}
        with torch.no_grad():
            for key, tensor in weights.items():
                tensor.copy_(torch.from_numpy(value(key, list(tensor.shape))))
        rows[name] = row(model, prompt(9, config.vocab_size))
        rows[name]["config"] = {key: entry for key, entry in json.loads(config.to_json_string()).items() if key != "transformers_version"}
        rows[name]["config"]["model_type"] = name
        rows[name]["tensors"] = {key: list(tensor.shape) for key, tensor in weights.items()}
    sample = transformers.LlamaForCausalLM.from_pretrained(ROOT / "crates/tectum-transformer/models/sample-decoder", dtype=torch.float32).eval()
    rows["sample-decoder"] = row(sample, prompt(300, sample.config.vocab_size))
    path = ROOT / "crates" / "tectum-transformer" / "tests" / "decoders.json"
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in rows.items())
    path.write_text("{\n" + f'"transformers": {json.dumps(transformers.__version__)},\n' + lines + "\n}\n")
    print(f"{path}: {path.stat().st_size} bytes")


def row(model, ids):
    tokens, last = greedy(model, ids)
    print(f"{model.config.model_type}: {len(set(tokens))} different tokens of {GREEDY}")
    first = scores(model, ids)[-1]
    return {"prompt": len(ids), "greedy": tokens} | {
        key: [round(float(number), 6) for number in numbers[:48]] for key, numbers in (("after_prompt", first), ("after_greedy", last))
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--golden", action="store_true", help="write the golden file of the test instead of the models")
    golden() if parser.parse_args().golden else models()


if __name__ == "__main__":
    main()
