# Written by stubs.py.

"""
Neural workloads in real time, on GPUs and CPUs, with receipts.
"""

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Protocol, final

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

__version__: str

@final
class ActionChannel:
    """
    One number of an action. Values outside [low, high] are clipped; with `discrete` the body applies `high` for values of at least 0, else `low`.
    """
    def __eq__(self, other: object, /) -> bool: ...
    def __new__(cls, /, name: str, unit: str, low: float, high: float, *, discrete: bool = False) -> ActionChannel: ...
    def __repr__(self, /) -> str: ...
    @property
    def discrete(self, /) -> bool:
        """
        Whether only `low` and `high` are possible.
        """
    @property
    def high(self, /) -> float:
        """
        The highest value.
        """
    @property
    def low(self, /) -> float:
        """
        The lowest value.
        """
    @property
    def name(self, /) -> str:
        """
        The name, as in recordings.
        """
    @property
    def unit(self, /) -> str:
        """
        The unit, as printed.
        """

@final
class Area:
    """
    An area of a genome: `id`, `name`, `role` ("core", "input", "output", "memory" or "custom"), `size` in voxels along x, y and z, and its `neurons`.
    """
    def __repr__(self, /) -> str: ...
    @property
    def id(self, /) -> str:
        """
        The id in the genome.
        """
    @property
    def name(self, /) -> str:
        """
        The display name; may be empty.
        """
    @property
    def neurons(self, /) -> range:
        """
        The numbers of its neurons: x, then y, then z, then the place in the voxel, which varies fastest.
        """
    @property
    def neurons_per_voxel(self, /) -> int:
        """
        Neurons in each voxel.
        """
    @property
    def role(self, /) -> str:
        """
        "core", "input", "output", "memory" or "custom".
        """
    @property
    def size(self, /) -> tuple[int, int, int]:
        """
        Voxels along x, y and z.
        """

@final
class BodyBatch:
    """
    Many instances of a body, stepped at once on a device, in float32.

    `name` is a built-in body or an equation file. An instance whose episode ended is reset to its start by the next step, which returns that start and no
    reward. `tectum.gym` has vector environments of these.

    Raises ValueError for an unknown name or no instances, UnsupportedError for a body that has no such kernel.

    >>> import numpy as np, tectum as tt
    >>> poles = tt.BodyBatch("cart_pole", 100)
    >>> poles.reset(seed=1).shape
    (100, 4)
    >>> observations, rewards, terminated = poles.step(np.full((100, 1), 10.0))
    >>> rewards.sum(), terminated.any()
    (np.float64(100.0), np.False_)
    """
    def __len__(self, /) -> int: ...
    def __new__(cls, /, name: str | PathLike[str], count: int, *, start: Literal["hanging", "random"] | None = None, device: Device | str = ...) -> BodyBatch: ...
    def __repr__(self, /) -> str: ...
    @property
    def receipt(self, /) -> Receipt:
        """
        On which device and by which code the steps were computed.
        """
    def reset(self, /, seed: int | None = None, *, seeds: Sequence[int] | None = None) -> NDArray[np.float32]:
        """
        Resets instance k to the body's start for `seed + k`, or all to those of a list of seeds, and returns the observations: float32 of shape (count, channels).
        """
    def restart(self, /, instances: Sequence[int], seeds: Sequence[int]) -> NDArray[np.float32]:
        """
        Resets some instances, each to the body's start for its seed; returns their observations: float32 of shape (instances, channels).
        """
    @property
    def spec(self, /) -> BodySpec:
        """
        The constants of the body.
        """
    @property
    def states(self, /) -> NDArray[np.float32]:
        """
        The exact states: float32 of shape (count, numbers), as `NativeBody.state` orders them.
        """
    @states.setter
    def states(self, /, states: ArrayLike) -> None: ...
    def step(self, /, actions: ArrayLike) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.bool_]]:
        """
        Steps every instance by one period under its action, of shape (count, action channels).

        Returns `(observations, rewards, terminated)`: float32 of shape (count, channels), float64 and bool of shape (count,). Raises ValueError for another
        shape.
        """

@final
class BodySpec:
    """
    The constants of a body: name, time between two actions in seconds, channels, and the action that it receives when the brain gives none (zeros by default).
    """
    def __eq__(self, other: object, /) -> bool: ...
    def __new__(cls, /, name: str, dt: float, observation: Sequence[ObservationChannel], action: Sequence[ActionChannel], safe_action: Sequence[float] | None = None) -> BodySpec: ...
    def __repr__(self, /) -> str: ...
    @property
    def action(self, /) -> list[ActionChannel]:
        """
        The numbers of an action, in order.
        """
    @property
    def dt(self, /) -> float:
        """
        Time between two actions, in seconds.
        """
    def flatten(self, /, observation: dict[str, Any]) -> NDArray[np.float32]:
        """
        An observation as one vector, float32 of shape (elements,), of a dict with a number or an array for each channel.

        Raises ValueError naming a channel that is missing or unknown, or whose value has another shape or elements that its type cannot represent.
        """
    @property
    def name(self, /) -> str:
        """
        The name, as in scenarios.
        """
    @property
    def observation(self, /) -> list[ObservationChannel]:
        """
        The channels of an observation, in order.
        """
    @property
    def safe_action(self, /) -> list[float]:
        """
        The action applied when the brain gives none.
        """
    def unflatten(self, /, observation: ArrayLike) -> dict[str, NDArray[Any]]:
        """
        An observation as a dict with an array for each channel, of its shape and dtype, of one vector of shape (elements,).

        Raises ValueError for a vector of another length.
        """

@final
class Buffer:
    """
    An array of one dimension in a device's memory, freed with its last reference.

    `Buffer(1000)` is zeroed, of `dtype` "float32" (the default), "float64", "int32" or "uint32";
    `Buffer(array)` has the elements of an array, in order, and their type. `plan.compile(states=…)`
    binds buffers to states of plans, `executable.state(name)` is the memory of one.

    On CUDA devices libraries with the CUDA array interface use the memory in place and keep it
    alive: `torch.as_tensor(buffer, device="cuda:0")`, `cupy.asarray(buffer)`. JAX does not keep it
    alive, so copy there: `jax.numpy.array(cupy.asarray(buffer))`. What others do with it must be
    complete before the next run that uses it, for example after `torch.cuda.synchronize()`.

    Raises MemoryError, TypeError for another element type, ValueError for a device of several.

    >>> import numpy as np, tectum as tt
    >>> buffer = tt.Buffer(np.float32([1, 2, 3]))
    >>> buffer.write([4, 5, 6])
    >>> buffer.read()
    array([4., 5., 6.], dtype=float32)
    """
    def __array__(self, /, dtype: Any | None = None, copy: bool | None = None) -> NDArray[Any]:
        """
        `numpy.asarray(buffer)`: a copy.
        """
    @property
    def __cuda_array_interface__(self, /) -> dict[str, Any]:
        """
        Version 3 of the CUDA array interface: shape, type and address; nothing to wait for. Raises
        AttributeError on devices of other kinds.
        """
    def __len__(self, /) -> int: ...
    def __new__(cls, /, values: int | ArrayLike, *, dtype: Literal["float32", "float64", "int32", "uint32"] | None = None, device: Device | str = ...) -> Buffer: ...
    def __repr__(self, /) -> str: ...
    def copy_to(self, /, other: Buffer) -> str:
        """
        Copies all elements to a buffer of the same type and length, on any device. Returns how:
        "device", "peer" or "host".

        Raises ValueError for another type or length.
        """
    @property
    def device(self, /) -> str:
        """
        The id of the device.
        """
    @property
    def dtype(self, /) -> str:
        """
        NumPy's name of the element type.
        """
    def read(self, /) -> NDArray[Any]:
        """
        Copies the elements to the host, after the device's earlier work.
        """
    def write(self, /, values: ArrayLike) -> None:
        """
        Replaces all elements. Raises ValueError for another number of them.
        """

@final
class CompiledGraph:
    """
    A graph on a device: calling it with its inputs as keywords returns a dict of its outputs.

    Inputs that are not given keep the values of the call before.
    """
    def __call__(self, /, **inputs: ArrayLike) -> dict[str, NDArray[Any]]:
        """
        Computes the outputs.

        Raises KeyError for an unknown input, ValueError for a wrong shape, a number that the input cannot hold, a number of a row that does not exist, or an input or a parameter that was never given.
        """
    def __repr__(self, /) -> str: ...
    @property
    def parameters(self, /) -> dict[str, NDArray[Any]]:
        """
        The parameters by name, copied from the device.
        """
    @property
    def receipt(self, /) -> Receipt:
        """
        On which device and by which code the calls were computed.
        """
    def set_parameters(self, /, values: dict[str, Any]) -> None:
        """
        Replaces parameters, from a dict of arrays by name.

        Raises KeyError for an unknown name, ValueError for a wrong shape; nothing changes then.
        """

@final
class Decoder:
    """
    A decoder of the GPT-2, Llama or Qwen family: `generate` continues texts.

    `path` is a Hugging Face folder, or a GGUF file with tokenizer.json next to it. `context` is the maximum of prompt and new tokens together. `cache` is the
    format of keys and values: "f32", "f16", "q8", "k8v4" or "q4"; `weights` "f32", "f16", "bf16" or "int8". `device` may be "auto".

    Raises FileNotFoundError, DataError naming tensor and file, UnsupportedError for another family.

    >>> import tectum as tt
    >>> decoder = tt.Decoder(tt.sample("sample-decoder"), context=64)
    >>> made = decoder.generate("the small cat", max_new_tokens=8)
    >>> len(made.tokens), made.finish_reason
    (8, 'length')
    >>> "".join(decoder.stream("the small cat", max_new_tokens=8)) == str(made)
    True
    """
    def __new__(cls, /, path: str | PathLike[str], *, context: int = 2048, device: Device | str = ..., weights: Literal["f32", "f16", "bf16", "int8"] | None = None, cache: Literal["f32", "f16", "q8", "k8v4", "q4"] = "f32", progress: bool = False) -> Decoder: ...
    def __repr__(self, /) -> str: ...
    @property
    def context(self, /) -> int:
        """
        Maximum tokens of a prompt and its continuation.
        """
    def decode(self, /, tokens: Sequence[int]) -> str:
        """
        The text of token numbers. Raises ValueError for a model without a tokenizer.
        """
    def encode(self, /, text: str) -> list[int]:
        """
        Token numbers of a text. Raises ValueError for a model without a tokenizer.
        """
    def generate(self, /, prompt: str | Sequence[int] | Sequence[str] | Sequence[Sequence[int]], *, max_new_tokens: int = 64, temperature: float = 0.0, top_k: int = 0, top_p: float = 1.0, repetition_penalty: float = 1.0, seed: int = 0, stop: Sequence[str] = ..., ignore_end: bool = False, continue_context: bool = False) -> Any:
        """
        Continues a prompt, or a list of prompts side by side, each in its own context.

        A prompt is a text or a list of token numbers. With `temperature` 0 the token with the highest score is taken; else one is drawn from the `top_k`
        highest scores (0 for all) and from the smallest set of probability `top_p`, by `seed`; each text after the first uses the next seed. Generation
        ends at a token that ends texts unless `ignore_end`, and at a text of `stop`. With `continue_context` the prompt follows what was generated before, without the special tokens that the tokenizer puts around a first text.

        Returns a `Generation`, or a list of them for a list of prompts. Raises ValueError for a prompt that does not fit or a setting out of range; Ctrl-C
        ends after the present token.
        """
    @property
    def parameters(self, /) -> int:
        """
        Number of parameters.
        """
    @property
    def receipt(self, /) -> Receipt:
        """
        On which device and by which code the tokens were computed.
        """
    def stream(self, /, prompt: str | Sequence[int], *, max_new_tokens: int = 64, temperature: float = 0.0, top_k: int = 0, top_p: float = 1.0, repetition_penalty: float = 1.0, seed: int = 0, stop: Sequence[str] = ..., ignore_end: bool = False, continue_context: bool = False) -> TextStream:
        """
        Continues one prompt and yields pieces of text as they become final; settings are those of `generate`.

        Generation runs ahead in a thread of its own and ends when the iterator is dropped; other calls wait for it.
        """

@final
class Device:
    """
    A device that results are computed on.

    `Device("cpu")`, `Device("cuda:0")`, `Device("vulkan:0")`, `Device("metal:0")`, `Device("dx12:0")`; `devices()` lists those of this machine.
    `threads` sets the number of threads of the CPU; without it there are as many as cores.

    Raises ValueError for an id that is none of these, UnsupportedError for a device that this machine or build does not have.

    >>> import tectum as tt
    >>> tt.Device("cpu", threads=1)
    Device('cpu')
    """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __new__(cls, /, id: str = "cpu", *, threads: int | None = None) -> Device: ...
    def __repr__(self, /) -> str: ...
    @property
    def id(self, /) -> str:
        """
        The id, such as "cpu" or "cuda:0".
        """
    @property
    def info(self, /) -> dict[str, Any]:
        """
        All that is known of the device, as in receipts.
        """
    @property
    def name(self, /) -> str:
        """
        The name that the driver or the operating system reports.
        """
    @property
    def software(self, /) -> bool:
        """
        Whether it is a processor that emulates a GPU; such a device never counts as a GPU.
        """

@final
class Encoder:
    """
    An encoder of the BERT family: `embed` computes one vector for each text.

    `path` is a folder with config.json, tokenizer.json and model.safetensors. `weights` is "f32", "f16", "bf16" or "int8"; without it, on the CPU, the format
    of the file if that is f16 or bf16, else f32. `device` may be "auto", the one with the minimum predicted time.

    Raises FileNotFoundError, DataError naming tensor and file, UnsupportedError for another family.

    >>> import tectum as tt
    >>> encoder = tt.Encoder(tt.sample("sample-encoder"))
    >>> vectors = encoder.embed(["the cat is small", "a small dog"])
    >>> vectors.shape, str(vectors.dtype)
    ((2, 64), 'float32')
    """
    def __new__(cls, /, path: str | PathLike[str], *, device: Device | str = ..., weights: Literal["f32", "f16", "bf16", "int8"] | None = None, progress: bool = False) -> Encoder: ...
    def __repr__(self, /) -> str: ...
    def embed(self, /, texts: Sequence[str]) -> NDArray[np.float32]:
        """
        The vectors of texts: float32 of shape (texts, width). The model's default prompt precedes each text, and texts of more than `max_tokens` are cut.
        """
    @property
    def max_tokens(self, /) -> int:
        """
        Maximum tokens of a text.
        """
    @property
    def parameters(self, /) -> int:
        """
        Number of parameters.
        """
    @property
    def receipt(self, /) -> Receipt:
        """
        On which device and by which code the vectors were computed.
        """
    @property
    def width(self, /) -> int:
        """
        Numbers of a vector.
        """

@final
class Event:
    """
    A point in a stream: it is signaled when everything that was submitted to the stream before it
    has ended, with or without an error.
    """
    @property
    def is_signaled(self, /) -> bool:
        """
        Whether it is signaled.
        """
    def wait(self, /) -> None:
        """
        Waits until it is signaled.
        """

@final
class Executable:
    """
    A plan compiled for a device: `run` takes the inputs as keywords and returns a dict of the outputs.
    """
    def __repr__(self, /) -> str: ...
    def read_state(self, /, name: str) -> NDArray[Any]:
        """
        Copies a state from the device.
        """
    @property
    def receipt(self, /) -> Receipt:
        """
        On which device and by which code the runs were computed.
        """
    def run(self, /, **inputs: ArrayLike) -> dict[str, NDArray[Any]]:
        """
        Runs once. Inputs that are not given keep their values.

        Raises KeyError for an unknown input, ValueError for another number of elements, what the device reports, and what a twin raised.
        """
    def state(self, /, name: str) -> Buffer:
        """
        The memory of a state: another plan may be compiled with it, and on a CUDA device other
        libraries use it in place.

        Raises KeyError for an unknown state.
        """
    def write_state(self, /, name: str, values: ArrayLike) -> None:
        """
        Replaces a state on the device.
        """

@final
class Field:
    """
    A 4-D neural field that senses, moves and changes its own rules (docs/field.md).

    `shape` is cells along X, Y and Z, then channels: axes are multiples of 4 from 4 to 64, channels a multiple of 32 from 32 to 256. `boundary` is "closed",
    "periodic" or "zero"; `storage` "f32" or "bf16" (half the memory); `patterns` the capacity of the library of patterns, 0 for none.

    Raises ValueError naming the size that is not possible.

    >>> import tectum as tt
    >>> field = tt.Field(sensors=2, motors=1, shape=(8, 8, 8, 32))
    >>> report = field.tick([0.5, -0.5], reward=0.0)
    >>> report.action.shape, field.cycle, field.elements.shape
    ((1,), 1, (8, 8, 8, 32))
    """
    def __new__(cls, /, sensors: int, motors: int, *, shape: tuple[int, int, int, int] = ..., boundary: Literal["closed", "periodic", "zero"] = "closed", seed: int = 1, patterns: int = 0, storage: Literal["f32", "bf16"] = "f32", device: Device | str = ..., shards: int = 1) -> Field: ...
    def __repr__(self, /) -> str: ...
    @property
    def coefficients(self, /) -> dict[str, Any]:
        """
        The coefficients of the next cycle by name.
        """
    @property
    def cycle(self, /) -> int:
        """
        Cycles done.
        """
    @property
    def elements(self, /) -> NDArray[np.float32]:
        """
        The elements: float32 of shape (X, Y, Z, channels).
        """
    @property
    def receipt(self, /) -> Receipt:
        """
        On which device and by which code the cycles were computed.
        """
    def restore(self, /, path: str | PathLike[str]) -> None:
        """
        Continues from the state of a field of the same shape.

        Raises DataError naming what does not fit; nothing changes then.
        """
    def save(self, /, path: str | PathLike[str]) -> None:
        """
        Writes the state to a safetensors file.
        """
    def set_coefficients(self, /, **values: ArrayLike) -> None:
        """
        Changes coefficients from the next cycle on, by name.

        Raises ValueError for an unknown name or a value out of range; nothing changes then.
        """
    def tick(self, /, sensors: ArrayLike, reward: float = 0.0) -> FieldReport:
        """
        Runs a cycle. `sensors` is of shape (sensors,), clamped to -1 to 1; `reward` too.

        Raises ValueError for another number of sensors, and what the device reports.
        """

@final
class FieldReport:
    """
    What a cycle of a field did; numbers have no unit.
    """
    def __repr__(self, /) -> str: ...
    @property
    def action(self, /) -> NDArray[np.float32]:
        """
        The action: float32 of shape (motors,), -1 to 1.
        """
    @property
    def confidence(self, /) -> float:
        """
        Confidence, 0 to 1.
        """
    @property
    def drive(self, /) -> float:
        """
        Internal drive, 0 to 1.
        """
    @property
    def error(self, /) -> float:
        """
        Weighted mean error of the prediction.
        """
    @property
    def explore(self, /) -> float:
        """
        Exploration, 0 to 1.
        """
    @property
    def information(self, /) -> float:
        """
        Information.
        """
    @property
    def intensity(self, /) -> float:
        """
        Intensity of the imprint.
        """
    @property
    def mean(self, /) -> float:
        """
        Mean content after the cycle.
        """
    @property
    def nearest(self, /) -> int | None:
        """
        Index of the pattern in the library that is most similar; None without a library.
        """
    @property
    def novelty(self, /) -> float:
        """
        Novelty, 0 to 1.
        """
    @property
    def place(self, /) -> tuple[int, int, int]:
        """
        The cell of the imprint.
        """
    @property
    def place_kind(self, /) -> str:
        """
        Why this cell: "existing", "resonant", "correlated" or "emptiest".
        """
    @property
    def stored(self, /) -> int | None:
        """
        Index at which the present pattern was stored; None if it was familiar.
        """
    @property
    def variance(self, /) -> float:
        """
        Variance of the content.
        """

@final
class Generation:
    """
    What a decoder generated for one prompt; `str()` gives the text.
    """
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    @property
    def decode_s(self, /) -> float:
        """
        Seconds of the runs for all further tokens.
        """
    @property
    def finish_reason(self, /) -> str:
        """
        "length", "context" (no room is left), "token" (one that ends texts), "stop" (a stop sequence) or "cancelled".
        """
    @property
    def prefill_s(self, /) -> float:
        """
        Seconds until the first token could be chosen.
        """
    @property
    def prompt_tokens(self, /) -> int:
        """
        Tokens of the prompt.
        """
    @property
    def text(self, /) -> str | None:
        """
        The text up to a stop sequence; None for a model without a tokenizer.
        """
    @property
    def tokens(self, /) -> list[int]:
        """
        The tokens, without one that ended the text.
        """

@final
class Genome:
    """
    A FEAGI genome, checked (docs/genomes.md).

    `units` is "detect", "fraction" or "legacy". `weight_loss` says when synapses that learn lose
    weight: "any_firing" (either end fired in any burst of the window), "steady_source" (the source
    fired in every burst of it), or "detect". With `strict` a morphology without a known definition
    is an error rather than a warning.

    Raises FileNotFoundError, DataError naming area and key, UnsupportedError for a function without a known definition.

    >>> import tectum as tt
    >>> genome = tt.Genome(tt.sample("sample-genome"))
    >>> [(area.name, len(area.neurons)) for area in genome.areas]
    [('in', 64), ('mid', 64)]
    >>> genome.network(stimulus=0.1).run(200).spike_hash
    '45e51a3e0c4d4310'
    """
    def __new__(cls, /, path: str | PathLike[str], *, units: Literal["detect", "fraction", "legacy"] = "detect", strict: bool = False, weight_loss: Literal["detect", "any_firing", "steady_source"] = "detect") -> Genome: ...
    def __repr__(self, /) -> str: ...
    def area(self, /, name: str) -> Area:
        """
        The area of a name or an id. Raises ValueError listing the areas.
        """
    @property
    def areas(self, /) -> list[Area]:
        """
        The areas, in the order of their neurons.
        """
    def network(self, /, *, device: Device | str = ..., seed: int = 0, stimulus: float = 0.0, stimulus_amount: float = 1.0, learns: bool = True, memory_neurons: int = 1024, silence: Literal["catch_up", "freeze"] = "catch_up", progress: bool = False, shards: int = 1) -> SpikingNetwork:
        """
        Connects the genome on a device.

        `seed` determines synapses that exist with a probability, and the neurons' draws. `stimulus` is the fraction of the neurons of input areas that gets
        `stimulus_amount` in each burst, at random. Without `learns`, plastic synapses keep their weights. `memory_neurons` is the maximum number of patterns of
        each memory area. `silence` is "catch_up" or "freeze", as in `SpikingNetwork`. With `progress`, tqdm shows it.

        Raises ValueError or UnsupportedError naming area or mapping.
        """
    @property
    def neurons(self, /) -> int:
        """
        Number of neurons, without those of memories.
        """
    @property
    def title(self, /) -> str:
        """
        The title.
        """
    @property
    def warnings(self, /) -> list[str]:
        """
        What the genome has that is read otherwise than written, or not at all.
        """

@final
class Graph:
    """
    A dense network as operations on tensors of float32, checked as they are added (docs/graphs.md).

    Dimensions are sizes, or upper-case letters that `compile` and `trainer` give sizes. A node supports `+`, `-`, `*`, `/`, `@` with nodes and numbers.

    Raises ValueError naming the operation and the shapes that do not fit.

    >>> import numpy as np, tectum as tt
    >>> graph = tt.Graph()
    >>> x, target = graph.input("x", (4, 1)), graph.input("target", (4, 1))
    >>> y = graph.dense("layer", x, 1)
    >>> graph.output("y", y)
    >>> trainer = graph.trainer(graph.mse(y, target), learning_rate=0.1, weight_decay=0.0)
    >>> trainer.initialize(seed=1)
    >>> for _ in range(500):
    ...     loss = trainer.step(x=[[0], [1], [2], [3]], target=[[1], [3], [5], [7]])
    >>> network = graph.compile()
    >>> network.set_parameters(trainer.parameters)
    >>> np.round(network(x=[[10], [11], [12], [13]])["y"][:, 0]).tolist()
    [21.0, 23.0, 25.0, 27.0]
    """
    def __new__(cls, /) -> Graph: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    def attention(self, /, q: Node, k: Node, v: Node, *, heads: int, width: int, kv_heads: int | None = None, mask: Node | None = None, causal: bool = False) -> Node:
        """
        softmax(q k^T / sqrt(width) + mask) v by heads. `q` is [B, T, heads * width], `k` and `v` [B, S, kv_heads * width].
        """
    def compile(self, /, *, device: Device | str = ..., **dims: int) -> CompiledGraph:
        """
        Compiles the graph for a device; keywords give letters their sizes, such as `B=32`.
        """
    def concat(self, /, nodes: Sequence[Node], axis: int) -> Node:
        """
        Joins nodes along an axis.
        """
    def constant(self, /, values: ArrayLike) -> Node:
        """
        Adds an array of fixed values.
        """
    def convolution(self, /, x: Node, w: Node, bias: Node | None = None, *, groups: int = 1, stride: int | Sequence[int] = ..., padding: int | Sequence[int] = ..., dilation: int | Sequence[int] = ...) -> Node:
        """
        A convolution over one to three axes of space: `x` [N, C, ..], `w` [K, C / groups, ..], `bias` [K]. `stride`, `padding` and `dilation` are one size, or
        one for each axis of space.
        """
    def cross_entropy(self, /, logits: Node, indices: Node) -> Node:
        """
        The mean of -log softmax(logits) at the classes of `indices`, a loss.
        """
    def dense(self, /, name: str, x: Node, width: int, activation: str = "none") -> Node:
        """
        Adds a layer, activation(x @ weight + bias), with parameters `{name}.weight` [k, width] and `{name}.bias` [1, width].
        """
    def gather(self, /, table: Node, indices: Node) -> Node:
        """
        Rows of a table [rows, ..], by numbers.
        """
    def indices(self, /, name: str, shape: int | str | Sequence[int | str]) -> Node:
        """
        Adds an input of row numbers, for `gather` and `cross_entropy`.
        """
    def input(self, /, name: str, shape: int | str | Sequence[int | str]) -> Node:
        """
        Adds an input of floats.
        """
    @property
    def inputs(self, /) -> list[tuple[str, tuple[int | str, ...]]]:
        """
        Name and shape of each input.
        """
    def layer_norm(self, /, x: Node, gain: Node, bias: Node, epsilon: float = 1e-5) -> Node:
        """
        (x - mean) / sqrt(variance + epsilon) * gain + bias over the last axis.
        """
    def mse(self, /, prediction: Node, target: Node) -> Node:
        """
        The mean of squared differences, a loss.
        """
    def output(self, /, name: str, node: Node) -> None:
        """
        Makes a node an output.
        """
    def parameter(self, /, name: str, shape: int | str | Sequence[int | str]) -> Node:
        """
        Adds a parameter, which training changes; zero at first.
        """
    @property
    def parameters(self, /) -> list[tuple[str, tuple[int | str, ...]]]:
        """
        Name and shape of each parameter.
        """
    @staticmethod
    def parse(text: str) -> Graph:
        """
        Reads the text form, which has every operation; `str(graph)` writes it. Raises ValueError naming the line.
        """
    def pool(self, /, x: Node, kind: Literal["max", "mean"], kernel: int | Sequence[int], *, stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = ...) -> Node:
        """
        The maximum ("max") or mean ("mean", of the elements inside) of windows of space of `x` [N, C, ..].
        """
    def rms_norm(self, /, x: Node, gain: Node, epsilon: float = 1e-5) -> Node:
        """
        x / sqrt(mean of squares + epsilon) * gain over the last axis.
        """
    def trainer(self, /, loss: Node, *, learning_rate: float | tuple[Literal["cosine"], float, int, int, float] | tuple[Literal["step"], float, float, int] = ..., beta1: float = 0.9, beta2: float = 0.999, weight_decay: float = 0.01, clip_norm: float | None = None, device: Device | str = ..., **dims: int) -> Trainer:
        """
        Compiles training of all parameters by AdamW for a loss of one element.

        `learning_rate` is a number, or ("cosine", peak, warm_up, total, floor), or ("step", initial, factor, every). `clip_norm` is the maximum norm of all
        gradients together. Keywords give letters their sizes.
        """

@final
class Kernel:
    """
    A kernel of one's own: device code in WGSL, with a function of Python as its form on the CPU (docs/kernels.md).

    `bindings` lists name, access ("read", "write", "read_write" or "atomic") and type of each array, `params` name and type of each number of a launch. The
    WGSL has an entry point `main` and reads parameters as `params.NAME`. `twin` is called with an array for each binding, whose contents it changes in place
    where the kernel writes, and the numbers, all as keywords; it returns nothing. `preludes` are names such as "linear_index", "math" or "random". `counts`
    names parameters that count elements of bindings, such as `{"count": ["x", "y"]}`: a launch whose arrays have fewer is refused.

    Raises ValueError for WGSL that is not valid, naming line and column.

    >>> import numpy as np, tectum as tt
    >>> def twin(x, y, count, factor):
    ...     y[:count] = factor * x[:count]
    >>> scale = tt.Kernel(
    ...     "scale",
    ...     '''
    ...     @compute @workgroup_size(64)
    ...     fn main(invocation: TectumInvocation) {
    ...         let i = tectum_linear_index(invocation);
    ...         if i < params.count { y[i] = params.factor * x[i]; }
    ...     }
    ...     ''',
    ...     [("x", "read", "float32"), ("y", "write", "float32")],
    ...     [("count", "uint32"), ("factor", "float32")],
    ...     twin,
    ...     preludes=["linear_index"],
    ...     counts={"count": ["x", "y"]},
    ... )
    >>> plan = tt.Plan("example")
    >>> x, y = plan.input("x", 4), plan.output("y", 4)
    >>> plan.launch(scale, [x, y], count=4, factor=2.0)
    >>> plan.compile().run(x=np.arange(4))["y"].tolist()
    [0.0, 2.0, 4.0, 6.0]
    """
    def __new__(cls, /, name: str, wgsl: str, bindings: Sequence[tuple[str, Literal["read", "write", "read_write"], Literal["float32", "float64", "int32", "uint32"]]], params: Sequence[tuple[str, Literal["float32", "int32", "uint32"]]], twin: Callable[..., None], *, preludes: Sequence[str] = ..., counts: dict[str, Sequence[str]] = ...) -> Kernel: ...
    def __repr__(self, /) -> str: ...
    @property
    def name(self, /) -> str:
        """
        The name.
        """
    @property
    def wgsl(self, /) -> str:
        """
        The whole device code, with the declarations of bindings and parameters.
        """

@final
class KernelCase:
    """
    The arguments of a launch that `check_kernel` makes.

    `arguments` has an array for each binding of the kernel and a number for each parameter, by name; for a binding with the access "write", which the kernel
    writes whole, its length is enough. `expected` has the results that are known, by binding; other results are compared with those of the twin. Without
    `groups` there are as many workgroups as the longest array needs. `tolerance` is how far a float may be from its reference r: one number t for
    t·(1 + |r|), or a pair for absolute + relative·|r|.

    >>> import tectum as tt
    >>> tt.KernelCase({"x": [1.0, 2.0], "y": 2, "n": 2}, expected={"y": [2.0, 4.0]}, name="two")
    <tectum kernel case 'two'>
    """
    def __new__(cls, /, arguments: dict[str, Any], *, name: str | None = None, expected: dict[str, Any] = ..., groups: int | None = None, tolerance: float | tuple[float, float] | None = None) -> KernelCase: ...
    def __repr__(self, /) -> str: ...

@final
class KernelCheck:
    """
    What `check_kernel` found: `rows` by device and case, and in `left_out` what did not run, with the reason.

    >>> import tectum as tt
    >>> check = tt.KernelCheck
    """
    def __repr__(self, /) -> str: ...
    @property
    def kernel(self, /) -> str:
        """
        The kernel's name.
        """
    @property
    def left_out(self, /) -> list[str]:
        """
        Devices, or cases on them, that did not run, with the reason.
        """
    @property
    def passed(self, /) -> bool:
        """
        Whether something was compared and nothing differs.
        """
    @property
    def rows(self, /) -> list[KernelCheckRow]:
        """
        A row for each device and case.
        """

@final
class KernelCheckRow:
    """
    A case of `check_kernel` on a device: `passed`, or the first element that differs from its reference.

    >>> import tectum as tt
    >>> row = tt.KernelCheckRow
    """
    def __repr__(self, /) -> str: ...
    @property
    def binding(self, /) -> str | None:
        """
        The binding of the first element that differs; None if none does.
        """
    @property
    def case(self, /) -> str:
        """
        The name of the case.
        """
    @property
    def device(self, /) -> str:
        """
        The device's id; on "cpu" the twin ran.
        """
    @property
    def differing(self, /) -> int:
        """
        How many elements of the binding differ.
        """
    @property
    def element(self, /) -> int | None:
        """
        The index of the first element that differs.
        """
    @property
    def expected(self, /) -> Any | None:
        """
        Its reference: what the case expects, or the result of the twin.
        """
    @property
    def found(self, /) -> Any | None:
        """
        Its value on the device.
        """
    @property
    def passed(self, /) -> bool:
        """
        Whether no element differs.
        """

class NativeBody:
    """
    A built-in body, for one loop or to be stepped by hand.

    `reset(seed)` returns an observation, `step(action)` returns `(observation, reward, terminated, truncated)`. `tectum.body(name)` makes one.
    """
    def __repr__(self, /) -> str: ...
    def observe(self, /) -> NDArray[np.float32]:
        """
        The observation, float32 of shape (elements,): one for each number, all of each array; `spec.unflatten` makes a dict of it.
        """
    def render(self, /, width: int = 600, height: int = 400) -> NDArray[np.uint8]:
        """
        The drawing as a picture, or MuJoCo's picture of its model: uint8 of shape (height, width, 3), red, green and blue.

        Raises ValueError for a side that is not from 1 to 4096.
        """
    def reset(self, /, seed: int = 0) -> NDArray[np.float32]:
        """
        Puts the body at its start and returns the observation; the same seed gives the same start on every machine.
        """
    @property
    def schematic(self, /) -> dict[str, Any]:
        """
        A drawing of the body as it is now, as a dict: `min` and `max`, the corners of the region in
        metres, and `shapes`, each with its `shape` ("line", "disc" or "rectangle"), its `role` and
        its measures in metres. A body of unknown geometry has a gauge for each channel.
        """
    @property
    def spec(self, /) -> BodySpec:
        """
        The constants of the body.
        """
    @property
    def state(self, /) -> NDArray[np.float64]:
        """
        The exact state, float64: everything that the next step depends on. Raises UnsupportedError for a body that has none.
        """
    @state.setter
    def state(self, /, state: ArrayLike) -> None: ...
    def step(self, /, action: ArrayLike) -> tuple[NDArray[np.float32], float, bool, bool]:
        """
        Applies an action for one period. Returns `(observation, reward, terminated, truncated)`.

        Raises ValueError if the action does not have one number for each channel.
        """

@final
class NativeBrain:
    """
    A built-in brain or a trained policy, for one loop or to be called by hand: `tick(observation)` returns an action.
    """
    def __repr__(self, /) -> str: ...
    @property
    def commands(self, /) -> list[str]:
        """
        The names of the commands that `set_command` sets.
        """
    @property
    def device(self, /) -> str | None:
        """
        The id of the device that ticks run on; None for plain host arithmetic.
        """
    @property
    def name(self, /) -> str:
        """
        The name, as in scenarios.
        """
    @property
    def network_inputs(self, /) -> dict[str, NDArray[np.float32]]:
        """
        The inputs of the policy's networks at the last tick, float32 arrays of one dimension by
        name: what its contract made of the observation.
        """
    def predict(self, /, observation: ArrayLike, state: Any | None = None, episode_start: bool | ArrayLike | None = None, deterministic: bool = True) -> tuple[NDArray[np.float32], Any]:
        """
        The form of Stable-Baselines3's `predict`: an action, and `state` as it was given, since the
        brain keeps its own. `episode_start`, a bool or an array of them, clears recurrent state.

        A batch of observations, of shape (batch, channels), gives actions of shape (batch, action
        channels): each row is answered from cleared state, since the brain has one state. A batch
        of one row, as of a vector environment of one, continues.
        """
    @property
    def receipt(self, /) -> Receipt:
        """
        On which device and by which code the calls of `tick` were computed. A loop has its own receipt.
        """
    def reset(self, /) -> None:
        """
        Begins another episode: recurrent state is cleared.
        """
    def set_command(self, /, name: str, value: float | None) -> None:
        """
        Sets a command of the policy's contract from the next tick on, instead of its schedule;
        None returns to it. The value is clamped to the command's range. It may be called from any
        thread, also while a loop runs the policy.

        Raises ValueError for a name that is no command, and for a number that is not finite.
        """
    def tick(self, /, observation: ArrayLike | dict[str, Any]) -> NDArray[np.float32]:
        """
        Reads one observation and returns one action, float32 of shape (channels,), in the body's units and order.

        An observation is a vector of all elements, or a dict with a number or an array for each channel.

        Raises ValueError if the observation is not one of the body, and what the device reports.
        """

@final
class Network:
    """
    A network from an ONNX file, compiled for a device.

    `dims` gives sizes to named dimensions, or to an axis as `INPUT.AXIS`; others are 1. `weights` is "f32", "f16" or "int8": products then read weights of fewer bits.
    Calling it computes the outputs: `network(obs=array)` returns a dict of arrays by output name.

    Raises FileNotFoundError, DataError for a malformed file, UnsupportedError listing every operator that is not supported.
    """
    def __call__(self, /, **inputs: ArrayLike) -> dict[str, NDArray[Any]]:
        """
        Computes the outputs of the given inputs, all of them by name.
        """
    def __new__(cls, /, model: str | PathLike[str], *, device: Device | str = ..., dims: dict[str, int] = ..., weights: Literal["f32", "f16", "int8"] = "f32") -> Network: ...
    def __repr__(self, /) -> str: ...
    def _repr_html_(self, /) -> str: ...
    @property
    def assumptions(self, /) -> list[str]:
        """
        What the file does not state, and the values that loading assumed.
        """
    @property
    def inputs(self, /) -> list[tuple[str, list[int]]]:
        """
        Name and shape of each input.
        """
    @property
    def outputs(self, /) -> list[tuple[str, list[int]]]:
        """
        Name and shape of each output.
        """
    @property
    def receipt(self, /) -> Receipt:
        """
        On which device and by which code the runs were computed.
        """
    def run(self, /, inputs: dict[str, Any]) -> dict[str, NDArray[Any]]:
        """
        As calling the network, with a dict of the inputs: for names that are not those of Python.
        """

@final
class Neurons:
    """
    Groups of neurons with the same options, for `SpikingNetwork`.

    >>> import tectum as tt
    >>> neurons = tt.Neurons()
    >>> neurons.add(80, threshold=10.0, leak=0.1), neurons.add(20, threshold=5.0, refractory=2)
    (range(0, 80), range(80, 100))
    >>> len(neurons)
    100
    """
    def __len__(self, /) -> int: ...
    def __new__(cls, /) -> Neurons: ...
    def __repr__(self, /) -> str: ...
    def add(self, /, count: int, *, threshold: float = 1.0, threshold_limit: float | None = None, resting_potential: float = 0.0, leak: float = 0.0, excitability: float = 1.0, refractory: int = 0, consecutive_fire_limit: int = 0, snooze: int = 0, charge_accumulation: bool = True, psp: int = 1, uniform_psp: bool = False, potential_driven_psp: bool = False) -> range:
        """
        Adds `count` neurons with the same options and returns their numbers.

        `threshold` is the potential from which a neuron fires, up to `threshold_limit`; it starts at and returns to `resting_potential`. `leak` is the
        fraction that is lost in a burst (0 to 1), `excitability` the probability of firing (0 to 1), `refractory` the bursts after a firing in which
        arrivals are lost. After `consecutive_fire_limit` firings in a row, `snooze` bursts are added to that period. Without `charge_accumulation` the
        potential does not persist. A firing sends `psp` (0 to 255) divided by the number of synapses, or the whole of it to each with `uniform_psp`;
        with `potential_driven_psp` it sends the potential.

        Raises ValueError naming the option that is out of range.
        """

@final
class Node:
    """
    A value of a graph: what an operation computes.

    Operators work element by element and broadcast as NumPy's do, `@` multiplies matrices; numbers
    and arrays are constants. `x[0]`, `x[:, 1:3]`, `x[..., ::2]` and `x[None]` select as in NumPy,
    without arrays as indices. `.T` is the transpose of a matrix in a product. Functions are
    methods.

    >>> import tectum as tt
    >>> graph = tt.Graph()
    >>> x = graph.input("x", ("B", 3))
    >>> ((x @ graph.parameter("w", (3, 2)) + 1.0).relu() / 2).shape
    ('B', 2)
    """
    @property
    def T(self, /) -> Node:
        """
        The transpose of a matrix, for `@`.
        """
    def __abs__(self, /) -> Node: ...
    def __add__(self, other: object, /) -> Node: ...
    def __getitem__(self, index: Any, /) -> Node: ...
    def __len__(self, /) -> int: ...
    def __matmul__(self, other: object, /) -> Node: ...
    def __mul__(self, other: object, /) -> Node: ...
    def __neg__(self, /) -> Node: ...
    def __pow__(self, other: object, modulo: object = None, /) -> Node: ...
    def __radd__(self, other: object, /) -> Node: ...
    def __repr__(self, /) -> str: ...
    def __rmatmul__(self, other: object, /) -> Node: ...
    def __rmul__(self, other: object, /) -> Node: ...
    def __rpow__(self, other: object, modulo: object = None, /) -> Node: ...
    def __rsub__(self, other: object, /) -> Node: ...
    def __rtruediv__(self, other: object, /) -> Node: ...
    def __sub__(self, other: object, /) -> Node: ...
    def __truediv__(self, other: object, /) -> Node: ...
    def apply(self, /, name: str) -> Node:
        """
        A function of each element by its name: exp, log, sqrt, erf, abs, sign, floor, ceil, round, sin, cos, tan, their inverses and hyperbolic forms,
        reciprocal, or an activation. Raises ValueError listing the names.
        """
    def exp(self, /) -> Node:
        """
        exp(x)
        """
    def gelu(self, /) -> Node:
        """
        The tanh form of GELU.
        """
    def log(self, /) -> Node:
        """
        The natural logarithm.
        """
    def max(self, /, axis: int | Sequence[int] | None = ..., keepdims: bool = False) -> Node:
        """
        The maximum along an axis or several, which are removed unless `keepdims`; of all for None.
        """
    def maximum(self, /, other: Node | NDArray[Any] | float) -> Node:
        """
        The maximum of two values, element by element.
        """
    def mean(self, /, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Node:
        """
        The mean along an axis or several, which are removed unless `keepdims`; without an axis the
        mean of all elements, of shape (1, 1).
        """
    def min(self, /, axis: int | Sequence[int] | None = ..., keepdims: bool = False) -> Node:
        """
        The minimum along an axis or several, which are removed unless `keepdims`; of all for None.
        """
    def minimum(self, /, other: Node | NDArray[Any] | float) -> Node:
        """
        The minimum of two values, element by element.
        """
    @property
    def ndim(self, /) -> int:
        """
        The number of dimensions.
        """
    def permute(self, /, order: Sequence[int]) -> Node:
        """
        The axes in another order.
        """
    def relu(self, /) -> Node:
        """
        max(x, 0)
        """
    def reshape(self, /, *shape: int | str | Sequence[int | str]) -> Node:
        """
        The same elements in another shape: sizes, or one sequence of them. A size of -1 is what the
        others leave.
        """
    @property
    def shape(self, /) -> tuple[int | str, ...]:
        """
        Sizes, and letters for dimensions without one.
        """
    def sigmoid(self, /) -> Node:
        """
        1 / (1 + exp(-x))
        """
    def silu(self, /) -> Node:
        """
        x / (1 + exp(-x))
        """
    def slice(self, /, axis: int, start: int, length: int) -> Node:
        """
        `length` elements of an axis from `start` on.
        """
    def softmax(self, /, axis: int = ...) -> Node:
        """
        exp(x) divided by its sum along an axis.
        """
    def sqrt(self, /) -> Node:
        """
        The square root.
        """
    def sum(self, /, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Node:
        """
        The sum along an axis or several, which are removed unless `keepdims`; without an axis the
        sum of all elements, of shape (1, 1).
        """
    def tanh(self, /) -> Node:
        """
        tanh(x)
        """

@final
class ObservationChannel:
    """
    A part of an observation: one number, or an array of a `shape` such as a picture, whose elements have a `dtype` of NumPy: float32, uint8, int8 or bool.

    `low` and `high` are the values expected, for plots and checks; `scale` is the typical magnitude, by default the larger bound. `wraps` marks an angle that begins again after a full turn: its unit is "rad", "deg" or "", which is radians too.

    >>> import tectum as tt
    >>> tt.ObservationChannel("x", "m", -2.4, 2.4)
    ObservationChannel('x', 'm', -2.4, 2.4)
    >>> tt.ObservationChannel("yaw", "deg", -180, 180, wraps=True)
    ObservationChannel('yaw', 'deg', -180.0, 180.0, wraps=True)
    >>> tt.ObservationChannel("camera", "", 0, 255, shape=(48, 64, 3), dtype="uint8")
    ObservationChannel('camera', '', 0.0, 255.0, shape=(48, 64, 3), dtype='uint8')
    """
    def __eq__(self, other: object, /) -> bool: ...
    def __new__(cls, /, name: str, unit: str = "", low: float = ..., high: float = 1.0, *, scale: float | None = None, wraps: bool = False, shape: Sequence[int] | None = None, dtype: DTypeLike | None = None) -> ObservationChannel: ...
    def __repr__(self, /) -> str: ...
    @property
    def dtype(self, /) -> np.dtype[Any]:
        """
        NumPy's type of the elements.
        """
    @property
    def high(self, /) -> float:
        """
        The highest value expected.
        """
    @property
    def low(self, /) -> float:
        """
        The lowest value expected.
        """
    @property
    def name(self, /) -> str:
        """
        The name, as in recordings.
        """
    @property
    def scale(self, /) -> float:
        """
        The typical magnitude.
        """
    @property
    def shape(self, /) -> tuple[int, ...]:
        """
        The sizes of an array; empty for one number.
        """
    @property
    def unit(self, /) -> str:
        """
        The unit, as printed.
        """
    @property
    def wraps(self, /) -> bool:
        """
        Whether it is an angle that wraps after a full turn.
        """

@final
class Plan:
    """
    Launches over views of memory, recorded once and run many times: one upload, one submission, one download.

    >>> import tectum as tt
    >>> plan = tt.Plan("example")
    >>> x, y = plan.input("x", 3), plan.output("y", 3)
    >>> plan.unary("relu", x, y)
    >>> plan.compile().run(x=[-1.0, 0.5, 2.0])["y"].tolist()
    [0.0, 0.5, 2.0]
    """
    def __new__(cls, /, name: str = "plan") -> Plan: ...
    def binary(self, /, name: str, a: View, b: View, y: View) -> None:
        """
        Records a built-in function of two elements, such as "add" or "max".
        """
    def compile(self, /, *, device: Device | str = ..., states: dict[str, Buffer] | None = None) -> Executable:
        """
        Compiles the plan for a device; it records nothing more then. `states` has buffers of that
        device, by the names of the states that use their memory; several plans may share one.

        Raises ValueError for an output that nothing writes, and a buffer of another type, length
        or device; the plan is lost then. KeyError for an unknown state.
        """
    def constant(self, /, name: str, values: ArrayLike) -> View:
        """
        Adds a constant array of float32.
        """
    def copy(self, /, x: View, y: View) -> None:
        """
        Records a copy.
        """
    def input(self, /, name: str, length: int, dtype: Literal["float32", "float64", "int32", "uint32"] = "float32") -> View:
        """
        Adds an input, part of the one upload.
        """
    def launch(self, /, kernel: Kernel, views: Sequence[View], *, groups: int | None = None, **params: float) -> None:
        """
        Records a launch: a view for each binding, and each parameter as a keyword. Without `groups` there are as many workgroups as the longest view needs,
        with an element an invocation.

        Raises KeyError for a parameter that is missing or unknown, ValueError for a view that does not fit, and for more than 65,535 workgroups of a kernel
        that takes its index neither from `tectum_linear_index` nor in a loop over the stride.
        """
    def output(self, /, name: str, length: int, dtype: Literal["float32", "float64", "int32", "uint32"] = "float32") -> View:
        """
        Adds an output, part of the one download.
        """
    def state(self, /, name: str, length: int, dtype: Literal["float32", "float64", "int32", "uint32"] = "float32") -> View:
        """
        Adds a state, which stays on the device from run to run; zero at first.
        """
    def temporary(self, /, length: int, dtype: Literal["float32", "float64", "int32", "uint32"] = "float32") -> View:
        """
        Adds a temporary, whose memory is used again after its last reader.
        """
    def unary(self, /, name: str, x: View, y: View) -> None:
        """
        Records a built-in function of each element, such as "relu" or "exp".
        """

@final
class PotentialMonitor:
    """
    The potentials of some neurons from `SpikingNetwork.potential_monitor` on: `t` has the bursts, `v` a row of potentials for each.
    """
    def __len__(self, /) -> int: ...
    def __repr__(self, /) -> str: ...
    def clear(self, /) -> None:
        """
        Forgets the potentials so far.
        """
    @property
    def i(self, /) -> NDArray[Any]:
        """
        The recorded neurons, in the order of the columns of `v`: uint32 of shape (neurons,).
        """
    def plot(self, /, axes: Any | None = None) -> Any:
        """
        Draws the record by matplotlib, and returns the axes.
        """
    @property
    def t(self, /) -> NDArray[Any]:
        """
        The bursts, ascending: uint32 of shape (rows,).
        """
    @property
    def v(self, /) -> Any:
        """
        The potentials: float64 of shape (rows, neurons), in units of psp times weight.
        """

@final
class Program:
    """
    A lane-level program (docs/programs.md), checked. `tectum.program` makes one from its text.
    """
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    @property
    def buffers(self, /) -> list[tuple[str, str, str]]:
        """
        Name, type ("f32", …) and access ("read", "write" or "read_write") of each buffer.
        """
    @property
    def name(self, /) -> str:
        """
        The name, as the text declares it.
        """
    @property
    def receipt(self, /) -> Receipt | None:
        """
        On which device and by which code the last run was computed; None before the first.
        """
    def run(self, /, *, device: Device | str = ..., grid: tuple[int, int, int] | None = None, block: tuple[int, int, int] | None = None, shared_bytes: int | None = None, max_loop_iterations: int | None = None, reassociate: bool = False, **arrays: ArrayLike) -> dict[str, NDArray[Any]]:
        """
        Runs the program over arrays, one keyword for each buffer, and returns the buffers that it writes as a dict of arrays.

        A buffer that is only written gets its number of elements, or its shape as a tuple; without it, as many elements as the arrays that lanes access by
        their own number. `grid` and `block` are sizes in x, y and z; without them there is a lane for each element. With `reassociate`, sums of floats may
        change their order. A launch that was compiled before is used again.

        Raises KeyError for a buffer without contents, ValueError for an array of another type or a lane's fault with its line.
        """

@final
class Receipt:
    """
    On which device and by which code results were computed.
    """
    def __repr__(self, /) -> str: ...
    def _repr_html_(self, /) -> str: ...
    @property
    def device(self, /) -> str:
        """
        The id of the device.
        """
    @property
    def runs(self, /) -> int:
        """
        Number of runs that it covers.
        """
    @property
    def software(self, /) -> bool:
        """
        Whether the device is a processor that emulates a GPU.
        """
    def to_dict(self, /) -> dict[str, Any]:
        """
        The receipt as a dict, with the keys of its JSON form.
        """
    @property
    def trace(self, /) -> str | None:
        """
        The hash of every period of a loop, without measured times; None for other work. The same seed gives the same hash.
        """

@final
class Recording:
    """
    A recording of a run: one row for each period, as in `Run`.

    `Recording(path)` reads a `trace.mcap`, or that of a run folder. A number that was not recorded, or was not finite, is NaN.

    Raises FileNotFoundError, DataError naming the message that is malformed.

    >>> import tempfile, tectum as tt
    >>> folder = tempfile.TemporaryDirectory()
    >>> run = tt.run("cart_pole", clock="sim", seconds=1, folder=folder.name)
    >>> recording = tt.Recording(run.folder)
    >>> recording.observations.shape, bool((recording.observations == run.observations).all())
    ((50, 4), True)
    """
    def __len__(self, /) -> int: ...
    def __new__(cls, /, path: str | PathLike[str]) -> Recording: ...
    def __repr__(self, /) -> str: ...
    @property
    def action_names(self, /) -> list[str]:
        """
        Names of the columns of `actions`.
        """
    @property
    def actions(self, /) -> NDArray[np.float32]:
        """
        Actions that the body received, float32 of shape (periods, channels).
        """
    @property
    def arrays(self, /) -> dict[str, NDArray[Any]]:
        """
        The channels of observations that are arrays by name, each of shape (periods, *shape) and of the channel's type.
        """
    @property
    def ended(self, /) -> NDArray[np.bool_]:
        """
        Whether the episode ended with the period.
        """
    @property
    def fallback(self, /) -> NDArray[np.bool_]:
        """
        Whether the brain failed, so that the body received its safe action.
        """
    @property
    def held(self, /) -> NDArray[np.bool_]:
        """
        Whether an answer was late, so that the body received the one before.
        """
    @property
    def latency(self, /) -> NDArray[np.float64]:
        """
        Host time of each answer in seconds; NaN where it was not measured.
        """
    @property
    def measure(self, /) -> NDArray[Any]:
        """
        What the task measured, float64 of shape (periods,).
        """
    @property
    def measure_name(self, /) -> str | None:
        """
        Name of what the task measured; None without a task.
        """
    @property
    def observation_names(self, /) -> list[str]:
        """
        Names of the columns of `observations`.
        """
    @property
    def observations(self, /) -> NDArray[np.float32]:
        """
        The numbers of observations, float32 of shape (periods, channels of one number).
        """
    def plot(self, /) -> Any:
        """
        Draws each channel over time by matplotlib, and returns the figure, which pyplot keeps until `matplotlib.pyplot.close(figure)`.
        """
    @property
    def rewards(self, /) -> NDArray[np.float64]:
        """
        Rewards, float64 of shape (periods,).
        """
    @property
    def t(self, /) -> NDArray[np.float64]:
        """
        The beginning of each period in the body's time, float64 of shape (periods,), in seconds.
        """

@final
class RemoteBody(NativeBody):
    """
    A body in another process or on a serial port, for one loop or to be stepped by hand; a context manager.

    `address` is `ws://HOST:PORT` of a body that waits, `listen:ws://HOST:PORT` where this process
    waits for the body, or `serial:/dev/ttyUSB0`. `spec` is compared with what the body states of
    itself; a machine on a serial port states nothing, and needs it. The first connection, an answer
    of a body that is stepped by hand, and the first observation of an episode may take `wait`
    seconds. In real time the last action is held for `hold` seconds after the last observation, by
    default min(3 periods, 0.1 s) and at least 1.5 periods; then the body gets its safe action until
    it is armed again. An address of other machines needs `token_file` or the variable TECTUM_TOKEN.
    docs/robots.md has the protocol.

    Raises ValueError for an address without a token and for a body that differs, DataError without a
    connection in time, OSError for a port that is in use or does not exist.
    """
    def __enter__(self, /) -> RemoteBody: ...
    def __exit__(self, /, *_exception: Any) -> None: ...
    def __new__(cls, /, address: str, *, spec: BodySpec | None = None, wait: float = 5.0, hold: float | None = None, token_file: str | PathLike[str] | None = None, baud: int = 115_200, checksum: bool = False) -> RemoteBody: ...
    @property
    def address(self, /) -> str | None:
        """
        Where it is reached, `ws://HOST:PORT`; None on a serial port.
        """
    def arm(self, /) -> None:
        """
        Arms the body again after a stop: from its next observation on the brain is queried. It may
        be called from any thread, also while a loop runs. Without a connection, and before a stop,
        it does nothing.
        """
    def close(self, /) -> None:
        """
        Sends the safe action and ends the connection; again, it does nothing.

        Raises ValueError while a loop owns the body.
        """
    @property
    def peer(self, /) -> str:
        """
        The body's own name.
        """

@final
class Repetition:
    """
    The repetition of a run; `repeat` makes one.
    """
    def __repr__(self, /) -> str: ...
    @property
    def device(self, /) -> str:
        """
        The id of the device that it was repeated on.
        """
    @property
    def expected(self, /) -> str:
        """
        The hash of every period of the run, from the receipt in its folder.
        """
    @property
    def found(self, /) -> str:
        """
        The hash of every period of the repetition.
        """
    @property
    def periods(self, /) -> int:
        """
        Number of periods.
        """
    @property
    def receipt(self, /) -> Receipt:
        """
        On which device and by which code the repetition was computed.
        """
    @property
    def same(self, /) -> bool:
        """
        Whether every period is the same, bit for bit.
        """

@final
class Run:
    """
    What a run of a loop recorded: one row for each period. Its arrays are read-only.
    """
    def __len__(self, /) -> int: ...
    def __repr__(self, /) -> str: ...
    def _repr_html_(self, /) -> str: ...
    @property
    def actions(self, /) -> NDArray[np.float32]:
        """
        Actions that the body received, float32 of shape (periods, channels).
        """
    @property
    def deadline_misses(self, /) -> int:
        """
        Periods whose answer was late.
        """
    @property
    def dt(self, /) -> float:
        """
        Time between two rows, in seconds.
        """
    @property
    def end(self, /) -> str:
        """
        "completed", "stopped" by a `StopSignal`, "interrupted" by an exception, or "failed" by an
        error of the loop.
        """
    @property
    def ended(self, /) -> NDArray[np.bool_]:
        """
        Whether the episode ended with the period.
        """
    @property
    def fallback(self, /) -> NDArray[np.bool_]:
        """
        Whether the brain failed, so that the body received its safe action.
        """
    @property
    def folder(self, /) -> Path | None:
        """
        The run folder; None if none was requested.
        """
    @property
    def held(self, /) -> NDArray[np.bool_]:
        """
        Whether an answer was late, so that the body received the one before.
        """
    @property
    def latency(self, /) -> NDArray[np.float64]:
        """
        Host time of each answer in seconds; NaN where it was not measured.
        """
    @property
    def observations(self, /) -> NDArray[np.float32]:
        """
        Observations, float32 of shape (periods, channels).
        """
    def plot(self, /) -> Any:
        """
        Draws each channel over time by matplotlib, and returns the figure, which pyplot keeps until `matplotlib.pyplot.close(figure)`.
        """
    @property
    def receipt(self, /) -> Receipt:
        """
        On which device and by which code it was computed.
        """
    @property
    def rewards(self, /) -> NDArray[np.float64]:
        """
        Rewards, float64 of shape (periods,).
        """
    @property
    def spec(self, /) -> BodySpec:
        """
        The constants of the body, with names and units of the columns.
        """
    @property
    def t(self, /) -> NDArray[np.float64]:
        """
        The beginning of each period in the body's time, float64 of shape (periods,), in seconds.
        """
    @property
    def task(self, /) -> Any | None:
        """
        Results of the task by name; None without a task.
        """
    @property
    def total_reward(self, /) -> float:
        """
        Sum of the rewards.
        """

@final
class Server:
    """
    A server of a brain, from `serve` on until `close`; a context manager.

    Each client has a brain of its own.
    """
    def __enter__(self, /) -> Server: ...
    def __exit__(self, /, *_exception: Any) -> None: ...
    def __repr__(self, /) -> str: ...
    @property
    def address(self, /) -> str:
        """
        Where it listens: `ws://HOST:PORT`.
        """
    def close(self, /) -> None:
        """
        Ends the server and the connections of its clients; again, it does nothing.
        """
    @property
    def counts(self, /) -> dict[str, Any]:
        """
        What it has counted so far: clients, answers, errors, by name.

        Raises ValueError after `close`.
        """
    @property
    def receipt(self, /) -> Receipt:
        """
        On which device and by which code the answers so far were computed, with their latencies.

        Raises ValueError after `close`.
        """

@final
class SpikeCounts:
    """
    The counts of a spiking network so far.

    `bursts`, `spikes` and `events` (synapses that carried a spike) are numbers; `spike_hash` is the same text for the same (burst, neuron) pairs on every
    device, with any number of threads.
    """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __new__(cls, /, bursts: int, spikes: int, events: int, spike_hash: str) -> SpikeCounts: ...
    def __repr__(self, /) -> str: ...
    @property
    def bursts(self, /) -> int:
        """
        Bursts so far; the first is number 1.
        """
    @property
    def events(self, /) -> int:
        """
        Synapses that carried a spike.
        """
    @property
    def spike_hash(self, /) -> str:
        """
        Checksum of all (burst, neuron) pairs, as 16 hexadecimal digits.
        """
    @property
    def spikes(self, /) -> int:
        """
        Firings.
        """

@final
class SpikeMonitor:
    """
    The firings of a network from `SpikingNetwork.monitor` on: `t` has the burst and `i` the neuron of each.
    """
    def __len__(self, /) -> int: ...
    def __repr__(self, /) -> str: ...
    def clear(self, /) -> None:
        """
        Forgets the firings so far.
        """
    @property
    def i(self, /) -> NDArray[Any]:
        """
        The neuron of each firing: uint32 of shape (firings,).
        """
    def plot(self, /, axes: Any | None = None) -> Any:
        """
        Draws the record by matplotlib, and returns the axes.
        """
    @property
    def t(self, /) -> NDArray[Any]:
        """
        The burst of each firing, ascending: uint32 of shape (firings,).
        """

@final
class SpikingNetwork:
    """
    A spiking network on a device.

    `SpikingNetwork(neurons, source, target, weight)` connects neurons: synapse k adds `weight[k]` (0 to 255) times the psp of neuron `source[k]` to neuron
    `target[k]` one burst after a firing, or subtracts it where `inhibitory[k]`. `rule[k]` is the index in `rules` of its learning rule (window, gain, loss),
    or -1 for a weight that does not change. `Genome.network` makes one from a genome. The rule of neurons is in docs/spiking.md; potentials are in units of
    psp times weight, and the same network has the same spikes on every device.

    `silence` is "catch_up" (neurons without arrivals leak and recover) or "freeze" (they do not).
    `weight_loss` is "any_firing" (a weight that does not gain loses if either end fired in any burst
    of the window) or "steady_source" (if its source fired in every burst of it).

    Raises ValueError naming the synapse or option that is out of range.

    >>> import tectum as tt
    >>> neurons = tt.Neurons()
    >>> neurons.add(2, threshold=10.0)
    range(0, 2)
    >>> network = tt.SpikingNetwork(neurons, source=[0], target=[1], weight=[10])
    >>> spikes = network.monitor()
    >>> network.inject(0, 10.0)
    >>> network.run(2).spikes
    2
    >>> spikes.t.tolist(), spikes.i.tolist()
    ([1, 2], [0, 1])
    """
    def __new__(cls, /, neurons: Neurons, source: ArrayLike, target: ArrayLike, weight: ArrayLike, *, inhibitory: ArrayLike | None = None, rule: ArrayLike | None = None, rules: Sequence[tuple[int, int, int]] = ..., device: Device | str = ..., seed: int = 0, silence: Literal["catch_up", "freeze"] = "catch_up", max_injected: float = 255.0, constant_inputs: Sequence[tuple[int, float]] | None = None, weight_loss: Literal["any_firing", "steady_source"] = "any_firing", shards: int = 1) -> SpikingNetwork: ...
    def __repr__(self, /) -> str: ...
    def _repr_html_(self, /) -> str: ...
    @property
    def counts(self, /) -> SpikeCounts:
        """
        The counts so far.
        """
    def edges(self, /) -> dict[str, NDArray[Any]]:
        """
        All synapses with their initial weights, as a dict of arrays with a number for each:
        `source`, `target` (uint32), `weight` (uint8), `inhibitory` (bool) and `rule` (int8), the index
        of its learning rule, or -1 for a weight that does not change. A network of a genome also has
        `mapping` (uint32), the index of the mapping, and `psp` (uint8), which a firing of the source
        sends. They are in the order of mappings, or of sources for a network from arrays;
        `plastic_synapses` has the weights at present.

        Raises MemoryError if the arrays do not fit into memory.

        >>> import tectum as tt
        >>> neurons = tt.Neurons()
        >>> neurons.add(3)
        range(0, 3)
        >>> edges = tt.SpikingNetwork(neurons, [2, 0], [1, 2], [7, 5], inhibitory=[1, 0]).edges()
        >>> edges["source"].tolist(), edges["target"].tolist(), edges["weight"].tolist()
        ([0, 2], [2, 1], [5, 7])
        """
    @property
    def fired(self, /) -> NDArray[Any]:
        """
        The neurons that fired in the last burst, ascending: uint32 of shape (firings,).
        """
    def inject(self, /, neurons: ArrayLike, amount: ArrayLike) -> None:
        """
        Adds to the next burst: `amount` (one number, or one for each neuron) arrives at neurons given by number, as an array, a range, or an area's name. In the network of a genome the stimulus of the burst is added to it.

        Raises ValueError, and adds nothing, for an unknown neuron, one that is injected twice, or an amount above `max_injected`.
        """
    def monitor(self, /, neurons: ArrayLike | None = None) -> SpikeMonitor:
        """
        Records the firings of further bursts: of all neurons, or of those given by number, as an array, a range or an area's name.
        """
    @property
    def neurons(self, /) -> int:
        """
        Number of neurons.
        """
    @property
    def notes(self, /) -> list[str]:
        """
        Settings that have no effect here, or another one; after bursts also mappings (or rules)
        whose weights all fell to 0 or reached 255.
        """
    def plastic_synapses(self, /) -> dict[str, NDArray[Any]]:
        """
        The synapses that learn, as a dict of arrays: `source`, `target`, `weight`, `inhibitory`, `rule`.
        """
    def potential_monitor(self, /, neurons: ArrayLike, *, every: int = 1) -> PotentialMonitor:
        """
        Records the potentials of neurons at the end of further bursts, every burst or every `every`-th.
        """
    @property
    def potentials(self, /) -> NDArray[Any]:
        """
        The potential of every neuron: float64 of shape (neurons,), in units of psp times weight.
        """
    @property
    def receipt(self, /) -> Receipt:
        """
        On which device and by which code the bursts were computed.
        """
    def restore(self, /, path: str | PathLike[str]) -> None:
        """
        Continues from a state of the same network; monitors keep what they recorded.

        Raises DataError naming what does not fit; nothing changes then.
        """
    def run(self, /, bursts: int, *, progress: bool = False) -> SpikeCounts:
        """
        Runs bursts and returns the counts of all bursts so far. Ctrl-C ends it after a burst; the network continues from there. With `progress`, tqdm shows it.

        Raises what the device reports; the state is then unknown until `restore`.
        """
    def save(self, /, path: str | PathLike[str]) -> None:
        """
        Writes the state to a safetensors file, which any device can restore.
        """
    @property
    def synapses(self, /) -> int:
        """
        Number of synapses.
        """

@final
class StopSignal:
    """
    Ends a run of a loop from any thread: a `StopSignal` is given to `run_loop` or `run`, and `stop`
    ends the run after its present period. The run returns what it recorded, with `end` "stopped".

    >>> import threading, tectum as tt
    >>> signal = tt.StopSignal()
    >>> threading.Timer(0.1, signal.stop).start()
    >>> run = tt.run_loop(tt.body("pendulum"), tt.brain("lqr", "pendulum"), seconds=60, stop=signal)
    >>> run.end, len(run) > 0, signal.is_stopped
    ('stopped', True, True)
    """
    def __new__(cls, /) -> StopSignal: ...
    def __repr__(self, /) -> str: ...
    @property
    def is_stopped(self, /) -> bool:
        """
        Whether `stop` was called.
        """
    def stop(self, /) -> None:
        """
        Ends the runs that have this signal. It cannot be taken back: another run needs another
        signal.
        """

@final
class Stream:
    """
    A queue of runs, executed one after the other on a thread of its own.

    `submit(executable, **inputs)` returns at once; `wait()` of what it returns has the outputs, as
    `executable.run` does. Streams are ordered among each other only by events. On a GPU the next
    run is submitted while the one before is executed. An executable takes part in one run at a
    time: a call that uses it, or submits it again, waits until the run has ended.

    Runs end whether or not they are waited for, also after the stream is deleted.

    >>> import tectum as tt
    >>> plan = tt.Plan()
    >>> plan.unary("relu", plan.input("x", 3), plan.output("y", 3))
    >>> executable, stream = plan.compile(), tt.Stream()
    >>> submission = stream.submit(executable, x=[-1.0, 0.5, 2.0])
    >>> submission.wait()["y"].tolist()
    [0.0, 0.5, 2.0]
    """
    def __new__(cls, /) -> Stream: ...
    def event(self, /) -> Event:
        """
        The point after everything that was submitted so far.
        """
    def submit(self, executable: Executable, /, **inputs: ArrayLike) -> Submission:
        """
        Adds a run to the end of the queue. Inputs that are not given keep their values.

        Raises KeyError for an unknown input, ValueError for another number of elements, and for a
        plan with functions of Python, which run on the CPU: use `executable.run` for these.
        """
    def wait(self, /) -> None:
        """
        Waits until everything that was submitted so far has ended.
        """
    def wait_for(self, /, event: Event) -> None:
        """
        Makes everything submitted from now on wait for an event of this stream or of any other.
        Returns at once.
        """

@final
class Submission:
    """
    A submitted run.
    """
    @property
    def is_done(self, /) -> bool:
        """
        Whether the run has ended, so that `wait` returns at once; also true after that.
        """
    def wait(self, /) -> dict[str, NDArray[Any]]:
        """
        Waits for the run, and returns a dict of the outputs.

        Raises RuntimeError if it was waited for before, and what the device reports.
        """

@final
class TextStream:
    """
    Pieces of a text while it is generated.
    """
    def __iter__(self, /) -> TextStream: ...
    def __next__(self, /) -> str: ...

@final
class Trainer:
    """
    The training of a graph's parameters by AdamW; `Graph.trainer` makes one.

    Parameters are zero until `initialize`, `set_parameters` or `load`. The same parameters, inputs and device give the same bits.
    """
    def __repr__(self, /) -> str: ...
    def fit(self, /, *, epochs: int = 1, seed: int = 0, progress: bool = False, **arrays: ArrayLike) -> list[float]:
        """
        Takes steps over shuffled batches of whole arrays, one for each input, with a sample in each row, and returns the mean loss of each epoch.

        The first dimension of the inputs is the size of a batch; samples that do not fill a batch are left out, others in each epoch. With `progress`,
        tqdm shows the epochs. Ctrl-C ends it after a step.

        Raises ValueError for arrays of different lengths or fewer samples than a batch has.
        """
    def initialize(self, /, seed: int, rules: dict[Any, Any] | None = None) -> None:
        """
        Draws the parameters by seed. `rules` maps patterns of names, in which `*` matches any characters, to "zeros", "ones", "xavier_uniform",
        "kaiming_normal", ("uniform", low, high), ("normal", mean, deviation) or a number; the first that matches counts, and others are unchanged.

        Without rules, parameters whose names end in `bias` are zeros, in `gain` ones, others "xavier_uniform". Raises ValueError for a rule that matches none.
        """
    def load(self, /, path: str | PathLike[str]) -> None:
        """
        Continues from a checkpoint, with the same bits as without the interruption.

        Raises DataError naming the array that does not fit; nothing changes then.
        """
    @property
    def parameters(self, /) -> dict[str, NDArray[Any]]:
        """
        The parameters by name, copied from the device.
        """
    @property
    def receipt(self, /) -> Receipt:
        """
        On which device and by which code the steps were computed.
        """
    def save(self, /, path: str | PathLike[str]) -> None:
        """
        Writes parameters, moments and the number of steps to a safetensors file.
        """
    def set_parameters(self, /, values: dict[str, Any]) -> None:
        """
        Replaces parameters, from a dict of arrays by name; moments are unchanged.

        Raises KeyError for an unknown name, ValueError for a wrong shape; nothing changes then.
        """
    def step(self, /, **inputs: ArrayLike) -> float:
        """
        Takes one step on the inputs given as keywords and returns the loss before it. Inputs that are not given keep their values.

        Raises KeyError for an unknown input, ValueError for a wrong shape or an input that was never given.
        """
    @property
    def steps(self, /) -> int:
        """
        Steps taken, including those before a checkpoint that was loaded.
        """

@final
class View:
    """
    A part of a plan's memory.
    """
    def __len__(self, /) -> int: ...
    def __repr__(self, /) -> str: ...
    @property
    def dtype(self, /) -> str:
        """
        NumPy's name of the element type.
        """

def Policy(model: str | PathLike[str], body: str | PathLike[str] | BodySpec | NativeBody | _Body, *, contract: str | PathLike[str] | None = None, device: Device | str = ...) -> NativeBrain:
    """
    A trained policy from an ONNX file, with its contract, for a body.

    `body` is a body, its `BodySpec`, or the name of a built-in one; `contract` a `policy.toml` other than the one next to the file. Names, units, order and
    sizes of the contract are checked against the body's channels. Where the contract states [motors], `tick` returns targets of joints, and `run_loop` drives
    the body by them.

    Raises FileNotFoundError, DataError for a file or contract that is malformed, UnsupportedError listing operators that are not supported, ValueError naming
    the channel that does not fit.
    """

def RemotePolicy(address: str, body: str | PathLike[str] | BodySpec | NativeBody | _Body, *, rows: int | None = None, prompt: str | None = None, keys: dict[str, str] | None = None, wait: float = 60.0, token_file: str | PathLike[str] | None = None, clock: Literal["real", "sim"] = "real") -> NativeBrain:
    """
    A policy server that speaks openpi's protocol, as the brain of a body in this process.

    `address` is `ws://HOST:PORT`; `body` a body, its `BodySpec`, or the name of a built-in one. The
    server answers an observation with a chunk of actions, a row for each period; the next chunk is
    requested after `rows` of them, by default half. Channels of one number are sent as the array
    "observation/state", arrays as "observation/NAME" or under the name that `keys` has for the
    channel, `prompt` as the text "prompt". The first connection, and an answer under `clock="sim"`,
    may take `wait` seconds. Under `clock="real"` a tick never waits: one without a row is held.

    Raises ValueError for an address of other machines without a token, DataError without a
    connection in time.
    """

def array_address(array: Any) -> int:
    """
    The address from which functions of this package read an array of float32: that of the array itself, unless its type or layout needs a copy.

    Arrays of NumPy and of anything that exports DLPack, such as tensors of PyTorch and arrays of JAX, are read in place where they are in the memory of the
    host. Raises TypeError for others.

    >>> import numpy as np, tectum as tt
    >>> values = np.zeros(1000, np.float32)
    >>> tt.array_address(values) == values.ctypes.data
    True
    """

def body(name: str | PathLike[str], *, start: Literal["hanging", "random"] | None = None) -> NativeBody:
    """
    Makes a body: a built-in one, that of an equation file (`FILE.plant`), or of a MuJoCo model that a process of its own steps (`mujoco:SCENE.xml`; `MujocoBody` is one in this process). `start` is "hanging" or "random"; without it the body's own.

    Raises ValueError for an unknown name, listing the known ones.

    >>> import tectum as tt
    >>> cart_pole = tt.body("cart_pole")
    >>> observation, reward, terminated, truncated = cart_pole.step([10.0])
    >>> reward
    1.0
    """

def brain(name: str, body: str | PathLike[str] | BodySpec | NativeBody | _Body, *, device: Device | str = ..., seed: int = 1, clock: Literal["real", "sim"] = "real", progress: bool = False, **settings: Any) -> NativeBrain:
    """
    Makes a built-in brain for a built-in body, with the keys of `[brain]` in scenarios as settings; training happens here.

    `body` is the name of a body or of an equation file, or a body. With `progress`, tqdm shows the training. Raises DataError for a setting that is unknown or out of range.

    >>> import tectum as tt
    >>> lqr = tt.brain("lqr", "pendulum")
    >>> lqr.tick([0.0, 0.0]).shape
    (1,)
    """

def check_kernel(kernel: Kernel, cases: Sequence[KernelCase | dict[Any, Any]], *, tolerance: float | tuple[float, float] = ..., devices: Sequence[Device | str] | None = None) -> KernelCheck:
    """
    Runs the twin of a kernel and its device code on every device of this machine, or on `devices`, and compares their results (docs/kernels.md).

    A case has the arguments of a launch: a `KernelCase`, or a dict of its arrays and numbers by name. Results are compared with those of the twin, or with
    what the case expects. `tolerance` is that of cases that have none: 0 for equal results, one number t for t·(1 + |r|) around a reference r, or a pair for
    absolute + relative·|r|. Integers are compared exactly.

    Raises MismatchError with the first element that differs of each device and case; its attribute `check` has all rows. Raises UnsupportedError if nothing
    could be compared, because no device that runs device code is present (software Vulkan is one) and no result was expected.
    """

def devices() -> list[dict[str, Any]]:
    """
    Lists the devices of this machine as dicts, the same as in receipts.

    >>> import tectum as tt
    >>> any(device["id"] == "cpu" for device in tt.devices())
    True
    """

def end(seconds: float) -> bool:
    """
    Ends the use of Python by other threads; called when the interpreter ends, which then waits for
    functions of Python that this package called to return. False if some have not after `seconds`.
    """

def mujoco_program() -> str:
    """
    The program that steps MuJoCo models, which `MujocoBody` executes.

    >>> import tectum._tectum
    >>> "class MujocoSimulation" in tectum._tectum.mujoco_program()
    True
    """

def program(text: str | PathLike[str]) -> Program:
    """
    Reads and checks a program from its text, or from a file with the ending .atlas.

    Raises ValueError naming line and column of what is malformed or cannot be proved.

    >>> import tectum as tt
    >>> saxpy = tt.program('''
    ... buffer x: f32 read
    ... buffer y: f32 read_write
    ... mov_imm.f32 r0, 2.0
    ... ldg.f32 r1, [x]
    ... ldg.f32 r2, [y]
    ... fma.f32 r2, r0, r1, r2
    ... stg.f32 [y], r2
    ... ''')
    >>> import numpy as np
    >>> saxpy.run(x=np.array([1, 2, 3], np.float32), y=np.ones(3, np.float32))["y"].tolist()
    [3.0, 5.0, 7.0]
    """

def repeat(folder: str | PathLike[str], *, device: Device | str | None = None, progress: bool = False) -> Repetition:
    """
    Replays the run of a folder: computes its scenario again under a simulated clock, and compares every period.

    Without `device`, on the device of the run's receipt. With `progress`, tqdm shows it. Raises ValueError for a run that cannot be repeated (faults, late answers, or a
    continuation of an earlier run), FileNotFoundError or DataError naming the file, KeyboardInterrupt on Ctrl-C.

    >>> import tempfile, tectum as tt
    >>> folder = tempfile.TemporaryDirectory()
    >>> run = tt.run("cart_pole", clock="sim", seconds=1, folder=folder.name)
    >>> tt.repeat(run.folder).same
    True
    """

def run(scenario: str | PathLike[str], *, device: Device | str = ..., clock: Literal["real", "sim"] | None = None, seconds: float | None = None, seed: int | None = None, brain: str | None = None, folder: str | PathLike[str] | None = None, progress: bool = False, stop: StopSignal | None = None, live: str | None = None) -> Run:
    """
    Runs a scenario: a built-in name, or the path of a `.toml` file.

    `device` is "auto" or a device; the other settings replace those of the scenario. `folder` is a directory in which the run gets a folder with receipt,
    summary, recording and snapshot, as from the command `tectum run`. With `progress`, tqdm shows training and the run. `live` is the address of a page that
    shows the run while it happens, "HOST:PORT" or a port of this machine (docs/watch.md); other machines need the token in the variable TECTUM_TOKEN.

    Raises ValueError for an unknown name, DataError naming file and line, KeyboardInterrupt on Ctrl-C.

    >>> import tectum as tt
    >>> run = tt.run("cart_pole", clock="sim", seconds=1)
    >>> len(run), run.observations.shape
    (50, (50, 4))
    """

def run_loop(body: str | PathLike[str] | BodySpec | NativeBody | _Body, brain: NativeBrain | _Brain, *, seconds: float = 60.0, clock: Literal["real", "sim"] = "real", seed: int = 1, progress: bool = False, stop: StopSignal | None = None) -> Run:
    """
    A body and a brain, run together on time.

    `body` is a built-in one (`tectum.body`) or an object with `spec`, `reset(seed)` and `step(action)`; `brain` a built-in one (`tectum.brain`,
    `tectum.Policy`) or an object with `tick(observation)`. With `clock="real"` periods begin on time and an answer that is late is counted, with
    `clock="sim"` time is simulated and nothing is late. With `progress`, tqdm shows the periods.
    """

def sample(name: str, path: str | PathLike[str] | None = None, *, exist_ok: bool = False) -> Path:
    """
    Writes a sample, a file or a folder of files, and returns its path. Without `path` it is written to the working directory, in an existing folder with its
    own name.

    Raises ValueError for an unknown name, and for a path that exists unless `exist_ok`, which leaves what is there as it is.
    """

def samples() -> dict[str, str]:
    """
    Names and purposes of the samples that are built in: models, a genome, a recording, plants, arrays.

    >>> import tectum as tt
    >>> "sample-genome" in tt.samples()
    True
    """

class _Body(Protocol):
    @property
    def spec(self) -> BodySpec: ...
    def reset(self, seed: int, /) -> Any: ...
    def step(self, action: NDArray[np.float32], /) -> tuple[Any, ...]: ...

class _Brain(Protocol):
    def tick(self, observation: NDArray[np.float32], /) -> Any: ...

class Cancelled(RuntimeError): ...

class DataError(ValueError): ...

class DeviceLost(RuntimeError): ...

class MismatchError(RuntimeError): ...

class UnsupportedError(NotImplementedError): ...

def serve(source: str | PathLike[str] | NativeBrain | _Brain | Callable[[], Any], *, body: str | PathLike[str] | BodySpec | NativeBody | _Body | None = None, address: str = "ws://127.0.0.1:8000", brain: str | None = None, device: Device | str = ..., clients: int | None = None, token_file: str | PathLike[str] | None = None) -> Server:
    """
    Serves a brain: other programs send observations over WebSocket and receive actions. An
    unchanged `openpi-client` works; docs/robots.md has the protocol.

    `source` is a scenario, by its built-in name or the path of a `.toml` file, whose body states the
    channels and is not stepped, and whose brain `brain` replaces. Or it is a brain: a built-in one, a
    policy, or an object with a method `tick(observation)`, which serves one client at a time and whose
    `episode_ended()` is called before each. Or a function that makes a brain for each client. For
    brains of Python `body` states the channels: a body, its `BodySpec`, or a name.

    An address of other machines needs `token_file` or the variable TECTUM_TOKEN, and clients must
    show the token. More than `clients` at the same time are refused, by default 8.

    Raises ValueError for an unknown name and for an address without a token, DataError naming file
    and line, OSError for an address that is in use.

    >>> import tectum as tt
    >>> with tt.serve("pendulum", address="ws://127.0.0.1:0", brain="zero") as server:
    ...     server.counts["answers"]
    0
    """
