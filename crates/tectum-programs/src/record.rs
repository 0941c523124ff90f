//! Recording a program's launch in a plan.

use tectum::{DType, Error, Executable, PlanBuilder, Result, View};

use super::lower::{FAULT_WORDS, Lowered, read_fault, reports_faults};
use super::{Bounds, BufferAccess, Checked, Fault, LaunchConfig, LoweredCache, Program};

/// A program's buffer in a plan: its words and its length in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramView {
    /// The words, of any type.
    pub view: View,
    /// The bytes; the last word may be used in part.
    pub bytes: u64,
}

impl From<View> for ProgramView {
    fn from(view: View) -> Self {
        Self {
            view,
            bytes: (view.len() as u64).saturating_mul(view.dtype().bytes() as u64),
        }
    }
}

/// A recorded launch of a program.
#[derive(Debug, Clone)]
pub struct ProgramLaunch {
    program: Program,
    lowered: Lowered,
    faults: Option<View>,
}

impl ProgramLaunch {
    /// The program as a kernel.
    pub fn lowered(&self) -> &Lowered {
        &self.lowered
    }

    /// The first fault of the last run, if a lane faulted and the launch is checked, or a loop did
    /// not end.
    ///
    /// # Errors
    /// `Invalid` if the executable belongs to another plan or has not run.
    pub fn fault(&self, run: &Executable) -> Result<Option<Fault>> {
        let Some(faults) = self.faults else {
            return Ok(None);
        };
        Ok(read_fault(run.try_output::<u32>(faults)?, &self.program))
    }

    /// The error of the last run's first fault.
    ///
    /// # Errors
    /// Kind `Invalid`, naming lane, instruction and address; `Unsupported` if the device ended a
    /// loop early; as [`ProgramLaunch::fault`].
    pub fn check(&self, run: &Executable) -> Result<()> {
        self.fault(run)?
            .map_or(Ok(()), |fault| Err(fault.error(&self.program)))
    }
}

/// Refuses to omit checks of accesses that are not proven.
pub(crate) fn check_bounds(
    program: &Checked,
    launch: &LaunchConfig,
    sizes: &[u64],
    bounds: Bounds,
) -> Result<()> {
    if bounds == Bounds::Proven && !program.bound(launch, sizes)?.is_unchecked() {
        let name = program.program().name();
        return Err(Error::invalid(format!(
            "program {name}: not every access is proven to be within its buffer; Bounds::Checked tests them"
        )));
    }
    Ok(())
}

impl Checked {
    /// Records one launch in a plan over its buffers, in the order of their declarations. Writable
    /// buffers without an earlier write that the program may not fill begin as zeros. A program
    /// lowered before comes from [`ProgramCache::shared`](crate::ProgramCache::shared).
    ///
    /// # Errors
    /// `Invalid` if the launch does not suit the buffers ([`Checked::elements`]), a view differs in
    /// words from what its bytes need, or [`Bounds::Proven`] is requested and some access is not
    /// proven; as [`PlanBuilder::launch`]; as [`Checked::lower_or_native`]. A program that device
    /// code does not support is still recorded, for the CPU: [`Lowered::fits`] reports it.
    pub fn record(
        &self,
        plan: &mut PlanBuilder,
        launch: &LaunchConfig,
        buffers: &[ProgramView],
        bounds: Bounds,
    ) -> Result<ProgramLaunch> {
        let sizes: Vec<u64> = buffers.iter().map(|buffer| buffer.bytes).collect();
        check_bounds(self, launch, &sizes, bounds)?;
        let lowered = LoweredCache::shared().lowered(self, launch, bounds)?;
        self.record_lowered(plan, lowered, launch, buffers)
    }

    /// As [`Checked::record`], with a kernel that was lowered from the program for such a launch.
    pub(crate) fn record_lowered(
        &self,
        plan: &mut PlanBuilder,
        lowered: Lowered,
        launch: &LaunchConfig,
        buffers: &[ProgramView],
    ) -> Result<ProgramLaunch> {
        let sizes: Vec<u64> = buffers.iter().map(|buffer| buffer.bytes).collect();
        self.elements(launch, &sizes)?;
        let bounds = lowered.bounds();
        let groups = lowered.groups(launch);
        let mut launched = ProgramLaunch {
            program: self.program().clone(),
            lowered,
            faults: None,
        };
        if groups == 0 {
            return Ok(launched);
        }
        plan.whole(|plan| {
            let mut views = Vec::with_capacity(buffers.len() + 1);
            for (index, buffer) in buffers.iter().enumerate() {
                views.push(program_buffer(plan, &launched, index, *buffer)?);
            }
            if reports_faults(self.program(), bounds) {
                let words = plan.output(
                    format!("faults of {}", launched.lowered.kernel().name()),
                    DType::U32,
                    FAULT_WORDS,
                );
                plan.fill(words, 0)?;
                views.push(words);
                launched.faults = Some(words);
            }
            // SAFETY: accesses are proven to lie within these buffers, or the code tests them;
            // loops end at the launch's limit.
            unsafe {
                plan.launch_trusted(
                    launched.lowered.kernel(),
                    &views,
                    &launched.lowered.params(launch, &sizes),
                    groups,
                )?
            };
            Ok(launched)
        })
    }
}

/// The view for a buffer's binding.
fn program_buffer(
    plan: &mut PlanBuilder,
    launched: &ProgramLaunch,
    index: usize,
    buffer: ProgramView,
) -> Result<View> {
    let declared = &launched.program.buffers()[index];
    if buffer.bytes.div_ceil(4) != buffer.view.len() as u64 || buffer.bytes > u64::from(u32::MAX) {
        return Err(Error::invalid(format!(
            "buffer {}: {} bytes in {} words",
            declared.name,
            buffer.bytes,
            buffer.view.len()
        )));
    }
    if buffer.view.is_empty() {
        // A binding is never empty: one word that no access reaches replaces it.
        return Ok(plan.state(format!("empty {}", declared.name), DType::U32, 1));
    }
    let view = buffer.view.reinterpret(DType::U32);
    let binding = &launched.lowered.kernel().bindings()[index];
    if declared.access != BufferAccess::Read
        && binding.access != tectum::kernel::Access::Write
        && !plan.is_written(&view)
    {
        plan.fill(view, 0)?;
    }
    Ok(view)
}
