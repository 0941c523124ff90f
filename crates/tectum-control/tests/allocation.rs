//! A tick of a policy allocates nothing: counted by the allocator of this program, which is a
//! process of its own for that.
#![cfg(feature = "onnx")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use rten_onnx::onnx::{DataType, GraphProto, TensorProto};
use tectum::{Device, Sample, WorkProgress};
use tectum_control::SAMPLES;
use tectum_control::body::{BodySettings, body};
use tectum_control::brain::policy::spec::PolicySpec;
use tectum_control::brain::{BrainContext, BrainSettings, Stateless};
use tectum_control::clock::{ClockKind, SimClock};
use tectum_control::closed_loop::{ClosedLoop, Discard, LoopSettings};
use tectum_control::live::Live;
use tectum_control::real_time::RealTime;

use self::small_models::{int64s, model, node, port};

#[allow(dead_code, reason = "its own tests use all of them")]
#[path = "../../tectum-onnx/tests/suite/small_models.rs"]
mod small_models;

struct Counting;

/// Allocations of all threads.
static ALL: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Those of a thread.
    static OWN: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: passes every request on to the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALL.fetch_add(1, Ordering::Relaxed);
        // A thread that ends has no counter any more.
        let _ = OWN.try_with(|own| own.set(own.get() + 1));
        // SAFETY: as the caller upholds it.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller upholds it.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A network of 4-512-256-8 numbers whose output is a chunk of eight rows.
fn chunk_model(path: &str) {
    let weights = |name: &str, dims: [i64; 2]| TensorProto {
        name: Some(name.to_owned()),
        dims: dims.to_vec(),
        data_type: Some(DataType::FLOAT),
        float_data: (0..dims[0] * dims[1])
            .map(|place| (place % 13) as f32 / 1e3)
            .collect(),
        ..TensorProto::default()
    };
    let graph = GraphProto {
        node: vec![
            node("MatMul", "obs w0", "a", Vec::new()),
            node("Elu", "a", "b", Vec::new()),
            node("MatMul", "b w1", "c", Vec::new()),
            node("Elu", "c", "d", Vec::new()),
            node("MatMul", "d w2", "e", Vec::new()),
            node("Reshape", "e shape", "actions", Vec::new()),
        ],
        initializer: vec![
            weights("w0", [4, 512]),
            weights("w1", [512, 256]),
            weights("w2", [256, 8]),
            int64s("shape", &[3], &[1, 8, 1]),
        ],
        input: vec![port("obs", DataType::FLOAT, &[1, 4])],
        output: vec![port("actions", DataType::FLOAT, &[1, 8, 1])],
        ..GraphProto::default()
    };
    std::fs::write(path, model(graph).write_buf().expect("a model")).expect("writable");
}

/// What 200 ticks on the loop's threads allocate after 100 others: on all threads, and on their
/// own. Of five turns the minimum counts, because other threads of the process may be starting.
fn allocations(model: &str, clock: ClockKind) -> (u64, u64) {
    let settings = BodySettings::named("cart_pole");
    let plant = settings.plant().expect("built in");
    let context = BrainContext {
        body: plant.spec(),
        settings: &settings,
        seed: 1,
        clock,
    };
    let recipe = PolicySpec::of(model).recipe(&context).expect("it fits");
    let mut brain = recipe
        .build(
            &Device::open("cpu").expect("there"),
            &mut WorkProgress::ignore,
        )
        .expect("it compiles");
    let mut action = [0.0];
    let mut ticks = move |count: usize| {
        let before = (ALL.load(Ordering::Relaxed), OWN.get());
        for tick in 0..count {
            brain
                .tick(&[0.01 * tick as f32, 0.02, -0.03, 0.04], &mut action)
                .expect("a tick");
        }
        (ALL.load(Ordering::Relaxed) - before.0, OWN.get() - before.1)
    };
    let (turns, _) = RealTime::default()
        .run(move || {
            ticks(100);
            [(); 5].map(|()| ticks(200))
        })
        .expect("asks for nothing");
    turns.into_iter().fold((u64::MAX, 0), |(all, own), turn| {
        (all.min(turn.0), own.max(turn.1))
    })
}

#[test]
fn a_tick_of_a_policy_allocates_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["cart-pole-policy", "recurrent-policy"] {
        let (sample, path) = (
            Sample::find(&SAMPLES, name).expect("built in"),
            folder.path().join(name),
        );
        sample.write(&path).expect("writable");
        assert_eq!(
            allocations(
                &path.join(sample.files[0].0).to_string_lossy(),
                ClockKind::Sim
            ),
            (0, 0),
            "{name}"
        );
    }
    let path = folder
        .path()
        .join("chunks.onnx")
        .to_string_lossy()
        .into_owned();
    chunk_model(&path);
    for keys in [
        "chunk = 8\nreplan_steps = 1",
        "chunk = 8",
        "chunk = 8\nreplan_steps = 2\ntemporal_ensemble_coeff = 0.01",
        "chunk = 8\nasynchronous = true\ninference_delay = 2",
    ] {
        std::fs::write(
            path.replace(".onnx", ".toml"),
            format!("[action]\n{keys}\n"),
        )
        .expect("writable");
        assert_eq!(allocations(&path, ClockKind::Sim), (0, 0), "{keys}");
    }
    // In real time the network runs on another thread, which may allocate; the loop's does not.
    assert_eq!(allocations(&path, ClockKind::Real).1, 0);
}

/// What 9,800 periods of a loop allocate after 100 others: more than the ring of frames holds, so
/// that a loop that is shown drops some too.
fn allocations_of_loop(live: Option<&Live>) -> u64 {
    let pendulum = || body("pendulum", None).expect("built in");
    let brain = Stateless::new("push", |observation: &[f32], action: &mut [f32]| {
        action[0] = -observation[1];
    });
    let settings = LoopSettings {
        seconds: 500.0,
        snapshot_every: 0,
        ..LoopSettings::default()
    };
    let cpu = Device::open("cpu").expect("there");
    let mut closed_loop =
        ClosedLoop::new(pendulum(), Box::new(brain), &settings, &cpu).expect("it fits");
    if let Some(live) = live {
        closed_loop.show(live, Some(pendulum()));
    }
    let mut counted = [0; 2];
    let outcome = closed_loop.run(&mut SimClock::new(), &mut Discard, &mut |progress| {
        match progress.tick {
            100 => counted[0] = OWN.get(),
            9_900 => counted[1] = OWN.get(),
            _ => {}
        }
        ControlFlow::Continue(())
    });
    assert_eq!(outcome.metrics.ticks, 10_000);
    counted[1] - counted[0]
}

#[test]
fn a_loop_that_is_shown_allocates_no_more_than_one_that_is_not() {
    let live = Live::new(ClockKind::Sim);
    let (shown, alone) = (allocations_of_loop(Some(&live)), allocations_of_loop(None));
    println!("{shown} allocations in 9,800 periods, {alone} of a loop that is not shown");
    assert_eq!(shown, alone);
    assert!(live.dropped_frames() > 0 && !live.drain().updates.is_empty());
}
