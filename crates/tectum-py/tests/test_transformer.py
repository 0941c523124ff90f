import json
import pathlib
import threading

import numpy as np
import pytest

import tectum as tt


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    return tt.Decoder(tt.sample("sample-decoder", tmp_path_factory.mktemp("models")), context=64)


def test_texts_embed_to_the_same_vectors_alone_and_together(tmp_path):
    encoder = tt.Encoder(tt.sample("sample-encoder", tmp_path))
    texts = ["the cat is small", "a small dog", "the cat is small"]
    together = encoder.embed(texts)
    assert together.shape == (3, encoder.width)
    np.testing.assert_allclose(together[0], together[2], atol=1e-6)
    np.testing.assert_allclose(encoder.embed(texts[1:2])[0], together[1], atol=1e-5)
    assert encoder.receipt.device == "cpu" and encoder.parameters > 1000
    assert encoder.embed([]).shape == (0, encoder.width)


def test_prompts_generate_the_same_alone_together_and_as_a_stream(decoder):
    prompts = ["the small cat", "a dog"]
    alone = [str(decoder.generate(prompt, max_new_tokens=8)) for prompt in prompts]
    together = decoder.generate(prompts, max_new_tokens=8)
    assert [str(made) for made in together] == alone
    assert ["".join(decoder.stream(prompt, max_new_tokens=8)) for prompt in prompts] == alone
    assert together[0].finish_reason == "length" and len(together[0].tokens) == 8


def test_tokens_are_prompts_too(decoder):
    tokens = decoder.encode("the small cat")
    assert decoder.decode(tokens).strip() == "the small cat"
    assert str(decoder.generate(tokens, max_new_tokens=4)) == str(decoder.generate("the small cat", max_new_tokens=4))


def test_draws_follow_the_seed(decoder):
    settings = {"max_new_tokens": 12, "temperature": 1.5}
    first, again, other = (decoder.generate("the", seed=seed, **settings).tokens for seed in (1, 1, 2))
    assert first == again and first != other


def test_a_context_continues(decoder):
    whole = decoder.generate(decoder.encode("the small cat"), max_new_tokens=0)
    assert whole.tokens == [] and whole.prompt_tokens > 0
    expected = decoder.generate("the small cat", max_new_tokens=6).tokens
    tokens = decoder.encode("the small cat")
    decoder.generate(tokens[:1], max_new_tokens=0)
    assert decoder.generate(tokens[1:], max_new_tokens=6, continue_context=True).tokens == expected


def test_a_context_continues_after_all_generated_tokens(decoder):
    prompt, following = [47, 78, 336, 221], [5, 6, 7]
    settings = {"max_new_tokens": 8, "ignore_end": True}
    first = decoder.generate(prompt, **settings)
    second = decoder.generate(following, continue_context=True, **settings)
    assert second.tokens == decoder.generate(prompt + first.tokens + following, **settings).tokens


def test_only_the_first_text_of_a_context_gets_a_beginning_token(tmp_path):
    folder = tt.sample("sample-decoder", tmp_path)
    path = pathlib.Path(folder) / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    beginning = {"id": "<|end|>", "ids": [0], "tokens": ["<|end|>"]}
    tokenizer["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<|end|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"<|end|>": beginning},
    }
    path.write_text(json.dumps(tokenizer))
    decoder, settings = tt.Decoder(folder, context=64), {"max_new_tokens": 4, "ignore_end": True}
    tokens = [decoder.encode(text) for text in ("the small", " cat")]
    assert [row[0] for row in tokens] == [0, 0]
    first = decoder.generate("the small", continue_context=True, **settings)
    second = decoder.generate(" cat", continue_context=True, **settings)
    assert (first.prompt_tokens, second.prompt_tokens) == (len(tokens[0]), len(tokens[1]) - 1)
    assert second.tokens == decoder.generate(tokens[0] + first.tokens + tokens[1][1:], **settings).tokens


def test_only_tokens_outside_the_table_are_refused(tmp_path):
    folder = tt.sample("sample-decoder", tmp_path)
    path = pathlib.Path(folder) / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    rest = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    tokenizer["added_tokens"].append({"id": 512, "content": "<|new|>", **rest})
    path.write_text(json.dumps(tokenizer))
    decoder = tt.Decoder(folder, context=64)
    assert len(decoder.generate("the small cat", max_new_tokens=2, ignore_end=True).tokens) == 2
    with pytest.raises(ValueError, match="token 512 .*new.*; the model has 512"):
        decoder.generate("a<|new|>")


def test_a_dropped_stream_ends(decoder):
    stream = decoder.stream("the small cat", max_new_tokens=50, ignore_end=True)
    next(stream)
    del stream
    assert str(decoder.generate("a dog", max_new_tokens=2))


def test_threads_wait_for_each_other(decoder):
    made = {}

    def work(number):
        made[number] = str(decoder.generate("the small cat", max_new_tokens=16))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 4 and len(set(made.values())) == 1


def test_refusals_name_what_is_wrong(decoder, tmp_path):
    with pytest.raises(ValueError, match="temperature"):
        decoder.generate("the", temperature=-1.0)
    with pytest.raises(ValueError):
        decoder.generate("the " * 100, max_new_tokens=1)
    with pytest.raises(TypeError, match="prompt"):
        decoder.generate(3.5)
    with pytest.raises(ValueError, match="cache"):
        tt.Decoder(tmp_path, cache="q1")
    with pytest.raises(OSError):
        tt.Decoder(tmp_path / "nothing")
