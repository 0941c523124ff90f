//! Expressions: from naga's tree to registers.

use naga::{
    ArraySize, BinaryOperator, BuiltIn, Expression, Handle, Literal, RelationalFunction, Span,
    TypeInner, UnaryOperator,
};

use crate::arithmetic::Comparison;
use crate::cast;
use crate::error::{Error, Result};
use crate::pointer_target::PointerTarget;
use crate::scalar::Scalar;
use crate::shape;
use crate::translator::{Entry, Translator};
use crate::writer::Operand;

impl Translator<'_> {
    /// The expression's entry: the emitted code's result, or a value that needs no code.
    pub fn entry_of(&mut self, handle: Handle<Expression>) -> Result<Entry> {
        match self.frame.entries.get(&handle) {
            Some(entry) => Ok(entry.clone()),
            None => self.evaluate(handle),
        }
    }

    /// The scalars of a value.
    pub fn value(&mut self, handle: Handle<Expression>) -> Result<Vec<Operand>> {
        match self.entry_of(handle)? {
            Entry::Value(values) => Ok(values),
            Entry::Pointer(_) => Err(self.refuse("pointer as a value", handle)),
        }
    }

    pub fn scalar_value(&mut self, handle: Handle<Expression>) -> Result<Operand> {
        Ok(self.value(handle)?[0])
    }

    pub fn pointer(&mut self, handle: Handle<Expression>) -> Result<PointerTarget> {
        match self.entry_of(handle)? {
            Entry::Pointer(place) => Ok(place),
            Entry::Value(_) => Err(self.refuse("value as a pointer", handle)),
        }
    }

    /// The type of an expression.
    pub fn inner(&self, handle: Handle<Expression>) -> TypeInner {
        self.frame.info[handle]
            .ty
            .inner_with(&self.module.types)
            .clone()
    }

    /// The type that a pointer expression points to.
    pub fn pointee(&self, handle: Handle<Expression>) -> Result<TypeInner> {
        match self.inner(handle) {
            TypeInner::Pointer { base, .. } => Ok(self.module.types[base].inner.clone()),
            TypeInner::ValuePointer {
                size: Some(size),
                scalar,
                ..
            } => Ok(TypeInner::Vector { size, scalar }),
            TypeInner::ValuePointer {
                size: None, scalar, ..
            } => Ok(TypeInner::Scalar(scalar)),
            _ => Err(self.refuse("value as a pointer", handle)),
        }
    }

    /// The scalar type of a scalar, vector or matrix expression.
    pub fn scalar(&self, handle: Handle<Expression>) -> Result<Scalar> {
        let inner = self.inner(handle);
        let scalar = inner
            .scalar()
            .ok_or_else(|| self.refuse("operand without a scalar type", handle))?;
        shape::scalar_of(scalar)
    }

    pub fn refuse(&self, what: impl Into<String>, handle: Handle<Expression>) -> Error {
        Error::unsupported(what, self.frame.function.expressions.get_span(handle))
    }

    /// Writes the code of an expression.
    pub fn evaluate(&mut self, handle: Handle<Expression>) -> Result<Entry> {
        let values = match self.frame.function.expressions[handle] {
            Expression::Literal(literal) => vec![self.literal(literal)?],
            Expression::Constant(constant) => {
                self.constant(self.module.constants[constant].init)?
            }
            Expression::ZeroValue(ty) => self.zero_value(&self.module.types[ty].inner)?,
            Expression::Compose { ref components, .. } => {
                let parts = components
                    .iter()
                    .map(|&part| self.value(part))
                    .collect::<Result<Vec<_>>>()?;
                parts.concat()
            }
            Expression::Splat { size, value } => vec![self.scalar_value(value)?; size as usize],
            Expression::Swizzle {
                size,
                vector,
                pattern,
            } => {
                let values = self.value(vector)?;
                pattern[..size as usize]
                    .iter()
                    .map(|component| values[component.index() as usize])
                    .collect()
            }
            Expression::FunctionArgument(number) => {
                return Ok(self.frame.arguments[number as usize].clone());
            }
            Expression::GlobalVariable(variable) => {
                let place = self.globals.get(&variable).cloned();
                return place
                    .map(Entry::Pointer)
                    .ok_or_else(|| self.refuse("variable without memory", handle));
            }
            Expression::LocalVariable(variable) => {
                return Ok(Entry::Pointer(self.frame.locals[&variable].clone()));
            }
            Expression::Access { base, index } => return self.access(base, index),
            Expression::AccessIndex { base, index } => return self.access_index(base, index),
            Expression::Load { pointer } => self.load_expression(pointer)?,
            Expression::Unary { op, expr } => self.unary(op, expr)?,
            Expression::Binary { op, left, right } => self.binary(op, left, right)?,
            Expression::Select {
                condition,
                accept,
                reject,
            } => self.select(condition, accept, reject)?,
            Expression::Relational { fun, argument } => self.relational(fun, argument)?,
            Expression::Math {
                fun,
                arg,
                arg1,
                arg2,
                arg3,
            } => self.math(handle, fun, arg, [arg1, arg2, arg3])?,
            Expression::As {
                expr,
                kind,
                convert,
            } => self.cast(expr, kind, convert)?,
            Expression::ArrayLength(pointer) => match self.pointer(pointer)? {
                PointerTarget::Memory {
                    length: Some(length),
                    ..
                } => vec![length],
                _ => return Err(self.refuse("arrayLength of a sized array", handle)),
            },
            ref other => return Err(self.refuse(refused(other), handle)),
        };
        Ok(Entry::Value(values))
    }

    fn literal(&self, literal: Literal) -> Result<Operand> {
        Ok(match literal {
            Literal::F64(value) => Operand::float(Scalar::F64, value),
            Literal::F32(value) => Operand::Immediate(Scalar::F32, u64::from(value.to_bits())),
            Literal::F16(value) => Operand::Immediate(Scalar::F16, u64::from(value.to_bits())),
            Literal::U32(value) => Operand::u32(value),
            Literal::I32(value) => Operand::i32(value),
            Literal::U64(value) => Operand::u64(value),
            Literal::I64(value) => Operand::integer(Scalar::I64, i128::from(value)),
            Literal::I16(value) => Operand::integer(Scalar::I16, i128::from(value)),
            Literal::U16(value) => Operand::integer(Scalar::U16, i128::from(value)),
            Literal::Bool(value) => Operand::Immediate(Scalar::Bool, u64::from(value)),
            other => {
                return Err(Error::unsupported(
                    format!("literal {other:?}"),
                    Span::UNDEFINED,
                ));
            }
        })
    }

    /// The scalars of a module-level constant expression.
    pub fn constant(&self, handle: Handle<Expression>) -> Result<Vec<Operand>> {
        let span = self.module.global_expressions.get_span(handle);
        match self.module.global_expressions[handle] {
            Expression::Literal(literal) => {
                Ok(vec![self.literal(literal).map_err(|error| error.at(span))?])
            }
            Expression::Constant(constant) => self.constant(self.module.constants[constant].init),
            Expression::ZeroValue(ty) => self.zero_value(&self.module.types[ty].inner),
            Expression::Compose { ref components, .. } => {
                let parts = components
                    .iter()
                    .map(|&part| self.constant(part))
                    .collect::<Result<Vec<_>>>()?;
                Ok(parts.concat())
            }
            Expression::Splat { size, value } => Ok(vec![self.constant(value)?[0]; size as usize]),
            ref other => Err(Error::unsupported(
                format!("constant expression {}", refused(other)),
                span,
            )),
        }
    }

    fn zero_value(&self, inner: &TypeInner) -> Result<Vec<Operand>> {
        Ok(shape::scalars(self.module, inner)?
            .into_iter()
            .map(cast::zero)
            .collect())
    }

    /// `base[index]` at run time, of a pointer or of a value.
    fn access(&mut self, base: Handle<Expression>, index: Handle<Expression>) -> Result<Entry> {
        let scalar = self.scalar(index)?;
        let at = self.scalar_value(index)?;
        match self.entry_of(base)? {
            Entry::Pointer(place) => {
                let inner = self.pointee(base)?;
                Ok(Entry::Pointer(
                    self.place_element(&place, &inner, at, scalar)?,
                ))
            }
            Entry::Value(values) => {
                let inner = self.inner(base);
                let place = self.spill(&inner, &values)?;
                let place = self.place_element(&place, &inner, at, scalar)?;
                let element = shape::element(self.module, &inner)?.inner;
                Ok(Entry::Value(self.load(&place, &element)?))
            }
        }
    }

    /// A value as a variable: vectors and matrices stay in registers, arrays go to local memory.
    fn spill(&mut self, inner: &TypeInner, values: &[Operand]) -> Result<PointerTarget> {
        if let TypeInner::Vector { .. } | TypeInner::Matrix { .. } = inner {
            self.variables.push(values.to_vec());
            return Ok(PointerTarget::Registers {
                variable: self.variables.len() - 1,
                first: 0,
                dynamic_indices: Vec::new(),
            });
        }
        let place = self.new_local(inner)?;
        self.store(&place, inner, values)?;
        Ok(place)
    }

    fn access_index(&mut self, base: Handle<Expression>, index: u32) -> Result<Entry> {
        match self.entry_of(base)? {
            Entry::Pointer(place) => {
                let inner = self.pointee(base)?;
                Ok(Entry::Pointer(self.place_part(&place, &inner, index)?))
            }
            Entry::Value(values) => {
                let part = shape::part(self.module, &self.inner(base), index)?;
                let count = shape::count(self.module, &part.inner)?;
                Ok(Entry::Value(
                    values[part.first..part.first + count].to_vec(),
                ))
            }
        }
    }

    fn load_expression(&mut self, pointer: Handle<Expression>) -> Result<Vec<Operand>> {
        let place = self.pointer(pointer)?;
        let inner = self.pointee(pointer)?;
        if matches!(inner, TypeInner::Atomic(_)) {
            return Ok(vec![self.atomic_load(&place, &inner)?]);
        }
        if matches!(
            inner,
            TypeInner::Array {
                size: ArraySize::Dynamic,
                ..
            }
        ) {
            return Err(self.refuse("load of a run-time array", pointer));
        }
        self.load(&place, &inner)
    }

    fn unary(&mut self, op: UnaryOperator, expr: Handle<Expression>) -> Result<Vec<Operand>> {
        let scalar = self.scalar(expr)?;
        let values = self.value(expr)?;
        Ok(values
            .into_iter()
            .map(|value| match op {
                UnaryOperator::Negate => self.writer.neg(scalar, value),
                UnaryOperator::LogicalNot | UnaryOperator::BitwiseNot => {
                    self.writer.not(scalar, value)
                }
            })
            .collect())
    }

    fn binary(
        &mut self,
        op: BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
    ) -> Result<Vec<Operand>> {
        let (left_inner, right_inner) = (self.inner(left), self.inner(right));
        let (a, b) = (self.value(left)?, self.value(right)?);
        let scalar = self.scalar(left)?;
        if op == BinaryOperator::Multiply
            && let Some(product) =
                self.matrix_product(scalar, (&left_inner, &a), (&right_inner, &b))
        {
            return Ok(product);
        }
        let count = a.len().max(b.len());
        Ok((0..count)
            .map(|i| self.scalar_binary(op, scalar, at(&a, i), at(&b, i)))
            .collect())
    }

    fn scalar_binary(
        &mut self,
        op: BinaryOperator,
        scalar: Scalar,
        a: Operand,
        b: Operand,
    ) -> Operand {
        let w = &mut self.writer;
        match op {
            BinaryOperator::Add => w.add(scalar, a, b),
            BinaryOperator::Subtract => w.sub(scalar, a, b),
            BinaryOperator::Multiply => w.mul(scalar, a, b),
            BinaryOperator::Divide if scalar.is_float() => w.div(scalar, a, b),
            BinaryOperator::Divide => w.integer_div(scalar, a, b),
            BinaryOperator::Modulo if scalar.is_float() => w.float_rem(scalar, a, b),
            BinaryOperator::Modulo => w.integer_rem(scalar, a, b),
            BinaryOperator::Equal => w.compare(Comparison::Eq, scalar, a, b),
            BinaryOperator::NotEqual => w.compare(Comparison::Ne, scalar, a, b),
            BinaryOperator::Less => w.compare(Comparison::Lt, scalar, a, b),
            BinaryOperator::LessEqual => w.compare(Comparison::Le, scalar, a, b),
            BinaryOperator::Greater => w.compare(Comparison::Gt, scalar, a, b),
            BinaryOperator::GreaterEqual => w.compare(Comparison::Ge, scalar, a, b),
            BinaryOperator::And | BinaryOperator::LogicalAnd => w.and(scalar, a, b),
            BinaryOperator::InclusiveOr | BinaryOperator::LogicalOr => w.or(scalar, a, b),
            BinaryOperator::ExclusiveOr => w.xor(scalar, a, b),
            BinaryOperator::ShiftLeft => {
                let amount = self.shift_amount(scalar, b);
                self.writer.shift_left(scalar, a, amount)
            }
            BinaryOperator::ShiftRight => {
                let amount = self.shift_amount(scalar, b);
                self.writer.shift_right(scalar, a, amount)
            }
        }
    }

    /// WGSL takes shift amounts modulo the width; PTX does not.
    fn shift_amount(&mut self, scalar: Scalar, amount: Operand) -> Operand {
        let mask = scalar.bytes() * 8 - 1;
        match amount {
            Operand::Immediate(_, bits) => Operand::u32(bits as u32 & mask),
            amount => self.writer.and(Scalar::U32, amount, Operand::u32(mask)),
        }
    }

    fn select(
        &mut self,
        condition: Handle<Expression>,
        accept: Handle<Expression>,
        reject: Handle<Expression>,
    ) -> Result<Vec<Operand>> {
        let scalar = self.scalar(accept)?;
        let (condition, accept, reject) = (
            self.value(condition)?,
            self.value(accept)?,
            self.value(reject)?,
        );
        Ok((0..accept.len())
            .map(|i| {
                self.writer
                    .select(scalar, at(&condition, i), accept[i], reject[i])
            })
            .collect())
    }

    fn relational(
        &mut self,
        fun: RelationalFunction,
        argument: Handle<Expression>,
    ) -> Result<Vec<Operand>> {
        let scalar = self.scalar(argument)?;
        let values = self.value(argument)?;
        let w = &mut self.writer;
        let fold = |w: &mut crate::writer::Writer, join: fn(&mut crate::writer::Writer, Scalar, Operand, Operand) -> Operand| {
            values[1..].iter().fold(values[0], |all, &value| join(w, Scalar::Bool, all, value))
        };
        Ok(match fun {
            RelationalFunction::All => vec![fold(w, crate::writer::Writer::and)],
            RelationalFunction::Any => vec![fold(w, crate::writer::Writer::or)],
            RelationalFunction::IsNan => values
                .iter()
                .map(|&value| w.is_nan(scalar, value))
                .collect(),
            RelationalFunction::IsInf => values
                .iter()
                .map(|&value| w.is_infinite(scalar, value))
                .collect(),
        })
    }

    fn cast(
        &mut self,
        expr: Handle<Expression>,
        kind: naga::ScalarKind,
        convert: Option<naga::Bytes>,
    ) -> Result<Vec<Operand>> {
        let from = self.scalar(expr)?;
        let width = convert.unwrap_or(from.bytes() as u8);
        let to = shape::scalar_of(naga::Scalar { kind, width })?;
        let values = self.value(expr)?;
        if convert.is_none() && from.class() == to.class() {
            return Ok(values.into_iter().map(|value| value.bitcast(to)).collect());
        }
        Ok(values
            .into_iter()
            .map(|value| self.writer.convert(from, to, value))
            .collect())
    }

    /// The entry point's arguments: built-in values, alone or in structs.
    pub fn entry_arguments(&mut self) -> Result<Vec<Entry>> {
        let function = self.frame.function;
        let mut entries = Vec::new();
        for argument in &function.arguments {
            let values = match (&argument.binding, &self.module.types[argument.ty].inner) {
                (Some(naga::Binding::BuiltIn(builtin)), _) => self.builtin(*builtin)?,
                (None, TypeInner::Struct { members, .. }) => {
                    let mut values = Vec::new();
                    for member in members {
                        match member.binding {
                            Some(naga::Binding::BuiltIn(builtin)) => {
                                values.extend(self.builtin(builtin)?)
                            }
                            _ => {
                                return Err(Error::unsupported(
                                    "entry point input that is no built-in value",
                                    Span::UNDEFINED,
                                ));
                            }
                        }
                    }
                    values
                }
                _ => {
                    return Err(Error::unsupported(
                        "entry point input that is no built-in value",
                        Span::UNDEFINED,
                    ));
                }
            };
            entries.push(Entry::Value(values));
        }
        Ok(entries)
    }

    fn builtin(&mut self, builtin: BuiltIn) -> Result<Vec<Operand>> {
        let [x, y, z] = self.entry.workgroup_size;
        let size = [x, y, z].map(Operand::u32);
        Ok(match builtin {
            BuiltIn::LocalInvocationId => self.special("tid").to_vec(),
            BuiltIn::WorkGroupId => self.special("ctaid").to_vec(),
            BuiltIn::NumWorkGroups => self.special("nctaid").to_vec(),
            BuiltIn::WorkGroupSize => size.to_vec(),
            BuiltIn::GlobalInvocationId => {
                let (thread, group) = (self.special("tid"), self.special("ctaid"));
                (0..3)
                    .map(|i| {
                        self.writer
                            .op("mad.lo.u32", Scalar::U32, &[group[i], size[i], thread[i]])
                    })
                    .collect()
            }
            BuiltIn::LocalInvocationIndex => vec![self.local_index()],
            BuiltIn::SubgroupSize => vec![Operand::u32(32)],
            BuiltIn::NumSubgroups => vec![Operand::u32((x * y * z).div_ceil(32))],
            BuiltIn::SubgroupInvocationId => {
                vec![
                    self.writer
                        .op("mov.u32", Scalar::U32, &[Operand::Symbol("%laneid")]),
                ]
            }
            BuiltIn::SubgroupId => {
                let index = self.local_index();
                vec![self.writer.shift_right(Scalar::U32, index, Operand::u32(5))]
            }
            other => {
                return Err(Error::unsupported(
                    format!("built-in value {other:?}"),
                    Span::UNDEFINED,
                ));
            }
        })
    }

    fn special(&mut self, name: &str) -> [Operand; 3] {
        ["x", "y", "z"].map(|axis| {
            let to = self.writer.register(Scalar::U32);
            self.writer
                .line(format_args!("mov.u32 {to}, %{name}.{axis}"));
            to
        })
    }

    /// The invocation's index in its workgroup, x fastest.
    pub fn local_index(&mut self) -> Operand {
        let [x, y, z] = self.entry.workgroup_size;
        let [i, j, k] = self.special("tid");
        let row = if z > 1 {
            self.writer
                .op("mad.lo.u32", Scalar::U32, &[k, Operand::u32(y), j])
        } else {
            j
        };
        if y * z > 1 {
            self.writer
                .op("mad.lo.u32", Scalar::U32, &[row, Operand::u32(x), i])
        } else {
            i
        }
    }
}

/// The component of a vector, or the scalar that is used for all components.
pub(crate) fn at(values: &[Operand], index: usize) -> Operand {
    if values.len() == 1 {
        values[0]
    } else {
        values[index]
    }
}

fn refused(expression: &Expression) -> &'static str {
    match expression {
        Expression::Override(_) => "unresolved override",
        Expression::ImageSample { .. } => "texture sampling",
        Expression::ImageLoad { .. } => "textureLoad",
        Expression::ImageQuery { .. } => "texture query",
        Expression::Derivative { .. } => "derivative",
        Expression::RayQueryProceedResult
        | Expression::RayQueryGetIntersection { .. }
        | Expression::RayQueryVertexPositions { .. } => "ray query",
        Expression::CooperativeLoad { .. } | Expression::CooperativeMultiplyAdd { .. } => {
            "cooperative matrix"
        }
        _ => "expression outside its statement",
    }
}

impl crate::writer::Writer {
    /// By its bits, as the rest of WGSL treats NaN.
    fn is_nan(&mut self, scalar: Scalar, value: Operand) -> Operand {
        let wide = self.widened(scalar, value);
        self.op(
            format_args!("setp.nan.{}", wide.0.suffix()),
            Scalar::Bool,
            &[wide.1, wide.1],
        )
    }

    fn is_infinite(&mut self, scalar: Scalar, value: Operand) -> Operand {
        let (scalar, value) = self.widened(scalar, value);
        let magnitude = self.abs(scalar, value);
        self.compare(
            Comparison::Eq,
            scalar,
            magnitude,
            Operand::float(scalar, f64::INFINITY),
        )
    }

    /// f16 as f32.
    fn widened(&mut self, scalar: Scalar, value: Operand) -> (Scalar, Operand) {
        match scalar {
            Scalar::F16 => (Scalar::F32, self.convert(Scalar::F16, Scalar::F32, value)),
            _ => (scalar, value),
        }
    }
}
