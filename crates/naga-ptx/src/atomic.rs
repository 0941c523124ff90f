//! Atomic operations. WGSL's are relaxed; on buffers they are atomic for the whole device, on
//! workgroup memory for the workgroup.

use naga::{AtomicFunction, Expression, Handle, TypeInner};

use crate::arithmetic::Comparison;
use crate::error::Result;
use crate::place::address;
use crate::pointer_target::{PointerTarget, Space};
use crate::scalar::Scalar;
use crate::shape;
use crate::translator::{Entry, Translator};
use crate::writer::Operand;

/// State space, scope and address of an atomic variable.
struct AtomicOperand {
    space: &'static str,
    scope: &'static str,
    at: String,
}

impl Translator<'_> {
    pub fn atomic(
        &mut self,
        pointer: Handle<Expression>,
        fun: AtomicFunction,
        value: Handle<Expression>,
        result: Option<Handle<Expression>>,
    ) -> Result<()> {
        let place = self.pointer(pointer)?;
        let TypeInner::Atomic(scalar) = self.pointee(pointer)? else {
            return Err(self.refuse("atomic operation on a variable that is not atomic", pointer));
        };
        let scalar = shape::scalar_of(scalar)?;
        let target = target(&place).ok_or_else(|| {
            self.refuse("atomic operation on a variable of one invocation", pointer)
        })?;
        let operand = self.scalar_value(value)?;
        if let AtomicFunction::Exchange {
            compare: Some(compare),
        } = fun
        {
            let compare = self.scalar_value(compare)?;
            return self.compare_exchange(&target, scalar, compare, operand, result);
        }
        let Some((name, suffix)) = atomic_instruction(fun, scalar) else {
            return Err(self.refuse(format!("atomic {fun:?} of {}", scalar.suffix()), pointer));
        };
        let operand = if fun == AtomicFunction::Subtract {
            self.writer.neg(scalar, operand)
        } else {
            operand
        };
        let operand = if suffix.starts_with('b') {
            operand.bits()
        } else {
            operand
        };
        let AtomicOperand { space, scope, at } = target;
        match result {
            // A reduction returns no value and so does not wait; an exchange has no such form.
            None if !matches!(fun, AtomicFunction::Exchange { .. }) => {
                self.writer.line(format_args!(
                    "red.relaxed.{scope}.{space}.{name}.{suffix} {at}, {operand}"
                ));
            }
            _ => {
                let old = self.writer.register(scalar);
                self.writer.line(format_args!(
                    "atom.relaxed.{scope}.{space}.{name}.{suffix} {old}, {at}, {operand}"
                ));
                if let Some(result) = result {
                    self.frame.entries.insert(result, Entry::Value(vec![old]));
                }
            }
        }
        Ok(())
    }

    /// Returns the old value and whether it was the expected one.
    fn compare_exchange(
        &mut self,
        target: &AtomicOperand,
        scalar: Scalar,
        compare: Operand,
        value: Operand,
        result: Option<Handle<Expression>>,
    ) -> Result<()> {
        let old = self.writer.register(scalar);
        let AtomicOperand { space, scope, at } = target;
        let (expected, value) = (compare.bits(), value.bits());
        self.writer.line(format_args!(
            "atom.relaxed.{scope}.{space}.cas.{} {old}, {at}, {expected}, {value}",
            scalar.bits()
        ));
        if let Some(result) = result {
            let exchanged = self.writer.compare(Comparison::Eq, scalar, old, compare);
            self.frame
                .entries
                .insert(result, Entry::Value(vec![old, exchanged]));
        }
        Ok(())
    }

    pub fn atomic_load(&mut self, place: &PointerTarget, inner: &TypeInner) -> Result<Operand> {
        let scalar = shape::scalars(self.module, inner)?[0];
        let Some(AtomicOperand { space, scope, at }) = target(place) else {
            return Ok(self.load(place, inner)?[0]);
        };
        let to = self.writer.register(scalar);
        self.writer.line(format_args!(
            "ld.relaxed.{scope}.{space}.{} {to}, {at}",
            scalar.bits()
        ));
        Ok(to)
    }

    pub fn atomic_store(
        &mut self,
        place: &PointerTarget,
        inner: &TypeInner,
        value: Operand,
    ) -> Result<()> {
        let scalar = shape::scalars(self.module, inner)?[0];
        let Some(AtomicOperand { space, scope, at }) = target(place) else {
            return self.store(place, inner, &[value]);
        };
        let value = value.bits();
        self.writer.line(format_args!(
            "st.relaxed.{scope}.{space}.{} {at}, {value}",
            scalar.bits()
        ));
        Ok(())
    }
}

fn target(place: &PointerTarget) -> Option<AtomicOperand> {
    match place {
        PointerTarget::Memory {
            space: Space::Global { .. },
            address: base,
            offset,
            ..
        } => Some(AtomicOperand {
            space: "global",
            scope: "gpu",
            at: address(*base, *offset),
        }),
        PointerTarget::Memory {
            space: Space::Shared,
            address: base,
            offset,
            ..
        } => Some(AtomicOperand {
            space: "shared",
            scope: "cta",
            at: address(*base, *offset),
        }),
        _ => None,
    }
}

/// Name and type of the instruction; none if PTX has none for the type.
fn atomic_instruction(fun: AtomicFunction, scalar: Scalar) -> Option<(&'static str, &'static str)> {
    let sum = match scalar {
        Scalar::I32 | Scalar::U32 => "u32",
        Scalar::I64 | Scalar::U64 => "u64",
        other => other.suffix(),
    };
    let float = scalar.is_float();
    match fun {
        AtomicFunction::Add | AtomicFunction::Subtract => Some(("add", sum)),
        AtomicFunction::Exchange { .. } => Some(("exch", scalar.bits())),
        AtomicFunction::Min if !float => Some(("min", scalar.suffix())),
        AtomicFunction::Max if !float => Some(("max", scalar.suffix())),
        AtomicFunction::And if !float => Some(("and", scalar.bits())),
        AtomicFunction::InclusiveOr if !float => Some(("or", scalar.bits())),
        AtomicFunction::ExclusiveOr if !float => Some(("xor", scalar.bits())),
        _ => None,
    }
}
