//! Lowered programs on every device, including software Vulkan, compared with the reference
//! interpreter.

use tectum::{DType, Device, ErrorKind, PlanBuilder, Result, View};

use super::{Bounds, LaunchConfig, checked};
use crate::generate::{Generated, generate};
use crate::tests::{differ, seeds, words};
use crate::{BufferAccess, Checked, Fault, LoweredCache, Outcome, ProgramView, Recognition};

/// The available devices, including software Vulkan; prints a line for each skipped one.
pub fn devices(what: &str) -> Vec<Device> {
    let open = |id: &str| match Device::open(id) {
        Ok(device) => Some(device),
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            println!("skipped: no {id}: {what}");
            None
        }
        Err(error) => panic!("{error}"),
    };
    ["cpu", "vulkan:0", "cuda:0"]
        .into_iter()
        .filter_map(open)
        .collect()
}

/// Runs a program on a device; returns the buffers after it, and the fault.
pub fn run_on(
    device: &Device,
    program: &Checked,
    launch: &LaunchConfig,
    buffers: &[Vec<u8>],
    bounds: Bounds,
) -> Result<(Vec<Vec<u8>>, Option<Fault>)> {
    let mut plan = PlanBuilder::new("program");
    let mut views: Vec<ProgramView> = Vec::new();
    for (declared, bytes) in program.program().buffers().iter().zip(buffers) {
        let words = words(bytes);
        let view = match declared.access {
            BufferAccess::Read => plan.constant(&declared.name, &words),
            _ => plan.state(&declared.name, DType::U32, words.len()),
        };
        views.push(ProgramView {
            view,
            bytes: bytes.len() as u64,
        });
    }
    // Generated programs have no fault by construction, which the checker does not always prove.
    let recorded = program.record_lowered(
        &mut plan,
        LoweredCache::shared().lowered(program, launch, bounds)?,
        launch,
        &views,
    )?;
    recorded
        .lowered()
        .fits(device.info())
        .map_err(|unsupported| unsupported.error())?;
    let mut run = plan.finish()?.compile(device)?;
    let writable = |index: usize| program.program().buffers()[index].access.writes();
    for (index, (view, bytes)) in views.iter().zip(buffers).enumerate() {
        if writable(index) && !bytes.is_empty() {
            run.write_state(view.view, &words(bytes))?;
        }
    }
    run.run()?;
    let mut after = Vec::new();
    for (index, (view, bytes)) in views.iter().zip(buffers).enumerate() {
        after.push(if writable(index) {
            read(&run, view.view, bytes.len())?
        } else {
            bytes.clone()
        });
    }
    Ok((after, recorded.fault(&run)?))
}

fn read(run: &tectum::Executable, view: View, bytes: usize) -> Result<Vec<u8>> {
    if bytes == 0 {
        return Ok(Vec::new());
    }
    let words = run.read_state::<u32>(view)?;
    Ok(bytemuck::cast_slice::<u32, u8>(&words)[..bytes].to_vec())
}

/// Software Vulkan's compiler takes most of the time, one program at a time in a process: two
/// processes share the seeds. They run with its optimiser off, which takes half as long; these
/// programs check the lowered code, not the driver. The optimiser processes every kernel and the
/// library of programs in other tests.
#[test]
fn generated_programs_agree_with_the_reference() {
    const HALF: &str = "TECTUM_HALF_OF_PROGRAMS";
    if let Some(half) = std::env::var(HALF).ok().and_then(|half| half.parse().ok()) {
        for device in devices("generated programs") {
            let (ran, left) = generated_programs_agree_on(&device, half);
            println!(
                "generated programs on {}, half {half}: {ran} ran, {left} are not for device code",
                device.info().id
            );
            assert!(
                ran >= (ran + left) / 5,
                "{ran} of {} generated programs ran",
                ran + left
            );
        }
        return;
    }
    let halves = ["0", "1"].map(|half| {
        let mut process = std::process::Command::new(std::env::current_exe().expect("this test"));
        process.args([
            "--exact",
            "lower::tests::devices::generated_programs_agree_with_the_reference",
            "--nocapture",
        ]);
        process.env(HALF, half).env("GALLIVM_PERF", "nopt");
        process
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("it starts again")
    });
    for (half, process) in halves.into_iter().enumerate() {
        let ended = process.wait_with_output().expect("it ends");
        let printed = String::from_utf8_lossy(&ended.stdout);
        print!("{printed}");
        // A wrong test name would run no test, and succeed.
        assert!(
            ended.status.success() && printed.contains(&format!("half {half}: ")),
            "half {half} failed: {:?}",
            ended.status
        );
    }
}

/// Every second seed; returns how many programs ran and how many device code does not support.
fn generated_programs_agree_on(device: &Device, half: u64) -> (usize, usize) {
    let (mut ran, mut left) = (0, 0);
    for seed in seeds().filter(|seed| seed % 2 == half) {
        let generated = generate(seed);
        let Generated {
            program,
            launch,
            buffers,
        } = &generated;
        let mut expected = buffers.clone();
        let outcome = program
            .evaluate(launch, &mut expected, Generated::MAX_STEPS)
            .expect("generated launches fit");
        assert_eq!(outcome, Outcome::Finished);
        if program.lower(launch, Bounds::Checked).is_err() {
            left += 1;
            continue;
        }
        // Compilation takes most of the time, so each program is compiled once.
        let bounds = if seed / 2 % 2 == 0 {
            Bounds::Checked
        } else {
            Bounds::Proven
        };
        let (after, fault) = run_on(device, program, launch, buffers, bounds)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(fault, None, "seed {seed}\n{}", program.program());
        for (declared, (ours, theirs)) in program
            .program()
            .buffers()
            .iter()
            .zip(after.iter().zip(&expected))
        {
            let found = differ(declared.ty, ours, theirs, generated.tolerance(declared.ty));
            assert!(
                found.is_none(),
                "seed {seed}, {}: {}\n{}",
                declared.name,
                found.unwrap_or_default(),
                program.program()
            );
        }
        ran += 1;
    }
    (ran, left)
}

#[test]
fn a_small_program_runs() {
    let program = checked(
        "buffer x: f32 read\nbuffer y: i32 read_write\nldg.f32 r0, [x]\nadd.f32 r0, r0, r0\ncvt.i32.f32 r1, r0\nldg.i32 r2, [y]\nsub.i32 r1, r1, r2\nstg.i32 [y], r1",
    );
    let x = bytemuck::cast_slice(&[1.5f32, -2.0, 3e9]).to_vec();
    let y = bytemuck::cast_slice(&[1i32, 2, 3]).to_vec();
    for bounds in [Bounds::Checked, Bounds::Forced, Bounds::Proven] {
        for device in devices("a small program") {
            let (after, fault) = run_on(
                &device,
                &program,
                &LaunchConfig::linear(3, 2),
                &[x.clone(), y.clone()],
                bounds,
            )
            .expect("it runs");
            assert_eq!(
                (bytemuck::pod_collect_to_vec::<u8, i32>(&after[1]), fault),
                (vec![2, -6, i32::MAX - 3], None)
            );
        }
    }
}

/// Lanes that leave a loop at different times keep their values, whatever the neighbouring lanes
/// continue to compute.
#[test]
fn lanes_leave_loops_with_what_they_had() {
    let start = "buffer x: u64 read\nbuffer y: u64 write\nldg.u64 r0, [x]\nmov_imm.u64 r1, 5\nmov_imm.u32 r3, 3\nand.u32 r2, r252, r3\n@again:\n";
    let ends = [
        "xor.u64 r0, r0, r1\nloop r2, @again",
        "xor.u64 r0, r0, r1\nset.ge.u32 p0, r2, r3\nmov_imm.u32 r4, 1\nadd.u32 r2, r2, r4\nbra @again, !p0",
        "xor.u64 r0, r0, r1\nmov_imm.u32 r4, 0\nset.eq.u32 p0, r2, r4\nbra @out, p0\nmov_imm.u32 r4, 1\nsub.u32 r2, r2, r4\nbra @again, !p0\n@out:",
    ];
    let x: Vec<u8> = (0..64u64)
        .flat_map(|lane| (lane * 0x1234_5678_9abc).to_le_bytes())
        .collect();
    let buffers = [x, vec![0; 512]];
    for end in ends {
        let program = checked(&format!("{start}{end}\nstg.u64 [y], r0"));
        let launch = LaunchConfig::linear(64, 32);
        let mut expected = buffers.to_vec();
        assert_eq!(
            program
                .evaluate(&launch, &mut expected, 10_000)
                .expect("it fits"),
            Outcome::Finished
        );
        for device in devices("loops that lanes leave") {
            let (after, _) =
                run_on(&device, &program, &launch, &buffers, Bounds::Proven).expect("it runs");
            let found = differ(crate::Type::U64, &after[1], &expected[1], 0.0);
            assert_eq!(found, None, "{device:?}\n{}", program.program());
        }
    }
}

#[test]
fn several_programs_of_one_plan_run_in_order_by_one_submission() {
    let buffers = "buffer x: f32 read\nbuffer y: f32 write\nldg.f32 r0, [x]\n";
    let [double, square] =
        ["add", "mul"].map(|op| checked(&format!("{buffers}{op}.f32 r0, r0, r0\nstg.f32 [y], r0")));
    let launch = LaunchConfig::linear(100, 32);
    for device in devices("several programs in one plan") {
        let mut plan = PlanBuilder::new("three programs");
        let (x, between) = (plan.input("x", DType::F32, 100), plan.temp(DType::F32, 100));
        let [y, z] = ["y", "z"].map(|name| plan.output(name, DType::F32, 100));
        let how = Recognition {
            reassociate: false,
            bounds: Bounds::Proven,
        };
        double
            .record(
                &mut plan,
                &launch,
                &[x.into(), between.into()],
                Bounds::Proven,
            )
            .expect("fits");
        square
            .record_recognized(&mut plan, &launch, &[between.into(), y.into()], how)
            .expect("fits");
        double
            .record(
                &mut plan,
                &launch,
                &[between.into(), z.into()],
                Bounds::Checked,
            )
            .expect("fits");
        let mut run = plan
            .finish()
            .and_then(|plan| plan.compile(&device))
            .expect("compiles");
        run.input::<f32>(x)
            .iter_mut()
            .zip(0u8..)
            .for_each(|(x, i)| *x = f32::from(i));
        let stats = run.run().expect("runs");
        // The words for the fault of the checked one are cleared in addition.
        assert_eq!((stats.submissions, stats.launches), (1, 4), "{device:?}");
        assert!(
            (0u8..100)
                .map(f32::from)
                .zip(run.output::<f32>(y).iter().zip(run.output::<f32>(z)))
                .all(|(x, (y, z))| (*y, *z) == (4.0 * x * x, 4.0 * x)),
            "{device:?}"
        );
    }
}
