//! `tectum explain FILE.atlas`: what a program is recognised as, and its device code.

use std::path::PathBuf;

use clap::Args;
use tectum::{DType, Error, Kernel, PlanBuilder, Result};
use tectum_programs::{Bounds, BufferAccess, BufferIndex, Checked, LaunchConfig, Program, ProgramView, Recognition, Recognized, Setting, Shape};

use crate::library::program_text;
use crate::table::print;

/// Elements of a buffer whose size is not given.
const ELEMENTS: u64 = 1024;
/// The maximum size of a buffer.
const MAX_BYTES: u64 = 1 << 32;

/// Shows what a lane-level program was recognised as.
#[derive(Args)]
pub struct ProgramArgs {
    /// A program in its text form, a genome, or a model's folder or GGUF file; the content shows which.
    #[arg(value_name = "FILE.atlas|GENOME.json|MODEL")]
    pub file: PathBuf,
    /// Blocks in x, y, z.
    ///
    /// Without it, as many as 1,024 lanes need if the program uses its lane's number, else one.
    #[arg(long, value_name = "X[,Y[,Z]]")]
    grid: Option<String>,
    /// Lanes of a block in x, y, z: 256 in x if the program has a use for its lane's number, else one.
    #[arg(long, value_name = "X[,Y[,Z]]")]
    block: Option<String>,
    /// Bytes of buffers; 1,024 elements if not given.
    #[arg(long, value_name = "NAME=BYTES", num_args = 1..)]
    sizes: Vec<String>,
    /// Contents of integer buffers, such as counts; they also set the buffer's size.
    #[arg(long, value_name = "NAME=N,N…", num_args = 1..)]
    values: Vec<String>,
    /// Allows sums of floats in another order.
    #[arg(long)]
    reassociate: bool,
}

impl ProgramArgs {
    /// The first option given that only programs take.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--grid", self.grid.is_some()),
            ("--block", self.block.is_some()),
            ("--sizes", !self.sizes.is_empty()),
            ("--values", !self.values.is_empty()),
            ("--reassociate", self.reassociate),
        ];
        given.into_iter().find_map(|(name, is_given)| is_given.then_some(name))
    }
}

/// A launch, and the buffers that are known.
struct Given {
    launch: LaunchConfig,
    sizes: Vec<u64>,
    contents: Vec<(BufferIndex, Vec<u8>)>,
}

/// Prints the explanation.
pub fn explain_program(args: &ProgramArgs) -> Result<()> {
    let path = args.file.display();
    let text = program_text(&args.file)?;
    let program = Program::parse(&text).and_then(|program| program.check()).map_err(|error| error.at(&path))?;
    let given = given(args, program.program())?;
    let contents: Vec<(BufferIndex, &[u8])> = given.contents.iter().map(|(index, bytes)| (*index, bytes.as_slice())).collect();
    let setting = Setting { launch: &given.launch, sizes: &given.sizes, contents: &contents, reassociate: args.reassociate };
    let recognized = program.recognize(&setting)?;
    print(&format!("{}\n{}{}", program.program(), text_of(&recognized), device_code(&program, &given, args.reassociate)?))
}

fn given(args: &ProgramArgs, program: &Program) -> Result<Given> {
    let mut sizes: Vec<u64> = program.buffers().iter().map(|buffer| ELEMENTS * buffer.ty.bytes()).collect();
    for text in &args.sizes {
        let (index, value) = named(program, text)?;
        let bytes = value.parse().ok().filter(|bytes| *bytes <= MAX_BYTES);
        sizes[index] = bytes.ok_or_else(|| Error::invalid(format!("sizes {text:?}: a number of bytes up to {MAX_BYTES} is needed")))?;
    }
    let mut contents = Vec::new();
    for text in &args.values {
        let (index, value) = named(program, text)?;
        let ty = program.buffers()[index].ty;
        let number = |word: &str| word.trim().parse::<i128>().ok().filter(|_| ty.is_integer());
        let numbers: Option<Vec<i128>> = value.split(',').map(number).collect();
        let numbers = numbers.ok_or_else(|| Error::invalid(format!("values {text:?}: integers for a buffer of integers are needed")))?;
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes().into_iter().take(ty.bytes() as usize)).collect();
        sizes[index] = bytes.len() as u64;
        contents.push((BufferIndex(index as u32), bytes));
    }
    Ok(Given { launch: launch(args, program)?, sizes, contents })
}

/// A buffer's index and its value in the option.
fn named<'a>(program: &Program, text: &'a str) -> Result<(usize, &'a str)> {
    let (name, value) = text.split_once('=').ok_or_else(|| Error::invalid(format!("{text:?}: NAME=… is needed")))?;
    let index = program.buffers().iter().position(|buffer| buffer.name == name);
    Ok((index.ok_or_else(|| Error::invalid(format!("{text:?}: the program has no buffer {name}")))?, value))
}

fn launch(args: &ProgramArgs, program: &Program) -> Result<LaunchConfig> {
    let standard = if program.uses_lanes() { LaunchConfig::linear(ELEMENTS as u32, 256) } else { LaunchConfig::default() };
    let size = |text: &Option<String>, otherwise: [u32; 3]| text.as_ref().map_or(Ok(otherwise), |text| triple(text));
    Ok(LaunchConfig { grid: size(&args.grid, standard.grid)?, block: size(&args.block, standard.block)?, ..LaunchConfig::default() })
}

fn triple(text: &str) -> Result<[u32; 3]> {
    let wrong = || Error::invalid(format!("{text:?}: one to three sizes with commas between them are needed"));
    let mut sizes = [1; 3];
    let words: Vec<&str> = text.split(',').collect();
    if words.len() > 3 {
        return Err(wrong());
    }
    for (size, word) in sizes.iter_mut().zip(words) {
        *size = word.trim().parse().map_err(|_| wrong())?;
    }
    Ok(sizes)
}

/// What the program is, why, and what it is not.
fn text_of(recognized: &Recognized) -> String {
    let program = recognized.program().program();
    let LaunchConfig { grid, block, .. } = recognized.launch();
    let sizes: Vec<String> = program.buffers().iter().zip(recognized.sizes()).map(|(buffer, bytes)| format!("{} {bytes}", buffer.name)).collect();
    let mut text = format!("launched as grid {grid:?} of block {block:?}; bytes: {}\n\nrecognised as: {}\n", sizes.join(", "), recognized.shape());
    for obligation in recognized.obligations() {
        text += &format!("  {}: {}\n", obligation.claim, obligation.proof);
    }
    for (shape, refusal) in recognized.refusals() {
        let line = refusal.instruction.and_then(|index| Some((program.span(index)?, program.instructions().get(index)?)));
        let place = line.map_or(String::new(), |(span, instruction)| format!(" (line {}: {})", span.line, program.instruction_text(instruction)));
        text += &format!("not {shape}: {}{place}\n", refusal.reason);
    }
    match recognized.shape() {
        Shape::Map(map) => text + &format!("\nre-rolled, for grid {:?} of block {:?}:\n{}", map.launch().grid, map.launch().block, map.program().program()),
        _ => text,
    }
}

/// The kernels that are recorded for it, in WGSL and PTX.
fn device_code(program: &Checked, given: &Given, reassociate: bool) -> Result<String> {
    let mut plan = PlanBuilder::new(program.program().name());
    let mut views = Vec::new();
    for (index, (buffer, bytes)) in program.program().buffers().iter().zip(&given.sizes).enumerate() {
        let known = given.contents.iter().find(|(known, _)| known.0 as usize == index).filter(|_| buffer.access == BufferAccess::Read);
        let view = match known {
            Some((_, content)) => plan.constant(&buffer.name, &words(content)),
            None => plan.state(&buffer.name, DType::U32, bytes.div_ceil(4) as usize),
        };
        views.push(ProgramView { view, bytes: *bytes });
    }
    let how = Recognition { reassociate, bounds: Bounds::Checked };
    let recorded = match program.record_recognized(&mut plan, &given.launch, &views, how) {
        Ok(recorded) => recorded,
        Err(error) => return Ok(format!("\nno kernel takes it: {error}\n")),
    };
    if let Some(unsupported) = recorded.launch().and_then(|launch: &tectum_programs::ProgramLaunch| launch.lowered().unsupported()) {
        return Ok(format!("\nruns on the CPU alone: {unsupported}\n"));
    }
    let plan = plan.finish()?;
    let mut text = String::new();
    let mut seen = Vec::new();
    // Kernels that only clear the fault words are left out.
    let kernels = recorded.launch().map_or_else(|| plan.kernels().collect(), |launch| vec![launch.lowered().kernel()]);
    for kernel in kernels {
        if seen.contains(&kernel.hash()) {
            continue;
        }
        seen.push(kernel.hash());
        text += &format!("\nkernel {}, WGSL:\n{}\nkernel {}, PTX:\n{}", kernel.name(), kernel.wgsl(), kernel.name(), ptx_of(kernel));
    }
    Ok(text)
}

/// The kernel as PTX, or a comment that says why there is no PTX.
fn ptx_of(kernel: &Kernel) -> String {
    #[cfg(feature = "cuda")]
    return kernel.ptx().unwrap_or_else(|error| format!("// {error}\n"));
    #[cfg(not(feature = "cuda"))]
    format!("// kernel {}: this build leaves PTX out: the feature \"cuda\" is off\n", kernel.name())
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks(4).map(|chunk| chunk.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte))).collect()
}
