"""The interface as the stubs declare it, and sequences of calls of it."""

import ast
import pathlib
import random
import re

import tectum as tt

import arguments
from texts import ARRAY_SHAPES, CALLED_VALUES, ELEMENT_TYPES, FLOATS, HINTS, HUGE_ARRAYS, INTEGERS, KEYWORDS, OPERATORS
from texts import PATHS, PLAIN, PROTOCOLS, RARE, RECIPES, STRINGS, WHOLE, WRONG, WRONG_PATHS

# Functions that are not called: this one disables the package in the process.
NOT_CALLED = {"after_fork_in_child"}


class Member:
    """A function, constructor, method or property: how its call is written."""

    def __init__(self, owner, kind, node):
        self.owner, self.kind, self.name = owner, kind, node.name
        arguments = node.args
        defaults = [None] * (len(arguments.posonlyargs + arguments.args) - len(arguments.defaults)) + arguments.defaults
        named = list(zip(arguments.posonlyargs + arguments.args, defaults))
        self.positional = [(argument.arg, argument.annotation, default is not None) for argument, default in named if argument.arg not in ("self", "cls")]
        if arguments.vararg:
            self.positional.append((arguments.vararg.arg, arguments.vararg.annotation, False))
        self.keyword = [(argument.arg, argument.annotation, default is not None) for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults)]
        self.any_keyword = arguments.kwarg is not None

    def __str__(self):
        suffix = " =" if self.kind == "set" else ""
        return (f"{self.owner}.{self.name}" if self.owner else self.name) + suffix


def interface():
    """All public members, and the names of the classes."""
    members, classes = [], []
    for stub in sorted(pathlib.Path(tt.__file__).parent.glob("*.pyi")):
        for node in ast.parse(stub.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name not in NOT_CALLED:
                members.append(Member(None, "call", node))
            if not isinstance(node, ast.ClassDef) or node.bases:
                continue
            classes.append(node.name)
            for item in node.body:
                if isinstance(item, ast.FunctionDef):
                    members.append(Member(node.name, kind_of(item), item))
    return members, classes


def kind_of(item):
    decorators = [ast.unparse(decorator) for decorator in item.decorator_list]
    if "property" in decorators:
        return "get"
    if "staticmethod" in decorators:
        return "static"
    if any(decorator.endswith(".setter") for decorator in decorators):
        return "set"
    return "new" if item.name == "__new__" else "call"


MEMBERS, CLASSES = interface()
# Those of which an object can be made on any machine.
REACHABLE = [member for member in MEMBERS if member.owner is None or member.owner in RECIPES]
READABLE = {name: [member.name for member in MEMBERS if member.owner == name and member.kind in ("get", "call")] for name in CLASSES}


class Sequence:
    """Draws calls, as text that is evaluated, one after another; their results are objects of further calls."""

    def __init__(self, seed, focus=None):
        self.draw = random.Random(seed)
        self.focus = focus
        self.objects = {}
        self.named = 0
        # The object of which a member is called.
        self.receiver = None
        self.names = dict(vars(arguments))
        self.pending = []

    def next_call(self):
        """The member that is called, if it is not the maker of an argument, and the text of the call."""
        if not self.pending:
            candidates = REACHABLE
            if self.focus:
                candidates = [member for member in REACHABLE if self.focus in (member.owner, member.name)]
            member = self.draw.choice(candidates)
            if member.name in RARE and self.draw.random() < 0.5:
                member = self.draw.choice(candidates)
            if member.owner and self.draw.random() < 0.05:
                text = self.draw.choice(PROTOCOLS).replace("{}", self.object(member.owner))
            else:
                text = self.call(member)
            self.receiver = None
            # What the arguments need was added before.
            self.pending.append((member, text))
        return self.pending.pop(0)

    def call(self, member):
        whole = WHOLE.get(str(member))
        if whole and self.draw.random() < 0.3:
            return self.filled(self.draw.choice(whole))
        if member.kind == "new":
            return f"tt.{member.owner}{self.arguments(member, member.owner)}"
        if member.owner is None:
            return f"tt.{member.name}{self.arguments(member, member.name)}"
        if member.kind == "static":
            return f"tt.{member.owner}.{member.name}{self.arguments(member, member.name)}"
        receiver = self.receiver = self.object(member.owner)
        if member.kind == "get":
            assigned = self.draw.random() < 0.05
            return f"setattr({receiver}, '{member.name}', {self.other()})" if assigned else f"{receiver}.{member.name}"
        if member.kind == "set":
            name, annotation, _ = member.positional[0]
            return f"setattr({receiver}, '{member.name}', {self.value(annotation, name, member.owner)})"
        if member.name in PLAIN:
            return PLAIN[member.name].format(receiver)
        if member.name in OPERATORS:
            name, annotation, _ = member.positional[0]
            return OPERATORS[member.name].format(receiver, self.value(annotation, name, member.name))
        if member.name == "__call__":
            return f"{receiver}{self.arguments(member, member.name)}"
        if self.draw.random() < 0.01:
            return f"tt.{member.owner}.{member.name}({self.other()})"
        return f"{receiver}.{member.name}{self.arguments(member, member.name)}"

    def arguments(self, member, function):
        parts = []
        for name, annotation, optional in member.positional:
            if optional and self.draw.random() < 0.6:
                continue
            value = self.value(annotation, name, function)
            parts.append(f"{name}={value}" if optional or any("=" in part.split("(")[0] for part in parts) else value)
        for name, annotation, optional in member.keyword:
            if not optional or self.draw.random() < 0.3:
                parts.append(f"{name}={self.value(annotation, name, function)}")
        if member.any_keyword and self.draw.random() < 0.6:
            for name, value in self.draw.choice(KEYWORDS[str(member)]).items():
                parts.append(f"{name}={self.calling(value) if self.draw.random() < 0.25 else value}")
        elif member.any_keyword:
            names = self.draw.sample(["x", "y", "w", "t", "B", "count", "factor", "a"], self.draw.randrange(4))
            parts += [f"{name}={self.keyword(name)}" for name in names]
        if self.draw.random() < 0.02:
            parts.append(self.draw.choice(["*[1, 2, 3]", "**{'unknown': 1}", "**{'': 1}", "**{'device': 'cpu'}"]))
        # Positional arguments precede those with names.
        parts.sort(key=lambda part: bool(re.match(r"\w+=|\*\*", part)))
        return f"({', '.join(parts)})"

    def keyword(self, name):
        if name in ("B", "count", "factor") and self.draw.random() < 0.8:
            return self.draw.choice(["1", "2", "4"])
        fitting = {"x": ["np.ones((4, 3))", "np.ones((2, 3))", "np.ones(4, np.float32)"], "t": ["np.ones((4, 2))"], "y": ["np.ones(4, np.float32)"]}
        if self.draw.random() < 0.6:
            return self.draw.choice(fitting.get(name, ["[1.0]"]))
        return self.array() if self.draw.random() < 0.7 else self.other()

    def value(self, annotation, name, function):
        """The text of an argument: mostly one that fits, else an extreme one of the type, or any other."""
        drawn, hints = self.draw.random(), HINTS.get(f"{name}:{function}") or HINTS.get(name) or ()
        if drawn < 0.75:
            if hints and self.draw.random() < 0.9:
                return self.filled(self.draw.choice(hints))
            return self.fitting(annotation)
        if drawn < 0.88:
            return self.extreme(annotation)
        return self.other(hints)

    def fitting(self, annotation):
        kind = ast.unparse(annotation) if annotation is not None else "Any"
        options = [option.strip() for option in self.split(kind)]
        option = self.draw.choice(options)
        if option in CLASSES:
            return self.object(option)
        if option.startswith("Sequence["):
            count = self.draw.randrange(5)
            inner = ast.parse(option[len("Sequence[") : -1], mode="eval").body
            return f"[{', '.join(self.fitting(inner) for _ in range(count))}]"
        if option.startswith("Literal["):
            return repr(self.draw.choice(ast.literal_eval(f"({option[len('Literal[') : -1]},)")))
        if option in ("_Body", "_Brain"):
            return f"{option[1:]}()"
        if option.startswith("tuple["):
            inner = ast.parse(option, mode="eval").body.slice
            return f"({', '.join(self.fitting(part) for part in getattr(inner, 'elts', [inner]))},)"
        simple = {
            "int": ["0", "1", "2", "3", "4", "10"],
            "float": ["0.0", "0.5", "1.0", "2"],
            "bool": ["True", "False"],
            "str": ["'x'", "'y'", "'a'"],
            "PathLike[str]": PATHS,
            "None": ["None"],
        }
        return self.draw.choice(simple[option]) if option in simple else self.array()

    @staticmethod
    def split(kind):
        """The parts of a union."""
        parts, depth = [""], 0
        for letter in kind:
            depth += (letter == "[") - (letter == "]")
            if letter == "|" and depth == 0:
                parts.append("")
            else:
                parts[-1] += letter
        return parts

    def extreme(self, annotation):
        kind = ast.unparse(annotation) if annotation is not None else "Any"
        if "PathLike" in kind:
            if self.draw.random() < 0.5:
                return f"changed_file({self.draw.choice(PATHS[:5] + PATHS[5:7])}, {self.draw.randrange(1000)})"
            return self.draw.choice(WRONG_PATHS)
        if kind.startswith("Sequence") or kind.startswith("tuple"):
            inner = self.draw.choice(INTEGERS + FLOATS + STRINGS)
            return self.draw.choice([f"[{inner}]", f"[{inner}] * 2", f"[{inner}] * 4", "[]", "range(2**31)", f"[{inner}] * 1000", "(1,)"])
        options = []
        for option in self.split(kind):
            kind = "str" if option.strip().startswith("Literal[") else option.strip()
            options += {"int": INTEGERS, "float": FLOATS + INTEGERS, "str": STRINGS, "bool": INTEGERS}.get(kind, [])
        return self.draw.choice(options) if options else self.draw.choice([*HUGE_ARRAYS, *INTEGERS, *FLOATS, self.array(), self.array()])

    def calling(self, value):
        """A value that uses an object while it is converted, often the one that converts it."""
        place = self.receiver if self.receiver and self.draw.random() < 0.7 else self.draw.choice(sorted(self.objects) or ["tt"])
        members = READABLE.get(self.objects.get(place), ["__doc__"])
        return f"Calls({value}, {place}, '{self.draw.choice(members)}')"

    def other(self, hints=()):
        """Any argument; `hints` are some that fit."""
        drawn = self.draw.random()
        if drawn < 0.3:
            plain = [hint for hint in hints if "{" not in hint]
            return self.calling(self.draw.choice(plain or CALLED_VALUES))
        if drawn < 0.4 and self.objects:
            return self.draw.choice(sorted(self.objects))
        if drawn < 0.45:
            fault = self.draw.choice(["raises", "calls", "shape", "type", "nan", "huge", "spec", "tuple", "reward", "keeps"])
            target = self.draw.choice(sorted(self.objects)) if self.objects else "None"
            return f"{self.draw.choice(['Body', 'Brain'])}('{fault}', {target})"
        return self.draw.choice(WRONG + HUGE_ARRAYS)

    def array(self):
        shape, kind = self.draw.choice(ARRAY_SHAPES), self.draw.choice(ELEMENT_TYPES)
        text = self.draw.choice([f"np.zeros({shape}, '{kind}')", f"np.ones({shape}, '{kind}')"])
        if kind in ("f4", "f8") and self.draw.random() < 0.3:
            text = f"np.full({shape}, {self.draw.choice(FLOATS)}, '{kind}')"
        layout = self.draw.choice(["{}"] * 6 + ["{}[::-1]", "{}[::2]", "{}.T", "unaligned({})", "readonly({})", "np.asfortranarray({})", "{}.tolist()"])
        if kind in ("O", "g") and layout == "unaligned({})":
            layout = "{}"
        if shape == "()":
            layout = layout.replace("[::-1]", "").replace("[::2]", "")
        return layout.format(text)

    def object(self, name):
        """The name of an object of a class: one that exists, or that of a call that makes one first."""
        existing = [place for place, kind in self.objects.items() if kind == name]
        if existing and self.draw.random() < 0.85:
            return self.draw.choice(existing)
        recipes = RECIPES.get(name)
        if recipes is None:
            return "None"
        return self.made(name, self.filled(self.draw.choice(recipes)))

    def made(self, name, text):
        place = self.place(name)
        self.pending.append((None, f"{place} := {text}"))
        return place

    def place(self, name):
        """A name for another object."""
        place = f"v{self.named}"
        self.named += 1
        self.objects[place] = name
        return place

    def filled(self, text):
        """A text with objects for its names of classes."""
        return re.sub(r"\{(\w+)\}", lambda found: self.object(found[1]) if found[1] in CLASSES else found[0], text)

    def keep(self, result):
        """Makes objects of the package in a result available to further calls; returns the statement that names one."""
        one = result[0] if isinstance(result, (list, tuple)) and result else result
        kind = type(one).__name__
        if kind in CLASSES and len(self.objects) < 60 and self.draw.random() < 0.5:
            return f"{self.place(kind)} := last" + ("[0]" if one is not result else "")
        return None
