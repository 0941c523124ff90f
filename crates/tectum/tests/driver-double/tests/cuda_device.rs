//! The CUDA device on the stand-in driver: every call it makes to a driver is executed, without a
//! GPU.
//!
//! Each test runs in its own process, with the stand-in on its library path and its settings in the
//! environment.

use std::collections::BTreeSet;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tectum::snapshot::Snapshot;
use tectum::{Boundary, DType, Device, ErrorKind, Executable, PlanBuilder, Session, Stream, View};
use tectum_bench::conformance::{Case, CaseContext, Part, Seed, suites};
use tectum_control::clock::SimClock;
use tectum_control::closed_loop::{ClosedLoop, Sink, TickRecord};
use tectum_control::scenario::Scenario;
use tectum_control::scenario::build::{build_body, build_brain};
use tectum_field as field;
use tectum_field::Shape;
use tectum_spiking::{
    Memory, Network, NetworkOptions, NeuronOptions, Neurons, PlasticityRule, Simulation,
    SimulationOptions, Synapse, SynapseList, WeightLoss,
};

use self::fnv_collision::colliding_kernels;

#[path = "../../../../tectum-bench/tests/fnv_collision.rs"]
mod fnv_collision;
#[path = "../../../../tectum-bench/tests/stray_kernel.rs"]
mod stray_kernel;
#[path = "../../../../tectum-bench/tests/users_kernels.rs"]
#[allow(dead_code, reason = "an interpreter runs only some of them quickly")]
mod users_kernels;

/// A test: its name, its environment and what it does.
type Test = (
    &'static str,
    &'static [(&'static str, &'static str)],
    fn() -> Result<(), String>,
);

const TESTS: &[Test] = &[
    (
        "the_device_is_listed_with_what_the_driver_says",
        &[],
        listed,
    ),
    (
        "a_network_learns_as_on_the_cpu",
        &[("CUDA_DOUBLE_DEVICES", "2"), ("CUDA_DOUBLE_RACES", "1")],
        learning,
    ),
    (
        "every_conformance_case_holds_and_none_races",
        &[("CUDA_DOUBLE_RACES", "1")],
        conformance,
    ),
    ("the_pendulum_acts_as_on_the_cpu", &[], pendulum),
    (
        "a_spiking_network_fires_as_on_the_cpu",
        &[("CUDA_DOUBLE_DEVICES", "2"), ("CUDA_DOUBLE_RACES", "1")],
        spiking,
    ),
    (
        "a_field_cycles_as_on_the_cpu",
        &[("CUDA_DOUBLE_RACES", "1")],
        field,
    ),
    ("a_traced_run_times_each_launch", &[], traced),
    (
        "buffers_move_between_devices",
        &[("CUDA_DOUBLE_DEVICES", "2")],
        peers,
    ),
    (
        "another_library_uses_a_state_at_its_address",
        &[],
        shared_address,
    ),
    (
        "an_old_driver_is_refused_with_its_version",
        &[("CUDA_DOUBLE_VERSION", "11000")],
        || absent("11.0"),
    ),
    (
        "an_old_card_is_refused_with_its_capability",
        &[("CUDA_DOUBLE_CAPABILITY", "70")],
        || absent("7.0"),
    ),
    (
        "a_driver_without_devices_says_so",
        &[("CUDA_DOUBLE_DEVICES", "0")],
        || absent("cuInit: CUDA_ERROR_NO_DEVICE"),
    ),
    (
        "lack_of_memory_is_told_with_its_size",
        &[("CUDA_DOUBLE_MEMORY", "1000000")],
        out_of_memory,
    ),
    (
        "streams_execute_in_order_and_events_order_them",
        &[("CUDA_DOUBLE_DEVICES", "2")],
        streams,
    ),
    (
        "a_device_lost_in_a_stream_is_told_by_wait",
        &[("CUDA_DOUBLE_FAIL", "cuEventSynchronize:2:719")],
        lost_in_stream,
    ),
    (
        "suspect_a_run_that_cannot_be_marked_is_waited_for",
        &[("CUDA_DOUBLE_FAIL", "cuEventRecord:1:999")],
        unmarked,
    ),
    (
        "suspect_a_trace_that_fails_midway_is_waited_for",
        &[("CUDA_DOUBLE_FAIL", "cuEventRecord:2:999")],
        untraced,
    ),
    (
        "suspect_foreign_views_are_refused_before_an_address",
        &[],
        foreign_views,
    ),
    (
        "defect_04_kernels_whose_texts_collide_are_two_kernels",
        &[],
        colliding,
    ),
    (
        "suspect_a_users_kernel_stays_within_its_bindings",
        &[],
        strays,
    ),
    (
        "launches_of_users_kernels_compute_every_item",
        &[],
        every_item,
    ),
    (
        "a_lost_device_is_told_with_the_call",
        &[("CUDA_DOUBLE_FAIL", "cuGraphLaunch:2:719")],
        lost,
    ),
];

/// Maximum size of a case for the interpreter, in elements of inputs and outputs.
const MAX_ELEMENTS: usize = 6_000;

const CHOSEN: &str = "CUDA_DOUBLE_TEST";

fn main() -> ExitCode {
    if let Ok(chosen) = std::env::var(CHOSEN) {
        let outcome = TESTS
            .iter()
            .find(|(name, ..)| *name == chosen)
            .map_or(Err("no such test".to_owned()), |(_, _, test)| test());
        return match outcome {
            Ok(()) => ExitCode::SUCCESS,
            Err(message) => {
                eprintln!("{message}");
                ExitCode::FAILURE
            }
        };
    }
    let filter = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'))
        .unwrap_or_default();
    let library_path = match library_folder() {
        Ok(path) => path,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::FAILURE;
        }
    };
    let chosen: Vec<&Test> = TESTS
        .iter()
        .filter(|(name, ..)| name.contains(&filter))
        .collect();
    let (next, passed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(|| {
                while let Some(test) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    passed.fetch_add(usize::from(run(test, &library_path)), Ordering::Relaxed);
                }
            });
        }
    });
    let passed = passed.into_inner();
    let failed = chosen.len() - passed;
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {verdict}. {passed} passed; {failed} failed; 0 ignored; 0 measured; {} filtered out",
        TESTS.len() - chosen.len()
    );
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn run((name, environment, _): &Test, library_path: &Path) -> bool {
    let outcome = std::env::current_exe().and_then(|itself| {
        let mut command = Command::new(itself);
        command
            .env("LD_LIBRARY_PATH", library_path)
            .env(CHOSEN, name)
            .envs(environment.iter().copied())
            .output()
    });
    let passed = outcome.as_ref().is_ok_and(|output| output.status.success());
    println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
    if let (false, Ok(output)) = (passed, &outcome) {
        println!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    passed
}

/// A folder with the stand-in under the driver's name.
fn library_folder() -> Result<PathBuf, String> {
    let itself = std::env::current_exe().map_err(|e| e.to_string())?;
    let built = itself
        .parent()
        .ok_or("no folder of the test")?
        .join("libdriver_double.so");
    if !built.exists() {
        return Err(format!("{} was not built", built.display()));
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("driver");
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let name = folder.join("libcuda.so.1");
    let partial = folder.join(format!("copy-{}", std::process::id()));
    std::fs::copy(&built, &partial)
        .and_then(|_| std::fs::rename(&partial, &name))
        .map_err(|e| format!("{}: {e}", name.display()))?;
    Ok(folder)
}

fn check(condition: bool, what: impl Into<String>) -> Result<(), String> {
    if condition { Ok(()) } else { Err(what.into()) }
}

fn cuda() -> Result<Device, String> {
    Device::open("cuda:0").map_err(|e| e.to_string())
}

fn listed() -> Result<(), String> {
    let devices = Device::list();
    let found = devices
        .iter()
        .find(|info| info.id == "cuda:0")
        .ok_or("cuda:0 is not listed")?;
    check(found.name.contains("test double"), found.name.clone())?;
    check(found.driver.contains("12.4"), found.driver.clone())?;
    check(
        found.pci.as_deref() == Some("0000:00:00.0"),
        format!("{:?}", found.pci),
    )?;
    check(
        found.compute_units == Some(2) && found.memory_bytes == Some(1 << 32),
        "compute units and memory",
    )?;
    check(cuda()?.info() == found, "the open device is the listed one")
}

fn colliding() -> Result<(), String> {
    let device = cuda()?;
    for (kernel, factor) in colliding_kernels().iter().zip([2, 3]) {
        let multiples = || {
            let mut plan = PlanBuilder::new("multiples");
            let (x, y) = (
                plan.input("x", DType::U32, 100),
                plan.output("y", DType::U32, 100),
            );
            plan.launch_dynamic(kernel, &[x, y], &[100], 1)?;
            let mut run = plan.finish()?.compile(&device)?;
            run.input::<u32>(x).fill(7);
            run.run()?;
            Ok::<_, tectum::Error>(run.output::<u32>(y).to_vec())
        };
        let found = multiples().map_err(|e| e.to_string())?;
        check(
            found == [7 * factor; 100],
            format!("{factor} times 7: {found:?}"),
        )?;
    }
    Ok(())
}

fn every_item() -> Result<(), String> {
    let device = cuda()?;
    users_kernels::sizes(&device)
        .and_then(|()| users_kernels::rows(&device))
        .and_then(|()| users_kernels::count(&device))
        .map_err(|e| e.to_string())
}

fn strays() -> Result<(), String> {
    stray_kernel::stray(&cuda()?)
        .map_err(|e| e.to_string())?
        .map_or(Ok(()), Err)
}

/// Every kernel of the core compared with its reference, in the cases that an interpreter can run
/// quickly; of the suites, the part that `TECTUM_PART` names.
fn conformance() -> Result<(), String> {
    let device = cuda()?;
    let part = Part::from_environment().map_err(|e| e.to_string())?;
    let mut session = Session::new(&device);
    let (mut launched, mut cases) = (BTreeSet::new(), 0);
    for suite in part.of(suites()) {
        // Separate kernels merge the parts of a long row; short rows do not need them.
        let chosen =
            |case: &Case| case.elements() <= MAX_ELEMENTS || is_long(&suite.name, &case.shape);
        for case in (suite.cases)(&mut Seed::new(1, &suite.name))
            .iter()
            .filter(|case| chosen(case))
        {
            let mut trial = CaseContext {
                device: &device,
                session: &mut session,
                launched: &mut launched,
            };
            case.run(&mut trial)
                .map_err(|e| format!("{} {}: {e}", suite.name, case.shape))?;
            cases += 1;
        }
    }
    let missed: Vec<String> = tectum::operation::kernels()
        .iter()
        .map(|kernel| kernel.name().to_owned())
        .filter(|name| !launched.contains(name))
        .collect();
    println!("conformance on cuda:0 (test double): {cases} cases");
    check(
        !part.is_whole() || missed.is_empty() && cases > 200,
        format!("{cases} cases, no case for {missed:?}"),
    )
}

/// Whether a case is one row that is long for a reduction.
fn is_long(suite: &str, shape: &str) -> bool {
    suite == "argmax" && shape.starts_with("argmax 1×")
        || suite == "variance" && shape.starts_with("1×")
}

/// The actions of the first ticks.
#[derive(Default)]
struct Actions(Vec<f32>);

impl Sink for Actions {
    fn tick(&mut self, record: &TickRecord<'_>) -> tectum::Result<()> {
        self.0.extend_from_slice(record.action);
        Ok(())
    }

    fn snapshot(&mut self, _snapshot: Snapshot) -> tectum::Result<()> {
        Ok(())
    }
}

fn pendulum_actions(device: &Device) -> tectum::Result<(Vec<f32>, String)> {
    let mut scenario = Scenario::open("pendulum")?;
    scenario.set_seconds(0.16)?;
    let plant = build_body(&scenario)?;
    let brain = build_brain(
        &scenario,
        plant.as_ref(),
        device,
        &mut tectum::WorkProgress::ignore,
    )?;
    let mut actions = Actions::default();
    let outcome = ClosedLoop::new(plant, brain, &scenario.run, device)?.run(
        &mut SimClock::new(),
        &mut actions,
        &mut |_| std::ops::ControlFlow::Continue(()),
    );
    Ok((actions.0, format!("{:?}", outcome.end)))
}

/// One step from the same state, within float rounding: the loop's first actions agree closely.
fn pendulum() -> Result<(), String> {
    let on = |device: &Device| pendulum_actions(device).map_err(|e| e.to_string());
    let (cuda, ended) = on(&cuda()?)?;
    let (cpu, _) = on(&Device::open("cpu").map_err(|e| e.to_string())?)?;
    check(
        cuda.len() == cpu.len() && cuda.len() >= 4,
        format!("{} actions; {ended}", cuda.len()),
    )?;
    let worst = cuda
        .iter()
        .zip(&cpu)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0f32, f32::max);
    check(
        worst < 1e-3,
        format!("actions differ by {worst}: {cuda:?} and {cpu:?}"),
    )
}

/// 300 neurons that leak, rest, hesitate and tire, a hundred stimulated in each burst, of two formats:
/// the same spikes on the CPU, on a device, and in shards of two devices and the CPU.
fn spiking() -> Result<(), String> {
    let counts = |ids: &[&str]| -> tectum::Result<_> {
        let tired = NeuronOptions {
            threshold: 2.0,
            refractory: 1,
            leak: 0.1,
            excitability: 0.8,
            consecutive_fire_limit: 2,
            snooze: 3,
            psp: 3,
            ..NeuronOptions::default()
        };
        let driven = NeuronOptions {
            threshold: 1.0,
            threshold_limit: Some(100_000.0),
            potential_driven_psp: true,
            uniform_psp: true,
            ..NeuronOptions::default()
        };
        let mut neurons = Neurons::default();
        neurons.add(200, &tired)?;
        neurons.add(100, &driven)?;
        let synapse = |i: u32| {
            (
                i % 300,
                Synapse::fixed(
                    (i * 7 + i / 300) % 300,
                    1 + (i % 5) as u8,
                    i.is_multiple_of(4),
                ),
            )
        };
        let rows = SynapseList::new(300, &(0..6000).map(synapse).collect::<Vec<_>>())?;
        let network = Network::new(&neurons, Box::new(rows), NetworkOptions::default())?;
        assert_eq!(network.fraction_bits(), 13..=16);
        let devices = ids
            .iter()
            .map(|id| Device::open(id))
            .collect::<tectum::Result<Vec<_>>>()?;
        let mut simulation =
            Simulation::sharded(Arc::new(network), &devices, &SimulationOptions::default())?;
        for burst in 0..8 {
            simulation.inject(
                &(0..100)
                    .map(|i| ((i * 3 + burst) % 300, 2.5))
                    .collect::<Vec<_>>(),
            )?;
            simulation.run(1)?;
        }
        Ok((simulation.counts(), simulation.potentials()?))
    };
    let expected = counts(&["cpu"]).map_err(|e| e.to_string())?;
    check(expected.0.spikes > 300, format!("{:?}", expected.0))?;
    for ids in [&["cuda:0"][..], &["cuda:0", "cuda:1", "cpu"]] {
        let found = counts(ids).map_err(|e| e.to_string())?;
        check(
            found == expected,
            format!("{ids:?}: {:?}, not {:?}", found.0, expected.0),
        )?;
    }
    Ok(())
}

/// Neurons whose synapses learn under three rules, ten of them with a format of their own, and a memory that sees some of them: the same
/// weights, patterns and spikes on the CPU, on a device, and in shards of two devices and the CPU.
fn learning() -> Result<(), String> {
    let run = |ids: &[&str]| -> tectum::Result<_> {
        let mut neurons = Neurons::default();
        let kind = NeuronOptions {
            threshold: 2.0,
            uniform_psp: true,
            ..NeuronOptions::default()
        };
        neurons.add(50, &kind)?;
        neurons.add(
            10,
            &NeuronOptions {
                threshold_limit: Some(100_000.0),
                ..kind
            },
        )?;
        let kept = neurons.add(4, &NeuronOptions::default())?;
        let plastic = |i: u32, target: u32, weight: u8| {
            (
                i,
                Synapse {
                    plasticity: Some((i % 3) as u8),
                    ..Synapse::fixed(target, weight, false)
                },
            )
        };
        let mut synapses: Vec<_> = (0..60)
            .map(|i| (i, Synapse::fixed((i + 9) % 60, 1, i % 5 == 0)))
            .collect();
        synapses
            .extend((0..300).map(|i| plastic(i % 60, (i * 7 + i / 60) % 60, 1 + (i % 3) as u8)));
        synapses.extend(
            kept.clone()
                .flat_map(|i| [plastic(i, i - 30, 5), plastic(i - 60, i, 0)]),
        );
        let options = NetworkOptions {
            plasticity: vec![
                PlasticityRule {
                    window: 1,
                    gain: 3,
                    loss: 1,
                    weight_loss: WeightLoss::AnyFiring,
                },
                PlasticityRule {
                    window: 3,
                    gain: 2,
                    loss: 1,
                    weight_loss: WeightLoss::AnyFiring,
                },
                PlasticityRule {
                    window: 1,
                    gain: 1,
                    loss: 2,
                    weight_loss: WeightLoss::SteadySource,
                },
            ],
            memories: vec![Memory {
                upstream: vec![0..10, 40..45],
                neurons: kept,
                depth: 2,
                initial_lifespan: 2,
                lifespan_growth: 2,
                longterm_threshold: 5,
            }],
            ..NetworkOptions::default()
        };
        let network = Network::new(
            &neurons,
            Box::new(SynapseList::new(64, &synapses)?),
            options,
        )?;
        let devices = ids
            .iter()
            .map(|id| Device::open(id))
            .collect::<tectum::Result<Vec<_>>>()?;
        let mut simulation =
            Simulation::sharded(Arc::new(network), &devices, &SimulationOptions::default())?;
        for burst in 0..10 {
            simulation.inject(
                &(0..20)
                    .map(|i| (3 * i + burst % 2, 2.5))
                    .collect::<Vec<_>>(),
            )?;
            simulation.run(1)?;
        }
        Ok((
            simulation.counts(),
            simulation.plastic_synapses()?,
            simulation.memories()?,
        ))
    };
    let expected = run(&["cpu"]).map_err(|e| e.to_string())?;
    let has_learnt = expected.1.iter().any(|synapse| synapse.weight > 5)
        && expected.1.iter().any(|synapse| synapse.weight == 0);
    check(
        has_learnt && expected.2[0].formed > 0,
        format!("{:?} {:?}", expected.0, expected.2),
    )?;
    for ids in [&["cuda:0"][..], &["cuda:0", "cuda:1", "cpu"]] {
        let found = run(ids).map_err(|e| e.to_string())?;
        check(
            found == expected,
            format!(
                "{ids:?}: {:?} {:?}, not {:?} {:?}",
                found.0, found.2, expected.0, expected.2
            ),
        )?;
    }
    Ok(())
}

/// A small field over a few cycles: the same draws, and numbers equal up to the order of sums.
fn field() -> Result<(), String> {
    let run = |id: &str| -> tectum::Result<_> {
        let options = field::Options {
            sensors: 5,
            motors: 4,
            boundary: Boundary::Periodic,
            seed: 3,
            patterns: 20,
            storage: field::Storage::F32,
        };
        let mut simulation =
            field::Simulation::new(Shape::new([4, 4, 8], 32)?, options, &Device::open(id)?)?;
        let mut last = None;
        for cycle in 0..3 {
            last = Some(simulation.tick(&[0.5, -0.5, 0.1 * cycle as f32, 0.9, 0.0], 0.5)?);
        }
        Ok((simulation.state()?, last, simulation.stats()))
    };
    let (expected, cpu, _) = run("cpu").map_err(|e| e.to_string())?;
    let (found, cuda, stats) = run("cuda:0").map_err(|e| e.to_string())?;
    check(
        stats.transfers_up == 1 && stats.transfers_down == 1,
        format!("{stats:?}"),
    )?;
    let worst = found
        .field
        .iter()
        .zip(&expected.field)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0f32, f32::max);
    check(worst < 1e-5, format!("the fields differ by {worst}"))?;
    let motors = |report: &Option<field::Report>| {
        report
            .as_ref()
            .map(|report| report.motors.clone())
            .unwrap_or_default()
    };
    let worst = motors(&cuda)
        .iter()
        .zip(motors(&cpu))
        .map(|(a, b)| (a - b).abs())
        .fold(0.0f32, f32::max);
    check(
        worst < 1e-4 && motors(&cuda).len() == 4,
        format!("{cuda:?} and {cpu:?}"),
    )
}

/// y = exp(x) over `n` elements.
fn exponential(device: &Device, n: usize) -> tectum::Result<(Executable, View, View)> {
    let mut plan = PlanBuilder::new("exponential");
    let x = plan.input("x", DType::F32, n);
    let y = plan.output("y", DType::F32, n);
    plan.unary("exp", x, y)?;
    Ok((plan.finish()?.compile(device)?, x, y))
}

fn traced() -> Result<(), String> {
    let tried = || -> tectum::Result<_> {
        let (mut executable, x, y) = exponential(&cuda().map_err(tectum::Error::invalid)?, 1000)?;
        executable.input::<f32>(x).fill(1.0);
        let stats = executable.run()?;
        let times = executable.trace()?;
        let first = executable.output::<f32>(y)[999];
        // Another input takes the path of the first.
        executable.input::<f32>(x).fill(0.0);
        executable.run()?;
        Ok((stats, times, first, executable.output::<f32>(y)[999]))
    };
    let (stats, times, y, second) = tried().map_err(|e| e.to_string())?;
    check(
        stats.transfers_up == 1 && stats.transfers_down == 1 && stats.launches == 1,
        format!("{stats:?}"),
    )?;
    check(
        [stats.device_ns, stats.up_ns, stats.down_ns]
            .iter()
            .all(|ns| ns.is_some_and(|ns| ns > 0)),
        format!("{stats:?}"),
    )?;
    check(
        (y - std::f32::consts::E).abs() < 1e-6 && second == 1.0,
        format!("exp(1) = {y}, exp(0) = {second}"),
    )?;
    check(
        times.len() == 1 && times[0].ns.is_some(),
        format!("{times:?}"),
    )
}

fn peers() -> Result<(), String> {
    let tried = || -> tectum::Result<()> {
        let devices = ["cuda:0", "cuda:1", "cpu"]
            .map(Device::open)
            .into_iter()
            .collect::<tectum::Result<Vec<_>>>()?;
        let data: Vec<u32> = (0..1000).collect();
        for from in &devices {
            for to in &devices {
                let source = from.buffer_from(&data)?;
                let target = to.buffer_from(&vec![7u32; 1000])?;
                let path = source.copy_to(&target)?;
                println!("{} to {}: {path:?}", from.info().id, to.info().id);
                if target.read()? != data {
                    return Err(tectum::Error::invalid(format!(
                        "{} to {}: other data",
                        from.info().id,
                        to.info().id
                    )));
                }
            }
        }
        Ok(())
    };
    tried().map_err(|e| e.to_string())
}

/// A state that counts runs, written by the driver's own calls at its address, as another library
/// does.
fn shared_address() -> Result<(), String> {
    let tried = || -> tectum::Result<_> {
        let mut plan = PlanBuilder::new("counter");
        let (x, count, y) = (
            plan.input("x", DType::F32, 300),
            plan.state("count", DType::F32, 300),
            plan.output("y", DType::F32, 300),
        );
        plan.binary("add", count, x, y)?;
        plan.copy(y, count)?;
        let plan = plan.finish()?;
        let (mut run, on_cpu) = (
            plan.compile(&cuda().map_err(tectum::Error::invalid)?)?,
            plan.compile(&Device::open("cpu")?)?,
        );
        run.input::<f32>(x).fill(1.0);
        run.run()?;
        let state = run.state_buffer(count)?;
        let address = state
            .cuda_address()
            .ok_or_else(|| tectum::Error::invalid("no address"))?;
        let before = driver_copy(address, &[40.0; 300]).map_err(tectum::Error::invalid)?;
        run.run()?;
        let after = run.output::<f32>(y).to_vec();
        drop(run);
        let last = state.typed::<f32>()?.read()?;
        Ok((
            before,
            after,
            last,
            on_cpu.state_buffer(count)?.cuda_address(),
        ))
    };
    let (before, after, last, on_cpu) = tried().map_err(|e| e.to_string())?;
    check(
        before == [1.0; 300] && after == [41.0; 300] && last == [41.0; 300],
        format!("{before:?}, {after:?}, {last:?}"),
    )?;
    check(on_cpu.is_none(), "an address on the CPU")
}

/// Reads numbers at an address of the first device and writes others there, by the driver's calls.
fn driver_copy(address: u64, written: &[f32]) -> Result<Vec<f32>, String> {
    type Made = unsafe extern "C" fn(*mut usize, u32) -> i32;
    type Copy = unsafe extern "C" fn(u64, u64, usize, usize) -> i32;
    let bytes = size_of_val(written);
    // SAFETY: the stand-in is on the library path and the signatures are the driver's, with
    // addresses as integers; the pinned range has `bytes` bytes, and every copy is waited for
    // before the host uses it.
    unsafe {
        let driver = libloading::Library::new("libcuda.so.1").map_err(|e| e.to_string())?;
        let made = |name: &str| {
            driver
                .get::<Made>(name.as_bytes())
                .map_err(|e| e.to_string())
        };
        let copy = |name: &str| {
            driver
                .get::<Copy>(name.as_bytes())
                .map_err(|e| e.to_string())
        };
        let used = |name: &str| {
            driver
                .get::<unsafe extern "C" fn(usize) -> i32>(name.as_bytes())
                .map_err(|e| e.to_string())
        };
        let allocate = driver
            .get::<unsafe extern "C" fn(*mut *mut f32, usize, u32) -> i32>(b"cuMemHostAlloc")
            .map_err(|e| e.to_string())?;
        let (mut context, mut stream, mut pinned) = (0, 0, std::ptr::null_mut());
        check(
            made("cuDevicePrimaryCtxRetain")?(&raw mut context, 0) == 0
                && used("cuCtxSetCurrent")?(context) == 0,
            "no context",
        )?;
        check(
            made("cuStreamCreate")?(&raw mut stream, 0) == 0
                && allocate(&raw mut pinned, bytes, 0) == 0,
            "no stream or memory",
        )?;
        let host = pinned.expose_provenance() as u64;
        let wait = used("cuStreamSynchronize")?;
        check(
            copy("cuMemcpyDtoHAsync_v2")?(host, address, bytes, stream) == 0 && wait(stream) == 0,
            "the address cannot be read",
        )?;
        let read = std::slice::from_raw_parts(pinned, written.len()).to_vec();
        pinned.copy_from_nonoverlapping(written.as_ptr(), written.len());
        check(
            copy("cuMemcpyHtoDAsync_v2")?(address, host, bytes, stream) == 0 && wait(stream) == 0,
            "the address cannot be written",
        )?;
        check(
            used("cuMemFreeHost")?(pinned.expose_provenance()) == 0
                && used("cuStreamDestroy_v2")?(stream) == 0,
            "not released",
        )?;
        Ok(read)
    }
}

fn absent(reason: &str) -> Result<(), String> {
    check(
        !Device::list()
            .iter()
            .any(|info| info.id.starts_with("cuda")),
        "a device that cannot be used is listed",
    )?;
    let absent = Device::absent();
    check(
        absent.iter().any(|absent| absent.reason.contains(reason)),
        format!("{absent:?}"),
    )?;
    match Device::open("cuda:0") {
        Err(error)
            if error.kind() == ErrorKind::Unsupported && error.to_string().contains(reason) =>
        {
            Ok(())
        }
        other => Err(format!("{other:?}")),
    }
}

fn out_of_memory() -> Result<(), String> {
    match cuda()?.buffer::<f32>(1 << 20) {
        Err(error)
            if error.kind() == ErrorKind::OutOfMemory && error.to_string().contains("4194304") =>
        {
            Ok(())
        }
        Err(error) => Err(error.to_string()),
        Ok(_) => Err("memory that is not there".to_owned()),
    }
}

/// Two streams on one device and a third on another: the next one reads the state of the previous
/// one after an event.
fn streams() -> Result<(), String> {
    let tried = || -> tectum::Result<Vec<f32>> {
        let device = Device::open("cuda:0")?;
        let [first, second, third] = [Stream::new()?, Stream::new()?, Stream::new()?];
        let mut plan = PlanBuilder::new("writes");
        let x = plan.input("x", DType::F32, 100);
        let left = plan.state("left", DType::F32, 100);
        plan.unary("neg", x, left)?;
        let mut writes = plan.finish()?.compile(&device)?;
        let mut plan = PlanBuilder::new("reads");
        let seen = plan.state("seen", DType::F32, 100);
        let y = plan.output("y", DType::F32, 100);
        plan.binary("add", seen, seen, y)?;
        let mut reads = plan
            .finish()?
            .compile_with(&device, &[(seen, &writes.state_buffer(left)?)])?;
        let (mut other, other_x, other_y) = exponential(&Device::open("cuda:1")?, 100)?;
        let mut results = Vec::new();
        for round in 0..4 {
            writes.input::<f32>(x).fill(round as f32);
            other.input::<f32>(other_x).fill(0.0);
            let written = first.submit(writes);
            second.wait_for(&first.event());
            let read = second.submit(reads);
            third.wait_for(&second.event());
            let beside = third.submit(other);
            let ((run, stats), (again, _), (beside, beside_stats)) =
                (read.wait(), written.wait(), beside.wait());
            stats.and(beside_stats)?;
            results.extend([run.output::<f32>(y)[99], beside.output::<f32>(other_y)[99]]);
            (writes, reads, other) = (again, run, beside);
        }
        Ok(results)
    };
    let results = tried().map_err(|e| e.to_string())?;
    check(
        results == [0.0, 1.0, -2.0, 1.0, -4.0, 1.0, -6.0, 1.0],
        format!("{results:?}"),
    )
}

/// Checks that the device works after a failure.
fn works(device: &Device) -> Result<(), String> {
    let (mut run, x, y) = exponential(device, 100).map_err(|e| e.to_string())?;
    run.input::<f32>(x).fill(0.0);
    run.run()
        .map_err(|e| format!("the device works no longer: {e}"))?;
    check(run.output::<f32>(y) == [1.0; 100], "another result")
}

fn unmarked() -> Result<(), String> {
    let (device, stream) = (cuda()?, Stream::new().map_err(|e| e.to_string())?);
    let (executable, ..) = exponential(&device, 100).map_err(|e| e.to_string())?;
    let (executable, stats) = stream.submit(executable).wait();
    check(
        stats.is_err_and(|error| error.to_string().contains("cuEventRecord")),
        "the mark fails",
    )?;
    // The memory that the run copies to and from is freed here.
    drop(executable);
    works(&device)
}

fn untraced() -> Result<(), String> {
    let device = cuda()?;
    let (mut executable, x, _) = exponential(&device, 100).map_err(|e| e.to_string())?;
    executable.input::<f32>(x).fill(0.0);
    executable.run().map_err(|e| e.to_string())?;
    check(
        executable
            .trace()
            .is_err_and(|error| error.to_string().contains("cuEventRecord")),
        "the second event fails",
    )?;
    drop(executable);
    works(&device)
}

fn foreign_views() -> Result<(), String> {
    let device = cuda()?;
    let mut long = PlanBuilder::new("long");
    let foreign = long.state("long", DType::F32, 1 << 20);
    let mut plan = PlanBuilder::new("short");
    let (short, y) = (
        plan.state("short", DType::F32, 64),
        plan.output("y", DType::F32, 64),
    );
    let refused = |result: Result<(), tectum::Error>| {
        check(
            result.is_err_and(|error| error.kind() == ErrorKind::Invalid),
            "a foreign view is refused",
        )
    };
    refused(plan.copy(foreign.part(0..64), y))?;
    plan.copy(short, y).map_err(|e| e.to_string())?;
    let plan = plan.finish().map_err(|e| e.to_string())?;
    let buffer = device.buffer::<f32>(1 << 20).map_err(|e| e.to_string())?;
    refused(
        plan.compile_with(&device, &[(foreign, buffer.as_state())])
            .map(|_| ()),
    )?;
    refused(
        plan.compile_with(&device, &[(short, buffer.as_state())])
            .map(|_| ()),
    )?;
    let mut run = plan.compile(&device).map_err(|e| e.to_string())?;
    refused(run.read_state::<f32>(foreign).map(|_| ()))?;
    refused(run.write_state::<f32>(foreign, &[0.0; 1 << 20]))?;
    works(&device)
}

fn lost_in_stream() -> Result<(), String> {
    let stream = Stream::new().map_err(|e| e.to_string())?;
    let (executable, ..) = exponential(&cuda()?, 100).map_err(|e| e.to_string())?;
    let (executable, stats) = stream.submit(executable).wait();
    stats.map_err(|e| e.to_string())?;
    let (executable, lost) = stream.submit(executable).wait();
    match lost {
        Err(error)
            if error.kind() == ErrorKind::DeviceLost
                && error.to_string().contains("plan exponential: in flight") => {}
        Err(error) => return Err(error.to_string()),
        Ok(_) => return Err("a lost device ran".to_owned()),
    }
    // The stream continues, on a device that is not lost.
    let (_, after) = stream.submit(executable).wait();
    check(
        after.is_err_and(|error| error.kind() == ErrorKind::DeviceLost),
        "a lost device stays lost",
    )?;
    let (mut run, x, y) = exponential(&Device::open("cpu").map_err(|e| e.to_string())?, 1)
        .map_err(|e| e.to_string())?;
    run.input::<f32>(x).fill(0.0);
    let (run, stats) = stream.submit(run).wait();
    check(
        stats.is_ok() && run.output::<f32>(y) == [1.0],
        "the stream continues",
    )
}

fn lost() -> Result<(), String> {
    let (mut executable, ..) = exponential(&cuda()?, 100).map_err(|e| e.to_string())?;
    executable.run().map_err(|e| e.to_string())?;
    match executable.run() {
        Err(error)
            if error.kind() == ErrorKind::DeviceLost
                && error.to_string().contains("cuGraphLaunch") =>
        {
            Ok(())
        }
        Err(error) => Err(error.to_string()),
        Ok(_) => Err("a lost device ran".to_owned()),
    }
}
