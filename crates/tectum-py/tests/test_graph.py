import numpy as np
import pytest

import tectum as tt


def values(shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def test_operators_compute_what_numpy_does():
    graph = tt.Graph()
    a, b, w = graph.input("a", (4, 3)), graph.input("b", (4, 3)), graph.parameter("w", (5, 3))
    results = {
        "sum": a + b * 2 - 1.0,
        "ratio": a / (b * b + 1.0),
        "reverse": 3.0 - a,
        "power": (a * a + 1.0) ** 0.5,
        "product": a @ w.T,
        "columns": a.softmax(0),
        "maximum": a.maximum(b).max(1),
        "moved": a.permute([1, 0]).reshape(12),
        "part": a.slice(-1, 1, 2),
        "mean": a.mean(),
        "joined": graph.concat([a, b], 1),
        "sine": a.apply("sin"),
    }
    for name, node in results.items():
        graph.output(name, node)
    network = graph.compile()
    x, y, weights = values((4, 3)), values((4, 3), 2), values((5, 3), 3)
    network.set_parameters({"w": weights})
    found = network(a=x, b=y)
    exps = np.exp(x - x.max(0))
    expected = {
        "sum": x + 2 * y - 1,
        "ratio": x / (y * y + 1),
        "reverse": 3 - x,
        "power": np.sqrt(x * x + 1),
        "product": x @ weights.T,
        "columns": exps / exps.sum(0),
        "maximum": np.maximum(x, y).max(1),
        "moved": x.T.reshape(12),
        "part": x[:, 1:],
        "mean": np.full((1, 1), x.mean()),
        "joined": np.concatenate([x, y], 1),
        "sine": np.sin(x),
    }
    for name, value in expected.items():
        assert found[name].shape == value.shape, name
        np.testing.assert_allclose(found[name], value, atol=1e-5, err_msg=name)


INDICES = [
    0,
    -1,
    (1, 2),
    (slice(None), 1),
    (slice(1, 3), slice(None, None, 2)),
    (..., slice(None, None, -1)),
    (None, 2, ..., None),
    (slice(-2, None), slice(0, 1), 3),
    (slice(3, 0, -2), ...),
    ...,
    (),
]


@pytest.mark.parametrize("index", INDICES)
def test_indices_select_as_in_numpy(index):
    graph, x = tt.Graph(), values((4, 3, 5))
    node = graph.input("x", x.shape)[index]
    graph.output("y", node)
    assert node.shape == x[index].shape and node.ndim == x[index].ndim
    np.testing.assert_array_equal(graph.compile()(x=x)["y"], x[index])


def test_indices_have_gradients():
    graph, x, target = tt.Graph(), values((4, 3)), values((2,))
    w = graph.parameter("w", (4, 3))
    loss = graph.mse(w[::3, 1], graph.input("target", 2))
    trainer = graph.trainer(loss, learning_rate=0.01, weight_decay=0.0)
    trainer.set_parameters({"w": x})
    trainer.step(target=target)
    moved = trainer.parameters["w"] != x
    expected = np.zeros((4, 3), bool)
    expected[::3, 1] = True
    np.testing.assert_array_equal(moved, expected)


def test_nodes_are_sequences_of_their_first_axis():
    graph, x = tt.Graph(), values((3, 2))
    node = graph.input("x", (3, 2))
    first, *rest = node
    graph.output("y", first + rest[-1])
    assert len(node) == 3 and first.shape == (2,)
    np.testing.assert_array_equal(graph.compile()(x=x)["y"], x[0] + x[2])


def test_wrong_indices_are_refused():
    node = tt.Graph().input("x", ("B", 3))
    assert node[:, 1].shape == ("B",) and node[..., None].shape == ("B", 3, 1)
    for index, error, message in [
        (0, ValueError, "axis 0 .* has no size yet"),
        ((slice(None), 3), IndexError, "index 3 of axis 1"),
        ((slice(None), slice(2, 2)), ValueError, "selects nothing"),
        ((0, 0, 0), IndexError, "3 indices"),
        ((..., ...), IndexError, "2 `...`"),
        ((slice(None), True), TypeError, "not <class 'bool'>"),
        ((slice(None), np.array([0, 1])), TypeError, "gather selects rows"),
    ]:
        with pytest.raises(error, match=message):
            node[index]


def test_operators_broadcast_and_reduce_as_numpys_do():
    shapes = {"a": (4, 3), "b": (2, 4, 3), "c": (4, 1), "d": (3,), "e": (2, 1, 1)}
    arrays = {name: values(shape, seed) for seed, (name, shape) in enumerate(shapes.items())}
    functions = {
        "outer": lambda a, b, c, d, e: c - d,
        "batch": lambda a, b, c, d, e: (a - b) * e,
        "array": lambda a, b, c, d, e: a + np.ones((2, 1, 3), np.float32),
        "left": lambda a, b, c, d, e: np.arange(3, dtype=np.float32) - a,
        "sum": lambda a, b, c, d, e: b.sum((0, 2)),
        "kept": lambda a, b, c, d, e: b - b.mean(-1, keepdims=True),
        "mean": lambda a, b, c, d, e: b.mean((1, 2)),
        "greatest": lambda a, b, c, d, e: b.max(None, keepdims=True),
        "least": lambda a, b, c, d, e: b.min(1),
        "columns": lambda a, b, c, d, e: b.reshape(8, -1),
        "rows": lambda a, b, c, d, e: b.reshape((-1, 3, 2)),
        "absolute": lambda a, b, c, d, e: abs(a),
        "power": lambda a, b, c, d, e: 2.0**a,
        "product": lambda a, b, c, d, e: a @ np.ones((3, 2), np.float32),
        "transposed": lambda a, b, c, d, e: np.ones((2, 3), np.float32) @ a.T,
    }
    graph = tt.Graph()
    nodes = [graph.input(name, shape) for name, shape in shapes.items()]
    for name, function in functions.items():
        graph.output(name, function(*nodes))
    found = graph.compile()(**arrays)
    for name, function in functions.items():
        expected = function(*arrays.values())
        assert found[name].shape == expected.shape, name
        np.testing.assert_allclose(found[name], expected, atol=1e-5, err_msg=name)
    for shape in ((5, -1), (-1, -1), (0, -1)):
        with pytest.raises(ValueError, match="reshaped to"):
            nodes[0].reshape(shape)
    with pytest.raises(ValueError, match="at most 8"):
        nodes[0].reshape(range(2**62))


@pytest.mark.parametrize("loss", ["mse", "cross_entropy", "mean"])
def test_letters_of_batches_train_with_the_bits_of_sizes(loss):
    def trained(batch, **sizes):
        graph = tt.Graph()
        x = graph.input("x", (batch, 3))
        y = graph.dense("layer", x, 2, "tanh")
        value = {
            "mse": lambda: graph.mse(y, graph.input("target", (batch, 2))),
            "cross_entropy": lambda: graph.cross_entropy(y, graph.indices("target", batch)),
            "mean": lambda: (y - graph.input("target", (batch, 2))).apply("abs").mean(),
        }[loss]()
        graph.output("loss", value)
        trainer = graph.trainer(value, learning_rate=0.1, **sizes)
        trainer.initialize(seed=3)
        target = np.arange(8) % 2 if loss == "cross_entropy" else values((8, 2), 2)
        losses = [trainer.step(x=values((8, 3)), target=target) for _ in range(5)]
        assert losses[-1] < losses[0]
        return losses, str(graph)

    (sized, _), (lettered, text) = trained(8), trained("B", B=8)
    assert sized == lettered
    # The text form has the mean of an unknown number of elements too.
    assert "average(" in text and str(tt.Graph.parse(text)) == text


def test_a_convolution_and_a_pool_compute_what_loops_do():
    graph = tt.Graph()
    x, w = graph.input("x", (1, 2, 6, 6)), graph.parameter("w", (3, 2, 3, 3))
    y = graph.convolution(x, w, padding=1, stride=2)
    graph.output("y", y)
    graph.output("pooled", graph.pool(x, "max", 2))
    network, image, filters = graph.compile(), values((1, 2, 6, 6)), values((3, 2, 3, 3), 2)
    network.set_parameters({"w": filters})
    found, padded = network(x=image), np.pad(image[0], ((0, 0), (1, 1), (1, 1)))
    expected = [[[(padded[:, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3] * f).sum() for j in range(3)] for i in range(3)] for f in filters]
    np.testing.assert_allclose(found["y"][0], expected, atol=1e-5)
    np.testing.assert_allclose(found["pooled"][0], image[0].reshape(2, 3, 2, 3, 2).max((2, 4)))


def trained(tmp_path=None, device="cpu"):
    graph = tt.Graph()
    x, label = graph.input("x", (16, 2)), graph.indices("label", 16)
    hidden = graph.dense("hidden", x, 16, "tanh")
    logits = graph.dense("out", hidden, 2)
    graph.output("logits", logits)
    trainer = graph.trainer(graph.cross_entropy(logits, label), learning_rate=0.05, device=device)
    trainer.initialize(seed=1)
    return graph, trainer


def test_training_separates_two_rings():
    random = np.random.default_rng(4)
    angle, label = random.uniform(0, 2 * np.pi, 160), np.arange(160) % 2
    x = (np.stack([np.cos(angle), np.sin(angle)], 1) * (1 + label[:, None])).astype(np.float32)
    graph, trainer = trained()
    losses = trainer.fit(epochs=40, x=x, label=label)
    assert len(losses) == 40 and losses[-1] < 0.05 < losses[0] and trainer.steps == 400
    network = graph.compile()
    network.set_parameters(trainer.parameters)
    found = np.concatenate([network(x=x[i : i + 16])["logits"] for i in range(0, 160, 16)])
    assert (found.argmax(1) == label).mean() > 0.98


def test_a_checkpoint_continues_with_the_same_bits(tmp_path):
    batch = {"x": values((16, 2)), "label": np.arange(16) % 2}
    _, trainer = trained()
    for _ in range(3):
        trainer.step(**batch)
    trainer.save(tmp_path / "checkpoint.safetensors")
    _, resumed = trained()
    resumed.load(tmp_path / "checkpoint.safetensors")
    assert [trainer.step() for _ in range(1)] == [resumed.step(**batch)] and resumed.steps == 4
    for name, value in trainer.parameters.items():
        np.testing.assert_array_equal(value, resumed.parameters[name])


def test_letters_get_sizes_and_text_is_read_back():
    graph = tt.Graph()
    x = graph.input("x", ("B", 3))
    graph.output("y", graph.dense("layer", x, 2, "gelu"))
    assert graph.inputs == [("x", ("B", 3))] and [name for name, _ in graph.parameters] == ["layer.weight", "layer.bias"]
    assert str(tt.Graph.parse(str(graph))) == str(graph)
    network = graph.compile(B=5)
    with pytest.raises(ValueError, match="parameters layer.weight, layer.bias have not been set"):
        network(x=values((5, 3)))
    network.set_parameters({"layer.weight": values((3, 2)), "layer.bias": np.zeros((1, 2))})
    assert network(x=values((5, 3)))["y"].shape == (5, 2)


def test_refusals_name_what_is_wrong():
    graph = tt.Graph()
    x = graph.input("x", (4, 3))
    for change, message in [
        (lambda: x @ x, "3"),
        (lambda: x + graph.input("z", (5, 7)), "4"),
        (lambda: x.apply("soft"), "no function"),
        (lambda: x.slice(5, 0, 1), "axis 5"),
        (lambda: graph.dense("d", x, 2, "soft"), "activation is"),
        (lambda: tt.Graph().compile(), "no outputs"),
        (lambda: tt.Graph().input("x", (3,) * 9), "at most 8"),
        (lambda: tt.Graph.parse("%0 = input"), "line 1|1"),
        (lambda: x + tt.Graph().input("y", (4, 3)), "another graph"),
    ]:
        with pytest.raises(ValueError, match=message):
            change()
    graph.output("x", x)
    network = graph.compile()
    with pytest.raises(ValueError, match="has the shape"):
        network(x=values((3, 4)))
    with pytest.raises(KeyError, match="no input"):
        network(q=1)
    with pytest.raises(ValueError, match="has not been set"):
        network()
