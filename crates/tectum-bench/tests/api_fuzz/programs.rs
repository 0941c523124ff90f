//! Programs from text and bytes, valid and invalid, over matching and mismatched launches; thread
//! pools.

use std::sync::{Arc, LazyLock};

use tectum::{DType, Device, ErrorKind, PlanBuilder, Stream, ThreadPool};
use tectum_programs::generate::{Generated, generate, mutate};
use tectum_programs::{
    Bounded, Bounds, BranchTarget, BufferAccess, BufferIndex, Checked, Contents, LaunchConfig,
    Outcome, Program, ProgramBuilder, ProgramCache, ProgramRun, ProgramView, Recognize, Type,
    scalar,
};

use super::world::{Verdict, World, caught, judged};

/// Different programs that are drawn: few, so that devices compile each once.
const PROGRAMS: u64 = 12;
/// Step limit of a mutated program.
const MAX_STEPS: u64 = 20_000;

/// Each lane reads `x` at the byte that `at` names, which cannot be proven to be in bounds.
static GATHER: LazyLock<Checked> = LazyLock::new(|| {
    let text = "buffer at: u64 read\nbuffer x: u32 read\nbuffer y: u32 write\nldg.u64 r0, [at]\nldg.u32 r1, [x + r0]\nstg.u32 [y], r1";
    Program::parse(text)
        .and_then(|program| program.check())
        .expect("a valid program")
});

impl World {
    pub fn use_programs(&mut self) -> Verdict {
        let seed = self.random.below(PROGRAMS);
        self.note(format!("program generate({seed})"));
        let generated = generate(seed);
        match self.random.below(9) {
            7 => self.recorded_launch(),
            8 => self.query_devices(),
            0 | 5 => self.run_program(seed, &generated),
            6 => self.rebuilt(&generated),
            1 => self.mutated_program(&generated),
            2 => self.launch_anyhow(&generated),
            3 => self.record_program(&generated),
            _ => self.map_program(),
        }
    }

    /// A generated program over its buffers: every form of it and the reference interpreter agree.
    fn run_program(&mut self, seed: u64, generated: &Generated) -> Verdict {
        let Generated {
            program,
            launch,
            buffers,
        } = generated;
        let text = program.program().to_string();
        let read = self
            .expect(format!("parse program {seed}"), None, || {
                Program::parse(&text)
            })?
            .ok_or("read")?;
        let bytes = self
            .expect(format!("from_bytes program {seed}"), None, || {
                Program::from_bytes(&read.to_bytes())
            })?
            .ok_or("read")?;
        if read != *program.program() || bytes != read {
            return Err("a program reads back as another".to_owned());
        }
        let mut known = buffers.clone();
        if program
            .evaluate(launch, &mut known, Generated::MAX_STEPS)
            .map_err(|error| error.to_string())?
            != Outcome::Finished
        {
            return Err("a generated program does not end".to_owned());
        }
        let how = self
            .random
            .pick(&[Recognize::Off, Recognize::Exact, Recognize::Reassociated]);
        let found = self.ran(program, launch, buffers, how)?;
        let Some(found) = found else { return Ok(()) };
        for ((buffer, known), found) in program.program().buffers().iter().zip(&known).zip(&found) {
            if buffer.access.writes()
                && !agree(buffer.ty, known, found, generated.tolerance(buffer.ty))
            {
                return Err(format!(
                    "program {seed} as {how:?}: {} differs from the reference\n{text}",
                    buffer.name
                ));
            }
        }
        Ok(())
    }

    /// Compiles and runs over bytes, with some contents assumed; none if the device does not
    /// support the program.
    fn ran(
        &mut self,
        program: &Checked,
        launch: &LaunchConfig,
        buffers: &[Vec<u8>],
        how: Recognize,
    ) -> Result<Option<Vec<Vec<u8>>>, String> {
        let sizes: Vec<u64> = buffers.iter().map(|bytes| bytes.len() as u64).collect();
        let declared = program.program().buffers();
        let known: Vec<(BufferIndex, &[u8])> = (0..buffers.len())
            .filter(|index| declared[*index].access == BufferAccess::Read && self.chance(3))
            .map(|index| (BufferIndex(index as u32), buffers[index].as_slice()))
            .collect();
        let device = self.devices[0].clone();
        self.note(format!(
            "bound {launch:?} {sizes:?}, plan_as {how:?} knowing {} buffers, compile",
            known.len()
        ));
        let bound = caught(|| program.bound(launch, &sizes))
            .map_err(|panic| format!("panicked: {panic}"))?
            .map_err(|error| error.to_string())?;
        self.refused_contents(&bound, how, buffers)?;
        let plan =
            caught(|| bound.plan_as(how, &known)).map_err(|panic| format!("panicked: {panic}"))?;
        // A program that no kernel supports has no plan.
        let plan = match plan {
            Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(None),
            plan => plan.map_err(|error| error.to_string())?,
        };
        let run = match caught(|| plan.compile(&device))
            .map_err(|panic| format!("panicked: {panic}"))?
        {
            Err(error)
                if error.kind() == ErrorKind::Unsupported && plan.fits(device.info()).is_err() =>
            {
                return Ok(None);
            }
            run => run.map_err(|error| error.to_string())?,
        };
        if self.chance(3) {
            self.cached(
                &bound,
                (how, &known),
                buffers,
                plan.plan().kernels().count(),
            )
            .map(Some)
        } else {
            self.filled(run, buffers).map(Some)
        }
    }

    /// Contents of the wrong length, or of a buffer that is written.
    fn refused_contents(
        &mut self,
        bound: &Bounded,
        how: Recognize,
        buffers: &[Vec<u8>],
    ) -> Verdict {
        let index = self.below(buffers.len());
        let is_read = bound.checked().program().buffers()[index].access == BufferAccess::Read;
        let long = [&buffers[index][..], &[0; 8]].concat();
        let (place, bytes) = match is_read {
            _ if self.chance(4) => (buffers.len() as u32, &buffers[index]),
            true => (index as u32, &long),
            false => (index as u32, &buffers[index]),
        };
        let result = caught(|| {
            bound
                .plan_as(how, &[(BufferIndex(place), bytes)])
                .map(|_| ())
        })
        .map_err(|panic| format!("panicked: {panic}"))?;
        judged(result, Some(ErrorKind::Invalid)).map(|_| ())
    }

    /// A launch from a cache; a repeated one must hit.
    fn cached(
        &mut self,
        bound: &Bounded,
        (how, known): (Recognize, &Contents<'_>),
        buffers: &[Vec<u8>],
        kernels: usize,
    ) -> Result<Vec<Vec<u8>>, String> {
        let kept = self.below(3);
        self.note(format!(
            "ProgramCache::new {kept}, run_as twice, counts, lowered"
        ));
        let (cache, device) = (ProgramCache::new(kept, kept), self.devices[0].clone());
        let runs = caught(|| [0, 1].map(|_| cache.run_as(bound, &device, how, known)));
        let [first, second] = runs.map_err(|panic| format!("panicked: {panic}"))?;
        let (first, second) = (
            first.map_err(|error| error.to_string())?,
            second.map_err(|error| error.to_string())?,
        );
        let (counts, is_same) = (cache.run_counts(), Arc::ptr_eq(&first, &second));
        if counts.hits + counts.misses != 2
            || counts.entries > kept.max(1)
            || is_same != (counts.hits == 1)
        {
            return Err(format!(
                "a cache of {kept} counts {counts:?}, the same {is_same}"
            ));
        }
        let other = caught(|| cache.run_as(bound, &device, how, &[]))
            .map_err(|panic| format!("panicked: {panic}"))?
            .map_err(|error| error.to_string())?;
        if !known.is_empty() && Arc::ptr_eq(&first, &other) {
            return Err(
                "a launch that takes contents for granted is found for one that does not"
                    .to_owned(),
            );
        }
        drop((cache, second, other));
        let run = Arc::try_unwrap(first)
            .map_err(|_| "a dropped cache still holds a run")?
            .into_inner()
            .map_err(|error| error.to_string())?;
        if run.executable().code().is_empty() != (kernels == 0) {
            return Err(format!("launches {:?}", run.executable().code()));
        }
        self.filled(run, buffers)
    }

    /// Fills, runs here or on a stream, and reads.
    fn filled(&mut self, mut run: ProgramRun, buffers: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, String> {
        let is_streamed = self.chance(3);
        self.note(format!(
            "fill, run, outputs of a program, on a stream {is_streamed}"
        ));
        for (index, bytes) in buffers.iter().enumerate() {
            let input = run.input(BufferIndex(index as u32));
            if !input.is_empty() {
                input.copy_from_slice(bytes);
            }
        }
        let (run, stats) = caught(move || {
            if is_streamed {
                return Stream::new().map(|stream| stream.submit(run).wait());
            }
            let stats = run.run();
            Ok((run, stats))
        })
        .map_err(|panic| format!("panicked: {panic}"))?
        .map_err(|error| error.to_string())?;
        stats.map_err(|error| error.to_string())?;
        let count = buffers.len();
        if caught(|| run.output(BufferIndex(count as u32)).len()).is_ok() {
            return Err("a buffer that the program does not have".to_owned());
        }
        Ok((0..count)
            .map(|index| run.output(BufferIndex(index as u32)).to_vec())
            .collect())
    }

    /// The same program from its parts, by a builder, and as a kernel.
    fn rebuilt(&mut self, generated: &Generated) -> Verdict {
        let Generated {
            program, launch, ..
        } = generated;
        let bounds = if self.chance(2) {
            Bounds::Checked
        } else {
            Bounds::Proven
        };
        self.note(
            "Program::new of parts, ProgramBuilder, mistakes, warnings, lower, lower_or_native",
        );
        let made = caught(|| {
            let parts = Program::new(program.program().parts().clone())?;
            let built = built(program.program(), true)?;
            let warnings = program.warnings().len();
            let lowered = program.lower(launch, bounds).map(|lowered| {
                (
                    lowered.bounds(),
                    lowered.groups(launch),
                    lowered.unsupported().is_none(),
                )
            });
            Ok((
                parts == *program.program(),
                built == *program.program(),
                program.program().mistakes().len(),
                warnings,
                lowered,
                program.lower_or_native(launch, bounds),
            ))
        });
        let made = made.map_err(|panic| format!("panicked: {panic}"))?;
        let (parts, built_same, mistakes, _, lowered, native) =
            made.map_err(|error: tectum::Error| error.to_string())?;
        if (parts, built_same, mistakes) != (true, true, 0) {
            return Err(format!(
                "of its parts the same {parts}, built the same {built_same}, {mistakes} mistakes"
            ));
        }
        match (lowered, native) {
            (Ok((found, groups, is_device)), Ok(_))
                if found == bounds && is_device && groups > 0 => {}
            (Err(_), Ok(native))
                if native.unsupported().is_some()
                    && native.fits(self.devices[0].info()).is_ok()
                        == (self.devices[0].info().id == "cpu") => {}
            (Err(_), Err(error)) if error.kind() == ErrorKind::Unsupported => {}
            (lowered, native) => {
                return Err(format!(
                    "lowers to {lowered:?} or {:?}",
                    native.map(|native| native.unsupported().cloned())
                ));
            }
        }
        let loose = caught(|| built(generated.program.program(), false).map(|_| ()))
            .map_err(|panic| format!("panicked: {panic}"))?;
        judged(loose, Some(ErrorKind::Invalid)).map(|_| ())
    }

    /// A mutated program is an error, or runs. Programs that do not end (item 23) are not run on
    /// devices.
    fn mutated_program(&mut self, generated: &Generated) -> Verdict {
        let text = mutate(generated.program.program(), self.random.bits());
        self.note(format!("parse, check, evaluate\n{text}"));
        let checked = caught(|| Program::parse(&text).and_then(|program| program.check()))
            .map_err(|panic| format!("panicked: {panic}"))?;
        match checked {
            Err(error) if error.kind() == ErrorKind::Invalid => Ok(()),
            Err(error) => Err(format!("{:?}: {error}", error.kind())),
            Ok(program) => {
                let mut buffers = generated.buffers.clone();
                let outcome =
                    caught(|| program.evaluate(&generated.launch, &mut buffers, MAX_STEPS))
                        .map_err(|panic| format!("panicked: {panic}"))?;
                match outcome {
                    Err(error) if error.kind() != ErrorKind::Invalid => {
                        Err(format!("{:?}: {error}", error.kind()))
                    }
                    _ => Ok(()),
                }
            }
        }
    }

    /// A launch and sizes drawn independently: refused, or accepted.
    fn launch_anyhow(&mut self, generated: &Generated) -> Verdict {
        const SIZES: [u32; 7] = [0, 1, 2, 32, 1024, 65_536, u32::MAX];
        let mut three = || {
            [(); 3].map(|()| {
                if self.random.one_in(2) {
                    1
                } else {
                    self.random.pick(&SIZES)
                }
            })
        };
        let launch = LaunchConfig {
            grid: three(),
            block: three(),
            shared_bytes: self.random.pick(&SIZES),
            ..LaunchConfig::default()
        };
        let count = generated.buffers.len() - usize::from(self.chance(6));
        let sizes: Vec<u64> = (0..count)
            .map(|_| {
                if self.chance(3) {
                    self.extreme() as u64
                } else {
                    8 * self.random.below(100)
                }
            })
            .collect();
        self.note(format!("bound {launch:?} {sizes:?}, plan, program"));
        let made = caught(|| {
            generated
                .program
                .bound(&launch, &sizes)
                .and_then(|bound| bound.plan_as(Recognize::Exact, &[]).map(|_| ()))
        });
        match made.map_err(|panic| format!("panicked: {panic}"))? {
            Err(error) if !matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Unsupported) => {
                Err(format!("{:?}: {error}", error.kind()))
            }
            _ => Ok(()),
        }
    }

    /// A program recorded in a plan of the world, over own and foreign views: refused, unless all
    /// fit.
    fn record_program(&mut self, generated: &Generated) -> Verdict {
        if self.builders.is_empty() || self.strangers.is_empty() {
            return Ok(());
        }
        let plan = self.below(self.builders.len());
        let views: Vec<ProgramView> = (0..generated.buffers.len())
            .map(|_| {
                let place = self.below(self.strangers.len());
                ProgramView {
                    view: self.strangers[place].view,
                    bytes: if self.chance(2) {
                        self.random.below(512)
                    } else {
                        self.extreme() as u64
                    },
                }
            })
            .collect();
        self.note(format!(
            "plan{}: program over {views:?}",
            self.builders[plan].model.id
        ));
        // The plan is abandoned in any case: the model does not know the buffers after such a
        // launch.
        let mut builder = self.builders.swap_remove(plan).builder;
        let result = caught(|| {
            generated
                .program
                .record(&mut builder, &generated.launch, &views, Bounds::Checked)
                .map(|_| ())
        });
        match result.map_err(|panic| format!("panicked: {panic}"))? {
            Err(error) if !matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Unsupported) => {
                Err(format!("{:?}: {error}", error.kind()))
            }
            _ => Ok(()),
        }
    }

    /// A typical user map, recorded in a plan: the model knows its results.
    fn map_program(&mut self) -> Verdict {
        if self.builders.is_empty() {
            return Ok(());
        }
        let (plan, len) = (self.below(self.builders.len()), 1 + self.below(400));
        let (x, y) = (
            self.source(plan, DType::U32, len),
            self.target(plan, DType::U32, len),
        );
        let operation = super::products::map_program(x, y, len as u32);
        self.recorded(plan, operation)
    }

    /// A recorded launch whose last lanes may be beyond a buffer: the fault of the last run is
    /// reported, and that of another plan's run is not requested.
    fn recorded_launch(&mut self) -> Verdict {
        let (lanes, short) = (2 + self.below(300), self.chance(2));
        let bounds = if self.chance(4) {
            Bounds::Proven
        } else {
            Bounds::Checked
        };
        let len = if short { lanes - 1 } else { lanes };
        let device = self.devices[0].clone();
        self.note(format!("a gather of {lanes} lanes over {len} words, {bounds:?}: record, compile, check, run, check, fault"));
        let made = caught(|| {
            let mut plan = PlanBuilder::new("launch");
            let (at, x, y) = (
                plan.input("at", DType::U32, 2 * lanes),
                plan.input("x", DType::U32, len),
                plan.output("y", DType::U32, lanes),
            );
            let (at, x, written) = (
                ProgramView::from(at),
                ProgramView::from(x),
                ProgramView::from(y),
            );
            let launch = GATHER.record(
                &mut plan,
                &LaunchConfig::linear(lanes as u32, 1),
                &[at, x, written],
                bounds,
            )?;
            let mut run = plan.finish()?.compile(&device)?;
            let mut other = PlanBuilder::new("other");
            let z = other.output("z", DType::F32, 4);
            other.fill(z, 0)?;
            let mut other = other.finish()?.compile(&device)?;
            other.run()?;
            let before = [launch.check(&run), launch.check(&other)];
            run.input::<u32>(at.view)
                .chunks_exact_mut(2)
                .zip(0..)
                .for_each(|(to, at)| to[0] = 4 * at);
            run.input::<u32>(x.view).fill(9);
            run.run()?;
            Ok((
                before,
                launch.fault(&run)?,
                launch.check(&run),
                run.output::<u32>(y).to_vec(),
            ))
        });
        let made: tectum::Result<_> = made.map_err(|panic| format!("panicked: {panic}"))?;
        if bounds == Bounds::Proven {
            return judged(made.map(|_| ()), Some(ErrorKind::Invalid)).map(|_| ());
        }
        let (before, fault, after, y) = made.map_err(|error| error.to_string())?;
        for result in before {
            judged(result, Some(ErrorKind::Invalid))?;
        }
        judged(after, short.then_some(ErrorKind::Invalid))?;
        // After a fault the written contents are unspecified.
        if fault.is_some() != short || (!short && y.iter().any(|y| *y != 9)) {
            return Err(format!("fault {fault:?}, gave {y:?}"));
        }
        Ok(())
    }

    /// The list of devices: the same each time, and each listed device opens.
    fn query_devices(&mut self) -> Verdict {
        let ids: Vec<String> = self
            .devices
            .iter()
            .map(|device| device.info().id.clone())
            .collect();
        self.note("Device::list, absent, readings, open of what no machine has");
        let found = caught(|| {
            let listed: Vec<String> = Device::list().into_iter().map(|info| info.id).collect();
            let reasons = Device::absent()
                .iter()
                .all(|absent| !absent.reason.is_empty() && !listed.contains(&absent.device));
            let readings = self
                .devices
                .iter()
                .filter_map(Device::readings)
                .filter_map(|readings| readings.utilisation)
                .all(|share| (0.0..=1.0).contains(&share));
            (
                listed,
                reasons,
                readings,
                [Device::open("cuda:4096"), Device::open("vulkan:-1")]
                    .map(|opened| opened.err().map(|error| error.kind())),
            )
        });
        let (listed, reasons, readings, opened) =
            found.map_err(|panic| format!("panicked: {panic}"))?;
        let is_listed = ids.iter().all(|id| listed.contains(id))
            && ["cpu", "null"]
                .iter()
                .all(|id| listed.iter().any(|listed| listed == id));
        if !is_listed
            || !reasons
            || !readings
            || opened != [Some(ErrorKind::Unsupported), Some(ErrorKind::Invalid)]
        {
            return Err(format!(
                "lists {listed:?} for {ids:?}, reasons {reasons}, readings {readings}, opens {opened:?}"
            ));
        }
        Ok(())
    }

    /// Thread pools, and a run in one of them.
    pub fn use_threads(&mut self) -> Verdict {
        let threads = self.below(4);
        self.note(format!("ThreadPool::new {threads}, install, broadcast"));
        let pool = judged(
            caught(|| ThreadPool::new(threads, "fuzz"))
                .map_err(|panic| format!("panicked: {panic}"))?,
            None,
        )?
        .ok_or("a pool")?;
        let found = (pool.install(|| 3), pool.broadcast(|| 1).len());
        if found != (3, threads.max(1)) {
            return Err(format!("gave {found:?}"));
        }
        if self.runs.is_empty() {
            return Ok(());
        }
        let place = self.below(self.runs.len());
        let run = &mut self.runs[place];
        let executable = &mut run.run;
        let stats = caught(|| pool.install(|| executable.run()))
            .map_err(|panic| format!("panicked: {panic}"))?;
        stats.map_err(|error| error.to_string())?;
        run.step(run.device == 0);
        self.note(format!(
            "plan{}: run in the pool",
            self.runs[place].model.id
        ));
        if self.runs[place].device == 0 {
            self.runs[place].check_outputs()
        } else {
            Ok(())
        }
    }
}

/// Whether two buffers are equal: integers bit by bit, floats within a tolerance.
fn agree(ty: Type, known: &[u8], found: &[u8], tolerance: f64) -> bool {
    if !ty.is_float() {
        return known == found;
    }
    let value = |bytes: &[u8]| {
        let bits = bytes
            .iter()
            .rev()
            .fold(0, |bits, byte| bits << 8 | u64::from(*byte));
        f64::from_bits(scalar::convert(Type::F64, ty, bits))
    };
    let width = ty.bytes() as usize;
    known.len() == found.len()
        && known
            .chunks(width)
            .zip(found.chunks(width))
            .all(|(known, found)| (value(known) - value(found)).abs() <= tolerance)
}

/// A program from a builder; with a label that has no position if it is incomplete.
fn built(program: &Program, is_whole: bool) -> tectum::Result<Program> {
    let mut builder = ProgramBuilder::new(program.name());
    for buffer in program.buffers() {
        builder.declare(buffer.clone());
    }
    builder
        .shared(program.shared_bytes())
        .pool(program.pool_bytes());
    let labels: Vec<BranchTarget> = program
        .labels()
        .iter()
        .map(|label| builder.label(label.name.clone()))
        .collect();
    if !is_whole {
        builder.label("nowhere");
    }
    for index in 0..=program.instructions().len() {
        for (label, declared) in labels
            .iter()
            .zip(program.labels())
            .filter(|(_, declared)| declared.target.index() == index)
        {
            assert_eq!(
                program.label_of(declared.target).is_some(),
                builder.len() == index,
                "the place of {}",
                declared.name
            );
            builder.place(*label);
        }
        let Some(instruction) = program.instructions().get(index) else {
            continue;
        };
        let label = |target: BranchTarget| {
            labels[program
                .labels()
                .iter()
                .position(|label| label.target == target)
                .unwrap_or(0)]
        };
        builder.push(instruction.target().map_or(*instruction, |target| {
            instruction.with_target(label(target))
        }));
    }
    builder.finish()
}
