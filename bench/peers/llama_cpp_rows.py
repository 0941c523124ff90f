"""llama.cpp's times of the decoder's rows of `tectum bench infer`, by llama-cpp-python's bindings of its C interface, on the files of
llama_model.py. Weights as the file has them; caches of f16, or of q8_0; flash attention, which a q8_0 cache needs."""

import ctypes
import pathlib

import llama_cpp as llama
from importlib.metadata import version

from protocol import Shape, row, serve

MODELS = pathlib.Path(__file__).resolve().parent.parent / "models" / "llama-1024"
TYPES = {"f16": 1, "q8": 8}
QUIET = llama.llama_log_callback(lambda level, text, data: None)


class Context:
    """A model of a file and the cache of some texts, which are fed alike."""

    def __init__(self, file, threads, cache, tokens, texts=1):
        if not (MODELS / file).exists():
            raise RuntimeError("the model is absent: bench/peers/llama_model.py")
        settings = llama.llama_model_default_params()
        # Its buffers for AMX end with an illegal instruction on machines that name AMX and do not lend it.
        settings.use_extra_bufts = False
        self.model = llama.llama_model_load_from_file(str(MODELS / file).encode(), settings)
        settings = llama.llama_context_default_params()
        self.texts = texts
        settings.n_ctx, settings.n_seq_max = (tokens + 256) * texts, texts
        settings.n_batch = settings.n_ubatch = 512
        settings.n_threads, settings.n_threads_batch = threads, threads
        settings.type_k = settings.type_v = TYPES[cache]
        settings.flash_attn_type = llama.LLAMA_FLASH_ATTN_TYPE_ENABLED
        self.context = llama.llama_init_from_model(self.model, settings)
        self.memory = llama.llama_get_memory(self.context)
        self.batch = llama.llama_batch_init(512, 0, 1)

    def __del__(self):
        llama.llama_batch_free(self.batch)
        llama.llama_free(self.context)
        llama.llama_model_free(self.model)

    def run(self, first, count):
        """Tokens of each text from a place on, over what is kept before it; scores of the last."""
        for text in range(self.texts):
            llama.llama_memory_seq_rm(self.memory, text, first, -1)
        batch = self.batch
        batch.n_tokens = count * self.texts
        for at in range(batch.n_tokens):
            text, index = at // count, at % count
            batch.token[at] = 100 + (first + index) * 7919 % 20000
            batch.pos[at] = first + index
            batch.n_seq_id[at] = 1
            batch.seq_id[at][0] = text
            batch.logits[at] = index + 1 == count
        if llama.llama_decode(self.context, batch) != 0:
            raise RuntimeError("llama_decode failed")
        llama.llama_synchronize(self.context)


FILES = {"f16": "f16.gguf", "int8": "q8_0.gguf"}


def rows(weights):
    file = FILES[weights]

    @row("prefill", 1, f"llama_decode of a batch, {file}", tail=weights, types=("float32",))
    def prefill(shape):
        context, tokens = Context(file, shape.threads, "f16", shape.sizes[0]), shape.sizes[0]
        return lambda: context.run(0, tokens)

    for cache in TYPES:
        @row("decode", 1, f"llama_decode of a token, {file}, cache {cache}, flash attention", tail=f"{weights}.cache_{cache}", types=("float32",))
        def decode(shape, cache=cache):
            context, tokens = Context(file, shape.threads, cache, shape.sizes[0]), shape.sizes[0]
            llama.llama_set_n_threads(context.context, shape.threads, Shape.all_threads)
            for first in range(0, tokens, 512):
                context.run(first, min(512, tokens - first))
            return lambda: context.run(tokens, 1)

    @row("decode", 2, f"llama_decode of a token of each text, {file}, cache f16, flash attention", tail=f"{weights}.cache_f16", types=("float32",))
    def decode_each(shape):
        texts, tokens = shape.sizes
        context = Context(file, shape.threads, "f16", tokens, texts)
        llama.llama_set_n_threads(context.context, shape.threads, Shape.all_threads)
        for first in range(0, tokens, 128):
            context.run(first, min(128, tokens - first))
        return lambda: context.run(tokens, 1)


for weights in FILES:
    rows(weights)

if __name__ == "__main__":
    llama.llama_backend_init()
    llama.llama_log_set(QUIET, ctypes.c_void_p(0))
    serve(lambda device: {"llama-cpp-python": version("llama-cpp-python")}, lambda count: count)
