"""Writes python/tectum/_tectum.pyi from the signatures and docstrings of the extension module::

    python stubs.py        # in an environment with maturin; compiles the crate in release

The tests compare the file with the module.
"""

import pathlib
import re
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
REPLACED = [
    # Types that signatures state.
    (r': "([^"\n]*)"(?=[,)]| = )', r": \1"),
    # What callers pass and get, in the words of NumPy's and Python's types.
    (r"SupportsFloat \| SupportsIndex", "float"),
    (r"\bSupportsIndex\b", "int"),
    (r"SupportsGetItem\[int, ", "Sequence["),
    (r"\bIncomplete\b", "NDArray[Any]"),
    (r"-> dict:", "-> dict[str, Any]:"),
    (r": dict(?= [|=]|[,)])", ": dict[Any, Any]"),
    (r"-> tuple:", "-> tuple[int | str, ...]:"),
    (r"tuple\[str, tuple\]", "tuple[str, tuple[int | str, ...]]"),
    (r"(\*\*\w+)(?=[,)])", r"\1: Any"),
    (r"^def __getattr__.*\n", ""),
    (r"^from _typeshed import .*\n", "from collections.abc import Callable, Sequence\n"),
    (r"^from typing import .*\n", "from typing import Any, Literal, Protocol, final\n\nimport numpy as np\nfrom numpy.typing import ArrayLike, DTypeLike, NDArray\n"),
]


def choice(*names: str) -> str:
    return "Literal[" + ", ".join(f'"{name}"' for name in names) + "]"


# Types of parameters that Rust leaves open, by their names, and by `owner.function:name` for one of them. None stays possible where it was.
NODE_SHAPE = "int | str | Sequence[int | str]"
PARAMETERS = {
    "action": "ArrayLike",
    "actions": "ArrayLike",
    "activation": "str",
    "amount": "ArrayLike",
    "body": "str | PathLike[str] | BodySpec | NativeBody | _Body",
    "boundary": choice("closed", "periodic", "zero"),
    "brain": "NativeBrain | _Brain",
    "cache": choice("f32", "f16", "q8", "k8v4", "q4"),
    "clock": choice("real", "sim"),
    "dtype": choice("float32", "float64", "int32", "uint32"),
    "inhibitory": "ArrayLike",
    "kind": choice("max", "mean"),
    "neurons": "ArrayLike",
    "observation": "ArrayLike",
    "rule": "ArrayLike",
    "sensors": "ArrayLike",
    "shape": NODE_SHAPE,
    "silence": choice("catch_up", "freeze"),
    "source": "ArrayLike",
    "start": choice("hanging", "random"),
    "state": "ArrayLike",
    "states": "ArrayLike",
    "storage": choice("f32", "bf16"),
    "target": "ArrayLike",
    "units": choice("detect", "fraction", "legacy"),
    "values": "ArrayLike",
    "weight": "ArrayLike",
    "weight_loss": choice("any_firing", "steady_source"),
    "Buffer.__array__:dtype": "Any",
    "Buffer.write:values": "ArrayLike",
    "CompiledGraph.__call__:inputs": "ArrayLike",
    "CompiledGraph.set_parameters:values": "dict[str, Any]",
    "Decoder.__new__:weights": choice("f32", "f16", "bf16", "int8"),
    "Decoder.generate:prompt": "str | Sequence[int] | Sequence[str] | Sequence[Sequence[int]]",
    "Encoder.__new__:weights": choice("f32", "f16", "bf16", "int8"),
    "Executable.run:inputs": "ArrayLike",
    "Field.set_coefficients:values": "ArrayLike",
    "Genome.__new__:weight_loss": choice("detect", "any_firing", "steady_source"),
    "Graph.compile:dims": "int",
    "Graph.trainer:dims": "int",
    "Graph.trainer:learning_rate": f"float | tuple[{choice('cosine')}, float, int, int, float] | tuple[{choice('step')}, float, float, int]",
    "Kernel.__new__:bindings": f"Sequence[tuple[str, {choice('read', 'write', 'read_write')}, {choice('float32', 'float64', 'int32', 'uint32')}]]",
    "Kernel.__new__:params": f"Sequence[tuple[str, {choice('float32', 'int32', 'uint32')}]]",
    "Kernel.__new__:twin": "Callable[..., None]",
    "BodySpec.flatten:observation": "dict[str, Any]",
    "ObservationChannel.__new__:dtype": "DTypeLike | None",
    "NativeBrain.predict:episode_start": "bool | ArrayLike",
    "NativeBrain.predict:state": "Any",
    "NativeBrain.tick:observation": "ArrayLike | dict[str, Any]",
    "Network.__call__:inputs": "ArrayLike",
    "Network.__new__:weights": choice("f32", "f16", "int8"),
    "Network.run:inputs": "dict[str, Any]",
    "Plan.launch:params": "float",
    "Program.run:arrays": "ArrayLike",
    "Stream.submit:inputs": "ArrayLike",
    "Trainer.fit:arrays": "ArrayLike",
    "Trainer.set_parameters:values": "dict[str, Any]",
    "Trainer.step:inputs": "ArrayLike",
    "run:brain": "str",
    "serve:brain": "str",
    "serve:source": "str | PathLike[str] | NativeBrain | _Brain | Callable[[], Any]",
}
F32, F64, U32, BOOL = ("NDArray[np.float32]", "NDArray[np.float64]", "NDArray[np.uint32]", "NDArray[np.bool_]")
CHANNELS = {"actions": F32, "ended": BOOL, "fallback": BOOL, "held": BOOL, "latency": F64, "observations": F32, "rewards": F64, "t": F64}
NAMED = "dict[str, NDArray[Any]]"
RETURNS = {
    **{f"{owner}.{name}": kind for owner in ("Recording", "Run") for name, kind in CHANNELS.items()},
    "BodySpec.flatten": F32,
    "BodySpec.unflatten": NAMED,
    "ObservationChannel.dtype": "np.dtype[Any]",
    "ObservationChannel.shape": "tuple[int, ...]",
    "Recording.arrays": NAMED,
    "BodyBatch.reset": F32,
    "BodyBatch.restart": F32,
    "BodyBatch.states": F32,
    "BodyBatch.step": f"tuple[{F32}, {F64}, {BOOL}]",
    "Buffer.__array__": "NDArray[Any]",
    "Buffer.read": "NDArray[Any]",
    "CompiledGraph.__call__": NAMED,
    "CompiledGraph.parameters": NAMED,
    "Decoder.generate": "Any",
    "Device.info": "dict[str, Any]",
    "Encoder.embed": F32,
    "Executable.read_state": "NDArray[Any]",
    "Executable.run": NAMED,
    "Field.elements": F32,
    "FieldReport.action": F32,
    "NativeBody.observe": F32,
    "NativeBody.render": "NDArray[np.uint8]",
    "NativeBody.reset": F32,
    "NativeBody.schematic": "dict[str, Any]",
    "NativeBody.state": F64,
    "NativeBody.step": f"tuple[{F32}, float, bool, bool]",
    "NativeBrain.network_inputs": f"dict[str, {F32}]",
    "NativeBrain.predict": f"tuple[{F32}, Any]",
    "NativeBrain.tick": F32,
    "Network.__call__": NAMED,
    "Network.run": NAMED,
    "Program.run": NAMED,
    "Receipt.to_dict": "dict[str, Any]",
    "SpikingNetwork.edges": NAMED,
    "SpikingNetwork.plastic_synapses": NAMED,
    "Submission.wait": NAMED,
    "Trainer.parameters": NAMED,
    "devices": "list[dict[str, Any]]",
}
# What objects of Python need to be a body or a brain.
PROTOCOLS = f"""
class _Body(Protocol):
    @property
    def spec(self) -> BodySpec: ...
    def reset(self, seed: int, /) -> Any: ...
    def step(self, action: {F32}, /) -> tuple[Any, ...]: ...

class _Brain(Protocol):
    def tick(self, observation: {F32}, /) -> Any: ...
"""
# Exceptions that the macro of PyO3 makes have no type information.
EXCEPTIONS = {
    "Cancelled": "RuntimeError",
    "DataError": "ValueError",
    "DeviceLost": "RuntimeError",
    "MismatchError": "RuntimeError",
    "UnsupportedError": "NotImplementedError",
}


def parts(text: str) -> list[str]:
    """A list of parameters at its commas outside of brackets and texts."""
    found, depth, quoted = [""], 0, False
    for letter in text:
        quoted ^= letter == '"'
        depth += 0 if quoted else (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0 and not quoted:
            found.append("")
        else:
            found[-1] += letter
    return [part.strip() for part in found]


def typed(text: str) -> str:
    """The text with the types of `PARAMETERS` and `RETURNS`."""
    lines, owner = [], ""
    for line in text.splitlines():
        if match := re.match(r"class (\w+)", line):
            owner = f"{match[1]}."
        elif line.startswith("def "):
            owner = ""
        match = re.match(r"(\s*def (\w+)\()(.*)\) -> (.*?):( \.\.\.)?$", line)
        if match is None:
            lines.append(line)
            continue
        head, name, arguments, result, end = match.groups()
        changed = []
        for argument in parts(arguments) if arguments else []:
            parameter, colon, rest = argument.partition(": ")
            known, equals, default = rest.partition(" = ")
            bare = parameter.lstrip("*")
            is_vague = known.removesuffix(" | None") in ("Any", "str", "Sequence[float]")
            kind = PARAMETERS.get(f"{owner}{name}:{bare}") or (PARAMETERS.get(bare) if is_vague else None)
            if colon and kind:
                known = f"{kind} | None" if known.endswith("None") else kind
            changed.append(f"{parameter}{colon}{known}{equals}{default}")
        result = RETURNS.get(f"{owner}{name}", result) if result != "None" else result
        lines.append(f"{head}{', '.join(changed)}) -> {result}:{end or ''}")
    return "\n".join(lines) + "\n"


def refined(text: str) -> str:
    for pattern, replacement in REPLACED:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    exceptions = "".join(f"\nclass {name}({base}): ...\n" for name, base in EXCEPTIONS.items())
    return "# Written by stubs.py.\n\n" + typed(text).rstrip() + "\n" + PROTOCOLS + exceptions


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["maturin", "generate-stubs", "--profile", "release", "-F", "stubs", "-o", folder], cwd=HERE, check=True)
        text = (pathlib.Path(folder) / "tectum/_tectum.pyi").read_text()
    (HERE / "python/tectum/_tectum.pyi").write_text(refined(text))


if __name__ == "__main__":
    main()
