//! The rows of the suite of programs: launches of lane-level programs, and what a repeated dispatch
//! costs.

use std::sync::{Arc, Mutex, PoisonError};

use tectum::{
    Api, CodeObject, DType, Device, Error, ErrorKind, PlanBuilder, Result, RunStats, View,
};
use tectum_programs::{
    BufferIndex, Checked, LaunchConfig, Program, ProgramCache, ProgramRun, ProgramView,
    library_text,
};

use super::{Case, OnThreads, Roofline, Work, Workload, fill_all, plan_of};

/// √(|(a·b + a) − b| · a), as the core's row of this name.
const CHAIN6: &str = "\
program chain6
buffer a: f32 read
buffer b: f32 read
buffer y: f32 write
    ldg.f32 r0, [a]
    ldg.f32 r1, [b]
    mul.f32 r2, r0, r1
    add.f32 r2, r2, r0
    sub.f32 r2, r2, r1
    abs.f32 r2, r2
    mul.f32 r2, r2, r0
    sqrt.f32 r2, r2
    stg.f32 [y], r2
";

/// sigmoid(1.5x + 0.25) · tanh(x).
const SIGMOID_TANH: &str = "\
program sigmoid_tanh
buffer x: f32 read
buffer y: f32 write
    ldg.f32 r0, [x]
    mov_imm.f32 r1, 1.5
    mov_imm.f32 r2, 0.25
    mad.f32 r1, r0, r1, r2
    sigmoid.f32 r1, r1
    tanh.f32 r0, r0
    mul.f32 r0, r0, r1
    stg.f32 [y], r0
";

/// Lanes of a block.
const BLOCK: u32 = 256;
/// Elements of the dispatch.
const FEW: usize = 4;

/// Time of the predecessor's interpreter for a row's work on two cores, in seconds.
pub fn predecessor_seconds(key: &str) -> Option<f64> {
    (key == "programs.vector_add.n65536").then_some(2.995)
}

/// Every row; a software device gets a sixteenth of the elements.
pub(super) fn cases(device: &Device) -> Vec<Case> {
    let scale = if device.info().software { 16 } else { 1 };
    let (long, middle) = ((16 << 20) / scale, (1 << 20) / scale);
    let mut cases = vec![
        Case::of(
            "programs",
            elementwise("chain6", format!("n{long}"), CHAIN6, long, 3),
        ),
        Case::of(
            "programs",
            elementwise("vector_add", "n65536".to_owned(), vector_add(), 65_536, 3),
        ),
    ];
    let single = elementwise(
        "sigmoid_tanh",
        format!("n{middle}"),
        SIGMOID_TANH,
        middle,
        2,
    );
    cases.push(if device.info().api == Api::Cpu {
        on_one_thread(single)
    } else {
        Case::of("programs", single)
    });
    cases.push(Case {
        key: format!("programs.dispatch.n{FEW}"),
        roofline: Roofline::Copy,
        threads: None,
        amount: 12.0 * FEW as f64,
        prepare: Box::new(|device| Ok(Box::new(Dispatch::new(device)?))),
        alternatives: Vec::new(),
    });
    cases
}

/// The four instructions for an element.
fn vector_add() -> &'static str {
    library_text("vector_add").expect("invariant: it is in the library")
}

fn program(text: &str) -> Result<Checked> {
    Program::parse(text)?.check()
}

/// A program over this many buffers of n elements.
fn elementwise(
    name: &'static str,
    shape: String,
    text: &'static str,
    n: usize,
    buffers: usize,
) -> Work {
    let record = move |plan: &mut PlanBuilder, views: &[View]| {
        let views: Vec<ProgramView> = views.iter().map(|view| ProgramView::from(*view)).collect();
        let sizes: Vec<u64> = views.iter().map(|view| view.bytes).collect();
        let bounded = program(text)?.bound(&LaunchConfig::linear(n as u32, BLOCK), &sizes)?;
        bounded
            .checked()
            .record(plan, bounded.launch(), &views, bounded.bounds())
            .map(|_| ())
    };
    let amount = (4 * buffers * n) as f64;
    Work {
        name,
        shape,
        roofline: Roofline::Copy,
        amount,
        operands: vec![(DType::F32, n); buffers],
        below: 2,
        record: Box::new(record),
    }
}

/// A row that the CPU runs on one thread.
fn on_one_thread(work: Work) -> Case {
    Case {
        key: format!("programs.{}.{}.one_thread", work.name, work.shape),
        roofline: work.roofline,
        threads: Some(1),
        amount: work.amount,
        prepare: Box::new(move |device| {
            let (plan, views) = plan_of(&work)?;
            let make = || {
                let mut run = plan.compile(device)?;
                fill_all(&mut run, &views, work.below)?;
                Ok(run)
            };
            Ok(Box::new(OnThreads::new(1, make)?))
        }),
        alternatives: Vec::new(),
    }
}

/// The steps of a caller that has a program, a launch and a few numbers: check, bound, find the
/// launch that was recognised and compiled, run it.
struct Dispatch {
    device: Device,
    program: Program,
    cache: ProgramCache,
    code: Vec<CodeObject>,
}

impl Dispatch {
    fn new(device: &Device) -> Result<Self> {
        let program = Program::parse(vector_add())?;
        let mut dispatch = Self {
            device: device.clone(),
            program,
            cache: ProgramCache::new(8, 8),
            code: Vec::new(),
        };
        let run = dispatch.compiled()?;
        dispatch.code = run
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .executable()
            .code()
            .to_vec();
        Ok(dispatch)
    }

    fn compiled(&self) -> Result<Arc<Mutex<ProgramRun>>> {
        let bounded = self.program.check()?.bound(
            &LaunchConfig::linear(FEW as u32, BLOCK),
            &[4 * FEW as u64; 3],
        )?;
        self.cache.run(&bounded, &self.device)
    }
}

impl Workload for Dispatch {
    fn run(&mut self) -> Result<RunStats> {
        let run = self.compiled()?;
        let mut run = run.lock().unwrap_or_else(PoisonError::into_inner);
        for buffer in [BufferIndex(0), BufferIndex(1)] {
            run.input(buffer)
                .copy_from_slice(bytemuck::cast_slice(&[1.0f32; FEW]));
        }
        let stats = run.run()?;
        let is_sum = run.output(BufferIndex(2)) == bytemuck::cast_slice::<f32, u8>(&[2.0; FEW]);
        if is_sum || self.device.info().api == Api::Null {
            Ok(stats)
        } else {
            Err(Error::new(ErrorKind::Mismatch, "bench: 1 + 1 is not 2"))
        }
    }

    fn code(&self) -> &[CodeObject] {
        &self.code
    }
}
