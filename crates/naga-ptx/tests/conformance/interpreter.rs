//! Runs the table's PTX in the interpreter: every variant of translation, several orders of
//! threads, exact and perturbed approximations, with conflicting accesses reported.

use ptx_interpreter::{Approximation, Launch, Memory, Program, Schedule};
use rayon::prelude::*;

use crate::case::{Case, Target};
use crate::kernel::{VARIANTS, Variant};
use crate::report::{Outcome, Run};

/// Threads in a warp.
const SUBGROUP_SIZE: usize = 32;
/// Far above the needs of any case: more means an infinite loop.
const INSTRUCTION_LIMIT: u64 = 200_000_000;

const EXECUTIONS: &[(usize, Schedule, Approximation)] = &[
    (0, Schedule::Forward, Approximation::Exact),
    (0, Schedule::Reverse, Approximation::Exact),
    (0, Schedule::Random(1), Approximation::Perturbed(1)),
    (1, Schedule::Forward, Approximation::Exact),
    (1, Schedule::Random(2), Approximation::Perturbed(2)),
];

/// Runs the cases.
pub fn run(cases: &[&Case]) -> Result<Vec<Run>, String> {
    let outcomes = cases
        .par_iter()
        .map(|case| (case.name.clone(), outcome(case)))
        .collect();
    let (device, driver) = (
        "interpreter".to_owned(),
        format!("ptx-interpreter {}", env!("CARGO_PKG_VERSION")),
    );
    Ok(vec![Run {
        runner: "interpreter",
        device,
        driver,
        outcomes,
        note: None,
    }])
}

fn outcome(case: &Case) -> Outcome {
    for (index, &variant) in VARIANTS
        .iter()
        .enumerate()
        .filter(|(_, variant)| variant.determines(case))
    {
        if let Err(why) = check_variant(case, index, variant) {
            return Outcome::Failed(format!("{}: {why}", variant.name));
        }
    }
    Outcome::Passed
}

fn check_variant(case: &Case, index: usize, variant: Variant) -> Result<(), String> {
    let kernel = variant.translate(case)?;
    let program = Program::parse(&kernel.ptx).map_err(|error| format!("parsing: {error}"))?;
    for &(_, schedule, approximation) in EXECUTIONS.iter().filter(|(of, ..)| *of == index) {
        let mut memory = Memory::new();
        let addresses = case
            .buffers
            .iter()
            .map(|buffer| memory.allocate(&buffer.bytes))
            .collect::<Vec<_>>();
        let parameters = kernel.bindings.iter().flat_map(|binding| {
            let at = binding.binding as usize;
            [addresses[at], case.buffers[at].bytes.len() as u64]
        });
        let launch = Launch {
            entry: &kernel.entry,
            grid: case.groups,
            block: kernel.workgroup_size,
            params: &parameters.collect::<Vec<_>>(),
            dynamic_shared_bytes: kernel.dynamic_shared_bytes,
            schedule,
            instruction_limit: INSTRUCTION_LIMIT,
            race_check: true,
            approximation,
        };
        let how = format!("{schedule:?}, {approximation:?}");
        program
            .run(&mut memory, &launch)
            .map_err(|error| format!("{how}: {error}"))?;
        for output in case.outputs(SUBGROUP_SIZE).iter() {
            let bytes = case.buffers[output.buffer].bytes.len();
            let contents = memory
                .read(addresses[output.buffer], bytes)
                .map_err(|error| format!("{how}: {error}"))?;
            output
                .compare(Target::Ptx, &contents)
                .map_err(|difference| format!("{how}: {difference}"))?;
        }
    }
    Ok(())
}
