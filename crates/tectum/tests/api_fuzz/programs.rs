//! Programs from text and bytes, valid and not, over launches that fit and not; pools of threads.

use tectum::program::generate::{Generated, generate, mutate};
use tectum::program::{Bounds, BufferIndex, Checked, LaunchConfig, Outcome, Program, ProgramView, Recognize, Type, scalar};
use tectum::{DType, ErrorKind, ThreadPool};

use super::world::{Verdict, World, caught, judged};

/// Different programs that are drawn: few, so that devices compile each once.
const PROGRAMS: u64 = 12;
/// Steps after which a program that a mutation left is given up.
const MOST_STEPS: u64 = 20_000;

impl World {
    pub fn use_programs(&mut self) -> Verdict {
        let seed = self.random.below(PROGRAMS);
        self.note(format!("program generate({seed})"));
        let generated = generate(seed);
        match self.random.below(5) {
            0 => self.run_program(seed, &generated),
            1 => self.mutated_program(&generated),
            2 => self.launch_anyhow(&generated),
            3 => self.record_program(&generated),
            _ => self.map_program(),
        }
    }

    /// A generated program over its buffers: every form of it and the reference interpreter agree.
    fn run_program(&mut self, seed: u64, generated: &Generated) -> Verdict {
        let Generated { program, launch, buffers } = generated;
        let text = program.program().to_string();
        let read = self.expect(format!("parse program {seed}"), None, || Program::parse(&text))?.ok_or("read")?;
        let bytes = self.expect(format!("from_bytes program {seed}"), None, || Program::from_bytes(&read.to_bytes()))?.ok_or("read")?;
        if read != *program.program() || bytes != read {
            return Err("a program reads back as another".to_owned());
        }
        let mut known = buffers.clone();
        if program.evaluate(launch, &mut known, Generated::MOST_STEPS).map_err(|error| error.to_string())? != Outcome::Finished {
            return Err("a generated program does not end".to_owned());
        }
        let how = self.random.pick(&[Recognize::Off, Recognize::Exact, Recognize::Reassociated]);
        let found = self.ran(program, launch, buffers, how)?;
        let Some(found) = found else { return Ok(()) };
        for ((buffer, known), found) in program.program().buffers().iter().zip(&known).zip(&found) {
            if buffer.access.writes() && !agree(buffer.ty, known, found, generated.tolerance(buffer.ty)) {
                return Err(format!("program {seed} as {how:?}: {} differs from the reference\n{text}", buffer.name));
            }
        }
        Ok(())
    }

    /// Compiles and runs over bytes; none where the device does not take the program.
    fn ran(&mut self, program: &Checked, launch: &LaunchConfig, buffers: &[Vec<u8>], how: Recognize) -> Result<Option<Vec<Vec<u8>>>, String> {
        let sizes: Vec<u64> = buffers.iter().map(|bytes| bytes.len() as u64).collect();
        let device = self.devices[0].clone();
        self.note(format!("bound {launch:?} {sizes:?}, plan_as {how:?}, compile"));
        let plan = caught(|| program.bound(launch, &sizes).and_then(|bound| bound.plan_as(how, &[]))).map_err(|panic| format!("panicked: {panic}"))?;
        // What device code cannot do at all has no plan.
        let plan = match plan {
            Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(None),
            plan => plan.map_err(|error| error.to_string())?,
        };
        let mut run = match caught(|| plan.compile(&device)).map_err(|panic| format!("panicked: {panic}"))? {
            Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(None),
            run => run.map_err(|error| error.to_string())?,
        };
        self.note("fill, run, outputs of a program");
        for (index, (buffer, bytes)) in program.program().buffers().iter().zip(buffers).enumerate() {
            if buffer.access.reads() {
                run.input(BufferIndex(index as u32)).copy_from_slice(bytes);
            }
        }
        caught(|| run.run()).map_err(|panic| format!("panicked: {panic}"))?.map_err(|error| error.to_string())?;
        let count = program.program().buffers().len();
        if caught(|| run.output(BufferIndex(count as u32)).len()).is_ok() {
            return Err("a buffer that the program does not have".to_owned());
        }
        Ok(Some((0..count).map(|index| run.output(BufferIndex(index as u32)).to_vec()).collect()))
    }

    /// What a mutation leaves is an error, or a program that runs. Programs that do not end (item 23) are not run on devices.
    fn mutated_program(&mut self, generated: &Generated) -> Verdict {
        let text = mutate(generated.program.program(), self.random.bits());
        self.note(format!("parse, check, evaluate\n{text}"));
        let checked = caught(|| Program::parse(&text).and_then(|program| program.check())).map_err(|panic| format!("panicked: {panic}"))?;
        match checked {
            Err(error) if error.kind() == ErrorKind::Invalid => Ok(()),
            Err(error) => Err(format!("{:?}: {error}", error.kind())),
            Ok(program) => {
                let mut buffers = generated.buffers.clone();
                let outcome = caught(|| program.evaluate(&generated.launch, &mut buffers, MOST_STEPS)).map_err(|panic| format!("panicked: {panic}"))?;
                match outcome {
                    Err(error) if error.kind() != ErrorKind::Invalid => Err(format!("{:?}: {error}", error.kind())),
                    _ => Ok(()),
                }
            }
        }
    }

    /// A launch and sizes drawn by themselves: refused, or taken.
    fn launch_anyhow(&mut self, generated: &Generated) -> Verdict {
        const SIZES: [u32; 7] = [0, 1, 2, 32, 1024, 65_536, u32::MAX];
        let mut three = || [(); 3].map(|()| if self.random.one_in(2) { 1 } else { self.random.pick(&SIZES) });
        let launch = LaunchConfig { grid: three(), block: three(), shared_bytes: self.random.pick(&SIZES), ..LaunchConfig::default() };
        let count = generated.buffers.len() - usize::from(self.chance(6));
        let sizes: Vec<u64> = (0..count).map(|_| if self.chance(3) { self.extreme() as u64 } else { 8 * self.random.below(100) }).collect();
        self.note(format!("bound {launch:?} {sizes:?}, plan, program"));
        let made = caught(|| generated.program.bound(&launch, &sizes).and_then(|bound| bound.plan_as(Recognize::Exact, &[]).map(|_| ())));
        match made.map_err(|panic| format!("panicked: {panic}"))? {
            Err(error) if !matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Unsupported) => Err(format!("{:?}: {error}", error.kind())),
            _ => Ok(()),
        }
    }

    /// A program recorded in a plan of the world, over views of its own and of others: refused, unless all fit.
    fn record_program(&mut self, generated: &Generated) -> Verdict {
        if self.builders.is_empty() || self.strangers.is_empty() {
            return Ok(());
        }
        let plan = self.below(self.builders.len());
        let views: Vec<ProgramView> = (0..generated.buffers.len())
            .map(|_| {
                let place = self.below(self.strangers.len());
                ProgramView { view: self.strangers[place].view, bytes: if self.chance(2) { self.random.below(512) } else { self.extreme() as u64 } }
            })
            .collect();
        self.note(format!("plan{}: program over {views:?}", self.builders[plan].model.id));
        // The plan is given up whatever comes: what such a launch leaves of its buffers is not known here.
        let mut builder = self.builders.swap_remove(plan).builder;
        let result = caught(|| builder.program(&generated.program, &generated.launch, &views, Bounds::Checked).map(|_| ()));
        match result.map_err(|panic| format!("panicked: {panic}"))? {
            Err(error) if !matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Unsupported) => Err(format!("{:?}: {error}", error.kind())),
            _ => Ok(()),
        }
    }

    /// A map written as a user writes one, recorded in a plan: the model knows what it gives.
    fn map_program(&mut self) -> Verdict {
        if self.builders.is_empty() {
            return Ok(());
        }
        let (plan, len) = (self.below(self.builders.len()), 1 + self.below(400));
        let (x, y) = (self.source(plan, DType::U32, len), self.target(plan, DType::U32, len));
        let operation = super::products::map_program(x, y, len as u32);
        self.recorded(plan, operation)
    }

    /// Pools of threads, and a run in one of them.
    pub fn use_threads(&mut self) -> Verdict {
        let threads = self.below(4);
        self.note(format!("ThreadPool::new {threads}, install, broadcast"));
        let pool = judged(caught(|| ThreadPool::new(threads, "fuzz")).map_err(|panic| format!("panicked: {panic}"))?, None)?.ok_or("a pool")?;
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
        let stats = caught(|| pool.install(|| executable.run())).map_err(|panic| format!("panicked: {panic}"))?;
        stats.map_err(|error| error.to_string())?;
        run.step(run.device == 0);
        self.note(format!("plan{}: run in the pool", self.runs[place].model.id));
        if self.runs[place].device == 0 { self.runs[place].check_outputs() } else { Ok(()) }
    }
}

/// Whether two buffers hold the same: integers bit by bit, floats within a tolerance.
fn agree(ty: Type, known: &[u8], found: &[u8], tolerance: f64) -> bool {
    if !ty.is_float() {
        return known == found;
    }
    let value = |bytes: &[u8]| {
        let bits = bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
        f64::from_bits(scalar::convert(Type::F64, ty, bits))
    };
    let width = ty.bytes() as usize;
    known.len() == found.len() && known.chunks(width).zip(found.chunks(width)).all(|(known, found)| (value(known) - value(found)).abs() <= tolerance)
}
