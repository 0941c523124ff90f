//! The predecessor's eight defects, as far as they concern the results of programs: none of them
//! recurs.

use std::time::{Duration, Instant};

use tectum::{Device, ErrorKind};

use super::{bytes_of, run, values_of};
use crate::{Bounds, BufferIndex, LaunchConfig, Outcome, Program, ProgramCache, Recognize};

const ADD: &str = "buffer a: f32 read\nbuffer b: f32 read\nbuffer y: f32 write\nldg.f32 r0, [a]\nldg.f32 r1, [b]\nadd.f32 r2, r0, r1\nstg.f32 [y], r2\n";

/// The last buffer after a run on the CPU, of the program unchanged or as recognised.
fn planned(text: &str, launch: LaunchConfig, buffers: &[Vec<u8>], recognize: Recognize) -> Vec<u8> {
    let sizes: Vec<u64> = buffers.iter().map(|bytes| bytes.len() as u64).collect();
    let bounded = Program::parse(text)
        .and_then(|program| program.check()?.bound(&launch, &sizes))
        .expect("fits");
    let mut run = bounded
        .plan_as(recognize, &[])
        .and_then(|plan| plan.compile(&Device::open("cpu")?))
        .expect("compiles");
    for (index, bytes) in (0..).map(BufferIndex).zip(buffers).take(buffers.len() - 1) {
        run.input(index).copy_from_slice(bytes);
    }
    run.run().expect("runs");
    run.output(BufferIndex(buffers.len() as u32 - 1)).to_vec()
}

/// Defect 1: the first arithmetic instruction replaced the whole program, over 1,024 elements for
/// any launch.
#[test]
fn the_whole_program_runs_over_every_element() {
    let more = ADD.replace("stg", "mul.f32 r2, r2, r2\nmul.f32 r2, r2, r0\nstg");
    for n in [1u32, 3, 1_023, 1_025, 5_000] {
        let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let b = vec![2.0f32; n as usize];
        let buffers = vec![bytes_of(&a), bytes_of(&b), vec![0; 4 * n as usize]];
        let expected: Vec<f32> = a.iter().map(|a| (a + 2.0) * (a + 2.0) * a).collect();
        for recognize in [Recognize::Off, Recognize::Exact, Recognize::Reassociated] {
            assert_eq!(
                values_of::<f32>(&planned(
                    &more,
                    LaunchConfig::linear(n, 256),
                    &buffers,
                    recognize
                )),
                expected,
                "n = {n}, {recognize:?}"
            );
        }
        assert_eq!(
            values_of::<f32>(&run(&more, LaunchConfig::linear(n, 256), buffers)[2]),
            expected,
            "n = {n}"
        );
    }
}

/// Defect 2: on CUDA every program ended in an error, without a fallback to the CPU.
#[test]
fn programs_have_code_for_cuda_and_what_device_code_cannot_do_runs_on_the_cpu() {
    let ptx_of = |text: &str| {
        let program = Program::parse(text)
            .and_then(|program| program.check())
            .expect("valid");
        let lowered = program
            .lower(&LaunchConfig::linear(3, 256), Bounds::Proven)
            .unwrap_or_else(|reason| panic!("{reason}"));
        let (module, info) = lowered.kernel().module().expect("valid");
        naga_ptx::translate(&module, &info, "main", &naga_ptx::Options::default())
            .expect("translates")
            .ptx
    };
    assert!(ptx_of(ADD).contains("add.rn.f32") || ptx_of(ADD).contains("add.f32"));
    let wide = "buffer x: f64 read\nbuffer y: f64 write\nldg.f64 r0, [x]\nadd.f64 r0, r0, r0\nstg.f64 [y], r0";
    let program = Program::parse(wide)
        .and_then(|program| program.check())
        .expect("valid");
    let plan = program
        .bound(&LaunchConfig::linear(2, 256), &[16, 16])
        .and_then(|bounded| bounded.plan())
        .expect("made");
    let refusal = plan
        .compile(&Device::open("null").expect("always there"))
        .expect_err("no device code");
    assert!(
        refusal.kind() == ErrorKind::Unsupported && refusal.to_string().contains("f64"),
        "{refusal}"
    );
    let mut run = plan
        .compile(&Device::open("cpu").expect("always there"))
        .expect("the CPU takes every program");
    run.input(BufferIndex(0))
        .copy_from_slice(&bytes_of(&[1.5f64, -2.0]));
    run.run().expect("runs");
    assert_eq!(run.output(BufferIndex(1)), bytes_of(&[3.0f64, -4.0]));
}

/// Defect 3: relu, gelu, softmax, sums, losses, boundary buffers and everything over 3,072 elements
/// had no device code, and the matrix product ran on the host.
#[test]
fn the_whole_library_and_the_boundary_have_device_code_at_every_size() {
    let boundary = "program boundary\nbuffer x: f32 read_write boundary\nldg.f32 r0, [Phi(3,1,4)]\nadd.f32 r0, r0, r0\nstg.f32 [Phi(3,1,8)], r0";
    let boundary = Program::parse(boundary)
        .and_then(|program| program.check())
        .expect("valid");
    let jobs = super::library::cases()
        .into_iter()
        .map(|(_, case)| case(3_073));
    let library = jobs.map(|job| (job.program, job.launch));
    for (program, launch) in library.chain([(boundary, LaunchConfig::default())]) {
        let name = program.program().name();
        for bounds in [Bounds::Checked, Bounds::Proven] {
            let lowered = program
                .lower(&launch, bounds)
                .unwrap_or_else(|reason| panic!("{name}: {reason}"));
            lowered
                .kernel()
                .translate()
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            let (module, info) = lowered
                .kernel()
                .module()
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            naga_ptx::translate(&module, &info, "main", &naga_ptx::Options::default())
                .unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

/// Defect 4: a part of the kernel's name selected the operation, and reductions had a count of 0.
#[test]
fn a_name_does_not_choose_the_operation() {
    let text = format!("program relu_sub\n{ADD}");
    let buffers = vec![
        bytes_of(&[1.0f32, -5.0]),
        bytes_of(&[2.0f32, 2.0]),
        vec![0; 8],
    ];
    assert_eq!(
        values_of::<f32>(&planned(
            &text,
            LaunchConfig::linear(2, 2),
            &buffers,
            Recognize::Reassociated
        )),
        [3.0, -3.0]
    );
    assert_eq!(
        values_of::<f32>(&run(&text, LaunchConfig::linear(2, 2), buffers)[2]),
        [3.0, -3.0]
    );
    assert!(Program::parse("reduce_add.f32 r0, r1, 0").is_err());
}

/// Defect 5: a cache of programs omitted the constants from its key.
#[test]
fn programs_that_differ_in_a_constant_differ_in_every_form() {
    let [one, two] = ["1.0", "2.0"]
        .map(|value| Program::parse(&format!("mov_imm.f32 r0, {value}")).expect("valid"));
    assert_ne!(one, two);
    assert_ne!(one.to_bytes(), two.to_bytes());
    // The cache has its own test in its module; this tests its process-wide instance, through
    // plans.
    let device = Device::open("cpu").expect("always there");
    for value in ["0.25", "706.125", "0.25"] {
        let text = format!("buffer y: f32 write\nmov_imm.f32 r0, {value}\nstg.f32 [y], r0");
        let program = Program::parse(&text)
            .and_then(|program| program.check())
            .expect("valid");
        let bounded = program
            .bound(&LaunchConfig::linear(1, 1), &[4])
            .expect("fits");
        let run = ProgramCache::shared()
            .run(&bounded, &device)
            .expect("compiles");
        let mut run = run.lock().expect("nothing panicked");
        run.run().expect("runs");
        assert_eq!(
            values_of::<f32>(run.output(BufferIndex(0))),
            [value.parse::<f32>().expect("a number")]
        );
    }
    let [small, large] = ["0.001", "0.002"]
        .map(|epsilon| Program::parse(&format!("unity_test p0, {epsilon}")).expect("valid"));
    assert_ne!(small.to_bytes(), large.to_bytes());
}

/// Defect 6: buffers were 96 classes, and exhausted after eleven calls.
#[test]
fn a_program_runs_any_number_of_times_and_has_any_number_of_buffers() {
    for _ in 0..200 {
        run(
            ADD,
            LaunchConfig::linear(1, 1),
            vec![vec![0; 4], vec![0; 4], vec![0; 4]],
        );
    }
    let plan = Program::parse(ADD)
        .and_then(|program| program.check()?.bound(&LaunchConfig::linear(1, 1), &[4; 3]))
        .and_then(|bounded| bounded.plan())
        .expect("fits");
    let device = Device::open("cpu").expect("always there");
    for _ in 0..200 {
        plan.compile(&device)
            .and_then(|mut run| run.run())
            .expect("no buffer is ever used up");
    }
    let many: String = (0..300)
        .map(|i| format!("buffer x{i}: u8 write\n"))
        .collect();
    let stores: String = (0..300).map(|i| format!("stg.u8 [x{i}], r0\n")).collect();
    let buffers = run(
        &format!("{many}mov_imm.u8 r0, 7\n{stores}"),
        LaunchConfig::default(),
        vec![vec![0]; 300],
    );
    assert!(buffers.iter().all(|bytes| bytes == &[7]));
}

/// Defect 7: each load copied the whole buffer. Here the number of steps equals the instructions of
/// all lanes, and 1,000 lanes that load from a buffer 16,384 times as long take far less than
/// 16,384 times as long.
#[test]
fn steps_are_linear_in_the_elements_and_loads_do_not_depend_on_the_buffer_s_length() {
    for n in [1_000u32, 100_000] {
        let program = Program::parse(ADD)
            .and_then(|program| program.check())
            .expect("valid");
        let mut buffers = vec![vec![0; 4 * n as usize]; 3];
        assert_eq!(
            program
                .evaluate(
                    &LaunchConfig::linear(n, 250),
                    &mut buffers,
                    4 * u64::from(n)
                )
                .expect("fits"),
            Outcome::Finished
        );
        assert_eq!(
            program
                .evaluate(
                    &LaunchConfig::linear(n, 250),
                    &mut buffers,
                    4 * u64::from(n) - 1
                )
                .expect("fits"),
            Outcome::OutOfSteps
        );
    }
    for (short, long) in loading(1_000).into_iter().zip(loading(16_384_000)) {
        assert!(
            long < 1_000 * short,
            "1,000 loads: {short:?} from 1,000 elements, {long:?} from 16,384,000"
        );
    }
}

/// The shortest time of several attempts that 1,000 loads take, by the reference and by a run on
/// the CPU.
fn loading(elements: usize) -> [Duration; 2] {
    let text = "buffer x: f32 read\nbuffer y: f32 write\nmov_imm.u64 r1, 4\nmul.u64 r1, r255, r1\nldg.f32 r0, [x + r1]\nexp.f32 r0, r0\nstg.f32 [y], r0";
    let program = Program::parse(text)
        .and_then(|program| program.check())
        .expect("valid");
    let (launch, mut buffers) = (
        LaunchConfig::linear(1_000, 250),
        vec![vec![0; 4 * elements], vec![0; 4_000]],
    );
    let plan = program
        .bound(&launch, &[4 * elements as u64, 4_000])
        .and_then(|bounded| bounded.plan_as(Recognize::Off, &[]))
        .expect("fits");
    let mut run = plan
        .compile(&Device::open("cpu").expect("always there"))
        .expect("compiles");
    let timed = |work: &mut dyn FnMut()| {
        let once = |work: &mut dyn FnMut()| {
            let start = Instant::now();
            work();
            start.elapsed()
        };
        (0..5).map(|_| once(work)).min().unwrap_or_default()
    };
    let reference = timed(&mut || {
        assert_eq!(
            program
                .evaluate(&launch, &mut buffers, u64::MAX)
                .expect("fits"),
            Outcome::Finished
        )
    });
    [
        reference,
        timed(&mut || assert_eq!(run.run().expect("runs").fallbacks, 0)),
    ]
}

/// Defect 8: shared loads went to global memory, barriers did nothing, a branch to itself fell
/// through, the epsilon of a unity test was unused.
#[test]
fn shared_memory_barriers_self_branches_and_epsilon_are_real() {
    let exchange = "buffer y: u32 write\nshared 8\nsts.u32 [shared], r252\nbar.sync 0\nlds.u32 r0, [shared + 4]\nstg.u32 [y], r0";
    assert_eq!(
        values_of::<u32>(&run(exchange, LaunchConfig::linear(2, 2), vec![vec![0; 8]])[0]),
        [1, 1]
    );
    let endless = Program::parse("@self: bra @self")
        .and_then(|program| program.check())
        .expect("valid");
    assert_eq!(
        endless
            .evaluate(&LaunchConfig::default(), &mut [], 10)
            .expect("fits"),
        Outcome::OutOfSteps
    );
    for (epsilon, expected) in [("0.4", 0u8), ("0.6", 1)] {
        let text = format!(
            "buffer y: u8 write\nmov_imm.u32 r0, 4\nmov_imm.f32 r1, -0.5\nres_accum r0, r1\nunity_test p0, {epsilon}\n\
             mov_imm.u8 r2, 1\nmov_imm.u8 r3, 0\nsel.u8 r2, p0, r2, r3\nstg.u8 [y], r2"
        );
        assert_eq!(
            run(&text, LaunchConfig::default(), vec![vec![9]]),
            [vec![expected]]
        );
    }
}
