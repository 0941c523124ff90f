//! Values of a pickle, read without executing any of its code.
//!
//! A pickle is a program for a stack machine that may call any function. This reader knows a few
//! functions and classes of NumPy, Gymnasium and Stable-Baselines3 by name, keeps what they would be
//! called with as data, and refuses every other name.

use std::collections::HashMap;

use tectum::{Error, Result};

/// The maximum size of a file.
const MAX_BYTES: usize = 64 << 20;

/// Names that are kept as data, by module and name; a module that ends with a dot has all below it.
const ALLOWED: [(&str, &[&str]); 12] = [
    (
        "numpy",
        &[
            "ndarray", "dtype", "bool", "bool_", "float32", "float64", "int64",
        ],
    ),
    ("numpy._core.multiarray", &["_reconstruct", "scalar"]),
    ("numpy.core.multiarray", &["_reconstruct", "scalar"]),
    ("numpy._core.numeric", &["_frombuffer"]),
    ("numpy.core.numeric", &["_frombuffer"]),
    (
        "stable_baselines3.common.vec_env.vec_normalize",
        &["VecNormalize"],
    ),
    (
        "stable_baselines3.common.running_mean_std",
        &["RunningMeanStd"],
    ),
    ("collections", &["OrderedDict"]),
    ("copyreg", &["_reconstructor"]),
    // The generators that spaces have.
    (
        "numpy.random._pickle",
        &["__generator_ctor", "__bit_generator_ctor"],
    ),
    ("numpy.random._pcg64", &["PCG64"]),
    (
        "numpy.random.bit_generator",
        &["__pyx_unpickle_SeedSequence", "SeedSequence"],
    ),
];

/// Packages whose classes are kept as data.
const ALLOWED_PACKAGES: [&str; 2] = ["gymnasium.spaces", "gym.spaces"];

/// The place of a value among all values of a pickle.
type Id = usize;

/// A value.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// A list, a tuple or a set.
    Items(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    /// A function or a class.
    Name(String, String),
    /// What a call of a name would give: its arguments, and the state that it was given.
    Object {
        name: String,
        arguments: Vec<Id>,
        state: Option<Id>,
    },
}

/// The values of a pickle.
pub struct Pickle {
    values: Vec<Value>,
    root: Id,
}

/// A value of a pickle.
#[derive(Clone, Copy)]
pub struct Item<'p> {
    pickle: &'p Pickle,
    id: Id,
}

impl Pickle {
    /// Reads a pickle of any protocol from 2 on.
    ///
    /// # Errors
    /// `Unsupported` for a name that is not allowed; `Data` for bytes that are no pickle.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        if bytes.len() > MAX_BYTES {
            return Err(Error::data(format!(
                "it has {} bytes, at most {MAX_BYTES} are read",
                bytes.len()
            )));
        }
        let mut machine = Machine {
            bytes,
            position: 0,
            values: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
        };
        let root = machine.run()?;
        Ok(Self {
            values: machine.values,
            root,
        })
    }

    /// The whole value.
    pub fn root(&self) -> Item<'_> {
        Item {
            pickle: self,
            id: self.root,
        }
    }
}

impl<'p> Item<'p> {
    fn value(self) -> &'p Value {
        &self.pickle.values[self.id]
    }

    fn at(self, id: Id) -> Self {
        Self { id, ..self }
    }

    /// The value of a key of a dictionary, or of an attribute of an object.
    pub fn get(self, key: &str) -> Option<Self> {
        // A state is a dictionary. It is not followed further: an object may be its own state.
        let value = match self.value() {
            Value::Object {
                state: Some(state), ..
            } => &self.pickle.values[*state],
            value => value,
        };
        let Value::Dict(pairs) = value else {
            return None;
        };
        pairs
            .iter()
            .find(|(own, _)| self.pickle.values[*own] == Value::Text(key.to_owned()))
            .map(|(_, value)| self.at(*value))
    }

    /// The keys of a dictionary.
    pub fn keys(self) -> Vec<String> {
        match self.value() {
            Value::Dict(pairs) => pairs
                .iter()
                .filter_map(|(key, _)| match &self.pickle.values[*key] {
                    Value::Text(key) => Some(key.clone()),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// The class of an object.
    pub fn class(self) -> &'p str {
        match self.value() {
            Value::Object { name, .. } => name,
            _ => "",
        }
    }

    /// Whether it is true.
    pub fn is_true(self) -> bool {
        match self.value() {
            Value::Bool(flag) => *flag,
            Value::Object { .. } => self.numbers().is_some_and(|numbers| numbers == [1.0]),
            _ => false,
        }
    }

    /// The number of a number, or the numbers of an array of NumPy.
    pub fn numbers(self) -> Option<Vec<f64>> {
        match self.value() {
            Value::Int(number) => Some(vec![*number as f64]),
            Value::Float(number) => Some(vec![*number]),
            Value::Object {
                name,
                arguments,
                state,
            } => match name.rsplit('.').next()? {
                // (version, shape, type, whether it is in Fortran's order, bytes)
                "_reconstruct" => {
                    let parts = self.at((*state)?).items()?;
                    self.at(*parts.get(4)?).array(self.at(*parts.get(2)?))
                }
                // (bytes, type, shape, order)
                "_frombuffer" => self
                    .at(*arguments.first()?)
                    .array(self.at(*arguments.get(1)?)),
                // (type, bytes)
                "scalar" => self
                    .at(*arguments.get(1)?)
                    .array(self.at(*arguments.first()?)),
                _ => None,
            },
            _ => None,
        }
    }

    fn items(self) -> Option<&'p [Id]> {
        match self.value() {
            Value::Items(items) => Some(items),
            _ => None,
        }
    }

    /// The numbers of bytes of a type of NumPy.
    fn array(self, dtype: Self) -> Option<Vec<f64>> {
        let Value::Bytes(bytes) = self.value() else {
            return None;
        };
        let Value::Object {
            arguments, state, ..
        } = dtype.value()
        else {
            return None;
        };
        // The state of a type begins with a version and the order of its bytes.
        let order = state.and_then(|state| self.at(state).items()?.get(1).copied());
        if order.is_some_and(|order| *self.at(order).value() == Value::Text(">".to_owned())) {
            return None;
        }
        let Value::Text(kind) = self.at(*arguments.first()?).value() else {
            return None;
        };
        let kind = kind.trim_start_matches(['<', '=', '|']);
        Some(match kind {
            "f8" => bytes
                .as_chunks()
                .0
                .iter()
                .map(|chunk| f64::from_le_bytes(*chunk))
                .collect(),
            "f4" => bytes
                .as_chunks()
                .0
                .iter()
                .map(|chunk| f64::from(f32::from_le_bytes(*chunk)))
                .collect(),
            "i8" => bytes
                .as_chunks()
                .0
                .iter()
                .map(|chunk| i64::from_le_bytes(*chunk) as f64)
                .collect(),
            "b1" | "u1" => bytes.iter().map(|byte| f64::from(*byte)).collect(),
            _ => return None,
        })
    }
}

/// The stack machine.
struct Machine<'b> {
    bytes: &'b [u8],
    position: usize,
    values: Vec<Value>,
    stack: Vec<Id>,
    marks: Vec<usize>,
    memo: HashMap<usize, Id>,
}

impl Machine<'_> {
    fn run(&mut self) -> Result<Id> {
        loop {
            let place = self.position;
            let opcode = self.take(1)?[0];
            if opcode == b'.' {
                return self.pop();
            }
            self.step(opcode)
                .map_err(|error| error.at(format!("pickle, byte {place}, opcode {opcode:#04x}")))?;
        }
    }

    fn step(&mut self, opcode: u8) -> Result<()> {
        match opcode {
            // Protocol and frame.
            0x80 => drop(self.take(1)?),
            0x95 => drop(self.take(8)?),
            b'(' => self.marks.push(self.stack.len()),
            b'0' => drop(self.pop()?),
            b'1' => self.pop_marked().map(drop)?,
            b'2' => {
                let top = *self.stack.last().ok_or_else(empty)?;
                self.stack.push(top);
            }
            b'N' => self.push(Value::None),
            0x88 => self.push(Value::Bool(true)),
            0x89 => self.push(Value::Bool(false)),
            b'J' => {
                let number = i32::from_le_bytes(self.array()?);
                self.push(Value::Int(number.into()));
            }
            b'K' => {
                let number = self.take(1)?[0];
                self.push(Value::Int(number.into()));
            }
            b'M' => {
                let number = u16::from_le_bytes(self.array()?);
                self.push(Value::Int(number.into()));
            }
            0x8a => {
                let len = usize::from(self.take(1)?[0]);
                let bytes = self.take(len)?;
                let mut number = [0u8; 8];
                if len > 8 {
                    // An integer of more than 64 bits, such as the state of a generator.
                    let bytes = bytes.to_vec();
                    self.push(Value::Bytes(bytes));
                    return Ok(());
                }
                number[..len].copy_from_slice(bytes);
                if bytes.last().is_some_and(|byte| byte & 0x80 != 0) {
                    number[len..].fill(0xff);
                }
                self.push(Value::Int(i64::from_le_bytes(number)));
            }
            b'G' => {
                let number = f64::from_be_bytes(self.array()?);
                self.push(Value::Float(number));
            }
            0x8c => self.text(1)?,
            b'X' => self.text(4)?,
            0x8d => self.text(8)?,
            b'C' => self.binary(1)?,
            b'B' => self.binary(4)?,
            0x8e | 0x96 => self.binary(8)?,
            b']' | b')' | 0x8f => self.push(Value::Items(Vec::new())),
            b'}' => self.push(Value::Dict(Vec::new())),
            b't' | b'l' | 0x91 => {
                let items = self.pop_marked()?;
                self.push(Value::Items(items));
            }
            0x85 => self.tuple(1)?,
            0x86 => self.tuple(2)?,
            0x87 => self.tuple(3)?,
            b'd' => {
                let items = self.pop_marked()?;
                self.push(Value::Dict(pairs(&items)));
            }
            b'a' => {
                let item = self.pop()?;
                self.append(vec![item])?;
            }
            b'e' | 0x90 => {
                let items = self.pop_marked()?;
                self.append(items)?;
            }
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.set(vec![(key, value)])?;
            }
            b'u' => {
                let items = self.pop_marked()?;
                self.set(pairs(&items))?;
            }
            b'q' => {
                let place = usize::from(self.take(1)?[0]);
                self.remember(place)?;
            }
            b'r' => {
                let place = u32::from_le_bytes(self.array()?) as usize;
                self.remember(place)?;
            }
            0x94 => self.remember(self.memo.len())?,
            b'h' => {
                let place = usize::from(self.take(1)?[0]);
                self.recall(place)?;
            }
            b'j' => {
                let place = u32::from_le_bytes(self.array()?) as usize;
                self.recall(place)?;
            }
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.name(module, name)?;
            }
            0x93 => {
                let (name, module) = (self.pop_text()?, self.pop_text()?);
                self.name(module, name)?;
            }
            b'R' | 0x81 => {
                let (arguments, callable) = (self.pop()?, self.pop()?);
                self.call(callable, arguments)?;
            }
            0x92 => {
                let (_, arguments, class) = (self.pop()?, self.pop()?, self.pop()?);
                self.call(class, arguments)?;
            }
            b'b' => {
                let state = self.pop()?;
                let object = *self.stack.last().ok_or_else(empty)?;
                match &mut self.values[object] {
                    Value::Object { state: own, .. } => *own = Some(state),
                    _ => return Err(Error::data("a state for a value that is no object")),
                }
            }
            _ => return Err(Error::unsupported("the opcode is not supported")),
        }
        Ok(())
    }

    fn take(&mut self, len: usize) -> Result<&[u8]> {
        let end = self
            .position
            .checked_add(len)
            .filter(|end| *end <= self.bytes.len())
            .ok_or_else(|| Error::data("the pickle is cut off"))?;
        let bytes = &self.bytes[self.position..end];
        self.position = end;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// A length in some bytes, and as many bytes.
    fn counted(&mut self, width: usize) -> Result<Vec<u8>> {
        let mut len = [0u8; 8];
        len[..width].copy_from_slice(self.take(width)?);
        let len = usize::try_from(u64::from_le_bytes(len))
            .map_err(|_| Error::data("the pickle is cut off"))?;
        self.take(len).map(<[u8]>::to_vec)
    }

    fn text(&mut self, width: usize) -> Result<()> {
        let bytes = self.counted(width)?;
        let text = String::from_utf8(bytes).map_err(|_| Error::data("a text is no UTF-8"))?;
        self.push(Value::Text(text));
        Ok(())
    }

    fn binary(&mut self, width: usize) -> Result<()> {
        let bytes = self.counted(width)?;
        self.push(Value::Bytes(bytes));
        Ok(())
    }

    fn line(&mut self) -> Result<String> {
        let rest = &self.bytes[self.position..];
        let len = rest
            .iter()
            .position(|byte| *byte == b'\n')
            .ok_or_else(|| Error::data("the pickle is cut off"))?;
        let text = String::from_utf8_lossy(&rest[..len]).into_owned();
        self.position += len + 1;
        Ok(text)
    }

    fn push(&mut self, value: Value) {
        self.stack.push(self.values.len());
        self.values.push(value);
    }

    fn pop(&mut self) -> Result<Id> {
        self.stack.pop().ok_or_else(empty)
    }

    fn pop_text(&mut self) -> Result<String> {
        let id = self.pop()?;
        match &self.values[id] {
            Value::Text(text) => Ok(text.clone()),
            _ => Err(Error::data("a name is no text")),
        }
    }

    fn pop_marked(&mut self) -> Result<Vec<Id>> {
        let mark = self.marks.pop().ok_or_else(empty)?;
        if mark > self.stack.len() {
            return Err(empty());
        }
        Ok(self.stack.split_off(mark))
    }

    fn tuple(&mut self, len: usize) -> Result<()> {
        let start = self.stack.len().checked_sub(len).ok_or_else(empty)?;
        let items = self.stack.split_off(start);
        self.push(Value::Items(items));
        Ok(())
    }

    fn append(&mut self, items: Vec<Id>) -> Result<()> {
        let list = *self.stack.last().ok_or_else(empty)?;
        match &mut self.values[list] {
            Value::Items(own) => own.extend(items),
            _ => return Err(Error::data("items for a value that is no list")),
        }
        Ok(())
    }

    fn set(&mut self, pairs: Vec<(Id, Id)>) -> Result<()> {
        let dict = *self.stack.last().ok_or_else(empty)?;
        let next = self.values.len();
        match &mut self.values[dict] {
            Value::Dict(own) => own.extend(pairs),
            // An ordered dictionary.
            Value::Object { state, .. } => {
                *state = Some(next);
                self.values.push(Value::Dict(pairs));
            }
            _ => return Err(Error::data("keys for a value that is no dictionary")),
        }
        Ok(())
    }

    fn remember(&mut self, place: usize) -> Result<()> {
        let top = *self.stack.last().ok_or_else(empty)?;
        self.memo.insert(place, top);
        Ok(())
    }

    fn recall(&mut self, place: usize) -> Result<()> {
        let id = *self
            .memo
            .get(&place)
            .ok_or_else(|| Error::data("a value that was not kept"))?;
        self.stack.push(id);
        Ok(())
    }

    fn name(&mut self, module: String, name: String) -> Result<()> {
        let is_known = ALLOWED
            .iter()
            .any(|(own, names)| *own == module && names.contains(&name.as_str()));
        let is_below = ALLOWED_PACKAGES
            .iter()
            .any(|package| module == *package || module.starts_with(&format!("{package}.")));
        if !is_known && !is_below {
            return Err(Error::unsupported(format!(
                "it uses {module}.{name}, which is not among the names that are read; nothing of it was executed"
            )));
        }
        self.push(Value::Name(module, name));
        Ok(())
    }

    fn call(&mut self, callable: Id, arguments: Id) -> Result<()> {
        let (Value::Name(module, name), Value::Items(arguments)) =
            (&self.values[callable], &self.values[arguments])
        else {
            return Err(Error::data("a call of a value that is no name"));
        };
        let (name, arguments) = (format!("{module}.{name}"), arguments.clone());
        self.push(Value::Object {
            name,
            arguments,
            state: None,
        });
        Ok(())
    }
}

fn empty() -> Error {
    Error::data("the pickle takes more values than it has")
}

fn pairs(items: &[Id]) -> Vec<(Id, Id)> {
    items
        .chunks_exact(2)
        .map(|pair| (pair[0], pair[1]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::Pickle;

    /// `os.system("true")`, written by hand: nothing of it is executed.
    #[test]
    fn names_that_are_not_allowed_are_refused() {
        for (bytes, name) in [
            (&b"\x80\x04cos\nsystem\n\x8c\x04true\x85R."[..], "os.system"),
            (
                b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93.",
                "builtins.eval",
            ),
            (b"\x80\x04cnumpy\nsave\n.", "numpy.save"),
            (
                b"\x80\x04cgymnasium.spacesother\nBox\n.",
                "gymnasium.spacesother.Box",
            ),
        ] {
            let error = Pickle::parse(bytes).err().expect(name).to_string();
            assert!(error.contains(name), "{error}");
        }
    }

    #[test]
    fn values_are_read_as_python_writes_them() {
        // pickle.dumps({"a": [1, -2, 3.5, True, None, 300, 70000], "b": ("x", b"y")}, protocol=4)
        let bytes = b"\x80\x04\x95>\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01a\x94]\x94(K\x01J\xfe\xff\xff\xffG@\x0c\x00\x00\x00\x00\x00\x00\x88NM,\x01Jp\x11\x01\x00e\x8c\x01b\x94\x8c\x01x\x94C\x01y\x94\x86\x94u.";
        let pickle = Pickle::parse(bytes).expect("it is one");
        let list = pickle.root().get("a").expect("a key");
        let numbers: Vec<_> = list
            .items()
            .expect("a list")
            .iter()
            .map(|id| list.at(*id).numbers())
            .collect();
        let one = |number| Some(vec![number]);
        assert_eq!(
            numbers,
            [
                one(1.0),
                one(-2.0),
                one(3.5),
                None,
                None,
                one(300.0),
                one(70000.0)
            ]
        );
        assert_eq!(pickle.root().keys(), ["a", "b"]);
    }

    #[test]
    fn an_object_that_is_its_own_state_has_no_keys() {
        // An object of numpy.ndarray, kept as value 0, whose state is value 0.
        let pickle =
            Pickle::parse(b"\x80\x04cnumpy\nndarray\n)\x81\x94h\x00b.").expect("it is one");
        assert!(pickle.root().get("a").is_none() && pickle.root().numbers().is_none());
    }

    /// Every cut of a pickle, and every change of one byte, is an error or a value.
    #[test]
    fn broken_pickles_are_errors() {
        let bytes = b"\x80\x04\x95>\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01a\x94]\x94(K\x01J\xfe\xff\xff\xffG@\x0c\x00\x00\x00\x00\x00\x00\x88NM,\x01Jp\x11\x01\x00e\x8c\x01b\x94\x8c\x01x\x94C\x01y\x94\x86\x94u.";
        for len in 0..bytes.len() {
            assert!(Pickle::parse(&bytes[..len]).is_err());
        }
        for place in 0..bytes.len() {
            for value in 0..=255 {
                let mut changed = bytes.to_vec();
                changed[place] = value;
                if let Ok(pickle) = Pickle::parse(&changed) {
                    let root = pickle.root();
                    let _ = (
                        root.get("a").map(super::Item::numbers),
                        root.keys(),
                        root.class(),
                    );
                }
            }
        }
    }
}
