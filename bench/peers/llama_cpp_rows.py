"""llama.cpp's times of the decoder's rows of `tectum bench infer`, by llama-cpp-python's bindings of its C interface, on the files of
llama_model.py. Weights are used as the file has them; caches are f16 or q8_0.

A row runs with its fastest setting of `use_extra_bufts` (weights repacked for the processor) and flash attention (which a q8_0 cache needs).
Repacking ends with an illegal instruction on machines that name AMX and do not provide it, so a row's settings are first timed in processes
of their own, which may die. That happens when the row is first prepared, before its rounds; later passes use the same choice.
"""

import ctypes
import json
import pathlib
import signal
import statistics
import subprocess
import sys
import time

import llama_cpp as llama
from importlib.metadata import version

from protocol import Shape, find, row, serve, times

MODELS = pathlib.Path(__file__).resolve().parent.parent / "models" / "llama-1024"
FILES = {"f16": "f16.gguf", "int8": "q8_0.gguf"}
TYPES = {"f16": 1, "q8": 8}
FLASH = {"on": llama.LLAMA_FLASH_ATTN_TYPE_ENABLED, "off": llama.LLAMA_FLASH_ATTN_TYPE_DISABLED}
# Extra buffers, then flash attention, for each type of a cache.
SETTINGS = {"f16": ["on/on", "on/off", "off/on", "off/off"], "q8": ["on/on", "off/on"]}
# What a probe measures, and the longest that all probes of a row may take: an answer must come within 180 s.
PROBE_SECONDS, PROBE_RUNS, PROBES_LIMIT_SECONDS = 0.3, 5, 120
QUIET = llama.llama_log_callback(lambda level, text, data: None)


class Context:
    """A model of a file and the cache of some texts, which are fed alike, in a setting."""

    def __init__(self, file, threads, cache, tokens, setting, texts=1):
        self.model = self.context = self.batch = None
        if not (MODELS / file).exists():
            raise RuntimeError("the model is absent: bench/peers/llama_model.py")
        extra_buffers, flash = setting.split("/")
        settings = llama.llama_model_default_params()
        settings.use_extra_bufts = extra_buffers == "on"
        self.model = llama.llama_model_load_from_file(str(MODELS / file).encode(), settings)
        settings = llama.llama_context_default_params()
        self.texts = texts
        settings.n_ctx, settings.n_seq_max = (tokens + 256) * texts, texts
        settings.n_batch = settings.n_ubatch = 512
        settings.n_threads, settings.n_threads_batch = threads, threads
        settings.type_k = settings.type_v = TYPES[cache]
        settings.flash_attn_type = FLASH[flash]
        self.context = llama.llama_init_from_model(self.model, settings)
        if not self.context:
            raise RuntimeError("llama_init_from_model failed")
        self.memory = llama.llama_get_memory(self.context)
        self.batch = llama.llama_batch_init(512, 0, 1)

    def __del__(self):
        if self.batch:
            llama.llama_batch_free(self.batch)
        if self.context:
            llama.llama_free(self.context)
        if self.model:
            llama.llama_model_free(self.model)

    def fill(self, first, count, texts=1):
        """The next batch: tokens of each text from a place on, of which the last gets scores."""
        batch = self.batch
        batch.n_tokens = count * texts
        for at in range(batch.n_tokens):
            text, index = at // count, at % count
            batch.token[at] = 100 + (first + index) * 7919 % 20000
            batch.pos[at] = first + index
            batch.n_seq_id[at] = 1
            batch.seq_id[at][0] = text
            batch.logits[at] = index + 1 == count

    def run(self, first):
        """The batch, which starts at this place, over what the cache has before it."""
        for text in range(self.texts):
            llama.llama_memory_seq_rm(self.memory, text, first, -1)
        if llama.llama_decode(self.context, self.batch) != 0:
            raise RuntimeError("llama_decode failed")
        llama.llama_synchronize(self.context)

    def feed(self, tokens):
        """So many tokens for the cache of each text: computed for the first, copied to the others."""
        for first in range(0, tokens, 512):
            self.fill(first, min(512, tokens - first))
            self.run(first)
        for text in range(1, self.texts):
            llama.llama_memory_seq_cp(self.memory, 0, text, -1, -1)


class Chooser:
    """The setting of each row: its fastest by probes, or in a probe the one that it was started for."""

    def __init__(self):
        self.fixed = None
        self.choices = {}

    def setting(self, shape, cache):
        if self.fixed:
            return self.fixed
        if shape.key not in self.choices:
            self.choices[shape.key] = fastest(shape.key, SETTINGS[cache])
        setting, shape.note = self.choices[shape.key]
        return setting


CHOOSER = Chooser()


def fastest(key, settings):
    """The setting with the shortest median in two passes, the second in reverse order, and what to say of all."""
    end = time.monotonic() + PROBES_LIMIT_SECONDS
    taken, failed = {}, {}
    for setting in settings + settings[::-1]:
        left = end - time.monotonic()
        if setting in failed or (left <= 0 and setting in taken):
            continue
        try:
            taken[setting] = min(probe(key, setting, left), taken.get(setting, float("inf")))
        except RuntimeError as error:
            failed[setting] = str(error)
    said = [f"{setting} {taken[setting] * 1e3:.2f} ms" if setting in taken else f"{setting} {failed[setting]}" for setting in settings]
    if not taken:
        raise RuntimeError(f"no setting of extra buffers/flash attention works: {', '.join(said)}")
    chosen = min(taken, key=taken.get)
    return chosen, f"extra buffers/flash attention {chosen} (probes: {', '.join(said)})"


def probe(key, setting, seconds):
    """The median of a row's times in a setting, by this script in a process of its own."""
    request = json.dumps({"key": key, "setting": setting, "threads": Shape.all_threads})
    if seconds <= 0:
        raise RuntimeError("not tried, the others took too long")
    try:
        found = subprocess.run([sys.executable, __file__, request], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"no answer within {seconds:.0f} s") from None
    if found.returncode < 0:
        raise RuntimeError(f"ended by {signal.Signals(-found.returncode).name}")
    if found.returncode > 0:
        raise RuntimeError(f"failed: {found.stderr.strip().splitlines()[-1]}")
    return float(found.stdout)


def answer_probe(request):
    Shape.all_threads, CHOOSER.fixed = request["threads"], request["setting"]
    _, make, shape = find(request["key"])
    print(statistics.median(times(make(shape), PROBE_SECONDS, PROBE_RUNS)))


def rows(weights):
    file = FILES[weights]

    @row("prefill", 1, f"llama_decode of a batch, {file}", tail=weights, types=("float32",))
    def prefill(shape):
        (tokens,) = shape.sizes
        context = Context(file, shape.threads, "f16", tokens, CHOOSER.setting(shape, "f16"))
        context.fill(0, tokens)
        return lambda: context.run(0)

    def decode(shape, tokens, cache, texts=1):
        context = Context(file, shape.threads, cache, tokens, CHOOSER.setting(shape, cache), texts)
        llama.llama_set_n_threads(context.context, Shape.all_threads, Shape.all_threads)
        context.feed(tokens)
        # Both: a batch of more than one token, such as one of each text, runs on the second number.
        llama.llama_set_n_threads(context.context, shape.threads, shape.threads)
        context.fill(tokens, 1, texts)
        return lambda: context.run(tokens)

    for cache in TYPES:
        @row("decode", 1, f"llama_decode of a token, {file}, cache {cache}", tail=f"{weights}.cache_{cache}", types=("float32",))
        def decode_one(shape, cache=cache):
            return decode(shape, shape.sizes[0], cache)

    @row("decode", 2, f"llama_decode of a token of each text, {file}, cache f16", tail=f"{weights}.cache_f16", types=("float32",))
    def decode_each(shape):
        texts, tokens = shape.sizes
        return decode(shape, tokens, "f16", texts)


for weights in FILES:
    rows(weights)

if __name__ == "__main__":
    llama.llama_backend_init()
    llama.llama_log_set(QUIET, ctypes.c_void_p(0))
    if len(sys.argv) > 1:
        answer_probe(json.loads(sys.argv[1]))
    else:
        serve(lambda device: {"llama-cpp-python": version("llama-cpp-python")}, lambda count: count)
