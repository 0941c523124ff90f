//! `tectum run FILE.atlas`: a program over arrays in files, from the command line to the files it
//! fills.

mod arrays;
mod report;

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use tectum::{
    Api, Device, Error, ErrorKind, Fallback, InputFile, Receipt, Result, RunStats, Session,
};
use tectum_programs::{
    ArrayLaunch, Bounded, BufferAccess, BufferIndex, Checked, LaunchConfig, LaunchRequest, Outcome,
    Program, ProgramPlan, ProgramRun, Recognize,
};

use self::arrays::Arrays;
use self::report::Report;
use super::RunArgs;
use crate::library::program_text;
use crate::messages;
use crate::table::{self, print_json};

/// What only programs take.
#[derive(Args)]
pub struct ProgramArgs {
    /// Of a program: the contents of a buffer, or, without a name, of the next one that the program
    /// reads.
    #[arg(long = "in", value_name = "[NAME=]FILE.npy")]
    inputs: Vec<String>,
    /// Of a program: where a buffer goes, or, without a name, the next one that the program writes.
    ///
    /// `tectum explain` writes nothing.
    #[arg(long = "out", value_name = "[NAME=]FILE.npy")]
    outputs: Vec<String>,
    /// Of a program: the shape of a buffer without contents.
    ///
    /// Without it, the buffer has as many elements as the inputs, or one for each lane.
    #[arg(long = "size", value_name = "NAME=N[,N…]")]
    sizes: Vec<String>,
    /// Of a program: blocks of the launch.
    ///
    /// Without it, as many as the elements need; one if nothing depends on the lane.
    #[arg(long, value_name = "X[,Y,Z]", value_parser = extent)]
    grid: Option<[u32; 3]>,
    /// Of a program: lanes of a block.
    ///
    /// Without it 256, or 64 to 256 that divide the number of elements if the program does not
    /// depend on blocks and --grid is not given; one if nothing depends on the lane.
    #[arg(long, value_name = "X[,Y,Z]", value_parser = extent)]
    block: Option<[u32; 3]>,
    /// Of a program: bytes of a block's shared memory, if more than the program declares.
    #[arg(long, value_name = "BYTES")]
    shared: Option<u32>,
    /// Of a program: maximum number of backward jumps of a lane; 100,000,000 if not given.
    ///
    /// A run in which a lane would exceed it ends with an error.
    #[arg(long, value_name = "TURNS", value_parser = clap::value_parser!(u32).range(..i64::from(u32::MAX)))]
    limit: Option<u32>,
    /// Of a program: runs it unchanged, even if it could be recognised.
    #[arg(long)]
    no_recognize: bool,
    /// Of a program: allows sums of floats in another order where it is recognised.
    #[arg(long, conflicts_with = "no_recognize")]
    reassociate: bool,
}

impl ProgramArgs {
    /// The first of these options that was given.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--in", !self.inputs.is_empty()),
            ("--out", !self.outputs.is_empty()),
            ("--size", !self.sizes.is_empty()),
            ("--grid", self.grid.is_some()),
            ("--block", self.block.is_some()),
            ("--shared", self.shared.is_some()),
            ("--limit", self.limit.is_some()),
            ("--no-recognize", self.no_recognize),
            ("--reassociate", self.reassociate),
        ];
        given
            .into_iter()
            .find_map(|(name, is_given)| is_given.then_some(name))
    }

    /// Whether arrays or shapes were given.
    pub fn has_arrays(&self) -> bool {
        !(self.inputs.is_empty() && self.outputs.is_empty() && self.sizes.is_empty())
    }

    /// What these options decide about the launch.
    pub fn request(&self) -> LaunchRequest {
        LaunchRequest {
            grid: self.grid,
            block: self.block,
            shared_bytes: self.shared,
            max_loop_iterations: self.limit,
        }
    }

    /// What may be done with the program.
    pub fn recognize(&self) -> Recognize {
        match (self.no_recognize, self.reassociate) {
            (true, _) => Recognize::Off,
            (false, false) => Recognize::Exact,
            (false, true) => Recognize::Reassociated,
        }
    }
}

/// One to three sizes with commas between them; those left out are 1.
fn extent(text: &str) -> std::result::Result<[u32; 3], String> {
    let sizes: std::result::Result<Vec<u32>, _> =
        text.split(',').map(|size| size.trim().parse()).collect();
    match sizes.as_deref() {
        Ok([x]) => Ok([*x, 1, 1]),
        Ok([x, y]) => Ok([*x, *y, 1]),
        Ok([x, y, z]) => Ok([*x, *y, *z]),
        _ => Err("one to three whole numbers are needed, as 4 or 4,2,1".to_owned()),
    }
}

/// A launch over arrays, as the command line gives them.
pub struct Given {
    pub arrays: Arrays,
    pub launch: LaunchConfig,
    /// Elements of the arrays that lanes access by their own number, if there are such arrays.
    elements: Option<u64>,
}

impl Given {
    /// Reads the arrays of a program and determines its launch.
    ///
    /// # Errors
    /// As [`Arrays::new`] and [`Program::launch_over`].
    pub fn new(program: &Program, args: &ProgramArgs) -> Result<Self> {
        let mut arrays = Arrays::new(program, args)?;
        let ArrayLaunch {
            launch,
            shapes,
            elements,
        } = program.launch_over(&arrays.shapes(program), &args.request())?;
        arrays.complete(program, shapes)?;
        Ok(Self {
            arrays,
            launch,
            elements,
        })
    }

    /// An error of the run, with what a lane without an element may have to do with it.
    fn explained(&self, path: &str, error: &Error) -> Error {
        let lanes = self.launch.lanes();
        let surplus = self
            .elements
            .filter(|elements| *elements < lanes && error.kind() == ErrorKind::Invalid);
        let note = surplus.map_or_else(String::new, |elements| {
            format!("\n{lanes} lanes ran for {elements} elements: those from {elements} on read zeros. --block with a divisor of {elements} leaves them out")
        });
        Error::new(error.kind(), format!("{path}: {error}{note}"))
    }
}

/// Runs a program once.
///
/// # Errors
/// Errors in the program, its launch and its files; a lane's fault; what the device reports. No
/// file is written in that case.
pub fn run(path: &str, args: &RunArgs) -> Result<()> {
    let checked = open(Path::new(path))?;
    if args.device == "null" {
        return Err(Error::invalid(format!(
            "run {path}: null executes nothing; a program needs another device"
        )));
    }
    let given = Given::new(checked.program(), &args.program)?;
    let (arrays, launch) = (&given.arrays, given.launch);
    arrays.check_outputs()?;
    let inputs = args.receipt.inputs(args.json, || {
        Ok([&[PathBuf::from(path)][..], &arrays.files()].concat())
    })?;
    let bounded = checked.bound(&launch, &arrays.sizes())?;
    let plan = match bounded.plan_as(
        args.program.recognize(),
        &integers(checked.program(), arrays),
    ) {
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            return interpret(path, args, &bounded, (arrays, inputs), &error);
        }
        other => other?,
    };
    let (device, mut run, fallback) = compile(&args.device, &plan)?;
    let mut session = Session::new(&device);
    session.uses(run.executable());
    if let Some(Fallback { what, reason, .. }) = &fallback {
        session.record_fallback(what, reason);
        if args.device != "auto" {
            messages::warning(format_args!("{what} was not used: {reason}"));
        }
    }
    match execute(&mut run, arrays, &mut session) {
        // The device cut a loop off: its output is not a result.
        Err(error) if error.kind() == ErrorKind::Unsupported && device.info().api != Api::Cpu => {
            let cpu = Device::open("cpu")?;
            (run, session) = (plan.compile(&cpu)?, Session::new(&cpu));
            session.uses(run.executable());
            session.record_fallback(&device.info().id, &error.to_string());
            messages::warning(format_args!("{} was not used: {error}", device.info().id));
            execute(&mut run, arrays, &mut session)
                .map_err(|error| given.explained(path, &error))?;
        }
        other => other.map_err(|error| given.explained(path, &error))?,
    }
    let saved = arrays.save(checked.program(), |buffer| run.output(buffer))?;
    let receipt = Receipt {
        inputs,
        ..session.receipt()
    };
    say(
        args,
        &Report::new(
            path,
            &bounded,
            Some(&run),
            receipt,
            (saved, arrays.discarded(checked.program())),
        ),
    )
}

fn say(args: &RunArgs, report: &Report) -> Result<()> {
    args.receipt.save(&report.receipt)?;
    table::report(&report.text(), args.json)?;
    if args.json {
        print_json(report)
    } else {
        Ok(())
    }
}

/// Runs a program that cannot become a kernel, for example because of its many buffers, in the
/// reference interpreter.
fn interpret(
    path: &str,
    args: &RunArgs,
    bounded: &Bounded,
    (arrays, inputs): (&Arrays, Vec<InputFile>),
    why: &Error,
) -> Result<()> {
    // A device that does not exist is an error here too.
    let asked = Device::open(&args.device)?.info().id.clone();
    let mut session = Session::new(&Device::open("cpu")?);
    session.record_fallback(&asked, &format!("{why}; the reference interpreter ran it"));
    let (program, mut buffers) = (bounded.checked().program(), arrays.filled());
    let start = Instant::now();
    if let Outcome::Fault(fault) =
        bounded
            .checked()
            .evaluate(bounded.launch(), &mut buffers, u64::MAX)?
    {
        return Err(fault.error(program));
    }
    session.record(&RunStats::default(), start.elapsed().as_nanos() as u64);
    let saved = arrays.save(program, |buffer| &buffers[buffer.0 as usize])?;
    let receipt = Receipt {
        inputs,
        ..session.receipt()
    };
    say(
        args,
        &Report::new(
            path,
            bounded,
            None,
            receipt,
            (saved, arrays.discarded(program)),
        ),
    )
}

/// The contents of integer buffers that the program only reads, such as counts and sizes.
pub fn integers<'a>(program: &Program, arrays: &'a Arrays) -> Vec<(BufferIndex, &'a [u8])> {
    let held = program.buffers().iter().zip(arrays.contents()).enumerate();
    let given = held
        .filter(|(_, (buffer, _))| buffer.access == BufferAccess::Read && buffer.ty.is_integer());
    given
        .map(|(index, (_, contents))| (BufferIndex(index as u32), contents))
        .collect()
}

/// Reads and checks a program.
///
/// # Errors
/// A file that cannot be read; a program that is malformed or that the check rejects.
pub fn open(path: &Path) -> Result<Checked> {
    let text = program_text(path)?;
    Program::parse(&text)
        .and_then(|program| program.check())
        .map_err(|error| error.at(path.display()))
}

/// Compiles for the device with an id, or for the CPU if that device cannot run the program.
fn compile(id: &str, plan: &ProgramPlan) -> Result<(Device, ProgramRun, Option<Fallback>)> {
    let (device, fallback) = if id == "auto" {
        plan.choose_device()?
    } else {
        (Device::open(id)?, None)
    };
    let what = device.info().id.clone();
    match plan.compile(&device) {
        Ok(run) => Ok((device, run, fallback)),
        Err(error) if error.kind() == ErrorKind::Unsupported && what != "cpu" => {
            let cpu = Device::open("cpu")?;
            let run = plan.compile(&cpu)?;
            Ok((
                cpu,
                run,
                Some(Fallback {
                    what,
                    reason: error.to_string(),
                    count: 1,
                }),
            ))
        }
        Err(error) => Err(error),
    }
}

fn execute(run: &mut ProgramRun, arrays: &Arrays, session: &mut Session) -> Result<()> {
    let known = run.recorded().recognized().known().to_vec();
    let inputs = arrays
        .contents()
        .enumerate()
        .map(|(index, contents)| (BufferIndex(index as u32), contents));
    for (buffer, contents) in inputs.filter(|(buffer, _)| !known.contains(buffer)) {
        run.input(buffer).copy_from_slice(contents);
    }
    let start = Instant::now();
    let stats = run.run()?;
    session.record(&stats, start.elapsed().as_nanos() as u64);
    Ok(())
}
