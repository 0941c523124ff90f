"""Writes the golden file of encoders: what Hugging Face transformers computes with small BERT models.

    bench/peers/.venv-torch/bin/python bench/peers/encoders.py   # crates/tectum-transformer/tests/encoders.json

The test `crates/tectum-transformer/tests/encoders.rs` makes the same models, with weights by the formula of `decoders.py`, one for each option of an
encoder (activation, epsilon, pooling, normalisation, width and number of layers), and those of `sample-encoder` as they are.
"""

import json
import pathlib

import torch
import transformers
from decoders import value

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SMALL = {"vocab_size": 249, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24,
         "max_position_embeddings": 24, "type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-12}
# Name, differences of the configuration, pooling, whether vectors have length 1.
OPTIONS = [
    ("mean", {}, "mean", True),
    ("first", {}, "first", True),
    ("not-normalized", {}, "mean", False),
    ("gelu_new", {"hidden_act": "gelu_new"}, "mean", False),
    ("relu", {"hidden_act": "relu"}, "mean", False),
    ("silu", {"hidden_act": "silu"}, "first", False),
    ("large-epsilon", {"layer_norm_eps": 0.25}, "mean", False),
    ("three-layers", {"num_hidden_layers": 3, "num_attention_heads": 2}, "mean", True),
    ("one-token-type", {"type_vocab_size": 1}, "mean", False),
]
TEXTS = [[2, 17, 93, 240, 3], [2, 3], [(index * 7919 + 13) % 249 for index in range(23)]]


def vectors(model, pooling, normalized):
    """One vector for each text, each text run alone."""
    made = []
    for ids in TEXTS:
        with torch.no_grad():
            states = model(input_ids=torch.tensor([ids])).last_hidden_state[0]
        vector = states.mean(dim=0) if pooling == "mean" else states[0]
        vector = torch.nn.functional.normalize(vector, dim=0) if normalized else vector
        made.append([round(float(number), 6) for number in vector])
    return made


def main():
    rows = {}
    for name, differences, pooling, normalized in OPTIONS:
        settings = SMALL | differences
        model = transformers.BertModel(transformers.BertConfig(**settings, attn_implementation="eager"), add_pooling_layer=False).float().eval()
        weights = dict(model.named_parameters())
        with torch.no_grad():
            for key, tensor in weights.items():
                tensor.copy_(torch.from_numpy(value(key, list(tensor.shape))))
        rows[name] = {"config": settings | {"model_type": "bert"}, "pooling": pooling, "normalized": normalized,
                      "tensors": {key: list(tensor.shape) for key, tensor in weights.items()}, "vectors": vectors(model, pooling, normalized)}
    sample = transformers.BertModel.from_pretrained(ROOT / "crates/tectum-transformer/models/sample-encoder", add_pooling_layer=False, dtype=torch.float32).eval()
    rows["sample-encoder"] = {"pooling": "mean", "normalized": True, "vectors": vectors(sample, "mean", True)}
    path = ROOT / "crates" / "tectum-transformer" / "tests" / "encoders.json"
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in rows.items())
    head = f'"transformers": {json.dumps(transformers.__version__)},\n"texts": {json.dumps(TEXTS)},\n'
    path.write_text("{\n" + head + lines + "\n}\n")
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
