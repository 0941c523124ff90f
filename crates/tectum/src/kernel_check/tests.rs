use super::*;

const SOFTSIGN: &str = "@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < params.n { y[id.x] = x[id.x] / (1.0 + abs(x[id.x])); }
}";

type Twin = fn(&crate::NativeCall<'_>);

fn softsign(twin: Twin) -> Arc<Kernel> {
    Kernel::define("softsign")
        .read("x", DType::F32)
        .write("y", DType::F32)
        .param("n", DType::U32)
        .body(SOFTSIGN)
        .native(twin)
        .expect("a kernel")
}

fn right(call: &crate::NativeCall<'_>) {
    let (x, y) = (call.read::<f32>(0), call.write::<f32>(1));
    for (y, x) in y.iter_mut().zip(x).take(call.size(0)) {
        *y = x / (1.0 + x.abs());
    }
}

/// Forgets the magnitude of what is negative.
fn wrong(call: &crate::NativeCall<'_>) {
    let (x, y) = (call.read::<f32>(0), call.write::<f32>(1));
    y.iter_mut().zip(x).for_each(|(y, x)| *y = x / (1.0 + x));
}

fn values(n: usize) -> Vec<f32> {
    (0..n)
        .map(|i| if i == 9 { -1.0 } else { 0.25 * (i % 7) as f32 })
        .collect()
}

fn case(n: usize) -> KernelCase {
    KernelCase::new(format!("{n} items"))
        .array(&values(n))
        .result::<f32>(n)
        .param(n)
        .tolerance(1e-7, 1e-6)
}

/// Whether software Vulkan or a GPU runs device code here.
fn runs_device_code() -> bool {
    let runs = Device::list()
        .iter()
        .any(|info| !matches!(info.kind, DeviceKind::Cpu | DeviceKind::Null));
    if !runs {
        println!("skipped: no device that runs device code");
    }
    runs
}

#[test]
fn a_right_twin_passes_on_every_device_and_a_wrong_one_is_named() {
    if !runs_device_code() {
        return;
    }
    let cases = [case(1000), case(7)];
    let check = check_kernel(&softsign(right), &cases).and_then(KernelCheck::into_result);
    let check = check.expect("the twin is right");
    assert!(check.passed() && check.rows.len() >= 4, "{check:?}");
    let error = check_kernel(&softsign(wrong), &cases)
        .and_then(KernelCheck::into_result)
        .expect_err("the twin is wrong");
    assert_eq!(error.kind(), ErrorKind::Mismatch);
    let error = error.to_string();
    // x[9] is -1: -1/(1 + 1) on the device, -1/(1 - 1) of the twin.
    assert!(
        error.starts_with("kernel softsign: ")
            && error
                .contains(", 1000 items: y[9] is -0.5, expected -inf; 1 of 1000 elements differ"),
        "{error}"
    );
    assert!(!error.contains("7 items"), "{error}");
}

#[test]
fn what_a_case_expects_is_the_reference_of_the_twin_too() {
    let expected: Vec<f32> = values(20).iter().map(|x| x / (1.0 + x.abs())).collect();
    let case = |expected: &[f32]| {
        let case = KernelCase::new("known")
            .array(&values(20))
            .result::<f32>(20);
        case.expected(expected).param(20u32).tolerance(0.0, 1e-6)
    };
    let check = |twin, case| check_kernel_on(&softsign(twin), &[case], &[]).expect("runs");
    let passed = check(right, case(&expected));
    assert!(passed.passed(), "{passed:?}");
    let found = check(wrong, case(&expected)).rows.remove(0);
    let difference = found.difference.expect("x[9] is negative");
    assert_eq!(
        (
            found.device.as_str(),
            difference.element,
            difference.differing
        ),
        ("cpu", 9, 1)
    );
    assert_eq!(difference.expected, Number::Float(-0.5));
}

/// Elements that are not written are found, and a check that compared nothing does not pass.
#[test]
fn a_check_without_a_comparison_fails() {
    let error = check_kernel_on(&softsign(right), &[case(5)], &[])
        .and_then(KernelCheck::into_result)
        .expect_err("the CPU alone");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(
        error.to_string().contains("nothing was compared"),
        "{error}"
    );
    let lazy = check_kernel_on(
        &softsign(|_| {}),
        &[KernelCase::new("left out")
            .array(&[f32::NAN])
            .result::<f32>(1)
            .expected(&[f32::NAN])
            .param(1u32)],
        &[],
    );
    let rows = lazy.expect("runs").rows;
    assert!(
        rows[0].difference.is_some(),
        "an element left out is not NaN"
    );
}

#[test]
fn arguments_that_are_not_those_of_the_kernel_are_refused() {
    let refused = [
        (
            KernelCase::new("few").array(&[1.0f32]),
            "few: 1 arrays and 0 parameters; 2 and 1 needed",
        ),
        (
            KernelCase::new("types")
                .array(&[1i32])
                .result::<f32>(1)
                .param(1u32),
            "binding x: slot x is i32, the kernel needs f32",
        ),
        (
            KernelCase::new("read")
                .result::<f32>(1)
                .result::<f32>(1)
                .param(1u32),
            "binding x is read; it needs contents",
        ),
        (
            KernelCase::new("large")
                .array(&[1.0f32])
                .result::<f32>(1)
                .param(1usize << 32),
            "parameter n exceeds 32 bits",
        ),
        (case(1).tolerance(f64::NAN, 0.0), "a tolerance of NaN and 0"),
        (
            KernelCase::new("long")
                .array(&[1.0f32])
                .result::<f32>(1)
                .expected(&[1.0f32; 2])
                .param(1u32),
            "binding y has 1 words, and 2 are expected",
        ),
    ];
    for (case, message) in refused {
        let error = check_kernel_on(&softsign(right), &[case], &[]).expect_err(message);
        assert!(
            error.kind() == ErrorKind::Invalid && error.to_string().contains(message),
            "{error}"
        );
    }
}

/// A twin that panics is an error with its message.
#[test]
fn a_twin_that_panics_is_an_error_with_its_message() {
    fn beyond(call: &crate::NativeCall<'_>) {
        let (x, y) = (call.read::<f32>(0), call.write::<f32>(1));
        y[..call.size(0)].copy_from_slice(&x[..call.size(0)]);
    }
    let case = KernelCase::new("beyond")
        .array(&[1.0f32; 3])
        .result::<f32>(3)
        .param(4u32);
    let error = check_kernel_on(&softsign(beyond), &[case], &[]).expect_err("beyond the view");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(
        error.to_string(),
        "plan beyond: launch 0, kernel softsign: its native twin panicked: range end index 4 out of range for slice of length 3"
    );
}
