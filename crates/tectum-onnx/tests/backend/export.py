"""Writes ONNX's own backend tests as files, and an index of them.

    pip install onnx==1.23.2
    python export.py FOLDER

FOLDER/KIND/NAME/model.onnx, and next to it test_data_set_0/input_I.pb and output_I.pb: TensorProto, SequenceProto or
OptionalProto, in the order of the graph's inputs and outputs. Where the graph lists its initializers as inputs too, these have
no file: file I is for input I of those that are no initializers. Folders of an earlier run are replaced.

FOLDER/index.tsv has one test a line with these columns. Lists are joined by commas, sorted, and empty if there is nothing to list:

    kind       node, simple, pytorch-converted, pytorch-operator or light
    name
    rtol, atol the tolerances of ONNX's runner: |result - expected| <= atol + rtol |expected|; bfloat16 has rtol 2^-6 at least
    opsets     DOMAIN:VERSION, the default domain written as ai.onnx
    operators  used in the graph, its subgraphs and the model's functions; DOMAIN.NAME outside the default domain
    types      element types of graph inputs and outputs (ONNX's names: FLOAT, INT64, ...)
    features   of: zero-size (a tensor of the data has no elements), sequence, optional, string, map
"""

import shutil
import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnx import OptionalProto, SequenceProto, TensorProto, numpy_helper

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
SHIPPED = ["simple", "pytorch-converted", "pytorch-operator"]
RTOL, ATOL = 1e-3, 1e-7
COLUMNS = ["kind", "name", "rtol", "atol", "opsets", "operators", "types", "features"]


def proto_of(value, value_info):
    """The message that holds `value`, of the kind that the graph declares for it."""
    kind, name = value_info.type.WhichOneof("value"), value_info.name
    if isinstance(value, TensorProto):
        message = TensorProto()
        message.CopyFrom(value)
        message.name = name
        return message
    if kind == "sequence_type":
        return numpy_helper.from_list(list(value), name)
    if kind == "optional_type":
        return optional_of(value, value_info.type.optional_type.elem_type, name)
    return numpy_helper.from_array(np.asarray(value), name)


def optional_of(value, element, name):
    if value is not None:
        return numpy_helper.from_optional(value, name)
    kinds = {"tensor_type": OptionalProto.TENSOR, "sequence_type": OptionalProto.SEQUENCE}
    return OptionalProto(name=name, elem_type=kinds[element.WhichOneof("value")])


def ramp(value_info):
    """What ONNX's runner gives the light models: 0, 1/n, 2/n, ... in the input's shape."""
    shape = [d.dim_value if d.HasField("dim_value") else 1 for d in value_info.type.tensor_type.shape.dim]
    count = int(np.prod(shape))
    return (np.arange(count).reshape(shape) / count).astype(np.float32)


def node_cases():
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Overflow and division by zero, which the tests mean to have.
        cases = collect_testcases()
    for case in cases:
        ((inputs, outputs),) = case.data_sets
        graph = case.model.graph
        inputs = [proto_of(v, i) for v, i in zip(inputs, graph.input, strict=True)]
        outputs = [proto_of(v, o) for v, o in zip(outputs, graph.output, strict=True)]
        yield "node", case.name, case.rtol, case.atol, case.model, inputs, outputs


def stored(path, value_info):
    kind = value_info.type.WhichOneof("value")
    message = {"sequence_type": SequenceProto, "optional_type": OptionalProto}.get(kind, TensorProto)()
    message.ParseFromString(path.read_bytes())
    return message


def folder_cases(kind):
    """Cases that the package ships as folders, each with one data set."""
    for folder in sorted(p.parent for p in (DATA / kind).glob("*/model.onnx")):
        (data,) = folder.glob("test_data_set_*")
        model = onnx.load(folder / "model.onnx")
        numbered = {}
        for side, values in (("input", model.graph.input), ("output", model.graph.output)):
            count = len(list(data.glob(f"{side}_*.pb")))
            numbered[side] = [stored(data / f"{side}_{i}.pb", values[i]) for i in range(count)]
        yield kind, folder.name, RTOL, ATOL, model, numbered["input"], numbered["output"]


def light_cases():
    """Known convolutional networks with constant weights; the package has their outputs for one input that the runner makes."""
    from onnx.backend.test.case.model import collect_testcases

    for case in collect_testcases():
        if "/light/" not in (case.url or ""):
            continue
        model = onnx.load(DATA / "light" / f"light_{case.model_name}.onnx")
        weights = {w.name for w in model.graph.initializer}
        inputs = [proto_of(ramp(i), i) for i in model.graph.input if i.name not in weights]
        outputs = [
            stored(DATA / "light" / f"light_{case.model_name}_output_{i}.pb", o) for i, o in enumerate(model.graph.output)
        ]
        yield "light", case.name, case.rtol, case.atol, model, inputs, outputs


def nodes_of(nodes):
    """All nodes, those of subgraphs included."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in [attribute.g, *attribute.graphs]:
                yield from nodes_of(graph.node)


def operators_of(model):
    for nodes in [model.graph.node, *(f.node for f in model.functions)]:
        for node in nodes_of(nodes):
            yield node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"


def walk_type(declared):
    """Element types and container kinds in a TypeProto."""
    kind = declared.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        return {TensorProto.DataType.Name(getattr(declared, kind).elem_type)}, set()
    inner = declared.map_type.value_type if kind == "map_type" else getattr(declared, kind).elem_type
    types, containers = walk_type(inner)
    return types, containers | {kind.removesuffix("_type")}


def is_empty(message):
    if isinstance(message, TensorProto):
        return 0 in message.dims
    tensors = message.tensor_values if isinstance(message, SequenceProto) else [message.tensor_value]
    return any(0 in t.dims for t in tensors)


def index_row(kind, name, rtol, atol, model, inputs, outputs):
    types, features = set(), set()
    for value in [*model.graph.input, *model.graph.output]:
        found, containers = walk_type(value.type)
        types |= found
        features |= containers
    features |= {"string"} & {t.lower() for t in types}
    if any(is_empty(m) for m in [*inputs, *outputs]):
        features.add("zero-size")
    opsets = {f"{o.domain or 'ai.onnx'}:{o.version}" for o in model.opset_import}
    lists = (",".join(sorted(s)) for s in (opsets, set(operators_of(model)), types, features))
    return "\t".join([kind, name, f"{rtol:g}", f"{atol:g}", *lists])


def write(folder, model, inputs, outputs):
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for side, messages in (("input", inputs), ("output", outputs)):
        for i, message in enumerate(messages):
            (data / f"{side}_{i}.pb").write_bytes(message.SerializeToString())


def main(target):
    rows = ["\t".join(COLUMNS)]
    for kind in ["node", "light", *SHIPPED]:
        shutil.rmtree(target / kind, ignore_errors=True)
    for source in [node_cases(), *map(folder_cases, SHIPPED), light_cases()]:
        for case in source:
            write(target / case[0] / case[1], *case[4:])
            rows.append(index_row(*case))
    (target / "index.tsv").write_text("\n".join(rows) + "\n")
    print(f"{len(rows) - 1} tests in {target}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: export.py FOLDER")
    main(Path(sys.argv[1]))
