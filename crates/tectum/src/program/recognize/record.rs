//! Recording recognised programs in a plan.

use super::{Recognized, Setting, Shape};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::plan::{Executable, GemmEpilogue, Matrix, PlanBuilder, View};
use crate::program::record::check_bounds;
use crate::program::{Bounds, BufferIndex, Checked, LaunchConfig, ProgramCache, ProgramLaunch, ProgramView, ReduceOp, Type};

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

    /// The program that was recorded: the map's, the tree's or the original one; none if the core's kernels replace it.
    pub fn launch(&self) -> Option<&ProgramLaunch> {
        self.launch.as_ref()
    }

    /// The error of the last run's first fault.
    ///
    /// # Errors
    /// As [`ProgramLaunch::check`].
    pub fn check(&self, run: &Executable) -> Result<()> {
        self.launch.as_ref().map_or(Ok(()), |launch| launch.check(run))
    }
}

impl PlanBuilder {
    /// Records one launch of a program in its recognised shape: the core's kernels for reductions and products, one program
    /// with a lane per element for maps, the program itself for all others. The contents of read-only buffers are known if
    /// their views are constants of the plan.
    ///
    /// # Errors
    /// As [`Checked::recognize`] and [`PlanBuilder::program`].
    pub fn program_recognized(&mut self, program: &Checked, launch: &LaunchConfig, buffers: &[ProgramView], how: Recognition) -> Result<RecognizedLaunch> {
        let sizes: Vec<u64> = buffers.iter().map(|buffer| buffer.bytes).collect();
        let held: Vec<(BufferIndex, Vec<u8>)> =
            buffers.iter().enumerate().filter_map(|(index, buffer)| Some((BufferIndex(index as u32), self.constant_bytes(&buffer.view)?.to_vec()))).collect();
        let contents: Vec<(BufferIndex, &[u8])> = held.iter().map(|(index, bytes)| (*index, bytes.as_slice())).collect();
        let recognized = program.recognize(&Setting { launch, sizes: &sizes, contents: &contents, reassociate: how.reassociate })?;
        if matches!(recognized.shape(), Shape::General) {
            check_bounds(program, launch, &sizes, how.bounds)?;
        }
        self.recognized(recognized, ProgramCache::shared(), buffers, how.bounds)
    }

    /// Records a recognised program; `bounds` apply to a program that runs unchanged.
    pub(in crate::program) fn recognized(
        &mut self,
        recognized: Recognized,
        cache: &ProgramCache,
        buffers: &[ProgramView],
        bounds: Bounds,
    ) -> Result<RecognizedLaunch> {
        let (program, launch, bounds) = match recognized.shape() {
            Shape::Map(map) => (map.program(), map.launch(), Bounds::Proven),
            Shape::Tree { program, launch, .. } => (program, launch, Bounds::Proven),
            Shape::General => (&recognized.program, &recognized.launch, bounds),
            shape => {
                self.core(shape, buffers)?;
                return Ok(RecognizedLaunch { recognized, launch: None });
            }
        };
        let launch = self.lowered_program(program, cache.lowered(program, launch, bounds)?, launch, buffers)?;
        Ok(RecognizedLaunch { recognized, launch: Some(launch) })
    }

    /// Records the core's kernels.
    fn core(&mut self, shape: &Shape, buffers: &[ProgramView]) -> Result<()> {
        let number = |size: u64| usize::try_from(size).map_err(|_| Error::invalid(format!("{size} elements")));
        let view = |index: &BufferIndex, ty: Type| buffers[index.0 as usize].view.reinterpret(if ty == Type::F64 { DType::F64 } else { DType::F32 });
        match shape {
            Shape::Reduction { op, ty, rows, cols, columns, from, to } => {
                let (from, to, rows, cols) = (view(from, *ty), view(to, *ty), number(*rows)?, number(*cols)?);
                self.reduction(*op, *columns, [from, to], [rows, cols])
            }
            Shape::Matvec { ty, a, x, y, .. } => self.matvec(view(a, *ty), view(x, *ty), view(y, *ty), GemmEpilogue::default()),
            Shape::Gemm { sizes: [m, n, k], ty, a: (a, a_transposed), b: (b, b_transposed), y } => {
                let (m, n, k) = (number(*m)?, number(*n)?, number(*k)?);
                let matrix = |view: View, rows: usize, cols: usize, transposed: bool| {
                    if transposed { Matrix::new(view, cols, rows).transpose() } else { Matrix::new(view, rows, cols) }
                };
                self.gemm(matrix(view(a, *ty), m, k, *a_transposed), matrix(view(b, *ty), k, n, *b_transposed), view(y, *ty), GemmEpilogue::default())
            }
            Shape::Map(_) | Shape::Tree { .. } | Shape::General => Ok(()),
        }
    }

    fn reduction(&mut self, op: ReduceOp, columns: bool, [from, to]: [View; 2], [rows, cols]: [usize; 2]) -> Result<()> {
        match (op, columns) {
            (ReduceOp::Add, true) => self.sum_columns(from, to, cols, rows),
            (ReduceOp::Add, false) => self.sum(from, to, rows, cols),
            (ReduceOp::Min, _) => self.min(from, to, rows, cols),
            (ReduceOp::Max, _) => self.max(from, to, rows, cols),
            (ReduceOp::Mul, _) => Err(Error::unsupported("the core has no tree of products")),
        }
    }
}
