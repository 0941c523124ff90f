//! A kernel of your own, compared with its formula in float64 on a device:
//! `cargo run -p tectum-bench --example kernel [-- DEVICE]`.

use std::sync::Arc;

use tectum::kernel::groups_for;
use tectum::{Device, Result};
use tectum_bench::conformance::{Case, Data, Expected, Output, Suite, verify};

tectum::kernel_arguments! {
    /// `y[i] = x[i] / (1 + |x[i]|)` for `i < n`.
    struct Softsign { read x: f32, write y: f32; n: usize }
}

fn main() -> Result<()> {
    let softsign = Softsign::define("softsign")
        .body("@compute @workgroup_size(256) fn main(@builtin(global_invocation_id) id: vec3<u32>) { if id.x < params.n { y[id.x] = x[id.x] / (1.0 + abs(x[id.x])); } }")
        .native(|_, Softsign { x, y, n }| y[..n].iter_mut().zip(x).for_each(|(y, x)| *y = x / (1.0 + x.abs())))?;
    let (softsign, n) = (Arc::new(softsign), 1000);
    let kernels = [Arc::clone(&**softsign)];
    let suite = Suite::new("softsign", move |seed| {
        let softsign = Arc::clone(&softsign);
        let x = seed.floats(n, -10.0, 10.0);
        // Three roundings of a result below 1: half a unit in the last place each.
        let expected = x
            .iter()
            .map(|x| f64::from(*x))
            .map(|x| Expected {
                value: x / (1.0 + x.abs()),
                bound: 2e-7,
            })
            .collect();
        vec![Case::new(
            "1000",
            vec![Data::F32(x)],
            vec![Output::Near(expected)],
            move |plan, x, y| {
                plan.launch(
                    &softsign,
                    Softsign {
                        x: x[0],
                        y: y[0],
                        n,
                    },
                    groups_for(n),
                )
            },
        )]
    });
    let device = Device::open(std::env::args().nth(1).as_deref().unwrap_or("cpu"))?;
    let report = verify(
        &device,
        1,
        vec![suite],
        &kernels,
        &mut tectum::WorkProgress::ignore,
    )?
    .into_result()?;
    println!(
        "{}: greatest error {:.2} of the bound",
        report.operations[0].name, report.operations[0].worst_of_bound
    );
    Ok(())
}
