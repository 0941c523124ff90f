//! Defects that a review found despite passing tests, one test each, numbered as in the review:
//! calls that corrupted memory, lost a device or computed results that differ from their
//! documentation.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tectum::kernel::native::for_each_index;
use tectum::kernel::pack::{Half, to_f16};
use tectum::operation::product::gemm_batched::Packing;
use tectum::operation::product::panel_format::PanelFormat;
use tectum::{
    AttentionSizes, Boundary, Buffer, CacheFormat, DType, Device, Element, Error, ErrorKind,
    Executable, GemmEpilogue, Kernel, Matrices, Matrix, NativeCall, PlanBuilder, Points, Session,
    Strided, ThreadPool, View,
};
use tectum_graph::{Graph, GraphBuilder, Node, Shape, Tensor};
use tectum_programs::Chain;
use tectum_programs::{
    Bounds, BufferIndex, Fault, FaultKind, LIBRARY, LaunchConfig, Outcome, Program, Recognition,
    Recognize, library_text,
};

use crate::fnv_collision::{colliding_kernels, fnv1a};

/// The CPU and software Vulkan, if present.
fn devices() -> Vec<Device> {
    let open = |id: &str| match Device::open(id) {
        Ok(device) => Some(device),
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            println!("skipped: no {id}");
            None
        }
        Err(error) => panic!("{error}"),
    };
    ["cpu", "vulkan:0"].into_iter().filter_map(open).collect()
}

fn invalid<T: std::fmt::Debug>(result: Result<T, Error>, part: &str) {
    let error = result.expect_err("the caller's mistake");
    assert!(
        error.kind() == ErrorKind::Invalid && error.to_string().contains(part),
        "{error}"
    );
}

/// A plan that adds 1 to its input, and its results for 1, 2, 3, …: the device still works.
pub fn works(device: &Device) {
    let mut plan = PlanBuilder::new("works");
    let (x, one, y) = (
        plan.input("x", DType::F32, 100),
        plan.constant("one", &[1.0f32]),
        plan.output("y", DType::F32, 100),
    );
    plan.binary("add", x, one, y).expect("fits");
    let mut run = plan
        .finish()
        .and_then(|plan| plan.compile(device))
        .expect("compiles");
    run.input::<f32>(x)
        .iter_mut()
        .zip(1u8..)
        .for_each(|(x, i)| *x = f32::from(i));
    run.run().expect("runs");
    assert!(
        run.output::<f32>(y)
            .iter()
            .zip(2u8..)
            .all(|(y, i)| *y == f32::from(i)),
        "{device:?}"
    );
}

#[test]
fn defect_01_a_view_of_another_plan_is_refused_by_every_call() {
    let (mut a, mut b) = (PlanBuilder::new("a"), PlanBuilder::new("b"));
    let long = a.state("long", DType::F32, 4096);
    let short = b.state("short", DType::F32, 64);
    let out = b.output("out", DType::F32, 64);
    let other = "a view of another plan";
    invalid(b.fill(long, 1), other);
    invalid(b.copy(long.part(0..64), out), other);
    invalid(b.copy(short, long.part(0..64)), other);
    invalid(b.unary("abs", long.part(0..64), out), other);
    // A slot number that the plan does not have.
    let far = (0..9)
        .map(|_| a.output("far", DType::F32, 64))
        .last()
        .expect("nine");
    invalid(b.copy(short, far), other);
    assert_eq!(short.joined(long), None);
    b.copy(short, out).expect("its own views");
    let b = b.finish().expect("well formed");
    for device in devices() {
        let mut run = b.compile(&device).expect("compiles");
        invalid(run.read_state::<f32>(long), other);
        invalid(run.write_state::<f32>(long, &[0.0; 4096]), other);
        invalid(run.state_buffer(long), other);
        let buffer: Buffer<f32> = device.buffer(4096).expect("fits");
        invalid(b.compile_with(&device, &[(long, buffer.as_state())]), other);
        run.run().expect("runs");
        works(&device);
    }
}

fn panics<R>(work: impl FnOnce() -> R) -> String {
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work))
        .err()
        .expect("the caller's mistake");
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn defect_01_a_program_refuses_views_of_another_plan() {
    let text = "buffer x: f32 read\nbuffer y: f32 write\nldg.f32 r0, [x]\nadd.f32 r0, r0, r0\nstg.f32 [y], r0";
    let program = Program::parse(text)
        .and_then(|program| program.check())
        .expect("valid");
    let mut other = PlanBuilder::new("other");
    let foreign = (0..9)
        .map(|_| other.state("far", DType::F32, 64))
        .last()
        .expect("nine");
    let mut plan = PlanBuilder::new("plan");
    let (x, y) = (
        plan.input("x", DType::F32, 64),
        plan.output("y", DType::F32, 64),
    );
    let launch = LaunchConfig::linear(64, 32);
    let how = Recognition {
        reassociate: false,
        bounds: Bounds::Proven,
    };
    for views in [[foreign, y], [x, foreign]] {
        invalid(
            program
                .record(&mut plan, &launch, &views.map(Into::into), Bounds::Proven)
                .map(|_| ()),
            "a view of another plan",
        );
        invalid(
            program
                .record_recognized(&mut plan, &launch, &views.map(Into::into), how)
                .map(|_| ()),
            "a view of another plan",
        );
    }
}

#[test]
fn defect_01_inputs_and_outputs_of_another_plan_are_not_given() {
    let device = Device::open("cpu").expect("always there");
    let double = |name: &str, len: usize| -> (Executable, View, View) {
        let mut plan = PlanBuilder::new(name);
        let (x, y) = (
            plan.input("x", DType::F32, len),
            plan.output("y", DType::F32, len),
        );
        plan.binary("add", x, x, y).expect("fits");
        (
            plan.finish()
                .and_then(|plan| plan.compile(&device))
                .expect("compiles"),
            x,
            y,
        )
    };
    let (mut short, x, _) = double("short", 64);
    let (_, foreign_x, foreign_y) = double("long", 4096);
    assert!(panics(|| short.input::<f32>(foreign_x).fill(3.0)).contains("a view of another plan"));
    short.input::<f32>(x).fill(2.0);
    short.run().expect("runs");
    assert!(panics(|| short.output::<f32>(foreign_y).len()).contains("a view of another plan"));
}

#[test]
fn defect_01_sizes_that_wrap_are_refused() {
    for (dtype, len) in [
        (DType::F32, (1 << 62) + 64),
        (DType::F64, 1 << 61),
        (DType::F32, usize::MAX),
        (DType::U32, usize::MAX / 4 + 1),
    ] {
        let mut plan = PlanBuilder::new("huge");
        let state = plan.state("huge", dtype, len);
        invalid(plan.fill(state.part(0..64), 0), "slot huge");
        invalid(plan.finish(), "slot huge");
    }
    let mut plan = PlanBuilder::new("counted");
    let state = plan.state("long", DType::U32, (1 << 32) + 64);
    invalid(
        plan.fill(state, 0),
        "more than the 4294967295 that a kernel counts",
    );
}

#[test]
fn defect_02_two_states_do_not_share_a_buffer() {
    for device in devices() {
        let mut plan = PlanBuilder::new("product");
        let (s, t) = (
            plan.state("s", DType::F32, 128),
            plan.state("t", DType::F32, 128),
        );
        plan.binary("add", s, s, t).expect("fits");
        let plan = plan.finish().expect("well formed");
        let buffers = [1.0f32, 2.0].map(|value| device.buffer_from(&[value; 128]).expect("fits"));
        let [one, two] = buffers.each_ref().map(Buffer::as_state);
        invalid(
            plan.compile_with(&device, &[(s, one), (t, one)]),
            "states s and t share one buffer",
        );
        invalid(
            plan.compile_with(&device, &[(s, one), (s, two)]),
            "bound to two buffers",
        );
        invalid(
            plan.compile_with(&device, &[(s.part(0..64), one)]),
            "a whole state",
        );
        invalid(
            plan.compile_with(
                &device,
                &[(s, device.buffer::<u32>(128).expect("fits").as_state())],
            ),
            "a whole state of the same type",
        );
        plan.compile_with(&device, &[(s, one), (t, two)])
            .and_then(|mut run| run.run())
            .expect("runs");
        assert_eq!(buffers[1].read().expect("reads"), [2.0; 128]);
        works(&device);
    }
}

/// Products of halves on two threads, each split among the threads of its pool.
#[test]
fn defect_03_products_of_halves_run_on_several_threads() -> Result<(), Error> {
    const N: usize = 256;
    const BATCH: usize = 8;
    let device = Device::open("cpu")?;
    let one = |value: f32| -> Result<(), Error> {
        let mut plan = PlanBuilder::new("products of halves");
        let words = Packing::Half(Half::F16).words(BATCH * N * N);
        let [a, b] = ["a", "b"].map(|name| plan.state(name, DType::U32, words));
        let y = plan.output("y", DType::F32, BATCH * N * N);
        let matrices = |view| Matrices::half(Half::F16, view, BATCH, N, N);
        plan.gemm_batched(matrices(a), matrices(b), y)?;
        let mut run = plan.finish()?.compile(&device)?;
        // 1.0 in both halves of each word of `a`, and `value` in those of `b`.
        run.write_state::<u32>(a, &vec![0x3c00_3c00; words])?;
        let half = to_f16(value.to_bits());
        run.write_state::<u32>(b, &vec![half << 16 | half; words])?;
        for _ in 0..20 {
            run.run()?;
            assert!(run.output::<f32>(y).iter().all(|y| *y == N as f32 * value));
        }
        Ok(())
    };
    // Several tasks in one pool of a caller, and separate threads.
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(3)
        .build()
        .expect("a pool");
    pool.scope(|scope| {
        (1u8..=6).for_each(|value| scope.spawn(move |_| one(f32::from(value)).expect("right")))
    });
    ThreadPool::new(3, "members")?.install(|| {
        rayon::scope(|scope| {
            (1u8..=6).for_each(|value| scope.spawn(move |_| one(f32::from(value)).expect("right")))
        })
    });
    std::thread::scope(|scope| {
        (1u8..=4).for_each(|value| drop(scope.spawn(move || one(f32::from(value)).expect("right"))))
    });
    Ok(())
}

#[test]
fn defect_05_a_state_read_with_a_wrong_view_leaves_the_device_alive() {
    for device in devices() {
        let mut plan = PlanBuilder::new("states");
        let (small, out) = (
            plan.state("small", DType::F32, 64),
            plan.output("out", DType::F32, 64),
        );
        plan.copy(small, out).expect("fits");
        let mut run = plan
            .finish()
            .and_then(|plan| plan.compile(&device))
            .expect("compiles");
        let big = PlanBuilder::new("other").state("big", DType::F32, 1 << 20);
        invalid(run.read_state::<f32>(big), "a view of another plan");
        invalid(
            run.read_state::<u32>(small),
            "seen as f32 is no state of u32",
        );
        invalid(run.read_state::<f32>(out), "no state");
        invalid(run.write_state::<f32>(small, &[1.0]), "written with 1");
        run.run().expect("runs");
        works(&device);
    }
}

fn moved<T: Element>(
    device: &Device,
    data: &[T],
    len: usize,
    record: impl FnOnce(&mut PlanBuilder, View, View) -> Result<(), Error>,
) -> Vec<T> {
    let mut plan = PlanBuilder::new("moved");
    let (x, y) = (
        plan.input("x", T::DTYPE, data.len()),
        plan.output("y", T::DTYPE, len),
    );
    record(&mut plan, x, y).expect("fits");
    let mut run = plan
        .finish()
        .and_then(|plan| plan.compile(device))
        .expect("compiles");
    run.input::<T>(x).copy_from_slice(data);
    run.run().expect("runs");
    run.output::<T>(y).to_vec()
}

#[test]
fn defect_06_f64_is_moved_whole() {
    let data: Vec<f64> = (1..=6).map(|i| f64::from(i) * 1.1).collect();
    let at = |places: &[usize]| places.iter().map(|&place| data[place]).collect::<Vec<_>>();
    // Moves operate on words: a device needs no f64 for them.
    for device in devices()
        .iter()
        .filter(|device| device.info().dtypes.contains(&DType::F64))
    {
        let found = moved(device, &data, 6, |plan, x, y| {
            plan.transpose(x, y, [1, 2, 3])
        });
        assert_eq!(found, at(&[0, 3, 1, 4, 2, 5]), "{device:?}");
        let axes = [
            Strided { size: 2, stride: 3 },
            Strided { size: 2, stride: 1 },
        ];
        let found = moved(device, &data, 4, |plan, x, y| {
            plan.copy_strided(x, 1, &axes, y)
        });
        assert_eq!(found, at(&[1, 2, 4, 5]), "{device:?}");
        let found = moved(device, &data, 12, |plan, x, y| {
            let second = plan.temp(DType::F64, 6);
            plan.copy(x, second)?;
            plan.concat(x, second, y, 3)
        });
        assert_eq!(
            found,
            at(&[0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 4, 5]),
            "{device:?}"
        );
        let found = moved(device, &data, 4, |plan, x, y| {
            let (indices, faults) = (
                plan.constant("indices", &[2u32, 0]),
                plan.state("faults", DType::U32, 1),
            );
            plan.gather(x, indices, y, faults, 2)
        });
        assert_eq!(found, at(&[4, 5, 0, 1]), "{device:?}");
    }
}

#[test]
fn defect_06_types_of_different_widths_and_sums_of_floats_are_refused() {
    let mut plan = PlanBuilder::new("widths");
    let (narrow, wide) = (
        plan.state("narrow", DType::F32, 64),
        plan.state("wide", DType::F64, 64),
    );
    let (indices, faults) = (
        plan.constant("indices", &[0u32]),
        plan.state("faults", DType::U32, 1),
    );
    let both = plan.state("both", DType::F64, 128);
    let widths = "types of one width needed";
    invalid(plan.copy(narrow, wide), widths);
    invalid(plan.copy(wide, narrow), widths);
    invalid(plan.transpose(narrow, wide, [1, 8, 8]), widths);
    invalid(plan.concat(narrow, wide, both, 1), widths);
    invalid(
        plan.copy_strided(
            wide,
            0,
            &[Strided {
                size: 64,
                stride: 1,
            }],
            narrow,
        ),
        widths,
    );
    invalid(plan.gather(narrow, indices, wide, faults, 64), widths);
    let more = plan.state("more", DType::F64, 64);
    invalid(
        plan.scatter_add(wide, indices, more, faults, 64),
        "one integer type needed",
    );
}

#[test]
fn defect_06_sizes_whose_products_wrap_are_refused() {
    let mut plan = PlanBuilder::new("products");
    let (x, y) = (
        plan.state("x", DType::F32, 64),
        plan.state("y", DType::F32, 64),
    );
    invalid(plan.transpose(x, y, [1 << 32, 1 << 32, 64]), "needed");
    invalid(plan.transpose(x, y, [usize::MAX, 3, 5]), "needed");
    invalid(
        plan.copy_strided(
            x,
            usize::MAX,
            &[Strided {
                size: 64,
                stride: 1,
            }],
            y,
        ),
        "inside x",
    );
    invalid(
        plan.copy_strided(
            x,
            0,
            &[Strided {
                size: 64,
                stride: usize::MAX,
            }],
            y,
        ),
        "inside x",
    );
}

/// The results of a kernel y = factor · x for 1, 2, 3, … on a device, and the hash of its code in
/// the receipt.
fn multiples(device: &Device, kernel: &Arc<Kernel>) -> (Vec<u32>, String) {
    let mut plan = PlanBuilder::new("multiples");
    let (x, y) = (
        plan.input("x", DType::U32, 100),
        plan.output("y", DType::U32, 100),
    );
    plan.launch_dynamic(kernel, &[x, y], &[100], 1)
        .expect("fits");
    let mut run = plan
        .finish()
        .and_then(|plan| plan.compile(device))
        .expect("compiles");
    run.input::<u32>(x)
        .iter_mut()
        .zip(1..)
        .for_each(|(x, i)| *x = i);
    run.run().expect("runs");
    (
        run.output::<u32>(y).to_vec(),
        code_of(device, &[&run]).remove(0).1,
    )
}

/// Names and hashes of code in the receipt of a session.
fn code_of(device: &Device, executables: &[&Executable]) -> Vec<(String, String)> {
    let mut session = Session::new(device);
    executables
        .iter()
        .for_each(|executable| session.uses(executable));
    let receipt = serde_json::to_value(session.receipt()).expect("receipts are JSON");
    let text = |value: &serde_json::Value| value.as_str().expect("a text").to_owned();
    receipt["code"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|code| (text(&code["kernel"]), text(&code["hash"])))
        .collect()
}

#[test]
fn defect_04_kernels_whose_texts_collide_are_two_kernels() {
    let kernels = colliding_kernels();
    assert_eq!(
        fnv1a(kernels[0].wgsl().as_bytes()),
        fnv1a(kernels[1].wgsl().as_bytes())
    );
    for device in devices() {
        let [(twice, first), (thrice, second)] =
            [&kernels[0], &kernels[1]].map(|kernel| multiples(&device, kernel));
        assert!(
            twice.iter().zip(1..).all(|(y, i)| *y == 2 * i),
            "{device:?}: {twice:?}"
        );
        assert!(
            thrice.iter().zip(1..).all(|(y, i)| *y == 3 * i),
            "{device:?}: {thrice:?}"
        );
        assert!(
            first != second && first.len() == 64,
            "{device:?}: {first} {second}"
        );
    }
}

#[test]
fn defect_08_a_receipt_lists_every_code_of_a_name() {
    let scaled = |device: &Device, by: f32| {
        let mut chain = Chain::new(1).expect("one input");
        let (x, by) = (
            chain.input(0).expect("there"),
            chain.constant(by).expect("finite"),
        );
        chain.op("mul", &[x, by]).expect("known");
        let mut plan = PlanBuilder::new("scaled");
        let (x, y) = (
            plan.input("x", DType::F32, 8),
            plan.output("y", DType::F32, 8),
        );
        chain.record(&mut plan, &[x], y).expect("fits");
        plan.finish()
            .and_then(|plan| plan.compile(device))
            .expect("compiles")
    };
    for device in devices() {
        let (two, three) = (scaled(&device, 2.0), scaled(&device, 3.0));
        let code = code_of(&device, &[&two, &three, &two]);
        assert!(
            code.len() == 2 && code[0].0 == code[1].0 && code[0].1 != code[1].1,
            "{device:?}: {code:?}"
        );
    }
}

#[test]
fn defect_12_nothing_of_a_dropped_buffer_shows() {
    for device in devices() {
        let fill = |value: f32| drop(device.buffer_from(&vec![value; 3000]).expect("fits"));
        let mut plan = PlanBuilder::new("parts");
        let (x, y, between) = (
            plan.input("x", DType::F32, 3000),
            plan.output("y", DType::F32, 3000),
            plan.temp(DType::F32, 3000),
        );
        let whole = plan.output("whole", DType::F32, 3000);
        plan.copy(x.part(0..64), y.part(0..64)).expect("fits");
        plan.copy(x.part(0..64), between.part(0..64)).expect("fits");
        plan.copy(between, whole).expect("fits");
        let plan = plan.finish().expect("well formed");
        (0..8).for_each(|_| fill(7.0));
        let mut run = plan.compile(&device).expect("compiles");
        assert!(
            run.input::<f32>(x).iter().all(|x| *x == 0.0),
            "{device:?}: an input that was not filled"
        );
        run.input::<f32>(x)[..64].fill(1.0);
        run.run().expect("runs");
        for view in [y, whole] {
            let found = run.output::<f32>(view);
            assert!(
                found[..64].iter().all(|y| *y == 1.0) && found[64..].iter().all(|y| *y == 0.0),
                "{device:?}"
            );
        }
        assert!(
            device
                .buffer::<f32>(3000)
                .and_then(|buffer| buffer.read())
                .expect("reads")
                .iter()
                .all(|x| *x == 0.0),
            "{device:?}"
        );
    }
}

#[test]
fn defect_19_a_buffer_is_of_a_whole_state_of_its_type() {
    let device = Device::open("cpu").expect("always there");
    let mut plan = PlanBuilder::new("states");
    let (wide, narrow, out) = (
        plan.state("wide", DType::F64, 64),
        plan.state("narrow", DType::F32, 64),
        plan.output("out", DType::F32, 64),
    );
    plan.copy(narrow, out).expect("fits");
    let run = plan
        .finish()
        .and_then(|plan| plan.compile(&device))
        .expect("compiles");
    invalid(
        run.state_buffer(wide.reinterpret(DType::F32)),
        "a whole state of its type",
    );
    invalid(
        run.state_buffer(narrow.part(0..32)),
        "a whole state of its type",
    );
    for (view, dtype) in [(narrow, DType::F32), (wide, DType::F64)] {
        let state = run.state_buffer(view).expect("whole");
        assert_eq!((state.len(), state.dtype()), (64, dtype));
        invalid(state.typed::<u32>(), "is no buffer of u32");
    }
}

thread_local! {
    /// The run whose launch this thread executes, 0 for none.
    static EXECUTES: Cell<u32> = const { Cell::new(0) };
}
/// Launches that began inside a launch of another run.
static FOREIGN: AtomicU32 = AtomicU32::new(0);

/// Works for `params[1]` microseconds on each of 16 parts, split among threads, and counts the
/// parts that execute inside another run.
fn works_on_parts(call: &NativeCall<'_>) {
    let (run, duration) = (call.u32(0), Duration::from_micros(u64::from(call.u32(1))));
    let within = |work: &dyn Fn()| {
        let outer = EXECUTES.replace(run);
        FOREIGN.fetch_add(u32::from(outer != 0 && outer != run), Ordering::SeqCst);
        work();
        EXECUTES.set(outer);
    };
    // Large enough to be worth a second thread.
    let threads = call.threads_for(1 << 24);
    within(&|| {
        for_each_index(16, threads, &|_| {
            within(&|| {
                let start = Instant::now();
                while start.elapsed() < duration {
                    std::hint::spin_loop();
                }
            });
        });
    });
    call.write::<u32>(0)[0] = run;
}

/// A thousand short runs concurrent with long ones in one pool: no part of a long run executes
/// while a thread is in a short one.
#[test]
fn defect_10_a_run_executes_no_work_of_another() -> Result<(), Error> {
    let device = Device::open("cpu")?;
    let kernel = Kernel::define("works_on_parts")
        .write("y", DType::U32)
        .param("run", DType::U32)
        .param("microseconds", DType::U32);
    let kernel = kernel
        .body("@compute @workgroup_size(1) fn main() { y[0] = params.run; }")
        .native(works_on_parts)?;
    let compile = |run: u32, microseconds: u32| -> Result<(Executable, View), Error> {
        let mut plan = PlanBuilder::new("works on parts");
        let y = plan.output("y", DType::U32, 1);
        plan.launch_dynamic(&kernel, &[y], &[run, microseconds], 1)?;
        Ok((plan.finish()?.compile(&device)?, y))
    };
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| -> Result<(), Error> {
        let long = (2..4)
            .map(|run| compile(run, 500))
            .collect::<Result<Vec<_>, _>>()?;
        for (mut long, y) in long {
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::SeqCst) {
                    long.run().expect("runs");
                    assert!(long.output::<u32>(y)[0] > 1);
                }
            });
        }
        let (mut short, y) = compile(1, 2)?;
        let ran = (0..1000).try_for_each(|_| short.run().map(|_| ()));
        is_over.store(true, Ordering::SeqCst);
        ran?;
        assert_eq!(short.output::<u32>(y), [1]);
        Ok(())
    })?;
    assert_eq!(FOREIGN.load(Ordering::SeqCst), 0);
    Ok(())
}

/// Builds outputs from the nodes of `a` and `x`, with the target state of each: 0 and 1 feed `a`
/// and `x`.
type Recording = (
    &'static str,
    fn(&mut GraphBuilder, [Node; 2]) -> Result<Vec<Node>, Error>,
    &'static [usize],
);

#[test]
fn defect_07_an_output_goes_where_other_nodes_still_read() {
    const N: usize = 128;
    let recordings: [Recording; 7] = [
        (
            "a later node reads",
            |g, [a, x]| Ok(vec![g.relu(a)?, g.tanh(x)?]),
            &[1, 2],
        ),
        (
            "in place",
            |g, [a, x]| Ok(vec![g.tanh(a)?, g.add(a, x)?]),
            &[0, 1],
        ),
        (
            "each to the other",
            |g, [a, x]| Ok(vec![g.tanh(x)?, g.tanh(a)?]),
            &[0, 1],
        ),
        (
            "views, each to the other",
            |g, [a, x]| Ok(vec![g.reshape(x, [2, N / 2])?, g.reshape(a, [2, N / 2])?]),
            &[0, 1],
        ),
        (
            "a view is read",
            |g, [a, x]| {
                let half = g.slice(x, 1, N / 2, N / 2)?;
                let (bent, other) = (g.tanh(a)?, g.relu(half)?);
                let both = g.concat(&[other, half], 1)?;
                Ok(vec![bent, both])
            },
            &[1, 2],
        ),
        (
            "what was fed is an output",
            |g, [a, x]| Ok(vec![g.relu(a)?, x, a]),
            &[1, 0, 2],
        ),
        (
            "a gradient over its weights",
            |g, [a, x]| {
                let product = g.matmul(a.transpose(), x)?;
                let rows = g.matmul(x, product)?;
                Ok(vec![g.sum_over_rows(rows)?, g.sigmoid(a)?])
            },
            &[0, 1],
        ),
    ];
    for device in devices() {
        for (what, build, places) in recordings {
            let mut g = GraphBuilder::new();
            let feeds = ["a", "x"].map(|name| g.input(name, [1, N]).expect("new"));
            let nodes = build(&mut g, feeds).expect("fits");
            nodes
                .iter()
                .enumerate()
                .for_each(|(index, node)| g.output(&format!("y{index}"), *node).expect("new"));
            let graph = g.finish().expect("has outputs");
            let data: [Vec<f32>; 2] = [0.5, 0.0]
                .map(|start| (0..N).map(|i| start + (i % 7) as f32 / 4.0 - 0.5).collect());
            let tensors: Vec<_> = feeds
                .into_iter()
                .zip(&data)
                .map(|(node, data)| {
                    (
                        node,
                        Tensor::new([1, N], data.iter().map(|x| f64::from(*x)).collect())
                            .expect("full"),
                    )
                })
                .collect();
            let expected = graph.evaluate(&tensors).expect("fits");
            for record in [Graph::record, Graph::record_unfused] {
                let mut plan = PlanBuilder::new("slots");
                let states = ["a", "x", "y"].map(|name| plan.state(name, DType::F32, N));
                let feeds: Vec<(Node, View)> = feeds.into_iter().zip(states).collect();
                let targets: Vec<(Node, View)> = nodes
                    .iter()
                    .zip(places)
                    .map(|(node, place)| (*node, states[*place]))
                    .collect();
                record(&graph, &mut plan, &feeds, &targets)
                    .unwrap_or_else(|error| panic!("{what}: {error}"));
                let mut run = plan
                    .finish()
                    .and_then(|plan| plan.compile(&device))
                    .expect("compiles");
                states
                    .iter()
                    .zip(&data)
                    .for_each(|(state, data)| run.write_state(*state, data).expect("a state"));
                run.run().expect("runs");
                for (expected, place) in expected.iter().zip(places) {
                    let found: Vec<f32> = run.read_state(states[*place]).expect("a state");
                    let error = found
                        .iter()
                        .zip(expected.data())
                        .map(|(found, expected)| (f64::from(*found) - expected).abs())
                        .fold(0.0, f64::max);
                    assert!(error < 1e-4, "{what}, {device:?}: {error}");
                }
            }
        }
    }
}

#[test]
fn defect_07_outputs_whose_views_overlap_are_refused() {
    let mut g = GraphBuilder::new();
    let a = g.input("a", [1, 128]).expect("new");
    let (x, y) = (g.relu(a).expect("fits"), g.tanh(a).expect("fits"));
    [("x", x), ("y", y)]
        .into_iter()
        .for_each(|(name, node)| g.output(name, node).expect("new"));
    let graph = g.finish().expect("has outputs");
    let mut plan = PlanBuilder::new("overlap");
    let (input, state) = (
        plan.input("a", DType::F32, 128),
        plan.state("state", DType::F32, 192),
    );
    let targets = [(x, state.part(0..128)), (y, state.part(64..192))];
    invalid(
        graph.record(&mut plan, &[(a, input)], &targets),
        "the views of output 1 and output 2 overlap",
    );
}

#[test]
fn defect_11_nodes_of_other_graphs_are_refused() {
    let two = |names: [&str; 2]| {
        let mut g = GraphBuilder::new();
        let nodes = names.map(|name| g.parameter(name, [1, 1]).expect("new"));
        (g, nodes)
    };
    let ((mut g, [a, b]), (mut other, [_, foreign])) = (two(["a", "b"]), two(["c", "d"]));
    let sum = g.add(a, b).expect("its own");
    invalid(g.add(a, foreign), "add: node 1 is of another graph");
    invalid(
        g.matmul(foreign.transpose(), a),
        "matmul: node 1 is of another graph",
    );
    invalid(g.gather(a, foreign), "gather: node 1 is of another graph");
    invalid(g.output("y", foreign), "output: node 1 is of another graph");
    g.output("y", sum).expect("its own");
    other.output("y", foreign).expect("its own");
    let (graph, other) = (
        g.finish().expect("has an output"),
        other.finish().expect("has an output"),
    );
    let tensor = |value: f64| Tensor::new([1, 1], vec![value]).expect("full");
    invalid(
        graph.evaluate(&[(a, tensor(1.0)), (foreign, tensor(2.0))]),
        "feed: node 1 is of another graph",
    );
    invalid(
        graph.gradients(foreign),
        "gradients: node 1 is of another graph",
    );
    invalid(graph.shape(foreign), "node 1 is of another graph");
    invalid(
        graph.state_words(foreign),
        "state_words: node 1 is of another graph",
    );
    let mut plan = PlanBuilder::new("plan");
    let [x, y, z] = ["x", "y", "z"].map(|name| plan.state(name, DType::F32, 1));
    invalid(
        graph.record(&mut plan, &[(a, x), (foreign, y)], &[(sum, z)]),
        "feed: node 1 is of another graph",
    );
    invalid(
        graph.record(&mut plan, &[(a, x), (b, y)], &[(foreign, z)]),
        "output: node 1 is of another graph",
    );

    // A layout identifies parameters by name: it feeds every graph that has them.
    let (mut again, [a_again, b_again]) = two(["a", "b"]);
    let sum_again = again.add(a_again, b_again).expect("its own");
    again.output("y", sum_again).expect("new");
    let (again, layout) = (
        again.finish().expect("has an output"),
        graph.parameter_layout(),
    );
    assert_eq!(again.parameter_layout(), layout);
    let weights = plan.state("weights", DType::F32, layout.len());
    again
        .record(
            &mut plan,
            &layout.feeds(&again, weights).expect("has both"),
            &[(sum_again, z)],
        )
        .expect("its own");
    invalid(
        layout.feeds(&other, weights),
        "no parameter a; there are c, d",
    );
    invalid(
        again.record(
            &mut plan,
            &layout.feeds(&graph, weights).expect("has both"),
            &[(sum_again, z)],
        ),
        "feed: node 0 is of another graph",
    );

    // Graphs derived from a graph keep its nodes; nodes added by two builders belong to two graphs.
    let mut builders = [graph.clone(), graph.optimize()].map(GraphBuilder::from);
    let [one, two] = builders.each_mut().map(|g| g.relu(a).expect("its own"));
    invalid(builders[0].add(a, two), "is of another graph");
    builders[1].add(b, two).expect("its own");
    invalid(builders[1].add(a, one), "is of another graph");
    let gradients = graph.gradients(sum).expect("differentiates");
    assert_eq!(
        gradients
            .evaluate(&[(a, tensor(1.0)), (b, tensor(2.0))])
            .expect("its own")
            .len(),
        3
    );
    invalid(
        gradients.evaluate(&[(a, tensor(1.0)), (foreign, tensor(2.0))]),
        "feed: node 1 is of another graph",
    );
    invalid(
        graph.shape(other.output("y").expect("there")),
        "node 1 is of another graph",
    );
}

#[test]
fn defect_11_values_of_other_chains_are_refused() {
    let (mut chain, mut other) = (Chain::new(1).expect("one"), Chain::new(1).expect("one"));
    let (x, foreign) = (
        chain.input(0).expect("the input"),
        other.input(0).expect("the input"),
    );
    let step = other.op("neg", &[foreign]).expect("its own");
    chain.op("neg", &[x]).expect("its own");
    invalid(
        chain.op("abs", &[foreign]),
        "chain: abs: operand 0 is of another chain",
    );
    invalid(
        chain.op("add", &[x, step]),
        "chain: add: operand 1 is of another chain",
    );
    let constant = other.constant(1.0).expect("finite");
    invalid(
        chain.mul_add(x, x, constant),
        "chain: mul_add: operand 2 is of another chain",
    );
}

#[test]
fn defect_16_graphs_whose_parameters_come_last() {
    let text = "%0 = input x [1, 1]\n%1 = mul(%0, %5) [1, 1]\noutput y %1\n%5 = parameter w [1, 1]";
    let graph = Graph::parse(text).expect("read");
    let gradients = graph
        .output("y")
        .and_then(|y| graph.gradients(y))
        .expect("differentiates");
    let feeds: Vec<(Node, Tensor)> = graph
        .inputs()
        .chain(graph.parameters())
        .map(|(_, node, _)| (node, Tensor::new([1, 1], vec![3.0]).expect("full")))
        .collect();
    let values = gradients.evaluate(&feeds).expect("fed");
    assert_eq!(
        values.iter().map(Tensor::data).collect::<Vec<_>>(),
        [[9.0], [3.0]]
    );

    let text = "%0 = matmul(%2, %3ᵀ) [1, 2]\n%1 = matmul(%2, %4ᵀ) [1, 2]\n%2 = input x [1, 4]\n%3 = parameter v [2, 4]\n%4 = parameter w [2, 4]\n\
                output y %0\noutput z %1\n";
    let graph = Graph::parse(text).expect("read");
    let feeds: Vec<(Node, Tensor)> = graph
        .inputs()
        .chain(graph.parameters())
        .map(|(_, node, shape)| {
            (
                node,
                Tensor::new(
                    shape,
                    (0..shape.elements().expect("sizes"))
                        .map(|i| i as f64)
                        .collect(),
                )
                .expect("full"),
            )
        })
        .collect();
    assert_eq!(
        graph.optimize().evaluate(&feeds).expect("fed"),
        graph.evaluate(&feeds).expect("fed")
    );

    let last = u32::MAX / 2;
    let text = format!("%{last} = input x [1, 1]\noutput x %{last}");
    let mut g = GraphBuilder::from(Graph::parse(&text).expect("read"));
    let x = g
        .finish()
        .and_then(|graph| graph.output("x"))
        .expect("there");
    g = GraphBuilder::from(Graph::parse(&text).expect("read"));
    invalid(g.relu(x), "is of another graph");
    let own = GraphBuilder::from(Graph::parse(&text).expect("read"))
        .input("y", [1, 1])
        .expect("has a number");
    assert_eq!(own.to_string(), format!("{}", u64::from(last) + 1));
    for number in [
        u64::from(last) + 1,
        u64::from(u32::MAX) - 1,
        u64::from(u32::MAX),
        1 << 32,
    ] {
        for node in [format!("{number}"), format!("1.{number}")] {
            invalid(
                Graph::parse(&format!("%{node} = input x [1, 1]\noutput x %{node}")),
                "line 1",
            );
        }
    }
    invalid(
        Graph::parse("%0 = input x [1, 1]\n%1 = concat() [1, 1]\noutput y %1"),
        "axis is missing",
    );
    invalid(
        Graph::parse(
            "%0 = input x [1, 1]\n%1 = broadcast(%0) [4294967295, 4294967295]\noutput y %1",
        ),
        "broadcast: [4294967295, 4294967295] holds more",
    );
}

/// A product of 3 or 5 and a size that is 64 modulo 2⁶⁴.
#[test]
fn suspect_products_of_sizes_do_not_wrap() {
    const THIRD: usize = 12_297_829_382_473_034_432;
    const FIFTH: usize = 3_689_348_814_741_910_336;
    assert_eq!([THIRD.wrapping_mul(3), FIFTH.wrapping_mul(5)], [64, 64]);
    let mut plan = PlanBuilder::new("products");
    let [x, y, z] = ["x", "y", "z"].map(|name| plan.state(name, DType::F32, 64));
    let (words, spans) = (
        x.reinterpret(DType::U32),
        plan.state("spans", DType::U32, 2),
    );
    let (nine, three, integers) = (
        plan.state("nine", DType::F32, 9),
        plan.state("three", DType::F32, 3),
        plan.state("integers", DType::I32, 25),
    );
    let none = GemmEpilogue::default();
    invalid(
        plan.gemm(
            Matrix::new(x, 3, THIRD),
            Matrix::new(y, THIRD, 3),
            nine,
            none,
        ),
        "gemm",
    );
    invalid(
        plan.gemm_batched(
            Matrices::new(x, 1, 3, THIRD),
            Matrices::new(y, 1, THIRD, 3),
            nine,
        ),
        "gemm_batched",
    );
    invalid(
        plan.gemm_i8(
            words,
            y.reinterpret(DType::U32),
            integers,
            [5, 5, FIFTH * 4 - 3],
        ),
        "gemm_i8",
    );
    invalid(plan.softmax(x, y, 3, THIRD, 1.0), "softmax");
    invalid(plan.softmax(x, y, THIRD, 3, 1.0), "softmax");
    for reduce in [
        PlanBuilder::sum,
        PlanBuilder::max,
        PlanBuilder::min,
        PlanBuilder::mean,
        PlanBuilder::argmax,
    ] {
        invalid(
            reduce(&mut plan, x, three, 3, THIRD),
            "3 × 12297829382473034432",
        );
    }
    invalid(plan.sum_columns(x, three, THIRD, 3), "sum_columns");
    invalid(plan.variance(x, three, three, 3, THIRD, 0), "variance");
    invalid(plan.transpose(x, y, [1, 3, THIRD]), "transpose");
    invalid(
        plan.rotary(x, words, y, 2, usize::MAX / 2 + 33, 10.0),
        "rotary",
    );
    invalid(plan.quantize_rows(x, words, three, THIRD), "quantize_rows");
    invalid(
        plan.quantize_rows(x, words, three, usize::MAX),
        "quantize_rows",
    );
    invalid(
        plan.gemm_panels(x, (y, PanelFormat::F32), nine, [3, THIRD, 3], none),
        "gemm_panels",
    );
    let boundary = Boundary::Periodic;
    invalid(
        plan.stencil(
            Points::Seven,
            x,
            spans.part(0..1).reinterpret(DType::F32),
            y,
            [3, THIRD, 1, 1],
            boundary,
        ),
        "stencil",
    );
    let sizes = AttentionSizes {
        batch: 1,
        queries: 3,
        keys: 3,
        heads: 1,
        kv_heads: 1,
        width: 64,
    };
    let columns = [x, y, z].map(|view| (view, THIRD, usize::MAX - 63));
    invalid(
        plan.attention(columns, None, z, sizes, 1.0, false),
        "attention",
    );
    let format = (x, CacheFormat::F32);
    invalid(
        plan.attention_cached(
            columns,
            [format, (y, CacheFormat::F32)],
            spans,
            z,
            AttentionSizes {
                keys: THIRD,
                ..sizes
            },
            1.0,
        ),
        "attention_cached",
    );
    // Vectors that no launch may bind.
    let mut plan = PlanBuilder::new("vectors");
    let (a, x, y) = (
        plan.state("a", DType::F32, 0),
        plan.state("x", DType::F32, 1 << 33),
        plan.state("y", DType::F32, 1 << 31),
    );
    invalid(plan.matvec(a, x, y, none), "matvec");
    assert_eq!(Shape::from([usize::MAX, 2, 7]).matrix(), [usize::MAX, 7]);
}

/// The library's `matvec` over rows of ones; the program unchanged.
fn matvec_of_ones(
    device: &Device,
    columns: usize,
    max_loop_iterations: u32,
) -> Result<Vec<f32>, Error> {
    const ROWS: u64 = 2;
    let program = Program::parse(library_text("matvec").expect("in the library"))
        .and_then(|program| program.check())?;
    let launch = LaunchConfig {
        max_loop_iterations,
        ..LaunchConfig::linear(2, 64)
    };
    let bytes = |words: u64| 4 * words;
    let bounded = program.bound(
        &launch,
        &[
            bytes(ROWS * columns as u64),
            bytes(columns as u64),
            16,
            bytes(ROWS),
        ],
    )?;
    let mut run = bounded.plan_as(Recognize::Off, &[])?.compile(device)?;
    for buffer in [0, 1] {
        run.input(BufferIndex(buffer))
            .chunks_exact_mut(4)
            .for_each(|x| x.copy_from_slice(&1.0f32.to_le_bytes()));
    }
    run.input(BufferIndex(2))
        .copy_from_slice(&[ROWS, columns as u64].map(u64::to_le_bytes).concat());
    run.run()?;
    Ok(run
        .output(BufferIndex(3))
        .chunks_exact(4)
        .map(|y| f32::from_le_bytes([y[0], y[1], y[2], y[3]]))
        .collect())
}

/// A device that ends long loops reports it, or the run is refused; otherwise every device gives
/// the sum.
#[test]
fn defect_20_a_loop_that_a_device_cuts_off_gives_no_result() {
    for device in devices() {
        for columns in [1_000, 20_000, 32_000, 32_767, 40_000, 70_000] {
            match (
                matvec_of_ones(&device, columns, LaunchConfig::MAX_LOOP_ITERATIONS),
                device.info().limits.max_loop_iterations,
            ) {
                (Ok(y), _) => assert_eq!(y, [columns as f32; 2], "{device:?}, {columns} columns"),
                (Err(error), Some(_)) => {
                    assert!(
                        columns > 32_000 && error.kind() == ErrorKind::Unsupported,
                        "{device:?}, {columns} columns: {error}"
                    );
                    assert!(
                        error
                            .to_string()
                            .contains("matvec: lane 0, line 24 `bra @next`"),
                        "{error}"
                    );
                }
                (Err(error), None) => panic!("{device:?}, {columns} columns: {error}"),
            }
        }
        works(&device);
    }
}

/// Loops of every form: in structured code, nested, in sequence, for some lanes only, between
/// barriers.
#[test]
fn defect_20_loops_of_every_form_are_reported() {
    let forms = [
        (
            "counted",
            "mov.u32 r1, TURNS\n@a:\nadd.u32 r0, r0, r2\nloop r1, @a",
        ),
        (
            "nested",
            "mov.u32 r3, 9\n@b:\nmov.u32 r1, TENTH\n@a:\nadd.u32 r0, r0, r2\nloop r1, @a\nloop r3, @b",
        ),
        (
            "twice",
            "mov.u32 r1, TURNS\n@a:\nadd.u32 r0, r0, r2\nloop r1, @a\nmov.u32 r1, TURNS\n@b:\nadd.u32 r0, r0, r2\nloop r1, @b",
        ),
        (
            "some lanes",
            "mov_imm.u32 r4, 3\nset.lt.u32 p0, r252, r4\nbra @end, p0\nmov.u32 r1, TURNS\n@a:\nadd.u32 r0, r0, r2\nloop r1, @a\n@end:",
        ),
        (
            "between barriers",
            "mov.u32 r1, TENTH\n@a:\nadd.u32 r0, r0, r2\nbar.sync 0\nloop r1, @a\nmov.u32 r1, TURNS\n@b:\nadd.u32 r0, r0, r2\nloop r1, @b",
        ),
    ];
    for device in devices() {
        let limit = device.info().limits.max_loop_iterations;
        for (name, form) in forms {
            for turns in [100u32, 100_000] {
                // `mov.u32 r, N` is shorthand for a constant.
                let body = form
                    .replace("TURNS", &turns.to_string())
                    .replace("TENTH", &(turns / 10).to_string())
                    .replace("mov.u32", "mov_imm.u32");
                let text = format!(
                    "program {}\nbuffer y: u32 write\nmov_imm.u32 r0, 0\nmov_imm.u32 r2, 1\n{body}\nstg.u32 [y], r0",
                    name.replace(' ', "_")
                );
                let program = Program::parse(&text)
                    .and_then(|program| program.check())
                    .unwrap_or_else(|error| panic!("{error}"));
                let launch = LaunchConfig::linear(64, 64);
                let mut expected = vec![vec![0; 256]];
                assert_eq!(
                    program
                        .evaluate(&launch, &mut expected, u64::MAX)
                        .expect("fits"),
                    Outcome::Finished
                );
                let mut run = program
                    .bound(&launch, &[256])
                    .and_then(|bounded| bounded.plan_as(Recognize::Off, &[])?.compile(&device))
                    .expect("compiles");
                match run.run() {
                    Ok(_) => assert_eq!(
                        run.output(BufferIndex(0)),
                        expected[0],
                        "{device:?}: {name}, {turns}"
                    ),
                    Err(error) => assert!(
                        limit.is_some() && turns > 100 && error.kind() == ErrorKind::Unsupported,
                        "{device:?}: {name}, {turns}: {error}"
                    ),
                }
            }
        }
    }
}

/// A user's kernel: one without a stated loop bound is refused on devices that end long loops, one
/// with a bound if it is too large.
#[test]
fn defect_20_loops_of_a_users_kernel_are_right_or_refused() -> Result<(), Error> {
    let body = "@compute @workgroup_size(1) fn main() {
        var sum = 0u;
        for (var i = 0u; i < params.turns; i++) { sum += x[i % 4u]; }
        y[0] = sum;
    }";
    let define = || {
        Kernel::define("turns")
            .read("x", DType::U32)
            .write("y", DType::U32)
            .param("turns", DType::U32)
            .body(body)
    };
    let native = |call: &tectum::NativeCall<'_>| {
        let x = call.read::<u32>(0);
        call.write::<u32>(1)[0] = (0..call.size(0)).map(|i| x[i % 4]).sum();
    };
    let kernels = [
        (define().native(native)?, false),
        (
            define()
                .loops(|params, _| u64::from(params[0]))
                .native(native)?,
            true,
        ),
    ];
    for device in devices() {
        let limit = device.info().limits.max_loop_iterations;
        for (kernel, states_turns) in &kernels {
            for turns in [10u32, 100_000] {
                let mut plan = PlanBuilder::new("turns");
                let (x, y) = (
                    plan.input("x", DType::U32, 4),
                    plan.output("y", DType::U32, 1),
                );
                plan.launch_dynamic(kernel, &[x, y], &[turns], 1)?;
                let compiled = plan.finish()?.compile(&device);
                if limit.is_some_and(|most| !states_turns || turns > most) {
                    let error = compiled
                        .err()
                        .unwrap_or_else(|| panic!("{device:?}: {turns} turns are accepted"));
                    assert!(
                        error.kind() == ErrorKind::Unsupported
                            && error.to_string().contains("kernel turns"),
                        "{error}"
                    );
                    continue;
                }
                let mut run = compiled?;
                run.input::<u32>(x).fill(1);
                run.run()?;
                assert_eq!(run.output::<u32>(y), [turns], "{device:?}");
            }
        }
    }
    Ok(())
}

/// Kernels of the core whose loops a device would end are refused at compilation.
#[test]
fn defect_20_long_products_are_right_or_refused() {
    for device in devices() {
        for k in [30_000usize, 60_000, 200_000] {
            let mut plan = PlanBuilder::new("long");
            let (a, b, y) = (
                plan.state("a", DType::F32, 2 * k),
                plan.state("b", DType::F32, 2 * k),
                plan.output("y", DType::F32, 4),
            );
            let (v, sums) = (
                plan.output("v", DType::F32, 2),
                plan.output("sums", DType::F32, 2),
            );
            plan.fill(a, 1.0f32.to_bits()).expect("fits");
            plan.fill(b, 1.0f32.to_bits()).expect("fits");
            plan.matvec(a, b.part(0..k), v, GemmEpilogue::default())
                .expect("fits");
            plan.sum(a, sums, 2, k).expect("fits");
            plan.gemm(
                Matrix::new(a, 2, k),
                Matrix::new(b, k, 2),
                y,
                GemmEpilogue::default(),
            )
            .expect("fits");
            match plan.finish().and_then(|plan| plan.compile(&device)) {
                Ok(mut run) => {
                    run.run().expect("runs");
                    let found = [y, v, sums]
                        .map(|view| run.output::<f32>(view).to_vec())
                        .concat();
                    assert!(
                        found.iter().all(|sum| *sum == k as f32),
                        "{device:?}, k = {k}: {found:?}"
                    );
                }
                Err(error) => {
                    let names_it = error.to_string().contains("kernel gemm_f32: up to")
                        && error.kind() == ErrorKind::Unsupported;
                    assert!(
                        names_it
                            && k > 30_000
                            && device.info().limits.max_loop_iterations == Some(65_535),
                        "{device:?}, k = {k}: {error}"
                    );
                }
            }
        }
    }
}

/// A program with this many iterations, and an infinite one: with nested jumps, with others,
/// between barriers, and past a call.
#[test]
fn defect_23_a_program_without_end_ends_at_its_limit_everywhere() {
    let endless = [
        "@a:\nadd.u32 r0, r0, r0\nbra @a",
        "@a:\nset.eq.u32 p0, r0, r0\nadd.u32 r1, r0, r0\nbra @a, p0",
        "@a:\nbar.sync 0\nbra @a",
        "@a:\ncall @f\nbra @a\n@f:\nadd.u32 r0, r0, r0\nret",
        "set.lt.u32 p0, r252, r2\nbra @end, p0\n@a:\nadd.u32 r0, r0, r0\nbra @a\n@end:",
    ];
    for device in devices() {
        for code in endless {
            let end = if code.contains("ret") {
                ""
            } else {
                "\nstg.u32 [y], r0"
            };
            let text = format!(
                "buffer y: u32 write\nmov_imm.u32 r0, 0\nmov_imm.u32 r2, 3\nstg.u32 [y], r0\n{code}{end}"
            );
            let program = Program::parse(&text)
                .and_then(|program| program.check())
                .unwrap_or_else(|error| panic!("{text}: {error}"));
            let warnings = program.warnings();
            assert!(
                warnings.len() == 1 && warnings[0].to_string().contains("exit"),
                "{text}: {warnings:?}"
            );
            let launch = LaunchConfig {
                max_loop_iterations: 1_000,
                ..LaunchConfig::linear(64, 64)
            };
            let outcome = program
                .evaluate(&launch, &mut [vec![0; 256]], u64::MAX)
                .expect("fits");
            assert!(
                matches!(
                    outcome,
                    Outcome::Fault(Fault {
                        kind: FaultKind::LoopLimitExceeded { limit: 1_000 },
                        ..
                    })
                ),
                "{text}: {outcome:?}"
            );
            let bounded = program.bound(&launch, &[256]).expect("fits");
            let mut run = bounded
                .plan_as(Recognize::Off, &[])
                .and_then(|plan| plan.compile(&device))
                .expect("compiles");
            invalid(run.run(), "did not end within the limit of 1000 iterations");
            assert!(
                run.run()
                    .expect_err("again")
                    .to_string()
                    .contains(", line "),
                "names the line"
            );
        }
        for (turns, ends) in [(999, false), (1_000, true)] {
            let found = matvec_of_ones(&device, 1_000, turns);
            match ends {
                true => assert_eq!(found.expect("ends"), [1_000.0; 2]),
                false => invalid(
                    found,
                    "line 24 `bra @next`: the loop did not end within the limit of 999 iterations",
                ),
            }
        }
        works(&device);
    }
}

#[test]
fn defect_23_the_library_of_programs_has_no_loop_in_doubt() {
    assert!(LIBRARY.len() > 10);
    for (name, text) in LIBRARY {
        let program = Program::parse(text)
            .and_then(|program| program.check())
            .expect("valid");
        assert_eq!(program.warnings(), [], "{name}");
    }
}

/// Suspected: products of dimensions wrap. In a build without overflow checks, an empty
/// `[2³², 2³²]` had no elements, and fit.
#[test]
fn defect_06_no_operation_takes_sizes_whose_product_wraps() {
    const HUGE: usize = 1 << 32;
    let mut plan = PlanBuilder::new("products");
    let [nothing, x, y] = [0, 64, 64].map(|len| plan.state("s", DType::F32, len));
    let bytes = plan.state("bytes", DType::U32, 64);
    let tail = GemmEpilogue::default();
    let huge = Matrix::new(nothing, HUGE, HUGE);
    invalid(
        plan.gemm(huge, Matrix::new(x, HUGE, 1), nothing, tail),
        "gemm",
    );
    invalid(
        plan.gemm_batched(
            Matrices::new(nothing, 1, HUGE, HUGE),
            Matrices::new(nothing, 1, HUGE, HUGE),
            nothing,
        ),
        "gemm_batched",
    );
    invalid(
        plan.gemm_i8(nothing, nothing, nothing, [HUGE, HUGE, usize::MAX]),
        "gemm_i8",
    );
    invalid(
        plan.stencil(
            Points::Seven,
            nothing,
            x,
            nothing,
            [HUGE, HUGE, 1, 1],
            Boundary::Zero,
        ),
        "stencil",
    );
    invalid(plan.softmax(nothing, nothing, HUGE, HUGE, 1.0), "softmax");
    invalid(plan.sum(nothing, y, 1 << 62, 4), "sum");
    invalid(plan.sum_columns(nothing, y, 4, 1 << 62), "sum_columns");
    invalid(plan.mean(nothing, y, HUGE, HUGE), "mean");
    invalid(plan.variance(nothing, y, y, HUGE, HUGE, 0), "variance");
    invalid(plan.argmax(nothing, y, HUGE, HUGE), "argmax");
    invalid(plan.top_k(nothing, nothing, nothing, HUGE, HUGE), "top_k");
    invalid(
        plan.quantize_rows(nothing, nothing, nothing, 0),
        "quantize_rows",
    );
    invalid(plan.rotary(x, bytes, y, 8, 1 << 62, 100.0), "rotary");
    let sizes = AttentionSizes {
        batch: 1,
        queries: 1 << 62,
        keys: 1,
        heads: 4,
        kv_heads: 4,
        width: 1,
    };
    invalid(
        plan.attention(
            [(nothing, 4, 0), (nothing, 4, 0), (nothing, 4, 0)],
            None,
            nothing,
            sizes,
            1.0,
            false,
        ),
        "attention",
    );
    for dtype in [DType::F32, DType::F64] {
        let mut plan = PlanBuilder::new("words");
        let huge = plan.state("huge", dtype, usize::MAX);
        invalid(plan.fill(huge, 0), "slot huge");
        invalid(plan.copy(huge, huge), "slot huge");
    }
    // A sum over nothing is a number: of f32 or f64, for any count.
    let mut plan = PlanBuilder::new("sums of nothing");
    let (none, sums, words) = (
        plan.state("none", DType::F64, 0),
        plan.state("sums", DType::F64, 1 << 61),
        plan.state("words", DType::U32, 4),
    );
    invalid(plan.sum(none, sums, 1 << 61, 0), "slot");
    invalid(plan.sum(none, words, 4, 0), "not numbers");
    invalid(
        plan.variance(none, sums.part(0..4), sums.part(64..68), 4, 0, 0),
        "f32 alone",
    );
}

/// Each slot fits an address, all of them do not: the upload's length was 0, and views of inputs
/// were out of its bounds.
#[test]
fn defect_01_slots_whose_bytes_together_wrap_are_refused() {
    let mut plan = PlanBuilder::new("together");
    let inputs = [(); 4].map(|()| plan.input("x", DType::F32, 1 << 60));
    let y = plan.output("y", DType::F32, 64);
    plan.copy(inputs[1].part(0..64), y).expect("a part");
    invalid(plan.finish(), "its slots together are more than");
}

/// The first launch of an operation stayed in the plan when the second was refused.
#[test]
fn defect_an_operation_is_recorded_whole_or_not_at_all() {
    let mut plan = PlanBuilder::new("whole");
    let (table, rows, y) = (
        plan.input("table", DType::F32, 64),
        plan.input("rows", DType::U32, 2),
        plan.output("y", DType::F32, 64),
    );
    let (long, words, faults) = (
        plan.input("long", DType::F32, 5000),
        plan.state("words", DType::U32, 1),
        plan.state("faults", DType::F32, 1),
    );
    // Faults are words of u32, a mean is a number: the first launches were recorded before the last
    // was refused.
    invalid(plan.gather(table, rows, y, faults, 32), "binding faults");
    invalid(plan.mean(long, words, 1, 5000), "binding y");
    invalid(plan.argmax(long, faults, 1, 5000), "binding y");
    plan.copy(table, y).expect("fits");
    let plan = plan.finish().expect("well formed");
    assert_eq!(plan.kernels().count(), 1, "{}", plan.describe());
}

/// Two results in one memory, in consecutive launches, where a single launch refuses them.
#[test]
fn defect_results_of_one_operation_lie_apart() {
    let mut plan = PlanBuilder::new("apart");
    let (flags, marked, both) = (
        plan.input("flags", DType::U32, 5000),
        plan.state("marked", DType::U32, 5000),
        plan.state("both", DType::U32, 5056),
    );
    // With more than one block, a separate launch writes the total.
    invalid(
        plan.exclusive_scan(marked, both.part(0..5000), marked.part(0..1)),
        "touch slot marked",
    );
    invalid(
        plan.exclusive_scan(flags, both.part(0..5000), both.part(64..65)),
        "touch slot both",
    );
    invalid(
        plan.compact(flags, both.part(0..5000), both.part(0..1)),
        "two results overlap",
    );
    let (rows, nothing) = (
        plan.constant("rows", &[0u32]),
        plan.state("nothing", DType::U32, 0),
    );
    invalid(
        plan.gather(nothing, rows, both.part(0..1), both.part(0..1), 1),
        "two results overlap",
    );
}

/// The whole slot was interpreted as the view's type: 3 words are not an f64, a part of 2 is.
#[test]
fn defect_19_a_part_of_an_output_is_seen_as_another_type() {
    for device in devices() {
        let mut plan = PlanBuilder::new("odd");
        let (x, y) = (
            plan.input("x", DType::U32, 3),
            plan.output("y", DType::U32, 3),
        );
        plan.copy(x, y).expect("fits");
        let mut run = plan
            .finish()
            .and_then(|plan| plan.compile(&device))
            .expect("compiles");
        run.input::<u32>(x).copy_from_slice(&[0, 0x3ff8_0000, 7]);
        run.run().expect("runs");
        assert_eq!(
            run.output::<f64>(y.part(0..2).reinterpret(DType::F64)),
            [1.5]
        );
    }
}

#[test]
fn suspect_a_users_kernel_stays_within_its_bindings() -> Result<(), Error> {
    for device in devices() {
        assert_eq!(crate::stray_kernel::stray(&device)?, None);
    }
    Ok(())
}

/// The launch assumed workgroups of 256, and dropped what was beyond 65,535 of them.
#[test]
fn launches_of_users_kernels_compute_every_item() -> Result<(), Error> {
    use crate::users_kernels::{count, large_rows, rows, sizes};
    for device in devices() {
        sizes(&device)?;
        rows(&device)?;
        large_rows(&device)?;
        count(&device)?;
    }
    Ok(())
}

/// Kernels of the crate do not check their indices: with a caller's parameters they would access
/// memory of others on a GPU.
#[test]
fn suspect_a_built_in_kernel_is_recorded_by_its_operation_alone() -> Result<(), Error> {
    let mut plan = PlanBuilder::new("strange");
    let (x, y) = (
        plan.input("x", DType::U32, 64),
        plan.output("y", DType::U32, 64),
    );
    let copy = tectum::operation::kernels()
        .into_iter()
        .find(|kernel| kernel.name() == "copy_u32")
        .expect("a built-in kernel");
    invalid(
        plan.launch_dynamic(&copy, &[x, y], &[1 << 20], 64),
        "does not check its indices",
    );
    // Those that a plan lists are the same.
    plan.copy(x, y)?;
    let copied = plan.finish()?;
    for kernel in copied.kernels() {
        let mut other = PlanBuilder::new("other");
        let (x, y) = (
            other.input("x", DType::U32, 64),
            other.output("y", DType::U32, 64),
        );
        invalid(
            other.launch_dynamic(kernel, &[x, y], &[64], 1),
            "does not check its indices",
        );
    }
    Ok(())
}

/// Code without checks is generated only for programs whose every access is proven for the launch.
#[test]
fn suspect_a_program_without_checks_is_proven() -> Result<(), Error> {
    let text = "buffer at: u64 read\nbuffer x: u32 read\nbuffer y: u32 write\nldg.u64 r0, [at]\nldg.u32 r1, [x + r0]\nstg.u32 [y], r1";
    let program = Program::parse(text)?.check()?;
    let mut plan = PlanBuilder::new("anywhere");
    let (at, x, y) = (
        plan.input("at", DType::U32, 128),
        plan.input("x", DType::U32, 8),
        plan.output("y", DType::U32, 64),
    );
    let views = [at.into(), x.into(), y.into()];
    invalid(
        program
            .record(
                &mut plan,
                &LaunchConfig::linear(64, 64),
                &views,
                Bounds::Proven,
            )
            .map(|_| ()),
        "not every access is proven",
    );
    let how = Recognition {
        reassociate: false,
        bounds: Bounds::Proven,
    };
    invalid(
        program
            .record_recognized(&mut plan, &LaunchConfig::linear(64, 64), &views, how)
            .map(|_| ()),
        "not every access is proven",
    );
    program
        .record(
            &mut plan,
            &LaunchConfig::linear(64, 64),
            &views,
            Bounds::Checked,
        )
        .map(|_| ())
}

#[test]
fn defect_08_a_receipt_lists_every_kernel_of_a_run() -> Result<(), Error> {
    for device in devices() {
        let mut plan = PlanBuilder::new("two kernels");
        let (x, y, total) = (
            plan.input("x", DType::F32, 8),
            plan.output("y", DType::F32, 8),
            plan.output("total", DType::F32, 1),
        );
        plan.unary("exp", x, y)?;
        plan.sum(x, total, 1, 8)?;
        let mut run = plan.finish()?.compile(&device)?;
        let mut session = Session::new(&device);
        session.run(&mut run)?;
        let receipt = session.receipt();
        assert!(
            run.code().len() >= 2 && run.code().iter().all(|code| receipt.code.contains(code)),
            "{device:?}: {:?} of {:?}",
            receipt.code,
            run.code()
        );
    }
    Ok(())
}
