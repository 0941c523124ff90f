//! `tectum explain FILE.atlas`: what a program is recognised as, and its device code.

use std::path::{Path, PathBuf};

use clap::Args;
use tectum::{Error, ErrorKind, Kernel, Result};
use tectum_programs::{
    Bounded, BufferAccess, BufferIndex, LaunchConfig, Program, ProgramPlan, Recognize, Recognized,
    Shape,
};

use crate::run::program::{Given, integers, open};
use crate::table::print;

/// Elements of a buffer whose size is not given.
const ELEMENTS: u64 = 1024;
/// The maximum size of a buffer.
const MAX_BYTES: u64 = 1 << 32;

/// Shows what a lane-level program was recognised as.
#[derive(Args)]
#[group(skip)]
pub struct ProgramArgs {
    /// A program in its text form, a genome, or a model's folder or GGUF file; the content shows
    /// which.
    // Without a value where a subcommand is given.
    #[arg(value_name = "FILE.atlas|GENOME.json|MODEL", required = true)]
    pub file: Option<PathBuf>,
    // The same arrays and launch as of `tectum run`. Without arrays, buffers have 1,024 elements.
    #[command(flatten)]
    run: crate::run::program::ProgramArgs,
    /// Of a program without arrays: bytes of buffers; 1,024 elements if not given.
    #[arg(id = "bytes", long = "sizes", value_name = "NAME=BYTES", num_args = 1.., conflicts_with_all = ["inputs", "outputs", "sizes"])]
    bytes: Vec<String>,
    /// Of a program without arrays: contents of integer buffers, such as counts; they also set the
    /// buffer's size.
    #[arg(long, value_name = "NAME=N,N…", num_args = 1.., conflicts_with_all = ["inputs", "outputs", "sizes"])]
    values: Vec<String>,
}

impl ProgramArgs {
    /// The first option given that only programs take.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--sizes", !self.bytes.is_empty()),
            ("--values", !self.values.is_empty()),
        ];
        given
            .into_iter()
            .find_map(|(name, is_given)| is_given.then_some(name))
            .or(self.run.given())
    }
}

/// A launch without arrays.
struct Assumed {
    launch: LaunchConfig,
    sizes: Vec<u64>,
    contents: Vec<(BufferIndex, Vec<u8>)>,
}

/// Prints the explanation: of the same plan that `tectum run` executes.
pub fn explain_program(file: &Path, args: &ProgramArgs) -> Result<()> {
    let checked = open(file)?;
    let (program, how) = (checked.program(), args.run.recognize());
    if args.run.has_arrays() {
        let Given { arrays, launch, .. } = Given::new(program, &args.run)?;
        return explain(
            &checked.bound(&launch, &arrays.sizes())?,
            how,
            &integers(program, &arrays),
        );
    }
    let Assumed {
        launch,
        sizes,
        contents,
    } = assumed(args, program)?;
    let contents: Vec<(BufferIndex, &[u8])> = contents
        .iter()
        .map(|(index, bytes)| (*index, bytes.as_slice()))
        .collect();
    explain(&checked.bound(&launch, &sizes)?, how, &contents)
}

fn explain(bounded: &Bounded, how: Recognize, contents: &[(BufferIndex, &[u8])]) -> Result<()> {
    let program = bounded.checked().program();
    match bounded.plan_as(how, contents) {
        Ok(plan) => print(&format!(
            "{program}\n{}{}",
            text_of(plan.recorded().recognized()),
            device_code(&plan)
        )),
        Err(error) if error.kind() == ErrorKind::Unsupported => print(&format!(
            "{program}\nno kernel takes it, so the reference interpreter runs it: {error}\n"
        )),
        Err(error) => Err(error),
    }
}

fn assumed(args: &ProgramArgs, program: &Program) -> Result<Assumed> {
    let mut sizes: Vec<u64> = program
        .buffers()
        .iter()
        .map(|buffer| ELEMENTS * buffer.ty.bytes())
        .collect();
    let mut given = vec![false; sizes.len()];
    for text in &args.bytes {
        let (index, value) = named(program, "--sizes", text)?;
        given[index] = true;
        let bytes = value.parse().ok().filter(|bytes| *bytes <= MAX_BYTES);
        sizes[index] = bytes.ok_or_else(|| {
            Error::invalid(format!(
                "--sizes {text}: a number of bytes up to {MAX_BYTES} is needed"
            ))
        })?;
    }
    let mut contents = Vec::new();
    for text in &args.values {
        let (index, value) = named(program, "--values", text)?;
        let buffer = &program.buffers()[index];
        let number = |word: &str| {
            word.trim()
                .parse::<i128>()
                .ok()
                .filter(|_| buffer.ty.is_integer())
        };
        let numbers: Option<Vec<i128>> = value.split(',').map(number).collect();
        let needed = || {
            Error::invalid(format!(
                "--values {text}: whole numbers for a buffer of integers are needed, and {} is of {}",
                buffer.name, buffer.ty
            ))
        };
        let bytes: Vec<u8> = numbers
            .ok_or_else(needed)?
            .iter()
            .flat_map(|number| {
                number
                    .to_le_bytes()
                    .into_iter()
                    .take(buffer.ty.bytes() as usize)
            })
            .collect();
        sizes[index] = bytes.len() as u64;
        if buffer.access == BufferAccess::Read {
            contents.push((BufferIndex(index as u32), bytes));
        }
    }
    let standard = if program.uses_lanes() {
        LaunchConfig::linear(fit(program, &mut sizes, &given)?, 256)
    } else {
        LaunchConfig::default()
    };
    Ok(Assumed {
        launch: args.run.request().or(standard),
        sizes,
        contents,
    })
}

/// The number of elements that lanes take one each of: that of the first buffer of a given size.
/// The other buffers of such elements get as many.
fn fit(program: &Program, sizes: &mut [u64], given: &[bool]) -> Result<u32> {
    let own = |index: usize| program.own_element_bytes(BufferIndex(index as u32));
    let Some((count, first)) = (0..sizes.len())
        .filter(|index| given[*index])
        .find_map(|index| Some((sizes[index] / own(index)?, index)))
    else {
        return Ok(ELEMENTS as u32);
    };
    for index in (0..sizes.len()).filter(|index| !given[*index]) {
        if let Some(bytes) = own(index) {
            sizes[index] = count.saturating_mul(bytes);
        }
    }
    let name = &program.buffers()[first].name;
    u32::try_from(count).map_err(|_| {
        Error::invalid(format!(
            "--sizes {name}: {count} elements are more than a launch has lanes"
        ))
    })
}

/// A buffer's index and its value in an option.
fn named<'a>(program: &Program, option: &str, text: &'a str) -> Result<(usize, &'a str)> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| Error::invalid(format!("{option} {text}: NAME=… is needed")))?;
    let names = || {
        program
            .buffers()
            .iter()
            .map(|buffer| buffer.name.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let index = program
        .buffers()
        .iter()
        .position(|buffer| buffer.name == name);
    Ok((
        index.ok_or_else(|| {
            Error::invalid(format!(
                "{option} {text}: the program has no buffer {name}; declared: {}",
                names()
            ))
        })?,
        value,
    ))
}

/// What the program is, why, and what it is not.
fn text_of(recognized: &Recognized) -> String {
    let program = recognized.program().program();
    let LaunchConfig { grid, block, .. } = recognized.launch();
    let sizes: Vec<String> = program
        .buffers()
        .iter()
        .zip(recognized.sizes())
        .map(|(buffer, bytes)| format!("{} {bytes}", buffer.name))
        .collect();
    let mut text = format!(
        "launched as grid {grid:?} of block {block:?}; bytes: {}\n\nrecognised as: {}\n",
        sizes.join(", "),
        recognized.shape()
    );
    for obligation in recognized.obligations() {
        text += &format!("  {}: {}\n", obligation.claim, obligation.proof);
    }
    for reason in recognized.reasons() {
        text += &format!("  {reason}\n");
    }
    match recognized.shape() {
        Shape::Map(map) => {
            text + &format!(
                "\nre-rolled, for grid {:?} of block {:?}:\n{}",
                map.launch().grid,
                map.launch().block,
                map.program().program()
            )
        }
        _ => text,
    }
}

/// The kernels that are recorded for it, in WGSL and PTX.
fn device_code(plan: &ProgramPlan) -> String {
    if let Some(unsupported) = plan.unsupported() {
        return format!("\nruns on the CPU alone: {unsupported}\n");
    }
    let mut text = String::new();
    let mut seen = Vec::new();
    // Kernels that only move buffers or clear the fault words are left out.
    let kernels = plan.recorded().launch().map_or_else(
        || plan.plan().kernels().collect(),
        |launch| vec![launch.lowered().kernel()],
    );
    for kernel in kernels {
        if seen.contains(&kernel.hash()) {
            continue;
        }
        seen.push(kernel.hash());
        text += &format!(
            "\nkernel {}, WGSL:\n{}\nkernel {}, PTX:\n{}",
            kernel.name(),
            kernel.wgsl(),
            kernel.name(),
            ptx_of(kernel)
        );
    }
    text
}

/// The kernel as PTX, or a comment that says why there is no PTX.
fn ptx_of(kernel: &Kernel) -> String {
    #[cfg(feature = "cuda")]
    return kernel.ptx().unwrap_or_else(|error| format!("// {error}\n"));
    #[cfg(not(feature = "cuda"))]
    format!(
        "// kernel {}: this build leaves PTX out: the feature \"cuda\" is off\n",
        kernel.name()
    )
}
