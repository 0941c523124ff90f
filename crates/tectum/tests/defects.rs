//! Defects that a review found behind green tests, one test each, numbered as in it: calls that corrupted memory, lost a device or computed
//! something else than their documentation.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tectum::kernel::gemm_batched::Packing;
use tectum::kernel::native::for_each_index;
use tectum::kernel::pack::{Half, to_f16};
use tectum::program::{Bounds, LaunchConfig, Program, Recognition};
use tectum::{
    AttentionSizes, Boundary, Buffer, DType, Device, Element, Error, ErrorKind, Executable, GemmTail, Kernel, Matrices, Matrix, NativeCall, PlanBuilder,
    Points, Strided, ThreadPool, View,
};

/// The CPU and software Vulkan, where there is one.
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
    assert!(error.kind() == ErrorKind::Invalid && error.to_string().contains(part), "{error}");
}

/// A plan that adds 1 to its input, and what it gives for 1, 2, 3, …: the device still works.
pub fn works(device: &Device) {
    let mut plan = PlanBuilder::new("works");
    let (x, one, y) = (plan.input("x", DType::F32, 100), plan.constant("one", &[1.0f32]), plan.output("y", DType::F32, 100));
    plan.binary("add", x, one, y).expect("fits");
    let mut run = plan.finish().and_then(|plan| plan.compile(device)).expect("compiles");
    run.input::<f32>(x).iter_mut().zip(1u8..).for_each(|(x, i)| *x = f32::from(i));
    run.run().expect("runs");
    assert!(run.output::<f32>(y).iter().zip(2u8..).all(|(y, i)| *y == f32::from(i)), "{device:?}");
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
    // Of a slot number that the plan does not have.
    let far = (0..9).map(|_| a.output("far", DType::F32, 64)).last().expect("nine");
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
        invalid(b.compile_with(&device, &[(long, &buffer)]), other);
        run.run().expect("runs");
        works(&device);
    }
}

fn panics<R>(work: impl FnOnce() -> R) -> String {
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).err().expect("the caller's mistake");
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn defect_01_a_program_refuses_views_of_another_plan() {
    let text = "buffer x: f32 read\nbuffer y: f32 write\nldg.f32 r0, [x]\nadd.f32 r0, r0, r0\nstg.f32 [y], r0";
    let program = Program::parse(text).and_then(|program| program.check()).expect("valid");
    let mut other = PlanBuilder::new("other");
    let foreign = (0..9).map(|_| other.state("far", DType::F32, 64)).last().expect("nine");
    let mut plan = PlanBuilder::new("plan");
    let (x, y) = (plan.input("x", DType::F32, 64), plan.output("y", DType::F32, 64));
    let launch = LaunchConfig::linear(64, 32);
    let how = Recognition { reassociate: false, bounds: Bounds::Proven };
    for views in [[foreign, y], [x, foreign]] {
        invalid(plan.program(&program, &launch, &views.map(Into::into), Bounds::Proven).map(|_| ()), "a view of another plan");
        invalid(plan.program_recognized(&program, &launch, &views.map(Into::into), how).map(|_| ()), "a view of another plan");
    }
}

#[test]
fn defect_01_inputs_and_outputs_of_another_plan_are_not_given() {
    let device = Device::open("cpu").expect("always there");
    let double = |name: &str, len: usize| -> (Executable, View, View) {
        let mut plan = PlanBuilder::new(name);
        let (x, y) = (plan.input("x", DType::F32, len), plan.output("y", DType::F32, len));
        plan.binary("add", x, x, y).expect("fits");
        (plan.finish().and_then(|plan| plan.compile(&device)).expect("compiles"), x, y)
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
    for (dtype, len) in [(DType::F32, (1 << 62) + 64), (DType::F64, 1 << 61), (DType::F32, usize::MAX), (DType::U32, usize::MAX / 4 + 1)] {
        let mut plan = PlanBuilder::new("huge");
        let state = plan.state("huge", dtype, len);
        invalid(plan.fill(state.part(0..64), 0), "slot huge");
        invalid(plan.finish(), "slot huge");
    }
    let mut plan = PlanBuilder::new("counted");
    let state = plan.state("long", DType::U32, (1 << 32) + 64);
    invalid(plan.fill(state, 0), "more than the 4294967295 that a kernel counts");
}

#[test]
fn defect_02_two_states_do_not_share_a_buffer() {
    for device in devices() {
        let mut plan = PlanBuilder::new("product");
        let (s, t) = (plan.state("s", DType::F32, 128), plan.state("t", DType::F32, 128));
        plan.binary("add", s, s, t).expect("fits");
        let plan = plan.finish().expect("well formed");
        let [one, two] = [1.0f32, 2.0].map(|value| device.buffer_from(&[value; 128]).expect("fits"));
        invalid(plan.compile_with(&device, &[(s, &one), (t, &one)]), "states s and t share one buffer");
        invalid(plan.compile_with(&device, &[(s, &one), (s, &two)]), "bound to two buffers");
        invalid(plan.compile_with(&device, &[(s.part(0..64), &one)]), "a whole state");
        plan.compile_with(&device, &[(s, &one), (t, &two)]).and_then(|mut run| run.run()).expect("runs");
        assert_eq!(two.read().expect("reads"), [2.0; 128]);
        works(&device);
    }
}

/// Products of halves on two threads, each shared among the threads of its pool.
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
    // Several tasks in one pool of a caller, and threads of their own.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().expect("a pool");
    pool.scope(|scope| (1u8..=6).for_each(|value| scope.spawn(move |_| one(f32::from(value)).expect("right"))));
    ThreadPool::new(3, "members")?.install(|| rayon::scope(|scope| (1u8..=6).for_each(|value| scope.spawn(move |_| one(f32::from(value)).expect("right")))));
    std::thread::scope(|scope| (1u8..=4).for_each(|value| drop(scope.spawn(move || one(f32::from(value)).expect("right")))));
    Ok(())
}

#[test]
fn defect_05_a_state_read_with_a_wrong_view_leaves_the_device_alive() {
    for device in devices() {
        let mut plan = PlanBuilder::new("states");
        let (small, out) = (plan.state("small", DType::F32, 64), plan.output("out", DType::F32, 64));
        plan.copy(small, out).expect("fits");
        let mut run = plan.finish().and_then(|plan| plan.compile(&device)).expect("compiles");
        let big = PlanBuilder::new("other").state("big", DType::F32, 1 << 20);
        invalid(run.read_state::<f32>(big), "a view of another plan");
        invalid(run.read_state::<u32>(small), "seen as f32 is no state of u32");
        invalid(run.read_state::<f32>(out), "no state");
        invalid(run.write_state::<f32>(small, &[1.0]), "written with 1");
        run.run().expect("runs");
        works(&device);
    }
}

/// Suspected: products of dimensions wrap. In a build that does not check, `[2³², 2³²]` of nothing were no elements, and fit.
#[test]
fn defect_06_no_operation_takes_sizes_whose_product_wraps() {
    const HUGE: usize = 1 << 32;
    let mut plan = PlanBuilder::new("products");
    let [nothing, x, y] = [0, 64, 64].map(|len| plan.state("s", DType::F32, len));
    let bytes = plan.state("bytes", DType::U32, 64);
    let tail = GemmTail::default();
    let huge = Matrix::new(nothing, HUGE, HUGE);
    invalid(plan.gemm(huge, Matrix::new(x, HUGE, 1), nothing, tail), "gemm");
    invalid(plan.gemm_batched(Matrices::new(nothing, 1, HUGE, HUGE), Matrices::new(nothing, 1, HUGE, HUGE), nothing), "gemm_batched");
    invalid(plan.gemm_i8(nothing, nothing, nothing, [HUGE, HUGE, usize::MAX]), "gemm_i8");
    invalid(plan.stencil(Points::Seven, nothing, x, nothing, [HUGE, HUGE, 1, 1], Boundary::Zero), "stencil");
    invalid(plan.softmax(nothing, nothing, HUGE, HUGE, 1.0), "softmax");
    invalid(plan.sum(nothing, y, 1 << 62, 4), "sum");
    invalid(plan.sum_columns(nothing, y, 4, 1 << 62), "sum_columns");
    invalid(plan.mean(nothing, y, HUGE, HUGE), "mean");
    invalid(plan.variance(nothing, y, y, HUGE, HUGE, 0), "variance");
    invalid(plan.argmax(nothing, y, HUGE, HUGE), "argmax");
    invalid(plan.top_k(nothing, nothing, nothing, HUGE, HUGE), "top_k");
    invalid(plan.quantize_rows(nothing, nothing, nothing, 0), "quantize_rows");
    invalid(plan.rotary(x, bytes, y, 8, 1 << 62, 100.0), "rotary");
    let sizes = AttentionSizes { batch: 1, queries: 1 << 62, keys: 1, heads: 4, kv_heads: 4, width: 1 };
    invalid(plan.attention([(nothing, 4, 0), (nothing, 4, 0), (nothing, 4, 0)], None, nothing, sizes, 1.0, false), "attention");
    for dtype in [DType::F32, DType::F64] {
        let mut plan = PlanBuilder::new("words");
        let huge = plan.state("huge", dtype, usize::MAX);
        invalid(plan.fill(huge, 0), "slot huge");
        invalid(plan.copy(huge, huge), "slot huge");
    }
    // A sum over nothing is a number: of f32 or f64, however many.
    let mut plan = PlanBuilder::new("sums of nothing");
    let (none, sums, words) = (plan.state("none", DType::F64, 0), plan.state("sums", DType::F64, 1 << 61), plan.state("words", DType::U32, 4));
    invalid(plan.sum(none, sums, 1 << 61, 0), "slot");
    invalid(plan.sum(none, words, 4, 0), "not numbers");
    invalid(plan.variance(none, sums.part(0..4), sums.part(64..68), 4, 0, 0), "f32 alone");
}

/// Each slot fits an address, all of them do not: the upload's length was 0, and views of inputs led beyond it.
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
    let (table, rows, y) = (plan.input("table", DType::F32, 64), plan.input("rows", DType::U32, 2), plan.output("y", DType::F32, 64));
    let (long, words, faults) = (plan.input("long", DType::F32, 5000), plan.state("words", DType::U32, 1), plan.state("faults", DType::F32, 1));
    // Faults are words of u32, a mean is a number: the first launches were recorded before the last was refused.
    invalid(plan.gather(table, rows, y, faults, 32), "binding faults");
    invalid(plan.mean(long, words, 1, 5000), "binding y");
    invalid(plan.argmax(long, faults, 1, 5000), "binding y");
    plan.copy(table, y).expect("fits");
    let plan = plan.finish().expect("well formed");
    assert_eq!(plan.kernels().count(), 1, "{}", plan.describe());
}

/// Two results in one memory, in launches after each other where a launch alone refuses them.
#[test]
fn defect_results_of_one_operation_lie_apart() {
    let mut plan = PlanBuilder::new("apart");
    let (flags, marked, both) = (plan.input("flags", DType::U32, 5000), plan.state("marked", DType::U32, 5000), plan.state("both", DType::U32, 5056));
    // Of more than one block, the total is written by a launch of its own.
    invalid(plan.exclusive_scan(marked, both.part(0..5000), marked.part(0..1)), "touch slot marked");
    invalid(plan.exclusive_scan(flags, both.part(0..5000), both.part(64..65)), "touch slot both");
    invalid(plan.compact(flags, both.part(0..5000), both.part(0..1)), "two results overlap");
    let (rows, nothing) = (plan.constant("rows", &[0u32]), plan.state("nothing", DType::U32, 0));
    invalid(plan.gather(nothing, rows, both.part(0..1), both.part(0..1), 1), "two results overlap");
}

/// The whole slot was seen as the view's type: 3 words are no f64, a part of 2 is.
#[test]
fn defect_19_a_part_of_an_output_is_seen_as_another_type() {
    for device in devices() {
        let mut plan = PlanBuilder::new("odd");
        let (x, y) = (plan.input("x", DType::U32, 3), plan.output("y", DType::U32, 3));
        plan.copy(x, y).expect("fits");
        let mut run = plan.finish().and_then(|plan| plan.compile(&device)).expect("compiles");
        run.input::<u32>(x).copy_from_slice(&[0, 0x3ff8_0000, 7]);
        run.run().expect("runs");
        assert_eq!(run.output::<f64>(y.part(0..2).reinterpret(DType::F64)), [1.5]);
    }
}

fn moved<T: Element>(device: &Device, data: &[T], len: usize, record: impl FnOnce(&mut PlanBuilder, View, View) -> Result<(), Error>) -> Vec<T> {
    let mut plan = PlanBuilder::new("moved");
    let (x, y) = (plan.input("x", T::DTYPE, data.len()), plan.output("y", T::DTYPE, len));
    record(&mut plan, x, y).expect("fits");
    let mut run = plan.finish().and_then(|plan| plan.compile(device)).expect("compiles");
    run.input::<T>(x).copy_from_slice(data);
    run.run().expect("runs");
    run.output::<T>(y).to_vec()
}

#[test]
fn defect_06_f64_is_moved_whole() {
    let data: Vec<f64> = (1..=6).map(|i| f64::from(i) * 1.1).collect();
    let at = |places: &[usize]| places.iter().map(|&place| data[place]).collect::<Vec<_>>();
    // Moves are of words: a device needs no f64 for them.
    for device in devices().iter().filter(|device| device.info().dtypes.contains(&DType::F64)) {
        let found = moved(device, &data, 6, |plan, x, y| plan.transpose(x, y, [1, 2, 3]));
        assert_eq!(found, at(&[0, 3, 1, 4, 2, 5]), "{device:?}");
        let axes = [Strided { size: 2, stride: 3 }, Strided { size: 2, stride: 1 }];
        let found = moved(device, &data, 4, |plan, x, y| plan.copy_strided(x, 1, &axes, y));
        assert_eq!(found, at(&[1, 2, 4, 5]), "{device:?}");
        let found = moved(device, &data, 12, |plan, x, y| {
            let second = plan.temp(DType::F64, 6);
            plan.copy(x, second)?;
            plan.concat(x, second, y, 3)
        });
        assert_eq!(found, at(&[0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 4, 5]), "{device:?}");
        let found = moved(device, &data, 4, |plan, x, y| {
            let (indices, faults) = (plan.constant("indices", &[2u32, 0]), plan.state("faults", DType::U32, 1));
            plan.gather(x, indices, y, faults, 2)
        });
        assert_eq!(found, at(&[4, 5, 0, 1]), "{device:?}");
    }
}

#[test]
fn defect_06_types_of_different_widths_and_sums_of_floats_are_refused() {
    let mut plan = PlanBuilder::new("widths");
    let (narrow, wide) = (plan.state("narrow", DType::F32, 64), plan.state("wide", DType::F64, 64));
    let (indices, faults) = (plan.constant("indices", &[0u32]), plan.state("faults", DType::U32, 1));
    let both = plan.state("both", DType::F64, 128);
    let widths = "types of one width needed";
    invalid(plan.copy(narrow, wide), widths);
    invalid(plan.copy(wide, narrow), widths);
    invalid(plan.transpose(narrow, wide, [1, 8, 8]), widths);
    invalid(plan.concat(narrow, wide, both, 1), widths);
    invalid(plan.copy_strided(wide, 0, &[Strided { size: 64, stride: 1 }], narrow), widths);
    invalid(plan.gather(narrow, indices, wide, faults, 64), widths);
    let more = plan.state("more", DType::F64, 64);
    invalid(plan.scatter_add(wide, indices, more, faults, 64), "one integer type needed");
}

#[test]
fn defect_06_sizes_whose_products_wrap_are_refused() {
    let mut plan = PlanBuilder::new("products");
    let (x, y) = (plan.state("x", DType::F32, 64), plan.state("y", DType::F32, 64));
    invalid(plan.transpose(x, y, [1 << 32, 1 << 32, 64]), "needed");
    invalid(plan.transpose(x, y, [usize::MAX, 3, 5]), "needed");
    invalid(plan.copy_strided(x, usize::MAX, &[Strided { size: 64, stride: 1 }], y), "inside x");
    invalid(plan.copy_strided(x, 0, &[Strided { size: 64, stride: usize::MAX }], y), "inside x");
}

#[test]
fn defect_12_nothing_of_a_dropped_buffer_shows() {
    for device in devices() {
        let fill = |value: f32| drop(device.buffer_from(&vec![value; 3000]).expect("fits"));
        let mut plan = PlanBuilder::new("parts");
        let (x, y, between) = (plan.input("x", DType::F32, 3000), plan.output("y", DType::F32, 3000), plan.temp(DType::F32, 3000));
        let whole = plan.output("whole", DType::F32, 3000);
        plan.copy(x.part(0..64), y.part(0..64)).expect("fits");
        plan.copy(x.part(0..64), between.part(0..64)).expect("fits");
        plan.copy(between, whole).expect("fits");
        let plan = plan.finish().expect("well formed");
        (0..8).for_each(|_| fill(7.0));
        let mut run = plan.compile(&device).expect("compiles");
        assert!(run.input::<f32>(x).iter().all(|x| *x == 0.0), "{device:?}: an input that was not filled");
        run.input::<f32>(x)[..64].fill(1.0);
        run.run().expect("runs");
        for view in [y, whole] {
            let found = run.output::<f32>(view);
            assert!(found[..64].iter().all(|y| *y == 1.0) && found[64..].iter().all(|y| *y == 0.0), "{device:?}");
        }
        assert!(device.buffer::<f32>(3000).and_then(|buffer| buffer.read()).expect("reads").iter().all(|x| *x == 0.0), "{device:?}");
    }
}

#[test]
fn defect_19_a_buffer_is_of_a_whole_state_of_its_type() {
    let device = Device::open("cpu").expect("always there");
    let mut plan = PlanBuilder::new("states");
    let (wide, narrow, out) = (plan.state("wide", DType::F64, 64), plan.state("narrow", DType::F32, 64), plan.output("out", DType::F32, 64));
    plan.copy(narrow, out).expect("fits");
    let run = plan.finish().and_then(|plan| plan.compile(&device)).expect("compiles");
    invalid(run.state_buffer(wide.reinterpret(DType::F32)), "a whole state of f32");
    invalid(run.state_buffer(narrow.part(0..32)), "a whole state of f32");
    assert_eq!(run.state_buffer(narrow).expect("whole").len(), 64);
}

thread_local! {
    /// The run whose launch this thread executes, 0 for none.
    static EXECUTES: Cell<u32> = const { Cell::new(0) };
}
/// Launches that began inside a launch of another run.
static FOREIGN: AtomicU32 = AtomicU32::new(0);

/// Works for `params[1]` microseconds on each of 16 parts, shared among threads, and counts the parts that execute inside another run.
fn works_on_parts(call: &NativeCall<'_>) {
    let (run, duration) = (call.u32(0), Duration::from_micros(u64::from(call.u32(1))));
    let within = |work: &dyn Fn()| {
        let outer = EXECUTES.replace(run);
        FOREIGN.fetch_add(u32::from(outer != 0 && outer != run), Ordering::SeqCst);
        work();
        EXECUTES.set(outer);
    };
    // As large as what repays a second thread.
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

/// A thousand short runs next to long ones in one pool: no part of a long run executes while a thread is in a short one.
#[test]
fn defect_10_a_run_executes_no_work_of_another() -> Result<(), Error> {
    let device = Device::open("cpu")?;
    let kernel = Kernel::define("works_on_parts").write("y", DType::U32).param("run", DType::U32).param("microseconds", DType::U32);
    let kernel = kernel.body("@compute @workgroup_size(1) fn main() { y[0] = params.run; }").native(works_on_parts)?;
    let compile = |run: u32, microseconds: u32| -> Result<(Executable, View), Error> {
        let mut plan = PlanBuilder::new("works on parts");
        let y = plan.output("y", DType::U32, 1);
        plan.launch(&kernel, &[y], &[run, microseconds], 1)?;
        Ok((plan.finish()?.compile(&device)?, y))
    };
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| -> Result<(), Error> {
        let long = (2..4).map(|run| compile(run, 500)).collect::<Result<Vec<_>, _>>()?;
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
