"""Texts of arguments: those that fit, extreme ones of each type, and any other."""

# How an object of each class is made; `{Class}` is another object. A class without an entry here needs a device that this machine may lack.
RECIPES = {
    "ActionChannel": ["tt.ActionChannel('a', 'N', -1.0, 1.0)"],
    "Area": ["{Genome}.area('in')"],
    "BodyBatch": ["tt.BodyBatch('cart_pole', 3)", "tt.BodyBatch('pendulum', 2)", "tt.BodyBatch('acrobot', 2)"],
    "BodySpec": ["some_spec()", "{NativeBody}.spec"],
    "CompiledGraph": ["some_model()"],
    "Decoder": ["tt.Decoder('sample-decoder', context=64)"],
    "Device": ["tt.Device('cpu')", "tt.Device('cpu', threads=1)", "tt.Device('null')"],
    "Encoder": ["tt.Encoder('sample-encoder')"],
    "Executable": ["some_plan().compile()"],
    "Buffer": ["tt.Buffer(4)", "tt.Buffer(np.ones(4, np.int32))", "{Executable}.state('s')"],
    "Event": ["{Stream}.event()"],
    "Field": ["tt.Field(2, 1, shape=(4, 4, 4, 32))", "tt.Field(2, 1, shape=(4, 4, 4, 32), patterns=4)"],
    "FieldReport": ["{Field}.tick([0.5, -0.5])"],
    "Generation": ["{Decoder}.generate('the small cat', max_new_tokens=2)"],
    "Genome": ["tt.Genome('sample-genome.json')"],
    "Graph": ["tt.Graph()", "some_graph()"],
    "Kernel": ["tt.Kernel('scale', SCALE, BINDINGS, PARAMETERS, twin())", "tt.Kernel('scale', SCALE, BINDINGS, PARAMETERS, twin('raises'))"],
    "NativeBody": ["tt.body('cart_pole')", "tt.body('pendulum')", "tt.body('rig')", "tt.body('acrobot')", "tt.body('seeker')"],
    "NativeBrain": ["tt.brain('lqr', 'pendulum')", "tt.brain('zero', 'cart_pole')", "tt.Policy('cart-pole-policy/cart_pole.onnx', 'cart_pole')"],
    "Network": ["tt.Network('cart-pole-policy/cart_pole.onnx')"],
    "Neurons": ["tt.Neurons()"],
    "Node": ["{Graph}.input('x', (4, 3))", "{Graph}.parameter('w', (3, 2))", "{Graph}.constant(np.ones((4, 3)))", "tt.Graph().input('x', ('B', 3))"],
    "ObservationChannel": ["tt.ObservationChannel('x', 'm', -2.4, 2.4)"],
    "Plan": ["tt.Plan()", "some_plan()"],
    "PotentialMonitor": ["{SpikingNetwork}.potential_monitor([0, 1])"],
    "Program": ["tt.program(SAXPY)"],
    "Receipt": ["{Run}.receipt", "{Program}.receipt", "{SpikingNetwork}.receipt"],
    "Recording": ["tt.Recording('runs/1')"],
    "Repetition": ["tt.repeat('runs/1')"],
    "Run": ["tt.run('cart_pole', brain='lqr', clock='sim', seconds=0.1)"],
    "SpikeCounts": ["{SpikingNetwork}.run(2)", "{SpikingNetwork}.counts"],
    "SpikeMonitor": ["{SpikingNetwork}.monitor()"],
    "SpikingNetwork": ["some_network()", "{Genome}.network(stimulus=0.1)"],
    "Stream": ["tt.Stream()"],
    "Submission": ["{Stream}.submit({Executable})"],
    "TextStream": ["{Decoder}.stream('the', max_new_tokens=3)"],
    "Trainer": ["some_trainer()"],
    "View": ["{Plan}.input('x', 4)", "{Plan}.temporary(4)", "{Plan}.output('y', 4)"],
}

NAMES = ["'x'", "'y'", "'w'", "'t'", "'s'"]
SIZES = ["1", "2", "3", "4", "16"]
SHAPES = ["(4, 3)", "(3, 2)", "(4, 2)", "('B', 3)", "(2, 3, 4, 4)", "(4, 3, 3, 3)", "(2, 4, 8)", "(4,)", "[4, 1]", "(1, 1)"]
PATHS = ["'sample-genome.json'", "'sample-decoder'", "'sample-encoder'", "'cart-pole-policy/cart_pole.onnx'", "'cart-pole-policy/policy.toml'"]
PATHS += ["'runs/1'", "'runs/1/trace.mcap'", "'saved'", "pathlib.Path('saved.safetensors')", "'sample-decoder/model.safetensors'"]
TYPES = ["'float32'"] * 4 + ["'int32'", "'uint32'", "'float64'", "np.float32", "'float16'", "'<f4'"]
BRAINS = ["'lqr'", "'zero'", "'mpc'", "'mppi'", "'adaptive'", "'field'", "'policy'"]
BODIES = ["'cart_pole'", "'pendulum'", "'acrobot'", "'rig'", "'seeker'"]

# Arguments that mean something, by parameter, or by class or function and parameter.
HINTS = {
    "device": ["'cpu'"] * 6 + ["'auto'", "'null'", "{Device}", "'cuda:0'", "'vulkan:99'"],
    "progress": ["False"],
    "clock": ["'sim'"] * 6 + ["'real'"],
    "seconds": ["0.1", "0.3", "0.05"],
    "start": ["None", "'hanging'", "'random'"],
    "shards": ["1", "2", "3"],
    "states": ["{{'s': {Buffer}}}", "{{}}"],
    "seed": ["0", "1", "7", "2**31 - 1"],
    "weights": ["'f32'", "'f16'", "'bf16'", "'int8'", "None"],
    "cache": ["'f32'", "'f16'", "'q8'", "'k8v4'", "'q4'"],
    "silence": ["'catch_up'", "'freeze'"],
    "units": ["'detect'", "'fraction'", "'legacy'"],
    "activation": ["'none'", "'relu'", "'tanh'", "'gelu'"],
    "brain": ["None", *BRAINS],
    "folder": ["'runs'", "None"],
    "shape": SHAPES,
    "axis": ["0", "1", "-1", "-2", "(0, 1)", "None"],
    "index": ["0", "-1", "5", "slice(1, 3)", "slice(None, None, 2)", "(slice(None), 0)", "(..., None)", "slice(None, None, -1)", "()", "True", "2**70"],
    "dtype": TYPES,
    "length": ["4", "4", "4", "1", "256"],
    "epsilon": ["1e-5"],
    "path": PATHS,
    "values": ["[1.0, 2.0, 3.0, 4.0]", "np.ones((4, 3))", "np.ones((3, 2), np.float32)", "{'w': np.ones((3, 2))}"],
    "neurons": ["[0, 1]", "range(3)", "'in'", "0", "np.arange(4)"],
    "amount": ["1.0", "[1.0, 2.0]", "255.0"],
    "twin": ["twin()", "twin()", "twin('raises')", "twin('resizes')", "twin('keeps')"],
    "wgsl": ["SCALE"],
    "bindings": ["BINDINGS"],
    "params": ["PARAMETERS"],
    "preludes": ["['math']", "['random']", "[]"],
    "kind": ["'max'", "'mean'"],
    "kernel": ["2", "(2, 2)"],
    "kernel:launch": ["{Kernel}"],
    "views": ["[{View}, {View}]"],
    "stride": ["1", "2", "(1, 2)"],
    "padding": ["0", "1", "(1, 1)"],
    "order": ["[1, 0]", "(0, 1)", "[1, 0, 2, 3]"],
    "max_new_tokens": ["1", "2", "4"],
    "prompt": ["'the small cat'", "'the'", "[1, 2, 3]", "['the', 'a small dog']"],
    "texts": ["['the cat is small', 'a small dog']", "['']", "[]"],
    "tokens": ["[1, 2, 3]", "[]"],
    "text": ["'the small cat'", "SAXPY", "str(some_graph())"],
    "stop": ["['cat']", "[]"],
    "temperature": ["0.0", "0.7", "1.0"],
    "top_p": ["1.0", "0.9"],
    "repetition_penalty": ["1.0", "1.2"],
    "loss": ["{Node}", "{Node}.mean()"],
    "learning_rate": ["0.1", "('cosine', 0.1, 2, 10, 0.0)", "('step', 0.1, 0.5, 4)"],
    "rules": ["{'*': 'zeros'}", "{'w*': ('uniform', -1.0, 1.0)}", "[(4, 2, 1)]", "None"],
    "rule": ["None", "[-1, 0, -1]"],
    "inhibitory": ["None", "[True, False, False]"],
    "address": ["'ws://127.0.0.1:0'", "'ws://127.0.0.1:1'", "'serial:/dev/null'"],
    "wait": ["0.05"],
    "keys": ["None", "{}", "{'camera': 'observation/image'}"],
    "source:serve": ["'pendulum'", "'cart_pole'", "{NativeBrain}", "Brain()", "Brain", "Brain('raises')"],
    "source": ["[0, 1, 2]", "np.array([0, 1, 2])"],
    "target": ["[3, 4, 5]", "np.arange(3)"],
    "weight": ["[10, 20, 30]", "255", "np.array([1, 2, 3], np.uint8)"],
    "constant_inputs": ["None", "[(0, 1.0)]"],
    "bursts": ["1", "5", "20"],
    "every": ["1", "2"],
    "count": ["1", "3", "10"],
    "instances": ["[0]", "[0, 1]"],
    "seeds": ["[1]", "[1, 2]", "[1, 2, 3]", "None"],
    "state": ["[0.0, 0.0, 0.0, 0.0]", "[0.0, 0.0]", "None"],
    "states": ["np.zeros((3, 4))", "np.zeros((2, 2), np.float32)"],
    "action": ["[0.0]", "[0.0, 0.0]", "np.zeros(1, np.float32)"],
    "actions": ["np.zeros((3, 1))", "np.zeros((2, 1), np.float32)"],
    "observation": ["[0.0] * 4", "np.zeros(2)", "np.zeros(4, np.float32)", "np.zeros((2, 4))"],
    "sensors": ["[0.5, -0.5]", "np.zeros(2)"],
    "grid": ["None", "(4, 1, 1)"],
    "block": ["None", "(1, 1, 1)", "(256, 1, 1)"],
    "axes": ["None"],
    "model": ["'cart-pole-policy/cart_pole.onnx'"],
    "contract": ["None", "'cart-pole-policy/policy.toml'"],
    "dims": ["{}", "{'batch': 2}"],
    "array": ["np.zeros(4, np.float32)", "np.arange(6.0).reshape(2, 3)"],
    "inputs": ["{'observation': np.zeros(4, np.float32)}", "{'obs': np.zeros((1, 4), np.float32)}"],
    "modulo": ["None"],
    "other": ["{Node}", "2.0", "3", "np.ones((4, 3))", "np.float32(2)"],
    "heads": ["1", "2"],
    "width": ["2", "4"],
    "sensors:Field": ["1", "2", "4"],
    "motors:Field": ["1", "2"],
    "shape:Field": ["(4, 4, 4, 32)", "(8, 4, 4, 32)", "(4, 4, 4, 64)"],
    "boundary": ["'closed'", "'periodic'", "'zero'"],
    "storage": ["'f32'", "'bf16'"],
    "patterns": ["0", "4"],
    "name:body": BODIES,
    "name:BodyBatch": BODIES,
    "name:brain": BRAINS,
    "name:area": ["'in'", "'mid'", "'i__inp'"],
    "name:sample": ["'sample-genome'", "'sample-recording'", "'quadrotor.plant'"],
    "name:unary": ["'relu'", "'exp'", "'abs'"],
    "name:binary": ["'add'", "'max'", "'mul'"],
    "name:apply": ["'exp'", "'erf'", "'relu'"],
    "name": NAMES,
    "unit": ["''", "'m'"],
    "body": [*BODIES, "{NativeBody}", "{BodySpec}", "Body()"],
    "neurons:SpikingNetwork": ["{Neurons}"],
    "body:run_loop": ["{NativeBody}", "Body()", "Body('raises')", "Body('shape')", "Body('calls', {Graph}, 'inputs')", "Body('reward')"],
    "brain:run_loop": ["{NativeBrain}", "Brain()", "Brain('raises')", "Brain('nan')", "Brain('keeps')", "Brain('calls', {Graph}, 'inputs')"],
    "scenario": ["'cart_pole'", "'pendulum'", "'gym_pendulum'", "'seeker'", "'runs/1/scenario.toml'"],
    "folder:repeat": ["'runs/1'"],
    "path:Genome": ["'sample-genome.json'"],
    "path:Decoder": ["'sample-decoder'"],
    "path:Encoder": ["'sample-encoder'"],
    "path:Recording": ["'runs/1'", "'runs/1/trace.mcap'"],
    "path:sample": ["'written'", "None"],
    "id": ["'cpu'", "'null'"],
    "threads": ["None", "1", "2"],
}
# Keywords that mean something, of functions with any keywords.
KEYWORDS = {
    "CompiledGraph.__call__": [{"x": "np.ones((2, 3))"}],
    "Stream.submit": [{"x": "np.ones(4, np.float32)"}, {}],
    "Executable.run": [{"x": "np.ones(4, np.float32)"}],
    "Field.set_coefficients": [{"retention": "0.9"}, {"noise": "0.0"}],
    "Graph.compile": [{"B": "2"}, {"B": "1"}, {}],
    "Graph.trainer": [{"B": "2"}, {}],
    "Network.__call__": [{"obs": "np.zeros((1, 4), np.float32)"}, {"observation": "np.zeros((1, 4), np.float32)"}],
    "Plan.launch": [{"count": "4", "factor": "2.0"}],
    "Program.run": [{"x": "np.ones(4, np.float32)", "y": "np.ones(4, np.float32)"}],
    "Trainer.fit": [{"x": "np.ones((8, 3))", "t": "np.ones((8, 2))"}],
    "Trainer.step": [{"x": "np.ones((4, 3))", "t": "np.ones((4, 2))"}],
    "brain": [{}, {"samples": "16", "horizon": "4"}],
}
# Whole calls of members whose arguments fit together only rarely if each is drawn by itself.
WHOLE = {
    "BodySpec.__new__": ["some_spec()"],
    "Field.restore": ["(lambda field: field.save('field') or field.restore('field'))({Field})"],
    "Graph.attention": ["(lambda g: g.attention(*(g.input(n, (1, 4, 8)) for n in 'qkv'), heads=2, width=4))(tt.Graph())"],
    "Graph.convolution": ["(lambda g: g.convolution(g.input('x', (1, 2, 8, 8)), g.parameter('w', (4, 2, 3, 3)), padding=1))(tt.Graph())"],
    "Graph.cross_entropy": ["(lambda g: g.cross_entropy(g.input('x', (4, 3)), g.indices('t', (4,))))(tt.Graph())"],
    "Graph.layer_norm": ["(lambda g: g.layer_norm(g.input('x', (4, 3)), g.parameter('a', (1, 3)), g.parameter('b', (1, 3))))(tt.Graph())"],
    "Graph.concat": ["(lambda g: g.concat([g.input('x', (4, 3)), g.input('t', (4, 2))], 1))(tt.Graph())"],
    "Graph.gather": ["(lambda g: g.gather(g.parameter('w', (3, 2)), g.indices('x', (4,))))(tt.Graph())"],
    "Graph.pool": ["(lambda g: g.pool(g.input('x', (1, 2, 8, 8)), 'max', 2))(tt.Graph())"],
    "Graph.trainer": ["(lambda g: g.trainer(g.parameter('w', (3, 2)).mean(), clip_norm=1.0))(tt.Graph())"],
    "Kernel.__new__": ["tt.Kernel('scale', SCALE, BINDINGS, PARAMETERS, twin('keeps'))"],
    "Node.__matmul__": ["(lambda g: g.input('x', (4, 3)) @ g.parameter('w', (3, 2)))(tt.Graph())"],
    "Node.slice": ["tt.Graph().input('x', (4, 3)).slice(0, 1, 2)"],
    "Plan.launch": ["(lambda p: p.launch({Kernel}, [p.input('x', 4), p.output('y', 4)], count=4, factor=2.0))(tt.Plan())"],
    "Program.run": ["{Program}.run(x=np.ones(4, np.float32), y=np.ones(4, np.float32))"],
    "Graph.mse": ["(lambda g: g.mse(g.input('x', (4, 3)), g.input('t', (4, 3))))(tt.Graph())"],
    "Graph.rms_norm": ["(lambda g: g.rms_norm(g.input('x', (4, 3)), g.parameter('a', (1, 3))))(tt.Graph())"],
    "Network.run": ["(lambda n: n.run({name: np.zeros(shape, np.float32) for name, shape in n.inputs}))({Network})"],
    "Plan.binary": ["(lambda p: p.binary('add', p.input('x', 4), p.input('w', 4), p.output('y', 4)))(tt.Plan())"],
    "Plan.copy": ["(lambda p: p.copy(p.input('x', 4), p.output('y', 4)))(tt.Plan())"],
    "SpikingNetwork.__new__": ["some_network()"],
    "SpikingNetwork.restore": ["(lambda n: n.save('spikes') or n.restore('spikes'))({SpikingNetwork})"],
    "Trainer.set_parameters": ["(lambda t: t.set_parameters(t.parameters))({Trainer})"],
    "Trainer.load": ["(lambda t: t.save('trainer') or t.load('trainer'))({Trainer})"],
    "CompiledGraph.set_parameters": ["(lambda c: c.set_parameters(c.parameters))({CompiledGraph})"],
    "brain": ["tt.brain('lqr', 'pendulum')", "tt.brain('mpc', 'cart_pole')", "tt.brain('zero', 'rig')"],
    "Policy": ["tt.Policy('cart-pole-policy/cart_pole.onnx', 'cart_pole')"],
    "run_loop": [
        "tt.run_loop(tt.body('pendulum'), tt.brain('lqr', 'pendulum'), seconds=0.5, clock='sim')",
        "tt.run_loop(Body(), Brain(), seconds=0.5, clock='sim')",
    ],
}
# Calls of these take longer than others.
RARE = {"run", "brain", "repeat", "run_loop", "Decoder", "Encoder", "Policy", "fit", "network"}

INTEGERS = ["-1", "0", "2**31 - 1", "2**31", "2**32", "2**53 + 1", "2**63 - 1", "2**63", "2**64 - 1", "2**64", "-2**63", "10**40", "True"]
INTEGERS += ["65535", "65536", "100_000", "np.int64(-1)", "np.uint8(255)"]
FLOATS = ["float('nan')", "float('inf')", "-float('inf')", "1e308", "-1e308", "5e-324", "-0.0", "1e39", "-1.0", "2**1023", "10**400"]
FLOATS += ["1e10", "1000.0", "np.float32('nan')", "np.float64(1e300)"]
STRINGS = ["''", "'a' * 100_000", "'\\0'", "'a\\0b'", "'\\ud800'", "'ä\\u202e🙂'", "'{}%s'", "'\\n'", "' x '", "'a' * 300"]
WRONG_PATHS = ["'absent'", "''", "'/dev/null'", "'.'", "'a\\0b'", "'a' * 5000", "b'absent'", "pathlib.Path('absent/x.onnx')", "'calls.log/x'"]
WRONG = ["None", "object()", "3 + 4j", "b'bytes'", "bytearray(8)", "{}", "set()", "Ellipsis", "int", "lambda *a, **k: None", "iter([1, 2])"]
WRONG += ["slice(0, 2)", "np", "tt.Graph", "'text'", "5", "2.5", "[]", "()", "[[1.0], [1.0, 2.0]]", "(x for x in [1.0, 2.0])", "memoryview(b'abcd')"]
WRONG += ["{1: 2}", "range(2**62)", "range(10**30)", "['a', 'b']", "[None]", "[Raises()]", "Raises()", "RaisesOnRead()", "Shrinks([1.0, 2.0, 3.0])"]
WRONG += [f"Lies({lie})" for lie in ["None", "'no'", "2**62", "-1", "2**63", "np.zeros(3, object)", "[1, 2]", "np.zeros((2, 2))", "1.5", "(1, 0)"]]
# Values of arguments that call back into an object.
CALLED_VALUES = ["[0.0]", "[0.0] * 4", "4", "1.0", "np.zeros(4)", "np.zeros((4, 2))", "'sample-decoder'", "{'x': [1.0]}"]
HUGE_ARRAYS = ["np.broadcast_to(np.float32(1), (2**31,))", "np.broadcast_to(np.float64(1), (2**20, 2**20))", "np.broadcast_to(np.int64(1), (2**62,))"]
ELEMENT_TYPES = ["f4", "f4", "f4", "f8", "f8", "f2", "i4", "i8", "u1", "u4", "u8", "?", ">f4", ">f8", ">i4", "c16", "O", "S3", "U2", "M8[s]", "g"]
ARRAY_SHAPES = ["(4,)", "(4,)", "(1,)", "(3,)", "(0,)", "()", "(3, 4)", "(4, 3)", "(3, 2)", "(2, 1)", "(3, 1)", "(0, 4)", "(1, 1, 1, 1)", "(2, 3, 4, 4)", "(100_000,)"]
PROTOCOLS = ["copy.copy({})", "copy.deepcopy({})", "pickle.dumps({})", "hash({})", "{} == {}", "bool({})", "str({})", "repr({})", "format({}, '')"]
PROTOCOLS += ["type({})()", "setattr({}, 'x', 1)", "weakref.ref({})", "dir({})", "len({})", "list({})", "next(iter({}))", "{}[0]", "{} < {}"]
PROTOCOLS += ["object.__new__(type({}))", "type({}).__repr__(5)", "delattr({}, 'x')", "np.asarray({})", "float({})", "{}.__init__()", "({}, '')[0]()"]
OPERATORS = {"__add__": "{} + {}", "__sub__": "{} - {}", "__mul__": "{} * {}", "__truediv__": "{} / {}", "__matmul__": "{} @ {}", "__pow__": "{} ** {}"}
OPERATORS |= {"__getitem__": "{}[{}]", "__rpow__": "{1} ** {0}", "__rmatmul__": "{1} @ {0}"}
OPERATORS |= {f"__r{name[2:]}": f"{{1}} {text[3]} {{0}}" for name, text in list(OPERATORS.items()) if name in ("__add__", "__sub__", "__mul__", "__truediv__")}
PLAIN = {"__len__": "len({})", "__repr__": "repr({})", "__str__": "str({})", "__iter__": "iter({})", "__next__": "next({})", "__neg__": "-{}", "__abs__": "abs({})", "__hash__": "hash({})"}
