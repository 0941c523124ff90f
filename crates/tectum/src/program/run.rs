//! A program over buffers of bytes: a plan of one launch that takes what the program reads and gives back what it writes.

use std::fmt;

use super::record::{ProgramLaunch, ProgramView};
use super::{Bounded, Bounds, BufferIndex, Lowered, ProgramCache, Unsupported};
use crate::device::{Device, DeviceInfo};
use crate::dtype::DType;
use crate::error::Result;
use crate::launch::RunStats;
use crate::plan::{Executable, Plan, PlanBuilder, View};

/// Where a buffer enters and leaves.
#[derive(Debug, Clone, Copy)]
struct Port {
    /// Of a buffer that the program may read.
    input: Option<View>,
    /// Of a buffer that it may write.
    output: Option<View>,
    bytes: usize,
}

/// A plan of one launch of a program. Buffers that the program may read are inputs, those that it may write outputs, and
/// `read_write` ones both.
#[derive(Debug, Clone)]
pub struct ProgramPlan {
    plan: Plan,
    launch: ProgramLaunch,
    ports: Vec<Port>,
}

impl Bounded {
    /// What code of this launch has to do about faults: nothing where none is possible.
    pub fn bounds(&self) -> Bounds {
        let stores = self.checked().program().buffers().iter().any(|buffer| buffer.access.writes());
        if self.is_unchecked() && stores { Bounds::Proven } else { Bounds::Checked }
    }

    /// Makes a plan of this launch alone.
    ///
    /// # Errors
    /// As [`PlanBuilder::program`].
    ///
    /// # Example
    /// ```
    /// use tectum::Device;
    /// use tectum::program::{BufferIndex, LaunchConfig, Program};
    /// let program = Program::parse("buffer x: i32 read\nbuffer y: i32 write\nldg.i32 r0, [x]\nadd.i32 r0, r0, r0\nstg.i32 [y], r0")?.check()?;
    /// let plan = program.bound(&LaunchConfig::linear(2, 256), &[8, 8])?.plan()?;
    /// let mut run = plan.compile(&Device::open("cpu")?)?;
    /// run.input(BufferIndex(0)).copy_from_slice(&[3, 0, 0, 0, 5, 0, 0, 0]);
    /// run.run()?;
    /// assert_eq!(run.output(BufferIndex(1)), [6, 0, 0, 0, 10, 0, 0, 0]);
    /// # Ok::<(), tectum::Error>(())
    /// ```
    pub fn plan(&self) -> Result<ProgramPlan> {
        self.plan_lowered(ProgramCache::shared().lowered(self.checked(), self.launch(), self.bounds())?)
    }

    /// As [`Bounded::plan`], of a kernel that was made of the program for this launch.
    pub(super) fn plan_lowered(&self, lowered: Lowered) -> Result<ProgramPlan> {
        let program = self.checked().program();
        let mut plan = PlanBuilder::new(if program.name().is_empty() { "program" } else { program.name() });
        let mut ports = Vec::with_capacity(program.buffers().len());
        let mut views = Vec::with_capacity(program.buffers().len());
        for (buffer, &bytes) in program.buffers().iter().zip(self.sizes()) {
            let words = bytes.div_ceil(4) as usize;
            let input = buffer.access.reads().then(|| plan.input(&buffer.name, DType::U32, words));
            let output = buffer.access.writes().then(|| plan.output(&buffer.name, DType::U32, words));
            if let (Some(input), Some(output)) = (input, output) {
                plan.copy(input, output)?;
            }
            views.extend(output.or(input).map(|view| ProgramView { view, bytes }));
            ports.push(Port { input, output, bytes: bytes as usize });
        }
        let launch = plan.lowered_program(self.checked(), lowered, self.launch(), &views)?;
        for output in ports.iter().filter_map(|port| port.output) {
            // A launch without lanes writes nothing.
            if !output.is_empty() && !plan.is_written(&output) {
                plan.fill(output, 0)?;
            }
        }
        Ok(ProgramPlan { plan: plan.finish()?, launch, ports })
    }
}

impl ProgramPlan {
    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Its launch.
    pub fn launch(&self) -> &ProgramLaunch {
        &self.launch
    }

    /// Whether a device takes the program.
    ///
    /// # Errors
    /// The reason why it does not.
    pub fn fits(&self, device: &DeviceInfo) -> std::result::Result<(), Unsupported> {
        self.launch.lowered().fits(device)
    }

    /// Compiles for a device.
    ///
    /// # Errors
    /// `Unsupported` with the reason if the device does not take the program; as [`Plan::compile`].
    pub fn compile(&self, device: &Device) -> Result<ProgramRun> {
        self.fits(device.info()).map_err(Unsupported::error)?;
        Ok(ProgramRun { executable: self.plan.compile(device)?, launch: self.launch.clone(), ports: self.ports.clone() })
    }
}

/// A program's launch compiled for a device: fill the inputs, run, read the outputs, any number of times.
pub struct ProgramRun {
    executable: Executable,
    launch: ProgramLaunch,
    ports: Vec<Port>,
}

impl fmt::Debug for ProgramRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.executable.fmt(f)
    }
}

impl ProgramRun {
    /// The bytes that a buffer has before the next run; none of a buffer that the program may not read.
    ///
    /// # Panics
    /// If the index is not of the program.
    pub fn input(&mut self, buffer: BufferIndex) -> &mut [u8] {
        let port = self.ports[buffer.0 as usize];
        match port.input {
            Some(view) => &mut bytemuck::cast_slice_mut::<u32, u8>(self.executable.input(view))[..port.bytes],
            None => &mut [],
        }
    }

    /// Runs once.
    ///
    /// # Errors
    /// The first fault, as [`ProgramLaunch::check`]; as [`Executable::run`].
    pub fn run(&mut self) -> Result<RunStats> {
        let stats = self.executable.run()?;
        self.launch.check(&self.executable)?;
        Ok(stats)
    }

    /// The bytes that a buffer has after the last run; none of a buffer that the program may not write.
    ///
    /// # Panics
    /// If the index is not of the program, or nothing has run.
    pub fn output(&self, buffer: BufferIndex) -> &[u8] {
        let port = self.ports[buffer.0 as usize];
        port.output.map_or(&[], |view| &bytemuck::cast_slice::<u32, u8>(self.executable.output(view))[..port.bytes])
    }

    /// The compiled plan.
    pub fn executable(&self) -> &Executable {
        &self.executable
    }
}
