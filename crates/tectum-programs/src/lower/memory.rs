//! Functions that load and store, generated for the memories and widths that a program accesses.

use std::collections::BTreeMap;

use super::{Bounds, Unsupported};
use crate::{BufferAccess, Program, Type};

/// A memory of words that a kernel accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Space {
    /// A buffer, by its index among the declarations.
    Buffer(usize),
    /// A block's shared memory.
    Shared,
    /// A lane's pool.
    Pool,
    /// The buffer of a handle known at run time.
    Handle,
}

impl Space {
    fn name(self) -> String {
        match self {
            Space::Buffer(index) => format!("b{index}"),
            Space::Shared => "shared".to_owned(),
            Space::Pool => "pool".to_owned(),
            Space::Handle => "handle".to_owned(),
        }
    }

    /// The array of its words.
    fn words(self) -> String {
        match self {
            Space::Buffer(index) => format!("b{index}"),
            _ => format!("{}_words", self.name()),
        }
    }
}

/// Bytes of the memories whose size is part of the kernel.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    pub shared: u32,
    pub pool: u32,
}

/// The requested functions, by name.
pub struct Memory<'a> {
    program: &'a Program,
    bounds: Bounds,
    sizes: Sizes,
    /// Memories with stores to parts of words: their words are atomics.
    atomic: Vec<Space>,
    functions: BTreeMap<String, String>,
}

impl<'a> Memory<'a> {
    pub fn new(program: &'a Program, bounds: Bounds, sizes: Sizes, atomic: Vec<Space>) -> Self {
        Self {
            program,
            bounds,
            sizes,
            atomic,
            functions: BTreeMap::new(),
        }
    }

    pub fn is_atomic(&self, space: Space) -> bool {
        self.atomic.contains(&space)
    }

    /// The text of all requested functions.
    pub fn text(&self) -> String {
        self.functions.values().cloned().collect()
    }

    /// The name of `fn(at, instruction) -> value`, or with a handle before `at`.
    pub fn load(&mut self, space: Space, ty: Type) -> Result<String, Unsupported> {
        let (bits, name) = (ty.bits(), format!("load{}_{}", ty.bits(), space.name()));
        if !self.functions.contains_key(&name) {
            let text = if space == Space::Handle {
                self.load_by_handle(ty, &name)?
            } else {
                self.load_text(space, bits, &name)
            };
            self.functions.insert(name.clone(), text);
        }
        Ok(name)
    }

    /// The name of `fn(at, value, instruction)`, or with a handle before `at`.
    pub fn store(&mut self, space: Space, ty: Type) -> Result<String, Unsupported> {
        let (bits, name) = (ty.bits(), format!("store{}_{}", ty.bits(), space.name()));
        if !self.functions.contains_key(&name) {
            let text = if space == Space::Handle {
                self.store_by_handle(ty, &name)?
            } else {
                self.store_text(space, bits, &name)
            };
            self.functions.insert(name.clone(), text);
        }
        Ok(name)
    }

    /// The name of `fn(lane) -> value`: the lane's own element, 0 if it has none.
    pub fn load_own(&mut self, buffer: usize, ty: Type) -> String {
        let (bits, width, name) = (
            ty.bits(),
            ty.bytes(),
            format!("load_own{}_b{buffer}", ty.bits()),
        );
        let (value, zero) = (kind(bits), zero(bits));
        let read = self.read(Space::Buffer(buffer), bits, &format!("lane * {width}u"));
        let text = format!(
            "fn {name}(lane: u32) -> {value} {{\n    if lane >= params.bytes_{buffer} / {width}u {{\n        return {zero};\n    }}\n    return {read};\n}}\n"
        );
        self.functions.insert(name.clone(), text);
        name
    }

    /// The name of `fn(lane, value)`: stores the lane's own element, does nothing if it has none.
    pub fn store_own(&mut self, buffer: usize, ty: Type) -> String {
        let (bits, width, name) = (
            ty.bits(),
            ty.bytes(),
            format!("store_own{}_b{buffer}", ty.bits()),
        );
        let write = self.write(Space::Buffer(buffer), bits, &format!("lane * {width}u"));
        let text = format!(
            "fn {name}(lane: u32, value: {}) {{\n    if lane < params.bytes_{buffer} / {width}u {{\n        {write}\n    }}\n}}\n",
            kind(bits)
        );
        self.functions.insert(name.clone(), text);
        name
    }

    fn size(&self, space: Space) -> String {
        match space {
            Space::Buffer(index) => format!("params.bytes_{index}"),
            Space::Shared => format!("{}u", self.sizes.shared),
            Space::Pool | Space::Handle => format!("{}u", self.sizes.pool),
        }
    }

    fn load_text(&mut self, space: Space, bits: u32, name: &str) -> String {
        let read = self.read(space, bits, "at.x");
        let check = self.check(space, bits, &format!(" {}", zero(bits)));
        format!(
            "fn {name}(at: vec2<u32>, instruction: u32) -> {} {{\n{check}    return {read};\n}}\n",
            kind(bits)
        )
    }

    fn store_text(&mut self, space: Space, bits: u32, name: &str) -> String {
        let write = self.write(space, bits, "at.x");
        let check = self.check(space, bits, "");
        format!(
            "fn {name}(at: vec2<u32>, value: {}, instruction: u32) {{\n{check}    {write}\n}}\n",
            kind(bits)
        )
    }

    fn check(&self, space: Space, bits: u32, zero: &str) -> String {
        if self.bounds == Bounds::Proven {
            return String::new();
        }
        format!(
            "    if !within(at, {}u, {}, instruction) {{\n        return{zero};\n    }}\n",
            bits / 8,
            self.size(space)
        )
    }

    /// The expression of a value at a byte offset.
    fn read(&self, space: Space, bits: u32, at: &str) -> String {
        let word = |index: String| self.word(space, &index);
        match bits {
            64 => format!(
                "vec2<u32>({}, {})",
                word(format!("({at} >> 3u) * 2u")),
                word(format!("({at} >> 3u) * 2u + 1u"))
            ),
            32 => word(format!("{at} >> 2u")),
            _ => format!(
                "({} >> {}) & {}",
                word(format!("({at}) >> 2u")),
                shift(bits, at),
                mask(bits)
            ),
        }
    }

    fn word(&self, space: Space, index: &str) -> String {
        let words = space.words();
        if self.is_atomic(space) {
            format!("atomicLoad(&{words}[{index}])")
        } else {
            format!("{words}[{index}]")
        }
    }

    /// The statement that stores `value` at a byte offset.
    fn write(&mut self, space: Space, bits: u32, at: &str) -> String {
        let words = space.words();
        let put = |index: String, value: &str| {
            if self.is_atomic(space) {
                format!("atomicStore(&{words}[{index}], {value});")
            } else {
                format!("{words}[{index}] = {value};")
            }
        };
        match bits {
            64 => format!(
                "{} {}",
                put(format!("({at} >> 3u) * 2u"), "value.x"),
                put(format!("({at} >> 3u) * 2u + 1u"), "value.y")
            ),
            32 => put(format!("{at} >> 2u"), "value"),
            _ => {
                self.replace(space);
                let (mask, shift) = (mask(bits), shift(bits, at));
                format!(
                    "replace_{}(({at}) >> 2u, {mask} << {shift}, (value & {mask}) << {shift});",
                    space.name()
                )
            }
        }
    }

    /// Replaces bits of a word and preserves other lanes' stores to the rest.
    fn replace(&mut self, space: Space) {
        let (name, words) = (space.name(), space.words());
        let text = if self.is_atomic(space) {
            format!(
                "fn replace_{name}(index: u32, mask: u32, bits: u32) {{\n    var old = atomicLoad(&{words}[index]);\n    loop {{\n        \
                 let result = atomicCompareExchangeWeak(&{words}[index], old, (old & ~mask) | bits);\n        \
                 if result.exchanged {{\n            break;\n        }}\n        old = result.old_value;\n    }}\n}}\n"
            )
        } else {
            format!(
                "fn replace_{name}(index: u32, mask: u32, bits: u32) {{\n    {words}[index] = ({words}[index] & ~mask) | bits;\n}}\n"
            )
        };
        self.functions.insert(format!("replace_{name}"), text);
    }

    fn load_by_handle(&mut self, ty: Type, name: &str) -> Result<String, Unsupported> {
        let (value, zero) = (kind(ty.bits()), zero(ty.bits()));
        let cases = self.cases(BufferAccess::reads, |memory, space| {
            Ok(format!(
                "return {}(at, instruction);",
                memory.load(space, ty)?
            ))
        })?;
        Ok(format!(
            "fn {name}(handle: vec2<u32>, at: vec2<u32>, instruction: u32) -> {value} {{\n{cases}    return {zero};\n}}\n"
        ))
    }

    fn store_by_handle(&mut self, ty: Type, name: &str) -> Result<String, Unsupported> {
        let value = kind(ty.bits());
        let cases = self.cases(BufferAccess::writes, |memory, space| {
            Ok(format!(
                "{}(at, value, instruction);\n            return;",
                memory.store(space, ty)?
            ))
        })?;
        Ok(format!(
            "fn {name}(handle: vec2<u32>, at: vec2<u32>, value: {value}, instruction: u32) {{\n{cases}}}\n"
        ))
    }

    /// A switch over the buffers; invalid handles, and those without permission for the access,
    /// match no case.
    fn cases(
        &mut self,
        allowed: fn(BufferAccess) -> bool,
        mut access: impl FnMut(&mut Self, Space) -> Result<String, Unsupported>,
    ) -> Result<String, Unsupported> {
        let fault = |kind: u32| match self.bounds {
            Bounds::Checked => format!("fault({kind}u, instruction, handle, 0u);"),
            Bounds::Forced | Bounds::Proven => String::new(),
        };
        let (unknown, denied) = (
            fault(super::faults::UNKNOWN_HANDLE),
            fault(super::faults::DENIED),
        );
        let mut text = "    switch select(0u, handle.x, handle.y == 0u) {\n".to_owned();
        for (index, buffer) in self.program.buffers().iter().enumerate() {
            let body = if allowed(buffer.access) {
                access(self, Space::Buffer(index))?
            } else {
                denied.clone()
            };
            text.push_str(&format!(
                "        case {}u: {{\n            {body}\n        }}\n",
                index + 1
            ));
        }
        text.push_str(&format!(
            "        default: {{\n            {unknown}\n        }}\n    }}\n"
        ));
        Ok(text)
    }
}

fn kind(bits: u32) -> &'static str {
    if bits == 64 { "vec2<u32>" } else { "u32" }
}

fn zero(bits: u32) -> &'static str {
    if bits == 64 {
        "vec2<u32>(0u, 0u)"
    } else {
        "0u"
    }
}

fn mask(bits: u32) -> &'static str {
    if bits == 8 { "0xffu" } else { "0xffffu" }
}

/// The bit position in its word of a part at a byte offset.
fn shift(bits: u32, at: &str) -> String {
    if bits == 8 {
        format!("((({at}) & 3u) * 8u)")
    } else {
        format!("((({at}) & 2u) * 8u)")
    }
}
