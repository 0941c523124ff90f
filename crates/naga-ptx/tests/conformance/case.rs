//! A case of the conformance table: a shader, its buffers and the expected contents afterwards.
//!
//! A case does not depend on a runner. Its expected contents are computed on the host from the
//! language's rules, and each expected element says how far a PTX target and how far a wgpu target
//! may be from it.

use half::f16;

/// The type of a buffer's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    U32,
    I32,
    U64,
    I64,
    F16,
    F32,
    F64,
}

/// Capabilities that a case needs beyond core WGSL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features(u32);

impl Features {
    pub const NONE: Features = Features(0);
    pub const F16: Features = Features(1);
    pub const F64: Features = Features(2);
    pub const INT64: Features = Features(4);
    pub const SUBGROUP: Features = Features(8);
    pub const INT64_ATOMIC_MIN_MAX: Features = Features(16);
    pub const INT64_ATOMIC: Features = Features(32);
    pub const F32_ATOMIC: Features = Features(64);
    /// Over 48 KiB of workgroup memory.
    pub const LARGE_SHARED: Features = Features(128);
    pub const SUBGROUP_BARRIER: Features = Features(256);
    pub const INT16: Features = Features(512);

    pub const fn and(self, other: Features) -> Features {
        Features(self.0 | other.0)
    }

    pub const fn contains(self, other: Features) -> bool {
        self.0 & other.0 == other.0
    }
}

/// How a buffer is bound; its index in [`Case::buffers`] is its `@binding`, in group 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferKind {
    Uniform,
    Read,
    ReadWrite,
}

/// A buffer and its contents before the dispatch.
#[derive(Debug, Clone)]
pub struct Buffer {
    pub kind: BufferKind,
    pub bytes: Vec<u8>,
}

/// A class of targets with one set of tolerances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// PTX, interpreted or on a GPU: subnormals, infinities and the sign of zero count.
    Ptx,
    /// wgpu: the WGSL accuracy table, which lets a device disregard the sign of zero.
    Wgpu,
}

/// An expected number and the greatest distance from it, by class of target. Distance 0 requires
/// the nearest representable number itself.
#[derive(Debug, Clone, Copy)]
pub struct Near {
    pub value: f64,
    pub ptx: f64,
    pub wgpu: f64,
}

/// The expected contents of a buffer.
#[derive(Debug, Clone)]
pub enum Wanted {
    /// These bits; any NaN matches every NaN.
    Bits(Vec<u8>),
    /// Numbers within distances.
    Near(Vec<Near>),
}

/// A buffer that is compared after the dispatch.
#[derive(Debug, Clone)]
pub struct Output {
    pub buffer: usize,
    pub element: Element,
    pub wanted: Wanted,
}

/// The expected contents of the buffers, which may depend on the number of invocations in a
/// subgroup.
pub enum Expected {
    Fixed(Vec<Output>),
    BySubgroupSize(fn(usize) -> Vec<Output>),
}

/// Targets for which a case is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// WGSL determines the result.
    Everywhere,
    /// WGSL leaves the result open and the PTX contract determines it, such as infinities, NaN and
    /// subnormals; or naga has no other valid output for it.
    Ptx,
    /// Only [`naga_ptx::IndexPolicy::Clamp`] determines the result.
    PtxClamped,
}

/// A row of the table.
pub struct Case {
    /// `family/what/type`
    pub name: String,
    pub source: String,
    pub features: Features,
    pub buffers: Vec<Buffer>,
    pub groups: [u32; 3],
    pub constants: Vec<(&'static str, f64)>,
    pub expected: Expected,
    pub scope: Scope,
}

/// The first element that differs from the expected one.
#[derive(Debug, Clone)]
pub struct Difference {
    pub buffer: usize,
    pub index: usize,
    pub got: String,
    pub wanted: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "buffer {} element {}: got {}, wanted {}",
            self.buffer, self.index, self.got, self.wanted
        )
    }
}

impl Case {
    /// A case of one workgroup, without buffers.
    pub fn new(name: impl Into<String>, source: impl Into<String>) -> Case {
        Case {
            name: name.into(),
            source: source.into(),
            features: Features::NONE,
            buffers: Vec::new(),
            groups: [1, 1, 1],
            constants: Vec::new(),
            expected: Expected::Fixed(Vec::new()),
            scope: Scope::Everywhere,
        }
    }

    pub fn features(mut self, features: Features) -> Case {
        self.features = self.features.and(features);
        self
    }

    pub fn groups(mut self, x: u32, y: u32, z: u32) -> Case {
        self.groups = [x, y, z];
        self
    }

    pub fn constant(mut self, name: &'static str, value: f64) -> Case {
        self.constants.push((name, value));
        self
    }

    pub fn scope(mut self, scope: Scope) -> Case {
        self.scope = scope;
        self
    }

    /// Adds a read-only storage buffer.
    pub fn read<T: bytemuck::NoUninit>(self, data: &[T]) -> Case {
        self.buffer(BufferKind::Read, bytemuck::cast_slice(data).to_vec())
    }

    /// Adds a uniform buffer.
    pub fn uniform<T: bytemuck::NoUninit>(self, data: &[T]) -> Case {
        self.buffer(BufferKind::Uniform, bytemuck::cast_slice(data).to_vec())
    }

    /// Adds a storage buffer that contains `before` and must then contain `after`.
    pub fn write<T: Number>(mut self, before: &[T], after: &[T]) -> Case {
        self = self.buffer(BufferKind::ReadWrite, bytemuck::cast_slice(before).to_vec());
        let wanted = Wanted::Bits(bytemuck::cast_slice(after).to_vec());
        self.want(T::ELEMENT, wanted)
    }

    /// Adds a storage buffer of zeros that must then contain `after`.
    pub fn output<T: Number>(self, after: &[T]) -> Case {
        let before = vec![T::zeroed(); after.len()];
        self.write(&before, after)
    }

    /// Adds a storage buffer of zeroed words and its expected contents for each subgroup size.
    pub fn output_by_subgroup_size(
        mut self,
        words: usize,
        expected: fn(usize) -> Vec<Output>,
    ) -> Case {
        self = self.buffer(BufferKind::ReadWrite, vec![0; words * 4]);
        self.expected = Expected::BySubgroupSize(expected);
        self
    }

    pub fn buffer(mut self, kind: BufferKind, bytes: Vec<u8>) -> Case {
        self.buffers.push(Buffer { kind, bytes });
        self
    }

    fn want(mut self, element: Element, wanted: Wanted) -> Case {
        let buffer = self.buffers.len() - 1;
        if let Expected::Fixed(outputs) = &mut self.expected {
            outputs.push(Output {
                buffer,
                element,
                wanted,
            });
        }
        self
    }

    /// The expected contents of the buffers on a device with that subgroup size.
    pub fn outputs(&self, subgroup_size: usize) -> std::borrow::Cow<'_, [Output]> {
        match &self.expected {
            Expected::Fixed(outputs) => outputs.into(),
            Expected::BySubgroupSize(outputs) => outputs(subgroup_size).into(),
        }
    }
}

/// A number in buffers.
pub trait Number: bytemuck::Pod {
    const ELEMENT: Element;
}

macro_rules! number {
    ($($type:ty: $element:ident),*) => { $(impl Number for $type { const ELEMENT: Element = Element::$element; })* };
}
number!(u32: U32, i32: I32, u64: U64, i64: I64, f16: F16, f32: F32, f64: F64);

impl Element {
    pub fn bytes(self) -> usize {
        match self {
            Element::F16 => 2,
            Element::U32 | Element::I32 | Element::F32 => 4,
            Element::U64 | Element::I64 | Element::F64 => 8,
        }
    }

    /// The distance of neighbouring numbers at `value`.
    pub fn ulp(self, value: f64) -> f64 {
        let (digits, least) = match self {
            Element::F16 => (10, -14),
            Element::F32 => (23, -126),
            _ => (52, -1022),
        };
        let exponent = match value == 0.0 || !value.is_finite() {
            true => least,
            false => (((value.to_bits() >> 52) & 0x7ff) as i32 - 1023).max(least),
        };
        2f64.powi(exponent) * 2f64.powi(-digits)
    }

    fn is_float(self) -> bool {
        matches!(self, Element::F16 | Element::F32 | Element::F64)
    }

    fn number(self, bytes: &[u8]) -> f64 {
        match self {
            Element::F16 => f16::from_ne_bytes(array(bytes)).to_f64(),
            Element::F32 => f32::from_ne_bytes(array(bytes)).into(),
            Element::F64 => f64::from_ne_bytes(array(bytes)),
            Element::U32 => u32::from_ne_bytes(array(bytes)).into(),
            Element::I32 => i32::from_ne_bytes(array(bytes)).into(),
            Element::U64 => u64::from_ne_bytes(array(bytes)) as f64,
            Element::I64 => i64::from_ne_bytes(array(bytes)) as f64,
        }
    }

    fn show(self, bytes: &[u8]) -> String {
        match self {
            Element::F16 => format!(
                "{:?} (0x{:04x})",
                self.number(bytes),
                u16::from_ne_bytes(array(bytes))
            ),
            Element::F32 => format!(
                "{:?} (0x{:08x})",
                self.number(bytes) as f32,
                u32::from_ne_bytes(array(bytes))
            ),
            Element::F64 => format!(
                "{:?} (0x{:016x})",
                self.number(bytes),
                u64::from_ne_bytes(array(bytes))
            ),
            Element::U32 => format!("{0} (0x{0:x})", u32::from_ne_bytes(array(bytes))),
            Element::I32 => format!("{0} (0x{0:x})", i32::from_ne_bytes(array(bytes))),
            Element::U64 => format!("{0} (0x{0:x})", u64::from_ne_bytes(array(bytes))),
            Element::I64 => format!("{0} (0x{0:x})", i64::from_ne_bytes(array(bytes))),
        }
    }

    /// The nearest representable number's bits.
    fn nearest(self, value: f64) -> Vec<u8> {
        match self {
            Element::F16 => to_f16(value).to_ne_bytes().to_vec(),
            Element::F32 => (value as f32).to_ne_bytes().to_vec(),
            _ => value.to_ne_bytes().to_vec(),
        }
    }
}

/// The nearest half, which the crate's own conversion misses if it goes through f32.
pub fn to_f16(value: f64) -> f16 {
    let unit = Element::F16.ulp(value);
    // Exact except for an overflow, whose boundary is the same.
    f16::from_f64(if value.is_finite() {
        (value / unit).round_ties_even() * unit
    } else {
        value
    })
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes
        .try_into()
        .expect("invariant: elements are cut to their size")
}

impl Output {
    /// Compares a buffer's contents.
    pub fn compare(&self, target: Target, got: &[u8]) -> Result<(), Difference> {
        let size = self.element.bytes();
        let count = match &self.wanted {
            Wanted::Bits(bytes) => bytes.len() / size,
            Wanted::Near(values) => values.len(),
        };
        for index in 0..count {
            let got = got
                .get(index * size..(index + 1) * size)
                .unwrap_or_default();
            if got.is_empty() {
                let (got, wanted) = ("nothing".to_owned(), format!("{count} elements"));
                return Err(Difference {
                    buffer: self.buffer,
                    index,
                    got,
                    wanted,
                });
            }
            self.compare_element(target, index, got)
                .map_err(|wanted| Difference {
                    buffer: self.buffer,
                    index,
                    got: self.element.show(got),
                    wanted,
                })?;
        }
        Ok(())
    }

    /// Reports the expected value on a mismatch.
    fn compare_element(&self, target: Target, index: usize, got: &[u8]) -> Result<(), String> {
        let size = self.element.bytes();
        match &self.wanted {
            Wanted::Bits(bytes) => {
                self.compare_bits(target, got, &bytes[index * size..(index + 1) * size])
            }
            Wanted::Near(values) => {
                let Near { value, ptx, wgpu } = values[index];
                let distance = if target == Target::Ptx { ptx } else { wgpu };
                if distance == 0.0 || !value.is_finite() {
                    return self.compare_bits(target, got, &self.element.nearest(value));
                }
                let number = self.element.number(got);
                match (number - value).abs() <= distance {
                    true => Ok(()),
                    false => Err(format!(
                        "{value:?} ± {distance:.3e} (off by {:.3e})",
                        (number - value).abs()
                    )),
                }
            }
        }
    }

    fn compare_bits(&self, target: Target, got: &[u8], wanted: &[u8]) -> Result<(), String> {
        let mut equal = got == wanted;
        if self.element.is_float() {
            let (got, wanted) = (self.element.number(got), self.element.number(wanted));
            equal |= got.is_nan() && wanted.is_nan();
            equal |= target == Target::Wgpu && got == 0.0 && wanted == 0.0;
        }
        if equal {
            Ok(())
        } else {
            Err(self.element.show(wanted))
        }
    }
}
