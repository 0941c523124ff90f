//! Recording recognised programs in a plan.

use tectum::{DType, Error, Executable, GemmEpilogue, Matrix, PlanBuilder, Result, View};

use super::{Recognized, Setting, Shape};
use crate::record::check_bounds;
use crate::{
    Bounds, BufferIndex, Checked, LaunchConfig, LoweredCache, ProgramLaunch, ProgramView, ReduceOp,
    Type,
};

/// Options of recognition, and how unrecognised programs run.
#[derive(Debug, Clone, Copy)]
pub struct Recognition {
    /// As in [`Setting`].
    pub reassociate: bool,
    /// For a program that runs unchanged. Recognised shapes are proven to have no fault.
    pub bounds: Bounds,
}

/// A recorded launch of a recognised program.
#[derive(Debug, Clone)]
pub struct RecognizedLaunch {
    recognized: Recognized,
    launch: Option<ProgramLaunch>,
}

impl RecognizedLaunch {
    /// The recognised program.
    pub fn recognized(&self) -> &Recognized {
        &self.recognized
    }

    /// The program that was recorded: the map's, the tree's or the original one; none if the core's
    /// kernels replace it.
    pub fn launch(&self) -> Option<&ProgramLaunch> {
        self.launch.as_ref()
    }

    /// The error of the last run's first fault.
    ///
    /// # Errors
    /// As [`ProgramLaunch::check`].
    pub fn check(&self, run: &Executable) -> Result<()> {
        self.launch
            .as_ref()
            .map_or(Ok(()), |launch| launch.check(run))
    }
}

impl Checked {
    /// Records one launch in a plan in its recognised shape: the core's kernels for reductions and
    /// products, one program with a lane per element for maps, the program itself for all others.
    /// The contents of read-only buffers are known if their views are constants of the plan.
    ///
    /// # Errors
    /// As [`Checked::recognize`] and [`Checked::record`].
    pub fn record_recognized(
        &self,
        plan: &mut PlanBuilder,
        launch: &LaunchConfig,
        buffers: &[ProgramView],
        how: Recognition,
    ) -> Result<RecognizedLaunch> {
        let sizes: Vec<u64> = buffers.iter().map(|buffer| buffer.bytes).collect();
        let held: Vec<(BufferIndex, Vec<u8>)> = buffers
            .iter()
            .enumerate()
            .filter_map(|(index, buffer)| {
                Some((
                    BufferIndex(index as u32),
                    plan.constant_bytes(&buffer.view)?.to_vec(),
                ))
            })
            .collect();
        let contents: Vec<(BufferIndex, &[u8])> = held
            .iter()
            .map(|(index, bytes)| (*index, bytes.as_slice()))
            .collect();
        let recognized = self.recognize(&Setting {
            launch,
            sizes: &sizes,
            contents: &contents,
            reassociate: how.reassociate,
        })?;
        if matches!(recognized.shape(), Shape::General) {
            check_bounds(self, launch, &sizes, how.bounds)?;
        }
        recognized.record(plan, LoweredCache::shared(), buffers, how.bounds)
    }
}

impl Recognized {
    /// Records it; `bounds` apply to a program that runs unchanged.
    pub(crate) fn record(
        self,
        plan: &mut PlanBuilder,
        cache: &LoweredCache,
        buffers: &[ProgramView],
        bounds: Bounds,
    ) -> Result<RecognizedLaunch> {
        let (program, launch, bounds) = match self.shape() {
            Shape::Map(map) => (map.program(), map.launch(), Bounds::Proven),
            Shape::Tree {
                program, launch, ..
            } => (program, launch, Bounds::Proven),
            Shape::General => (&self.program, &self.launch, bounds),
            shape => {
                record_core(plan, shape, buffers)?;
                return Ok(RecognizedLaunch {
                    recognized: self,
                    launch: None,
                });
            }
        };
        let launch = program.record_lowered(
            plan,
            cache.lowered(program, launch, bounds)?,
            launch,
            buffers,
        )?;
        Ok(RecognizedLaunch {
            recognized: self,
            launch: Some(launch),
        })
    }
}

/// Records the core's kernels.
fn record_core(plan: &mut PlanBuilder, shape: &Shape, buffers: &[ProgramView]) -> Result<()> {
    let number =
        |size: u64| usize::try_from(size).map_err(|_| Error::invalid(format!("{size} elements")));
    let view = |index: &BufferIndex, ty: Type| {
        buffers[index.0 as usize]
            .view
            .reinterpret(if ty == Type::F64 {
                DType::F64
            } else {
                DType::F32
            })
    };
    match shape {
        Shape::Reduction {
            op,
            ty,
            rows,
            cols,
            columns,
            from,
            to,
        } => {
            let (from, to, rows, cols) = (
                view(from, *ty),
                view(to, *ty),
                number(*rows)?,
                number(*cols)?,
            );
            record_reduction(plan, *op, *columns, [from, to], [rows, cols])
        }
        Shape::Matvec { ty, a, x, y, .. } => plan.matvec(
            view(a, *ty),
            view(x, *ty),
            view(y, *ty),
            GemmEpilogue::default(),
        ),
        Shape::Gemm {
            sizes: [m, n, k],
            ty,
            a: (a, a_transposed),
            b: (b, b_transposed),
            y,
        } => {
            let (m, n, k) = (number(*m)?, number(*n)?, number(*k)?);
            let matrix = |view: View, rows: usize, cols: usize, transposed: bool| {
                if transposed {
                    Matrix::new(view, cols, rows).transpose()
                } else {
                    Matrix::new(view, rows, cols)
                }
            };
            plan.gemm(
                matrix(view(a, *ty), m, k, *a_transposed),
                matrix(view(b, *ty), k, n, *b_transposed),
                view(y, *ty),
                GemmEpilogue::default(),
            )
        }
        Shape::Map(_) | Shape::Tree { .. } | Shape::General => Ok(()),
    }
}

fn record_reduction(
    plan: &mut PlanBuilder,
    op: ReduceOp,
    columns: bool,
    [from, to]: [View; 2],
    [rows, cols]: [usize; 2],
) -> Result<()> {
    match (op, columns) {
        (ReduceOp::Add, true) => plan.sum_columns(from, to, cols, rows),
        (ReduceOp::Add, false) => plan.sum(from, to, rows, cols),
        (ReduceOp::Min, _) => plan.min(from, to, rows, cols),
        (ReduceOp::Max, _) => plan.max(from, to, rows, cols),
        (ReduceOp::Mul, _) => Err(Error::unsupported("the core has no tree of products")),
    }
}
