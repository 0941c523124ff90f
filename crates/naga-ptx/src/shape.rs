//! Decomposition of types: into scalars for values in registers, into bytes for memory.

use naga::proc::{Alignment, IndexableLength};
use naga::{ArraySize, Handle, Module, Type, TypeInner, VectorSize};

use crate::error::{Error, Result};
use crate::scalar::Scalar;

/// A part of a composite: its type, and where it begins among the composite's scalars and bytes.
pub(crate) struct Member {
    pub inner: TypeInner,
    pub first: usize,
    pub byte: u32,
}

/// Consecutive scalars in memory that one vector access may cover.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScalarRun {
    pub byte: u32,
    pub scalar: Scalar,
    pub count: u32,
}

/// The repeated part of a vector, matrix or array.
pub(crate) struct Element {
    pub inner: TypeInner,
    /// Scalars in each.
    pub scalars: usize,
    /// Bytes from one to the next.
    pub stride: u32,
    /// Their number; none for a run-time array.
    pub count: Option<u32>,
}

/// The type's scalar, or the error that names it.
pub(crate) fn scalar_of(scalar: naga::Scalar) -> Result<Scalar> {
    Scalar::of(scalar).ok_or_else(|| {
        let name = format!("type {:?} of {} bytes", scalar.kind, scalar.width);
        Error::unsupported(name, naga::Span::UNDEFINED)
    })
}

/// The scalars of a value, in order.
pub(crate) fn scalars(module: &Module, inner: &TypeInner) -> Result<Vec<Scalar>> {
    let mut list = Vec::new();
    for run in runs(module, inner)? {
        list.extend(std::iter::repeat_n(run.scalar, run.count as usize));
    }
    Ok(list)
}

/// The number of scalars of a value.
pub(crate) fn count(module: &Module, inner: &TypeInner) -> Result<usize> {
    Ok(match inner {
        TypeInner::Scalar(_) | TypeInner::Atomic(_) => 1,
        TypeInner::Vector { size, .. } => *size as usize,
        TypeInner::Matrix { columns, rows, .. } => *columns as usize * *rows as usize,
        TypeInner::Array { base, size, .. } => {
            length(module, size)? as usize * count(module, &module.types[*base].inner)?
        }
        TypeInner::Struct { members, .. } => {
            let mut total = 0;
            for member in members {
                total += count(module, &module.types[member.ty].inner)?;
            }
            total
        }
        other => return Err(unsupported_type(other)),
    })
}

/// The runs of a value in memory, in the order of its scalars.
pub(crate) fn runs(module: &Module, inner: &TypeInner) -> Result<Vec<ScalarRun>> {
    let mut list = Vec::new();
    add_runs(module, inner, 0, &mut list)?;
    Ok(list)
}

fn add_runs(
    module: &Module,
    inner: &TypeInner,
    byte: u32,
    list: &mut Vec<ScalarRun>,
) -> Result<()> {
    match *inner {
        TypeInner::Scalar(scalar) | TypeInner::Atomic(scalar) => {
            list.push(ScalarRun {
                byte,
                scalar: scalar_of(scalar)?,
                count: 1,
            });
        }
        TypeInner::Vector { size, scalar } => list.push(ScalarRun {
            byte,
            scalar: scalar_of(scalar)?,
            count: size as u32,
        }),
        TypeInner::Matrix {
            columns,
            rows,
            scalar,
        } => {
            let stride = column_stride(rows, scalar);
            let scalar = scalar_of(scalar)?;
            list.extend((0..columns as u32).map(|column| ScalarRun {
                byte: byte + column * stride,
                scalar,
                count: rows as u32,
            }));
        }
        TypeInner::Array {
            base,
            ref size,
            stride,
        } => {
            for index in 0..length(module, size)? {
                add_runs(
                    module,
                    &module.types[base].inner,
                    byte + index * stride,
                    list,
                )?;
            }
        }
        TypeInner::Struct { ref members, .. } => {
            for member in members {
                add_runs(
                    module,
                    &module.types[member.ty].inner,
                    byte + member.offset,
                    list,
                )?;
            }
        }
        ref other => return Err(unsupported_type(other)),
    }
    Ok(())
}

/// The part of a composite at a constant index.
pub(crate) fn part(module: &Module, inner: &TypeInner, index: u32) -> Result<Member> {
    if let TypeInner::Struct { members, .. } = inner {
        let member = &members[index as usize];
        let mut first = 0;
        for earlier in &members[..index as usize] {
            first += count(module, &module.types[earlier.ty].inner)?;
        }
        return Ok(Member {
            inner: module.types[member.ty].inner.clone(),
            first,
            byte: member.offset,
        });
    }
    let element = element(module, inner)?;
    Ok(Member {
        first: element.scalars * index as usize,
        byte: element.stride * index,
        inner: element.inner,
    })
}

/// The repeated part of a vector, matrix or array.
pub(crate) fn element(module: &Module, inner: &TypeInner) -> Result<Element> {
    Ok(match *inner {
        TypeInner::Vector { size, scalar } => Element {
            inner: TypeInner::Scalar(scalar),
            scalars: 1,
            stride: u32::from(scalar.width),
            count: Some(size as u32),
        },
        TypeInner::Matrix {
            columns,
            rows,
            scalar,
        } => Element {
            inner: TypeInner::Vector { size: rows, scalar },
            scalars: rows as usize,
            stride: column_stride(rows, scalar),
            count: Some(columns as u32),
        },
        TypeInner::Array {
            base,
            ref size,
            stride,
        } => Element {
            inner: module.types[base].inner.clone(),
            scalars: count(module, &module.types[base].inner)?,
            stride,
            count: if *size == ArraySize::Dynamic {
                None
            } else {
                Some(length(module, size)?)
            },
        },
        ref other => return Err(unsupported_type(other)),
    })
}

/// The offset and the stride of the run-time array at the end of a buffer's type.
pub(crate) fn runtime_array(module: &Module, ty: Handle<Type>) -> Option<(u32, u32)> {
    match &module.types[ty].inner {
        TypeInner::Array {
            size: ArraySize::Dynamic,
            stride,
            ..
        } => Some((0, *stride)),
        TypeInner::Struct { members, .. } => {
            let last = members.last()?;
            runtime_array(module, last.ty).map(|(_, stride)| (last.offset, stride))
        }
        _ => None,
    }
}

/// Whether a type is or holds an array.
pub(crate) fn holds_array(module: &Module, inner: &TypeInner) -> bool {
    match inner {
        TypeInner::Array { .. } => true,
        TypeInner::Struct { members, .. } => members
            .iter()
            .any(|member| holds_array(module, &module.types[member.ty].inner)),
        _ => false,
    }
}

fn column_stride(rows: VectorSize, scalar: naga::Scalar) -> u32 {
    Alignment::from(rows) * u32::from(scalar.width)
}

fn length(module: &Module, size: &ArraySize) -> Result<u32> {
    match size.resolve(module.to_ctx()) {
        Ok(IndexableLength::Known(length)) => Ok(length),
        Ok(IndexableLength::Dynamic) => Err(Error::unsupported(
            "run-time array as a value",
            naga::Span::UNDEFINED,
        )),
        Err(error) => Err(Error::unsupported(
            format!("array size: {error}"),
            naga::Span::UNDEFINED,
        )),
    }
}

fn unsupported_type(inner: &TypeInner) -> Error {
    let name = match inner {
        TypeInner::Image { .. } => "texture",
        TypeInner::Sampler { .. } => "sampler",
        TypeInner::AccelerationStructure { .. } => "acceleration structure",
        TypeInner::RayQuery { .. } => "ray query",
        TypeInner::BindingArray { .. } => "binding array",
        TypeInner::CooperativeMatrix { .. } => "cooperative matrix",
        TypeInner::Pointer { .. } | TypeInner::ValuePointer { .. } => "pointer as a value",
        _ => "type",
    };
    Error::unsupported(name, naga::Span::UNDEFINED)
}
