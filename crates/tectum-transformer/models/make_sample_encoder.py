"""Makes sample-encoder: a small encoder of the BERT family with random weights, in the files that Hugging Face models have.

    python3 crates/tectum-transformer/models/make_sample_encoder.py

It runs wherever `tectum embed` does and means nothing: texts that share words come out somewhat alike. The same bytes come out
every time.
"""

import json
import pathlib
import string

from tensor_file import safetensors

WIDTH, LAYERS, HEADS, MIDDLE, POSITIONS = 64, 2, 4, 128, 128
WORDS = """a about after all also an and any are as at be because but by can come could day do even first for from get give go good
have he her him his how i if in into is it its just know like look make man me more most my new no not now of on one only or other
our out over people say see she so some take than that the their them then there these they thing think this time to two up us use
was way we well what when which who will with word work world would year you your sentence example each every text model network
brain neuron sense move cat dog house tree water light sound open close fast slow big small red green blue""".split()
TYPE_SUFFIXES = "s ed ing er est ly ness ful less ion".split()


def vocabulary():
    letters = string.ascii_lowercase + string.digits
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + list(letters + string.punctuation)
    tokens += ["##" + letter for letter in letters] + WORDS + ["##" + ending for ending in TYPE_SUFFIXES]
    return {token: index for index, token in enumerate(dict.fromkeys(tokens))}


def tensors(tokens):
    """Name, shape and deviation of each; a deviation of None is a vector of ones."""
    yield "embeddings.word_embeddings.weight", [tokens, WIDTH], 1.0
    yield "embeddings.position_embeddings.weight", [POSITIONS, WIDTH], 0.1
    yield "embeddings.token_type_embeddings.weight", [2, WIDTH], 0.1
    norms = ["embeddings.LayerNorm"]
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        dense = [(f"{name}.attention.self.{part}", WIDTH, WIDTH) for part in ("query", "key", "value")]
        dense += [(f"{name}.attention.output.dense", WIDTH, WIDTH)]
        dense += [(f"{name}.intermediate.dense", MIDDLE, WIDTH), (f"{name}.output.dense", WIDTH, MIDDLE)]
        for part, out, inner in dense:
            yield f"{part}.weight", [out, inner], inner**-0.5
            yield f"{part}.bias", [out], 0.02
        norms += [f"{name}.attention.output.LayerNorm", f"{name}.output.LayerNorm"]
    for name in norms:
        yield f"{name}.weight", [WIDTH], None
        yield f"{name}.bias", [WIDTH], 0.02


def tokenizer(vocabulary):
    special = [{"id": vocabulary[token], "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                "special": True} for token in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")]
    begin, end = ({"SpecialToken": {"id": token, "type_id": 0}} for token in ("[CLS]", "[SEP]"))
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special,
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing", "single": [begin, {"Sequence": {"id": "A", "type_id": 0}}, end],
            "pair": [begin, {"Sequence": {"id": "A", "type_id": 0}}, end, {"Sequence": {"id": "B", "type_id": 1}}, end],
            "special_tokens": {token: {"id": token, "ids": [vocabulary[token]], "tokens": [token]} for token in ("[CLS]", "[SEP]")},
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                  "vocab": vocabulary},
    }


def main():
    folder = pathlib.Path(__file__).resolve().parent / "sample-encoder"
    folder.mkdir(exist_ok=True)
    words = vocabulary()
    config = {
        "architectures": ["BertModel"], "model_type": "bert", "vocab_size": len(words), "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": MIDDLE, "hidden_act": "gelu",
        "max_position_embeddings": POSITIONS, "type_vocab_size": 2, "layer_norm_eps": 1e-12, "pad_token_id": 0,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer(words)) + "\n")
    (folder / "model.safetensors").write_bytes(safetensors(tensors(len(words))))


if __name__ == "__main__":
    main()
