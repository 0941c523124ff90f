//! Storage of variables, and how they are read and written.

use naga::TypeInner;

use crate::error::Result;
use crate::pointer_target::{DynamicIndex, PointerTarget, Space};
use crate::scalar::{Class, Scalar};
use crate::shape::{self, ScalarRun};
use crate::translator::Translator;
use crate::writer::Operand;
use crate::{IndexPolicy, arithmetic::Comparison};

impl Translator<'_> {
    /// The place of a part at a constant index.
    pub fn place_part(
        &mut self,
        place: &PointerTarget,
        inner: &TypeInner,
        index: u32,
    ) -> Result<PointerTarget> {
        let part = shape::part(self.module, inner, index)?;
        let mut place = place.clone();
        match &mut place {
            PointerTarget::Registers { first, .. } => *first += part.first,
            PointerTarget::Memory { offset, .. } => *offset += i64::from(part.byte),
        }
        Ok(place)
    }

    /// The place of a part at a run-time index of type `scalar`.
    pub fn place_element(
        &mut self,
        place: &PointerTarget,
        inner: &TypeInner,
        index: Operand,
        scalar: Scalar,
    ) -> Result<PointerTarget> {
        let element = shape::element(self.module, inner)?;
        let length = match (element.count, place) {
            (Some(count), _) => Some(Operand::u32(count)),
            (None, PointerTarget::Memory { length, .. }) => *length,
            (None, PointerTarget::Registers { .. }) => None,
        };
        let index = self.checked_index(index, scalar, length);
        Ok(match place {
            PointerTarget::Registers {
                variable,
                first,
                dynamic_indices,
            } => {
                let count = element.count.unwrap_or(1);
                let mut dynamic_indices = dynamic_indices.clone();
                dynamic_indices.push(DynamicIndex {
                    index,
                    count,
                    scalars: element.scalars,
                });
                PointerTarget::Registers {
                    variable: *variable,
                    first: *first,
                    dynamic_indices,
                }
            }
            PointerTarget::Memory {
                space,
                address,
                offset,
                length,
            } => {
                let base = self.writer.in_register(*address);
                let operands = [index, Operand::u32(element.stride), base];
                let address = self.writer.op("mad.wide.u32", Scalar::U64, &operands);
                PointerTarget::Memory {
                    space: *space,
                    address,
                    offset: *offset,
                    length: *length,
                }
            }
        })
    }

    /// The index as u32, clamped to the last element under [`IndexPolicy::Clamp`].
    fn checked_index(
        &mut self,
        index: Operand,
        scalar: Scalar,
        length: Option<Operand>,
    ) -> Operand {
        let index = match scalar.class() {
            Class::Long => {
                let most = Operand::u64(u64::from(u32::MAX));
                let index = self
                    .writer
                    .min(Scalar::U64, index.bitcast(Scalar::U64), most);
                self.writer.convert(Scalar::U64, Scalar::U32, index)
            }
            Class::Half => self.writer.convert(
                scalar,
                if scalar.is_signed() {
                    Scalar::I32
                } else {
                    Scalar::U32
                },
                index,
            ),
            _ => index.bitcast(Scalar::U32),
        };
        match (self.options.index, length) {
            (IndexPolicy::Clamp, Some(length)) => {
                let last = match length {
                    Operand::Immediate(scalar, count) => Operand::Immediate(scalar, count - 1),
                    length => self.writer.sub(Scalar::U32, length, Operand::u32(1)),
                };
                self.writer.min(Scalar::U32, index, last)
            }
            _ => index,
        }
    }

    /// Reads the value at a place.
    pub fn load(&mut self, place: &PointerTarget, inner: &TypeInner) -> Result<Vec<Operand>> {
        match place {
            PointerTarget::Registers {
                variable,
                first,
                dynamic_indices,
            } => {
                let scalars = shape::scalars(self.module, inner)?;
                Ok((0..scalars.len())
                    .map(|i| self.load_register(*variable, first + i, dynamic_indices, scalars[i]))
                    .collect())
            }
            PointerTarget::Memory {
                space,
                address,
                offset,
                ..
            } => {
                let (base, offset) = self.near(*address, *offset);
                let mut values = Vec::new();
                for run in shape::runs(self.module, inner)? {
                    self.load_run(*space, base, offset + i64::from(run.byte), run, &mut values);
                }
                Ok(values)
            }
        }
    }

    /// Writes a value to a place.
    pub fn store(
        &mut self,
        place: &PointerTarget,
        inner: &TypeInner,
        values: &[Operand],
    ) -> Result<()> {
        match place {
            PointerTarget::Registers {
                variable,
                first,
                dynamic_indices,
            } => {
                for (i, &value) in values.iter().enumerate() {
                    self.store_register(*variable, first + i, dynamic_indices, value);
                }
            }
            PointerTarget::Memory {
                space,
                address,
                offset,
                ..
            } => {
                let (base, offset) = self.near(*address, *offset);
                let mut values = values;
                for run in shape::runs(self.module, inner)? {
                    let (now, later) = values.split_at(run.count as usize);
                    self.store_run(*space, base, offset + i64::from(run.byte), run, now);
                    values = later;
                }
            }
        }
        Ok(())
    }

    /// The scalar at `first`, moved on by the run-time indices; copied, since the variable may
    /// change.
    fn load_register(
        &mut self,
        variable: usize,
        first: usize,
        dynamics: &[DynamicIndex],
        scalar: Scalar,
    ) -> Operand {
        let Some((dynamic, rest)) = dynamics.split_first() else {
            let to = self.writer.register(scalar);
            let from = self.variables[variable][first];
            self.writer.assign(to, from);
            return to;
        };
        let last = first + (dynamic.count as usize - 1) * dynamic.scalars;
        let mut value = self.load_register(variable, last, rest, scalar);
        for choice in (0..dynamic.count - 1).rev() {
            let candidate = self.load_register(
                variable,
                first + choice as usize * dynamic.scalars,
                rest,
                scalar,
            );
            let here = self.writer.compare(
                Comparison::Eq,
                Scalar::U32,
                dynamic.index,
                Operand::u32(choice),
            );
            value = self.writer.select(scalar, here, candidate, value);
        }
        value
    }

    fn store_register(
        &mut self,
        variable: usize,
        first: usize,
        dynamics: &[DynamicIndex],
        value: Operand,
    ) {
        let mut choices = vec![(first, None)];
        for dynamic in dynamics {
            let mut finer = Vec::new();
            for choice in 0..dynamic.count {
                let here = self.writer.compare(
                    Comparison::Eq,
                    Scalar::U32,
                    dynamic.index,
                    Operand::u32(choice),
                );
                for &(first, condition) in &choices {
                    let both = condition.map_or(here, |condition| {
                        self.writer.and(Scalar::Bool, condition, here)
                    });
                    finer.push((first + choice as usize * dynamic.scalars, Some(both)));
                }
            }
            choices = finer;
        }
        for (place, condition) in choices {
            let to = self.variables[variable][place];
            match condition {
                None => self.writer.assign(to, value),
                Some(condition) => self.assign_if(condition, to, value),
            }
        }
    }

    fn assign_if(&mut self, condition: Operand, to: Operand, value: Operand) {
        let value = self.writer.direct(value).bits();
        let Operand::Register(class, _) = to else {
            return;
        };
        self.writer.line(format_args!(
            "@{condition} mov.{} {to}, {value}",
            class.bits()
        ));
    }

    /// Base and offset such that every access within 2³⁰ bytes of them has an offset that
    /// instructions can encode.
    fn near(&mut self, address: Operand, offset: i64) -> (Operand, i64) {
        if offset < 1 << 30 {
            return (address, offset);
        }
        let address = self.writer.in_register(address);
        let address = self
            .writer
            .add(Scalar::I64, address, Operand::u64(offset.cast_unsigned()));
        (address, 0)
    }

    fn load_run(
        &mut self,
        space: Space,
        base: Operand,
        offset: i64,
        run: ScalarRun,
        values: &mut Vec<Operand>,
    ) {
        let cache = if space == (Space::Global { constant: true }) {
            ".nc"
        } else {
            ""
        };
        for (first, width) in vector_accesses(run) {
            let at = address(base, offset + i64::from(first * run.scalar.bytes()));
            let kind = format!(
                "ld.{}{cache}{}.{}",
                space.name(),
                vector_suffix(width),
                memory_type(run.scalar)
            );
            if run.scalar == Scalar::Bool {
                let word = self.writer.register(Scalar::U32);
                self.writer.line(format_args!("{kind} {word}, {at}"));
                values.push(self.writer.compare(
                    Comparison::Ne,
                    Scalar::U32,
                    word,
                    Operand::u32(0),
                ));
                continue;
            }
            let registers: Vec<Operand> = (0..width)
                .map(|_| self.writer.register(run.scalar))
                .collect();
            self.writer
                .line(format_args!("{kind} {}, {at}", group(&registers)));
            values.extend(registers);
        }
    }

    fn store_run(
        &mut self,
        space: Space,
        base: Operand,
        offset: i64,
        run: ScalarRun,
        values: &[Operand],
    ) {
        for (first, width) in vector_accesses(run) {
            let at = address(base, offset + i64::from(first * run.scalar.bytes()));
            let parts: Vec<Operand> = (first..first + width)
                .map(|i| self.memory_form(run.scalar, values[i as usize]))
                .collect();
            let kind = format!(
                "st.{}{}.{}",
                space.name(),
                vector_suffix(width),
                memory_type(run.scalar)
            );
            self.writer
                .line(format_args!("{kind} {at}, {}", group(&parts)));
        }
    }

    /// The operand that a store takes: a bool is a byte of 0 or 1.
    fn memory_form(&mut self, scalar: Scalar, value: Operand) -> Operand {
        if scalar == Scalar::Bool {
            return self
                .writer
                .select(Scalar::U32, value, Operand::u32(1), Operand::u32(0));
        }
        self.writer.direct(value).bits()
    }
}

/// `[base+offset]`
pub(crate) fn address(base: Operand, offset: i64) -> String {
    if offset == 0 {
        format!("[{base}]")
    } else {
        format!("[{base}+{offset}]")
    }
}

fn memory_type(scalar: Scalar) -> &'static str {
    if scalar == Scalar::Bool {
        "u8"
    } else {
        scalar.bits()
    }
}

fn vector_suffix(width: u32) -> &'static str {
    match width {
        4 => ".v4",
        2 => ".v2",
        _ => "",
    }
}

fn group(operands: &[Operand]) -> String {
    match operands {
        [one] => one.to_string(),
        many => format!(
            "{{{}}}",
            many.iter()
                .map(Operand::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        ),
    }
}

/// Splits a run into accesses of at most 16 bytes, first component and width: WGSL aligns a vector
/// of two to its size and those of three and four to four components.
fn vector_accesses(run: ScalarRun) -> Vec<(u32, u32)> {
    let widest = if run.scalar == Scalar::Bool {
        1
    } else {
        16 / run.scalar.bytes()
    };
    match (run.count, widest) {
        (4, 4..) => vec![(0, 4)],
        (4, 2) => vec![(0, 2), (2, 2)],
        (3, 2..) => vec![(0, 2), (2, 1)],
        (2, 2..) => vec![(0, 2)],
        (count, _) => (0..count).map(|i| (i, 1)).collect(),
    }
}
