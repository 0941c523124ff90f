use std::sync::Arc;

use super::*;
use crate::dtype::DType;
use crate::kernel::Prelude;

fn kernel(body: &str) -> Arc<Kernel> {
    Kernel::define("k")
        .write("y", DType::F32)
        .param("n", DType::U32)
        .prelude(Prelude::LinearIndex)
        .body(body)
        .native(|_| {})
        .unwrap_or_else(|error| panic!("{body}: {error}"))
}

const ONE_EACH: &str = "fn main(@builtin(global_invocation_id) id: vec3<u32>) { if id.x < params.n { y[id.x] = 1.0; } }";
const STRIDED: &str = "fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    for (var i = id.x; i < params.n; i += 64u * groups.x) { y[i] = 1.0; } }";
const LINEAR: &str = "fn main(invocation: TectumInvocation) { let i = tectum_linear_index(invocation); if i < params.n { y[i] = 1.0; } }";

/// The size is that of the module: literals, constants, and not what a comment says.
#[test]
fn workgroups_are_counted_by_the_size_of_the_module() {
    let cases: [(&str, [u32; 3], usize, u32); 8] = [
        ("@compute @workgroup_size(1)", [1, 1, 1], 1000, 1000),
        ("@compute @workgroup_size(64)", [64, 1, 1], 1000, 16),
        (
            "@compute @workgroup_size(100u, 1, 1)",
            [100, 1, 1],
            1000,
            10,
        ),
        ("@compute @workgroup_size(256)", [256, 1, 1], 1000, 4),
        ("@compute @workgroup_size(256)", [256, 1, 1], 0, 1),
        (
            "const SIZE = 32u; @compute @workgroup_size(SIZE)",
            [32, 1, 1],
            1000,
            32,
        ),
        ("@compute @workgroup_size(8 * 4)", [32, 1, 1], 1000, 32),
        (
            "// not @workgroup_size(256)\n@compute @workgroup_size(64)",
            [64, 1, 1],
            1000,
            16,
        ),
    ];
    for (attributes, size, items, groups) in cases {
        let kernel = kernel(&format!("{attributes} {ONE_EACH}"));
        assert_eq!(kernel.workgroup_size(), size, "{attributes}");
        assert_eq!(kernel.workgroup(), size.iter().product::<u32>());
        let dispatch = kernel.dispatch(groups_for(items)).expect("few");
        assert_eq!(dispatch, [groups, 1], "{attributes}");
    }
}

#[test]
fn launches_beyond_the_limit_fold_stride_or_are_refused() {
    let limit = MAX_GROUPS as usize * 64;
    let sized = |body: &str| kernel(&format!("@compute @workgroup_size(64) {body}"));
    for body in [ONE_EACH, STRIDED, LINEAR] {
        let dispatch = sized(body).dispatch(groups_for(limit));
        assert_eq!(dispatch.expect("at the limit"), [MAX_GROUPS, 1], "{body}");
    }
    let beyond = groups_for(limit + 1);
    assert_eq!(
        sized(STRIDED).dispatch(beyond).expect("strides"),
        [MAX_GROUPS, 1]
    );
    assert_eq!(sized(LINEAR).dispatch(beyond).expect("folds"), [32_768, 2]);
    assert_eq!(
        sized(LINEAR).dispatch(70_000.into()).expect("folds"),
        [35_000, 2],
        "a number of workgroups folds too"
    );
    let error = sized(ONE_EACH).dispatch(beyond).expect_err("one row");
    let error = error.to_string();
    assert!(
        error.starts_with("4194241 items are 65536 workgroups of 64; 1 to 65535 are possible")
            && error.contains("tectum_linear_index")
            && error.contains("num_workgroups.x * 64"),
        "{error}"
    );
    for body in [ONE_EACH, STRIDED] {
        let error = sized(body).dispatch(65_536.into()).expect_err("no rows");
        assert!(
            error
                .to_string()
                .starts_with("65536 workgroups; 1 to 65535"),
            "{error}"
        );
    }
}

/// Rows hold all workgroups, with fewer than a row too many, and no index wraps.
#[test]
fn folds_hold_every_workgroup_and_no_index_wraps() {
    for groups in [
        65_536,
        65_537,
        131_071,
        1 << 20,
        16_777_216,
        u64::from(MAX_GROUPS).pow(2),
    ] {
        let Some([columns, rows]) = fold(groups, 1) else {
            panic!("{groups} workgroups")
        };
        let all = u64::from(columns) * u64::from(rows);
        assert!(columns <= MAX_GROUPS && rows <= MAX_GROUPS);
        assert!(
            (groups..groups + u64::from(rows)).contains(&all),
            "{groups}: {columns}, {rows}"
        );
    }
    assert_eq!(fold(u64::from(MAX_GROUPS).pow(2) + 1, 1), None);
    assert_eq!(
        fold(1 << 24, 256),
        None,
        "rows of unequal length would wrap"
    );
    assert!(fold((1 << 24) - 65_536, 256).is_some());
}

/// Only a kernel without another number of its workgroup has rows.
#[test]
fn a_kernel_with_another_index_has_no_rows() {
    let bodies = [
        "fn main(invocation: TectumInvocation, @builtin(global_invocation_id) id: vec3<u32>) { y[tectum_linear_index(invocation)] = f32(id.x); }",
        "fn main(invocation: TectumInvocation) { y[tectum_linear_index(invocation)] = f32(invocation.workgroup.x); }",
        "fn main(invocation: TectumInvocation) { var copy = invocation; y[tectum_linear_index(invocation)] = f32(copy.workgroup.x); }",
        "fn main(invocation: TectumInvocation) { y[tectum_linear_index(invocation)] = column(invocation); }\n fn column(invocation: TectumInvocation) -> f32 { return f32(invocation.workgroup.x); }",
        "fn main(invocation: TectumInvocation) { y[invocation.local] = 1.0; }",
        ONE_EACH,
    ];
    for body in bodies {
        let kernel = kernel(&format!("@compute @workgroup_size(1) {body}"));
        kernel.dispatch(groups_for(70_000)).expect_err(body);
    }
    let with_local = "@compute @workgroup_size(4, 2) fn main(invocation: TectumInvocation) {
        if invocation.local < 8u { loop { y[tectum_linear_index(invocation)] = 1.0; break; } } }";
    let dispatch = kernel(with_local).dispatch(groups_for(8 * 70_000));
    assert_eq!(
        dispatch.expect("the place in the workgroup is no index"),
        [35_000, 2]
    );
}

#[test]
fn a_workgroup_of_several_axes_needs_a_number_or_the_linear_index() {
    let flat = kernel(&format!("@compute @workgroup_size(8, 8) {ONE_EACH}"));
    let error = flat
        .dispatch(groups_for(100))
        .expect_err("how many?")
        .to_string();
    assert!(
        error.starts_with("a workgroup of [8, 8, 1] does not say"),
        "{error}"
    );
    assert_eq!(flat.dispatch(13.into()).expect("stated"), [13, 1]);
    let linear = kernel(&format!("@compute @workgroup_size(8, 8) {LINEAR}"));
    assert_eq!(linear.dispatch(groups_for(100)).expect("linear"), [2, 1]);
    assert!(linear.wgsl().contains("const TECTUM_WORKGROUP: u32 = 64u;"));
}

#[test]
fn a_workgroup_size_that_is_not_constant_is_refused() {
    let body = format!("override size: u32 = 64u; @compute @workgroup_size(size) {ONE_EACH}");
    let error = Kernel::define("k")
        .write("y", DType::F32)
        .param("n", DType::U32)
        .body(body)
        .native(|_| {})
        .expect_err("a pipeline's constant");
    assert!(error.to_string().contains("is not a constant"), "{error}");
}

/// The kernels of this crate are not parsed when they are defined: the size that their text says is
/// that of the module.
#[test]
fn the_sizes_that_the_texts_say_are_those_of_the_modules() {
    for kernel in crate::operation::kernels() {
        let size = kernel.check().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(kernel.workgroup_size(), size, "{}", kernel.name());
    }
}
