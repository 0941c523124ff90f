//! Kernels of users with workgroups of any size, and launches of more workgroups than an axis has.

use tectum::kernel::groups_for;
use tectum::{DType, Device, Error, ErrorKind, Kernel, PlanBuilder, Prelude, Result};

/// Doubles numbers by the entry point of a body, and returns an error for a wrong one.
fn double(device: &Device, body: &str, n: usize) -> Result<()> {
    let kernel = Kernel::define("double")
        .read("x", DType::U32)
        .write("y", DType::U32)
        .param("n", DType::U32)
        .prelude(Prelude::LinearIndex)
        .body(body)
        .counts("n", &["x", "y"])
        .native(|call| {
            let (x, y) = (call.read::<u32>(0), call.write::<u32>(1));
            y.iter_mut().zip(x).for_each(|(y, x)| *y = 2 * x);
        })?;
    let mut plan = PlanBuilder::new("double");
    let (x, y) = (
        plan.input("x", DType::U32, n),
        plan.output("y", DType::U32, n),
    );
    plan.launch_dynamic(&kernel, &[x, y], &[n as u32], groups_for(n))?;
    let mut run = plan.finish()?.compile(device)?;
    let numbers = run.input::<u32>(x).iter_mut().zip(1..);
    numbers.for_each(|(x, number)| *x = number);
    run.run()?;
    let wrong = run.output::<u32>(y).iter().zip(1..);
    let wrong = wrong.filter(|(y, number)| **y != 2 * number).count();
    if wrong == 0 {
        return Ok(());
    }
    let id = &device.info().id;
    Err(Error::new(
        ErrorKind::Mismatch,
        format!("{id}: {wrong} of {n} numbers are wrong: {body}"),
    ))
}

/// Every item of 1,000 is computed, for any size of the workgroup.
pub fn sizes(device: &Device) -> Result<()> {
    let main = "fn main(@builtin(global_invocation_id) id: vec3<u32>) { if id.x < params.n { y[id.x] = 2u * x[id.x]; } }";
    for size in ["1", "7", "32", "64", "100u", "128", "256", "SIZE"] {
        let body = format!("const SIZE = 8u * 6u;\n@compute @workgroup_size({size})\n{main}");
        double(device, &body, 1000)?;
    }
    Ok(())
}

/// Items beyond 65,535 workgroups are computed by their linear index, and refused without it.
pub fn rows(device: &Device) -> Result<()> {
    let linear = "fn main(invocation: TectumInvocation) { let i = tectum_linear_index(invocation); if i < params.n { y[i] = 2u * x[i]; } }";
    double(
        device,
        &format!("@compute @workgroup_size(1) {linear}"),
        65_535 + 1_000,
    )?;
    let id = "fn main(@builtin(global_invocation_id) id: vec3<u32>) { if id.x < params.n { y[id.x] = 2u * x[id.x]; } }";
    match double(device, &format!("@compute @workgroup_size(1) {id}"), 65_536) {
        Err(error) if error.kind() == ErrorKind::Invalid => {
            let text = error.to_string();
            let is_named = text.contains("kernel double: 65536 items are 65536 workgroups of 1")
                && text.contains("tectum_linear_index");
            is_named.then_some(()).ok_or(error)
        }
        Err(error) => Err(error),
        Ok(()) => Err(Error::invalid("a launch of 65,536 workgroups was recorded")),
    }
}

/// Several axes, and more rows.
pub fn large_rows(device: &Device) -> Result<()> {
    let linear = "fn main(invocation: TectumInvocation) { let i = tectum_linear_index(invocation); if i < params.n { y[i] = 2u * x[i]; } }";
    double(
        device,
        &format!("@compute @workgroup_size(4, 2) {linear}"),
        3 * 8 * 65_535 + 9,
    )
}

/// A parameter beyond a view is refused when it is recorded, on every device.
pub fn count(device: &Device) -> Result<()> {
    let body = "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { if id.x < params.n { y[id.x] = x[id.x]; } }";
    let kernel = Kernel::define("counted")
        .read("x", DType::U32)
        .write("y", DType::U32)
        .param("n", DType::U32)
        .body(body)
        .counts("n", &["x", "y"])
        .native(|call| {
            let (x, y) = (call.read::<u32>(0), call.write::<u32>(1));
            y[..call.size(0)].copy_from_slice(&x[..call.size(0)]);
        })?;
    let mut plan = PlanBuilder::new("counted");
    let (x, y) = (
        plan.input("x", DType::U32, 100),
        plan.output("y", DType::U32, 64),
    );
    let refused = plan.launch_dynamic(&kernel, &[x, y], &[65], groups_for(65));
    let message = refused.err().map(|error| error.to_string());
    let expected =
        "plan counted: launch 0, kernel counted: parameter n is 65, and binding y has 64 elements";
    if message.as_deref() != Some(expected) {
        return Err(Error::invalid(format!("{message:?}")));
    }
    plan.launch_dynamic(&kernel, &[x, y], &[64], groups_for(64))?;
    plan.finish()?.compile(device)?.run().map(|_| ())
}
