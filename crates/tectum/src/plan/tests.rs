use super::*;
use crate::device::Device;
use crate::operation::elementwise::transfer::{COPY, Copy};

/// Recording mistakes, each with what the error must name.
#[test]
fn mistakes_are_found_while_recording_and_named() {
    let mut plan = PlanBuilder::new("p");
    let x = plan.input("x", DType::U32, 128);
    let y = plan.output("y", DType::U32, 128);
    let f = plan.input("f", DType::F32, 128);
    let unwritten = plan.temp(DType::U32, 128);
    let empty = plan.temp(DType::U32, 0);
    let cases: Vec<(Vec<View>, Vec<u32>, u32, &str)> = vec![
        (
            vec![x],
            vec![1],
            1,
            "1 views and 1 params given, 2 and 1 needed",
        ),
        (vec![x, y], vec![1], 0, "0 workgroups"),
        (vec![x, y], vec![1], 65_536, "65536 workgroups"),
        (
            vec![f, y],
            vec![1],
            1,
            "binding x: slot f is f32, the kernel needs u32",
        ),
        (
            vec![x, x],
            vec![1],
            1,
            "binding y: slot x may not be written",
        ),
        (vec![empty, y], vec![1], 1, "is empty"),
        (vec![x.part(1..5), y], vec![1], 1, "begins at element 1"),
        (
            vec![unwritten, y],
            vec![1],
            1,
            "is read before anything wrote it",
        ),
    ];
    for (views, params, groups, needle) in cases {
        let error = plan
            .push_launch(&COPY, views, params, groups.into())
            .expect_err(needle)
            .to_string();
        assert!(
            error.starts_with("plan p: launch 0, kernel copy_u32") && error.contains(needle),
            "{error}"
        );
    }
    plan.copy(x, y).expect("right");
    let error = plan
        .launch(
            &COPY,
            Copy {
                x: y.part(64..128),
                y: y.part(0..64),
                n: 64,
            },
            1,
        )
        .expect_err("one slot, read and written");
    assert!(error.to_string().contains("both touch slot y"), "{error}");
}

#[test]
fn arguments_that_do_not_fit_the_kernel_record_nothing() {
    use crate::operation::reduce::top_k::{TOP_K, TOP_K_MERGE, TopK};
    let mut plan = PlanBuilder::new("p");
    let (x, words) = (
        plan.input("x", DType::F32, 128),
        plan.input("words", DType::U32, 128),
    );
    let (values, columns) = (
        plan.output("values", DType::F32, 2),
        plan.output("columns", DType::U32, 2),
    );
    let error = plan
        .launch(
            &COPY,
            Copy {
                x: words,
                y: columns,
                n: 1 << 32,
            },
            1,
        )
        .expect_err("33 bits");
    assert!(
        error
            .to_string()
            .starts_with("plan p: launch 0, kernel copy_u32: parameter n exceeds 32 bits"),
        "{error}"
    );
    for (kernel, candidates) in [(&TOP_K, Some(words)), (&TOP_K_MERGE, None)] {
        let error = plan
            .launch(
                kernel,
                TopK {
                    x,
                    candidates,
                    values,
                    columns,
                    rows: 1,
                    cols: 128,
                    chunks: 1,
                    k: 2,
                },
                1,
            )
            .expect_err("another kernel's views");
        assert!(
            error.to_string().contains(
                "the views of optional bindings are not those of the kernel, which has x, "
            ),
            "{error}"
        );
    }
    assert_eq!(plan.launch_count(), 0);
    plan.launch(
        &TOP_K,
        TopK {
            x,
            candidates: None,
            values,
            columns,
            rows: 1,
            cols: 128,
            chunks: 1,
            k: 2,
        },
        1,
    )
    .expect("fits");
}

#[test]
fn an_output_must_be_written() {
    let mut plan = PlanBuilder::new("p");
    let _y = plan.output("y", DType::F32, 4);
    assert!(
        plan.finish()
            .expect_err("nothing writes y")
            .to_string()
            .contains("output y is never written")
    );
}

#[test]
fn operations_on_nothing_record_nothing() {
    let mut plan = PlanBuilder::new("p");
    let (x, y) = (
        plan.input("x", DType::F32, 0),
        plan.output("y", DType::F32, 0),
    );
    plan.unary("exp", x, y).expect("nothing to do");
    plan.softmax(x, y, 0, 7, 1.0).expect("nothing to do");
    let plan = plan.finish().expect("an empty output needs no writer");
    assert_eq!(plan.describe(), "");
    let mut run = plan
        .compile(&Device::open("cpu").expect("cpu"))
        .expect("compiles");
    assert_eq!(run.run().expect("runs").launches, 0);
    assert!(run.output::<f32>(y).is_empty());
}

#[test]
fn the_text_of_a_plan_names_launches_and_ranges() {
    let mut plan = PlanBuilder::new("p");
    let (x, y) = (
        plan.input("x", DType::F32, 8192),
        plan.output("y", DType::F32, 1),
    );
    plan.sum(x, y, 1, 8192).expect("records");
    let text = plan.finish().expect("whole").describe();
    assert_eq!(
        text,
        "sum_f32 x[8192] temp2[2] groups 2\nsum_f32 temp2[2] y[1] groups 1\n"
    );
}

fn counting_plan() -> (Plan, View, View, View) {
    let mut plan = PlanBuilder::new("count");
    let one = plan.input("one", DType::F32, 1000);
    let (state, sum, out) = (
        plan.state("sum", DType::F32, 1000),
        plan.temp(DType::F32, 1000),
        plan.output("out", DType::F32, 1000),
    );
    plan.binary("add", state, one, sum).expect("records");
    plan.copy(sum, state).expect("records");
    plan.copy(sum, out).expect("records");
    (plan.finish().expect("whole"), one, state, out)
}

#[test]
fn states_live_from_run_to_run_and_can_be_shared() {
    for id in ["cpu", "vulkan:0", "cuda:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            println!("skipped: {id} is absent: states of plans");
            continue;
        };
        let (plan, one, state, out) = counting_plan();
        let mut first = plan.compile(&device).expect("compiles");
        first.input::<f32>(one).fill(1.0);
        for _ in 0..3 {
            first.run().expect("runs");
        }
        assert_eq!(first.output::<f32>(out), [3.0; 1000]);
        let shared = first.state_buffer(state).expect("not empty");
        let mut second = plan
            .compile_with(&device, &[(state, &shared)])
            .expect("compiles");
        second.input::<f32>(one).fill(10.0);
        second.run().expect("runs");
        assert_eq!(second.output::<f32>(out), [13.0; 1000]);
        first.run().expect("runs");
        assert_eq!(first.output::<f32>(out), [14.0; 1000], "{id}");
        first.write_state(state, &[0.5f32; 1000]).expect("fits");
        assert_eq!(
            shared
                .typed::<f32>()
                .and_then(|shared| shared.read())
                .expect("reads"),
            [0.5; 1000]
        );
        assert!(
            first
                .write_state(state, &[0.5f32; 3])
                .expect_err("too short")
                .to_string()
                .contains("state sum of 1000")
        );
    }
}

/// Bytes and transfers as counted by each kind of device: one block each way for any plan, and none
/// on the CPU.
#[test]
fn a_run_is_one_upload_one_submission_and_one_download() {
    let expected = [
        ("cpu", 0, 0),
        ("null", 1, 1),
        ("vulkan:0", 1, 1),
        ("cuda:0", 1, 1),
    ];
    for (id, up, down) in expected {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            println!("skipped: {id} is absent: transfers of a run");
            continue;
        };
        let mut plan = PlanBuilder::new("traffic");
        let (a, b) = (
            plan.input("a", DType::F32, 100),
            plan.input("b", DType::F32, 7),
        );
        let (x, y) = (
            plan.output("x", DType::F32, 100),
            plan.output("y", DType::F32, 7),
        );
        plan.unary("neg", a, x).expect("records");
        plan.unary("neg", b, y).expect("records");
        let stats = plan
            .finish()
            .expect("whole")
            .compile(&device)
            .expect("compiles")
            .run()
            .expect("runs");
        assert_eq!(
            (
                stats.transfers_up,
                stats.transfers_down,
                stats.submissions,
                stats.launches
            ),
            (up, down, 1, 2),
            "{id}"
        );
        assert_eq!(stats.bytes_up > 0, up > 0);
        assert_eq!(stats.bytes_down > 0, down > 0);
    }
}

/// The CPU and the null device had a limit that was never checked.
#[test]
fn suspect_a_binding_longer_than_the_device_allows_is_refused_with_the_numbers() {
    for id in ["cpu", "null", "vulkan:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            println!("skipped: {id} is absent: bindings that are too long");
            continue;
        };
        let limit = device.info().limits.max_binding_bytes;
        let mut plan = PlanBuilder::new("long");
        let y = plan.state("y", DType::F32, limit as usize / 4 + 64);
        if let Err(error) = plan.fill(y, 0) {
            assert!(
                limit / 4 + 64 > u64::from(u32::MAX)
                    && error.to_string().contains("that a kernel counts"),
                "{id}: {error}"
            );
            continue;
        }
        let error = plan
            .finish()
            .expect("whole")
            .compile(&device)
            .expect_err("too long");
        assert_eq!(error.kind(), crate::error::ErrorKind::Unsupported, "{id}");
        let error = error.to_string();
        assert!(
            error.contains(&format!("at most {limit}"))
                && error.contains("fill_u32")
                && error.contains("of y"),
            "{id}: {error}"
        );
    }
}

#[test]
fn a_device_without_f64_reports_the_kernel_that_needs_it() {
    let mut plan = PlanBuilder::new("p");
    let (x, y) = (
        plan.input("x", DType::F64, 4),
        plan.output("y", DType::F64, 4),
    );
    plan.unary("exp", x, y).expect("recorded");
    let plan = plan.finish().expect("whole");
    let mut info = Device::open("null").expect("always there").info().clone();
    assert!(
        plan.check_dtypes(&info).is_ok()
            && plan
                .compile(&Device::open("null").expect("always there"))
                .is_ok()
    );
    info.dtypes.retain(|dtype| *dtype != DType::F64);
    let error = plan.check_dtypes(&info).expect_err("the device has no f64");
    assert_eq!(error.kind(), crate::error::ErrorKind::Unsupported);
    let told =
        "plan p: kernel exp_f64 needs f64, which device null (null (executes nothing)) lacks";
    assert!(error.to_string().starts_with(told), "{error}");
}

#[test]
fn types_are_not_mixed() {
    let mut plan = PlanBuilder::new("p");
    let (x, f, y) = (
        plan.input("x", DType::F64, 4),
        plan.input("f", DType::F32, 4),
        plan.output("y", DType::F64, 4),
    );
    let error = plan
        .binary("add", x, f, y)
        .expect_err("f64 and f32")
        .to_string();
    assert!(
        error.contains("slot f is f32, the kernel needs f64"),
        "{error}"
    );
    let error = plan
        .sum(f, y.part(0..1), 1, 4)
        .expect_err("f64 of f32")
        .to_string();
    assert!(
        error.contains("slot y is f64, the kernel needs f32"),
        "{error}"
    );
}

#[test]
fn a_double_is_two_words() {
    let mut plan = PlanBuilder::new("p");
    let x = plan.state("x", DType::F64, 256);
    let words = x.part(64..128).reinterpret(DType::U32);
    assert_eq!((words.len(), words.bytes()), (128, 512..1024));
    assert_eq!(words.reinterpret(DType::F64), x.part(64..128));
    let [first, second] =
        [x.part(0..128), x.part(64..192)].map(|view| view.reinterpret(DType::U32));
    let error = plan.launch(
        &COPY,
        Copy {
            x: first,
            y: second,
            n: 256,
        },
        1,
    );
    assert!(
        error
            .expect_err("they overlap")
            .to_string()
            .contains("both touch slot x")
    );
}

#[test]
fn products_of_codes_are_refused_where_their_sums_may_not_be_exact() {
    use crate::operation::product::gemm::GemmEpilogue;
    use crate::operation::product::panel_format::PanelFormat;
    let record = |k: usize| {
        let mut plan = PlanBuilder::new("p");
        let [a, y] = [k, 16].map(|len| plan.temp(DType::F32, len));
        let b = plan.state("b", DType::U32, PanelFormat::Int8.words(k, 16));
        plan.fill(a, 0)?;
        plan.gemm_panels(
            a,
            (b, PanelFormat::Int8),
            y,
            [1, k, 16],
            GemmEpilogue::default(),
        )
    };
    record(1 << 17).expect("exact");
    let error = record((1 << 17) + 1).expect_err("too long").to_string();
    assert!(
        error.contains("k = 131073") && error.contains("up to k = 131072"),
        "{error}"
    );
}

#[test]
fn a_run_in_flight_keeps_inputs_outputs_and_further_runs_until_it_is_finished() {
    for id in ["cpu", "null", "vulkan:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            continue;
        };
        let mut plan = PlanBuilder::new("flight");
        let (x, y) = (
            plan.input("x", DType::F32, 3),
            plan.output("y", DType::F32, 3),
        );
        plan.unary("neg", x, y).expect("fits");
        let mut run = plan
            .finish()
            .and_then(|plan| plan.compile(&device))
            .expect("compiles");
        let refused = |result: Result<()>| {
            assert!(
                result
                    .expect_err("in flight")
                    .to_string()
                    .contains("a run is in flight"),
                "{id}"
            )
        };
        assert!(
            run.finish()
                .expect_err("nothing began")
                .to_string()
                .contains("no run was begun")
        );
        run.input::<f32>(x).copy_from_slice(&[1.0, 2.0, 3.0]);
        run.begin().expect("idle");
        refused(run.begin());
        refused(run.run().map(drop));
        refused(run.trace().map(drop));
        refused(run.try_output::<f32>(y).map(drop));
        assert!(
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run
                .input::<f32>(x)
                .fill(9.0)))
            .is_err(),
            "{id}"
        );
        run.finish().expect("it ends");
        if device.info().executes() {
            assert_eq!(run.output::<f32>(y), [-1.0, -2.0, -3.0], "{id}");
        }
        run.run().expect("idle again");
    }
}
