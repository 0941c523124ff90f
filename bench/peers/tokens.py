"""Writes bench/models/tokens.json: 10,000 random Unicode strings with their tokens by the Python package tokenizers.

    bench/peers/.venv-onnxruntime/bin/python bench/peers/tokens.py

The test `tokens_are_those_of_the_reference_tokenizer` compares ours with them. The strings are the same every time.
"""

import json
import pathlib
import random
import unicodedata

import tokenizers

MODELS = pathlib.Path(__file__).resolve().parent.parent / "models"
COUNT = 10_000
# First and last code points of what a string is drawn from: ASCII, Latin, Greek and Cyrillic, combining marks, Arabic and Hebrew,
# Devanagari, punctuation and spaces of all widths, CJK, Hangul, forms, emoji, everything.
BLOCKS = [(0x20, 0x7E), (0xA0, 0x24F), (0x370, 0x52F), (0x300, 0x36F), (0x590, 0x6FF), (0x900, 0x97F), (0x2000, 0x206F), (0x3040, 0x30FF),
          (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xF900, 0xFFFD), (0x1F300, 0x1FAFF), (0x20000, 0x2FA1F), (0x0, 0x10FFFF)]
WORDS = "the Unaffable transformers naïve Ångström don't e-mail 3.14 [CLS] [MASK] ##ing İstanbul ﬁne ½ x²".split()


def character(generator, block):
    while True:
        point = generator.randint(*block)
        # Surrogates are no characters and cannot be in a string of UTF-8.
        if not 0xD800 <= point <= 0xDFFF:
            return chr(point)


def text(generator):
    parts = []
    for _ in range(generator.randint(0, 12)):
        if generator.random() < 0.3:
            parts.append(generator.choice(WORDS))
        else:
            block = generator.choice(BLOCKS)
            parts.append("".join(character(generator, block) for _ in range(generator.randint(1, 8))))
    joined = generator.choice([" ", "", "\t", "\n", "\u3000"]).join(parts)
    return unicodedata.normalize(generator.choice(["NFC", "NFD", "NFKC", "NFKD"]), joined) if generator.random() < 0.3 else joined


def main():
    generator = random.Random(1)
    tokenizer = tokenizers.Tokenizer.from_file(str(MODELS / "minilm" / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    texts = [text(generator) for _ in range(COUNT)]
    rows = [[text, tokenizer.encode(text).ids] for text in texts]
    (MODELS / "tokens.json").write_text(json.dumps({"tokenizers": tokenizers.__version__, "rows": rows}))
    print(f"{COUNT} texts, {sum(len(ids) for _, ids in rows)} tokens, by tokenizers {tokenizers.__version__}")


main()
