//! The shapes that a program can be recognised as.

use std::fmt;

use super::element::Elements;
use crate::{BinaryOp, BufferDeclaration, BufferIndex, Checked, LaunchConfig, ReduceOp, Type};

/// Lanes of a block of a map's launch.
const BLOCK_LANES: u32 = 256;

/// A pass over elements: element i of each result is computed from element i of the inputs and
/// values that are the same for all.
#[derive(Debug, Clone)]
pub struct Map {
    pub(super) program: Checked,
    launch: LaunchConfig,
    pub(super) elements: Elements,
}

impl Map {
    /// The map of some elements of a program's buffers.
    pub(super) fn of(
        elements: Elements,
        name: &str,
        buffers: &[BufferDeclaration],
    ) -> std::result::Result<Map, String> {
        let program = elements
            .program(name, buffers)?
            .check()
            .map_err(|error| error.to_string())?;
        let count = u32::try_from(elements.count).map_err(|_| {
            format!(
                "{} elements are more than a launch has lanes",
                elements.count
            )
        })?;
        let launch = LaunchConfig::linear(count, BLOCK_LANES);
        launch.check().map_err(|error| error.to_string())?;
        Ok(Map {
            program,
            launch,
            elements,
        })
    }

    /// The pass as a program of one lane per element, every access to `[b]` or to a constant
    /// offset.
    pub fn program(&self) -> &Checked {
        &self.program
    }

    /// A launch of one lane per element.
    pub fn launch(&self) -> &LaunchConfig {
        &self.launch
    }

    /// The count of elements.
    pub fn elements(&self) -> u64 {
        self.elements.count
    }
}

/// The recognised shape of a program.
#[derive(Debug, Clone)]
pub enum Shape {
    /// One pass over elements.
    ///
    /// # Proof obligations
    /// The stores to each buffer cover it, each element once; all buffers in one order. The value
    /// stored to element i is computed from loads of element i and of constant offsets, in the same
    /// way for every i. A buffer that is stored to is loaded only at the own element. No access
    /// leaves its buffer and no divisor is 0.
    Map(Map),
    /// `to[row] = op over the columns of from[row, ..]`; one row for a reduction of everything.
    ///
    /// # Proof obligations
    /// Those of the stores of a map. The value is the result of a chain of the operation, starting
    /// with its neutral element or the first element; the chain has no other reader before its end.
    /// Its elements are the whole of one buffer, each once, that is not stored to. Sums of floats:
    /// the setting allows reordering (minimum and maximum do not depend on the order).
    Reduction {
        /// The operation.
        op: ReduceOp,
        /// Of this type.
        ty: Type,
        /// Results.
        rows: u64,
        /// Elements of a result.
        cols: u64,
        /// Whether `from` is stored column by column: [cols, rows] row-major.
        columns: bool,
        /// The reduced buffer.
        from: BufferIndex,
        /// The result buffer.
        to: BufferIndex,
    },
    /// A chain over terms of one form with one result element, by one block.
    ///
    /// # Proof obligations
    /// Those of a reduction, except that the terms may be any expression allowed for elements of a
    /// map. Operations on integers, minimum and maximum do not depend on the order.
    Tree {
        /// The operation.
        op: BinaryOp,
        /// Of this type.
        ty: Type,
        /// Terms.
        count: u64,
        /// The program of the block.
        program: Checked,
        /// Its launch.
        launch: LaunchConfig,
    },
    /// `y[i] = Σ_j a[i, j]·x[j]`, `a` row-major [m, k].
    ///
    /// # Proof obligations
    /// Those of a reduction, for a chain of products of two loads; the loads of each factor are the
    /// whole of its buffer.
    Matvec {
        /// Rows.
        m: u64,
        /// Columns.
        k: u64,
        /// The element type, f32 or f64.
        ty: Type,
        /// The matrix.
        a: BufferIndex,
        /// The vector.
        x: BufferIndex,
        /// The result.
        y: BufferIndex,
    },
    /// `y[i, j] = Σ_l a[i, l]·b[l, j]`, `y` row-major [m, n].
    ///
    /// # Proof obligations
    /// Those of [`Shape::Matvec`].
    Gemm {
        /// Rows, columns and inner size.
        sizes: [u64; 3],
        /// The element type, f32 or f64.
        ty: Type,
        /// The left factor, and whether it is stored as its transpose [k, m].
        a: (BufferIndex, bool),
        /// The right factor, and whether it is stored as its transpose [n, k].
        b: (BufferIndex, bool),
        /// The result.
        y: BufferIndex,
    },
    /// None of these: it runs unchanged.
    General,
}

impl Shape {
    /// The name in explanations.
    pub fn name(&self) -> &'static str {
        match self {
            Shape::Map(_) => "map",
            Shape::Reduction { .. } => "reduction",
            Shape::Tree { .. } => "tree",
            Shape::Matvec { .. } => "matvec",
            Shape::Gemm { .. } => "gemm",
            Shape::General => "general",
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shape::Map(map) => write!(f, "map over {} elements", map.elements()),
            Shape::Reduction {
                op,
                ty,
                rows,
                cols,
                columns,
                ..
            } => {
                let along = if *columns { "columns" } else { "rows" };
                write!(f, "{}.{ty} of {rows} {along} of {cols}", op.name())
            }
            Shape::Tree { op, ty, count, .. } => write!(f, "tree of {op}.{ty} over {count} terms"),
            Shape::Matvec { m, k, ty, .. } => write!(f, "matvec.{ty} of [{m}, {k}]"),
            Shape::Gemm {
                sizes: [m, n, k],
                ty,
                ..
            } => write!(f, "gemm.{ty} of [{m}, {k}] and [{k}, {n}]"),
            Shape::General => f.write_str("no faster form, it runs as written"),
        }
    }
}
