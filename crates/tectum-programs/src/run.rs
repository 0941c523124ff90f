//! A program over buffers of bytes: a plan of one launch that takes the buffers that the program
//! reads and returns those that it writes.

use std::fmt;

use tectum::internal::TwoPhaseRun;
use tectum::route::Target;
use tectum::{
    DType, Device, DeviceInfo, Error, Executable, Fallback, Plan, PlanBuilder, Result, RunStats,
    View, Work,
};

use super::record::ProgramView;
use super::{
    Bounded, Bounds, BufferAccess, BufferIndex, LoweredCache, Recognized, RecognizedLaunch,
    Setting, Unsupported,
};

/// Allowed transformations of a program in a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Recognize {
    /// The program unchanged.
    Off,
    /// Its recognised shape, if the bits of the results are the same.
    #[default]
    Exact,
    /// As `Exact`; sums and products of floats may also change order, and products may be rounded
    /// once with the sum.
    Reassociated,
}

/// Contents of buffers that a plan may assume.
pub type Contents<'a> = [(BufferIndex, &'a [u8])];

/// The views through which a buffer is uploaded and downloaded.
#[derive(Debug, Clone, Copy)]
struct Port {
    /// For a buffer that the program may read.
    input: Option<View>,
    /// For a buffer that it may write.
    output: Option<View>,
    bytes: usize,
}

/// A plan of one launch of a program, or of its recognised shape. Buffers that the program may read
/// are inputs, those that it may write outputs, and `read_write` ones both.
#[derive(Debug, Clone)]
pub struct ProgramPlan {
    plan: Plan,
    recorded: RecognizedLaunch,
    ports: Vec<Port>,
}

impl Bounded {
    /// How code of this launch handles faults: no checks if none is possible.
    pub fn bounds(&self) -> Bounds {
        let stores = self
            .checked()
            .program()
            .buffers()
            .iter()
            .any(|buffer| buffer.access.writes());
        if self.is_unchecked() && stores {
            Bounds::Proven
        } else {
            Bounds::Checked
        }
    }

    /// Makes a plan of only this launch, in its recognised shape if that gives the same bits.
    ///
    /// # Errors
    /// As [`Checked::record_recognized`](crate::Checked::record_recognized).
    ///
    /// # Example
    /// ```
    /// use tectum::Device;
    /// use tectum_programs::{BufferIndex, LaunchConfig, Program};
    /// let program = Program::parse("buffer x: i32 read\nbuffer y: i32 write\nldg.i32 r0, [x]\nadd.i32 r0, r0, r0\nstg.i32 [y], r0")?.check()?;
    /// let plan = program.bound(&LaunchConfig::linear(2, 256), &[8, 8])?.plan()?;
    /// assert_eq!(plan.recorded().recognized().shape().to_string(), "map over 2 elements");
    /// let mut run = plan.compile(&Device::open("cpu")?)?;
    /// run.input(BufferIndex(0)).copy_from_slice(&[3, 0, 0, 0, 5, 0, 0, 0]);
    /// run.run()?;
    /// assert_eq!(run.output(BufferIndex(1)), [6, 0, 0, 0, 10, 0, 0, 0]);
    /// # Ok::<(), tectum::Error>(())
    /// ```
    pub fn plan(&self) -> Result<ProgramPlan> {
        self.plan_as(Recognize::Exact, &[])
    }

    /// Makes a plan of only this launch. If no shape is recognised without them, contents of
    /// integer buffers that are only read, such as counts, may be assumed: the assumed ones
    /// ([`Recognized::known`]) become constants of the plan.
    ///
    /// # Errors
    /// As [`Checked::record_recognized`](crate::Checked::record_recognized); contents of a buffer
    /// that is written, or of the wrong size.
    pub fn plan_as(&self, recognize: Recognize, contents: &Contents<'_>) -> Result<ProgramPlan> {
        self.plan_in(LoweredCache::shared(), recognize, contents)
    }

    pub(super) fn plan_in(
        &self,
        cache: &LoweredCache,
        recognize: Recognize,
        contents: &Contents<'_>,
    ) -> Result<ProgramPlan> {
        self.check_contents(contents)?;
        let recognized = match recognize {
            Recognize::Off => Recognized::unasked(self.checked(), self.launch(), self.sizes()),
            how => {
                let reassociate = how == Recognize::Reassociated;
                self.checked().recognize(&Setting {
                    launch: self.launch(),
                    sizes: self.sizes(),
                    contents,
                    reassociate,
                })?
            }
        };
        let program = self.checked().program();
        let mut plan = PlanBuilder::new(if program.name().is_empty() {
            "program"
        } else {
            program.name()
        });
        let mut ports = Vec::with_capacity(program.buffers().len());
        let mut views = Vec::with_capacity(program.buffers().len());
        for (index, (buffer, &bytes)) in program.buffers().iter().zip(self.sizes()).enumerate() {
            let words = bytes.div_ceil(4) as usize;
            let known = contents
                .iter()
                .find(|(known, _)| known.0 as usize == index && recognized.known().contains(known));
            let constant = known.map(|(_, bytes)| plan.constant(&buffer.name, &words_of(bytes)));
            let input = (buffer.access.reads() && constant.is_none())
                .then(|| plan.input(&buffer.name, DType::U32, words));
            let output = buffer
                .access
                .writes()
                .then(|| plan.output(&buffer.name, DType::U32, words));
            if let (Some(input), Some(output)) = (input, output) {
                plan.copy(input, output)?;
            }
            views.extend(
                constant
                    .or(output)
                    .or(input)
                    .map(|view| ProgramView { view, bytes }),
            );
            ports.push(Port {
                input,
                output,
                bytes: bytes as usize,
            });
        }
        let recorded = recognized.record(&mut plan, cache, &views, self.bounds())?;
        for output in ports.iter().filter_map(|port| port.output) {
            // A launch without lanes writes nothing.
            if !output.is_empty() && !plan.is_written(&output) {
                plan.fill(output, 0)?;
            }
        }
        Ok(ProgramPlan {
            plan: plan.finish()?,
            recorded,
            ports,
        })
    }

    fn check_contents(&self, contents: &Contents<'_>) -> Result<()> {
        let buffers = self.checked().program().buffers();
        let fits = |(index, bytes): &&(BufferIndex, &[u8])| {
            let place = index.0 as usize;
            buffers
                .get(place)
                .is_some_and(|buffer| buffer.access == BufferAccess::Read)
                && self.sizes()[place] == bytes.len() as u64
        };
        match contents.iter().find(|given| !fits(given)) {
            None => Ok(()),
            Some((index, bytes)) => Err(Error::invalid(format!(
                "{} bytes given as the contents of buffer {}: it must be only read, and as long",
                bytes.len(),
                index.0
            ))),
        }
    }
}

/// Bytes as words; the last is padded with zeros.
fn words_of(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks(4)
        .map(|chunk| {
            chunk
                .iter()
                .rev()
                .fold(0, |word, byte| word << 8 | u32::from(*byte))
        })
        .collect()
}

impl ProgramPlan {
    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The recorded launch of the program.
    pub fn recorded(&self) -> &RecognizedLaunch {
        &self.recorded
    }

    /// Why it runs only on the CPU, if it does.
    pub fn unsupported(&self) -> Option<&Unsupported> {
        self.recorded.launch()?.lowered().unsupported()
    }

    /// Whether a device supports the program.
    ///
    /// # Errors
    /// The reason why it does not.
    pub fn fits(&self, device: &DeviceInfo) -> std::result::Result<(), Unsupported> {
        self.recorded
            .launch()
            .map_or(Ok(()), |launch| launch.lowered().fits(device))
    }

    /// The device with the minimum predicted time; the CPU, with the reason, if only it supports
    /// the program.
    ///
    /// # Errors
    /// As [`tectum::route::open`].
    pub fn choose_device(&self) -> Result<(Device, Option<Fallback>)> {
        let cpu = |what: &str, reason: &Unsupported| {
            let fallback = Fallback {
                what: what.to_owned(),
                reason: reason.to_string(),
                count: 1,
            };
            Ok((Device::open("cpu")?, Some(fallback)))
        };
        if let Some(reason) = self.unsupported() {
            return cpu("auto", reason);
        }
        let device = Target::Auto.open(|| self.plan.work())?;
        match self.fits(device.info()) {
            Ok(()) => Ok((device, None)),
            Err(reason) => cpu(&device.info().id, &reason),
        }
    }

    /// Compiles for a device, or for the one of [`ProgramPlan::choose_device`] if it is
    /// [`Target::Auto`].
    ///
    /// # Errors
    /// `Unsupported` with the reason if the device does not support the program; as
    /// [`Plan::compile`].
    pub fn compile<'d>(&self, target: impl Into<Target<'d>>) -> Result<ProgramRun> {
        let (device, fallback) = match target.into() {
            Target::Device(device) => (device.clone(), None),
            Target::Auto => self.choose_device()?,
        };
        self.fits(device.info()).map_err(Unsupported::error)?;
        Ok(ProgramRun {
            executable: self.plan.compile(&device)?,
            recorded: self.recorded.clone(),
            ports: self.ports.clone(),
            fallback,
        })
    }
}

/// A program's launch compiled for a device: fill the inputs, run, read the outputs, any number of
/// times.
pub struct ProgramRun {
    executable: Executable,
    recorded: RecognizedLaunch,
    ports: Vec<Port>,
    fallback: Option<Fallback>,
}

impl fmt::Debug for ProgramRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.executable.fmt(f)
    }
}

impl ProgramRun {
    /// The bytes that a buffer has before the next run; empty for a buffer that the program may not
    /// read, or whose contents the plan assumes.
    ///
    /// # Panics
    /// If the index does not belong to the program.
    pub fn input(&mut self, buffer: BufferIndex) -> &mut [u8] {
        let port = self.ports[buffer.0 as usize];
        match port.input {
            Some(view) => {
                &mut bytemuck::cast_slice_mut::<u32, u8>(self.executable.input(view))[..port.bytes]
            }
            None => &mut [],
        }
    }

    /// Runs once.
    ///
    /// # Errors
    /// The first fault, as [`RecognizedLaunch::check`]; as [`Executable::run`].
    pub fn run(&mut self) -> Result<RunStats> {
        let stats = self.executable.run()?;
        self.recorded.check(&self.executable)?;
        Ok(stats)
    }

    /// The bytes that a buffer has after the last run; empty for a buffer that the program may not
    /// write.
    ///
    /// # Panics
    /// If the index does not belong to the program, or before the first run.
    pub fn output(&self, buffer: BufferIndex) -> &[u8] {
        let port = self.ports[buffer.0 as usize];
        port.output.map_or(&[], |view| {
            &bytemuck::cast_slice::<u32, u8>(self.executable.output(view))[..port.bytes]
        })
    }

    /// The recorded launch of the program.
    pub fn recorded(&self) -> &RecognizedLaunch {
        &self.recorded
    }

    /// The compiled plan.
    pub fn executable(&self) -> &Executable {
        &self.executable
    }

    /// Why it is on the CPU, if it was compiled for [`Target::Auto`] and only the CPU supports the
    /// program.
    pub fn fallback(&self) -> Option<&Fallback> {
        self.fallback.as_ref()
    }
}

impl Work for ProgramRun {}

impl TwoPhaseRun for ProgramRun {
    fn begin(&mut self) -> Result<()> {
        self.executable.begin()
    }

    fn finish(&mut self) -> Result<RunStats> {
        let stats = self.executable.finish()?;
        self.recorded.check(&self.executable)?;
        Ok(stats)
    }
}
