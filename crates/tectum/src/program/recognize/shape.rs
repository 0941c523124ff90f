//! What a program can be recognised as.

use std::fmt;

use super::element::Elements;
use crate::program::{BinaryOp, BufferDeclaration, BufferIndex, Checked, LaunchConfig, ReduceOp, Type};

/// Lanes of a block of a map's launch.
const BLOCK_LANES: u32 = 256;

/// A pass over elements: element i of each result is made of element i of the inputs and of what is the same for all.
#[derive(Debug, Clone)]
pub struct Map {
    pub(super) program: Checked,
    launch: LaunchConfig,
    pub(super) elements: Elements,
}

impl Map {
    /// The map of some elements of a program's buffers.
    pub(super) fn of(elements: Elements, name: &str, buffers: &[BufferDeclaration]) -> std::result::Result<Map, String> {
        let program = elements.program(name, buffers)?.check().map_err(|error| error.to_string())?;
        let count = u32::try_from(elements.count).map_err(|_| format!("{} elements are more than a launch has lanes", elements.count))?;
        let launch = LaunchConfig::linear(count, BLOCK_LANES);
        launch.check().map_err(|error| error.to_string())?;
        Ok(Map { program, launch, elements })
    }

    /// The pass as a program of one lane an element, every access to `[b]` or to a constant place.
    pub fn program(&self) -> &Checked {
        &self.program
    }

    /// A launch of a lane an element.
    pub fn launch(&self) -> &LaunchConfig {
        &self.launch
    }

    /// The count of elements.
    pub fn elements(&self) -> u64 {
        self.elements.count
    }
}

/// What a program was recognised as.
#[derive(Debug, Clone)]
pub enum Shape {
    /// One pass over elements.
    ///
    /// # Proof obligations
    /// The stores to each buffer cover it, each element once; all buffers in one order. What is stored to element i is made of
    /// loads of element i and of constant places, alike for every i. A buffer that is stored to is loaded at the own element
    /// alone. No access leaves its buffer and no divisor is 0.
    Map(Map),
    /// `to[row] = op over the columns of from[row, ..]`; one row for a reduction of everything.
    ///
    /// # Proof obligations
    /// Those of the stores of a map. The value is what a chain of the operation leaves, begun with its neutral element or the first
    /// element; nothing else reads the chain before its end. Its elements are the whole of one buffer, each once, that is not
    /// stored to. Sums of floats: the setting allows another order (minimum and maximum do not depend on it).
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
        /// What is reduced.
        from: BufferIndex,
        /// Where the results go.
        to: BufferIndex,
    },
    /// A chain over terms of one form that leaves one element, by one block.
    ///
    /// # Proof obligations
    /// Those of a reduction, but that the terms may be any expression that elements of a map may be. Operations on integers,
    /// minimum and maximum do not depend on the order.
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
    /// Those of a reduction, for a chain of products of two loads; the loads of each factor are the whole of its buffer.
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
    /// None of these: it runs as it is.
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
            Shape::Reduction { op, ty, rows, cols, columns, .. } => {
                let along = if *columns { "columns" } else { "rows" };
                write!(f, "{}.{ty} of {rows} {along} of {cols}", op.name())
            }
            Shape::Tree { op, ty, count, .. } => write!(f, "tree of {op}.{ty} over {count} terms"),
            Shape::Matvec { m, k, ty, .. } => write!(f, "matvec.{ty} of [{m}, {k}]"),
            Shape::Gemm { sizes: [m, n, k], ty, .. } => write!(f, "gemm.{ty} of [{m}, {k}] and [{k}, {n}]"),
            Shape::General => f.write_str("general"),
        }
    }
}
